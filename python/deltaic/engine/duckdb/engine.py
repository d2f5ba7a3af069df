"""`LocalEngine`, the embedded engine: DuckDB joins, groups and sorts, and `_core` reads and writes files.

A plan that is a plain scan goes to `_core` alone. Anything else becomes one DuckDB query over our own dataset
class, so that columns and filters still reach the files. Results come back in Delta's exact Arrow types.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from deltaic import _core, configuration
from deltaic.engine.duckdb.shown_types import held_types, shown_type, shown_values
from deltaic.engine.engine import (
    USUAL_RULES,
    AssignmentRules,
    Changing,
    Compaction,
    Curve,
    StoreAssignment,
    WriteTarget,
)
from deltaic.errors import ProtocolError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.expression import Expression, column_at, columns_of
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN, Data, Plan, Project, Scan, Union
from deltaic.protocol.column_mapping import map_fields
from deltaic.protocol.evolution import nullable_field
from deltaic.protocol.schema import Array, DataType, Map, Schema, Struct
from deltaic.sql_text import duckdb_name

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.duckdb.connection import Work
    from deltaic.engine.duckdb.held_rows import HeldRows
    from deltaic.engine.duckdb.lowering import Leaf, LoweredQuery
    from deltaic.engine.duckdb.registering import Keep
    from deltaic.engine.duckdb.sources import ScanSource
    from deltaic.plan.expression import Pieces
    from deltaic.planning.planned import ScanPlan
    from deltaic.spark_sql.expression import TablesOf
    from deltaic.spark_sql.query.queries import TranslatedQuery
else:
    from deltaic.deferred import pyarrow as pa

T = TypeVar("T")
_held = itertools.count()
_PREPARED = re.compile(r"\bdeltaic_")  # the functions that `spark_sql.duckdb.prepare` installs
# Functions whose value may differ between runs of one query text
_CHANGING = re.compile(r"\b(now|random|uuid)\(")
_KINDS = {
    "Invalid Input Error": "InvalidInputException",
    "Out of Range Error": "OutOfRangeException",
    "Conversion Error": "ConversionException",
}
_OF_A_STREAM = re.compile(r"\(C Data interface error: (.*)\)$", re.DOTALL)
"""Matches the message of an error that passed through an Arrow stream, inside the message of `_core`."""
PLANNED_TWICE = 100_000
"""Minimum total rows of a query's tables at which the query is planned twice (`_keep_filters`). The second
planning takes milliseconds; a poor order of joins over so many rows takes more."""
PLANS: ContextVar[list[dict[str, Any]] | None] = ContextVar("PLANS", default=None)
"""List to which each query adds its plan as DuckDB explains it, for reports; None if nothing collects
plans."""
_VECTOR_ROWS = 2048
"""Number of rows that DuckDB computes at a time, and the minimum number of rows of a batch."""
_WIDTHS = {
    "boolean": 1,
    "byte": 1,
    "short": 2,
    "integer": 4,
    "date": 4,
    "float": 4,
    "void": 1,
    "string": 48,
    "binary": 48,
    "variant": 200,
}
"""Estimated bytes of one value by type; 8 for types that are not listed."""


@dataclass(frozen=True)
class LocalRelation:
    """Rows not yet computed: `open` starts the work and returns an Arrow stream with exactly the columns of
    `schema`."""

    schema: Schema
    open: Callable[[Work], Any]
    polls: bool = False
    """True if the stream itself stops at Ctrl-C while it waits for a batch, as scans of `_core` do."""
    held: HeldRows | None = None
    """The rows themselves if they are few and in memory, so that reading them starts no work; else None."""


class LocalEngine:
    """The engine that runs `plan.nodes` in this process. It has no state that changes, so threads may share
    it and a forked child may use it.

    `time_zone`: the time zone of expressions; None: that of the configuration at each call. `tables`: opens
    the tables that subqueries in expressions name."""

    def __init__(self, time_zone: str | None = None, tables: TablesOf | None = None) -> None:
        self._time_zone, self._tables = time_zone, tables

    @property
    def time_zone(self) -> str:
        return self._time_zone or configuration.current().time_zone

    def pinned(self) -> LocalEngine:
        return LocalEngine(self.time_zone, self._tables)

    def working_on(self, operation: str, location: str) -> AbstractContextManager[None]:
        from deltaic.spark_sql.expression import one_moment

        return one_moment()

    @property
    def is_embedded(self) -> bool:
        return True

    @property
    def plain_sql(self) -> bool:
        return True

    @property
    def store_assignment(self) -> StoreAssignment:
        return "ansi"

    @property
    def assignment_rules(self) -> AssignmentRules:
        return USUAL_RULES

    def marks_rows(self, command: Changing) -> bool:
        return True

    @property
    def auto_compacts(self) -> bool | None:
        return None

    @property
    def compaction(self) -> Compaction:
        return Compaction()

    @property
    def pads_char(self) -> bool:
        return False

    @property
    def takes_nested_not_null(self) -> bool:
        return True

    def resolve(self, text: str, schemas: Mapping[str, Schema], *, queries: bool = False) -> Expression:
        from deltaic.spark_sql.expression import resolve

        return resolve(text, schemas, self.time_zone, self._tables if queries else None)

    def shown_condition(self, condition: str | Expression, alias: str | None) -> str:
        return condition if isinstance(condition, str) else condition.text

    def parsed_text(self, condition: str) -> str:
        return condition

    def compose(self, pieces: Pieces, data_type: DataType) -> Expression:
        from deltaic.spark_sql.expression import compose

        return compose(pieces, data_type, self.time_zone)

    @property
    def takes_repeated_files(self) -> bool:
        return True

    def frame(self, planned: ScanPlan, columns: Sequence[str]) -> None:
        return None

    def source(self, data: Any, alias: str, *, rounding: bool = False) -> Data:
        from deltaic.engine.source import read_source

        source = read_source(data, rounding=rounding)

        def opened(work: Work) -> Any:
            work.streams.append(source.failure)
            return _tracked(work, source.open())

        handle = LocalRelation(source.schema, opened)
        return Data(handle=handle, schema=source.schema, alias=alias, reads=source.reads)

    def conform(self, data: Plan, schema: Schema) -> Data:
        relation, table_schema = self.run(data), _core.TableSchema(schema.to_json())
        alias = getattr(data, "alias", "s")

        def opened(work: Work) -> _core.ReadStream:
            return _tracked(work, _core.conform(relation.open(work), table_schema))

        return Data(handle=LocalRelation(schema, opened), schema=schema, alias=alias)

    def numbered(self, data: Plan, series: Mapping[str, tuple[int, int]]) -> Data:
        from deltaic.engine.duckdb.numbering import NumberedRows
        from deltaic.engine.exporters import Failure

        relation = self.run(data)
        table_schema = _core.TableSchema(relation.schema.to_json())

        def opened(work: Work) -> _core.ReadStream:
            failure = Failure()
            work.streams.append(failure)
            return _tracked(
                work, _core.conform(NumberedRows(relation.open(work), series, failure), table_schema)
            )

        return Data(
            handle=LocalRelation(relation.schema, opened),
            schema=relation.schema,
            alias=getattr(data, "alias", "u"),
        )

    # --- lowering

    def run(self, plan: Plan) -> LocalRelation:
        if isinstance(plan, Union):
            return _chain([self.run(item) for item in plan.inputs])
        if isinstance(plan, Data) and isinstance(plan.handle, LocalRelation):
            return plan.handle
        bare = plan if isinstance(plan, Scan) else _plain_projection(plan)
        if bare is not None and not bare.where:
            return _copied(bare)
        return self._of_few(plan) or self._query(plan)

    def _of_few(self, plan: Plan) -> LocalRelation | None:
        """Returns the rows of a plan over few rows if Arrow can compute them without a query of DuckDB; else
        None."""
        from deltaic.engine.duckdb.few_rows import TooManyRowsError, computation

        if (few := computation(plan)) is None:
            return None

        def computed(read: Callable[[Scan], pa.Table]) -> pa.Table | None:
            try:
                return few.rows(read)
            except (TooManyRowsError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return None

        def opened(work: Work) -> Any:
            from deltaic.planning.opening import open_scan

            rows = computed(
                lambda scan: pa.RecordBatchReader.from_stream(_tracked(work, open_scan(scan))).read_all()
            )
            return self._query(plan).open(work) if rows is None else rows

        if few.reads_files:
            return LocalRelation(few.schema, opened)
        if (table := computed(lambda scan: pa.table({}))) is None:
            return None
        from deltaic.engine.duckdb.held_rows import HeldRows

        return LocalRelation(few.schema, lambda work: table, held=HeldRows(table))

    def _query(self, plan: Plan) -> LocalRelation:
        from deltaic.engine.duckdb.lowering import Lowering

        lowered = Lowering(self._leaf, self.time_zone).lower(plan)
        return LocalRelation(lowered.schema, lambda work: _execute(work, lowered))

    def _leaf(self, leaf: Scan | Data, keep: Keep | None = None) -> Leaf:
        from deltaic.engine.duckdb.lowering import Leaf, columns_with_maps
        from deltaic.engine.duckdb.registering import TableRows, compute, rows_of
        from deltaic.planning.opening import scan_schema
        from deltaic.planning.planned import column_names

        keep = keep or compute
        if isinstance(leaf, Data):
            relation = leaf.handle
            if isinstance(relation, LocalRelation):
                return Leaf(leaf.schema, opener=lambda work: _Stream(work, relation))
            return Leaf(leaf.schema, name=leaf.handle)
        read = column_names(leaf.where, leaf.schema, leaf.alias)
        wide = replace(
            leaf, columns=(*leaf.columns, *(name for name in read if name not in leaf.columns)), where=()
        )
        maps = columns_with_maps(schema := scan_schema(wide))

        def opened(work: Work, retyped: Callable[[pa.Schema], pa.Schema] | None = None) -> TableRows:
            return TableRows(wide, work.run, work.streams.append, retyped, keep)

        if not maps:
            return Leaf(
                schema,
                opener=opened,
                where=leaf.where,
                rows=keep("number of rows", lambda: rows_of(wide.files)),
            )
        from deltaic.engine.duckdb.raw_maps import entries_schema

        def with_entries(columns: frozenset[str]) -> Callable[[Work], Any]:
            return lambda work: opened(work, lambda found: entries_schema(found, columns))

        return Leaf(schema, opener=opened, where=leaf.where, maps=maps, with_entries=with_entries)

    def query(
        self, query: TranslatedQuery, leaves: Mapping[str, Plan], keep: Mapping[str, Keep] | None = None
    ) -> LocalRelation:
        """Runs a user's query that `spark_sql.query.queries` translated: DuckDB's SQL over tables named as
        `leaves`.

        `keep`: by leaf that has all rows of a snapshot, the cache of values derived from them for
        the next query. DuckDB chooses the order of the joins, unlike in a plan."""
        from deltaic.engine.duckdb.lowering import LoweredQuery

        opened = {
            name: self._leaf(leaf, (keep or {}).get(name))
            for name, leaf in leaves.items()
            if isinstance(leaf, (Scan, Data))
        }
        sources = {name: leaf.opener for name, leaf in opened.items() if leaf.opener is not None}
        if len(sources) != len(leaves):
            raise ValueError("a query reads scans and sources only")
        # Columns and fields of a result are nullable, as in DuckDB: joins and subqueries make nulls of NOT
        # NULL columns. A table that a query creates has no NOT NULL column either, as in delta-spark.
        nullable = Schema.of_query(map(nullable_field, query.schema))
        distinct = nullable.distinct()  # the engine names its own columns this way
        typed = held_types(distinct)
        rows = {name: leaf.rows for name, leaf in opened.items()}
        once = tuple(filter(query.reads_once, leaves))
        lowered = LoweredQuery(
            query.sql,
            typed,
            sources,
            query.constants,
            rows=rows,
            once=once,
            shared=query.shared,
            keys=query.keys,
            learned=None if _CHANGING.search(query.sql) else query.learned,
        )
        if typed == nullable:
            return LocalRelation(nullable, lambda work: _execute(work, lowered, planned=False))
        return LocalRelation(nullable, lambda work: _shown(_execute(work, lowered, planned=False), nullable))

    # --- consuming

    def consume(
        self, relation: LocalRelation, function: Callable[[Any], T], undo: Callable[[T], object] | None = None
    ) -> T:
        """Runs `function` on the relation's stream; the user can interrupt it (`undo`: as in `Work.call`). If
        a source failed, its error is raised instead of the one that DuckDB or Arrow makes of it."""
        from deltaic.engine.duckdb.connection import Work

        work = Work()
        try:
            return work.call(_with_first_error(work, lambda: function(relation.open(work))), undo)
        finally:
            work.close()

    def driver_bytes(self, store: _core.Store) -> int:
        return 0

    def rows_here(self, data: Data) -> pa.Table | None:
        return None

    def to_arrow(self, relation: LocalRelation, *, limit: int | None = None) -> pa.RecordBatchReader:
        reader = (
            self._reader(relation)
            if relation.held is None
            else _held_reader(relation.schema, relation.held.table)
        )
        return reader if limit is None else _limited(reader, limit)

    def _reader(self, relation: LocalRelation) -> pa.RecordBatchReader:
        from deltaic.engine.duckdb.connection import Work

        work = Work()
        schema = arrow_schema(relation.schema)
        # DuckDB is interruptible only with a thread for each batch; a narrow batch is decoded faster than a
        # thread starts.
        call = (lambda function: function()) if relation.polls else work.call

        def opened() -> tuple[pa.RecordBatchReader, pa.RecordBatch | None]:
            reader = pa.RecordBatchReader.from_stream(relation.open(work))
            return reader, next(reader, None)

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                reader, batch = call(_with_first_error(work, opened))
                following = _with_first_error(work, lambda: next(reader, None))
                while batch is not None:
                    work.check()
                    yield _declared(batch, schema)
                    batch = call(following)
            finally:
                work.cancel()
                work.close()

        return pa.RecordBatchReader.from_batches(schema, batches())

    def is_cheap(self, relation: LocalRelation) -> bool:
        return True

    def count(self, relation: LocalRelation) -> int:
        return sum(batch.num_rows for batch in self._reader(relation))

    def to_table(self, relation: LocalRelation) -> pa.Table:
        schema = arrow_schema(relation.schema)
        table = self.consume(relation, lambda stream: pa.RecordBatchReader.from_stream(stream).read_all())
        return (
            table
            if table.schema.equals(schema, check_metadata=True)
            else pa.Table.from_arrays(table.columns, schema=schema)
        )

    def write(self, relation: LocalRelation, target: WriteTarget) -> pa.Table:
        def undo(adds: pa.Table) -> None:
            from deltaic.protocol.paths import decoded_path

            target.store.delete(list(map(decoded_path, adds["path"].to_pylist())))

        return self.consume(
            relation,
            lambda stream: _core.write(target.store, target.schema, stream, target.options_json),
            undo,
        )

    def row_ids(self, relation: LocalRelation, *, unique: bool = False) -> _core.RowIds:
        if relation.held is not None:
            return _core.RowIds.collect(relation.held.table, unique=unique)
        return self.consume(relation, lambda stream: _core.RowIds.collect(stream, unique=unique))

    def mark_deleted(
        self, rows: _core.RowIds, scan: Scan, *, deletion_timestamp: int, inline: bool, prefix_length: int
    ) -> _core.MarkedFiles:
        from deltaic.engine.duckdb.connection import Work

        def mark() -> _core.MarkedFiles:
            return _core.mark_deleted(
                scan.store,
                scan.files,
                rows,
                deletion_timestamp=deletion_timestamp,
                inline=inline,
                prefix_length=prefix_length,
            )

        from deltaic.protocol.paths import decoded_path

        return Work().call(mark, lambda marked: scan.store.delete(list(map(decoded_path, marked.written))))

    @contextmanager
    def hold(self, relation: LocalRelation, alias: str) -> Iterator[Data]:
        """Few rows stay in memory as Arrow. More become a table of the in-memory database, which can spill to
        disk; it is not a temporary table, since each cursor must see it."""
        from deltaic.engine.duckdb.connection import Work, database
        from deltaic.engine.duckdb.held_rows import BatchStream, HeldRows, read_few

        name = f"__deltaic_held_{next(_held)}"
        work, used, schema = Work(), list[Any](), arrow_schema(relation.schema)
        with ExitStack() as uses:

            def fill() -> pa.Table | None:
                arrow, batches, others = read_few(relation.open(work))
                if others is None:
                    return pa.Table.from_batches([_declared(batch, schema) for batch in batches], schema)
                used.append(uses.enter_context(database(planned=True)))
                cursor = work.cursor()
                cursor.register(
                    f"{name}_rows", BatchStream(arrow, _kept_failure(work, itertools.chain(batches, others)))
                )
                cursor.execute(
                    f"CREATE TABLE {duckdb_name(name)} AS SELECT * FROM {duckdb_name(name + '_rows')}"
                )
                return None

            def drop() -> None:
                for connection in used:
                    with connection.cursor() as cursor:
                        cursor.execute(f"DROP TABLE IF EXISTS {duckdb_name(name)}")

            try:
                try:
                    table = work.call(_with_first_error(work, fill))
                finally:
                    work.close()
                if table is None:
                    yield Data(handle=name, schema=relation.schema, alias=alias)
                    return
                held = HeldRows(table)
                uses.callback(held.release)
                few = LocalRelation(relation.schema, lambda work: held.table, held=held)
                yield Data(handle=few, schema=relation.schema, alias=alias)
            finally:
                if used:
                    # Not on this thread: if a signal handler raises while DuckDB runs, DuckDB replaces the
                    # exception by its own.
                    Work().call(drop)

    def cluster(self, plan: Scan, columns: Sequence[str], curve: Curve, files: int) -> LocalRelation:
        """Sorts the scan's rows along the curve: a scan of the curve's columns samples the boundaries, then a
        full scan gets keys from `_core` and is sorted in DuckDB. Fields of structs are columns of their own
        meanwhile."""
        from deltaic.engine.duckdb.lowering import LoweredQuery, columns_with_maps
        from deltaic.planning.opening import scan_schema

        nested = {
            name: f"__deltaic_curve_{number}"
            for number, name in enumerate(columns)
            if name not in plan.schema.names
        }
        keys = [nested.get(name, name) for name in columns]
        roots = dict.fromkeys(plan.schema.find(name)[0][0] for name in columns)
        narrow = self.run(_with_fields(replace(plan, columns=tuple(roots), row_tracking=None), nested))
        whole = self.run(_with_fields(plan, nested))
        bounds = self.consume(narrow, lambda stream: _core.RangeBounds.sample(stream, keys))
        schema = scan_schema(plan)
        names = ", ".join(duckdb_name(item.name) for item in schema)

        maps = columns_with_maps(schema)

        def keyed(work: Work) -> Any:
            rows = _core.curve_keys(whole.open(work), bounds, curve)
            if not maps:
                return rows
            from deltaic.engine.dataset import viewed
            from deltaic.engine.duckdb.raw_maps import entries_schema

            reader = pa.RecordBatchReader.from_stream(rows)
            return viewed(reader, entries_schema(reader.schema, maps))

        sql = f'SELECT {names} FROM "__deltaic_keyed" ORDER BY "__deltaic_key"'
        return LocalRelation(
            schema,
            lambda work: _execute(work, LoweredQuery(sql, schema, {"__deltaic_keyed": keyed}, entries=maps)),
        )


def _copied(scan: Scan) -> LocalRelation:
    """Returns the rows of a scan that `_core` reads without DuckDB, because it evaluates all conditions of
    the scan."""
    from deltaic.planning.opening import open_scan, scan_schema

    return LocalRelation(scan_schema(scan), lambda work: _tracked(work, open_scan(scan)), polls=True)


def _with_fields(scan: Scan, fields: Mapping[str, str]) -> Plan:
    """Returns the scan with its columns and also with fields of structs as columns. `fields`: dotted name ->
    column."""
    if not fields:
        return scan
    from deltaic.planning.opening import scan_schema

    found = []
    for name, as_column in fields.items():
        path, leaf = scan.schema.find(name)
        found.append((as_column, column_at(scan.alias, path, leaf.type)))
    return Project(scan, (*columns_of(scan.alias, scan_schema(scan)), *found), scan.alias)


def _held_reader(schema: Schema, table: pa.Table) -> pa.RecordBatchReader:
    declared = arrow_schema(schema)
    return pa.RecordBatchReader.from_batches(
        declared, [_declared(batch, declared) for batch in table.to_batches()]
    )


def _kept_failure(work: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Passes the batches on and stores the error that ends them in `work.failure`: Arrow's stream keeps only
    its text."""
    try:
        yield from batches
    except Exception as error:
        work.failure = work.failure or error
        raise


def _limited(reader: pa.RecordBatchReader, limit: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        left = limit
        with reader:
            for batch in reader if left > 0 else ():
                yield batch.slice(0, min(left, batch.num_rows))
                left -= min(left, batch.num_rows)
                if left == 0:
                    return

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def arrow_schema(schema: Schema) -> pa.Schema:
    """Returns Delta's exact Arrow types of these columns. Two columns of a query may have one name."""
    distinct = held_types(schema.distinct(), keep_nulls=True)
    found = _core.TableSchema(distinct.to_json()).to_arrow()
    if distinct is schema:
        return found
    fields = zip(found, schema, strict=True)
    return pa.schema(
        [each.with_name(item.name).with_type(shown_type(item.type, each.type)) for each, item in fields],
        found.metadata,
    )


def _declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Gives the arrays the relation's schema: engines return every column as nullable."""
    return (
        batch
        if batch.schema.equals(schema, check_metadata=True)
        else pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    )


def _execute(work: Work, query: LoweredQuery, *, planned: bool = True) -> _core.ReadStream:
    from deltaic.engine.duckdb.native_tables import native_tables, with_tables
    from deltaic.engine.duckdb.registering import register

    cursor = work.cursor(planned=planned, functions=any(map(_PREPARED.search, (query.sql, *query.constants))))
    for constant in query.constants:  # by its hash: the value may be large
        cursor.execute(f"SELECT hash({constant})").fetchall()
    sources = {name: opener(work) for name, opener in query.leaves.items()}
    native = native_tables(work, cursor, sources, query.rows)
    registered = {
        name: register(cursor, name, each, query.rows.get(name))
        for name, each in sources.items()
        if name not in native
    }
    if (
        not native
        and len(registered) > 1
        and query.once
        and sum(rows or 0 for rows in query.rows.values()) >= PLANNED_TWICE
    ):
        _keep_filters(cursor, query, registered)
    sql = with_tables(query.sql, native)
    if (plans := PLANS.get()) is not None:
        plans.append(json.loads(cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])[0])
    reader = cursor.sql(sql).to_arrow_reader(_batch_rows(query.schema, work.run(configuration.budget).batch))
    if query.entries:
        from deltaic.engine.duckdb.raw_maps import with_maps

        reader = with_maps(reader, arrow_schema(query.schema), query.entries)
    return _core.conform(reader, _core.TableSchema(query.schema.to_json()))


def _keep_filters(cursor: Any, query: LoweredQuery, sources: Mapping[str, ScanSource | None]) -> None:
    """Plans the query once, so that each source learns the filters that DuckDB pushes into it. Sources that
    the plan may read twice are left out. The keys that remain after these filters become filters of other
    sources. A query that has run before needs no first plan."""
    import duckdb

    from deltaic.engine.duckdb.join_filters import push_keys

    if not query.learned:
        try:
            (plan,) = json.loads(cursor.execute(f"EXPLAIN (FORMAT json) {query.sql}").fetchall()[0][1])
        except duckdb.Error:
            return  # the run of the query raises the same error
        if not set(query.shared) <= set(_computed_once(plan)):
            return
    learned = {} if query.learned is None else query.learned
    for name in query.once:
        if (source := sources[name]) is not None:
            learned[name] = source.keep_filters(learned.get(name))
    push_keys({name: sources[name] for name in query.once}, query.rows, query.keys)


def _computed_once(plan: Mapping[str, Any]) -> Iterator[str]:
    """Returns the names of the WITH queries that a plan of DuckDB computes once for all their readers."""
    if plan["name"] == "CTE":
        yield (plan.get("extra_info") or {}).get("CTE Name", "")
    for child in plan.get("children") or ():
        yield from _computed_once(child)


def _batch_rows(schema: Schema, most: int) -> int:
    """Returns the number of rows of a batch of about `most` bytes: 64 MB are 8,388 rows of 1,000 columns of 8
    bytes."""
    from deltaic.planning.opening import BATCH_ROWS

    width = sum(_width(item.type) for item in schema)
    return max(_VECTOR_ROWS, min(BATCH_ROWS, most // max(width, 1)))


def _width(data_type: DataType) -> int:
    if isinstance(data_type, Struct):
        return sum(_width(item.type) for item in data_type.fields)
    if isinstance(data_type, Array):
        return 4 * _width(data_type.element)
    if isinstance(data_type, Map):
        return 4 * (_width(data_type.key) + _width(data_type.value))
    return _WIDTHS.get(data_type, 8)


def _shown(stream: _core.ReadStream, schema: Schema) -> pa.RecordBatchReader:
    """Renames the columns of the stream as in the query, and gives nulls and intervals their types in
    Arrow."""
    declared = arrow_schema(schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in pa.RecordBatchReader.from_stream(stream):
            columns = [
                shown_values(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=declared)

    return pa.RecordBatchReader.from_batches(declared, batches())


class _Stream:
    """A source of rows for DuckDB without pushdown of columns and filters: DuckDB alone compares its
    values."""

    def __init__(self, work: Work, relation: LocalRelation, schema: pa.Schema | None = None) -> None:
        self._work, self._relation, self._declared = work, relation, schema

    def __arrow_c_schema__(self) -> object:
        """With this method DuckDB reads the schema without opening the rows; rows that can be read only once
        are opened only once."""
        return self._schema.__arrow_c_schema__()

    @cached_property
    def _schema(self) -> pa.Schema:
        """The schema. It is cached, because DuckDB requests it three times."""
        return arrow_schema(self._relation.schema) if self._declared is None else self._declared

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._work.run(lambda: self._relation.open(self._work)).__arrow_c_stream__(requested_schema)


def _tracked(work: Work, stream: _core.ReadStream) -> _core.ReadStream:
    work.streams.append(stream)
    return stream


def _chain(relations: Sequence[LocalRelation]) -> LocalRelation:
    """Returns the rows of the inputs, one input after the other, without a query of DuckDB."""
    if len(relations) == 1:
        return relations[0]
    # The writer checks for nulls, as its error names the row and the column; Arrow's does not.
    nullable = _nullable(relations[0].schema)
    schema = arrow_schema(nullable)

    def opened(work: Work) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            for relation in relations:
                for batch in pa.RecordBatchReader.from_stream(
                    work.run(lambda: relation.open(work))  # noqa: B023
                ):
                    yield _declared(batch, schema)

        return pa.RecordBatchReader.from_batches(schema, _kept_failure(work, batches()))

    return LocalRelation(nullable, opened)


def _nullable(schema: Schema) -> Schema:
    """Returns the schema with all columns and struct fields nullable."""
    return Schema(
        [
            item.with_(nullable=True, type=map_fields(item.type, lambda field: field.with_(nullable=True)))
            for item in schema
        ]
    )


def _plain_projection(plan: Plan) -> Scan | None:
    """For a projection that only selects columns of a scan, returns the scan of these columns; None for any
    other plan."""
    if not isinstance(plan, Project) or not isinstance(plan.input, Scan):
        return None
    scan = plan.input
    wanted = [name for name, value in plan.columns if value.path == (scan.alias, (name,))]
    if len(wanted) != len(plan.columns):
        return None
    hidden = [FILE_COLUMN, ROW_COLUMN] if scan.row_ids else []
    data = [name for name in wanted if name not in hidden]
    if wanted != data + hidden or any(name not in scan.schema.names for name in data) or scan.constants:
        return None
    return replace(scan, columns=tuple(data), alias=plan.alias)


def _with_first_error(work: Work, function: Callable[[], T]) -> Callable[[], T]:
    """Wraps `function` so that its errors are errors of deltaic. The wrapper runs in the worker thread: an
    exception that stops the waiting caller stays unchanged."""

    def run() -> T:
        try:
            return function()
        except BaseException as error:
            work.check()  # a cancelled stream or query raises a meaningless error
            if not isinstance(error, Exception):
                raise
            first = _first_error(work, error)
            if first is error:
                raise
            raise first from error

    return run


def _first_error(work: Work, error: Exception) -> Exception:
    """Returns the error of the first source that failed, else the error of DuckDB or Arrow, as an error of
    deltaic."""
    try:
        for stream in list(work.streams):
            stream.check()
        named = _named(work.failure or error)
        return named if not work.plain_tables else _of_files(work, named)
    except Exception as first:
        return first


def _of_files(work: Work, error: Exception) -> Exception:
    """Returns the error of a query whose files DuckDB read without `_core`. If no expression failed, `_core`
    reads the tables to find out what is wrong with a file."""
    import duckdb

    if not isinstance(error, (duckdb.Error, SchemaMismatchError)):
        return error
    for table in work.plain_tables:
        table.check()
    # DuckDB checks more than `_core`
    if isinstance(error, duckdb.IOException) or type(error) is duckdb.Error or "Parquet" in str(error):
        return ProtocolError(
            "a data file is malformed",
            found=str(error).splitlines()[0],
            expected="a Parquet file without errors",
        )
    return error


def _named(error: Exception) -> Exception:
    """Converts DuckDB's error to an error of deltaic. An error that passes through an Arrow stream has only
    its text, which begins with the error's kind."""
    import duckdb

    from deltaic.plan.failures import read_failure
    from deltaic.spark_sql.duckdb import failure_of

    text = str(error)
    if (wrapped := _OF_A_STREAM.search(text)) is not None:
        text = wrapped[1]
    if (raised := read_failure(text)) is not None:
        return raised
    if "Out of Memory Error" in text:
        return MemoryError(
            "the engine needs more memory or disk space than configure(memory_limit=, temp_limit=) allows"
        )
    if (failed := failure_of(error)) is not None:
        return failed
    for kind, cls in _KINDS.items():
        if kind in text and (failed := failure_of(getattr(duckdb, cls)(text))) is not None:
            return failed
    # the original error is the cause of the new one
    if isinstance(error, (duckdb.BinderException, duckdb.NotImplementedException)):
        return UnsupportedFeatureError("the embedded engine cannot run a query of this form")
    if isinstance(error, pa.ArrowException) and not isinstance(
        error, (OSError, MemoryError, KeyboardInterrupt)
    ):
        return SchemaMismatchError(
            "the rows of a query do not fit the types of its columns",
            found=text.splitlines()[0] if text else None,
        )
    return error
