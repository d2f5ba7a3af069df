"""Reads the commits of other writers that came first (the winners), and checks each by the rules of
`conflicts`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import (
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    DeltaError,
    ProtocolError,
    UnsupportedFeatureError,
)
from deltaic.log import catalog, history, intents, lookup
from deltaic.log.segment import Sleep, commit_path, list_log
from deltaic.log.snapshot import Snapshot, table_schema
from deltaic.protocol import features, row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_names
from deltaic.sql_text import spark_name
from deltaic.transaction import conflicts
from deltaic.transaction.conflicts import Current, Overlap, Winner
from deltaic.transaction.marks import MarkedRows

log = logging.getLogger("deltaic.transaction")


class Winners:
    """Checks the versions after `snapshot`, one after the other. `reads`, `removes`, `marks`: of the
    transaction that wants to commit. After a commit without a conflict, its marks are moved to the files as
    that commit left them."""

    def __init__(
        self,
        snapshot: Snapshot | None,
        reads: list[_core.Predicate | None],
        removes: pa.Table,
        marks: MarkedRows | None,
        store: _core.Store,
        sleep: Sleep = time.sleep,
    ) -> None:
        self.snapshot, self.reads, self.removes, self.marks, self.store, self.sleep = (
            snapshot,
            reads,
            removes,
            marks,
            store,
            sleep,
        )
        self.rebased: _core.RebasedRows | None = None
        """The marked rows in the files as the last winner left them; None if no winner changed one of these
        files."""
        self.protocol = snapshot.protocol if snapshot else None
        self.metadata = snapshot.metadata if snapshot else None
        self.row_id_mark = row_tracking.high_water_mark(
            snapshot.domains.get(row_tracking.DOMAIN) if snapshot else None
        )
        self.read_files: pa.Table | None = None

    def check_log(self, now: int) -> None:
        """Raises ConcurrentWriteException if the log was cleaned beyond the snapshot: the next version then
        seems free, but lies in the past. `now`: ms."""
        if self.snapshot is None or self._is_too_new_to_clean(self.snapshot, now):
            return
        if self.store.head(commit_path(self.snapshot.version)) is not None:
            return
        version = self.snapshot.version
        listing = list_log(self.store, version + 1)
        if listing.latest > version and version + 1 not in listing.commits:
            raise self._unknown(
                f"the log was cleaned: what came after version {version} cannot be looked at",
                version + 1,
                found=f"version {listing.latest}",
            )

    def _unknown(self, message: str, winner: int, *, found: str) -> ConcurrentWriteException:
        error = ConcurrentWriteException(
            f"{message}; refresh, and do it again", where=self.store.location, found=found
        )
        error.winner = winner
        return error

    def _is_too_new_to_clean(self, snapshot: Snapshot, now: int) -> bool:
        """True on a remote store if the snapshot is so new that no cleanup can have deleted its commit, which
        saves a request. New means half of the retention, to allow for clocks that differ."""
        if not self.store.is_remote or snapshot.modified is None:
            return False
        return timedelta(milliseconds=now - snapshot.modified) < snapshot.properties.log_retention / 2

    def settle(self, snapshot: Snapshot, known: Iterable[str], *, look: bool) -> None:
        """Ends transactions over several tables that may be undecided before the snapshot.

        `known`: ids from their intents. `look`: True to check the snapshot's commit for a start commit, too,
        as a listing of a local folder may have it without the intent that was created just before."""
        pending = list(known)
        if look:
            with suppress(DeltaError, OSError):  # the log may have been cleaned up to here
                pending += filter(
                    None, [intents.started_by(history.commit_info(self.store, snapshot.version))]
                )
        for transaction in dict.fromkeys(pending):
            intents.settle(self.store, transaction, sleep=self.sleep, base=snapshot.version)
        if snapshot.is_unwritten and all(
            intents.DONE.get(self.store, each) != snapshot.version for each in pending
        ):
            raise ConcurrentWriteException(
                "the version was shown before it was in the log, and another one is there now; refresh, and"
                " do it again",
                where=self.store.location,
                found=f"version {snapshot.version}",
            )

    def newest(self, first: int) -> int:
        """Returns the last of the contiguous versions from `first` on, which is known to exist."""
        if (last := lookup.last_of(self.store, first)) is not None:
            return last
        commits = list_log(self.store, first).commits
        version = first
        while version + 1 in commits:
            version += 1
        return version

    def check(self, current: Current, version: int) -> None:
        """Raises the exception of a conflict with the commit of `version`."""
        commit = _core.read_commit(self.store, version, catalog.commit_file(self.store, version))
        if (started := intents.started_by(history.parse_commit_info(commit.commit_info))) is not None:
            intents.settle(self.store, started, sleep=self.sleep)
        winner = self._winner(commit)
        conflicts.check_definition(current, winner)
        try:
            overlap, rebased = self._overlap(current, winner, commit)
        except (FileNotFoundError, ProtocolError) as error:
            if isinstance(error, ProtocolError) and "is_lost" not in error.values:
                raise
            raise self._unknown(
                f"version {version} came first, and a file that shows what it changed was deleted, by VACUUM"
                " or a cleanup of the log",
                version,
                found=str(error),
            ) from error
        try:
            conflicts.check_files(current, winner, overlap)
        except DeltaConcurrentModificationException as error:
            place = self.store.location
            name = f"delta.{spark_name(place if '://' in place else f'file:{place}')}"
            raise error.with_values(
                partition=self._partition(error.where, commit), table_by_url=name
            ) from None
        if rebased is not None and rebased.is_changed:
            self.rebased = rebased
        log.debug("%s: version %d came first, no conflict", self.store.location, version)

    def _winner(self, commit: _core.Commit) -> Winner:
        info = history.parse_commit_info(commit.commit_info)
        protocol = Protocol.from_json(commit.protocol) if commit.protocol else None
        metadata = Metadata.from_json(commit.metadata) if commit.metadata else None
        changes = conflicts.metadata_changes(self.metadata, metadata) if metadata and self.metadata else ()
        refusal: str | None = None
        dropped: frozenset[str] = frozenset()
        before, self.protocol, self.metadata = (
            self.protocol,
            protocol or self.protocol,
            metadata or self.metadata,
        )
        if text := commit.domains.get(row_tracking.DOMAIN):
            action = json.loads(text)
            domain = action.get("domainMetadata", action)
            self.row_id_mark = row_tracking.high_water_mark(
                None if domain.get("removed") else domain.get("configuration")
            )
        if protocol is not None and before is not None and self.metadata is not None:
            dropped = features.dropped(before, protocol)
            try:
                features.check_writable(
                    protocol, self.metadata, catalog=partial(catalog.has_coordinator, self.store)
                )
            except UnsupportedFeatureError as error:
                refusal = str(error)
        adds, removes = commit.file_counts
        return Winner(
            version=commit.version,
            operation=str(info.get("operation", "UNKNOWN")),
            adds=adds,
            removes=removes,
            is_blind_append=info.get("isBlindAppend") is True,
            changes_protocol=protocol is not None,
            protocol_refusal=refusal,
            dropped_features=tuple(sorted(dropped)),
            changes_metadata=metadata is not None,
            metadata_changes=changes,
            domains=frozenset(commit.domains),
            app_ids=frozenset(commit.transactions),
            rearranges=adds > 0 and removes > 0 and not _changes_data(commit),
        )

    def _overlap(
        self, current: Current, winner: Winner, commit: _core.Commit
    ) -> tuple[Overlap, _core.RebasedRows | None]:
        added: tuple[str, ...] = ()
        removed_read: tuple[str, ...] = ()
        removed_both: tuple[str, ...] = ()
        taken: tuple[str, ...] = ()
        deleted_both: tuple[str, ...] = ()
        rebased: _core.RebasedRows | None = None
        if conflicts.must_see_adds(current, winner):
            added = self._matching(commit.adds, commit.removes)
        if self.marks is not None:
            files, rows = (self.rebased or self.marks).files, (self.rebased or self.marks).rows
            rebased = _core.rebase_rows(self.store, files, rows, commit.adds, commit.removes)
            lost = tuple(path for path, _ in rebased.deleted)
            # A winner that wrote no rows only deleted these; otherwise it may have changed them or moved them
            # to other files.
            if winner.rearranges or (
                lost and _core.adds_with_new_rows(self.store, commit.adds, commit.removes).num_rows
            ):
                taken = lost
            else:
                deleted_both = lost
        if winner.removes and conflicts.must_see_removes(current, winner):
            if current.reads_whole_table:
                removed_read = _first_paths(commit.removes)
            else:
                removed_read = tuple(_core.overlapping_paths(self._read_files(), commit.removes))
        if winner.removes and current.removes_files:
            removed_both = tuple(_core.overlapping_paths(self.removes, commit.removes))
        return Overlap(added, removed_read, removed_both, taken, deleted_both), rebased

    def _partition(self, path: str | None, commit: _core.Commit) -> str | None:
        """Returns the partition of a file that both transactions concern: `[part=a, day=null]`. Returns
        None if the table is not partitioned."""
        if self.snapshot is None or not (columns := self.snapshot.metadata.partition_columns):
            return None
        marked = () if self.marks is None else (self.marks.files,)
        for files in (commit.adds, commit.removes, self.removes, *marked):
            rows = files.filter(pc.equal(files["path"], path))
            if values := dict((rows.num_rows and rows["partitionValues"][0].as_py()) or ()):
                names = zip(columns, physical_names(self.snapshot.schema, columns), strict=True)
                texts = ((column, values.get(name)) for column, name in names)
                parts = (f"{column}={'null' if text is None else text}" for column, text in texts)
                return f"[{', '.join(parts)}]"
        return None

    def _matching(self, adds: pa.Table, removes: pa.Table) -> tuple[str, ...]:
        assert self.protocol is not None
        assert self.metadata is not None
        schema = table_schema(self.protocol, self.metadata)
        for predicate in self.reads:
            matching = adds if predicate is None else _core.filter_adds(adds, schema, predicate)
            if matching.num_rows:
                matching = _core.adds_with_new_rows(self.store, matching, removes)
            if matching.num_rows:
                return _first_paths(matching)
        return ()

    def _read_files(self) -> pa.Table:
        """Returns the paths of the files that the transaction may have read."""
        assert self.snapshot is not None
        if self.read_files is None:
            tables = [self.snapshot.files(predicate).adds.select(["path"]) for predicate in self.reads]
            self.read_files = pa.concat_tables(tables)
        return self.read_files


def _changes_data(commit: _core.Commit) -> bool:
    return any(
        pc.any(actions["dataChange"], skip_nulls=False).as_py() is not False
        for actions in (commit.adds, commit.removes)
    )


def _first_paths(actions: pa.Table) -> tuple[str, ...]:
    return tuple(actions.column("path").slice(0, 1).to_pylist())


def concat(tables: list[pa.Table], empty: Callable[[], pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive") if tables else empty()


@cache
def empty_adds() -> pa.Table:
    return _core.empty_adds()


@cache
def empty_removes() -> pa.Table:
    return _core.empty_removes()
