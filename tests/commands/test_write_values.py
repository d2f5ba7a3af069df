"""Values of every type of the protocol, and partition values of every type, written to a table and read
again, by deltalake too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import AppendOnlyError, ConstraintViolationError, SchemaMismatchError

UTC = timezone.utc
# Delta's type -> Arrow's, values at the edges of both.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [-128, 0, 127]),
    "short": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "integer": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float": (pa.float32(), [-1.5, 0.0, 3.4028234663852886e38, float("inf"), float("-inf")]),
    "double": (pa.float64(), [-1.5, 0.1, 1e308, 5e-324, float("inf")]),
    "decimal(38,10)": (
        pa.decimal128(38, 10),
        [Decimal("-1234567890123456789012345678.0123456789"), Decimal("0E-10")],
    ),
    "decimal(5,2)": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("1.50")]),
    "string": (pa.string(), ["", "a", "ü€😀", "x" * 5000, "a\nb\0c"]),
    "binary": (pa.binary(), [b"", b"\x00\xff", b"abc" * 1000]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [
            datetime(1582, 10, 15, tzinfo=UTC),
            datetime(2026, 2, 3, 4, 5, 6, 789012, UTC),
            datetime(9999, 12, 31, tzinfo=UTC),
        ],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(1582, 10, 15), datetime(2026, 2, 3, 4, 5, 6, 789012)]),
    "array<int>": (pa.list_(pa.int32()), [[], [1, None, 3]]),
    "map<string, bigint>": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", None)]]),
    "struct<a: int, b: struct<c: string>>": (
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]),
        [{"a": None, "b": None}, {"a": 1, "b": {"c": None}}, {"a": 2, "b": {"c": "x"}}],
    ),
    "array<struct<k: string, v: map<string, array<int>>>>": (
        pa.list_(pa.struct([("k", pa.string()), ("v", pa.map_(pa.string(), pa.list_(pa.int32())))])),
        [[{"k": "a", "v": [("x", [1, None]), ("y", None), ("z", [])]}, None], []],
    ),
}


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("name", list(VALUES))
def test_a_type_and_back(tmp_path: Path, name: str, mapping: str) -> None:
    arrow_type, values = VALUES[name]
    data = pa.table(
        {"id": pa.array(range(len(values) + 1), pa.int64()), "v": pa.array([*values, None], arrow_type)}
    )
    table = DeltaTable.create(
        tmp_path, f"id bigint, v {name}", properties={"delta.columnMapping.mode": mapping}
    )
    deltaic.write(table, data, mode="append")
    deltaic.write(table, data.slice(0, 0), mode="append")
    found = DeltaTable(tmp_path).scan().to_arrow().sort_by("id")
    assert found["v"].to_pylist() == data["v"].to_pylist()
    assert found.schema.field("v").type.equals(arrow_type)
    made = deltaic.write(tmp_path / "inferred", data)
    assert made.schema.to_ddl() == table.schema.to_ddl()
    # Deleted by vector, and rewritten: the other values stay as they are.
    table.delete("id = 0")
    table.optimize.purge()
    assert table.scan().to_arrow().sort_by("id")["v"].to_pylist() == [*values[1:], None]


def test_deltalake_reads_every_type(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    columns = {
        f"c{number}": pa.array([*values, None], kind) for number, (kind, values) in enumerate(VALUES.values())
    }
    length = max(len(column) for column in columns.values())
    data = pa.table(
        {
            name: pa.concat_arrays([column, pa.nulls(length - len(column), column.type)])
            for name, column in columns.items()
        }
    )
    deltaic.write(tmp_path, data)
    found = pa.table(
        deltalake.QueryBuilder()
        .register("t", deltalake.DeltaTable(str(tmp_path)))
        .execute("SELECT * FROM t")
        .read_all()
    )
    for name in data.column_names:
        assert found[name].to_pylist() == data[name].to_pylist(), name


TEXTS = [
    " ", "a b", " lead", "trail ", "100%", "%20", "%2F", "a/b", "a\\b", "a:b", "$1", "{}", "[x]",
    "a=b", "a?b#c", "a&b+c", "'", '"', "`", "~", "*", "|", "<>", "ü",
    "日本", "😀", "..", ".", "_x", "null", "__HIVE_DEFAULT_PARTITION__", "a\nb", "tab\t", "x" * 300, "é",
    "e\u0301",
]  # fmt: skip


@pytest.mark.parametrize("prefixes", ["false", "true"])
def test_texts_as_partition_values(tmp_path: Path, prefixes: str) -> None:
    texts = [*TEXTS, None]
    data = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "p": pa.array(texts, pa.string())})
    table = deltaic.write(
        tmp_path / "a b%20c", data, partition_by="p", properties={"delta.randomizeFilePrefixes": prefixes}
    )
    table = DeltaTable(tmp_path / "a b%20c")
    found = table.scan().to_arrow().sort_by("id")
    assert found["p"].to_pylist() == texts
    for number, text in enumerate(texts):
        where = "p IS NULL" if text is None else f"p = {deltaic.lit(text)}"
        rows = table.scan(["id"], where)
        assert rows.to_arrow()["id"].to_pylist() == [number], text
        if "CAST" not in where:  # a cast of bytes is left to the engine
            assert len(table.files(where).to_arrow()) == 1, text
    assert sorted(table.partitions().to_arrow()["p"].to_pylist(), key=str) == sorted(texts, key=str)
    table.delete(f"p = {deltaic.lit('😀')} OR id = 3")
    deltaic.write(table, data.slice(5, 1), mode="overwrite_partitions")
    table.vacuum(retention=timedelta(0), enforce_retention=False)
    gone = {texts.index("😀"), 3}
    assert sorted(DeltaTable(table.location).scan(["id"]).to_arrow()["id"].to_pylist()) == [
        n for n in range(len(texts)) if n not in gone
    ]


def test_deltalake_reads_these_partition_values(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    texts = [*TEXTS, None]
    data = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "p": pa.array(texts, pa.string())})
    deltaic.write(tmp_path, data, partition_by="p")
    found = pa.table(
        deltalake.QueryBuilder()
        .register("t", deltalake.DeltaTable(str(tmp_path)))
        .execute("SELECT * FROM t")
        .read_all()
    )
    assert [row["p"] for row in sorted(found.to_pylist(), key=lambda row: row["id"])] == texts


def test_an_empty_text_as_partition_value_is_null(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, pa.table({"id": [1, 2], "p": ["", None]}), partition_by="p")
    assert table.scan().to_arrow()["p"].to_pylist() == [None, None]
    assert len(table.files("p IS NULL").to_arrow()) == len(table.files().to_arrow())
    assert table.scan(where="p = ''").count() == 0
    assert table.delete("p IS NULL")["num_removed_files"] >= 1
    assert table.scan().count() == 0


@pytest.mark.parametrize(
    "name", [name for name in VALUES if "<" not in name and name not in ("string", "binary")]
)
def test_partition_values_of_every_type(tmp_path: Path, name: str) -> None:
    arrow_type, values = VALUES[name]
    data = pa.table(
        {"id": pa.array(range(len(values) + 1), pa.int64()), "p": pa.array([*values, None], arrow_type)}
    )
    table = DeltaTable.create(tmp_path, f"id bigint, p {name}", partition_by="p")
    deltaic.write(table, data, mode="append")
    again = DeltaTable(tmp_path)
    assert again.scan().to_arrow().sort_by("id")["p"].to_pylist() == [*values, None]
    assert again.partitions().to_arrow().num_rows == len(values) + 1
    deltaic.write(again, data.slice(1, 1), mode="overwrite_partitions")
    assert again.scan().count() == len(values) + 1
    again.delete("p IS NULL")
    assert again.scan().to_arrow().sort_by("id")["p"].to_pylist() == values
    texts = [
        json.loads(line)["add"]["partitionValues"]["p"] for line in _lines(tmp_path, 1) if '"add"' in line
    ]
    assert None in texts
    assert all(text is None or isinstance(text, str) for text in texts)


def _lines(folder: Path, version: int) -> list[str]:
    return (folder / f"_delta_log/{version:020}.json").read_text(encoding="utf-8").splitlines()


def test_binary_partition_values(tmp_path: Path) -> None:
    values = [b"abc", b"\x01\x7f", None]
    data = pa.table({"id": pa.array(range(3), pa.int64()), "p": pa.array(values, pa.binary())})
    deltaic.write(tmp_path, data, partition_by="p")
    assert DeltaTable(tmp_path).scan().to_arrow().sort_by("id")["p"].to_pylist() == values


# --- messages of what does not fit, rows that break a rule


@pytest.mark.parametrize(
    ("ddl", "column", "parts"),
    [
        ("v int", pa.array([2**40], pa.int64()), ["v", "1099511627776 (long)", "expected integer"]),
        ("v int", pa.array(["x"]), ["v", "string", "integer"]),
        ("v struct<a: int>", pa.array([{"a": "x"}]), ["v.a", "string", "integer"]),
        ("v array<int>", pa.array([["x"]]), ["v.element", "string", "integer"]),
        ("v decimal(5,2)", pa.array([Decimal("12345.00")]), ["v", "12345.00", "decimal(5,2)"]),
        (
            "v date",
            pa.array([datetime(2026, 1, 1, 12)], pa.timestamp("us")),
            ["v", "timestamp_ntz", "expected date"],
        ),
        ("v bigint not null", pa.array([1, None], pa.int64()), ["v"]),
        ("v struct<a: int not null>", pa.array([{"a": None}], pa.struct([("a", pa.int32())])), ["a"]),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, ddl: str, column: pa.Array, parts: list[str]) -> None:
    table = DeltaTable.create(tmp_path, f"id bigint, {ddl}")
    with pytest.raises((SchemaMismatchError, ConstraintViolationError)) as raised:
        deltaic.write(
            table, pa.table({"id": pa.array(range(len(column)), pa.int64()), "v": column}), mode="append"
        )
    for part in parts:
        assert part in str(raised.value), str(raised.value)
    assert list(tmp_path.glob("*.parquet")) == []
    assert DeltaTable(tmp_path).version == 0


def test_append_only_tables(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array([1, 2], pa.int64())})
    table = deltaic.write(tmp_path, data, properties={"delta.appendOnly": True})
    before = sorted(path.name for path in tmp_path.glob("*.*"))
    for command in (
        lambda: table.delete("id = 1"),
        lambda: table.delete(),
        lambda: table.update({"id": "5"}, "id = 1"),
        lambda: table.merge(data, "t.id = s.id").when_matched_delete().execute(),
        lambda: deltaic.write(table, data, mode="overwrite"),
        lambda: deltaic.write(table, data, mode="overwrite", where="id < 5"),
    ):
        with pytest.raises(AppendOnlyError):
            command()
    assert sorted(path.name for path in tmp_path.glob("*.*")) == before
    deltaic.write(table, data, mode="append")
    table.optimize.compact()
    assert table.scan().count() == 4


def test_small_files_are_packed_after_a_write(tmp_path: Path) -> None:
    properties = {"delta.autoOptimize.autoCompact": "true"}
    table = DeltaTable.create(tmp_path, "id bigint", properties=properties)
    for number in range(60):
        deltaic.write(table, pa.table({"id": pa.array([number], pa.int64())}), mode="append")
    operations = {entry["operation"] for entry in table.history()}
    assert "OPTIMIZE" in operations
    assert len(table.files().to_arrow()) < 60
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(60))


def test_an_iterator_larger_than_the_memory_it_may_take(tmp_path: Path) -> None:
    import resource

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(200):
            yield pa.record_batch(
                {
                    "id": pa.array(range(number * 50_000, (number + 1) * 50_000), pa.int64()),
                    "x": pa.array([1.5] * 50_000),
                }
            )

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with deltaic.configure(memory_limit="64MB"):
        table = deltaic.write(tmp_path, batches(), target_file_size=8 << 20)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert table.scan().count() == 10_000_000
    assert grown < 160_000_000 * 2, grown


@pytest.mark.parametrize(
    ("length", "low", "high"), [(3, "aaa", "ccc\x7f"), (0, "a", "c\x7f"), (50, "a" * 40, "c" * 40)]
)
def test_bounds_of_text_have_the_length_of_the_property(
    tmp_path: Path, length: int, low: str, high: str
) -> None:
    properties = {"delta.dataSkippingStringPrefixLength": str(length)}
    table = deltaic.write(tmp_path / "t", {"s": ["a" * 40, "c" * 40]}, properties=properties)
    (file,) = table.files().to_arrow().to_pylist()
    assert (file["min_values"], file["max_values"]) == ({"s": low}, {"s": high})


def test_a_variant_may_be_named_as_a_column_of_statistics(tmp_path: Path) -> None:
    properties = {"delta.dataSkippingStatsColumns": "v"}
    deltaic.DeltaTable.create(tmp_path / "t", "v variant, i int", properties=properties)
    deltaic.sql(f"INSERT INTO delta.`{tmp_path / 't'}` VALUES (parse_json('1'), 1), (NULL, 2)")
    assert r"nullCount\":{\"v\":1}" in (tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text()


def test_an_empty_list_of_columns_means_no_statistics(tmp_path: Path) -> None:
    properties = {"delta.dataSkippingStatsColumns": ""}
    table = deltaic.write(tmp_path / "t", {"i": [1, 2]}, properties=properties)
    assert table.scan(where="i = 5").explain().files_read == 1


def test_columns_that_cannot_have_statistics_are_left_out(tmp_path: Path) -> None:
    """Other writers name columns within arrays, and columns that were dropped since."""
    table = deltaic.DeltaTable.create(tmp_path / "t", "i int, s struct<x: int>, a array<struct<y: int>>")
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    assert '"configuration":{' in text
    named = '"configuration":{"delta.dataSkippingStatsColumns":"gone,a.element.y,s.x"'
    log.write_text(text.replace('"configuration":{', named + ("" if '"configuration":{}' in text else ",")))
    (log.parent / f"{0:020}.crc").unlink(missing_ok=True)
    deltaic.sql(f"INSERT INTO delta.`{table.location}` VALUES (1, struct(2), array(struct(3)))")
    (file,) = deltaic.DeltaTable(table.location).files().to_arrow().to_pylist()
    assert (file["min_values"]["s"], file["min_values"].get("i")) == ({"x": 2}, None)


def test_floats_with_nan_have_no_bounds_in_the_footer(tmp_path: Path) -> None:
    """Spark takes NaN for the greatest number: a maximum without it would hide the row from `value > 1`."""
    nan = float("nan")
    rows = pa.table(
        {
            "with_nan": [1.0, nan, None],
            "float": pa.array([nan, 2, 3], pa.float32()),
            "field": [{"x": nan, "n": 1}, {"x": 1.0, "n": 2}, None],
            "items": [[1.0, nan], [], None],
            "plain": [1.0, 2.0, None],
            "under_null": pa.array(np.array([1.0, nan, 2.0]), mask=np.array([False, True, False])),
        }
    )
    table = deltaic.write(tmp_path / "t", rows)
    (file,) = table.files().to_pylist()
    group = pq.read_metadata(tmp_path / "t" / file["path"]).row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    bounded = {name for name, column in columns.items() if column.statistics.has_min_max}
    assert bounded == {"field.n", "plain", "under_null"}
    assert {name for name, column in columns.items() if column.has_column_index} == bounded
    assert columns["with_nan"].statistics.null_count == 1
    assert table.scan(where="with_nan > 1").to_arrow().num_rows == 1
    assert table.scan(where="plain > 1").to_arrow().num_rows == 1
