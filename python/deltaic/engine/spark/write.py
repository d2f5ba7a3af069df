"""New data files by Spark's own Parquet writer: into a folder of their own below the table, then taken in with their footers' statistics.

The folder's name says nothing and begins with no `_` or `.`; what fails takes the folder away. Tasks that ran twice leave nothing, as the
committer moves only the files of the attempt that counts.
"""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.engine import WriteTarget
from deltaic.engine.spark.direct import is_direct, write_directly
from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.footers import with_statistics
from deltaic.engine.spark.lowering import with_columns
from deltaic.engine.spark.native.session import delete_folder, in_own_session
from deltaic.engine.spark.on_driver import are_plain, gathered, has_few_rows
from deltaic.engine.spark.types import is_mapped_inside, with_ids
from deltaic.errors import CommitError, ConstraintViolationError, UnsupportedFeatureError
from deltaic.plan.failures import failing
from deltaic.plan.literal import col
from deltaic.protocol.column_mapping import ID, physical_name
from deltaic.protocol.schema import Field, Schema, is_shape, path_text, primitive_types, walk
from deltaic.spark_sql.null_conditions import null_conditions

if TYPE_CHECKING:
    from deltaic.engine.spark.engine import SparkEngine, SparkRelation

TARGET = 256 * 1024**2
CHANGE_FOLDER = "_change_data"
"""Folder of the change files, in the table's folder."""
SMALL = 64 * 1024**2
"""Rows that Spark thinks to be so few bytes go into one file (of each partition)."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_SESSION = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.variant.annotateLogicalType.enabled": "false",
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.legacy.charVarcharAsString": "false",
}
_OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.cleanup-failures.ignored": "true",
}


def write(engine: SparkEngine, relation: SparkRelation, target: WriteTarget) -> pa.Table:
    """-> the `add` actions. Where anything fails, the folder is gone again."""
    # The hidden columns of row tracking are no part of the schema's JSON.
    ids: list[dict[str, Any]] = [{ID: number} for number in target.hidden_ids] or [{}, {}]
    tracked = (Field(name, "long", metadata=own) for name, own in zip(target.row_tracking or (), ids, strict=False))
    table = Schema([*Schema.from_json(target.schema.json), *tracked])
    refuse_shapes(table)
    _parquet_options(dict(target.options))  # what Spark's writer refuses is refused of few rows, too
    columns = [_checked(field) for field in table]
    if (adds := _write_here(engine, relation, target, table, columns)) is not None:
        return adds
    options = dict(target.options)
    folder = f"{CHANGE_FOLDER}/{uuid.uuid4().hex}" if options.get("change_files") else uuid.uuid4().hex
    partitions = list(target.schema.partition_columns)
    if is_direct(engine, target):
        with named_errors():
            return write_directly(with_columns(_sized(engine, relation, target), columns), table, target)
    try:
        with named_errors():
            sized = with_columns(_sized(engine, relation, target), columns)
            counted = _write_files(engine, sized, table, partitions, f"{_uri(target.store)}/{folder}", options)
        adds = with_statistics(engine, _core.adopt(target.store, target.schema, folder, json.dumps(options), footers=False), target)
        rows = _core.physical_rows(adds)
        found = int(pc.sum(rows).as_py() or 0)
        if found != counted:
            raise CommitError(
                "the files that were written have not the rows that were written", where=folder, found=found, expected=counted
            )
    except BaseException:
        _discard(engine, target.store, folder)
        raise
    empty = pc.equal(rows, 0)
    if pc.any(empty).as_py():  # Spark writes a file also where there are no rows
        target.store.delete([unquote(path) for path in adds["path"].filter(empty).to_pylist()])
        adds = adds.filter(pc.invert(empty))
    return adds


def refuse_shapes(schema: Schema) -> None:
    """UnsupportedFeatureError where a column has shapes: Spark does not cache them, and its files may give them another type."""
    for path, item in walk(schema):
        if found := next(filter(is_shape, primitive_types(item.type)), None):
            raise UnsupportedFeatureError(
                "rows with shapes are not written on Spark",
                where=f"column {path_text(path)}",
                found=found,
                expected="the same command without a SparkSession, or a DELETE that writes deletion vectors",
            )


def _write_here(
    engine: SparkEngine, relation: SparkRelation, target: WriteTarget, table: Schema, columns: list[tuple[str, str]]
) -> pa.Table | None:
    """Few rows are written on the driver, by the writer of the embedded engine: no job, no folder, no footer to read again. The rows of a
    user's DataFrame stay where its partitions are."""
    if not engine.most_here or relation.files is not None or relation.partitioned or not are_plain(table):
        return None
    with named_errors():
        rows = with_columns(relation.frame, columns)
        found = gathered(engine, rows) if relation.on_driver or has_few_rows(engine, rows) else None
    if found is None:
        return None
    fitting = _core.conform(found, _core.TableSchema(table.to_json()))
    return _core.write(target.store, target.schema, fitting, target.options_json)


def _write_files(engine: SparkEngine, frame: Any, table: Schema, partitions: list[str], uri: str, options: dict[str, Any]) -> int:
    """-> how many rows the job saw."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    columns, folders = [], []
    kept = bool(options.get("partition_columns"))
    mapped = any(physical_name(field) != field.name for field in table)
    for number, field in enumerate(table):
        is_partition = field.name in partitions
        if is_partition:
            # A name of our own where the column's would be hidden, is more than a word to Spark or might be that of a column in the files.
            plain = not (kept or mapped) and _WORD.fullmatch(field.name)
            folders.append(field.name if plain else f"p{number}")
            columns.append(_folder_value(field).alias(folders[-1]))
        if field.type != "void" and (kept or not is_partition):
            columns.append(_physical(field))
    observation = Observation()
    parquet = _parquet_options(options)
    with _own_settings(engine, frame.select(*columns)) as rows:
        writer = rows.observe(observation, F.count(F.lit(1)).alias("rows")).write.mode("append").options(**_OPTIONS, **parquet)
        (writer.partitionBy(*folders) if folders else writer).parquet(uri)
    return int(observation.get["rows"])


def _physical(field: Field) -> Any:
    """The column as data files have it: names and ids of column mapping at every depth."""
    from pyspark.sql import functions as F

    column = F.col(col(field.name))
    (in_file,) = with_ids([field])
    if is_mapped_inside(field.type):
        column = column.cast(in_file.dataType)
    return column.alias(in_file.name, metadata=in_file.metadata)


def _folder_value(field: Field) -> Any:
    """A partition value as the text of its folder: `_core.adopt` reads it back in the column's type."""
    from pyspark.sql import functions as F

    column = F.col(col(field.name))
    return (F.unix_micros(column) if field.type == "timestamp" else column).cast("string")


@contextmanager
def _own_settings(engine: SparkEngine, frame: Any) -> Iterator[Any]:
    """The rows where what files must be like is no setting of the user's: in a session of their own, else for a moment in theirs."""
    own = engine.read_path.planned("a session of our own", lambda: in_own_session(engine.spark, frame, _SESSION), lambda: None)
    if own is not None:
        yield own
        return
    with _one_at_a_time, _settings(engine.spark.conf):
        yield frame


@contextmanager
def _settings(conf: Any) -> Iterator[None]:
    known = conf.getAll  # `get` gives the default of what is not set, which would stay as a setting
    before = {name: known.get(name) for name in _SESSION}
    try:
        for name, value in _SESSION.items():
            conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            conf.unset(name) if old is None else conf.set(name, old)


_one_at_a_time = threading.Lock()


def _sized(engine: SparkEngine, relation: SparkRelation, wanted: WriteTarget) -> Any:
    """The rows in as many tasks as they make files of the wanted size, where that is known: few rows make one file. The partitions of a
    user's DataFrame are kept: each makes a file, and its tasks run as the user divided them, unless the table asks for optimized writes:
    Spark brings the rows of a partition together then, in tasks of about the size that it is told to aim at."""
    frame, target = relation.frame, int(wanted.options.get("target_file_size") or TARGET)
    size = relation.bytes
    if wanted.optimize and size is None and relation.files is None:
        from pyspark.sql import functions as F

        return frame.hint("rebalance", *(F.col(col(name)) for name in wanted.schema.partition_columns))
    if relation.files is not None or relation.partitioned:
        return frame
    if size is None:
        thought = engine.size_of(frame)
        return frame.coalesce(1) if thought is not None and thought <= min(SMALL, target) else frame
    return frame.coalesce(max(1, round(size / target)))


_ZLIBS_OWN = ("gzip", "6)")
"""The level that Spark's gzip has anyway."""


def _parquet_options(options: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    if (codec := options.get("compression")) is not None:
        name, _, level = str(codec).partition("(")
        found["compression"] = name
        if level and name != "zstd" and (name, level) != _ZLIBS_OWN:
            raise UnsupportedFeatureError(f"a level of {name} in Spark's writer", found=str(codec), expected=f"{name}, or zstd(level)")
        if level:
            found["parquet.compression.codec.zstd.level"] = level.rstrip(")")
    else:
        found |= {"compression": "zstd", "parquet.compression.codec.zstd.level": "3"}
    if options.get("second_version"):
        found["parquet.writer.version"] = "v2"
    if (rows := options.get("max_records_per_file")) is not None:
        found["maxRecordsPerFile"] = str(rows)
    if (size := options.get("max_row_group_bytes")) is not None:
        found["parquet.block.size"] = str(size)
    return found


def _uri(store: _core.Store) -> str:
    location = store.location
    if "://" in location:
        return location.rstrip("/")
    return f"file://{location.rstrip('/')}"


def _discard(engine: SparkEngine, store: _core.Store, folder: str) -> None:
    """Everything below the folder, the attempts of tasks too."""

    def native() -> None:
        delete_folder(engine.spark, f"{_uri(store)}/{folder}")

    def public() -> None:
        left = store.list_from(folder, recursive=True)
        store.delete(left["path"])
        store.remove_empty_directories(folder)
        if "://" not in store.location:
            with suppress(OSError):  # it is empty, else something came meanwhile
                os.rmdir(os.path.join(store.location, folder))

    engine.read_path.planned("the removal of a folder", native, public)


# --- NOT NULL


def _checked(field: Field) -> tuple[str, str]:
    """The column's name and value; a row with a null where the schema wants a value ends the job."""
    whens = [
        f"WHEN {condition} THEN {failing(ConstraintViolationError, f'column {place} is NOT NULL and a row has a null there')}"
        for condition, place in null_conditions(field)
    ]
    column = col(field.name)
    return field.name, f"CASE {' '.join(whens)} ELSE {column} END" if whens else column
