"""Finds the Delta table for a name in a Spark session: delta.`path`, a temporary view of a whole table, or a
table of the session catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from deltaic.engine.spark.native.session import (
    analyzed_plan,
    followed_table,
    has_jvm,
    has_temporary_view,
    qualified,
)
from deltaic.errors import InvalidArgumentError, TableNotFoundError
from deltaic.spark.builders import FORMATS
from deltaic.spark.conditions import tag_of
from deltaic.spark.named_tables import (
    SESSION_CATALOG,
    is_too_long,
    named_table,
    parsed,
    path_in_catalog,
    schema_and_name,
)
from deltaic.sql.change import read_assignment
from deltaic.sql.names import Name, read_name
from deltaic.sql.subqueries import hold_queries
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name

_VIEWS, _PROJECTIONS = "_deltaic_views", "_deltaic_projections"
_MAKERS = ("createTempView", "createOrReplaceTempView")
_GLOBAL = "global_temp"
"""The schema of global temporary views."""


def named_path(spark: Any, identifier: str) -> str:
    """Returns the path of a named Delta table. Raises InvalidArgumentError if no Delta table has the name."""
    reader = Reader(identifier)
    name = read_name(reader)
    reader.end()
    path = path_of(spark, name)
    if path is None:
        expected = "delta.`path`, a Delta table of the session catalog, or a temporary view of one"
        raise InvalidArgumentError(
            "[DELTA_MISSING_DELTA_TABLE] the name is not a Delta table", found=identifier, expected=expected
        )
    return path


def is_known(spark: Any, name: Name) -> bool:
    """True if a table or view of any format has the name."""
    try:
        return bool(spark.catalog.tableExists(str(name)))
    except Exception:  # not a valid name for Spark, or of an unknown catalog
        return False


def is_temporary(spark: Any, name: Name) -> bool:
    """True if the name is that of a temporary view."""
    try:
        return bool(spark.catalog.getTable(str(name)).isTemporary)
    except Exception:  # as in `is_known`
        return False


def no_such_table(spark: Any, name: Name, expected: str = "delta.`path`, or a name") -> InvalidArgumentError:
    """Returns the error for an unknown name."""
    if is_too_long(spark, name.parts):
        return InvalidArgumentError(
            "[REQUIRES_SINGLE_PART_NAMESPACE] the name has more than a schema before the table",
            found=str(name),
            expected="schema.table",
        ).with_values(parts=tuple(name.parts))
    return InvalidArgumentError("no such table or view", found=str(name), expected=expected)


@contextmanager
def lost_table(spark: Any, parts: Sequence[str], condition: str = "DELTA_TABLE_NOT_FOUND") -> Iterator[None]:
    """Gives the error of a table that the session catalog still has, but whose files are gone, the condition
    of delta-spark. `parts`: of the name; no error changes if it is the name of no table."""
    try:
        yield
    except TableNotFoundError as error:
        table = named_table(spark, parts) if parts and tag_of(error) is None else None
        if table is None or (error.where or "").removesuffix("/_delta_log") != table.path:
            raise
        lost = TableNotFoundError(
            f"[{condition}] {error.message}", where=table.path, found=error.found, expected=error.expected
        )
        raise lost.with_values(name=table.parts) from None


def path_named(identifier: Any) -> str | None:
    """Returns the path in the text delta.`path`; None for any other text."""
    name = parsed(identifier) if isinstance(identifier, str) and "." in identifier else None
    return None if name is None else name.path


def path_or_named(spark: Any, identifier: Any) -> str | None:
    """Returns the path in the text delta.`path`, or the path of the Delta table of the session catalog with
    this name; None for any other text."""
    name = parsed(identifier)
    return None if name is None else name.path or path_in_catalog(spark, name.parts)


def path_of(spark: Any, name: Name) -> str | None:
    """Returns the path of the Delta table for a name: delta.`path`, a temporary view of a whole table, or a
    table of the session catalog. Returns None for any other name."""
    return name.path or path_of_view(spark, name) or path_in_catalog(spark, name.parts)


def path_of_view(spark: Any, name: Name) -> str | None:
    """Returns the path of the table if the name is of a temporary view of a whole table at its newest
    version, else None."""
    return path_of_stored_view(spark, name) or _path_in_plan(spark, name, whole=True)


def path_of_projection(spark: Any, name: Name) -> str | None:
    """Returns the path of the table if the name is of a temporary view of some columns of it, under their own
    names and with all rows, else None. DELETE and UPDATE may change the table by the name of such a view."""
    return path_of_stored_projection(spark, name) or _path_in_plan(spark, name, whole=False)


def path_of_stored_view(spark: Any, name: Name) -> str | None:
    """Like `path_of_view`, for a view that is one DataFrame of the table: not for a view of another view, nor
    for one of a query that has more than the table."""
    return _path_of_view(spark, name.parts[0]) if len(name.parts) == 1 else None


def path_of_stored_projection(spark: Any, name: Name) -> str | None:
    """Like `path_of_projection`, for a view that is one DataFrame of columns of the table."""
    return _stored_path(spark, _PROJECTIONS, name.parts[0]) if len(name.parts) == 1 else None


def check_columns_of_view(spark: Any, text: str) -> None:
    """Raises Spark's error for a column that the view in a DELETE or UPDATE lacks, even if its table has it.
    `text`: the statement from the view's name on. Subqueries are not checked."""
    from pyspark.sql import functions as F

    reader = Reader(text)
    view = read_name(reader, alias=True)
    assignments = reader.listed(lambda: read_assignment(reader, "WHERE")) if reader.accept("SET") else []
    texts = [value for _, value in assignments if value.upper() != "DEFAULT"]
    texts += [".".join(map(spark_name, column)) for column, _ in assignments]
    texts += [reader.rest("a condition")] if reader.accept("WHERE") else []
    if not hold_queries(texts):
        frame = _table(spark, *view.parts)
        named = frame.alias(view.alias) if view.alias else frame
        _ = named.select(*map(F.expr, texts)).schema  # Spark Connect resolves the columns for the schema


def with_view_names(spark: Any, frame: Any, path: str) -> Any:
    """Returns the DataFrame of a whole table, after a change by which it records the names of temporary views
    that are created of it. Statements may then change the table by a view's name."""
    return _watched(spark, frame, path, _VIEWS)


def named_frame(spark: Any, frame: Any, table: str, path: str = "") -> Any:
    """Returns the DataFrame of a table or view of the session catalog with its name on the columns, as in
    `spark.table("t").select("t.id")`; on Spark Connect without the schema. `path`: of the table."""
    name = parsed(table)
    if name is None or name.path is not None:
        return frame
    parts = schema_and_name(spark, name.parts)
    if not has_jvm(spark):
        return frame.alias(parts[-1])
    records_views = bool(path) and any(maker in frame.__dict__ for maker in _MAKERS)
    frame = qualified(spark, frame, (SESSION_CATALOG, *parts))
    return with_view_names(spark, frame, path) if records_views else frame


def projected(spark: Any, frame: Any, path: str) -> Any:
    """Like `with_view_names`, for a DataFrame of some columns of a table and for `path_of_projection`."""
    return _watched(spark, frame, path, _PROJECTIONS)


def _watched(spark: Any, frame: Any, path: str, kind: str) -> Any:
    for maker in _MAKERS:
        setattr(frame, maker, _ViewMaker(spark, frame, path, getattr(frame, maker), kind))
    return frame


class _ViewMaker:
    """Replacement of a DataFrame's `createTempView` and `createOrReplaceTempView`. It also stores the table's
    path and the DataFrame under the view's name, in the session's attribute `kind` (_VIEWS or
    _PROJECTIONS)."""

    def __init__(self, spark: Any, frame: Any, path: str, make: Any, kind: str) -> None:
        self._spark, self._frame, self._path, self._make, self._kind = spark, frame, path, make, kind

    def __call__(self, name: str) -> None:
        self._make(name)
        self._spark.__dict__.setdefault(self._kind, {})[name.lower()] = (self._path, self._frame)


def _path_of_view(spark: Any, view: str) -> str | None:
    if view.lower() in spark.__dict__.get(_VIEWS, {}) and spark.catalog.tableExists(view):
        return _stored_path(spark, _VIEWS, view)
    return _path_in_source(spark, view)


def _stored_path(spark: Any, kind: str, view: str) -> str | None:
    """Returns the path that is stored for a view; None if the view has another plan now, because the name was
    given to another DataFrame."""
    entry = spark.__dict__.get(kind, {}).get(view.lower())
    if entry is None or not spark.catalog.tableExists(view):
        return None
    path, frame = entry
    table = _table(spark, view)
    # two plans that differ only in the names of their columns have the same semantics
    return str(path) if table.columns == frame.columns and table.sameSemantics(frame) else None


def _table(spark: Any, *view: str) -> Any:
    return spark.table(".".join(map(spark_name, view)))


def _path_in_plan(spark: Any, name: Name, *, whole: bool) -> str | None:
    """Returns the path of the table of which a temporary view shows columns under their own names and all
    rows, by Spark's plan of the view; None for another view, and on the public path. `whole`: True for the
    view of all columns in the table's order, False for any other one."""
    is_global = len(name.parts) == 2 and name.parts[0].lower() == _GLOBAL
    if is_global:
        if not has_jvm(spark) or not is_temporary(spark, name):
            return None
    elif len(name.parts) != 1 or not has_temporary_view(spark, name.parts[0]):
        return None
    table = followed_table(_table(spark, *name.parts))
    if table is None:
        return None
    from deltaic.spark.frames import newest_snapshot

    path, columns = table
    own = [column.name.lower() for column in newest_snapshot(spark, path, {}).schema]
    is_whole = [column.lower() for column in columns] == own
    return path if is_whole == whole else None


def _path_in_source(spark: Any, view: str) -> str | None:
    """Returns the path of a view that was created by CREATE TEMPORARY VIEW … USING delta OPTIONS (path …), if
    the view shows a whole table at its newest version; else None."""
    if not has_temporary_view(spark, view):
        return None
    plan = analyzed_plan(_table(spark, view))
    while plan.nodeName() in ("SubqueryAlias", "View") and plan.children().length() == 1:
        plan = plan.children().head()
    if plan.nodeName() != "DataSourceV2Relation" or "python" not in plan.table().getClass().getName().lower():
        return None
    options = plan.options()
    names = {str(name).lower() for name in options.keySet().toArray()} - {"path"}
    if names & {"versionasof", "timestampasof", "columns"} or str(plan.table().name()).lower() not in FORMATS:
        return None
    path = options.get("path")
    return None if path is None else str(path)
