"""Identity columns: numbers that a table gives to new rows, each once.

Source: PROTOCOL.md, "Identity Columns". The numbers go on from `delta.identity.highWaterMark` in the column's metadata, which a
commit moves in the same version as its rows: of two commits that number rows at the same time one fails with a conflict, as in delta-spark.
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
EXPLICIT = "delta.identity.allowExplicitInsert"
FEATURE = "identityColumns"


def columns_of(protocol: Protocol, schema: Schema) -> dict[str, Field]:
    """The identity columns by name."""
    found = {item.name: item for item in schema if START in item.metadata and STEP in item.metadata}
    return found if found and FEATURE in supported(protocol) else {}


def check(schema: Schema, partition_columns: Sequence[str]) -> None:
    """InvalidArgumentError for an identity column of a new schema that is none: nested, no bigint, a partition column, with a step of 0."""
    for path, item in walk(schema):
        if START not in item.metadata and STEP not in item.metadata:
            continue
        where = f"identity column {'.'.join(path)}"
        numbers = [item.metadata.get(key) for key in (START, STEP)]
        if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers) or numbers[1] == 0:
            raise InvalidArgumentError(
                "start and step of an identity column", where=where, found=numbers, expected="whole numbers, no step of 0"
            )
        if len(path) > 1 or item.type != "long":
            raise InvalidArgumentError("only a whole column of type bigint is an identity column", where=where, found=item.type)
        if item.name in partition_columns:
            raise InvalidArgumentError("a table is not partitioned by an identity column", where=where)
        if other := {"CURRENT_DEFAULT", "delta.generationExpression"} & item.metadata.keys():
            raise InvalidArgumentError("an identity column is computed in one way", where=where, found=sorted(other)[0])


def check_inserted(columns: Mapping[str, Field], given: Collection[str]) -> None:
    """InvalidArgumentError where new rows give values of a column that is GENERATED ALWAYS. `given`: names in the table's case."""
    for name, field in columns.items():
        if name in given and not field.metadata.get(EXPLICIT):
            raise InvalidArgumentError(
                "the values of a column that is GENERATED ALWAYS AS IDENTITY cannot be given",
                where=name,
                expected="rows without the column",
            )


def check_updated(columns: Mapping[str, Field], assigned: Iterable[str]) -> None:
    """InvalidArgumentError where an update sets an identity column."""
    if names := sorted(columns.keys() & set(assigned)):
        raise InvalidArgumentError("an identity column cannot be updated", where=names[0], expected="an update without the column")


def numbered(engine: Engine, plan: Plan, columns: Iterable[Field]) -> Plan:
    """The rows of `plan` with numbers in these identity columns."""
    series = {field.name: (_mark(field) + field.metadata[STEP], field.metadata[STEP]) for field in columns}
    return engine.numbered(plan, series) if series else plan


def _mark(field: Field) -> int:
    """The last number that was given, or the one before the first."""
    return int(field.metadata.get(MARK, field.metadata[START] - field.metadata[STEP]))


def marked(
    engine: Engine, store: _core.Store, protocol: Protocol, metadata: Metadata, schema: Schema, columns: Iterable[Field], adds: pa.Table
) -> Metadata:
    """The metadata with the high-water marks of these columns after the rows of new files."""
    changed = {}
    for field in columns if adds.num_rows else ():
        low, high = _range(adds, field) or _scanned_range(engine, store, protocol, metadata, schema, field, adds)
        if low is not None and high is not None:
            changed[field.name] = field.with_(metadata={**field.metadata, MARK: further(field, low, high)})
    return with_fields(metadata, schema, changed)


def with_fields(metadata: Metadata, schema: Schema, changed: Mapping[str, Field]) -> Metadata:
    """The metadata with these top-level columns in the place of those of their names."""
    if not changed:
        return metadata
    return replace(metadata, schema_string=Schema([changed.get(item.name, item) for item in schema]).to_json())


def with_marks(now: Schema, then: Schema, schema_string: str) -> str:
    """The text of an older schema, `then`, with the high-water marks of today's, so that no number is given twice."""
    known = {physical_name(item): item for item in now if MARK in item.metadata and START in item.metadata}
    changed = {}
    for item in then:
        mark = known[physical_name(item)].metadata[MARK] if physical_name(item) in known and START in item.metadata else None
        if mark is not None and mark != item.metadata.get(MARK):
            changed[item.name] = item.with_(metadata={**item.metadata, MARK: further(item, mark, mark)})
    return Schema([changed.get(item.name, item) for item in then]).to_json() if changed else schema_string


def further(field: Field, low: int, high: int) -> int:
    """The high-water mark after values from `low` to `high`: a number of the column's series, never before the former mark."""
    start, step = field.metadata[START], field.metadata[STEP]
    reached = high if step > 0 else low
    steps = -((start - reached) // step)  # rounded up to the next number of the series
    number = int(start + steps * step)
    return max(_mark(field), number) if step > 0 else min(_mark(field), number)


def _range(adds: pa.Table, field: Field) -> tuple[int, int] | None:
    """The least and the largest value by the files' statistics; None where one has none."""
    name = physical_name(field)
    found: list[int] = []
    for text in adds["stats"].to_pylist():
        stats = json.loads(text) if text else {}
        values = stats.get("minValues", {}).get(name), stats.get("maxValues", {}).get(name)
        if not all(isinstance(value, int) for value in values):
            return None
        found += values
    return min(found), max(found)


def _scanned_range(
    engine: Engine, store: _core.Store, protocol: Protocol, metadata: Metadata, schema: Schema, field: Field, adds: pa.Table
) -> tuple[int | None, int | None]:
    scan = Scan(store=store, schema=schema, table_schema=table_schema(protocol, metadata), files=adds, columns=(field.name,))
    return value_range(engine, scan, field)


def value_range(engine: Engine, scan: Scan, field: Field) -> tuple[int | None, int | None]:
    """The least and the largest value of a column in the rows of a scan; None where there is none."""
    value = column(scan.alias, field)
    ends = Aggregate(scan, (), (("low", GroupAggregate("min", value)), ("high", GroupAggregate("max", value))))
    table = engine.to_arrow(engine.run(ends)).read_all()
    return table["low"][0].as_py(), table["high"][0].as_py()
