"""The local store with the calls of the standard library, which Windows uses, on every system; and Windows's
rules for names and the case of letters."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, _core
from deltaic.errors import InvalidArgumentError, PathOutsideTableError
from deltaic.log import references
from deltaic.protocol import paths
from test_concurrency import (
    test_of_many_that_change_one_row_from_one_version_a_single_one_wins,
    test_partitions_that_do_not_meet_do_not_conflict,
    test_processes_that_change_one_table,
    test_threads_that_change_one_table,
)

__all__ = [
    "test_of_many_that_change_one_row_from_one_version_a_single_one_wins",
    "test_partitions_that_do_not_meet_do_not_conflict",
    "test_processes_that_change_one_table",
    "test_threads_that_change_one_table",
]

WRITER = """
import sys, pyarrow as pa, deltaic
for number in range(1_000_000):
    deltaic.write(sys.argv[1], pa.table({"id": [number]}), mode="append")
    print(number, flush=True)
"""


@pytest.fixture(autouse=True)
def _portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTAIC_LOCAL_STORE", "portable")


def link(name: Path, target: Path) -> None:
    try:
        name.symlink_to(target, target_is_directory=target.is_dir())
    except OSError:  # Windows, for users without this right
        pytest.skip("no right to make links")
    if not name.is_symlink():  # Wine 8
        pytest.skip("a system that makes no links")


@pytest.mark.parametrize("path", ["a:b", "nul", "p=a<b/x", "p=a./x", "p=a /x", "a?", "COM1.parquet", "a\\b"])
def test_names_that_windows_does_not_have(tmp_path: Path, path: str) -> None:
    store = _core.Store(str(tmp_path))
    calls = [
        lambda: store.put(path, b"1"),
        lambda: store.put_if_absent(path, b"1"),
        lambda: store.get(path),
        lambda: store.head(path),
        lambda: store.delete([path]),
    ]
    for call in calls:
        with pytest.raises(InvalidArgumentError, match="Windows has no files of this name"):
            call()
    assert not list(tmp_path.iterdir())


def test_partitions_whose_values_are_no_names(tmp_path: Path) -> None:
    values = ["a<b", "x.", "tail ", "nul", "A", "a", "c:d", "e|f", "plain", None]
    written = pa.table({"part": values, "id": range(len(values))})
    table = deltaic.write(tmp_path, written, partition_by="part")
    table.delete("id = 8")
    table.vacuum(retention=timedelta(0), enforce_retention=False)
    found = DeltaTable(tmp_path).scan().to_arrow().to_pylist()
    assert {row["part"]: row["id"] for row in found} == {
        value: at for at, value in enumerate(values) if at != 8
    }


def test_a_killed_writer_leaves_no_part_of_a_commit(tmp_path: Path) -> None:
    path, chance, acknowledged = tmp_path / "t", random.Random(7), 0
    deltaic.write(path, pa.table({"id": [0]}), properties={"delta.checkpointInterval": 7})
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(path)]
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "0\n"
        time.sleep(chance.uniform(0, 0.4))
        for writer in writers:
            writer.kill()
        for writer in writers:
            acknowledged += 1 + writer.communicate()[0].count("\n")
    commits = sorted((path / "_delta_log").glob("0*[0-9].json"))
    assert [int(commit.stem) for commit in commits] == list(range(len(commits)))
    for commit in commits:
        text = commit.read_text()
        assert text.endswith("\n")
        assert all(json.loads(line) for line in text.splitlines())
    assert DeltaTable(path).scan().count() >= 1 + acknowledged


def test_deletes_and_reads_follow_no_link_that_leads_out(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "table"
    outside.mkdir()
    root.mkdir()
    (outside / "precious").write_bytes(b"1")
    link(root / "folder", outside)
    link(root / "file", outside / "precious")
    store = _core.Store(str(root))
    with pytest.raises(OSError, match="nothing behind it is deleted"):
        store.delete(["folder/precious"])
    for path in ("file", "folder/precious"):
        with pytest.raises(PathOutsideTableError):
            store.get(path)
    assert store.list_from("", recursive=True).select(["path", "symlink"]).to_pylist() == [
        {"path": "file", "symlink": True},
        {"path": "folder", "symlink": True},
    ]
    assert store.delete(["file", "folder"]) == 2
    assert (outside / "precious").exists()


def test_a_listing_in_another_case_names_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows and macOS, `p=A` and `p=a` are one folder, which is listed by the name it got first."""
    monkeypatch.setattr(references, "_IGNORES_CASE", True)
    table = deltaic.write(tmp_path, pa.table({"p": ["a"], "id": [1]}), partition_by="p")
    [file] = (tmp_path / "p=a").glob("*.parquet")
    deltaic.write(table, pa.table({"p": ["a"], "id": [2]}), mode="overwrite")
    removed, live = file.name, [each.name for each in (tmp_path / "p=a").glob("*.parquet") if each != file]
    (tmp_path / "p=a").rename(tmp_path / "P=A")
    time.sleep(0.01)
    inventory = {
        "path": [f"{table.location}/P=A/{name}" for name in (removed, *live)],
        "length": pa.array([1, 1], pa.int64()),
        "isDir": [False, False],
        "modificationTime": pa.array([1_600_000_000_000] * 2, pa.int64()),
    }
    arguments = {"retention": timedelta(0), "enforce_retention": False}
    for given in (None, pa.table(inventory)):
        doomed = DeltaTable(tmp_path).vacuum(inventory=given, dry_run=True, **arguments)
        assert doomed.to_arrow()["path"].to_pylist() == [f"P=A/{removed}"]
    assert DeltaTable(tmp_path).repair(dry_run=True).to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("url", "path"), [("file:/C:/data/t", "C:/data/t"), ("file:///c:/t", "c:/t"), ("file:/data/t", "/data/t")]
)
def test_local_paths_in_urls_on_windows(url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.local_path("file:///C:/data") == ("C:/data" if sys.platform == "win32" else "/C:/data")
    monkeypatch.setattr(paths, "_IS_WINDOWS", True)
    assert paths.local_path(url) == path
    assert f"file:{paths.url_path(path)}" == "file:/" + url.removeprefix("file:").lstrip("/")
