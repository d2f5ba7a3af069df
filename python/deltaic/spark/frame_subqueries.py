"""Finds the Delta tables in subqueries of texts that methods of a DataFrame take: `where`, `filter` and
`selectExpr`, as in `df.where("id IN (SELECT id FROM sales)")`."""

from __future__ import annotations

import functools
from typing import Any

from deltaic.engine.spark.native.session import has_jvm
from deltaic.spark import patches
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.session_tables import SparkTables
from deltaic.spark.statements import is_installed
from deltaic.sql.subqueries import hold_queries

_METHODS = ("where", "filter", "selectExpr")


def wrap(frames: Any) -> None:
    """Replaces the methods of a class of DataFrames. A second call changes nothing."""
    for name in _METHODS:
        patches.wrap(frames, name, _resolving)


def _resolving(method: Any) -> Any:
    @functools.wraps(method)
    def resolving(self: Any, *texts: Any, **named: Any) -> Any:
        if len(texts) == 1 and isinstance(texts[0], list):
            texts = tuple(texts[0])
        given = [each for each in (*texts, *named.values()) if isinstance(each, str)]
        # On Spark Connect a plan is analysed later, when the views below are gone.
        if hold_queries(given) and has_jvm(spark := self.sparkSession) and is_installed(spark):
            return _with_views(method, self, texts, named)
        return method(self, *texts, **named)

    return resolving


@raises_as_spark()
def _with_views(method: Any, frame: Any, texts: tuple[Any, ...], named: dict[str, Any]) -> Any:
    with SparkTables(frame.sparkSession) as tables:

        def found(value: Any) -> Any:
            return tables.with_views(value, pins=False) if isinstance(value, str) else value

        return method(frame, *map(found, texts), **{name: found(value) for name, value in named.items()})
