"""`df.writeTo("delta.`path`")`, and the calls of DataFrameWriter that name a table: by path they write it, any other name is refused."""

from __future__ import annotations

from typing import Any

from deltaic.commands.write import Mode
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, TableNotFoundError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.spark.expressions import sql_text
from deltaic.spark.frame_writes import FORMATS, Asked, write_frame
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable


def no_catalog(name: Any) -> UnsupportedFeatureError:
    """A table of Delta by its name in a catalog."""
    return UnsupportedFeatureError("tables by name", found=str(name), expected="save(path), or delta.`path`")


def insert_into(df: Any, asked: Asked, path: str) -> None:
    """`insertInto`: the columns are the table's by their position, whatever they are called."""
    names = existing_schema(df.sparkSession, path).names
    if len(df.columns) != len(names):
        raise SchemaMismatchError("insertInto needs a column for each of the table's", where=path, found=df.columns, expected=names)
    if asked.partition_by:
        raise InvalidArgumentError("insertInto and partitionBy: the table is partitioned already", found=asked.partition_by)
    asked.put({"path": path})
    write_frame(df.toDF(*names), asked, "overwrite" if asked.mode == "overwrite" else "append")


def existing_schema(spark: Any, path: str) -> Schema:
    """The columns of the table at a path. TableNotFoundError where there is none."""
    return DeltaTable(path, spark=spark).schema


class PathWriter:
    """DataFrameWriterV2 of one table by its path: the same methods. Columns are the table's by their names."""

    def __init__(self, df: Any, path: str) -> None:
        self._df, self._path, self._asked = df, path, Asked()
        self._asked.put({"path": path})

    def using(self, provider: str) -> PathWriter:
        """The format: "delta"."""
        if str(provider).lower() not in FORMATS:
            raise InvalidArgumentError("a table by path of another format", where=self._path, found=provider, expected="delta")
        return self

    def option(self, key: str, value: Any) -> PathWriter:
        """As of DataFrameWriter."""
        self._asked.put({key: value})
        return self

    def options(self, **options: Any) -> PathWriter:
        """Several of them."""
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
        """Its clustering columns."""
        self._asked.cluster_by = (col, *cols)
        return self

    def create(self) -> None:
        """Makes the table. TableAlreadyExistsError where there is one."""
        self._write("error", defines=True)

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
            if not DeltaTable.exists(self._path):
                raise TableNotFoundError("there is no Delta table", where=self._path, expected="create() or createOrReplace()")

    def _write(self, mode: Mode, *, defines: bool = False) -> None:
        write_frame(self._df, self._asked, mode, defines=defines)


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
