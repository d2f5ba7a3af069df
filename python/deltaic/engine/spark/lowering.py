"""From a plan to a DataFrame. Expressions go to Spark as the user wrote them; SQL is never made anew from a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from deltaic.engine.spark.on_driver import is_of_few
from deltaic.engine.spark.types import of_frame
from deltaic.plan.expression import Expression, GroupAggregate
from deltaic.plan.literal import col
from deltaic.plan.nodes import Aggregate, Data, Filter, Join, Plan, Project, Scan, Union
from deltaic.protocol.schema import Schema

BROADCAST = 64 * 1024**2
"""Bytes of a side that every task of a join is given as a whole."""


class Lowering:
    """`leaf`: the rows of a leaf, without an alias. `size`: bytes that a frame is thought to be, None where nobody knows. `few`: the same
    rows on the driver, None where they are not few."""

    def __init__(self, leaf: Callable[[Scan | Data], Any], size: Callable[[Any], int | None], few: Callable[[Any], Any | None]) -> None:
        self._leaf, self._size, self._few = leaf, size, few

    def lower(self, plan: Plan) -> Any:
        """A DataFrame whose columns are known under the plan's aliases."""
        from pyspark.sql import functions as F

        if isinstance(plan, (Scan, Data)):
            return self._leaf(plan).alias(plan.alias)
        if isinstance(plan, Filter):
            return self.lower(plan.input).where(F.expr(plan.condition.text))
        if isinstance(plan, Project):
            return with_columns(self.lower(plan.input), ((name, value.text) for name, value in plan.columns)).alias(plan.alias)
        if isinstance(plan, Join):
            return self._join(plan)
        if isinstance(plan, Union):
            return reduce(lambda whole, other: whole.unionAll(other), map(self.lower, plan.inputs)).alias(plan.alias)
        return self._aggregate(plan)

    def _join(self, plan: Join) -> Any:
        from pyspark.sql import functions as F

        left, right = self.lower(plan.left), self.lower(plan.right)
        if plan.kind == "right" and (size := self._size(right)) is not None and size <= BROADCAST:
            # All rows of a broadcast side can only be kept where the other side is known to be what matches it: the large left side is
            # gone through once, what is left of it is small.
            left = left.join(F.broadcast(right), F.expr(plan.condition.text), "left_semi")
            if isinstance(plan.left, Scan) and is_of_few(plan.right) and (few := self._few(left)) is not None:
                left = F.broadcast(few.alias(plan.left.alias))
        return left.join(right, F.expr(plan.condition.text), plan.kind)

    def _aggregate(self, plan: Aggregate) -> Any:
        grouped = self.lower(plan.input).groupBy(*_named(plan.keys))
        return grouped.agg(*_named(plan.columns)).alias(plan.alias)


def with_columns(frame: Any, columns: Iterable[tuple[str, str]]) -> Any:
    """The frame's rows as columns (name, text). All texts in one call: each by itself would be a handful of calls to the JVM. A text ends
    where its line does, as it may end in a comment."""
    return frame.selectExpr(*(f"({text}\n) AS {col(name)}" for name, text in columns))


def _named(columns: tuple[tuple[str, Expression | GroupAggregate], ...]) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.expr(value.text).alias(name) for name, value in columns]


def nullable_schema(frame: Any) -> Schema:
    """The columns of a computed frame: whether one takes null is for whoever writes it to say."""
    return Schema([field.with_(nullable=True) for field in of_frame(frame)])
