"""Finds, adds and removes tables and views of the session catalog by SQL statements of Spark, for sessions
without a JVM (Spark Connect).

An entry has the provider `delta`, a location, and the columns that the table had when the entry was created,
because Spark's CREATE TABLE needs columns. Only permanent views, which the server resolves, use these
columns.
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
from deltaic.spark.view_clauses import ViewClauses
from deltaic.sql_text import spark_text, tokens
from deltaic.table import DeltaTable

_PLAIN = re.compile(r"\w+", re.ASCII)
"""Matches the names that Spark's session catalog allows. As a pattern of LIKE, such a name matches only
itself, without regard to case."""
_COLUMN = re.compile(r"^ \|-- (.*): \w+(?:\([^)]*\))? \(nullable = (?:true|false)\)$", re.MULTILINE)


@dataclass(frozen=True)
class View:
    """A permanent view: the text of its query, the schema in which the query's names are resolved, the
    view's columns, and their names in the query."""

    text: str
    schema: str | None
    columns: tuple[str, ...]
    query_columns: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A table or view, from a row of SHOW TABLE EXTENDED. `kind`: MANAGED, EXTERNAL or VIEW. `location`: a
    URI. `serde`: the class by which Hive reads the files."""

    schema: str
    kind: str
    provider: str | None
    location: str | None
    view: View | None
    serde: str | None = None


def entry_of(spark: Any, parts: Sequence[str]) -> Entry | None:
    """Returns the table or permanent view with a name of one or two parts; None for an unknown name, and
    for a temporary view, which hides a table of a name of one part."""
    from pyspark.errors import AnalysisException

    if not all(_PLAIN.fullmatch(part) for part in parts):
        return None
    within = f" IN {col(parts[0])}" if len(parts) == 2 else ""
    try:
        rows = spark_sql(spark, f"SHOW TABLE EXTENDED{within} LIKE {spark_text(parts[-1])}").collect()
    except AnalysisException:  # no such schema: the caller reports what is missing
        return None
    matches = [row for row in rows if row.tableName.lower() == parts[-1].lower()]
    if len(parts) == 1 and any(row.isTemporary for row in matches):
        return None
    return next((_entry(row.namespace, row.information) for row in matches if not row.isTemporary), None)


def is_temporary_view(spark: Any, name: str) -> bool:
    """True if the session has a temporary view of this name."""
    views = (
        spark_sql(spark, f"SHOW VIEWS LIKE {spark_text(name)}").collect() if _PLAIN.fullmatch(name) else ()
    )
    return any(row.isTemporary and row.viewName.lower() == name.lower() for row in views)


def _entry(schema: str, text: str) -> Entry:
    # A comment may have lines that look like other properties. Type and Provider stand before it, so their
    # first line counts; Location stands after it, so its last line counts.
    head, _, columns = text.rpartition("\nSchema: root\n")
    kind = _line(head, "Type", first=True) or ""
    if kind == "VIEW":
        return Entry(schema, kind, None, None, _view(head, columns))
    provider, location = _line(head, "Provider", first=True), _line(head, "Location", first=False)
    return Entry(schema, kind, provider, location, None, _line(head, "Serde Library", first=False))


def _view(head: str, columns: str) -> View:
    text = head.partition("\nView Text: ")[2].partition("\nView Original Text: ")[0]
    within = _line(head, "View Catalog and Namespace", first=False)
    outputs = tokens(_line(head, "View Query Output Columns", first=False) or "")
    names = tuple(token.name for token in outputs if token.kind == "quoted")
    schema = None if within is None else within.rpartition(".")[2].strip("`")
    return View(text, schema, tuple(_COLUMN.findall(columns)), names)


def _line(text: str, name: str, *, first: bool) -> str | None:
    lines = re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)
    return (lines[0] if first else lines[-1]) if lines else None


def default_path(spark: Any, parts: tuple[str, str]) -> str:
    """Returns the URI at which Spark puts a managed table of this name."""
    rows = spark_sql(spark, f"DESCRIBE SCHEMA EXTENDED {col(parts[0])}").collect()
    location = next(row.info_value for row in rows if row.info_name == "Location")
    folded = (
        parts[1]
        if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
        else parts[1].lower()
    )
    return f"{location.rstrip('/')}/{folded}"


_NO_COLUMNS = "`__deltaic` BIGINT"
"""Columns of an entry for a table without columns: Spark's CREATE TABLE needs at least one."""


@contextmanager
def reserved(spark: Any, parts: tuple[str, str]) -> Iterator[None]:
    """Adds the entry of a managed table before the body creates the table, because Spark creates no managed
    table in a folder that has files. If the body fails, the entry and the files are dropped."""
    spark_sql(spark, f"CREATE TABLE {_quoted(parts)} ({_NO_COLUMNS}) USING delta")
    try:
        yield
    except BaseException:
        drop(spark, parts, purges=False)
        raise


def enter(spark: Any, parts: tuple[str, str], path: str) -> None:
    """Adds the entry of an existing table."""
    spark_sql(
        spark,
        f"CREATE TABLE {_quoted(parts)} ({_columns(spark, path) or _NO_COLUMNS}) USING delta LOCATION"
        f" {spark_text(path)}",
    )


def set_columns(spark: Any, parts: Sequence[str], path: str) -> None:
    """Updates the columns of an entry to those of its table."""
    spark_sql(spark, f"ALTER TABLE {_quoted(parts)} REPLACE COLUMNS ({_columns(spark, path) or _NO_COLUMNS})")


def enter_view(
    spark: Any,
    parts: Sequence[str],
    text: str,
    schema: Any,
    clauses: ViewClauses,
    *,
    replaces: bool,
) -> None:
    """Creates a permanent view over tables of the catalog. `schema`: the view's columns, a pyspark
    StructType."""
    statement = "CREATE OR REPLACE VIEW" if replaces else "CREATE VIEW"
    columns = ", ".join(f"{col(column.name)}{_comment(column.metadata.get('comment'))}" for column in schema)
    pairs = ", ".join(f"{spark_text(key)} = {spark_text(value)}" for key, value in clauses.properties.items())
    rest = _comment(clauses.comment) + (f" TBLPROPERTIES ({pairs})" if pairs else "")
    mode = "" if clauses.schema_mode is None else f" WITH SCHEMA {clauses.schema_mode}"
    spark_sql(spark, f"{statement} {_quoted(parts)} ({columns}){mode}{rest} AS {text}")


def change_view(spark: Any, parts: Sequence[str], text: str) -> None:
    """Gives a permanent view another query."""
    spark_sql(spark, f"ALTER VIEW {_quoted(parts)} AS {text}")


def _comment(text: str | None) -> str:
    return "" if text is None else f" COMMENT {spark_text(text)}"


def drop(spark: Any, parts: tuple[str, str], *, purges: bool) -> None:
    """Removes a table from the catalog. Spark deletes the files of a managed table."""
    spark_sql(spark, f"DROP TABLE {_quoted(parts)}{' PURGE' if purges else ''}")


def rename(spark: Any, parts: tuple[str, str], new: Sequence[str]) -> None:
    """Renames a table. The files of a managed table move to the folder of the new name."""
    spark_sql(spark, f"ALTER TABLE {_quoted(parts)} RENAME TO {_quoted(new)}")


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(map(col, parts))


def _columns(spark: Any, path: str) -> str:
    with opening(spark):
        schema = DeltaTable(path).schema
    return ", ".join(f"{col(field.name)} {format_type(field.type)}" for field in schema)
