"""IDENTIFIER(text) where a statement names a table, and EXECUTE IMMEDIATE: statements whose text is known when values are filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deltaic.errors import UnsupportedFeatureError
from deltaic.spark.parameters import with_arguments
from deltaic.spark.patches import spark_sql
from deltaic.spark.views import path_or_named
from deltaic.sql.subqueries import QUERY_STARTS
from deltaic.sql.tokens import Reader

IDENTIFIER = re.compile(r"\bIDENTIFIER\s*\(", re.IGNORECASE)
_SCRIPT = re.compile(r"\s*BEGIN\b(?!\s+(TRANSACTION|WORK)\b)", re.IGNORECASE)
_BETWEEN_STATEMENTS = re.compile(r";|\b(?:BEGIN|THEN|ELSE|DO|LOOP|REPEAT)\b", re.IGNORECASE)
_BY_PATH = re.compile(r"\bdelta(ic)?\s*\.\s*`", re.IGNORECASE)


def is_script(text: str, names_table: Callable[[str], bool]) -> bool:
    """True for BEGIN … END over Delta tables; Spark itself runs any other script. `names_table`: True for a statement that names one in
    another way than by its path."""
    if _SCRIPT.match(text) is None:
        return False
    statements = (piece for piece in _BETWEEN_STATEMENTS.split(text) if piece.strip())
    return _BY_PATH.search(text) is not None or any(map(names_table, statements))


def identified(spark: Any, text: str, args: Any) -> tuple[str, Any]:
    """The text with delta.`path` in the place of each IDENTIFIER(…) that stands for it, and the args that are left to fill in. Other
    identifiers, and those that depend on columns, are Spark's."""
    if IDENTIFIER.search(text) is None:
        return text, args
    if args is not None and not isinstance(args, Mapping):  # by position: a part of the text must not shift the others
        text, args = with_arguments(text, args), None
    reader = Reader(text)
    pieces: list[str] = []
    copied = 0
    while not reader.done:
        start = reader.tokens[reader.position].start
        if not (reader.at("IDENTIFIER", "(") and reader.accept("IDENTIFIER")):
            reader.position += 1
            continue
        name = _constant(spark, reader.inside("a name"), args)
        if name is None or path_or_named(spark, name) is None:
            continue
        pieces += [text[copied:start], name]
        copied = reader.tokens[reader.position - 1].end
    return "".join(pieces) + text[copied:], args


def _constant(spark: Any, text: str, args: Any) -> str | None:
    """The text that a constant expression is; None for another one."""
    try:
        value = spark_sql(spark, f"SELECT {with_arguments(text, args)}").collect()[0][0]
    except Exception:  # the statement is for Spark then, which says what is wrong
        return None
    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class ExecuteImmediate:
    """EXECUTE IMMEDIATE: the statement's `text`, and what its markers stand for, as `SparkSession.sql` takes it."""

    text: str
    args: Any


def immediate(spark: Any, text: str, args: Any, names_table: Callable[[str], bool]) -> ExecuteImmediate | None:
    """EXECUTE IMMEDIATE text [INTO variable, …] [USING value [AS name], …]; None for other statements, and for one that names no Delta
    table. `names_table`: True for a statement that names one in another way than by its path. INTO makes it SET VAR."""
    if re.match(r"\s*EXECUTE\s+IMMEDIATE\b", text, re.IGNORECASE) is None:
        return None
    reader = Reader(with_arguments(text, args))
    reader.expect("EXECUTE", "IMMEDIATE")
    statement = _constant(spark, reader.slice("INTO", "USING", expected="a statement as text"), None)
    if statement is None or not (_BY_PATH.search(statement) or IDENTIFIER.search(statement) or names_table(statement)):
        return None
    if reader.accept("INTO"):
        variables = reader.slice("USING", expected="variables")
        if Reader(statement).tokens[0].keyword not in QUERY_STARTS | {"("}:
            raise UnsupportedFeatureError(
                "[INVALID_STATEMENT_FOR_EXECUTE_INTO] INTO takes a query", found=statement[:80], expected="SELECT"
            )
        statement = f"SET VAR ({variables}) = (\n{statement}\n)"
    return ExecuteImmediate(statement, _using(reader))


def _using(reader: Reader) -> Any:
    from pyspark.sql import functions as F

    if not reader.accept("USING"):
        reader.end()
        return None
    bracketed = reader.at("(")
    inner = Reader(reader.inside("values")) if bracketed else reader
    found: list[tuple[str | None, Any]] = []
    while True:
        value = F.expr(inner.slice("AS", ",", expected="a value"))
        found.append((inner.name() if inner.accept("AS") else None, value))
        if not inner.accept(","):
            break
    inner.end()
    reader.end()
    named = {name: value for name, value in found if name is not None}
    if not named:
        return [value for _, value in found]
    if len(named) != len(found):
        reader.fail("a name for each value, or for none")  # Spark reads the statement then, and says so
    return named
