"""Scans on the public path, by PySpark's public interfaces alone: Spark's Parquet reader reads the files'
paths, and its rows are joined by path with the files' constants and deletion vectors. Deletion vectors that
are large in total are sent only to the tasks that have rows of their files.

Spark Connect uses this path, because it has no py4j, and so does a session whose Java classes are not those
that `native` expects. The rows are those of the native path; the join makes the scan slower."""

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
from deltaic.engine.spark.read_by_tasks import are_large, has_row_indexes, read_by_tasks
from deltaic.engine.spark.settings import is_on
from deltaic.engine.spark.stores import travels
from deltaic.engine.spark.types import in_files, shown_to_spark, to_spark
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.nodes import Scan
from deltaic.planning.opening import numbered
from deltaic.protocol.schema import Array, Field
from deltaic.sql_text import spark_name

PATH = "__deltaic_path"
INDEX = "__deltaic_index"
KIND = "__deltaic_rows"
WORDS = "__deltaic_words"
NUMBER = "__deltaic_number"
_PATTERN = re.compile(r"[\\{}\[\]*?]")
SENT_BYTES = 16 * 1024**2
"""Maximum bytes of deletion vectors in one task of a shuffle; a single larger vector has a task of its
own."""

# SQL: true if the row's bit is set. `get` returns null for a row behind the last word.
_IN_SET = (
    f"coalesce(shiftright(get({WORDS}, CAST(shiftright({INDEX}, 6) AS INT)), CAST({INDEX} & 63 AS INT)) & 1,"
    " 0) = 1"
)
_COUNTS = f"CASE {KIND} WHEN 0 THEN true WHEN 1 THEN NOT {_IN_SET} ELSE {_IN_SET} END"


def portable_scan(spark: Any, scan: Scan) -> Any:
    """Returns a DataFrame of the scan's rows and columns, the hidden columns (row ids) last. The scan's
    conditions are not applied here.

    Constants and row indexes (deletion vectors, selected rows) are broadcast. If the row indexes are large in
    total, `scan_apart` reads the files that have some."""
    files = numbered(scan.files) if scan.row_ids else scan.files
    if scan.table_schema.column_mapping == "id" and files.num_rows and not is_on(spark, BY_ID):
        return _read_by_ids(spark, replace(scan, files=files))
    is_partial = has_row_indexes(files)
    if not are_large(files.filter(is_partial)):
        return _joined(spark, scan, files)
    whole_files = files.filter(pc.invert(is_partial))
    rows = scan_apart(spark, replace(scan, files=files.filter(is_partial)))
    return rows.unionAll(_joined(spark, scan, whole_files)) if whole_files.num_rows else rows


def _read_by_ids(spark: Any, scan: Scan) -> Any:
    """Returns a DataFrame of files whose columns are found by field id, read by `_core` in tasks. Spark's
    reader uses ids only if the session's setting BY_ID is on when the query runs, and it is off now."""
    if not travels(scan.store):
        raise UnsupportedFeatureError(
            "reading columns by id on the public path needs a store that deltaic reaches without Hadoop",
            where=scan.store.location,
            expected=f"the setting {BY_ID} on",
        )
    return read_by_tasks(spark, scan)


def scan_apart(spark: Any, scan: Scan) -> Any:
    """Like `portable_scan`, for files that all have row indexes (a deletion vector, or selected rows): each
    task gets only those of its own files. `_core` reads the files in tasks; if only the driver's Hadoop file
    system reaches the store, Spark's reader does, and rows and row indexes are joined by a shuffle.
    `scan.files` must carry `__deltaic_file` if row ids are requested."""
    return read_by_tasks(spark, scan) if travels(scan.store) else _joined(spark, scan, scan.files, apart=True)


def _joined(spark: Any, scan: Scan, files: pa.Table, *, apart: bool = False) -> Any:
    """Returns the rows of these files, read by Spark. `apart`: True shuffles the row indexes instead of
    broadcasting them."""
    from pyspark.sql import functions as F

    columns = ScanColumns(scan)
    if not files.num_rows:
        return spark.createDataFrame([], shown_to_spark(columns.output))
    spark_files = _core.hand_over(scan.store, scan.table_schema, files, bits=True)
    data = columns.in_files
    rows = _parquet(spark, spark_files["__deltaic_place"].to_pylist(), data, columns.reader_options)
    paths = _spark_paths(spark_files, lambda place: _parquet(spark, [place], data, columns.reader_options))
    data_columns = [F.col(spark_name(name)) for name in data.names]
    # `metadataColumn`, because a column of the table may have the name _metadata.
    file_metadata = rows.metadataColumn("_metadata")
    rows = rows.select(
        *data_columns, file_metadata["file_path"].alias(PATH), file_metadata["row_index"].alias(INDEX)
    )
    rows = rows.join(
        F.broadcast(_constants(spark, columns, files, spark_files.append_column(PATH, paths), apart)),
        PATH,
        "inner",
    )
    if apart:
        rows = rows.join(
            _row_indexes(spark, spark_files["__deltaic_bits"]).hint("shuffle_hash"), NUMBER, "inner"
        )
    if spark_files[KIND].to_numpy().any():
        rows = rows.where(F.expr(_COUNTS))
    rows = columns.hidden(rows, _opaque)
    return rows.select(*columns.selected(F.col(INDEX) if columns.positions else None, _opaque))


def _opaque(column: Any, nested: bool) -> Any:
    """Wraps a column in an expression through which Spark pushes no condition."""
    from pyspark.sql import functions as F

    return (
        F.transform(F.array(column), lambda item: item)[0] if nested else F.nanvl(column, F.lit(float("nan")))
    )


def _parquet(spark: Any, places: list[str], data: Any, options: dict[str, str]) -> Any:
    """Returns the rows of these files. The options make Spark read exactly these paths: no path is a pattern,
    and no folder name such as `p=1` becomes a partition column."""
    if not has_jvm(spark):  # Spark Connect ignores __globPaths__: all paths are patterns
        places = [_PATTERN.sub(r"\\\g<0>", place) for place in places]
    return (
        spark.read.schema(data)
        .options(**options, __globPaths__="false", recursiveFileLookup="true")
        .parquet(*places)
    )


def _spark_paths(spark_files: pa.Table, rows_of: Callable[[str], Any]) -> pa.ChunkedArray:
    """Returns the files' paths as in Spark's column `_metadata.file_path`. Hadoop adds the host to a location
    without one (`hdfs:///t` becomes `hdfs://namenode:8020/t`), so one file of each root is listed by Spark to
    find the host. `rows_of`: returns a DataFrame of the file at a path."""
    places, shown_paths = spark_files["__deltaic_place"], spark_files["__deltaic_shown"]
    roots = pc.struct_field(pc.extract_regex(places, "^(?P<root>[^:/]+://[^/]*)"), "root")
    for root in pc.unique(roots).to_pylist():
        if root == "file://":
            continue
        first = pc.index(roots, root).as_py()
        rest = shown_paths[first].as_py()[len(root) :]
        (spark_path,) = rows_of(places[first].as_py()).inputFiles()
        if not spark_path.endswith(rest):
            raise UnsupportedFeatureError(
                "Spark shows the path of a file in another form",
                where=places[first].as_py(),
                found=spark_path,
                expected=f"...{rest}",
            )
        # `inputFiles` shows an empty host (`hdfs:///t`), `_metadata.file_path` does not (`hdfs:/t`).
        completed = spark_path[: len(spark_path) - len(rest)].removesuffix("//")
        completed_paths = pc.binary_join_element_wise(
            completed, pc.utf8_slice_codeunits(shown_paths, len(root)), ""
        )
        shown_paths = pc.if_else(pc.equal(roots, root), completed_paths, shown_paths)
    return shown_paths


def _constants(spark: Any, columns: ScanColumns, files: pa.Table, spark_files: pa.Table, apart: bool) -> Any:
    """Returns a DataFrame with a row for each file: its path as Spark shows it, its partition values, the
    scan's constants, and its row indexes as a bitmap. With `apart` the file's number in `_row_indexes` is in
    place of the bitmap."""
    fields: list[tuple[Field, Any]] = [(Field(PATH, "string"), spark_files[PATH])]
    fields += [(in_files(field), spark_files[in_files(field).name]) for field in columns.partitions]
    fields += [(field, files[field.name]) for field in columns.constants]
    if apart:
        fields += [
            (Field(KIND, "byte"), spark_files[KIND]),
            (Field(NUMBER, "integer"), _numbers(files.num_rows)),
        ]
    elif spark_files[KIND].to_numpy().any():
        words = _words(spark_files["__deltaic_bits"])
        fields += [(Field(KIND, "byte"), spark_files[KIND]), (Field(WORDS, Array("long")), words)]
    table = pa.table([array for _, array in fields], names=[field.name for field, _ in fields])
    return spark.createDataFrame(table, shown_to_spark(field for field, _ in fields))


def _row_indexes(spark: Any, bits: pa.ChunkedArray) -> Any:
    """Returns a DataFrame with a row for each file: its number and the bitmap of its row indexes. Each Arrow
    batch, of about SENT_BYTES, becomes a task of the shuffle."""
    table = pa.table({NUMBER: _numbers(len(bits)), WORDS: _words(bits)})
    task = np.cumsum(pc.fill_null(pc.binary_length(bits), 0).to_numpy().astype(np.int64)) // SENT_BYTES
    starts = np.flatnonzero(np.diff(task, prepend=-1)).tolist()
    parts = [
        table.slice(start, end - start) for start, end in zip(starts, [*starts[1:], len(bits)], strict=True)
    ]
    return spark.createDataFrame(
        pa.concat_tables(parts), to_spark([Field(NUMBER, "integer"), Field(WORDS, Array("long"))])
    )


def _numbers(count: int) -> pa.Array:
    return pa.array(np.arange(count, dtype=np.int32))


def _words(bits: pa.ChunkedArray) -> pa.Array:
    """Converts bitmaps to lists of 64-bit words, which are the same bytes under another Arrow type."""
    whole = bits.combine_chunks()
    if not len(whole) or whole.null_count == len(whole):
        return pa.nulls(len(whole), pa.list_(pa.int64()))
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[whole.offset : whole.offset + len(whole) + 1]
    values = pa.Array.from_buffers(pa.int64(), int(ends[-1]) // 8, [None, data])
    valid = whole.is_valid().to_numpy(zero_copy_only=False)
    return pa.ListArray.from_arrays(pa.array(ends // 8), values, mask=pa.array(~valid))
