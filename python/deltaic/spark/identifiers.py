"""Resolves IDENTIFIER(text) in place of a table name, and EXECUTE IMMEDIATE: the table of such a statement is
known only after its parameters are filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deltaic.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark.heads import CHANGES
from deltaic.spark.named_tables import parsed
from deltaic.spark.parameters import with_arguments
from deltaic.spark.patches import spark_sql
from deltaic.spark.scripts import parse_script
from deltaic.sql.tokens import Reader
from deltaic.sql_text import QUERY_STARTS, edited

IDENTIFIER = re.compile(r"\bIDENTIFIER\s*\(", re.IGNORECASE)
_BETWEEN_STATEMENTS = frozenset({";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
_EXECUTES = re.compile(r"\bEXECUTE\s+IMMEDIATE\b", re.IGNORECASE)
_BY_PATH = re.compile(r"\bdelta(ic)?\s*\.\s*`", re.IGNORECASE)


def is_script(text: str, names_table: Callable[[str], bool]) -> bool:
    """True for a script (BEGIN … END) over Delta tables; Spark itself runs any other script. `names_table`: a
    function that returns True for a statement about a Delta table."""
    if "begin" not in text.lower():
        return False
    try:
        reader = Reader(text, several=True)
    except InvalidArgumentError:
        return False
    if not reader.at("BEGIN") or reader.at("BEGIN", "TRANSACTION") or reader.at("BEGIN", "WORK"):
        return False
    # a change may stand behind WITH, FROM, and the conditions of a handler
    cuts = [each for each in reader.tokens if each.keyword in _BETWEEN_STATEMENTS | CHANGES]
    starts = [each.start if each.keyword in CHANGES else each.end for each in cuts]
    stops = [*(each.start for each in cuts[1:]), len(text)]
    pieces = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
    statements = (piece for piece in pieces if piece.strip())
    return _BY_PATH.search(text) is not None or any(map(names_table, statements)) or _names_later(text)


def _names_later(text: str) -> bool:
    """True for a script that may name a Delta table when it runs, by IDENTIFIER(variable) or EXECUTE
    IMMEDIATE. False if only Spark can run it."""
    if IDENTIFIER.search(text) is None and _EXECUTES.search(text) is None:
        return False
    try:
        parse_script(text)
    except DeltaError:
        return False
    return True


def executed(spark: Any, text: str) -> str | None:
    """Returns the text of the statement that EXECUTE IMMEDIATE … runs, if its result is the script's; None
    for other statements, and with INTO."""
    reader = Reader(text)
    if not reader.accept("EXECUTE", "IMMEDIATE"):
        return None
    statement = _constant(spark, reader.slice("INTO", "USING", expected="a statement as text"), None)
    return None if reader.at("INTO") else statement


def identified(spark: Any, text: str, args: Any) -> tuple[str, Any]:
    """Replaces each IDENTIFIER(…) of a constant by the name in it, also that of a column or a function.
    Returns the text and the args that are still to be filled in. An IDENTIFIER(…) that is no name stays in
    the text, and Spark reports the error."""
    if IDENTIFIER.search(text) is None:
        return text, args
    # without an IDENTIFIER, the markers behind it would get other values of a list
    if args is not None and not isinstance(args, Mapping):
        text, args = with_arguments(text, args), None
    reader = Reader(text)
    edits: list[tuple[int, int, str]] = []
    while not reader.done:
        start = reader.tokens[reader.position].start
        if not (reader.at("IDENTIFIER", "(") and reader.accept("IDENTIFIER")):
            reader.position += 1
            continue
        is_part = reader.position > 1 and reader.tokens[reader.position - 2].text == "."
        name = parsed(_constant(spark, reader.inside("a name"), args))
        if name is None or is_part or reader.at("."):  # Spark refuses a part of a name from elsewhere
            continue
        edits.append((start, reader.tokens[reader.position - 1].end, str(name)))
    return edited(text, edits), args


def _constant(spark: Any, text: str, args: Any) -> str | None:
    """Evaluates a constant expression. Returns None if the expression is not constant, or no string."""
    try:
        value = spark_sql(spark, f"SELECT {with_arguments(text, args)}").collect()[0][0]
    except Exception:  # Spark then gets the whole statement, and reports the error
        return None
    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class ExecuteImmediate:
    """The statement of an EXECUTE IMMEDIATE. `args`: values of its parameters, as `SparkSession.sql` takes
    them."""

    text: str
    args: Any


def immediate(
    spark: Any, text: str, args: Any, names_table: Callable[[str], bool]
) -> ExecuteImmediate | None:
    """Parses EXECUTE IMMEDIATE text [INTO variable, …] [USING value [AS name], …]. Returns None for other
    statements, and if the text is about no Delta table. `INTO v` with `SELECT …` becomes `SET VAR (v) =
    (SELECT …)`. `names_table`: as for `is_script`."""
    if re.match(r"\s*EXECUTE\s+IMMEDIATE\b", text, re.IGNORECASE) is None:
        return None
    reader = Reader(with_arguments(text, args))
    reader.expect("EXECUTE", "IMMEDIATE")
    statement = _constant(spark, reader.slice("INTO", "USING", expected="a statement as text"), None)
    if statement is None or not (
        _BY_PATH.search(statement) or IDENTIFIER.search(statement) or names_table(statement)
    ):
        return None
    if reader.accept("INTO"):
        variables = reader.slice("USING", expected="variables")
        if Reader(statement).tokens[0].keyword not in QUERY_STARTS | {"("}:
            raise UnsupportedFeatureError(
                "[INVALID_STATEMENT_FOR_EXECUTE_INTO] INTO takes a query",
                found=statement[:80],
                expected="SELECT",
            )
        statement = f"SET VAR ({variables}) = (\n{statement}\n)"
    return ExecuteImmediate(statement, _using(reader))


def _using(reader: Reader) -> Any:
    """Reads USING value [AS name], … and returns a list of the values, or a dict from name to value; None
    without USING."""
    from pyspark.sql import functions as F

    if not reader.accept("USING"):
        reader.end()
        return None
    bracketed = reader.at("(")
    inner = Reader(reader.inside("values")) if bracketed else reader
    values: list[tuple[str | None, Any]] = []
    while True:
        value = F.expr(inner.slice("AS", ",", expected="a value"))
        values.append((inner.name() if inner.accept("AS") else None, value))
        if not inner.accept(","):
            break
    inner.end()
    reader.end()
    named = {name: value for name, value in values if name is not None}
    if not named:
        return [value for _, value in values]
    if len(named) != len(values):
        # Spark then parses the statement and reports this error
        reader.fail("a name for each value, or for none")
    return named
