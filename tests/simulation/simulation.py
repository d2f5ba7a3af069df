"""Runs actors that change one table through the real transactions, and checks the invariants after each run.

Files have no bytes: the name of a file determines its rows. Everything else is real: vectors, commits,
conflicts, checkpoints, snapshots, vacuum, streams.

Clocks are off by up to an hour, and no command takes longer than WORK_MS, so a vacuum that keeps files for
RETENTION deletes no file that a command still needs: a file that was removed at 0:00 by a clock that shows
23:00 is deleted at 10:01 by a clock that shows 11:01.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from unittest import mock

import pyarrow as pa
from simulated_store import WORK_MS, ActorStore, World

from deltaic import _core
from deltaic.commands.vacuum import vacuum
from deltaic.errors import CommitError, CommitUnknownError, DeltaError
from deltaic.log.snapshot import Snapshot
from deltaic.log.stream import TableStream
from deltaic.log.stream_limits import Limits
from deltaic.log.stream_options import StreamOptions
from deltaic.planning.opening import numbered
from deltaic.protocol.definition import new_table
from deltaic.transaction.marks import Marks
from deltaic.transaction.transaction import Transaction

RETENTION = timedelta(hours=12)
KINDS = ["append", "delete", "update", "delete", "update", "optimize", "read", "vacuum", "wait", "follow"]
Row = tuple[int, int]
"""Id and value. Ids are fresh in each append; an update adds one to the value."""


@dataclass
class Operation:
    """What a transaction was to do, by the ids of its attempts."""

    kind: str
    ids: tuple[int, int] = (0, -1)
    rows: tuple[Row, ...] = ()
    attempts: list[str] = field(default_factory=list)
    outcome: str = "unknown"
    version: int | None = None

    def after(self, before: Counter[Row]) -> Counter[Row]:
        """Returns the rows after the command, if it reads all rows of the version before."""
        low, high = self.ids
        hit = Counter({row: count for row, count in before.items() if low <= row[0] <= high})
        if self.kind == "append":
            return before + Counter(self.rows)
        if self.kind == "delete":
            return before - hit
        if self.kind == "update":
            return before - hit + Counter({(key, value + 1): count for (key, value), count in hit.items()})
        return before


@dataclass
class Follower:
    """A reader of a stream, who may be killed between two batches: all it keeps is the offset, and which
    files it was given."""

    offset: str | None = None
    paths: list[str] = field(default_factory=list)
    stream: TableStream | None = None


class Run:
    """One seed. `problems`: what does not hold, empty where all is well."""

    def __init__(
        self, seed: int, *, faults: float = 0.15, put_if_absent: bool = True, actors: int | None = None
    ) -> None:
        self.world = World(seed, faults=0.0, put_if_absent=put_if_absent)
        self.random = random.Random(seed + 1)
        self.files: dict[str, list[Row]] = {}
        self.operations: list[Operation] = []
        self.problems: list[str] = []
        self.followers: dict[int, Follower] = {}
        self.vacuumed = 0
        self.next_id = self.next_file = 0
        self.location = "sim://world/table"
        self.world_store = self._store(-1)[1]
        self._create()
        self.world.faults = faults
        count = actors or self.random.randint(2, 6)
        # Each actor has its own seed, so that its random numbers do not depend on the other actors.
        seeds = [self.random.randrange(1 << 30) for _ in range(count)]
        with mock.patch("deltaic.commands.vacuum.Transaction", partial(Transaction, sleep=lambda _: None)):
            self.world.run(
                [
                    lambda number=number: self._act(number, seeds[number])  # type: ignore[misc]
                    for number in range(count)
                ]
            )
        self.world.faults = 0.0
        try:
            self._check()
        except DeltaError as error:
            self.problems.append(f"the table cannot be read: {error}")

    def _store(self, actor: int) -> tuple[ActorStore, _core.Store]:
        view = ActorStore(self.world, actor)
        return view, _core.Store.from_python(view, self.location)

    def _create(self) -> None:
        self.world.over = True
        protocol, metadata = new_table("id bigint", properties={"delta.checkpointInterval": 4})
        transaction = Transaction(
            None, "CREATE TABLE", {}, store=self._store(-1)[1], clock=lambda: self.world.now
        )
        transaction.set_protocol(protocol)
        transaction.set_metadata(metadata)
        adds = self._file([(self._id(), 0) for _ in range(8)])
        self.operations.append(Operation("append", rows=tuple(self.files[adds["path"][0].as_py()])))
        transaction.add(adds)
        transaction.commit()
        self.world.over = False

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id

    def _file(self, rows: list[Row], data_change: bool = True) -> pa.Table:
        self.next_file += 1
        path = f"{self.next_file:04}.parquet"
        self.files[path] = rows
        self.world.objects[path] = (b"", self.world.now)
        ids = [key for key, _ in rows]
        stats = {
            "numRecords": len(rows),
            "minValues": {"id": min(ids)},
            "maxValues": {"id": max(ids)},
            "nullCount": {"id": 0},
        }
        row = {
            "path": path,
            "partitionValues": [],
            "size": 100,
            "modificationTime": 1,
            "dataChange": data_change,
            "stats": json.dumps(stats),
        }
        return pa.Table.from_pylist([row], _core.empty_adds().schema)

    # --- actors

    def _act(self, actor: int, seed: int) -> None:
        chance = random.Random(seed)
        view, store = self._store(actor)
        for _ in range(chance.randint(2, 6)):
            low = chance.randint(1, max(self.next_id, 1))
            kind = chance.choice(KINDS)
            if kind in ("wait", "vacuum"):
                self.world.pass_time()
            if kind == "wait":
                continue
            self.world.working[actor] = self.world.now
            try:
                if kind == "vacuum":
                    self._vacuum(view, store)
                elif kind == "follow":
                    self._follow(self.followers.setdefault(actor, Follower()), store, chance)
                else:
                    self._try(view, store, chance, kind, (low, low + chance.choice([0, 0, 1, 4])))
            finally:
                del self.world.working[actor]

    def _vacuum(self, view: ActorStore, store: _core.Store) -> None:
        try:
            snapshot = Snapshot.load(store, sleep=lambda _: None)
            _, gone = vacuum(snapshot, retention=RETENTION, enforce_retention=False, clock=view.clock)
            self.vacuumed += gone.num_rows
        except (DeltaError, OSError):
            pass

    def _follow(self, follower: Follower, store: _core.Store, chance: random.Random) -> None:
        """Reads a batch of a few files; what fails is done again from the same offset."""
        try:
            if follower.stream is None or chance.random() < 0.3:
                options = StreamOptions(start=0, ignore_deletes=True, ignore_changes=True)
                follower.stream = TableStream(Snapshot.load(store, sleep=lambda _: None), options)
            stream = follower.stream
            at = stream.start() if follower.offset is None else stream.parse(follower.offset)
            end = stream.next(at, Limits(files=chance.randint(1, 3)))
            paths = stream.batch(at, end).added["path"].to_pylist()
        except (DeltaError, OSError):
            return
        follower.paths += paths
        follower.offset = end.json()

    def _try(
        self, view: ActorStore, store: _core.Store, chance: random.Random, kind: str, ids: tuple[int, int]
    ) -> None:
        for _ in range(3):
            try:
                snapshot = Snapshot.load(store, sleep=lambda _: None)
                if kind == "read":
                    self._check_files(snapshot)
                    self._rows(snapshot)
                    return
                operation = Operation(kind, ids)
                transaction = self._staged(view, snapshot, operation, chance)
            except (DeltaError, OSError):
                return  # a listing that is stale may show a log that makes no sense
            if transaction is None:
                return
            self.operations.append(operation)
            try:
                operation.version = transaction.commit().version
                operation.outcome = "committed"
                return
            except CommitError:
                operation.outcome = "failed"
            except CommitUnknownError:
                return
            except Exception as error:
                self.problems.append(f"{kind} {ids} raised {type(error).__name__}: {error}")
                return

    def _staged(
        self, view: ActorStore, snapshot: Snapshot, operation: Operation, chance: random.Random
    ) -> Transaction | None:
        def new_id() -> str:
            operation.attempts.append(
                f"{view.actor}-{len(self.operations)}-{len(operation.attempts)}-{chance.randrange(1 << 40)}"
            )
            return operation.attempts[-1]

        transaction = Transaction(
            snapshot, operation.kind.upper(), {}, clock=view.clock, new_id=new_id, sleep=lambda _: None
        )
        if operation.kind == "append":
            operation.rows = tuple((self._id(), 0) for _ in range(chance.randint(1, 4)))
            transaction.add(self._file(list(operation.rows)))
            return transaction
        if operation.kind == "optimize":
            live = snapshot.files().adds
            if live.num_rows < 2:
                return None
            chosen = live.slice(0, chance.randint(2, live.num_rows))
            rows = [row for _, row in self._rows_of(snapshot, chosen)]
            transaction.remove(_core.removes_of(chosen, view.clock(), False))
            if rows:
                transaction.add(self._file(rows, data_change=False))
            return transaction
        low, high = operation.ids
        bounds = [
            {"op": op, "column": ["id"], "literal": str(bound)} for op, bound in ((">=", low), ("<=", high))
        ]
        predicate = _core.Predicate.from_json(
            json.dumps({"op": "and", "args": bounds}), snapshot.table_schema
        )
        transaction.read(predicate, rows_only=True)
        files = numbered(snapshot.files(predicate).adds)
        hit = [(where, row) for where, row in self._rows_of(snapshot, files) if low <= row[0] <= high]
        if not hit:
            return None
        pairs = {
            "__deltaic_file": pa.array([w[0] for w, _ in hit], pa.int32()),
            "__deltaic_row": pa.array([w[1] for w, _ in hit], pa.int64()),
        }

        def mark(files: pa.Table, rows: _core.RowIds) -> _core.MarkedFiles:
            return _core.mark_deleted(
                snapshot.store, files, rows, deletion_timestamp=view.clock(), inline=chance.random() < 0.5
            )

        transaction.mark(Marks(files, _core.RowIds.collect(pa.table(pairs)), mark, lambda _: None))
        if operation.kind == "update":
            transaction.add(self._file([(key, value + 1) for _, (key, value) in hit]))
        return transaction

    # --- rows

    def _rows_of(self, snapshot: Snapshot, files: pa.Table) -> list[tuple[tuple[int, int], Row]]:
        """Live rows with where they are."""
        found = []
        for ordinal, (path, vector) in enumerate(
            zip(files["path"].to_pylist(), files["deletionVector"].to_pylist(), strict=True)
        ):
            deleted = _vector(snapshot.store, vector)
            found += [
                ((ordinal, index), row) for index, row in enumerate(self.files[path]) if index not in deleted
            ]
        return found

    def _rows(self, snapshot: Snapshot) -> Counter[Row]:
        selection = snapshot.files()
        if selection.live_twice is not None:
            self.problems.append(f"version {snapshot.version}: {selection.live_twice} is live twice")
        return Counter(row for _, row in self._rows_of(snapshot, selection.adds))

    # --- what must hold

    def _check(self) -> None:
        store = self._store(-1)[1]
        newest = Snapshot.load(store)
        by_id = {attempt: operation for operation in self.operations for attempt in operation.attempts}
        committed: Counter[int] = Counter()
        expected: Counter[Row] = Counter()
        at = newest
        for version in range(newest.version + 1):
            info = json.loads(_core.read_commit_info(store, f"_delta_log/{version:020}.json") or "{}")
            if info["operation"].startswith("VACUUM"):
                operation = Operation("vacuum", version=version)
            else:
                operation = self.operations[0] if version == 0 else by_id[info["txnId"]]
            committed[id(operation)] += 1
            if operation.outcome == "failed" or (
                operation.version is not None and operation.version != version
            ):
                self.problems.append(
                    f"version {version} is a {operation.kind} that {operation.outcome} as {operation.version}"
                )
            before, expected = expected, operation.after(expected)
            at = Snapshot.load(store, version=0) if version == 0 else at.advance(version)
            found = self._rows(at)
            if found != expected:
                self.problems.append(
                    f"version {version} ({operation.kind} {operation.ids}): {found - expected} too many,"
                    f" {expected - found} missing"
                )
                return
            if (change := self._change(store, version)) != _difference(before, expected):
                self.problems.append(
                    f"version {version}: the change feed has {change} instead of"
                    f" {_difference(before, expected)}"
                )
        for operation in self.operations[1:]:
            if (committed[id(operation)] != 1 and operation.outcome == "committed") or committed[
                id(operation)
            ] > 1:
                self.problems.append(
                    f"{operation.kind} was {operation.outcome}, and is there {committed[id(operation)]} times"
                )
        if self._rows(newest) != expected:
            self.problems.append("the newest version is not what its commits say")
        self._check_files(newest)
        self._check_checkpoints(store)
        self._check_followers(store, newest.version)

    def _check_files(self, snapshot: Snapshot) -> None:
        """All files of a version are there, unless the next one came long ago, which a listing that is stale
        may not show."""
        after = self.world.objects.get(f"_delta_log/{snapshot.version + 1:020}.json")
        if after is not None and after[1] < self.world.now - WORK_MS:
            return
        adds, over = snapshot.files().adds, self.world.over
        missing = {path for path in adds["path"].to_pylist() if path not in self.world.objects}
        self.world.over = False  # what is deleted is not read
        for vector in adds["deletionVector"].to_pylist():
            try:
                _vector(self.world_store, vector)
            except FileNotFoundError as error:
                missing.add(str(error))
        self.world.over = over
        if missing:
            self.problems.append(f"version {snapshot.version} lacks {sorted(missing)}")

    def _change(self, store: _core.Store, version: int) -> dict[Row, int]:
        """Returns the number of each row that the change feed inserts, minus those that it deletes."""
        _, derived, _ = _core.read_changes(store, [(version, f"_delta_log/{version:020}.json", 1)], [])
        found: Counter[Row] = Counter()
        for file in derived.to_pylist():
            chosen = set(range(len(self.files[file["path"]]))) - _vector(store, file["deletionVector"])
            if file["selection"] is not None:
                selected = set(_core.DeletionVector.from_bytes(file["selection"]).rows().to_pylist())
                chosen = chosen & selected if file["keep_selected"] else chosen - selected
            sign = {"insert": 1, "delete": -1}[dict(file["partitionValues"])["_change_type"]]
            for index in chosen:
                found[self.files[file["path"]][index]] += sign
        return {row: count for row, count in found.items() if count}

    def _check_followers(self, store: _core.Store, newest: int) -> None:
        """Each was given every file with new rows once, in the order of the commits."""
        expected: list[str] = []
        for version in range(newest + 1):
            adds = _core.read_commit(store, version, f"_delta_log/{version:020}.json").adds
            expected += adds.filter(adds["dataChange"])["path"].to_pylist()
        for follower in self.followers.values():
            follower.stream = None
            offset: str | None = ""
            while offset != follower.offset:
                offset = follower.offset
                self._follow(follower, store, random.Random(1))
            if follower.paths != expected:
                self.problems.append(f"a stream gave {follower.paths} instead of {expected}")

    def _check_checkpoints(self, store: _core.Store) -> None:
        """Checks that every checkpoint has the state of its commits."""
        for path in [each for each in self.world.objects if ".checkpoint." in each]:
            version = int(path.split("/")[1][:20])
            by_commits = [(each, f"_delta_log/{each:020}.json") for each in range(version + 1)]
            replayed = _core.Snapshot.load(store, version, [], by_commits)
            read = _core.Snapshot.load(store, version, [path], [])
            if (replayed.file_count, replayed.size_in_bytes, replayed.deleted_records) != (
                read.file_count,
                read.size_in_bytes,
                read.deleted_records,
            ):
                self.problems.append(f"the checkpoint of version {version} is not what its commits say")


def _difference(before: Counter[Row], after: Counter[Row]) -> dict[Row, int]:
    return {row: after[row] - before[row] for row in before | after if after[row] != before[row]}


def _vector(store: _core.Store, vector: dict[str, Any] | None) -> set[int]:
    if vector is None:
        return set()
    return set(
        _core.read_deletion_vector(
            store,
            *(
                vector[name]
                for name in ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
            ),
        )
    )
