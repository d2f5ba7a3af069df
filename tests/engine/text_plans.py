"""Makes plans whose expressions are written as text, resolved over the columns of the plan below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.plan.expression import COUNT, Expression, GroupAggregate
from deltaic.plan.nodes import Aggregate, Data, Filter, Join, JoinKind, Plan, Project, Scan
from deltaic.planning.opening import scan_schema
from deltaic.protocol.schema import Schema

ENGINE = LocalEngine()
Columns = Sequence[tuple[str, str]]


def scope(plan: Plan) -> Mapping[str, Schema]:
    """Returns the columns that an expression over the plan's rows sees, by their alias."""
    if isinstance(plan, Filter):
        return scope(plan.input)
    if isinstance(plan, Join):
        return {**scope(plan.left), **scope(plan.right)}
    if isinstance(plan, Data):
        return {plan.alias: plan.schema}
    return {plan.alias: scan_schema(plan) if isinstance(plan, Scan) else ENGINE.run(plan).schema}


def filtered(rows: Plan, condition: str) -> Filter:
    return Filter(rows, ENGINE.resolve(condition, scope(rows)))


def projected(rows: Plan, columns: Columns, alias: str) -> Project:
    return Project(rows, _resolved(rows, columns), alias)


def joined(left: Plan, right: Plan, condition: str, kind: JoinKind = "inner") -> Join:
    return Join(left, right, ENGINE.resolve(condition, {**scope(left), **scope(right)}), kind)


def grouped(rows: Plan, keys: Columns, columns: Columns, alias: str = "a") -> Aggregate:
    """`columns`: `count(*)`, `min(x)`, `max(x)`."""
    return Aggregate(
        rows, _resolved(rows, keys), tuple((name, _aggregated(rows, text)) for name, text in columns), alias
    )


def _resolved(rows: Plan, columns: Columns) -> tuple[tuple[str, Expression], ...]:
    seen = scope(rows)
    return tuple((name, ENGINE.resolve(text, seen)) for name, text in columns)


def _aggregated(rows: Plan, text: str) -> GroupAggregate:
    if text == "count(*)":
        return COUNT
    function, argument = text.rstrip(")").split("(")
    assert function in ("min", "max")
    return GroupAggregate("min" if function == "min" else "max", ENGINE.resolve(argument, scope(rows)))
