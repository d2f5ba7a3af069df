"""The log in Rust: converting commits to Arrow and back, replay compared with a plain one of a page's length,
and the errors of broken logs."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic import _core
from deltaic.errors import DeltaError, InvalidArgumentError, ProtocolError
from golden import GOLDEN, needs_golden

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("p", "string"), ("i", "long"))
    ],
}
METADATA = {
    "metaData": {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["p"],
        "configuration": {},
    }
}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def memory() -> _core.Store:
    return _core.Store(f"memory://{uuid.uuid4()}/table")


def name(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def put(store: _core.Store, version: int, *actions: Any) -> None:
    store.put(name(version), b"".join(json.dumps(action).encode() + b"\n" for action in actions))


def add(
    path: str,
    *,
    dv: tuple[str, str, int | None] | None = None,
    size: int = 1,
    rows: int | None = None,
    p: str | None = "a",
    **more: Any,
) -> dict[str, Any]:
    action = {
        "path": path,
        "partitionValues": {"p": p},
        "size": size,
        "modificationTime": 1,
        "dataChange": True,
        **more,
    }
    if rows is not None:
        action["stats"] = json.dumps({"numRecords": rows})
    return {"add": action | vector(dv)}


def remove(path: str, *, dv: tuple[str, str, int | None] | None = None, time: int = 5) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": time, "dataChange": True} | vector(dv)}


def vector(dv: tuple[str, str, int | None] | None) -> dict[str, Any]:
    if dv is None:
        return {}
    kind, text, offset = dv
    descriptor = {"storageType": kind, "pathOrInlineDv": text, "sizeInBytes": 4, "cardinality": 2}
    return {"deletionVector": descriptor | ({} if offset is None else {"offset": offset})}


def load(
    store: _core.Store,
    version: int,
    checkpoint: list[str] = [],  # noqa: B006
    first: int = 0,
) -> _core.Snapshot:
    return _core.Snapshot.load(store, version, checkpoint, [(v, name(v)) for v in range(first, version + 1)])


TABLE_SCHEMA = _core.TableSchema(json.dumps(SCHEMA), ["p"])


def live(snapshot: _core.Snapshot) -> list[tuple[str, Any]]:
    adds = snapshot.files(TABLE_SCHEMA).adds
    return [
        (row["path"], key_of(row["deletionVector"]))
        for row in adds.select(["path", "deletionVector"]).to_pylist()
    ]


def key_of(descriptor: dict[str, Any] | None) -> Any:
    return descriptor and (descriptor["storageType"], descriptor["pathOrInlineDv"], descriptor.get("offset"))


class Replay:
    """The rule of the protocol, plainly: the newest action for each (path, vector) counts."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, Any], dict[str, Any]] = {}
        self.tombstones: dict[tuple[str, Any], int] = {}
        self.transactions: dict[str, tuple[int, int | None]] = {}
        self.domains: dict[str, Any] = {}

    def apply(self, actions: list[dict[str, Any]]) -> None:
        for action in actions:
            for kind, body in action.items():
                if kind in ("add", "remove"):
                    key = (body["path"], key_of(body.get("deletionVector")))
                    self.files.pop(key, None)
                    self.tombstones.pop(key, None)
                    if kind == "add":
                        self.files[key] = body
                    else:
                        self.tombstones[key] = body["deletionTimestamp"]
                elif kind == "txn":
                    self.transactions[body["appId"]] = (body["version"], body.get("lastUpdated"))
                elif kind == "domainMetadata":
                    self.domains.pop(body["domain"], None)
                    if not body["removed"]:
                        self.domains[body["domain"]] = body

    def check(self, snapshot: _core.Snapshot) -> None:
        assert live(snapshot) == sorted(self.files, key=lambda key: key[0]) or sorted(
            live(snapshot), key=repr
        ) == sorted(self.files, key=repr)
        assert [path for path, _ in live(snapshot)] == sorted(path for path, _ in self.files)
        assert snapshot.file_count == len(self.files)
        assert snapshot.size_in_bytes == sum(body["size"] for body in self.files.values())
        assert snapshot.transactions == self.transactions
        assert {name: json.loads(text) for name, text in snapshot.domains.items()} == self.domains
        stones = snapshot.tombstones().select(["path", "deletionVector", "deletionTimestamp"]).to_pylist()
        assert {
            (row["path"], key_of(row["deletionVector"])): row["deletionTimestamp"] for row in stones
        } == self.tombstones
        assert len(stones) == len(self.tombstones)
        later = snapshot.tombstones(5)
        assert later.num_rows == sum(time > 5 for time in self.tombstones.values())


@st.composite
def histories(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    vectors = st.sampled_from([None, ("u", "ab", None), ("u", "ab", 1), ("u", "ab", 2), ("i", "ab", None)])
    history = []
    for _ in range(draw(st.integers(1, 40))):
        paths = draw(st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True))
        actions = []
        for path in paths:
            old, new = draw(vectors), draw(vectors)
            kind = draw(st.sampled_from(["add", "remove", "both"]))
            both = [add(path, dv=new, size=draw(st.integers(0, 9)))] if kind != "remove" else []
            if kind == "remove" or (kind == "both" and old != new):
                both.append(remove(path, dv=old, time=draw(st.integers(0, 9))))
            actions += draw(st.permutations(both))
        if draw(st.booleans()):
            actions.append(
                {"txn": {"appId": draw(st.sampled_from("xy")), "version": draw(st.integers(0, 9))}}
            )
        if draw(st.booleans()):
            actions.append(
                {
                    "domainMetadata": {
                        "domain": draw(st.sampled_from("xy")),
                        "configuration": "",
                        "removed": draw(st.booleans()),
                    }
                }
            )
        history.append([*draw(st.permutations(actions)), {"unknown": {"x": 1}}])
    return history


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(1, 5))
def test_replay_equals_the_plain_one(history: list[list[dict[str, Any]]], step: int) -> None:
    store = memory()
    oracle = Replay()
    refreshed: _core.Snapshot | None = None
    for version, actions in enumerate(history):
        put(store, version, *actions)
        oracle.apply(actions)
        if version % step == step - 1 or version == len(history) - 1:
            if refreshed is None:
                refreshed = load(store, version)
            else:
                before = live(refreshed)
                newer = refreshed.refresh(
                    store, [(v, name(v)) for v in range(refreshed.version + 1, version + 1)]
                )
                assert live(refreshed) == before, "a snapshot is immutable"
                refreshed = newer
            assert refreshed.version == version
            oracle.check(refreshed)
            oracle.check(load(store, version))


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(0, 40), st.booleans(), st.booleans())
def test_a_checkpoint_anywhere_changes_nothing(
    history: list[list[dict[str, Any]]], at: int, as_json: bool, as_struct: bool
) -> None:
    store = memory()
    oracle = Replay()
    at = min(at, len(history) - 1)
    for version, actions in enumerate(history):
        put(store, version, *([PROTOCOL, METADATA] if version == 0 else []), *actions)
        oracle.apply(actions)
    path = f"_delta_log/{at:020}.checkpoint.parquet"
    before = load(store, at)
    written = before.write_checkpoint(
        store,
        path,
        min_deletion_timestamp=-1,
        stats_as_json=as_json,
        stats_as_struct=as_struct,
        schema=TABLE_SCHEMA,
    )
    assert written["num_of_add_files"] == before.file_count
    assert written["size_in_bytes"] == (store.head(path) or (0,))[0]
    assert (
        written["size"]
        == before.file_count
        + before.tombstones().num_rows
        + len(before.transactions)
        + len(before.domains)
        + 2
    )
    for version in range(at):
        store.delete([name(version)])
    again = load(store, len(history) - 1, [path], at + 1)
    oracle.check(again)
    assert json.loads(again.metadata or "") == METADATA["metaData"]
    assert json.loads(again.protocol or "") == PROTOCOL["protocol"]


STATS = {
    "numRecords": 4,
    "tightBounds": True,
    "minValues": {
        "i": 1,
        "s": "a",
        "t": "2024-01-01T00:00:00.123456Z",
        "n": "2024-01-01T00:00:00.5",
        "d": -1.5,
        "f": 0.1,
        "dec": 1.10,
        "day": "1969-12-31",
        "st": {"x": 7},
    },
    "maxValues": {
        "i": 9,
        "s": "é\n",
        "t": "2024-01-01T00:00:00.124Z",
        "n": "2024-01-01T00:00:00.6",
        "d": 1e300,
        "f": 0.2,
        "dec": 12.34,
        "day": "2024-02-29",
        "st": {"x": 8},
    },
    "nullCount": {
        "i": 0,
        "s": 1,
        "t": 0,
        "n": 0,
        "d": 0,
        "f": 0,
        "dec": 0,
        "day": 0,
        "st": {"x": 4},
        "b": 1,
        "l": 2,
        "bin": 0,
    },
}
WIDE = {
    "type": "struct",
    "fields": [
        {"name": n, "type": t, "nullable": True, "metadata": {}}
        for n, t in [
            ("p", "string"),
            ("day_p", "date"),
            ("i", "long"),
            ("s", "string"),
            ("t", "timestamp"),
            ("n", "timestamp_ntz"),
            ("d", "double"),
            ("f", "float"),
            ("dec", "decimal(10,2)"),
            ("day", "date"),
            ("b", "boolean"),
            ("bin", "binary"),
            ("v", "void"),
            (
                "st",
                {
                    "type": "struct",
                    "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}],
                },
            ),
            ("l", {"type": "array", "elementType": "long", "containsNull": True}),
        ]
    ],
}


@pytest.mark.parametrize(("as_json", "as_struct"), [(True, False), (False, True), (True, True)])
def test_statistics_survive_a_checkpoint(as_json: bool, as_struct: bool, tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    schema = _core.TableSchema(json.dumps(WIDE), ["p", "day_p"])
    actions = [
        add(
            "a",
            stats=json.dumps(STATS),
            tags={"t": "1"},
            baseRowId=1,
            defaultRowCommitVersion=2,
            clusteringProvider="x",
        ),
        add("b"),
        add("c", stats="broken"),
    ]
    for action in actions:
        action["add"]["partitionValues"]["day_p"] = "2024-05-05"
    metadata = {
        "metaData": (
            METADATA["metaData"]
            | {
                "schemaString": json.dumps(WIDE),
                "partitionColumns": ["p", "day_p"],
                "name": "n",
                "createdTime": 5,
                "configuration": {"a": "b"},
            }
        )
    }
    put(store, 0, PROTOCOL, metadata, *actions, remove("gone", time=10), remove("old", time=3))
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    load(store, 0).write_checkpoint(
        store, path, min_deletion_timestamp=5, stats_as_json=as_json, stats_as_struct=as_struct, schema=schema
    )
    again = _core.Snapshot.load(store, 0, [path], [])
    assert json.loads(again.metadata or "") == metadata["metaData"]
    assert again.tombstones()["path"].to_pylist() == ["gone"]
    rows = again.files(schema).adds.to_pylist()
    stats = [row.pop("stats") for row in rows]
    expected = load(store, 0).files(schema).adds.to_pylist()
    texts = [row.pop("stats") for row in expected]
    assert rows == [row | {"dataChange": False} for row in expected]
    if as_json:
        assert stats == texts
    else:
        same = json.loads(
            json.dumps(STATS)
            .replace(".123456Z", ".123456Z")
            .replace(".124Z", ".124000Z")
            .replace('00.5"', '00.500000"')
            .replace('00.6"', '00.600000"')
        )
        assert json.loads(stats[0]) == same
        assert stats[1] is None
        assert json.loads(stats[2]) == {
            "minValues": {"st": {}},
            "maxValues": {"st": {}},
            "nullCount": {"st": {}},
        }
    columns = pq.read_schema(tmp_path / path).field("add").type
    assert {field.name for field in columns} >= ({"stats"} if as_json else {"path"}) | (
        {"stats_parsed", "partitionValues_parsed"} if as_struct else set()
    )
    assert pq.read_schema(tmp_path / path).metadata is None
    if as_struct:
        table = pq.read_table(tmp_path / path)["add"].combine_chunks()
        typed = next(row for row in table.to_pylist() if row and row["path"] == "a")
        assert typed["partitionValues_parsed"] == {"p": "a", "day_p": datetime.date(2024, 5, 5)}
        assert typed["stats_parsed"]["maxValues"]["dec"] == Decimal("12.34")
        assert typed["stats_parsed"]["minValues"]["day"] == datetime.date(1969, 12, 31)
        assert "b" not in typed["stats_parsed"]["minValues"]


def test_other_readers_read_our_checkpoints(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    data = pa.table({"p": ["a", "a", "b"], "i": pa.array([1, 2, 3], pa.int64())})
    for _ in range(3):
        deltalake.write_deltalake(str(tmp_path), data, partition_by=["p"], mode="append")
    deltalake.DeltaTable(str(tmp_path)).delete("i = 2")
    store = _core.Store(str(tmp_path))
    snapshot = load(store, 3)
    schema = _core.TableSchema(json.loads(snapshot.metadata or "")["schemaString"], ["p"])
    before = sorted(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist(), key=repr)
    path = "_delta_log/00000000000000000003.checkpoint.parquet"
    written = snapshot.write_checkpoint(store, path, min_deletion_timestamp=0, schema=schema)
    store.put("_delta_log/_last_checkpoint", json.dumps({"version": 3, "size": written["size"]}).encode())
    for version in range(4):
        store.delete([name(version)])
    theirs = deltalake.DeltaTable(str(tmp_path))
    assert theirs.version() == 3
    assert sorted(theirs.to_pyarrow_table().to_pylist(), key=repr) == before
    assert sorted(theirs.to_pyarrow_table(filters=[("p", "=", "b")])["i"].to_pylist()) == [3, 3, 3]
    # and theirs is read here
    theirs.create_checkpoint()
    again = _core.Snapshot.load(store, 3, [path], [])
    assert live(again) == live(snapshot)
    assert again.num_records == snapshot.num_records == 6
    with pytest.raises(InvalidArgumentError, match="already"):
        snapshot.write_checkpoint(store, path, min_deletion_timestamp=0, schema=schema, overwrite=False)


def test_transactions_and_tombstones_expire_in_checkpoints() -> None:
    store = memory()
    put(
        store,
        0,
        PROTOCOL,
        METADATA,
        *(
            {"txn": {"appId": a, "version": 1} | t}
            for a, t in (("x", {}), ("y", {"lastUpdated": 5}), ("z", {"lastUpdated": 9}))
        ),
        remove("a", time=5),
        remove("b", time=6),
    )
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    load(store, 0).write_checkpoint(store, path, min_deletion_timestamp=5, min_transaction_timestamp=6)
    again = _core.Snapshot.load(store, 0, [path], [])
    assert again.transactions == {"x": (1, None), "z": (1, 9)}
    assert again.tombstones()["path"].to_pylist() == ["b"]


def test_a_checkpoint_needs_protocol_and_metadata() -> None:
    store = memory()
    put(store, 0, METADATA, add("a"))
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    with pytest.raises(ProtocolError, match="protocol"):
        load(store, 0).write_checkpoint(store, path, min_deletion_timestamp=0)
    assert store.head(path) is None
    assert store.list_from("_delta_log").num_rows == 1


ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
    ]
)
ROW = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
BROKEN_CHECKPOINTS: dict[str, tuple[Any, str]] = {
    "no Parquet": (b"PAR1 nothing", "checkpoint.parquet"),
    "empty": (b"", "checkpoint.parquet"),
    "no checkpoint": (pa.table({"x": [1]}), "no checkpoint"),
    "add is no struct": (pa.table({"add": ["x"]}), "no struct"),
    "an add without a path": (pa.table({"add": pa.array([ROW | {"path": None}], ADD)}), "expected path"),
    "an add without a size": (pa.table({"add": pa.array([ROW | {"size": None}], ADD)}), "size"),
    "an add without partition values": (
        pa.table({"add": pa.array([ROW | {"partitionValues": None}], ADD)}),
        "partitionValues",
    ),
    "a negative size": (pa.table({"add": pa.array([ROW | {"size": -5}], ADD)}), "-5"),
    "a size that is text": (
        pa.table({"add": [{"path": "a", "size": "many", "partitionValues": "x"}]}),
        "wrong type",
    ),
    "two protocols": (
        pa.table({"protocol": [{"minReaderVersion": 1, "minWriterVersion": 2}] * 2}),
        "two of protocol",
    ),
    "txn without a version": (
        pa.table({"txn": [{"appId": "x"}], "protocol": pa.nulls(1, pa.struct([("a", pa.int32())]))}),
        "version",
    ),
    "a sidecar elsewhere": (
        pa.table({"sidecar": [{"path": "../x"}], "protocol": pa.nulls(1, pa.struct([("a", pa.int32())]))}),
        "sidecar",
    ),
}


@pytest.mark.parametrize("case", BROKEN_CHECKPOINTS)
def test_a_broken_checkpoint_is_named(case: str, tmp_path: Path) -> None:
    content, part = BROKEN_CHECKPOINTS[case]
    path = tmp_path / "_delta_log" / f"{0:020}.checkpoint.parquet"
    path.parent.mkdir()
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pq.write_table(content, path)
    with pytest.raises(DeltaError) as info:
        _core.Snapshot.load(_core.Store(str(tmp_path)), 0, [f"_delta_log/{path.name}"], [])
    assert part in str(info.value)
    assert path.name in str(info.value) or case == "a sidecar elsewhere"


def test_a_cut_checkpoint_is_named_at_every_length(tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    put(store, 0, PROTOCOL, METADATA, *(add(f"f{i}", rows=i) for i in range(50)))
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    load(store, 0).write_checkpoint(store, path, min_deletion_timestamp=0, schema=TABLE_SCHEMA)
    whole = store.get(path)
    for length in range(0, len(whole), 131):
        store.put(path, whole[:length])
        with pytest.raises(ProtocolError, match="checkpoint"):
            _core.Snapshot.load(store, 0, [path], [])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_checkpoint_with_changed_bytes_is_read_or_named(data: st.DataObject) -> None:
    whole = bytearray(example_checkpoint())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    store = memory()
    store.put("c.parquet", bytes(whole))
    with contextlib.suppress(DeltaError, OSError):
        _core.Snapshot.load(store, 0, ["c.parquet"], [])


@functools.cache
def example_checkpoint() -> bytes:
    store = memory()
    put(store, 0, PROTOCOL, METADATA, *(add(f"f{i}", rows=i) for i in range(50)), remove("x"))
    load(store, 0).write_checkpoint(store, "c", min_deletion_timestamp=0, schema=TABLE_SCHEMA)
    return store.get("c")


def golden_states(table: Path) -> tuple[_core.Store, int, list[tuple[list[str], int]]]:
    """Of a table: its newest version, and the ways to it: (checkpoint parts, first commit)."""
    store = _core.Store(str(table))
    names = [Path(path).name for path in store.list_from("_delta_log")["path"].to_pylist()]
    commits = sorted(int(n[:20]) for n in names if re.fullmatch(r"\d{20}\.json", n))
    checkpoints: dict[int, list[str]] = {}
    for n in names:
        if re.fullmatch(r"\d{20}\.checkpoint.*\.(parquet|json)", n):
            checkpoints.setdefault(int(n[:20]), []).append(f"_delta_log/{n}")
    ways: list[tuple[list[str], int]] = [([], 0)] if commits and commits[0] == 0 else []
    newest = max([*commits, *checkpoints])
    return store, newest, ways + [(parts, version + 1) for version, parts in checkpoints.items()]


GOLDEN_CHECKPOINTS = [
    "app-txn-checkpoint",
    "basic-with-inserts-deletes-checkpoint",
    "dv-with-columnmapping",
    "multi-part-checkpoint",
    "only-checkpoint-files",
    "parsed-stats",
    "v2-checkpoint-parquet",
    "v2-checkpoints-json-with-last-checkpoint",
    "v2-checkpoints-json-without-sidecars",
    "v2-checkpoints-parquet-with-last-checkpoint",
    "v2-checkpoints-parquet-without-sidecars",
    "v2-classic-checkpoint-json",
    "v2-classic-parquet-struct-stats-only",
    "v2-json-sidecars-struct-stats-only",
]


@needs_golden
@pytest.mark.parametrize("table", GOLDEN_CHECKPOINTS)
def test_golden_checkpoints_say_what_their_commits_say(table: str) -> None:
    root = GOLDEN / table
    root = root / "delta" if (root / "delta").exists() else root
    store, newest, ways = golden_states(root)
    states = [
        _core.Snapshot.load(
            store, max(newest, first - 1), parts, [(v, name(v)) for v in range(first, newest + 1)]
        )
        for parts, first in ways
    ]
    assert len(states) > 1
    for state in states[1:]:
        assert live(state) == live(states[0])
        assert state.num_records == states[0].num_records
        assert state.transactions == states[0].transactions
        assert state.size_in_bytes == states[0].size_in_bytes


def test_many_small_commits_keep_few_segments_and_the_right_files() -> None:
    store = memory()
    oracle = Replay()
    snapshot: _core.Snapshot | None = None
    for version in range(400):
        actions = [add(f"f{version}-{i}") for i in range(40)]
        actions += [remove(f"f{version - 3}-{i}", time=version) for i in range(0, 40, 2) if version >= 3]
        put(store, version, *actions)
        oracle.apply(actions)
        snapshot = load(store, 0) if snapshot is None else snapshot.refresh(store, [(version, name(version))])
        if version % 97 == 0 or version == 399:
            oracle.check(snapshot)


def test_protocol_and_metadata_are_the_newest() -> None:
    store = memory()
    put(store, 0, {"commitInfo": {"operation": "W"}}, PROTOCOL, METADATA)
    put(store, 1, {"metaData": METADATA["metaData"] | {"id": "y"}})
    snapshot = load(store, 1)
    assert json.loads(snapshot.protocol or "") == PROTOCOL["protocol"]
    assert json.loads(snapshot.metadata or "")["id"] == "y"
    assert load(store, 0).metadata is not None
    assert json.loads(load(store, 0).metadata or "")["id"] == "x"


def test_num_records_are_logical() -> None:
    store = memory()
    put(store, 0, add("a", rows=10), add("b", rows=5, dv=("u", "x", 1)))
    assert load(store, 0).num_records == 13
    put(store, 1, add("c"))
    assert load(store, 1).num_records is None


def test_paths_are_known_by_what_they_mean(tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    put(store, 0, add("a%20b"), add("c"), add("/elsewhere/d"), add("x%25y"))
    put(store, 1, remove("a b"), remove(f"{tmp_path}/c"), remove("file:///elsewhere/d"), remove("x%y"))
    # '%y' is no escape: the text means the file 'x%y', as 'x%25y' does
    assert live(load(store, 1)) == []


def test_commit_roundtrip() -> None:
    store = memory()
    rich = add(
        "p=a/x%20y",
        dv=("u", "ab^-aqEH.-t@S}K{vb[*k^", 4),
        stats='{"numRecords":3,"maxValues":{"s":"\\u00e9\\n\\""}}',
        tags={"k": "v\t", "n": None},
        baseRowId=4,
        defaultRowCommitVersion=2,
        clusteringProvider="liquid",
        p=None,
    )
    put(
        store,
        3,
        {"commitInfo": {"a": 1}},
        PROTOCOL,
        METADATA,
        {"txn": {"appId": "q", "version": 3, "lastUpdated": 9}},
        rich,
        {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
        remove("z"),
    )
    commit = _core.read_commit(store, 3, name(3))
    assert commit.version == 3
    assert json.loads(commit.commit_info or "") == {"a": 1}
    assert commit.transactions == {"q": (3, 9)}
    assert commit.has_cdc
    assert commit.adds.schema == _core.empty_adds().schema
    assert commit.removes.schema == _core.empty_removes().schema
    body = _core.commit_body([json.dumps(PROTOCOL)], commit.adds, commit.removes)
    lines = [json.loads(line) for line in body.splitlines()]
    assert lines == [PROTOCOL, remove("z"), rich]
    assert body.endswith(b"\n")
    assert json.loads(_core.read_commit_info(store, name(3)) or "") == {"a": 1}
    put(store, 4, add("x"))
    assert _core.read_commit_info(store, name(4)) is None
    with pytest.raises(FileNotFoundError):
        _core.read_commit(store, 5, name(5))


def test_commit_body_takes_what_pyarrow_makes() -> None:
    adds = pa.table(
        {
            "dataChange": [True],
            "path": pa.array(["x"], pa.large_string()),
            "size": pa.array([3], pa.int32()),
            "modificationTime": [7],
            "more": [1],
        }
    )
    assert json.loads(_core.commit_body([], adds)) == {
        "add": {"path": "x", "partitionValues": {}, "size": 3, "modificationTime": 7, "dataChange": True}
    }
    with pytest.raises(ProtocolError, match="added twice"):
        _core.commit_body([], pa.concat_tables([adds, adds]))
    for bad in ("[]", '{"a":1}\n', "{", ""):
        with pytest.raises(InvalidArgumentError):
            _core.commit_body([bad])


def test_actions_from_actions() -> None:
    store = memory()
    put(store, 0, add("a", dv=("u", "x", 1), rows=3, tags={"t": "1"}, baseRowId=5), add("b%20c"))
    adds = _core.read_commit(store, 0, name(0)).adds
    removes = _core.removes_of(adds, 77, False).to_pylist()
    assert removes[0] | {"partitionValues": 0, "tags": 0, "deletionVector": 0} == {
        "path": "a", "deletionTimestamp": 77, "dataChange": False, "extendedFileMetadata": True,
        "partitionValues": 0, "size": 1, "stats": None, "tags": 0, "deletionVector": 0, "baseRowId": 5,
        "defaultRowCommitVersion": None,
    }  # fmt: skip
    assert removes[0]["deletionVector"] == adds["deletionVector"][0].as_py()
    again = _core.adds_again(adds, data_change=False)
    assert again.drop_columns(["dataChange"]) == adds.drop_columns(["dataChange"])
    assert again["dataChange"].to_pylist() == [False, False]
    assert _core.adds_again(adds) == adds
    other = pa.table({"path": ["b c", "z", "b c"]})
    assert _core.overlapping_paths(adds, other) == ["b c"]
    assert _core.overlapping_paths(other, adds.slice(0, 1)) == []


def expect(store: _core.Store, version: int, *parts: str) -> None:
    with pytest.raises(DeltaError) as info:
        load(store, version)
    assert isinstance(info.value, ProtocolError), info.value
    for part in parts:
        assert part in str(info.value)


GOOD = json.dumps(add("a")).encode()
BROKEN_LINES = {
    "cut off": (GOOD[:-3], "EOF"),
    "no object": (b"[1]", "an action"),
    "a text": (b'"x"', "an action"),
    "two actions": (
        (
            b'{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true},'
            b'"commitInfo":{}}'
        ),
        "two actions",
    ),
    "two objects": (GOOD + GOOD, "trailing"),
    "the same action twice": (
        b'{"txn":{"appId":"a","version":1},"txn":{"appId":"b","version":1}}',
        "two actions",
    ),
    "no path": (b'{"add":{"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}', "path"),
    "empty path": (json.dumps(add("")).encode(), "empty path"),
    "path of a wrong type": (GOOD.replace(b'"a"', b"1", 1), "invalid type"),
    "size of a wrong type": (GOOD.replace(b'"size": 1', b'"size": "1"'), "invalid type"),
    "negative size": (json.dumps(add("x", size=-1)).encode(), "size -1"),
    "fractional size": (GOOD.replace(b'"size": 1', b'"size": 1.5'), "invalid type"),
    "too large size": (GOOD.replace(b'"size": 1', b'"size": 99999999999999999999'), "expected i64"),
    "no size": (GOOD.replace(b'"size": 1, ', b""), "size"),
    "no partition values": (GOOD.replace(b'"partitionValues": {"p": "a"}, ', b""), "partitionValues"),
    "no modification time": (GOOD.replace(b'"modificationTime": 1, ', b""), "modificationTime"),
    "no data change": (GOOD.replace(b', "dataChange": true', b""), "dataChange"),
    "partition values of a wrong type": (GOOD.replace(b'{"p": "a"}', b'["a"]'), "an object of texts"),
    "a number as a partition value": (GOOD.replace(b'{"p": "a"}', b'{"p": 1}'), "invalid type"),
    "a partition twice": (GOOD.replace(b'{"p": "a"}', b'{"p": "a", "p": "b"}'), "'p' twice"),
    "a field twice": (GOOD.replace(b'"size": 1', b'"size": 1, "size": 2'), "duplicate field"),
    "a vector without its kind": (
        (
            b'{"remove":{"path":"x","dataChange":true,"deletionVector":{"pathOrInlineDv":"x",'
            b'"sizeInBytes":1,"cardinality":1}}}'
        ),
        "storageType",
    ),
    "a vector with a negative size": (
        (
            b'{"remove":{"path":"x","deletionVector":{"storageType":"u","pathOrInlineDv":"x",'
            b'"sizeInBytes":-1,"cardinality":1}}}'
        ),
        "negative",
    ),
    "a vector with a negative offset": (
        (
            b'{"remove":{"path":"x","deletionVector":{"storageType":"u","offset":-4,"pathOrInlineDv":"x",'
            b'"sizeInBytes":1,"cardinality":1}}}'
        ),
        "negative",
    ),
    "a vector of too many rows": (
        (
            b'{"remove":{"path":"x","deletionVector":{"storageType":"u","pathOrInlineDv":"x",'
            b'"sizeInBytes":1,"cardinality":1e30}}}'
        ),
        "invalid type",
    ),
    "not UTF-8": (GOOD.replace(b'"a"', b'"\xff"', 1), "UTF-8"),
    "a lone surrogate": (GOOD.replace(b'"a"', b'"\\ud800"', 1), "no valid action"),
    "deep nesting": (b'{"metaData":' + b'{"a":' * 200 + b"1" + b"}" * 201, "nested deeper"),
    "deep nesting of the unknown": (b'{"future":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested deeper"),
    "a control character": (b'{"add":{"path":"a\x01"}}', "control character"),
    "NaN": (GOOD.replace(b'"size": 1', b'"size": NaN'), "expected"),
    "txn without a version": (b'{"txn":{"appId":"a"}}', "version"),
    "txn without an application": (b'{"txn":{"version":1}}', "appId"),
    "domain without a name": (b'{"domainMetadata":{"removed":false}}', "domain"),
    "protocol that is no object": (b'{"protocol":[1,2]}', "no object"),
    "metadata that is no object": (b'{"metaData":"x"}', "no object"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, "no valid action"),
    "an unquoted key": (b"{add:{}}", "key must be a string"),
    "zeros": (b"\0" * 100, "expected value"),
}


@pytest.mark.parametrize("case", BROKEN_LINES)
def test_a_broken_line_is_named(case: str) -> None:
    line, part = BROKEN_LINES[case]
    store = memory()
    store.put(
        name(0),
        json.dumps(PROTOCOL).encode() + b"\n" + json.dumps(add("first")).encode() + b"\n" + line + b"\n",
    )
    expect(store, 0, f"{name(0)}:3", part)


BROKEN_COMMITS = {
    "empty": (b"", "empty"),
    "blank lines alone": (b"\n \n\n", "empty"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD, "byte order mark"),
    "added twice": (GOOD + b"\n" + GOOD, "added twice"),
    "added twice, spelled otherwise": (
        json.dumps(add("a b")).encode() + b"\n" + json.dumps(add("a%20b")).encode(),
        "added twice",
    ),
    "added twice with two vectors": (
        json.dumps(add("a", dv=("u", "x", 1))).encode() + b"\n" + GOOD,
        "added twice",
    ),
    "removed twice": ((json.dumps(remove("a")).encode() + b"\n") * 2, "removed twice"),
    "added and removed": (GOOD + b"\n" + json.dumps(remove("a")).encode(), "both adds and removes"),
    "two protocols": ((json.dumps(PROTOCOL).encode() + b"\n") * 2, "two of protocol"),
    "two metadata": ((json.dumps(METADATA).encode() + b"\n") * 2, "two of metaData"),
    "a domain twice": (b'{"domainMetadata":{"domain":"d","removed":false}}\n' * 2, "two of domainMetadata"),
}


@pytest.mark.parametrize("case", BROKEN_COMMITS)
def test_a_broken_commit_is_named(case: str) -> None:
    data, part = BROKEN_COMMITS[case]
    store = memory()
    store.put(name(0), data)
    expect(store, 0, name(0), part)


def test_what_is_odd_but_allowed() -> None:
    store = memory()
    lines = [
        json.dumps(PROTOCOL),
        "",
        "{}",
        '{"future":{"a":[1]}}',
        '{"add":null}',
        json.dumps(add("a", future=1)),
        json.dumps(add("b", stats="not JSON")),
    ]
    store.put(name(0), "\r\n".join(lines).encode())
    assert [path for path, _ in live(load(store, 0))] == ["a", "b"]
    put(store, 1, add("a", dv=("u", "x", 1)), remove("a"))
    assert live(load(store, 1)) == [("a", ("u", "x", 1)), ("b", None)]


def test_missing_versions_are_named() -> None:
    store = memory()
    for version in (0, 1, 3):
        put(store, version, add(f"f{version}"))
    with pytest.raises(ProtocolError, match=r"versions are missing.*found 3; expected 2"):
        _core.Snapshot.load(store, 3, [], [(v, name(v)) for v in (0, 1, 3)])
    with pytest.raises(ProtocolError, match="versions are missing"):
        _core.Snapshot.load(store, 3, [], [(3, name(3))])
    with pytest.raises(ProtocolError, match="without checkpoint"):
        _core.Snapshot.load(store, 3, [], [])
    with pytest.raises(ProtocolError, match="follow"):
        load(store, 0).refresh(store, [(3, name(3))])


def test_large_commits_are_read_on_threads_with_the_right_line_in_errors() -> None:
    store = memory()
    lines = [json.dumps(add(f"p=x/part-{i:06}.parquet", rows=i)) for i in range(30_000)]
    store.put(name(0), "\n".join(lines).encode())
    snapshot = load(store, 0)
    assert snapshot.file_count == 30_000
    assert snapshot.num_records == sum(range(30_000))
    assert [path for path, _ in live(snapshot)] == [f"p=x/part-{i:06}.parquet" for i in range(30_000)]
    lines[27_123] = lines[27_123][:-4]
    store.put(name(0), "\n".join(lines).encode())
    expect(store, 0, f"{name(0)}:27124")
