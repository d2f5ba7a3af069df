"""Every recorded form has Spark's value, type and error condition on every row."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from spark_cases import Family
from spark_forms import FAMILIES
from spark_recording import encode, load

from deltaic.errors import DeltaError
from deltaic.protocol.schema import Field, Schema
from deltaic.protocol.schema_parser import type_from_json
from deltaic.spark_sql import values
from deltaic.spark_sql.duckdb import ExpressionError, failure_of, prepare, quote, translate

CASES = [
    (family, zone, entry) for family in FAMILIES for zone in family.zones for entry in load(family.name, zone)
]
# Java's StrictMath and the C library differ in the last place of these; everything else is exact.
LAST_PLACE = (
    "exp(",
    "expm1(",
    "ln(",
    "log",
    "power(",
    "pow(",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "degrees",
    "radians",
    "cbrt",
    "cot",
    "e()",
    "hypot",
    "sec(",
    "csc(",
)


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    prepare(connection)
    for family in FAMILIES:
        connection.register(family.name, family.rows)
        connection.execute(
            f"CREATE TABLE rows_{family.name} AS SELECT row_number() OVER () AS position, * FROM"
            f" {family.name}"
        )
    return connection


def schema_of(family: Family) -> Schema:
    return Schema(Field(field.name, delta_type(field.type)) for field in family.rows.schema)


def delta_type(kind: pa.DataType) -> Any:
    from deltaic.protocol.schema import Array, Map, Struct

    names = {
        pa.int8(): "byte",
        pa.int16(): "short",
        pa.int32(): "integer",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
    }
    names |= {
        pa.bool_(): "boolean",
        pa.string(): "string",
        pa.binary(): "binary",
        pa.date32(): "date",
        pa.timestamp("us"): "timestamp_ntz",
    }
    names[pa.timestamp("us", "UTC")] = "timestamp"
    if kind in names:
        return names[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return Array(delta_type(kind.value_type))
    if pa.types.is_map(kind):
        return Map(delta_type(kind.key_type), delta_type(kind.item_type))
    return Struct(Field(kind.field(i).name, delta_type(kind.field(i).type)) for i in range(kind.num_fields))


def answer(engine: duckdb.DuckDBPyConnection, family: Family, zone: str, form: str) -> tuple[Any, list[Any]]:
    """(type, values) of a form, an error on a row being {"error": condition}."""
    found = translate(
        form, {"t": schema_of(family)}, column_sql=lambda alias, path: quote(*path), time_zone=zone
    )
    query = f"SELECT {found.sql} AS value FROM rows_{family.name}"
    try:
        return found.type, encode(engine.sql(f"{query} ORDER BY position").to_arrow_table().column(0))
    except duckdb.Error as error:
        if not found.raises:
            raise AssertionError(f"{form} raises and does not say so: {error}") from error
    return found.type, [
        one(engine, f"{query} WHERE position = {position}") for position in range(1, family.rows.num_rows + 1)
    ]


def one(engine: duckdb.DuckDBPyConnection, query: str) -> Any:
    try:
        return encode(engine.sql(query).to_arrow_table().column(0))[0]
    except duckdb.Error as error:
        failure = failure_of(error)
        if not isinstance(failure, ExpressionError):
            raise AssertionError(f"{error}\n{query}") from error
        return {"error": failure.condition}


def same(ours: Any, recorded: Any, form: str) -> bool:
    if isinstance(recorded, dict) and "error" in recorded:
        return (
            isinstance(ours, dict) and ours.get("error", "").split(".")[0] == recorded["error"].split(".")[0]
        )
    if isinstance(ours, str) and isinstance(recorded, str) and form.startswith(LAST_PLACE):
        return ours == recorded or abs(float(ours) - float(recorded)) <= 4e-16 * abs(float(recorded))
    if isinstance(ours, list) and isinstance(recorded, list) and form.startswith("map"):
        return sorted(map(repr, ours)) == sorted(map(repr, recorded))
    return bool(ours == recorded)


@pytest.mark.parametrize(
    ("family", "zone", "entry"),
    [pytest.param(*case, id=f"{case[0].name}-{case[1]}-{case[2]['form']}") for case in CASES],
)
def test_form(engine: duckdb.DuckDBPyConnection, family: Family, zone: str, entry: dict[str, Any]) -> None:
    form = entry["form"]
    if "refused" in entry:
        with pytest.raises(DeltaError):
            answer(engine, family, zone, form)
        return
    kind, ours = answer(engine, family, zone, form)
    assert values.same_but_nulls(kind, type_from_json(json.loads(entry["type"])))
    wrong = [
        (row, mine, theirs)
        for row, (mine, theirs) in enumerate(zip(ours, entry["values"], strict=True))
        if not same(mine, theirs, form)
    ]
    assert not wrong


def test_there_are_enough_forms() -> None:
    answered = {(family.name, entry["form"]) for family, _, entry in CASES if "refused" not in entry}
    assert len(answered) >= 350
