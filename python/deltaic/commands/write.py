"""WRITE: appends, overwrites and replaces rows, and creates the table if there is none (delta-spark:
DataFrameWriter).

Data files are written before the commit. If the commit fails, they are deleted.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from typing import Protocol as Interface

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core, configuration
from deltaic.commands import change_files, defaults, delete, generated, identity, invariants, replacement
from deltaic.commands.assignment import cast_columns
from deltaic.commands.create import check_rules, set_clustering
from deltaic.commands.data_files import compacted, write_target
from deltaic.commands.invariants import Rule
from deltaic.commands.marking import staging, total_size
from deltaic.commands.store_assignment import as_cast, check_types
from deltaic.commands.write_job import Write
from deltaic.engine.exporters import is_replayable
from deltaic.errors import (
    InvalidArgumentError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from deltaic.log.snapshot import Snapshot
from deltaic.planning.planned import check_of_partitions, check_whole_partitions, own_reads
from deltaic.protocol import clustering, definition, evolution
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import Change
from deltaic.protocol.schema import Field, Schema, path_text
from deltaic.protocol.widening import is_upcast, is_widening
from deltaic.transaction.checks import check_append_only, check_mapped_feed
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine, StoreAssignment, WriteTarget
    from deltaic.plan.nodes import Data, Plan, TableRead


class NewRows(Interface):
    """Interface of the new rows of a write."""

    @property
    def reads(self) -> tuple[TableRead, ...]:
        """The tables from which the rows come."""

    def definition(self, snapshot: Snapshot | None, job: Write) -> tuple[Protocol, Metadata]:
        """Returns the protocol and metadata that the rows require."""

    def files(self, transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> pa.Table:
        """Returns the `add` actions of the rows' files, and registers the files in the transaction."""


class _Source:
    """Rows that this process writes."""

    def __init__(self, engine: Engine, data: Any, job: Write) -> None:
        self._engine, self._replayable = engine, is_replayable(data)
        self._source = engine.source(data, "s", rounding=job.casting is not None)
        self.reads = self._source.reads

    def hold(self, held: ExitStack, alias: str) -> Data:
        """Computes the rows once until the end of `held`, as they are read several times, and returns them
        under this alias."""
        self._source = held.enter_context(
            self._engine.hold(self._engine.run(self._source), self._source.alias)
        )
        return replace(self._source, alias=alias)

    def definition(self, snapshot: Snapshot | None, job: Write) -> tuple[Protocol, Metadata]:
        policy = self._engine.store_assignment
        return needed_definition(snapshot, self._source.schema, job, policy)

    def files(self, transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> pa.Table:
        target, engine = _target(transaction, protocol, metadata, job), self._engine
        rows, schema, rules = _new_rows(engine, self._source, protocol, metadata, job)
        checked = invariants.checked(rows, schema, rules, engine)
        with invariants.counting(engine, [rows], schema, rules) if self._replayable else nullcontext():
            adds = engine.write(engine.run(checked), target)
        transaction.written(adds["path"].to_pylist())
        if columns := _numbered_columns(self._source.schema, protocol, schema):
            store = transaction.store
            transaction.set_metadata(
                identity.marked(engine, store, protocol, metadata, schema, columns, adds)
            )
        return adds


@dataclass(frozen=True, eq=False)
class TaskFiles:
    """Data files that Spark tasks have written from the rows of `checked_rows`, for the definition that
    `prepared` returned."""

    protocol: Protocol
    metadata: Metadata
    adds: pa.Table
    reads: tuple[TableRead, ...] = ()

    def definition(self, snapshot: Snapshot | None, job: Write) -> tuple[Protocol, Metadata]:
        return self.protocol, self.metadata

    def files(self, transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> pa.Table:
        transaction.written(self.adds["path"].to_pylist())
        return self.adds


def _target(transaction: Transaction, protocol: Protocol, metadata: Metadata, job: Write) -> WriteTarget:
    """Returns the target of new rows. That of a write without options of its own is made once for a table's
    definition."""

    def make() -> WriteTarget:
        return write_target(
            transaction.store,
            metadata,
            protocol,
            job.parquet,
            target_file_size=job.target_file_size,
            **job.more,
        )

    snapshot, current = transaction.snapshot, configuration.current()
    is_own = snapshot is not None and metadata is snapshot.metadata and protocol is snapshot.protocol
    if (
        snapshot is None
        or not is_own
        or job.parquet is not None
        or job.target_file_size is not None
        or job.more
    ):
        return make()
    made_with, target = snapshot.keep_of_definition("write target", lambda: (current, make()))
    return replace(target, store=transaction.store) if made_with is current else make()


def write(
    store: _core.Store, snapshot: Snapshot | None, engine: Engine, data: Any, job: Write
) -> tuple[Snapshot, dict[str, int]]:
    """Writes rows. Returns the new version and the metrics. `snapshot`: None if there is no table yet.
    `data`: an argument of `engine.source`, or TaskFiles.

    Nothing is committed if no rows are added or removed, unless the definition changes or the write has an
    application transaction.

    Raises SchemaMismatchError, ConstraintViolationError, TableAlreadyExistsError, the exceptions of
    conflicts, and InvalidArgumentError for options that differ from the table's.
    """
    if snapshot is None:
        if job.replacement is not None:
            raise TableNotFoundError(
                "[DELTA_PATH_DOES_NOT_EXIST] there is no Delta table whose rows are replaced",
                where=store.location,
            )
        return _write_first(store, engine, _rows(engine, data, job), job)
    if _is_done(snapshot, job):
        return snapshot, {}
    if job.where is None and job.shown_where is not None:
        engine.parsed_text(job.shown_where)
    rows = _rows(engine, data, job)
    protocol, metadata = rows.definition(snapshot, job)
    job.check_partitions(snapshot.metadata, metadata)
    if job.where is not None and job.where_of_partitions:
        check_of_partitions(engine, job.where, snapshot, "where= of the write")
    if job.history_predicate is not None and not job.data_change:
        check_whole_partitions(engine, job.history_predicate, snapshot)
    if job.defines or job.replaces_definition:
        check_rules(metadata)
    transaction = _changing(snapshot, protocol, metadata, job)
    for predicate in own_reads((*rows.reads, *job.reads), snapshot):
        transaction.read(predicate, rows_only=True)
    with ExitStack() as held, staging(transaction):
        replaced = _replaced_by(transaction, snapshot, engine, rows, job, held)
        adds = rows.files(transaction, protocol, metadata, job)
        removed = replaced or _make_room(transaction, snapshot, engine, adds, job)
        inserts = change_files.write_inserts(
            transaction, engine, protocol, metadata, adds, removed(), job.parquet
        )
        transaction.add(adds)
        check_mapped_feed(transaction, is_on_spark=not engine.is_embedded)
    if not transaction.changes_table and not job.defines:
        return snapshot, {}

    written = job.metrics_of(adds)

    def metrics() -> dict[str, int]:
        return {**_added(written, removed()), **inserts}

    committed = transaction.commit(metrics)
    return compacted(committed, snapshot, engine, [adds]), metrics()


def prepared(snapshot: Snapshot | None, schema: Schema, job: Write) -> tuple[Protocol, Metadata] | None:
    """Returns the definition for which Spark tasks must write rows of this schema; None if there is nothing
    to write. Raises all errors that can be found without the rows."""
    if job.replacement is not None:
        raise _by_tasks()
    if snapshot is None:
        return needed_definition(None, schema, job)
    if _is_done(snapshot, job):
        return None
    protocol, metadata = needed_definition(snapshot, schema, job)
    if columns := _numbered_columns(schema, protocol, Schema.from_json(metadata.schema_string)):
        raise UnsupportedFeatureError(
            "tasks that write without deltaic.spark.enable cannot assign identity values",
            where=f"identity column {columns[0].name}",
            expected="a write in a session after deltaic.spark.enable",
        )
    _changing(snapshot, protocol, metadata, job)
    return protocol, metadata


def checked_rows(engine: Engine, source: Data, protocol: Protocol, metadata: Metadata, job: Write) -> Plan:
    """Returns the source's rows with the columns of the table: adds defaults and generated columns, casts
    values, and checks the table's constraints."""
    rows, schema, rules = _new_rows(engine, source, protocol, metadata, job)
    return invariants.checked(rows, schema, rules, engine)


def _new_rows(
    engine: Engine, source: Data, protocol: Protocol, metadata: Metadata, job: Write
) -> tuple[Plan, Schema, list[Rule]]:
    """Returns the source's rows with the columns of the table, the table's schema, and the rules that must
    still be checked."""
    schema = Schema.from_json(metadata.schema_string)
    texts = generated.columns_of(protocol, schema)
    missing = {name: text for name, text in texts.items() if source.schema.get(name) is None}
    rules = generated.rules_of({name: text for name, text in texts.items() if name not in missing})
    rules += invariants.rules_of(metadata, schema, engine)
    rules += invariants.rules_of_where(job, schema, engine)
    rows = cast_columns(
        defaults.filled(source, schema, engine), source, schema, engine, job.casting, job.fills
    )
    columns = _numbered_columns(source.schema, protocol, schema)
    # Generated and identity columns are null here, as they are computed below.
    later = {*missing, *(field.name for field in columns)}
    fitting = engine.conform(
        rows, Schema([item.with_(nullable=True) if item.name in later else item for item in schema])
    )
    computed = generated.computed(identity.numbered(engine, fitting, columns), schema, missing, engine)
    stored = invariants.as_stored(computed, schema, rules, engine, metadata.partition_columns)
    return stored, schema, rules


def _numbered_columns(source: Schema, protocol: Protocol, schema: Schema) -> list[Field]:
    """Returns the identity columns that the source lacks. One that the source may not have is an
    InvalidArgumentError."""
    columns = identity.columns_of(protocol, schema)
    names = [name for name in columns if source.get(name) is not None]
    identity.check_inserted(columns, names)
    return [field for name, field in columns.items() if name not in names]


def _is_done(snapshot: Snapshot, job: Write) -> bool:
    """True if there is nothing to write to an existing table; raises an error if the job differs from the
    table. A write whose application transactions are in the table is done in every mode, even mode="error":
    it created the table."""
    if already_committed(snapshot, job.commit):
        return True
    if job.mode == "error":
        raise TableAlreadyExistsError(
            "a table already exists here", where=snapshot.location, expected="mode='append' or another"
        )
    if job.mode == "ignore":
        return True
    if not (job.replaces_definition or job.defines):
        job.wanted_of_existing.check_agrees(snapshot)
    return False


def _rows(engine: Engine, data: Any, job: Write) -> NewRows:
    return data if isinstance(data, TaskFiles) else _Source(engine, data, job)


def _changing(snapshot: Snapshot, protocol: Protocol, metadata: Metadata, job: Write) -> Transaction:
    """Starts the transaction of a write to an existing table, and stages its definition."""
    transaction = Transaction(snapshot, job.operation, job.parameters(metadata), job.commit)
    transaction.data_change = job.data_change
    if job.mode.startswith("overwrite"):  # also if there is nothing to replace yet, as in delta-spark
        check_append_only(transaction)
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    if metadata != snapshot.metadata:
        transaction.set_metadata(metadata)
    _stage_clustering(transaction, snapshot, metadata, job)
    transaction.expect(Change.ADD if job.data_change else Change.REARRANGE)
    return transaction


def needed_definition(
    snapshot: Snapshot | None, data: Schema, job: Write, policy: StoreAssignment = "ansi"
) -> tuple[Protocol, Metadata]:
    """Returns the protocol and metadata that rows of this schema require; those of a new table if there is
    none. Generated columns of the table from which the rows come become plain columns of a new table, as in
    delta-spark. `policy`: as for `Engine.store_assignment`."""
    protocol, metadata = _needed_definition(snapshot, data, job, policy)
    job.check_data_change(None if snapshot is None else snapshot.metadata, metadata)
    return protocol, metadata


def _needed_definition(
    snapshot: Snapshot | None, data: Schema, job: Write, policy: StoreAssignment
) -> tuple[Protocol, Metadata]:
    if snapshot is None or job.defines or job.replaces_definition:
        data = Schema([item.with_(metadata=generated.plain(item.metadata)) for item in data])
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
            # a table has partition columns or clustering columns: new ones of one kind replace the others
            partition_columns=wanted.partition_by or (() if wanted.cluster_by else wanted.partition_by),
            properties=job.wanted_of_existing.properties,
            features=(clustering.FEATURE,) if wanted.cluster_by else (),
            name=wanted.name,
            description=wanted.description,
        )
    if job.casting is not None:
        data = as_cast(data, snapshot.schema, policy)
    elif job.same_types:
        check_types(snapshot.schema, data, widen=_widening(snapshot, job))
    if job.schema_mode == "merge":
        merged = evolution.merge_schemas(snapshot.schema, data, widen=_widening(snapshot, job))
        evolution.check_nullability(snapshot.schema, data)
    else:

        def check() -> None:
            evolution.check_fits(
                snapshot.schema, data, replaces_all=job.mode == "overwrite" and job.where is None
            )
            evolution.check_nullability(snapshot.schema, data)

        snapshot.keep_of_definition(("fits", data), check)
    if not job.fills_partitions:
        evolution.check_partitions(snapshot.schema, snapshot.metadata.partition_columns, data)
    if job.needs_stored_columns:
        partitions = snapshot.metadata.partition_columns
        evolution.check_stored_columns(partitions, data, casts=job.casting is not None)
    if job.schema_mode == "merge":
        return definition.evolve(snapshot.protocol, snapshot.metadata, schema=merged, upcasts=job.same_types)
    return snapshot.protocol, snapshot.metadata


def _widening(snapshot: Snapshot, job: Write) -> evolution.Widening | None:
    """Returns which wider types of the data a column gets. None: it keeps its type."""
    if job.schema_mode != "merge":
        return None
    if snapshot.properties.type_widening:
        return is_widening
    return is_upcast if job.same_types else None


def _stage_clustering(transaction: Transaction, snapshot: Snapshot, metadata: Metadata, job: Write) -> None:
    """Stages the clustering. A replaced table has the clustering of the new definition. If only the schema is
    replaced, the names of the clustering columns are kept, unless the table gets partition columns."""
    if job.defines:
        set_clustering(transaction, job.wanted.clustering(metadata))
    elif job.replaces_definition:
        before = clustering.logical_columns(snapshot.schema, snapshot.domains.get(clustering.DOMAIN))
        wanted = job.wanted
        if wanted.cluster_by is None and not wanted.partition_by:
            wanted = replace(wanted, cluster_by=tuple(map(path_text, before)))
        set_clustering(transaction, wanted.clustering(metadata))


def _replaced_by(
    transaction: Transaction, snapshot: Snapshot, engine: Engine, rows: NewRows, job: Write, held: ExitStack
) -> delete.Metrics | None:
    """Stages the deletion of the rows that match a new one, and returns its metrics. None if the job does not
    replace rows by a match."""
    if job.replacement is None:
        return None
    if not isinstance(rows, _Source):
        raise _by_tasks()
    matching = rows.hold(held, job.replacement.source)
    return replacement.stage(transaction, snapshot, engine, job.replacement, matching, job.parquet)


def _by_tasks() -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "replaceUsing and replaceOn need deltaic.spark.enable: tasks that write without it have no join"
    )


def _make_room(
    transaction: Transaction, snapshot: Snapshot, engine: Engine, adds: pa.Table, job: Write
) -> delete.Metrics:
    """Stages the removal of the files or rows that the new rows replace. Returns its metrics."""
    if job.mode == "append":
        return dict
    if job.where is not None:
        deleted = delete.stage_replaced(transaction, snapshot, engine, job.where, job.parquet)
        return (lambda: _of_files(deleted())) if job.where_of_partitions else deleted
    if job.mode == "overwrite":
        predicate, gone = None, snapshot.files().adds
    else:
        predicate = _partitions_of(snapshot, adds)
        gone = snapshot.files(predicate, skipping=False).adds
    transaction.read(predicate)
    transaction.remove(_core.removes_of(gone, transaction.clock()))
    removed = {"num_removed_files": gone.num_rows}
    if job.streaming is None:
        removed["num_removed_bytes"] = total_size(gone)
    return lambda: removed


def _of_files(metrics: dict[str, int]) -> dict[str, int]:
    """Returns the metrics of replaced partitions, which are those of whole files."""
    return {name: metrics[name] for name in ("num_removed_files", "num_removed_bytes") if name in metrics}


def _partitions_of(snapshot: Snapshot, adds: pa.Table) -> _core.Predicate:
    """Returns the predicate that a row is in one of the partitions of the new files."""
    columns = snapshot.metadata.partition_columns
    if not columns:
        raise InvalidArgumentError(
            "mode='overwrite_partitions' needs a partitioned table", where=snapshot.location
        )
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


def _write_first(
    store: _core.Store, engine: Engine, rows: NewRows, job: Write
) -> tuple[Snapshot, dict[str, int]]:
    """Writes the first version of a table. If another writer creates the table meanwhile, the files are
    committed to that table, unless it has rows that a condition would replace. `save` of Spark does not check
    the condition for the rows of a new table, as in delta-spark."""
    protocol, metadata = rows.definition(None, job)
    is_unchecked = job.where is not None and job.same_types
    if job.history_predicate is not None and job.same_types:
        engine.parsed_text(job.history_predicate)
    check_rules(metadata)
    transaction = Transaction(None, job.operation, job.parameters(metadata), job.commit, store=store)
    transaction.set_protocol(protocol)
    transaction.set_metadata(metadata)
    set_clustering(transaction, job.wanted.clustering(metadata))
    removed = {}
    if job.mode in ("overwrite", "overwrite_partitions") and job.where is None:
        transaction.read()  # no blind append, also if there is nothing to replace yet
        removed = {"num_removed_files": 0, "num_removed_bytes": 0}
    with staging(transaction):
        own = replace(job, checks_where=False) if is_unchecked else job
        adds = rows.files(transaction, protocol, metadata, own)
    transaction.add(adds)
    metrics = {**job.metrics_of(adds), **removed}
    try:
        return transaction.commit(metrics), metrics
    except TableAlreadyExistsError:
        winner = Snapshot.load(store)
        done = already_committed(winner, job.commit)
        if done or is_unchecked or job.mode in ("error", "ignore"):
            transaction.discard()
            if not done and job.mode != "ignore":
                raise
            return winner, {}
    return _onto_winner(transaction, winner, engine, adds, metadata, job)


def _onto_winner(
    lost: Transaction, winner: Snapshot, engine: Engine, adds: pa.Table, metadata: Metadata, job: Write
) -> tuple[Snapshot, dict[str, int]]:
    """Commits files to a table that another writer created first, if they fit its definition."""
    transaction = Transaction(winner, job.operation, job.parameters(winner.metadata), job.commit)
    lost.hand_over(transaction)
    with staging(transaction):
        invariants.check_same_files(winner, metadata)
        removed = _make_room(transaction, winner, engine, adds, job)
        inserts = change_files.write_inserts(
            transaction, engine, winner.protocol, winner.metadata, adds, removed(), job.parquet
        )
        transaction.add(adds)

    written = job.metrics_of(adds)

    def metrics() -> dict[str, int]:
        return {**_added(written, removed()), **inserts}

    return transaction.commit(metrics), metrics()


def _added(written: dict[str, int], removed: dict[str, int]) -> dict[str, int]:
    """Returns the metrics of the new files with those of the replaced rows. Counts that both have, such as
    the rows of new files and the rows that were copied, are added, as in delta-spark."""
    return {
        **written,
        **{name: written.get(name, 0) + count for name, count in removed.items()},
    }
