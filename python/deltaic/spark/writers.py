"""`df.writeTo(name)`, and the calls of DataFrameWriter that name a table: by path, or by a name of the session catalog."""

from __future__ import annotations

from typing import Any

from deltaic.commands.write import Mode
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.spark.expressions import sql_text
from deltaic.spark.frame_writes import FORMATS, BuilderState, merges_schema, write_frame
from deltaic.spark.named_tables import NewTable, entering, path_in_catalog, place_of
from deltaic.spark.raising import methods_raise_as_spark, raises_as_spark
from deltaic.spark.session_tables import SparkTables
from deltaic.sql.names import Name
from deltaic.sql.positions import matched
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

_ENDS = frozenset({"create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"})
"""Methods of DataFrameWriterV2 that write."""


def save_as(df: Any, asked: BuilderState, name: Name, mode: str | None) -> None:
    """`saveAsTable` of a name of the session catalog: the option `path` says where a new table is, else it lies in the warehouse. Rows that
    are added to a table are cast by store assignment, as in INSERT."""
    spark = df.sparkSession
    path = next((value for each, value in asked.options.items() if each.lower() == "path"), None)
    new = place_of(spark, name, path)
    asked.put({"path": new.path})
    with opening(spark):
        makes = new.enters and new.managed and not DeltaTable.exists(new.path)
    with entering(spark, new):
        write_frame(df, asked, mode, defines=makes, casts=(mode or "").lower() == "append" and not new.enters, by_name=True)


def insert_into(df: Any, asked: BuilderState, path: str) -> None:
    """`insertInto`: as INSERT, the columns are the table's by their position, whatever they are called, and cast by store assignment."""
    spark, schema = df.sparkSession, existing_schema(df.sparkSession, path)
    columns = matched(df.columns, list(schema), path, "insertInto", evolves=merges_schema(spark, asked))
    if asked.partition_by:
        raise InvalidArgumentError("insertInto and partitionBy: the table is partitioned already", found=asked.partition_by)
    asked.put({"path": path})
    placed = SparkTables(spark).placed(df, columns)
    write_frame(placed, asked, "overwrite" if asked.mode == "overwrite" else "append", casts=True)


def existing_schema(spark: Any, path: str) -> Schema:
    """The columns of the table at a path. TableNotFoundError where there is none."""
    return DeltaTable(path, spark=spark).schema


@methods_raise_as_spark
class PathWriter:
    """DataFrameWriterV2 of one table by its path: the same methods. Columns are the table's by their names, and values are cast by store
    assignment where the table is there. `new`: its name in the
    catalog."""

    def __init__(self, df: Any, path: str, new: NewTable | None = None) -> None:
        self._df, self._path, self._new, self._asked = df, path, new, BuilderState()
        self._asked.put({"path": path})

    def using(self, provider: str) -> PathWriter:
        """Sets the format, which must be "delta"."""
        if str(provider).lower() not in FORMATS:
            raise InvalidArgumentError("a table by path of another format", where=self._path, found=provider, expected="delta")
        return self

    def option(self, key: str, value: Any) -> PathWriter:
        """Sets an option, as in `DataFrameWriter.option`."""
        self._asked.put({key: value})
        return self

    def options(self, **options: Any) -> PathWriter:
        """Sets several options, as in `DataFrameWriter.options`."""
        self._asked.put(options)
        return self

    def tableProperty(self, property: str, value: str) -> PathWriter:
        """A property of the table that is made."""
        self._asked.properties[property] = value
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> PathWriter:
        """The partition columns of the table that is made."""
        self._asked.partition_by = tuple(_column_name(each) for each in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> PathWriter:
        """Sets the clustering columns."""
        self._asked.cluster_by = (col, *cols)
        return self

    def create(self) -> None:
        """Makes the table. TableAlreadyExistsError where there is one."""
        self._write("error", defines=True)

    @raises_as_spark({TableNotFoundError: "TABLE_OR_VIEW_NOT_FOUND"})
    def replace(self) -> None:
        """Another table in the place of one that must be there."""
        self._must_exist()
        self._write("overwrite", defines=True)

    def createOrReplace(self) -> None:
        """Makes the table, in the place of one that is there."""
        self._write("overwrite", defines=True)

    def append(self) -> None:
        """Adds the rows."""
        self._must_exist()
        self._write("append")

    def overwrite(self, condition: Any) -> None:
        """Puts the rows in the place of those for which a condition is true, which must be true of all new ones."""
        self._must_exist()
        self._asked.put({"replaceWhere": sql_text(condition, "condition")})
        self._write("overwrite")

    def overwritePartitions(self) -> None:
        """Puts the rows in the place of the partitions that they are in."""
        self._must_exist()
        self._asked.put({"partitionOverwriteMode": "dynamic"})
        self._write("overwrite")

    def _must_exist(self) -> None:
        with opening(self._df.sparkSession):
            if (self._new is not None and self._new.enters) or not DeltaTable.exists(self._path):
                raise TableNotFoundError("there is no Delta table", where=self._path, expected="create() or createOrReplace()")

    def _write(self, mode: Mode, *, defines: bool = False) -> None:
        with entering(self._df.sparkSession, self._new):
            write_frame(self._df, self._asked, mode, defines=defines, casts=not defines, by_name=True)


@methods_raise_as_spark
class NamedWriter:
    """DataFrameWriterV2 of a name: what it is told is kept until it is known whether the table is one of ours. `own`: Spark's."""

    def __init__(self, df: Any, own: Any, name: Name) -> None:
        self._df, self._own, self._name = df, own, name
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._provider: str | None = None

    def using(self, provider: str) -> NamedWriter:
        """The format of the table that is made."""
        self._provider = provider
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._own, name):
            raise AttributeError(name)

        @raises_as_spark()
        def call(*args: Any, **named: Any) -> Any:
            if name in _ENDS:
                return getattr(self._resolved(name), name)(*args, **named)
            self._calls.append((name, args, named))
            return self

        return call

    def _resolved(self, end: str) -> Any:
        spark = self._df.sparkSession
        known = path_in_catalog(spark, self._name.parts) is not None
        provider = self._provider or (None if known else spark.conf.get("spark.sql.sources.default", "parquet"))
        writer = self._own
        if provider is None or provider.lower() in FORMATS:
            new = place_of(spark, self._name, None)
            writer = PathWriter(self._df, new.path, new)
        elif self._provider is not None:
            writer = writer.using(self._provider)
        for name, args, named in self._calls:
            writer = getattr(writer, name)(*args, **named)
        return writer


def _column_name(column: Any) -> str:
    """A name, or the name of a plain column."""
    text = column if isinstance(column, str) else sql_text(column, "partitionedBy")
    reader = Reader(f"`{text}`" if isinstance(column, str) and text.isidentifier() else text)
    try:
        parts = reader.dotted()
        reader.end()
    except InvalidArgumentError:
        parts = ()
    if len(parts) != 1:
        raise UnsupportedFeatureError("a partition by an expression", found=text, expected="a column")
    return parts[0]
