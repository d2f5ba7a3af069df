"""Tables that are opened by path use the previous snapshot if the log is unchanged. Appends by path start
from the version that this process committed last. The results are the same as without both."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import deltaic
from deltaic.commands import create
from deltaic.log import recent
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def rows(path: Path) -> list[int]:
    return sorted(deltaic.DeltaTable(path).scan().to_arrow()["id"].to_pylist())


def refuse(*_: Any) -> None:
    raise AssertionError("the log was read")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table to which this process has appended."""
    path = tmp_path / "t"
    deltaic.write(path, ids(0))
    deltaic.write(path, ids(1), mode="append")
    return path


def test_an_append_reads_no_log(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(create, "existing", refuse)
        assert [deltaic.write(table, ids(number), mode="append").version for number in (2, 3, 4)] == [2, 3, 4]
        with pytest.raises(AssertionError, match="the log was read"):
            deltaic.write(table, ids(5), mode="overwrite")
    assert rows(table) == [0, 1, 2, 3, 4]


def test_commits_of_others_are_seen(table: Path) -> None:
    deltaic.DeltaTable(table).alter.add_columns("x string")
    later = deltaic.write(table, ids(2).append_column("x", pa.array(["a"])), mode="append")
    assert later.version == 3
    deltaic.DeltaTable(table).delete("id = 1")
    assert deltaic.write(table, ids(3), mode="append").version == 5
    assert rows(table) == [0, 2, 3]


def test_a_table_in_the_place_of_another_is_its_own(table: Path) -> None:
    former = deltaic.DeltaTable(table).metadata.id
    shutil.rmtree(table)
    deltaic.write(table, pa.table({"name": ["a"]}))
    deltaic.write(table, pa.table({"name": ["b"]}), mode="append")
    with pytest.raises(deltaic.errors.SchemaMismatchError):
        deltaic.write(table, ids(1), mode="append")
    assert deltaic.DeltaTable(table).metadata.id != former


def test_a_log_that_went_back_is_read_again(table: Path) -> None:
    (table / commit_path(1)).unlink()
    (table / "_delta_log" / f"{1:020}.crc").unlink()
    assert deltaic.write(table, ids(7), mode="append").version == 1
    assert rows(table) == [0, 7]


def test_a_table_that_is_gone_is_made_anew(table: Path) -> None:
    shutil.rmtree(table)
    assert deltaic.write(table, ids(9), mode="append").version == 0
    assert rows(table) == [9]


def test_settings_of_the_store_are_those_of_the_call(table: Path) -> None:
    store = open_store(table)
    known = recent.newest(store)
    assert known is not None
    assert known.store is store


def test_few_and_small_tables_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "_MOST_FILES", 2)
    for number in range(recent._MOST_TABLES + 1):
        deltaic.write(tmp_path / str(number), ids(0))
        deltaic.write(tmp_path / str(number), ids(1), mode="append")
    assert recent.newest(open_store(tmp_path / "0")) is None
    last = tmp_path / str(recent._MOST_TABLES)
    assert recent.newest(open_store(last)) is not None
    for number in range(3):
        deltaic.write(last, ids(number), mode="append")
    known = recent.newest(open_store(last))
    assert known is not None
    assert known.core.file_count == 3  # an older version is a start, too, as newer commits are found from it
    assert known.refresh().core.file_count == 5


def test_unread_appends_are_read_when_they_are_needed(table: Path) -> None:
    known = recent.newest(open_store(table))
    assert known is not None
    assert known.core.file_count == 2
    for number in (2, 3):
        deltaic.write(table, ids(number), mode="append")
    later = known.with_appends(3, 0)
    assert later._loaded is None
    assert (later.version, later.file_count_if_read) == (3, 2)
    read = Snapshot.load(open_store(table))
    assert later.core.file_count == read.core.file_count == 4
    assert later.domains == read.domains
    # Without the commits, the checkpoint has them.
    deltaic.DeltaTable(table).checkpoint()
    cleaned = known.with_appends(3, 0)
    for version in (2, 3):
        (table / commit_path(version)).rename(table / f"{version}.kept")
    assert cleaned.core.file_count == 4


def test_appends_of_other_threads_are_not_read_before_an_append(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = recent.newest(open_store(table))
    assert known is not None
    with monkeypatch.context() as patch:
        patch.setattr(recent, "remember", lambda snapshot: None)  # as if their threads had not come so far
        for number in range(2, 5):
            deltaic.write(deltaic.DeltaTable(table), ids(number), mode="append")
        with monkeypatch.context() as unread:
            unread.setattr(Snapshot, "refresh", refuse)
            start = recent.newest(open_store(table))
            assert start is not None
            assert start.version == known.version
        deltaic.write(table, ids(5), mode="append")
        deltaic.DeltaTable(table).alter.add_columns("name string")
        start = recent.newest(open_store(table))
        assert start is not None
        assert (start.version, start.schema.names) == (known.version + 5, ["id", "name"])
        deltaic.write(table, pa.table({"id": [6], "name": ["a"]}), mode="append")
    assert rows(table) == [0, 1, 2, 3, 4, 5, 6]


def test_appends_to_a_former_table_are_no_start(table: Path) -> None:
    for number in range(3):
        deltaic.write(table, ids(number), mode="append")
    shutil.rmtree(table)
    deltaic.write(table, ids(7))
    other = deltaic.DeltaTable(table)
    recent._VERSIONS.reset()
    deltaic.write(table, ids(8), mode="append")
    recent.appended(other.location, "another table", 2)
    recent.appended(other.location, "another table", 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent, "remember", lambda snapshot: None)
        other.refresh()
        other.alter.add_columns("name string")
    start = recent.newest(open_store(table))
    assert start is not None
    assert start.schema.names == ["id", "name"]


def test_each_append_is_read_once(table: Path) -> None:
    known = recent.newest(open_store(table))
    assert known is not None
    assert known.core.file_count == 2
    for number in range(2, 6):
        deltaic.write(table, ids(number), mode="append")
    second = known.with_appends(2, 0)
    third = second.with_appends(3, 0)
    fourth = third.with_appends(4, 0)
    assert third.core.file_count == 4
    for version in (2, 3):
        (table / commit_path(version)).rename(table / f"{version}.kept")
    assert fourth.file_count_if_read == 4
    fifth = fourth.with_appends(5, 0)
    assert fourth.core.file_count == 5
    assert fifth.core.file_count == 6
    for version in (2, 3):
        (table / f"{version}.kept").rename(table / commit_path(version))
    assert second.core.file_count == 3  # later versions are no base of it
    assert second.version == second.core.version == 2


def _commit_of_another_process(path: Path, version: int) -> None:
    """Copies the newest commit to the next version, with a file action that does not exist yet."""
    newest = (path / commit_path(version - 1)).read_text().replace('"path":"', f'"path":"other-{version}-')
    (path / commit_path(version)).write_text(newest)


def test_commits_of_other_processes_are_read_once(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes commit while an append runs. The next append starts from its version all the same."""
    store, newest = open_store(table), recent.newest

    def then_another_commits(store: Any) -> Snapshot | None:
        known = newest(store)
        _commit_of_another_process(table, len(list(table.glob("_delta_log/0*.json"))))
        return known

    monkeypatch.setattr(recent, "newest", then_another_commits)
    for number in range(5):
        written = deltaic.write(table, ids(100 + number), mode="append")
        assert written.version == 2 * number + 3
        remembered, _ = recent._VERSIONS._versions[store.location]
        assert (remembered.version, remembered.core.file_count) == (written.version, written.version + 1)


def test_not_too_many_commits_are_left_unread(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltaic.log.snapshot._MOST_UNREAD", 2)
    with deltaic.configure(background_checkpoints=True):
        known = recent.newest(open_store(table))
        assert known is not None
        assert known.core.file_count == 2
        for number in range(2, 5):
            deltaic.write(table, ids(number), mode="append")
    assert known.with_appends(3, 0)._loaded is None
    assert known.with_appends(4, 0)._loaded is not None


@pytest.mark.parametrize("seed", range(6))
def test_commands_give_the_same_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Random commands of four threads, then of one, with and without the versions that this process has
    cached."""
    outcomes = []
    for name in ("with", "without"):
        if name == "without":
            monkeypatch.setattr(recent, "newest", lambda store: None)
            monkeypatch.setattr(
                Snapshot, "with_appends", lambda self, version, modified: self.advance(version, modified)
            )
        outcomes.append(_walk(tmp_path / name, seed))
    assert outcomes[0] == outcomes[1]


def _walk(path: Path, seed: int) -> tuple[list[int], list[Any]]:
    with deltaic.configure(background_checkpoints=seed % 2 == 0):
        deltaic.write(path, ids(0), properties={"delta.checkpointInterval": "4"})
        threads = [
            threading.Thread(
                target=lambda n=n: [deltaic.write(path, ids(100 * n + k), mode="append") for k in range(5)]
            )
            for n in range(1, 5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        chance = random.Random(seed)
        for number in range(12):
            match chance.randrange(6):
                case 0:
                    deltaic.DeltaTable(path).delete(f"id = {chance.choice(rows(path))}")
                case 1:
                    deltaic.DeltaTable(path).alter.set_properties(
                        {"delta.checkpointInterval": str(chance.randrange(2, 6))}
                    )
                case 2:
                    deltaic.DeltaTable(path).optimize.compact()
                case _:
                    deltaic.write(path, ids(1000 + number), mode="append")
    assert deltaic.log.background.wait(30)
    history = [
        json.loads((path / commit_path(version)).read_text().splitlines()[0])["commitInfo"]
        for version in range(21, len(list(path.glob("_delta_log/0*.json"))))
    ]
    return rows(path), [
        (
            info["operation"],
            info["readVersion"],
            info["isBlindAppend"],
            info["operationMetrics"].get("numOutputRows"),
        )
        for info in history
    ]


# --- tables that are opened by path


def settled(path: Path) -> None:
    """Makes the files of a log a minute old."""
    past = time.time() - 60
    for file in (path / "_delta_log").iterdir():
        os.utime(file, (past, past))


def test_the_snapshot_of_an_unchanged_log_is_used_again(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(table)
    first = deltaic.DeltaTable(table)._snapshot
    monkeypatch.setattr("deltaic.log.snapshot._build", refuse)
    assert deltaic.DeltaTable(table)._snapshot is first
    with pytest.raises(AssertionError, match="the log was read"):
        deltaic.DeltaTable(table, version=1)


def test_a_new_log_is_read_each_time(table: Path) -> None:
    """A change within the same tick of the file system's clock would not change the time of a file."""
    first = deltaic.DeltaTable(table)._snapshot
    assert deltaic.DeltaTable(table)._snapshot is not first
    assert deltaic.DeltaTable(table)._snapshot.version == first.version


@pytest.mark.parametrize("change", ["append", "other process", "rewritten", "replaced", "checkpoint"])
def test_a_changed_log_is_read(table: Path, tmp_path: Path, change: str) -> None:
    settled(table)
    assert rows(table) == rows(table) == [0, 1]
    commit = table / commit_path(1)
    if change == "append":
        deltaic.write(table, ids(2), mode="append")
        assert rows(table) == [0, 1, 2]
    elif change == "other process":
        shutil.copytree(table, tmp_path / "other")
        deltaic.write(tmp_path / "other", ids(3), mode="append")
        shutil.copytree(tmp_path / "other", table, dirs_exist_ok=True)
        assert rows(table) == [0, 1, 3]
    elif change == "rewritten":  # as many bytes
        commit.write_text(commit.read_text().replace('"numRecords\\":1', '"numRecords\\":7'))
        assert sorted(
            file["num_records"] for file in deltaic.DeltaTable(table).files().to_arrow().to_pylist()
        ) == [1, 7]
    elif change == "replaced":
        shutil.rmtree(table)
        deltaic.write(table, ids(5))
        deltaic.write(table, ids(6), mode="append")
        assert rows(table) == [5, 6]
    else:
        deltaic.DeltaTable(table).checkpoint()
        commit.unlink()
        assert rows(table) == [0, 1]


def test_a_snapshot_belongs_to_its_configuration(table: Path) -> None:
    settled(table)
    first = deltaic.DeltaTable(table)._snapshot
    with deltaic.configure(durable=False):
        assert deltaic.DeltaTable(table)._snapshot is not first


def test_another_table_in_the_place_is_read(tmp_path: Path) -> None:
    """Also one whose log has files of the same names, sizes and times, as after the copy of a backup."""
    place = tmp_path / "t"
    for number in (1, 2):
        deltaic.write(tmp_path / str(number), ids(number))
    queries = [
        f"SELECT max(id) AS n FROM delta.`{place}`",
        f"SELECT id + 0 AS n FROM delta.`{place}` WHERE id > 0",
    ]
    past = time.time() - 60
    for number in (1, 2):
        for file in (tmp_path / str(number) / "_delta_log").iterdir():
            os.utime(file, (past, past))
    assert len({(tmp_path / str(number) / commit_path(0)).stat().st_size for number in (1, 2)}) == 1
    for number in (1, 2):
        (tmp_path / str(number)).rename(place)
        for _ in range(3):
            assert [deltaic.sql(query).to_pylist() for query in queries] == [[{"n": number}]] * 2
        place.rename(tmp_path / f"{number} again")


def test_a_snapshot_belongs_to_its_store(table: Path) -> None:
    """A LogStore of the user may open a place with the rights of each caller."""
    settled(table)
    opened: list[str] = []

    class Of:
        def __init__(self, user: str) -> None:
            self._user = user

        def list_from(
            self, prefix: str, start_after: str | None, recursive: bool, /
        ) -> Iterator[tuple[str, int, int]]:
            opened.append(self._user)
            for file in sorted((table / prefix).glob("*")):
                if file.is_file() and (start_after is None or file.name > start_after):
                    yield f"{prefix}/{file.name}", *self._head(file)

        def head(self, path: str, /) -> tuple[int, int] | None:
            opened.append(self._user)
            return self._head(table / path) if (table / path).exists() else None

        @staticmethod
        def _head(file: Path) -> tuple[int, int]:
            return file.stat().st_size, int(file.stat().st_mtime * 1000)

        def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
            opened.append(self._user)
            return (table / path).read_bytes()[start:end]

    with deltaic.configure(log_stores={"file": lambda location, options: cast("Any", Of(options["user"]))}):
        for user in ("a", "b"):
            assert sorted(
                row["id"]
                for row in deltaic.DeltaTable(table, storage_options={"user": user}).scan().to_pylist()
            ) == [0, 1]
            assert set(opened) == {user}
            opened.clear()


def test_few_and_small_snapshots_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "_MOST_TABLES", 2)
    monkeypatch.setattr(recent, "_MOST_FILES", 1)
    paths = [tmp_path / str(number) for number in range(4)]
    for path in paths:
        deltaic.write(path, ids(0))
    deltaic.write(paths[3], ids(1), mode="append")
    for path in paths:
        settled(path)
    before = [deltaic.DeltaTable(path)._snapshot for path in paths]
    after = [deltaic.DeltaTable(path)._snapshot for path in reversed(paths)][::-1]
    assert [one is other for one, other in zip(before, after, strict=True)] == [False, True, True, False]


def test_a_query_by_path_sees_each_commit(table: Path) -> None:
    """As with tables that are read anew: a random mix of queries and changes, with logs old and new."""
    random_ = random.Random(3)
    expected = [0, 1]
    for number in range(2, 30):
        if random_.random() < 0.5:
            settled(table)
        if random_.random() < 0.4:
            deltaic.write(table, ids(number), mode="append")
            expected.append(number)
        elif random_.random() < 0.3:
            gone = random_.choice(expected)
            deltaic.sql(f"DELETE FROM delta.`{table}` WHERE id = {gone}")
            expected.remove(gone)
        for _ in range(random_.randrange(3)):
            found = deltaic.sql(f"SELECT id FROM delta.`{table}` WHERE id >= 0 ORDER BY id").to_pylist()
            assert [row["id"] for row in found] == expected
