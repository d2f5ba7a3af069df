"""The lazy result of a scan: each of its conversions gives the same rows, of one version, with columns and
filters pushed down."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import deltaic
from deltaic import DeltaTable, Rows
from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)

N = 1000


@pytest.fixture
def data() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(N), pa.int64()),
            "Name": pa.array([None if i % 10 == 0 else f"n{i % 5}" for i in range(N)]),
            "x": pa.array([float("nan") if i % 50 == 7 else i / 8 for i in range(N)]),
            "s": pa.array([{"a": i, "b": {"c": str(i)}} for i in range(N)]),
        }
    )


@pytest.fixture
def table(tmp_path: Path, data: pa.Table) -> DeltaTable:
    made = deltaic.write(tmp_path / "t", data.slice(0, 250))
    for start in range(250, N, 250):
        made = deltaic.write(made, data.slice(start, 250), mode="append")
    made.delete("id % 100 = 3")
    return made


@pytest.fixture
def live(data: pa.Table) -> pa.Table:
    return data.filter(
        pc.invert(pc.is_in(data["id"], value_set=pa.array([i for i in range(N) if i % 100 == 3])))
    )


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def test_slices_of_nested_structs_are_written_as_they_are(tmp_path: Path, data: pa.Table) -> None:
    deep = pa.table(
        {
            "a": pa.array([{"x": {"y": i}} for i in range(10)]),
            "l": pa.array([[{"x": {"y": i}}] * i for i in range(10)]),
            "m": pa.array(
                [[("k", {"x": {"y": i}})] for i in range(10)],
                pa.map_(pa.string(), pa.struct({"x": pa.struct({"y": pa.int64()})})),
            ),
        }
    )
    part = deep.slice(3, 4)
    for number, source in enumerate(
        (part, part.to_batches()[0], part.to_reader(), part.to_batches(), part.to_struct_array().chunk(0))
    ):
        written = deltaic.write(tmp_path / str(number), source)
        assert written.scan().to_arrow().to_pylist() == part.to_pylist()


def test_every_exit(table: DeltaTable, live: pa.Table) -> None:
    rows = table.scan(["id", "name"], "id between 100 and 120")
    expected = list(range(100, 103)) + list(range(104, 121))
    assert rows.schema.names == ["id", "Name"]
    assert ids(rows.to_arrow()) == expected
    assert ids(rows.to_reader().read_all()) == expected
    assert ids(pa.table(rows)) == expected
    assert sorted(rows.to_pandas()["id"]) == expected
    assert isinstance(rows.to_pandas(), pd.DataFrame)
    assert sorted(rows.to_polars()["id"]) == expected
    assert sorted(pl.DataFrame(rows)["id"]) == expected
    assert sorted(rows.to_polars(lazy=True).collect()["id"]) == expected
    assert sorted(row[0] for row in rows.to_duckdb().fetchall()) == expected
    with duckdb.connect() as connection:
        assert sorted(row[0] for row in rows.to_duckdb(connection).fetchall()) == expected
    assert ids(rows.to_dataset().to_table()) == expected
    assert rows.count() == len(expected)
    assert pa.schema(rows).equals(rows.to_arrow().schema)
    with pytest.raises(UnsupportedFeatureError, match="spark"):
        rows.to_spark()
    assert ids(table.scan().to_arrow()) == ids(live)


def test_order_is_that_of_the_files(table: DeltaTable) -> None:
    first = [row["path"] for row in table.files().to_arrow().to_pylist()]
    assert first == sorted(first)
    found = table.scan(["id"]).to_arrow()["id"].to_pylist()
    assert found == table.scan(["id"], "name rlike '.' or true").to_arrow()["id"].to_pylist()
    blocks = [value // 250 for value in found]
    assert sum(1 for left, right in pairwise(blocks) if left != right) == 3
    for block in range(4):
        inside = [value for value in found if value // 250 == block]
        assert inside == sorted(inside)


def test_a_scan_keeps_its_version(table: DeltaTable) -> None:
    rows = table.scan()
    count = rows.count()
    table.delete("id < 500")
    assert rows.count() == count
    assert rows.to_arrow().num_rows == count
    assert table.scan().count() < count


def test_residual_conditions(table: DeltaTable, live: pa.Table) -> None:
    wanted = [row["id"] for row in live.to_pylist() if row["Name"] == "n3" and row["id"] > 700]
    rows = table.scan(["id"], "name rlike '3' and id > 700")
    assert ids(rows.to_arrow()) == wanted
    assert rows.count() == len(wanted)
    assert rows.explain().evaluated == ("name rlike '3'",)
    assert sorted(row[0] for row in rows.to_duckdb().filter("id < 900").fetchall()) == [
        i for i in wanted if i < 900
    ]


def test_limit(table: DeltaTable) -> None:
    whole = table.scan(["id"], "id > 10").to_arrow()["id"].to_pylist()
    for limit in (0, 1, 7, 249, 251, 10_000, 10**30):
        rows = table.scan(["id"], "id > 10", limit=limit)
        assert rows.to_arrow()["id"].to_pylist() == whole[:limit]
        assert rows.count() == len(whole[:limit])
        assert len(table.scan(["id"], "id > 10 and name rlike '.'", limit=limit).to_arrow()) <= limit
    for wrong in (-1, True, "5"):
        with pytest.raises(InvalidArgumentError):
            table.scan(limit=wrong)  # type: ignore[arg-type]


def test_nested_and_odd_columns(table: DeltaTable) -> None:
    rows = table.scan(["S.B.c", "ID"], "s.a = 5")
    assert rows.schema.names == ["s", "id"]
    assert rows.to_arrow().to_pylist() == [{"s": {"b": {"c": "5"}}, "id": 5}]
    assert table.scan([], "id < 10").to_arrow().num_rows == 9
    for wrong in (["nope"], ["id", "ID"], ["s.nope"], ["s.a", "s.A"], ["s", "s.a"]):
        with pytest.raises(InvalidArgumentError):
            table.scan(wrong)
    with pytest.raises(InvalidTypeError):
        table.scan("id")


def test_conditions_are_checked_at_the_call(table: DeltaTable) -> None:
    for where, error in (
        ("nope = 1", InvalidArgumentError),
        ("id +", InvalidArgumentError),
        ("id", SchemaMismatchError),
        (5, InvalidTypeError),
    ):
        with pytest.raises(error):
            table.scan(where=where)  # type: ignore[arg-type]


def test_several_fields_of_one_struct(tmp_path: Path) -> None:
    inner = pa.struct({"c": pa.int64(), "d": pa.string()})
    data = pa.table(
        {
            "id": [1, 2, 3],
            "st": pa.array(
                [{"a": 1, "b": "x", "in": {"c": 1, "d": "y"}}, None, {"a": None, "b": "z", "in": None}],
                pa.struct({"a": pa.int64(), "b": pa.string(), "in": inner}),
            ),
        }
    )
    made = deltaic.write(tmp_path / "t", data)
    rows = made.scan(["st.B", "id", "st.in.d", "st.a"])
    expected = [
        {"st": {"b": "x", "in": {"d": "y"}, "a": 1}, "id": 1},
        {"st": None, "id": 2},
        {"st": {"b": "z", "in": None, "a": None}, "id": 3},
    ]
    assert rows.to_arrow().to_pylist() == expected
    assert rows.to_arrow().schema.equals(pa.schema(rows.schema))
    assert rows.schema.names == ["st", "id"]
    assert made.scan(["st.a", "st.b"], where="st.in.c = 1 and id + 0 > 0").to_arrow().to_pylist() == [
        {"st": {"a": 1, "b": "x"}}
    ]
    assert made.scan(["st.a", "st.b"], limit=2).count() == 2
    assert rows.to_dataset().to_table(filter=ds.field("id") == 3).to_pylist() == expected[2:]
    assert rows.to_polars(lazy=True).filter(pl.col("id") == 1).collect().to_dicts() == expected[:1]
    assert deltaic.write(tmp_path / "u", rows).scan().to_arrow().to_pylist() == expected
    for twice in (["st.a", "st.a"], ["st", "st.a"], ["st.in.c", "st.in", "id"], ["id", "ID"]):
        with pytest.raises(InvalidArgumentError, match="one name"):
            made.scan(twice)


def test_explain(table: DeltaTable) -> None:
    report = table.scan(["id"], "id >= 750").explain()
    assert (report.files, report.files_read, report.files_skipped_by_statistics) == (4, 1, 3)
    assert 0 < report.bytes_of_files < report.bytes
    assert report.rows == 248  # 803 and 903 are deleted
    assert "3 by statistics" in str(report)


def test_dataset_pushes_filters(table: DeltaTable, live: pa.Table) -> None:
    dataset = table.scan().to_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema.names == ["id", "Name", "s", "x"] or dataset.schema.names == [
        "id",
        "Name",
        "x",
        "s",
    ]
    condition = (ds.field("id") > 900) & ds.field("Name").isin(["n1", "n2"])
    wanted = [row["id"] for row in live.to_pylist() if row["id"] > 900 and row["Name"] in ("n1", "n2")]
    assert ids(dataset.to_table(columns=["id"], filter=condition)) == wanted
    assert ids(dataset.filter(condition).to_table()) == wanted
    assert dataset.count_rows(filter=condition) == len(wanted)
    assert dataset.head(5, columns=["id"]).num_rows == 5
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["id"])) == live.num_rows
    doubled = dataset.to_table(
        columns={"twice": pc.add(ds.field("id"), ds.field("id"))}, filter=ds.field("id") < 3
    )
    assert doubled["twice"].to_pylist() == [0, 2, 4]
    odd = pc.equal(pc.bit_wise_and(ds.field("id"), 1), 1)  # the predicate tree cannot express it
    assert dataset.count_rows(filter=odd) == sum(1 for value in live["id"].to_pylist() if value % 2)
    with pytest.raises(KeyError):
        dataset.to_table(columns=["nope"])
    for refused in (
        dataset.get_fragments,
        lambda: dataset.replace_schema(dataset.schema),
        lambda: dataset.join(dataset, "id"),
    ):
        with pytest.raises(UnsupportedFeatureError, match="fragments"):
            refused()


def test_duckdb_sees_spark_floats(table: DeltaTable, live: pa.Table) -> None:
    """NaN is greater than every number in DuckDB and in Spark alike, however the filter is pushed."""
    with duckdb.connect() as connection:
        rows = table.scan().to_duckdb(connection)
        greater = sum(1 for value in live["x"].to_pylist() if value != value or value > 100)
        assert rows.filter("x > 100").count("*").fetchall() == [(greater,)]
        expected = sum(row["id"] for row in live.to_pylist() if row["Name"] == "n2")
        assert rows.filter("\"Name\" = 'n2'").sum("id").fetchall() == [(expected,)]
        assert rows.filter("s.a > 990").count("*").fetchall() == [(9,)]


def test_polars_pushes(table: DeltaTable, live: pa.Table) -> None:
    frame = table.scan().to_polars(lazy=True)
    assert isinstance(frame, pl.LazyFrame)
    found = frame.filter((pl.col("id") > 500) & pl.col("Name").is_null()).select("id").collect()
    assert sorted(found["id"]) == [
        row["id"] for row in live.to_pylist() if row["id"] > 500 and row["Name"] is None
    ]


def test_skipping_changes_nothing(table: DeltaTable) -> None:
    from deltaic.rows.scan import scan

    for where in (
        "id > 600",
        "id in (1, 999)",
        "name is null and x < 20",
        "s.a = 17",
        "not (id > 5)",
        "x > 120",
    ):
        off = scan(table._snapshot, table._engine, ["id"], where, skipping=False)
        assert table.scan(["id"], where).to_arrow().equals(off.to_arrow()), where


def test_threads_and_processors_change_nothing(table: DeltaTable) -> None:
    expected = table.scan(["id"], "name rlike '[13]' and id > 9").to_arrow()
    for threads in (1, 2, 8):
        with deltaic.configure(threads=threads):
            assert table.scan(["id"], "name rlike '[13]' and id > 9").to_arrow().equals(expected)


def test_listings(table: DeltaTable) -> None:
    listed = table.files().to_arrow()
    assert listed.num_rows == 4
    assert table.files("id > 800").count() == 1
    assert table.partitions().to_arrow().to_pylist() == [
        {"num_files": 4, "size": sum(listed["size"].to_pylist())}
    ]
    table.delete()
    assert table.partitions().to_pylist() == [{"num_files": 0, "size": 0}]


def test_partitions(tmp_path: Path) -> None:
    data = pa.table({"p": ["a", "b", None, "a"], "q": pa.array([1, 1, 2, 1], pa.int32()), "v": [1, 2, 3, 4]})
    made = deltaic.write(tmp_path / "p", data, partition_by=["p", "q"])
    found = made.partitions().to_arrow().select(["p", "q", "num_files"]).to_pylist()
    assert sorted(found, key=repr) == sorted(
        [
            {"p": "a", "q": 1, "num_files": 1},
            {"p": "b", "q": 1, "num_files": 1},
            {"p": None, "q": 2, "num_files": 1},
        ],
        key=repr,
    )
    assert made.partitions("p = 'b'").count() == 1
    assert made.scan(where="p is null").count() == 1
    assert made.scan(where="q = 1").count() == 3


def test_rows_in_memory() -> None:
    rows = Rows.of(pa.table({"a": [1, 2]}))
    assert rows.schema.names == ["a"]
    assert rows.count() == 2
    assert rows.to_arrow().to_pylist() == [{"a": 1}, {"a": 2}]
    assert pl.DataFrame(rows).shape == (2, 1)
    assert rows.explain().rows == 2


def test_rows_as_python_values(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}))
    expected = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    rows = table.scan(where="id < 3")
    assert rows.to_pylist() == expected
    assert list(rows) == expected
    assert next(iter(rows)) == expected[0]
    assert deltaic.sql("VALUES (1), (2)").to_pylist() == [{"col1": 1}, {"col1": 2}]


def test_dates_that_python_does_not_have(tmp_path: Path) -> None:
    far = pa.table({"d": pa.array([2_932_897], pa.int32()).cast(pa.date32())})  # 10000-01-01
    rows = deltaic.write(tmp_path / "t", far).scan()
    for call in (rows.to_pylist, rows.to_pandas, lambda: list(rows)):
        with pytest.raises(InvalidArgumentError, match="Python has no date or datetime"):
            call()
    assert rows.to_pandas(date_as_object=False)["d"].dt.year.to_list() == [10_000]
    assert rows.to_arrow().equals(far)


def test_rows_are_not_pickled(table: DeltaTable) -> None:
    with pytest.raises(InvalidTypeError, match=r"the DeltaTable, or rows.to_arrow\(\)"):
        pickle.dumps(table.scan())


def test_no_relation_without_columns(table: DeltaTable) -> None:
    with pytest.raises(InvalidArgumentError, match="without columns"):
        table.scan([]).to_duckdb()
    assert table.scan([]).to_arrow().num_rows == table.scan().count()


def test_filters_on_bytes_beside_floats(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "b": [b"\xff", b"", b"a"], "f": [1.0, 2.0, float("nan")]})
    dataset = deltaic.write(tmp_path / "t", rows).scan().to_dataset()
    number = ds.field("f") > 0.5
    for condition in (
        ds.field("b").isin([b"", b"a"]) & number,
        (ds.field("b") == b"\xff") & number,
        (ds.field("b") == b"") | number,
    ):
        assert dataset.to_table(filter=condition).equals(rows.filter(condition))
