"""A Python object as Spark's `FileIndex`: the files of a scan, with constants for each, chosen when Spark plans a query.

`equals`, `hashCode` and `toString` are one key: Java hands over a wrapper, never this object. What can fail has run when it is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.native.filters import exact_predicate, skipping_predicate
from deltaic.engine.spark.native.jvm import DATASOURCES, Jvm
from deltaic.engine.spark.ways import is_unexpected, log
from deltaic.relation.literal import col

MANY_FILES = 10_000
"""The JVM is told of so many files at once; of more when a query has chosen among them."""
MOST_SHARE = 4
"""It is told of the chosen files alone where they are a smaller part than one in so many."""


class FileIndex:
    """`key`: what makes two scans of the same files equal. `handed`: rows of `_core.hand_over`. `constants`: a table of the same length,
    its columns those of `schema` (a pyspark StructType). `adds` and `table_schema` (by the names in the files): for skipping."""

    def __init__(
        self, jvm: Jvm, key: str, handed: pa.Table, constants: pa.Table, schema: Any, adds: pa.Table, table_schema: _core.TableSchema
    ) -> None:
        self._jvm, self._key = jvm, key
        self._adds, self._table_schema = adds, table_schema
        self._size = int(np.sum(handed["__deltaic_size"].to_numpy()))
        self._statuses, self._constants, self._fields = handed["__deltaic_status"], constants, schema
        self._schema = jvm.schema(schema.json())
        self._all: tuple[Any, Any] | None = None
        if adds.num_rows <= MANY_FILES:
            self._all = self._made(None)
        self._whole: Any = None

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """Files for whose constants the partition filters are true (nobody applies these again), less those whose statistics leave no
        row for the data filters."""
        predicate = exact_predicate(self._jvm, partition_filters, self._schema, self._adds.num_rows)
        chosen = self._chosen(data_filters)
        if self._all is None and chosen is not None and len(chosen) * MOST_SHARE < self._adds.num_rows:
            return self._jvm.partition_directories(*self._made(chosen), None, predicate)
        if self._all is None:
            self._all = self._made(None)
        if predicate is not None or chosen is not None:
            positions = None if chosen is None else self._jvm.ints(chosen)
            return self._jvm.partition_directories(*self._all, positions, predicate)
        if self._whole is None:
            self._whole = self._jvm.partition_directories(*self._all, None, None)
        return self._whole

    def _made(self, chosen: Any | None) -> tuple[Any, Any]:
        """InternalRow[] and FileStatus[] of the files at these positions, None: of all."""
        constants, statuses = self._constants, self._statuses
        if chosen is not None:
            positions = pa.array(chosen)
            constants, statuses = constants.take(positions), statuses.take(positions)
        return self._jvm.rows(constants, self._fields), self._jvm.file_statuses(statuses)

    def _chosen(self, data_filters: Any) -> Any | None:
        """Positions of the files that statistics leave, None for all."""
        if self._adds.num_rows < 2 or not data_filters.size():
            return None
        try:
            predicate = skipping_predicate(self._jvm, data_filters, self._table_schema)
        except Exception as error:
            if not is_unexpected(error):
                raise
            log.debug("filters on data are no hints here", exc_info=error)
            return None
        if predicate is None:
            return None
        left = _core.filter_adds(self._adds, self._table_schema, predicate)
        if left.num_rows == self._adds.num_rows:
            return None
        stay = pc.is_in(self._adds["path"], value_set=left["path"].combine_chunks())
        return np.flatnonzero(stay.to_numpy())

    def first(self, predicate: Any) -> Any:
        """What `listFiles` makes of the first file alone."""
        return self._jvm.partition_directories(*self._made(np.zeros(1, np.int64)), None, predicate)

    def rootPaths(self) -> Any:
        return self._jvm.seq()

    def inputFiles(self) -> Any:
        return self._jvm.gateway.new_array(self._jvm.root.java.lang.String, 0)

    def refresh(self) -> None:
        """The files of a version never change."""

    def sizeInBytes(self) -> int:
        return self._size

    def partitionSchema(self) -> Any:
        return self._schema

    def metadataOpsTimeNs(self) -> Any:
        return self._jvm.none

    def isTimeTravel(self) -> bool:
        return False

    def toString(self) -> str:
        return self._key

    def hashCode(self) -> int:
        return int.from_bytes(self._key.encode()[-7:], "big") & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return other is not None and other.toString() == self._key

    class Java:
        implements = (DATASOURCES + "FileIndex",)


def relation(jvm: Jvm, index: FileIndex, constants: Any, data: Any, options: dict[str, str]) -> Any:
    """A DataFrame over the index: its data columns, then its constants (both pyspark StructTypes). `options`: of the reader."""
    from pyspark.sql import DataFrame

    made = jvm.get(DATASOURCES + "HadoopFsRelation")(
        index,
        jvm.schema(constants.json()),
        jvm.schema(data.json()),
        jvm.none,
        jvm.get(DATASOURCES + "parquet.ParquetFileFormat")(),
        jvm.root.PythonUtils.toScalaMap(options),
        jvm.spark._jsparkSession,
    )
    return DataFrame(jvm.spark._jsparkSession.baseRelationToDataFrame(made), jvm.spark)


def rehearse(jvm: Jvm, index: FileIndex, frame: Any) -> None:
    """Asks an index, once in a session, all that Spark will ask when it plans a query: then nobody can be told of another way any more.
    `frame`: the relation over the index, whose last column is one of the constants. TypeError for an answer of another kind."""
    from pyspark.sql import functions as F

    if jvm.is_rehearsed:
        return
    if str(jvm.get("java.util.Objects").toString(index)) != index.toString():
        raise TypeError("Java does not get through to Python's objects")
    constant = F.col(col(frame.columns[-1]))
    plan = frame.where(constant.isNull() | constant.isNotNull())._jdf.queryExecution().analyzed()
    filters = jvm.seq(plan.condition())
    listed = index.first(exact_predicate(jvm, filters, index.partitionSchema(), 1))
    if listed.size() != 1 or listed.apply(0).files().size() != 1:
        raise TypeError("the files of a scan are not listed as they were given")
    jvm.is_rehearsed = True
