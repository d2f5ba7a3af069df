"""Rolls a committed transaction over several tables forward: writes its commit to the log of one of the
tables.

Any process may do this, and several at once. Each of them puts the lines of the intent as the version after
its base. If that version exists, its id tells if it is the commit of the transaction. So the commit is
written exactly once, even if a process is interrupted.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import CommitError, DeltaConcurrentModificationException
from deltaic.log import history
from deltaic.log.intents import RECORD_WAITS, Intent, intent_path
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import line
from deltaic.protocol.paths import decoded_path
from deltaic.transaction import row_ids, timestamps
from deltaic.transaction.conflicts import Current, Isolation
from deltaic.transaction.marks import MarkedRows
from deltaic.transaction.winners import Winners, concat

log = logging.getLogger("deltaic.transaction")


def roll_forward(store: _core.Store, intent: Intent, *, is_new: bool = False) -> tuple[int, bytes | None]:
    """Writes the commit of a transaction. Returns its version, and its lines if this call wrote it.

    `is_new`: True if the transaction was decided just now by this process, so that its version need not be
    checked first. CommitError is raised if the outcome of the put is unknown, and if another commit between
    decision and commit conflicts. Such a commit is possible only by writers that do not know intents.
    """
    if not is_new and store.head(commit_path(intent.base)) is None:
        # If the log was cleaned beyond the base, the version after it seems free, but lies in the past.
        raise CommitError(
            f"transaction {intent.transaction} over several tables is committed, but the log was cleaned"
            " before its commit was put there",
            where=store.location,
            found=f"no version {intent.base}",
        )
    version = intent.base + 1
    winners: _InterveningCommits | None = None
    while True:
        # The version is checked before the put, so that a reader without permission to write finds a commit
        # that exists.
        if is_new or store.head(commit_path(version)) is None:
            body = intent.body if winners is None else winners.body(version)
            if _put(store, version, body, [] if winners is None else winners.written):
                log.info("%s: transaction %s is version %d", store.location, intent.transaction, version)
                return version, body
        if _is_ours(store, version, intent):
            return version, None
        winners = winners or _InterveningCommits(store, intent)
        winners.pass_over(version)
        version, is_new = version + 1, False


def _put(store: _core.Store, version: int, body: bytes, files: Sequence[str]) -> bool:
    """Puts a version after `files` are durable. True if this call created it, False if it existed. An error
    of the store is raised if the version does not exist."""
    for wait in (*RECORD_WAITS, None):
        failure: Exception | None = None
        try:
            if (
                store.put_if_absent(commit_path(version), body, after=list(map(decoded_path, files)))
                == "created"
            ):
                return True
        except Exception as error:
            failure = error
        if store.head(commit_path(version)) is not None:
            return False
        if failure is not None:
            raise failure
        if wait is not None:
            time.sleep(wait)
    raise CommitError(
        f"the store did not say whether version {version} was put into the log", where=store.location
    )


def _is_ours(store: _core.Store, version: int, intent: Intent) -> bool:
    return history.commit_info(store, version).get("txnId") == intent.transaction


class _InterveningCommits:
    """Commits of other writers between the base of an intent and the version that its commit will get."""

    def __init__(self, store: _core.Store, intent: Intent) -> None:
        self.store, self.intent = store, intent
        self.commit = _core.read_commit(store, intent.base + 1, intent_path(intent.transaction))
        self.info = history.parse_commit_info(self.commit.commit_info)
        snapshot = Snapshot.load(store, version=intent.base)
        self.inline = snapshot.properties.inline_deletion_vectors
        self.written: list[str] = []
        """Files of deletion vectors that the lines refer to."""
        marked = _marked_paths(self.commit)
        marks = _marked_rows(snapshot, self.commit, marked) if len(marked) else None
        # The actions other than those that mark rows, which are compared row by row.
        self.adds, self.removes = (
            _without(actions, marked) for actions in (self.commit.adds, self.commit.removes)
        )
        self.winners = Winners(snapshot, [], self.removes, marks, store)
        self.current = Current(
            operation=str(self.info.get("operation")),
            # it was decided before these commits, so it need not see files that they added
            isolation=Isolation.SNAPSHOT,
            removes_files=self.removes.num_rows > 0,
            is_blind_append=not self.commit.removes.num_rows,
            changes_protocol=self.commit.protocol is not None,
            changes_metadata=self.commit.metadata is not None,
            domains=frozenset(self.commit.domains) - {row_tracking.DOMAIN},
            app_ids=frozenset(self.commit.transactions),
            marks_rows=marks is not None,
            only_deletes=marks is not None and not self.adds.num_rows and not self.commit.has_cdc,
        )

    def pass_over(self, version: int) -> None:
        """Checks the commit of `version`; raises CommitError if it conflicts."""
        try:
            self.winners.check(self.current, version)
        except DeltaConcurrentModificationException as error:
            self._raise_stuck(version, error)

    def _raise_stuck(self, version: int, error: DeltaConcurrentModificationException) -> NoReturn:
        transaction = self.intent.transaction
        raise CommitError(
            f"transaction {transaction} over several tables is committed, but version {version}"
            f" ({error.winner_operation}), of a writer that passed over its intent, is in conflict with it:"
            f" {error}; the version can be opened by its number. To give up this table's part of the"
            f" transaction, delete {intent_path(transaction)}",
            where=self.store.location,
        ) from error

    def body(self, version: int) -> bytes:
        """Returns the lines of the intent, changed as needed for the commit of `version`."""
        protocol, metadata = self.winners.protocol, self.winners.metadata
        timed, numbered = timestamps.enabled(protocol, metadata), row_tracking.gives_ids(protocol, metadata)
        rebased = self.winners.rebased
        if not timed and not numbered and rebased is None:
            return self.intent.body
        adds, removes = self.commit.adds, self.commit.removes
        if rebased is not None:
            now = int(self.info.get("timestamp", 0))
            marked = _core.mark_deleted(
                self.store, rebased.files, rebased.rows, deletion_timestamp=now, inline=self.inline
            )
            adds, removes = (
                concat([self.adds, marked.adds], _core.empty_adds),
                concat([self.removes, marked.removes], _core.empty_removes),
            )
            self.written = marked.written
        info = dict(self.info)
        if timed:
            own = int(info.get("inCommitTimestamp", info.get("timestamp", 0)))
            info["inCommitTimestamp"] = max(
                own, timestamps.next_time(self.store, version, own, was_enabled=True)
            )
        actions = [line({"commitInfo": info})]
        kept = ("protocol", "metaData", "txn", "domainMetadata", "cdc")
        parsed = ((text, json.loads(text)) for text in self.intent.body.decode().splitlines())
        actions += [
            text
            for text, action in parsed
            if next(iter(action)) in kept and not (numbered and _is_row_id_mark(action))
        ]
        if numbered:
            adds, mark = row_ids.assigned(
                _unnumbered(adds, self.intent.base + 1), version, self.winners.row_id_mark
            )
            domain = {
                "domain": row_tracking.DOMAIN,
                "configuration": row_tracking.mark_configuration(mark),
                "removed": False,
            }
            actions.append(line({"domainMetadata": domain}))
        return _core.commit_body(actions, adds, removes)


def _marked_paths(commit: _core.Commit) -> pa.Array:
    """Returns the paths of files in which the commit only marks rows: they are removed and added with another
    vector."""
    again = commit.adds.filter(pc.is_valid(commit.adds["deletionVector"]))["path"]
    return again.filter(pc.is_in(again, value_set=commit.removes["path"].combine_chunks())).combine_chunks()


def _without(actions: pa.Table, paths: pa.Array) -> pa.Table:
    return actions.filter(pc.invert(pc.is_in(actions["path"], value_set=paths)))


def _marked_rows(snapshot: Snapshot, commit: _core.Commit, paths: pa.Array) -> MarkedRows:
    """Returns the rows that the commit marks: those in its deletion vectors that are not in the vectors of
    the version."""
    files = snapshot.files().adds
    files = files.filter(pc.is_in(files["path"], value_set=paths))
    files = files.append_column(
        pa.field("__deltaic_file", pa.int32(), nullable=False), pa.array(range(files.num_rows), pa.int32())
    )
    after = dict(zip(commit.adds["path"].to_pylist(), commit.adds["deletionVector"].to_pylist(), strict=True))
    ordinals: list[int] = []
    rows: list[pa.Array] = []
    for ordinal, (path, before) in enumerate(
        zip(files["path"].to_pylist(), files["deletionVector"].to_pylist(), strict=True)
    ):
        marked = _deleted(snapshot.store, after[path])
        if before is not None:
            marked -= _deleted(snapshot.store, before)
        rows.append(pa.array(marked.rows()).cast(pa.int64()))
        ordinals += [ordinal] * len(marked)
    pairs = {"__deltaic_file": pa.array(ordinals, pa.int32()), "__deltaic_row": pa.concat_arrays(rows)}
    return MarkedRows(files, _core.RowIds.collect(pa.table(pairs)))


def _deleted(store: _core.Store, vector: dict[str, Any]) -> _core.DeletionVector:
    names = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
    return _core.read_deletion_vector(store, *(vector[name] for name in names))


def _is_row_id_mark(action: dict[str, dict[str, str]]) -> bool:
    return action.get("domainMetadata", {}).get("domain") == row_tracking.DOMAIN


def _unnumbered(adds: pa.Table, version: int) -> pa.Table:
    """Removes the row ids that the commit would have assigned as `version`."""
    adds = _core.adds_again(adds)
    new = pc.fill_null(pc.equal(adds["defaultRowCommitVersion"], version), False)
    for name in ("baseRowId", "defaultRowCommitVersion"):
        position = adds.schema.get_field_index(name)
        adds = adds.set_column(
            position, adds.field(name), pc.if_else(new, pa.scalar(None, adds.field(name).type), adds[name])
        )
    return adds
