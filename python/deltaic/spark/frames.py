"""DataFrames of tables, and tables of DataFrames."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from deltaic import table
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, InvalidTypeError, VersionNotFoundError
from deltaic.log import history
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.plan.literal import lit
from deltaic.planning.columns import resolve_columns
from deltaic.spark.options import travelled
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.session_tables import moment_of
from deltaic.spark.views import watched

Path = str | os.PathLike[str]


@raises_as_spark()
def read(
    spark: Any,
    path: Path,
    *,
    version: int | None = None,
    timestamp: datetime | str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """A lazy DataFrame of the table as it is now, or was at a version or time: later commits do not change it. A temporary
    view of a whole table, at its newest version, stands for the table: statements may change it by that name.

    `path` may say the version or time itself, as `path@v3` or `path@yyyyMMddHHmmssSSS` (in the time zone of the session).

    `columns`: names, nested ones dotted. `where`: a condition in Spark's SQL. Raises as `deltaic.DeltaTable` and its `scan`.
    """
    path, version, timestamp = _pinned(spark, path, version, timestamp, storage_options or {})
    opened = table.DeltaTable(path, version=version, timestamp=timestamp, storage_options=storage_options, spark=spark)
    frame = opened.scan(columns, where).to_spark()
    whole = version is None and timestamp is None and columns is None and where is None
    return watched(spark, frame, opened.location) if whole else frame


def newest(spark: Any, path: Path, columns: Sequence[str] | None = None, storage_options: Mapping[str, str] | None = None) -> Any:
    """A DataFrame that follows the table, as one of delta-spark does: each query over it sees the version that is the newest when the query
    is planned. Columns are those of the version at which it is made; a query fails where the table no longer has them. By Spark's public
    interfaces alone the DataFrame stays at that version, as it does where `path` names one (`path@v3`)."""
    engine, options = engine_of(spark), dict(storage_options or {})
    path, version, _ = _pinned(spark, path, None, None, options)
    if version is not None:
        return read(spark, path, version=version, columns=columns, storage_options=options)
    snapshot = engine.last_snapshot.open(spark, path, options)

    def newer(last: Snapshot) -> Snapshot:
        return engine.last_snapshot.open(spark, path, options, known=last)

    # Plans show the place: no key of a store must stand in it.
    rights = hashlib.blake2b(repr(sorted(options.items())).encode(), digest_size=8).hexdigest() if options else ""
    place = f"{snapshot.location} {rights}".rstrip()
    frame = engine.following(snapshot, resolve_columns(snapshot.schema, columns), newer, place)
    return watched(spark, frame, snapshot.location) if columns is None else frame


def _pinned(
    spark: Any, path: Path, version: int | None, timestamp: datetime | str | None, storage_options: Mapping[str, str]
) -> tuple[Path, int | None, datetime | str | None]:
    """The path without the version or time that it names, and these two."""
    if not isinstance(path, (str, os.PathLike)) or "@" not in (text := os.fspath(path)):
        return path, version, timestamp
    with opening(spark):
        inner, its_version, its_time = travelled(text, storage_options)
    if its_version is None and its_time is None:
        return path, version, timestamp
    if version is not None or timestamp is not None:
        raise InvalidArgumentError("time travel is given both in the path and as an argument", found=text, expected="one of them")
    if its_time is None:
        return inner, its_version, None
    return inner, version_at(spark, inner, moment_of(spark, lit(its_time)), storage_options), None


def version_at(spark: Any, path: Path, moment: datetime, storage_options: Mapping[str, str] | None = None) -> int:
    """The version that `timestampAsOf`, TIMESTAMP AS OF and `path@yyyyMMddHHmmssSSS` mean. VersionNotFoundError for a time after the last
    version, as with delta-spark: what is committed until then would change the rows."""
    with opening(spark):
        return history.version_at(open_store(path, storage_options), moment, after_last=False)


def check_restorable(spark: Any, path: Path, moment: datetime) -> None:
    """VersionNotFoundError for a time that RESTORE does not take: one before the first version, or after the last."""
    try:
        version_at(spark, path, moment)
    except VersionNotFoundError as error:
        condition = f"DELTA_CANNOT_RESTORE_TIMESTAMP_{'GREATER' if error.message.startswith(history.AFTER_LAST) else 'EARLIER'}"
        raise VersionNotFoundError(
            f"[{condition}] {error.message}", where=error.where, found=error.found, expected=error.expected
        ) from None


@raises_as_spark()
def write(df: Any, path: Path | table.DeltaTable, **options: Any) -> None:
    """Writes a DataFrame by its session, as one commit. `options`: those of `deltaic.write`."""
    if not hasattr(df, "sparkSession"):
        raise InvalidTypeError("a DataFrame of Spark is expected", found=type(df).__name__)
    table.write(path, df, **options)
