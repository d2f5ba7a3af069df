"""Selects files by conditions on partition columns that the predicate tree cannot express, such as
`year(day) = 2024`.

The engine evaluates the condition once for each partition. The matching partitions become the predicate:
`day = '2024-03-05' OR day = '2024-03-06'`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.errors import DeltaError
from deltaic.log.references import addresses, data_files
from deltaic.plan.nodes import Filter, Plan
from deltaic.planning.literals import value_text
from deltaic.protocol.schema import decimal_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.plan.expression import Expression

MOST_EVALUATED = 10_000
"""Maximum number of partitions for which the engine evaluates a condition; with more, the condition is
residual."""
MOST_IN_PREDICATE = 200
"""Maximum number of partitions in a predicate, as each file is compared with each of them; with more matching
partitions, the condition is residual."""
_LOCATION = "__deltaic_location"
# Types whose values are equal exactly if their literals are. Floats are not: 0.0 = -0.0.
_TYPES = ("byte", "short", "integer", "long", "boolean", "string", "date", "timestamp", "timestamp_ntz")


def partition_predicate(
    snapshot: Snapshot, engine: Engine, condition: Expression, among: _core.Predicate | None, alias: str
) -> Any:
    """Returns a predicate that is equivalent to `condition` on the files that match `among`. None if the
    condition reads other than partition columns, is not deterministic, fails on a partition, or has too many
    partitions."""
    names = sorted({path[0] for _, path in condition.columns})
    if not names or not condition.deterministic or not set(names) <= set(snapshot.metadata.partition_columns):
        return None
    if not all(
        isinstance(kind := snapshot.schema.field(name).type, str) and (kind in _TYPES or decimal_parts(kind))
        for name in names
    ):
        return None
    partitions = _values(snapshot, names, among)
    if partitions.num_rows > MOST_EVALUATED:
        return None
    try:
        matching = engine.to_table(engine.run(Filter(engine.source(partitions, alias), condition)))
    except DeltaError:  # the query raises it if a row of the partition is read
        return None
    if matching.num_rows > MOST_IN_PREDICATE:
        return None
    try:
        tests = [_is(row) for row in matching.select(names).to_pylist()]
    except (OverflowError, ValueError):  # a date or timestamp after the year 9999, which Python does not have
        return None
    return _core.Predicate.from_json(
        json.dumps({"op": "or", "args": tests} if tests else {"op": "false"}), snapshot.table_schema
    )


def matching_files(
    snapshot: Snapshot,
    engine: Engine,
    conditions: Sequence[Expression],
    files: pa.Table,
    among: _core.Predicate | None,
    alias: str,
) -> pa.Table:
    """Returns the `add` actions of `files` whose partition values match all `conditions`, which read
    partition columns alone. `among`: the predicate that selected `files`. Unlike `partition_predicate`, the
    function has no limits, and raises the engine's error if a condition fails on a partition of `files`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not files.num_rows:
        return files
    listing = snapshot.core.listing(snapshot.table_schema, among, statistics_columns=[]).to_table()
    columns = _columns(snapshot, listing, snapshot.metadata.partition_columns)
    rows: Plan = engine.source(pa.table({**columns, _LOCATION: listing["location"]}), alias)
    for condition in conditions:
        rows = Filter(rows, condition)
    matching = engine.to_table(engine.run(rows))[_LOCATION].combine_chunks()
    location = snapshot.location
    return files.filter(pc.is_in(addresses(data_files(files, location), location), value_set=matching))


def _columns(snapshot: Snapshot, listing: pa.Table, names: Sequence[str]) -> dict[str, pa.Array]:
    """Returns the partition columns `names`, with a row for each file of the listing."""
    import pyarrow.compute as pc

    values = listing["partition_values"].combine_chunks()
    place = {name: index for index, name in enumerate(snapshot.metadata.partition_columns)}
    return {name: pc.struct_field(values, [place[name]]) for name in names}


def _values(snapshot: Snapshot, names: list[str], among: _core.Predicate | None) -> pa.Table:
    """Returns the distinct values of these partition columns."""
    import pyarrow as pa

    listing = snapshot.core.listing(snapshot.table_schema, among, statistics_columns=[]).to_table()
    if not listing.num_rows:
        return snapshot.table_schema.to_arrow(names).empty_table()
    columns = pa.table(_columns(snapshot, listing, names))
    return columns.group_by(names, use_threads=False).aggregate([])


def _is(row: dict[str, Any]) -> dict[str, Any]:
    tests = [
        {"op": "is_null", "column": [name]}
        if value is None
        else {"op": "=", "column": [name], "literal": value_text(value)}
        for name, value in row.items()
    ]
    return {"op": "and", "args": tests}
