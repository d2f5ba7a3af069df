"""Makes a DataFrame of a scan, over Spark's Parquet reader: the union of a relation over the files with all
rows, one over the files with deletion vectors, and one over the files of which only selected rows are read.

So files without a deletion vector are read without a filter on row indexes. Deletion vectors that are too
large for the driver's heap are not sent to the JVM: each task reads those of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.columns import ScanColumns
from deltaic.engine.spark.native.deleted_rows import INDEX_COLUMNS, ROW_INDEX, in_row_indexes, opaque
from deltaic.engine.spark.native.file_index import (
    FileIndex,
    java_relation,
    rehearse,
    relation_frame,
    selected,
)
from deltaic.engine.spark.native.files import Files, ListedFiles, SelectedFiles
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.portable import scan_apart
from deltaic.engine.spark.read_by_tasks import has_row_indexes, row_index_bytes
from deltaic.engine.spark.types import in_files, shown_to_spark
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.nodes import FILE_COLUMN, DeferredFiles, Scan
from deltaic.planning.opening import numbered
from deltaic.protocol.schema import Field, Schema
from deltaic.sql_text import spark_name

METADATA = "_metadata"
"""Spark's hidden column about the file of a row: the file's path, name and size, and the row's index in
it."""

ALL, EXCEPT, ONLY = 0, 1, 2
"""Values of `__deltaic_rows` of `_core.hand_over`: read all rows of a file, all except those in its row
indexes (a deletion vector), or only those in its row indexes (selected rows)."""


def native_scan(jvm: Jvm, scan: Scan, metadata: str | None = None) -> Any:
    """Returns a DataFrame of the scan's rows and columns, the hidden columns (row ids, row tracking) last.
    The scan's conditions are not applied here. `metadata`: the type, as JSON, of Spark's column `_metadata`,
    which is then the last column, in place of the hidden columns of row tracking; None adds no such
    column."""
    columns = ScanColumns(scan, metadata=None if metadata is None else metadata_fields(metadata))
    frames = (
        _frames(jvm, scan, columns)
        if scan.later is None
        else _deferred_frames(jvm, scan, scan.later, columns)
    )
    if not frames:
        return _empty(jvm, columns, metadata)
    return reduce(lambda whole, other: whole.unionAll(other), frames)


def metadata_fields(metadata: str) -> list[str]:
    """Returns the names of the fields of `_metadata`, whose type is given as JSON."""
    return [field["name"] for field in json.loads(metadata)["fields"]]


def _empty(jvm: Jvm, columns: ScanColumns, metadata: str | None) -> Any:
    from pyspark.sql.types import StructType

    schema = shown_to_spark(columns.output)
    if metadata is not None:
        schema = schema.add(METADATA, StructType.fromJson(json.loads(metadata)), False)
    return jvm.spark.createDataFrame([], schema)


def _frames(jvm: Jvm, scan: Scan, columns: ScanColumns) -> list[Any]:
    files = numbered(scan.files) if scan.row_ids else scan.files
    if row_index_bytes(files) <= jvm.most_set_bytes:
        return _native_frames(jvm, scan, files, columns)
    if columns.metadata is not None:
        raise UnsupportedFeatureError(
            "_metadata is not supported if deletion vectors are larger than 1/8 of the driver's heap",
            where=scan.store.location,
            expected="a driver with more memory, or OPTIMIZE and REORG … APPLY (PURGE)",
        )
    is_partial = has_row_indexes(files)
    return [
        scan_apart(jvm.spark, replace(scan, files=files.filter(is_partial))),
        *_native_frames(jvm, scan, files.filter(pc.invert(is_partial)), columns),
    ]


def _native_frames(jvm: Jvm, scan: Scan, files: pa.Table, columns: ScanColumns) -> list[Any]:
    spark_files = _core.hand_over(scan.store, scan.table_schema, files)
    kinds = spark_files["__deltaic_rows"].to_numpy()
    frames = []
    for kind in (ALL, EXCEPT, ONLY):
        positions = np.flatnonzero(kinds == kind)
        if len(positions):
            part = pa.array(positions)
            of_kind = (
                (files, spark_files)
                if len(positions) == len(kinds)
                else (files.take(part), spark_files.take(part))
            )
            frames.append(_Part(jvm, scan, columns, kind).listed(*of_kind))
    return frames


def _deferred_frames(jvm: Jvm, scan: Scan, later: DeferredFiles, columns: ScanColumns) -> list[Any]:
    kinds = ((ALL, later.plain), (EXCEPT, later.marked))
    return [_Part(jvm, scan, columns, kind).deferred(later) for kind, (count, _) in kinds if count]


class _Part:
    """The files of a scan of one kind: ALL, EXCEPT or ONLY."""

    def __init__(self, jvm: Jvm, scan: Scan, columns: ScanColumns, kind: int) -> None:
        self.jvm, self.scan, self.columns, self.kind = jvm, scan, columns, kind

    def listed(self, files: pa.Table, spark_files: pa.Table) -> Any:
        """Returns a DataFrame of the rows of these files. `spark_files`: the result of `_core.hand_over` for
        them."""
        names = [name for name in INDEX_COLUMNS if spark_files[name].null_count < spark_files.num_rows]
        schema = self._schema(names)
        constants = self._constants(schema, files, spark_files)
        source = ListedFiles(
            self.jvm, spark_files, constants, shown_to_spark(schema), files, self.scan.table_schema
        )
        return self._frame(
            source, _digest(spark_files.select(["__deltaic_status"]), constants), schema, names
        )

    def deferred(self, later: DeferredFiles) -> Any:
        """Returns a DataFrame of the rows of the files that each query over it selects. Its constants have
        columns for both forms of row indexes, because the form depends on the file."""
        schema = self._schema(INDEX_COLUMNS)

        def describe(adds: pa.Table) -> tuple[pa.Table, Any]:
            self.columns.check_files(adds)
            spark_files = _core.hand_over(self.scan.store, self.scan.table_schema, adds)
            return self._constants(schema, adds, spark_files), spark_files["__deltaic_status"]

        def invent() -> tuple[pa.Table, Any]:
            types = _core.TableSchema(schema.to_json()).to_arrow()
            adds = pa.table({"path": ["invented"], "size": [0]})
            spark_files = _core.hand_over(self.scan.store, _core.TableSchema(Schema([]).to_json()), adds)
            return pa.table([pa.nulls(1, field.type) for field in types], schema=types), spark_files[
                "__deltaic_status"
            ]

        source = SelectedFiles(self.jvm, later, self.kind != ALL, shown_to_spark(schema), describe, invent)
        key = hashlib.blake2b(later.key.encode(), digest_size=16).hexdigest()
        return self._frame(source, key, schema, INDEX_COLUMNS)

    def _frame(self, files: Files, key: str, constants: Schema, index_columns: Sequence[str]) -> Any:
        """Returns a DataFrame over a file index. `key`: text that is equal for equal scans. `index_columns`:
        those of INDEX_COLUMNS that are among the constants."""
        from pyspark.sql import functions as F

        schema, data = shown_to_spark(constants), self.columns.in_files
        needs_index = self.kind != ALL or self.columns.positions
        if needs_index and self.columns.metadata is None:
            data = data.add(ROW_INDEX, "long")
        index = FileIndex(
            self.jvm, f"deltaic {self.scan.store.location} {self.kind} {key}", files, schema, self.scan
        )
        rows = relation_frame(
            self.jvm, java_relation(self.jvm, index.java(), schema, data, self.columns.reader_options)
        )
        rehearse(self.jvm, index, schema, rows)
        if self.columns.metadata is not None:
            # Spark's reader fills either ROW_INDEX or `_metadata.row_index`, never both.
            file_metadata = rows.metadataColumn(METADATA)
            row_index = [file_metadata["row_index"].alias(ROW_INDEX)] if needs_index else []
            rows = rows.select("*", file_metadata.alias(METADATA), *row_index)
        rows = self.columns.hidden(rows, lambda column, nested: opaque(self.jvm, column))
        if self.kind != ALL:
            is_listed = in_row_indexes(self.jvm, index_columns)
            rows = rows.where(is_listed if self.kind == ONLY else ~is_listed)
        if self.columns.metadata is None and (plain := self.columns.plain(ROW_INDEX)) is not None:
            return selected(self.jvm, rows, plain)
        position = F.col(spark_name(ROW_INDEX)) if self.columns.positions else None
        columns = self.columns.selected(position, lambda column, nested: opaque(self.jvm, column))
        if self.columns.metadata is not None:
            columns.append(self.columns.metadata_column(F.col(METADATA), position).alias(METADATA))
        return rows.select(*columns)

    def _schema(self, index_columns: Sequence[str]) -> Schema:
        """Returns the schema of a file's constants: partition values, row indexes, and the scan's
        constants."""
        fields = [in_files(field) for field in self.columns.partitions]
        if self.kind != ALL:
            fields += [Field(name, "binary") for name in index_columns]
        fields += self.columns.constants
        # Never empty, because Spark treats a relation without constants as an unpartitioned one.
        return Schema(fields or [Field(FILE_COLUMN, "integer")])

    def _constants(self, schema: Schema, files: pa.Table, spark_files: pa.Table) -> pa.Table:
        """Returns the columns of `schema`, with a row for each file. A column that neither table has is
        null."""
        scan_constants = {field.name for field in self.columns.constants}

        def values(name: str) -> Any:
            if name in scan_constants:
                return files[name]
            return (
                spark_files[name]
                if name in spark_files.column_names
                else pa.nulls(files.num_rows, pa.int32())
            )

        return pa.table([values(name) for name in schema.names], names=list(schema.names))


def _digest(*tables: pa.Table) -> str:
    """Returns a digest of the tables' rows. It is part of the key of a file index: Spark then considers two
    scans of the same files with the same constants as equal plans, and may cache or reuse the rows."""
    digest = hashlib.blake2b(digest_size=16)
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        digest.update(sink.getvalue())
    return digest.hexdigest()
