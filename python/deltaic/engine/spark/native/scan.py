"""A scan leaf as a DataFrame over Spark's own Parquet reader: one relation for each way in which the rows of a file count, united.

Files without a set of rows are scanned without any of what the others need. Sets too large for the driver's heap stay away from it: tasks
read them, each those of its files.
"""

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
from deltaic.engine.spark.native.deleted_rows import ROW_INDEX, SETS, in_set, opaque
from deltaic.engine.spark.native.file_index import FileIndex, rehearse, relation, selected
from deltaic.engine.spark.native.files import Files, ListedFiles, SelectedFiles
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.portable import scan_apart
from deltaic.engine.spark.read_by_tasks import has_set, set_bytes
from deltaic.engine.spark.types import in_files, shown_to_spark
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.nodes import FILE_COLUMN, DeferredFiles, Scan
from deltaic.planning.opening import numbered
from deltaic.protocol.schema import Field, Schema

METADATA = "_metadata"
"""Spark's hidden column about the file that a row is in: its path, name, size, and the row's index in it."""

ALL, EXCEPT, ONLY = 0, 1, 2
"""`__deltaic_rows` of `_core.hand_over`: which rows of a file count."""


def native_scan(jvm: Jvm, scan: Scan, metadata: str | None = None) -> Any:
    """A DataFrame of the scan's rows and columns, hidden ones last. Its conditions are not applied here. `metadata`: the type, as JSON, of
    Spark's column `_metadata` about the file of a row, which is added; None: it is not."""
    columns = ScanColumns(scan, metadata=metadata is not None)
    frames = _given(jvm, scan, columns) if scan.later is None else _later(jvm, scan, scan.later, columns)
    if not frames:
        return _empty(jvm, columns, metadata)
    return reduce(lambda whole, other: whole.unionAll(other), frames)


def _empty(jvm: Jvm, columns: ScanColumns, metadata: str | None) -> Any:
    from pyspark.sql.types import StructType

    schema = shown_to_spark(columns.output)
    if metadata is not None:
        schema = schema.add(METADATA, StructType.fromJson(json.loads(metadata)), False)
    return jvm.spark.createDataFrame([], schema)


def _given(jvm: Jvm, scan: Scan, columns: ScanColumns) -> list[Any]:
    files = numbered(scan.files) if scan.row_ids else scan.files
    if set_bytes(files) <= jvm.most_set_bytes:
        return _listed(jvm, scan, files, columns)
    if columns.metadata:
        raise UnsupportedFeatureError(
            "_metadata of a table whose deletion vectors are larger than 1/8 of the driver's heap",
            where=scan.store.location,
            expected="a driver with more memory, or OPTIMIZE and REORG … APPLY (PURGE)",
        )
    marked = has_set(files)
    return [
        scan_apart(jvm.spark, replace(scan, files=files.filter(marked))),
        *_listed(jvm, scan, files.filter(pc.invert(marked)), columns),
    ]


def _listed(jvm: Jvm, scan: Scan, files: pa.Table, columns: ScanColumns) -> list[Any]:
    handed = _core.hand_over(scan.store, scan.table_schema, files)
    kinds = handed["__deltaic_rows"].to_numpy()
    frames = []
    for kind in (ALL, EXCEPT, ONLY):
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            part = pa.array(chosen)
            of_kind = (files, handed) if len(chosen) == len(kinds) else (files.take(part), handed.take(part))
            frames.append(_Part(jvm, scan, columns, kind).given(*of_kind))
    return frames


def _later(jvm: Jvm, scan: Scan, later: DeferredFiles, columns: ScanColumns) -> list[Any]:
    return [_Part(jvm, scan, columns, kind).later(later) for kind, (count, _) in ((ALL, later.plain), (EXCEPT, later.marked)) if count]


class _Part:
    """The files of a scan whose rows count in one way."""

    def __init__(self, jvm: Jvm, scan: Scan, columns: ScanColumns, kind: int) -> None:
        self.jvm, self.scan, self.columns, self.kind = jvm, scan, columns, kind

    def given(self, files: pa.Table, handed: pa.Table) -> Any:
        sets = [name for name in SETS if handed[name].null_count < handed.num_rows]
        schema = self._schema(sets)
        constants = self._constants(schema, files, handed)
        source = ListedFiles(self.jvm, handed, constants, shown_to_spark(schema), files, self.scan.table_schema)
        return self._frame(source, _digest(handed.select(["__deltaic_status"]), constants), schema, sets)

    def later(self, later: DeferredFiles) -> Any:
        """Which form the set of a file's rows has is not known before the file is."""
        schema = self._schema(SETS)

        def describe(adds: pa.Table) -> tuple[pa.Table, Any]:
            handed = _core.hand_over(self.scan.store, self.scan.table_schema, adds)
            return self._constants(schema, adds, handed), handed["__deltaic_status"]

        def invent() -> tuple[pa.Table, Any]:
            types = _core.TableSchema(schema.to_json()).to_arrow()
            adds = pa.table({"path": ["invented"], "size": [0]})
            handed = _core.hand_over(self.scan.store, _core.TableSchema(Schema([]).to_json()), adds)
            return pa.table([pa.nulls(1, field.type) for field in types], schema=types), handed["__deltaic_status"]

        source = SelectedFiles(self.jvm, later, self.kind != ALL, shown_to_spark(schema), describe, invent)
        key = hashlib.blake2b(later.key.encode(), digest_size=16).hexdigest()
        return self._frame(source, key, schema, SETS)

    def _frame(self, files: Files, key: str, constants: Schema, sets: Sequence[str]) -> Any:
        from pyspark.sql import functions as F

        schema, data = shown_to_spark(constants), self.columns.in_files
        needs_index = self.kind != ALL or self.columns.positions
        if needs_index and not self.columns.metadata:
            data = data.add(ROW_INDEX, "long")
        index = FileIndex(self.jvm, f"deltaic {self.scan.store.location} {self.kind} {key}", files, schema, self.scan)
        rows = relation(self.jvm, index.java(), schema, data, self.columns.reader_options)
        rehearse(self.jvm, index, schema, rows)
        if self.columns.metadata:  # Spark's reader gives the row's index in one of two columns, not in both
            about = rows.metadataColumn(METADATA)
            index_too = [about["row_index"].alias(ROW_INDEX)] if needs_index else []
            rows = rows.select("*", about.alias(METADATA), *index_too)
        rows = self.columns.hidden(rows, lambda column, nested: opaque(self.jvm, column))
        if self.kind != ALL:
            counts = in_set(self.jvm, sets)
            rows = rows.where(counts if self.kind == ONLY else ~counts)
        if not self.columns.metadata and (plain := self.columns.plain(ROW_INDEX)) is not None:
            return selected(self.jvm, rows, plain)
        position = F.col(f"`{ROW_INDEX}`") if self.columns.positions else None
        about_file = [F.col(METADATA)] if self.columns.metadata else []
        return rows.select(*self.columns.selected(position, lambda column, nested: opaque(self.jvm, column)), *about_file)

    def _schema(self, sets: Sequence[str]) -> Schema:
        """Returns the schema of a file's constants: partition values, deletion vectors, and columns that the scan asks for."""
        fields = [in_files(field) for field in self.columns.partitions]
        if self.kind != ALL:
            fields += [Field(name, "binary") for name in sets]
        fields += self.columns.constants
        # Spark takes a table without constants for one that is not partitioned.
        return Schema(fields or [Field(FILE_COLUMN, "integer")])

    def _constants(self, schema: Schema, files: pa.Table, handed: pa.Table) -> pa.Table:
        own = {field.name for field in self.columns.constants}
        names = list(schema.names)
        arrays = [files[name] if name in own else handed[name] if name in handed.column_names else _nulls(files.num_rows) for name in names]
        return pa.table(arrays, names=names)


def _nulls(rows: int) -> pa.Array:
    return pa.nulls(rows, pa.int32())


def _digest(*tables: pa.Table) -> str:
    """Two scans of the same files with the same constants and rows are one plan to Spark."""
    digest = hashlib.blake2b(digest_size=16)
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        digest.update(sink.getvalue())
    return digest.hexdigest()
