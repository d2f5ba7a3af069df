"""The session catalog by Spark's own SQL, where there is no JVM to talk to: what a name stands for, and names for tables and views.

An entry has the provider `delta`, a location and, as Spark's CREATE TABLE wants some, the columns of the table when the name was given to
it. Only the server's own views read these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deltaic.engine.spark.stores import opening
from deltaic.plan.literal import col
from deltaic.protocol.ddl import format_type
from deltaic.spark.patches import spark_sql
from deltaic.table import DeltaTable

_PLAIN = re.compile(r"\w+", re.ASCII)
"""Characters of names in Spark's session catalog. Such a name as a pattern of LIKE matches only itself, without regard to case."""
_COLUMN = re.compile(r"^ \|-- (.*): \w+(?:\([^)]*\))? \(nullable = (?:true|false)\)$", re.MULTILINE)
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


@dataclass(frozen=True)
class View:
    """A lasting view: its query, the schema of the names in it, its columns, and their names in the query."""

    text: str
    schema: str | None
    columns: tuple[str, ...]
    query_columns: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A row of SHOW TABLE EXTENDED. `kind`: MANAGED, EXTERNAL or VIEW. `location`: a URI."""

    schema: str
    kind: str
    provider: str | None
    location: str | None
    view: View | None


def entry_of(spark: Any, parts: Sequence[str]) -> Entry | None:
    """The table or lasting view of the session catalog that goes by a name of one or two parts; None for a temporary view, which comes
    before a name of one part, and for what is not there."""
    from pyspark.errors import AnalysisException

    if not all(_PLAIN.fullmatch(part) for part in parts):
        return None
    within = f" IN {col(parts[0])}" if len(parts) == 2 else ""
    try:
        rows = spark_sql(spark, f"SHOW TABLE EXTENDED{within} LIKE {_text(parts[-1])}").collect()
    except AnalysisException:  # no such schema: whoever asked says what is missing
        return None
    found = [row for row in rows if row.tableName.lower() == parts[-1].lower()]
    if len(parts) == 1 and any(row.isTemporary for row in found):
        return None
    return next((_entry(row.namespace, row.information) for row in found if not row.isTemporary), None)


def _entry(schema: str, text: str) -> Entry:
    # A comment may have lines that look like others: the kind and the provider stand before it, all else after it.
    head, _, columns = text.rpartition("\nSchema: root\n")
    kind = _line(head, "Type", first=True) or ""
    if kind == "VIEW":
        return Entry(schema, kind, None, None, _view(head, columns))
    return Entry(schema, kind, _line(head, "Provider", first=True), _line(head, "Location", first=False), None)


def _view(head: str, columns: str) -> View:
    text = head.partition("\nView Text: ")[2].partition("\nView Original Text: ")[0]
    within = _line(head, "View Catalog and Namespace", first=False)
    outputs = _QUOTED.findall(_line(head, "View Query Output Columns", first=False) or "")
    names = tuple(name.replace("``", "`") for name in outputs)
    schema = None if within is None else within.rpartition(".")[2].strip("`")
    return View(text, schema, tuple(_COLUMN.findall(columns)), names)


def _line(text: str, name: str, *, first: bool) -> str | None:
    found = re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)
    return (found[0] if first else found[-1]) if found else None


def default_path(spark: Any, parts: tuple[str, str]) -> str:
    """The URI of a managed table of this name."""
    rows = spark_sql(spark, f"DESCRIBE SCHEMA EXTENDED {col(parts[0])}").collect()
    location = next(row.info_value for row in rows if row.info_name == "Location")
    folded = parts[1] if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true" else parts[1].lower()
    return f"{location.rstrip('/')}/{folded}"


_NO_COLUMNS = "`__deltaic` BIGINT"
"""Columns of an entry whose table has none yet: Spark's statements need one."""


@contextmanager
def reserved(spark: Any, parts: tuple[str, str]) -> Iterator[None]:
    """A name for a table that is made below the warehouse meanwhile: Spark takes no managed table whose folder has files already. The name
    goes again, with what stands there, where the table is not made."""
    spark_sql(spark, f"CREATE TABLE {_quoted(parts)} ({_NO_COLUMNS}) USING delta")
    try:
        yield
    except BaseException:
        drop(spark, parts, purges=False)
        raise


def enter(spark: Any, parts: tuple[str, str], path: str) -> None:
    """A name for a table that is there."""
    spark_sql(spark, f"CREATE TABLE {_quoted(parts)} ({_columns(spark, path) or _NO_COLUMNS}) USING delta LOCATION {_text(path)}")


def set_columns(spark: Any, parts: Sequence[str], path: str) -> None:
    """The columns of the table in its entry."""
    spark_sql(spark, f"ALTER TABLE {_quoted(parts)} REPLACE COLUMNS ({_columns(spark, path) or _NO_COLUMNS})")


def enter_view(spark: Any, parts: Sequence[str], text: str, columns: Sequence[str], comment: str | None, *, replaces: bool) -> None:
    """A lasting view over tables that have names."""
    made = "CREATE OR REPLACE VIEW" if replaces else "CREATE VIEW"
    said = "" if comment is None else f" COMMENT {_text(comment)}"
    spark_sql(spark, f"{made} {_quoted(parts)} ({', '.join(map(col, columns))}){said} AS {text}")


def drop(spark: Any, parts: tuple[str, str], *, purges: bool) -> None:
    """Takes a name away, and the files of a managed table."""
    spark_sql(spark, f"DROP TABLE {_quoted(parts)}{' PURGE' if purges else ''}")


def rename(spark: Any, parts: tuple[str, str], new: Sequence[str]) -> None:
    """Gives a table another name; the files of a managed one move with it."""
    spark_sql(spark, f"ALTER TABLE {_quoted(parts)} RENAME TO {_quoted(new)}")


def _text(value: str) -> str:
    """A string literal, where Spark's grammar takes no other expression."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(map(col, parts))


def _columns(spark: Any, path: str) -> str:
    with opening(spark):
        schema = DeltaTable(path).schema
    return ", ".join(f"{col(field.name)} {format_type(field.type)}" for field in schema)
