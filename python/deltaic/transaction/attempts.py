"""The commit loop: attempts to commit staged actions as the next version, until the outcome is certain
(committed, refused by a conflict) or cannot be determined.

A put-if-absent of a commit returns "created", "exists" or "unknown". Unless it is "created", the version is
read and its `commitInfo.txnId` compared with ours, so that a commit whose response was lost is recognized.
The loop does not try the next version before this is resolved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from deltaic import _core
from deltaic.errors import CommitError, CommitUnknownError, ConcurrentWriteException, TableAlreadyExistsError
from deltaic.log import catalog, history, recent
from deltaic.log.segment import LOG, commit_path
from deltaic.protocol import features, row_tracking
from deltaic.protocol.paths import decoded_path
from deltaic.transaction import timestamps
from deltaic.transaction.body import Base, commit_body
from deltaic.transaction.turns import turns_of
from deltaic.transaction.winners import Winners, concat, empty_removes

if TYPE_CHECKING:
    from deltaic.transaction.conflicts import Current
    from deltaic.transaction.transaction import Transaction

log = logging.getLogger("deltaic.transaction")

# Seconds between attempts to find out if a put succeeded
PUT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)


class Attempts:
    """The attempts of one transaction to commit. `metrics`: called for each attempt. `stop`: raises if the
    caller was interrupted."""

    def __init__(
        self,
        transaction: Transaction,
        current: Current,
        metrics: Callable[[], Mapping[str, int]],
        stop: Callable[[], None],
    ) -> None:
        self.transaction, self.current, self.metrics, self.stop = transaction, current, metrics, stop
        self.store, self.snapshot = transaction.store, transaction.snapshot
        self.rules = Winners(
            self.snapshot,
            transaction.reads,
            concat(transaction.removes, empty_removes),
            transaction.marks,
            self.store,
            transaction.sleep,
        )
        self.turns = turns_of(self.store, transaction.new_metadata.id)
        self.base = self.snapshot.version if self.snapshot else -1
        """The version after which the next attempt commits."""
        self.lost = 0

    def commit(self) -> int:
        """Commits and returns the version. Raises the exception of a conflict, TableAlreadyExistsError,
        CommitUnknownError or CommitError."""
        self.prepare()
        version = self._append() if self._is_independent() else None
        if version is None:
            # A compaction in the background reads other writers' commits before its turn, so that no command
            # waits for that.
            while self.transaction.gate and self.turns.newest > self.base:
                self._pass(self.turns.newest)
            with self.turns.turn(self.stop):
                version = self._take_turn()
        return version

    def prepare(self) -> None:
        """Checks before the first attempt that the log still has the snapshot's version, and ends
        transactions over several tables that are undecided before it."""
        self.rules.check_log(self.transaction.clock())
        if self.snapshot is not None and self.snapshot.pending is not None:
            is_new = self.turns.newest < self.snapshot.version and not self.store.is_remote
            self.rules.settle(self.snapshot, self.snapshot.pending, look=is_new)

    def _take_turn(self) -> int:
        """Attempts to commit until no other process commits first. Returns the version."""
        known = self.turns.known(self.store, self.base) if self.snapshot else self.base
        while True:
            if known > self.base:
                self._pass(known)
            txn_id, body = self._body()
            self.stop()
            put = partial(self._put, self.base + 1, body, txn_id)
            if self.transaction.gate(self.base + 1, put) if self.transaction.gate else put():
                self.turns.committed(self.base + 1, size=len(body))
                return self.base + 1
            known = self._newest()

    def _is_independent(self) -> bool:
        """True if the lines of the commit do not depend on other commits before it: for a blind append
        without row ids, in-commit timestamps and the like."""
        current, snapshot = self.current, self.snapshot
        if self._is_managed():
            return False
        if snapshot is None or not current.is_blind_append or self.transaction.records_changes:
            return False
        if current.changes_protocol or current.changes_metadata or current.domains or current.app_ids:
            return False
        of = snapshot.protocol, snapshot.metadata
        return not timestamps.enabled(*of) and not row_tracking.gives_ids(*of)

    def _is_managed(self) -> bool:
        """True if a catalog ratifies the commits."""
        return self.rules.protocol is not None and features.is_managed(self.rules.protocol)

    def _append(self) -> int | None:
        """Commits a blind append. The commit file is written before the writer's turn, renamed in it, and
        made durable after it, so that one sync of the disk can serve several writers. Returns the version;
        None if the store does not support this, or if the lines must be made again as the definition of the
        table has changed."""
        txn_id, body = self._body()
        staged = self.store.stage(LOG, body, after=list(map(decoded_path, self.transaction.files)))
        if staged is None:
            return None
        with self.turns.turn(self.stop):
            known = self.turns.known(self.store, self.base)
            while True:
                if known > self.base:
                    self._pass(known)
                    if not self._is_defined_as_read():
                        return None
                self.stop()
                if self._publish(staged, self.base + 1, txn_id):
                    break
                known = self._newest()
            version = self.base + 1
            self.turns.committed(version, size=len(body), append=True)
            recent.appended(self.store.location, self.transaction.new_metadata.id, version)
            assert self.snapshot is not None
            self.transaction.is_staged_append = True
            self.transaction.only_appends = self.turns.appended_since <= self.snapshot.version
        try:
            staged.settle()
        except Exception as error:  # other processes see the commit, so an error of the disk does not undo it
            log.warning(
                "%s: version %d is there, but may be lost with the power: %s",
                self.store.location,
                version,
                error,
            )
        return version

    def _is_defined_as_read(self) -> bool:
        snapshot = self.snapshot
        return snapshot is not None and (self.rules.protocol, self.rules.metadata) == (
            snapshot.protocol,
            snapshot.metadata,
        )

    def _body(self) -> tuple[str, bytes]:
        """Returns a new id and the bytes of the commit after version `base`."""
        txn_id, rules = self.transaction.new_id(), self.rules
        base = Base(self.base, rules.protocol, rules.metadata, rules.row_id_mark)
        transaction = self.transaction
        body, lines, adds = commit_body(
            transaction, base, self.current, txn_id, *transaction.actions(), self.metrics()
        )
        transaction.first_line = lines[0]
        if self.snapshot is None:
            transaction.created = lines, adds
        return txn_id, body

    def _newest(self) -> int:
        """Returns the newest version after another process has taken the next one."""
        if self.snapshot is None:
            raise TableAlreadyExistsError("another writer made this table first", where=self.store.location)
        newest = self.rules.newest(self.base + 1)
        self.turns.committed(newest)
        return newest

    def _pass(self, newest: int) -> None:
        """Moves `base` to `newest`, after checking each version in between for conflicts."""
        most = self.transaction.options.max_retries
        if most is not None and self.lost >= most:
            error = ConcurrentWriteException(
                f"{self.current.operation} was not committed: version {self.base + 1} came first, and"
                f" max_retries={most}",
                where=self.store.location,
            )
            error.winner = self.base + 1
            raise error
        self.lost += 1
        for version in range(self.base + 1, newest + 1):
            # Blind appends do not change the definition, and do not conflict with a transaction that read
            # nothing.
            if not self.current.is_blind_append or version <= self.turns.appended_since:
                self.rules.check(self.current, version)
        self.base = newest
        if self.rules.rebased is not None:
            self.transaction.move_marks(self.rules.rebased)
            self.rules.rebased = None

    def _publish(self, staged: _core.StagedObject, version: int, txn_id: str) -> bool:
        """Like `_put`, for a commit file that is already written and is renamed now."""
        transaction = self.transaction
        transaction.in_doubt = True
        try:
            ours: bool | None = staged.publish(commit_path(version))
        except Exception as failure:
            ours, doubt = self._is_ours(version, txn_id)
            if ours is None and doubt is not None:
                raise self._unknown(version, txn_id) from failure
            if ours is None:
                transaction.in_doubt = False
                self._raise_not_written(commit_path(version), failure)
        transaction.in_doubt = ours is True
        return ours is True

    def _put(self, version: int, body: bytes, txn_id: str) -> bool:
        """Puts the commit as a version. True if the version is this commit, False if it is another one.
        CommitUnknownError is raised if that cannot be determined.

        After any error of the store, the log is read. The error means that nothing was written only if the
        version does not exist and no earlier put was left without a response, as that put may still be
        executed.
        """
        path = commit_path(version)
        doubt: Exception | None = None
        self.transaction.in_doubt = True
        unanswered, staged = False, ""
        files = list(map(decoded_path, self.transaction.files))
        for wait in (*PUT_WAITS, None):
            failure: BaseException | None = None
            try:
                if self._is_managed():
                    answer, staged = catalog.propose(self.store, version, body, files)
                else:
                    answer = self.store.put_if_absent(path, body, after=files)
                if answer == "created":
                    return True
                unanswered = True
            except BaseException as error:
                failure = error
            ours, doubt = self._is_ours(version, txn_id)
            if ours is False or (ours is None and doubt is None and not unanswered):
                self.transaction.in_doubt = False
            if failure is not None and not isinstance(failure, Exception):
                raise failure
            if ours is False and staged:
                catalog.withdraw(self.store, staged)
            if ours is not None:
                return ours
            if failure is not None:
                if self.transaction.in_doubt:
                    raise self._unknown(version, txn_id) from failure
                self._raise_not_written(path, failure)
            if wait is not None:  # the version does not exist, so putting the same bytes again is safe
                self.transaction.sleep(wait)
        raise self._unknown(version, txn_id) from doubt

    def _raise_not_written(self, path: str, failure: Exception) -> NoReturn:
        if isinstance(failure, OSError):
            where = f"{self.store.location}/{path}"
            raise CommitError(
                f"the commit could not be written: {failure.strerror or failure}", where=where
            ) from failure
        raise failure

    def _is_ours(self, version: int, txn_id: str) -> tuple[bool | None, Exception | None]:
        """Compares the id of a version in the log with ours. Returns (True or False, None), (None, None) if
        the version does not exist, or (None, error) if it cannot be read."""
        try:
            return history.commit_info(self.store, version).get("txnId") == txn_id, None
        except FileNotFoundError:
            return None, None
        except Exception as error:
            return None, error

    def _unknown(self, version: int, txn_id: str) -> CommitUnknownError:
        return CommitUnknownError(
            f"the store did not say whether {self.current.operation} was committed as version {version}; "
            f"look for commitInfo.txnId {txn_id} (DeltaTable.transaction_state) before doing it again",
            where=self.store.location,
        )
