"""Writes data files by Spark's Parquet writer into a new folder below the table's folder, and returns them as
add actions, with statistics from their footers.

The folder has a random name that begins with neither `_` nor `.`, because readers and VACUUM skip folders
with such names. If the write fails, the folder is deleted. A task that runs twice leaves no extra file:
Spark's committer moves only the files of the successful attempt.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.engine import WriteTarget
from deltaic.engine.spark.direct import is_direct, write_directly
from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.footers import with_statistics
from deltaic.engine.spark.lowering import with_columns
from deltaic.engine.spark.native.session import delete_folder, in_own_session
from deltaic.engine.spark.on_driver import are_plain, gathered
from deltaic.engine.spark.types import is_mapped_inside, with_ids
from deltaic.errors import CommitError, ConstraintViolationError, UnsupportedFeatureError
from deltaic.plan.failures import failing
from deltaic.plan.literal import col
from deltaic.protocol.column_mapping import ID, physical_name
from deltaic.protocol.paths import decoded_path
from deltaic.protocol.schema import Field, Schema, is_shape, path_text, primitive_types, walk
from deltaic.protocol.void import in_data_files, void_fields
from deltaic.spark_sql.null_conditions import null_conditions

if TYPE_CHECKING:
    from deltaic.engine.spark.engine_session import EngineSession
    from deltaic.engine.spark.relation import SparkRelation

log = logging.getLogger("deltaic.spark")

TARGET = 256 * 1024**2
"""Default target size of a file, in bytes."""
CHANGE_FOLDER = "_change_data"
"""Name of the folder of change files, in the table's folder."""
SMALL = 64 * 1024**2
"""Maximum bytes, as Spark estimates them, of rows that one task writes, and so into one file for each table
partition. Above it, each partition of the DataFrame is written by a task of its own."""

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


def write(session: EngineSession, relation: SparkRelation, target: WriteTarget) -> pa.Table:
    """Writes the rows and returns the add actions of the new files. If anything fails, the new folder is
    deleted; files of `write_directly` are left to VACUUM."""
    # The hidden columns of row tracking are not in the schema's JSON.
    ids: list[dict[str, Any]] = [{ID: number} for number in target.hidden_ids] or [{}, {}]
    tracked = (
        Field(name, "long", metadata=metadata)
        for name, metadata in zip(target.row_tracking or (), ids, strict=False)
    )
    table = Schema([*Schema.from_json(target.schema.json), *tracked])
    refuse_shapes(table)
    # Called for its error: an option that Spark's writer does not support is an error for few rows, too.
    _parquet_options(dict(target.options))
    columns = [_checked(field) for field in table]
    if (adds := _write_on_driver(session, relation, target, table, columns)) is not None:
        return adds
    options = dict(target.options)
    folder = f"{CHANGE_FOLDER}/{uuid.uuid4().hex}" if options.get("change_files") else uuid.uuid4().hex
    partitions = list(target.schema.partition_columns)
    if is_direct(session, target):
        with named_errors():
            return write_directly(with_columns(_sized(session, relation, target), columns), table, target)
    try:
        with named_errors():
            sized = with_columns(_sized(session, relation, target), columns)
            counted = _write_files(
                session, sized, table, partitions, f"{_uri(target.store)}/{folder}", options
            )
        adds = with_statistics(
            session,
            _core.adopt(target.store, target.schema, folder, json.dumps(options), footers=False),
            target,
        )
        rows = _core.physical_rows(adds)
        row_count = int(pc.sum(rows).as_py() or 0)
        if row_count != counted:
            raise CommitError(
                "the new files do not have as many rows as were written",
                where=folder,
                found=row_count,
                expected=counted,
            )
    except BaseException:
        _discard(session, target.store, folder)
        raise
    empty = pc.equal(rows, 0)
    if pc.any(empty).as_py():
        # Spark writes a file even if there are no rows; it is deleted.
        target.store.delete(list(map(decoded_path, adds["path"].filter(empty).to_pylist())))
        adds = adds.filter(pc.invert(empty))
    return adds


def refuse_shapes(schema: Schema) -> None:
    """Raises UnsupportedFeatureError if a column has a geometry or geography, because Spark does not cache
    these types, and may write them to files as another type."""
    for path, item in walk(schema):
        if shape := next(filter(is_shape, primitive_types(item.type)), None):
            raise UnsupportedFeatureError(
                "rows with shapes are not written on Spark",
                where=f"column {path_text(path)}",
                found=shape,
                expected="the same command without a SparkSession, or a DELETE that writes deletion vectors",
            )


def _write_on_driver(
    session: EngineSession,
    relation: SparkRelation,
    target: WriteTarget,
    table: Schema,
    columns: list[tuple[str, str]],
) -> pa.Table | None:
    """Writes few rows on the driver by `_core` and returns the add actions, without a job, a rename or a read
    of a footer. Returns None if the rows are not few, or are in the partitions of a user's DataFrame, each of
    which becomes a file."""
    if (
        not session.max_driver_rows
        or relation.files is not None
        or relation.partitioned
        or not are_plain(table)
    ):
        return None
    with named_errors():
        rows = with_columns(relation.frame, columns)
        driver_rows = gathered(session, rows) if relation.on_driver or session.has_few_rows(rows) else None
    if driver_rows is None:
        return None
    conformed = _core.conform(driver_rows, _core.TableSchema(table.to_json()))
    return _core.write(target.store, target.schema, conformed, target.options_json)


def _write_files(
    session: EngineSession,
    frame: Any,
    table: Schema,
    partitions: list[str],
    uri: str,
    options: dict[str, Any],
) -> int:
    """Runs the job that writes the files, and returns the number of rows that it wrote."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    columns, folders = [], []
    in_files = bool(options.get("partition_columns"))
    mapped = any(physical_name(field) != field.name for field in table)
    for number, field in enumerate(table):
        is_partition = field.name in partitions
        if is_partition:
            # Folders are named `column=value`. The column is `p0`, `p1`, ... if a folder of the column's own
            # name would be hidden (`_a=1`), if Spark escapes letters of the name, or if a column in the files
            # may have the name.
            plain = not (in_files or mapped) and _WORD.fullmatch(field.name)
            folders.append(field.name if plain else f"p{number}")
            columns.append(_folder_value(field).alias(folders[-1]))
        if in_data_files(field.type) != "void" and (in_files or not is_partition):
            columns.append(_physical(field))
    observation = Observation()
    parquet = _parquet_options(options)
    with _own_settings(session, frame.select(*columns)) as rows:
        writer = (
            rows.observe(observation, F.count(F.lit(1)).alias("rows"))
            .write.mode("append")
            .options(**_OPTIONS, **parquet)
        )
        (writer.partitionBy(*folders) if folders else writer).parquet(uri)
    return int(observation.get["rows"])


def _physical(field: Field) -> Any:
    """Returns the column as data files have it: without void fields, and with the physical names and ids of
    column mapping at every depth."""
    from pyspark.sql import functions as F

    column = F.col(col(field.name))
    if missing := [path_text(path) for path in void_fields(field.type)]:
        column = column.dropFields(*missing)
    (in_file,) = with_ids([field.with_(type=in_data_files(field.type))])
    if is_mapped_inside(field.type):
        column = column.cast(in_file.dataType)
    return column.alias(in_file.name, metadata=in_file.metadata)


def _folder_value(field: Field) -> Any:
    """Returns a partition value as text for its folder's name. `_core.adopt` converts the text back to the
    column's type."""
    from pyspark.sql import functions as F

    column = F.col(col(field.name))
    return (F.unix_micros(column) if field.type == "timestamp" else column).cast("string")


@contextmanager
def _own_settings(session: EngineSession, frame: Any) -> Iterator[Any]:
    """Yields the frame in a clone of the user's session that has the settings _SESSION, on which the format
    of files depends. On the public path the user's session itself has these settings until the body ends."""
    clone = session.read_path.planned(
        "a session of our own", lambda: in_own_session(session.spark, frame, _SESSION), lambda: None
    )
    if clone is not None:
        yield clone
        return
    with _one_at_a_time, _settings(session):
        yield frame


@contextmanager
def _settings(session: EngineSession) -> Iterator[None]:
    conf = session.spark.conf
    # Not `conf.get`: for a setting that is not set it returns the default, which would then be set
    # afterwards.
    current = conf.getAll
    # On Spark Connect each call is a request, so a setting that has its value already is not set.
    changed = {
        name: value
        for name, value in _SESSION.items()
        if (current.get(name) or session.default_of(name) or "").lower() != value.lower()
    }
    try:
        for name, value in changed.items():
            conf.set(name, value)
        yield
    finally:
        for name in changed:
            conf.unset(name) if name not in current else conf.set(name, current[name])


_one_at_a_time = threading.Lock()


def _sized(session: EngineSession, relation: SparkRelation, target: WriteTarget) -> Any:
    """Returns the frame with one partition for each file to write, if the size of its rows is known.

    The partitions of a user's DataFrame stay, and each becomes a file. For optimized writes, Spark's hint
    `rebalance` brings the rows of a table partition together, in tasks of about the size that the setting
    `spark.sql.adaptive.advisoryPartitionSizeInBytes` names."""
    frame, target_size = relation.frame, int(target.options.get("target_file_size") or TARGET)
    size = relation.bytes
    if target.optimize and size is None and relation.files is None:
        from pyspark.sql import functions as F

        return frame.hint("rebalance", *(F.col(col(name)) for name in target.schema.partition_columns))
    if relation.files is not None or relation.partitioned:
        return frame
    if size is None:
        estimate = session.size_of(frame)
        return frame.coalesce(1) if estimate is not None and estimate <= min(SMALL, target_size) else frame
    return frame.coalesce(max(1, round(size / target_size)))


_GZIP_LEVEL = ("gzip", "6)")
"""The codec gzip(6), with the only level of gzip that is accepted: Spark's writer always uses it."""


def _parquet_options(options: dict[str, Any]) -> dict[str, str]:
    parquet: dict[str, str] = {}
    if (codec := options.get("compression")) is not None:
        name, _, level = str(codec).partition("(")
        parquet["compression"] = name
        if level and name != "zstd" and (name, level) != _GZIP_LEVEL:
            raise UnsupportedFeatureError(
                f"a level of {name} in Spark's writer", found=str(codec), expected=f"{name}, or zstd(level)"
            )
        if level:
            parquet["parquet.compression.codec.zstd.level"] = level.rstrip(")")
    else:
        parquet |= {"compression": "zstd", "parquet.compression.codec.zstd.level": "3"}
    if options.get("second_version"):
        parquet["parquet.writer.version"] = "v2"
    if (rows := options.get("max_records_per_file")) is not None:
        parquet["maxRecordsPerFile"] = str(rows)
    if (size := options.get("max_row_group_bytes")) is not None:
        parquet["parquet.block.size"] = str(size)
    return parquet


def _uri(store: _core.Store) -> str:
    location = store.location
    if "://" in location:
        return location.rstrip("/")
    return f"file://{location.rstrip('/')}"


def _discard(session: EngineSession, store: _core.Store, folder: str) -> None:
    """Deletes the folder of a failed write with all files in it, also the temporary files of tasks. An error
    is only logged: the error of the write says what failed, and VACUUM deletes what stays."""

    def native() -> None:
        delete_folder(session.spark, f"{_uri(store)}/{folder}")

    def public() -> None:
        files = store.list_from(folder, recursive=True)
        store.delete(files["path"])
        store.remove_empty_directories(folder)
        if "://" not in store.location:
            with suppress(OSError):  # raised if a task has written another file to the folder meanwhile
                os.rmdir(os.path.join(store.location, folder))

    try:
        session.read_path.planned("the removal of a folder", native, public)
    except Exception as error:
        log.warning("the files of a failed write stay in %s: %s", folder, str(error).split("\n")[0])


# --- NOT NULL


def _checked(field: Field) -> tuple[str, str]:
    """Returns the column's name and the SQL of its value, which fails for a row with a null in a NOT NULL
    field. For a column `a`: `CASE WHEN a IS NULL THEN raise_error(...) ELSE a END`."""
    whens = [
        f"WHEN {condition} THEN"
        f" {failing(ConstraintViolationError, f'column {place} is NOT NULL and a row has a null there')}"
        for condition, place in null_conditions(field)
    ]
    column = col(field.name)
    return field.name, f"CASE {' '.join(whens)} ELSE {column} END" if whens else column
