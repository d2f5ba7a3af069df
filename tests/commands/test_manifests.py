"""Symlink manifests: on demand, and after each commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import CommitUnknownError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.log import manifests

KEPT = {"delta.compatibility.symlinkFormatManifest.enabled": True, "delta.enableDeletionVectors": False}


def batch(ids: list[int], parts: list[str | None]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(parts, pa.string())})


def by_manifests(folder: Path) -> dict[str, list[int]]:
    """Returns the ids that a reader of the manifests alone finds, by the folder of each."""
    found: dict[str, list[int]] = {}
    root = folder / "_symlink_format_manifest"
    for manifest in root.rglob("manifest"):
        paths = [line.removeprefix("file:") for line in manifest.read_text().splitlines()]
        ids = [value for path in paths for value in pq.ParquetFile(path).read()["id"].to_pylist()]
        found[str(manifest.parent.relative_to(root))] = sorted(ids)
    return found


def test_on_demand(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch([1, 2, 3], ["a b", "x/y=z", None]), partition_by="p")
    table.generate()
    assert by_manifests(tmp_path) == {"p=a b": [1], "p=x%2Fy%3Dz": [2], "p=__HIVE_DEFAULT_PARTITION__": [3]}
    old = table.at(0)
    deltaic.write(table, batch([4, 5], ["a b", "new"]), mode="append")
    table.delete("id = 3")
    assert "p=new" not in by_manifests(tmp_path)
    old.generate()  # the newest version, also if the object is at an older one
    assert by_manifests(tmp_path) == {"p=a b": [1, 4], "p=x%2Fy%3Dz": [2], "p=new": [5]}
    with pytest.raises(InvalidArgumentError, match="symlink_format_manifest"):
        table.generate("other")


def test_of_a_table_without_partitions_and_without_rows(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint", properties=KEPT)
    assert by_manifests(tmp_path) == {".": []}
    deltaic.write(table, pa.table({"id": [1]}), mode="append")
    table.update({"id": "id + 1"})
    assert by_manifests(tmp_path) == {".": [2]}


def test_every_commit_brings_them_up_to_date(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch([1, 2, 3], ["a", "b", None]), partition_by="p", properties=KEPT)
    steps = [
        lambda: deltaic.write(table, batch([4, 5], ["a", "c"]), mode="append"),
        lambda: table.delete("id = 4"),
        lambda: table.update({"p": "'d'"}, "p IS NULL"),
        lambda: table.optimize.compact(),
        lambda: table.delete("p = 'a'"),
        lambda: table.restore(0),
        lambda: deltaic.write(table, batch([9], ["z"]), mode="overwrite"),
        lambda: table.alter.set_properties({"x": "y"}),
    ]
    for step in [lambda: None, *steps]:
        step()
        rows = table.scan().to_arrow().to_pylist()
        expected: dict[str, list[int]] = {}
        for row in rows:
            expected.setdefault(f"p={row['p'] or '__HIVE_DEFAULT_PARTITION__'}", []).append(row["id"])
        assert by_manifests(tmp_path) == {name: sorted(ids) for name, ids in expected.items()}


def test_vectors_and_mapped_columns_are_refused(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", batch([1, 2], ["a", "b"]), properties={"delta.enableDeletionVectors": True}
    )
    table.delete("id = 1")
    with pytest.raises(UnsupportedFeatureError, match="purge"):
        table.generate()
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        table.alter.set_properties({"delta.compatibility.symlinkFormatManifest.enabled": True})
    with pytest.raises(UnsupportedFeatureError, match="purge"):
        table.alter.set_properties(KEPT)
    table.optimize.purge()
    table.alter.set_properties(KEPT)
    assert by_manifests(tmp_path / "t") == {".": [2]}
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        table.alter.set_properties({"delta.enableDeletionVectors": True})
    with pytest.raises(UnsupportedFeatureError, match=r"columnMapping\.mode"):
        table.alter.set_properties({"delta.columnMapping.mode": "name"})
    mapped = deltaic.write(tmp_path / "m", batch([1], ["a"]), properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedFeatureError, match=r"columnMapping\.mode"):
        mapped.generate()


def test_a_commit_whose_manifests_fail_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = deltaic.write(tmp_path, batch([1], ["a"]), properties=KEPT)

    def fails(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(manifests, "after_commit", fails)
    with pytest.raises(CommitUnknownError, match=r"is committed as version 1.*generate\(\)"):
        deltaic.write(table, batch([2], ["a"]), mode="append")
    monkeypatch.undo()
    table.refresh()
    assert (table.version, by_manifests(tmp_path)) == (1, {".": [1]})
    table.generate()
    assert by_manifests(tmp_path) == {".": [1, 2]}


def test_in_sql(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch([1], ["a"]))
    assert deltaic.sql("GENERATE symlink_format_manifest FOR TABLE t", tables={"t": table}).count() == 0
    assert by_manifests(tmp_path) == {".": [1]}
    with pytest.raises(InvalidArgumentError, match="unknown mode"):
        deltaic.sql("GENERATE something FOR TABLE t", tables={"t": table})


def test_of_a_shallow_clone(tmp_path: Path) -> None:
    source = deltaic.write(tmp_path / "s", batch([1], ["a"]), partition_by="p")
    with deltaic.configure(allowed_roots=[tmp_path]):
        clone = source.clone(tmp_path / "c", shallow=True)
        deltaic.write(clone, batch([2], ["a"]), mode="append")
        clone.generate()
    lines = (tmp_path / "c/_symlink_format_manifest/p=a/manifest").read_text().splitlines()
    assert sorted(
        line.removeprefix("file:").replace("//", "").startswith(source.location) for line in lines
    ) == [False, True]
