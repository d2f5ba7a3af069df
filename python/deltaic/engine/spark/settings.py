"""Settings of delta-spark in the Spark session that deltaic honours. An explicit option or argument of a
call always wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from deltaic.errors import InvalidArgumentError, check_instance
from deltaic.options import CommitOptions

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
TXN_AUTO_RESET = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
"""Setting: a command that took its transaction from the settings unsets TXN_VERSION, so that the next one is
not skipped."""
RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
"""Setting: if false, VACUUM may delete files that are younger than the table's retention."""
MERGE_SCHEMA = "spark.databricks.delta.schema.autoMerge.enabled"
OPTIMIZE_WRITE = "spark.databricks.delta.optimizeWrite.enabled"
PROPERTIES = "spark.databricks.delta.properties.defaults."
"""Prefix of settings with default properties of new tables: the setting PROPERTIES + `appendOnly` is the
default of `delta.appendOnly`."""
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
RECORDS = "spark.sql.files.maxRecordsPerFile"
BYPASS_LOCATION_CHECK = "spark.databricks.delta.alterLocation.bypassSchemaCheck"
"""Setting: if true, ALTER TABLE SET LOCATION accepts a table with another schema or other partition
columns."""


def said(spark: Any, name: str) -> str | None:
    """The text of a setting, None if it is not set."""
    text = spark.conf.get(name, None)
    return None if text is None else str(text)


def is_on(spark: Any, name: str) -> bool:
    return (said(spark, name) or "").lower() == "true"


def overwrites_partitions(spark: Any) -> bool:
    """True if an overwrite replaces only the partitions that the new rows are in (dynamic partition
    overwrite)."""
    return (said(spark, OVERWRITE_MODE) or "").lower() == "dynamic"


def commit_options(spark: Any, given: CommitOptions | None) -> CommitOptions | None:
    """The options of a commit. If `given` has no user metadata, the session's setting USER_METADATA is
    added."""
    check_instance(given, (CommitOptions, type(None)), "commit", "CommitOptions")
    if (given is not None and given.user_metadata is not None) or (text := said(spark, USER_METADATA)) is None:
        return given
    return replace(given or CommitOptions(), user_metadata=text)


@contextmanager
def committing(spark: Any, given: CommitOptions | None) -> Iterator[CommitOptions | None]:
    """The options of the commit of a command that writes or changes rows. Like `commit_options`, but the
    session's application transaction is added, too, if `given` has none. After the command, TXN_AUTO_RESET
    unsets its version."""
    options = commit_options(spark, given)
    if (options is not None and options.transactions) or not (transaction := _transaction(spark)):
        yield options
        return
    yield replace(options or CommitOptions(), transactions=transaction)
    if is_on(spark, TXN_AUTO_RESET):
        spark.conf.unset(TXN_VERSION)


def _transaction(spark: Any) -> dict[str, int]:
    """Application id -> version; empty if neither setting is set. InvalidArgumentError if only one is set."""
    app_id, version = said(spark, TXN_APP_ID), said(spark, TXN_VERSION)
    if app_id is None and version is None:
        return {}
    if app_id is None or version is None:
        expected = f"both {TXN_APP_ID} and {TXN_VERSION}, or neither"
        raise InvalidArgumentError(
            "half of an application transaction in the settings", found=f"{app_id!r}, {version!r}", expected=expected
        )
    if not version.strip().isdecimal():
        raise InvalidArgumentError(
            f"invalid value of the setting {TXN_VERSION}", found=repr(version), expected="a whole number, at least 0"
        )
    return {app_id: int(version)}


def table_properties(spark: Any, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Properties of a new table: the session's defaults, replaced by those of `given`."""
    settings = spark.conf.getAll
    defaults = {
        "delta." + str(name).removeprefix(PROPERTIES): str(text) for name, text in settings.items() if str(name).startswith(PROPERTIES)
    }
    return {**defaults, **(given or {})} if defaults else given
