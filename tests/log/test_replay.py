"""Random logs: every version has the state that a plain replay of its commits gives, whichever other files of
the log exist and however the version is loaded."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay import State, replay

from deltaic import _core
from deltaic._core import Store
from deltaic.log import compaction
from deltaic.log.segment import LOG, checkpoint_path, commit_path, list_log, reconstructible
from deltaic.log.snapshot import Snapshot
from log_actions import memory_store

FEATURES = ["deletionVectors", "v2Checkpoint"]


@pytest.fixture(scope="module", autouse=True, params=["held", "left where they are"])
def large(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test with small logs read whole, and with all of them taken for large ones, whose actions stay in
    their files."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param != "held":
            patched.setattr("deltaic.log.snapshot.READ_AT_ONCE", 0)
            patched.setattr("deltaic.log.snapshot.OPENED_AT_ONCE", 0)
        yield


PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": FEATURES,
        "writerFeatures": [*FEATURES, "domainMetadata"],
    }
}
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
PATHS = [f"part-{number}.parquet" for number in range(6)] + ["m%20x/%C3%A9.parquet", "a%25b.parquet"]
EVERY_TOMBSTONE = -(2**62)


def metadata(number: int) -> dict[str, Any]:
    settings = {"user.number": str(number), "delta.checkpointPolicy": "v2"}
    table = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": [],
        "configuration": {},
    }
    return {"metaData": {**table, "configuration": settings, "createdTime": number}}


def add(path: str, vector: int | None, number: int) -> dict[str, Any]:
    statistics = {
        "numRecords": 10,
        "minValues": {"id": number},
        "maxValues": {"id": number + 5},
        "nullCount": {"id": 0},
    }
    action: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": 100 + number,
        "modificationTime": number,
        "dataChange": True,
    }
    action |= {"stats": json.dumps(statistics, separators=(",", ":")), "tags": {"n": str(number)}}
    return action if vector is None else {**action, "deletionVector": descriptor(vector)}


def remove(path: str, vector: int | None, number: int) -> dict[str, Any]:
    action = {
        "path": path,
        "deletionTimestamp": number,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 100,
    }
    return action if vector is None else {**action, "deletionVector": descriptor(vector)}


def descriptor(number: int) -> dict[str, Any]:
    return {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*",
        "offset": number,
        "sizeInBytes": 40,
        "cardinality": 1,
    }


@st.composite
def histories(draw: st.DrawFn) -> list[bytes]:
    """Commits, each legal on top of the one before: files added, re-added as they are, removed, given other
    vectors; transactions, domains begun and ended, other metadata. Lines are in any order but commitInfo's.
    """
    live: dict[str, int | None] = {}
    commits, number = [], 0
    for version in range(draw(st.integers(1, 9))):
        lines: list[dict[str, Any]] = [PROTOCOL, metadata(0)] if version == 0 else []
        for path in draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=4)):
            number += 1
            if path not in live:
                live[path] = draw(st.sampled_from([None, number]))
                lines.append({"add": add(path, live[path], number)})
                continue
            what = draw(st.sampled_from(["again", "remove", "vector"]))
            if what == "again":
                lines.append({"add": add(path, live[path], number)})
            elif what == "remove":
                lines.append({"remove": remove(path, live.pop(path), number)})
            else:
                lines.append({"remove": remove(path, live[path], number)})
                live[path] = number if live[path] is None else draw(st.sampled_from([None, number]))
                lines.append({"add": add(path, live[path], number)})
        if draw(st.booleans()):
            lines.append(
                {"txn": {"appId": draw(st.sampled_from("ab")), "version": version, "lastUpdated": version}}
            )
        if draw(st.booleans()):
            ended = draw(st.booleans())
            lines.append(
                {
                    "domainMetadata": {
                        "domain": draw(st.sampled_from(["x", "y"])),
                        "configuration": str(version),
                        "removed": ended,
                    }
                }
            )
        if version > 0 and draw(st.integers(0, 3)) == 0:
            lines.append(metadata(version))
        lines = [{"commitInfo": {"operation": "TEST"}}, *draw(st.permutations(lines))]
        commits.append("".join(json.dumps(line) + "\n" for line in lines).encode())
    return commits


def actions(table: pa.Table) -> dict[Any, dict[str, Any]]:
    """Returns the rows by key, with the fields that a replay must keep."""
    from replay import key

    found = {}
    for row in table.to_pylist():
        fields = {
            name: value
            for name, value in row.items()
            if value is not None and name not in ("dataChange", "extendedFileMetadata")
        }
        for name in ("partitionValues", "tags"):
            if name in fields:
                fields[name] = dict(fields[name])
        if "deletionVector" in fields:
            fields["deletionVector"] = {
                name: value for name, value in fields["deletionVector"].items() if value is not None
            }
        if "stats" in fields:
            fields["stats"] = json.loads(fields["stats"])
            fields["stats"].pop("tightBounds", None)
        assert key(fields) not in found, "a file twice"
        found[key(fields)] = fields
    return found


def plain(expected: dict[Any, dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    kept = {
        key: {
            name: value
            for name, value in action.items()
            if name not in ("dataChange", "extendedFileMetadata")
        }
        for key, action in expected.items()
    }
    return {
        key: {**action, "stats": json.loads(action["stats"])} if "stats" in action else action
        for key, action in kept.items()
    }


def check(snapshot: Snapshot, expected: State) -> None:
    assert actions(snapshot.files().adds) == plain(expected.adds)
    assert actions(snapshot.core.tombstones()) == plain(expected.removes)
    assert {app: entry[0] for app, entry in snapshot.core.transactions.items()} == expected.transactions
    assert snapshot.domains == expected.domains
    assert snapshot.metadata.configuration == (expected.metadata or {})["configuration"]
    assert snapshot.core.file_count == len(expected.adds)
    assert snapshot.core.size_in_bytes == sum(action["size"] for action in expected.adds.values())


def classic(snapshot: Snapshot, as_json: bool, as_struct: bool) -> None:
    write(snapshot, checkpoint_path(snapshot.version), as_json, as_struct)


def write(snapshot: Snapshot, path: str, as_json: bool, as_struct: bool, second: bool = False) -> None:
    snapshot.core.write_checkpoint(
        snapshot.store,
        path,
        min_deletion_timestamp=EVERY_TOMBSTONE,
        stats_as_json=as_json,
        stats_as_struct=as_struct,
        schema=snapshot.table_schema,
        second_form=(uuid.uuid4().hex, 1) if second else None,
    )


def second(snapshot: Snapshot, as_json: bool, as_struct: bool) -> None:
    ending = "json" if as_json else "parquet"
    write(
        snapshot,
        f"{LOG}/{snapshot.version:020}.checkpoint.{uuid.uuid4()}.{ending}",
        as_json,
        as_struct,
        second=True,
    )


def second_by_the_old_name(snapshot: Snapshot, as_json: bool, as_struct: bool) -> None:
    write(snapshot, checkpoint_path(snapshot.version), as_json, as_struct, second=True)


def in_parts(snapshot: Snapshot, as_json: bool, as_struct: bool) -> None:
    classic(snapshot, as_json, as_struct)
    whole = pq.read_table(io.BytesIO(snapshot.store.get(checkpoint_path(snapshot.version))))
    snapshot.store.delete([checkpoint_path(snapshot.version)])
    for part in (0, 1):
        out = io.BytesIO()
        pq.write_table(whole.slice(part * (whole.num_rows // 2), None if part else whole.num_rows // 2), out)
        snapshot.store.put(
            f"{LOG}/{snapshot.version:020}.checkpoint.{part + 1:010}.{2:010}.parquet", out.getvalue()
        )


def broken(snapshot: Snapshot, as_json: bool, as_struct: bool) -> None:
    second(snapshot, as_json, as_struct)
    newest = max(
        path
        for path in snapshot.store.list_from(LOG).column("path").to_pylist()
        if f"{snapshot.version:020}.checkpoint" in path
    )
    snapshot.store.put(newest, b"no checkpoint")


KINDS: list[Callable[[Snapshot, bool, bool], None]] = [
    classic,
    second,
    second_by_the_old_name,
    in_parts,
    broken,
]


def a_log(commits: list[bytes]) -> Store:
    store = memory_store()
    for version, body in enumerate(commits):
        store.put(commit_path(version), body)
    return store


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(commits=histories(), data=st.data())
def test_every_version_is_what_a_plain_replay_says(commits: list[bytes], data: st.DataObject) -> None:
    store = a_log(commits)
    last = len(commits) - 1
    states = [replay(commits[: version + 1]) for version in range(last + 1)]
    for version in data.draw(st.lists(st.integers(0, last), unique=True, max_size=3), label="checkpoints"):
        kind = data.draw(st.sampled_from(KINDS), label="kind")
        as_json = data.draw(st.booleans(), label="as JSON")
        kind(
            Snapshot.load(store, version=version),
            as_json,
            not as_json or data.draw(st.booleans(), label="as struct"),
        )
    for first in data.draw(st.lists(st.integers(0, last), unique=True, max_size=2), label="ranges"):
        if first < last:
            compaction.compact(
                Snapshot.load(store), first, data.draw(st.integers(first + 1, last), label="end")
            )
    if data.draw(st.booleans(), label="hint"):
        store.put(
            f"{LOG}/_last_checkpoint",
            json.dumps({"version": data.draw(st.integers(0, last + 1), label="hint")}).encode(),
        )
    for version in range(data.draw(st.integers(0, last), label="deleted")):
        store.delete([commit_path(version)])
    for version in range(last + 1):
        try:
            snapshot = Snapshot.load(store, version=version, sleep=lambda _: None)
        except Exception:
            # Only a version that needs what is gone, or broken, may be refused.
            assert not any(kind_is_whole(store, base, version) for base in range(-1, version + 1))
            continue
        check(snapshot, states[version])
        for later in range(version, last + 1):
            if all(each in list_log(store).commits for each in range(version + 1, later + 1)):
                check(snapshot.advance(later), states[later])
        if 0 in list_log(store).commits:
            check(snapshot.refresh(), states[last])


def kind_is_whole(store: Store, base: int, version: int) -> bool:
    """Returns true if `version` can be built from commit 0 (base -1) or from a checkpoint of `base` that is
    not broken."""
    listing = list_log(store)
    if not all(each in listing.commits for each in range(base + 1, version + 1)):
        return False
    if base < 0:
        return True
    return any(
        each.version == base and not any(store.get(part) == b"no checkpoint" for part in each.parts)
        for each in listing.checkpoints
    )


@settings(max_examples=30, deadline=None)
@given(commits=histories(), data=st.data())
def test_checkpoints_on_checkpoints(commits: list[bytes], data: st.DataObject) -> None:
    """Each version is loaded from the checkpoint of the one before, and writes its own: sidecars are named
    again or written anew."""
    store = a_log(commits)
    snapshot = Snapshot.load(store, version=0)
    for version in range(len(commits)):
        if version > 0:
            before = (
                Snapshot.load(store, version=version - 1)
                if data.draw(st.booleans(), label="loaded")
                else snapshot
            )
            snapshot = before.advance(version)
        second(snapshot, data.draw(st.booleans(), label="as JSON"), True)
        check(snapshot, replay(commits[: version + 1]))
    for version in range(len(commits)):
        newest = [checkpoint for checkpoint in list_log(store).checkpoints if checkpoint.version == version]
        for checkpoint in newest:
            core = _core.Snapshot.load(store, version, checkpoint.parts, [])
            check(Snapshot(store, core), replay(commits[: version + 1]))
    assert reconstructible(list_log(store)) == list(range(len(commits)))
