"""Columns of PySpark as the SQL text that commands take: what delta-spark's API accepts in place of text.

Spark itself writes the text and reads it back: where the two are not the same expression (Python functions, lambdas, columns bound to a
DataFrame) it is refused by name, never run as something else. Operators, which Spark writes as functions, are put between their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.sql.tokens import Reader, Token

_BETWEEN = frozenset(["=", ">", ">=", "<", "<=", "<=>", "+", "-", "*", "/", "%", "&", "|", "^", "and", "or", "like", "rlike"])
_BEFORE = {"!": "NOT", "negative": "-", "~": "~"}
_AFTER = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL"}


def sql_text(value: Any, what: str) -> str:
    """Text as it is, a Column as Spark writes it. InvalidTypeError for anything else, UnsupportedFeatureError for what has no text."""
    if isinstance(value, str):
        return value
    if not hasattr(value, "_jc"):
        if type(value).__name__ == "Column":
            raise UnsupportedFeatureError(f"{what} as a Column of Spark Connect", expected="a string: an expression in SQL syntax")
        found = f"{type(value).__name__} {value!r}"[:80]
        raise InvalidTypeError(
            f"{what} is of the wrong type", found=found, expected="a Spark SQL Column or a string: an expression in SQL syntax"
        )
    return infix(_of_column(value, what))


def condition_text(value: Any, what: str = "condition") -> str | None:
    """`sql_text`, None for none."""
    return None if value is None else sql_text(value, what)


def assignments(values: Any, what: str) -> dict[str, str]:
    """A mapping of columns to expressions as text. InvalidArgumentError (a ValueError) for none, InvalidTypeError (a TypeError) for what is
    no dictionary of text to text or Columns."""
    if values is None:
        raise InvalidArgumentError(f"{what} cannot be None", expected="a dictionary of columns to expressions")
    if not isinstance(values, Mapping):
        raise InvalidTypeError(f"{what} must be a dict", found=type(values).__name__)
    for name in values:
        if not isinstance(name, str):
            raise InvalidTypeError(f"keys of {what} are names of columns", found=f"{type(name).__name__} {name!r}"[:80], expected="str")
    return {name: sql_text(value, f"{what}[{name!r}]") for name, value in values.items()}


def _of_column(column: Any, what: str) -> str:
    """What Spark writes for a column, if it reads the same expression in it."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise InvalidArgumentError("no Spark session is active", where=what)
    expression = session._jsparkSession.expression(column._jc)
    text = str(expression.sql())
    try:
        parsed = session._jsparkSession.sessionState().sqlParser().parseExpression(text)
        same = parsed.equals(expression) or _are_same_structs(session, parsed, expression)
    except Exception as error:  # whatever Spark's parser says of it: there is no text
        raise _no_text(what, text) from error
    if not same:
        raise _no_text(what, text)
    return text


def _are_same_structs(session: Any, parsed: Any, expression: Any) -> bool:
    """Whether two expressions differ only in how struct(...) is made, which to the parser is no call of a function, and in the ids of the
    names in it."""
    from pyspark.sql import functions as F
    from pyspark.sql.classic.column import _to_seq

    made = session._jvm.org.apache.spark.sql.catalyst.expressions

    def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
        children = node.children()
        inner = [rebuilt(children.apply(index), change) for index in range(children.length())]
        return change(node.withNewChildren(_to_seq(session.sparkContext, inner)) if inner else node)

    def as_parsed(node: Any) -> Any:
        is_call = node.nodeName() == "UnresolvedFunction" and node.nameParts().mkString(".") == "struct"
        return made.CreateStruct.create(node.children()) if is_call else node

    def without_ids(node: Any) -> Any:
        if node.nodeName() != "Alias":
            return node
        name = session._jsparkSession.expression(F.lit(node.name())._jc)
        return made.CreateNamedStruct(_to_seq(session.sparkContext, [name, node.child()]))

    if "struct(" not in str(expression.sql()):
        return False
    return bool(rebuilt(parsed, without_ids).equals(rebuilt(rebuilt(expression, as_parsed), without_ids)))


def _no_text(what: str, text: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{what}: a column that has no SQL text, such as a Python function, a lambda, or a column of a DataFrame (frame.x)",
        found=text[:200],
        expected="col('x') or col('alias.x') with Spark's own functions, or a string: an expression in SQL syntax",
    )


def infix(text: str) -> str:
    """The expression with operators between their operands: `=`(a, 1) -> (a = 1)."""
    return _rewritten(Reader(text), len(text)) if "`" in text or "(" in text else text


def _rewritten(reader: Reader, end: int) -> str:
    """The text of the tokens up to one that closes a bracket, or to the end, operators put where they belong."""
    pieces: list[str] = []
    copied = reader.tokens[reader.position].start
    while not reader.done and not reader.at(")"):
        token = reader.tokens[reader.position]
        name = _called(reader)
        reader.position += 1
        if name is not None:
            operands = _operands(reader)
            if (said := _said(name, operands)) is not None:
                pieces.append(reader.text[copied : token.start] + said)
            else:
                pieces.append(reader.text[copied : token.end] + f"({', '.join(operands)})")
            copied = reader.tokens[reader.position - 1].end
        elif token.text == "(":
            pieces.append(reader.text[copied : token.end] + _rewritten(reader, end))
            copied = reader.tokens[reader.position].start
            reader.expect(")")
    stop = end if reader.done else reader.tokens[reader.position].start
    return "".join(pieces) + reader.text[copied:stop]


def _called(reader: Reader) -> str | None:
    """The name of the function that is called here; None where none is."""
    token = reader.tokens[reader.position]
    behind = reader.tokens[reader.position + 1 : reader.position + 2]
    before = reader.tokens[reader.position - 1].text if reader.position else ""
    if not behind or behind[0].text != "(" or before == ".":
        return None
    name = _plain(token)
    return name if token.kind == "quoted" or name in _BETWEEN or name in _BEFORE or name in _AFTER or name == "in" else None


def _operands(reader: Reader) -> list[str]:
    """(a, b, ...) -> each, rewritten."""
    reader.expect("(")
    found: list[str] = []
    while not reader.at(")"):
        start = reader.position
        reader.slice(",")
        inner = Reader(reader.text[reader.tokens[start].start : reader.tokens[reader.position - 1].end])
        found.append(_rewritten(inner, len(inner.text)))
        reader.accept(",")
    reader.expect(")")
    return found


def _said(name: str, operands: list[str]) -> str | None:
    if name in _BETWEEN and len(operands) == 2:
        return f"({operands[0]} {name.upper()} {operands[1]})"
    if name in _BEFORE and len(operands) == 1:
        return f"({_BEFORE[name]} {operands[0]})"
    if name in _AFTER and len(operands) == 1:
        return f"({operands[0]} {_AFTER[name]})"
    if name == "in" and len(operands) > 1:
        return f"({operands[0]} IN ({', '.join(operands[1:])}))"
    return None


def _plain(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
