"""Clustered tables: the columns in the log, which files are sorted and which are left alone, and which
writers may change the columns.

Source: PROTOCOL.md, "Clustered Table".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from commands_model import Make

import deltaic
from deltaic import DeltaTable
from deltaic.errors import (
    ConcurrentTransactionException,
    InvalidArgumentError,
    ProtocolError,
    UnsupportedFeatureError,
)


def points(count: int = 4000, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {"a": random.integers(0, 1000, count), "b": random.integers(0, 1000, count), "c": np.arange(count)}
    )


def actions(table: DeltaTable, name: str, version: int | None = None) -> list[dict[str, Any]]:
    number = table.version if version is None else version
    text = (Path(table.location) / "_delta_log" / f"{number:020}.json").read_text()
    return [action[name] for action in map(json.loads, text.splitlines()) if name in action]


def columns_of(table: DeltaTable) -> Any:
    configuration = table._snapshot.domains.get("delta.clustering")
    return None if configuration is None else json.loads(configuration)["clusteringColumns"]


def providers(table: DeltaTable) -> list[str | None]:
    return table._snapshot.files().adds["clusteringProvider"].to_pylist()


def rows(table: DeltaTable) -> list[Any]:
    return sorted(map(tuple, (row.values() for row in table.scan().to_arrow().to_pylist())))


def test_a_table_says_what_it_is_clustered_by(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path / "t", "a long, s struct<x: int, y: string>, d date", cluster_by=["S.x", "A"]
    )
    assert actions(table, "domainMetadata") == [
        {
            "domain": "delta.clustering",
            "configuration": '{"clusteringColumns":[["s","x"],["a"]]}',
            "removed": False,
        }
    ]
    assert {"clustering", "domainMetadata"} <= set(table.protocol.writer_features or ())
    assert table.protocol.min_writer_version == 7
    assert table.detail().clustering_columns == ("s.x", "a")
    assert json.loads(actions(table, "commitInfo")[0]["operationParameters"]["clusterBy"]) == ["S.x", "A"]
    written = deltaic.write(tmp_path / "w", points(10), cluster_by="a")
    assert columns_of(written) == [["a"]]
    assert providers(written) == [None]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_under_column_mapping_names_are_physical(tmp_path: Path, mode: str) -> None:
    table = deltaic.write(
        tmp_path / "t", points(), cluster_by=["a", "b"], properties={"delta.columnMapping.mode": mode}
    )
    physical = [table.schema.field(name).metadata["delta.columnMapping.physicalName"] for name in "ab"]
    assert columns_of(table) == [[name] for name in physical]
    table.alter.rename_column("a", "z")
    assert table.detail().clustering_columns == ("z", "b")
    table.optimize.cluster(target_size=10_000)
    assert set(providers(table)) == {"liquid"}
    with pytest.raises(InvalidArgumentError, match="clustered by"):
        table.alter.drop_columns("z")


def test_cluster_sorts_along_both_columns_and_only_what_is_new(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(20_000), cluster_by=["a", "b"], target_file_size=400_000)
    before = rows(table)
    metrics = table.optimize.cluster(target_size=5_000)
    assert metrics["num_files_added"] >= 8
    assert rows(table) == before
    assert set(providers(table)) == {"liquid"}
    for column in ("a", "b"):
        read = table.scan(where=f"{column} between 100 and 110").explain()
        assert read.files_read <= read.files / 2
    version, clustered = table.version, set(table.files().to_arrow()["path"].to_pylist())
    assert table.optimize.cluster(target_size=5_000)["num_files_added"] == 0
    assert table.version == version, "there is nothing left to cluster"
    deltaic.write(table, points(2000, seed=2), mode="append")
    assert None in providers(table)
    table.optimize.cluster(target_size=5_000)
    kept = clustered & set(table.files().to_arrow()["path"].to_pylist())
    assert len(kept) >= len(clustered) - 1, "files that are clustered stay, but for a small last one"
    assert set(providers(table)) == {"liquid"}
    assert len(rows(table)) == 22_000
    assert table.optimize.cluster(full=True, target_size=5_000)["num_files_added"] == 0
    table.alter.cluster_by("b", "a")
    assert table.optimize.cluster(target_size=5_000)["num_files_added"] == 0
    assert table.optimize.cluster(full=True, target_size=5_000)["num_files_added"] >= 8
    assert {tags["ZCUBE_ZORDER_BY"] for tags in map(dict, table.files().to_arrow()["tags"].to_pylist())} == {
        '["b","a"]'
    }
    assert not clustered & set(table.files().to_arrow()["path"].to_pylist())
    info = actions(table, "commitInfo")[0]
    assert (info["operation"], info["operationParameters"]["isFull"]) == ("OPTIMIZE", True)
    assert json.loads(info["operationParameters"]["clusterBy"]) == ["b", "a"]


def test_the_statement_clusters_as_in_delta_spark(tmp_path: Path) -> None:
    """Source: delta-spark 4.4's rows and history of the same statements."""
    table = deltaic.write(tmp_path / "t", points(100), cluster_by=["a"])
    deltaic.write(table, points(100), mode="append")
    (done,) = deltaic.sql("OPTIMIZE t", tables={"t": table}).to_arrow().to_pylist()
    assert done["metrics"]["clusteringStats"]["inputOtherFiles"]["numFiles"] == 2
    assert (providers(table), table.history()[0]["operationParameters"]["isFull"]) == (["liquid"], False)
    assert table.scan().to_arrow()["a"].to_pylist() == [row[0] for row in rows(table)]
    (done,) = deltaic.sql("OPTIMIZE t", tables={"t": table}).to_arrow().to_pylist()
    assert (done["metrics"]["numFilesAdded"], table.version) == (0, 2)
    with pytest.raises(UnsupportedFeatureError, match="which has no partitions"):
        deltaic.sql("OPTIMIZE t WHERE a > 0 AND b = no_such_column", tables={"t": table})


def test_what_another_program_clustered_is_its_own(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(100), cluster_by="a")
    deltaic.write(table, points(100), mode="append")
    log = Path(table.location) / "_delta_log" / f"{1:020}.json"
    (path,) = (action["path"] for action in actions(table, "add", 1))
    log.write_text(
        log.read_text().replace('"dataChange":true', '"dataChange":true,"clusteringProvider":"other"')
    )
    table = DeltaTable(table.location)
    assert sorted(map(str, providers(table))) == ["None", "other"]
    table.optimize.cluster(full=True)
    found = dict(zip(table._snapshot.files().adds["path"].to_pylist(), providers(table), strict=True))
    assert found.pop(path) == "other"
    assert list(found.values()) == ["liquid"]


def test_fields_of_structs_are_clustered_by(tmp_path: Path) -> None:
    data = points(20_000)
    nested = pa.table({"s": pc.make_struct(data["a"], data["b"], field_names=["a", "b"]), "c": data["c"]})
    table = deltaic.write(tmp_path / "t", nested, cluster_by=["s.a", "s.b"])
    table.optimize.cluster(target_size=5_000)
    assert sorted(table.scan().to_arrow()["c"].to_pylist()) == list(range(20_000))
    assert table.scan().to_arrow().column_names == ["s", "c"]
    for column in ("s.a", "s.b"):
        read = table.scan(where=f"{column} between 100 and 110").explain()
        assert read.files_read <= read.files / 2


def test_alter_changes_columns_and_ends_it(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(100))
    table.alter.cluster_by("a", "b")
    assert columns_of(table) == [["a"], ["b"]]
    assert {"clustering", "domainMetadata"} <= set(table.protocol.writer_features or ())
    info = actions(table, "commitInfo")[0]
    assert (info["operation"], info["operationParameters"]) == (
        "CLUSTER BY",
        {"oldClusteringColumns": "", "newClusteringColumns": "a,b"},
    )
    version = table.version
    table.alter.cluster_by("A", "B")
    assert table.version == version, "nothing changed"
    deltaic.sql("ALTER TABLE t CLUSTER BY (c)", tables={"t": table})
    assert columns_of(table) == [["c"]]
    table.optimize.cluster()
    deltaic.sql("ALTER TABLE t CLUSTER BY NONE", tables={"t": table})
    assert columns_of(table) == []
    assert table.detail().clustering_columns == ()
    with pytest.raises(UnsupportedFeatureError, match="no clustering columns"):
        table.optimize.cluster()
    table.optimize.z_order(["a"])
    plain = deltaic.write(tmp_path / "plain", points(10))
    plain.alter.cluster_by()
    assert plain.version == 0


def test_refusals_name_the_column(tmp_path: Path) -> None:
    schema = "a long, b boolean, l array<int>, p string, c1 int, c2 int, c3 int, c4 int"
    for wrong, match in [
        (["nope"], "nope"),
        (["b"], "column b"),
        (["l"], "column l"),
        (["a", "A"], "twice"),
        (["a", "c1", "c2", "c3", "c4"], "at most 4"),
    ]:
        with pytest.raises(InvalidArgumentError, match=match):
            DeltaTable.create(tmp_path / "t", schema, cluster_by=wrong)
    with pytest.raises(InvalidArgumentError, match="not both"):
        DeltaTable.create(tmp_path / "t", schema, cluster_by=["a"], partition_by=["p"])
    with pytest.raises(InvalidArgumentError, match="without statistics"):
        DeltaTable.create(
            tmp_path / "t", schema, cluster_by=["c1"], properties={"delta.dataSkippingNumIndexedCols": 1}
        )
    partitioned = DeltaTable.create(tmp_path / "p", schema, partition_by=["p"])
    with pytest.raises(InvalidArgumentError, match="cannot be clustered"):
        partitioned.alter.cluster_by("a")
    with pytest.raises(InvalidArgumentError, match="not both"):
        partitioned.alter.add_features("clustering")
    assert not DeltaTable.exists(tmp_path / "t")


def test_files_without_statistics_of_a_new_column_are_named(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(100), properties={"delta.dataSkippingStatsColumns": "a"})
    with pytest.raises(InvalidArgumentError, match="without statistics"):
        table.alter.cluster_by("b")
    table.alter.set_properties({"delta.dataSkippingStatsColumns": "a,b"})
    with pytest.raises(InvalidArgumentError, match="1 files have no statistics"):
        table.alter.cluster_by("b")
    table.optimize.statistics(["a", "b"])
    table.alter.cluster_by("b")
    assert columns_of(table) == [["b"]]
    with pytest.raises(InvalidArgumentError, match="would have no statistics"):
        table.alter.set_properties({"delta.dataSkippingStatsColumns": "a"})


def test_an_existing_table_must_agree(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(10), cluster_by=["a"])
    deltaic.write(table, points(10), mode="append", cluster_by="A")
    with pytest.raises(InvalidArgumentError, match="cluster_by differs"):
        deltaic.write(table, points(10), mode="append", cluster_by=["b"])


def test_replacing_a_table_replaces_its_clustering(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(10), cluster_by=["a"])
    table = deltaic.write(table, points(10).drop_columns(["b"]), mode="overwrite", schema_mode="overwrite")
    assert columns_of(table) == [["a"]], "the columns of the same names"
    table = deltaic.write(table, points(10), mode="overwrite", schema_mode="overwrite", cluster_by=["b"])
    assert columns_of(table) == [["b"]]
    with pytest.raises(InvalidArgumentError, match="found 'b'"):
        deltaic.write(table, points(10).drop_columns(["b"]), mode="overwrite", schema_mode="overwrite")
    table = DeltaTable.create(table.location, "a long", mode="overwrite")
    assert columns_of(table) is None
    table = DeltaTable.create(table.location, "a long", mode="overwrite", cluster_by="a")
    assert columns_of(table) == [["a"]]
    deltaic.sql(f"CREATE OR REPLACE TABLE delta.`{table.location}` CLUSTER BY (x) AS SELECT 1 AS x")
    assert columns_of(DeltaTable(table.location)) == [["x"]]


def test_partition_columns_and_clustering_columns_replace_each_other(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(10), partition_by="a")
    table = deltaic.write(table, points(10), mode="overwrite", schema_mode="overwrite", cluster_by="a")
    assert (columns_of(table), table.metadata.partition_columns) == ([["a"]], ())
    table = deltaic.write(table, points(10), mode="overwrite", schema_mode="overwrite", partition_by="a")
    assert (columns_of(table), table.metadata.partition_columns) == (None, ("a",))
    assert table.scan().count() == 10


def test_replacing_under_column_mapping_follows_the_new_physical_names(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", points(10), cluster_by=["a"], properties={"delta.columnMapping.mode": "name"}
    )
    before = columns_of(table)
    of_another_type = points(10).set_column(0, "a", pa.array(["x"] * 10))
    table = deltaic.write(table, of_another_type, mode="overwrite", schema_mode="overwrite")
    assert (
        columns_of(table)
        == [[table.schema.field("a").metadata["delta.columnMapping.physicalName"]]]
        != before
    )


def test_restore_brings_the_clustering_back(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(10), cluster_by=["a"])
    table.alter.cluster_by("b")
    table.restore(0)
    assert columns_of(table) == [["a"]]
    version = table.version
    table.restore(version)
    assert table.version == version
    plain = deltaic.write(tmp_path / "p", points(10))
    plain.alter.cluster_by("b")
    plain.restore(0)
    assert columns_of(plain) is None


def test_rewrites_forget_who_clustered_and_vectors_do_not(make: Make, vectors: bool) -> None:
    table = make(points(100), cluster_by="a")
    table.optimize.cluster()
    table.delete("c = 5")
    assert providers(table) == ["liquid" if vectors else None]


def test_two_changes_of_the_columns_conflict(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(10), cluster_by=["a"])
    other = DeltaTable(table.location)
    other.alter.cluster_by("b")
    with pytest.raises(ConcurrentTransactionException, match=r"delta\.clustering"):
        table.alter.cluster_by("c")


def test_a_domain_that_names_no_column_of_the_table_is_named(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", points(10), cluster_by=["a"])
    log = Path(table.location) / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('[[\\"a\\"]]', '[[\\"gone\\"]]'))
    with pytest.raises(ProtocolError, match="gone"):
        DeltaTable(table.location).optimize.cluster()


def test_deltalake_reads_a_clustered_table(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = deltaic.write(
        tmp_path / "t", points(100), cluster_by=["a"], properties={"delta.enableDeletionVectors": False}
    )
    table.optimize.cluster()
    theirs = deltalake.DeltaTable(table.location).to_pyarrow_table()
    assert sorted(theirs["c"].to_pylist()) == list(range(100))


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.dataSkippingNumIndexedCols": 0},
        {"delta.dataSkippingNumIndexedCols": 1},
        {"delta.dataSkippingStatsColumns": "a"},
        {"delta.dataSkippingStatsColumns": "s.y"},
    ],
    ids=str,
)
def test_statistics_of_clustering_columns_cannot_be_taken_away(
    tmp_path: Path, properties: dict[str, Any]
) -> None:
    ddl = "a int, s struct<x: int, y: int>, b int"
    table = DeltaTable.create(tmp_path / "t", ddl, cluster_by=["s.x"])
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    for attempt in (
        lambda: table.alter.set_properties(properties),
        lambda: deltaic.sql(f"ALTER TABLE t SET TBLPROPERTIES ({texts})", tables={"t": table}),
        lambda: DeltaTable.create(tmp_path / "new", ddl, cluster_by=["s.x"], properties=properties),
        lambda: DeltaTable.create(
            tmp_path / "t", ddl, cluster_by=["s.x"], properties=properties, mode="overwrite"
        ),
    ):
        with pytest.raises(InvalidArgumentError, match="statistics"):
            attempt()
    assert DeltaTable(tmp_path / "t").version == 0
    deltaic.write(table, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
    table.alter.set_properties({"delta.dataSkippingStatsColumns": "s"})
    deltaic.write(table, pa.table({"a": pa.array([2], pa.int32())}), mode="append")
    with pytest.raises(InvalidArgumentError, match="statistics"):
        table.alter.cluster_by("b")
    table.alter.cluster_by()
    table.alter.unset_properties("delta.dataSkippingStatsColumns")
    table.alter.set_properties(properties)
    with pytest.raises(InvalidArgumentError, match="statistics"):
        table.alter.cluster_by("s.x")


def test_a_table_that_lost_them_can_be_mended(tmp_path: Path) -> None:
    """By another writer the property may be there: other properties can be set, and this one taken back."""
    table = DeltaTable.create(tmp_path / "t", "a int", cluster_by=["a"])
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(
        log.read_text().replace(
            '"configuration":{', '"configuration":{"delta.dataSkippingNumIndexedCols":"0",', 1
        )
    )
    log.with_suffix(".crc").unlink()
    table = DeltaTable(tmp_path / "t")
    with pytest.raises(UnsupportedFeatureError, match="must have statistics"):
        deltaic.write(table, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
    table.alter.set_properties({"delta.logRetentionDuration": "interval 9 days"})
    table.alter.unset_properties("delta.dataSkippingNumIndexedCols")
    deltaic.write(table, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
