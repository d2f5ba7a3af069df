"""Converts the filters that Spark pushes into a Python data source to predicates of `_core`. A filter is
converted only if the predicate is true for exactly the same rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from pyspark.sql import datasource as spark

from deltaic import _core
from deltaic.errors import DeltaError
from deltaic.planning.literals import value_text

_FIRST_YEAR = 1901
"""Year from which on Spark passes dates and timestamps as they are. For earlier ones it uses the classes of
java.sql, which have the Julian calendar or local mean time: its 1582-10-10 becomes 1582-10-15."""
_COMPARISONS = {
    spark.EqualTo: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}


class _NotExpressible(Exception):
    """The filter cannot be expressed in the tree of `_core.Predicate`."""


def predicate_of(filters: Iterable[spark.Filter], schema: _core.TableSchema) -> _core.Predicate | None:
    """Returns the conjunction of the filters that can be converted, or None if none can."""
    conjunction: _core.Predicate | None = None
    for each in filters:
        try:
            predicate = _core.Predicate.from_json(json.dumps(_node(each)), schema)
        except (_NotExpressible, DeltaError):
            continue
        conjunction = predicate if conjunction is None else conjunction & predicate
    return conjunction


def _node(item: spark.Filter) -> dict[str, Any]:
    if isinstance(item, spark.Not):
        return _negated(item.child)
    if type(item) in _COMPARISONS:
        return _comparison(_COMPARISONS[type(item)], item)
    if isinstance(item, spark.IsNull):
        return {"op": "is_null", "column": list(item.attribute)}
    if isinstance(item, spark.IsNotNull):
        return _not({"op": "is_null", "column": list(item.attribute)})
    if isinstance(item, spark.EqualNullSafe):
        # For a null, `a <=> 1` is false and `a = 1` is null. A filter removes the row in both cases.
        return (
            {"op": "is_null", "column": list(item.attribute)}
            if item.value is None
            else _comparison("=", item)
        )
    if isinstance(item, spark.In):
        return {
            "op": "in",
            "column": list(item.attribute),
            "literals": [None if value is None else _text(value) for value in item.value],
        }
    if isinstance(item, spark.StringStartsWith):
        return {"op": "starts_with", "column": list(item.attribute), "literal": item.value}
    raise _NotExpressible


def _negated(item: spark.Filter) -> dict[str, Any]:
    if isinstance(item, spark.EqualNullSafe):
        missing = {"op": "is_null", "column": list(item.attribute)}
        return (
            _not(missing)
            if item.value is None
            else {"op": "or", "args": [missing, _not(_comparison("=", item))]}
        )
    return _not(_node(item))


def _not(node: dict[str, Any]) -> dict[str, Any]:
    return {"op": "not", "arg": node}


def _comparison(op: str, item: Any) -> dict[str, Any]:
    if item.value is None:
        return {"op": "null"}
    return {"op": op, "column": list(item.attribute), "literal": _text(item.value)}


def _text(value: Any) -> str:
    """Serializes a literal by `value_text`. Raises _NotExpressible for a number that is not finite, for a
    date or timestamp before _FIRST_YEAR, and for a value of another type."""
    if isinstance(value, date) and value.year < _FIRST_YEAR:
        raise _NotExpressible
    is_plain = isinstance(value, (bool, int, str, date))  # a datetime is a date
    if not is_plain and not (isinstance(value, (Decimal, float)) and math.isfinite(value)):
        raise _NotExpressible
    return value_text(value)
