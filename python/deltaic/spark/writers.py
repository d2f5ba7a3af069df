"""Runs `df.writeTo`, `saveAsTable` and `insertInto` of an enabled session for Delta tables by path, or by a
name of the session catalog."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from deltaic.commands.create import refuse_other_files, requiring_table
from deltaic.commands.write_job import Mode
from deltaic.engine.spark.stores import opening
from deltaic.errors import (
    InvalidArgumentError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from deltaic.protocol.schema import Schema
from deltaic.spark.builders import FORMATS, BuilderState
from deltaic.spark.expressions import sql_text
from deltaic.spark.frame_writes import merges_schema, write_frame
from deltaic.spark.named_tables import (
    NewTable,
    entering,
    naming,
    other_table,
    path_in_catalog,
    place_of,
    replacing,
)
from deltaic.spark.raising import SPARK_CONDITIONS, UNPARSED, methods_raise_as_spark, raises_as_spark
from deltaic.spark.replacements import check_positions
from deltaic.spark.session_tables import SparkTables
from deltaic.spark.views import lost_table
from deltaic.sql.create import no_partition_column
from deltaic.sql.names import Existing, Name
from deltaic.sql.positions import matched
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name
from deltaic.table import DeltaTable

_ENDS = frozenset({"create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"})
"""Methods of DataFrameWriterV2 that run the write."""
_EXISTING: dict[str, Existing] = {"ignore": "ignore", "append": "use", "overwrite": "use"}
"""Mode of `saveAsTable` -> what it does with an existing table; "error" for other modes."""


_defines = raises_as_spark(instead=SPARK_CONDITIONS)
"""Decorator of functions that define a table, whose columns Spark checks before delta-spark does."""


@raises_as_spark(instead=SPARK_CONDITIONS, of_predicates=UNPARSED)
def save_as(df: Any, state: BuilderState, name: Name, mode: str | None) -> None:
    """Runs `saveAsTable` for a name of the session catalog. A new table is created at the option `path`, or
    in the warehouse. Rows that are appended to an existing table are cast by store assignment, as in
    INSERT."""
    spark, lower = df.sparkSession, (mode or "error").lower()
    path = next((value for each, value in state.options.items() if each.lower() == "path"), None)
    other = None
    try:
        new = place_of(spark, name, path, _EXISTING.get(lower, "error"))
    except TableAlreadyExistsError:  # the name is that of a view, or of a table of another format
        if lower == "ignore":
            return
        other = other_table(spark, name.parts) if lower == "overwrite" else None
        if other is None or other.kind == "VIEW":
            raise
    with nullcontext() if other is None else replacing(df, other):
        if other is not None:  # its name is free now
            new = place_of(spark, name, path)
        state.put({"path": new.path})
        state.partition_by = _unquoted(state.partition_by, df.columns)
        with opening(spark):
            is_new = new.enters and not DeltaTable.exists(new.path)
            if is_new and lower != "overwrite":
                refuse_other_files(new.path, None, naming(spark, new.parts))
        casts = lower == "append" and not new.enters
        if casts:
            with lost_table(spark, new.parts):  # a write would make another table of the name
                DeltaTable(new.path, spark=spark)
        with entering(spark, new, replaces=lower == "overwrite"):
            write_frame(
                df,
                state,
                mode,
                defines=is_new,
                saves_as_table=True,
                casts=casts,
                by_name=True,
                fills_partitions=casts,
            )


def _unquoted(names: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """Removes the backticks around names of partition columns: `saveAsTable` of delta-spark reads such a name
    as an identifier, and `save` does not. A column whose own name has backticks keeps it."""
    known = {column.lower() for column in columns}
    return tuple(
        _column_name(name) if str(name).startswith("`") and name.lower() not in known else name
        for name in names
    )


def insert_into(df: Any, state: BuilderState, path: str) -> None:
    """Runs `insertInto`: like INSERT, it matches columns by position, without regard to their names, and
    casts them by store assignment."""
    spark, schema = df.sparkSession, existing_schema(df.sparkSession, path)
    columns = matched(df.columns, list(schema), path, "insertInto", evolves=merges_schema(spark, state))
    if state.partition_by:
        raise InvalidArgumentError(
            "insertInto and partitionBy: the table is partitioned already", found=state.partition_by
        )
    if state.mode == "overwrite":
        check_positions(df, state, schema)
    state.put({"path": path})
    rows = SparkTables(spark).placed(df, columns)
    write_frame(rows, state, "overwrite" if state.mode == "overwrite" else "append", casts=True)


def existing_schema(spark: Any, path: str) -> Schema:
    """Returns the columns of the table at a path. Raises TableNotFoundError if there is none."""
    return DeltaTable(path, spark=spark).schema


@methods_raise_as_spark
class PathWriter:
    """Writes a DataFrame to one Delta table with the methods of PySpark's DataFrameWriterV2: `df.writeTo`
    returns it. Columns match by name. Values are cast to the types of an existing table by store assignment.
    As in delta-spark, `append`, `overwrite` and `overwritePartitions` ignore the calls that define a table.
    `new`: the table's name in the catalog, None for a table by path.

    >>> deltaic.spark.enable(spark)
    >>> writer = spark.range(3).writeTo("delta.`/data/numbers`")
    >>> writer.tableProperty("delta.appendOnly", "true").create()
    >>> spark.range(3, 5).writeTo("delta.`/data/numbers`").append()
    >>> spark.table("delta.`/data/numbers`").count()
    5
    """

    def __init__(self, df: Any, path: str, new: NewTable | None = None) -> None:
        self._df, self._path, self._new, self._state = df, path, new, BuilderState()
        self._state.put({"path": path})

    def using(self, provider: str) -> PathWriter:
        """Sets the format, "delta" or "deltaic". Raises InvalidArgumentError for another one."""
        if str(provider).lower() not in FORMATS:
            raise InvalidArgumentError(
                "a table by path must have the format delta",
                where=self._path,
                found=provider,
                expected="delta",
            )
        return self

    def option(self, key: str, value: Any) -> PathWriter:
        """Sets an option of the format, such as `mergeSchema`."""
        return self.options(**{key: value})

    def options(self, **options: Any) -> PathWriter:
        """Sets several options of the format. The path is that of the table already."""
        self._state.put({key: value for key, value in options.items() if key.lower() != "path"})
        return self

    def tableProperty(self, property: str, value: str) -> PathWriter:
        """Sets a property of the new table. As in Spark, `comment` is the table's description, and `location`
        the path of a table by name."""
        if property == "comment":
            self._state.put({"description": value})
        elif property != "location":
            self._state.properties[property] = value
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> PathWriter:
        """Sets the partition columns of the new table: names, or Columns that are only a column. Raises
        UnsupportedFeatureError for other expressions."""
        self._state.partition_by = tuple(_column_name(each) for each in (col, *cols))
        return self._with_one_layout()

    def clusterBy(self, col: str, *cols: str) -> PathWriter:
        """Sets the clustering columns of the new table, by name."""
        self._state.cluster_by = (col, *cols)
        return self._with_one_layout()

    def _with_one_layout(self) -> PathWriter:
        if self._state.partition_by and self._state.cluster_by:
            raise InvalidArgumentError(
                "[SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED] a table is partitioned or clustered,"
                " not both",
                where=self._path,
                found=f"partitionedBy {self._state.partition_by}, clusterBy {self._state.cluster_by}",
            )
        return self

    @_defines
    def create(self) -> None:
        """Creates the table. Raises TableAlreadyExistsError if it exists."""
        self._write("error", defines=True)

    @raises_as_spark({TableNotFoundError: "TABLE_OR_VIEW_NOT_FOUND"}, SPARK_CONDITIONS)
    def replace(self) -> None:
        """Replaces the table, its rows and its definition. Raises TableNotFoundError if there is none."""
        self._must_exist()
        with requiring_table(True):
            self._write("overwrite", defines=True)

    @_defines
    def createOrReplace(self) -> None:
        """Creates the table, or replaces its rows and its definition if it exists."""
        self._write("overwrite", defines=True)

    def append(self) -> None:
        """Appends the rows. Raises TableNotFoundError if there is no table."""
        self._must_exist()
        self._write("append")

    def overwrite(self, condition: Any) -> None:
        """Replaces the rows for which `condition` (SQL text or a Column) is true. Raises TableNotFoundError
        if there is no table, ConstraintViolationError if the condition is not true for a new row.

        The condition `lit(True)` is mode overwrite, as in delta-spark: `overwriteSchema` has an effect, and
        only the partitions that get new rows are replaced if the session's setting
        spark.sql.sources.partitionOverwriteMode is dynamic."""
        self._must_exist()
        where = sql_text(condition, "condition")
        if where.lower() != "true" and self._state.has("replaceWhere"):
            raise InvalidArgumentError(
                "[DELTA_REPLACE_WHERE_IN_OVERWRITE] the rows to replace are given twice",
                found=f"overwrite({where}) and the option replaceWhere",
                expected="one of them",
            )
        self._state.put({} if where.lower() == "true" else {"replaceWhere": where})
        self._write("overwrite")

    def overwritePartitions(self) -> None:
        """Replaces the partitions that get new rows. Raises TableNotFoundError if there is no table,
        SchemaMismatchError if the DataFrame lacks a partition column or has no other column."""
        self._must_exist()
        self._state.put({"partitionOverwriteMode": "dynamic"})
        self._write("overwrite", fills_partitions=False)

    def _must_exist(self) -> None:
        with opening(self._df.sparkSession):
            if (self._new is not None and self._new.enters) or not DeltaTable.exists(self._path):
                error = TableNotFoundError(
                    "there is no Delta table", where=self._path, expected="create() or createOrReplace()"
                )
                raise (
                    error
                    if self._new is None
                    else error.with_values(**naming(self._df.sparkSession, self._new.parts))
                )

    def _write(self, mode: Mode, *, defines: bool = False, fills_partitions: bool = True) -> None:
        state = self._state
        if defines and mode == "overwrite" and (state.get("overwriteSchema") or "").lower() == "false":
            raise InvalidArgumentError(
                "the option overwriteSchema is not allowed when a table is replaced, as its schema is too",
                where=self._path,
                found="overwriteSchema = false",
                expected="no such option, or overwrite() to keep the schema",
            )
        if defines and (state.has("replaceUsing") or state.has("replaceOn")):
            raise InvalidArgumentError(
                "[DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING] a table that is created or"
                " replaced has no rows that match a new one",
                where=self._path,
                expected="neither replaceUsing nor replaceOn",
            )
        if not defines:
            state = BuilderState()
            state.put(self._state.options)
        with entering(self._df.sparkSession, self._new, replaces=defines and mode == "overwrite"):
            write_frame(
                self._df,
                state,
                mode,
                defines=defines,
                casts=not defines,
                by_name=True,
                fills_partitions=fills_partitions,
            )


@methods_raise_as_spark
class NamedWriter:
    """Replacement of DataFrameWriterV2 for a table by name. It collects the calls until one of _ENDS runs the
    write, because the format may be set last; then a `PathWriter` or Spark's writer gets all calls.
    `spark_writer`: Spark's writer."""

    def __init__(self, df: Any, spark_writer: Any, name: Name) -> None:
        self._df, self._spark_writer, self._name = df, spark_writer, name
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._provider: str | None = None

    def using(self, provider: str) -> NamedWriter:
        """Sets the format of the new table."""
        self._provider = provider
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._spark_writer, name):
            raise AttributeError(name)

        @raises_as_spark()
        def call(*args: Any, **named: Any) -> Any:
            if name in _ENDS:
                return getattr(self._resolved(name), name)(*args, **named)
            self._calls.append((name, args, named))
            return self

        return call

    def _location(self) -> str | None:
        """Returns the table property `location`, or the option `path`."""
        location = None
        for name, args, named in self._calls:
            given = named if name == "options" else {args[0]: args[1]} if len(args) == 2 else {}
            for key, value in given.items():
                if (name, key) == ("tableProperty", "location") or (
                    name in ("option", "options") and key.lower() == "path"
                ):
                    location = str(value)
        return location

    def _resolved(self, end: str) -> Any:
        spark = self._df.sparkSession
        known = path_in_catalog(spark, self._name.parts) is not None
        provider = self._provider or (
            None if known else spark.conf.get("spark.sql.sources.default", "parquet")
        )
        writer = self._spark_writer
        if provider is None or provider.lower() in FORMATS:
            new = place_of(spark, self._name, None if known else self._location())
            writer = PathWriter(self._df, new.path, new)
        elif self._provider is not None:
            writer = writer.using(self._provider)
        for name, args, named in self._calls:
            writer = getattr(writer, name)(*args, **named)
        return writer


def _column_name(column: Any) -> str:
    """Returns a name, or the name of a Column that is only a column. Raises UnsupportedFeatureError for
    other expressions."""
    try:
        text = column if isinstance(column, str) else sql_text(column, "partitionedBy")
    except UnsupportedFeatureError as error:  # bucket(4, "id") has no SQL text, for example
        text = str(error.found)
        raise no_partition_column(text.partition("(")[0], text) from error
    reader = Reader(spark_name(text) if isinstance(column, str) and text.isidentifier() else text)
    try:
        parts = reader.dotted()
        reader.end()
    except InvalidArgumentError:
        parts = ()
    if len(parts) != 1:
        raise no_partition_column("", text)
    return parts[0]
