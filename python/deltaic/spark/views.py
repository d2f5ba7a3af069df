"""Finds the Delta table for a name in a Spark session: delta.`path`, a temporary view of a whole table, or a
table of the session catalog."""

from __future__ import annotations

from typing import Any

from deltaic.engine.spark.native.session import analyzed_plan, has_temporary_view
from deltaic.errors import InvalidArgumentError
from deltaic.spark.named_tables import parsed, path_in_catalog
from deltaic.sql.names import Name, read_name
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name

_VIEWS, _PROJECTIONS = "_deltaic_views", "_deltaic_projections"
_MAKERS = ("createTempView", "createOrReplaceTempView")


def named_path(spark: Any, identifier: str) -> str:
    """Returns the path of the Delta table with a name. Raises InvalidArgumentError if the name is of no
    Delta table."""
    reader = Reader(identifier)
    name = read_name(reader)
    reader.end()
    path = path_of(spark, name)
    if path is None:
        expected = "delta.`path`, a Delta table of the session catalog, or a temporary view of one"
        raise InvalidArgumentError("[DELTA_MISSING_DELTA_TABLE] no Delta table", found=identifier, expected=expected)
    return path


def is_known(spark: Any, name: Name) -> bool:
    """True if a table or view of any format has the name."""
    try:
        return bool(spark.catalog.tableExists(str(name)))
    except Exception:  # not a valid name for Spark, or of an unknown catalog
        return False


def no_such_table(name: Name, expected: str = "delta.`path`, or a name") -> InvalidArgumentError:
    return InvalidArgumentError("no such table or view", found=str(name), expected=expected)


def path_named(identifier: Any) -> str | None:
    """Returns the path in the text delta.`path`, None for any other text."""
    name = parsed(identifier) if isinstance(identifier, str) and "." in identifier else None
    return None if name is None else name.path


def path_or_named(spark: Any, identifier: Any) -> str | None:
    """Returns the path in the text delta.`path`, or that of a Delta table of the session catalog; None for
    any other text."""
    name = parsed(identifier)
    return None if name is None else name.path or path_in_catalog(spark, name.parts)


def path_of(spark: Any, name: Name) -> str | None:
    """Returns the path in delta.`path`, the path of the table that a temporary view selects as a whole, or
    that of a Delta table of the session catalog; None for any other name."""
    return name.path or path_of_view(spark, name) or path_in_catalog(spark, name.parts)


def path_of_view(spark: Any, name: Name) -> str | None:
    """Returns the path of the table that a temporary view selects as a whole, at its newest version; else
    None."""
    return _path_of_view(spark, name.parts[0]) if len(name.parts) == 1 else None


def path_of_projection(spark: Any, name: Name) -> str | None:
    """Returns the path of the table whose columns a temporary view shows, some of them, under their own names
    and with all rows. DELETE and UPDATE may change the table by the view's name."""
    return _noted(spark, _PROJECTIONS, name.parts[0]) if len(name.parts) == 1 else None


def with_view_names(spark: Any, frame: Any, path: str) -> Any:
    """Makes the DataFrame of a whole table note its temporary views: statements may then change the table by
    a view's name."""
    return _watched(spark, frame, path, _VIEWS)


def projected(spark: Any, frame: Any, path: str) -> Any:
    """Makes the DataFrame of columns of a table note its temporary views for `path_of_projection`."""
    return _watched(spark, frame, path, _PROJECTIONS)


def _watched(spark: Any, frame: Any, path: str, kind: str) -> Any:
    for maker in _MAKERS:
        setattr(frame, maker, _ViewMaker(spark, frame, path, getattr(frame, maker), kind))
    return frame


class _ViewMaker:
    """Replacement of a DataFrame's `createTempView`, which also notes the table's path under the view's name.
    `kind`: _VIEWS or _PROJECTIONS."""

    def __init__(self, spark: Any, frame: Any, path: str, make: Any, kind: str) -> None:
        self._spark, self._frame, self._path, self._make, self._kind = spark, frame, path, make, kind

    def __call__(self, name: str) -> None:
        self._make(name)
        self._spark.__dict__.setdefault(self._kind, {})[name.lower()] = (self._path, self._frame)


def _path_of_view(spark: Any, view: str) -> str | None:
    if view.lower() in spark.__dict__.get(_VIEWS, {}) and spark.catalog.tableExists(view):
        return _noted(spark, _VIEWS, view)
    return _path_in_source(spark, view)


def _noted(spark: Any, kind: str, view: str) -> str | None:
    """Another DataFrame may have got the name since: the view must still show the same plan."""
    noted = spark.__dict__.get(kind, {}).get(view.lower())
    if noted is None or not spark.catalog.tableExists(view):
        return None
    path: str = noted[0]
    return path if _table(spark, view).sameSemantics(noted[1]) else None


def _table(spark: Any, view: str) -> Any:
    return spark.table(spark_name(view))


def _path_in_source(spark: Any, view: str) -> str | None:
    """Returns the path of CREATE TEMPORARY VIEW … USING delta OPTIONS (path …), if the view is a whole table
    at its newest version."""
    if not has_temporary_view(spark, view):
        return None
    plan = analyzed_plan(_table(spark, view))
    while plan.nodeName() in ("SubqueryAlias", "View") and plan.children().length() == 1:
        plan = plan.children().head()
    if plan.nodeName() != "DataSourceV2Relation" or "python" not in plan.table().getClass().getName().lower():
        return None
    options = plan.options()
    names = {str(name).lower() for name in options.keySet().toArray()} - {"path"}
    if names & {"versionasof", "timestampasof", "columns"} or str(plan.table().name()).lower() not in ("delta", "deltaic"):
        return None
    path = options.get("path")
    return None if path is None else str(path)
