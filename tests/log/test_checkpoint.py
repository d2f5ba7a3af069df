"""Checkpoints and `_last_checkpoint`."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
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
    assert (
        again.files().adds.drop_columns("dataChange").equals(snapshot.files().adds.drop_columns("dataChange"))
    )
    assert (
        again.core.tombstones()
        .drop_columns("dataChange")
        .equals(snapshot.core.tombstones().drop_columns("dataChange"))
    )
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
    properties = {
        "delta.checkpoint.writeStatsAsJson": as_json,
        "delta.checkpoint.writeStatsAsStruct": as_struct,
    }
    snapshot = table(2, **properties)
    checkpoint.write(snapshot, now=0)
    schema = pq.read_schema(_file(snapshot, checkpoint_path(2)))
    names = {
        schema.field("add").type.field(index).name for index in range(schema.field("add").type.num_fields)
    }
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
        """The core's snapshot, except that the file differs from its description."""

        def __init__(self, core: object) -> None:
            self._core = core

        def __getattr__(self, name: str) -> object:
            return getattr(self._core, name)

        def write_checkpoint(self, *args: object, **options: object) -> dict[str, int]:
            written: dict[str, int] = self._core.write_checkpoint(  # type: ignore[attr-defined]
                *args, **options
            )
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


def rich_table(folder: Path, interval: int) -> deltaic.DeltaTable:
    """Partitions with null, nested columns, vectors, removed files, a txn: twelve commits."""
    properties = {"delta.checkpointInterval": interval}
    table = deltaic.DeltaTable.create(
        folder, "id bigint, month string, s struct<a: int, b: array<string>>, at timestamp, d decimal(20,3)",
        partition_by="month", properties=properties,
    )  # fmt: skip
    for number in range(8):
        data = pa.table(
            {
                "id": pa.array([number * 2, number * 2 + 1], pa.int64()),
                "month": [None if number % 3 == 0 else f"m {number % 3}/é"] * 2,
                "s": pa.array(
                    [{"a": number, "b": ["x", None]}, None],
                    pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
                ),
                "at": pa.array(
                    [datetime(2026, 1, 1 + number, tzinfo=timezone.utc), None], pa.timestamp("us", tz="UTC")
                ),
                "d": pa.array([Decimal("1.500"), Decimal("-99999999999999999.001")], pa.decimal128(20, 3)),
            }
        )
        deltaic.write(table, data, mode="append", commit=CommitOptions(transactions={"job": number}))
    table.delete("id IN (3, 6)")
    table.delete("id IN (10, 11)")
    table.update({"d": "0"}, "id = 0")
    return table


def drop_commits(folder: Path, before: int) -> None:
    for version in range(before):
        (folder / f"_delta_log/{version:020}.json").unlink()


@pytest.mark.parametrize("interval", [11, 4])
def test_deltalake_reads_what_a_commit_left(tmp_path: Path, interval: int) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = rich_table(tmp_path, interval)
    last = table.version // interval * interval
    assert json.loads((tmp_path / "_delta_log/_last_checkpoint").read_text())["version"] == last
    expected = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in expected] == [number for number in range(16) if number not in (3, 6, 10, 11)]
    drop_commits(tmp_path, last)
    theirs = deltalake.DeltaTable(str(tmp_path))
    assert theirs.version() == table.version
    found = pa.table(
        deltalake.QueryBuilder().register("t", theirs).execute("SELECT * FROM t").read_all()
    ).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected
    again = deltaic.DeltaTable(tmp_path)
    assert sorted(again.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    assert again.transaction_version("job") == 7
    assert again.files("id > 13").count() == 1  # statistics came along


def test_we_read_deltalakes_checkpoints(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = rich_table(tmp_path, 1000)
    expected = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    drop_commits(tmp_path, table.version)
    again = deltaic.DeltaTable(tmp_path)
    assert sorted(again.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    again.delete("id = 0")
    again.checkpoint()
    assert sorted(deltaic.DeltaTable(tmp_path).scan().to_arrow()["id"].to_pylist()) == [
        row["id"] for row in expected if row["id"] != 0
    ]


def test_a_malformed_property_of_another_writer_does_not_fail_a_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = deltaic.write(tmp_path, pa.table({"id": [1]}))
    path = tmp_path / "_delta_log/00000000000000000000.json"
    path.write_text(
        path.read_text().replace(
            '"delta.enableDeletionVectors":',
            '"delta.checkpointInterval":"often","delta.enableDeletionVectors":',
        )
    )
    path.with_suffix(".crc").unlink()
    written = deltaic.write(table.location, pa.table({"id": [2]}), mode="append")
    assert (written.version, sorted(written.scan().to_arrow()["id"].to_pylist())) == (1, [1, 2])
    assert "the checkpoint of version 1 failed" in caplog.text
