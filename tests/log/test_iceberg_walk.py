"""Random walks over tables with Iceberg metadata: after each step PyIceberg reads the rows that deltaic
reads, also with a filter.

PyIceberg reads no vectors of Delta's vector files, so `convert_iceberg` reads the metadata of tables with
deletion vectors.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable

pytest.importorskip("pyiceberg")
from pyiceberg.table import StaticTable

WALKS = int(os.environ.get("DELTAIC_ICEBERG_WALKS", "4"))
STEPS = 12
UTC = timezone.utc

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), list(range(12))),
    "n": (pa.int32(), [-5, 0, 7, 2**31 - 1]),
    "s": (pa.string(), ["a/b c%", "x=y", "é€", "Z'\"", "long " * 6]),
    "d": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-9999999.99"), Decimal("0.00")]),
    "w": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), Decimal("1E-10")]),
    "f": (pa.float32(), [0.1, -1.5, float("nan"), float("inf"), -0.0]),
    "x": (pa.float64(), [0.1, 1e300, float("nan"), float("-inf"), -0.0]),
    "day": (pa.date32(), [date(1969, 12, 31), date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31)]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2026, 3, 4, tzinfo=UTC)],
    ),
    "ntz": (pa.timestamp("us"), [datetime(1900, 1, 1, 0, 0, 1), datetime(2026, 3, 4, 5, 6, 7, 8)]),
    "flag": (pa.bool_(), [True, False]),
    "bin": (pa.binary(), [b"\x00\xff", b"", b"abc" * 10]),
    "arr": (pa.list_(pa.int32()), [[], [1, None], [3]]),
    "st": (
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]),
        [{"a": 1, "b": {"c": "q"}}, {"a": None, "b": None}],
    ),
    "ls": (
        pa.list_(pa.struct([("z", pa.int32()), ("y", pa.string())])),
        [[], [{"z": 1, "y": "v"}, {"z": None, "y": None}]],
    ),
    "m": (pa.map_(pa.string(), pa.float64()), [[], [("k", 0.5), ("l", None)]]),
}
PARTITIONS = ["s", "d", "day", "ts", "ntz", "flag", "n", "x", "f", "w"]
FILTERS = {
    "n": "{0} >= 0",
    "s": "{0} = 'x=y'",
    "day": "{0} < '2000-01-01'",
    "d": "{0} > 0.50",
    "id": "{0} in (1, 3, 5)",
    "flag": "{0} = true",
}


class Walk:
    """A table, the types and values of its columns, and the names of the steps that it has gone."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.compat = self.chance.choice([2, 2, 3])
        self.vectors = self.compat == 3 and self.chance.random() < 0.6
        names = ["id", *self.chance.sample(sorted(COLUMNS.keys() - {"id"}), 7)]
        self.kinds = {name: COLUMNS[name] for name in names}  # by the names of now
        able = [name for name in names if name in PARTITIONS]
        self.partitions = self.chance.sample(able, min(len(able), self.chance.choice([0, 1, 2])))
        properties = {
            f"delta.enableIcebergCompatV{self.compat}": "true",
            "delta.universalFormat.enabledFormats": "iceberg",
            "delta.enableTypeWidening": "true",
            "delta.enableDeletionVectors": str(self.vectors).lower(),
        }
        self.path = str(folder / "table")
        deltaic.write(self.path, self.rows(6), properties=properties, partition_by=self.partitions)
        self.table = DeltaTable(self.path)
        self.kinds_at: dict[int, dict[str, tuple[pa.DataType, list[Any]]]] = {}
        self.log = [
            f"compat {self.compat}, vectors {self.vectors}, partitions {self.partitions}, columns {names}"
        ]

    def rows(self, count: int) -> pa.Table:
        def value(name: str, values: list[Any]) -> Any:
            return (
                None
                if self.chance.random() < 0.2 and not self.no_nulls([name])
                else self.chance.choice(values)
            )

        columns = {
            name: pa.array([value(name, values) for _ in range(count)], kind)
            for name, (kind, values) in self.kinds.items()
        }
        return pa.table(columns)

    def no_nulls(self, names: Iterable[str] | None = None) -> list[str]:
        """Returns the columns without nulls: PyIceberg reads null lists of structs as empty ones."""
        return [name for name in names or self.kinds if name.endswith("ls")]

    def steps(self) -> dict[str, Callable[[], Any]]:
        free = [name for name in self.kinds if name not in self.partitions and name != "id"]
        start = self.chance.randrange(12)
        return {
            "append": lambda: deltaic.write(self.path, self.rows(self.chance.randrange(1, 5)), mode="append"),
            "delete": lambda: self.table.delete(f"id % 5 = {start % 5}"),
            "update": lambda: self.table.update({"id": "id + 1"}, f"id = {start}"),
            "merge": self.merge,
            "compact": lambda: self.table.optimize.compact(),
            "zorder": lambda: self.table.optimize.z_order(["id"]),
            "restore": self.restore,
            "replace": lambda: deltaic.write(self.path, self.rows(2), mode="overwrite"),
            "nothing left": lambda: self.table.delete() if self.chance.random() < 0.3 else None,
            "nulls": lambda: deltaic.write(
                self.path, self.rows(2).select(["id", *self.partitions, *self.no_nulls()]), mode="append"
            ),
            "rename": lambda: self.rename(self.chance.choice(free)),
            "drop": lambda: self.drop(self.chance.choice(free)),
            "add": self.add,
            "widen": self.widen,
            "grow": self.grow,
            "purge": lambda: self.table.optimize.purge(),
        }

    def merge(self) -> None:
        source = self.rows(3).set_column(0, "id", pa.array(self.chance.sample(range(15), 3), pa.int64()))
        self.table.merge(
            source, "t.id = s.id"
        ).when_matched_update_all().when_not_matched_insert_all().execute()

    def restore(self) -> None:
        version = self.chance.choice(sorted(self.kinds_at))
        self.table.restore(version)
        self.kinds = dict(self.kinds_at[version])

    def rename(self, name: str) -> None:
        new = f"r{self.chance.randrange(1000)} {name}"
        self.table.alter.rename_column(name, new)
        self.kinds = {new if each == name else each: kind for each, kind in self.kinds.items()}

    def drop(self, name: str) -> None:
        if len(self.kinds) > 4:
            self.table.alter.drop_columns(name)
            del self.kinds[name]

    def add(self) -> None:
        name = self.chance.choice(sorted(COLUMNS))
        if name in self.kinds:
            return
        if name in self.no_nulls([name]):
            return
        kind = COLUMNS[name]
        self.table.alter.add_columns(pa.schema([(name, kind[0])]))
        self.kinds[name] = kind

    def widen(self) -> None:
        wider = {
            pa.int32(): (pa.int64(), "bigint"),
            pa.float32(): (pa.float64(), "double"),
            pa.decimal128(9, 2): (pa.decimal128(12, 2), "decimal(12,2)"),
        }
        for name, (kind, values) in self.kinds.items():
            if kind in wider and name not in self.partitions:
                self.table.alter.change_column(name, type=wider[kind][1])
                self.kinds[name] = (wider[kind][0], values)
                return

    def grow(self) -> None:
        """Adds a field to a struct, and renames one."""
        for name, (kind, _) in self.kinds.items():
            if pa.types.is_struct(kind) and kind.num_fields == 2:
                self.table.alter.add_columns(pa.schema([(name, pa.struct([("late", pa.int64())]))]))
                self.table.alter.rename_column(f"`{name}`.b.c", "renamed")
                wide = pa.struct(
                    [("a", pa.int32()), ("b", pa.struct([("renamed", pa.string())])), ("late", pa.int64())]
                )
                self.kinds[name] = (
                    wide,
                    [{"a": 1, "b": {"renamed": "new"}, "late": 5}, {"a": 2, "b": None, "late": None}],
                )
                return

    def check(self) -> None:
        self.table.refresh()
        self.kinds_at[self.table.version] = dict(self.kinds)
        mine = self.table.scan().to_arrow()
        metadata = Path(self.path) / "metadata"
        newest = metadata / f"v{(metadata / 'version-hint.text').read_text()}.metadata.json"
        iceberg = StaticTable.from_metadata(str(newest))
        assert iceberg.properties["delta-version"] == str(self.table.version)
        if not self.has_vectors():
            theirs = iceberg.scan().to_arrow()
            assert theirs.column_names == mine.column_names
            assert ordered(theirs) == ordered(mine)
            for name in self.kinds:
                if name in FILTERS:
                    condition = FILTERS[name].format(name)
                    found = iceberg.scan(row_filter=condition, selected_fields=("id",)).to_arrow()
                    assert ordered(found) == ordered(self.table.scan(["id"], condition).to_arrow()), condition
        copy = self.folder / "copy"
        shutil.copytree(self.path, copy, ignore=shutil.ignore_patterns("_delta_log"))
        assert ordered(
            DeltaTable.convert_iceberg(copy / "metadata" / newest.name).scan(mine.column_names).to_arrow()
        ) == ordered(mine)
        shutil.rmtree(copy)

    def has_vectors(self) -> bool:
        return any(each is not None for each in self.table.files().to_arrow()["deletion_vector"].to_pylist())


def ordered(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.filterwarnings("ignore:Delete operation did not match:UserWarning")  # of pyiceberg
@pytest.mark.parametrize("seed", range(WALKS))
def test_random_walk(tmp_path: Path, seed: int) -> None:
    walk = Walk(tmp_path, seed)
    try:
        walk.check()
        for _ in range(STEPS):
            name, step = walk.chance.choice(list(walk.steps().items()))
            walk.log.append(name)
            step()
            walk.check()
    except Exception as error:
        raise AssertionError("\n".join([*walk.log, str(error)[:2000]])) from error
