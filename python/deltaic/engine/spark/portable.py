"""A scan leaf by public APIs alone: Spark's Parquet reader over the files' paths; constants and sets of rows joined by the file's path.
Sets that are large go to no task but those that have rows of their files.

For sessions without py4j, and for those whose internals are not what they were. Same rows as `native`, more work for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.columns import BY_ID, ScanColumns
from deltaic.engine.spark.native.session import has_jvm
from deltaic.engine.spark.read_by_tasks import are_large, has_set, read_by_tasks
from deltaic.engine.spark.settings import is_on
from deltaic.engine.spark.stores import travels
from deltaic.engine.spark.types import in_files, shown_to_spark, to_spark
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.nodes import Scan
from deltaic.planning.opening import numbered
from deltaic.protocol.schema import Array, Field

PATH = "__deltaic_path"
INDEX = "__deltaic_index"
KIND = "__deltaic_rows"
WORDS = "__deltaic_words"
NUMBER = "__deltaic_number"
_PATTERN = re.compile(r"[\\{}\[\]*?]")
SENT_BYTES = 16 * 1024**2
"""Maximum bytes of deletion vectors that one task shuffles; a single larger vector is still sent."""

# Whether the row's bit is set; a row behind the last word is in no set.
_IN_SET = f"coalesce(shiftright(get({WORDS}, CAST(shiftright({INDEX}, 6) AS INT)), CAST({INDEX} & 63 AS INT)) & 1, 0) = 1"
_COUNTS = f"CASE {KIND} WHEN 0 THEN true WHEN 1 THEN NOT {_IN_SET} ELSE {_IN_SET} END"


def portable_scan(spark: Any, scan: Scan) -> Any:
    """A DataFrame of the scan's rows and columns, hidden ones last. Its conditions are not applied here. Sets of rows that are large in all
    are not for every task: the files that have some are read by `_core` then, where tasks reach the table's store; where only Hadoop does,
    rows and sets meet file by file in a shuffle."""
    files = numbered(scan.files) if scan.row_ids else scan.files
    if scan.table_schema.column_mapping == "id" and files.num_rows and not is_on(spark, BY_ID):
        return _read_by_ids(spark, replace(scan, files=files))
    marked = has_set(files)
    if not are_large(files.filter(marked)):
        return _joined(spark, scan, files)
    with_sets, others = replace(scan, files=files.filter(marked)), files.filter(pc.invert(marked))
    rows = scan_apart(spark, with_sets)
    return rows.unionAll(_joined(spark, scan, others)) if others.num_rows else rows


def _read_by_ids(spark: Any, scan: Scan) -> Any:
    """By `_core`: Spark's reader heeds ids only where a setting of the session is on when a query runs, which is the user's to change."""
    if not travels(scan.store):
        raise UnsupportedFeatureError(
            "columns by their ids, where only Hadoop reaches the table, by Spark's public interfaces",
            where=scan.store.location,
            expected=f"the setting {BY_ID} on",
        )
    return read_by_tasks(spark, scan)


def scan_apart(spark: Any, scan: Scan) -> Any:
    """Like `portable_scan`, for files that all have a set of rows: each task gets only the sets of its own files. `scan.files` must carry
    `__deltaic_file` where row ids are wanted."""
    return read_by_tasks(spark, scan) if travels(scan.store) else _joined(spark, scan, scan.files, apart=True)


def _joined(spark: Any, scan: Scan, files: pa.Table, *, apart: bool = False) -> Any:
    """The rows of these files by Spark's reader. `apart`: no task has the sets of rows of all files."""
    from pyspark.sql import functions as F

    columns = ScanColumns(scan)
    if not files.num_rows:
        return spark.createDataFrame([], shown_to_spark(columns.output))
    handed = _core.hand_over(scan.store, scan.table_schema, files, bits=True)
    data = columns.in_files
    rows = _parquet(spark, handed["__deltaic_place"].to_pylist(), data, columns.reader_options)
    shown = _shown(handed, lambda place: _parquet(spark, [place], data, columns.reader_options))
    # A name of the reader's own: a column of the table may be called _metadata.
    picked = [F.col(f"`{name}`") for name in data.names]
    hidden = rows.metadataColumn("_metadata")
    rows = rows.select(*picked, hidden["file_path"].alias(PATH), hidden["row_index"].alias(INDEX))
    rows = rows.join(F.broadcast(_constants(spark, columns, files, handed.append_column(PATH, shown), apart)), PATH, "inner")
    if apart:
        rows = rows.join(_sets(spark, handed["__deltaic_bits"]).hint("shuffle_hash"), NUMBER, "inner")
    if handed[KIND].to_numpy().any():
        rows = rows.where(F.expr(_COUNTS))
    rows = columns.hidden(rows, _opaque)
    return rows.select(*columns.selected(F.col(INDEX) if columns.positions else None, _opaque))


def _opaque(column: Any, nested: bool) -> Any:
    """The column behind an expression that no source looks through."""
    from pyspark.sql import functions as F

    return F.transform(F.array(column), lambda item: item)[0] if nested else F.nanvl(column, F.lit(float("nan")))


def _parquet(spark: Any, places: list[str], data: Any, options: dict[str, str]) -> Any:
    """The rows of these files; no folder is listed, no name is taken for a pattern or a partition."""
    if not has_jvm(spark):  # Spark Connect takes all names for patterns
        places = [_PATTERN.sub(r"\\\g<0>", place) for place in places]
    return spark.read.schema(data).options(**options, __globPaths__="false", recursiveFileLookup="true").parquet(*places)


def _shown(handed: pa.Table, rows_of: Callable[[str], Any]) -> pa.ChunkedArray:
    """The files' paths as Spark shows them: Hadoop fills in what a location leaves out (`hdfs:///t`), so it is asked once for each root.
    `rows_of`: the rows of the file at a place."""
    places, shown = handed["__deltaic_place"], handed["__deltaic_shown"]
    roots = pc.struct_field(pc.extract_regex(places, "^(?P<root>[^:/]+://[^/]*)"), "root")
    for root in pc.unique(roots).to_pylist():
        if root == "file://":
            continue
        first = pc.index(roots, root).as_py()
        rest = shown[first].as_py()[len(root) :]
        (found,) = rows_of(places[first].as_py()).inputFiles()
        if not found.endswith(rest):
            raise UnsupportedFeatureError(
                "a file system that shows paths otherwise", where=places[first].as_py(), found=found, expected=f"...{rest}"
            )
        # A row's path is without an empty authority, which that of the reader's files is with.
        completed = found[: len(found) - len(rest)].removesuffix("//")
        other = pc.binary_join_element_wise(completed, pc.utf8_slice_codeunits(shown, len(root)), "")
        shown = pc.if_else(pc.equal(roots, root), other, shown)
    return shown


def _constants(spark: Any, columns: ScanColumns, files: pa.Table, handed: pa.Table, apart: bool) -> Any:
    """A row for each file: its path as Spark shows it, partition values, what the scan asks for, and which of its rows count: the set
    itself, or by which number `_sets` knows it."""
    found: list[tuple[Field, Any]] = [(Field(PATH, "string"), handed[PATH])]
    found += [(in_files(field), handed[in_files(field).name]) for field in columns.partitions]
    found += [(field, files[field.name]) for field in columns.constants]
    if apart:
        found += [(Field(KIND, "byte"), handed[KIND]), (Field(NUMBER, "integer"), _numbers(files.num_rows))]
    elif handed[KIND].to_numpy().any():
        found += [(Field(KIND, "byte"), handed[KIND]), (Field(WORDS, Array("long")), _words(handed["__deltaic_bits"]))]
    table = pa.table([array for _, array in found], names=[field.name for field, _ in found])
    return spark.createDataFrame(table, shown_to_spark(field for field, _ in found))


def _sets(spark: Any, bits: pa.ChunkedArray) -> Any:
    """A row for each file: its number and its set of rows. A batch of them is a task's."""
    table = pa.table({NUMBER: _numbers(len(bits)), WORDS: _words(bits)})
    task = np.cumsum(pc.fill_null(pc.binary_length(bits), 0).to_numpy().astype(np.int64)) // SENT_BYTES
    starts = np.flatnonzero(np.diff(task, prepend=-1)).tolist()
    parts = [table.slice(start, end - start) for start, end in zip(starts, [*starts[1:], len(bits)], strict=True)]
    return spark.createDataFrame(pa.concat_tables(parts), to_spark([Field(NUMBER, "integer"), Field(WORDS, Array("long"))]))


def _numbers(count: int) -> pa.Array:
    return pa.array(np.arange(count, dtype=np.int32))


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
