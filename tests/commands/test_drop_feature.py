"""DROP FEATURE: the newest version has no trace of the feature, old versions can still be read, and no client
misreads the table.

Source: PROTOCOL.md, "Table Features", "Checkpoint Protection"; delta-spark's DROP FEATURE.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable, _core
from deltaic.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Protocol
from deltaic.protocol.properties import OF_THE_LOG

NOW = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}


def numbers(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64()), "b": pa.array(values, pa.int32())})


def rows(table: DeltaTable, column: str = "a") -> list[Any]:
    return sorted(table.scan().to_arrow()[column].to_pylist())


def features(table: DeltaTable) -> set[str]:
    return set(table.protocol.writer_features or ())


def actions(table: DeltaTable, name: str, version: int | None = None) -> list[dict[str, Any]]:
    number = table.version if version is None else version
    text = (Path(table.location) / "_delta_log" / f"{number:020}.json").read_text()
    return [action[name] for action in map(json.loads, text.splitlines()) if name in action]


def make(tmp_path: Path, **properties: Any) -> DeltaTable:
    wanted = {
        "delta.enableDeletionVectors": False,
        **{f"delta.{name}": value for name, value in properties.items()},
    }
    table = deltaic.write(tmp_path / "t", numbers(1, 2, 3), properties=wanted)
    return deltaic.write(table, numbers(4, 5), mode="append")


def check_protected(table: DeltaTable, name: str) -> None:
    """The newest version is protected from its own on, has a checkpoint, and opens with the log from there
    alone."""
    assert name not in features(table)
    assert name not in (table.protocol.reader_features or ())
    assert "checkpointProtection" in features(table)
    assert table.metadata.configuration["delta.requireCheckpointProtectionBeforeVersion"] == str(
        table.version
    )
    assert table._snapshot.properties.checkpoint_protection_before_version == table.version
    info = actions(table, "commitInfo")[0]
    parameters = {"featureName": name, "truncateHistory": False}
    assert (info["operation"], info["operationParameters"]) == ("DROP FEATURE", parameters)
    assert (Path(table.location) / "_delta_log" / f"{table.version:020}.checkpoint.parquet").exists()


def test_deletion_vectors(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors=True)
    table.delete("a in (1, 4)")
    before = table.version
    table.alter.drop_feature("deletionVectors")
    check_protected(table, "deletionVectors")
    assert table.protocol.min_reader_version == 1
    assert "delta.enableDeletionVectors" not in table.metadata.configuration
    assert table._snapshot.files().adds["deletionVector"].null_count == table._snapshot.core.file_count
    assert rows(table) == [2, 3, 5]
    assert rows(table.at(before)) == [2, 3, 5]
    vectors = [path.name for path in Path(table.location).glob("*.bin")]
    assert vectors
    assert {action["path"] for action in actions(table, "remove")} == set(vectors), (
        "tombstones keep them for the old versions"
    )
    table.vacuum()
    assert [path.name for path in Path(table.location).glob("*.bin")] == vectors
    deltaic.write(table, numbers(9), mode="append")
    table.delete("a = 2")
    assert rows(table) == [3, 5, 9]
    assert table._snapshot.files().adds["deletionVector"].null_count == table._snapshot.core.file_count


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(tmp_path: Path, mode: str) -> None:
    table = deltaic.write(
        tmp_path / "t",
        pa.table({"a": [1, 2], "s": [{"x": 1}, {"x": 2}], "p": ["u", "v"]}),
        properties={"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": False},
        partition_by="p",
    )
    table.alter.rename_column("a", "z")
    table.alter.rename_column("s.x", "y")
    table.alter.drop_feature("columnMapping")
    check_protected(table, "columnMapping")
    assert "columnMapping" not in table.metadata.schema_string
    assert not [name for name in table.metadata.configuration if "columnMapping" in name]
    assert table.scan().to_arrow().sort_by("z").to_pylist() == [
        {"z": 1, "s": {"y": 1}, "p": "u"},
        {"z": 2, "s": {"y": 2}, "p": "v"},
    ]
    for path in table.files().to_arrow()["path"].to_pylist():
        assert pq.read_schema(Path(table.location) / path).names == ["z", "s"]
    assert rows(table.at(0)) == [1, 2]
    deltaic.write(table, table.scan().to_arrow(), mode="append")
    assert rows(table, "z") == [1, 1, 2, 2]


def rows_and_ids(table: DeltaTable) -> list[dict[str, Any]]:
    snapshot = table._snapshot
    names = row_tracking.hidden_columns(table.metadata)
    assert names is not None
    found = _core.read(
        snapshot.store, snapshot.table_schema, snapshot.files().adds, ["z", "s", "p"], row_tracking=names
    )
    return found.to_table().rename_columns(["z", "s", "p", "id", "version"]).sort_by("z").to_pylist()


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize(
    ("change", "operations"),
    [
        (
            lambda alter: alter.set_properties({"delta.columnMapping.mode": "none"}),
            ["REMOVE COLUMN MAPPING"],
        ),
        (
            lambda alter: alter.set_properties({"delta.columnMapping.mode": "NONE", "team": "a"}),
            ["SET TBLPROPERTIES", "REMOVE COLUMN MAPPING"],
        ),
        (
            lambda alter: alter.unset_properties("delta.columnMapping.mode"),
            ["REMOVE COLUMN MAPPING"],
        ),
        (
            lambda alter: alter.unset_properties("delta.columnMapping.mode", "owner"),
            ["UNSET TBLPROPERTIES", "REMOVE COLUMN MAPPING"],
        ),
    ],
)
def test_mode_none_removes_column_mapping(
    tmp_path: Path, mode: str, change: Callable[[Any], None], operations: list[str]
) -> None:
    """As in delta-spark, by properties; the protocol keeps the feature, so that mapping can begin again."""
    table = deltaic.write(
        tmp_path / "t",
        pa.table({"a": [1, 2, 3], "s": [{"x": 1, "y": 1}, {"x": 2, "y": 2}, None], "p": ["u", "v w", None]}),
        properties={
            "delta.columnMapping.mode": mode,
            "delta.enableDeletionVectors": True,
            "delta.enableChangeDataFeed": True,
            "delta.enableRowTracking": True,
            "owner": "o",
        },
        partition_by="p",
    )
    table.alter.rename_column("a", "z")
    table.alter.drop_columns("s.y")
    table.delete("z = 1")
    before, version = rows_and_ids(table), table.version
    change(table.alter)
    assert [commit["operation"] for commit in table.history(len(operations))] == operations
    assert table.version == version + len(operations)
    assert rows_and_ids(table) == before
    assert "columnMapping" not in table.metadata.schema_string
    assert "columnMapping" in table.protocol.reader_features
    for path in table.files().to_arrow()["location"].to_pylist():
        assert pq.read_schema(path).names[:2] == ["z", "s"]
    assert table.changes(version + 1).to_arrow().num_rows == 0
    assert rows(table.at(0)) == [1, 2, 3]
    files = table.files().to_arrow()["path"]
    table.alter.set_properties({"delta.columnMapping.mode": "none"})
    assert table.files().to_arrow()["path"].equals(files), "files were written again"
    table.alter.set_properties({"delta.columnMapping.mode": "name"})
    table.alter.rename_column("z", "a")
    assert rows(table) == [2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"delta.nonsense": 1},
        {"delta.appendOnly": "maybe"},
        {"delta.enableIcebergCompatV2": True},
        {"delta.columnMapping.maxColumnId": 3},
    ],
)
def test_mode_none_beside_a_wrong_property_changes_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    table = deltaic.write(
        tmp_path / "t",
        numbers(1, 2),
        properties={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": False},
    )
    with pytest.raises(DeltaError):
        table.alter.set_properties({"delta.columnMapping.mode": "none", **wrong})
    assert DeltaTable(table.location).version == 0


def test_mode_none_of_a_table_that_needs_mapping(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table({"a b": [1]}), properties={"delta.columnMapping.mode": "name"}
    )
    with pytest.raises(InvalidArgumentError, match="a b"):
        table.alter.set_properties({"delta.columnMapping.mode": "none"})
    iceberg = deltaic.write(
        tmp_path / "i",
        pa.table({"a": [1]}),
        properties={"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": True},
    )
    with pytest.raises(DeltaError):
        iceberg.alter.set_properties({"delta.columnMapping.mode": "none"})
    assert (table.version, iceberg.version) == (0, 0)


def test_column_mapping_with_names_that_need_it(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table({"a b": [1]}), properties={"delta.columnMapping.mode": "name"}
    )
    with pytest.raises(InvalidArgumentError, match="a b"):
        table.alter.drop_feature("columnMapping")
    assert table.version == 0


def test_column_mapping_of_a_clustered_table(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", numbers(1, 2), cluster_by="a", properties={"delta.columnMapping.mode": "name"}
    )
    table.alter.rename_column("a", "z")
    table.alter.drop_feature("columnMapping")
    assert json.loads(table._snapshot.domains["delta.clustering"]) == {"clusteringColumns": [["z"]]}


def test_type_widening(tmp_path: Path) -> None:
    table = make(tmp_path, enableTypeWidening=True)
    table.alter.change_column("b", type="bigint")
    deltaic.write(table, pa.table({"a": [9], "b": [2**40]}), mode="append")
    table.alter.drop_feature("typeWidening")
    check_protected(table, "typeWidening")
    assert "typeChanges" not in table.metadata.schema_string
    assert "delta.enableTypeWidening" not in table.metadata.configuration
    assert rows(table, "b") == [1, 2, 3, 4, 5, 2**40]
    for path in table.files().to_arrow()["path"].to_pylist():
        assert pq.read_schema(Path(table.location) / path).field("b").type == pa.int64()


def test_checkpoints_of_the_second_form(tmp_path: Path) -> None:
    table = make(tmp_path, checkpointPolicy="v2")
    table.checkpoint()
    log = Path(table.location) / "_delta_log"
    assert [path.name for path in log.glob("*.checkpoint.*.json")]
    table.alter.drop_feature("v2Checkpoint")
    check_protected(table, "v2Checkpoint")
    assert "delta.checkpointPolicy" not in table.metadata.configuration
    assert rows(DeltaTable(table.location)) == [1, 2, 3, 4, 5]
    assert rows(table.at(1)) == [1, 2, 3, 4, 5]
    cut = deltaic.write(tmp_path / "cut", numbers(1), properties={"delta.checkpointPolicy": "v2", **NOW})
    cut.checkpoint()
    deltaic.write(cut, numbers(2), mode="append")
    cut.alter.drop_feature("v2Checkpoint", truncate_history=True)
    assert "v2Checkpoint" not in features(cut)
    assert not list((tmp_path / "cut" / "_delta_log").glob("*.checkpoint.*.json"))
    assert rows(DeltaTable(cut.location)) == [1, 2]


def test_what_was_never_used_goes_at_once(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.add_features("vacuumProtocolCheck", "typeWidening", "columnMapping", "deletionVectors")
    for name in ("vacuumProtocolCheck", "typeWidening", "columnMapping", "deletionVectors"):
        version = table.version
        table.alter.drop_feature(name)
        assert table.version == version + 1
        assert name not in features(table)
    assert rows(table) == [1, 2, 3, 4, 5]


def test_row_tracking(tmp_path: Path) -> None:
    table = make(tmp_path, enableRowTracking=True)
    table.alter.drop_feature("rowTracking")
    assert features(table) == {"domainMetadata"} | (features(table) - {"rowTracking"})
    assert "rowTracking" not in features(table)
    assert not [
        name
        for name in table.metadata.configuration
        if "rowTracking" in name.lower() or "RowTracking" in name
    ]
    assert "delta.rowTracking" not in table._snapshot.domains
    files = table._snapshot.files().adds
    assert files["baseRowId"].null_count == files["defaultRowCommitVersion"].null_count == files.num_rows == 2
    assert "checkpointProtection" not in features(table), "old versions are readable by all"
    table.alter.drop_feature("domainMetadata")
    assert "domainMetadata" not in features(table)
    table.alter.set_properties({"delta.enableRowTracking": True})
    assert table._snapshot.files().adds["baseRowId"].null_count == 0


def test_in_commit_timestamps(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.set_properties({"delta.enableInCommitTimestamps": True})
    table.alter.drop_feature("inCommitTimestamp")
    assert not [name for name in table.metadata.configuration if "nCommitTimestamp" in name]
    assert "inCommitTimestamp" not in actions(table, "commitInfo")[0]
    assert table.protocol == Protocol(1, 2)
    assert len(table.history()) == table.version + 1


def test_truncated_history(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors=True)
    table.delete("a = 1")
    with pytest.raises(
        InvalidArgumentError, match="does not use deletionVectors any more, but older versions of the table"
    ) as caught:
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert "24" in str(caught.value) or "1 day" in str(caught.value)
    table.refresh()
    assert "deletionVectors" in features(table)
    assert table._snapshot.files().adds["deletionVector"].null_count == table._snapshot.core.file_count, (
        "the traces are gone already"
    )
    table.alter.set_properties(NOW)
    deltaic.write(table, numbers(7), mode="append")
    table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert table.protocol == Protocol(1, 1)
    assert "checkpointProtection" not in features(table)
    assert rows(table) == [2, 3, 4, 5, 7]
    assert rows(DeltaTable(table.location)) == [2, 3, 4, 5, 7]
    left = sorted(path.name for path in (Path(table.location) / "_delta_log").glob("*.json"))
    assert left[0] == f"{table.version - 1:020}.json"


def test_truncation_waits_for_old_versions_to_expire(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors=True)
    table.delete("a = 1")
    with pytest.raises(InvalidArgumentError):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    table.refresh()
    for path in (Path(table.location) / "_delta_log").iterdir():
        seconds = path.stat().st_mtime - 25 * 3600
        os.utime(path, (seconds, seconds))
    table = DeltaTable(table.location)
    table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert table.protocol == Protocol(1, 1)
    assert rows(table) == [2, 3, 4, 5]


def test_checkpoint_protection_goes_with_the_versions_that_it_protects(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.add_features("vacuumProtocolCheck")
    table.alter.drop_feature("vacuumProtocolCheck")
    with pytest.raises(InvalidArgumentError, match="truncate_history"):
        table.alter.drop_feature("checkpointProtection")
    with pytest.raises(InvalidArgumentError, match="older versions"):
        table.alter.drop_feature("checkpointProtection", truncate_history=True)
    table.alter.set_properties(NOW)
    table.alter.drop_feature("checkpointProtection", truncate_history=True)
    assert table.protocol == Protocol(1, 2)
    assert "delta.requireCheckpointProtectionBeforeVersion" not in table.metadata.configuration
    assert rows(DeltaTable(table.location)) == [1, 2, 3, 4, 5]


def test_features_of_columns_and_of_the_feed(tmp_path: Path) -> None:
    fields = [
        deltaic.Field(
            "id",
            "long",
            metadata={
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": True,
            },
        ),
        deltaic.Field("a", "long", metadata={"CURRENT_DEFAULT": "7"}),
        deltaic.Field("twice", "long", metadata={"delta.generationExpression": "a * 2"}),
    ]
    properties = {"delta.enableChangeDataFeed": True, "delta.enableDeletionVectors": False}
    table = DeltaTable.create(tmp_path, deltaic.Schema(fields), cluster_by="a", properties=properties)
    deltaic.write(table, pa.table({"a": [1, 2]}), mode="append")
    names = ["changeDataFeed", "identityColumns", "allowColumnDefaults", "generatedColumns", "clustering"]
    assert features(table) >= set(names)
    for name in names:
        table.alter.drop_feature(name)
        assert name not in features(table)
        parameters = {"featureName": name, "truncateHistory": False}
        assert table.history()[0]["operationParameters"] == parameters
    assert not any(field.metadata for field in table.schema)
    assert "delta.enableChangeDataFeed" not in table.metadata.configuration
    assert not table.detail().clustering_columns
    deltaic.write(table, pa.table({"id": [9], "a": [5], "twice": [5]}), mode="append")
    assert rows(table, "twice") == [2, 4, 5]


def test_refusals_name_the_feature(tmp_path: Path) -> None:
    table = make(tmp_path, enableRowTracking=True)
    with pytest.raises(InvalidArgumentError, match="'deletionVectors'"):
        table.alter.drop_feature("deletionVectors")
    with pytest.raises(InvalidArgumentError, match="rowTracking needs domainMetadata"):
        table.alter.drop_feature("domainMetadata")
    table.alter.add_features("appendOnly")
    with pytest.raises(UnsupportedFeatureError, match="appendOnly"):
        table.alter.drop_feature("appendOnly")
    with pytest.raises(InvalidArgumentError, match="feature of writers"):
        table.alter.drop_feature("rowTracking", truncate_history=True)


def test_a_legacy_table(tmp_path: Path) -> None:
    table = make(tmp_path, minReaderVersion=2, minWriterVersion=5)
    assert table.protocol == Protocol(2, 5)
    table.alter.set_properties({"delta.columnMapping.mode": "name"})
    table.alter.drop_feature("columnMapping")
    assert table.protocol.min_reader_version == 1
    assert features(table) == {
        "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
        "checkpointProtection"
    }  # fmt: skip
    assert rows(table) == [1, 2, 3, 4, 5]


def test_sql(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors=True)
    deltaic.sql("ALTER TABLE t DROP FEATURE deletionVectors", tables={"t": table})
    assert "deletionVectors" not in features(table)


def test_what_is_protected_stays_so_whatever_becomes_of_the_table(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors=True, enableInCommitTimestamps=True)
    table.alter.drop_feature("deletionVectors")
    kept = {name: text for name, text in table.metadata.configuration.items() if name in OF_THE_LOG}
    assert len(kept) == 2
    table.restore(1)
    assert kept.items() <= table.metadata.configuration.items()
    table = DeltaTable.create(table.location, "a long", mode="overwrite")
    del kept["delta.enableInCommitTimestamps"]  # a replaced table has only those of its definition
    assert kept.items() <= table.metadata.configuration.items()
    deltaic.write(table, pa.table({"a": [1]}), mode="overwrite", schema_mode="overwrite")
    assert kept.items() <= table.metadata.configuration.items()


def test_the_statement_takes_a_name_in_backticks_or_quotes(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.add_features("typeWidening-preview", "vacuumProtocolCheck")
    deltaic.sql("ALTER TABLE t DROP FEATURE `typeWidening-preview`", tables={"t": table})
    deltaic.sql("ALTER TABLE t DROP FEATURE 'vacuumProtocolCheck'", tables={"t": table})
    assert not features(table) & {"typeWidening-preview", "vacuumProtocolCheck"}
