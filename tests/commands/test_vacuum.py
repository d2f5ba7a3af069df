"""VACUUM: the files that it must keep (other engines had bugs that lost data), and the files that it
deletes."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic.commands.vacuum import vacuum
from deltaic.errors import (
    CommitError,
    InvalidArgumentError,
    InvalidTypeError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from numbered_store import NumberedStore

ZERO: dict[str, Any] = {"retention": timedelta(0), "enforce_retention": False}


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts
    }


def age(folder: Path, days: float) -> None:
    """Sets back the clock of all files in the table."""
    then = time.time() - days * 86_400
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (then, then))


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def batch(*values: int, month: str = "1") -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "month": [month] * len(values)})


def gone(table: DeltaTable, **options: Any) -> set[str]:
    return set(table.vacuum(**options).to_arrow()["path"].to_pylist())


def test_lite_on_spark_needs_the_commits_since_the_last_vacuum(tmp_path: Path) -> None:
    """As in delta-spark 4.4.0, but a FULL is enough, after which delta-spark refuses LITE again."""
    table = deltaic.write(tmp_path, batch(1))
    for version in range(1, 4):
        deltaic.write(table, batch(version), mode="overwrite")
    log = tmp_path / "_delta_log"

    def lose(*versions: int) -> None:
        table.refresh()
        table.checkpoint()
        for version in versions:
            (log / f"{version:020}.json").unlink()

    def run(mode: str, **options: Any) -> int:
        table.refresh()
        return vacuum(table._snapshot, mode=mode, needs_log=True, **ZERO, **options)[1].num_rows

    lose(0)
    for dry_run in (True, False):
        with pytest.raises(InvalidArgumentError, match="first commit 1, last VACUUM up to none"):
            run("lite", dry_run=dry_run)
    assert run("full", dry_run=True) == run("full") == 3
    assert (log / "_last_vacuum_info").read_bytes() == b'{"latestCommitVersionOutsideOfRetentionWindow":3}'
    table.refresh()
    deltaic.write(table, batch(9), mode="overwrite")
    lose(1, 2)
    assert run("lite") == 1
    assert b":6}" in (log / "_last_vacuum_info").read_bytes()
    lose(*range(3, 7))
    with pytest.raises(InvalidArgumentError, match="first commit 7, last VACUUM up to 6"):
        run("lite")
    assert table.vacuum(mode="lite", **ZERO).count() == 0


def test_removed_files_go_after_the_retention(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    old = files(tmp_path)
    deltaic.write(table, batch(2), mode="overwrite")
    assert gone(table) == set()
    assert table.version == 1
    time.sleep(0.01)
    answer = table.vacuum(**ZERO).to_arrow()
    assert set(answer["path"].to_pylist()) == old
    assert answer.schema.names == ["path", "size", "modification_time"]
    assert answer.schema.field("modification_time").type == pa.timestamp("us", tz="UTC")
    assert files(tmp_path).isdisjoint(old)
    assert ids(table) == [2]
    end, start = table.history(2)
    assert (start["operation"], end["operation"], table.version) == ("VACUUM START", "VACUUM END", 3)
    assert start["operationParameters"] == {
        "retentionCheckEnabled": False,
        "defaultRetentionMillis": 604_800_000,
        "specifiedRetentionMillis": 0,
    }
    assert start["operationMetrics"] == {
        "numFilesToDelete": "1",
        "sizeOfDataToDelete": str(answer["size"][0].as_py()),
    }
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"]["numDeletedFiles"] == "1"


def test_where_nothing_is_to_be_deleted_nothing_is_committed(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    age(tmp_path, 100)
    assert table.vacuum().count() == 0
    assert DeltaTable(tmp_path).version == 0


def test_dry_run_changes_nothing(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="overwrite")
    before = files(tmp_path)
    time.sleep(0.01)
    assert len(gone(table, dry_run=True, **ZERO)) == 1
    assert (files(tmp_path), DeltaTable(tmp_path).version) == (before, 1)


def test_a_short_retention_is_refused(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    with pytest.raises(InvalidArgumentError, match=r"delta\.deletedFileRetentionDuration.*at least 7 days"):
        table.vacuum(retention=timedelta(days=6))
    with pytest.raises(InvalidTypeError):
        table.vacuum(retention=168)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        table.vacuum(retention=timedelta(-1), enforce_retention=False)
    with pytest.raises(InvalidArgumentError, match="unknown mode"):
        table.vacuum(mode="light")  # type: ignore[arg-type]
    table.vacuum(retention=timedelta(days=7))


@pytest.mark.parametrize("inline", ["true", "false"])
def test_live_vector_files_stay(tmp_path: Path, inline: str) -> None:
    """deltalake 1.6.6 deletes them, and the table is lost."""
    properties = {"deltaic.inlineDeletionVectors": inline, "delta.randomizeFilePrefixes": "true"}
    table = deltaic.write(tmp_path, batch(*range(10)), properties=properties)
    table.delete("id = 3")
    age(tmp_path, 100)
    assert gone(table, **ZERO) == set()
    assert ids(DeltaTable(tmp_path)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_vector_files_that_were_replaced_go_with_their_tombstone(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(*range(10)))
    table.delete("id = 3")
    first = {name for name in files(tmp_path) if name.endswith(".bin")}
    table.delete("id = 5")
    age(tmp_path, 100)
    assert gone(table) == set()  # the tombstone is fresh, however old the file
    time.sleep(0.01)
    assert gone(table, **ZERO) == first
    assert ids(DeltaTable(tmp_path)) == [0, 1, 2, 4, 6, 7, 8, 9]


def test_unexpired_tombstones_protect_their_files(tmp_path: Path) -> None:
    """delta-rs f1727c9: full vacuum removed recent tombstones."""
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="overwrite")
    age(tmp_path, 100)
    assert gone(table) == set()
    assert ids(table.at(0)) == [1]


def test_a_longer_retention_than_the_tables_protects_what_a_checkpoint_has_forgotten(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path, batch(1), properties={"delta.deletedFileRetentionDuration": "interval 0 days"}
    )
    deltaic.write(table, batch(2), mode="overwrite")
    time.sleep(0.01)
    table.checkpoint()
    for path in tmp_path.glob("*.parquet"):
        os.utime(path, (1, 1))
    assert gone(DeltaTable(tmp_path), retention=timedelta(days=30)) == set()
    assert ids(table.at(0)) == [1]


def test_files_of_a_writer_that_has_not_committed_yet_stay(tmp_path: Path) -> None:
    """delta-rs 08222ea: full vacuum removed another writer's uncommitted files."""
    table = deltaic.write(tmp_path, batch(1))
    (tmp_path / "uncommitted.parquet").write_bytes(b"rows")
    (tmp_path / "from-the-future.parquet").write_bytes(b"rows")
    os.utime(tmp_path / "from-the-future.parquet", (time.time() + 86_400,) * 2)
    assert gone(table) == set()
    assert gone(table, **ZERO) <= {"uncommitted.parquet"}
    assert (tmp_path / "from-the-future.parquet").exists()


def test_full_takes_what_the_log_does_not_know_and_lite_does_not(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    removed = files(tmp_path)
    deltaic.write(table, batch(2), mode="overwrite")
    (tmp_path / "sub").mkdir()
    for name in ("unknown.parquet", "sub/deep.txt"):
        (tmp_path / name).write_bytes(b"x")
    age(tmp_path, 100)
    assert gone(table, mode="lite", **ZERO) == removed
    assert (tmp_path / "unknown.parquet").exists()
    assert gone(table, **ZERO) == {"unknown.parquet", "sub/deep.txt"}
    assert not (tmp_path / "sub").exists()
    assert table.history()[0]["operationMetrics"]["numVacuumedDirectories"] == "1"
    assert ids(DeltaTable(tmp_path)) == [2]


def test_lite_knows_the_removes_that_only_a_checkpoint_has(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    removed = files(tmp_path)
    deltaic.write(table, batch(2), mode="overwrite")
    table.checkpoint()
    for version in (0, 1):
        (tmp_path / f"_delta_log/{version:020}.json").unlink()
    age(tmp_path, 100)
    assert gone(DeltaTable(tmp_path), mode="lite", **ZERO) == removed


def test_keep_versions(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="overwrite")
    deltaic.write(table, batch(3), mode="overwrite")
    age(tmp_path, 100)
    time.sleep(0.01)
    assert len(gone(table, keep_versions=[0], **ZERO)) == 1
    assert ids(table.at(0)) == [1]
    with pytest.raises(VersionNotFoundError):
        table.vacuum(keep_versions=[99])
    with pytest.raises(InvalidTypeError):
        table.vacuum(keep_versions=["0"])  # type: ignore[list-item]


def test_hidden_names_stay_but_not_partitions_that_look_like_it(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array([1], pa.int64()), "_part": ["x"]})
    table = deltaic.write(tmp_path, data, partition_by="_part")
    # No folder of deltaic begins with an underscore; those of another writer may.
    removed = files(tmp_path)
    assert not any(name.startswith("_") for name in removed)
    deltaic.write(table, data, mode="overwrite")
    doomed = ("_part=x/old.parquet", "_change_data/cdc.parquet")
    for name in (
        "_temporary/x.parquet",
        ".hidden",
        "_part=x/.crc",
        "sub/_success",
        "_other=1/x.parquet",
        *doomed,
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    age(tmp_path, 100)
    assert gone(table, **ZERO) == {*removed, *doomed}
    for name in ("_temporary/x.parquet", ".hidden", "_part=x/.crc", "sub/_success", "_other=1/x.parquet"):
        assert (tmp_path / name).exists()
    assert (tmp_path / "_delta_log").exists()


def test_what_a_killed_writer_left_half_written_goes(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1), partition_by="month")
    half = [f".part-00000-5b7e.{'0a' * 16}.tmp", f"month=1/.part-00001-5b7e.{'0b' * 16}.tmp"]
    log = [f"_delta_log/.{1:020}.json.{'0d' * 16}.tmp", f"_delta_log/_sidecars/.x.parquet.{'0e' * 16}.tmp"]
    (tmp_path / "_delta_log/_sidecars").mkdir()
    for name in (*half, *log, f".{'0c' * 16}.tmp", ".notes.tmp", "_delta_log/.notes.tmp"):
        (tmp_path / name).write_bytes(b"x")
    assert gone(table) == set()  # too young: its writer may be at work
    time.sleep(0.01)
    assert gone(table, **ZERO) == set(half)  # the commit that another writer is about to make is kept
    for name in half:
        (tmp_path / name).write_bytes(b"x")
    age(tmp_path, 100)
    assert gone(table) == {*half, *log}
    assert (tmp_path / "_delta_log/.notes.tmp").exists()
    assert (tmp_path / ".notes.tmp").exists()
    assert ids(DeltaTable(tmp_path)) == [1]


def test_checksums_that_hadoop_keeps_go_with_their_files(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path, batch(1), partition_by="month", properties={"deltaic.inlineDeletionVectors": False}
    )
    removed = files(tmp_path)
    deltaic.write(table, batch(2, 3), mode="overwrite")
    table.delete("id = 2")
    live = files(tmp_path) - removed
    alone = {"month=1/.part-9.snappy.parquet.crc", ".deletion_vector_9.bin.crc"}
    attempt = f"{'0e' * 16}/_temporary/0/_temporary/attempt_7/"
    theirs = {
        str(Path(name).with_name(f".{Path(name).name}.crc"))
        for name in (*removed, f"{attempt}part-0.parquet")
    }
    kept = {str(Path(name).with_name(f".{Path(name).name}.crc")) for name in live} | {
        ".notes.crc",
        ".other.parquet.crc.bak",
    }
    for name in (*theirs, *kept, *alone, f"{attempt}part-0.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    age(tmp_path, 100)
    young = "month=1/.part-8.snappy.parquet.crc"  # its file may be about to come
    (tmp_path / young).write_bytes(b"x")
    assert gone(table, dry_run=True, retention=timedelta(days=8)) == {f"{attempt}part-0.parquet"}
    assert files(tmp_path) >= theirs | alone
    assert gone(table, retention=timedelta(days=8)) == {f"{attempt}part-0.parquet"}
    assert files(tmp_path) == removed | live | kept | {
        name for name in theirs if not name.startswith("0e")
    } | {young}
    assert gone(table, **ZERO) == removed
    assert table.history(1)[0]["operationMetrics"]["numDeletedFiles"] == str(len(removed))
    assert files(tmp_path) - {young} == live | kept
    assert ids(DeltaTable(tmp_path)) == [3]


def test_never_through_a_symbolic_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    (outside / "single.parquet").write_bytes(b"x")
    table = deltaic.write(tmp_path / "t", batch(1))
    (tmp_path / "t" / "link").symlink_to(outside)
    (tmp_path / "t" / "single.parquet").symlink_to(outside / "single.parquet")
    for path in (*outside.iterdir(), *(tmp_path / "t").glob("*.parquet")):
        os.utime(path, (1, 1))
    assert gone(table, **ZERO) == set()
    assert sorted(path.name for path in outside.iterdir()) == ["precious.parquet", "single.parquet"]
    assert (tmp_path / "t" / "link").is_symlink()


def test_paths_with_special_characters_are_kept(tmp_path: Path) -> None:
    values = ["a b", "%20", "c/d", "ä:ö", "e=f", "100%", "x?y#z"]
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": values})
    table = deltaic.write(tmp_path, data, partition_by="p")
    age(tmp_path, 100)
    assert gone(table, **ZERO) == set()
    assert ids(DeltaTable(tmp_path)) == list(range(len(values)))


def test_an_old_table_object_vacuums_the_newest_version(tmp_path: Path) -> None:
    old = deltaic.write(tmp_path, batch(1))
    deltaic.write(tmp_path, batch(2), mode="append")
    age(tmp_path, 100)
    assert gone(old, **ZERO) == set()
    assert ids(DeltaTable(tmp_path)) == [1, 2]


def test_features_that_are_not_known_stop_a_vacuum(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1), properties={"delta.feature.vacuumProtocolCheck": "supported"})
    assert "vacuumProtocolCheck" in (table.protocol.reader_features or ())
    names = '["warp"]'
    line = f'{{"protocol":{{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":{names}}}}}'
    (tmp_path / f"_delta_log/{1:020}.json").write_text(line)
    age(tmp_path, 100)
    with pytest.raises(UnsupportedFeatureError, match="warp"):
        DeltaTable(tmp_path).vacuum(**ZERO)


def test_options_of_the_commit(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, batch(1))
    deltaic.write(table, batch(2), mode="overwrite")
    time.sleep(0.01)
    table.vacuum(commit=CommitOptions(user_metadata="tidy", transactions={"job": 1}), **ZERO)
    assert [entry["userMetadata"] for entry in table.history(2)] == ["tidy", "tidy"]
    assert table.transaction_version("job") == 1


class FullDisk(NumberedStore):
    """Takes `room` more commits, then none with `error`; `freed`: until something is deleted. `before`: what
    happens before the first commit that is refused."""

    room = 10**9
    freed = False
    number = errno.ENOSPC
    before: Callable[[], object] | None = None

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        if path.endswith(".json"):
            self.room -= 1
            if self.room < 0:
                before, self.before = self.before, None
                if before is not None:
                    self.room = 10**9
                    before()
                    self.room = -1
                raise OSError(self.number, os.strerror(self.number), path)
        return super().write_if_absent(path, data)

    def delete(self, path: str) -> bool:
        self.room = 10**9 if self.freed else self.room
        return super().delete(path)


@pytest.fixture
def full_disk() -> Iterator[tuple[FullDisk, DeltaTable, set[str]]]:
    """With a table, and the file that it does not need any more."""
    store = FullDisk()
    with deltaic.configure(log_stores={"full": lambda location, options: store}):
        table = deltaic.write("full://t", batch(1))
        removed = set(table.files().to_arrow()["path"].to_pylist())
        deltaic.write(table, batch(2), mode="overwrite")
        time.sleep(0.01)
        yield store, table, removed


@pytest.mark.parametrize(
    ("room", "freed", "recorded"),
    [
        (0, True, ["VACUUM END", "WRITE"]),
        (0, False, ["WRITE", "WRITE"]),
        (1, False, ["VACUUM START", "WRITE"]),
    ],
)
def test_on_a_full_disk_it_makes_room(
    full_disk: tuple[FullDisk, DeltaTable, set[str]],
    room: int,
    freed: bool,
    recorded: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, table, removed = full_disk
    store.room, store.freed = room, freed
    assert gone(table, **ZERO) == removed
    assert removed.isdisjoint(store.objects)
    assert "as the disk is full" in caplog.text
    assert [entry["operation"] for entry in table.history(2)] == recorded
    assert ids(DeltaTable("full://t")) == [2]


def test_on_a_full_disk_it_keeps_what_another_writer_brought_back(
    full_disk: tuple[FullDisk, DeltaTable, set[str]],
) -> None:
    store, table, removed = full_disk
    rival = DeltaTable("full://t")
    store.room, store.before = 0, lambda: rival.restore(0)
    assert gone(table, **ZERO).isdisjoint(removed)
    assert ids(DeltaTable("full://t")) == [1]


def test_what_else_fails_its_commit_stops_it(full_disk: tuple[FullDisk, DeltaTable, set[str]]) -> None:
    store, table, removed = full_disk
    store.room, store.number = 0, errno.EACCES
    with pytest.raises(CommitError, match="Permission denied"):
        table.vacuum(**ZERO)
    assert removed <= set(store.objects)
