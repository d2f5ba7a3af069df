"""Actions that stay in their checkpoint or commit until they are needed: the results are those of a log that
is read completely."""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaic import _core
from deltaic._core import Store
from deltaic.errors import ProtocolError
from deltaic.log.segment import checkpoint_path, commit_path
from deltaic.log.snapshot import Snapshot, table_schema
from deltaic.protocol.actions import Metadata, Protocol
from log_actions import append, create, memory_store, paths

TYPES = {
    "p": "integer",
    "q": "string",
    "i": "long",
    "b": "byte",
    "x": "double",
    "s": "string",
    "d": "date",
    "t": "timestamp",
    "u": "timestamp_ntz",
    "n": "decimal(20,2)",
    "w": "boolean",
}
NESTED = {"type": "struct", "fields": [{"name": "y", "type": "long", "nullable": True, "metadata": {}}]}
FIELDS = [
    {"name": name, "type": of, "nullable": True, "metadata": {}}
    for name, of in [*TYPES.items(), ("r", NESTED)]
]
SCHEMA = json.dumps({"type": "struct", "fields": FIELDS})
PARTITIONS = ["p", "q", "w"]
FEATURES = ["deletionVectors", "timestampNtz"]
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": FEATURES,
    "writerFeatures": FEATURES,
}
METADATA = {
    "id": "t",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": SCHEMA,
    "partitionColumns": PARTITIONS,
    "configuration": {},
    "createdTime": 1,
}
MORE_THAN_A_SLICE = 70_000


def values(draw: random.Random) -> dict[str, Any]:
    """Of each type one, as statistics have it."""
    day = draw.choice(["1500-01-01", "1969-12-31", "2024-02-29", "2024-03-01"])
    moment = f"{day}T{draw.randrange(24):02}:00:00.{draw.choice(['000', '123'])}"
    return {
        "i": draw.randrange(50),
        "b": draw.randrange(50),
        "x": draw.choice([-0.0, 0.0, 1.5, float(draw.randrange(50))]),
        "s": draw.choice(["", "a", "ab", "b", "é"]) + str(draw.randrange(3)),
        "d": day,
        "t": f"{moment}Z",
        "u": moment,
        "n": draw.randrange(5000) / 100,
        "r": {"y": draw.randrange(50)},
    }


def statistics(draw: random.Random) -> str | None:
    if draw.random() < 0.1:
        return draw.choice([None, "{}", '{"numRecords":3}'])
    low, high = values(draw), values(draw)
    known = {name for name in low if draw.random() < 0.9}
    for name in low:
        if name == "r":
            low[name]["y"], high[name]["y"] = sorted([low[name]["y"], high[name]["y"]])
        else:
            low[name], high[name] = sorted([low[name], high[name]])
    records = draw.randrange(1, 5)
    nulls = {
        name: {"y": draw.choice([0, records])} if name == "r" else draw.choice([0, 1, records])
        for name in known
    }
    bounds = {
        "minValues": {name: low[name] for name in known},
        "maxValues": {name: high[name] for name in known},
    }
    return json.dumps(
        {"numRecords": records, **bounds, "nullCount": nulls, "tightBounds": draw.random() < 0.5}
    )


def add(number: int, draw: random.Random) -> dict[str, Any]:
    partition = {
        "p": draw.choice([None, "1", "2", "30"]),
        "q": draw.choice([None, "", "x", "y z"]),
        "w": draw.choice([None, "true", "false"]),
    }
    action: dict[str, Any] = {
        "path": f"part-{number:05}.parquet",
        "partitionValues": partition,
        "size": number,
        "modificationTime": number,
    }
    action |= {"dataChange": True, "stats": statistics(draw)}
    if number % 7 == 0:
        action["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": "ab",
            "offset": number,
            "sizeInBytes": 4,
            "cardinality": 1,
        }
    return action


def log_of(count: int, seed: int = 1) -> Store:
    """Makes a log of one commit with `count` files, and of a second one that removes some and adds others."""
    draw, store = random.Random(seed), memory_store()
    actions = [add(number, draw) for number in range(count)]
    lines = [
        {"commitInfo": {"operation": "TEST"}},
        {"protocol": PROTOCOL},
        {"metaData": METADATA},
        *({"add": each} for each in actions),
    ]
    store.put(commit_path(0), "".join(json.dumps(line) + "\n" for line in lines).encode())
    gone = [
        {"remove": {"deletionTimestamp": 5, "dataChange": True, **vector_of(each), "path": each["path"]}}
        for each in actions[::5]
    ]
    more = [{"add": add(count + number, draw)} for number in range(count // 10)]
    store.put(commit_path(1), "".join(json.dumps(line) + "\n" for line in [*gone, *more]).encode())
    return store


def vector_of(action: dict[str, Any]) -> dict[str, Any]:
    return {name: action[name] for name in ("deletionVector",) if name in action}


TABLE = table_schema(
    Protocol.from_json(json.dumps({"protocol": PROTOCOL})),
    Metadata.from_json(json.dumps({"metaData": METADATA})),
)


def with_checkpoint(store: Store, version: int, **choices: bool) -> None:
    commits = [(each, commit_path(each)) for each in range(version + 1)]
    core = _core.Snapshot.load(store, version, [], commits)
    core.write_checkpoint(store, checkpoint_path(version), min_deletion_timestamp=0, schema=TABLE, **choices)


def predicates(draw: random.Random, count: int) -> Iterator[dict[str, Any]]:
    literals = {**TYPES, "p": "", "q": "", "w": ""}
    for _ in range(count):
        kind, name = draw.random(), draw.choice([*TYPES, "r"])
        sample = values(draw) | {
            "p": draw.choice(["1", "2", "4"]),
            "q": draw.choice(["x", "y z"]),
            "w": draw.choice(["true", "false"]),
        }
        value = sample[name]
        literal = str(value["y"] if name == "r" else value)
        column = ["r", "y"] if name == "r" else [name]
        if kind < 0.2:
            yield {"op": "is_null", "column": column}
        elif kind < 0.3:
            yield {"op": "not", "arg": {"op": "is_null", "column": column}}
        elif kind < 0.4 and literals.get(name) == "string":
            yield {"op": "starts_with", "column": column, "literal": "a"}
        elif kind < 0.7:
            yield {"op": draw.choice(["=", "!=", "<", "<=", ">", ">="]), "column": column, "literal": literal}
        elif kind < 0.8:
            yield {"op": "in", "column": column, "literals": [literal]}
        else:
            yield {"op": draw.choice(["and", "or"]), "args": list(predicates(draw, 2))}


def same(held: _core.Snapshot, left: _core.Snapshot, seed: int, count: int) -> None:
    """Checks that both select the same files. Typed statistics may rule out a file that has none as JSON, but
    never one that its JSON keeps."""
    assert (left.file_count, left.size_in_bytes, left.num_records) == (
        held.file_count,
        held.size_in_bytes,
        held.num_records,
    )
    assert left.tombstones().sort_by("path").equals(held.tombstones().sort_by("path"))
    assert left.files(TABLE).adds.equals(held.files(TABLE).adds)
    for said in predicates(random.Random(seed), count):
        predicate = _core.Predicate.from_json(json.dumps(said), TABLE)
        for skipping in (True, False):
            expected = held.files(TABLE, predicate, skipping=skipping)
            found = left.files(TABLE, predicate, skipping=skipping)
            assert found.adds.equals(expected.adds), said
            assert (found.total_files, found.total_bytes) == (expected.total_files, expected.total_bytes)
            assert (
                found.skipped_by_partition + found.skipped_by_statistics
                == found.total_files - found.adds.num_rows
            )


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("as_struct", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_checkpoint(as_json: bool, as_struct: bool, seed: int) -> None:
    if not as_json and not as_struct:
        return
    store = log_of(400, seed)
    with_checkpoint(store, 0, stats_as_json=as_json, stats_as_struct=as_struct)
    parts, commits = [checkpoint_path(0)], [(1, commit_path(1))]
    held = _core.Snapshot.load(store, 1, parts, commits)
    left = _core.Snapshot.load(store, 1, parts, commits, eager_limit=0)
    same(held, left, seed, 60)


@pytest.mark.parametrize("seed", range(3))
def test_commits(seed: int) -> None:
    store = log_of(300, seed)
    commits = [(version, commit_path(version)) for version in (0, 1)]
    same(
        _core.Snapshot.load(store, 1, [], commits),
        _core.Snapshot.load(store, 1, [], commits, eager_limit=0),
        seed,
        30,
    )


def test_more_files_than_a_slice_holds() -> None:
    """Several slices of one row group, of another writer, and several blocks of a commit."""
    store = log_of(MORE_THAN_A_SLICE)
    commits = [(version, commit_path(version)) for version in (0, 1)]
    held = _core.Snapshot.load(store, 1, [], commits)
    same(held, _core.Snapshot.load(store, 1, [], commits, eager_limit=0), 1, 2)
    with_checkpoint(store, 0)
    whole = pq.read_table(io.BytesIO(store.get(checkpoint_path(0))))
    out = io.BytesIO()
    pq.write_table(whole, out, row_group_size=whole.num_rows)
    store.put(checkpoint_path(0), out.getvalue())
    left = _core.Snapshot.load(store, 1, [checkpoint_path(0)], commits[1:], eager_limit=0)
    for said in predicates(random.Random(3), 6):
        predicate = _core.Predicate.from_json(json.dumps(said), TABLE)
        assert left.files(TABLE, predicate).adds["path"].equals(held.files(TABLE, predicate).adds["path"]), (
            said
        )
    assert (left.file_count, left.size_in_bytes, left.num_records) == (
        held.file_count,
        held.size_in_bytes,
        held.num_records,
    )


@pytest.mark.parametrize("size", [(4 << 20) - 100, 4 << 20, (4 << 20) + 100_000, 9 << 20])
def test_lines_across_blocks(size: int) -> None:
    """Lines that end at, begin at and reach over the borders of what is read at once."""
    store = create(memory_store()).store
    line = json.dumps(
        {
            "add": {
                "path": "a",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
                "tags": {"t": ""},
            }
        }
    )
    lines = [
        line.replace('"a"', f'"{name}"').replace('{"t": ""}', json.dumps({"t": name * count}))
        for name, count in zip("abcdef", [size, 1] * 3, strict=True)
    ]
    for data in ("\n".join(lines), "\n".join(lines) + "\n", "\n\n".join(lines[::-1])):
        store.put(commit_path(1), data.encode())
        snapshots = [
            _core.Snapshot.load(
                store, 1, [], [(0, commit_path(0)), (1, commit_path(1))], eager_limit=eager_limit
            )
            for eager_limit in (None, 0)
        ]
        tables = [each.files(_core.TableSchema(SCHEMA, [], "none")).adds for each in snapshots]
        assert tables[1].num_rows == 6
        assert tables[1].equals(tables[0])


# --- statistics of other writers


def rewritten(store: Store, change: Any) -> _core.Snapshot:
    """Returns the checkpoint of version 0 with its `add` column changed."""
    whole = pq.read_table(io.BytesIO(store.get(checkpoint_path(0))))
    rows = change(whole["add"].combine_chunks())
    out = io.BytesIO()
    pq.write_table(whole.set_column(whole.schema.get_field_index("add"), "add", rows), out)
    store.put(checkpoint_path(0), out.getvalue())
    return _core.Snapshot.load(store, 0, [checkpoint_path(0)], [], eager_limit=0)


def changed(rows: pa.StructArray, path: list[str], value: Any) -> pa.StructArray:
    """Returns a struct with another child at a path."""
    name, *rest = path
    at = rows.type.get_field_index(name)
    children, fields = [rows.field(each) for each in range(rows.type.num_fields)], list(rows.type)
    children[at] = changed(children[at], rest, value) if rest else value(children[at])
    fields[at] = pa.field(name, children[at].type)
    return pa.StructArray.from_arrays(children, fields=fields, mask=rows.is_null())


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("i", lambda column: column.cast(pa.int32())),
        ("i", lambda column: column.cast(pa.string())),
        ("b", lambda column: column.cast(pa.int64())),
        ("x", lambda column: column.cast(pa.float32())),
        ("t", lambda column: column.cast(pa.timestamp("ns", "UTC"), safe=False)),
        ("u", lambda column: column.cast(pa.timestamp("ms"), safe=False)),
        ("n", lambda column: column.cast(pa.decimal128(30, 2))),
        ("i", lambda column: pa.nulls(len(column), pa.int64())),
        ("x", lambda column: pa.array([float("nan")] * len(column))),
    ],
)
def test_typed_statistics_of_another_type_decide_nothing_wrong(name: str, other: Any) -> None:
    """Also of less than all files: what is typed is only ever used to leave files out."""
    store = log_of(200)
    with_checkpoint(store, 0)
    held = _core.Snapshot.load(store, 0, [checkpoint_path(0)], [])
    expected = [
        held.files(TABLE, _core.Predicate.from_json(json.dumps(said), TABLE)).adds
        for said in predicates(random.Random(7), 80)
    ]
    for side in ("minValues", "maxValues"):
        left = rewritten(store, lambda rows, side=side: changed(rows, ["stats_parsed", side, name], other))
        for said, adds in zip(predicates(random.Random(7), 80), expected, strict=True):
            assert left.files(TABLE, _core.Predicate.from_json(json.dumps(said), TABLE)).adds.equals(adds), (
                said
            )


def test_row_groups_that_cannot_match_are_not_decoded() -> None:
    """The pages of these row groups are damaged, which is an error only if they are read."""
    store = memory_store()
    snapshot = create(store)
    for number in range(4):
        snapshot = append(
            snapshot, *(f"{number}-{each}.parquet" for each in range(10)), ids=(number * 10, number * 10 + 9)
        )
    version = snapshot.version
    snapshot.core.write_checkpoint(
        store, checkpoint_path(version), min_deletion_timestamp=0, schema=snapshot.table_schema
    )
    whole = pq.read_table(io.BytesIO(store.get(checkpoint_path(version))))
    out = io.BytesIO()
    pq.write_table(whole, out, row_group_size=11, compression="none")
    data = bytearray(out.getvalue())
    footer = pq.ParquetFile(io.BytesIO(out.getvalue())).metadata
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    for group in groups[2:]:
        chunk = next(
            group.column(each)
            for each in range(group.num_columns)
            if group.column(each).path_in_schema == "add.stats"
        )
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    store.put(checkpoint_path(version), bytes(data))
    core = _core.Snapshot.load(store, version, [checkpoint_path(version)], [], eager_limit=0)
    near = _core.Predicate.from_json('{"op": "<", "column": ["id"], "literal": "5"}', snapshot.table_schema)
    assert sorted(core.files(snapshot.table_schema, near).adds["path"].to_pylist()) == [
        f"0-{each}.parquet" for each in range(10)
    ]
    with pytest.raises(ProtocolError, match=r"checkpoint\.parquet"):
        core.files(snapshot.table_schema)


# --- files of the log that go away or are replaced


def opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    monkeypatch.setattr("deltaic.log.snapshot.READ_AT_ONCE", 0)
    monkeypatch.setattr("deltaic.log.snapshot.OPENED_AT_ONCE", 0)
    snapshot = Snapshot.load(store)
    assert snapshot.core.file_count > 0
    return snapshot


def small_log() -> Snapshot:
    snapshot = create(memory_store())
    for number in range(3):
        snapshot = append(snapshot, f"{number}.parquet", ids=(number, number))
    return snapshot


def test_a_checkpoint_that_was_deleted_gives_way_to_the_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    snapshot = opened(store, monkeypatch)
    store.delete([checkpoint_path(3)])
    assert paths(snapshot) == ["0.parquet", "1.parquet", "2.parquet"]
    assert paths(snapshot) == ["0.parquet", "1.parquet", "2.parquet"], "and stays with them"
    assert snapshot.core.num_records == 30


def test_commits_that_were_cleaned_away_give_way_to_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = small_log()
    snapshot = opened(before.store, monkeypatch)
    before.core.write_checkpoint(
        before.store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    before.store.delete([commit_path(version) for version in range(3)])
    assert paths(snapshot) == ["0.parquet", "1.parquet", "2.parquet"]


def test_a_checkpoint_that_was_replaced_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    snapshot = opened(store, monkeypatch)
    before.core.write_checkpoint(store, checkpoint_path(3), min_deletion_timestamp=0, stats_as_struct=False)
    assert paths(snapshot) == ["0.parquet", "1.parquet", "2.parquet"]


def test_what_is_gone_for_good_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    store.delete([commit_path(version) for version in range(3)])
    snapshot = opened(store, monkeypatch)
    store.delete([checkpoint_path(3)])
    with pytest.raises(ProtocolError, match="the log is truncated"):
        snapshot.files()
    core = _core.Snapshot.load(
        small_log().store, 3, [], [(version, commit_path(version)) for version in range(4)], eager_limit=0
    )
    assert core.file_count == 3, "without a way to build it again"


def test_a_version_that_advances_needs_no_file_of_the_log_but_the_new_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    snapshot = opened(store, monkeypatch)
    after = append(before, "3.parquet", ids=(3, 3))
    store.delete([commit_path(version) for version in range(1, 4)])
    kept = store.get(checkpoint_path(3))
    store.delete([checkpoint_path(3)])
    advanced = snapshot.advance(4)
    assert (advanced.version, advanced.protocol, advanced.metadata) == (4, after.protocol, after.metadata)
    # The checkpoint is read once for the live files; from then on the new commits are all that is needed.
    store.put(checkpoint_path(3), kept)
    advanced = opened(store, monkeypatch)
    assert (advanced.core.file_count, advanced.core.size_in_bytes) == (
        after.core.file_count,
        after.core.size_in_bytes,
    )
    last = append(after, "4.parquet", ids=(4, 4))
    store.delete([checkpoint_path(3), commit_path(4)])
    advanced = advanced.advance(5)
    assert (advanced.core.file_count, advanced.core.size_in_bytes) == (
        last.core.file_count,
        last.core.size_in_bytes,
    )


def test_commits_that_wait_are_taken_as_if_they_came_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files added again, removed, removed and added again, after a checkpoint of which no key was read
    yet."""
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    lines = [
        [{"remove": {"path": "0.parquet", "deletionTimestamp": 5, "dataChange": True}}],
        [
            {
                "add": {
                    "path": "0.parquet",
                    "partitionValues": {},
                    "size": 7,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            }
        ],
        [{"commitInfo": {"operation": "NOTHING"}}],
        [
            {"remove": {"path": "1.parquet", "deletionTimestamp": 6, "dataChange": True}},
            {"remove": {"path": "gone.parquet", "deletionTimestamp": 6, "dataChange": True}},
            {
                "add": {
                    "path": "9.parquet",
                    "partitionValues": {},
                    "size": 9,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            },
        ],
        [
            {
                "add": {
                    "path": "2.parquet",
                    "partitionValues": {},
                    "size": 11,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            }
        ],
    ]
    waiting = opened_without_a_look(store, monkeypatch)
    for version, actions in enumerate(lines, 4):
        store.put(commit_path(version), "".join(json.dumps(action) + "\n" for action in actions).encode())
        waiting = waiting.advance(version)
        commits = [(each, commit_path(each)) for each in range(4, version + 1)]
        plain = _core.Snapshot.load(store, version, [checkpoint_path(3)], commits)
        asked = opened_without_a_look(store, monkeypatch).core
        for found in (asked, waiting.core if version == 8 else asked):
            assert (found.file_count, found.size_in_bytes) == (plain.file_count, plain.size_in_bytes)
            assert found.files(waiting.table_schema).adds.equals(plain.files(waiting.table_schema).adds)
            assert found.tombstones().sort_by("path").equals(plain.tombstones().sort_by("path"))


def opened_without_a_look(store: Store, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    monkeypatch.setattr("deltaic.log.snapshot.READ_AT_ONCE", 0)
    monkeypatch.setattr("deltaic.log.snapshot.OPENED_AT_ONCE", 0)
    return Snapshot.load(store)


@pytest.mark.parametrize("question", ["files", "file_count"])
def test_a_checkpoint_whose_paths_cannot_be_read_gives_way_to_the_commits(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(2), min_deletion_timestamp=0, schema=before.table_schema
    )
    rows = pq.read_table(io.BytesIO(store.get(checkpoint_path(2)))).to_pylist()
    row = max(number for number, each in enumerate(rows) if each["add"] is not None)
    broken_at(store, 2, row, lambda action: action.update(path=""))
    snapshot = opened_without_a_look(store, monkeypatch)
    if question == "files":
        assert paths(snapshot) == ["0.parquet", "1.parquet", "2.parquet"]
    assert snapshot.core.file_count == 3
    store.delete([commit_path(0)])
    again = opened_without_a_look(store, monkeypatch)
    with pytest.raises(ProtocolError, match="an empty path"):
        again.files()
    assert paths(snapshot) == ["0.parquet", "1.parquet", "2.parquet"], "what was read before stays"


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_of_a_checkpoint_that_are_no_files_are_found_wherever_they_are(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers put such actions at any position; the statistics of a row group have their number, but
    not their positions."""
    store = memory_store()
    snapshot = create(store)
    for number in range(3):
        snapshot = append(
            snapshot, *(f"{number}-{each}.parquet" for each in range(900)), ids=(number, number)
        )
    actions = [{"txn": {"appId": f"app-{number}", "version": number}} for number in range(3)]
    actions.append({"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}})
    store.put(commit_path(4), "".join(json.dumps(action) + "\n" for action in actions).encode())
    version = 4
    snapshot = snapshot.advance(version)
    snapshot.core.write_checkpoint(
        store, checkpoint_path(version), min_deletion_timestamp=0, schema=snapshot.table_schema
    )
    whole = pq.read_table(io.BytesIO(store.get(checkpoint_path(version))))
    order = list(range(whole.num_rows))
    random.Random(seed).shuffle(order)
    out = io.BytesIO()
    pq.write_table(whole.take(order), out, row_group_size=2000)
    store.put(checkpoint_path(version), out.getvalue())
    left = opened_without_a_look(store, monkeypatch)
    assert (left.protocol, left.metadata) == (snapshot.protocol, snapshot.metadata)
    assert left.core.transactions == snapshot.core.transactions
    assert json.loads(left.core.domains["d"]) == actions[-1]["domainMetadata"]
    assert left.core.file_count == snapshot.core.file_count == 2700


# --- what is wrong


@pytest.mark.parametrize("spelled", ["0%2eparquet", "./0.parquet", "{location}/0.parquet"])
@pytest.mark.parametrize("eager_limit", [None, 0])
def test_a_checkpoint_that_names_a_file_twice_in_two_spellings(spelled: str, eager_limit: int | None) -> None:
    """Its rows would be read twice."""
    before = small_log()
    store = before.store
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    core = _core.Snapshot.load(store, 3, [checkpoint_path(3)], [], eager_limit=eager_limit)
    assert core.files(before.table_schema).live_twice is None
    rows = pq.read_table(io.BytesIO(store.get(checkpoint_path(3)))).to_pylist()
    row = next(
        number
        for number, each in enumerate(rows)
        if each["add"] is not None and each["add"]["path"] == "1.parquet"
    )
    broken_at(store, 3, row, lambda action: action.update(path=spelled.format(location=store.location)))
    core = _core.Snapshot.load(store, 3, [checkpoint_path(3)], [], eager_limit=eager_limit)
    assert core.files(before.table_schema).live_twice is not None


def broken_at(store: Store, version: int, row: int, change: Any) -> None:
    whole = pq.read_table(io.BytesIO(store.get(checkpoint_path(version)))).to_pylist()
    change(whole[row]["add"])
    schema = pq.read_schema(io.BytesIO(store.get(checkpoint_path(version))))
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(whole, schema), out)
    store.put(checkpoint_path(version), out.getvalue())


@pytest.mark.parametrize(
    ("change", "found", "expected", "when"),
    [
        ({"path": ""}, "an empty path", "a path", "asked"),
        ({"size": -1}, "size -1", "a size of 0 or more", "opened"),
        ({"size": None}, "no such field", "size", "opened"),
        ({"partitionValues": None}, "no such field", "partitionValues", "asked"),
    ],
)
def test_a_malformed_action_is_named_with_its_row(
    change: dict[str, Any], found: str, expected: str, when: str
) -> None:
    snapshot = small_log()
    store = snapshot.store
    snapshot.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=snapshot.table_schema
    )
    rows = pq.read_table(io.BytesIO(store.get(checkpoint_path(3)))).to_pylist()
    row = max(number for number, each in enumerate(rows) if each["add"] is not None)
    broken_at(store, 3, row, lambda action: action.update(change))

    def load() -> _core.Snapshot:
        return _core.Snapshot.load(store, 3, [checkpoint_path(3)], [], eager_limit=0)

    if when == "opened":
        with pytest.raises(ProtocolError) as caught:
            load()
    else:
        core = load()
        with pytest.raises(ProtocolError) as caught:
            core.files(snapshot.table_schema)
    assert (caught.value.where, caught.value.found, caught.value.expected) == (
        f"{checkpoint_path(3)} row {row}",
        found,
        expected,
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            '{"add":{"path":"x","partitionValues":{},"size":-1,"modificationTime":1,"dataChange":true}}',
            "size -1",
        ),
        (
            (
                '{"add":{"path":"0.parquet","partitionValues":{},"size":1,"modificationTime":1,'
                '"dataChange":true}}'
            ),
            "0.parquet",
        ),
        (
            (
                '{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,'
                '"stats":3}}'
            ),
            "invalid type",
        ),
        ('{"add":', "EOF"),
        ("\xff", "UTF-8"),
    ],
)
def test_a_malformed_line_is_named_as_it_is_in_a_small_commit(line: str, found: str) -> None:
    snapshot = create(memory_store())
    store = snapshot.store
    first = (
        '{"add":{"path":"0.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}'
    )
    store.put(commit_path(1), f"{first}\n{line}\n".encode("latin-1"))
    said = []
    for eager_limit in (None, 0):
        with pytest.raises(ProtocolError) as caught:
            _core.Snapshot.load(
                store, 1, [], [(0, commit_path(0)), (1, commit_path(1))], eager_limit=eager_limit
            )
        said.append((caught.value.where, str(caught.value)))
    assert said[0] == said[1]
    assert said[0][0].startswith(commit_path(1))
    assert found in said[0][1]


# --- a version that is known already


def test_a_large_log_with_the_same_files_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = small_log()
    store = before.store
    assert Snapshot.load(store, known=Snapshot.load(store)).core is not before.core, "a small one is"
    before.core.write_checkpoint(
        store, checkpoint_path(3), min_deletion_timestamp=0, schema=before.table_schema
    )
    known = opened(store, monkeypatch)
    assert Snapshot.load(store, known=known) is known
    assert Snapshot.load(store, version=3, known=known) is known
    assert paths(Snapshot.load(store, version=2, known=known)) == ["0.parquet", "1.parquet"]
    after = append(before, "3.parquet", ids=(3, 3))
    assert paths(Snapshot.load(store, known=known)) == paths(after)
    assert Snapshot.load(store, version=3, known=known) is known


def test_a_large_log_whose_file_was_written_anew_is_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(str(tmp_path))
    snapshot = append(create(store), "0.parquet", ids=(0, 0))
    snapshot.core.write_checkpoint(
        store, checkpoint_path(1), min_deletion_timestamp=0, schema=snapshot.table_schema
    )
    known = opened(store, monkeypatch)
    file = tmp_path / checkpoint_path(1)
    seconds = file.stat().st_mtime + 1
    os.utime(file, (seconds, seconds))
    assert Snapshot.load(store, known=known) is not known
