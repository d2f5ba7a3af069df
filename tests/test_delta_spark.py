"""delta-spark and deltaic on the same tables: delta-spark reads the tables of deltaic, and deltaic reads them
after delta-spark has written, feature by feature and in turns.

It needs a JVM, the jars of delta-spark and an interpreter with the PySpark that goes with them:
DELTA_SPARK_JARS=<folder of jars> DELTA_SPARK_PYTHON=<python>; without these the tests are skipped.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, _core
from deltaic.errors import ConstraintViolationError
from deltaic.protocol import row_tracking

JARS, PYTHON = os.environ.get("DELTA_SPARK_JARS"), os.environ.get("DELTA_SPARK_PYTHON")
COMMITS = int(os.environ.get("DELTA_SPARK_COMMITS", "24"))
BATCHES = int(os.environ.get("DELTA_SPARK_BATCHES", "10"))

pytestmark = pytest.mark.skipif(
    not (JARS and PYTHON), reason="DELTA_SPARK_JARS and DELTA_SPARK_PYTHON name no delta-spark"
)


class Peer:
    """One session for the whole module."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("delta_spark_peer.py")
        self.process = subprocess.Popen(
            [str(PYTHON), str(script), str(JARS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TZ": "UTC"},
        )
        assert self._next() == "ready"

    def _next(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return json.loads(line.removeprefix("ANSWER "))
        raise AssertionError("delta-spark ended")

    def _ask(self, **question: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        found = self._next()
        assert not (isinstance(found, dict) and "error" in found), found
        return found

    def sql(self, text: str) -> Any:
        return self._ask(sql=text)

    def streamed(self, source: Path, into: Path, checkpoint: Path, **options: Any) -> str:
        found: str = self._ask(
            stream=str(source), into=str(into), checkpoint=str(checkpoint), options=options
        )
        return found

    def rows(self, table: DeltaTable, *columns: str, version: int | None = None) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._ask(read=table.location, columns=list(columns), version=version)]


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    there = Peer()
    yield there
    there.process.kill()
    there.process.communicate()  # and closes the pipes


def numbers(*keys: int) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "v": pa.array([0] * len(keys), pa.int32())})


def rows_of(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in table.scan().to_arrow().to_pylist())


def ours(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    return rows_of(DeltaTable(table.location), *columns)


def tracked(table: DeltaTable) -> list[tuple[Any, ...]]:
    snapshot = DeltaTable(table.location)._snapshot
    names = row_tracking.hidden_columns(snapshot.metadata)
    assert names is not None
    found = _core.read(
        snapshot.store, snapshot.table_schema, snapshot.files().adds, ["id", "v"], row_tracking=names
    ).to_table()
    return sorted(zip(*(found[name].to_pylist() for name in ("id", "v", *names)), strict=True))


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("vectors", [True, False])
def test_row_tracking(tmp_path: Path, peer: Peer, vectors: bool, mapping: str) -> None:
    properties = {
        "delta.enableRowTracking": True,
        "delta.enableDeletionVectors": vectors,
        "delta.columnMapping.mode": mapping,
    }
    table = deltaic.write(tmp_path / "t", numbers(*range(10)), properties=properties)
    deltaic.write(table, numbers(*range(10, 20)), mode="append")
    table.update({"v": "9"}, "id in (3, 13)")
    table.delete("id = 5")
    table.merge(
        numbers(7, 100), "t.id = s.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize.compact()
    seen = ("id", "v", "_metadata.row_id", "_metadata.row_commit_version")
    before = peer.rows(table, *seen)
    assert before == tracked(table)
    for statement in (
        "UPDATE {} SET v = 77 WHERE id = 1",
        "INSERT INTO {} VALUES (500L, 1)",
        "DELETE FROM {} WHERE id = 2",
        "OPTIMIZE {}",
    ):
        peer.sql(statement.format(f"delta.`{table.location}`"))
    after = peer.rows(table, *seen)
    assert after == tracked(table)
    table.refresh()
    table.update({"v": "5"}, "id = 500")
    table.optimize.compact()
    assert {row[0]: row[2] for row in peer.rows(table, *seen)} == {row[0]: row[2] for row in after}


def test_row_ids_that_were_given_afterwards(tmp_path: Path, peer: Peer) -> None:
    table = deltaic.write(tmp_path / "t", numbers(*range(5)))
    table.delete("id = 3")
    table.alter.set_properties({"delta.enableRowTracking": True})
    assert peer.rows(table, "id", "v", "_metadata.row_id", "_metadata.row_commit_version") == tracked(table)
    peer.sql(f"ALTER TABLE delta.`{table.location}` DROP FEATURE rowTracking")
    assert len(ours(table, "id")) == 4
    table.refresh()
    table.alter.set_properties({"delta.enableRowTracking": True})
    assert len(tracked(table)) == 4


def test_clustering(tmp_path: Path, peer: Peer) -> None:
    table = deltaic.write(tmp_path / "t", numbers(*range(1000)), cluster_by=["id", "v"])
    table.optimize.cluster()
    peer.sql(f"INSERT INTO delta.`{table.location}` VALUES (5000L, 1)")
    peer.sql(f"OPTIMIZE delta.`{table.location}`")
    table.refresh()
    assert table.detail().clustering_columns == ("id", "v")
    peer.sql(f"ALTER TABLE delta.`{table.location}` CLUSTER BY (v)")
    table.refresh()
    assert table.detail().clustering_columns == ("v",)
    table.alter.cluster_by("id")
    deltaic.write(table, numbers(6000), mode="append")
    table.optimize.cluster(full=True)
    assert peer.rows(table, "count(*)") == [(1002,)]


def test_in_commit_timestamps(tmp_path: Path, peer: Peer) -> None:
    table = deltaic.write(tmp_path / "t", numbers(1))
    deltaic.write(table, numbers(2), mode="append")
    table.alter.set_properties({"delta.enableInCommitTimestamps": True})
    deltaic.write(table, numbers(3), mode="append")
    peer.sql(f"INSERT INTO delta.`{table.location}` VALUES (4L, 1)")
    table.refresh()
    deltaic.write(table, numbers(5), mode="append")
    history = {
        row[0]: datetime.fromisoformat(row[1])
        for row in peer.sql(f"DESCRIBE HISTORY delta.`{table.location}`")
    }
    assert {entry["version"]: entry["timestamp"].replace(tzinfo=None) for entry in table.history()} == history
    stamps = [entry["inCommitTimestamp"] for entry in reversed(table.history()) if entry["version"] >= 2]
    assert stamps == sorted(set(stamps))


def test_type_widening(tmp_path: Path, peer: Peer) -> None:
    data = pa.table(
        {"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32()), "d": pa.array([1.5], pa.float32())}
    )
    table = deltaic.write(tmp_path / "t", data, properties={"delta.enableTypeWidening": True})
    table.alter.change_column("v", type="bigint")
    table.alter.change_column("d", type="double")
    deltaic.write(table, pa.table({"id": [2], "v": [2**40], "d": [1e300]}), mode="append")
    assert peer.rows(table, "id", "v", "d") == [(1, 1, 1.5), (2, 2**40, 1e300)]
    peer.sql(f"ALTER TABLE delta.`{table.location}` ALTER COLUMN v TYPE DECIMAL(30, 2)")
    peer.sql(f"INSERT INTO delta.`{table.location}` VALUES (3L, 0.25, 0.5D)")
    table.refresh()
    assert [entry["toType"] for entry in table.schema.field("v").metadata["delta.typeChanges"]] == [
        "long",
        "decimal(30,2)",
    ]
    assert [str(row[1]) for row in ours(table, "id", "v")] == ["1.00", f"{2**40}.00", "0.25"]


def test_dropped_features(tmp_path: Path, peer: Peer) -> None:
    table = deltaic.write(
        tmp_path / "t", numbers(*range(10)), properties={"delta.enableDeletionVectors": True}
    )
    table.delete("id = 3")
    table.alter.drop_feature("deletionVectors")
    assert peer.rows(table, "count(*)") == peer.rows(table, "count(*)", version=1) == [(9,)]
    peer.sql(f"INSERT INTO delta.`{table.location}` VALUES (11L, 1)")
    assert len(ours(table, "id")) == 10
    mapped = deltaic.write(tmp_path / "m", numbers(1, 2), properties={"delta.columnMapping.mode": "name"})
    mapped.alter.rename_column("v", "w")
    mapped.alter.drop_feature("columnMapping")
    peer.sql(f"INSERT INTO delta.`{mapped.location}` VALUES (3L, 7)")
    assert ours(mapped, "id", "w") == peer.rows(mapped, "id", "w") == [(1, 0), (2, 0), (3, 7)]
    theirs = deltaic.write(
        tmp_path / "s", numbers(*range(10)), properties={"delta.enableDeletionVectors": True}
    )
    theirs.delete("id = 3")
    peer.sql(f"ALTER TABLE delta.`{theirs.location}` DROP FEATURE deletionVectors")
    theirs.refresh()
    assert "deletionVectors" not in (theirs.protocol.writer_features or ())
    deltaic.write(theirs, numbers(77), mode="append")
    assert len(ours(theirs, "id")) == 10


def test_variants(tmp_path: Path, peer: Peer) -> None:
    table = DeltaTable.create(
        tmp_path / "t", "id bigint, v variant", properties={"delta.enableDeletionVectors": False}
    )
    number = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    deltaic.write(table, pa.table({"id": [1, 2], "v": [number, None]}), mode="append")
    assert peer.rows(table, "id", "to_json(v)") == [(1, "5"), (2, None)]
    peer.sql(f"""INSERT INTO delta.`{table.location}` SELECT 3L, parse_json('{{"a":[1,"x"],"b":null}}')""")
    table.refresh()
    table.update({"id": "id + 10"}, "id = 3")
    table.optimize.compact()
    assert peer.rows(table, "id", "to_json(v)") == [(1, "5"), (2, None), (13, '{"a":[1,"x"],"b":null}')]


def test_defaults_and_partition_columns_in_files(tmp_path: Path, peer: Peer) -> None:
    table = DeltaTable.create(tmp_path / "t", "id bigint, v int default 5")
    deltaic.write(table, pa.table({"id": [1]}), mode="append")
    peer.sql(f"INSERT INTO delta.`{table.location}` (id) VALUES (2L)")
    assert ours(table, "id", "v") == peer.rows(table, "id", "v") == [(1, 5), (2, 5)]
    properties = {
        "delta.enableMaterializePartitionColumnsFeature": True,
        "delta.enableDeletionVectors": False,
    }
    parted = deltaic.write(
        tmp_path / "p", pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by="p", properties=properties
    )
    peer.sql(f"INSERT INTO delta.`{parted.location}` VALUES (3L, 'c')")
    assert ours(parted, "id", "p") == peer.rows(parted, "id", "p") == [(1, "a"), (2, "b"), (3, "c")]


def changed_rows(feed: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(
        zip(
            *(feed[name].to_pylist() for name in ("_commit_version", "_change_type", "id", "v", "tens")),
            strict=True,
        )
    )


def check_changes_lead_to(table: DeltaTable) -> None:
    """Applies the changes of the newest version to the version before it."""
    kinds: dict[bool, Counter[tuple[Any, ...]]] = {True: Counter(), False: Counter()}
    for _, kind, *row in changed_rows(table.changes(table.version, table.version).to_arrow()):
        kinds[kind in ("insert", "update_postimage")][tuple(row)] += 1
    before, after = (Counter(rows_of(at, "id", "v", "tens")) for at in (table.at(table.version - 1), table))
    assert not kinds[False] - before
    assert before - kinds[False] + kinds[True] == after


@pytest.mark.timeout(3600)
def test_commits_in_turns(tmp_path: Path, peer: Peer) -> None:
    """deltaic, deltalake and delta-spark change one table with a change feed, a constraint and a generated
    column in turns; each step all see the model's rows, and at the end all see the same changes."""
    deltalake = pytest.importorskip("deltalake")
    columns = "id LONG, v INT, tens LONG GENERATED ALWAYS AS (id * 10)"
    properties = {
        "delta.enableDeletionVectors": False,
        "delta.checkpointInterval": 7,
        "delta.enableChangeDataFeed": True,
    }
    table = DeltaTable.create(tmp_path / "t", columns, properties=properties)
    table.alter.add_constraints({"few": "v <= 1000000"})
    place = f"delta.`{table.location}`"
    choose, model = random.Random(5), {}
    kinds = ["append", "append", "append", "delete", "update", "update", "broken"]
    for step in range(1, COMMITS + 1):
        writer, what = choose.choice(["deltaic", "deltalake", "delta-spark"]), choose.choice(kinds)
        key = choose.choice(sorted(model) or [0])
        theirs = deltalake.DeltaTable(table.location)
        before = table.version
        if what == "append":
            model[step] = 0
            if writer == "deltaic":
                deltaic.write(table, numbers(step), mode="append")
            elif writer == "deltalake":
                deltalake.write_deltalake(theirs, numbers(step), mode="append")
            else:
                peer.sql(f"INSERT INTO {place} (id, v) VALUES ({step}L, 0)")
        elif what == "delete":
            model.pop(key, None)
            if writer == "deltaic":
                table.delete(f"id = {key}")
            elif writer == "deltalake":
                theirs.delete(f"id = {key}")
            else:
                peer.sql(f"DELETE FROM {place} WHERE id = {key}")
        elif what == "update":
            if key in model:
                model[key] = step
            if writer == "deltaic":
                table.update({"v": str(step)}, f"id = {key}")
            elif writer == "deltalake":
                theirs.update(updates={"v": f"cast({step} as int)"}, predicate=f"id = {key}")
            else:
                peer.sql(f"UPDATE {place} SET v = {step} WHERE id = {key}")
        elif key in model:
            refusal = (ConstraintViolationError, deltalake.exceptions.DeltaError, AssertionError)
            with pytest.raises(refusal, match=r"few|validation|Invariant"):  # noqa: PT012
                if writer == "deltaic":
                    table.update({"v": "1000001"}, f"id = {key}")
                elif writer == "deltalake":
                    theirs.update(updates={"v": "cast(1000001 as int)"}, predicate=f"id = {key}")
                else:
                    peer.sql(f"UPDATE {place} SET v = 1000001 WHERE id = {key}")
        table.refresh()
        assert ours(table, "id", "v", "tens") == [(id, v, id * 10) for id, v in sorted(model.items())], (
            step,
            writer,
            what,
        )
        if table.version > before:
            check_changes_lead_to(table)
    rows = [(id, v, id * 10) for id, v in sorted(model.items())]
    assert peer.rows(table, "id", "v", "tens") == rows
    theirs = deltalake.DeltaTable(table.location)
    assert sorted(tuple(row.values()) for row in theirs.to_pyarrow_table().to_pylist()) == rows
    changes = changed_rows(table.changes(0).to_arrow())
    found = peer.sql(
        f"SELECT _commit_version, _change_type, id, v, tens FROM table_changes_by_path('{table.location}', 0)"
    )
    assert sorted(tuple(row) for row in found) == changes
    assert changed_rows(pa.table(theirs.load_cdf(starting_version=0).read_all())) == changes


@pytest.mark.timeout(3600)
def test_a_stream_in_turns(tmp_path: Path, peer: Peer, spark: Any) -> None:
    """delta-spark and deltaic carry on one query from its checkpoint, over a source that both change. Some
    batches are run again, as after a crash between the commit and Spark's note of it: whoever comes next
    passes them over."""
    import deltaic.spark

    source, into, checkpoint = (tmp_path / name for name in ("from", "into", "checkpoint"))
    properties = {"delta.enableDeletionVectors": True, "delta.checkpointInterval": 5}
    table = deltaic.write(source, numbers(0), properties=properties)
    choose, made, gone = random.Random(11), 1, 0
    expected, queries = {0}, set()
    own = spark.newSession()
    deltaic.spark.enable(own)
    for turn in range(BATCHES):
        place = f"delta.`{source}`"
        for _ in range(choose.randint(1, 3)):
            count = choose.randint(1, 5)
            keys = range(made, made + count)
            expected.update(keys)
            made += count
            if choose.random() < 0.5:
                deltaic.write(source, pa.concat_tables([numbers(*keys)]), mode="append", target_file_size=200)
            else:
                peer.sql(
                    f"INSERT INTO {place} SELECT /*+ REPARTITION(2) */ id, 0 FROM range({keys.start},"
                    f" {keys.stop})"
                )
        table.refresh()
        if turn and choose.random() < 0.3:
            table.optimize.compact()
        if turn and choose.random() < 0.3:
            table.refresh()
            table.delete(f"id = {gone}")  # a row that the stream has had
            gone += 1
        options = {"maxFilesPerTrigger": choose.choice(["1", "2", "1000"]), "skipChangeCommits": "true"}
        if turn % 2:
            queries.add(peer.streamed(source, into, checkpoint, **options))
        else:
            frame = own.readStream.format("delta").options(**options).load(str(source))
            writer = (
                frame.writeStream.format("delta")
                .option("checkpointLocation", str(checkpoint))
                .trigger(availableNow=True)
            )
            query = writer.start(str(into))
            query.awaitTermination()
            queries.add(str(query.id))
        assert sorted(ours(DeltaTable(into), "id")) == [(key,) for key in sorted(expected)], turn
        if choose.random() < 0.4:
            last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdigit())
            for name in (f"{last}", f".{last}.crc"):
                (checkpoint / "commits" / name).unlink(missing_ok=True)
    assert len(queries) == 1
    assert peer.rows(DeltaTable(into), "id") == [(key,) for key in sorted(expected)]


@pytest.mark.parametrize(
    ("properties", "compacted"),
    [
        ({}, 0),
        ({"delta.checkpoint.writeStatsAsJson": False}, 0),
        ({"delta.checkpointPolicy": "v2"}, 0),
        ({}, 3),
    ],
    ids=["classic", "typed statistics", "sidecars", "compacted ranges"],
)
def test_a_log_that_begins_with_a_checkpoint(
    tmp_path: Path, peer: Peer, properties: dict[str, Any], compacted: int
) -> None:
    """It reads our checkpoints, ranges and hint; its checksums go on from ours, and are held against the log
    when we read on."""
    with deltaic.configure(log_compaction_interval=compacted):
        table = deltaic.write(
            tmp_path / "t", numbers(0), properties={"delta.checkpointInterval": 4, **properties}
        )
        for key in range(1, 10):
            deltaic.write(
                table,
                numbers(key, key + 100),
                mode="append",
                commit=deltaic.CommitOptions(transactions={"app": key}),
            )
        table.refresh()
        table.delete("id in (3, 4, 104)")
    folder = Path(table.location) / "_delta_log"
    for version in range(8):
        for ending in ("json", "crc"):
            (folder / f"{version:020}.{ending}").unlink()
    assert peer.rows(table, "id") == ours(table, "id")
    for statement in (
        "INSERT INTO {} VALUES (1000L, 1)",
        "DELETE FROM {} WHERE id = 0",
        "UPDATE {} SET v = 7 WHERE id = 9",
    ):
        peer.sql(statement.format(f"delta.`{table.location}`"))
    assert (folder / f"{13:020}.crc").exists()
    assert list(folder.glob(f"{12:020}.checkpoint*"))
    found = ours(table, "id", "v")
    assert peer.rows(table, "id", "v") == found
    assert {(1000, 1), (9, 7)} <= set(found)
    assert len(found) == 16
    assert DeltaTable(table.location).transaction_version("app") == 9


def test_transactions_over_several_tables(tmp_path: Path, peer: Peer) -> None:
    a, b = (deltaic.write(tmp_path / name, numbers(*range(5))) for name in "ab")
    with deltaic.transaction(a, b) as t:
        t.write(a, numbers(5))
        t.delete(b, "id = 3")
    assert peer.sql(f"SELECT count(*) FROM delta.`{a.location}`") == [[6]]
    assert peer.sql(f"SELECT count(*) FROM delta.`{b.location}` VERSION AS OF 1") == [[5]]
    peer.sql(f"DELETE FROM delta.`{b.location}` WHERE id = 4")
    assert sorted(row["id"] for row in DeltaTable(b.location).scan()) == [0, 1, 2]
