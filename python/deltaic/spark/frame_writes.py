"""Writes a DataFrame with the format, mode and options that were set on a writer of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from deltaic.commands.write_job import Mode, Write
from deltaic.engine.spark import settings
from deltaic.engine.spark.sources import refuse_repeated_names
from deltaic.engine.spark.stores import opening
from deltaic.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltaic.plan.literal import col
from deltaic.spark.builders import BuilderState
from deltaic.spark.options import WriteOptions
from deltaic.spark.raising import make_of_spark
from deltaic.spark.replacements import named_in
from deltaic.table import DeltaTable, run_write

_OF_REPLACEMENTS = "DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION"
"""The condition of a row that breaks a constraint, with replaceUsing or replaceOn."""
_MODES: dict[str, Mode] = {
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
    "error": "error",
    "errorifexists": "error",
    "default": "error",
}

_PARTIAL = ("replaceWhere", "partitionOverwriteMode", "replaceUsing", "replaceOn")
"""Options by which an overwrite replaces a part of the table. Beside them, the session's setting
spark.sql.sources.partitionOverwriteMode has no effect."""


def write_frame(
    df: Any,
    state: BuilderState,
    mode: str | None,
    *,
    defines: bool = False,
    saves_as_table: bool = False,
    casts: bool = False,
    by_name: bool = False,
    fills_partitions: bool = False,
) -> None:
    """Writes a DataFrame.

    `defines`: the write creates or replaces the table, like CREATE TABLE AS SELECT.
    `saves_as_table`: the write is a saveAsTable.
    `casts`: values are cast to the table's types by store assignment. Fields that structs of a stream lack
    become null. Else values of another type than their column's are a SchemaMismatchError.
    `by_name`: columns and fields match by name, like INSERT BY NAME. Columns that the DataFrame lacks become
    null.
    `fills_partitions`: partition columns that the DataFrame lacks become null, too; else this is an error.
    """
    save_mode = _MODES.get((mode or "error").lower())
    if save_mode is None:
        raise InvalidArgumentError("unknown save mode", found=repr(mode), expected=", ".join(sorted(_MODES)))
    if state.refused is not None:
        expected = "partitionBy, clusterBy, or OPTIMIZE ZORDER"
        if state.refused == "sortBy":
            raise InvalidArgumentError(
                "[SORT_BY_WITHOUT_BUCKETING] sortBy goes with bucketBy",
                found="sortBy alone",
                expected=expected,
            )
        raise UnsupportedFeatureError(
            "buckets of a Delta table are not supported", found=state.refused, expected=expected
        )
    inserts = casts and state.streaming is None
    replaces = (state.get("overwriteSchema") or "").lower() == "true"
    _check_columns(df, is_new=defines or replaces or (saves_as_table and not casts), inserts=inserts)
    spark = df.sparkSession
    write_options, optimize = options_of(spark, state, save_mode)
    if settings.refuses_partition_overwrites(spark):
        _check_overwrite_mode(spark, state, write_options)
    if write_options.by_partition and not defines:  # a table that is replaced keeps no partition
        write_options = write_options.into(_metadata(spark, write_options))
    of_partitions = settings.replaces_partitions(spark)
    job = replace(
        write_options.job,
        more=write_options.more if optimize is None else {**write_options.more, "optimize_write": optimize},
        checks_where=of_partitions or settings.checks_replace_where(spark),
        where_of_partitions=of_partitions,
        defines=defines,
        saves_as_table=saves_as_table and save_mode == "overwrite" and not write_options.job.keeps_rows,
        casting="strict" if casts else None,
        same_types=not casts,
        fills=by_name or state.streaming is not None,
        streaming=state.streaming,
        reads=state.reads,
        fills_partitions=fills_partitions,
    )
    if job.replacement is not None:
        job = replace(job, replacement=named_in(df, job.replacement))
    if state.properties:
        properties = {**(job.wanted.properties or {}), **state.properties}
        job = replace(job, wanted=replace(job.wanted, properties=properties))
    with _of_write(job):
        run_write(write_options.path, df, job, dict(write_options.storage_options) or None)


@contextmanager
def _of_write(job: Write) -> Iterator[None]:
    """Adds to errors of a write what delta-spark's conditions name: the predicate, or the replaced rows."""
    try:
        yield
    except DeltaError as error:
        error.with_values(predicate=job.where)
        if job.schema_mode == "overwrite" and "duplicate" in error.values:
            make_of_spark(error, "DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE")
        if job.replacement is not None:
            error.with_values(replaced=job.replacement.text)
            make_of_spark(error, _OF_REPLACEMENTS if isinstance(error, ConstraintViolationError) else None)
        raise


def _check_columns(df: Any, *, is_new: bool, inserts: bool) -> None:
    """Refuses a DataFrame without columns, and one with two columns of one name. The names in a table that is
    new or replaced are checked later. `inserts`: True for a write that matches columns like INSERT."""
    if not df.columns:
        raise SchemaMismatchError("the data has no columns", found=df, expected="one at least")
    if not is_new:
        refuse_repeated_names(df, reads=inserts)


def options_of(spark: Any, state: BuilderState, mode: Mode) -> tuple[WriteOptions, bool | None]:
    """Parses a writer's options, with the session's settings in place of options that are not set. Returns
    also the value of the option optimizeWrite, or None if it is not set. Raises InvalidArgumentError for a
    wrong value, UnsupportedFeatureError for an option that is not supported."""
    complete_state = _with_settings(spark, state, mode)
    for name, columns in (
        ("partitionBy", map(col, state.partition_by)),
        ("clusterBy", map(_cluster_column, state.cluster_by)),
    ):
        if text := ",".join(columns):
            complete_state.put({name: text})
    optimize = _taken_flag(complete_state.options, "optimizeWrite")
    return WriteOptions.of(complete_state.options, mode), optimize


def _cluster_column(name: str) -> str:
    """Returns a name of `clusterBy` as SQL. As in Spark, a dot in the name leads to a field of a struct,
    unless the name is in backticks."""
    return name if "." in name or "`" in name else col(name)


def _with_settings(spark: Any, state: BuilderState, mode: Mode) -> BuilderState:
    """Returns the writer's options, with the session's settings in place of options that are not set."""
    complete_state = BuilderState()
    complete_state.put(state.options)
    if mode == "overwrite" and not any(map(complete_state.has, _PARTIAL)):
        is_dynamic = settings.overwrites_partitions(spark)
        complete_state.put({"partitionOverwriteMode": "dynamic"} if is_dynamic else {})
    # A session that refuses dynamic overwrites ignores the option's other values, also wrong ones.
    elif (complete_state.get("partitionOverwriteMode") or "").lower() != "dynamic" and (
        settings.refuses_partition_overwrites(spark)
    ):
        complete_state.put({"partitionOverwriteMode": None})
    if merges_schema(spark, complete_state):
        complete_state.put({"mergeSchema": "true"})
    if not complete_state.has("optimizeWrite") and settings.is_on(spark, settings.OPTIMIZE_WRITE):
        complete_state.put({"optimizeWrite": "true"})
    if not complete_state.has("maxRecordsPerFile"):
        complete_state.put({"maxRecordsPerFile": settings.setting_text(spark, settings.RECORDS)})
    return complete_state


def _check_overwrite_mode(spark: Any, state: BuilderState, write_options: WriteOptions) -> None:
    """Raises InvalidArgumentError if an option or the session asks to overwrite by partition, in any mode, as
    in delta-spark. `replaceWhere` takes precedence over the session."""
    given = state.get("partitionOverwriteMode")
    from_session = given is None and not state.has("replaceWhere") and settings.overwrites_partitions(spark)
    is_dynamic = from_session or (given or "").lower() == "dynamic"
    if is_dynamic and write_options.partitions(_metadata(spark, write_options)):
        raise settings.partition_overwrite_refused()


def merges_schema(spark: Any, state: BuilderState) -> bool:
    """True if a write adds new columns to the table: the option mergeSchema is true, or it is not set and the
    session's setting MERGE_SCHEMA is true. overwriteSchema, where it has an effect, goes before."""
    if state.has("mergeSchema"):
        return (state.get("mergeSchema") or "").lower() == "true"
    return settings.is_on(spark, settings.MERGE_SCHEMA)


def _metadata(spark: Any, write_options: WriteOptions) -> Any:
    """Returns the metadata of the existing table, or None if there is no table."""
    options = dict(write_options.storage_options) or None
    with opening(spark):
        if not DeltaTable.exists(write_options.path, storage_options=options):
            return None
        return DeltaTable(write_options.path, storage_options=options).metadata


def _taken_flag(options: dict[str, Any], name: str) -> bool | None:
    """Removes a boolean option and returns its value, or None if it is not set."""
    values = [options.pop(each) for each in list(options) if each.lower() == name.lower()]
    if values and values[0].lower() not in ("true", "false"):
        raise InvalidArgumentError(
            f"the option {name} has an invalid value", found=repr(values[0]), expected="true or false"
        )
    return values[0].lower() == "true" if values else None
