"""The Python side of Spark's `FileIndex`: lists the files of a scan with their constants when Spark plans a
query.

When the scan is created, `rehearse` calls Spark's Java interfaces once, because the public path can be used
only until then: during query planning it would be too late.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

from deltaic import _core
from deltaic.engine.spark.columns import FrameColumn
from deltaic.engine.spark.native.files import Files, JvmFiles
from deltaic.engine.spark.native.filters import exact_predicate, skipping_predicate
from deltaic.engine.spark.native.jvm import DATASOURCES, Jvm
from deltaic.engine.spark.read_path import is_unexpected, log
from deltaic.plan.literal import col
from deltaic.plan.nodes import Scan


class FileIndex:
    """The files of `scan`, as Spark lists them. `key`: Spark considers two indexes with equal keys as equal.
    `schema`: a pyspark StructType of the files' constants."""

    def __init__(self, jvm: Jvm, key: str, files: Files, schema: Any, scan: Scan) -> None:
        self._jvm, self._key, self._files = jvm, key, files
        self._columns = scan.schema, scan.table_schema
        self._schema = jvm.schema(schema.json())
        self._whole: Any = None

    def java(self) -> Any:
        """Creates the Java `FileIndex`, which calls the methods of this object."""
        return self._jvm.callbacks.create(
            "ScanFiles", self, self._jvm.spark, self._key, self._files.size, self._schema
        )

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """Returns a Seq[PartitionDirectory] of the files for whose constants the partition filters are true,
        without files whose statistics show that no row matches the data filters. Each argument is a Seq of
        Catalyst expressions. Spark evaluates the data filters for each row again, but not the partition
        filters."""
        files = self._files.selected(
            self._hint([partition_filters, data_filters] if self._files.by_partition else [data_filters])
        )
        if files.positions is None and not partition_filters.size() and not self._files.by_partition:
            if self._whole is None:
                self._whole = self._directories(files, None)
            return self._whole
        return self._directories(
            files, exact_predicate(self._jvm, partition_filters, self._schema, files.count)
        )

    def _directories(self, files: JvmFiles, predicate: Any | None) -> Any:
        return self._jvm.partition_directories(files.rows, files.statuses, files.positions, predicate)

    def _hint(self, filters: list[Any]) -> _core.Predicate | None:
        """Returns a predicate that prunes files by Spark's filters; None if no filter can be converted. Spark
        evaluates all filters anyway."""
        try:
            all_predicates = [
                skipping_predicate(self._jvm, each, *self._columns) for each in filters if each.size()
            ]
        except Exception as error:
            if not is_unexpected(error):
                raise
            log.debug("Spark's filters cannot be translated, no file is skipped", exc_info=error)
            return None
        predicates = [each for each in all_predicates if each is not None]
        return reduce(lambda all, other: all & other, predicates) if predicates else None

    def one(self, predicate: Any) -> Any:
        """Like `listFiles`, for a single file and with a predicate on its constants."""
        return self._directories(self._files.one(), predicate)


def java_relation(
    jvm: Jvm, index: Any, constants: Any, data: Any, options: dict[str, str], file_format: Any = None
) -> Any:
    """Creates a HadoopFsRelation over a Java `FileIndex`. Its columns are those of `data`, then those of
    `constants` (both pyspark StructTypes). `options`: options of Spark's Parquet reader. `file_format`: a
    Java `FileFormat`; None: Spark's Parquet."""
    return jvm.get(DATASOURCES + "HadoopFsRelation")(
        index,
        jvm.schema(constants.json()),
        jvm.schema(data.json()),
        jvm.none,
        file_format or jvm.get(DATASOURCES + "parquet.ParquetFileFormat")(),
        jvm.get("org.apache.spark.api.python.PythonUtils").toScalaMap(options),
        jvm.spark._jsparkSession,
    )


def relation_frame(jvm: Jvm, java: Any) -> Any:
    """Returns a DataFrame of a HadoopFsRelation."""
    from pyspark.sql import DataFrame

    return DataFrame(jvm.spark._jsparkSession.baseRelationToDataFrame(java), jvm.spark)


def selected(jvm: Jvm, rows: Any, columns: Sequence[FrameColumn]) -> Any:
    """Returns the DataFrame with these columns, by one call to the JVM: `DataFrame.select` makes four calls
    for each column."""
    from pyspark.sql import DataFrame

    lines = [(each.source, each.name, "opaque" if each.opaque else "", each.metadata) for each in columns]
    dataset = jvm.callbacks.selected(rows._jdf, "\0".join(itertools.chain.from_iterable(lines)))
    return DataFrame(dataset, jvm.spark)


class _Rehearsal:
    """The Python side of a file index that always lists the same single file."""

    def __init__(self, jvm: Jvm, index: FileIndex, schema: Any) -> None:
        self._jvm, self._index, self._schema = jvm, index, schema

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        return self._index.one(exact_predicate(self._jvm, partition_filters, self._schema, 1))


def rehearse(jvm: Jvm, index: FileIndex, constants: Any, frame: Any) -> None:
    """Lists one file the way Spark will when it plans a query, once per session. If that fails, the public
    interfaces can still be used; during query planning it would be too late.

    `constants`: a pyspark StructType of the index's constants. `frame`: the relation over the index, whose
    last column is one of the constants. Raises TypeError if the index does not return the one file."""
    from pyspark.sql import functions as F

    if jvm.is_rehearsed:
        return
    constant = F.col(col(frame.columns[-1]))
    plan = frame.where(constant.isNull() | constant.isNotNull())._jdf.queryExecution().analyzed()
    schema = jvm.schema(constants.json())
    rehearsal, filters = _Rehearsal(jvm, index, schema), jvm.seq(plan.condition())
    # Python calls the method first, because py4j would log an error that is raised in a call from the JVM.
    rehearsal.listFiles(filters, jvm.seq())
    java = jvm.callbacks.create("ScanFiles", rehearsal, jvm.spark, "rehearsal", 1, schema)
    directories = java.listFiles(filters, jvm.seq())
    if directories.size() != 1 or directories.apply(0).files().size() != 1 or len(java.inputFiles()) != 1:
        raise TypeError("Spark's file index does not return the file that it was given")
    jvm.is_rehearsed = True
