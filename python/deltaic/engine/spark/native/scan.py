"""A scan leaf as a DataFrame over Spark's own Parquet reader: one relation for each way in which the rows of a file count, united.

Files without a set of rows are scanned without any of what the others need.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from deltaic import _core
from deltaic.engine.spark.columns import ScanColumns
from deltaic.engine.spark.native.deleted_rows import ROW_INDEX, SETS, in_set, opaque
from deltaic.engine.spark.native.file_index import FileIndex, rehearse, relation
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.types import in_files, to_spark
from deltaic.protocol.schema import Field, Schema
from deltaic.relation.plan import FILE_COLUMN, Scan
from deltaic.scan.opening import numbered

ALL, EXCEPT, ONLY = 0, 1, 2
"""`__deltaic_rows` of `_core.hand_over`: which rows of a file count."""


def native_scan(jvm: Jvm, scan: Scan) -> Any:
    """A DataFrame of the scan's rows and columns, hidden ones last. Its conditions are not applied here."""
    files = numbered(scan.files) if scan.row_ids else scan.files
    handed = _core.hand_over(scan.store, scan.table_schema, files)
    columns = ScanColumns(scan)
    kinds = handed["__deltaic_rows"].to_numpy()
    frames = []
    for kind in (ALL, EXCEPT, ONLY):
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            part = pa.array(chosen)
            of_kind = (files, handed) if len(chosen) == len(kinds) else (files.take(part), handed.take(part))
            frames.append(_Part(jvm, scan, columns, kind).frame(*of_kind))
    if not frames:
        return jvm.spark.createDataFrame([], to_spark(columns.output))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


class _Part:
    """The files of a scan whose rows count in one way."""

    def __init__(self, jvm: Jvm, scan: Scan, columns: ScanColumns, kind: int) -> None:
        self.jvm, self.scan, self.columns, self.kind = jvm, scan, columns, kind

    def frame(self, files: pa.Table, handed: pa.Table) -> Any:
        from pyspark.sql import functions as F

        constants, schema = self._constants(files, handed)
        data = self.columns.in_files
        if self.kind != ALL or self.columns.positions:
            data = data.add(ROW_INDEX, "long")
        physical = _physical_schema(self.scan)
        index = FileIndex(self.jvm, self._key(handed, constants), handed, constants, to_spark(schema), files, physical)
        rows = relation(self.jvm, index, to_spark(schema), data, self.columns.reader_options)
        rehearse(self.jvm, index, rows)
        rows = self.columns.hidden(rows, lambda column, nested: opaque(self.jvm, column))
        if self.kind != ALL:
            counts = in_set(self.jvm, constants.column_names)
            rows = rows.where(counts if self.kind == ONLY else ~counts)
        position = F.col(f"`{ROW_INDEX}`") if self.columns.positions else None
        return rows.select(*self.columns.selected(position, lambda column, nested: opaque(self.jvm, column)))

    def _constants(self, files: pa.Table, handed: pa.Table) -> tuple[pa.Table, Schema]:
        """What every row of a file carries: partition values, sets of rows, and what the scan asks for."""
        names, arrays, fields = [], [], []
        wanted: list[tuple[Field, Any]] = [(in_files(field), handed[in_files(field).name]) for field in self.columns.partitions]
        if self.kind != ALL:
            wanted += [(Field(name, "binary"), handed[name]) for name in SETS if handed[name].null_count < handed.num_rows]
        wanted += [(field, files[field.name]) for field in self.columns.constants]
        for field, array in wanted:
            names.append(field.name)
            arrays.append(array)
            fields.append(field)
        if not fields:  # Spark takes a table without constants for one that is not partitioned
            names, fields = [FILE_COLUMN], [Field(FILE_COLUMN, "integer")]
            arrays = [pa.nulls(files.num_rows, pa.int32())]
        return pa.table(arrays, names=names), Schema(fields)

    def _key(self, handed: pa.Table, constants: pa.Table) -> str:
        """Two scans of the same files with the same constants and rows are one plan to Spark."""
        digest = hashlib.blake2b(f"{self.kind} {self.scan.store.location}".encode(), digest_size=16)
        for table in (handed.select(["__deltaic_status"]), constants):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table.combine_chunks())
            digest.update(sink.getvalue())
        return f"deltaic {self.scan.store.location} {digest.hexdigest()}"


def _physical_schema(scan: Scan) -> _core.TableSchema:
    """The table under the names that its files, and so Spark's filters, use."""
    schema = Schema.from_json(scan.table_schema.json)
    partitions = [in_files(schema.field(name)).name for name in scan.table_schema.partition_columns]
    return _core.TableSchema(Schema(map(in_files, schema)).to_json(), partitions, "none")
