"""The text of a parsed condition on the public path. Spark's EXPLAIN shows the plan before any name in it is
resolved; the condition is the text of its node Filter."""

from __future__ import annotations

import re
from typing import Any

_FILTER = re.compile(
    r"== Parsed Logical Plan ==\n[^\n]*\n\+- '?Filter (.*?)\n   \+- OneRowRelation\n\n== Analyzed",
    re.DOTALL,
)


def explained_condition(spark: Any, condition: str) -> str | None:
    """Returns the text of the expression to which Spark parses a condition: `('part = a)` for `part = 'a'`.
    None if the plan has another form, for example because Spark redacts plans in this session. Raises Spark's
    error for a condition that does not parse."""
    plan = spark.sql(f"EXPLAIN EXTENDED SELECT 1 WHERE {condition}").first()[0]
    match = _FILTER.match(plan)
    return None if match is None else match[1]
