"""Which of the target's files MERGE must look at: those where the source's keys, or the condition itself, can hold.

An equality between a column of the target and one of the source bounds the former by the values of the latter: the values themselves where
they are few, else their range. It only ever leaves out rows that match no source row.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deltaic import _core
from deltaic.plan.expression import COUNT, Expression, GroupAggregate, column
from deltaic.plan.nodes import Aggregate, Data
from deltaic.planning.literals import INTEGERS
from deltaic.planning.planned import ScanPlan
from deltaic.planning.pushdown import push
from deltaic.protocol.schema import DataType, Field, Schema, decimal_parts
from deltaic.spark_sql.char_types import has_char

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

MAX_VALUES = 1000
"""Up to so many distinct keys are looked for one by one; beyond, their range."""

_SAME = ("string", "date", "timestamp", "timestamp_ntz", "boolean")


def plan_target(snapshot: Snapshot, engine: Engine, on: Expression, source: Data, source_alias: str, target_alias: str) -> ScanPlan:
    """The scan of the target rows that may match. Nothing is left as text: the join evaluates the whole condition anyway."""
    pushed = push(
        on.conjuncts,
        snapshot.schema,
        snapshot.table_schema,
        target_alias,
        others=(source_alias,),
        time_zone=engine.time_zone,
        pads_char=engine.pads_char,
    )
    predicate = pushed.predicate
    for target, key in equalities(on.conjuncts, snapshot.schema, source.schema, source_alias, target_alias):
        if has_char(target) and engine.pads_char:  # a key equals values that end in other numbers of spaces
            continue
        found = _bounds(engine, source, target, column(source_alias, key))
        if found is not None:
            bound = _core.Predicate.from_json(json.dumps(found), snapshot.table_schema)
            predicate = bound if predicate is None else predicate & bound
    return ScanPlan(snapshot, predicate)


def equalities(
    conjuncts: tuple[Expression, ...], schema: Schema, source: Schema, source_alias: str, target_alias: str
) -> list[tuple[Field, Field]]:
    """(target column, source column) of each equality of the two, where it compares values of the column's type."""
    found = []
    for conjunct in conjuncts:
        tree = conjunct.tree
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not isinstance(tree, exp.EQ):
            continue
        for side, other in ((tree.this, tree.expression), (tree.expression, tree.this)):
            target = _bare_column(side, schema, source, target_alias)
            # An expression on the other side would have to be written anew as text, which is never done.
            key = _bare_column(other, source, schema, source_alias)
            if target is not None and key is not None and _comparable(target.type, key.type):
                found.append((target, key))
                break
    return found


def _bare_column(node: exp.Expr, schema: Schema, other: Schema, alias: str) -> Field | None:
    if not isinstance(node, exp.Column):
        return None
    parts = [part.name for part in node.parts]
    if len(parts) == 2 and parts[0].lower() == alias.lower():
        return schema.get(parts[1])
    if len(parts) == 1 and other.get(parts[0]) is None:
        return schema.get(parts[0])
    return None


def _comparable(target: DataType, source: DataType) -> bool:
    """Spark compares the two as they are, or both as a wider integer."""
    if target in INTEGERS:
        return source in INTEGERS
    return target == source and (target in _SAME or decimal_parts(target) is not None)


def _bounds(engine: Engine, source: Data, target: Field, key: Expression) -> dict[str, Any] | None:
    """The condition on the column; None where the values cannot be written down."""
    path = [target.name]
    distinct = _few_values(engine, source, key)
    if distinct is None:
        range_of = Aggregate(source, (), (("low", GroupAggregate("min", key)), ("high", GroupAggregate("max", key))))
        table = engine.to_arrow(engine.run(range_of)).read_all()
        sides = []
        for name, op in (("low", ">="), ("high", "<=")):
            texts = _texts(_within(table[name], target.type, clip=True), target.type)
            if not texts:
                return None
            sides.append({"op": op, "column": path, "literal": texts[0]})
        return {"op": "and", "args": sides}
    literals = _texts(_within(distinct, target.type), target.type)
    if literals is None:
        return None
    return {"op": "in", "column": path, "literals": literals} if literals else {"op": "false"}


def _few_values(engine: Engine, source: Data, key: Expression) -> pa.ChunkedArray | None:
    """The distinct keys, None where they are many. A null key matches nothing."""
    groups = Aggregate(source, (("key", key),), (("rows", COUNT),))
    with engine.to_arrow(engine.run(groups), limit=MAX_VALUES + 1) as reader:
        keys = reader.read_all()["key"]
    return None if len(keys) > MAX_VALUES else keys.drop_null()


def _within(values: pa.ChunkedArray, data_type: DataType, *, clip: bool = False) -> pa.ChunkedArray:
    """Integers that the column's type can hold; `clip`: the nearest such ones."""
    bits = INTEGERS.get(data_type) if isinstance(data_type, str) else None
    if bits is None:
        return values
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    values = pc.cast(values, pa.int64())
    if clip:
        return pc.max_element_wise(pc.min_element_wise(values, pa.scalar(high, pa.int64())), pa.scalar(low, pa.int64()))
    return values.filter(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high)))


def _texts(values: pa.ChunkedArray, data_type: DataType) -> list[str] | None:
    """PROTOCOL.md's "Partition Value Serialization", at most MAX_VALUES of them; None for a moment outside Python's years."""
    try:
        found = values.drop_null().to_pylist()
    except (ValueError, OverflowError):
        return None
    if data_type == "timestamp":
        return [f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z" for moment in found]
    if data_type == "timestamp_ntz":
        return [moment.isoformat(sep=" ", timespec="microseconds") for moment in found]
    if data_type == "boolean":
        return ["true" if value else "false" for value in found]
    if data_type == "date":
        return [value.isoformat() for value in found]
    return [format(value, "f") if isinstance(value, Decimal) else str(value) for value in found]
