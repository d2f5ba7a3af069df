"""`spark.read.format("delta")` and `df.write.format("delta")`: Spark's own reader and writer objects, which in an enabled session hand
over to deltaic what is asked of these formats. Every other format, and every other session, is left as it is.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from deltaic.commands.write import Mode
from deltaic.engine.spark.engine import SETTING
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError
from deltaic.spark.options import ReadOptions, WriteOptions
from deltaic.spark.views import watched
from deltaic.table import DeltaTable, run_write

FORMATS = frozenset({"delta", "deltaic"})
_ASKED = "_deltaic_asked"
_MODES: dict[str, Mode] = {
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
    "error": "error",
    "errorifexists": "error",
    "default": "error",
}


def enable(spark: Any, native: Literal["auto", "never"]) -> None:
    """Makes the formats known to a session; idempotent."""
    setattr(spark, SETTING, native)
    _wrap_reader()
    _wrap_writer()


class _Asked:
    """What a reader or writer has been told so far."""

    def __init__(self) -> None:
        self.format: str | None = None
        self.options: dict[str, Any] = {}
        self.mode: str | None = None
        self.partition_by: tuple[str, ...] = ()
        self.cluster_by: tuple[str, ...] = ()
        self.schema: Any = None


def _asked(of: Any) -> _Asked:
    asked: _Asked = of.__dict__.setdefault(_ASKED, _Asked())
    return asked


def _is_ours(of: Any, format: str | None) -> bool:
    spark = of._spark
    if getattr(spark, SETTING, None) is None:
        return False
    name = format or _asked(of).format or spark.conf.get("spark.sql.sources.default", "parquet")
    return str(name).lower() in FORMATS


def _put(options: dict[str, Any], more: dict[str, Any]) -> None:
    """Options match without regard to case; the last one holds."""
    for name, value in more.items():
        for known in [each for each in options if each.lower() == name.lower()]:
            del options[known]
        if value is not None:
            options[name] = str(value).lower() if isinstance(value, bool) else str(value)


def _noting(method: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        note(_asked(self), *args, **named)
        return method(self, *args, **named)

    call.__dict__[_ASKED] = True
    return call


def _format(asked: _Asked, source: str) -> None:
    asked.format = source


def _option(asked: _Asked, key: str, value: Any) -> None:
    _put(asked.options, {key: value})


def _options(asked: _Asked, **named: Any) -> None:
    _put(asked.options, named)


def _wrap_reader() -> None:
    from pyspark.sql.readwriter import DataFrameReader

    if _ASKED in DataFrameReader.load.__dict__:
        return

    def schema(asked: _Asked, schema: Any) -> None:
        asked.schema = schema

    for name, note in (("format", _format), ("option", _option), ("options", _options), ("schema", schema)):
        setattr(DataFrameReader, name, _noting(getattr(DataFrameReader, name), note))
    load = DataFrameReader.load

    @functools.wraps(load)
    def loaded(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
        if not _is_ours(self, format):
            return load(self, path, format, schema, **options)
        asked = _asked(self)
        _put(asked.options, {**options, **({} if path is None else {"path": _path(path)})})
        if schema is not None or asked.schema is not None:
            raise InvalidArgumentError("a Delta table has its own schema", found="schema()", expected="select() or the option columns")
        with opening(self._spark):
            wanted = ReadOptions.of(asked.options)
        return _read(self._spark, wanted)

    loaded.__dict__[_ASKED] = True
    DataFrameReader.load = loaded


def _read(spark: Any, wanted: ReadOptions) -> Any:
    options = dict(wanted.storage_options)
    opened = DeltaTable(wanted.path, version=wanted.version, timestamp=wanted.timestamp, storage_options=options, spark=spark)
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

    def mode(asked: _Asked, saveMode: str | None) -> None:
        asked.mode = saveMode or asked.mode

    def partition_by(asked: _Asked, *columns: Any) -> None:
        asked.partition_by = _names(columns)

    def cluster_by(asked: _Asked, *columns: Any) -> None:
        asked.cluster_by = _names(columns)

    notes: dict[str, Callable[..., None]] = {
        "format": _format,
        "option": _option,
        "options": _options,
        "mode": mode,
        "partitionBy": partition_by,
        "clusterBy": cluster_by,
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
        _put(asked.options, {**options, **({} if path is None else {"path": _path(path)})})
        if partitionBy is not None:
            asked.partition_by = _names((partitionBy,))
        _write(self._df, asked, mode or asked.mode)

    saved.__dict__[_ASKED] = True
    DataFrameWriter.save = saved


def _write(df: Any, asked: _Asked, mode: str | None) -> None:
    chosen = _MODES.get((mode or "error").lower())
    if chosen is None:
        raise InvalidArgumentError("unknown save mode", found=repr(mode), expected=", ".join(sorted(_MODES)))
    options = dict(asked.options)
    for name, columns in (("partitionBy", asked.partition_by), ("clusterBy", asked.cluster_by)):
        if columns:
            _put(options, {name: ",".join(f"`{column.replace('`', '``')}`" for column in columns)})
    if _is_set(options, "optimizeWrite"):  # rows of a partition together, in tasks of about the size that Spark is told to aim at
        df = df.hint("rebalance", *asked.partition_by)
    wanted = WriteOptions.of(options, chosen)
    run_write(wanted.path, df, replace(wanted.job, more=wanted.more), dict(wanted.storage_options) or None)


def _is_set(options: dict[str, Any], name: str) -> bool:
    """Takes an option that is true or false out."""
    found = [options.pop(each) for each in list(options) if each.lower() == name.lower()]
    if found and found[0].lower() not in ("true", "false"):
        raise InvalidArgumentError(f"the option {name}", found=repr(found[0]), expected="true or false")
    return bool(found) and found[0].lower() == "true"


def _names(columns: tuple[Any, ...]) -> tuple[str, ...]:
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        return tuple(columns[0])
    return tuple(columns)
