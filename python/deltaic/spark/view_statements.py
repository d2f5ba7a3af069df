"""Parses CREATE TEMPORARY VIEW and CACHE TABLE over Delta tables, and queries that select columns of one
table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.plan.literal import lit
from deltaic.spark.references import references
from deltaic.spark.view_clauses import ViewClauses
from deltaic.sql.create import read_properties
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name


@dataclass(frozen=True)
class ViewStatement:
    """The parts of CREATE [OR REPLACE] [GLOBAL] TEMP[ORARY] VIEW `name` [clauses] AS `query`, or of CACHE
    [LAZY] TABLE `name` [OPTIONS (...)] [AS] `query`. `caching`: the statement that caches the view, None for
    CREATE VIEW."""

    name: str
    query: str
    replaces: bool = False
    is_global: bool = False
    clauses: ViewClauses = field(default_factory=ViewClauses)
    caching: str | None = None

    def make(self, frame: Any) -> None:
        """Creates the temporary view. `frame`: the DataFrame of the query."""
        replacing = "OrReplace" if self.replaces or self.caching else ""
        maker = f"create{replacing}{'Global' if self.is_global else ''}TempView"
        getattr(self.clauses.of(frame), maker)(self.name)


def view_statement(text: str) -> ViewStatement | None:
    """Parses CREATE TEMPORARY VIEW or CACHE TABLE. Returns None for another statement, or if the statement
    has clauses that only Spark runs."""
    reader = Reader(text)
    if reader.accept("CACHE"):
        lazy = "LAZY " if reader.accept("LAZY") else ""
        if not reader.accept("TABLE"):
            return None
        name = reader.name()
        level = storage_level(reader)
        if not reader.accept("AS") and (reader.done or reader.at(".")):
            return None
        options = "" if level is None else f" OPTIONS ('storageLevel' {lit(level)})"
        caching = f"CACHE {lazy}TABLE {spark_name(name)}{options}"
        return ViewStatement(name, reader.rest("a query"), caching=caching)
    if not reader.accept("CREATE"):
        return None
    replaces, is_global = reader.accept("OR", "REPLACE"), reader.accept("GLOBAL")
    if not (reader.accept("TEMPORARY", "VIEW") or reader.accept("TEMP", "VIEW")):
        return None
    name = reader.name()
    clauses = ViewClauses.read(reader)
    clauses.refuse_collation()
    return (
        ViewStatement(name, reader.rest("a query"), replaces, is_global, clauses)
        if clauses.schema_mode is None and reader.accept("AS")
        else None
    )


def storage_level(reader: Reader) -> str | None:
    """Reads OPTIONS ('storageLevel' [=] level) of CACHE TABLE. Returns the level, such as DISK_ONLY; None
    without OPTIONS. Raises InvalidArgumentError for another option."""
    if not reader.accept("OPTIONS"):
        return None
    options = {name.lower(): value for name, value in read_properties(reader).items()}
    level = options.pop("storagelevel", None)
    if level is None or options:
        raise InvalidArgumentError(
            "unknown option of CACHE TABLE", found=sorted(options), expected="storageLevel"
        )
    return level


@dataclass(frozen=True)
class Projection:
    """A query of the form SELECT column, … FROM table, without aliases of columns. `columns`: None for
    `*`."""

    path: str
    columns: tuple[str, ...] | None


def projection(spark: Any, query: str) -> Projection | None:
    """Returns the table and columns of a query that selects columns of all rows at the newest version; None
    for any other query, also of the table's changes."""
    reader = Reader(query)
    if not reader.accept("SELECT"):
        return None
    try:
        columns = None if reader.accept("*") else tuple(reader.listed(reader.name))
    except InvalidArgumentError:
        return None
    if not reader.accept("FROM") or reader.done:
        return None
    tables = references(Reader(query), spark)
    if len(tables) != 1 or not tables[0].is_newest:
        return None
    (table,) = tables
    is_all = (table.start, table.end) == (reader.tokens[reader.position].start, reader.tokens[-1].end)
    return Projection(table.path, columns) if is_all else None
