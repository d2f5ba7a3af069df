"""Data of other libraries as rows: data that can be read only once is read once, and can then be used any
number of times."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.engine import exporters, source
from deltaic.errors import (
    DeltaConcurrentModificationException,
    InvalidArgumentError,
    InvalidTypeError,
    SchemaMismatchError,
)

ROWS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "v": ["a", "b", "c", None]})
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
BATCHES = ROWS.to_batches(max_chunksize=2)


def _connection_of(rows: pa.Table) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().from_arrow(rows.to_reader())


ONE_SHOT: dict[str, Callable[[], Any]] = {
    "reader": lambda: pa.RecordBatchReader.from_batches(ROWS.schema, iter(BATCHES)),
    "generator": lambda: (batch for batch in BATCHES),
    "iterator": lambda: iter(BATCHES),
    "map": lambda: map(pa.record_batch, BATCHES),
    "iterable": lambda: itertools.chain(BATCHES[:1], BATCHES[1:]),
    "scanner": lambda: ds.Scanner.from_batches(ROWS.to_reader()),
    "dataset of a reader": lambda: ds.InMemoryDataset(ROWS.to_reader()),
    "relation over a reader": lambda: _connection_of(ROWS),
}
one_shot = pytest.mark.parametrize("make", ONE_SHOT.values(), ids=ONE_SHOT.keys())


@one_shot
def test_a_query_may_name_it_more_than_once(make: Callable[[], Any]) -> None:
    def answer(text: str) -> Any:
        return deltaic.sql(text, tables={"d": make()}).to_arrow().to_pydict()

    assert answer("select count(*) as n from d a cross join d b") == {"n": [16]}
    assert answer("select count(*) as n from (select * from d union all select * from d)") == {"n": [8]}
    assert answer("select v from d where id = (select max(id) - 1 from d)") == {"v": ["c"]}
    assert answer("with q as (select id from d) select count(*) as n from q a join q b on a.id = b.id") == {
        "n": [4]
    }


@one_shot
def test_rows_of_a_query_come_again(make: Callable[[], Any]) -> None:
    data = make()
    rows = deltaic.sql("select id from d where id > 1", tables={"d": data, "e": data})
    assert rows.to_arrow()["id"].to_pylist() == rows.to_arrow()["id"].to_pylist() == [2, 3, 4]
    assert rows.count() == 3
    both = deltaic.sql("select count(*) as n from d join e on d.id = e.id", tables={"d": make(), "e": make()})
    assert both.to_arrow().to_pydict() == both.to_arrow().to_pydict() == {"n": [4]}


@one_shot
def test_a_merge_that_met_a_conflict_is_executed_again(make: Callable[[], Any], tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table({"id": pa.array([1, 2, 9], pa.int64()), "v": ["x", "y", "z"]})
    )
    merge = (
        table.merge(make(), "t.id = s.id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
    )
    DeltaTable(tmp_path / "t").delete("id = 1")
    with pytest.raises(DeltaConcurrentModificationException):
        merge.execute()
    table.refresh()
    assert merge.execute()["num_source_rows"] == 4
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS.to_pylist()
    assert merge.execute()["num_target_rows_deleted"] == 0
    assert table.scan().count() == 4


@one_shot
def test_a_write_of_rows_that_were_read_before_is_an_error_and_not_less_rows(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    table, data = deltaic.write(tmp_path / "t", ROWS), make()
    deltaic.write(table, data, mode="append")
    try:
        deltaic.write(table, data, mode="overwrite")
    except (InvalidArgumentError, pa.ArrowInvalid, duckdb.Error):
        assert table.scan().count() == 8
    else:  # whoever can be read again gives all rows
        assert table.scan().count() == 4


@pytest.mark.parametrize("name", ["reader", "generator"])
def test_a_write_after_a_conflict(name: str, tmp_path: Path) -> None:
    table, data = deltaic.write(tmp_path / "t", ROWS), ONE_SHOT[name]()
    DeltaTable(tmp_path / "t").delete("id = 1")
    with pytest.raises(DeltaConcurrentModificationException):
        deltaic.write(table, data, mode="overwrite")
    table.refresh()
    with pytest.raises(InvalidArgumentError, match="read before"):
        deltaic.write(table, data, mode="overwrite")
    with pytest.raises(InvalidArgumentError, match="read before"):
        table.merge(data, "t.id = s.id").when_not_matched_by_source_delete().execute()
    with pytest.raises(InvalidArgumentError, match="read before"):
        deltaic.sql("select * from d", tables={"d": data})
    assert table.scan().count() == 3


def test_a_generator_that_was_refused_for_its_columns_keeps_its_first_batch(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", ROWS.select(["id"]))
    data = (batch for batch in BATCHES)
    with pytest.raises(SchemaMismatchError):
        deltaic.write(table, data, mode="append")
    deltaic.write(table, data, mode="append", schema_mode="merge")
    assert table.scan().count() == 8


def test_a_query_reads_no_more_than_it_needs() -> None:
    taken = []

    def endless() -> Iterator[pa.RecordBatch]:
        for number in itertools.count():
            taken.append(number)
            yield pa.record_batch({"id": pa.array([number] * 100_000, pa.int64())})

    rows = deltaic.sql("select id from d limit 5", tables={"d": endless()})
    assert rows.to_arrow()["id"].to_pylist() == rows.to_arrow()["id"].to_pylist() == [0] * 5
    assert len(taken) < 1000


def test_an_error_of_the_source_is_every_readers(tmp_path: Path) -> None:
    class Broken(Exception):
        pass

    def broken() -> Iterator[pa.RecordBatch]:
        yield BATCHES[0]
        raise Broken("the source's own")

    rows = deltaic.sql("select count(*) as n from d", tables={"d": broken()})
    table = deltaic.write(tmp_path / "t", ROWS)
    merge = table.merge(broken(), "t.id = s.id").when_not_matched_by_source_delete()
    for _ in range(2):
        with pytest.raises(Broken, match="the source's own"):
            rows.to_arrow()
        with pytest.raises(Broken, match="the source's own"):
            merge.execute()
    assert table.scan().count() == 4


@pytest.mark.parametrize("has_pread", [True, False])  # Windows has no pread
def test_what_does_not_fit_into_memory_goes_to_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_pread: bool
) -> None:
    if not has_pread:
        monkeypatch.delattr(os, "pread", raising=False)
    wide = pa.table(
        {
            "id": range(10_000),
            "s": [f"{number:050}" for number in range(10_000)],
            "l": [[number, None] for number in range(10_000)],
        }
    )

    def read(limit: int) -> list[pa.Table]:
        monkeypatch.setattr(source, "MAX_BUFFERED_BYTES", limit)
        kept = source.BufferedSource(wide.to_reader(max_chunksize=1000))
        first = kept.reader()
        head = first.read_next_batch()
        return [kept.reader().read_all(), pa.Table.from_batches([head, *first]), kept.reader().read_all()]

    with deltaic.configure(temp_directory=tmp_path / "spill"):
        in_memory, on_disk, both = read(2**30), read(0), read(200_000)
    assert all(each.to_pylist() == wide.to_pylist() for each in in_memory + on_disk + both)
    with deltaic.configure(temp_limit="10kB"), pytest.raises(MemoryError, match="temp_limit"):
        read(0)


def test_threads_read_one_source_together() -> None:
    kept = source.BufferedSource(pa.table({"id": range(50_000)}).to_reader(max_chunksize=500))
    sums: list[int] = []
    threads = [
        threading.Thread(target=lambda: sums.append(sum(kept.reader().read_all()["id"].to_pylist())))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(50_000))] * 4


@pytest.mark.parametrize("library", ["duckdb", "pandas", "polars", "pyarrow.dataset"])
def test_a_library_that_another_thread_is_importing(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """sys.modules holds a module from the beginning of its import on, without its classes at first."""
    monkeypatch.setitem(sys.modules, library, ModuleType(library))
    assert exporters.is_replayable(pa.table({"id": [1]}).to_reader()) is False
    assert exporters.exporter_of(pa.table({"id": [1]}), [])[1].names == ["id"]


def test_a_relation_of_one_connection_beside_another() -> None:
    connection = duckdb.connect()
    numbers = {name: connection.sql("select range as i from range(300000)") for name in ("a", "b")}
    rows = deltaic.sql("select count(*) as n from a join b on a.i = b.i", tables=numbers)
    assert rows.to_arrow().to_pydict() == {"n": [300_000]}
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_rows_as_python_writes_them(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", [{"id": 1, "v": "a"}, {"id": 2, "w": 2.5}])
    assert table.scan().to_arrow().to_pylist() == [
        {"id": 1, "v": "a", "w": None},
        {"id": 2, "v": None, "w": 2.5},
    ]
    deltaic.write(table, {"id": [3], "v": ["c"], "w": pa.array([1.0])}, mode="append")
    assert deltaic.sql("select sum(id) as n from d", tables={"d": {"id": [1, 2]}}).to_arrow()[
        "n"
    ].to_pylist() == [3]
    for wrong, error in (
        ({"id": (number for number in range(3))}, InvalidTypeError),  # would have rows once only
        ({"id": [1], "v": ["a", "b"]}, InvalidArgumentError),
        ({"id": ["a", 1]}, SchemaMismatchError),
        ([{"id": 1}, {"id": "a"}], SchemaMismatchError),
        ([{1: 1}], InvalidTypeError),
        (pa.chunked_array([[1]]), InvalidTypeError),
    ):
        with pytest.raises(error):
            deltaic.write(table, wrong, mode="append")
    assert table.scan().count() == 3


def test_datasets_and_scanners_are_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path / "rows.parquet")
    table = deltaic.write(tmp_path / "t", dataset)
    deltaic.write(table, dataset.scanner(columns=["v", "id"], filter=ds.field("id") > 2), mode="append")
    assert table.scan(["id"]).to_arrow()["id"].to_pylist().count(3) == 2
    both = deltaic.sql("select count(*) as n from d a join d b on a.id = b.id", tables={"d": dataset})
    assert both.to_arrow()["n"].to_pylist() == [4]


def test_named_levels_of_an_index_are_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "x", "y"], "n": [1, 2, 3]})
    sums = frame.groupby(["a", "b"]).sum()
    table = deltaic.write(tmp_path / "t", sums)
    assert table.scan(["a", "b", "n"]).to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "n": 3},
        {"a": 2, "b": "y", "n": 3},
    ]
    assert table.scan().to_arrow().equals(deltaic.write(tmp_path / "u", pa.table(sums)).scan().to_arrow())
    table.merge(sums * 2, "t.a = s.a and t.b = s.b").when_matched_update_all().execute()
    assert deltaic.sql("select sum(n) as n from d where a = 1", tables={"d": sums}).to_arrow()[
        "n"
    ].to_pylist() == [3]
    assert table.scan(["n"]).to_arrow()["n"].to_pylist() == [6, 6]
    counted = pd.DataFrame({"n": [1, 2]}, index=pd.RangeIndex(2, name="id"))
    assert deltaic.write(tmp_path / "r", counted).scan(["id"]).to_arrow()["id"].to_pylist() == [0, 1]
    # A level without a name is a row's number.
    assert deltaic.write(tmp_path / "f", frame[frame["n"] > 1]).schema.names == ["a", "b", "n"]
    with pytest.raises(InvalidArgumentError, match="comes twice"):
        deltaic.write(tmp_path / "twice", pd.DataFrame({"id": [1]}, index=pd.Index([7], name="id")))


def test_values_of_pandas_that_arrow_has_not(tmp_path: Path) -> None:
    sparse = pd.DataFrame({"s": pd.arrays.SparseArray([0, 0, 1]), "n": [1, 2, 3]})
    assert deltaic.write(tmp_path / "sparse", sparse).scan(["s"]).to_arrow()["s"].to_pylist() == [0, 0, 1]
    categories = pd.DataFrame({"c": pd.Categorical(["b", None, "a"], ordered=True)})
    assert deltaic.write(tmp_path / "categories", categories).scan().to_arrow()["c"].to_pylist() == [
        "b",
        None,
        "a",
    ]
    for values in ([1, "a"], [1 + 2j, 2], [object(), None]):
        with pytest.raises(SchemaMismatchError, match="column x") as caught:
            deltaic.write(tmp_path / "t", pd.DataFrame({"n": [1, 2], "x": values}))
        assert "found object" not in str(caught.value)  # the type gives no information on the values


@pytest.mark.parametrize(("value", "kind"), [(object(), pl.Object), (1, pl.Int128), (1, pl.UInt128)])
def test_types_of_polars_without_arrow_are_refused_by_the_columns_name(
    value: object, kind: type[pl.DataType], tmp_path: Path
) -> None:
    frame = pl.DataFrame({"n": [1], "o": pl.Series([value], dtype=kind)})
    for data in (frame, frame.lazy()):
        with pytest.raises(SchemaMismatchError, match=f"column o: .*; found {kind.__name__}"):
            deltaic.write(tmp_path / "t", data)
    assert not DeltaTable.exists(tmp_path / "t")


def test_lazy_frames_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = pl.LazyFrame({"id": range(300_000), "s": ["x", None, "y"] * 100_000}).filter(pl.col("id") % 2 == 0)
    monkeypatch.setattr(pl.LazyFrame, "collect", None)  # all rows in memory
    table = deltaic.write(tmp_path / "t", lazy)
    assert table.scan(["id"]).to_arrow()["id"].to_pylist() == list(range(0, 300_000, 2))
    assert deltaic.sql(
        "select count(*) as n from d a join d b on a.id = b.id", tables={"d": lazy}
    ).to_arrow()["n"].to_pylist() == [150_000]
    failing = lazy.with_columns(bad=pl.col("s").str.to_integer(strict=True))
    with pytest.raises(pl.exceptions.PolarsError):
        deltaic.write(table, failing, mode="append", schema_mode="merge")
    assert table.scan().count() == 150_000


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_a_new_column_of_nothing_but_nulls_gets_its_type_later(tmp_path: Path, mapping: str) -> None:
    """Source: `mergeSchema` of delta-spark with a column `lit(None)`."""
    properties = {"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"}
    table = deltaic.write(tmp_path / "t", {"n": [1]}, properties=properties)
    deltaic.write(table, {"n": [2], "x": [None]}, mode="append", schema_mode="merge")
    assert table.schema.field("x").type == "void"
    table.update({"n": "n + 10"}, where="n = 2 and x is null")
    table.delete("n = 1")
    assert table.scan().to_arrow().to_pylist() == [{"n": 12, "x": None}]
    deltaic.write(table, {"n": [3], "x": [1.5]}, mode="append", schema_mode="merge")
    assert table.schema.field("x").type == "double"
    assert table.scan().to_arrow().sort_by("n").to_pylist() == [{"n": 3, "x": 1.5}, {"n": 12, "x": None}]
    for version, change in ((3, (1, None, "delete")), (4, (3, 1.5, "insert"))):
        (found,) = table.changes(version, version).to_arrow().to_pylist()
        assert (found["n"], found["x"], found["_change_type"]) == change
    deltaic.write(table, {"n": [4], "s": [{"a": 1}]}, mode="append", schema_mode="merge")
    deltaic.write(table, {"n": [5], "s": [{"b": None}]}, mode="append", schema_mode="merge")
    assert table.schema.to_ddl() == "n bigint, x double, s struct<a: bigint, b: void>"
    assert table.scan(where="n in (4, 5)").to_arrow().sort_by("n")["s"].to_pylist() == [
        {"a": 1, "b": None},
        {"a": None, "b": None},
    ]


def test_a_column_of_nothing_but_nulls_gets_its_type_later(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pd.DataFrame({"n": [1, 2], "x": [None, None]}))
    assert table.schema.field("x").type == "void"
    deltaic.write(table, {"n": [3], "x": [None]}, mode="append")
    table.update({"n": "n + 10"}, where="n = 2 and x is null")
    assert table.scan().to_arrow().sort_by("n").to_pylist() == [{"n": n, "x": None} for n in (1, 3, 12)]
    assert table.scan().to_pandas()["x"].tolist() == [None] * 3
    with pytest.raises(SchemaMismatchError, match="schema_mode='merge'"):
        deltaic.write(table, {"n": [4], "x": ["a"]}, mode="append")
    deltaic.write(table, {"n": [4], "X": ["a"]}, mode="append", schema_mode="merge")
    assert table.schema.field("x").type == "string"
    assert table.scan(where="x = 'a' or n = 1").to_arrow().sort_by("n").to_pylist() == [
        {"n": 1, "x": None},
        {"n": 4, "x": "a"},
    ]
    merged = deltaic.write(tmp_path / "m", {"n": [1], "x": [None]})
    merged.merge(
        {"n": [1, 2], "x": [1.5, 2.5]}, "t.n = s.n", schema_mode="merge"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert merged.scan().to_arrow().sort_by("n").to_pylist() == [{"n": 1, "x": 1.5}, {"n": 2, "x": 2.5}]
    for wrong in ({"x": [None]}, {"n": [1], "l": [[None]]}):
        with pytest.raises(InvalidArgumentError, match="nulls"):
            deltaic.write(tmp_path / "wrong", wrong)


def _infinite(data_type: pa.DataType, value: int) -> pa.Array:
    return pa.Array.from_buffers(
        data_type,
        2,
        [None, pa.array([0, value], pa.int32() if data_type == pa.date32() else pa.int64()).buffers()[1]],
    )


def _extended(data_type: Any, values: Any) -> pa.Array:
    return pa.ExtensionArray.from_storage(data_type, values)


def _latin_1() -> pa.Array:
    """Returns text as pyarrow reads it from a Parquet file whose writer did not encode it."""
    offsets, text = np.array([0, 2, 3], np.int32), "ok\xfc".encode("latin-1")
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _runs(values: pa.Array) -> pa.Array:
    data_type = pa.run_end_encoded(pa.int32(), values.type)
    return pa.Array.from_buffers(data_type, 2, [None], children=[pa.array([1, 2], pa.int32()), values])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.period_range("2024", periods=2, freq="M"), "pandas.period"),
        (pd.interval_range(0, 2), "pandas.interval"),
        (pa.array([pd.Timedelta(1)]), "Duration"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "Interval"),
        (pa.array([1], pa.time64("us")), "Time64"),
        (_extended(pa.bool8(), pa.array([1, 0], pa.int8())), "arrow.bool8"),
        (_extended(pa.opaque(pa.int64(), "x", "y"), pa.array([1])), "arrow.opaque"),
        (
            pa.ListArray.from_arrays([0, 1], _extended(pa.opaque(pa.int64(), "x", "y"), pa.array([1]))),
            "arrow.opaque",
        ),
        (_infinite(pa.date32(), 2**31 - 1), "row 1.*infinity"),
        (_infinite(pa.date32(), -(2**31) + 1), "row 1.*-infinity"),
        (_infinite(pa.timestamp("us"), 2**63 - 1), "row 1.*infinity"),
        (_infinite(pa.timestamp("us", "UTC"), -(2**63) + 1), "row 1.*-infinity"),
        (_infinite(pa.timestamp("ns"), 2**63 - 1), "row 1"),
        (_infinite(pa.timestamp("ms"), 2**63 - 1), "row 1.*infinity"),
        (_infinite(pa.date64(), 86_400_001), "row 1.*whole days"),
        (_infinite(pa.date64(), 2**62), "row 1"),
        (pa.array([1000, 1001], pa.timestamp("ns")), "row 1.*microseconds"),
        (pa.array([[1000, 1001]], pa.list_(pa.timestamp("ns"))), "microseconds"),
        (_latin_1(), "row 1.*UTF-8"),
        (_latin_1().dictionary_encode(), "UTF-8"),
        (pa.ListArray.from_arrays([0, 2], _latin_1()), "UTF-8"),
        (_runs(_latin_1()), "UTF-8"),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)], "date and datetime"),
        (pd.Index([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)], dtype=object), "date and datetime"),
        (pa.StructArray.from_arrays([_infinite(pa.date32(), 2**31 - 1)], ["d"]), "infinity"),
        (pa.ListArray.from_arrays([0, 1, 2], _infinite(pa.date32(), 2**31 - 1)), "infinity"),
        (pa.MapArray.from_arrays([0, 1, 2], ["a", "b"], _infinite(pa.date32(), 2**31 - 1)), "infinity"),
    ],
)
def test_values_that_delta_has_not_are_refused_by_the_columns_name(
    tmp_path: Path, values: Any, message: str
) -> None:
    data = pd.DataFrame({"x": values}) if isinstance(values, pd.Index) else {"x": values}
    with pytest.raises(SchemaMismatchError, match=f"(?s)column x.*{message}|x.*{message}"):
        deltaic.write(tmp_path / "t", data)
    assert not DeltaTable.exists(tmp_path / "t")


@pytest.mark.parametrize(
    "text",
    [
        "'infinity'::date",
        "'-infinity'::timestamp",
        "'infinity'::timestamptz",
        "['infinity'::date]",
        "{'a': 'infinity'::timestamp}",
        "'101'::bit",
        "['101'::bit]",
        "340282366920938463463374607431768211455::uhugeint",
        "170141183460469231731687303715884105727::hugeint",
        "123::bignum",
    ],
)
def test_values_of_duckdb_that_arrow_would_change(tmp_path: Path, text: str) -> None:
    with pytest.raises(SchemaMismatchError, match="column x"):
        deltaic.write(tmp_path / "t", duckdb.connect().sql(f"select 1 as n, {text} as x"))
    with pytest.raises(SchemaMismatchError, match="column x"):
        deltaic.sql(
            "select * from d", tables={"d": duckdb.connect().sql(f"select 1 as n, {text} as x")}
        ).to_arrow()


def test_a_refused_value_leaves_the_connection_free(tmp_path: Path) -> None:
    """A notebook keeps the last error, whose traceback keeps the reader."""
    connection = duckdb.connect()
    with pytest.raises(SchemaMismatchError, match="infinity") as last:
        deltaic.write(tmp_path / "t", connection.sql("select 'infinity'::date as x"))
    assert last.tb is not None
    assert connection.sql("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1.5, None], pa.float16()), [1.5, None]),
        (pa.array(["a", None], pa.string_view()), ["a", None]),
        (pa.array([b"a", None], pa.binary_view()), [b"a", None]),
        (pa.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"]), ["a", "b"]),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), [[1, 2], None]),
        (pa.array([[1], None], pa.list_view(pa.int64())), [[1], None]),
        (pa.array(["b", None]).dictionary_encode(), ["b", None]),
        (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
        (pa.array([86_400_000, None], pa.date64()), [dt.date(1970, 1, 2), None]),
        (
            pa.array([5000, None], pa.timestamp("ns", "Asia/Tokyo")),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 5, dt.timezone.utc), None],
        ),
        (_extended(pa.json_(), pa.array(["{}", None])), ["{}", None]),
        (_extended(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))), [b"0" * 16, None]),
    ],
)
def test_values_that_stay_the_same(tmp_path: Path, values: pa.Array, expected: list[Any]) -> None:
    assert (
        deltaic.write(tmp_path / "t", pa.table({"x": values})).scan().to_arrow()["x"].to_pylist() == expected
    )


def test_a_write_may_cast(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path / "t",
        "f float, i int, ts timestamp_ntz, st struct<f: float>, d int default 7",
        properties=DEFAULTS,
    )
    data = pa.table({"F": [0.1], "i": [1.6], "ts": pa.array([1999], pa.timestamp("ns")), "st": [{"f": 0.1}]})
    with pytest.raises(SchemaMismatchError):
        deltaic.write(table, data, mode="append")
    deltaic.write(table, data, mode="append", casting="strict")
    (row,) = table.scan().to_arrow().to_pylist()
    tenth = pa.scalar(0.1, pa.float32()).as_py()
    assert row == {"f": tenth, "i": 1, "ts": dt.datetime(1970, 1, 1, 0, 0, 0, 1), "st": {"f": tenth}, "d": 7}
    beyond = {"i": [2**40, 5]}
    with pytest.raises(SchemaMismatchError, match="column i"):
        deltaic.write(table, beyond, mode="append", casting="strict")
    deltaic.write(table, beyond, mode="overwrite", casting="try")
    assert table.scan(["i", "d"]).to_arrow().to_pylist() == [{"i": None, "d": 7}, {"i": 5, "d": 7}]
    with pytest.raises(SchemaMismatchError, match="column i"):
        deltaic.write(table, {"i": ["x"]}, mode="append", casting="strict")
    deltaic.write(table, {"i": ["5"]}, mode="overwrite", casting="strict")  # as INSERT of Spark casts text
    deltaic.write(table, {"i": ["x"]}, mode="append", casting="try")
    assert sorted(table.scan(["i"]).to_arrow()["i"].to_pylist(), key=str) == [5, None]
    with pytest.raises(InvalidArgumentError, match="casting"):
        deltaic.write(table, beyond, mode="append", casting="loose")  # type: ignore[arg-type]


def test_only_rows_name_the_tables_that_they_read() -> None:
    class Frame:
        """Like a DataFrame of Spark Connect, which gives a column for every name."""

        def __getattr__(self, name: str) -> object:
            return object()

    assert source.table_reads(Frame()) == ()
