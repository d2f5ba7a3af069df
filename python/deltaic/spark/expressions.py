"""Converts PySpark Columns to SQL text, because commands take text and delta-spark's API takes both.

Spark writes a Column as text. If Spark does not parse the text to the same expression (Python functions,
lambdas, columns of a DataFrame), `column_text` builds another text or raises UnsupportedFeatureError. Spark
writes operators as function calls; `infix` puts them between their operands, so that `=(a, 1)` becomes `(a =
1)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaic.engine.spark.native.column_text import Origins, text_of
from deltaic.engine.spark.native.session import is_classic_column
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.spark.portable.connect_columns import connect_text, is_of_connect
from deltaic.sql.tokens import Reader, requalified

# Operators that Spark writes as functions: those between two operands, before one, and behind one.
_BETWEEN = frozenset(
    ["=", ">", ">=", "<", "<=", "<=>", "+", "-", "*", "/", "%", "&", "|", "^", "and", "or", "like", "rlike"]
)
_BEFORE = {"!": "NOT", "negative": "-", "~": "~"}
_AFTER = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL"}


_VALUES = "Values of dict in {} must contain only Spark SQL Columns or strings (expressions in SQL syntax)"


def sql_text(value: Any, what: str, origins: Origins | None = None, mistake: str | None = None) -> str:
    """Returns the SQL text of a Column; a string is SQL text already. `what`: name of the argument in errors.
    `origins`: the DataFrames whose columns the Column may use, and the qualifiers that are replaced.
    `mistake`: the error for another type, by default one of `what`; its words are delta-spark's. Raises
    InvalidTypeError for another type, and UnsupportedFeatureError for a Column without SQL text."""
    origins = origins or Origins()
    if isinstance(value, str):
        return requalified(value, origins.names)
    if not is_classic_column(value):
        if is_of_connect(value):
            return requalified(connect_text(value, what), origins.names)
        description = f"{type(value).__name__} {value!r}"[:80]
        raise InvalidTypeError(
            mistake or f"{what} must be a Spark SQL Column or a string (expression in SQL syntax)",
            where=None if mistake is None else what,
            found=description,
        )
    return requalified(infix(text_of(value, what, origins)), origins.names)


def condition_text(value: Any, what: str = "condition", origins: Origins | None = None) -> str | None:
    """Like `sql_text`, but returns None for None."""
    return None if value is None else sql_text(value, what, origins)


def assignments(values: Any, what: str, origins: Origins | None = None) -> dict[str, str]:
    """Returns a dict from column to expression with each expression as SQL text. Raises InvalidArgumentError
    (a ValueError) for None, and InvalidTypeError (a TypeError) if `values` is not a dict from string to
    string or Column."""
    if values is None:
        raise InvalidArgumentError(
            f"{what} cannot be None", expected="a dictionary of columns to expressions"
        )
    if not isinstance(values, Mapping):
        raise InvalidTypeError(f"{what} must be a dict", found=type(values).__name__)
    for name in values:
        if not isinstance(name, str):
            raise InvalidTypeError(
                f"Keys of dict in {what} must contain only strings with column names",
                found=f"{type(name).__name__} {name!r}"[:80],
            )
    names = {} if origins is None else origins.names
    return {
        requalified(name, names): sql_text(value, f"{what}[{name!r}]", origins, _VALUES.format(what))
        for name, value in values.items()
    }


def infix(text: str) -> str:
    """Replaces operators that are written as functions by infix operators: "`=`(a, 1)" becomes "(a = 1)"."""
    if "`" not in text and "(" not in text:
        return text
    reader = Reader(text)
    return text[: reader.tokens[0].start] + _rewritten(reader) + text[reader.tokens[-1].end :]


def _rewritten(reader: Reader) -> str:
    """Returns the text from the cursor to the closing bracket of this level, or to the end, with infix
    operators."""
    pieces: list[str] = []
    copied = reader.tokens[reader.position].start
    while not reader.done and not reader.at(")"):
        token = reader.tokens[reader.position]
        name = _function_name(reader)
        reader.position += 1
        if name is not None:
            operands = _operands(reader)
            if (replacement := _infix_call(name, operands)) is not None:
                pieces.append(reader.text[copied : token.start] + replacement)
            else:
                pieces.append(reader.text[copied : token.end] + f"({', '.join(operands)})")
            copied = reader.tokens[reader.position - 1].end
        elif token.text == "(":
            pieces.append(reader.text[copied : token.end] + _rewritten(reader))
            copied = reader.tokens[reader.position].start
            reader.expect(")")
    stop = reader.tokens[-1].end if reader.done else reader.tokens[reader.position].start
    return "".join(pieces) + reader.text[copied:stop]


def _function_name(reader: Reader) -> str | None:
    """Returns the name of the function that is called at the cursor, if the name is quoted or is an operator;
    else None."""
    token = reader.tokens[reader.position]
    behind = reader.tokens[reader.position + 1 : reader.position + 2]
    before = reader.tokens[reader.position - 1].text if reader.position else ""
    if not behind or behind[0].text != "(" or before == ".":
        return None
    name = token.name
    return (
        name
        if token.kind == "quoted" or name in _BETWEEN or name in _BEFORE or name in _AFTER or name == "in"
        else None
    )


def _operands(reader: Reader) -> list[str]:
    """Reads `(a, b, …)` and returns the operands with infix operators."""
    reader.expect("(")
    operands: list[str] = []
    while not reader.at(")"):
        start = reader.position
        reader.slice(",")
        operands.append(_rewritten(reader.part(start, reader.position)))
        reader.accept(",")
    reader.expect(")")
    return operands


def _infix_call(name: str, operands: list[str]) -> str | None:
    if name in _BETWEEN and len(operands) == 2:
        return f"({operands[0]} {name.upper()} {operands[1]})"
    if name in _BEFORE and len(operands) == 1:
        return f"({_BEFORE[name]} {operands[0]})"
    if name in _AFTER and len(operands) == 1:
        return f"({operands[0]} {_AFTER[name]})"
    if name == "in" and len(operands) > 1:
        return f"({operands[0]} IN ({', '.join(operands[1:])}))"
    return None
