"""Runs of actors that change one table through the real transactions, and what must hold after each run.

Files have no bytes: the rows of each are known by its name. Everything else is real: vectors, commits, conflicts, checkpoints, snapshots.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from simulated_store import ActorStore, World

from deltaic import _core
from deltaic.errors import CommitError, CommitUnknownError, DeltaError
from deltaic.log.snapshot import Snapshot
from deltaic.planning.opening import numbered
from deltaic.protocol.definition import new_table
from deltaic.transaction.marks import Marks
from deltaic.transaction.transaction import Transaction

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
        """The rows that it leaves, where it sees all rows of the version below."""
        low, high = self.ids
        hit = Counter({row: count for row, count in before.items() if low <= row[0] <= high})
        if self.kind == "append":
            return before + Counter(self.rows)
        if self.kind == "delete":
            return before - hit
        if self.kind == "update":
            return before - hit + Counter({(key, value + 1): count for (key, value), count in hit.items()})
        return before


class Run:
    """One seed. `problems`: what does not hold, empty where all is well."""

    def __init__(self, seed: int, *, faults: float = 0.15, put_if_absent: bool = True, actors: int | None = None) -> None:
        self.world = World(seed, faults=0.0, put_if_absent=put_if_absent)
        self.random = random.Random(seed + 1)
        self.files: dict[str, list[Row]] = {}
        self.operations: list[Operation] = []
        self.problems: list[str] = []
        self.next_id = self.next_file = 0
        self.location = "sim://world/table"
        self._create()
        self.world.faults = faults
        count = actors or self.random.randint(2, 6)
        # As many random numbers for an actor as it needs, whatever the others do.
        seeds = [self.random.randrange(1 << 30) for _ in range(count)]
        self.world.run([lambda number=number: self._act(number, seeds[number]) for number in range(count)])  # type: ignore[misc]
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
        transaction = Transaction(None, "CREATE TABLE", {}, store=self._store(-1)[1], clock=lambda: self.world.now)
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
        ids = [key for key, _ in rows]
        stats = {"numRecords": len(rows), "minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}, "nullCount": {"id": 0}}
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
        for _ in range(chance.randint(2, 4)):
            low = chance.randint(1, max(self.next_id, 1))
            kind = chance.choice(["append", "delete", "update", "delete", "update", "optimize", "read"])
            self._try(view, store, chance, kind, (low, low + chance.choice([0, 0, 1, 4])))

    def _try(self, view: ActorStore, store: _core.Store, chance: random.Random, kind: str, ids: tuple[int, int]) -> None:
        for _ in range(3):
            try:
                snapshot = Snapshot.load(store, sleep=lambda _: None)
                if kind == "read":
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

    def _staged(self, view: ActorStore, snapshot: Snapshot, operation: Operation, chance: random.Random) -> Transaction | None:
        def new_id() -> str:
            operation.attempts.append(f"{view.actor}-{len(self.operations)}-{len(operation.attempts)}-{chance.randrange(1 << 40)}")
            return operation.attempts[-1]

        transaction = Transaction(snapshot, operation.kind.upper(), {}, clock=view.clock, new_id=new_id, sleep=lambda _: None)
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
        bounds = [{"op": op, "column": ["id"], "literal": str(bound)} for op, bound in ((">=", low), ("<=", high))]
        predicate = _core.Predicate.from_json(json.dumps({"op": "and", "args": bounds}), snapshot.table_schema)
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
            return _core.mark_deleted(snapshot.store, files, rows, deletion_timestamp=view.clock(), inline=chance.random() < 0.5)

        transaction.mark(Marks(files, _core.RowIds.collect(pa.table(pairs)), mark, lambda _: None))
        if operation.kind == "update":
            transaction.add(self._file([(key, value + 1) for _, (key, value) in hit]))
        return transaction

    # --- rows

    def _rows_of(self, snapshot: Snapshot, files: pa.Table) -> list[tuple[tuple[int, int], Row]]:
        """Live rows with where they are."""
        found = []
        for ordinal, (path, vector) in enumerate(zip(files["path"].to_pylist(), files["deletionVector"].to_pylist(), strict=True)):
            deleted = _vector(snapshot.store, vector)
            found += [((ordinal, index), row) for index, row in enumerate(self.files[path]) if index not in deleted]
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
            operation = self.operations[0] if version == 0 else by_id[info["txnId"]]
            committed[id(operation)] += 1
            if operation.outcome == "failed" or (operation.version is not None and operation.version != version):
                self.problems.append(f"version {version} is a {operation.kind} that {operation.outcome} as {operation.version}")
            expected = operation.after(expected)
            at = Snapshot.load(store, version=0) if version == 0 else at.advance(version)
            found = self._rows(at)
            if found != expected:
                self.problems.append(
                    f"version {version} ({operation.kind} {operation.ids}): {found - expected} too many, {expected - found} missing"
                )
                return
        for operation in self.operations[1:]:
            if (committed[id(operation)] != 1 and operation.outcome == "committed") or committed[id(operation)] > 1:
                self.problems.append(f"{operation.kind} was {operation.outcome}, and is there {committed[id(operation)]} times")
        if self._rows(newest) != expected:
            self.problems.append("the newest version is not what its commits say")
        self._check_checkpoints(store)

    def _check_checkpoints(self, store: _core.Store) -> None:
        """Every checkpoint is what the commits say."""
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


def _vector(store: _core.Store, vector: dict[str, Any] | None) -> set[int]:
    if vector is None:
        return set()
    return set(
        _core.read_deletion_vector(
            store, *(vector[name] for name in ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"))
        )
    )
