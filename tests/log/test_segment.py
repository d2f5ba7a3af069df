"""The files of the log that make a version: PROTOCOL.md, Checkpoints and Last Checkpoint File; and faults
that real logs had."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic._core import Store
from deltaic.errors import ProtocolError, TableNotFoundError, VersionNotFoundError
from deltaic.log.segment import (
    LAST_CHECKPOINT,
    MAX_VERSION,
    checkpoint_path,
    commit_path,
    list_log,
    load_first,
    parse_listing,
    read_hint,
    reconstructible,
    segments,
)


def new_store(*paths: str, hint: object = None) -> Store:
    store = Store(f"memory://{uuid.uuid4().hex}/table")
    for path in paths:
        store.put(path, b"x")
    if hint is not None:
        store.put(LAST_CHECKPOINT, hint if isinstance(hint, bytes) else json.dumps(hint).encode())
    return store


def commits(*versions: int) -> list[str]:
    return [commit_path(version) for version in versions]


def part(version: int, number: int, count: int) -> str:
    return f"_delta_log/{version:020}.checkpoint.{number:010}.{count:010}.parquet"


def never(_: float) -> None:
    raise AssertionError("nothing to wait for")


def test_commits_alone() -> None:
    segment = load_first(new_store(*commits(0, 1, 2)), sleep=never)
    assert (segment.version, segment.checkpoint) == (2, None)
    assert segment.commits == tuple((version, commit_path(version)) for version in (0, 1, 2))


@pytest.mark.parametrize("hint", [None, {"version": 2, "size": 9}])
def test_the_newest_checkpoint_and_the_commits_after_it(hint: object) -> None:
    store = new_store(*commits(1, 2, 3), checkpoint_path(1), checkpoint_path(2), hint=hint)
    segment = load_first(store, sleep=never)
    assert segment.checkpoint_parts == (checkpoint_path(2),)
    assert segment.commits == ((3, commit_path(3)),)


def test_an_older_version_uses_the_newest_checkpoint_below_it() -> None:
    store = new_store(*commits(0, 1, 2, 3, 4), checkpoint_path(1), checkpoint_path(4), hint={"version": 4})
    segment = load_first(store, 3, sleep=never)
    assert segment.checkpoint_parts == (checkpoint_path(1),)
    assert [version for version, _ in segment.commits] == [2, 3]


@pytest.mark.parametrize(
    "hint",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"version":"2"}',
        b'{"version":true}',
        b'{"version":-1}',
        b'{"version":99}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=[
        "empty",
        "text",
        "list",
        "no version",
        "text version",
        "bool",
        "negative",
        "points at nothing",
        "not utf-8",
        "deep",
    ],
)
def test_a_bad_hint_is_only_a_hint(hint: bytes) -> None:
    store = new_store(*commits(0, 1, 2), checkpoint_path(1), hint=hint)
    assert load_first(store, sleep=never).checkpoint_parts == (checkpoint_path(1),)


def test_a_stale_hint_finds_the_newer_checkpoint() -> None:
    store = new_store(*commits(0, 1, 2, 3, 4), checkpoint_path(1), checkpoint_path(3), hint={"version": 1})
    assert load_first(store, sleep=never).checkpoint_parts == (checkpoint_path(3),)


def test_a_multipart_checkpoint_counts_when_all_its_parts_are_there() -> None:
    whole = [part(2, number, 3) for number in (1, 2, 3)]
    store = new_store(*commits(0, 1, 2, 3), *whole)
    assert load_first(store, sleep=never).checkpoint_parts == tuple(whole)
    broken = new_store(*commits(0, 1, 2, 3), whole[0], whole[2], hint={"version": 2, "parts": 3})
    assert load_first(broken, sleep=never).checkpoint is None


def test_parts_of_two_writers_are_not_mixed() -> None:
    store = new_store(*commits(0, 1, 2), part(2, 1, 2), part(2, 1, 3), part(2, 2, 3), part(2, 3, 3))
    assert load_first(store, sleep=never).checkpoint_parts == tuple(
        part(2, number, 3) for number in (1, 2, 3)
    )


def test_a_checkpoint_of_no_bytes_is_ignored() -> None:
    store = new_store(*commits(0, 1))
    store.put(checkpoint_path(1), b"")
    assert load_first(store, sleep=never).checkpoint is None


def test_ways_to_build_a_version_best_first() -> None:
    store = new_store(*commits(0, 1, 2, 3), checkpoint_path(1), checkpoint_path(3), hint={"version": 3})
    found = [segment.checkpoint_parts for segment in segments(store, sleep=never)]
    assert found == [(checkpoint_path(3),), (checkpoint_path(1),), ()]


def test_other_names_are_left_alone() -> None:
    others = [
        f"_delta_log/{name}"
        for name in (
            "0.json",
            ".00000000000000000009.json.crc",
            f"{9:020}.crc",
            f"{9:020}.json.tmp",
            "_commits",
            f"{9:021}.json",
        )
    ]
    store = new_store(*commits(0), *others, f"_delta_log/{MAX_VERSION + 1:020}.json")
    assert load_first(store, sleep=never).version == 0


def test_a_gap_is_waited_for() -> None:
    store = new_store(*commits(0, 2))
    waits: list[float] = []

    def late(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            store.put(commit_path(1), b"x")

    assert load_first(store, sleep=late).version == 2
    assert len(waits) == 2


def test_a_gap_that_stays_names_the_missing_version_and_ends_within_two_seconds() -> None:
    waits: list[float] = []
    with pytest.raises(
        ProtocolError, match=r"00000000000000000001\.json: versions are not contiguous: commit 1 is missing"
    ) as caught:
        load_first(new_store(*commits(0, 2, 3)), sleep=waits.append)
    assert caught.value.values["is_lost"]
    assert 0.5 < sum(waits) < 2


def test_a_gap_after_a_checkpoint() -> None:
    with pytest.raises(ProtocolError, match="commit 4 is missing"):
        load_first(
            new_store(*commits(2, 3, 5), checkpoint_path(2), hint={"version": 2}), sleep=lambda _: None
        )


def test_a_gap_below_a_checkpoint_or_above_the_wanted_version_does_not_matter() -> None:
    store = new_store(*commits(0, 1, 3, 5), checkpoint_path(3))
    assert load_first(store, 1, sleep=never).commits[-1][0] == 1
    assert load_first(store, 3, sleep=never).version == 3


def test_a_truncated_log_without_checkpoint() -> None:
    with pytest.raises(
        ProtocolError, match="the log is truncated: it begins with version 2 and has no complete checkpoint"
    ):
        load_first(new_store(*commits(2, 3)), sleep=never)
    with pytest.raises(ProtocolError, match="not all of its parts"):
        load_first(new_store(*commits(2, 3), part(2, 1, 2)), sleep=never)
    with pytest.raises(ProtocolError, match="not all of its parts"):
        load_first(new_store(part(2, 1, 2)), sleep=never)
    hint = {"version": 2, "parts": 2}
    with pytest.raises(ProtocolError, match="parts of the checkpoint of version 2 are missing"):
        load_first(new_store(*commits(2, 3), part(2, 1, 2), hint=hint), sleep=never)


@pytest.mark.parametrize("paths", [[], ["data.parquet"], [LAST_CHECKPOINT]])
def test_no_table(paths: list[str]) -> None:
    with pytest.raises(TableNotFoundError, match="the path is not a Delta table"):
        load_first(new_store(*paths), sleep=never)


@pytest.mark.parametrize("version", [-1, 3, MAX_VERSION])
def test_a_version_that_is_not_there(version: int) -> None:
    with pytest.raises(VersionNotFoundError, match=r"no such version; found -?\d+; expected 0 to 2"):
        load_first(
            new_store(*commits(0, 1, 2), checkpoint_path(1), hint={"version": 1}), version, sleep=never
        )


def test_a_version_that_was_cleaned_away() -> None:
    with pytest.raises(VersionNotFoundError, match="expected 3 to 4"):
        load_first(new_store(*commits(2, 3, 4), checkpoint_path(3)), 2, sleep=never)


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_checkpoints_named_by_an_id(ending: str) -> None:
    named = f"_delta_log/{2:020}.checkpoint.{uuid.uuid4()}.{ending}"
    assert load_first(
        new_store(*commits(2, 3), named, hint={"version": 2}), sleep=never
    ).checkpoint_parts == (named,)
    both = [
        segment.checkpoint_parts
        for segment in segments(new_store(*commits(0, 1, 2, 3), named, checkpoint_path(2)), sleep=never)
    ]
    assert sorted(both) == sorted([(named,), (checkpoint_path(2),), ()])


def compacted(first: int, last: int) -> str:
    return f"_delta_log/{first:020}.{last:020}.compacted.json"


def test_compacted_ranges_stand_for_their_commits_where_they_fit() -> None:
    ranges = [
        compacted(0, 2),
        compacted(0, 4),
        compacted(1, 3),
        compacted(3, 4),
        compacted(5, 9),
        compacted(4, 4),
        compacted(6, 5),
    ]
    store = new_store(*commits(0, 1, 2, 3, 4, 5, 6), *ranges)
    found = {
        version: [path for _, path in load_first(store, version, sleep=never).commits]
        for version in (2, 3, 4, 6)
    }
    assert found == {
        2: [compacted(0, 2)],
        3: [compacted(0, 2), commit_path(3)],
        4: [compacted(0, 4)],
        6: [compacted(0, 4), commit_path(5), commit_path(6)],
    }
    ways = [[path for _, path in segment.commits] for segment in segments(store, 3, sleep=never)]
    assert ways == [[compacted(0, 2), commit_path(3)], commits(0, 1, 2, 3)]


def test_a_compacted_range_fills_no_gap() -> None:
    with pytest.raises(ProtocolError, match="commit 1 is missing"):
        load_first(new_store(*commits(0, 2, 3), compacted(0, 3)), sleep=lambda _: None)


def test_a_compacted_range_over_a_checkpoint_is_left_alone() -> None:
    store = new_store(*commits(0, 1, 2, 3, 4), compacted(1, 3), compacted(3, 4), checkpoint_path(2))
    assert load_first(store, sleep=never).commits == ((4, compacted(3, 4)),)
    assert load_first(store, 3, sleep=never).commits == ((3, commit_path(3)),)


def test_read_hint() -> None:
    assert read_hint(new_store()) is None
    assert read_hint(new_store(hint={"version": 7, "size": 1})) == 7


def reference(listing: Sequence[str], version: int) -> bool:
    """Returns true by a plain reading of PROTOCOL.md: a version can be built from commit 0, or from a
    complete checkpoint and the commits after it."""
    names = set(listing)
    for base in range(-1, version + 1):
        complete = base < 0 or checkpoint_path(base) in names or {part(base, 1, 2), part(base, 2, 2)} <= names
        if complete and all(commit_path(each) in names for each in range(base + 1, version + 1)):
            return True
    return False


_NAMES = st.one_of(
    st.integers(0, 7).map(commit_path),
    st.integers(0, 7).map(checkpoint_path),
    st.tuples(st.integers(0, 7), st.integers(1, 2)).map(lambda pair: part(pair[0], pair[1], 2)),
)


@settings(max_examples=300, deadline=None)
@given(
    names=st.sets(_NAMES, min_size=1, max_size=16),
    version=st.integers(0, 7),
    hint=st.one_of(st.none(), st.integers(0, 9)),
)
def test_any_listing_is_built_or_refused_as_the_protocol_says(
    names: set[str], version: int, hint: int | None
) -> None:
    store = new_store(*sorted(names), hint=None if hint is None else {"version": hint})
    buildable = reference(sorted(names), version)
    try:
        segment = load_first(store, version, sleep=lambda _: None)
    except (ProtocolError, VersionNotFoundError, TableNotFoundError):
        assert not buildable
        return
    assert buildable
    assert segment.version == version
    first = segment.checkpoint.version + 1 if segment.checkpoint else 0
    assert [each for each, _ in segment.commits] == list(range(first, version + 1))
    assert {*segment.checkpoint_parts, *(path for _, path in segment.commits)} <= names


@settings(max_examples=200, deadline=None)
@given(names=st.sets(_NAMES, min_size=1, max_size=16))
def test_reconstructible_versions(names: set[str]) -> None:
    listing = parse_listing([(name, 1, 0) for name in sorted(names)])
    newest = max([*listing.commits, *(each.version for each in listing.checkpoints)], default=-1)
    assert reconstructible(listing) == [
        version for version in range(newest + 1) if reference(sorted(names), version)
    ]


def test_list_log_from_a_version() -> None:
    store = new_store(*commits(0, 1, 2, 3), checkpoint_path(1), checkpoint_path(2))
    listing = list_log(store, 2)
    assert sorted(listing.commits) == [2, 3]
    assert [each.version for each in listing.checkpoints] == [2]
