"""WRITE: appends, overwrites and replaces rows, and makes the table where there is none (delta-spark: DataFrameWriter).

Data files are written first, then the commit; a commit that fails for good takes its files away again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from typing import Protocol as Interface

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import defaults, delete, invariants
from deltaic.commands.create import Wanted, definition_parameters, set_clustering
from deltaic.commands.data_files import write_target
from deltaic.commands.marking import rows_of, staging, total_size
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, TableAlreadyExistsError
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.protocol import clustering, definition, evolution
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import Change
from deltaic.protocol.schema import Schema, path_text, type_name
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.relation.plan import Data, Plan

log = logging.getLogger("deltaic.commands")

Mode = Literal["error", "append", "overwrite", "overwrite_partitions", "ignore"]
SchemaMode = Literal["merge", "overwrite"]
_MODES = {
    "error": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "overwrite_partitions": "Overwrite",
    "ignore": "Ignore",
}


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write as the user asked for it; the fields are `deltaic.write`'s arguments. `defines`: CREATE [OR REPLACE] TABLE AS SELECT,
    which leaves nothing of a table that is there. `more`: further options of the engine's writer."""

    mode: Mode = "error"
    where: str | None = None
    schema_mode: SchemaMode | None = None
    wanted: Wanted = field(default_factory=Wanted)
    target_file_size: int | None = None
    parquet: ParquetOptions | None = None
    commit: CommitOptions | None = None
    defines: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise InvalidArgumentError("unknown mode of write", found=repr(self.mode), expected=", ".join(map(repr, _MODES)))
        if self.schema_mode not in (None, "merge", "overwrite"):
            raise InvalidArgumentError("unknown schema_mode", found=repr(self.schema_mode), expected="'merge', 'overwrite' or None")
        if self.where is not None and self.mode != "overwrite":
            raise InvalidArgumentError("where= goes with mode='overwrite'", found=f"mode={self.mode!r}")
        if self.schema_mode == "overwrite" and (self.mode != "overwrite" or self.where is not None):
            raise InvalidArgumentError(
                "schema_mode='overwrite' goes with mode='overwrite' and no where=", found=f"mode={self.mode!r}, where={self.where!r}"
            )
        size = self.target_file_size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InvalidArgumentError("target_file_size", found=repr(size), expected="bytes, at least 1")

    @property
    def replaces_definition(self) -> bool:
        return self.schema_mode == "overwrite"

    @property
    def operation(self) -> str:
        """delta-spark's name of it in the history."""
        if not self.defines:
            return "WRITE"
        return "CREATE OR REPLACE TABLE AS SELECT" if self.mode == "overwrite" else "CREATE TABLE AS SELECT"

    def parameters(self, metadata: Metadata) -> dict[str, Any]:
        """commitInfo.operationParameters, as delta-spark's of the operation."""
        if self.defines:
            return definition_parameters(self.wanted, metadata)
        shown: dict[str, Any] = {"mode": _MODES[self.mode], "partitionBy": list(metadata.partition_columns)}
        if self.where is not None:
            shown["predicate"] = self.where
        if self.mode == "overwrite_partitions":
            shown["isDynamicPartitionOverwrite"] = True
        if self.schema_mode is not None:
            shown["canMergeSchema" if self.schema_mode == "merge" else "canOverwriteSchema"] = True
        return shown


class NewRows(Interface):
    """The new rows of a write: for which definition, and as which files."""

    def definition(self, snapshot: Snapshot | None, job: Write) -> tuple[Protocol, Metadata]:
        """The protocol and metadata that the rows need."""

    def files(self, transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> pa.Table:
        """Their `add` actions; the files are the transaction's from then on."""


class _Source:
    """Rows that this process writes."""

    def __init__(self, engine: Engine, data: Any) -> None:
        self._engine, self._source = engine, engine.source(data, "s")

    def definition(self, snapshot: Snapshot | None, job: Write) -> tuple[Protocol, Metadata]:
        return needed_definition(snapshot, self._source.schema, job)

    def files(self, transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> pa.Table:
        target = write_target(transaction.store, metadata, protocol, job.parquet, target_file_size=job.target_file_size, **job.more)
        rows = checked_rows(self._engine, self._source, metadata, job)
        adds = self._engine.write(self._engine.run(rows), target)
        transaction.written(adds["path"].to_pylist())
        return adds


@dataclass(frozen=True, eq=False)
class Delivered:
    """Files that tasks elsewhere have written, of rows made by `checked_rows`, for the definition that `prepared` gave."""

    protocol: Protocol
    metadata: Metadata
    adds: pa.Table

    def definition(self, snapshot: Snapshot | None, job: Write) -> tuple[Protocol, Metadata]:
        return self.protocol, self.metadata

    def files(self, transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> pa.Table:
        transaction.written(self.adds["path"].to_pylist())
        return self.adds


def write(store: _core.Store, snapshot: Snapshot | None, engine: Engine, data: Any, job: Write) -> tuple[Snapshot, dict[str, int]]:
    """-> the version with the commit, and the metrics. `snapshot` None: there is no table yet. `data`: what `engine.source` takes, or
    Delivered.

    Raises SchemaMismatchError, ConstraintViolationError, TableAlreadyExistsError, the conflicts, InvalidArgumentError for what disagrees
    with the table.
    """
    if snapshot is None:
        return _write_first(store, engine, _rows(engine, data), job)
    if _is_done(snapshot, job):
        return snapshot, {}
    rows = _rows(engine, data)
    protocol, metadata = rows.definition(snapshot, job)
    transaction = _changing(snapshot, protocol, metadata, job)
    with staging(transaction):
        adds = rows.files(transaction, protocol, metadata, job)
        metrics = {**_written(adds), **_make_room(transaction, snapshot, engine, adds, job)}
        transaction.add(adds)
    return _compacted(transaction.commit(metrics), engine, adds), metrics


def prepared(snapshot: Snapshot | None, schema: Schema, job: Write) -> tuple[Protocol, Metadata] | None:
    """The definition for which tasks are to write rows of this schema; None where there is nothing to do. Everything about the write that
    can be refused before its rows are seen is refused here."""
    if snapshot is None:
        return needed_definition(None, schema, job)
    if _is_done(snapshot, job):
        return None
    protocol, metadata = needed_definition(snapshot, schema, job)
    _changing(snapshot, protocol, metadata, job)
    return protocol, metadata


def checked_rows(engine: Engine, source: Data, metadata: Metadata, job: Write) -> Plan:
    """The source's rows as columns of the table: defaults filled in, cast, and checked against what every row must satisfy."""
    schema = Schema.from_json(metadata.schema_string)
    also = () if job.where is None else (("a new row does not match the where of the overwrite", job.where),)
    return invariants.checked(engine.conform(defaults.filled(source, schema, engine), schema), schema, engine, also=also)


def _is_done(snapshot: Snapshot, job: Write) -> bool:
    """Whether nothing is left to do on a table that is there; raises where the job disagrees with it."""
    if job.mode == "error":
        raise TableAlreadyExistsError("a table is there already", where=snapshot.location, expected="mode='append' or another")
    if job.mode == "ignore" or already_committed(snapshot, job.commit):
        return True
    if not job.replaces_definition:
        job.wanted.check_agrees(snapshot)
    return False


def _rows(engine: Engine, data: Any) -> NewRows:
    return data if isinstance(data, Delivered) else _Source(engine, data)


def _changing(snapshot: Snapshot, protocol: Protocol, metadata: Metadata, job: Write) -> Transaction:
    """The transaction of a write to a table that is there, with its definition."""
    transaction = Transaction(snapshot, job.operation, job.parameters(metadata), job.commit)
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    if metadata != snapshot.metadata:
        transaction.set_metadata(metadata)
    _stage_clustering(transaction, snapshot, metadata, job)
    transaction.expect(Change.ADD)
    return transaction


def needed_definition(snapshot: Snapshot | None, data: Schema, job: Write) -> tuple[Protocol, Metadata]:
    """The protocol and metadata that rows of this schema need: a new table's where there is none."""
    if snapshot is None:
        return job.wanted.new(data)
    if job.defines:
        return job.wanted.replacing(snapshot, evolution.replaced_schema(data))
    if job.replaces_definition:
        wanted = job.wanted
        return definition.evolve(
            snapshot.protocol,
            snapshot.metadata,
            schema=evolution.replaced_schema(data),
            replace_schema=True,
            partition_columns=wanted.partition_by,
            properties=wanted.properties,
            features=(clustering.FEATURE,) if wanted.cluster_by else (),
            name=wanted.name,
            description=wanted.description,
        )
    if job.schema_mode == "merge":
        merged = evolution.merge_schemas(snapshot.schema, data, widen=snapshot.properties.type_widening)
        evolution.check_nullability(snapshot.schema, data)
        return definition.evolve(snapshot.protocol, snapshot.metadata, schema=merged)
    evolution.check_fits(snapshot.schema, data)
    evolution.check_nullability(snapshot.schema, data)
    return snapshot.protocol, snapshot.metadata


def _stage_clustering(transaction: Transaction, snapshot: Snapshot, metadata: Metadata, job: Write) -> None:
    """A table that is replaced is clustered as the new definition says; one whose schema is replaced by the columns of the same names."""
    if job.defines:
        set_clustering(transaction, job.wanted.clustering(metadata))
    elif job.replaces_definition:
        before = [path_text(path) for path in clustering.logical_columns(snapshot.schema, snapshot.domains.get(clustering.DOMAIN))]
        wanted = job.wanted if job.wanted.cluster_by is not None else replace(job.wanted, cluster_by=tuple(before))
        set_clustering(transaction, wanted.clustering(metadata))


def _make_room(transaction: Transaction, snapshot: Snapshot, engine: Engine, adds: pa.Table, job: Write) -> dict[str, int]:
    """Stages what leaves the table for the new rows; -> its metrics."""
    if job.mode == "append":
        return {}
    if job.where is not None:
        return delete.stage(transaction, snapshot, engine, job.where, job.parquet) or {}
    if job.mode == "overwrite":
        predicate = None
        gone = snapshot.files().adds
    else:
        predicate = _partitions_of(snapshot, adds)
        gone = snapshot.files(predicate, skipping=False).adds
    transaction.read(predicate)
    transaction.remove(_core.removes_of(gone, transaction.clock()))
    return {"num_removed_files": gone.num_rows, "num_removed_bytes": total_size(gone)}


def _partitions_of(snapshot: Snapshot, adds: pa.Table) -> _core.Predicate:
    """True for just the rows of the partitions that the new files are in."""
    columns = snapshot.metadata.partition_columns
    if not columns:
        raise InvalidArgumentError("mode='overwrite_partitions' needs a partitioned table", where=snapshot.location)
    keys = {name: physical_name(snapshot.schema.field(name)) for name in columns}
    values = adds["partitionValues"].combine_chunks()
    table = pa.table({name: pc.map_lookup(values, keys[name], "first") for name in columns})
    touched = table.group_by(list(columns)).aggregate([]).to_pylist()
    nodes = [{"op": "and", "args": [_equals(name, row[name]) for name in columns]} for row in touched]
    tree: dict[str, Any] = {"op": "or", "args": nodes} if nodes else {"op": "false"}
    return _core.Predicate.from_json(json.dumps(tree), snapshot.table_schema)


def _equals(column: str, value: str | None) -> dict[str, Any]:
    if not value:
        return {"op": "is_null", "column": [column]}
    return {"op": "=", "column": [column], "literal": value}


def _write_first(store: _core.Store, engine: Engine, rows: NewRows, job: Write) -> tuple[Snapshot, dict[str, int]]:
    """The first version of a table, unless another writer makes it meanwhile."""
    protocol, metadata = rows.definition(None, job)
    transaction = Transaction(None, job.operation, job.parameters(metadata), job.commit, store=store)
    transaction.set_protocol(protocol)
    transaction.set_metadata(metadata)
    set_clustering(transaction, job.wanted.clustering(metadata))
    with staging(transaction):
        adds = rows.files(transaction, protocol, metadata, job)
    transaction.add(adds)
    metrics = _written(adds)
    try:
        return transaction.commit(metrics), metrics
    except TableAlreadyExistsError:
        if job.mode == "error":
            transaction.discard()
            raise
    winner = Snapshot.load(store)
    if job.mode == "ignore" or already_committed(winner, job.commit):
        transaction.discard()
        return winner, {}
    return _onto_winner(transaction, winner, engine, adds, metadata, job)


def _onto_winner(
    lost: Transaction, winner: Snapshot, engine: Engine, adds: pa.Table, metadata: Metadata, job: Write
) -> tuple[Snapshot, dict[str, int]]:
    """The same files on the table that another writer made first, where they fit it; its definition stays."""
    transaction = Transaction(winner, job.operation, job.parameters(winner.metadata), job.commit)
    lost.hand_over(transaction)
    with staging(transaction):
        _check_same_files(winner, metadata)
        metrics = {**_written(adds), **_make_room(transaction, winner, engine, adds, job)}
        transaction.add(adds)
    return transaction.commit(metrics), metrics


def _check_same_files(winner: Snapshot, ours: Metadata) -> None:
    """Files written for our definition can be read by the winner's: same columns, partitioned the same, named as in the schema."""
    schema = Schema.from_json(ours.schema_string)
    problem = None
    if winner.metadata.partition_columns != ours.partition_columns:
        problem = f"partitioned by {list(winner.metadata.partition_columns)}"
    for column in winner.schema:
        mine = schema.get(column.name)
        if mine is None and column.nullable and defaults.KEY not in column.metadata:
            continue
        if mine is None or mine.name != column.name or mine.type != column.type or (mine.nullable and not column.nullable):
            problem = f"column {column.name} of type {type_name(column.type)}"
        elif physical_name(column) != column.name or column.metadata.get(invariants.KEY):
            problem = f"column {column.name} with metadata {dict(column.metadata)}"
    if extra := [item.name for item in schema if winner.schema.get(item.name) is None]:
        problem = f"no column {extra[0]}"
    if problem is not None:
        raise SchemaMismatchError(
            "another writer made this table first, and the data does not fit it",
            where=winner.location,
            found=problem,
            expected=repr(schema),
        )


def _compacted(committed: Snapshot, engine: Engine, adds: pa.Table) -> Snapshot:
    """The version after the compaction that the table may want after a write; when that fails, the write stands."""
    from deltaic.commands.optimize import auto_compact

    try:
        return auto_compact(committed, engine, adds) if committed.properties.auto_compact else committed
    except Exception as error:  # whatever it is: the write is there, and nobody may take it for failed
        log.warning("%s: compaction after version %d failed: %s", committed.location, committed.version, error)
        return committed


def _written(adds: pa.Table) -> dict[str, int]:
    return {"num_files": adds.num_rows, "num_output_rows": rows_of(adds), "num_output_bytes": total_size(adds)}
