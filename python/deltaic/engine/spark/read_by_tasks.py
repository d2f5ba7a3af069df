"""Reads data files with `_core` inside Spark's tasks, by PySpark's public interfaces alone.

A task gets the add actions of its files, with their selected row indexes, and reads the files' deletion
vectors from the table's store. So a deletion vector is read only by the task that reads its file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.batches import as_schema, of_bytes, spark_arrow_schema, to_bytes
from deltaic.engine.spark.types import shown_to_spark
from deltaic.plan.nodes import FILE_COLUMN, Scan
from deltaic.planning.opening import scan_schema

MOST_BITS = 16 * 1024**2
"""Maximum bytes of the row indexes of all files, as bitmaps, that are broadcast to every task. Above it, a
task gets only those of its own files."""
TASK_BYTES = 128 * 1024**2
"""Maximum bytes of files that one task reads; a single larger file is still allowed."""
_TASK_COLUMNS = (
    "path",
    "size",
    "partitionValues",
    "deletionVector",
    "stats",
    "selection",
    "keep_selected",
    "baseRowId",
    "defaultRowCommitVersion",
)


def has_row_indexes(files: pa.Table) -> pa.Array:
    """Returns, for each file, True if it has a deletion vector or selected row indexes, so that not all its
    rows are read."""
    columns = [name for name in ("deletionVector", "selection") if name in files.column_names]
    is_partial = np.zeros(files.num_rows, dtype=bool)
    for name in columns:
        is_partial |= files[name].is_valid().combine_chunks().to_numpy(zero_copy_only=False)
    return pa.array(is_partial)


def are_large(files: pa.Table) -> bool:
    """True if the row indexes of these files are too large to broadcast (MOST_BITS). A bitmap has one bit for
    each row up to its last row. That row is unknown until the deletion vector is read, so each row of the
    file counts as a bit."""
    if files.num_rows == 0:
        return False
    rows = _core.physical_rows(files)
    return bool(rows.null_count) or int(np.sum(rows.to_numpy())) // 8 > MOST_BITS


def row_index_bytes(files: pa.Table) -> int:
    """Returns the total bytes of these files' deletion vectors, as they are stored, and of their selected row
    indexes."""
    lengths = {
        "deletionVector": lambda column: pc.struct_field(column, "sizeInBytes"),
        "selection": pc.binary_length,
    }
    return sum(
        int(pc.sum(length(files[name])).as_py() or 0)
        for name, length in lengths.items()
        if name in files.column_names
    )


def read_by_tasks(spark: Any, scan: Scan) -> Any:
    """Returns a DataFrame of the scan's rows and columns, the hidden columns (row ids, row tracking) last.
    The scan's conditions are not applied here. `scan.files` must have the column `__deltaic_file` if the scan
    has row ids."""
    schema = shown_to_spark(scan_schema(scan))
    arrow, store, columns = spark_arrow_schema(schema), scan.store, scan.columns
    definition = (
        scan.table_schema.json,
        scan.table_schema.partition_columns,
        scan.table_schema.column_mapping,
    )
    row_ids, constants, tracking = scan.row_ids, [item.name for item in scan.constants], scan.row_tracking

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table_schema = _core.TableSchema(*definition)
        for batch in batches:
            for part in batch.column("files").to_pylist():
                stream = _core.read(
                    store,
                    table_schema,
                    of_bytes(part),
                    columns,
                    row_ids=row_ids,
                    constants=constants,
                    row_tracking=tracking,
                    threads=1,
                )
                for rows in stream.to_reader():
                    yield as_schema(rows, arrow)

    parts = _parts(
        scan.files.select(
            [name for name in scan.files.column_names if name in {*_TASK_COLUMNS, FILE_COLUMN, *constants}]
        )
    )
    part_rows = spark.createDataFrame(
        pa.table({"part": range(len(parts)), "files": parts}), "part bigint, files binary"
    )
    return part_rows.repartitionByRange(len(parts), "part").select("files").mapInArrow(task, schema)


def _parts(files: pa.Table) -> list[bytes]:
    """Returns the files of each task as an Arrow stream: neighbouring files of about TASK_BYTES in total."""
    task = np.cumsum(files["size"].to_numpy(zero_copy_only=False).astype(np.float64)) // TASK_BYTES
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    ends = np.append(starts[1:], files.num_rows)
    return [
        to_bytes(files.slice(start, end - start))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
