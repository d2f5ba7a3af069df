"""CONVERT of an Iceberg table: its current snapshot becomes a Delta table where it lies. No data file is read
or written.

Deleted rows (position deletes of version 2, vectors of version 3) become deletion vectors of the Delta table.
The bitmaps of version 3 are taken as they are, in files of our own: PROTOCOL.md's vector files begin with a
version byte, and Puffin files do not.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core, configuration
from deltaic.commands.clone import CloneSource
from deltaic.commands.convert import check_mode
from deltaic.commands.create import TableOptions, check_rules, existing
from deltaic.commands.data_files import VECTORS, write_target
from deltaic.commands.iceberg_files import vector_bytes
from deltaic.commands.iceberg_io import Paths
from deltaic.commands.iceberg_metadata import IcebergTable, read_iceberg
from deltaic.commands.marking import staging
from deltaic.errors import ProtocolError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.log.snapshot import Snapshot, table_schema
from deltaic.options import CommitOptions
from deltaic.protocol import definition
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import MODE, physical_names
from deltaic.protocol.paths import encoded_path
from deltaic.protocol.properties import TableProperties, canonical_name
from deltaic.protocol.schema import Schema
from deltaic.sql_text import spark_name
from deltaic.transaction.transaction import Transaction, already_committed

_MAX_AGE = "history.expire.max-snapshot-age-ms"
_POSITION_DELETES = _core.TableSchema(Schema.from_ddl("file_path string, pos bigint").to_json())


def convert_iceberg(
    store: _core.Store,
    source: Any = None,
    *,
    statistics: bool = True,
    mode: str = "error",
    wanted: TableOptions | None = None,
    commit: CommitOptions | None = None,
) -> Snapshot:
    """Commits the current snapshot of an Iceberg table as version 0. `source`: as for `read_iceberg`. See
    `DeltaTable.convert_iceberg`."""
    check_mode(mode)
    if (there := existing(store)) is not None:
        if mode == "ignore" or already_committed(there, commit):
            return there
        raise TableAlreadyExistsError(
            "a Delta table already exists here",
            where=store.location,
            expected="an Iceberg table, or mode='ignore'",
        )
    table, paths = read_iceberg(store, source)
    protocol, metadata = _definition(table, wanted or TableOptions())
    check_rules(metadata)
    adds = _adds(store, table, paths, protocol, metadata, statistics)
    parameters: dict[str, Any] = {
        "numFiles": adds.num_rows,
        "partitionedBy": list(metadata.partition_columns),
        "collectStats": statistics,
        "sourceFormat": "iceberg",
    }
    transaction = Transaction(None, "CONVERT", parameters, commit, store=store)
    transaction.read()  # no blind append: it takes the files that are there
    with staging(transaction):
        rows = _deleted_rows(store, table, paths)
        if len(rows):
            adds = _marked(transaction, metadata, adds, rows)
        transaction.set_protocol(protocol)
        transaction.set_metadata(metadata)
        transaction.add(adds)
        return transaction.commit({"num_converted_files": adds.num_rows})


def clone_source(store: _core.Store, source: Any = None) -> CloneSource:
    """Returns the current snapshot of an Iceberg table as the source of a clone. `source`: as for
    `read_iceberg`."""
    table, paths = read_iceberg(store, source)
    protocol, metadata = _definition(table, TableOptions())
    check_rules(metadata)

    def mark(transaction: Transaction, adds: pa.Table) -> pa.Table:
        rows = _deleted_rows(store, table, paths)
        return _marked(transaction, metadata, adds, rows) if len(rows) else adds

    return CloneSource(
        name=f"iceberg.{spark_name(store.location)}",
        store=store,
        protocol=protocol,
        metadata=metadata,
        adds=_adds(store, table, paths, protocol, metadata, True),
        mark=mark,
    )


def _definition(table: IcebergTable, wanted: TableOptions) -> tuple[Protocol, Metadata]:
    given = {canonical_name(name): value for name, value in (wanted.properties or {}).items()}
    if (mode := given.get(MODE, table.mapping_mode)) != table.mapping_mode:
        found_by = (
            "ids" if table.mapping_mode == "id" else "names, as some of its data files have no field ids"
        )
        message = f"columns of this Iceberg table are found by their {found_by}"
        raise UnsupportedFeatureError(message, where=MODE, found=mode, expected=repr(table.mapping_mode))
    own: dict[str, Any] = {
        name: text
        for name, text in table.properties.items()
        if not name.lower().startswith(("delta.", "deltaic."))
    }
    # As in delta-spark, the log keeps its history as long as the Iceberg table does.
    if (age := table.properties.get(_MAX_AGE, "")).isdecimal():
        own["delta.logRetentionDuration"] = f"interval {age} milliseconds"
    return definition.new_table(
        table.schema,
        partition_columns=[each.field.name for each in table.partitions],
        properties={**own, MODE: table.mapping_mode, **given},
        defaults=configuration.current().default_properties,
        features=(VECTORS,) if table.files.deletes or table.files.vectors else (),
        name=wanted.name,
        description=wanted.description,
        max_known_id=table.last_column_id,
    )


def _adds(
    store: _core.Store,
    table: IcebergTable,
    paths: Paths,
    protocol: Protocol,
    metadata: Metadata,
    statistics: bool,
) -> pa.Table:
    """Returns the add actions, in the order of the table's files."""
    schema = Schema.from_json(metadata.schema_string)
    names = physical_names(schema, metadata.partition_columns)
    rows = [
        {
            "path": encoded_path(paths.relative(file.path)),
            "partitionValues": list(zip(names, values, strict=True)),
            "size": file.size,
            "modificationTime": table.added_at(file),
            "dataChange": True,
            "stats": None if statistics else json.dumps({"numRecords": file.num_records}),
        }
        for file, *values in zip(table.files.data, *(each.values for each in table.partitions), strict=True)
    ]
    adds = pa.Table.from_pylist(rows, _core.empty_adds().schema)
    if not statistics or not rows:
        return adds
    target = write_target(store, metadata, protocol)
    return _core.file_statistics(store, table_schema(protocol, metadata), adds, target.options_json)


def _deleted_rows(store: _core.Store, table: IcebergTable, paths: Paths) -> _core.RowIds:
    """Returns the rows that a delete file or a vector deletes, by the position of their data file in the
    table's list of files. Deletes apply to files whose data is not newer. Delete files do not apply to a file
    with a vector."""
    positions = {paths.relative(file.path): at for at, file in enumerate(table.files.data)}
    marked: dict[int, bytes] = {}
    puffin: tuple[str, bytes] = ("", b"")
    for vector in sorted(table.files.vectors, key=lambda each: each.path):
        at = positions.get(paths.relative(vector.data_file))
        if at is None or table.files.data[at].sequence_number > vector.sequence_number:
            continue
        if at in marked:
            raise ProtocolError(
                "a data file has two deletion vectors",
                where=vector.data_file,
                found=vector.path,
                expected="one",
            )
        if puffin[0] != vector.path:
            puffin = (vector.path, store.get(paths.relative(vector.path)))
        marked[at] = vector_bytes(puffin[1], vector)
    bitmaps = _by_positions(store, table, paths, positions, set(marked)).bitmaps()
    if not marked:
        return _core.RowIds.of_bitmaps(bitmaps)
    counts = [_core.DeletionVector.from_bytes(data).cardinality for data in marked.values()]
    vectors = pa.table([list(marked), list(marked.values()), counts], bitmaps.schema.names).cast(
        bitmaps.schema
    )
    return _core.RowIds.of_bitmaps(pa.concat_tables([bitmaps, vectors]))


def _by_positions(
    store: _core.Store, table: IcebergTable, paths: Paths, positions: dict[str, int], with_vector: set[int]
) -> _core.RowIds:
    """Returns the rows that the table's files of position deletes name, without those of data files that are
    newer or in `with_vector`."""
    sequence_of = np.array([file.sequence_number for file in table.files.data], np.int64)
    parts: list[pa.Table] = []
    for deletes in table.files.deletes:
        files = pa.table(
            {
                "path": [encoded_path(paths.relative(deletes.path))],
                "size": pa.array([deletes.size], pa.int64()),
            }
        )
        rows = _core.read(store, _POSITION_DELETES, files, ["file_path", "pos"]).to_table()
        named = rows["file_path"].combine_chunks().dictionary_encode()
        named = named.chunk(0) if isinstance(named, pa.ChunkedArray) else named
        known = [positions.get(paths.relative(path)) for path in named.dictionary.to_pylist()]
        applies = [
            at is not None and sequence_of[at] <= deletes.sequence_number and at not in with_vector
            for at in known
        ]
        ordinals = pa.array(
            [at if use else None for at, use in zip(known, applies, strict=True)], pa.int32()
        ).take(named.indices)
        pairs = pa.table({"__deltaic_file": ordinals, "__deltaic_row": rows["pos"].combine_chunks()})
        parts.append(pairs.filter(pc.is_valid(ordinals)))
    empty = pa.schema([("__deltaic_file", pa.int32()), ("__deltaic_row", pa.int64())]).empty_table()
    return _core.RowIds.collect(pa.concat_tables([empty, *parts]))


def _marked(transaction: Transaction, metadata: Metadata, adds: pa.Table, rows: _core.RowIds) -> pa.Table:
    """Returns the add actions with deletion vectors. A file of which no row is left is left out."""
    properties = TableProperties(metadata.configuration)
    marked = _core.mark_deleted(
        transaction.store,
        rows.select(adds),
        rows,
        deletion_timestamp=transaction.clock(),
        inline=properties.inline_deletion_vectors,
        prefix_length=properties.random_prefix_length,
    )
    transaction.written(marked.written)
    untouched = adds.filter(pc.invert(pc.is_in(adds["path"], value_set=marked.removes["path"])))
    return pa.concat_tables([untouched, marked.adds.select(adds.schema.names)])
