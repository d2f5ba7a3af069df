"""Pairs of features: the same operations give the same rows with each pair, and `deltalake` reads them if it
supports the features.

The model is a list of rows in Python.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.protocol.features import FEATURES

PROPERTIES: dict[str, dict[str, Any]] = {
    "deletionVectors": {"delta.enableDeletionVectors": True},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": True},
    "rowTracking": {"delta.enableRowTracking": True},
    "typeWidening": {"delta.enableTypeWidening": True},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
    "materializePartitionColumns": {"delta.enableMaterializePartitionColumnsFeature": True},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "clustering": {},
    "allowColumnDefaults": {"delta.feature.allowColumnDefaults": "supported"},
    "icebergCompatV2": {
        "delta.enableIcebergCompatV2": True,
        "delta.universalFormat.enabledFormats": "iceberg",
    },
    "icebergCompatV3": {
        "delta.enableIcebergCompatV3": True,
        "delta.universalFormat.enabledFormats": "iceberg",
    },
}
EXCLUSIVE: list[set[str]] = [
    {"materializePartitionColumns", "clustering"},
    {"icebergCompatV2", "icebergCompatV3"},
    {"icebergCompatV2", "deletionVectors"},
]
# The features of deltalake's reader; a feature of writers alone is never an obstacle.
READ_BY_DELTALAKE = {"deletionVectors", "columnMapping", "v2Checkpoint"}
PAIRS = [pair for pair in itertools.combinations(PROPERTIES, 2) if set(pair) not in EXCLUSIVE]

Model = list[dict[str, Any]]


def data(*keys: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "p": [f"p{key % 2}" for key in keys],
            "n": pa.array(keys, pa.int32()),
        }
    )


def rows(table: DeltaTable) -> Model:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"])


def operate(table: DeltaTable, wanted: set[str]) -> Model:
    """One of each operation on both; -> what the rows must be."""
    model: Model = [{"k": key, "p": f"p{key % 2}", "n": key} for key in range(20)]
    assert rows(table) == model
    if "typeWidening" in wanted:
        table.alter.change_column("n", type="bigint")
    if "allowColumnDefaults" in wanted:
        table.alter.change_column("n", default="77")
    deltaic.write(table, data(100, 101), mode="append")
    model += [{"k": key, "p": f"p{key % 2}", "n": key} for key in (100, 101)]
    table.update({"n": "n + 1"}, "k in (3, 100)")
    table.delete("k = 5 or k = 101")
    source = pa.table({"k": [7, 200], "p": ["p1", "p0"]})
    table.merge(source, "t.k = s.k").when_matched_update({"n": "-1"}).when_not_matched_insert_all(
        exclude=["n"]
    ).execute()
    model = [{**row, "n": row["n"] + (row["k"] in (3, 100))} for row in model if row["k"] not in (5, 101)]
    model = [{**row, "n": -1} if row["k"] == 7 else row for row in model]
    model.append({"k": 200, "p": "p0", "n": 77 if "allowColumnDefaults" in wanted else None})
    assert rows(table) == model
    before = table.version
    table.optimize.compact()
    if "clustering" in wanted:
        table.optimize.cluster(full=True)
    table.checkpoint()
    table.delete("k = 0")
    assert rows(table) == model[1:]
    table.restore(before)
    table.optimize.purge()
    table.vacuum()
    return model


def make(tmp_path: Path, wanted: set[str]) -> DeltaTable:
    properties: dict[str, Any] = {"delta.enableDeletionVectors": False}
    for name in wanted:
        properties |= PROPERTIES[name]
    clustered = "clustering" in wanted
    return deltaic.write(
        tmp_path / "t",
        data(*range(20)),
        properties=properties,
        partition_by=None if clustered else "p",
        cluster_by="k" if clustered else None,
    )


def check(tmp_path: Path, wanted: set[str]) -> None:
    table = make(tmp_path, wanted)
    assert wanted <= set(table.protocol.writer_features or ()) | (
        {"columnMapping"} if table.protocol.min_writer_version < 7 else set()
    )
    model = operate(table, wanted)
    again = DeltaTable(table.location)
    assert rows(again) == model
    assert again.scan().count() == len(model)
    if {name for name in wanted if FEATURES[name].reader} <= READ_BY_DELTALAKE:
        assert deltalake_rows(table.location) == model
    if {"icebergCompatV2", "icebergCompatV3"} & wanted:
        assert iceberg_rows(table.location) == model


def deltalake_rows(path: str) -> Model:
    deltalake = pytest.importorskip("deltalake")
    reader = (
        deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select k, p, n from t")
    )
    return sorted(pa.table(reader).to_pylist(), key=lambda row: row["k"])


def iceberg_rows(path: str) -> Model:
    """Only where no file has deletion vectors, which PyIceberg 0.12 cannot read: `operate` ends with a
    purge."""
    table = pytest.importorskip("pyiceberg.table").StaticTable
    version = (Path(path) / "metadata" / "version-hint.text").read_text()
    found = table.from_metadata(f"{path}/metadata/v{version}.metadata.json").scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["k"])


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_two_features(tmp_path: Path, pair: tuple[str, str]) -> None:
    check(tmp_path, set(pair))


@pytest.mark.parametrize("without", ["clustering", "materializePartitionColumns"])
def test_all_features(tmp_path: Path, without: str) -> None:
    check(tmp_path, set(PROPERTIES) - {without, "icebergCompatV2"})


def test_materialised_partition_columns_are_in_the_files(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t",
        pa.table({"v": [1, 2, 3], "p": ["a", None, ""], "q": [1, 2, 3]}),
        partition_by=["p", "q"],
        properties={**PROPERTIES["materializePartitionColumns"], "delta.enableDeletionVectors": False},
    )
    deltaic.write(table, pa.table({"v": [4], "p": ["b"], "q": [4]}), mode="append")
    table.update({"v": "v * 10"}, "v = 1")
    table.optimize.compact()
    found = {}
    for row in table.files().to_arrow().to_pylist():
        # Read as one file, so that pyarrow takes nothing from the folders' names.
        (content,) = pq.ParquetFile(Path(table.location) / row["path"]).read().to_pylist()
        found[content["v"]] = (content["p"], content["q"])
        assert not {"p", "q"} & set(json.loads(stats_of(table, row["path"]))["nullCount"])
    assert found == {10: ("a", 1), 2: (None, 2), 3: (None, 3), 4: ("b", 4)}
    assert sorted(table.scan(where="p = 'a' or q = 4").to_arrow()["v"].to_pylist()) == [4, 10]
    asked = deltaic.write(
        tmp_path / "asked",
        pa.table({"p": ["a"], "v": [1]}),
        partition_by="p",
        properties={"delta.writePartitionColumnsToParquet": True},
    )
    (path,) = asked.files().to_arrow()["path"].to_pylist()
    assert pq.ParquetFile(Path(asked.location) / path).schema.names == ["v", "p"], "after the data columns"
    plain = deltaic.write(tmp_path / "plain", pa.table({"v": [1], "p": ["a"]}), partition_by="p")
    (path,) = plain.files().to_arrow()["path"].to_pylist()
    assert pq.ParquetFile(Path(plain.location) / path).schema.names == ["v"]


def stats_of(table: DeltaTable, path: str) -> str:
    adds = table._snapshot.files().adds.to_pylist()
    (text,) = [add["stats"] for add in adds if add["path"] == path or path in add["path"]]
    return str(text)
