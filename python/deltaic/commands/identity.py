"""Identity columns: unique numbers that a table assigns to new rows.

Source: PROTOCOL.md, "Identity Columns". The numbers continue after `delta.identity.highWaterMark` in the
column's metadata. A commit updates the mark in the version that adds its rows. If two commits number rows at
the same time, one of them fails with a conflict, as in delta-spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deltaic.errors import InvalidArgumentError
from deltaic.log.snapshot import table_schema
from deltaic.plan.expression import GroupAggregate, column
from deltaic.plan.nodes import Aggregate, Plan, Scan
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import supported
from deltaic.protocol.schema import Field, Schema, walk

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic import _core
    from deltaic.engine.engine import Engine
    from deltaic.protocol.actions import Metadata, Protocol

START = "delta.identity.start"
STEP = "delta.identity.step"
MARK = "delta.identity.highWaterMark"
_LEAST = -(2**63)
"""The least bigint."""
EXPLICIT = "delta.identity.allowExplicitInsert"
FEATURE = "identityColumns"


def columns_of(protocol: Protocol, schema: Schema) -> dict[str, Field]:
    """Returns the identity columns by name."""
    columns = {item.name: item for item in schema if START in item.metadata and STEP in item.metadata}
    return columns if columns and FEATURE in supported(protocol) else {}


def check(schema: Schema, partition_columns: Sequence[str]) -> None:
    """Raises InvalidArgumentError for an invalid identity column of a new schema: nested, not a bigint, a
    partition column, or with a step of 0."""
    for path, item in walk(schema):
        if START not in item.metadata and STEP not in item.metadata:
            continue
        where = f"identity column {'.'.join(path)}"
        numbers = [item.metadata.get(key) for key in (START, STEP)]
        if (
            any(isinstance(number, bool) or not isinstance(number, int) for number in numbers)
            or numbers[1] == 0
        ):
            raise InvalidArgumentError(
                "invalid start or step of an identity column",
                where=where,
                found=numbers,
                expected="whole numbers, no step of 0",
            )
        if len(path) > 1 or item.type != "long":
            raise InvalidArgumentError(
                "only a whole column of type bigint is an identity column", where=where, found=item.type
            ).with_values(column_type=item.type)
        if item.name in partition_columns:
            raise InvalidArgumentError("a table is not partitioned by an identity column", where=where)
        if other := {"CURRENT_DEFAULT", "delta.generationExpression"} & item.metadata.keys():
            raise InvalidArgumentError(
                "an identity column cannot have a default or a generation expression",
                where=where,
                found=sorted(other)[0],
            )


def check_inserted(columns: Mapping[str, Field], given: Collection[str]) -> None:
    """Raises InvalidArgumentError if new rows have values of a column that is GENERATED ALWAYS. `given`:
    names of the columns that the rows have, as the schema spells them."""
    for name, field in columns.items():
        if name in given and not field.metadata.get(EXPLICIT):
            raise InvalidArgumentError(
                "the values of a column that is GENERATED ALWAYS AS IDENTITY cannot be given",
                where=name,
                expected="rows without the column",
            )


def check_updated(columns: Mapping[str, Field], assigned: Iterable[str]) -> None:
    """Raises InvalidArgumentError if an update sets an identity column."""
    if names := sorted(columns.keys() & set(assigned)):
        raise InvalidArgumentError(
            "an identity column cannot be updated", where=names[0], expected="an update without the column"
        )


def numbered(engine: Engine, plan: Plan, columns: Iterable[Field]) -> Plan:
    """Numbers these identity columns in the rows of `plan`."""
    series = {field.name: (_mark(field) + field.metadata[STEP], field.metadata[STEP]) for field in columns}
    return engine.numbered(plan, series) if series else plan


def _mark(field: Field) -> int:
    """Returns the last assigned number; before the first row, the number before the start."""
    return int(field.metadata.get(MARK, field.metadata[START] - field.metadata[STEP]))


def marked(
    engine: Engine,
    store: _core.Store,
    protocol: Protocol,
    metadata: Metadata,
    schema: Schema,
    columns: Iterable[Field],
    adds: pa.Table,
) -> Metadata:
    """Updates the high-water marks of these columns in the metadata, by the rows of new files."""
    changed = {}
    for field in columns if adds.num_rows else ():
        low, high = _range(adds, field) or _scanned_range(
            engine, store, protocol, metadata, schema, field, adds
        )
        if low is not None and high is not None:
            changed[field.name] = further(field, low, high)
    return with_fields(metadata, schema, changed)


def with_fields(metadata: Metadata, schema: Schema, changed: Mapping[str, Field]) -> Metadata:
    """Replaces top-level columns in the metadata, by name."""
    if not changed:
        return metadata
    return replace(
        metadata, schema_string=Schema([changed.get(item.name, item) for item in schema]).to_json()
    )


def with_marks(now: Schema, then: Schema, schema_string: str) -> str:
    """Returns the schemaString of an older schema, `then`, with the high-water marks of the current one, so
    that no number is assigned twice."""
    known = {physical_name(item): item for item in now if MARK in item.metadata and START in item.metadata}
    changed = {}
    for item in then:
        mark = (
            known[physical_name(item)].metadata[MARK]
            if physical_name(item) in known and START in item.metadata
            else None
        )
        if mark is not None and mark != item.metadata.get(MARK):
            changed[item.name] = further(item, mark, mark)
    return Schema([changed.get(item.name, item) for item in then]).to_json() if changed else schema_string


def further(field: Field, low: int, high: int) -> Field:
    """Returns a column with its high-water mark after rows with values from `low` to `high`. The mark is a
    number of the column's series, and never before the former mark: with start 1, step 10 and `high` 25 it is
    31. Values before the start do not change the mark: with start 100 and `high` 99 the next number is 100.
    Raises InvalidArgumentError if the mark would not be a bigint."""
    start, step = field.metadata[START], field.metadata[STEP]
    reached = high if step > 0 else low
    if reached < start if step > 0 else reached > start:
        return field
    steps = -((start - reached) // step)  # rounded up to the next number of the series
    number = int(start + steps * step)
    mark = max(_mark(field), number) if step > 0 else min(_mark(field), number)
    if not _LEAST <= mark <= -_LEAST - 1:
        raise InvalidArgumentError(
            "the next number of an identity column is not a bigint", where=field.name, found=mark
        )
    return field.with_(metadata={**field.metadata, MARK: mark})


def _range(adds: pa.Table, field: Field) -> tuple[int, int] | None:
    """Returns the smallest and the largest value by the statistics of files; None if a file has none."""
    name = physical_name(field)
    bounds: list[int] = []
    for text in adds["stats"].to_pylist():
        stats = json.loads(text) if text else {}
        values = stats.get("minValues", {}).get(name), stats.get("maxValues", {}).get(name)
        if not all(isinstance(value, int) for value in values):
            return None
        bounds += values
    return min(bounds), max(bounds)


def _scanned_range(
    engine: Engine,
    store: _core.Store,
    protocol: Protocol,
    metadata: Metadata,
    schema: Schema,
    field: Field,
    adds: pa.Table,
) -> tuple[int | None, int | None]:
    scan = Scan(
        store=store,
        schema=schema,
        table_schema=table_schema(protocol, metadata),
        files=adds,
        columns=(field.name,),
    )
    return value_range(engine, scan, field)


def value_range(engine: Engine, scan: Scan, field: Field) -> tuple[int | None, int | None]:
    """Returns the smallest and the largest value of a column in the rows of a scan; None without values."""
    value = column(scan.alias, field)
    ends = Aggregate(
        scan, (), (("low", GroupAggregate("min", value)), ("high", GroupAggregate("max", value)))
    )
    table = engine.to_table(engine.run(ends))
    return table["low"][0].as_py(), table["high"][0].as_py()
