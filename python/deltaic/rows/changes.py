"""Reads the rows of the change data feed: rows of files that commits added or removed, and rows of change
files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import InvalidArgumentError
from deltaic.log import changes as log_changes
from deltaic.log.changes import Range
from deltaic.plan.nodes import Scan
from deltaic.planning.columns import resolve_columns
from deltaic.planning.planned import own_alias, resolve_condition
from deltaic.protocol import change_feed
from deltaic.protocol.features import column_mapping_mode
from deltaic.rows.files import FileRows
from deltaic.rows.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.protocol.schema import Field, Schema


def changes(
    snapshot: Snapshot,
    engine: Engine,
    versions: Range,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    allow_out_of_range: bool = False,
) -> Rows:
    """Returns the rows that the versions of a range inserted, updated (before and after) and deleted; see
    `DeltaTable.changes`."""
    engine = engine.pinned()
    feed = log_changes.feed(snapshot, versions, allow_out_of_range=allow_out_of_range)
    schema = change_feed.with_changes(feed.schema, mapped=_mapping(feed.snapshot) != "none")
    names = tuple(resolve_columns(schema, columns, branches=True))
    if not names:
        raise InvalidArgumentError("no column is requested", found="columns=[]", expected="at least one")
    condition = None if where is None else resolve_condition(engine, where, schema, own_alias(schema))
    return FileRows(
        change_scans(feed.snapshot, feed.schema, names, feed.derived, feed.recorded), engine, condition
    )


def change_scans(
    snapshot: Snapshot,
    schema: Schema,
    names: tuple[str, ...] | None,
    derived: pa.Table | None,
    recorded: pa.Table | None,
) -> list[Scan]:
    """Returns the scans of the two tables of files of `_core.read_changes`. `derived`: data files, in which
    the change type is a partition value. `recorded`: change files, in which it is a column. `schema`: the
    table's columns in the rows. `names`: None for all columns."""
    schema = change_feed.with_changes(schema, mapped=_mapping(snapshot) != "none")

    def scan(files: pa.Table | None, constants: Sequence[Field]) -> Scan:
        partitions = [*snapshot.metadata.partition_columns, *(item.name for item in constants)]
        return Scan(
            store=snapshot.store,
            schema=schema,
            table_schema=_core.TableSchema(schema.to_json(), partitions, _mapping(snapshot)),
            files=_core.empty_adds() if files is None else files,
            columns=tuple(schema.names) if names is None else names,
            alias=own_alias(schema),
        )

    in_files = [item for item in change_feed.COLUMNS if item.name != change_feed.CHANGE_TYPE]
    return [scan(derived, change_feed.COLUMNS), scan(recorded, in_files)]


def _mapping(snapshot: Snapshot) -> str:
    return column_mapping_mode(snapshot.protocol, snapshot.metadata)
