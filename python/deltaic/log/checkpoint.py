"""Writes checkpoints and `_last_checkpoint` (PROTOCOL.md: Checkpoints, V2 Spec, Last Checkpoint File)."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from deltaic import configuration
from deltaic.errors import ProtocolError
from deltaic.log import background, catalog, cleanup, compaction
from deltaic.log import hint as last_checkpoint
from deltaic.log.cleanup import milliseconds
from deltaic.log.segment import LAST_CHECKPOINT, LOG, checkpoint_path, list_log, read_hint
from deltaic.process_state import ProcessState
from deltaic.protocol import features

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import CommitOptions

log = logging.getLogger("deltaic.log")

# Bounds of `_last_checkpoint`, as in delta-spark; what exceeds them is left out of it.
# Characters of the checkpoint's schema
_LONGEST_SCHEMA = 20_000
# Number of sidecars, and of other actions that are no file actions
_MOST_ACTIONS = 30
# Bytes of a V2 checkpoint's top-level file that is read for its actions
_LARGEST_TOP_FILE = 256 * 1024


class _InFlight(ProcessState):
    """Tables for which this process is writing a checkpoint. A forked child starts with none."""

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._tables: set[str] = set()

    @contextmanager
    def claim(self, location: str) -> Iterator[bool]:
        """Yields True to the first caller for a table, which may write; False to others until it is done."""
        with self._lock:
            free = location not in self._tables
            self._tables.add(location)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._tables.discard(location)


_IN_FLIGHT = _InFlight()


def has_second_form(snapshot: Snapshot) -> bool:
    """True if the table gets V2 checkpoints: its property is set, and its protocol has the feature."""
    return snapshot.properties.checkpoint_policy == "v2" and "v2Checkpoint" in features.supported(
        snapshot.protocol
    )


def write(
    snapshot: Snapshot, *, now: int, new_id: Callable[[], object] = uuid.uuid4, path: str | None = None
) -> dict[str, Any]:
    """Writes the checkpoint of a snapshot, with the tombstones that have not expired at `now` (ms), and
    updates `_last_checkpoint`. Returns the result of `_core.Snapshot.write_checkpoint`.

    `new_id`: returns a unique text for the name of a V2 checkpoint.
    `path`: path of the checkpoint; None for the name by the table's policy.
    A table that this release cannot write is an UnsupportedFeatureError.
    """
    features.check_writable(
        snapshot.protocol, snapshot.metadata, catalog=partial(catalog.has_coordinator, snapshot.store)
    )
    if features.is_managed(snapshot.protocol) and not catalog.publish(snapshot.store, snapshot.version):
        raise ProtocolError(
            "only published versions of a catalog's table have checkpoints",
            where=snapshot.location,
            found=f"version {snapshot.version}, which could not be published",
        )
    properties = snapshot.properties
    transactions = properties.set_transaction_retention
    second = has_second_form(snapshot)
    name = str(new_id())
    if path is None:
        path = (
            f"{LOG}/{snapshot.version:020}.checkpoint.{name}.json"
            if second
            else checkpoint_path(snapshot.version)
        )
    written = snapshot.core.write_checkpoint(
        snapshot.store,
        path,
        min_deletion_timestamp=now - milliseconds(properties.deleted_file_retention),
        min_transaction_timestamp=None if transactions is None else now - milliseconds(transactions),
        stats_as_json=properties.checkpoint_stats_as_json,
        stats_as_struct=properties.checkpoint_stats_as_struct,
        schema=snapshot.table_schema,
        second_form=(name, now) if second else None,
    )
    stored = snapshot.store.head(path)
    expected = written["top_size_in_bytes"] if second else written["size_in_bytes"]
    if stored is None or stored[0] != expected:
        raise ProtocolError(
            "the checkpoint is not what was written",
            where=f"{snapshot.location}/{path}",
            found="nothing" if stored is None else f"{stored[0]} bytes",
            expected=f"{expected} bytes",
        )
    _point_at(snapshot, path, written, stored[1])
    return written


def after_commit(snapshot: Snapshot, options: CommitOptions, *, clock: Callable[[], int], first: int) -> None:
    """Writes the checkpoint and the compacted range that are due after a commit, and cleans the log; in the
    background if `configure(background_checkpoints=)` is True. Errors are logged and not raised, as the
    commit is valid.

    `first`: the first version that no earlier call covered, so that no version is skipped at which a
        checkpoint is due."""
    if snapshot.version == 0:
        return
    try:
        interval = configuration.current().log_compaction_interval
        compacts = interval > 0 and (snapshot.version + 1) % interval == 0
        checkpoints = (
            options.checkpoint
            and snapshot.version % snapshot.properties.checkpoint_interval <= snapshot.version - first
        )
    except Exception as error:  # the commit is in the log, so no error may make it look failed
        log.warning("%s: the checkpoint of version %d failed: %s", snapshot.location, snapshot.version, error)
        return

    due: dict[str, Callable[[], object]] = {}
    if checkpoints:
        due["checkpoint"] = partial(_write_due, snapshot, options, clock)
    if compacts:
        first_compacted = snapshot.version + 1 - interval
        due["compacted range"] = partial(compaction.compact, snapshot, first_compacted, snapshot.version)
    for what, work in due.items():
        if configuration.current().background_checkpoints:
            # Each kind has a queue of its own, in which newer work takes the place of older work.
            background.submit(f"{snapshot.location}, {what}", partial(_logged, work, snapshot, what))
        else:
            _logged(work, snapshot, what)


def _logged(work: Callable[[], object], snapshot: Snapshot, what: str) -> None:
    try:
        work()
    except Exception as error:  # the commit is in the log, so no error may make it look failed
        log.warning("%s: the %s of version %d failed: %s", snapshot.location, what, snapshot.version, error)


def _write_due(snapshot: Snapshot, options: CommitOptions, clock: Callable[[], int]) -> None:
    with _IN_FLIGHT.claim(snapshot.location) as ours:
        if not ours:
            log.info(
                "%s: no checkpoint of version %d, as another is being written",
                snapshot.location,
                snapshot.version,
            )
            return
        write(snapshot, now=clock())
        clean_log = options.clean_log
        if features.is_managed(snapshot.protocol):
            return  # only the catalog may clean the log
        if snapshot.properties.expired_log_cleanup if clean_log is None else clean_log:
            cleanup.clean_if_due(snapshot, now=clock())


def _point_at(snapshot: Snapshot, path: str, written: dict[str, Any], modified: int) -> None:
    """Updates `_last_checkpoint` to this checkpoint, unless it names a newer one that exists."""
    named = read_hint(snapshot.store)
    if named is not None and named > snapshot.version:
        listing = list_log(snapshot.store, named)
        if any(checkpoint.version == named for checkpoint in listing.checkpoints):
            return
    second = has_second_form(snapshot)
    hint = {
        "version": snapshot.version,
        "size": written["size"],
        "sizeInBytes": written["size_in_bytes"],
        "numOfAddFiles": written["num_of_add_files"],
        "checkpointSchema": _schema(written["schema"]) if not second else None,
        "v2Checkpoint": _described(snapshot, path, written, modified) if second else None,
    }
    snapshot.store.put(LAST_CHECKPOINT, last_checkpoint.to_json(hint))


def _schema(text: str | None) -> Any:
    return json.loads(text) if text is not None and len(text) <= _LONGEST_SCHEMA else None


def _described(snapshot: Snapshot, path: str, written: dict[str, Any], modified: int) -> dict[str, Any]:
    """Describes a V2 checkpoint for the field `v2Checkpoint` of `_last_checkpoint`, so that readers need not
    read its file. Sidecars and actions are left out if there are too many."""
    fields = {
        "path": path.rsplit("/", 1)[-1],
        "sizeInBytes": written["top_size_in_bytes"],
        "modificationTime": modified,
        "nonFileActions": None,
        "sidecarFiles": [json.loads(text) for text in written["sidecars"]]
        if len(written["sidecars"]) <= _MOST_ACTIONS
        else None,
    }
    if path.endswith(".json") and written["top_size_in_bytes"] <= _LARGEST_TOP_FILE:
        lines = [json.loads(line) for line in snapshot.store.get(path).splitlines()]
        others = [line for line in lines if "sidecar" not in line]
        if len(others) <= _MOST_ACTIONS:
            fields["nonFileActions"] = others
    return {name: value for name, value in fields.items() if value is not None}
