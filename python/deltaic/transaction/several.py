"""Commits to several tables: all of them get a version, or none does
(docs/decisions/several-tables-in-one-commit.md).

With one table, this is an ordinary commit. Several changes of one table become one commit
(`staged_changes.py`).

1. Each table gets an intent with the lines of its commit, and a start commit without actions. The start
   commit takes the next version like any commit, so earlier commits are checked for conflicts. Other writers
   of deltaic that find it wait.
2. The record of the coordinator is created by put-if-absent. It decides if the transaction is committed in
   all tables or aborted.
3. The lines of each intent become the version after the start commit. Any process that finds the intent may
   write it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from deltaic import configuration
from deltaic.errors import (
    CommitError,
    CommitUnknownError,
    ConcurrentWriteException,
    DeltaError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from deltaic.log import history, intents
from deltaic.log.intents import Intent
from deltaic.log.segment import LOG, commit_path
from deltaic.options import CommitOptions
from deltaic.protocol import features
from deltaic.protocol.actions import line
from deltaic.protocol.paths import decoded_path
from deltaic.transaction import information, timestamps
from deltaic.transaction.attempts import Attempts
from deltaic.transaction.body import Base, commit_body
from deltaic.transaction.rolling_forward import roll_forward
from deltaic.transaction.staged_changes import StagedChanges
from deltaic.transaction.transaction import Counted, Transaction, new_uuid, now_ms
from deltaic.worker import Worker

if TYPE_CHECKING:
    from deltaic.log.segment import Sleep
    from deltaic.log.snapshot import Snapshot
    from deltaic.transaction.transaction import Clock

T = TypeVar("T")
# Maximum number of threads that work on the tables of one transaction
_MOST_THREADS = 8
# Seconds after the first intent at which an undecided transaction gives up, long before records are cleaned
# up
_MOST_SECONDS = 3600.0


class SeveralTables:
    """The staged changes of several tables. `commit` commits all of them or none."""

    def __init__(
        self, *, clock: Clock = now_ms, new_id: Callable[[], str] = new_uuid, sleep: Sleep = time.sleep
    ) -> None:
        self.clock, self.new_id, self.sleep = clock, new_id, sleep
        self.id = ""
        """commitInfo.txnId in each table; empty before the commit."""
        self.members: list[tuple[Transaction, Counted]] = []
        """The transaction of each table, with its metrics; empty before the commit."""
        self._changes: dict[str, StagedChanges] = {}
        self.is_committed: bool | None = False
        """True or False; None while the outcome is unknown."""

    def shown(self, snapshot: Snapshot) -> Snapshot:
        """Returns the version from which the next change of a table starts: with the staged changes, or
        `snapshot` if there are none."""
        changes = self._changes.get(snapshot.location)
        return snapshot if changes is None else changes.shown()

    def add(self, transaction: Transaction, counted: Counted) -> Snapshot:
        """Stages a change of a table. Returns the version from which the change started."""
        snapshot, location = transaction.snapshot, transaction.store.location
        if snapshot is None:
            transaction.discard()
            raise InvalidArgumentError(
                "a transaction makes no table", where=location, found=transaction.operation
            )
        changes = self._changes.get(location)
        if changes is not None:
            changes.add(transaction, counted)
            return snapshot
        others = [each.steps[0][0].snapshot for each in self._changes.values()]
        managed = next(
            (each for each in (snapshot, *others) if each is not None and features.is_managed(each.protocol)),
            None,
        )
        if others and managed is not None:
            transaction.discard()
            raise UnsupportedFeatureError(
                "a table that a catalog manages takes no part in a transaction over several tables",
                where=managed.location,
            )
        self._changes[location] = StagedChanges(transaction, counted)
        return snapshot

    def discard(self) -> None:
        """Deletes the files of all staged changes."""
        steps = [step for changes in self._changes.values() for step in changes.steps]
        for transaction, _ in (*steps, *self.members):
            transaction.discard()

    def commit(self) -> list[Snapshot]:
        """Commits. Returns the new version of each table, in the order of their first `add`.

        Raises the exception of a conflict, or CommitError if the transaction was aborted: no table has
        changed, and the files are deleted. CommitUnknownError is raised if the outcome is unknown.
        """
        try:
            self.members = [changes.joined() for changes in self._changes.values()]
        except BaseException:
            self.discard()
            raise
        if len(self.members) <= 1:  # an ordinary commit
            committed = [transaction.commit(counted) for transaction, counted in self.members]
            for transaction, _ in self.members:
                self.id = str(history.parse_commit_info(transaction.first_line).get("txnId", ""))
            return committed
        worker = Worker[list["Snapshot"]](self._commit)
        try:
            return worker.result()
        except BaseException as error:
            if worker.withdrawn:
                self.discard()
            elif worker.stopping and self.is_committed is not False:
                error.add_note(
                    f"transaction {self.id} is, or may be, committed: look for it in the history before doing"
                    " it again"
                )
            raise

    def _commit(self, worker: Worker[list[Snapshot]]) -> list[Snapshot]:
        def stop() -> None:
            if worker.stopping:
                raise KeyboardInterrupt("stopped before the commit was decided")

        began, self.id = time.monotonic(), self.new_id()
        # All writers start on tables in one order, so that no two of them wait for each other.
        members = sorted(self.members, key=lambda each: each[0].store.location)
        coordinator = members[0][0].store
        tables = [transaction.store.location for transaction, _ in members]
        parts: list[Part] = []
        try:
            for transaction, _ in members:
                transaction.check_writable()
            parts += [Part(transaction, counted, stop, self.id, tables) for transaction, counted in members]
            remote = any(part.store.is_remote for part in parts)
            waits = remote or configuration.current().durable
            # The coordinator's intent is put first, as a process that finds another intent checks for it
            # before it decides.
            parts[0].announce()
            _together([part.announce for part in parts[1:]], waits)
            for part in parts:
                part.start()
            _together([part.catch_up for part in parts], remote)
            stop()
            if time.monotonic() - began > _MOST_SECONDS:
                raise CommitError(
                    f"the transaction was given up after {_MOST_SECONDS:.0f} s", where=coordinator.location
                )
            self.is_committed = None
            self.is_committed = intents.decide(coordinator, self.id, True, tables, self.clock(), self.sleep)
            if not self.is_committed:
                raise ConcurrentWriteException(
                    f"{self._operations()} was not committed: a writer that waited for the transaction"
                    " aborted it",
                    where=f"{coordinator.location}/{intents.record_path(self.id)}",
                )
        except BaseException as error:
            if self.is_committed is None and not isinstance(error, CommitError):
                for transaction, _ in members:
                    transaction.in_doubt = True
                error.add_note(
                    f"transaction {self.id} ({self._operations()}): open one of its tables to learn if it is"
                    " committed"
                )
            else:
                self._abort(parts, tables)
            raise
        for part in parts:
            part.transaction.in_doubt = True
        worker.watch()
        return self._roll_forward(parts, waits)

    def _operations(self) -> str:
        return ", ".join(transaction.operation for transaction, _ in self.members)

    def _abort(self, parts: list[Part], tables: list[str]) -> None:
        self.is_committed = False
        if parts:
            try:
                intents.decide(parts[0].store, self.id, False, tables, self.clock(), self.sleep)
            except (DeltaError, OSError):
                pass  # no other process commits it, and the next one that finds an intent aborts it
            else:
                for part in parts:
                    intents.withdraw(part.store, self.id)
        self.discard()

    def _roll_forward(self, parts: list[Part], waits: bool) -> list[Snapshot]:
        """Writes the commits to the logs. If that fails for a table, the next process that opens the table
        writes it."""
        for part in parts:
            part.transaction.files = []
        failures = [
            error
            for error in _together([partial(self._complete, part) for part in parts], waits)
            if error is not None
        ]
        if failures:
            raise failures[0]
        committed = {part.store.location: part.committed for part in parts if part.committed is not None}
        return [committed[transaction.store.location] for transaction, _ in self.members]

    def _complete(self, part: Part) -> CommitUnknownError | None:
        try:
            part.roll_forward()
            part.committed = part.transaction.after_commit(part.version, part.began)
        except CommitUnknownError as failure:
            return failure  # the commit is in the log, but could not be read back
        except Exception as cause:
            error = CommitUnknownError(
                f"transaction {self.id} ({self._operations()}) is committed, do not do it again; but its"
                f" commit could not be put into the log of this table: {cause}",
                where=part.store.location,
            )
            error.__cause__ = cause
            return error
        return None


def _together(calls: Sequence[Callable[[], T]], waits: bool) -> list[T]:
    """Calls functions and returns their results; raises the error of the first call that failed. `waits`:
    True if they wait for a disk or a network; then they are called in parallel by threads with the caller's
    context."""
    if not waits:
        return [call() for call in calls]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(calls), _MOST_THREADS)) as threads:
        futures = [threads.submit(copy_context().run, call) for call in calls]
    return [future.result() for future in futures]


class Part(Attempts):
    """Puts the start commit, the intent and the commit of the transaction into the log of one table. After
    `start`, `base` is the version of the start commit, or a later one of other writers."""

    def __init__(
        self,
        transaction: Transaction,
        counted: Counted,
        stop: Callable[[], None],
        name: str,
        tables: list[str],
    ) -> None:
        super().__init__(transaction, transaction.current(), counted, stop)
        self.id, self.tables = name, tables
        self.began = -1
        """The version of the start commit; -1 before it."""
        self.intent: Intent | None = None
        self.time: int | None = None
        """The in-commit timestamp of the start commit (ms); None if the table has none."""
        self.version = -1
        """Version of the commit; -1 before it."""
        self.committed: Snapshot | None = None

    def announce(self) -> None:
        """Puts the intent, for the version after the snapshot's."""
        self.prepare()
        self._announce()

    def _announce(self) -> None:
        rules, now = self.rules, self.transaction.clock()
        self.time = None
        if timestamps.enabled(rules.protocol, rules.metadata):
            self.time = timestamps.next_time(self.store, self.base + 1, now, was_enabled=True)
        self._put_intent(self.base + 1, self.base + 1, self.time)

    def start(self) -> None:
        """Puts the start commit as the next version. Raises the exception of a conflict."""
        try:
            with self.turns.turn(self.stop):
                self.base = self.began = self._take_turn()
        except CommitUnknownError as error:
            # only the start commit is in doubt; the transaction is not decided
            self.transaction.in_doubt = False
            raise CommitError(
                f"the transaction was not committed: {error}", where=self.store.location
            ) from error
        self.transaction.in_doubt = False

    def _body(self) -> tuple[str, bytes]:
        """Returns the id and the line of the start commit, after putting the intent for its version."""
        snapshot = self.snapshot
        assert snapshot is not None
        if self.intent is None or self.intent.start != self.base + 1:
            self._announce()
        start = information.commit_info(
            timestamp=self.transaction.clock(),
            in_commit_timestamp=self.time,
            operation=intents.START,
            parameters={"transaction": self.id},
            read_version=snapshot.version,
            isolation=self.current.isolation.value,
            is_blind_append=True,
            metrics={},
            options=CommitOptions(),
            txn_id=self.transaction.new_id(),
        )
        return str(start["txnId"]), line({"commitInfo": start}).encode() + b"\n"

    def _put_intent(self, start: int, base: int, time: int | None) -> None:
        rules, transaction = self.rules, self.transaction
        on = Base(base, rules.protocol, rules.metadata, rules.row_id_mark, time)
        body, _, _ = commit_body(
            transaction, on, self.current, self.id, *transaction.actions(), self.metrics()
        )
        self.intent = Intent(self.id, start, base, self.tables[0], tuple(self.tables), body)
        intents.put(self.store, self.intent)

    def catch_up(self) -> None:
        """Moves the intent after commits that followed the start commit, by writers that do not know
        intents."""
        while self.store.head(commit_path(self.base + 1)) is not None:
            self._pass(self.rules.newest(self.base + 1))
            # New deletion vectors must be durable before the decision, like the other files before the start
            # commit.
            self.store.stage(LOG, b"", after=list(map(decoded_path, self.transaction.files)))
            self._put_intent(self.began, self.base, None)

    def roll_forward(self) -> None:
        """Writes the commit to the log, unless another process has done so."""
        assert self.intent is not None
        self.version, body = roll_forward(self.store, self.intent, is_new=True)
        info: Mapping[str, object] = {} if body is not None else history.commit_info(self.store, self.version)
        self.transaction.first_line = (
            body[: body.index(b"\n")].decode() if body is not None else line({"commitInfo": info})
        )
        self.transaction.is_committed(self.version)
        intents.DONE.add(self.store, self.id, self.version)
