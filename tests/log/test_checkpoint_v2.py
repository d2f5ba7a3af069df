"""V2 checkpoints: PROTOCOL.md, V2 Spec, Sidecar Files. Actions that did not change are not written again."""

from __future__ import annotations

import io
import json
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import _core
from deltaic._core import Store
from deltaic.errors import DeltaError, ProtocolError, UnsupportedFeatureError
from deltaic.log import checkpoint, cleanup, hint
from deltaic.log.segment import LAST_CHECKPOINT, checkpoint_path, commit_path, list_log
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.transaction.transaction import Transaction
from log_actions import append, create, memory_store, paths
from numbered_store import Fault, NumberedStore

SIDECARS = "_delta_log/_sidecars"
V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000"}


def table(files: int, store: Store | None = None, **properties: str) -> Snapshot:
    """Makes a table by one commit of `files` files."""
    snapshot = create(store or memory_store(), properties={**V2, **properties})
    return append(snapshot, *(f"{number}.parquet" for number in range(files)), ids=(1, 2))


def top(snapshot: Snapshot, version: int | None = None) -> list[dict[str, Any]]:
    """Lines of the checkpoint that is there for the version."""
    wanted = snapshot.version if version is None else version
    found = [each for each in list_log(snapshot.store).checkpoints if each.version == wanted]
    assert len(found) == 1
    return [json.loads(line) for line in snapshot.store.get(found[0].parts[0]).splitlines()]


def sidecars(snapshot: Snapshot, version: int | None = None) -> list[str]:
    return [line["sidecar"]["path"] for line in top(snapshot, version) if "sidecar" in line]


def in_folder(store: Store) -> set[str]:
    return {path.rsplit("/", 1)[-1] for path in store.list_from(SIDECARS).column("path").to_pylist()}


def without_commits(snapshot: Snapshot) -> Snapshot:
    """Returns the version, from its checkpoint alone."""
    snapshot.store.delete([commit_path(version) for version in range(snapshot.version + 1)])
    return Snapshot.load(snapshot.store)


def delete(snapshot: Snapshot, *names: str, at: int = 1_700_000_000_000) -> Snapshot:
    transaction = Transaction(snapshot, "DELETE")
    live = snapshot.files().adds
    chosen = live.filter(pa.compute.is_in(live["path"], value_set=pa.array(names)))
    transaction.remove(_core.removes_of(chosen, at, True))
    return transaction.commit()


def test_the_protocol_of_a_table_with_this_policy() -> None:
    snapshot = table(1)
    assert snapshot.protocol.reader_features == ("v2Checkpoint",)
    assert "v2Checkpoint" in (snapshot.protocol.writer_features or ())


def test_its_parts() -> None:
    snapshot = delete(
        append(table(3), "x.parquet", options=CommitOptions(transactions={"app": 7})), "1.parquet"
    )
    written = checkpoint.write(snapshot, now=0)
    lines = top(snapshot)
    assert [next(iter(line)) for line in lines] == [
        "checkpointMetadata",
        "sidecar",
        "sidecar",
        "protocol",
        "metaData",
        "txn",
    ]
    assert lines[0]["checkpointMetadata"]["version"] == snapshot.version
    assert {line["sidecar"]["path"] for line in lines[1:3]} == in_folder(snapshot.store)
    rows = [
        pq.read_table(io.BytesIO(snapshot.store.get(f"{SIDECARS}/{name}"))) for name in sidecars(snapshot)
    ]
    for each, line in zip(rows, lines[1:3], strict=True):
        assert each.column_names == ["add", "remove"]
        assert (
            line["sidecar"]["sizeInBytes"] == snapshot.store.head(f"{SIDECARS}/{line['sidecar']['path']}")[0]
        )
    assert sorted(
        path for each in rows for path in each["add"].drop_null().combine_chunks().field("path").to_pylist()
    ) == paths(snapshot)
    # As delta-spark counts: every line and every row.
    assert written["size"] == 6 + 4
    again = without_commits(snapshot)
    assert (
        again.files().adds.drop_columns("dataChange").equals(snapshot.files().adds.drop_columns("dataChange"))
    )
    assert again.core.tombstones()["path"].to_pylist() == ["1.parquet"]
    assert again.core.transactions == snapshot.core.transactions
    assert (again.metadata, again.protocol) == (snapshot.metadata, snapshot.protocol)


def test_the_hint_carries_it() -> None:
    snapshot = table(3)
    written = checkpoint.write(snapshot, now=5)
    found = json.loads(snapshot.store.get(LAST_CHECKPOINT))
    assert found["checksum"] == hint.checksum(json.dumps(found))
    assert (found["version"], found["size"], found["numOfAddFiles"]) == (1, written["size"], 3)
    described = found["v2Checkpoint"]
    lines = top(snapshot)
    assert described["sidecarFiles"] == [line["sidecar"] for line in lines if "sidecar" in line]
    assert described["nonFileActions"] == [line for line in lines if "sidecar" not in line]
    assert f"_delta_log/{described['path']}" == list_log(snapshot.store).checkpoints[0].parts[0]
    assert found["sizeInBytes"] == described["sizeInBytes"] + sum(
        each["sizeInBytes"] for each in described["sidecarFiles"]
    )
    assert "checkpointSchema" not in found


def test_a_table_without_files_has_no_sidecars() -> None:
    snapshot = create(memory_store(), properties=V2)
    checkpoint.write(snapshot, now=0)
    assert sidecars(snapshot) == []
    assert paths(without_commits(snapshot)) == []


@pytest.mark.parametrize("reloaded", [False, True])
def test_what_did_not_change_is_named_again(reloaded: bool) -> None:
    snapshot = table(1000)
    checkpoint.write(snapshot, now=0)
    [old] = sidecars(snapshot)
    if reloaded:
        snapshot = Snapshot.load(snapshot.store)
    for number in range(100):
        snapshot = append(snapshot, f"new {number}.parquet")
    written = checkpoint.write(snapshot, now=0)
    assert written["kept_sidecars"] == 1
    names = sidecars(snapshot)
    assert names[0] == old
    assert len(names) == 2
    assert pq.read_metadata(io.BytesIO(snapshot.store.get(f"{SIDECARS}/{names[1]}"))).num_rows == 100
    assert paths(without_commits(snapshot)) == paths(snapshot)


@pytest.mark.parametrize("reloaded", [False, True])
@pytest.mark.parametrize("change", ["removed", "again", "vector"])
def test_what_changed_is_written_anew(reloaded: bool, change: str) -> None:
    snapshot = append(table(5), "a.parquet", "b.parquet")
    checkpoint.write(snapshot, now=0)
    snapshot = append(snapshot, "c.parquet")
    checkpoint.write(snapshot, now=0)
    assert len(sidecars(snapshot)) == 2
    [third] = set(sidecars(snapshot)) - set(sidecars(snapshot, 2))
    if reloaded:
        snapshot = Snapshot.load(snapshot.store)
    transaction = Transaction(snapshot, "CHANGE")
    live = snapshot.files().adds
    row = live.filter(pa.compute.equal(live["path"], "a.parquet"))
    if change == "again":
        transaction.add(row.set_column(row.schema.get_field_index("size"), "size", pa.array([7])))
    else:
        transaction.remove(_core.removes_of(row, 1_700_000_000_000, True))
    if change == "vector":
        vector = {
            "storageType": "i",
            "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "sizeInBytes": 40,
            "cardinality": 6,
        }
        field = row.schema.field("deletionVector")
        transaction.add(
            row.set_column(
                row.schema.get_field_index("deletionVector"), field, pa.array([vector], field.type)
            )
        )
    snapshot = transaction.commit()
    written = checkpoint.write(snapshot, now=0)
    assert written["kept_sidecars"] == 1
    assert sidecars(snapshot)[0] == third
    again = without_commits(snapshot)
    assert (
        again.files().adds.drop_columns("dataChange").equals(snapshot.files().adds.drop_columns("dataChange"))
    )
    assert sorted(again.core.tombstones()["path"].to_pylist()) == sorted(
        snapshot.core.tombstones()["path"].to_pylist()
    )


def test_expired_tombstones_go_with_their_sidecar() -> None:
    week = 7 * 86_400_000
    snapshot = delete(delete(table(4), "0.parquet", at=1_000), "1.parquet", at=2_000)
    checkpoint.write(snapshot, now=week)
    before = sidecars(snapshot)
    snapshot = append(snapshot, "x.parquet")
    assert checkpoint.write(snapshot, now=week)["kept_sidecars"] == 2
    assert set(before) < set(sidecars(snapshot))
    snapshot = append(snapshot, "y.parquet")
    # Not the one with the tombstones.
    assert checkpoint.write(snapshot, now=week + 1_500)["kept_sidecars"] == 2
    assert Snapshot(snapshot.store, core_of(snapshot)).core.tombstones()["path"].to_pylist() == ["1.parquet"]


def core_of(snapshot: Snapshot) -> _core.Snapshot:
    [newest] = [each for each in list_log(snapshot.store).checkpoints if each.version == snapshot.version]
    return _core.Snapshot.load(snapshot.store, snapshot.version, newest.parts, [])


def test_many_small_sidecars_become_one() -> None:
    snapshot = create(memory_store(), properties=V2)
    most = 0
    for number in range(40):
        snapshot = append(snapshot, f"{number}.parquet")
        checkpoint.write(snapshot, now=0)
        most = max(most, len(sidecars(snapshot)))
        assert paths(Snapshot(snapshot.store, core_of(snapshot))) == paths(snapshot)
    assert most <= 10


def test_many_files_are_in_several_sidecars() -> None:
    snapshot = create(memory_store(), properties=V2)
    for part in range(3):
        snapshot = append(snapshot, *(f"{part}-{number}.parquet" for number in range(30_000)))
    checkpoint.write(snapshot, now=0)
    before = sidecars(snapshot)
    assert len(before) == 2
    snapshot = Snapshot.load(snapshot.store)
    snapshot = delete(snapshot, "0-7.parquet")
    written = checkpoint.write(snapshot, now=0)
    assert written["kept_sidecars"] == 1
    assert len(set(before) & set(sidecars(snapshot))) == 1
    assert len(paths(without_commits(snapshot))) == 89_999


def test_a_sidecar_that_was_cleaned_away_is_not_named_again() -> None:
    snapshot = table(5)
    checkpoint.write(snapshot, now=0)
    snapshot.store.delete([f"{SIDECARS}/{name}" for name in sidecars(snapshot)])
    snapshot = append(snapshot, "x.parquet")
    assert checkpoint.write(snapshot, now=0)["kept_sidecars"] == 0
    assert paths(without_commits(snapshot)) == paths(snapshot)


def test_other_statistics_need_other_sidecars() -> None:
    snapshot = table(5)
    checkpoint.write(snapshot, now=0)
    transaction = Transaction(snapshot, "SET TBLPROPERTIES", {})
    configuration = {**snapshot.metadata.configuration, "delta.checkpoint.writeStatsAsJson": "false"}
    import dataclasses

    transaction.set_metadata(dataclasses.replace(snapshot.metadata, configuration=configuration))
    snapshot = transaction.commit()
    assert checkpoint.write(snapshot, now=0)["kept_sidecars"] == 0
    [name] = sidecars(snapshot)
    fields = pq.read_schema(io.BytesIO(snapshot.store.get(f"{SIDECARS}/{name}"))).field("add").type
    assert {fields.field(index).name for index in range(fields.num_fields)} & {"stats", "stats_parsed"} == {
        "stats_parsed"
    }
    assert without_commits(snapshot).core.num_records == 50


def test_by_the_old_name_in_parquet() -> None:
    snapshot = table(5)
    checkpoint.write(snapshot, now=0)
    before = in_folder(snapshot.store)
    written = checkpoint.write(snapshot, now=0, path=checkpoint_path(1))
    assert (written["kept_sidecars"], in_folder(snapshot.store)) == (1, before)
    found = pq.read_table(io.BytesIO(snapshot.store.get(checkpoint_path(1))))
    assert set(found.column_names) == {
        "txn",
        "add",
        "remove",
        "metaData",
        "protocol",
        "domainMetadata",
        "checkpointMetadata",
        "sidecar",
    }
    assert (
        found["checkpointMetadata"].drop_null().to_pylist() == [{"version": 1, "tags": []}]
        or found["checkpointMetadata"].null_count == 3
    )
    core = _core.Snapshot.load(snapshot.store, 1, [checkpoint_path(1)], [])
    assert paths(Snapshot(snapshot.store, core)) == paths(snapshot)
    assert set(_core.checkpoint_sidecars(snapshot.store, [checkpoint_path(1)])) == before


def test_sidecars_by_their_whole_path() -> None:
    store = memory_store()
    snapshot = table(3, store)
    checkpoint.write(snapshot, now=0)
    [named] = list_log(store).checkpoints
    [name] = sidecars(snapshot)
    body = store.get(named.parts[0])
    odd = "a b%.parquet"
    store.put(f"{SIDECARS}/{odd}", store.get(f"{SIDECARS}/{name}"))
    for text in (
        f"_delta_log/_sidecars/{name}",
        f"{store.location}/_delta_log/_sidecars/{name}",
        "a%20b%25.parquet",
    ):
        store.put(named.parts[0], body.replace(f'"path":"{name}"'.encode(), f'"path":"{text}"'.encode()))
        assert len(paths(Snapshot(store, _core.Snapshot.load(store, 1, named.parts, [])))) == 3
    for text in (
        "../x.parquet",
        "/etc/x.parquet",
        "_sidecars/x",
        "s3://other/x",
        "",
        "..",
        "%2e%2e/x",
        f"_delta_log/{name}",
    ):
        store.put(named.parts[0], body.replace(f'"path":"{name}"'.encode(), f'"path":"{text}"'.encode()))
        with pytest.raises(DeltaError, match="_sidecars"):
            _core.Snapshot.load(store, 1, named.parts, [])


def test_a_missing_sidecar_gives_way_to_the_commits() -> None:
    snapshot = append(table(3), "x.parquet")
    checkpoint.write(snapshot, now=0)
    snapshot.store.delete([f"{SIDECARS}/{name}" for name in sidecars(snapshot)])
    assert paths(Snapshot.load(snapshot.store)) == paths(snapshot)
    snapshot.store.delete([commit_path(0)])
    with pytest.raises((ProtocolError, FileNotFoundError), match="a file of the checkpoint is missing"):
        Snapshot.load(snapshot.store)


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_fault_at_every_call_leaves_no_half_checkpoint(fault: Fault) -> None:
    counted = NumberedStore()
    snapshot = table(3, Store.from_python(counted, "counted://table"))
    checkpoint.write(snapshot, now=0)
    snapshot = append(snapshot, "x.parquet")
    counted.reset()
    checkpoint.write(snapshot, now=0)
    calls = len(counted.calls)
    for number in range(1, calls + 1):
        snapshot = append(snapshot, f"{number}.parquet")
        counted.reset(fail_at=number, fault=fault)
        with suppress(DeltaError, OSError):
            checkpoint.write(snapshot, now=0)
        counted.reset()
        assert paths(Snapshot.load(snapshot.store)) == paths(snapshot)
        for each in list_log(snapshot.store).checkpoints:
            assert set(_core.checkpoint_sidecars(snapshot.store, each.parts)) <= in_folder(snapshot.store)
            assert (
                len(
                    paths(
                        Snapshot(
                            snapshot.store, _core.Snapshot.load(snapshot.store, each.version, each.parts, [])
                        )
                    )
                )
                > 0
            )


def test_the_log_is_cleaned_of_sidecars_that_nobody_names(tmp_path: Path) -> None:
    import os

    day = 86_400
    now = 20_000 * day + day // 2
    snapshot = table(3, Store(str(tmp_path), durable=False))
    checkpoint.write(snapshot, now=now * 1000)
    snapshot = append(delete(snapshot, "0.parquet"), "x.parquet")
    checkpoint.write(snapshot, now=now * 1000)
    kept, gone = set(sidecars(snapshot)), set(sidecars(snapshot, 1))
    fresh, stray = f"{SIDECARS}/fresh.parquet", f"{SIDECARS}/stray.parquet"
    for path in (fresh, stray):
        snapshot.store.put(path, b"x")
    for path in tmp_path.glob("_delta_log/**/*"):
        age = 1 if path.name == "fresh.parquet" else 40
        os.utime(path, (now - age * day, now - age * day))
    cleanup.clean(snapshot, now=now * 1000)
    assert in_folder(snapshot.store) == {*kept, "fresh.parquet"}
    assert not gone & kept
    # What only readers of the first form see says which feature they lack.
    assert snapshot.store.head(checkpoint_path(snapshot.version)) is not None
    assert set(_core.checkpoint_sidecars(snapshot.store, [checkpoint_path(snapshot.version)])) == kept
    assert paths(Snapshot.load(snapshot.store)) == ["1.parquet", "2.parquet", "x.parquet"]


def test_no_sidecar_goes_while_a_checkpoint_cannot_be_read(tmp_path: Path) -> None:
    import os

    snapshot = table(3, Store(str(tmp_path), durable=False))
    checkpoint.write(snapshot, now=0)
    snapshot.store.put(f"{SIDECARS}/stray.parquet", b"x")
    snapshot = append(snapshot, "x.parquet")
    snapshot.store.put(f"_delta_log/{2:020}.checkpoint.{uuid.uuid4()}.json", b"no checkpoint")
    for path in tmp_path.glob("_delta_log/**/*"):
        os.utime(path, (1, 1))
    cleanup.clean(snapshot, now=20_000 * 86_400_000)
    assert "stray.parquet" in in_folder(snapshot.store)
    assert paths(Snapshot.load(snapshot.store)) == paths(snapshot)


def test_tables_whose_protocol_this_release_may_not_write() -> None:
    store = memory_store()
    features = ["rowTracking", "unheardOf"]
    store.put(
        commit_path(0),
        json.dumps(
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}
        ).encode()
        + b"\n"
        + json.dumps(
            {
                "metaData": {
                    "id": "i",
                    "format": {"provider": "parquet"},
                    "schemaString": '{"type":"struct","fields":[]}',
                    "partitionColumns": [],
                    "configuration": {},
                }
            }
        ).encode(),
    )
    with pytest.raises(UnsupportedFeatureError, match="unheardOf"):
        checkpoint.write(Snapshot.load(store), now=0)


def test_deltalake_reads_it(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "4"}
    table = deltaic.DeltaTable.create(
        tmp_path, "id bigint, month string", partition_by="month", properties=properties
    )
    for number in range(9):
        deltaic.write(
            table, pa.table({"id": [number, number + 100], "month": [f"m {number % 3}", None]}), mode="append"
        )
    table.refresh()
    table.delete("id = 3")
    assert table.version == 10
    found = list((tmp_path / "_delta_log").glob("*.checkpoint.*.json"))
    assert len(found) == 2
    for version in range(8):
        (tmp_path / commit_path(version)).unlink()
    expected = sorted(table.scan().to_arrow()["id"].to_pylist())
    theirs = deltalake.DeltaTable(str(tmp_path))
    rows = deltalake.QueryBuilder().register("t", theirs).execute("SELECT id FROM t").read_all()
    assert sorted(pa.table(rows)["id"].to_pylist()) == expected
    assert sorted(deltaic.DeltaTable(tmp_path).scan().to_arrow()["id"].to_pylist()) == expected
