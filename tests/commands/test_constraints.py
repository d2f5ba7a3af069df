"""Rules that every new row must satisfy: one table with each rule, and each command that adds rows; CHECK
constraints that are added, dropped and kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable, Schema
from deltaic.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    InvalidArgumentError,
    MetadataChangedException,
    SchemaMismatchError,
)
from deltaic.protocol.features import supported
from deltaic.protocol.schema import Field


@dataclass(frozen=True)
class RuleCase:
    """A table (id long, v of some type) with a rule that `bad`, a value of v as SQL and in Python, breaks and
    `good` does not."""

    message: str
    schema: Schema
    good: tuple[str, Any]
    bad: tuple[str, Any]
    properties: dict[str, str] = field(default_factory=dict)

    def rows(self, *rows: tuple[int, Any]) -> pa.Table:
        table = pa.Table.from_pylist(
            [{"id": number, "v": value} for number, value in rows], schema=pa.schema(self.schema)
        )
        # Only the types: the table must itself check that a column has no null.
        return table.cast(pa.schema([pa.field(item.name, _nullable(item.type)) for item in table.schema]))


def _nullable(kind: pa.DataType) -> pa.DataType:
    return pa.struct([item.with_nullable(True) for item in kind]) if pa.types.is_struct(kind) else kind


def _schema(ddl: str, **metadata: Any) -> Schema:
    return Schema(
        [item.with_(metadata=metadata) if item.name == "v" else item for item in Schema.from_ddl(ddl)]
    )


_INVARIANT = json.dumps({"expression": {"expression": "v > 0"}})
RULES = {
    "check": RuleCase(
        "CHECK constraint small",
        Schema.from_ddl("id bigint, v int"),
        ("7", 7),
        ("11", 11),
        {"delta.constraints.small": "v < 10"},
    ),
    "check of null": RuleCase(
        "CHECK constraint small",
        Schema.from_ddl("id bigint, v int"),
        ("7", 7),
        ("null", None),
        {"delta.constraints.small": "v < 10"},
    ),
    "invariant": RuleCase(
        "invariant of column v",
        _schema("id bigint, v int", **{"delta.invariants": _INVARIANT}),
        ("7", 7),
        ("-1", -1),
    ),
    "not null": RuleCase(
        "v is NOT NULL", Schema.from_ddl("id bigint, v int not null"), ("7", 7), ("null", None)
    ),
    "not null in a struct": RuleCase(
        r"v\.a is NOT NULL",
        Schema.from_ddl("id bigint, v struct<a: int not null>"),
        ("named_struct('a', 7)", {"a": 7}),
        ("named_struct('a', cast(null as int))", {"a": None}),
    ),
    "generated": RuleCase(
        "generated column v is not what",
        Schema.from_ddl("id bigint, v int generated always as (if(id > 0, 7, 0))"),
        ("7", 7),
        ("8", 8),
    ),
    "varchar": RuleCase(
        r"longer than its type takes.*varchar\(2\)",
        Schema(
            [Field("id", "long"), Field("v", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(2)"})]
        ),
        ("'ab'", "ab"),
        ("'abc'", "abc"),
    ),
}

Way = Callable[[DeltaTable, RuleCase, tuple[str, Any]], object]


def _merge(table: DeltaTable, case: RuleCase, value: tuple[str, Any]) -> Any:
    return table.merge(case.rows((1, value[1]), (5, value[1])), "t.id = s.id")


def _add_file(table: DeltaTable, case: RuleCase, value: tuple[str, Any]) -> None:
    pq.write_table(case.rows((5, value[1])), f"{table.location}/extern.parquet")
    table.add_files(["extern.parquet"])


WAYS: dict[str, Way] = {
    "append": lambda table, case, value: deltaic.write(
        table, case.rows((5, case.good[1]), (6, value[1])), mode="append"
    ),
    "append of a stream": lambda table, case, value: deltaic.write(
        table, case.rows((5, value[1])).to_reader(), mode="append"
    ),
    "overwrite": lambda table, case, value: deltaic.write(table, case.rows((5, value[1])), mode="overwrite"),
    "overwrite where": lambda table, case, value: deltaic.write(
        table, case.rows((1, value[1])), mode="overwrite", where="id = 1"
    ),
    "update": lambda table, case, value: table.update({"v": value[0]}, "id = 1"),
    "merge, update": lambda table, case, value: (
        _merge(table, case, value).when_matched_update_all().execute()
    ),
    "merge, insert": lambda table, case, value: (
        _merge(table, case, value).when_not_matched_insert_all().execute()
    ),
    "merge, by source": lambda table, case, value: (
        _merge(table, case, value).when_not_matched_by_source_update({"v": value[0]}).execute()
    ),
    "insert": lambda table, case, value: deltaic.sql(
        f"INSERT INTO delta.`{table.location}` VALUES (5, {value[0]})"
    ),
    "update in SQL": lambda table, case, value: deltaic.sql(
        f"UPDATE delta.`{table.location}` SET v = {value[0]} WHERE id = 1"
    ),
    "add_files": _add_file,
}


ON_SPARK = ("check",)
"""The rules that are tried on Spark, too, where every other one is checked by the same expressions, and a
commit takes a second."""


@pytest.mark.parametrize("way_in", WAYS)
@pytest.mark.parametrize(
    ("rule", "on_spark"),
    [*((rule, False) for rule in RULES), *((rule, True) for rule in ON_SPARK)],
    ids=lambda value: str(value),
)
def test_every_way_in_keeps_every_rule(
    tmp_path: Path, request: Any, rule: str, on_spark: bool, way_in: str
) -> None:
    case = RULES[rule]
    DeltaTable.create(tmp_path / "t", case.schema, properties=case.properties)
    deltaic.write(tmp_path / "t", case.rows((1, case.good[1]), (2, case.good[1])), mode="append")
    table = DeltaTable(tmp_path / "t", spark=request.getfixturevalue("spark") if on_spark else None)
    with pytest.raises(ConstraintViolationError, match=case.message):
        WAYS[way_in](table, case, case.bad)
    assert DeltaTable(tmp_path / "t").version == 1
    WAYS[way_in](table, case, case.good)
    assert DeltaTable(tmp_path / "t").version == 2


EMPTY_WAYS: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: deltaic.write(table, pa.table({"id": [2], "p": [""], "q": ["x"]}), mode="append"),
    "append, nullable": lambda table: deltaic.write(
        table, pa.table({"id": [2], "p": ["x"], "q": [""]}), mode="append"
    ),
    "overwrite where": lambda table: deltaic.write(
        table, pa.table({"id": [2], "p": ["x"], "q": [""]}), mode="overwrite", where="q = ''"
    ),
    "update": lambda table: table.update({"p": "''"}),
    "update, nullable": lambda table: table.update({"q": "''"}),
    "merge": lambda table: (
        table.merge(pa.table({"id": [2], "p": [""], "q": ["x"]}), "t.id = s.id")
        .when_not_matched_insert_all()
        .execute()
    ),
}


@pytest.mark.parametrize("way_in", EMPTY_WAYS)
def test_an_empty_partition_value_is_null_for_every_rule(
    tmp_path: Path, session: Any, vectors: bool, way_in: str
) -> None:
    """PROTOCOL.md, "Partition Value Serialization": the empty text means null."""
    schema = Schema.from_ddl("id bigint, p string NOT NULL, q string")
    properties = {"delta.enableDeletionVectors": vectors}
    made = DeltaTable.create(tmp_path / "t", schema, partition_by=["p", "q"], properties=properties)
    made.alter.add_constraints({"q_is_set": "q IS NOT NULL"})
    deltaic.write(made, pa.table({"id": [1], "p": ["a"], "q": ["b"]}), mode="append")
    table = DeltaTable(tmp_path / "t", spark=session)
    with pytest.raises((ConstraintViolationError, SchemaMismatchError)) as caught:
        EMPTY_WAYS[way_in](table)
    assert re.search(r"q_is_set; found 1 row.* q = null|where of the overwrite|column p\b", str(caught.value))
    assert DeltaTable(tmp_path / "t").scan().to_arrow().to_pylist() == [{"id": 1, "p": "a", "q": "b"}]


@pytest.fixture
def table(make: Any) -> DeltaTable:
    made: DeltaTable = make(pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]}))
    return made


def test_a_constraint_is_added_dropped_and_in_the_history(table: DeltaTable) -> None:
    table.alter.add_constraints({"Positive": "id  >  0"})
    assert table.metadata.configuration["delta.constraints.positive"] == "id  >  0"
    assert "checkConstraints" in supported(table.protocol)
    shown = table.history(limit=1)[0]
    assert (shown["operation"], shown["operationParameters"]) == (
        "ADD CONSTRAINT",
        {"name": "Positive", "expr": "id  >  0"},
    )
    with pytest.raises(InvalidArgumentError, match="already"):
        table.alter.add_constraints({"POSITIVE": "id > 1"})
    with pytest.raises(InvalidArgumentError, match="no such constraint; found 'other'; expected positive"):
        table.alter.drop_constraint("other")
    version = table.version
    table.alter.drop_constraint("other", if_exists=True)
    assert table.version == version
    table.alter.drop_constraint("POSITIVE")
    assert "delta.constraints.positive" not in table.metadata.configuration
    assert table.history(limit=1)[0]["operationParameters"] == {
        "name": "POSITIVE",
        "expr": "id  >  0",
        "existed": "true",
    }
    deltaic.write(table, pa.table({"id": [-1], "s": ["x"]}), mode="append")


def test_the_rows_that_are_there_are_checked(table: DeltaTable) -> None:
    with pytest.raises(
        ConstraintViolationError, match=r"constraint c; found 2 rows, one with id = [12]; expected id > 2"
    ):
        table.alter.add_constraints({"c": "id > 2"})
    with pytest.raises(
        ConstraintViolationError, match="found 1 row, with s = null; expected s <> 'z'"
    ):  # null breaks it, as in delta-spark
        table.alter.add_constraints({"fine": "id > 0", "c": "s <> 'z'"})
    table.delete("id < 3")
    table.alter.add_constraints({"c": "id > 2", "d": "s = 'c' and id < 4"})
    assert sorted(key for key in table.metadata.configuration if "constraints" in key) == [
        "delta.constraints.c",
        "delta.constraints.d",
    ]


def test_an_error_names_the_constraint_the_values_and_how_many_rows(table: DeltaTable) -> None:
    table.alter.add_constraints({"c": "id > 0 OR s = 'x'"})
    with pytest.raises(
        ConstraintViolationError,
        match=r"CHECK constraint c; found 2 rows, one with id = -[12], s = (y|null); expected id",
    ):
        deltaic.write(table, pa.table({"id": [5, -1, -2, -3], "s": ["a", "y", None, "x"]}), mode="append")
    with pytest.raises(ConstraintViolationError, match="found 1 row, with id = -9, s = a"):
        table.update({"id": "-9"}, "id = 1")


@pytest.mark.parametrize(
    ("name", "condition", "error"),
    [
        ("c", "nope > 1", InvalidArgumentError),
        ("c", "id >", InvalidArgumentError),
        ("c", "id + 1", SchemaMismatchError),
        ("c", "max(id) > 1", InvalidArgumentError),
        ("", "id > 1", InvalidArgumentError),
    ],
)
def test_what_is_no_constraint(table: DeltaTable, name: str, condition: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        table.alter.add_constraints({name: condition})


def test_rows_and_constraints_that_come_at_the_same_time_conflict(table: DeltaTable) -> None:
    before = DeltaTable(table.location)
    deltaic.write(DeltaTable(table.location), pa.table({"id": [-1], "s": ["x"]}), mode="append")
    with pytest.raises(ConcurrentAppendException):
        before.alter.add_constraints({"c": "id > 0"})
    fresh, late = DeltaTable(table.location), DeltaTable(table.location)
    fresh.alter.add_constraints({"c": "id > -5"})
    with pytest.raises(MetadataChangedException):
        late.update({"id": "-9"}, "id = 1")


def test_columns_that_a_constraint_reads_stay(table: DeltaTable) -> None:
    table.alter.set_properties({"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"})
    table.alter.add_columns("n int")
    table.alter.add_constraints({"c": "n > 0 or n is null"})
    for change in (
        lambda: table.alter.drop_columns("n"),
        lambda: table.alter.rename_column("n", "m"),
        lambda: table.alter.change_column("n", type="long"),
        lambda: deltaic.write(
            table, pa.table({"id": [9], "s": ["x"], "n": [2**40]}), mode="append", schema_mode="merge"
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=r"uses the column; found delta\.constraints\.c"):
            change()
    table.alter.drop_constraint("c")
    table.alter.rename_column("n", "m")


def test_constraints_of_a_new_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with pytest.raises(InvalidArgumentError, match="nope"):
        DeltaTable.create(path, "id bigint", properties={"delta.constraints.c": "nope > 1"})
    with pytest.raises(ConstraintViolationError, match="constraint c"):
        deltaic.write(path, pa.table({"id": [0]}), properties={"delta.constraints.C": "id > 0"})
    deltaic.write(path, pa.table({"id": [1]}), properties={"delta.constraints.C": "id > 0"})
    table = DeltaTable(path)
    assert table.metadata.configuration["delta.constraints.c"] == "id > 0"
    with pytest.raises(ConstraintViolationError, match="constraint c"):
        deltaic.write(table, pa.table({"id": [0]}), mode="append")
    with pytest.raises(InvalidArgumentError, match="add_constraints"):
        table.alter.set_properties({"delta.constraints.d": "id > 0"})


def test_the_statements(tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    deltaic.sql(f"CREATE TABLE {name} (id INT, s STRING) TBLPROPERTIES ('delta.constraints.a' = 'id > 0')")
    deltaic.sql(f"ALTER TABLE {name} ADD CONSTRAINT b CHECK (s IN ('x', 'y)'))")
    assert DeltaTable(tmp_path / "t").metadata.configuration["delta.constraints.b"] == "s IN ('x', 'y)')"
    deltaic.sql(f"INSERT INTO {name} VALUES (1, 'y)')")
    with pytest.raises(ConstraintViolationError, match="constraint b; found"):
        deltaic.sql(f"INSERT INTO {name} VALUES (1, 'z')")
    with pytest.raises(InvalidArgumentError, match="no such constraint"):
        deltaic.sql(f"ALTER TABLE {name} DROP CONSTRAINT nope")
    deltaic.sql(f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS nope")
    deltaic.sql(f"ALTER TABLE {name} DROP CONSTRAINT b")
    deltaic.sql(f"INSERT INTO {name} VALUES (1, 'z')")


def test_files_may_be_taken_in_without_a_look_at_their_rows(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1]}), properties={"delta.constraints.c": "id > 0"})
    pq.write_table(pa.table({"id": [-1]}), tmp_path / "t" / "x.parquet")
    with pytest.raises(ConstraintViolationError, match="found 1 row, with id = -1; expected id > 0"):
        table.add_files(["x.parquet"])
    table.add_files(["x.parquet"], check_rows=False)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [-1, 1]
