"""CONVERT: Parquet files of any writer become a table, without being moved."""

from __future__ import annotations

import json
import logging
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    ProtocolError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)


def put(folder: Path, name: str, **columns: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def rows(table: DeltaTable, where: str | None = None) -> list[tuple[Any, ...]]:
    found = table.scan(where=where).to_arrow()
    return sorted(zip(*(found[name].to_pylist() for name in found.column_names), strict=True), key=repr)


def test_hive_partitions_are_inferred(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"):
        for n in ("1", "02"):
            put(tmp_path, f"day={day}/n={n}/c=x%2Fy z/part.parquet", id=pa.array([1, 2]))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "junk.parquet").write_text("no file of Parquet")
    (tmp_path / "day=2026-01-01" / ".x.crc").write_text("no file of Parquet")
    table = DeltaTable.convert(tmp_path, name="n", description="d", properties={"owner": "me"})
    assert table.schema.to_ddl() == "id bigint, day date, n int, c string"
    assert (table.metadata.partition_columns, table.metadata.name, table.metadata.description) == (
        ["day", "n", "c"],
        "n",
        "d",
    )
    assert rows(table, "day = DATE '2026-01-02' AND n = 2") == [
        (1, date(2026, 1, 2), 2, "x/y z"),
        (2, date(2026, 1, 2), 2, "x/y z"),
    ]
    assert table.scan(where="day IS NULL").count() == 4
    info = table.history()[0]
    assert (info["operation"], info["operationMetrics"]) == ("CONVERT", {"numConvertedFiles": "6"})
    assert info["operationParameters"] == {
        "numFiles": 6,
        "partitionedBy": '["day","n","c"]',
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    deltaic.write(
        table,
        pa.table({"id": [3], "day": [date(2026, 2, 1)], "n": pa.array([7], pa.int32()), "c": ["k"]}),
        mode="append",
    )
    table.delete("id = 1")
    assert table.scan().count() == 7


def test_files_of_a_stream(tmp_path: Path) -> None:
    """Files that are not in the log of the stream's sink, as those of a batch that failed, are no part of the
    table, as in Spark."""
    files = {name: put(tmp_path, f"p=a b/{name}.parquet", id=[number]) for number, name in enumerate("abcdx")}

    def log(name: str, *entries: tuple[str, str]) -> None:
        path = tmp_path / "_spark_metadata" / name
        path.parent.mkdir(exist_ok=True)
        lines = [json.dumps({"path": files[file].as_uri(), "action": action}) for file, action in entries]
        path.write_text("\n".join(["v1", *lines]))

    log("0", ("x", "add"))
    log("1.compact", ("a", "add"), ("b", "add"))
    log("2", ("c", "add"))
    log("3", ("b", "delete"), ("d", "add"))
    assert rows(DeltaTable.convert(tmp_path)) == [(0, "a b"), (2, "a b"), (3, "a b")]
    shutil.rmtree(tmp_path / "_delta_log")
    tmp_path.rename(tmp_path.parent / "moved")
    with pytest.raises(
        InvalidArgumentError, match="outside of it; if they were moved, remove _spark_metadata"
    ):
        DeltaTable.convert(tmp_path.parent / "moved")
    (tmp_path.parent / "moved").rename(tmp_path)
    for broken in (b"", b"v2\n", b"v1\n{", b'v1\n{"path": "x"}', b"v1\n\xff"):
        (tmp_path / "_spark_metadata/4").write_bytes(broken)
        with pytest.raises(ProtocolError, match="_spark_metadata/4"):
            DeltaTable.convert(tmp_path)


def test_statistics_come_from_footers(tmp_path: Path) -> None:
    for n in range(3):
        put(
            tmp_path,
            f"{n}.parquet",
            id=pa.array([10 * n, 10 * n + 5, None]),
            s=[{"x": n}, {"x": n + 1}, None],
        )
    table = DeltaTable.convert(tmp_path)
    found = table.files().to_arrow().to_pylist()
    assert [
        (f["num_records"], f["min_values"]["id"], f["max_values"]["s"]["x"], f["null_count"]["id"])
        for f in found
    ] == [(3, 10 * n, n + 1, 1) for n in range(3)]
    assert table.scan(where="id = 15").explain().files_read == 1


def test_without_statistics(tmp_path: Path) -> None:
    put(tmp_path, "0.parquet", id=[1])
    table = DeltaTable.convert(tmp_path, statistics=False)
    assert table.files().to_arrow()["num_records"].to_pylist() == [None]
    assert rows(table, "id = 1") == [(1,)]


def test_folders_of_values_alone(tmp_path: Path) -> None:
    put(tmp_path, "2026/01/a=b/x.parquet", id=[1])
    put(tmp_path, "2027/02/c/x.parquet", id=[2])
    with pytest.raises(InvalidArgumentError, match=r"partition_schema= of 3 columns"):
        DeltaTable.convert(tmp_path, partitioning="directory")
    with pytest.raises(InvalidArgumentError, match="3 levels of folders; expected y"):
        DeltaTable.convert(tmp_path, partitioning="directory", partition_schema="y int")
    with pytest.raises(InvalidArgumentError, match=r"folders of a; expected y, m$"):
        DeltaTable.convert(tmp_path, partition_schema="y int, m int")
    assert not DeltaTable.exists(tmp_path)
    table = DeltaTable.convert(
        tmp_path, partitioning="directory", partition_schema="y int, m string, k string"
    )
    assert rows(table) == [(1, 2026, "01", "a=b"), (2, 2027, "02", "c")]


def test_folders_that_say_nothing(tmp_path: Path) -> None:
    """As in delta-spark: of the folders above a file, those named `name=value` that are next to each other
    and nearest to it say partition values; others say nothing."""
    plain = ("0.parquet", "2026/09/1.parquet", "x/2.parquet", "x/_y/junk.parquet", ".z/junk.parquet")
    for number, file in enumerate(plain):
        put(tmp_path / "plain", file, id=[number])
    table = DeltaTable.convert(tmp_path / "plain")
    assert (table.schema.to_ddl(), table.metadata.partition_columns) == ("id bigint", [])
    assert rows(table) == [(0,), (1,), (2,)]

    parted = ("x/a=1/0.parquet", "a=2/y/1.parquet", "b=0/x/A=3/y/z/2.parquet")
    for schema in (None, "a int"):
        folder = tmp_path / f"parted {schema}"
        for number, file in enumerate(parted):
            put(folder, file, id=[number])
        table = DeltaTable.convert(folder, partition_schema=schema)
        assert (table.schema.to_ddl(), rows(table)) == ("id bigint, a int", [(0, 1), (1, 2), (2, 3)])
        assert table.scan(where="a = 2").explain().files_read == 1
        table.delete("id = 1")
        assert rows(table) == [(0, 1), (2, 3)]


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    cases = (
        (["x/0", "a=1/1"], None, "^a=1/1: two files .*; found a; expected none, as x/0$"),
        (["a=1/1", "x/0"], None, "^a=1/1: two files .*; found a; expected none, as x/0$"),
        (["a=1/b=2/0", "b=2/a=1/0"], "a int, b int", "found b, a; expected a, b, as a=1/b=2/0$"),
        (["x/0"], "a int", "found folders of no column; expected a, as name=value, or partitioning="),
        (["a=1/0", "1"], "a int", "^1: the folders do not fit .*; found folders of no column; expected a$"),
        (["a=1/x/b=2/0"], "a int, b int", "found folders of b; expected a, b$"),
        (["a=1/a=2/0"], "a int", "found folders of a, a; expected a$"),
        (["a=1/b=2/0"], "a int", "found folders of a, b; expected a$"),
        (["a=1/0"], "b int", "^a=1/0: a folder has another name .*; found folders of a; expected b$"),
    )
    for number, (files, given, message) in enumerate(cases):
        for file in files:
            put(tmp_path / str(number), file, id=[1])
        with pytest.raises(InvalidArgumentError, match=message):
            DeltaTable.convert(tmp_path / str(number), partition_schema=given)
        assert not DeltaTable.exists(tmp_path / str(number))


def test_columns_of_all_files(tmp_path: Path) -> None:
    put(tmp_path, "0.parquet", id=[1], s=[{"x": 1}])
    put(tmp_path, "1.parquet", s=[{"y": [{"z": "q"}]}], new=["n"])
    table = DeltaTable.convert(tmp_path)
    assert table.schema.to_ddl() == "id bigint, s struct<x: bigint, y: array<struct<z: string>>>, new string"
    assert table.scan().to_arrow().to_pylist() == [
        {"id": 1, "s": {"x": 1, "y": None}, "new": None},
        {"id": None, "s": {"x": None, "y": [{"z": "q"}]}, "new": "n"},
    ]


def test_a_partition_column_in_the_files(tmp_path: Path) -> None:
    put(tmp_path, "p=1/0.parquet", p=[5], id=[1])
    table = DeltaTable.convert(tmp_path, partition_schema="p bigint")
    assert (table.schema.to_ddl(), rows(table)) == ("id bigint, p bigint", [(1, 1)])


def test_types_and_names_must_agree(tmp_path: Path) -> None:
    put(tmp_path, "0.parquet", a=[{"x": 1}])
    put(tmp_path, "1.parquet", a=[{"x": "text"}])
    with pytest.raises(
        SchemaMismatchError, match=r"1\.parquet, column a\.x.*found string; expected long, as in 0\.parquet"
    ):
        DeltaTable.convert(tmp_path)
    put(tmp_path, "1.parquet", A=[{"x": 1}])
    with pytest.raises(SchemaMismatchError, match="two ways"):
        DeltaTable.convert(tmp_path)
    assert not DeltaTable.exists(tmp_path)


def test_the_widest_of_types_in_32_bits(tmp_path: Path) -> None:
    """ConvertToDeltaSuiteBase: "can upcast in schema merging: short vs int"."""
    for number, data_type in enumerate((pa.int16(), pa.int32(), pa.int8())):
        values = {
            "id": pa.array([number], data_type),
            "s": pa.array([{"a": number}], pa.struct({"a": data_type})),
        }
        put(tmp_path, f"{number}.parquet", **values)
    table = DeltaTable.convert(tmp_path)
    assert table.schema.to_ddl() == "id int, s struct<a: int>"
    assert rows(table) == [(number, {"a": number}) for number in range(3)]
    assert rows(table, "id = 2") == [(2, {"a": 2})]


def test_names_that_need_column_mapping(tmp_path: Path) -> None:
    put(tmp_path, "a b=1/0.parquet", **{"id, old": [1], "s": [{"x y": 5}]})
    with pytest.raises(InvalidArgumentError, match="characters that need column mapping"):
        DeltaTable.convert(tmp_path)
    table = DeltaTable.convert(tmp_path, properties={"delta.columnMapping.mode": "name"})
    assert table.scan(where="`a b` = 1").to_pylist() == [{"id, old": 1, "s": {"x y": 5}, "a b": 1}]
    table.alter.rename_column("id, old", "id")
    deltaic.write(
        table, pa.table({"id": [2], "s": [{"x y": 6}], "a b": pa.array([2], pa.int32())}), mode="append"
    )
    assert sorted(row["id"] for row in table.scan().to_pylist()) == [1, 2]
    assert table.files("id = 2").count() == 1


def test_what_cannot_be_converted(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no Parquet files"):
        DeltaTable.convert(tmp_path)
    put(tmp_path, "a=1/0.parquet", id=[1])
    put(tmp_path, "b=1/0.parquet", id=[1])
    with pytest.raises(InvalidArgumentError, match="different partition columns"):
        DeltaTable.convert(tmp_path)
    (tmp_path / "b=1" / "0.parquet").unlink()
    with pytest.raises(InvalidArgumentError, match=r"folders of a; expected z"):
        DeltaTable.convert(tmp_path, partition_schema="z int")
    with pytest.raises(UnsupportedFeatureError, match=r"columnMapping\.mode"):
        DeltaTable.convert(tmp_path, properties={"delta.columnMapping.mode": "id"})
    with pytest.raises(UnsupportedFeatureError, match=r"enableIcebergCompatV2.*upgrade_uniform afterwards"):
        DeltaTable.convert(tmp_path, properties={"delta.enableIcebergCompatV2": "true"})
    (tmp_path / "a=1" / "notes.txt").write_text("these are notes and no Parquet")
    with pytest.raises(DeltaError, match=r"notes\.txt"):
        DeltaTable.convert(tmp_path)
    (tmp_path / "a=1" / "notes.txt").unlink()
    put(tmp_path, "a=x/0.parquet", id=[1])
    with pytest.raises(DeltaError, match=r"partition column a"):
        DeltaTable.convert(tmp_path, partition_schema="a int")
    assert not DeltaTable.exists(tmp_path)


def test_a_table_stays(tmp_path: Path) -> None:
    put(tmp_path, "0.parquet", id=[1])
    table = DeltaTable.convert(tmp_path)
    with pytest.raises(TableAlreadyExistsError):
        DeltaTable.convert(tmp_path)
    put(tmp_path, "1.parquet", id=[2])
    assert rows(DeltaTable.convert(tmp_path, mode="ignore")) == rows(table) == [(1,)]


def test_progress_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = put(tmp_path, "0.parquet", id=[1]).read_bytes()
    for n in range(1, 1000):
        (tmp_path / f"{n}.parquet").write_bytes(data)
    with caplog.at_level(logging.INFO):
        assert DeltaTable.convert(tmp_path).scan().count() == 1000
    assert "1000 of 1000 footers read" in caplog.text


def test_conversion_in_sql(tmp_path: Path) -> None:
    put(tmp_path, "p=1/0.parquet", id=[1])
    statement = f"CONVERT TO DELTA parquet.`{tmp_path}` NO STATISTICS PARTITIONED BY (p SMALLINT)"
    for _ in range(2):
        assert deltaic.sql(statement).count() == 0
    table = DeltaTable(tmp_path)
    assert (table.version, table.schema.to_ddl(), rows(table)) == (0, "id bigint, p smallint", [(1, 1)])
    with pytest.raises(InvalidArgumentError, match="parquet"):
        deltaic.sql(f"CONVERT TO DELTA delta.`{tmp_path}`")


def test_deltalake_reads_it_and_takes_the_same_files(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    for n in range(3):
        put(tmp_path, f"p={n}/0.parquet", id=[n])
    DeltaTable.convert(tmp_path, partition_schema="p int", properties={"delta.enableDeletionVectors": False})
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table()
    assert sorted(zip(found["id"].to_pylist(), found["p"].to_pylist(), strict=True)) == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
