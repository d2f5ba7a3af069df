"""A scan leaf by public APIs alone: Spark's Parquet reader over the files' paths; constants and sets of rows joined by the file's path,
unless the sets are large.

For sessions without py4j, and for those whose internals are not what they were. Same rows as `native`, more work for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.columns import BY_ID, ScanColumns
from deltaic.engine.spark.read_by_tasks import are_large, has_set, read_by_tasks
from deltaic.engine.spark.stores import travels
from deltaic.engine.spark.types import in_files, to_spark
from deltaic.protocol.schema import Array, Field
from deltaic.relation.plan import Scan
from deltaic.scan.opening import numbered

PATH = "__deltaic_path"
INDEX = "__deltaic_index"
KIND = "__deltaic_rows"
WORDS = "__deltaic_words"

# Whether the row's bit is set; a row behind the last word is in no set.
_IN_SET = f"coalesce(shiftright(get({WORDS}, CAST(shiftright({INDEX}, 6) AS INT)), CAST({INDEX} & 63 AS INT)) & 1, 0) = 1"
_COUNTS = f"CASE {KIND} WHEN 0 THEN true WHEN 1 THEN NOT {_IN_SET} ELSE {_IN_SET} END"


def portable_scan(spark: Any, scan: Scan) -> Any:
    """A DataFrame of the scan's rows and columns, hidden ones last. Its conditions are not applied here. Sets of rows that are large in all
    are not for every task: the files that have some are read by `_core` then, where tasks reach the table's store."""
    files = numbered(scan.files) if scan.row_ids else scan.files
    if travels(scan.store):
        marked = has_set(files)
        if are_large(files.filter(marked)):
            others = files.filter(pc.invert(marked))
            by_tasks = read_by_tasks(spark, replace(scan, files=files.filter(marked)))
            return by_tasks.unionAll(_joined(spark, scan, others)) if others.num_rows else by_tasks
    return _joined(spark, scan, files)


def _joined(spark: Any, scan: Scan, files: pa.Table) -> Any:
    """The same, of files whose sets of rows every task may have."""
    from pyspark.sql import functions as F

    columns = ScanColumns(scan)
    if not files.num_rows:
        return spark.createDataFrame([], to_spark(columns.output))
    handed = _core.hand_over(scan.store, scan.table_schema, files, bits=True)
    data = columns.in_files
    if columns.by_id:  # an option of the reader comes through in lower case, which is not the setting's name
        spark.conf.set(BY_ID, "true")
    rows = _parquet(spark, handed["__deltaic_place"].to_pylist(), data, columns.reader_options)
    # A name of the reader's own: a column of the table may be called _metadata.
    picked = [F.col(f"`{name}`") for name in data.names]
    hidden = rows.metadataColumn("_metadata")
    rows = rows.select(*picked, hidden["file_path"].alias(PATH), hidden["row_index"].alias(INDEX))
    rows = rows.join(F.broadcast(_constants(spark, columns, files, handed)), PATH, "inner")
    if handed[KIND].to_numpy().any():
        rows = rows.where(F.expr(_COUNTS))
    rows = columns.hidden(rows, _opaque)
    return rows.select(*columns.selected(F.col(INDEX) if columns.positions else None, _opaque))


def _opaque(column: Any, nested: bool) -> Any:
    """The same values behind an expression that no source looks through."""
    from pyspark.sql import functions as F

    return F.transform(F.array(column), lambda item: item)[0] if nested else F.nanvl(column, F.lit(float("nan")))


def _parquet(spark: Any, places: list[str], data: Any, options: dict[str, str]) -> Any:
    """The rows of these files; no folder is listed, no name is taken for a pattern or a partition."""
    return spark.read.schema(data).options(**options, __globPaths__="false", recursiveFileLookup="true").parquet(*places)


def _constants(spark: Any, columns: ScanColumns, files: pa.Table, handed: pa.Table) -> Any:
    """A row for each file: its path as Spark shows it, partition values, what the scan asks for, and which of its rows count."""
    found: list[tuple[Field, Any]] = [(Field(PATH, "string"), handed["__deltaic_shown"])]
    found += [(in_files(field), handed[in_files(field).name]) for field in columns.partitions]
    found += [(field, files[field.name]) for field in columns.constants]
    if handed[KIND].to_numpy().any():
        found += [(Field(KIND, "byte"), handed[KIND]), (Field(WORDS, Array("long")), _words(handed["__deltaic_bits"]))]
    table = pa.table([array for _, array in found], names=[field.name for field, _ in found])
    return spark.createDataFrame(table, to_spark(field for field, _ in found))


def _words(bits: pa.ChunkedArray) -> pa.Array:
    """Sets of bits as lists of 64-bit words: the same bytes under another type."""
    whole = bits.combine_chunks()
    if not len(whole) or whole.null_count == len(whole):
        return pa.nulls(len(whole), pa.list_(pa.int64()))
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[whole.offset : whole.offset + len(whole) + 1]
    values = pa.Array.from_buffers(pa.int64(), int(ends[-1]) // 8, [None, data])
    valid = whole.is_valid().to_numpy(zero_copy_only=False)
    return pa.ListArray.from_arrays(pa.array(ends // 8), values, mask=pa.array(~valid))
