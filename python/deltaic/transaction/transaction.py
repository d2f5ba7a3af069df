"""A transaction: what it read, what it stages, and the loop that turns it into a version (PROTOCOL.md: Delta Log Entries).

A commit has three outcomes: committed, refused by a conflict, unknown. Each carries a fresh `commitInfo.txnId`, so that one whose answer
was lost is recognised by reading it back; the loop never goes on to the next version before this one is resolved.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import (
    AppendOnlyError,
    CommitError,
    CommitUnknownError,
    ConcurrentWriteException,
    DeltaError,
    InvalidArgumentError,
    TableAlreadyExistsError,
    check_instance,
)
from deltaic.log import checkpoint, checksum, history
from deltaic.log.segment import Sleep, commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import Change
from deltaic.transaction.body import Base, commit_body
from deltaic.transaction.conflicts import Current, Isolation
from deltaic.transaction.winners import Winners

log = logging.getLogger("deltaic.transaction")

# Pauses between attempts to learn what became of a put (seconds).
PUT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
# Pauses between attempts to read back what was committed (seconds).
READ_WAITS = (0.05, 0.2, 0.8)

Clock = Callable[[], int]


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_uuid() -> str:
    """A fresh id as text."""
    return str(uuid.uuid4())


def already_committed(snapshot: Snapshot | None, options: CommitOptions | None) -> bool:
    """Whether the snapshot has all application transactions of the options, so that the command is to be skipped."""
    check_instance(options, (CommitOptions, type(None)), "commit", "CommitOptions")
    if snapshot is None or options is None or not options.transactions:
        return False
    written = snapshot.core.transactions
    return all(app_id in written and written[app_id][0] >= version for app_id, version in options.transactions.items())


class Transaction:
    """Staged actions on top of one snapshot; `commit` makes them the next version. Not for several threads at once.

    `snapshot` None and `store` given: the first version of a new table. `operation` and `parameters`: commitInfo's; values that are not
    text, numbers, booleans or None are written as JSON text. `clock` gives ms since 1970, `new_id` fresh ids, `sleep` waits for seconds.
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
        self.snapshot, self.store, self.operation = snapshot, place, operation
        self.parameters = dict(parameters or {})
        self.options = options or CommitOptions()
        self.clock, self.new_id, self.sleep = clock, new_id, sleep
        self.change: Change | None = None
        """What the commit does to rows, where the command knows better than the staged actions show: a DELETE says REMOVE."""
        self.metadata: Metadata | None = None
        self.protocol: Protocol | None = None
        self._reads: list[_core.Predicate | None] = []
        self._adds: list[pa.Table] = []
        self._removes: list[pa.Table] = []
        self.domains: dict[str, tuple[str, bool]] = {}
        self._written: list[str] = []
        self._first_line = "{}"
        """commitInfo of the last attempt, as written."""
        self._in_doubt = False
        """Between a put of the commit and the knowledge of what became of it."""
        if snapshot is not None:
            features.check_writable(snapshot.protocol, snapshot.metadata, domains=snapshot.domains)

    def read(self, predicate: _core.Predicate | None = None) -> None:
        """Files that may match were read (None: the whole table). Several calls add up."""
        self._reads.append(predicate)

    def read_nothing(self) -> None:
        """Nothing was read: what a transaction is until `read`."""
        self._reads.clear()

    def add(self, adds: pa.Table) -> None:
        """Stages `add` actions."""
        if adds.num_rows:
            self._adds.append(adds)

    def remove(self, removes: pa.Table) -> None:
        """Stages `remove` actions. AppendOnlyError where the table forbids them."""
        if not removes.num_rows:
            return
        if _changes_data(removes):
            self._check_append_only()
        self._removes.append(removes)

    def set_metadata(self, metadata: Metadata) -> None:
        """Stages the table's new metadata."""
        self.metadata = metadata

    def set_protocol(self, protocol: Protocol) -> None:
        """Stages the table's new protocol."""
        self.protocol = protocol

    def set_domain(self, domain: str, configuration: str, *, removed: bool = False) -> None:
        """Stages a metadata domain, or its end."""
        self.domains[domain] = (configuration, removed)

    def written(self, paths: Iterable[str]) -> None:
        """New files of this transaction (as the log names them), deleted when it definitely failed, never when nobody knows."""
        self._written.extend(paths)

    def hand_over(self, other: Transaction) -> None:
        """The files of `written` become another transaction's, to keep or to delete."""
        other.written(self._written)
        self._written = []

    def discard(self) -> None:
        """Deletes the files of `written`: for a command that gives up before its commit."""
        paths, self._written = self._written, []
        if paths:
            try:
                self.store.delete([unquote(path) for path in paths])
            except (DeltaError, OSError) as error:
                log.warning("%s: files of a failed %s could not be deleted: %s", self.store.location, self.operation, error)

    def commit(self, metrics: Mapping[str, int] | None = None) -> Snapshot:
        """Commits, and gives the version with this commit. `metrics`: snake_case names, written as delta-spark's.

        Raises the conflict's exception (nothing was committed, the files of `written` are gone), TableAlreadyExistsError for a new
        table that another made first (the files are kept, for the caller to use), CommitUnknownError when the store did not say (kept too).
        Ctrl-C comes through as it is: then the files are gone too, unless the commit is there or may be.
        """
        try:
            adds, removes = _concat(self._adds, _core.empty_adds), _concat(self._removes, _core.empty_removes)
            self._check_writable(adds, removes)
            version = self._commit_loop(adds, removes, metrics or {})
        except (CommitUnknownError, TableAlreadyExistsError):
            raise
        except BaseException as error:
            if isinstance(error, Exception) or not self._in_doubt:
                self.discard()
            raise
        self._written = []
        log.info("%s: %s is version %d", self.store.location, self.operation, version)
        committed = self._read_back(version)
        checksum.write(committed, history.parse_commit_info(self._first_line))
        checkpoint.after_commit(committed, self.options, clock=self.clock)
        return committed

    def _read_back(self, version: int) -> Snapshot:
        """The version that was just committed. A store that fails now does not undo it: nobody may take that for a failed commit."""
        failure: Exception | None = None
        for wait in (*READ_WAITS, None):
            try:
                return self.snapshot.advance(version) if self.snapshot else Snapshot.load(self.store, version=version)
            except (DeltaError, OSError) as error:
                failure = error
            if wait is not None:
                self.sleep(wait)
        raise CommitUnknownError(
            f"{self.operation} is committed as version {version}, but could not be read back; do not do it again", where=self.store.location
        ) from failure

    def expect(self, change: Change) -> None:
        """Refuses now, before a file is written, what the commit would refuse then. `change`: the least that the command will do."""
        if change in (Change.REMOVE, Change.REPLACE):
            self._check_append_only()
        domains = dict(self.snapshot.domains) if self.snapshot else {}
        domains.update({name: configuration for name, (configuration, removed) in self.domains.items() if not removed})
        features.check_writable(self._new_protocol, self._new_metadata, change, domains=domains)

    def _check_append_only(self) -> None:
        if self.snapshot is not None and self.snapshot.properties.append_only:
            raise AppendOnlyError(
                f"{self.operation} would remove rows of a table that only takes new ones",
                where=self.snapshot.location,
                found="delta.appendOnly = true",
            )

    def _check_writable(self, adds: pa.Table, removes: pa.Table) -> None:
        staged = Change.of(adds=adds.num_rows > 0, removes=removes.num_rows > 0, data_change=_changes_data(adds) or _changes_data(removes))
        self.expect(self.change or staged)

    @property
    def _new_metadata(self) -> Metadata:
        metadata = self.metadata or (self.snapshot.metadata if self.snapshot else None)
        if metadata is None:
            raise InvalidArgumentError("the first version of a table needs metadata", where=self.store.location)
        return metadata

    @property
    def _new_protocol(self) -> Protocol:
        protocol = self.protocol or (self.snapshot.protocol if self.snapshot else None)
        if protocol is None:
            raise InvalidArgumentError("the first version of a table needs a protocol", where=self.store.location)
        return protocol

    def _commit_loop(self, adds: pa.Table, removes: pa.Table, metrics: Mapping[str, int]) -> int:
        current = self._current(adds, removes)
        base = self.snapshot.version if self.snapshot else -1
        rules = Winners(self.snapshot, self._reads, removes, self.store)
        rules.check_log()
        attempt = 0
        while True:
            txn_id = self.new_id()
            body = commit_body(self, Base(base, rules.protocol, rules.metadata, rules.row_id_mark), current, txn_id, adds, removes, metrics)
            self._first_line = body[: body.index(b"\n")].decode()
            self._in_doubt = True
            try:
                ours = self._put(base + 1, body, txn_id)
            except KeyboardInterrupt:
                self._in_doubt = self._may_be_there(base + 1, txn_id)
                raise
            if ours:
                return base + 1
            self._in_doubt = False
            if self.snapshot is None:
                raise TableAlreadyExistsError("another writer made this table first", where=self.store.location)
            if self.options.max_retries is not None and attempt >= self.options.max_retries:
                error = ConcurrentWriteException(
                    f"{self.operation} was not committed: version {base + 1} came first, and max_retries={self.options.max_retries}",
                    where=self.store.location,
                )
                error.winner = base + 1
                raise error
            attempt += 1
            newest = rules.newest(base + 1)
            for version in range(base + 1, newest + 1):
                rules.check(current, version)
            base = newest

    def _current(self, adds: pa.Table, removes: pa.Table) -> Current:
        only_adds = not removes.num_rows
        return Current(
            operation=self.operation,
            isolation=self._isolation(adds, removes),
            reads_files=bool(self._reads),
            reads_whole_table=any(each is None for each in self._reads),
            removes_files=not only_adds,
            is_blind_append=only_adds and not self._reads,
            changes_protocol=self.protocol is not None,
            changes_metadata=self.metadata is not None,
            domains=frozenset(self.domains),
            app_ids=frozenset(self.options.transactions),
        )

    def _isolation(self, adds: pa.Table, removes: pa.Table) -> Isolation:
        other = self.metadata or self.protocol or self.domains or self.options.transactions
        if not other and not _changes_data(adds) and not _changes_data(removes):
            return Isolation.SNAPSHOT
        if self.options.isolation is not None:
            return Isolation.WRITE_SERIALIZABLE if self.options.isolation == "write_serializable" else Isolation.SERIALIZABLE
        level = self.snapshot.properties.isolation_level if self.snapshot else "Serializable"
        return Isolation.WRITE_SERIALIZABLE if level == "WriteSerializable" else Isolation.SERIALIZABLE

    def _put(self, version: int, body: bytes, txn_id: str) -> bool:
        """Whether this version is ours; False when it is another's. CommitUnknownError when it cannot be told."""
        path = commit_path(version)
        doubt: Exception | None = None
        asked = False
        for wait in (*PUT_WAITS, None):
            try:
                answer = self.store.put_if_absent(path, body)
            except Exception as error:
                if asked:  # an earlier put of the same commit may still have happened
                    raise self._unknown(version, txn_id) from error
                if isinstance(error, OSError):
                    raise CommitError(f"the commit could not be written: {error}", where=f"{self.store.location}/{path}") from error
                raise
            if answer == "created":
                return True
            asked = True
            try:
                info = history.commit_info(self.store, version)
                return bool(info.get("txnId") == txn_id)
            except FileNotFoundError:
                pass  # nothing there: putting the same bytes at the same version again is safe
            except (DeltaError, OSError, ValueError) as error:
                doubt = error
            if wait is not None:
                self.sleep(wait)
        raise self._unknown(version, txn_id) from doubt

    def _may_be_there(self, version: int, txn_id: str) -> bool:
        """Whether an interrupted put did, or may have done, what it should: no call of the store goes on after its exception."""
        try:
            return bool(history.commit_info(self.store, version).get("txnId") == txn_id)
        except FileNotFoundError:
            return False
        except BaseException:
            return True

    def _unknown(self, version: int, txn_id: str) -> CommitUnknownError:
        return CommitUnknownError(
            f"the store did not say whether {self.operation} was committed as version {version}; "
            f"look for commitInfo.txnId {txn_id} (DeltaTable.transaction_state) before doing it again",
            where=self.store.location,
        )


def _changes_data(actions: pa.Table) -> bool:
    return bool(actions.num_rows) and pc.any(actions.column("dataChange")).as_py() is True


def _concat(tables: list[pa.Table], empty: Callable[[], pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive") if tables else empty()
