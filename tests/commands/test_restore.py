"""RESTORE, FSCK, add_files and create: commands that change the list of files, and no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic.errors import AppendOnlyError, InvalidArgumentError, ProtocolError, VersionNotFoundError


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def batch(*values: int, **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), **columns})


def test_restore_by_version(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="append")
    deltaic.write(table, batch(3), mode="overwrite")
    metrics = table.restore(1)
    assert (table.version, ids(table)) == (3, [1, 2])
    sizes = [path.stat().st_size for path in tmp_path.glob("*.parquet")]
    assert metrics["num_restored_files"] == 2
    assert metrics["num_removed_files"] == 1
    assert metrics["num_of_files_after_restore"] == 2
    assert metrics["table_size_after_restore"] == metrics["restored_files_size"]
    assert metrics["restored_files_size"] + metrics["removed_files_size"] == sum(sizes)
    info = table.history()[0]
    assert (info["operation"], info["operationParameters"]) == ("RESTORE", {"version": 1, "timestamp": None})
    assert info["operationMetrics"]["numRestoredFiles"] == "2"


def test_restore_by_time(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    when = table.history()[0]["timestamp"]
    deltaic.write(table, batch(2), mode="append")
    table.restore(timestamp=when)
    assert ids(table) == [1]


def test_restore_by_a_handle_that_is_older_than_the_newest_version(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2]}))
    deltaic.write(DeltaTable(tmp_path / "t"), pa.table({"id": [3]}), mode="append")
    assert table.restore(version=0)["num_removed_files"] == 1
    assert table.version == 2
    assert sorted(DeltaTable(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_restore_to_what_is_there_commits_nothing(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    metrics = table.restore(0)
    assert (table.version, metrics["num_restored_files"], metrics["num_of_files_after_restore"]) == (0, 0, 1)


def test_restore_with_an_application_transaction_runs_once(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"id": [1]})
    table.delete("id = 1")
    job = deltaic.CommitOptions(transactions={"job": 3})
    assert table.restore(0, commit=job)["num_restored_files"] == 1
    deltaic.write(table, {"id": [2]}, mode="append")
    assert table.restore(0, commit=job)["num_removed_files"] == 0
    assert (table.version, table.scan().count(), table.transaction_version("job")) == (3, 2, 3)


def test_changes_of_no_row_record_their_application_transaction(tmp_path: Path) -> None:
    """As in delta-spark: a batch that changes nothing is done, too."""
    table = deltaic.write(tmp_path / "t", {"id": [1]})
    table.update({"id": "2"}, "id = 5", commit=deltaic.CommitOptions(transactions={"job": 3}))
    assert (table.version, table.transaction_version("job")) == (1, 3)
    done = deltaic.CommitOptions(transactions={"job": 4})
    table.merge({"id": [5]}, "t.id = s.id", commit=done).when_matched_delete().execute()
    assert (table.version, table.transaction_version("job")) == (2, 4)
    table.update({"id": "2"}, "id = 5")
    assert (table.version, table.scan().to_pylist()) == (2, [{"id": 1}])


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_restore_across_vectors(tmp_path: Path, vectors: str) -> None:
    table = deltaic.write(tmp_path, batch(*range(10)), properties={"delta.enableDeletionVectors": vectors})
    table.delete("id < 3")
    table.delete("id > 7")
    table.restore(1)
    assert ids(table) == [3, 4, 5, 6, 7, 8, 9]
    table.restore(0)
    assert ids(table) == list(range(10))
    table.restore(2)
    assert ids(table) == [3, 4, 5, 6, 7]


def test_restore_brings_back_the_schema_and_keeps_identity_and_protocol(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1), properties={"delta.enableDeletionVectors": "false"})
    identity = table.metadata.id
    deltaic.write(table, batch(2, extra=["x"]), mode="append", schema_mode="merge")
    table.alter.set_properties({"delta.enableDeletionVectors": "true"})
    upgraded = table.protocol
    table.restore(0)
    assert table.schema.names == ["id"]
    assert (table.metadata.id, table.protocol) == (identity, upgraded)
    assert table.metadata.configuration.get("delta.enableDeletionVectors") != "true"
    table.restore(0, allow_protocol_downgrade=True)
    assert table.protocol == table.at(0).protocol


def test_restore_never_gives_a_column_id_twice(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1), properties={"delta.columnMapping.mode": "name"})
    table.alter.add_columns("a string")
    table.restore(0)
    table.alter.add_columns("b string")
    assert table.schema.field("b").metadata["delta.columnMapping.id"] == 3


def test_files_that_are_gone(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    first = next(tmp_path.glob("*.parquet"))
    deltaic.write(table, batch(2), mode="append")
    deltaic.write(table, batch(3), mode="overwrite")
    first.unlink()
    with pytest.raises(ProtocolError, match=f"{first.name}.*ignore_missing_files"):
        table.restore(1)
    assert table.version == 2
    metrics = table.restore(1, ignore_missing_files=True)
    assert ids(table) == [2]
    assert (metrics["num_restored_files"], metrics["num_of_files_after_restore"]) == (1, 1)


def test_a_vector_that_is_gone_is_never_left_out(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(*range(10)))
    table.delete("id = 1")
    deltaic.write(table, batch(100), mode="overwrite")
    next(tmp_path.glob("*.bin")).unlink()
    with pytest.raises(ProtocolError, match="deletion vector"):
        table.restore(1, ignore_missing_files=True)
    assert ids(table) == [100]


@pytest.mark.parametrize("arguments", [{}, {"version": 0, "timestamp": "2024-01-01"}])
def test_what_to_restore_must_be_said_once(tmp_path: Path, arguments: dict[str, Any]) -> None:
    table = deltaic.write(tmp_path, batch(1))
    with pytest.raises(InvalidArgumentError, match="a version or a timestamp"):
        table.restore(**arguments)
    with pytest.raises(VersionNotFoundError):
        table.restore(7)


# --- FSCK


def test_repair(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    lost = next(tmp_path.glob("*.parquet"))
    deltaic.write(table, batch(2), mode="append")
    assert table.repair().count() == 0
    assert table.version == 1
    lost.unlink()
    assert table.repair(dry_run=True).to_arrow()["path"].to_pylist() == [lost.name]
    assert table.version == 1
    assert table.repair(commit=CommitOptions(user_metadata="fsck")).to_arrow()["path"].to_pylist() == [
        lost.name
    ]
    assert (table.version, ids(table)) == (2, [2])
    assert table.history()[0]["operation"] == "FSCK"


def test_repair_of_a_shallow_clone(tmp_path: Path) -> None:
    """The files of a clone are in the folder of its source, an allowed root. Without that root they are not
    checked, and kept."""
    source = deltaic.write(tmp_path / "source", batch(1), partition_by=None)
    deltaic.write(source, batch(2), mode="append")
    with deltaic.configure(allowed_roots=[tmp_path]):
        clone = source.clone(tmp_path / "clone", shallow=True)
        assert clone.repair(dry_run=True).count() == 0
        lost = next((tmp_path / "source").glob("*.parquet"))
        lost.unlink()
        gone = clone.repair(dry_run=True).to_arrow().to_pylist()
        assert [Path(row["path"]).name for row in gone] == [lost.name]
        assert gone[0]["data_file_missing"]
    unchecked = deltaic.DeltaTable(tmp_path / "clone")
    assert unchecked.repair(dry_run=True).count() == 0
    with deltaic.configure(allowed_roots=[tmp_path / "elsewhere", tmp_path / "source"]):
        assert clone.repair().count() == 1
        assert clone.version == 1
        assert len(ids(clone)) == 1


@pytest.mark.parametrize("inline", [False, True])
def test_repair_of_lost_vectors(tmp_path: Path, inline: bool) -> None:
    properties = {"delta.enableDeletionVectors": True, "deltaic.inlineDeletionVectors": inline}
    table = deltaic.write(tmp_path, batch(1, 2), properties=properties)
    deltaic.write(table, batch(3, 4), mode="append")
    table.delete("id = 2")
    first = list(tmp_path.glob("*.bin"))
    table.delete("id = 4")
    files = table.files().to_arrow()
    if inline:
        assert table.repair().count() == 0
        return
    [lost] = first
    lost.unlink()
    gone = table.repair(dry_run=True).to_arrow().to_pylist()
    assert [
        (row["data_file_missing"], row["deletion_vector"], row["deletion_vector_missing"]) for row in gone
    ] == [(False, lost.name, True)]
    assert gone[0]["path"] in files["path"].to_pylist()
    shown = deltaic.sql("FSCK REPAIR TABLE t", tables={"t": table}).to_arrow().to_pylist()
    assert shown == [
        {
            "dataFilePath": gone[0]["path"],
            "dataFileMissing": False,
            "deletionVectorPath": lost.name,
            "deletionVectorFileMissing": True,
        }
    ]
    assert ids(table) == [3]  # the deleted rows of the other file are not known
    assert table.history()[0]["operationMetrics"] == {"numRemovedFiles": "1"}


# --- create


def test_create(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path,
        "id bigint not null, month string",
        partition_by="month",
        name="n",
        description="d",
        properties={"mine": 1},
    )
    assert (table.version, table.scan().count()) == (0, 0)
    assert table.schema.to_ddl() == deltaic.Schema.from_ddl("id bigint not null, month string").to_ddl()
    info = table.history()[0]
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"]["partitionBy"] == '["month"]'
    assert info["operationParameters"]["description"] == "d"
    with pytest.raises(deltaic.errors.TableAlreadyExistsError):
        DeltaTable.create(tmp_path, "id bigint")
    assert DeltaTable.create(tmp_path, "other string", mode="ignore").schema.names == ["id", "month"]
    with pytest.raises(InvalidArgumentError, match="unknown mode"):
        DeltaTable.create(tmp_path, "id bigint", mode="replace")  # type: ignore[arg-type]


def test_create_or_replace(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1, month=["x"]), partition_by="month", properties={"mine": "1"})
    replaced = DeltaTable.create(
        tmp_path, pa.schema([("word", pa.string())]), mode="overwrite", properties={"yours": "2"}
    )
    assert (replaced.version, replaced.schema.names, replaced.scan().count()) == (1, ["word"], 0)
    assert replaced.metadata.partition_columns == ()
    assert "mine" not in replaced.metadata.configuration
    assert replaced.metadata.configuration["yours"] == "2"
    assert replaced.metadata.id != table.metadata.id
    assert replaced.history()[0]["operation"] == "CREATE OR REPLACE TABLE"
    assert ids(replaced.at(0)) == [1]


def test_an_append_only_table_is_not_restored(tmp_path: Path) -> None:
    deltaic.write(tmp_path, batch(1), properties={"delta.appendOnly": "true"})
    deltaic.write(tmp_path, batch(2), mode="append")
    with pytest.raises(AppendOnlyError):
        DeltaTable(tmp_path).restore(0)


def test_create_or_replace_drops_column_mapping_and_commit_timestamps(tmp_path: Path) -> None:
    """As in delta-spark: of these properties, only the checkpoint policy is kept."""
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
    }
    deltaic.write(tmp_path, batch(1), properties=properties)
    replaced = DeltaTable.create(tmp_path, "id bigint", mode="overwrite")
    kept = {key for key in replaced.metadata.configuration if "Deletion" not in key}
    assert kept == {"delta.checkpointPolicy"}
    assert "delta.columnMapping.id" not in replaced.schema.field("id").metadata
    deltaic.write(tmp_path, batch(2), mode="append")
    assert DeltaTable(tmp_path).scan().to_arrow().num_rows == batch(2).num_rows
    assert DeltaTable(tmp_path, version=0).scan().to_arrow().num_rows == batch(1).num_rows
    DeltaTable(tmp_path).restore(0)
    assert DeltaTable(tmp_path).scan().to_arrow().num_rows == batch(1).num_rows


def test_create_or_replace_keeps_mapped_ids_of_columns_of_the_same_type(tmp_path: Path) -> None:
    deltaic.write(tmp_path, batch(1), properties={"delta.columnMapping.mode": "name"})
    replaced = DeltaTable.create(
        tmp_path, "id bigint, v bigint", mode="overwrite", properties={"delta.columnMapping.mode": "name"}
    )
    assert [item.metadata["delta.columnMapping.id"] for item in replaced.schema] == [1, 2]
    again = DeltaTable.create(
        tmp_path, "id int, v bigint", mode="overwrite", properties={"delta.columnMapping.mode": "name"}
    )
    assert [item.metadata["delta.columnMapping.id"] for item in again.schema] == [3, 2]


def test_create_or_replace_keeps_row_tracking_and_the_choice_of_vectors(tmp_path: Path) -> None:
    """As in delta-spark: readers without support for deletion vectors can still read a table without them."""
    without = {"delta.enableDeletionVectors": False}
    deltaic.write(tmp_path / "a", batch(1), properties=without)
    replaced = DeltaTable.create(tmp_path / "a", "id bigint", mode="overwrite")
    assert replaced.metadata.configuration == {"delta.enableDeletionVectors": "false"}
    assert replaced.protocol.min_reader_version == 1
    properties = {**without, "delta.enableRowTracking": True}
    deltaic.write(tmp_path / "b", batch(1, 2), properties=properties)
    old = DeltaTable(tmp_path / "b").metadata.configuration
    replaced = DeltaTable.create(tmp_path / "b", "id bigint", mode="overwrite")
    assert replaced.metadata.configuration == old
    deltaic.write(replaced, batch(3), mode="append")
    assert replaced._snapshot.files().adds["baseRowId"].to_pylist() == [2]
    suspended = DeltaTable.create(
        tmp_path / "b", "id bigint", mode="overwrite", properties={"delta.enableRowTracking": False}
    )
    assert suspended.metadata.configuration["delta.enableRowTracking"] == "false"
    # deletion vectors, which Iceberg's version 2 does not have, are omitted
    deltaic.write(tmp_path / "c", batch(1), properties={"delta.enableDeletionVectors": True})
    compatible = {"delta.enableIcebergCompatV2": True, "delta.columnMapping.mode": "name"}
    replaced = DeltaTable.create(tmp_path / "c", "id bigint", mode="overwrite", properties=compatible)
    assert "delta.enableDeletionVectors" not in replaced.metadata.configuration


def test_default_properties_of_the_process(tmp_path: Path) -> None:
    with deltaic.configure(default_properties={"delta.checkpointInterval": 3}):
        table = DeltaTable.create(tmp_path / "a", "id bigint", properties={"mine": "x"})
    assert table.metadata.configuration == {"delta.checkpointInterval": "3", "mine": "x"}
    assert (table.protocol.min_reader_version, table.protocol.min_writer_version) == (1, 2)
    assert DeltaTable.create(tmp_path / "b", "id bigint").metadata.configuration == {
        "delta.enableDeletionVectors": "true"
    }
