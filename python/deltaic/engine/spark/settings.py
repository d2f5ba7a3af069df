"""Settings of a session by which jobs written for delta-spark say what their options and arguments do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deltaic.options import CommitOptions

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
MERGE_SCHEMA = "spark.databricks.delta.schema.autoMerge.enabled"
OPTIMIZE_WRITE = "spark.databricks.delta.optimizeWrite.enabled"
PROPERTIES = "spark.databricks.delta.properties.defaults."
"""In front of the names of properties that new tables get, without their `delta.`."""
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
RECORDS = "spark.sql.files.maxRecordsPerFile"


def said(spark: Any, name: str) -> str | None:
    """The text of a setting, None where nobody has set it."""
    found = spark.conf.get(name, None)
    return None if found is None else str(found)


def is_on(spark: Any, name: str) -> bool:
    return (said(spark, name) or "").lower() == "true"


def overwrites_partitions(spark: Any) -> bool:
    """Whether an overwrite is one of the partitions that the new rows are in."""
    return (said(spark, OVERWRITE_MODE) or "").lower() == "dynamic"


def commit_options(spark: Any, given: CommitOptions | None) -> CommitOptions | None:
    """The options of a commit, with the session's user metadata where they have none."""
    if (given is not None and given.user_metadata is not None) or (text := said(spark, USER_METADATA)) is None:
        return given
    return replace(given or CommitOptions(), user_metadata=text)


def table_properties(spark: Any, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Properties of a new table: those given, and the session's defaults."""
    settings = spark.conf.getAll
    named = {str(name): str(text) for name, text in settings.items() if str(name).startswith(PROPERTIES)}
    return {**{"delta." + name.removeprefix(PROPERTIES): text for name, text in named.items()}, **(given or {})} if named else given
