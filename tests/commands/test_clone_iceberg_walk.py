"""Random walks over an Iceberg table that PyIceberg writes: after each step its conversion and its repeated
clones have its rows."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

import deltaic
from deltaic import DeltaTable
from iceberg_tables import catalog, folder_of, rows

WALKS = int(os.environ.get("DELTAIC_ICEBERG_WALKS", "4"))
STEPS = 8

VALUES: dict[str, list[Any]] = {
    "long": list(range(8)),
    "int": [-5, 0, 7, 2**31 - 1],
    "string": ["a/b c%", "x=y", "é€", "Z'\""],
    "double": [0.5, float("inf"), -1e300],
    "float": [0.5, -1.5],
    "date": [date(1969, 12, 31), date(2026, 1, 2)],
    "timestamp": [datetime(1969, 12, 31, 23), datetime(2026, 3, 4, 5, 6, 7, 8)],
    "decimal(9, 2)": [Decimal("1.50"), Decimal("-9999999.99")],
    "decimal(12, 2)": [Decimal("1.50"), Decimal("-9999999999.99")],
}
KINDS = [
    IntegerType(),
    StringType(),
    DoubleType(),
    FloatType(),
    DateType(),
    TimestampType(),
    DecimalType(9, 2),
]
WIDER = {"int": LongType(), "float": DoubleType(), "decimal(9, 2)": DecimalType(12, 2)}


class Walk:
    """An Iceberg table, and the names of the steps that it has gone."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        nested = StructType(NestedField(20, "x", IntegerType()), NestedField(21, "y", StringType()))
        fields = [NestedField(1, "id", LongType())]
        fields += [NestedField(at, f"c{at}", self.chance.choice(KINDS)) for at in range(2, 6)]
        fields += [
            NestedField(7, "s", nested),
            NestedField(8, "l", ListType(9, nested, element_required=False)),
        ]
        version = self.chance.choice(["1", "2"])
        self.table = catalog(folder).create_table(
            "n.t", Schema(*fields), properties={"format-version": version}
        )
        self.log, self.names = [f"version {version}, {self.table.schema()}"], 0
        self.append()

    def value(self, kind: Any) -> Any:
        if self.chance.random() < 0.2:
            return None
        if kind.is_struct:
            return {field.name: self.value(field.field_type) for field in kind.fields}
        if hasattr(kind, "element_type"):
            return [self.value(kind.element_type) for _ in range(self.chance.randrange(3))]
        return self.chance.choice(VALUES[str(kind)])

    def data(self) -> list[dict[str, Any]]:
        fields = self.table.schema().fields
        return [
            {field.name: self.value(field.field_type) for field in fields}
            for _ in range(self.chance.randrange(1, 5))
        ]

    def append(self) -> None:
        self.table.append(pa.Table.from_pylist(self.data(), self.table.schema().as_arrow()))

    def delete(self) -> None:
        self.table.delete(f"id = {self.chance.randrange(8)}")

    def plain(self) -> list[str]:
        return [
            field.name
            for field in self.table.schema().fields
            if field.field_type.is_primitive and field.name != "id"
        ]

    def partition(self) -> None:
        # PyIceberg writes no tables with two fields of a column.
        used = {field.source_id for field in self.table.spec().fields}
        free = [
            name
            for name in (*self.plain(), "id")
            if self.table.schema().find_field(name).field_id not in used
        ]
        if not free:
            return
        name = self.chance.choice(free)
        kind = str(self.table.schema().find_field(name).field_type)
        transforms: list[Any] = [IdentityTransform()]
        transforms += [BucketTransform(3)] if kind not in ("double", "float") else []
        transforms += [TruncateTransform(2)] if kind in ("string", "int", "long") else []
        transforms += [MonthTransform(), DayTransform()] if kind in ("date", "timestamp") else []
        self.names += 1
        with suppress(ValueError), self.table.update_spec() as change:  # the field may have been there before
            change.add_field(name, self.chance.choice(transforms), f"p{self.names}")

    def unpartition(self) -> None:
        if fields := [field.name for field in self.table.spec().fields if str(field.transform) != "void"]:
            with self.table.update_spec() as change:
                change.remove_field(self.chance.choice(fields))

    def rename(self) -> None:
        self.names += 1
        nested = {"s.x", "l.element.y"} & set(self.table.schema().column_names)
        with self.table.update_schema() as change:
            change.rename_column(self.chance.choice([*self.plain(), *sorted(nested)]), f"r{self.names} é")

    def swap(self) -> None:
        one, other = self.chance.sample(self.plain(), 2)
        for old, new in ((one, "between"), (other, one), ("between", other)):
            with self.table.update_schema() as change:
                change.rename_column(old, new)

    def drop_and_add(self) -> None:
        used = {field.source_id for spec in self.table.specs().values() for field in spec.fields}
        free = [name for name in self.plain() if self.table.schema().find_field(name).field_id not in used]
        if free:
            name = self.chance.choice(free)
            with self.table.update_schema() as change:
                change.delete_column(name)
            with self.table.update_schema() as change:
                change.add_column(name, self.chance.choice(KINDS))

    def widen(self) -> None:
        for name in [*self.plain(), *({"s.x"} & set(self.table.schema().column_names))]:
            kind = str(self.table.schema().find_field(name).field_type)
            if kind in WIDER:
                with self.table.update_schema() as change:
                    change.update_column(name, WIDER[kind])
                return

    def step(self) -> None:
        steps: list[Callable[[], None]] = [
            self.append,
            self.append,
            self.delete,
            self.partition,
            self.unpartition,
        ]
        steps += [self.rename, self.swap, self.drop_and_add, self.widen]
        step = self.chance.choice(steps)
        self.log.append(step.__name__)
        step()

    def check(self) -> None:
        names = [field.name for field in self.table.schema().fields]

        def same(table: DeltaTable) -> None:
            assert sorted(table.scan(names).to_arrow().to_pylist(), key=repr) == expected

        expected = rows(self.table)
        for kind in ("DEEP", "SHALLOW"):
            target = self.folder / kind
            deltaic.sql(
                f"CREATE OR REPLACE TABLE delta.`{target}` {kind} CLONE iceberg.`{folder_of(self.table)}`"
            )
            same(DeltaTable(target))
            for value in (0, 5):
                found = DeltaTable(target).scan(["id"], f"id = {value}").count()
                assert found == sum(row["id"] == value for row in expected)
        same(DeltaTable.convert_iceberg(self.table))
        shutil.rmtree(folder_of(self.table) / "_delta_log")


@pytest.mark.filterwarnings("ignore:Delete operation did not match:UserWarning")  # of pyiceberg
@pytest.mark.parametrize("seed", range(WALKS))
def test_random_walk(tmp_path: Path, seed: int) -> None:
    walk = Walk(tmp_path, seed)
    with deltaic.configure(allowed_roots=[tmp_path]):
        try:
            walk.check()
            for _ in range(STEPS):
                walk.step()
                walk.check()
        except Exception as error:
            raise AssertionError("\n".join([*walk.log, str(error)[:2000]])) from error
