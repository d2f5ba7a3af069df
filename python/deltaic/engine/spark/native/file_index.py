"""The Python side of Spark's `FileIndex`: the files of a scan, with constants for each, chosen when Spark plans a query.

What can fail has run when it is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

from deltaic import _core
from deltaic.engine.spark.columns import Plain
from deltaic.engine.spark.native.files import Files, JvmFiles
from deltaic.engine.spark.native.filters import exact_predicate, skipping_predicate
from deltaic.engine.spark.native.jvm import DATASOURCES, Jvm
from deltaic.engine.spark.read_path import is_unexpected, log
from deltaic.plan.literal import col
from deltaic.plan.nodes import Scan


class FileIndex:
    """`key`: what makes two scans of the same files equal. `files`: of `scan`. `schema`: of their constants (a pyspark StructType)."""

    def __init__(self, jvm: Jvm, key: str, files: Files, schema: Any, scan: Scan) -> None:
        self._jvm, self._key, self._files = jvm, key, files
        self._columns = scan.schema, scan.table_schema
        self._schema = jvm.schema(schema.json())
        self._whole: Any = None

    def java(self) -> Any:
        """The `FileIndex` itself, a Java object that asks this one."""
        return self._jvm.callbacks.made("ScanFiles", self, self._jvm.spark, self._key, self._files.size, self._schema)

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """Files for whose constants the partition filters are true (nobody applies these again), less those whose statistics leave no
        row for the data filters."""
        files = self._files.selected(self._hint([partition_filters, data_filters] if self._files.by_partition else [data_filters]))
        if files.positions is None and not partition_filters.size() and not self._files.by_partition:
            if self._whole is None:
                self._whole = self._directories(files, None)
            return self._whole
        return self._directories(files, exact_predicate(self._jvm, partition_filters, self._schema, files.count))

    def _directories(self, files: JvmFiles, predicate: Any | None) -> Any:
        return self._jvm.partition_directories(files.rows, files.statuses, files.positions, predicate)

    def _hint(self, filters: list[Any]) -> _core.Predicate | None:
        """Translates Spark's filters into a predicate that prunes files; None if none can be translated. Spark evaluates the filters
        anyway."""
        try:
            found = [skipping_predicate(self._jvm, each, *self._columns) for each in filters if each.size()]
        except Exception as error:
            if not is_unexpected(error):
                raise
            log.debug("filters are no hints here", exc_info=error)
            return None
        known = [each for each in found if each is not None]
        return reduce(lambda all, other: all & other, known) if known else None

    def one(self, predicate: Any) -> Any:
        """Lists a single file, in the form of Spark's `FileIndex.listFiles`."""
        return self._directories(self._files.one(), predicate)


def relation(jvm: Jvm, index: Any, constants: Any, data: Any, options: dict[str, str]) -> Any:
    """A DataFrame over a `FileIndex` of Java: its data columns, then its constants (both pyspark StructTypes). `options`: of the reader."""
    from pyspark.sql import DataFrame

    made = jvm.get(DATASOURCES + "HadoopFsRelation")(
        index,
        jvm.schema(constants.json()),
        jvm.schema(data.json()),
        jvm.none,
        jvm.get(DATASOURCES + "parquet.ParquetFileFormat")(),
        jvm.get("org.apache.spark.api.python.PythonUtils").toScalaMap(options),
        jvm.spark._jsparkSession,
    )
    return DataFrame(jvm.spark._jsparkSession.baseRelationToDataFrame(made), jvm.spark)


def selected(jvm: Jvm, rows: Any, columns: Sequence[Plain]) -> Any:
    """Columns of a DataFrame, in one call: by `DataFrame.select` each of 400 would take four."""
    from pyspark.sql import DataFrame

    lines = [(each.there, each.name, "opaque" if each.opaque else "", each.metadata) for each in columns]
    made = jvm.callbacks.selected(rows._jdf, "\0".join(itertools.chain.from_iterable(lines)))
    return DataFrame(made, jvm.spark)


class _Rehearsal:
    """An index that lists a single file, whatever is asked."""

    def __init__(self, jvm: Jvm, index: FileIndex, schema: Any) -> None:
        self._jvm, self._index, self._schema = jvm, index, schema

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        return self._index.one(exact_predicate(self._jvm, partition_filters, self._schema, 1))


def rehearse(jvm: Jvm, index: FileIndex, constants: Any, frame: Any) -> None:
    """Lists one file the way Spark will when it plans a query, once per session. If that fails, the public interfaces still serve the
    read; during query planning it would be too late. `constants`: the index's StructType. `frame`: the relation over the index, whose last
    column is one of the constants. TypeError for an answer of another kind."""
    from pyspark.sql import functions as F

    if jvm.is_rehearsed:
        return
    constant = F.col(col(frame.columns[-1]))
    plan = frame.where(constant.isNull() | constant.isNotNull())._jdf.queryExecution().analyzed()
    schema = jvm.schema(constants.json())
    rehearsal, filters = _Rehearsal(jvm, index, schema), jvm.seq(plan.condition())
    rehearsal.listFiles(filters, jvm.seq())  # py4j logs what fails behind a call from the JVM, so it fails here first
    java = jvm.callbacks.made("ScanFiles", rehearsal, jvm.spark, "rehearsal", 1, schema)
    listed = java.listFiles(filters, jvm.seq())
    if listed.size() != 1 or listed.apply(0).files().size() != 1 or len(java.inputFiles()) != 1:
        raise TypeError("the files of a scan are not listed as they were given")
    jvm.is_rehearsed = True
