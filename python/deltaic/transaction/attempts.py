"""The loop that turns staged actions into the next version: one attempt after the other, until one of three outcomes is certain.

A put-if-absent of a commit answers created, exists, or nothing. Where it is not "created" the version is read and its `commitInfo.txnId`
compared, so that a commit whose answer was lost is recognised; the loop never goes on to the next version before this one is resolved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from deltaic import _core
from deltaic.errors import CommitError, CommitUnknownError, ConcurrentWriteException, TableAlreadyExistsError
from deltaic.log import catalog, history
from deltaic.log.segment import LOG, commit_path
from deltaic.protocol import features, row_tracking
from deltaic.transaction import timestamps
from deltaic.transaction.body import Base, commit_body
from deltaic.transaction.turns import turns_of
from deltaic.transaction.winners import Winners, concat

if TYPE_CHECKING:
    from deltaic.transaction.conflicts import Current
    from deltaic.transaction.transaction import Transaction

log = logging.getLogger("deltaic.transaction")

# Pauses between attempts to learn what became of a put (seconds).
PUT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)


class Attempts:
    """Attempts of one transaction to commit. `metrics` is called for each attempt; `stop` raises if the caller was interrupted."""

    def __init__(
        self, transaction: Transaction, current: Current, metrics: Callable[[], Mapping[str, int]], stop: Callable[[], None]
    ) -> None:
        self.transaction, self.current, self.metrics, self.stop = transaction, current, metrics, stop
        self.store, self.snapshot = transaction.store, transaction.snapshot
        self.rules = Winners(
            self.snapshot,
            transaction.reads,
            concat(transaction.removes, _core.empty_removes),
            transaction.marks,
            self.store,
            transaction.sleep,
        )
        self.turns = turns_of(self.store, transaction.new_metadata.id)
        self.base = self.snapshot.version if self.snapshot else -1
        """The version that the next attempt goes on top of."""
        self.lost = 0

    def commit(self) -> int:
        """-> the version. Raises the conflict's exception, TableAlreadyExistsError, CommitUnknownError, CommitError."""
        self.prepare()
        version = self._append() if self._is_independent() else None
        if version is None:
            # In the background what came meanwhile is read before the turn, so that nobody waits for that.
            while self.transaction.gate and self.turns.newest > self.base:
                self._pass(self.turns.newest)
            with self.turns.turn(self.stop):
                version = self._take_turn()
        return version

    def prepare(self) -> None:
        """Before the first attempt: the log has what the snapshot shows, and no transaction over several tables lies open below it."""
        self.rules.check_log(self.transaction.clock())
        if self.snapshot is not None and self.snapshot.pending is not None:
            is_new = self.turns.newest < self.snapshot.version and not self.store.is_remote
            self.rules.settle(self.snapshot, self.snapshot.pending, look=is_new)

    def _take_turn(self) -> int:
        """Attempts one after the other, for as long as other processes come first."""
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
        """True if the commit's lines are the same whatever comes before it: those of a blind append."""
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
        """Commits new files. All that takes long is done before the turn, which gives the commit its name, and after it, so that the disk
        makes the commits of several writers durable together. None where the store cannot do that, or the lines must be made anew."""
        txn_id, body = self._body()
        staged = self.store.stage(LOG, body, after=[unquote(each) for each in self.transaction.files])
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
        try:
            staged.settle()
        except Exception as error:  # others see the commit already: a disk that fails now does not undo it
            log.warning("%s: version %d is there, but may be lost with the power: %s", self.store.location, version, error)
        return version

    def _is_defined_as_read(self) -> bool:
        snapshot = self.snapshot
        return snapshot is not None and (self.rules.protocol, self.rules.metadata) == (snapshot.protocol, snapshot.metadata)

    def _body(self) -> tuple[str, bytes]:
        """A fresh id, and the commit's bytes on top of `base`."""
        txn_id, rules = self.transaction.new_id(), self.rules
        base = Base(self.base, rules.protocol, rules.metadata, rules.row_id_mark)
        body = commit_body(self.transaction, base, self.current, txn_id, *self.transaction.actions(), self.metrics())
        self.transaction.first_line = body[: body.index(b"\n")].decode()
        return txn_id, body

    def _newest(self) -> int:
        """The newest version, after another process took the next one."""
        if self.snapshot is None:
            raise TableAlreadyExistsError("another writer made this table first", where=self.store.location)
        newest = self.rules.newest(self.base + 1)
        self.turns.committed(newest)
        return newest

    def _pass(self, newest: int) -> None:
        """Onto `newest`, past all versions before it. Raises where one of them stands in the way."""
        most = self.transaction.options.max_retries
        if most is not None and self.lost >= most:
            error = ConcurrentWriteException(
                f"{self.current.operation} was not committed: version {self.base + 1} came first, and max_retries={most}",
                where=self.store.location,
            )
            error.winner = self.base + 1
            raise error
        self.lost += 1
        for version in range(self.base + 1, newest + 1):
            # Appends leave the definition alone, and whoever read nothing does not mind them.
            if not self.current.is_blind_append or version <= self.turns.appended_since:
                self.rules.check(self.current, version)
        self.base = newest
        if self.rules.rebased is not None:
            self.transaction.move_marks(self.rules.rebased)
            self.rules.rebased = None

    def _publish(self, staged: _core.StagedObject, version: int, txn_id: str) -> bool:
        """Like `_put`, for a commit file whose bytes are durable already."""
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
        """True if this version is ours; False when it is another's. CommitUnknownError when it cannot be told.

        Whatever the store raises, the log is asked. Only where the version is not there the error means that nothing was written, and only
        where no earlier put was without an answer, as that one may still be under way.
        """
        path = commit_path(version)
        doubt: Exception | None = None
        self.transaction.in_doubt = True
        unanswered, staged = False, ""
        files = [unquote(each) for each in self.transaction.files]
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
            if wait is not None:  # nothing is there: putting the same bytes at the same version again is safe
                self.transaction.sleep(wait)
        raise self._unknown(version, txn_id) from doubt

    def _raise_not_written(self, path: str, failure: Exception) -> NoReturn:
        if isinstance(failure, OSError):
            where = f"{self.store.location}/{path}"
            raise CommitError(f"the commit could not be written: {failure.strerror or failure}", where=where) from failure
        raise failure

    def _is_ours(self, version: int, txn_id: str) -> tuple[bool | None, Exception | None]:
        """True if the log has this version with our id; None if the version is not there, or the error of reading it."""
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
