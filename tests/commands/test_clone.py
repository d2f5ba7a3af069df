"""CLONE, shallow and deep: rows, definition and history, and the table to which each file belongs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    PathOutsideTableError,
    ProtocolError,
    TableAlreadyExistsError,
)


def rows(table: DeltaTable) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow()
    return sorted(zip(*(found[name].to_pylist() for name in found.column_names), strict=True), key=repr)


@pytest.fixture
def source(tmp_path: Path) -> DeltaTable:
    """Three partitions, a vector, a constraint, and paths that have to be encoded."""
    data = pa.table({"id": pa.array(range(30), pa.int64()), "p": [f"a b/{n % 3}" for n in range(30)]})
    properties = {"delta.enableDeletionVectors": True, "delta.constraints.small": "id < 1000", "owner": "me"}
    table = deltaic.write(tmp_path / "my source", data, partition_by="p", name="first", properties=properties)
    table.delete("id < 5")
    return table


def files_below(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts
    }


@pytest.mark.parametrize("shallow", [False, True])
def test_a_clone_has_rows_and_definition_and_a_history_of_its_own(
    source: DeltaTable, tmp_path: Path, shallow: bool
) -> None:
    with deltaic.configure(allowed_roots=[tmp_path]):
        clone = source.clone(tmp_path / "clone", shallow=shallow)
        assert rows(clone) == rows(source)
        assert (clone.version, clone.schema, clone.protocol) == (0, source.schema, source.protocol)
        assert clone.metadata.id != source.metadata.id
        assert (clone.metadata.name, clone.metadata.partition_columns) == (None, ("p",))  # as in delta-spark
        assert dict(clone.metadata.configuration) == dict(source.metadata.configuration)
        info = clone.history()[0]
        assert info["operation"] == "CLONE"
        assert info["operationParameters"] == {
            "source": f"delta.`{source.location}`",
            "sourceVersion": 1,
            "isShallow": shallow,
        }
        copied = files_below(tmp_path / "clone")
        sizes = sum((tmp_path / "clone" / name).stat().st_size for name in copied)
        live = source.detail()
        assert info["operationMetrics"] == {
            "sourceTableSize": str(live.size_in_bytes),
            "sourceNumOfFiles": str(live.num_files),
            "numRemovedFiles": "0",
            "numCopiedFiles": str(len(copied)),
            "removedFilesSize": "0",
            "copiedFilesSize": str(sizes),
        }
        assert bool(copied) is not shallow
        with pytest.raises(ConstraintViolationError, match="small"):
            deltaic.write(clone, pa.table({"id": [2000], "p": ["x"]}), mode="append")


def test_clones_of_clones_name_the_first_table(source: DeltaTable, tmp_path: Path) -> None:
    with deltaic.configure(allowed_roots=[tmp_path]):
        first = source.clone(tmp_path / "first", shallow=True)
        first.delete("id = 20")  # a vector of its own for a file of the source
        deltaic.write(first, pa.table({"id": [100], "p": ["new"]}), mode="append")
        second = first.clone(tmp_path / "second", shallow=True)
        deep = first.clone(tmp_path / "deep")
        assert rows(first) == rows(second) == rows(deep) != rows(source)
        repeated = first.clone(tmp_path / "deep", replace=True)
        assert repeated.version == 0  # nothing to do
    assert rows(deep.at(0)) == rows(deep)  # a deep clone needs no other folder
    paths = deep.files().to_arrow()["path"].to_pylist()
    assert not any(path.startswith(("/", "file:")) for path in paths)


def test_a_shallow_clone_is_read_where_its_source_is_allowed(source: DeltaTable, tmp_path: Path) -> None:
    clone = source.clone(tmp_path / "clone", shallow=True)
    with pytest.raises(PathOutsideTableError, match="allowed"):
        rows(clone)
    with deltaic.configure(allowed_roots=[source.location]):
        assert rows(DeltaTable(tmp_path / "clone")) == rows(source)


def test_a_deep_clone_that_is_repeated_copies_what_is_new(source: DeltaTable, tmp_path: Path) -> None:
    clone = source.clone(tmp_path / "clone")
    deltaic.write(source, pa.table({"id": [50], "p": ["a b/0"]}), mode="append")
    source.delete("id = 10")
    source.delete("p = 'a b/2'")
    again = source.clone(tmp_path / "clone", replace=True)
    assert rows(again) == rows(source)
    metrics = again.history()[0]["operationMetrics"]
    # A data file and a file of vectors.
    assert (metrics["numCopiedFiles"], metrics["numRemovedFiles"]) == ("2", "2")
    assert rows(again.at(0)) == rows(clone)
    deltaic.write(again, pa.table({"id": [77], "p": ["own"]}), mode="append")
    assert rows(source.clone(tmp_path / "clone", replace=True)) == rows(source)


def test_a_deep_clone_takes_no_other_file_of_the_same_name_for_its_own(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tables = []
    for name, value in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": [value]}), tmp_path / name / "part-0.parquet")
        tables.append(DeltaTable.convert(tmp_path / name))
    first = tables[0].clone(tmp_path / "clone")
    second = tables[1].clone(tmp_path / "clone", replace=True)
    assert (rows(second), rows(first)) == ([(2,)], [(1,)])
    again = tables[1].clone(tmp_path / "clone", replace=True)
    assert again.version == second.version
    assert rows(tables[0].clone(tmp_path / "clone", replace=True)) == [(1,)]


def test_a_version_is_cloned_with_properties_replaced(source: DeltaTable, tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": False, "owner": "you", "delta.enableChangeDataFeed": True}
    clone = source.at(0).clone(tmp_path / "clone", properties=properties)
    assert rows(clone) == rows(source.at(0))
    configuration = clone.metadata.configuration
    assert (configuration["owner"], configuration["delta.enableChangeDataFeed"]) == ("you", "true")
    assert configuration["delta.constraints.small"] == "id < 1000"
    clone.delete("id = 7")
    assert clone.changes(1).to_arrow()["_change_type"].to_pylist() == ["delete"]


def test_what_is_there_is_replaced_only_when_asked(source: DeltaTable, tmp_path: Path) -> None:
    other = deltaic.write(
        tmp_path / "other", pa.table({"x": ["a"]}), properties={"delta.enableChangeDataFeed": True}
    )
    with pytest.raises(TableAlreadyExistsError):
        source.clone(tmp_path / "other")
    with pytest.raises(InvalidArgumentError, match="onto itself"):
        source.clone(source.location, replace=True)
    replaced = source.clone(tmp_path / "other", replace=True)
    assert (replaced.version, replaced.metadata.id, rows(replaced)) == (1, other.metadata.id, rows(source))
    assert "changeDataFeed" in (replaced.protocol.writer_features or ())
    assert "delta.enableChangeDataFeed" not in replaced.metadata.configuration
    replaced.restore(0)
    assert replaced.scan().to_arrow().to_pylist() == [{"x": "a"}]


def test_vacuum_of_a_clone_touches_no_file_of_the_source(source: DeltaTable, tmp_path: Path) -> None:
    before = files_below(Path(source.location))
    with deltaic.configure(allowed_roots=[tmp_path]):
        clone = source.clone(tmp_path / "clone", shallow=True)
        clone.update({"id": "id + 1"}, "p = 'a b/1'")
        clone.delete()
        own = files_below(tmp_path / "clone")
        gone = clone.vacuum(retention=timedelta(0), enforce_retention=False).to_arrow()["path"].to_pylist()
        assert {path.replace(source.location, "") for path in gone} == own
    assert files_below(Path(source.location)) == before


def test_row_ids_of_a_clone_are_its_own(tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": True, "delta.enableDeletionVectors": True}
    source = deltaic.write(tmp_path / "source", pa.table({"id": [1, 2, 3]}), properties=properties)
    source.update({"id": "id + 10"}, "id = 2")
    source.optimize.compact()
    clone = source.clone(tmp_path / "clone")
    names = [source.metadata.configuration, clone.metadata.configuration]
    key = "delta.rowTracking.materializedRowIdColumnName"
    assert names[0][key] != names[1][key]
    clone.update({"id": "id + 100"}, "id = 12")
    assert rows(clone) == [(1,), (112,), (3,)] or sorted(rows(clone)) == [(1,), (3,), (112,)]


def test_a_deep_clone_knows_what_applications_have_written(source: DeltaTable, tmp_path: Path) -> None:
    deltaic.write(
        source,
        pa.table({"id": [60], "p": ["x"]}),
        mode="append",
        commit=CommitOptions(transactions={"stream": 7}),
    )
    assert source.clone(tmp_path / "deep").transaction_version("stream") == 7
    assert source.clone(tmp_path / "shallow", shallow=True).transaction_version("stream") is None


def test_a_failed_copy_leaves_nothing(source: DeltaTable, tmp_path: Path) -> None:
    lost = next(Path(source.location).rglob("*.parquet"))
    lost.unlink()
    with pytest.raises(ProtocolError, match="VACUUM may have removed it"):
        source.clone(tmp_path / "clone")
    assert not DeltaTable.exists(tmp_path / "clone")
    assert files_below(tmp_path / "clone") == set()


@pytest.mark.parametrize("kind", ["DEEP CLONE", "SHALLOW CLONE", "CLONE"])
def test_clones_in_sql(source: DeltaTable, tmp_path: Path, kind: str) -> None:
    target = f"delta.`{tmp_path / 'clone'}`"
    with deltaic.configure(allowed_roots=[tmp_path]):
        done = deltaic.sql(
            f"CREATE TABLE {target} {kind} delta.`{source.location}` VERSION AS OF 0 TBLPROPERTIES ('a' ="
            " 'b')"
        )
        clone = DeltaTable(tmp_path / "clone")
        assert rows(clone) == rows(source.at(0))
        assert clone.metadata.configuration["a"] == "b"
        assert done.to_arrow().to_pylist() == [
            {
                "source_table_size": source.at(0).detail().size_in_bytes,
                "source_num_of_files": 3,
                "num_removed_files": 0,
                "num_copied_files": 0 if kind.startswith("SHALLOW") else 3,
                "removed_files_size": 0,
                "copied_files_size": 0 if kind.startswith("SHALLOW") else source.at(0).detail().size_in_bytes,
            }
        ]
        deltaic.sql(f"CREATE TABLE IF NOT EXISTS {target} {kind} t", tables={"t": source})
        assert clone.at().version == 0
        deltaic.sql(f"CREATE OR REPLACE TABLE {target} {kind} t", tables={"t": source})
        assert rows(clone.at()) == rows(source)
        with pytest.raises(InvalidArgumentError, match="definition of its source"):
            deltaic.sql(f"CREATE OR REPLACE TABLE {target} {kind} t PARTITIONED BY (p)", tables={"t": source})


def test_a_clone_in_another_store(source: DeltaTable) -> None:
    place = f"memory://clones/{source.metadata.id}"
    clone = source.clone(place)
    assert rows(clone) == rows(source)
    second = clone.clone(place + "-2")  # within one store
    assert rows(second) == rows(source)


def test_deltalake_reads_clones(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    source = deltaic.write(
        tmp_path / "s", pa.table({"id": [1, 2]}), properties={"delta.enableDeletionVectors": False}
    )
    source.clone(tmp_path / "shallow", shallow=True)
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "shallow"))
    assert pa.table(query.execute("SELECT id FROM t ORDER BY id").read_all())["id"].to_pylist() == [1, 2]
    source.clone(tmp_path / "deep")
    assert sorted(deltalake.DeltaTable(tmp_path / "deep").to_pyarrow_table()["id"].to_pylist()) == [1, 2]
