"""Columns of PySpark as the SQL text that commands take: what delta-spark's API accepts in place of text.

Spark itself writes the text and reads it back. Where the two are not the same expression (Python functions, lambdas, columns of a
DataFrame), `column_text` makes a text that is, or the column is refused by name, never run as something else. Operators, which Spark
writes as functions, are put between their operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.spark.column_text import ColumnText, Origins
from deltaic.spark.portable.connect_columns import connect_text, is_of_connect
from deltaic.sql.tokens import Reader, Token

_BETWEEN = frozenset(["=", ">", ">=", "<", "<=", "<=>", "+", "-", "*", "/", "%", "&", "|", "^", "and", "or", "like", "rlike"])
_BEFORE = {"!": "NOT", "negative": "-", "~": "~"}
_AFTER = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL"}


def sql_text(value: Any, what: str, origins: Origins | None = None) -> str:
    """Text as it is, a Column as Spark writes it. `origins`: the DataFrames whose columns it may hold. InvalidTypeError for anything else,
    UnsupportedFeatureError for what has no text."""
    if isinstance(value, str):
        return value
    if not hasattr(value, "_jc"):
        if is_of_connect(value):
            return connect_text(value, what)
        found = f"{type(value).__name__} {value!r}"[:80]
        raise InvalidTypeError(
            f"{what} is of the wrong type", found=found, expected="a Spark SQL Column or a string: an expression in SQL syntax"
        )
    return infix(_of_column(value, what, origins or Origins()))


def condition_text(value: Any, what: str = "condition", origins: Origins | None = None) -> str | None:
    """`sql_text`, None for none."""
    return None if value is None else sql_text(value, what, origins)


def assignments(values: Any, what: str, origins: Origins | None = None) -> dict[str, str]:
    """A mapping of columns to expressions as text. InvalidArgumentError (a ValueError) for none, InvalidTypeError (a TypeError) for what is
    no dictionary of text to text or Columns."""
    if values is None:
        raise InvalidArgumentError(f"{what} cannot be None", expected="a dictionary of columns to expressions")
    if not isinstance(values, Mapping):
        raise InvalidTypeError(f"{what} must be a dict", found=type(values).__name__)
    for name in values:
        if not isinstance(name, str):
            raise InvalidTypeError(f"keys of {what} are names of columns", found=f"{type(name).__name__} {name!r}"[:80], expected="str")
    return {name: sql_text(value, f"{what}[{name!r}]", origins) for name, value in values.items()}


def _of_column(column: Any, what: str, origins: Origins) -> str:
    """Returns SQL text of a Column: the text that Spark shows, if Spark parses it to the same expression; else a text built from its
    tree."""
    from pyspark.sql import SparkSession

    session = origins.spark or SparkSession.getActiveSession()
    if session is None:
        raise InvalidArgumentError("no Spark session is active", where=what)
    expression, text = _expression(session, column._jc)
    if (said := _as_written(session, expression, text)) is not None:
        return said
    try:
        made = ColumnText(session, origins, what).of(expression)
    except DeltaError:
        raise
    except Exception as error:  # whatever Spark's parser says of it: there is no text
        raise _no_text(what, text) from error
    if made is None:
        raise _no_text(what, text)
    return made


def _as_written(session: Any, expression: Any, text: str) -> str | None:
    try:
        parsed = session._jsparkSession.sessionState().sqlParser().parseExpression(text)
        return text if parsed.equals(expression) or _are_same_structs(session, parsed, expression) else None
    except Exception:  # Spark's parser does not take the text
        return None


_DEEP = re.compile(r"(?:\b(?:or|and)\(){32}")


def _expression(session: Any, column: Any) -> tuple[Any, str]:
    """Spark's expression of a column, and its text; of long chains of ORs and ANDs as a tree of few levels."""
    made: Any = None
    failed: Exception | None = None
    try:
        made = session._jsparkSession.expression(column)
        text = str(made.sql())
        if _DEEP.search(text) is None:
            return made, text
    except Exception as error:  # Spark's recursions end at some hundred levels
        failed = error
    flat = _balanced(session, column)
    if flat is None and failed is not None:
        raise failed
    made = made if flat is None else session._jsparkSession.expression(flat)
    return made, str(made.sql())


def _balanced(session: Any, column: Any) -> Any | None:
    """`a | b | c | …` as Python makes it is a tree as deep as it is long: `((a | b) | c) | …`. The same chain as `(a | b) | (c | d)`, whose
    depth is the logarithm of its length; None where the column is no chain of ORs or ANDs."""
    try:
        node = column.node()
        return None if _junction(node) is None else _rebalanced(session._jvm.org.apache.spark.sql.Column, node)
    except Exception:  # Spark's internal classes have another form: the error that is known already says what is wrong
        return None


def _junction(node: Any) -> str | None:
    name = node.functionName() if node.getClass().getSimpleName() == "UnresolvedFunction" else None
    return name if name in ("or", "and") else None


def _rebalanced(as_column: Any, node: Any) -> Any:
    if (kind := _junction(node)) is None:
        return as_column(node)
    operands, pending = [], [node]
    while pending:
        each = pending.pop()
        if (found := _junction(each)) == kind:
            pair = each.arguments()
            pending += [pair.apply(1), pair.apply(0)]
        else:
            operands.append(as_column(each) if found is None else _rebalanced(as_column, each))
    while len(operands) > 1:
        pairs = [getattr(left, kind)(right) for left, right in zip(operands[::2], operands[1::2], strict=False)]
        operands = [*pairs, *operands[2 * len(pairs) :]]
    return operands[0]


def _are_same_structs(session: Any, parsed: Any, expression: Any) -> bool:
    """True if two expressions differ only in how struct(...) is made, which to the parser is no call of a function, and in the ids of the
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
        f"{what}: a column that has no SQL text",
        found=text[:200],
        expected="col('x') or col('alias.x') with Spark's own functions, or a string: an expression in SQL syntax",
    )


def infix(text: str) -> str:
    """The expression with operators between their operands: `=`(a, 1) -> (a = 1)."""
    if "`" not in text and "(" not in text:
        return text
    reader = Reader(text)
    return text[: reader.tokens[0].start] + _rewritten(reader) + text[reader.tokens[-1].end :]


def _rewritten(reader: Reader) -> str:
    """The text of the tokens up to one that closes a bracket, or to the last, operators put where they belong."""
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
            pieces.append(reader.text[copied : token.end] + _rewritten(reader))
            copied = reader.tokens[reader.position].start
            reader.expect(")")
    stop = reader.tokens[-1].end if reader.done else reader.tokens[reader.position].start
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
        found.append(_rewritten(reader.part(start, reader.position)))
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
