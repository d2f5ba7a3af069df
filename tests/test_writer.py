"""Writing data files (`_core.write`). Source: PROTOCOL.md, "Data Files", "Per-file Statistics", "Partition
Value Serialization"."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from deltaic import _core
from deltaic.errors import ConstraintViolationError, InvalidArgumentError, SchemaMismatchError

UTC = dt.timezone.utc


def struct(*fields: tuple[str, Any], not_null: tuple[str, ...] = (), ids: bool = False) -> dict[str, Any]:
    made = []
    for number, (name, kind) in enumerate(fields, 1):
        metadata = (
            {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
            if ids
            else {}
        )
        made.append({"name": name, "type": kind, "nullable": name not in not_null, "metadata": metadata})
    return {"type": "struct", "fields": made}


def schema(
    *fields: tuple[str, Any], partition: tuple[str, ...] = (), mapping: str = "none", **more: Any
) -> _core.TableSchema:
    return _core.TableSchema(json.dumps(struct(*fields, ids=mapping != "none", **more)), partition, mapping)


def write(path: Path, table: _core.TableSchema, data: Any, **options: Any) -> pa.Table:
    return _core.write(_core.Store(str(path)), table, data, json.dumps(options))


def read(
    path: Path, table: _core.TableSchema, adds: pa.Table, columns: list[str] | None = None, **options: Any
) -> pa.Table:
    names = columns if columns is not None else table.to_arrow().names
    return _core.read(_core.Store(str(path)), table, adds, names, **options).to_table()


def files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


def stats(adds: pa.Table) -> dict[str, Any]:
    (text,) = adds["stats"].to_pylist()
    return json.loads(text)


EVERY_TYPE = [
    ("s", "string", pa.array(["a", "", None])),
    ("l", "long", pa.array([1, -(2**63), None], pa.int64())),
    ("i", "integer", pa.array([1, -(2**31), None], pa.int32())),
    ("h", "short", pa.array([1, -(2**15), None], pa.int16())),
    ("b", "byte", pa.array([1, -128, None], pa.int8())),
    ("f", "float", pa.array([1.5, -0.0, None], pa.float32())),
    ("d", "double", pa.array([1.5, 1e300, None], pa.float64())),
    (
        "n5",
        "decimal(5,2)",
        pa.array([decimal.Decimal("1.25"), decimal.Decimal("-999.99"), None], pa.decimal128(5, 2)),
    ),
    (
        "n18",
        "decimal(18,0)",
        pa.array([decimal.Decimal(10**17), decimal.Decimal(-1), None], pa.decimal128(18, 0)),
    ),
    (
        "n38",
        "decimal(38,10)",
        pa.array(
            [decimal.Decimal("1" * 28 + ".0123456789"), decimal.Decimal(0), None], pa.decimal128(38, 10)
        ),
    ),
    ("o", "boolean", pa.array([True, False, None])),
    ("y", "binary", pa.array([b"\x00\xff", b"", None])),
    ("t", "date", pa.array([dt.date(1582, 1, 1), dt.date(9999, 12, 31), None])),
    ("z", "timestamp", pa.array([0, -1, None], pa.timestamp("us", "UTC"))),
    ("w", "timestamp_ntz", pa.array([0, 253402300799999999, None], pa.timestamp("us"))),
    (
        "a",
        {"type": "array", "elementType": "integer", "containsNull": True},
        pa.array([[1, None], [], None], pa.list_(pa.int32())),
    ),
    (
        "m",
        {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "array", "elementType": "string", "containsNull": True},
            "valueContainsNull": True,
        },
        pa.array([[("k", ["x", None]), ("q", None)], [], None], pa.map_(pa.string(), pa.list_(pa.string()))),
    ),
    (
        "r",
        struct(("x", "integer"), ("y", struct(("q", "string")))),
        pa.array(
            [{"x": 1, "y": {"q": "v"}}, {"x": None, "y": None}, None],
            pa.struct([("x", pa.int32()), ("y", pa.struct([("q", pa.string())]))]),
        ),
    ),
    ("v", "void", pa.nulls(3)),
]


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_every_type_comes_back(tmp_path: Path, mapping: str) -> None:
    flat = [(name, kind, values) for name, kind, values in EVERY_TYPE if mapping == "none" or name != "r"]
    table = schema(*((name, kind) for name, kind, _ in flat), mapping=mapping)
    data = pa.table({name: values for name, _, values in flat})
    adds = write(tmp_path, table, data)
    assert read(tmp_path, table, adds).to_pylist() == data.to_pylist()
    (file,) = files(tmp_path)
    parquet = pq.ParquetFile(file)
    assert b"ARROW:schema" not in (parquet.metadata.metadata or {})
    assert parquet.metadata.row_group(0).column(0).compression == "ZSTD"
    physical = {
        column.path.split(".")[0]: column.physical_type
        for column in (parquet.schema.column(i) for i in range(len(parquet.schema)))
    }
    names = [name if mapping == "none" else f"col-{number}" for number, (name, _, _) in enumerate(flat, 1)]
    of = dict(zip((name for name, _, _ in flat), names, strict=True))
    assert physical[of["z"]] == physical[of["w"]] == "INT64"
    assert [physical[of[name]] for name in ("n5", "n18", "n38")] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert of["v"] not in physical
    if mapping == "id":
        assert parquet.schema_arrow.field(of["s"]).metadata == {b"PARQUET:field_id": b"1"}


def test_the_names_of_the_specification_are_in_the_file(tmp_path: Path) -> None:
    table = schema(
        ("a", {"type": "array", "elementType": "integer", "containsNull": True}),
        ("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}),
    )
    write(
        tmp_path, table, pa.table({"a": [[1]], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})
    )
    paths = (
        [
            column.path
            for column in pq.ParquetFile(files(tmp_path)[0]).metadata.row_group(0).to_dict()["columns"]
        ]
        if False
        else None
    )
    parquet = pq.ParquetFile(files(tmp_path)[0])
    paths = [parquet.schema.column(i).path for i in range(len(parquet.schema))]
    assert paths == ["a.list.element", "m.key_value.key", "m.key_value.value"]
    times = schema(("z", "timestamp"), ("w", "timestamp_ntz"))
    write(
        tmp_path / "times",
        times,
        pa.table({"z": pa.array([1], pa.timestamp("us", "UTC")), "w": pa.array([1], pa.timestamp("us"))}),
    )
    shown = str(pq.ParquetFile(files(tmp_path / "times")[0]).schema)
    assert "z (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in shown
    assert "w (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds" in shown


def test_statistics_are_delta_sparks(tmp_path: Path) -> None:
    # the shape of golden table stats-writing-all-types, written by delta-spark
    table = schema(*((name, kind) for name, kind, _ in EVERY_TYPE))
    adds = write(
        tmp_path, table, pa.table({name: values for name, _, values in EVERY_TYPE}), tight_bounds=True
    )
    found = stats(adds)
    assert found["numRecords"] == 3
    assert found["tightBounds"] is True
    assert found["minValues"] == {
        "s": "", "l": -(2**63), "i": -(2**31), "h": -(2**15), "b": -128, "f": 0.0, "d": 1.5, "n5": -999.99,
        "n18": -1, "n38": 0.0, "t": "1582-01-01", "z": "1969-12-31T23:59:59.999Z",
        "w": "1970-01-01T00:00:00.000", "r": {"x": 1, "y": {"q": "v"}},
    }  # fmt: skip
    assert found["maxValues"] == {
        "s": "a",
        "l": 1,
        "i": 1,
        "h": 1,
        "b": 1,
        "f": 1.5,
        "d": 1e300,
        "n5": 1.25,
        "n18": 10**17,
        "n38": 1111111111111111111111111111.0123456789,
        "t": "9999-12-31",
        "z": "1970-01-01T00:00:00.000Z",
        "r": {"x": 1, "y": {"q": "v"}},
    }
    assert '"n38":1111111111111111111111111111.0123456789' in adds["stats"][0].as_py()
    nulls = {name: 1 for name, _, _ in EVERY_TYPE if name not in ("r", "v")}
    assert found["nullCount"] == {**nulls, "r": {"x": 2, "y": {"q": 2}}}


def test_float_bounds_prove_nothing_that_spark_would_contradict(tmp_path: Path) -> None:
    table = schema(("nan", "double"), ("inf", "double"), ("all", "float"))
    data = pa.table(
        {
            "nan": [1.0, float("nan")],
            "inf": [float("-inf"), 2.0],
            "all": pa.array([float("nan")] * 2, pa.float32()),
        }
    )
    found = stats(write(tmp_path, table, data))
    assert found["minValues"] == {"nan": 1.0}
    assert found["maxValues"] == {"inf": 2.0}


def test_only_indexed_columns_have_statistics(tmp_path: Path) -> None:
    inner = struct(("x", "integer"), ("y", "integer"))
    table = schema(("p", "integer"), ("a", "integer"), ("r", inner), ("b", "integer"), partition=("p",))
    data = pa.table({"p": [1], "a": [1], "r": [{"x": 1, "y": 2}], "b": [1]}, schema=table.to_arrow())
    assert stats(write(tmp_path / "1", table, data, indexed_columns=2))["maxValues"] == {
        "a": 1,
        "r": {"x": 1},
    }
    assert stats(write(tmp_path / "2", table, data, indexed_columns=0))["nullCount"] == {}
    assert stats(write(tmp_path / "3", table, data, statistics_columns=["B", "r.y"]))["minValues"] == {
        "r": {"y": 2},
        "b": 1,
    }
    many = schema(*((f"c{i}", "integer") for i in range(40)))
    found = stats(
        write(tmp_path / "4", many, pa.table({f"c{i}": pa.array([i], pa.int32()) for i in range(40)}))
    )
    assert list(found["minValues"]) == [f"c{i}" for i in range(32)]


def test_partitions_of_every_type_and_letter(tmp_path: Path) -> None:
    letters = [chr(code) for code in range(0x20, 0x100) if code not in (0x7F,)] + [
        "😀",
        "a/b",
        "%20",
        "__HIVE_DEFAULT_PARTITION__",
        ".",
        "..",
        " x ",
        "\n",
        None,
        "",
    ]
    table = schema(("p", "string"), ("v", "integer"), partition=("p",))
    data = pa.table({"p": letters, "v": pa.array(range(len(letters)), pa.int32())})
    adds = write(tmp_path, table, data)
    for path in adds["path"].to_pylist():
        assert (tmp_path / urllib.parse.unquote(path)).is_file()
    expected = [
        *sorted(
            (text or None, value) for text, value in zip(letters, range(len(letters)), strict=True) if text
        )
    ]
    found = [(row["p"], row["v"]) for row in read(tmp_path, table, adds).to_pylist()]
    assert sorted(row for row in found if row[0]) == expected
    # An empty string is null.
    assert sorted(row[1] for row in found if row[0] is None) == [len(letters) - 2, len(letters) - 1]


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [entry for entry in EVERY_TYPE[:15] if entry[0] != "y"],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_partition_values_come_back(tmp_path: Path, name: str, kind: str, values: pa.Array) -> None:
    table = schema((name, kind), ("v", "integer"), partition=(name,))
    data = pa.table({name: values, "v": pa.array([1, 2, 3], pa.int32())})
    found = sorted(read(tmp_path, table, write(tmp_path, table, data)).to_pylist(), key=lambda row: row["v"])
    expected = [None if value in ("",) else value for value in values.to_pylist()]
    assert [row[name] for row in found] == expected


def test_files_are_cut_by_size_rows_and_row_groups(tmp_path: Path) -> None:
    table = schema(("id", "long"), ("s", "string"))
    rows = 200_000
    data = pa.table({"id": range(rows), "s": pc.cast(pc.random(rows, initializer=1), pa.string())})
    adds = write(tmp_path / "size", table, data, target_file_size=500_000)
    sizes = adds["size"].to_pylist()
    assert len(sizes) > 4
    assert all(200_000 < size < 600_000 for size in sizes[:-1])
    assert read(tmp_path / "size", table, adds).equals(data)
    adds = write(tmp_path / "rows", table, data, max_records_per_file=60_000)
    assert [json.loads(text)["numRecords"] for text in adds["stats"].to_pylist()] == [
        60_000,
        60_000,
        60_000,
        20_000,
    ]
    write(tmp_path / "groups", table, data, max_row_group_rows=30_000)
    parquet = pq.ParquetFile(files(tmp_path / "groups")[0])
    assert [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)] == [30_000] * 6 + [
        20_000
    ]


def test_wide_values_do_not_make_large_row_groups(tmp_path: Path) -> None:
    table = schema(("s", "string"))

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(40):
            yield pa.record_batch({"s": pa.array([f"{number}-{row}-" + "x" * 100_000 for row in range(10)])})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("s", pa.string())]), batches())
    adds = write(tmp_path, table, reader, max_row_group_bytes=8 << 20)
    parquet = pq.ParquetFile(files(tmp_path)[0])
    assert parquet.num_row_groups >= 4
    assert pc.sum(pc.utf8_length(read(tmp_path, table, adds)["s"])).as_py() == sum(
        len(f"{n}-{r}-") + 100_000 for n in range(40) for r in range(10)
    )


def test_many_partitions_stay_within_memory(tmp_path: Path) -> None:
    table = schema(("p", "integer"), ("v", "long"), partition=("p",))
    rows = 60_000
    data = pa.table({"p": pa.array([i % 600 for i in range(rows)], pa.int32()), "v": range(rows)})
    adds = write(tmp_path, table, data, memory_limit=200_000)
    found = read(tmp_path, table, adds)
    assert found.sort_by("v").equals(data)
    assert adds.num_rows >= 600


def test_row_groups_end_early_where_memory_is_short(tmp_path: Path) -> None:
    table = schema(("v", "long"), ("s", "string"))
    rows = 200_000
    data = pa.table({"v": range(rows), "s": [f"{number * 2654435761 % 2**32:050}" for number in range(rows)]})
    groups = {}
    for limit in (1 << 30, 4 << 20):
        folder = tmp_path / str(limit)
        adds = write(folder, table, data, memory_limit=limit)
        assert read(folder, table, adds).equals(data)
        groups[limit] = [pq.ParquetFile(folder / path).num_row_groups for path in adds["path"].to_pylist()]
    assert groups[1 << 30] == [1]
    assert groups[4 << 20][0] > 1


def test_not_null_is_enforced_at_every_depth_and_nothing_stays(tmp_path: Path) -> None:
    plain = schema(("a", "integer"), not_null=("a",))
    with pytest.raises(ConstraintViolationError, match=r"column a is NOT NULL and row 2"):
        write(tmp_path, plain, pa.table({"a": pa.array([1, 2, None], pa.int32())}))
    nested = schema(("r", struct(("x", "integer"), not_null=("x",))))
    data = pa.array([None, {"x": 1}, {"x": None}], pa.struct([("x", pa.int32())]))
    with pytest.raises(ConstraintViolationError, match=r"column r\.x is NOT NULL and row 2"):
        write(tmp_path, nested, pa.table({"r": data}))
    assert write(tmp_path / "fine", nested, pa.table({"r": data.slice(0, 2)})).num_rows == 1
    listed = schema(("a", {"type": "array", "elementType": "integer", "containsNull": False}))
    with pytest.raises(ConstraintViolationError, match=r"column a\.element is NOT NULL and row 1"):
        write(tmp_path, listed, pa.table({"a": [[1], [2, None]]}))
    missing = schema(("a", "integer"), ("b", "integer"), not_null=("b",))
    with pytest.raises(ConstraintViolationError, match="column b"):
        write(tmp_path, missing, pa.table({"a": pa.array([1], pa.int32())}))
    assert [file for file in files(tmp_path) if file.parent.name != "fine"] == []


def test_a_failing_source_leaves_nothing(tmp_path: Path) -> None:
    table = schema(("p", "integer"), ("s", "string"), partition=("p",))

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(30):
            yield pa.record_batch(
                {
                    "p": pa.array([number % 3] * 20_000, pa.int32()),
                    "s": [f"{number}-{i}" for i in range(20_000)],
                }
            )
        raise RuntimeError("the source broke")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("p", pa.int32()), ("s", pa.string())]), batches())
    with pytest.raises(Exception, match="the source broke"):
        write(tmp_path, table, reader, target_file_size=100_000)
    assert files(tmp_path) == []


def test_empty_arrays_without_offsets(tmp_path: Path) -> None:
    """Arrow's Java library, and so Spark, leaves the offsets of an array without values out. arrow-rs reads
    the first one all the same, here from bytes that belong to something else."""
    nothing = pa.py_buffer(b"\xf1" * 64).slice(32, 0)
    texts = pa.StringArray.from_buffers(0, nothing, nothing)
    fields = [pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())]
    pairs = pa.StructArray.from_arrays([texts, pa.array([], pa.int64())], fields=fields)
    offsets = [None, pa.py_buffer(bytes(4 * 5))]
    batch = pa.record_batch(
        {
            "p": pa.array([2, 1, 2, 1], pa.int32()),
            "m": pa.MapArray.from_buffers(pa.map_(pa.string(), pa.int64()), 4, offsets, children=[pairs]),
            "l": pa.ListArray.from_buffers(pa.list_(pa.string()), 4, offsets, children=[texts]),
            "t": pa.array(["a", "b", "c", "d"]),
        }
    )
    empty = pa.record_batch([*batch.slice(0, 0).columns[:3], texts], schema=batch.schema)
    array = {"type": "array", "elementType": "string", "containsNull": True}
    pairs_type = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    table = schema(("p", "integer"), ("m", pairs_type), ("l", array), ("t", "string"), partition=("p",))
    expected = [{"p": p, "m": [], "l": [], "t": t} for t, p in zip("abcd", (2, 1, 2, 1), strict=True)]
    reader = pa.RecordBatchReader.from_batches(batch.schema, [empty, batch, empty, batch])
    adds = write(tmp_path, table, reader)
    assert sorted(read(tmp_path, table, adds).to_pylist(), key=str) == sorted(2 * expected, key=str)
    assert _core.DeletionVector.from_rows([1]).filter(batch).to_pylist() == expected[:1] + expected[2:]


def test_others_read_what_was_written(tmp_path: Path) -> None:
    kinds = [entry for entry in EVERY_TYPE if entry[0] not in ("v", "m")]
    table = schema(*((name, kind) for name, kind, _ in kinds))
    data = pa.table({name: values for name, _, values in kinds})
    write(tmp_path, table, data)
    file = str(files(tmp_path)[0])
    assert pq.read_table(file).to_pylist() == data.to_pylist()
    assert duckdb.sql(f"select count(*), sum(l), max(w)::varchar, min(r.x) from '{file}'").fetchall() == [
        (3, 1 - 2**63, "9999-12-31 23:59:59.999999", 1)
    ]


def test_deltalake_reads_a_partitioned_table(tmp_path: Path) -> None:
    table = schema(("p", "string"), ("v", "long"), partition=("p",))
    data = pa.table({"p": ["a b", "ä/%20", None, "a b"], "v": [1, 2, 3, 4]})
    adds = write(tmp_path, table, data)
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.json,
        "partitionColumns": ["p"],
        "configuration": {},
    }
    lines = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    for row in adds.to_pylist():
        add = {key: row[key] for key in ("path", "size", "modificationTime", "dataChange", "stats")}
        lines.append({"add": {**add, "partitionValues": dict(row["partitionValues"])}})
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("\n".join(json.dumps(line) for line in lines))
    found = (
        deltalake.QueryBuilder()
        .register("t", deltalake.DeltaTable(str(tmp_path)))
        .execute("select p, v from t order by v")
        .read_all()
    )
    assert pa.table(found).to_pylist() == data.to_pylist()


def test_options_reach_the_file(tmp_path: Path) -> None:
    table = schema(("a", "long"), ("b", "string"))
    data = pa.table({"a": range(10_000), "b": ["x"] * 10_000})
    options = {
        "compression": "snappy",
        "data_page_rows": 1000,
        "columns": {
            "A": {"encoding": "delta_binary_packed", "statistics": "none"},
            "b": {"dictionary": False, "bloom_filter": True},
        },
        "tags": {"k": "v"},
        "data_change": False,
        "modification_time": 7,
    }
    adds = write(tmp_path, table, data, **options)
    assert adds.select(["tags", "dataChange", "modificationTime"]).to_pylist() == [
        {"tags": [("k", "v")], "dataChange": False, "modificationTime": 7}
    ]
    assert adds["path"][0].as_py().endswith("-c000.snappy.parquet")
    first, second = (pq.ParquetFile(files(tmp_path)[0]).metadata.row_group(0).column(i) for i in (0, 1))
    assert (first.compression, first.statistics) == ("SNAPPY", None)
    assert "DELTA_BINARY_PACKED" in first.encodings
    assert not any("DICTIONARY" in encoding for encoding in second.encodings)
    for wrong in (
        {"compression": "lzo"},
        {"unknown": 1},
        {"columns": {"z": {}}},
        {"default": {"dictionary": True, "encoding": "plain"}},
        {"compression": "zstd(99)"},
    ):
        with pytest.raises(InvalidArgumentError):
            write(tmp_path, table, data, **wrong)


def test_folders_are_random_under_column_mapping(tmp_path: Path) -> None:
    table = schema(("p", "string"), ("v", "long"), partition=("p",), mapping="name")
    adds = write(tmp_path, table, pa.table({"p": ["x"], "v": [1]}))
    assert adds["partitionValues"].to_pylist() == [[("col-1", "x")]]
    folder, _, _ = adds["path"][0].as_py().partition("/")
    assert len(folder) == 2
    assert "p=" not in adds["path"][0].as_py()


def test_no_row_gives_no_file(tmp_path: Path) -> None:
    table = schema(("a", "integer"))
    assert write(tmp_path, table, pa.table({"a": pa.array([], pa.int32())})).num_rows == 0
    assert files(tmp_path) == []
    only = schema(("p", "integer"), partition=("p",))
    with pytest.raises(SchemaMismatchError, match="besides partition columns"):
        write(tmp_path, only, pa.table({"p": pa.array([1], pa.int32())}))


@pytest.mark.parametrize("partition", [(), ("p",), ("p", "q")])
@pytest.mark.parametrize(
    "more",
    [{}, {"max_records_per_file": 7}, {"max_row_group_rows": 5}, {"target_file_size": 900}, {"threads": 1}],
)
def test_files_of_few_rows_are_as_the_pool_writes_them(
    tmp_path: Path, partition: tuple[str, ...], more: dict[str, Any]
) -> None:
    """A small file is encoded by one thread and put at once: same files, bytes, statistics and rows as
    through the pool."""
    table = schema(
        ("p", "integer"), ("q", "string"), ("v", "double"), ("a", EVERY_TYPE[15][1]), partition=partition
    )
    rows = 300
    data = pa.table(
        {
            "p": pa.array([row % 23 or None for row in range(rows)], pa.int32()),
            "q": pa.array([f"{row % 3}" if row % 5 else "" for row in range(rows)]),
            "v": pa.array([row / 7 if row % 11 else None for row in range(rows)]),
            "a": pa.array([[row, None] if row % 2 else None for row in range(rows)], pa.list_(pa.int32())),
        }
    )

    def written(name: str, **options: Any) -> tuple[list[Any], pa.Table]:
        reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=64))
        adds = write(tmp_path / name, table, reader, modification_time=1, **more, **options)
        found = adds.drop_columns(["path"]).to_pylist()
        return sorted(found, key=str), read(tmp_path / name, table, adds).sort_by(
            [("v", "ascending"), ("p", "ascending")]
        )

    assert written("whole") == written("pooled", pooled_small_files=True)
    assert not [path for path in files(tmp_path) if path.suffix != ".parquet"]


def test_a_failed_write_of_many_small_files_leaves_none(tmp_path: Path) -> None:
    table = schema(("p", "integer"), ("v", "long"), partition=("p",))
    (tmp_path / "p=7").write_bytes(b"in the way")
    with pytest.raises(OSError, match="p=7"):
        write(tmp_path, table, pa.table({"p": pa.array(range(30), pa.int32()), "v": pa.array(range(30))}))
    assert files(tmp_path) == [tmp_path / "p=7"]
