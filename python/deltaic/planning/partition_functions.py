"""Conditions that partition values alone decide but the predicate tree cannot say (`year(day) = 2024`): the engine answers once for each
partition, and the partitions it names become the predicate."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.errors import DeltaError
from deltaic.plan.nodes import Filter
from deltaic.planning.literals import instant
from deltaic.protocol.schema import decimal_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.plan.expression import Expression

MOST_ASKED = 10_000
"""Partitions that the engine is asked about."""
MOST_NAMED = 200
"""Partitions that a predicate names: each file is compared with each of them."""
# Values whose text in a predicate is the value itself: no floats, as -0.0 and NaN equal others.
_TYPES = ("byte", "short", "integer", "long", "boolean", "string", "date", "timestamp", "timestamp_ntz")


def decided(snapshot: Snapshot, engine: Engine, condition: Expression, among: _core.Predicate | None, alias: str) -> Any:
    """A predicate that is true for just the rows of which `condition` is, among the files that `among` leaves; None where columns of
    the files' own are read, where the answer may change or fail, or where partitions are too many."""
    names = sorted({path[0] for _, path in condition.columns})
    if not names or not condition.deterministic or not set(names) <= set(snapshot.metadata.partition_columns):
        return None
    if not all(isinstance(kind := snapshot.schema.field(name).type, str) and (kind in _TYPES or decimal_parts(kind)) for name in names):
        return None
    asked = _values(snapshot, names, among)
    if asked.num_rows > MOST_ASKED:
        return None
    try:
        chosen = engine.to_table(engine.run(Filter(engine.source(asked, alias), condition)))
    except DeltaError:  # said again by a row, if one is left to say it
        return None
    if chosen.num_rows > MOST_NAMED:
        return None
    said = [_is(row) for row in chosen.select(names).to_pylist()]
    return _core.Predicate.from_json(json.dumps({"op": "or", "args": said} if said else {"op": "false"}), snapshot.table_schema)


def _values(snapshot: Snapshot, names: list[str], among: _core.Predicate | None) -> pa.Table:
    """The distinct values of these partition columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    listing = snapshot.core.listing(snapshot.table_schema, among, statistics_columns=[]).to_table()
    place = {name: index for index, name in enumerate(snapshot.metadata.partition_columns)}
    values = listing["partition_values"].combine_chunks() if listing.num_rows else None
    if values is None:
        return snapshot.table_schema.to_arrow(names).empty_table()
    columns = pa.table({name: pc.struct_field(values, [place[name]]) for name in names})
    return columns.group_by(names, use_threads=False).aggregate([])


def _is(row: dict[str, Any]) -> dict[str, Any]:
    tests = [
        {"op": "is_null", "column": [name]} if value is None else {"op": "=", "column": [name], "literal": _literal(value)}
        for name, value in row.items()
    ]
    return {"op": "and", "args": tests}


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return instant(value) if value.tzinfo is not None else value.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else str(value)
