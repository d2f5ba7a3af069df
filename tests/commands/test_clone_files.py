"""CLONE of Parquet files and of Iceberg tables, which stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, TableAlreadyExistsError


@pytest.fixture(autouse=True)
def allowed(tmp_path: Path) -> Iterator[None]:
    """Shallow clones name files outside of their folders."""
    with deltaic.configure(allowed_roots=[tmp_path]):
        yield


def clone(target: Path, source: str, *, kind: str = "", replace: bool = False) -> dict[str, int]:
    words = "CREATE OR REPLACE" if replace else "CREATE"
    return deltaic.sql(f"{words} TABLE delta.`{target}` {kind} CLONE {source}").to_pylist()[0]


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(path).scan().to_arrow().to_pylist(), key=repr)


def put(path: Path, **columns: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP", ""])
def test_parquet_files(tmp_path: Path, kind: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    put(source / "day=2026-01-01" / "a b.parquet", id=[1, 2])
    put(source / "day=2026-01-02" / "c.parquet", id=[3])
    metrics = clone(target, f"parquet.`{source}`", kind=kind)
    assert (metrics["source_num_of_files"], metrics["num_copied_files"]) == (2, 0 if kind == "SHALLOW" else 2)
    assert [row["id"] for row in rows(target)] == [1, 2, 3]
    assert DeltaTable(target).scan(where="day = DATE '2026-01-02' AND id = 3").explain().files_read == 1
    assert not (source / "_delta_log").exists()
    entry = DeltaTable(target).history()[0]
    assert entry["operation"] == "CLONE"
    assert (entry["operationParameters"]["source"], entry["operationParameters"]["sourceVersion"]) == (
        f"parquet.`{source}`",
        -1,
    )
    with pytest.raises(TableAlreadyExistsError):
        clone(target, f"parquet.`{source}`", kind=kind)
    (source / "day=2026-01-02" / "c.parquet").unlink()
    put(source / "day=2026-01-03" / "d.parquet", id=[4], new=["x"])
    metrics = clone(target, f"parquet.`{source}`", kind=kind, replace=True)
    assert metrics["num_removed_files"] == 1
    assert [(row["id"], row["new"]) for row in rows(target)] == [(1, None), (2, None), (4, "x")]
    assert DeltaTable(target).delete("id = 1")["num_deleted_rows"] == 1
    assert pq.read_table(source / "day=2026-01-01" / "a b.parquet").num_rows == 2


def test_sources_that_are_refused(tmp_path: Path) -> None:
    deltaic.write(tmp_path / "delta", pa.table({"id": [1]}))
    with pytest.raises(
        InvalidArgumentError, match=r"the files are those of a Delta table; expected delta\.`"
    ):
        clone(tmp_path / "target", f"parquet.`{tmp_path / 'delta'}`")
    put(tmp_path / "files" / "a.parquet", id=[1])
    with pytest.raises(InvalidArgumentError, match="only a Delta table has versions"):
        clone(tmp_path / "target", f"parquet.`{tmp_path / 'files'}` VERSION AS OF 1")
    with pytest.raises(InvalidArgumentError, match="cannot be cloned onto itself"):
        clone(tmp_path / "files", f"parquet.`{tmp_path / 'files'}`")


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_iceberg_tables(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pyiceberg")
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import DayTransform
    from pyiceberg.types import LongType, NestedField, TimestampType

    import iceberg_tables as iceberg

    fields = [
        NestedField(1, "a", LongType()),
        NestedField(2, "b", LongType()),
        NestedField(3, "ts", TimestampType()),
    ]
    spec = PartitionSpec(PartitionField(3, 1000, DayTransform(), "day"))
    table = iceberg.catalog(tmp_path).create_table("n.t", Schema(*fields), partition_spec=spec)
    source, target = f"iceberg.`{iceberg.folder_of(table)}`", tmp_path / "target"

    def append(**values: int) -> None:
        table.append(
            pa.Table.from_pylist(
                [{"ts": datetime(2026, 1, 1 + values["a"] % 2), **values}], table.schema().as_arrow()
            )
        )

    def cloned() -> list[dict[str, Any]]:
        found = (
            DeltaTable(target).scan([field.name for field in table.schema().fields]).to_arrow().to_pylist()
        )
        return sorted(found, key=repr)

    append(a=1, b=100)
    append(a=2, b=200)
    clone(target, source, kind=kind)
    assert cloned() == iceberg.rows(table)
    append(a=3, b=300)
    assert clone(target, source, kind=kind, replace=True)["num_removed_files"] == 0
    assert cloned() == iceberg.rows(table)
    with table.update_schema() as change:  # the names change places: statistics of older files must follow
        change.rename_column("a", "c")
    with table.update_schema() as change:
        change.rename_column("b", "a")
    with table.update_schema() as change:
        change.rename_column("c", "b").add_column("late", LongType())
    append(a=400, b=4, late=1)
    clone(target, source, kind=kind, replace=True)
    assert cloned() == iceberg.rows(table)
    assert DeltaTable(target).scan(where="a = 100").count() == 1
    assert DeltaTable(target).scan(where="b = 3 AND ts = TIMESTAMP_NTZ'2026-01-02 00:00:00'").count() == 1
    first = table.inspect.data_files().to_pylist()[0]["file_path"]
    deleted = iceberg.with_deletes(table, [iceberg.Delete({first: [0]})])
    clone(target, source, kind=kind, replace=True)
    assert cloned() == iceberg.rows(deleted)
    assert len(cloned()) == 3
    assert not DeltaTable.exists(iceberg.folder_of(table))


def test_an_iceberg_table_that_gets_files_without_ids(tmp_path: Path) -> None:
    """The clone finds columns by their ids first, then by their names."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    import iceberg_tables as iceberg

    table = iceberg.catalog(tmp_path).create_table(
        "n.t", Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
    )
    table.append(pa.table({"a": [1], "b": [2]}))
    for mode in ("id", "name"):
        clone(tmp_path / "target", f"iceberg.`{iceberg.folder_of(table)}`", replace=True)
        assert rows(tmp_path / "target") == iceberg.rows(table)
        assert DeltaTable(tmp_path / "target").metadata.configuration["delta.columnMapping.mode"] == mode
        if mode == "id":
            iceberg.with_foreign_file(table, [{"a": 3, "b": 4}])


@pytest.mark.filterwarnings("ignore:Delete operation did not match:UserWarning")  # of pyiceberg
def test_an_iceberg_table_of_which_all_files_are_partitioned_now(tmp_path: Path) -> None:
    """As long as a file has no partition value, the clone has no partition column."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    import iceberg_tables as iceberg

    table = iceberg.catalog(tmp_path).create_table(
        "n.t", Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
    )
    table.append(pa.table({"a": [1], "b": [2]}))
    with table.update_spec() as change:
        change.add_identity("b")
    table.append(pa.table({"a": [3], "b": [4]}))
    for partition_columns in ([], ["b"]):
        clone(tmp_path / "target", f"iceberg.`{iceberg.folder_of(table)}`", replace=True)
        assert rows(tmp_path / "target") == iceberg.rows(table)
        assert DeltaTable(tmp_path / "target").metadata.partition_columns == partition_columns
        table.delete("a = 1")
