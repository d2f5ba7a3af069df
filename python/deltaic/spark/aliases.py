"""Finds the alias that a user gave to a DataFrame."""

from __future__ import annotations

from typing import Any

from deltaic.engine.spark.native.session import is_classic_frame, logical_plan, qualified_columns

_SAME_COLUMNS = frozenset(
    [
        *("Deduplicate", "UnresolvedDeduplicate", "Filter", "Sort", "Sample"),
        *("Limit", "GlobalLimit", "LocalLimit", "Repartition", "RepartitionByExpression"),
        *("WithColumns", "WithColumnsRenamed"),
    ]
)
"""Operators of classic and Connect plans whose columns keep the alias of their child:
`df.alias("s").dropDuplicates(["id"])` has `s.id`."""


def alias_of(frame: Any) -> str | None:
    """Returns the alias of a DataFrame, or None if its plan has none or several."""
    if not is_classic_frame(frame):
        plan = getattr(frame, "_plan", None)
        while type(plan).__name__ in _SAME_COLUMNS:
            plan = getattr(plan, "_child", None)
        return getattr(plan, "_alias", None)
    plan = logical_plan(frame)
    while plan.nodeName() in _SAME_COLUMNS:
        plan = plan.children().head()
    if plan.nodeName() == "SubqueryAlias":
        return str(plan.alias())
    aliases = {alias for alias, _ in qualified_columns(frame)}
    return aliases.pop() if len(aliases) == 1 else None
