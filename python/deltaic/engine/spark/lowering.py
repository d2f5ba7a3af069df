"""Converts a plan to a DataFrame. Spark parses expressions in the text that the user wrote; SQL is never
generated from a syntax tree."""

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
"""Maximum bytes, as Spark estimates them, of the right side of a right join that is broadcast to all tasks
(see `Lowering._join`); above it, Spark plans the join by itself."""


class Lowering:
    """Converts plans to DataFrames. `leaf`: returns the DataFrame of a leaf, without an alias. `size`:
    returns Spark's estimate of a frame's bytes, or None. `few`: returns a frame with the rows collected to
    the driver, or None if they are not few."""

    def __init__(
        self,
        leaf: Callable[[Scan | Data], Any],
        size: Callable[[Any], int | None],
        few: Callable[[Any], Any | None],
    ) -> None:
        self._leaf, self._size, self._few = leaf, size, few

    def lower(self, plan: Plan) -> Any:
        """Returns the DataFrame of a plan. Its columns can be qualified by the plan's aliases: `t.id`."""
        from pyspark.sql import functions as F

        if isinstance(plan, (Scan, Data)):
            return self._leaf(plan).alias(plan.alias)
        if isinstance(plan, Filter):
            return self.lower(plan.input).where(F.expr(plan.condition.text))
        if isinstance(plan, Project):
            return with_columns(
                self.lower(plan.input), ((name, value.text) for name, value in plan.columns)
            ).alias(plan.alias)
        if isinstance(plan, Join):
            return self._join(plan)
        if isinstance(plan, Union):
            return reduce(lambda whole, other: whole.unionAll(other), map(self.lower, plan.inputs)).alias(
                plan.alias
            )
        return self._aggregate(plan)

    def _join(self, plan: Join) -> Any:
        from pyspark.sql import functions as F

        left, right = self.lower(plan.left), self.lower(plan.right)
        if plan.kind == "right" and (size := self._size(right)) is not None and size <= BROADCAST:
            # Spark cannot broadcast the right side of a right join, as no task knows whether another one
            # found a match for a right row. A semi join with the right side broadcast can: it reads the
            # large left side once, and few rows remain to be joined.
            left = left.join(F.broadcast(right), F.expr(plan.condition.text), "left_semi")
            if isinstance(plan.left, Scan) and is_of_few(plan.right) and (few := self._few(left)) is not None:
                left = F.broadcast(few.alias(plan.left.alias))
        return left.join(right, F.expr(plan.condition.text), plan.kind)

    def _aggregate(self, plan: Aggregate) -> Any:
        grouped = self.lower(plan.input).groupBy(*_named(plan.keys))
        return grouped.agg(*_named(plan.columns)).alias(plan.alias)


def with_columns(frame: Any, columns: Iterable[tuple[str, str]]) -> Any:
    """Returns the frame with these columns (name, SQL). All are passed in one call, because a `Column` for
    each would take several calls to the JVM. A line break follows each text, because it may end in a comment
    (`a -- net`)."""
    return frame.selectExpr(*(f"({text}\n) AS {col(name)}" for name, text in columns))


def _named(columns: tuple[tuple[str, Expression | GroupAggregate], ...]) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.expr(value.text).alias(name) for name, value in columns]


def nullable_schema(frame: Any) -> Schema:
    """Returns the columns of a computed frame, all nullable: the writer checks for nulls in NOT NULL
    columns."""
    return Schema([field.with_(nullable=True) for field in of_frame(frame)])
