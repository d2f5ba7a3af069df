"""`deltaic.spark.read` and `deltaic.spark.write`, and the DataFrames that other modules of `deltaic.spark`
make of a table (`newest`) and of the result of a command (`frame_of`)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deltaic import table
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, InvalidTypeError, VersionNotFoundError
from deltaic.log import history
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.plan.literal import lit
from deltaic.planning.columns import resolve_columns
from deltaic.spark.portable.arrow_values import spark_schema
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.session_tables import timestamp_of
from deltaic.spark.views import with_view_names
from deltaic.sql.pinned_paths import travelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.rows.rows import Rows

Path = str | os.PathLike[str]


@raises_as_spark(advises=False)
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
    """Returns a lazy DataFrame of one version of a table. Later commits do not change its rows.

    `path` (str or PathLike): path or URL. `path@v3` is version 3, and `path@yyyyMMddHHmmssSSS` the version
    at a time in the session's time zone.
    `version` (int), `timestamp` (datetime or text): the version to read, or a time at which it was the
    newest; by default the newest version.
    `columns`: names, with dots for nested columns; None is all.
    `where`: a condition as text in Spark's SQL dialect. Files that hold no matching row are left out before
    Spark plans the query.
    `storage_options`: options of the object store, such as `aws_region`.

    After `read(spark, path).createOrReplaceTempView("v")`, without other arguments, `INSERT INTO v` and other
    statements change the table.

    Raises TableNotFoundError, VersionNotFoundError, and InvalidArgumentError for an unknown column, a
    condition that does not parse, or both a version and a time.

    >>> deltaic.spark.read(spark, "/data/flights", columns=["id"], where="delay > 60").count()
    1
    """
    path, version, timestamp = pinned_path(spark, path, version, timestamp, storage_options or {})
    delta_table = table.DeltaTable(
        path, version=version, timestamp=timestamp, storage_options=storage_options, spark=spark
    )
    frame = delta_table.scan(columns, where).to_spark()
    whole = version is None and timestamp is None and columns is None and where is None
    return with_view_names(spark, frame, delta_table.location) if whole else frame


def newest(
    spark: Any,
    path: Path,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Returns a DataFrame that follows the table, as in delta-spark: each query reads the version that is
    the newest when the query is planned. The columns are those of the version at which the DataFrame was
    made; a query fails if the table no longer has them. On the public path, or if `path` names a version
    (`path@v3`), the DataFrame stays at one version."""
    engine, options = engine_of(spark), dict(storage_options or {})
    path, version, _ = pinned_path(spark, path, None, None, options)
    if version is not None:
        return read(spark, path, version=version, columns=columns, storage_options=options)
    snapshot = newest_snapshot(spark, path, options)

    def newer(last: Snapshot) -> Snapshot:
        return newest_snapshot(spark, path, options, last)

    names = resolve_columns(snapshot.schema, columns)
    frame = engine.following(snapshot, names, newer, place_of(snapshot, options))
    return with_view_names(spark, frame, snapshot.location) if columns is None else frame


def newest_snapshot(
    spark: Any, path: Path, storage_options: Mapping[str, str], known: Snapshot | None = None
) -> Snapshot:
    """Opens the newest version of a table. `known`: as for `RecentSnapshots.open`."""
    return engine_of(spark).recent_snapshots.open(spark, path, storage_options, known=known)


def place_of(snapshot: Snapshot, storage_options: Mapping[str, str]) -> str:
    """Returns a text that is equal for the same table with the same credentials. It appears in query plans,
    so it has a hash of the store's options instead of their secrets."""
    if not storage_options:
        return snapshot.location
    options = repr(sorted(storage_options.items())).encode()
    return f"{snapshot.location} {hashlib.blake2b(options, digest_size=8).hexdigest()}"


def pinned_path(
    spark: Any,
    path: Path,
    version: int | None,
    timestamp: datetime | str | None,
    storage_options: Mapping[str, str],
) -> tuple[Path, int | None, datetime | str | None]:
    """Splits a path that names a version or time (`path@v3`): returns path, version and time. A time in the
    path becomes a version."""
    if not isinstance(path, (str, os.PathLike)) or "@" not in (text := os.fspath(path)):
        return path, version, timestamp
    with opening(spark):
        inner, its_version, its_time = travelled(text, storage_options)
    if its_version is None and its_time is None:
        return path, version, timestamp
    if version is not None or timestamp is not None:
        raise InvalidArgumentError(
            "time travel is given both in the path and as an argument", found=text, expected="one of them"
        )
    if its_time is None:
        return inner, its_version, None
    return inner, version_at(spark, inner, timestamp_of(spark, lit(its_time)), storage_options), None


def version_at(
    spark: Any, path: Path, time: datetime, storage_options: Mapping[str, str] | None = None
) -> int:
    """Returns the version for `timestampAsOf`, TIMESTAMP AS OF and `path@yyyyMMddHHmmssSSS`. Raises
    VersionNotFoundError for a time after the last version, as delta-spark does: a commit before that time
    would change the answer."""
    with opening(spark):
        return history.version_at(open_store(path, storage_options), time, after_last=False)


def check_restorable(spark: Any, path: Path, time: datetime) -> None:
    """Raises VersionNotFoundError, with RESTORE's conditions, for a time before the first or after the last
    version."""
    try:
        version_at(spark, path, time)
    except VersionNotFoundError as error:
        side = "GREATER" if error.message.startswith(history.AFTER_LAST) else "EARLIER"
        condition = f"DELTA_CANNOT_RESTORE_TIMESTAMP_{side}"
        of_restore = VersionNotFoundError(
            f"[{condition}] {error.message}", where=error.where, found=error.found, expected=error.expected
        )
        raise of_restore.with_values(**error.values) from None


def frame_of(spark: Any, rows: Rows) -> DataFrame:
    """Returns the result of a command, a few rows on the driver, as a DataFrame. If the command returns
    nothing, it has neither columns nor rows."""
    table, schema = rows.to_arrow(), spark_schema(rows.schema)
    return spark.createDataFrame(table if table.num_rows else [], schema)


@raises_as_spark(advises=False)
def write(df: Any, path: Path | table.DeltaTable, **options: Any) -> None:
    """Writes a DataFrame to a table in one commit. Spark's tasks write the data files.

    `path`: path or URL, or an open `deltaic.DeltaTable`. `options`: the other arguments of `deltaic.write`,
    such as `mode` ("error" by default), `partition_by` and `where`.

    Raises InvalidTypeError if `df` is no DataFrame of Spark, TableAlreadyExistsError (mode "error"),
    SchemaMismatchError for columns or values that do not fit the table, and the other errors of
    `deltaic.write`.

    >>> deltaic.spark.write(spark.range(3), "/data/numbers", mode="overwrite")
    """
    if not hasattr(df, "sparkSession"):
        raise InvalidTypeError("a DataFrame of Spark is expected", found=type(df).__name__)
    table.write(path, df, **options)
