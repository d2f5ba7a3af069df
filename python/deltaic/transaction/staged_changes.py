"""Several changes of one table in a transaction: each sees what the ones before it staged, and all of them become one commit."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import line
from deltaic.transaction.transaction import Counted, Transaction
from deltaic.transaction.winners import concat

OPERATION = "TRANSACTION"
"""commitInfo's operation of a commit of several changes; its parameter `operations` names them."""

KEY = ("path", "storageType", "pathOrInlineDv", "offset")
"""Columns that identify a file of a version: its path and its deletion vector."""


class StagedChanges:
    """The changes of one table, in their order. The first is on top of a version of the log, each other one on top of what `shown` gave."""

    def __init__(self, transaction: Transaction, counted: Counted) -> None:
        assert transaction.snapshot is not None
        self.steps = [(transaction, counted)]
        self._shown, self._applied = transaction.snapshot, 0

    def shown(self) -> Snapshot:
        """The version with all changes so far. UnsupportedFeatureError where the table can have one change alone."""
        for transaction, _ in self.steps[self._applied :]:
            self._shown = self._shown.with_staged(_lines(transaction))
            self._applied += 1
        _check_several(self._shown)
        return self._shown

    def add(self, transaction: Transaction, counted: Counted) -> None:
        """Stages a further change, on top of what `shown` gave."""
        if transaction.snapshot is not self._shown or self._applied < len(self.steps):
            transaction.discard()
            raise InvalidArgumentError(
                "a change that does not follow the one before it: those of one table are staged one after the other",
                where=transaction.store.location,
                found=transaction.operation,
            )
        self.steps.append((transaction, counted))

    def joined(self) -> tuple[Transaction, Counted]:
        """One transaction that leads from the first version to the last one, and its metrics: the sums of those of the changes. Files that
        came and went in between are deleted.

        A conflict is judged by files: the rows that it takes out of a file are not moved onto vectors of others."""
        if len(self.steps) == 1:
            return self.steps[0]
        steps = [transaction for transaction, _ in self.steps]
        first, operations = steps[0], [each.operation for each in steps]
        joined = Transaction(
            first.snapshot,
            operations[0] if len(set(operations)) == 1 else OPERATION,
            {"operations": operations},
            first.options,
            clock=first.clock,
            new_id=first.new_id,
            sleep=first.sleep,
        )
        changes = {each.change for each in steps}
        joined.change = changes.pop() if len(changes) == 1 else None
        for each in steps:
            joined.protocol, joined.metadata = each.protocol or joined.protocol, each.metadata or joined.metadata
            joined.domains.update(each.domains)
        reads = [predicate for each in steps for predicate in each.reads]
        # Conditions over columns that a change has made say nothing of the files of others.
        joined.reads = [None] if reads and joined.metadata is not None else reads
        adds, removes = net([each.actions() for each in steps])
        joined.add(adds)
        joined.remove(removes)
        for each in steps:
            each.hand_over(joined)
        named = {*adds["path"].to_pylist(), *references.vector_files(adds, joined.store.location).to_pylist()}
        named |= {unquote(path) for path in named}
        between = {path for path in joined.files if not {path, unquote(path)} & named}
        joined.files = [path for path in joined.files if path not in between]
        joined.delete_files(sorted(between))
        return joined, lambda: _sums([counted() for _, counted in self.steps])


def net(actions: list[tuple[pa.Table, pa.Table]]) -> tuple[pa.Table, pa.Table]:
    """The adds and removes that lead where these lead one after the other: (adds, removes) of each change.

    A file that one change adds and a later one removes is in neither; of a file whose vector two changes replace the first vector is
    removed and the last one added.
    """
    adds, removes = (concat([each[kind] for each in actions], empty) for kind, empty in ((0, _core.empty_adds), (1, _core.empty_removes)))
    events = _events(actions)
    after_add = pc.and_(_follows(events), _shifted(events["is_add"]))
    left = events.filter(pc.invert(pc.or_(events["is_add"], after_add)))
    last = events.filter(_is_last(events))
    return _chosen(adds, last.filter(last["is_add"])), _chosen(removes, left.filter(_is_last(left)))


def _events(actions: list[tuple[pa.Table, pa.Table]]) -> pa.Table:
    """A row for each action of these changes, by file and then in their order; a change takes files out before it adds some. `file`: a
    number for each key, `position`: among the adds, or removes, of all changes."""
    parts, rows = [], [0, 0]
    for kind, changed in ((kind, step[kind]) for step in actions for kind in (1, 0)):
        vectors, count = changed["deletionVector"], changed.num_rows
        columns = {"path": changed["path"], **{name: pc.struct_field(vectors, name) for name in KEY[1:]}}
        columns["is_add"] = pa.repeat(pa.scalar(kind == 0), count)
        columns["position"] = pa.array(range(rows[kind], rows[kind] + count), pa.int64())
        rows[kind] += count
        parts.append(pa.table(columns))
    events = pa.concat_tables(parts)
    file = _numbered(events["path"])
    for name in [name for name in KEY[1:] if events[name].null_count < events.num_rows]:
        file = _numbered(pc.add(pc.multiply(file, events.num_rows), _numbered(events[name])))
    events = pa.table({"file": file, "is_add": events["is_add"], "position": events["position"]})
    return events.take(pc.sort_indices(file))  # which is stable


def _numbered(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Numbers below the number of values, the same for equal ones; null is a value."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())


def _follows(events: pa.Table) -> pa.Array:
    """True for each of these events whose file is that of the event before it."""
    files, count = events["file"].combine_chunks(), max(events.num_rows - 1, 0)
    return pa.concat_arrays([pa.array([False]), pc.equal(files.slice(1), files.slice(0, count))]).slice(0, events.num_rows)


def _is_last(events: pa.Table) -> pa.Array:
    """True for the last of these events of each file."""
    return pc.invert(pa.concat_arrays([_follows(events).slice(1), pa.array([False])]).slice(0, events.num_rows))


def _shifted(column: pa.ChunkedArray) -> pa.Array:
    """The value before each one; false before the first."""
    return pa.concat_arrays([pa.array([False]), *column.chunks]).slice(0, len(column))


def _chosen(actions: pa.Table, events: pa.Table) -> pa.Table:
    return actions.take(events["position"].combine_chunks().sort())


def _lines(transaction: Transaction) -> bytes:
    """The actions that a change stages, as a commit. Application transactions are those of the commit that the changes become."""
    actions = [action.to_json() for action in (transaction.protocol, transaction.metadata) if action is not None]
    for domain, (configuration, removed) in transaction.domains.items():
        actions.append(line({"domainMetadata": {"domain": domain, "configuration": configuration, "removed": removed}}))
    return _core.commit_body(actions, *transaction.actions(), None)


def _check_several(staged: Snapshot) -> None:
    """UnsupportedFeatureError where one commit cannot say what several changes did."""
    found = None
    if row_tracking.gives_ids(staged.protocol, staged.metadata):
        found = "row tracking: the ids of new rows are known when the commit has its version, and a later change would keep earlier ones"
    elif staged.properties.change_data_feed:
        found = "a change data feed: a commit has one row for each change, and these changes may be of one row"
    if found is not None:
        raise UnsupportedFeatureError(
            "the table takes one change in a transaction",
            where=staged.location,
            found=found,
            expected="one change, or a transaction for each",
        )


def _sums(metrics: list[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in metrics:
        for name, value in each.items():
            found[name] = found.get(name, 0) + value
    return found
