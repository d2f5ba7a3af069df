"""`spark.read.format("delta")` and `df.write.format("delta")`: Spark's own reader and writer objects, which in an enabled session hand
over to deltaic what is asked of these formats. Every other format, and every other session, is left as it is.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Literal

from deltaic.engine.spark.engine import SETTING
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError
from deltaic.relation.literal import lit
from deltaic.spark import streams
from deltaic.spark.frame_writes import FORMATS, Asked, write_frame
from deltaic.spark.options import ReadOptions
from deltaic.spark.session_tables import moment_of
from deltaic.spark.views import path_named, watched
from deltaic.spark.writers import PathWriter, insert_into, no_catalog
from deltaic.table import DeltaTable

_ASKED = "_deltaic_asked"


def enable(spark: Any, native: Literal["auto", "never"]) -> None:
    """Makes the formats known to a session; idempotent."""
    setattr(spark, SETTING, native)
    _wrap_reader()
    _wrap_writer()
    _wrap_named_writes(type(spark.range(1)))
    streams.refuse(FORMATS)


def _asked(of: Any) -> Asked:
    asked: Asked = of.__dict__.setdefault(_ASKED, Asked())
    return asked


def _is_ours(of: Any, format: str | None) -> bool:
    spark = of._spark
    if getattr(spark, SETTING, None) is None:
        return False
    name = format or _asked(of).format or spark.conf.get("spark.sql.sources.default", "parquet")
    return str(name).lower() in FORMATS


def _noting(method: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        note(_asked(self), *args, **named)
        return method(self, *args, **named)

    call.__dict__[_ASKED] = True
    return call


def _format(asked: Asked, source: str) -> None:
    asked.format = source


def _option(asked: Asked, key: str, value: Any) -> None:
    asked.put({key: value})


def _options(asked: Asked, **named: Any) -> None:
    asked.put(named)


def _wrap_reader() -> None:
    from pyspark.sql.readwriter import DataFrameReader

    if _ASKED in DataFrameReader.load.__dict__:
        return

    def schema(asked: Asked, schema: Any) -> None:
        asked.schema = schema

    for name, note in (("format", _format), ("option", _option), ("options", _options), ("schema", schema)):
        setattr(DataFrameReader, name, _noting(getattr(DataFrameReader, name), note))
    load = DataFrameReader.load

    @functools.wraps(load)
    def loaded(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
        if not _is_ours(self, format):
            return load(self, path, format, schema, **options)
        asked = _asked(self)
        asked.put({**options, **({} if path is None else {"path": _path(path)})})
        if schema is not None or asked.schema is not None:
            raise InvalidArgumentError("a Delta table has its own schema", found="schema()", expected="select() or the option columns")
        with opening(self._spark):
            wanted = ReadOptions.of(asked.options)
        return _read(self._spark, wanted)

    loaded.__dict__[_ASKED] = True
    DataFrameReader.load = loaded
    table = DataFrameReader.table

    @functools.wraps(table)
    def tabled(self: Any, tableName: str) -> Any:
        path = path_named(tableName) if getattr(self._spark, SETTING, None) is not None else None
        if path is None:
            return table(self, tableName)
        return loaded(self, path, "delta")

    DataFrameReader.table = tabled


def _read(spark: Any, wanted: ReadOptions) -> Any:
    options = dict(wanted.storage_options)
    moment = None if wanted.timestamp is None else moment_of(spark, lit(wanted.timestamp))
    opened = DeltaTable(wanted.path, version=wanted.version, timestamp=moment, storage_options=options, spark=spark)
    frame = opened.scan(wanted.columns).to_spark()
    whole = wanted.version is None and wanted.timestamp is None and wanted.columns is None
    return watched(spark, frame, opened.location) if whole else frame


def _path(path: Any) -> str:
    if isinstance(path, list) and len(path) == 1:
        path = path[0]
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError("a Delta table is one path", found=repr(path)[:80])
    return os.fspath(path)


def _wrap_writer() -> None:
    from pyspark.sql.readwriter import DataFrameWriter

    if _ASKED in DataFrameWriter.save.__dict__:
        return

    def mode(asked: Asked, saveMode: str | None) -> None:
        asked.mode = saveMode or asked.mode

    def partition_by(asked: Asked, *columns: Any) -> None:
        asked.partition_by = _names(columns)

    def cluster_by(asked: Asked, *columns: Any) -> None:
        asked.cluster_by = _names(columns)

    def bucket_by(asked: Asked, *columns: Any) -> None:
        asked.refused = "bucketBy"

    def sort_by(asked: Asked, *columns: Any) -> None:
        asked.refused = asked.refused or "sortBy"

    notes: dict[str, Callable[..., None]] = {
        "format": _format,
        "option": _option,
        "options": _options,
        "mode": mode,
        "partitionBy": partition_by,
        "clusterBy": cluster_by,
        "bucketBy": bucket_by,
        "sortBy": sort_by,
    }
    for name, note in notes.items():
        setattr(DataFrameWriter, name, _noting(getattr(DataFrameWriter, name), note))
    save = DataFrameWriter.save

    @functools.wraps(save)
    def saved(
        self: Any, path: str | None = None, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any
    ) -> None:
        if not _is_ours(self, format):
            save(self, path, format, mode, partitionBy, **options)
            return
        asked = _asked(self)
        asked.put({**options, **({} if path is None else {"path": _path(path)})})
        if partitionBy is not None:
            asked.partition_by = _names((partitionBy,))
        write_frame(self._df, asked, mode or asked.mode)

    saved.__dict__[_ASKED] = True
    DataFrameWriter.save = saved


def _wrap_named_writes(frames: type) -> None:
    """The calls that name a table. `frames`: the session's class of DataFrames."""
    from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

    _wrap_write_to(frames, DataFrameWriterV2)
    if _ASKED in DataFrameWriter.saveAsTable.__dict__:
        return
    save_as_table, insert_into_table = DataFrameWriter.saveAsTable, DataFrameWriter.insertInto

    @functools.wraps(save_as_table)
    def saved_as(self: Any, name: str, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any) -> None:
        told = format or _asked(self).format or "delta"
        path = path_named(name) if getattr(self._spark, SETTING, None) is not None and told.lower() in FORMATS else None
        if path is not None:
            self.save(path, told, mode, partitionBy, **options)
            return
        if _is_ours(self, format):
            raise no_catalog(name)
        save_as_table(self, name, format, mode, partitionBy, **options)

    @functools.wraps(insert_into_table)
    def inserted(self: Any, tableName: str, overwrite: bool | None = None) -> None:
        path = path_named(tableName) if getattr(self._spark, SETTING, None) is not None else None
        if path is None:
            insert_into_table(self, tableName, overwrite)
            return
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        insert_into(self._df, _asked(self), path)

    for wrapped in (saved_as, inserted):
        wrapped.__dict__[_ASKED] = True
    DataFrameWriter.saveAsTable, DataFrameWriter.insertInto = saved_as, inserted


def _wrap_write_to(frames: type, writers: type) -> None:
    write_to: Any = frames.writeTo  # type: ignore[attr-defined]
    if _ASKED in write_to.__dict__:
        return
    using: Any = writers.using  # type: ignore[attr-defined]

    @functools.wraps(write_to)
    def written_to(self: Any, table: str) -> Any:
        path = path_named(table) if getattr(self.sparkSession, SETTING, None) is not None else None
        return write_to(self, table) if path is None else PathWriter(self, path)

    @functools.wraps(using)
    def by_format(self: Any, provider: str) -> Any:
        if str(provider).lower() in FORMATS and getattr(self._spark, SETTING, None) is not None:
            raise no_catalog(f"writeTo().using({provider!r})")
        return using(self, provider)

    for wrapped in (written_to, by_format):
        wrapped.__dict__[_ASKED] = True
    frames.writeTo, writers.using = written_to, by_format  # type: ignore[attr-defined]


def _names(columns: tuple[Any, ...]) -> tuple[str, ...]:
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        return tuple(columns[0])
    return tuple(columns)
