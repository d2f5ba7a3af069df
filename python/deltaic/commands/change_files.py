"""Change files (PROTOCOL.md: "Change Data Files"), for commits whose adds and removes do not show which rows
changed, and how.

An UPDATE by deletion vectors looks like "row 7 of file a deleted, a row of file b inserted". Its change file
has both as one row, before and after the update. A DELETE that rewrites files looks as if all their rows had
changed. If a commit has change files, they have all of its changes, as readers then ignore its other files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deltaic import _core
from deltaic.commands.data_files import hidden_field, write_target
from deltaic.engine.engine import WriteTarget
from deltaic.log.snapshot import table_schema
from deltaic.plan.expression import columns_of
from deltaic.plan.nodes import Plan, Project, Scan, Union
from deltaic.protocol import change_feed
from deltaic.protocol.change_feed import CHANGE_TYPE
from deltaic.protocol.features import column_mapping_mode, supported
from deltaic.protocol.schema import CHAR_TYPES, Schema

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.options import ParquetOptions
    from deltaic.protocol.actions import Metadata, Protocol
    from deltaic.transaction.transaction import Transaction


def are_kept(protocol: Protocol, metadata: Metadata) -> bool:
    """True if the table has a change data feed, so that some commits need change files."""
    return change_feed.is_enabled(metadata.configuration) and change_feed.FEATURE in supported(protocol)


@dataclass(frozen=True, eq=False)
class RecordedChanges:
    """Rows for the change files of a commit, apart from the rows that it adds.

    `left`: ids of rows that the commit removes from the table, with the change type ("delete",
        "update_preimage").
    `held`: such rows that were read already, with CHANGE_TYPE as their last column."""

    target: WriteTarget
    left: Sequence[tuple[_core.RowIds, str]] = ()
    held: Sequence[Plan] = ()

    @staticmethod
    def of(
        store: _core.Store, metadata: Metadata, protocol: Protocol, parquet: ParquetOptions | None
    ) -> RecordedChanges | None:
        """Returns the changes of a commit, without rows at first; None if the table has no change data
        feed."""
        if not are_kept(protocol, metadata):
            return None
        return RecordedChanges(change_target(store, metadata, protocol, parquet))

    def with_rows(self, rows: _core.RowIds, kind: str) -> RecordedChanges:
        """Adds rows that the commit removes, with the change type `kind`. They are read when the change files
        are written."""
        return replace(self, left=(*self.left, (rows, kind)))

    def before(self, scan: Scan) -> list[Plan]:
        """Returns the rows that the commit removes from the files of `scan`, with CHANGE_TYPE as their last
        column."""
        plans = [of_kind(scan, rows.select(scan.files), kind) for rows, kind in self.left if len(rows)]
        return [*self.held, *plans]

    def with_old_rows(
        self, engine: Engine, old: Scan, rows: _core.RowIds, kind: str, held: ExitStack
    ) -> tuple[Plan, RecordedChanges]:
        """Like `with_rows`, for rows from which new rows are computed, too. `old` scans all their columns.
        The rows are read once and held for both uses; if the engine pads CHAR(n) values, they are read twice,
        as change files have the stored values.

        Returns the rows for computing new ones, and the changes."""
        if engine.pads_char and any(CHAR_TYPES in field.metadata for field in old.schema):
            return old, self.with_rows(rows, kind)
        data = held.enter_context(engine.hold(engine.run(old), old.alias))
        columns = (
            *columns_of(old.alias, old.schema),
            (CHANGE_TYPE, engine.compose((f"'{kind}'",), "string")),
        )
        return data, replace(self, held=(*self.held, Project(data, columns, "b")))


def change_target(
    store: _core.Store, metadata: Metadata, protocol: Protocol, parquet: ParquetOptions | None
) -> WriteTarget:
    """Returns the WriteTarget of a table's change files: the table's columns and CHANGE_TYPE, partitioned
    like data files, without statistics."""
    options = write_target(store, metadata, protocol, parquet, data_change=False).options
    mode = column_mapping_mode(protocol, metadata)
    schema = change_feed.with_changes(
        Schema.from_json(metadata.schema_string), change_feed.COLUMNS[:1], mapped=mode != "none"
    )
    return WriteTarget(
        store,
        _core.TableSchema(schema.to_json(), metadata.partition_columns, mode),
        {**options, "change_files": True, "statistics_columns": None, "indexed_columns": 0},
    )


def of_kind(scan: Scan, files: pa.Table, kind: str) -> Scan:
    """Returns the scan of all columns of the rows of `files`, as stored, with CHANGE_TYPE = `kind`."""
    return replace(
        scan,
        files=files.append_column(CHANGE_TYPE, pa.array([kind] * files.num_rows, pa.string())),
        columns=tuple(scan.schema.names),
        where=(),
        predicate=None,
        row_ids=False,
        row_tracking=None,
        constants=(hidden_field(CHANGE_TYPE),),
        as_stored=True,
    )


def divided(
    engine: Engine, new: list[Plan], target: WriteTarget, schema: Schema, held: ExitStack
) -> tuple[list[Plan], list[Plan]]:
    """Divides new rows, whose last column is CHANGE_TYPE, into rows for data files (without that column) and
    for change files (without the hidden columns of row tracking). They are computed once, as two evaluations
    of `current_timestamp()` would differ."""
    if not new:
        return [], []
    plan = new[0] if len(new) == 1 else Union(tuple(new))
    rows = held.enter_context(engine.hold(engine.run(plan), "changed"))

    hidden = [hidden_field(name) for name in target.row_tracking or ()]
    data = Project(rows, columns_of(rows.alias, [*schema, *hidden]), "u")
    return [data], [Project(rows, columns_of(rows.alias, [*schema, hidden_field(CHANGE_TYPE)]), "c")]


def write_inserts(
    transaction: Transaction,
    engine: Engine,
    protocol: Protocol,
    metadata: Metadata,
    adds: pa.Table,
    metrics: Mapping[str, int],
    parquet: ParquetOptions | None = None,
) -> dict[str, int]:
    """Stages the rows of new files as changes, if the transaction has change files for the rows that they
    replace. Returns the metric `num_added_change_files`, with the number in `metrics` added."""
    if not transaction.records_changes or not adds.num_rows:
        return {}
    scan = Scan(
        store=transaction.store,
        schema=Schema.from_json(metadata.schema_string),
        table_schema=table_schema(protocol, metadata),
        files=adds,
        columns=(),
    )
    target = change_target(transaction.store, metadata, protocol, parquet)
    written = write(transaction, engine, [of_kind(scan, adds, change_feed.INSERT)], target)
    return {"num_added_change_files": metrics.get("num_added_change_files", 0) + written}


def write(transaction: Transaction, engine: Engine, plans: Sequence[Plan], target: WriteTarget) -> int:
    """Writes and stages change files with these rows. Returns the number of files."""
    if not plans:
        return 0
    files = engine.write(engine.run(plans[0] if len(plans) == 1 else Union(tuple(plans))), target)
    transaction.written(files["path"].to_pylist())
    transaction.record(files)
    return int(files.num_rows)
