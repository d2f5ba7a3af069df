"""Resolves names of tables in a statement: delta.`path`, or a name in `deltaic.sql(tables=)`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deltaic.deferred import load
from deltaic.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from deltaic.options import CommitOptions
from deltaic.plan.literal import col, lit
from deltaic.sql.pinned_paths import travelled
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name
from deltaic.table import DeltaTable, clone_files, run_write

if TYPE_CHECKING:
    from deltaic.commands.replacement import Replacement
    from deltaic.commands.write_job import Mode, SchemaMode, Write
    from deltaic.engine.engine import Engine
    from deltaic.protocol.evolution import Widening
    from deltaic.protocol.schema import Field, Schema

Existing: TypeAlias = Literal["error", "ignore", "replace", "use"]
"""What a statement or call does with an existing table of the name that it gives: fails, leaves it as it is,
or replaces or changes it ("use"), which must not move it to another LOCATION. "replace" also replaces a table
of another format."""

_NOT_AN_ALIAS = frozenset({"WHERE", "SET", "USING", "ON", "WHEN", "VERSION", "TIMESTAMP", "FOR"})
"""Words that can follow the name of a table and are no alias."""


@dataclass(frozen=True)
class Name:
    """A table in a statement: the parts of its name, the version or timestamp (an SQL expression, such as
    `'2026-01-31'`) at which it is read, and its alias."""

    parts: tuple[str, ...]
    version: int | None = None
    timestamp: str | None = None
    alias: str | None = None

    @property
    def path(self) -> str | None:
        """The path of delta.`path`; None for any other name."""
        return (
            self.parts[1] if len(self.parts) == 2 and self.parts[0].lower() in ("delta", "deltaic") else None
        )

    def __str__(self) -> str:
        return ".".join(map(spark_name, self.parts))


def read_name(reader: Reader, *, alias: bool = False, travel: bool = False, path: bool = False) -> Name:
    """name [VERSION | TIMESTAMP AS OF ...] [[AS] alias]. `travel`, `alias`: True to allow the second and the
    third part. `path`: True to allow a path in quotes instead of the name, as in VACUUM '/data/t'."""
    if path and not reader.done and reader.tokens[reader.position].kind == "string":
        return Name(("delta", reader.string()))
    name = Name(reader.dotted())
    if travel:
        name = _travelled(reader, name)
    if alias and (reader.accept("AS") or _alias_follows(reader)):
        name = replace(name, alias=reader.name())
    return name


def _travelled(reader: Reader, name: Name) -> Name:
    for prefix in ((), ("FOR",)):
        for word in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            if reader.accept(*prefix, word, "AS", "OF"):
                return read_moment(reader, name, word in ("VERSION", "SYSTEM_VERSION"))
    return name


def read_moment(reader: Reader, name: Name, is_version: bool) -> Name:
    """Parses the value after VERSION AS OF or TIMESTAMP AS OF. A version may be in quotes, as in Spark."""
    if not is_version:
        kind = next((word for word in ("TIMESTAMP", "DATE") if reader.accept(word)), "")
        return replace(name, timestamp=kind + lit(reader.string()))
    if not reader.done and reader.tokens[reader.position].kind == "string":
        text = reader.string()
        if not text.isdecimal():
            raise InvalidArgumentError(
                "not a version of a table", found=repr(text), expected="a whole number"
            )
        return replace(name, version=int(text))
    return replace(name, version=reader.integer())


def _alias_follows(reader: Reader) -> bool:
    if reader.done:
        return False
    token = reader.tokens[reader.position]
    return token.kind == "quoted" or (token.kind == "word" and token.keyword not in _NOT_AN_ALIAS)


@dataclass(frozen=True)
class CatalogEntry:
    """A table's entry in a catalog. `managed`: True if dropping the entry also deletes the table's files."""

    catalog: str
    schema: str
    name: str
    managed: bool

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.name}"


class Tables:
    """The tables that a statement can use, and the operations on their rows. This class uses the embedded
    engine; a subclass uses a Spark session.

    A path is opened at its first mention, at the newest version or the one in the statement. Further mentions
    in the statement refer to the same opened table."""

    _spark: Any = None
    """The Spark session, if the statement is one of Spark's."""
    definitions = ""
    """Text of WITH before a statement that changes a table."""
    defined: Collection[str] = ()
    """The names that it defines, in lower case."""

    def __init__(self, tables: Mapping[str, Any] | None, storage_options: Mapping[str, str] | None) -> None:
        self.storage_options = storage_options
        self._named: dict[str, tuple[str, Any]] = {}
        self._opened: dict[tuple[str, int | None, str | None], DeltaTable] = {}
        known: dict[int, Any] = {}
        for key, value in (tables or {}).items():
            if key.lower() in self._named:
                names = [self._named[key.lower()][0], key]
                raise InvalidArgumentError(
                    "two tables whose names differ by case only", where="tables=", found=names
                )
            load("deltaic.engine.source")
            from deltaic.engine.source import buffered

            self._named[key.lower()] = (key, known.setdefault(id(value), buffered(value)))

    def data(self, name: Name) -> Any:
        """Returns the DeltaTable or other data with this name."""
        if (path := name.path) is not None:
            key = path, name.version, name.timestamp
            if key not in self._opened:
                self._opened[key] = self.opened(path, name.version, self._timestamp_of(name))
            return self._opened[key]
        value = self._lookup(name)
        if name.version is None and name.timestamp is None:
            return value
        if not isinstance(value, DeltaTable):
            raise InvalidArgumentError(
                "only a Delta table has versions", where=str(name), found=type(value).__name__
            )
        return value.at(name.version, timestamp=self._timestamp_of(name))

    def moment(self, text: str) -> datetime:
        """Evaluates the SQL expression of a timestamp, in the time zone of the session or process."""
        from deltaic.engine.duckdb.times import timestamp_of

        return timestamp_of(text)

    def end_of_range(self, text: str) -> int | datetime:
        """Evaluates the SQL expression where a range of changes begins or ends: a version or a timestamp."""
        from deltaic.engine.duckdb.times import end_of_range

        return end_of_range(text)

    def _timestamp_of(self, name: Name) -> datetime | None:
        return None if name.timestamp is None else self.moment(name.timestamp)

    def read(self, name: Name) -> Any:
        """Like `data`, for a query, in which the path may name a version: delta.`/t@v3`."""
        if name.path is not None and "@" in name.path and name.version is None and name.timestamp is None:
            path, version, time = travelled(name.path, self.storage_options)
            timestamp = None if time is None else lit(time)
            name = replace(name, parts=(name.parts[0], path), version=version, timestamp=timestamp)
        return self.data(name)

    def table(self, name: Name) -> DeltaTable:
        """Returns the Delta table with this name, for a command. Other data is an InvalidArgumentError."""
        value = self.data(name)
        if not isinstance(value, DeltaTable):
            raise InvalidArgumentError(
                "this statement needs a Delta table", where=str(name), found=type(value).__name__
            )
        return value

    def cloned(
        self, source: Name, path: str, shallow: bool, replace: bool, properties: Mapping[str, str] | None
    ) -> dict[str, int]:
        """Clones a Delta table, parquet.`path` or iceberg.`path` into the table at `path`. Returns the
        metrics."""
        commit = self.commit_options()
        if not _is_of_files(source):
            entry = self.entry(source)
            source_name = None if entry is None else str(entry)
            return self.table(source)._clone(
                path, shallow, replace, properties, commit, self.storage_options, source_name
            )[1]
        if source.version is not None or source.timestamp is not None:
            raise InvalidArgumentError(
                "only a Delta table has versions", where=str(source), expected="no VERSION and no TIMESTAMP"
            )
        return clone_files(
            "parquet" if source.parts[0].lower() == "parquet" else "iceberg",
            source.parts[1],
            path,
            shallow=shallow,
            replace=replace,
            properties=properties,
            commit=commit,
            storage_options=self.storage_options,
            spark=self._spark,
        )

    def other_definition(self, name: Name) -> tuple[Schema, list[str]] | None:
        """Returns the columns and partition columns of a table of another format or a view, the source of
        CREATE TABLE ... LIKE; None for a Delta table and an unknown name."""
        return None

    def has_other(self, name: Name) -> bool:
        """Returns True if the name is that of a table of another format, which REPLACE TABLE can replace."""
        return False

    def check_source(self, source: Name) -> None:
        """Raises an error if the name or the version of the source of CLONE or LIKE is unknown."""
        if _is_of_files(source):
            return
        try:
            if self.other_definition(source) is None:
                self.table(source)
        except TableNotFoundError:
            if source.path is None:
                raise

    def place(self, name: Name, location: str | None, existing: Existing = "use") -> tuple[str, bool]:
        """Returns the location of a table to create, and True if its name is new in the catalog. `location`:
        LOCATION of the statement, or None. `existing`: what happens if a table has the name."""
        if location is not None and name.path is not None:
            if not same_folder(location, name.path):
                raise UnsupportedFeatureError(
                    "[DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE] the name and LOCATION are two paths",
                    where=name.path,
                    found=location,
                    expected="one path",
                )
        elif location is not None:
            raise UnsupportedFeatureError(
                "LOCATION needs a catalog of table names",
                found=location,
                expected="delta.`path` as the table's name",
            )
        if (path := name.path) is not None:
            return path, False
        value = self._lookup(name)
        if not isinstance(value, DeltaTable):
            raise InvalidArgumentError(
                "this statement needs a Delta table", where=str(name), found=type(value).__name__
            )
        return value.location, False

    def entry(self, name: Name) -> CatalogEntry | None:
        """Returns the entry of a table in the catalog; None if it has none."""
        return None

    def qualifiers(self, name: Name) -> tuple[tuple[str, ...], ...]:
        """Returns the qualifiers that columns of a table can have, the longest first: `catalog.schema.table`
        and its ends. If there is an alias, it is the only one, as in Spark."""
        if name.alias:
            return ((name.alias,),)
        entry = self.entry(name)
        whole = name.parts if entry is None else (entry.catalog, entry.schema, entry.name)
        return tuple(whole[start:] for start in range(len(whole)))

    def created_as(self, name: Name, table: DeltaTable) -> tuple[str, str | None]:
        """Returns the name for SHOW CREATE TABLE of a table, and its LOCATION, or None if the name contains
        it."""
        return f"delta.{col(table.location)}", None

    def opened(self, path: str, version: int | None = None, timestamp: datetime | None = None) -> DeltaTable:
        """Opens the table at a path."""
        return DeltaTable(path, version=version, timestamp=timestamp, storage_options=self.storage_options)

    def rows(self, name: Name) -> Any:
        """Returns the rows of the table with this name, as data for commands."""
        if len(name.parts) == 1 and name.parts[0].lower() in self.defined:
            return self.query(f"SELECT * FROM {name}")
        return self._rows(name)

    def _rows(self, name: Name) -> Any:
        value = self.read(name)
        return value.scan() if isinstance(value, DeltaTable) else value

    def query(self, text: str) -> Any:
        """Returns the rows of a query, as data for commands."""
        return self._queried(f"{self.definitions} SELECT * FROM ({text})" if self.definitions else text)

    def _queried(self, text: str) -> Any:
        from deltaic.sql.select import query

        return query(text, self)

    def column_names(self, rows: Any) -> Sequence[str]:
        """Returns the column names of a result of `query`."""
        names: Sequence[str] = rows.schema.names
        return names

    def fields(self, rows: Any) -> Sequence[Field]:
        """Returns the columns of a result of `query`, with their types."""
        return list(rows.schema)

    def renamed(self, rows: Any, names: Sequence[str]) -> Any:
        """Renames the columns of a result of `query`, by position."""
        from deltaic.sql.select import renamed

        return renamed(rows, names)

    def placed(
        self,
        rows: Any,
        columns: Sequence[Field | None],
        *,
        listed: bool = False,
        widen: Widening | None = None,
    ) -> Any:
        """Renames the columns of a result of `query`, and the fields in them, as `named_columns` does."""
        from deltaic.sql.positions import placed

        return placed(rows, columns, listed=listed, widen=widen)

    def engine_with_queries(self, engine: Engine) -> Engine:
        """Returns `engine`, that of a cluster, for expressions with subqueries over the tables of the
        statement."""
        return engine

    def defining(self) -> AbstractContextManager[None]:
        """Returns the context of the block in which the statement creates a table."""
        return nullcontext()

    @property
    def evolves(self) -> bool:
        """True if INSERT and MERGE evolve the schema even without WITH SCHEMA EVOLUTION."""
        return False

    @property
    def fills_missing(self) -> bool:
        """True if a column without a default that INSERT does not name becomes null."""
        return True

    @property
    def enforces_retention(self) -> bool:
        """True if VACUUM refuses a shorter time than the table's retention."""
        return True

    @property
    def vacuum_mode(self) -> Literal["full", "lite"]:
        """The mode of a VACUUM statement without LITE or FULL."""
        return "full"

    @property
    def logs_vacuum(self) -> bool:
        """True if the history shows a VACUUM."""
        return True

    def check_drop(self, columns: Sequence[str]) -> None:
        """Raises an error if the host refuses to drop columns."""

    @property
    def removes_mapping(self) -> bool:
        """True if statements can remove column mapping from a table."""
        return True

    @property
    def requires_constraint(self) -> bool:
        """True if DROP CONSTRAINT without IF EXISTS is an error if there is no such constraint."""
        return True

    @property
    def checks_where(self) -> bool:
        """True if the rows of INSERT ... REPLACE WHERE must match its condition."""
        return True

    @property
    def where_of_partitions(self) -> bool:
        """True if the condition of INSERT ... REPLACE WHERE may read partition columns only."""
        return False

    @property
    def replaces_matches(self) -> bool:
        """True if INSERT takes REPLACE USING and REPLACE ON."""
        return True

    def overwrites_partitions(self) -> bool:
        """True if INSERT OVERWRITE replaces only the partitions of the new rows, and not all rows of the
        table."""
        return False

    def insert(
        self,
        table: DeltaTable,
        rows: Any,
        mode: Mode,
        where: str | None,
        schema_mode: SchemaMode | None,
        shown_where: str | None = None,
        replacement: Replacement | None = None,
    ) -> None:
        """Writes a result of `query` to an existing table, cast by store assignment, and updates `table` to
        the new version. A partition column that the rows lack becomes null, unless the new rows choose the
        partitions that are replaced. `shown_where`: SQL whose meaning is that of `where`, for the history.
        `replacement`: which rows an overwrite replaces, instead of `where`."""
        from deltaic.commands.write_job import Write

        job = Write(
            mode=mode,
            where=where,
            shown_where=None if where is None else self.history_text(shown_where or where),
            checks_where=self.checks_where or self.where_of_partitions,
            where_of_partitions=self.where_of_partitions,
            schema_mode=schema_mode,
            casting="strict",
            replacement=replacement,
            fills_partitions=mode != "overwrite_partitions",
        )
        run_write(table, rows, job)

    def history_text(self, condition: str) -> str:
        """Returns the text of a condition for the history."""
        return condition

    def create(self, path: str, rows: Any, job: Write) -> None:
        """Creates or replaces a table with a result of `query`."""
        run_write(path, rows, job, self.storage_options)

    def restore(self, table: DeltaTable, target: Name) -> Mapping[str, int]:
        """Restores a table to the version or timestamp in `target`. Returns the metrics."""
        return table.restore(target.version, timestamp=self._timestamp_of(target))

    def table_properties(self, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Returns the properties of a table that a statement creates. `given`: those in the statement."""
        return given

    def commit_options(self) -> CommitOptions | None:
        """Returns the options for the commit of a statement."""
        return None

    def _lookup(self, name: Name) -> Any:
        if len(name.parts) == 1 and (found := self._named.get(name.parts[0].lower())):
            return found[1]
        if len(name.parts) == 2 and name.parts[0].lower() in (
            "parquet",
            "csv",
            "json",
            "orc",
            "text",
            "iceberg",
        ):
            raise UnsupportedFeatureError(
                "a query can read only Delta tables and the data in tables=",
                found=str(name),
                expected="delta.`path`",
            )
        known = ", ".join(key for key, _ in self._named.values()) or "none"
        raise InvalidArgumentError(
            "[TABLE_OR_VIEW_NOT_FOUND] no such table",
            found=str(name),
            expected=f"delta.`path`, or a name of tables= ({known})",
        )


def _is_of_files(source: Name) -> bool:
    """True for parquet.`path` and iceberg.`path`."""
    return len(source.parts) == 2 and source.parts[0].lower() in ("parquet", "iceberg")


def same_folder(first: str, second: str) -> bool:
    """True if two paths differ at most in the scheme of local files and in a slash at the end."""
    short, other = (re.sub(r"^file:(//)?(?=/)", "", path).rstrip("/") for path in (first, second))
    return short == other
