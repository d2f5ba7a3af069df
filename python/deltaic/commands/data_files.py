"""Write targets of commands: folder, schema and options of new files, if deleted rows are marked by deletion
vectors, and if new files are compacted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic import _core, configuration
from deltaic.engine.engine import WriteTarget
from deltaic.errors import InvalidArgumentError, check_instance
from deltaic.log.snapshot import table_schema
from deltaic.options import ParquetOptions
from deltaic.plan.expression import Expression, column, null
from deltaic.protocol import change_feed, iceberg, row_tracking
from deltaic.protocol.features import supported
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Field, Schema, Struct
from deltaic.protocol.type_places import empty_structs
from deltaic.protocol.void import check_written

if TYPE_CHECKING:
    from deltaic.engine.engine import Changing, Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.protocol.actions import Metadata, Protocol

VECTORS = "deletionVectors"
MATERIALIZED = "materializePartitionColumns"
_MAYBE_NOT_STORED = re.compile(r'"fields"\s*:\s*\[\s*\]|"void"')
"""Matches a struct without fields in a schemaString, also a table without columns, and a void field."""


def writes_vectors(snapshot: Snapshot, engine: Engine, command: Changing) -> bool:
    """True if a command marks rows instead of rewriting files: the property is true, the protocol has the
    feature, and the host of the engine does not object."""
    has_property = snapshot.properties.deletion_vectors and has_vectors(snapshot.protocol)
    return has_property and engine.marks_rows(command)


def has_vectors(protocol: Protocol) -> bool:
    """True if files of the table may have deletion vectors."""
    return VECTORS in (protocol.writer_features or ())


def _statistics_columns(metadata: Metadata) -> list[str] | None:
    """Returns the columns of `delta.dataSkippingStatsColumns` that can have statistics; None if the property
    is not set. Columns that the table does not have, and those within arrays and maps, are left out, as in
    delta-spark."""
    names = TableProperties(metadata.configuration).data_skipping_stats_columns
    if not names:
        return None if names is None else []
    schema, found = Schema.from_json(metadata.schema_string), list[str]()
    for name in names:
        try:
            path, _ = schema.find(name)
        except InvalidArgumentError:
            continue
        if all(isinstance(schema.find(path[:end])[1].type, Struct) for end in range(1, len(path))):
            found.append(name)
    return found


def _check_stored(schema: Schema) -> None:
    """Raises InvalidArgumentError for a struct without fields, or with void fields alone: a Parquet file
    cannot have it."""
    for place in empty_structs(schema):
        raise InvalidArgumentError(
            "a struct without fields cannot be written",
            where=f"column {place}",
            found="struct<>",
            expected="one field at least",
        ).with_values(empty_struct=place)
    check_written(schema)


def write_target(
    store: _core.Store,
    metadata: Metadata,
    protocol: Protocol,
    parquet: ParquetOptions | None = None,
    *,
    target_file_size: int | None = None,
    data_change: bool = True,
    copies: bool = False,
    synced_by_commit: bool = True,
    optimize_write: bool | None = None,
    **more: Any,
) -> WriteTarget:
    """Returns the folder, schema and options with which `_core.write` writes files of a table.

    `target_file_size`: bytes; None: the table's property. `data_change`: the `dataChange` of the `add`
    actions.
    `copies`: True if some rows were in the table before; with row tracking they keep their row ids.
    `synced_by_commit`: False if another process commits, as a commit can make only files of its own machine
    durable.
    `optimize_write`: None: the table's property. `more`: further options of `_core.write`."""
    check_instance(parquet, (ParquetOptions, type(None)), "parquet", "ParquetOptions")
    if _MAYBE_NOT_STORED.search(metadata.schema_string):
        _check_stored(Schema.from_json(metadata.schema_string))
    properties = TableProperties(metadata.configuration)
    options: dict[str, Any] = {
        "compression": properties.compression,
        "target_file_size": target_file_size or properties.target_file_size,
        "statistics_columns": _statistics_columns(metadata),
        "indexed_columns": properties.data_skipping_num_indexed_cols,
        "string_prefix_length": properties.data_skipping_string_prefix_length,
        # The field tightBounds belongs to the feature deletionVectors; without it, readers do not know the
        # field.
        "tight_bounds": True if has_vectors(protocol) else None,
        "random_prefix_length": properties.random_prefix_length,
        "data_change": data_change,
        "synced_by_commit": synced_by_commit,
    }
    compatibility = iceberg.active_version(protocol, metadata)
    in_files = (
        compatibility is not None
        or MATERIALIZED in supported(protocol)
        or properties.partition_columns_in_files
    )
    if metadata.partition_columns and in_files:
        options["partition_columns"] = True
    if properties.second_parquet_version:
        options["second_version"] = True
    current = configuration.current()
    if current.threads is not None:
        options["threads"] = current.threads
    options["memory_limit"] = configuration.budget().writers
    options |= (parquet or ParquetOptions()).to_core()
    schema = table_schema(protocol, metadata)
    hidden_ids = iceberg.HIDDEN_IDS if compatibility is not None else ()
    tracked = row_tracking.kept_in(protocol, metadata) if copies else None
    if tracked is not None:
        schema = schema.with_hidden(tracked, hidden_ids)
    optimize = properties.optimize_write if optimize_write is None else optimize_write
    return WriteTarget(store, schema, {**options, **more}, tracked, optimize, hidden_ids)


def snapshot_target(snapshot: Snapshot, parquet: ParquetOptions | None = None, **options: Any) -> WriteTarget:
    """Returns the `write_target` of a table with its current definition, for rows that were in the table
    before, changed or not."""
    return write_target(snapshot.store, snapshot.metadata, snapshot.protocol, parquet, copies=True, **options)


def hidden_field(name: str) -> Field:
    """Returns a hidden column, which rows have after the table's columns while they are written: a row id, a
    row commit version or a change type."""
    return Field(name, "string" if name == change_feed.CHANGE_TYPE else "long")


def tracked_columns(target: WriteTarget, alias: str | None) -> tuple[tuple[str, Expression], ...]:
    """Returns the hidden columns of row tracking for rows that are written to `target`.

    `alias`: of the plan with the old rows, whose row ids changed rows keep. None for new rows, whose ids are
    null. The commit version is null for both, as the row changes in this commit."""
    if target.row_tracking is None:
        return ()
    row_id, version = target.row_tracking
    nothing = null("long")
    return (row_id, column(alias, Field(row_id, "long")) if alias is not None else nothing), (
        version,
        nothing,
    )


def compacted(
    committed: Snapshot, before: Snapshot | None, engine: Engine, adds: Sequence[pa.Table]
) -> Snapshot:
    """Compacts the partitions of `adds`, the files that a command wrote, if the host or else the table has
    auto compaction. Returns the version after it. `before`: the version that the command changed; it is
    `committed` itself if the change is staged for a commit over several tables."""
    of_host = engine.auto_compacts
    compacts = committed.properties.auto_compact if of_host is None else of_host
    if not compacts or committed is before or not adds:
        return committed
    from deltaic.commands.auto_compaction import compact_after

    return compact_after(committed, engine, pa.concat_tables(adds, promote_options="permissive"))
