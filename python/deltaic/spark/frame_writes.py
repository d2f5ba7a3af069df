"""Writes a DataFrame with the format, mode and options that were set on one of Spark's writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deltaic.commands.write import Mode
from deltaic.engine.spark import settings
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.literal import col
from deltaic.spark.options import WriteOptions
from deltaic.table import DeltaTable, run_write

FORMATS = frozenset({"delta", "deltaic"})
_MODES: dict[str, Mode] = {
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
    "error": "error",
    "errorifexists": "error",
    "default": "error",
}


class BuilderState:
    """The format, options, mode and columns that were set on a DataFrame reader or writer before `load` or `save`."""

    def __init__(self) -> None:
        self.format: str | None = None
        self.options: dict[str, Any] = {}
        self.mode: str | None = None
        self.partition_by: tuple[str, ...] = ()
        self.cluster_by: tuple[str, ...] = ()
        self.schema: Any = None
        self.properties: dict[str, str] = {}
        self.refused: str | None = None
        self.streaming: dict[str, Any] | None = None

    def put(self, more: Mapping[str, Any]) -> None:
        """Options match without regard to case; the last one holds, None takes one away."""
        for name, value in more.items():
            for known in [each for each in self.options if each.lower() == name.lower()]:
                del self.options[known]
            if value is not None:
                self.options[name] = str(value).lower() if isinstance(value, bool) else str(value)

    def has(self, name: str) -> bool:
        return any(each.lower() == name.lower() for each in self.options)


def write_frame(
    df: Any, asked: BuilderState, mode: str | None, *, defines: bool = False, casts: bool = False, by_name: bool = False
) -> None:
    """Writes a DataFrame. `defines`: it makes or replaces the table, as CREATE TABLE AS SELECT does. `casts`: by store assignment.
    `by_name`: the call names the table, as INSERT BY NAME does: columns and fields match by name, and fields and partition columns that
    it lacks become null."""
    chosen = _MODES.get((mode or "error").lower())
    if chosen is None:
        raise InvalidArgumentError("unknown save mode", found=repr(mode), expected=", ".join(sorted(_MODES)))
    if asked.refused is not None:
        expected = "partitionBy, clusterBy, or OPTIMIZE ZORDER"
        if asked.refused == "sortBy":
            raise InvalidArgumentError("[SORT_BY_WITHOUT_BUCKETING] sortBy goes with bucketBy", found="sortBy alone", expected=expected)
        raise UnsupportedFeatureError("buckets of a Delta table", found=asked.refused, expected=expected)
    if not df.columns:
        raise SchemaMismatchError("the data has no columns", found=df, expected="one at least")
    spark = df.sparkSession
    told = _with_settings(spark, asked, chosen)
    for name, columns in (("partitionBy", asked.partition_by), ("clusterBy", asked.cluster_by)):
        if columns:
            told.put({name: ",".join(map(col, columns))})
    optimize = _is_set(told.options, "optimizeWrite")
    wanted = WriteOptions.of(told.options, chosen)
    if wanted.by_partition:
        wanted = wanted.into(_metadata(spark, wanted))
    job = replace(
        wanted.job,
        more=wanted.more if optimize is None else {**wanted.more, "optimize_write": optimize},
        defines=defines,
        casting="strict" if casts else None,
        fills=by_name,
        streaming=asked.streaming,
        fills_partitions=by_name,
    )
    if asked.properties:
        job = replace(job, wanted=replace(job.wanted, properties={**(job.wanted.properties or {}), **asked.properties}))
    run_write(wanted.path, df, job, dict(wanted.storage_options) or None)


def _with_settings(spark: Any, asked: BuilderState, mode: Mode) -> BuilderState:
    """The options, and what the session says where they say nothing."""
    told = BuilderState()
    told.put(asked.options)
    if mode == "overwrite" and not told.has("replaceWhere") and not told.has("partitionOverwriteMode"):
        is_dynamic = settings.overwrites_partitions(spark) and not _says_true(told, "overwriteSchema")
        told.put({"partitionOverwriteMode": "dynamic"} if is_dynamic else {})
    if merges_schema(spark, told):
        told.put({"mergeSchema": "true"})
    if not told.has("optimizeWrite") and settings.is_on(spark, settings.OPTIMIZE_WRITE):
        told.put({"optimizeWrite": "true"})
    if not told.has("maxRecordsPerFile"):
        told.put({"maxRecordsPerFile": settings.said(spark, settings.RECORDS)})
    return told


def merges_schema(spark: Any, asked: BuilderState) -> bool:
    """True if a write adds the columns that the table lacks, by its option or else by the setting of the session."""
    if asked.has("mergeSchema"):
        return _says_true(asked, "mergeSchema")
    return not _says_true(asked, "overwriteSchema") and settings.is_on(spark, settings.MERGE_SCHEMA)


def _says_true(asked: BuilderState, name: str) -> bool:
    return any(each.lower() == name.lower() and str(value).lower() == "true" for each, value in asked.options.items())


def _metadata(spark: Any, wanted: WriteOptions) -> Any:
    """The metadata of the table that is there, None where there is none."""
    options = dict(wanted.storage_options) or None
    with opening(spark):
        if not DeltaTable.exists(wanted.path, storage_options=options):
            return None
        return DeltaTable(wanted.path, storage_options=options).metadata


def _is_set(options: dict[str, Any], name: str) -> bool | None:
    """Takes an option that is true or false out; None where it is not given."""
    found = [options.pop(each) for each in list(options) if each.lower() == name.lower()]
    if found and found[0].lower() not in ("true", "false"):
        raise InvalidArgumentError(f"the option {name}", found=repr(found[0]), expected="true or false")
    return found[0].lower() == "true" if found else None
