"""Computes COUNT(*), MIN and MAX over a version or some of its partitions from the statistics in the log,
without reading data files. Only exact values are returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.planning.planned import ScanPlan
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.schema import Field

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

_INTEGERS = frozenset({"byte", "short", "integer", "long"})


def totals(
    snapshot: Snapshot, aggregates: Sequence[str], predicate: _core.Predicate | None = None
) -> list[str | None] | None:
    """Returns the values of aggregates over the rows of a version as text, None for a null.

    `aggregates`: each is "count", "min <column>" or "max <column>". `predicate`: a predicate on partition
    columns alone; only files for which it is true count. The result is None if the log does not have all
    values exactly: if a file has no statistics, for MIN and MAX if a file has a deletion vector, and for a
    column without bounds."""
    only_counts = all(aggregate == "count" for aggregate in aggregates)
    if predicate is None and (snapshot.core.num_records is None or only_counts):
        count = snapshot.core.num_records
        return None if count is None else [str(count)] * len(aggregates)
    adds = ScanPlan(snapshot, predicate).selection.adds
    count = snapshot.core.num_records if predicate is None else _count(adds)
    if count is None:
        return None
    if not only_counts and pc.any(adds["deletionVector"].is_valid()).as_py():
        return None
    values: list[str | None] = []
    for aggregate in aggregates:
        kind, _, name = aggregate.partition(" ")
        if kind == "count":
            values.append(str(count))
            continue
        bounds = _bounds(snapshot, snapshot.schema.field(name), adds)
        if bounds is None:
            return None
        value = pc.min(bounds[0]) if kind == "min" else pc.max(bounds[1])
        values.append(None if not value.is_valid else str(value.as_py()))
    return values


def _count(adds: pa.Table) -> int | None:
    """Returns the number of rows of these files, without deleted rows; None if a file has no statistics."""
    rows = _core.physical_rows(adds)
    if rows.null_count:
        return None
    deleted_rows = pc.sum(pc.struct_field(adds["deletionVector"], "cardinality")).as_py() or 0
    return int(pc.sum(rows).as_py() or 0) - int(deleted_rows)


def _bounds(snapshot: Snapshot, field: Field, adds: pa.Table) -> tuple[pa.Array, pa.Array] | None:
    """Returns minimum and maximum of a column in each file, null for a file with only nulls; None if they are
    not exact, or if the type is neither an integer nor a date."""
    if field.name in snapshot.table_schema.partition_columns or (
        field.type not in _INTEGERS and field.type != "date"
    ):
        return None
    if field.metadata.get("delta.typeChanges"):
        # Files that were written before the change have bounds in the old type.
        return None
    if not adds.num_rows:
        return pa.nulls(0, pa.int64()), pa.nulls(0, pa.int64())
    name = physical_name(field)
    value = pa.int64() if field.type in _INTEGERS else pa.string()
    parts = {"minValues": value, "maxValues": value, "nullCount": pa.int64()}
    schema = pa.schema(
        [
            ("numRecords", pa.int64()),
            ("tightBounds", pa.bool_()),
            *((part, pa.struct([(name, of)])) for part, of in parts.items()),
        ]
    )
    statistics = _parsed(adds["stats"], schema)
    if statistics is None or pc.any(pc.equal(statistics["tightBounds"], False)).as_py():
        return None
    low, high, nulls = (pc.struct_field(statistics[part], name) for part in parts)
    only_nulls = pc.fill_null(pc.equal(nulls, statistics["numRecords"]), False)
    has_bounds = pc.or_(only_nulls, pc.and_(low.is_valid(), high.is_valid()))
    if not pc.all(has_bounds).as_py():
        return None
    if field.type == "date":
        # Dates are compared as text here, which is correct only if all have ten characters, as 2024-01-31
        # has.
        lengths = pc.binary_length(pa.chunked_array([*low.chunks, *high.chunks]))
        if not pc.all(pc.equal(lengths, 10)).as_py() and lengths.null_count < len(lengths):
            return None
    return low, high


def _parsed(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.Table | None:
    """Parses the columns of `schema` from each JSON text; None if a text is null or has values of other
    types."""
    import pyarrow.json

    if texts.null_count:
        return None
    lines = pc.binary_join_element_wise(texts.combine_chunks(), pa.scalar(""), pa.scalar("\n"))
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    text = data.slice(int(ends[lines.offset]), int(ends[lines.offset + len(lines)] - ends[lines.offset]))
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pyarrow.json.ReadOptions(block_size=text.size + 1)
    try:
        statistics = pyarrow.json.read_json(pa.BufferReader(text), reading, options)
    except pa.ArrowInvalid:
        # A value of another type than the schema's.
        return None
    return statistics if statistics.num_rows == len(texts) else None
