"""The commit of a decided transaction over several tables, put into the log of one of them by whoever comes first.

All do the same: they put the lines of the intent as the version after its base, and where that is taken they look whose it is. So the
commit is there once, whoever of them is interrupted.
"""

from __future__ import annotations

import json
import logging
import time
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import CommitUnknownError, DeltaConcurrentModificationException
from deltaic.log import history
from deltaic.log.intents import RECORD_WAITS, Intent, intent_path
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import line
from deltaic.transaction import row_ids, timestamps
from deltaic.transaction.conflicts import Current, Isolation
from deltaic.transaction.winners import Winners

log = logging.getLogger("deltaic.transaction")


def roll_forward(store: _core.Store, intent: Intent) -> tuple[int, bytes | None]:
    """-> the version of the commit, and its lines where this call put it.

    CommitUnknownError where the store does not say what became of it, and where a commit of a writer that knows no intents came between
    decision and commit and is in conflict with it: only such writers go on top of a transaction that is not rolled forward.
    """
    version, body = intent.base + 1, intent.body
    winners: _Between | None = None
    while not _put(store, version, body):
        if _is_ours(store, version, intent):
            return version, None
        winners = winners or _Between(store, intent)
        winners.pass_over(version)
        version += 1
        body = winners.body(version)
    log.info("%s: transaction %s is version %d", store.location, intent.transaction, version)
    return version, body


def _put(store: _core.Store, version: int, body: bytes) -> bool:
    """Whether this call created the version; False where it is there. What a store raises is raised where it is not there."""
    for wait in (*RECORD_WAITS, None):
        failure: Exception | None = None
        try:
            if store.put_if_absent(commit_path(version), body) == "created":
                return True
        except Exception as error:
            failure = error
        if store.head(commit_path(version)) is not None:
            return False
        if failure is not None:
            raise failure
        if wait is not None:
            time.sleep(wait)
    raise CommitUnknownError(
        f"the store did not say whether version {version} was committed; opening the table again finds it", where=store.location
    )


def _is_ours(store: _core.Store, version: int, intent: Intent) -> bool:
    return history.commit_info(store, version).get("txnId") == intent.transaction


class _Between:
    """Commits of others that came between the base of an intent and its own."""

    def __init__(self, store: _core.Store, intent: Intent) -> None:
        self.store, self.intent = store, intent
        self.commit = _core.read_commit(store, intent.base + 1, intent_path(intent.transaction))
        self.info = history.parse_commit_info(self.commit.commit_info)
        snapshot = Snapshot.load(store, version=intent.base)
        self.winners = Winners(snapshot, [], self.commit.removes, None, store)
        self.current = Current(
            operation=str(self.info.get("operation")),
            isolation=Isolation.SNAPSHOT,  # it was decided before they came: what they added it need not see
            removes_files=self.commit.removes.num_rows > 0,
            is_blind_append=not self.commit.removes.num_rows,
            changes_protocol=self.commit.protocol is not None,
            changes_metadata=self.commit.metadata is not None,
            domains=frozenset(self.commit.domains) - {row_tracking.DOMAIN},
            app_ids=frozenset(self.commit.transactions),
        )

    def pass_over(self, version: int) -> None:
        """Raises where the commit of `version` stands in the way."""
        try:
            self.winners.check(self.current, version)
        except DeltaConcurrentModificationException as error:
            self._raise_stuck(version, error)

    def _raise_stuck(self, version: int, error: DeltaConcurrentModificationException) -> NoReturn:
        transaction = self.intent.transaction
        raise CommitUnknownError(
            f"transaction {transaction} over several tables is committed, but version {version} ({error.winner_operation}), of a writer "
            f"that passed over its intent, is in conflict with it: {error}; the version can be opened by its number. To give up this "
            f"table's part of the transaction, delete {intent_path(transaction)}",
            where=self.store.location,
        ) from error

    def body(self, version: int) -> bytes:
        """The lines of the intent as the commit of `version`."""
        protocol, metadata = self.winners.protocol, self.winners.metadata
        timed, numbered = timestamps.enabled(protocol, metadata), row_tracking.gives_ids(protocol, metadata)
        if not timed and not numbered:
            return self.intent.body
        lines = self.intent.body.decode().splitlines()
        info = dict(self.info)
        if timed:
            own = int(info.get("inCommitTimestamp", info.get("timestamp", 0)))
            info["inCommitTimestamp"] = max(own, timestamps.next_time(self.store, version, own, was_enabled=True))
        actions, adds = [line({"commitInfo": info})], self.commit.adds
        kept = ("protocol", "metaData", "txn", "domainMetadata", "cdc")
        parsed = ((text, json.loads(text)) for text in lines)
        actions += [text for text, action in parsed if next(iter(action)) in kept and not _is_row_id_mark(action)]
        if numbered:
            adds, mark = row_ids.assigned(_unnumbered(adds, self.intent.base + 1), version, self.winners.row_id_mark)
            domain = {"domain": row_tracking.DOMAIN, "configuration": row_tracking.mark_configuration(mark), "removed": False}
            actions.append(line({"domainMetadata": domain}))
        return _core.commit_body(actions, adds, self.commit.removes)


def _is_row_id_mark(action: dict[str, dict[str, str]]) -> bool:
    return action.get("domainMetadata", {}).get("domain") == row_tracking.DOMAIN


def _unnumbered(adds: pa.Table, version: int) -> pa.Table:
    """The files without the row ids that the commit as `version` would have given them."""
    adds = _core.adds_again(adds)
    new = pc.fill_null(pc.equal(adds["defaultRowCommitVersion"], version), False)
    for name in ("baseRowId", "defaultRowCommitVersion"):
        position = adds.schema.get_field_index(name)
        adds = adds.set_column(position, adds.field(name), pc.if_else(new, pa.scalar(None, adds.field(name).type), adds[name]))
    return adds
