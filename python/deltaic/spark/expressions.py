"""Columns of PySpark as the SQL text that commands take: what delta-spark's API accepts in place of text.

Spark itself writes the text and reads it back. Where the two are not the same expression (Python functions, lambdas, columns of a
DataFrame), `column_text` makes a text that is, or the column is refused by name, never run as something else. Operators, which Spark
writes as functions, are put between their operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaic.engine.spark.native.column_text import Origins, text_of
from deltaic.engine.spark.native.session import is_classic_column
from deltaic.errors import InvalidArgumentError, InvalidTypeError
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
    if not is_classic_column(value):
        if is_of_connect(value):
            return connect_text(value, what)
        found = f"{type(value).__name__} {value!r}"[:80]
        raise InvalidTypeError(
            f"{what} is of the wrong type", found=found, expected="a Spark SQL Column or a string: an expression in SQL syntax"
        )
    return infix(text_of(value, what, origins or Origins()))


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
