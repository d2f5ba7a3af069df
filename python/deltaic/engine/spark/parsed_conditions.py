"""The text of a condition as Spark parses it, before any name in it is resolved."""

from __future__ import annotations

import re
from typing import Any

from deltaic.engine.spark.native.session import parsed_expression
from deltaic.engine.spark.read_path import ReadPath

_FILTER = re.compile(
    r"== Parsed Logical Plan ==\n[^\n]*\n\+- '?Filter (.*?)\n   \+- OneRowRelation\n\n== Analyzed",
    re.DOTALL,
)


def parsed_condition(spark: Any, read_path: ReadPath, condition: str) -> str | None:
    """Returns the text of the expression to which Spark parses a condition: `('part = a)` for `part = 'a'`.
    None if the public path does not find it. Raises Spark's error for a condition that does not parse."""
    return read_path.planned(
        "the text of a parsed condition",
        lambda: str(parsed_expression(spark, condition).toString()),
        lambda: _explained(spark, condition),
    )


def _explained(spark: Any, condition: str) -> str | None:
    """Returns the text of the node Filter in the parsed plan that EXPLAIN shows. None if the plan has another
    form, for example because Spark redacts plans in this session."""
    plan = spark.sql(f"EXPLAIN EXTENDED SELECT 1 WHERE {condition}").first()[0]
    match = _FILTER.match(plan)
    return None if match is None else match[1]
