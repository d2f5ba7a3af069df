"""Several changes of one table in a transaction: each one sees the staged actions of those before it, and all
of them become one commit."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import line
from deltaic.protocol.paths import decoded_path
from deltaic.transaction.transaction import Counted, Transaction
from deltaic.transaction.winners import concat

OPERATION = "TRANSACTION"
"""The operation in commitInfo for a commit of several changes, whose operations are in the parameter
`operations`."""

KEY = ("path", "storageType", "pathOrInlineDv", "offset")
"""Columns that identify a file of a version: its path and its deletion vector."""


class StagedChanges:
    """The changes of one table, in their order. The first one starts from a version in the log, each further
    one from the result of `shown`."""

    def __init__(self, transaction: Transaction, counted: Counted) -> None:
        assert transaction.snapshot is not None
        self.steps = [(transaction, counted)]
        self._shown, self._applied = transaction.snapshot, 0

    def shown(self) -> Snapshot:
        """Returns the version with all changes so far. If the table allows only one change,
        UnsupportedFeatureError is raised."""
        for transaction, _ in self.steps[self._applied :]:
            self._shown = self._shown.with_staged(_lines(transaction))
            self._applied += 1
        _check_several(self._shown)
        return self._shown

    def add(self, transaction: Transaction, counted: Counted) -> None:
        """Stages a further change, which started from the result of `shown`."""
        if transaction.snapshot is not self._shown or self._applied < len(self.steps):
            transaction.discard()
            raise InvalidArgumentError(
                "a change that does not follow the one before it: those of one table are staged one after the"
                " other",
                where=transaction.store.location,
                found=transaction.operation,
            )
        self.steps.append((transaction, counted))

    def joined(self) -> tuple[Transaction, Counted]:
        """Returns one transaction with the combined effect of all changes, and its metrics, which are the
        sums of theirs. Files that one change added and another removed are deleted.

        The transaction has no marks: if another commit changes the deletion vector of a file that it changes,
        that is a conflict."""
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
            joined.protocol, joined.metadata = (
                each.protocol or joined.protocol,
                each.metadata or joined.metadata,
            )
            joined.domains.update(each.domains)
        reads = [predicate for each in steps for predicate in each.reads]
        # After a change of the schema, conditions may name columns that files of other writers do not have.
        joined.reads = [None] if reads and joined.metadata is not None else reads
        adds, removes = net([each.actions() for each in steps])
        joined.add(adds)
        joined.remove(removes)
        for each in steps:
            each.hand_over(joined)
        named = {*adds["path"].to_pylist(), *references.vector_files(adds, joined.store.location).to_pylist()}
        named |= {decoded_path(path) for path in named}
        between = {path for path in joined.files if not {path, decoded_path(path)} & named}
        joined.files = [path for path in joined.files if path not in between]
        joined.delete_files(sorted(between))
        return joined, lambda: _sums([counted() for _, counted in self.steps])


def net(actions: list[tuple[pa.Table, pa.Table]]) -> tuple[pa.Table, pa.Table]:
    """Combines (adds, removes) of several changes to the adds and removes with the same effect.

    A file that one change adds and a later one removes is in neither. If two changes replace the vector of a
    file, the file is removed with its first vector and added with its last one.
    """
    adds, removes = (
        concat([each[kind] for each in actions], empty)
        for kind, empty in ((0, _core.empty_adds), (1, _core.empty_removes))
    )
    events = _events(actions)
    after_add = pc.and_(_follows(events), _shifted(events["is_add"]))
    left = events.filter(pc.invert(pc.or_(events["is_add"], after_add)))
    last = events.filter(_is_last(events))
    return _chosen(adds, last.filter(last["is_add"])), _chosen(removes, left.filter(_is_last(left)))


def _events(actions: list[tuple[pa.Table, pa.Table]]) -> pa.Table:
    """Returns a row for each action, sorted by file and then by time; the removes of a change come before its
    adds. `file`: a number for each KEY. `position`: the index of the action among the adds, or removes, of
    all changes."""
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
    return events.take(pc.sort_indices(file))  # the sort is stable


def _numbered(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Replaces values by numbers from 0 on, equal for equal values. Null counts as a value."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())


def _follows(events: pa.Table) -> pa.Array:
    """Returns True for each event with the same file as the event before it."""
    files, count = events["file"].combine_chunks(), max(events.num_rows - 1, 0)
    return pa.concat_arrays([pa.array([False]), pc.equal(files.slice(1), files.slice(0, count))]).slice(
        0, events.num_rows
    )


def _is_last(events: pa.Table) -> pa.Array:
    """Returns True for the last event of each file."""
    return pc.invert(
        pa.concat_arrays([_follows(events).slice(1), pa.array([False])]).slice(0, events.num_rows)
    )


def _shifted(column: pa.ChunkedArray) -> pa.Array:
    """Shifts a column by one row: each row gets the value of the row before, the first one False."""
    return pa.concat_arrays([pa.array([False]), *column.chunks]).slice(0, len(column))


def _chosen(actions: pa.Table, events: pa.Table) -> pa.Table:
    return actions.take(events["position"].combine_chunks().sort())


def _lines(transaction: Transaction) -> bytes:
    """Returns the staged actions of a change as the lines of a commit, without application transactions,
    which the combined commit has."""
    actions = [
        action.to_json() for action in (transaction.protocol, transaction.metadata) if action is not None
    ]
    for domain, (configuration, removed) in transaction.domains.items():
        actions.append(
            line({"domainMetadata": {"domain": domain, "configuration": configuration, "removed": removed}})
        )
    return _core.commit_body(actions, *transaction.actions(), None)


def _check_several(staged: Snapshot) -> None:
    """Raises UnsupportedFeatureError if one commit cannot express several changes of the table."""
    found = None
    if row_tracking.gives_ids(staged.protocol, staged.metadata):
        found = (
            "row tracking: the ids of new rows are known when the commit has its version, and a later change"
            " would keep earlier ones"
        )
    elif staged.properties.change_data_feed:
        found = (
            "a change data feed: a commit has one row for each change, and these changes may be of one row"
        )
    if found is not None:
        raise UnsupportedFeatureError(
            "the table takes one change in a transaction",
            where=staged.location,
            found=found,
            expected="one change, or a transaction for each",
        )


def _sums(metrics: list[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in metrics:
        for name, value in each.items():
            sums[name] = sums.get(name, 0) + value
    return sums
