"""Expressions that a plain transpilation gets wrong have Spark's value, type and error here, or are refused
under their name."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest
from spark_recording import encode, load
from test_recorded import one, same, schema_of
from transpilation import REFUSED, TRANSPILATION

from deltaic.engine.duckdb.shown_types import shown_values
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema_parser import type_from_json
from deltaic.spark_sql import values
from deltaic.spark_sql.duckdb import prepare
from deltaic.spark_sql.parsing import parse_statement
from deltaic.spark_sql.query.queries import TranslatedQuery, translate_query

CASES = [(zone, entry) for zone in TRANSPILATION.zones for entry in load(TRANSPILATION.name, zone)]


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    prepare(connection)
    connection.register("t", TRANSPILATION.rows)
    for row in range(TRANSPILATION.rows.num_rows):
        connection.register(f"t{row}", TRANSPILATION.rows.slice(row, 1))
    return connection


def query(form: str, zone: str) -> TranslatedQuery:
    return translate_query(
        parse_statement(f"SELECT {form} AS value FROM t"), {"t": schema_of(TRANSPILATION)}, time_zone=zone
    )


@pytest.mark.parametrize(
    ("zone", "entry"), [pytest.param(*case, id=f"{case[0]}-{case[1]['form']}") for case in CASES]
)
def test_trap(engine: duckdb.DuckDBPyConnection, zone: str, entry: dict[str, Any]) -> None:
    form = entry["form"]
    if form in REFUSED:
        with pytest.raises(UnsupportedFeatureError, match=form.split("(")[0]):
            query(form, zone)
        return
    if "refused" in entry:
        with pytest.raises(InvalidArgumentError):
            query(form, zone)
        return
    found = query(form, zone)
    (field,) = found.schema
    expected = json.loads(entry["type"])
    assert field.type == expected or values.same_but_nulls(field.type, type_from_json(expected))
    try:
        ours = encode(
            shown_values(engine.sql(found.sql).to_arrow_table().column(0).combine_chunks(), field.type)
        )
    except duckdb.Error:
        ours = [
            one(engine, found.sql.replace('FROM "t"', f'FROM "t{row}"'))
            for row in range(TRANSPILATION.rows.num_rows)
        ]
    assert [
        mine for mine, theirs in zip(ours, entry["values"], strict=True) if not same(mine, theirs, form)
    ] == []


def test_every_trap_is_recorded() -> None:
    assert {entry["form"] for _, entry in CASES} == set(TRANSPILATION.forms)
    assert len(CASES) == 2 * len(TRANSPILATION.forms)
