"""Intents of transactions over several tables: the commit that is planned for each table, and the record that
decides about all of them.

Each table has the file `_delta_log/_intent.<id>.json`, from before the transaction takes a version of the
table until some time after its commit. The name sorts after those of all versions, so every listing of the
log contains it. The file `_delta_log/_transactions/<id>.json` of one of the tables, the coordinator, is the
record: it has the state "committed" or "aborted", and the process that creates it decides. The design is
described in docs/decisions/several-tables-in-one-commit.md.
"""

from __future__ import annotations

import errno
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from deltaic._core import Store
from deltaic.errors import CommitError, CommitUnknownError, DeltaError, ProtocolError, UnsupportedFeatureError
from deltaic.log.store import open_beside
from deltaic.process_state import module_lock
from deltaic.protocol.actions import line
from deltaic.protocol.bounded_json import parse_json

INTENT = r"_intent\.([0-9A-Za-z-]{1,64})\.json"
"""The name of an intent in the log, with the transaction's id."""
MARK = "_several_tables"
"""The name of an empty file in the log, which a table on a local disk gets before its first intent and
keeps. A log without it has no intents, so that its newest version can be found without a listing."""
RECORDS = "_delta_log/_transactions"
START = "TRANSACTION START"
"""The operation in the commitInfo of the commit without actions by which a transaction takes a version of a
table."""

# Seconds that another writer waits between checks of an undecided transaction. After the last check it aborts
# the transaction.
WAITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0)
# Seconds between attempts to find out if a put of a record succeeded
RECORD_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
# Age (ms) of an intent from which a reader aborts an undecided transaction, as its writer has probably died
ABANDONED = 60_000
# Minimum age (ms) at which an intent is deleted after its commit. If it were deleted at once, a listing that
# was taken meanwhile could miss both the intent and the commit.
KEPT = 10_000
# Errors by which this process cannot write a file, while it can read
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)
# Maximum bytes of a transaction's record
_MOST_BYTES = 64 << 10
# Maximum number of ended transactions in the cache; above it, the oldest entry is dropped
_MOST_KNOWN = 10_000
log = logging.getLogger("deltaic.log")


def intent_path(transaction: str) -> str:
    """Returns the path of a transaction's intent, relative to the table."""
    return f"_delta_log/_intent.{transaction}.json"


def record_path(transaction: str) -> str:
    """Returns the path of a transaction's record, relative to its coordinator."""
    return f"{RECORDS}/{transaction}.json"


def started_by(info: Mapping[str, Any]) -> str | None:
    """Returns the id of the transaction that made a start commit, from its commitInfo; None for any other
    commit."""
    if info.get("operation") != START:
        return None
    parameters = info.get("operationParameters")
    return (
        str(parameters["transaction"])
        if isinstance(parameters, dict) and "transaction" in parameters
        else None
    )


@dataclass(frozen=True)
class Intent:
    """The intent of a transaction in one table.

    `start`: the version that the transaction takes by a commit without actions, or the one that it tries to
        take.
    `base`: the version after which the commit follows: `start`, or a later one of other writers.
    `coordinator`: location of the table with the record. `tables`: locations of all tables of the
        transaction.
    `body`: the lines of the commit, as they would be in version `base` + 1."""

    transaction: str
    start: int
    base: int
    coordinator: str
    tables: tuple[str, ...]
    body: bytes

    def to_bytes(self) -> bytes:
        """Serializes the intent: the lines of the commit, so that the file can be read like one, and then the
        action `deltaicIntent` with the other fields."""
        last = {
            name: getattr(self, name) for name in ("transaction", "start", "base", "coordinator", "tables")
        }
        return self.body + line({"deltaicIntent": last}).encode() + b"\n"


def put(store: Store, intent: Intent) -> None:
    """Puts a table's intent, or replaces the one of the same transaction."""
    mark = f"_delta_log/{MARK}"
    if not store.is_remote and store.head(mark) is None:
        store.put_if_absent(mark, b"", durable=False)  # the next put syncs the folder
    store.put(intent_path(intent.transaction), intent.to_bytes())


def read(store: Store, transaction: str) -> Intent | None:
    """Reads a table's intent; None if it does not exist or was deleted."""
    path = intent_path(transaction)
    try:
        data = store.get(path)
    except FileNotFoundError:
        return None
    lines = data.rstrip(b"\n").rpartition(b"\n")
    try:
        last = parse_json(lines[2])["deltaicIntent"]
        if last["transaction"] != transaction:
            raise ValueError("the intent of another transaction")
        start, base, tables = int(last["start"]), int(last["base"]), tuple(map(str, last["tables"]))
        if not 0 < start <= base < 2**63 - 1:
            raise ValueError(f"the start version {start} and the base version {base}")
        return Intent(transaction, start, base, str(last["coordinator"]), tables, lines[0] + b"\n")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(
            "the intent of a transaction over several tables cannot be read",
            where=f"{store.location}/{path}",
            found=str(error),
            expected="the lines of a commit, and deltaicIntent",
        ) from error


def decision(store: Store, transaction: str) -> bool | None:
    """Reads the decision in the coordinator's record: True for committed, False for aborted, None for
    undecided."""
    path = record_path(transaction)
    try:
        text = store.get(path, most=_MOST_BYTES)
    except FileNotFoundError:
        return None
    try:
        record = parse_json(text)
    except (ValueError, RecursionError):
        record = text[:80]
    state = record.get("state") if isinstance(record, dict) else record
    if state not in ("committed", "aborted"):
        raise ProtocolError(
            "the record of a transaction over several tables cannot be read",
            where=f"{store.location}/{path}",
            found=repr(state),
            expected="'committed' or 'aborted'",
        )
    return bool(state == "committed")


def decide(
    store: Store,
    transaction: str,
    commit: bool,
    tables: Sequence[str],
    now: int,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Decides about a transaction by creating its record, unless there is one. Returns True if the
    transaction is committed, by this call or before.

    `store`: of the coordinator. `commit`: the decision. `tables`: locations for the record. `now`: ms.
    CommitError is raised if no record could be created, CommitUnknownError if the outcome cannot be
    determined.
    """
    path, doubt, unanswered = record_path(transaction), None, False
    state = "committed" if commit else "aborted"
    body = line(
        {"transaction": transaction, "state": state, "tables": list(tables), "timestamp": now}
    ).encode()
    where = f"{store.location}/{path}"
    for wait in (*RECORD_WAITS, None):
        failure: Exception | None = None
        try:
            if store.put_if_absent(path, body) == "created":
                return commit
            unanswered = True
        except Exception as error:
            failure = error
        try:
            found, doubt = decision(store, transaction), None
            if found is not None:
                return found
        except Exception as error:
            doubt = error
        if failure is not None and doubt is None and not unanswered:
            raise CommitError(f"the decision could not be written: {failure}", where=where) from failure
        if wait is not None:
            sleep(wait)
    raise CommitUnknownError(
        "the store did not say whether the transaction was decided; look for its record", where=where
    ) from doubt


class RollForward(Protocol):
    """Type of the function that commits a decided transaction to the log of a table:
    `deltaic.transaction.rolling_forward.roll_forward`."""

    def __call__(self, store: Store, intent: Intent, /) -> tuple[int, bytes | None]:
        """Returns the version of the commit, and its lines if this call wrote it."""


def roll_forward(store: Store, intent: Intent) -> int:
    """Returns the version of a committed transaction in a table, and commits it to the log if no one has done
    so. The commit loop is imported here, as it is a room above the log."""
    put: RollForward = import_module("deltaic.transaction.rolling_forward").roll_forward
    return put(store, intent)[0]


class _FinishedTransactions:
    """Cache of ended transactions over several tables: (location, id) -> version, -1 if aborted or unknown. A
    process reads each transaction once."""

    def __init__(self) -> None:
        self._lock = module_lock()
        self._versions: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._withdrawn: set[tuple[str, str]] = set()

    def get(self, store: Store, transaction: str) -> int | None:
        return self._versions.get((store.location, transaction))

    def add(self, store: Store, transaction: str, version: int) -> None:
        with self._lock:
            self._versions[(store.location, transaction)] = version
            while len(self._versions) > _MOST_KNOWN:
                self._withdrawn.discard(self._versions.popitem(last=False)[0])

    def is_first_withdrawal(self, store: Store, transaction: str) -> bool:
        """True on the first call for an intent. A process that may not delete an intent does not try
        again."""
        with self._lock:
            is_known = (store.location, transaction) in self._withdrawn
            self._withdrawn.add((store.location, transaction))
        return not is_known


DONE = _FinishedTransactions()


def coordinator_of(store: Store, intent: Intent) -> Store:
    """Returns the store of the table with the record."""
    return store if intent.coordinator == store.location else open_beside(store, intent.coordinator)


def settle(
    store: Store, transaction: str, *, sleep: Callable[[float], None] = time.sleep, base: int | None = None
) -> None:
    """Ends another writer's transaction in this table, before a writer commits. A committed transaction is
    rolled forward. A transaction that is not decided within a few seconds is aborted.

    `base`: if the transaction takes a later version than this, it is ignored."""
    for wait in (*WAITS, None):
        if DONE.get(store, transaction) is not None:
            return
        intent = read(store, transaction)
        if intent is None or (base is not None and intent.start > base):
            return
        committed = _look(store, intent, abort=wait is None)
        if committed is not None:
            try:
                _finish(store, transaction, committed)
            except OSError as error:
                raise CommitError(
                    f"transaction {transaction} over several tables is committed, but could not be put into"
                    f" the log: {error}",
                    where=store.location,
                ) from error
            return
        sleep(wait or 0)


def _look(store: Store, intent: Intent, *, abort: bool) -> bool | None:
    """Reads the decision of the record. `abort`: True to abort the transaction if it is undecided.

    If the decision cannot be read, CommitError is raised: readers must see all of a transaction or nothing,
    so the newest version is unknown."""
    record = record_path(intent.transaction)
    try:
        coordinator = coordinator_of(store, intent)
        committed = decision(coordinator, intent.transaction)
        if committed is None and abort:
            if coordinator.head(intent_path(intent.transaction)) is None:
                raise ProtocolError(
                    "the log of the coordinator has no intent of the transaction",
                    where=intent.coordinator,
                    expected=intent_path(intent.transaction),
                )
            committed = decide(
                coordinator, intent.transaction, False, intent.tables, time.time_ns() // 1_000_000
            )
            if not committed:
                log.warning(
                    "%s: transaction %s was left undecided, and is aborted",
                    store.location,
                    intent.transaction,
                )
        return committed
    except (DeltaError, OSError) as error:
        raise CommitError(
            f"the outcome of transaction {intent.transaction} over several tables cannot be read from its"
            f" record: {error}; an older version can be opened by its number",
            where=store.location,
            expected=f"{intent.coordinator}/{record}",
        ) from error


def _finish(store: Store, transaction: str, committed: bool) -> int:
    """Ends a decided transaction in a table: commits it to the log, or deletes its intent. Returns the
    version; -1 if it is aborted or its version is unknown."""
    version = -1
    if committed:
        intent = read(store, transaction)  # read again, as its writer may change it until the decision
        version = roll_forward(store, intent) if intent is not None else -1
    else:
        withdraw(store, transaction)
    DONE.add(store, transaction, version)
    return version


def withdraw(store: Store, transaction: str) -> None:
    """Deletes a table's intent. A process that may not delete files leaves it to others."""
    try:
        store.delete([intent_path(transaction)])
    except (DeltaError, OSError) as error:
        log.info("%s: %s could not be deleted: %s", store.location, intent_path(transaction), error)


def resolve(store: Store, intents: Mapping[str, int], latest: int, now: int) -> tuple[bool, list[Intent]]:
    """Resolves the intents that a reader found in a listing of the log. Committed transactions are rolled
    forward; undecided ones are ignored until they are old, and then aborted.

    `intents`: id -> modification time (ms). `latest`: the newest version in the listing. `now`: ms.
    Returns True if the log has newer commits than `latest`, and the intents of committed transactions that
    are not in the log because this process cannot write there: it may not, or the disk is full.
    """
    is_new, unwritten = False, []
    for transaction, modified in intents.items():
        version = DONE.get(store, transaction)
        if version is None:
            intent = read(store, transaction)
            if intent is None:
                is_new = True
                continue
            try:
                committed = _look(store, intent, abort=now - modified > ABANDONED)
            except CommitError as error:
                if not isinstance(error.__cause__, CommitError):
                    raise
                committed = None  # this process cannot write the record, so the transaction stays undecided
            if committed is None:
                continue
            try:
                version = _finish(store, transaction, committed)
            except (OSError, UnsupportedFeatureError) as error:
                if (
                    isinstance(error, OSError)
                    and error.errno not in _NOT_WRITABLE
                    and not isinstance(error, PermissionError)
                ):
                    raise
                unwritten += [each for each in (read(store, transaction),) if each is not None]
                continue
            is_new = is_new or committed
        is_new = is_new or version > latest
        if now - modified > KEPT and DONE.is_first_withdrawal(store, transaction):
            withdraw(store, transaction)
    return is_new, unwritten


def clean_records(store: Store, before: int) -> int:
    """Deletes records that were written before `before` (ms) and whose transactions have no intents left.
    Returns their number."""
    gone: list[str] = []
    for path, _, modified in store.entries(RECORDS, None):
        if modified >= before:
            continue
        transaction = path.rsplit("/", 1)[-1].removesuffix(".json")
        try:
            tables = [str(each) for each in parse_json(store.get(path, most=_MOST_BYTES))["tables"]]
            stores = [store if each == store.location else open_beside(store, each) for each in tables]
            if all(each.head(intent_path(transaction)) is None for each in stores):
                gone.append(path)
        except (DeltaError, OSError, ValueError, KeyError, TypeError) as error:
            log.info("%s/%s is kept: %s", store.location, path, error)
    return store.delete(gone) if gone else 0
