"""Selects the target's files that MERGE must read: those that may contain the source's keys and rows for
which the condition is true.

For an equality such as `t.id = s.id`, `t.id` is restricted to the values of `s.id`: `t.id IN (3, 5)` if they
are few, else `t.id BETWEEN 3 AND 900000`. Only rows are left out that match no source row.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deltaic import _core
from deltaic.plan.expression import COUNT, Expression, GroupAggregate, column
from deltaic.plan.nodes import Aggregate, Data
from deltaic.planning.literals import value_text
from deltaic.planning.planned import ScanPlan
from deltaic.planning.pushdown import push
from deltaic.protocol.schema import INTEGER_BITS, DataType, Field, Schema, decimal_parts
from deltaic.spark_sql.char_types import has_char

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

MAX_VALUES = 1000
"""Maximum number of distinct keys that are listed in a predicate; for more keys, their range is used."""

_SAME = ("string", "date", "timestamp", "timestamp_ntz", "boolean")


def plan_target(
    snapshot: Snapshot, engine: Engine, on: Expression, source: Data, source_alias: str, target_alias: str
) -> ScanPlan:
    """Plans the scan of the target rows that may match. It has no residual predicate, as the join evaluates
    the whole condition."""
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
        # a padded key equals stored values with fewer spaces at the end
        if has_char(target) and engine.pads_char:
            continue
        bounds = _bounds(engine, source, target, column(source_alias, key))
        if bounds is not None:
            bound = _core.Predicate.from_json(json.dumps(bounds), snapshot.table_schema)
            predicate = bound if predicate is None else predicate & bound
    return ScanPlan(snapshot, predicate, changes=True)


def equalities(
    conjuncts: tuple[Expression, ...], schema: Schema, source: Schema, source_alias: str, target_alias: str
) -> list[tuple[Field, Field]]:
    """Returns (target column, source column) of each conjunct that is an equality of two columns, if it
    compares values of the target column's type."""
    pairs = []
    for conjunct in conjuncts:
        tree = conjunct.tree
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not isinstance(tree, exp.EQ):
            continue
        for side, other in ((tree.this, tree.expression), (tree.expression, tree.this)):
            target = _bare_column(side, schema, source, target_alias)
            # An expression on the other side is not supported: its text would have to be rewritten for the
            # source alone.
            key = _bare_column(other, source, schema, source_alias)
            if target is not None and key is not None and _comparable(target.type, key.type):
                pairs.append((target, key))
                break
    return pairs


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
    """True if Spark compares values of the two types without a cast, or both as a wider integer."""
    if target in INTEGER_BITS:
        return source in INTEGER_BITS
    return target == source and (target in _SAME or decimal_parts(target) is not None)


def _bounds(engine: Engine, source: Data, target: Field, key: Expression) -> dict[str, Any] | None:
    """Returns the condition on the column by the values of the key; None if the values have no literals."""
    path = [target.name]
    distinct = _few_values(engine, source, key)
    if distinct is None:
        range_of = Aggregate(
            source, (), (("low", GroupAggregate("min", key)), ("high", GroupAggregate("max", key)))
        )
        table = engine.to_table(engine.run(range_of))
        sides = []
        for name, op in (("low", ">="), ("high", "<=")):
            texts = _texts(_within(table[name], target.type, clip=True))
            if not texts:
                return None
            sides.append({"op": op, "column": path, "literal": texts[0]})
        return {"op": "and", "args": sides}
    literals = _texts(_within(distinct, target.type))
    if literals is None:
        return None
    return {"op": "in", "column": path, "literals": literals} if literals else {"op": "false"}


def _few_values(engine: Engine, source: Data, key: Expression) -> pa.ChunkedArray | None:
    """Returns the distinct keys without null, which matches nothing; None if there are more than
    MAX_VALUES."""
    groups = Aggregate(source, (("key", key),), (("rows", COUNT),))
    with engine.to_arrow(engine.run(groups), limit=MAX_VALUES + 1) as reader:
        keys = reader.read_all()["key"]
    return None if len(keys) > MAX_VALUES else keys.drop_null()


def _within(values: pa.ChunkedArray, data_type: DataType, *, clip: bool = False) -> pa.ChunkedArray:
    """Returns the integers that are in the range of the column's type. `clip`: True to replace others by the
    end of the range instead of leaving them out."""
    bits = INTEGER_BITS.get(data_type) if isinstance(data_type, str) else None
    if bits is None:
        return values
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    values = pc.cast(values, pa.int64())
    if clip:
        return pc.max_element_wise(
            pc.min_element_wise(values, pa.scalar(high, pa.int64())), pa.scalar(low, pa.int64())
        )
    return values.filter(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high)))


def _texts(values: pa.ChunkedArray) -> list[str] | None:
    """Serializes values by `value_text`; None if one is outside of Python's years."""
    try:
        return list(map(value_text, values.drop_null().to_pylist()))
    except (ValueError, OverflowError):
        return None
