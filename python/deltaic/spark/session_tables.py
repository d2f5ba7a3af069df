"""`SparkTables`, by which statements of `deltaic.sql` find tables, run queries and read times in a Spark
session."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import Any, Literal

from deltaic.commands.create import computing_with
from deltaic.engine.spark import settings
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.native.session import has_jvm, session_catalog
from deltaic.engine.spark.types import described, of_frame
from deltaic.errors import InvalidArgumentError, TableAlreadyExistsError, VersionNotFoundError
from deltaic.log.history import travel_time
from deltaic.options import CommitOptions
from deltaic.protocol.ddl import cast_type
from deltaic.protocol.evolution import Widening, nullable_everywhere
from deltaic.protocol.schema import Field, Schema
from deltaic.spark.named_tables import (
    SESSION_CATALOG,
    entering,
    is_temporary_view,
    named_table,
    naming,
    other_table,
    path_at,
    place_of,
    query_of_view,
    refuse_relative,
    set_aside,
)
from deltaic.spark.patches import spark_sql
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.references import references, spliced
from deltaic.spark.views import is_known, lost_table, no_such_table, path_of, path_of_view
from deltaic.sql.names import CatalogEntry, Existing, Name, Tables
from deltaic.sql.positions import named_columns
from deltaic.sql.subqueries import defined, hold_queries
from deltaic.sql.tokens import Reader
from deltaic.sql_text import quote_name
from deltaic.table import DeltaTable

_numbers = itertools.count()

_VIEW = re.compile(r"(__deltaic_rows_\d+)(?: AS `([^`]+)`)?")
"""Pattern of a temporary view of `SparkTables.with_views`, with the alias that it gets."""


def timestamp_of(spark: Any, text: str, sql: Callable[[Any, str], Any] = spark_sql) -> datetime:
    """Evaluates an SQL expression of a timestamp, or of its text, in the session's time zone, and returns the
    timestamp in UTC. `sql`: runs the query, in which the expression may have subqueries."""
    with named_errors():
        micros = sql(spark, f"SELECT unix_micros(TRY_CAST(({text}) AS TIMESTAMP_LTZ))").collect()[0][0]
    if micros is None and settings.is_off(spark, settings.STRICT_TIMES):
        micros = 0
    return travel_time(micros, text)


class SparkTables(Tables):
    """The tables of a Spark session for one statement: delta.`path`, names of the session catalog, and
    temporary views. Rows are DataFrames. At the end of the `with` block the names of new tables are added to
    the catalog, and temporary views of this class are dropped.

    `definitions`: the text of WITH before the statement.
    `defined`: the names that WITH defines, in lower case.
    `frames`: DataFrames by their names in the statement, if the session has no tables of these names.
    `target`: the table that the statement is about, for errors.
    """

    def __init__(
        self,
        spark: Any,
        definitions: str = "",
        defined: Sequence[str] = (),
        frames: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(None, None)
        self._spark, self.definitions, self.defined, self._frames = spark, definitions, defined, frames or {}
        self._entering = ExitStack()
        self._written: dict[str, str] = {}
        self.target: Name | None = None

    def __enter__(self) -> SparkTables:
        return self

    def __exit__(self, *error: Any) -> None:
        """Adds the names of new tables to the catalog, unless there was an error, and drops temporary
        views."""
        self._entering.__exit__(*error)

    def naming(self) -> Mapping[str, str]:
        """Returns the forms of the target's name, for an error."""
        return {} if self.target is None else naming(self._spark, self.target.parts)

    def lost(self, *, changes_rows: bool) -> AbstractContextManager[None]:
        """Returns `lost_table` for the target. `changes_rows`: of the statement, which decides about
        delta-spark's condition."""
        condition = "DELTA_TABLE_NOT_FOUND" if changes_rows else "DELTA_PATH_DOES_NOT_EXIST"
        return lost_table(self._spark, () if self.target is None else self.target.parts, condition)

    def overwrites_partitions(self) -> bool:
        if not settings.overwrites_partitions(self._spark):
            return False
        if settings.refuses_partition_overwrites(self._spark):
            raise settings.partition_overwrite_refused()
        return True

    def opened(self, path: str, version: int | None = None, timestamp: datetime | None = None) -> DeltaTable:
        if timestamp is not None and version is None:
            from deltaic.spark.frames import version_at

            version = version_at(self._spark, path, timestamp)
        return DeltaTable(path, version=version, spark=self._spark)

    def moment(self, text: str) -> datetime:
        return timestamp_of(self._spark, text)

    def _rows(self, name: Name) -> Any:
        """Returns the DataFrame for a name, which is a key of `frames` or the name of a table in the
        session."""
        if len(name.parts) == 1 and name.parts[0] in self._frames:
            return self._frames[name.parts[0]]
        path = path_of(self._spark, name)
        travels = name.version is not None or name.timestamp is not None
        if path is not None and (name.path is not None or travels or path_of_view(self._spark, name) is None):
            from deltaic.spark.frames import newest, read, version_at

            if not travels:
                return newest(self._spark, path)
            version = (
                name.version
                if name.timestamp is None
                else version_at(self._spark, path, self.moment(name.timestamp))
            )
            return read(self._spark, path, version=version)
        if travels:
            raise InvalidArgumentError("only a Delta table has versions", where=str(name))
        return self._spark.table(str(name))

    def _queried(self, text: str) -> Any:
        from deltaic.spark.statements import queried

        return queried(self._spark, text, self._frames)

    def engine_with_queries(self, engine: Any) -> Any:
        return engine.with_queries(self.with_views, self._as_written)

    def with_views(self, text: str, *, pins: bool = True) -> str:
        """Replaces the Delta tables in the subqueries of a condition or value by temporary views, which are
        dropped when the statement ends. `pins`: True for the versions that the tables have now; False for
        those that they have when the rows are read."""
        from deltaic.spark.frames import read
        from deltaic.spark.statements import referred

        if not hold_queries([text]):
            return text
        # The text is put in brackets, so that the FROM of IS DISTINCT FROM does not begin a clause.
        whole = f"SELECT ({defined(text, self.definitions, self.defined)}\n)"
        views = {}
        for reference in references(Reader(whole), self._spark):
            written = whole[reference.start : reference.end]
            views[reference] = self._viewed(
                read(self._spark, reference.path)
                if pins and reference.is_newest
                else referred(self._spark, reference),
                written.split(maxsplit=1)[1] if reference.is_query else written,
            )
        whole = spliced(whole, views)
        for name, frame in self._frames.items():
            if name in whole:
                whole = whole.replace(name, self._viewed(frame, name))
        return whole[len("SELECT (") : -len("\n)")]

    def _as_written(self, text: str) -> str:
        """Replaces the temporary views of `with_views` in a text by the tables as the statement names them:
        ``FROM __deltaic_rows_0 AS `s` `` becomes `FROM s`."""
        return _VIEW.sub(self._name_written, text) if self._written else text

    def _name_written(self, match: re.Match[str]) -> str:
        written, alias = self._written.get(match[1]), match[2]
        if written is None:
            return match[0]
        is_own = alias is None or Reader(written).tokens[-1].name.lower() == alias.lower()
        return written if is_own else f"{written} AS {quote_name(alias)}"

    def _viewed(self, frame: Any, written: str) -> str:
        """Creates a temporary view of a DataFrame, and returns the view's name. `written`: the text that the
        name replaces."""
        name = f"__deltaic_rows_{next(_numbers)}"
        self._written[name] = written
        frame.createOrReplaceTempView(name)
        # `spark.catalog.dropTempView` would also drop rows that the user has cached of the same table
        catalog = session_catalog(self._spark) if has_jvm(self._spark) else self._spark.catalog
        self._entering.callback(catalog.dropTempView, name)
        return name

    def defining(self) -> AbstractContextManager[None]:
        return computing_with(engine_of(self._spark))

    @property
    def enforces_retention(self) -> bool:
        return settings.enforces_retention(self._spark)

    @property
    def vacuum_mode(self) -> Literal["full", "lite"]:
        return settings.vacuum_mode(self._spark)

    @property
    def logs_vacuum(self) -> bool:
        return settings.logs_vacuum(self._spark)

    def check_drop(self, columns: Sequence[str]) -> None:
        if settings.is_off(self._spark, settings.DROP_COLUMN):
            raise InvalidArgumentError(
                "[DELTA_UNSUPPORTED_DROP_COLUMN] the session refuses to drop columns",
                found=", ".join(columns),
                expected=f"{settings.DROP_COLUMN} = true",
            )

    @property
    def removes_mapping(self) -> bool:
        return not settings.is_off(self._spark, settings.MAPPING_REMOVAL)

    @property
    def requires_constraint(self) -> bool:
        return not settings.is_on(self._spark, settings.DROP_IF_EXISTS)

    @property
    def evolves(self) -> bool:
        return settings.is_on(self._spark, settings.MERGE_SCHEMA)

    @property
    def fills_missing(self) -> bool:
        return settings.fills_missing(self._spark)

    @property
    def checks_where(self) -> bool:
        return settings.checks_replace_where(self._spark)

    @property
    def replaces_matches(self) -> bool:
        """False, like delta-spark: the options replaceUsing and replaceOn of a DataFrame's writer do it."""
        return False

    def history_text(self, condition: str) -> str:
        return engine_of(self._spark).shown_condition(condition, None)

    @property
    def where_of_partitions(self) -> bool:
        return settings.replaces_partitions(self._spark)

    def restore(self, table: DeltaTable, target: Name) -> Mapping[str, int]:
        """Restores a table to the version or timestamp in `target`. Raises VersionNotFoundError for a
        timestamp after the last version, like other time travel on Spark."""
        if target.timestamp is None:
            return raises_as_spark({VersionNotFoundError: "DELTA_CANNOT_RESTORE_TABLE_VERSION"})(
                table.restore
            )(target.version, **settings.of_restore(self._spark))
        from deltaic.spark.frames import check_restorable

        time = self.moment(target.timestamp)
        check_restorable(self._spark, table.location, time)
        return table.restore(timestamp=time, **settings.of_restore(self._spark))

    def other_definition(self, name: Name) -> tuple[Schema, list[str]] | None:
        if path_of(self._spark, name) is not None or not is_known(self._spark, name):
            return None
        columns = self._spark.catalog.listColumns(str(name))
        partition_by = [column.name for column in columns if column.isPartition]
        return described(self._spark.table(str(name))), partition_by

    def has_other(self, name: Name) -> bool:
        if name.path is not None or named_table(self._spark, name.parts) is not None:
            return False
        other = other_table(self._spark, name.parts)
        return other is not None and other.kind != "VIEW"

    def table_properties(self, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        return settings.table_properties(self._spark, given)

    def commit_options(self) -> CommitOptions | None:
        return settings.commit_options(self._spark, None)

    def column_names(self, rows: Any) -> Sequence[str]:
        names: Sequence[str] = rows.columns
        return names

    def fields(self, rows: Any) -> Sequence[Field]:
        return list(of_frame(rows))

    def renamed(self, rows: Any, names: Sequence[str]) -> Any:
        return rows.toDF(*names)

    def placed(
        self,
        rows: Any,
        columns: Sequence[Field | None],
        *,
        listed: bool = False,
        widen: Widening | None = None,
    ) -> Any:
        from pyspark.sql import functions as F

        frame = rows.toDF(
            *(
                name if column is None else column.name
                for name, column in zip(rows.columns, columns, strict=True)
            )
        )
        renamed = list(of_frame(frame))
        sources = [column.with_(name=name) for column, name in zip(renamed, rows.columns, strict=True)]
        targets = named_columns(sources, columns, listed=listed, widen=widen)
        pairs = zip(renamed, targets, strict=True)
        return frame.select(
            *(
                (
                    F.col(quote_name(column.name))
                    if column == target
                    else F.col(quote_name(column.name)).cast(_cast_target(target)).alias(target.name)
                )
                for column, target in pairs
            )
        )

    def place(self, name: Name, location: str | None, existing: Existing = "use") -> tuple[str, bool]:
        if name.path is not None:
            refuse_relative(self._spark, name)
            is_ignored = location is not None and settings.is_on(self._spark, settings.TWO_PATHS)
            return super().place(name, None if is_ignored else location, existing)
        try:
            new = place_of(self._spark, name, location, "use" if existing == "replace" else existing)
        except TableAlreadyExistsError:  # the name is that of a view, or of a table of another format
            other = other_table(self._spark, name.parts) if existing == "replace" else None
            if other is None or other.kind == "VIEW":
                raise
            self._entering.enter_context(set_aside(self._spark, other))
            new = place_of(self._spark, name, location)
        self._entering.enter_context(entering(self._spark, new, replaces=existing in ("use", "replace")))
        return new.path, new.enters

    def cloned(
        self, source: Name, path: str, shallow: bool, replace: bool, properties: Mapping[str, str] | None
    ) -> dict[str, int]:
        """Like the method of the base class, but the path of the source may name a version: delta.`/t@v3`.
        The source may also be the name of a Parquet table without partitions. Of a table with partitions,
        only the catalog knows which folders belong to it."""
        if is_known(self._spark, source) and path_of(self._spark, source) is None:
            table, definition = other_table(self._spark, source.parts), self.other_definition(source)
            has_partitions = definition is None or bool(definition[1])
            if table is not None and (table.provider or "").lower() == "parquet" and not has_partitions:
                source = dataclasses.replace(source, parts=("parquet", path_at(str(table.location))))
        elif source.path is not None:
            from deltaic.spark.frames import pinned_path

            place, version, _ = pinned_path(self._spark, source.path, source.version, source.timestamp, {})
            time = source.timestamp if version is None else None
            parts = (source.parts[0], str(place))
            source = dataclasses.replace(source, parts=parts, version=version, timestamp=time)
        return super().cloned(source, path, shallow, replace, properties)

    def entry(self, name: Name) -> CatalogEntry | None:
        table = None if name.path is not None else named_table(self._spark, name.parts)
        return None if table is None else CatalogEntry(SESSION_CATALOG, *table.parts, table.managed)

    def created_as(self, name: Name, table: DeltaTable) -> tuple[str, str | None]:
        named = None if name.path is not None else named_table(self._spark, name.parts)
        if named is None:
            return super().created_as(name, table)
        return ".".join(map(quote_name, (SESSION_CATALOG, *named.parts))), (
            None if named.managed else table.location
        )

    def _lookup(self, name: Name) -> Any:
        path = path_of(self._spark, name)
        if path is None and not is_known(self._spark, name):
            # as in Spark's own message
            raise no_such_table(self._spark, name).with_values(search_path="not available")
        if path is None:
            expected = (
                "delta.`path`, parquet.`path`, iceberg.`path`, the name of a Delta table, or a temporary view"
                " of one"
            )
            error = InvalidArgumentError(
                "[DELTA_CLONE_UNSUPPORTED_SOURCE] the source cannot be cloned",
                found=str(name),
                expected=expected,
            )
            is_view = (
                is_temporary_view(self._spark, name.parts)
                or query_of_view(self._spark, name.parts) is not None
            )
            raise error.with_values(name=".".join(name.parts), format="View" if is_view else None)
        return self.opened(path)


def _cast_target(field: Field) -> str:
    """Returns the DDL of a field's type without NOT NULL. Spark takes the cast of a variant for nullable: it
    casts no variant to a NOT NULL field, not even to give it another name."""
    return cast_type(nullable_everywhere(field.type))
