"""Checkpoints and `_last_checkpoint`."""

from __future__ import annotations

import json
import threading

import pyarrow.parquet as pq
import pytest

from deltaic import _core
from deltaic.errors import ProtocolError
from deltaic.log import checkpoint
from deltaic.log.segment import LAST_CHECKPOINT, checkpoint_path, commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction
from log_actions import adds, append, create, memory_store, paths, remove


def table(versions: int, **properties: str) -> Snapshot:
    snapshot = create(memory_store(), properties={"delta.checkpointInterval": "1000", **properties})
    for version in range(1, versions + 1):
        snapshot = append(snapshot, f"{version}.parquet", ids=(version, version))
    return snapshot


def hint(snapshot: Snapshot) -> int:
    return int(json.loads(snapshot.store.get(LAST_CHECKPOINT))["version"])


def test_the_hint_moves_forward_only() -> None:
    snapshot = table(3)
    checkpoint.write(snapshot, now=0)
    checkpoint.write(snapshot.at(1), now=0)
    assert hint(snapshot) == 3
    newer = append(snapshot, "4.parquet")
    checkpoint.write(newer, now=0)
    assert hint(snapshot) == 4


def test_a_hint_at_nothing_is_replaced() -> None:
    snapshot = table(2)
    snapshot.store.put(LAST_CHECKPOINT, b'{"version":99,"size":1}')
    checkpoint.write(snapshot, now=0)
    assert hint(snapshot) == 2


def test_checkpoint_equals_replay() -> None:
    snapshot = append(table(4), "x.parquet", options=CommitOptions(transactions={"app": 7}))
    transaction = Transaction(snapshot, "DELETE", clock=lambda: 5_000)
    remove(transaction, snapshot, "2.parquet")
    snapshot = transaction.commit()
    checkpoint.write(snapshot, now=0)
    for version in range(snapshot.version + 1):
        snapshot.store.delete([commit_path(version)])
    again = Snapshot.load(snapshot.store)
    # In a checkpoint no action changes data any more (PROTOCOL.md: Checkpoints).
    assert again.files().adds.drop_columns("dataChange").equals(snapshot.files().adds.drop_columns("dataChange"))
    assert again.core.tombstones().drop_columns("dataChange").equals(snapshot.core.tombstones().drop_columns("dataChange"))
    assert again.core.transactions == snapshot.core.transactions
    assert (again.metadata, again.protocol) == (snapshot.metadata, snapshot.protocol)
    assert paths(append(again, "more.parquet")) == sorted([*paths(snapshot), "more.parquet"])


def test_expired_tombstones_are_dropped() -> None:
    week = 7 * 86_400_000
    snapshot = table(2, **{"delta.deletedFileRetentionDuration": "interval 7 days"})
    for name, clock in (("1.parquet", 1_000), ("2.parquet", 2_000)):
        transaction = Transaction(snapshot, "DELETE")
        live = snapshot.files().adds
        transaction.remove(_core.removes_of(live.filter(_equal(live, name)), clock))
        snapshot = transaction.commit()
    # As delta-spark: kept is what was deleted after the limit, not at it.
    assert checkpoint.write(snapshot, now=1_000 + week)["num_of_add_files"] == 0
    snapshot.store.delete([commit_path(version) for version in range(snapshot.version + 1)])
    assert Snapshot.load(snapshot.store).core.tombstones()["path"].to_pylist() == ["2.parquet"]


def _equal(actions: object, name: str) -> object:
    import pyarrow.compute as pc

    return pc.equal(actions["path"], name)  # type: ignore[index]


@pytest.mark.parametrize(("as_json", "as_struct"), [("true", "true"), ("true", "false"), ("false", "true")])
def test_statistics_as_the_properties_say(as_json: str, as_struct: str) -> None:
    properties = {"delta.checkpoint.writeStatsAsJson": as_json, "delta.checkpoint.writeStatsAsStruct": as_struct}
    snapshot = table(2, **properties)
    checkpoint.write(snapshot, now=0)
    schema = pq.read_schema(_file(snapshot, checkpoint_path(2)))
    names = {schema.field("add").type.field(index).name for index in range(schema.field("add").type.num_fields)}
    assert ("stats" in names, "stats_parsed" in names) == (as_json == "true", as_struct == "true")
    snapshot.store.delete([commit_path(version) for version in range(3)])
    assert Snapshot.load(snapshot.store).core.num_records == 20


def _file(snapshot: Snapshot, path: str) -> object:
    import io

    return io.BytesIO(snapshot.store.get(path))


def test_one_checkpoint_of_a_table_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = table(1, **{"delta.checkpointInterval": "1"})
    inside, release, written = threading.Event(), threading.Event(), []

    def slow(each: Snapshot, *, now: int) -> dict[str, int]:
        written.append(each.version)
        inside.set()
        assert release.wait(10)
        return {}

    monkeypatch.setattr(checkpoint, "write", slow)
    first = threading.Thread(target=append, args=(snapshot, "a.parquet"))
    first.start()
    assert inside.wait(10)
    second = append(snapshot, "b.parquet")  # does not wait for the other
    release.set()
    first.join()
    assert written == [2]
    assert second.version == 3


def test_a_checkpoint_that_arrives_short_is_an_error() -> None:
    class Short:
        """The core's snapshot, but the file is not what it says."""

        def __init__(self, core: object) -> None:
            self._core = core

        def __getattr__(self, name: str) -> object:
            return getattr(self._core, name)

        def write_checkpoint(self, *args: object, **options: object) -> dict[str, int]:
            written: dict[str, int] = self._core.write_checkpoint(*args, **options)  # type: ignore[attr-defined]
            return {**written, "size_in_bytes": written["size_in_bytes"] + 1}

    snapshot = table(1)
    snapshot.core = Short(snapshot.core)  # type: ignore[assignment]
    with pytest.raises(ProtocolError, match="the checkpoint is not what was written"):
        checkpoint.write(snapshot, now=0)
    assert snapshot.store.head(LAST_CHECKPOINT) is None


def test_rows_in_the_checkpoint() -> None:
    snapshot = table(3)
    written = checkpoint.write(snapshot, now=0)
    found = pq.read_table(_file(snapshot, checkpoint_path(3)))
    assert found.num_rows == written["size"] == 5
    assert found["add"].null_count == 2
    assert adds("x.parquet").num_rows == 1
