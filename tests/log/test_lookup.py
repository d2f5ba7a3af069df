"""The newest version of a local log is found by look-ups of names. A listing of the folder finds the same
version."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import deltaic
from deltaic._core import Store
from deltaic.errors import DeltaError
from deltaic.log import catalog, hint, intents, lookup, segment
from deltaic.log.segment import LAST_CHECKPOINT, checkpoint_path, commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions

ROWS = pa.table({"id": [1, 2, 3]})
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the local store of Windows has no lookups")


@contextmanager
def without_lookups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "MOST_FOLLOWING", 0)
        yield


@contextmanager
def without_listings() -> Iterator[None]:
    def refuse(*_: object) -> object:
        raise AssertionError("the folder is listed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "list_log", refuse)
        yield


def new_store(folder: Path | str, *paths: str, named: object = None) -> Store:
    store = Store(str(folder), durable=False)
    for path in paths:
        store.put(path, b"x")
    if named is not None:
        store.put(LAST_CHECKPOINT, json.dumps(named).encode())
    return store


def commits(first: int, last: int) -> list[str]:
    return [commit_path(version) for version in range(first, last + 1)]


def outcome(call: Callable[[], object]) -> object:
    """Returns the result of a call, or the text of its error."""
    try:
        return call()
    except DeltaError as error:
        return str(error)


def paths(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.core.listing(snapshot.table_schema).to_table()["path"].to_pylist())


def newest(store: Store) -> object:
    return outcome(lambda: next(segment.segments(store, waits=())))


def same_newest(store: Store) -> int | None:
    """Compares the newest version by lookups with that of a listing, and returns it; None for an error."""
    found = newest(store)
    with without_lookups():
        listed = newest(store)
    if not isinstance(found, segment.Segment) or not isinstance(listed, segment.Segment):
        assert found == listed
        return None
    assert (found.version, found.modified, found.has_checksum) == (
        listed.version,
        listed.modified,
        listed.has_checksum,
    )
    assert found == listed or found.checkpoint != listed.checkpoint
    return found.version


@ON_POSIX
def test_a_log_is_opened_without_listing_its_folder(tmp_path: Path) -> None:
    store = new_store(tmp_path, *commits(0, 57), checkpoint_path(50), named={"version": 50, "size": 9})
    with without_listings():
        assert newest(store).version == 57  # type: ignore[attr-defined]
        assert segment.list_after(store, 52).latest == 57
        assert segment.list_after(store, 57).latest == -1
    assert same_newest(store) == 57


@ON_POSIX
@pytest.mark.parametrize(
    ("names", "named"),
    [
        ([f"{3:020}.checkpoint.{part:010}.{2:010}.parquet" for part in (1, 2)], {"version": 3, "parts": 2}),
        (
            [f"{3:020}.checkpoint.a-b.json"],
            {"version": 3, "v2Checkpoint": {"path": f"{3:020}.checkpoint.a-b.json"}},
        ),
        (
            [f"{3:020}.checkpoint.a-b.parquet"],
            {"version": 3, "v2Checkpoint": {"path": f"{3:020}.checkpoint.a-b.parquet"}},
        ),
    ],
)
def test_checkpoints_of_each_kind(tmp_path: Path, names: list[str], named: object) -> None:
    store = new_store(
        tmp_path,
        *commits(2, 5),
        *(f"_delta_log/{name}" for name in names),
        f"_delta_log/{5:020}.crc",
        named=named,
    )
    with without_listings():
        parts = newest(store).checkpoint_parts  # type: ignore[attr-defined]
        assert parts == tuple(f"_delta_log/{name}" for name in names)
    assert same_newest(store) == 5
    store.delete([f"_delta_log/{names[-1]}"])
    same_newest(store)


@pytest.mark.parametrize(
    "named",
    [
        {"version": 3, "parts": 0},
        {"version": 3, "parts": 10**9},
        {"version": 3, "parts": "2"},
        {"version": 3, "v2Checkpoint": {}},
        {"version": 3, "v2Checkpoint": {"path": "../x"}},
        {"version": 3, "v2Checkpoint": {"path": f"{2:020}.checkpoint.a.json"}},
        {"version": 99},
        {"version": 2**63 - 1},
        {"version": -1},
        [],
    ],
)
def test_a_bad_hint_is_only_a_hint(tmp_path: Path, named: object) -> None:
    store = new_store(tmp_path, *commits(0, 5), checkpoint_path(3), named=named)
    assert same_newest(store) == 5


def test_a_checkpoint_of_no_bytes_is_ignored(tmp_path: Path) -> None:
    store = new_store(tmp_path, *commits(0, 5), named={"version": 3})
    store.put(checkpoint_path(3), b"")
    assert same_newest(store) == 5


@pytest.mark.parametrize("gap", [1, 2, 3, 12, 33, 63, 64, 100, 127])
@pytest.mark.parametrize("following", [1, 2, 200])
def test_a_gap_is_an_error_as_in_a_listing(tmp_path: Path, gap: int, following: int) -> None:
    if gap > max(63, following):
        pytest.skip("only a gap that is longer than what follows it is not found")
    after = commits(21 + gap, 20 + gap + following)
    store = new_store(tmp_path, *commits(0, 20), *after, checkpoint_path(10), named={"version": 10})
    assert same_newest(store) is None
    assert segment.list_after(store, 12).latest == 20 + gap + following


def test_a_distant_checkpoint_is_left_to_a_listing(tmp_path: Path) -> None:
    last = 20 + lookup.MOST_FOLLOWING
    store = new_store(
        tmp_path, *commits(0, last), checkpoint_path(10), checkpoint_path(last), named={"version": 10}
    )
    assert newest(store).checkpoint.version == last  # type: ignore[attr-defined]
    assert same_newest(store) == last


def test_a_log_that_is_cleaned_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process writes checkpoint 40 and its hint, and has deleted versions 4 to 39 but not yet 3."""
    store = new_store(tmp_path, *commits(0, 3), *commits(40, 41), checkpoint_path(2), named={"version": 2})
    former = hint.read(store)
    store.put(checkpoint_path(40), b"x")
    store.put(LAST_CHECKPOINT, b'{"version":40}')
    assert former is not None
    assert lookup.from_hint(store, former) is None
    assert lookup.following(store, 3) is None
    assert segment.list_after(store, 3).latest == 41
    monkeypatch.setattr(lookup, "_NEAR", ())
    monkeypatch.setattr(lookup, "_FAR", ())
    assert lookup.from_hint(store, former) is None
    assert lookup.following(store, 3) is None


def test_a_version_whose_commit_is_gone(tmp_path: Path) -> None:
    store = new_store(tmp_path, checkpoint_path(3), named={"version": 3})
    assert same_newest(store) == 3
    assert lookup.following(store, 3) is None  # the table may have been replaced
    assert lookup.last_of(store, 3) is None


@ON_POSIX
def test_a_store_or_a_catalog_that_does_not_allow_lookups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(tmp_path, *commits(0, 3))
    assert lookup.last_of(store, 1) == 3
    monkeypatch.setattr(catalog, "has_coordinator", lambda _: True)
    assert lookup.last_of(store, 1) is None
    monkeypatch.undo()
    memory = Store("memory://lookups/table")
    memory.put(commit_path(0), b"x")
    assert memory.look_up("_delta_log", ["a"]) is None
    assert lookup.following(memory, 0) is None


@ON_POSIX
def test_a_table_with_transactions_over_several_tables_is_listed(tmp_path: Path) -> None:
    first, second = (deltaic.write(tmp_path / name, ROWS) for name in "ab")
    with without_listings():
        first.refresh()
    with deltaic.transaction(first, second) as transaction:
        transaction.write(first, ROWS)
        transaction.write(second, ROWS)
    for table in first, second:
        store = Store(table.location)
        mark = store.head(f"_delta_log/{intents.MARK}")
        assert mark is not None
        assert mark[0] == 0
        assert lookup.following(store, table.version) is None


VERSIONS = st.integers(0, 45)


@settings(max_examples=200, deadline=None)
@given(
    present=st.sets(VERSIONS, max_size=40),
    length=st.integers(0, 40),
    checkpoints=st.sets(VERSIONS, max_size=3),
    checksums=st.sets(VERSIONS, max_size=3),
    named=st.none() | VERSIONS,
)
@example(present=set(), length=14, checkpoints={13}, checksums={13}, named=13)
@example(present={20}, length=14, checkpoints={10}, checksums=set(), named=10)
def test_any_log(
    present: set[int], length: int, checkpoints: set[int], checksums: set[int], named: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        versions = present | set(range(length))
        # A checkpoint behind the newest commit is found only if `_last_checkpoint` names it.
        checkpoints = {each for each in checkpoints if each <= max(versions, default=-1) or each == named}
        paths = [*map(commit_path, versions), *map(checkpoint_path, checkpoints)]
        paths += [f"_delta_log/{version:020}.crc" for version in checksums]
        store = new_store(folder, *paths, named=None if named is None else {"version": named})
        same_newest(store)
        for version in versions:
            found = segment.list_after(store, version)
            with without_lookups():
                listed = segment.list_after(store, version)
            assert (found.commits, found.latest) == (
                listed.commits,
                max(listed.commits, default=-1),
            ) or found == listed


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_of_commands(tmp_path: Path, seed: int) -> None:
    """A reader that looks up names finds the same files after each command as one that lists the folder."""
    choose = random.Random(seed)
    retentions = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    properties = {"delta.checkpointInterval": "4", **dict.fromkeys(retentions, "interval 0 hours")}
    writer = deltaic.write(tmp_path / "t", ROWS, properties=properties)
    reader = Snapshot.load(Store(str(tmp_path / "t")))
    for step in range(60):
        command = choose.choice(
            [
                "append",
                "append",
                "append",
                "delete",
                "optimize",
                "clean",
                "lose the hint",
                "checkpoint",
                "replace",
            ]
        )
        if command == "append":
            deltaic.write(
                writer,
                pa.table({"id": [step]}),
                mode="append",
                commit=CommitOptions(clean_log=choose.random() < 0.3),
            )
        elif command == "delete":
            writer.delete(f"id = {choose.randrange(step + 1)}")
        elif command == "optimize":
            writer.optimize.compact()
        elif command == "clean":
            writer.checkpoint()
        elif command == "lose the hint":
            Store(str(tmp_path / "t")).delete([LAST_CHECKPOINT])
        elif command == "checkpoint":
            Store(str(tmp_path / "t")).put(
                LAST_CHECKPOINT, json.dumps({"version": choose.randrange(step + 1)}).encode()
            )
        elif command == "replace":
            deltaic.write(writer, ROWS, mode="overwrite")
        if choose.random() < 0.6:
            reader = reader.refresh()
            opened = Snapshot.load(Store(str(tmp_path / "t")))
            with without_lookups():
                listed = Snapshot.load(Store(str(tmp_path / "t")))
            assert reader.version == opened.version == listed.version == writer.version
            files = [paths(each) for each in (reader, opened, listed)]
            assert files[0] == files[1] == files[2]
