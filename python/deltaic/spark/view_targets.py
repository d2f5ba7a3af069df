"""Errors of statements that change a view of a query, with delta-spark's condition for each kind of query."""

from __future__ import annotations

from typing import Any

from deltaic.commands import generated
from deltaic.engine.spark.native.session import has_jvm, reads_delta, viewed_table
from deltaic.errors import UnsupportedFeatureError
from deltaic.spark.frames import newest_snapshot
from deltaic.spark.views import is_temporary
from deltaic.sql.names import Name

_WHOLE = "delta.`path`, or a temporary view of a whole Delta table"


def no_change_of_view(spark: Any, statement: str, view: Name) -> UnsupportedFeatureError:
    """Returns the error of a `statement` (INSERT, DELETE, UPDATE or MERGE) that cannot change a view."""
    condition, kind, values = _refusal(spark, statement, view)
    tag = "" if condition is None else f"[{condition}] "
    error = UnsupportedFeatureError(f"{tag}{statement} of a view{kind}", found=str(view), expected=_WHOLE)
    return error.with_values(**{"operation": statement, **values})


def _refusal(spark: Any, statement: str, view: Name) -> tuple[str | None, str, dict[str, Any]]:
    """Returns the condition, words on the view's query, and values of the condition's parameters. The
    condition is None if delta-spark has none: for a view of no Delta table, and for a MERGE into a view whose
    columns are others than the table's."""
    if not is_temporary(spark, view):
        return None, "", {}
    if statement == "INSERT":
        return "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "", {}
    if not has_jvm(spark):
        return None, "", {}
    frame = spark.table(str(view))
    table = viewed_table(frame)
    if table is None:
        return ("DELTA_UNSUPPORTED_SOURCE" if reads_delta(frame) else None), "", {}
    if table.is_filtered:
        return "DELTA_UNEXPECTED_PARTIAL_SCAN", " with a condition", {"path": table.location}
    if not table.location:
        at_version = {"version": table.version}
        return "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", " of an older version", at_version
    snapshot = newest_snapshot(spark, table.location, {})
    if statement != "DELETE" and generated.columns_of(snapshot.protocol, snapshot.schema):
        operation = {"operation": "MERGE INTO" if statement == "MERGE" else statement}
        return "DELTA_OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS_NOT_SUPPORTED", "", operation
    unknown = next((name for name in frame.columns if snapshot.schema.get(name) is None), None)
    if statement == "MERGE" or unknown is None:
        return None, "", {}
    of_table = {"column": unknown, "schema": snapshot.schema}
    return "DELTA_CANNOT_RESOLVE_COLUMN", " with renamed or computed columns", of_table
