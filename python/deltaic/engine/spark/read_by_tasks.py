"""Files whose rows `_core` reads within Spark's tasks: by public APIs each file's vector gets to the task that needs it, and to no other.

A task is given rows of `add`, chosen rows included, and reads vectors from the table's store by itself.
"""

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
"""Bytes of sets of rows, as bits, that every task may be given as a whole."""
TASK_BYTES = 128 * 1024**2
"""Maximum bytes of files that one task reads; a single larger file is still allowed."""
_READ = ("path", "size", "partitionValues", "deletionVector", "stats", "selection", "keep_selected", "baseRowId", "defaultRowCommitVersion")


def has_set(files: pa.Table) -> pa.Array:
    """Which files have rows that do not count (bool)."""
    given = [files[name].is_valid().combine_chunks() for name in ("deletionVector", "selection") if name in files.column_names]
    found = np.zeros(files.num_rows, dtype=bool)
    for each in given:
        found |= each.to_numpy(zero_copy_only=False)
    return pa.array(found)


def are_large(files: pa.Table) -> bool:
    """True if the sets of these files are too large for all tasks to have them. As bits a set goes up to its last row; that is not known
    before it is read, so each is taken for as long as its file."""
    if files.num_rows == 0:
        return False
    rows = _core.physical_rows(files)
    return bool(rows.null_count) or int(np.sum(rows.to_numpy())) // 8 > MOST_BITS


def set_bytes(files: pa.Table) -> int:
    """Bytes that the sets of deleted rows of these files take as they are stored."""
    lengths = {"deletionVector": lambda column: pc.struct_field(column, "sizeInBytes"), "selection": pc.binary_length}
    return sum(int(pc.sum(length(files[name])).as_py() or 0) for name, length in lengths.items() if name in files.column_names)


def read_by_tasks(spark: Any, scan: Scan) -> Any:
    """A DataFrame of the scan's rows and columns, hidden ones last. Its conditions are not applied here. `files` are numbered already
    where their numbers are asked for."""
    schema = shown_to_spark(scan_schema(scan))
    arrow, store, columns = spark_arrow_schema(schema), scan.store, scan.columns
    definition = (scan.table_schema.json, scan.table_schema.partition_columns, scan.table_schema.column_mapping)
    row_ids, constants, tracking = scan.row_ids, [item.name for item in scan.constants], scan.row_tracking

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table_schema = _core.TableSchema(*definition)
        for batch in batches:
            for part in batch.column("files").to_pylist():
                stream = _core.read(
                    store, table_schema, of_bytes(part), columns, row_ids=row_ids, constants=constants, row_tracking=tracking, threads=1
                )
                for rows in stream.to_reader():
                    yield as_schema(rows, arrow)

    parts = _parts(scan.files.select([name for name in scan.files.column_names if name in {*_READ, FILE_COLUMN, *constants}]))
    given = spark.createDataFrame(pa.table({"part": range(len(parts)), "files": parts}), "part bigint, files binary")
    return given.repartitionByRange(len(parts), "part").select("files").mapInArrow(task, schema)


def _parts(files: pa.Table) -> list[bytes]:
    """Neighbouring files together."""
    task = np.cumsum(files["size"].to_numpy(zero_copy_only=False).astype(np.float64)) // TASK_BYTES
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    ends = np.append(starts[1:], files.num_rows)
    return [to_bytes(files.slice(start, end - start)) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
