"""A transaction: its reads, its staged actions, and its commit (PROTOCOL.md: Delta Log Entries).

A commit is committed, refused by a conflict, or its outcome is unknown. The attempts run on a separate
thread. So an exception that a signal handler raises, or that another thread sets, stops only the waiting
caller, and cannot interrupt the commit halfway.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic.errors import (
    CommitUnknownError,
    DeltaError,
    InvalidArgumentError,
    TableAlreadyExistsError,
    check_instance,
)
from deltaic.log import catalog, checkpoint, checksum, manifests, recent
from deltaic.log import iceberg as iceberg_metadata
from deltaic.log.segment import Sleep
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import Change
from deltaic.protocol.paths import decoded_path
from deltaic.transaction import checks
from deltaic.transaction.attempts import Attempts
from deltaic.transaction.conflicts import Current, Isolation
from deltaic.transaction.giving_way import Gate
from deltaic.transaction.marks import Marks
from deltaic.transaction.winners import concat, empty_adds, empty_removes
from deltaic.worker import Worker

log = logging.getLogger("deltaic.transaction")

# Seconds between attempts to read the committed version back
READ_WAITS = (0.05, 0.2, 0.8)

# Values of `CommitOptions.isolation` -> isolation levels
ISOLATION = {
    "serializable": Isolation.SERIALIZABLE,
    "write_serializable": Isolation.WRITE_SERIALIZABLE,
    "snapshot": Isolation.SNAPSHOT,
}

Clock = Callable[[], int]
Counted = Callable[[], Mapping[str, int]]
"""Function that returns the metrics of a commit; called for each attempt."""


def now_ms() -> int:
    """Returns the current time in ms since 1970."""
    return time.time_ns() // 1_000_000


def new_uuid() -> str:
    """Returns a random UUID as text."""
    return str(uuid.uuid4())


_collector: ContextVar[Callable[[Transaction, Counted], Snapshot] | None] = ContextVar(
    "collector of transactions", default=None
)


@contextmanager
def collecting(collect: Callable[[Transaction, Counted], Snapshot]) -> Iterator[None]:
    """Makes `Transaction.commit` in this thread call `collect` instead of committing, inside the block.
    `collect` takes the transaction and its metrics, and returns the version with which the command
    continues."""
    token = _collector.set(collect)
    try:
        yield
    finally:
        _collector.reset(token)


_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener to commits", default=None)


@contextmanager
def listening(listener: Callable[[int], None]) -> Iterator[None]:
    """Makes `Transaction.commit` in this thread call `listener` with the version of each commit, inside the
    block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_collecting() -> bool:
    """True inside a block of `collecting`."""
    return _collector.get() is not None


def already_committed(snapshot: Snapshot | None, options: CommitOptions | None) -> bool:
    """True if the snapshot has all application transactions of the options, so that the command must be
    skipped."""
    check_instance(options, (CommitOptions, type(None)), "commit", "CommitOptions")
    if snapshot is None or options is None or not options.transactions:
        return False
    written = snapshot.core.transactions
    return all(
        app_id in written and written[app_id][0] >= version
        for app_id, version in options.transactions.items()
    )


class Transaction:
    """Staged actions that start from one snapshot; `commit` commits them as the next version. Only one thread
    at a time may use it.

    `snapshot`: None for the first version of a new table; then `store` is required.
    `operation`, `parameters`: of commitInfo. Lists and mappings are written as JSON text.
    `clock`: returns ms since 1970. `new_id`: returns a unique id. `sleep`: waits for seconds.
    """

    def __init__(
        self,
        snapshot: Snapshot | None,
        operation: str,
        parameters: Mapping[str, Any] | None = None,
        options: CommitOptions | None = None,
        *,
        store: _core.Store | None = None,
        clock: Clock = now_ms,
        new_id: Callable[[], str] = new_uuid,
        sleep: Sleep = time.sleep,
    ) -> None:
        place = snapshot.store if snapshot else store
        if place is None:
            raise InvalidArgumentError("a transaction needs a snapshot, or the store of a new table")
        check_instance(options, (CommitOptions, type(None)), "commit", "CommitOptions")
        place.expect_commit()
        self.snapshot, self.store, self.operation = snapshot, place, operation
        self.parameters = dict(parameters or {})
        self.options = options or CommitOptions()
        self.clock, self.new_id, self.sleep = clock, new_id, sleep
        self.change: Change | None = None
        """The kind of change, if it cannot be derived from the staged actions: a DELETE that rewrites files
        sets REMOVE."""
        self.data_change = True
        """False if the commit changes no rows of the table, so that all its actions on files get
        dataChange=false."""
        self.ignores_append_only = False
        """True if the commit may remove rows of an append-only table."""
        self.metadata: Metadata | None = None
        self.protocol: Protocol | None = None
        self.reads: list[_core.Predicate | None] = []
        self.adds: list[pa.Table] = []
        self.removes: list[pa.Table] = []
        self.marks: Marks | None = None
        self.reads_rows_only = False
        self._changes: list[pa.Table] = []
        self.domains: dict[str, tuple[str, bool]] = {}
        self.files: list[str] = []
        self.gate: Gate | None = None
        """The gate of a compaction in the background (`giving_way.py`); None for any other transaction."""
        self.first_line = "{}"
        """The line of the last attempt with commitInfo."""
        self.created: tuple[list[str], pa.Table] | None = None
        """The commit of a new table: its lines that are no file actions, and its add actions."""
        self.in_doubt = False
        """True from the first put of a commit until the log shows that the commit does not exist. It stays
        True if the commit exists or the outcome is unknown."""
        self.is_staged_append = False
        """True if this is a blind append to a local table, whose commit file was written before its turn."""
        self.only_appends = False
        """True if all commits after `snapshot`, up to this one, are blind appends of this process."""
        self.committed: int | None = None
        """The version of the commit; None before it."""
        if snapshot is not None:
            checks.check_definition(
                self, snapshot.protocol, snapshot.metadata, Change.DEFINITION, snapshot.domains
            )

    def read(self, predicate: _core.Predicate | None = None, *, rows_only: bool = False) -> None:
        """Records that files that may match a predicate were read (None: the whole table). Several calls add
        up.

        `rows_only`: True if the transaction depends only on the rows that it deletes or changes, and not on
        other rows of these files, which it does not write again."""
        self.reads.append(predicate)
        self.reads_rows_only = rows_only and (self.reads_rows_only or len(self.reads) == 1)

    def add(self, adds: pa.Table) -> None:
        """Stages `add` actions."""
        if adds.num_rows:
            self.adds.append(adds if self.data_change else checks.unchanging(adds))

    def remove(self, removes: pa.Table) -> None:
        """Stages `remove` actions. An append-only table raises AppendOnlyError."""
        if not removes.num_rows:
            return
        if not self.data_change:
            removes = checks.unchanging(removes)
        if checks.changes_data(removes):
            checks.check_append_only(self)
        self.removes.append(removes)

    def mark(self, marks: Marks) -> None:
        """Stages rows that are marked as deleted. An append-only table raises AppendOnlyError."""
        self.written(marks.marked.written)
        checks.check_append_only(self)
        self.marks = marks

    @property
    def removes_files(self) -> bool:
        """True if files are removed, or rows in them marked as deleted."""
        return bool(self.removes) or (self.marks is not None and self.marks.marked.removes.num_rows > 0)

    @property
    def changes_table(self) -> bool:
        """True if a commit changes rows, the definition or the application transactions of the table."""
        of_rows = bool(self.adds) or self.removes_files or self.records_changes
        before = self.snapshot
        redefines = (
            before is None
            or self.protocol not in (None, before.protocol)
            or self.metadata not in (None, before.metadata)
        )
        return of_rows or redefines or bool(self.domains) or bool(self.options.transactions)

    def record(self, files: pa.Table) -> None:
        """Stages change files as `cdc` actions. They must have all changes of the commit, as readers of the
        change data feed then ignore its other files."""
        if files.num_rows:
            self._changes.append(files)

    @property
    def records_changes(self) -> bool:
        """True if change files are staged."""
        return bool(self._changes)

    @property
    def changes(self) -> pa.Table | None:
        """The staged change files, or None."""
        return pa.concat_tables(self._changes, promote_options="permissive") if self._changes else None

    @property
    def staged_adds(self) -> tuple[pa.Table, ...]:
        """The `add` actions of new files, one table for each call of `add`."""
        return tuple(self.adds)

    def set_metadata(self, metadata: Metadata) -> None:
        """Stages the table's new metadata."""
        self.metadata = metadata

    def set_protocol(self, protocol: Protocol) -> None:
        """Stages the table's new protocol."""
        self.protocol = protocol

    def set_domain(self, domain: str, configuration: str, *, removed: bool = False) -> None:
        """Stages a metadata domain, or its removal."""
        self.domains[domain] = (configuration, removed)

    def written(self, paths: Iterable[str]) -> None:
        """Registers new files of this transaction by their paths in the log. They are deleted if the
        transaction fails, but not if the outcome is unknown. On a local disk they are made durable together
        with the commit, before it is visible."""
        self.files.extend(paths)

    def hand_over(self, other: Transaction) -> None:
        """Passes the files of `written` to another transaction, which keeps or deletes them."""
        other.written(self.files)
        self.files = []

    def discard(self) -> None:
        """Deletes the files of `written` after a failed command. Does nothing if a commit with them exists or
        may exist."""
        if self.in_doubt:
            return
        paths, self.files = self.files, []
        self.delete_files(paths)

    def delete_files(self, paths: Collection[str]) -> None:
        if paths:
            try:
                self.store.delete(list(map(decoded_path, paths)))
            except (DeltaError, OSError) as error:
                log.warning(
                    "%s: files of a failed %s could not be deleted: %s",
                    self.store.location,
                    self.operation,
                    error,
                )

    def commit(self, metrics: Mapping[str, int] | Callable[[], Mapping[str, int]] | None = None) -> Snapshot:
        """Commits and returns the new version.

        `metrics`: metrics of the commit with names in snake_case, which are written in camelCase. A function
            is called for each attempt, as rows that another commit deleted first do not count.

        Raises the exception of a conflict (nothing was committed, and the files of `written` are deleted),
        TableAlreadyExistsError for a new table that another writer created first (the files are kept for the
        caller), and CommitUnknownError if the outcome is unknown (the files are kept, too). Other exceptions,
        such as KeyboardInterrupt or that of a signal handler, are raised with a note if the commit exists or
        may exist; the files are deleted if it does not.
        """
        counted = metrics if callable(metrics) else lambda: metrics or {}
        collect = _collector.get()
        if collect is not None:
            return collect(self, counted)
        worker = Worker[Snapshot](lambda worker: self._commit(counted, worker))
        try:
            snapshot = worker.result()
        except BaseException as error:
            if worker.withdrawn:
                self.discard()
            elif worker.stopping:
                self._add_note(error, worker)
            raise
        if (listener := _listener.get()) is not None:
            listener(snapshot.version)
        return snapshot

    def _add_note(self, error: BaseException, worker: Worker[Snapshot]) -> None:
        """Adds a note to an exception that stopped the caller, if the commit exists or may exist."""
        if self.committed is not None:
            text = f"{self.operation} is committed as version {self.committed}; do not do it again"
        elif self.in_doubt or not worker.ended:
            text = f"{self.operation} may be committed: look for it in the history before doing it again"
        else:
            return
        error.add_note(f"{self.store.location}: {text}")

    def _commit(self, metrics: Callable[[], Mapping[str, int]], worker: Worker[Snapshot]) -> Snapshot:
        try:
            self.check_writable()
            version = self._commit_loop(metrics, worker)
        except TableAlreadyExistsError:
            raise
        except BaseException:
            self.discard()
            raise
        self.is_committed(version)
        worker.watch()
        return self.after_commit(version, version)

    def is_committed(self, version: int) -> None:
        """Records that the commit exists, so that its files are kept."""
        self.committed, self.files = version, []
        log.info("%s: %s is version %d", self.store.location, self.operation, version)

    def after_commit(self, version: int, first: int) -> Snapshot:
        """Writes checksum, checkpoint and manifests after a commit. Returns the new snapshot. `first`: the
        first version that the transaction took; it differs from `version` for a transaction over several
        tables."""
        if features.is_managed(self.new_protocol):
            catalog.publish(self.store, version)
        committed = self._read_back(version)
        checksum.after_commit(committed, self.first_line)
        checkpoint.after_commit(committed, self.options, clock=self.clock, first=first)
        iceberg_metadata.after_commit(committed)
        if manifests.are_kept(committed.metadata):
            self._write_manifests(committed, *self.actions())
        return committed

    def _write_manifests(self, committed: Snapshot, adds: pa.Table, removes: pa.Table) -> None:
        """Updates the symlink manifests. A failure is raised, not only logged, as readers of the manifests
        see an older version until they are written."""
        try:
            manifests.after_commit(committed, adds, removes, redefined=self.metadata is not None)
        except (DeltaError, OSError) as error:
            raise CommitUnknownError(
                f"{self.operation} is committed as version {committed.version}, but its symlink manifests"
                " could not be written; do not do it again: DeltaTable.generate() writes them",
                where=self.store.location,
            ).with_values(version=committed.version) from error

    def _read_back(self, version: int) -> Snapshot:
        """Loads the version that was just committed. If the store fails now, CommitUnknownError is raised, as
        the commit itself succeeded."""
        if self.snapshot is not None and self.only_appends:
            committed = self.snapshot.with_appends(version, self.clock())
            recent.remember(committed)
            return committed
        if self.created is not None:
            (lines, adds), self.created = self.created, None
            return Snapshot.created(self.store, lines, adds, self.clock())
        assert self.snapshot is not None
        failure: Exception | None = None
        for wait in (*READ_WAITS, None):
            try:
                committed = self.snapshot.advance(version, self.clock())
                if self.is_staged_append:
                    recent.remember(committed)
                return committed
            except (DeltaError, OSError) as error:
                failure = error
            if wait is not None:
                self.sleep(wait)
        raise CommitUnknownError(
            f"{self.operation} is committed as version {version}, but could not be read back; do not do it"
            " again",
            where=self.store.location,
        ) from failure

    def expect(self, change: Change) -> None:
        """Checks before files are written if the commit will be refused. `change`: the kind of change that
        the command will make at least."""
        checks.check_change(self, change)

    def check_writable(self) -> None:
        """Raises an exception if the table's features or properties forbid the staged actions."""
        checks.check_staged(self)

    @property
    def new_metadata(self) -> Metadata:
        metadata = self.metadata or (self.snapshot.metadata if self.snapshot else None)
        if metadata is None:
            raise InvalidArgumentError(
                "the first version of a table needs metadata", where=self.store.location
            )
        return metadata

    @property
    def new_protocol(self) -> Protocol:
        protocol = self.protocol or (self.snapshot.protocol if self.snapshot else None)
        if protocol is None:
            raise InvalidArgumentError(
                "the first version of a table needs a protocol", where=self.store.location
            )
        return protocol

    def actions(self) -> tuple[pa.Table, pa.Table]:
        """Returns all `add` and `remove` actions, including those of the marks."""
        adds, removes = self.adds, self.removes
        if self.marks is not None:
            adds, removes = [*adds, self.marks.marked.adds], [*removes, self.marks.marked.removes]
        return concat(adds, empty_adds), concat(removes, empty_removes)

    def _commit_loop(self, metrics: Callable[[], Mapping[str, int]], worker: Worker[Snapshot]) -> int:
        def stop() -> None:
            if worker.stopping:
                raise KeyboardInterrupt("stopped before the commit was put")

        return Attempts(self, self.current(), metrics, stop).commit()

    def move_marks(self, rebased: _core.RebasedRows) -> None:
        """Marks the rows again in the files as other commits left them. The vectors of the failed attempt are
        deleted, as no commit refers to them."""
        assert self.marks is not None
        former = set(self.marks.move(rebased))
        self.files = [*(path for path in self.files if path not in former), *self.marks.marked.written]
        self.delete_files(former)

    def current(self) -> Current:
        """Returns the reads and actions of the transaction for the conflict rules."""
        adds, removes = self.actions()
        only_adds = not removes.num_rows
        return Current(
            operation=self.operation,
            isolation=self._isolation(adds, removes),
            reads_files=bool(self.reads),
            reads_whole_table=any(each is None for each in self.reads),
            removes_files=bool(self.removes),
            is_blind_append=only_adds and not self.reads,
            changes_protocol=self.protocol is not None,
            changes_metadata=self.metadata is not None,
            domains=frozenset(self.domains),
            app_ids=frozenset(self.options.transactions),
            reads_rows_only=self.reads_rows_only,
            marks_rows=self.marks is not None,
            only_deletes=self.marks is not None and not self.adds and not self._changes,
            predicate=_text(self.parameters.get("predicate")),
        )

    def _isolation(self, adds: pa.Table, removes: pa.Table) -> Isolation:
        other = self.metadata or self.protocol or self.domains or self.options.transactions
        if not other and not checks.changes_data(adds) and not checks.changes_data(removes):
            return Isolation.SNAPSHOT
        if self.options.isolation is not None:
            return ISOLATION[self.options.isolation]
        return (
            Isolation(self.snapshot.properties.isolation_level) if self.snapshot else Isolation.SERIALIZABLE
        )


def _text(predicate: Any) -> str | None:
    """Returns the condition of a command as the user wrote it; the first one of a list."""
    if isinstance(predicate, list):
        predicate = predicate[0] if predicate else None
    return predicate if isinstance(predicate, str) else None
