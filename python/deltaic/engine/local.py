"""The embedded engine: DuckDB for relational work, `_core` for bytes.

A plan that is a plain scan goes to `_core` alone. Anything else becomes one DuckDB query over our own dataset class, so that columns and
filters still reach the files. Results come back in Delta's exact Arrow types.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from deltaic import _core, configuration
from deltaic.engine.engine import Curve, WriteTarget
from deltaic.protocol.column_mapping import map_fields
from deltaic.protocol.schema import Schema
from deltaic.relation.literal import col
from deltaic.relation.plan import FILE_COLUMN, ROW_COLUMN, Data, Plan, Project, Scan, Union

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.connection import Work
    from deltaic.engine.lowering import Leaf, Lowered
    from deltaic.relation.expression import Resolved
    from deltaic.relation.query import TranslatedQuery
else:
    from deltaic.deferred import pyarrow as pa

T = TypeVar("T")
_held = itertools.count()
_PREPARED = re.compile(r"\bdeltaic_")  # the functions that `relation.duckdb.prepare` installs
_KINDS = {
    "Invalid Input Error": "InvalidInputException",
    "Out of Range Error": "OutOfRangeException",
    "Conversion Error": "ConversionException",
}
BATCH_ROWS = 65536
"""Rows of a batch between `_core` and DuckDB: at 8 k rows the hand-over costs a third more."""


@dataclass(frozen=True)
class LocalRelation:
    """Rows not yet computed: `open` starts the work and gives an Arrow stream of exactly `schema`'s columns."""

    schema: Schema
    open: Callable[[Work], Any]
    polls: bool = False
    """Whoever waits for its batches sees Ctrl-C by itself: the scans of `_core` do."""


class LocalEngine:
    """`relation.plan` on this machine. Stateless: it may be shared by threads, and used after a fork."""

    @property
    def time_zone(self) -> str:
        return configuration.current().time_zone

    @property
    def plain_sql(self) -> bool:
        return True

    def resolve(self, text: str, schemas: Mapping[str, Schema]) -> Resolved:
        from deltaic.relation.expression import resolve

        return resolve(text, schemas)

    def source(self, data: Any, alias: str) -> Data:
        from deltaic.engine.source import read_source

        source = read_source(data)

        def opened(work: Work) -> Any:
            work.streams.append(source.failure)
            return _tracked(work, source.open())

        return Data(handle=LocalRelation(source.schema, opened), schema=source.schema, alias=alias)

    def conform(self, data: Plan, schema: Schema) -> Data:
        relation, table_schema = self.run(data), _core.TableSchema(schema.to_json())
        alias = getattr(data, "alias", "s")

        def opened(work: Work) -> _core.ReadStream:
            return _tracked(work, _core.conform(relation.open(work), table_schema))

        return Data(handle=LocalRelation(schema, opened), schema=schema, alias=alias)

    # --- lowering

    def run(self, plan: Plan) -> LocalRelation:
        if isinstance(plan, Union):
            return _chain([self.run(item) for item in plan.inputs])
        if isinstance(plan, Data) and isinstance(plan.handle, LocalRelation):
            return plan.handle
        bare = plan if isinstance(plan, Scan) else _plain_projection(plan)
        direct = None if bare is None else self._pushed(bare)
        return direct if direct is not None else self._query(plan)

    def _pushed(self, scan: Scan) -> LocalRelation | None:
        """A scan that `_core` can do alone; None where something is left for DuckDB to filter."""
        from deltaic.scan.opening import open_scan, push_where, scan_schema

        pushed, residual = push_where(scan)
        if residual:
            return None
        return LocalRelation(scan_schema(scan), lambda work: _tracked(work, open_scan(pushed)), polls=True)

    def _query(self, plan: Plan) -> LocalRelation:
        from deltaic.engine.lowering import Lowering

        lowered = Lowering(self._leaf).lower(plan)
        return LocalRelation(lowered.schema, lambda work: _execute(work, lowered))

    def _leaf(self, leaf: Scan | Data) -> Leaf:
        from deltaic.engine.lowering import Leaf
        from deltaic.scan.dataset import ScanDataset
        from deltaic.scan.opening import push_where, scan_schema
        from deltaic.scan.scan import column_names

        if isinstance(leaf, Data):
            relation = leaf.handle
            if isinstance(relation, LocalRelation):
                return Leaf(leaf.schema, opener=lambda work: _Stream(work, relation))
            return Leaf(leaf.schema, name=leaf.handle)
        scan, residual = push_where(leaf)
        read = column_names([self.resolve(text, {leaf.alias: leaf.schema}) for text in residual], leaf.schema, leaf.alias)
        wide = replace(scan, columns=(*scan.columns, *(name for name in read if name not in scan.columns)))
        return Leaf(scan_schema(wide), opener=lambda work: ScanDataset(wide, observe=work.streams.append), where=residual)

    def query(self, query: TranslatedQuery, leaves: Mapping[str, Plan]) -> LocalRelation:
        """A user's query as `relation.query` translated it: DuckDB's SQL over tables named as `leaves`.

        Unlike a plan's, its joins are in the order that DuckDB chooses."""
        from deltaic.engine.lowering import Lowered

        opened = {name: self._leaf(leaf).opener for name, leaf in leaves.items() if isinstance(leaf, (Scan, Data))}
        sources = {name: opener for name, opener in opened.items() if opener is not None}
        if len(sources) != len(leaves):
            raise ValueError("a query reads scans and sources only")
        # What a query answers is nullable, as in DuckDB: joins and subqueries make nulls of NOT NULL columns.
        nullable = Schema([field.with_(nullable=True) for field in query.schema])
        lowered = Lowered(query.sql, nullable, sources, query.constants)
        if all(field.type != "void" for field in nullable):
            return LocalRelation(nullable, lambda work: _execute(work, lowered, planned=False))
        # DuckDB has no type of nothing but nulls: such a column comes as integers.
        typed = replace(lowered, schema=Schema([field.with_(type="integer") if field.type == "void" else field for field in nullable]))
        return LocalRelation(nullable, lambda work: _voided(_execute(work, typed, planned=False), nullable))

    # --- consuming

    def consume(self, relation: LocalRelation, function: Callable[[Any], T], undo: Callable[[T], object] | None = None) -> T:
        """Runs `function` on the relation's stream: interruptible (`undo`: as in `Work.call`), with the first error of a source in place
        of the host's wrapping."""
        from deltaic.engine.connection import Work

        work = Work()
        try:
            return work.call(lambda: function(relation.open(work)), undo)
        except Exception as error:
            raise _first_error(work, error) from error
        finally:
            work.close()

    def to_arrow(self, relation: LocalRelation, *, limit: int | None = None) -> pa.RecordBatchReader:
        reader = self._reader(relation)
        return reader if limit is None else _limited(reader, limit)

    def _reader(self, relation: LocalRelation) -> pa.RecordBatchReader:
        from deltaic.engine.connection import Work

        work = Work()
        schema = arrow_schema(relation.schema)
        # A thread for each batch is what it takes to interrupt DuckDB; a narrow batch is decoded in less time than that costs.
        call = (lambda function: function()) if relation.polls else work.call

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                reader = call(lambda: pa.RecordBatchReader.from_stream(relation.open(work)))
                while (batch := call(lambda: next(reader, None))) is not None:
                    yield _declared(batch, schema)
            except Exception as error:
                raise _first_error(work, error) from error
            finally:
                work.cancel()
                work.close()

        return pa.RecordBatchReader.from_batches(schema, batches())

    def count(self, relation: LocalRelation) -> int:
        return sum(batch.num_rows for batch in self._reader(relation))

    def to_table(self, relation: LocalRelation) -> pa.Table:
        schema = arrow_schema(relation.schema)
        table = self.consume(relation, lambda stream: pa.RecordBatchReader.from_stream(stream).read_all())
        return table if table.schema.equals(schema, check_metadata=True) else pa.Table.from_arrays(table.columns, schema=schema)

    def write(self, relation: LocalRelation, target: WriteTarget) -> pa.Table:
        def undo(adds: pa.Table) -> None:
            from urllib.parse import unquote

            target.store.delete([unquote(path) for path in adds["path"].to_pylist()])

        return self.consume(relation, lambda stream: _core.write(target.store, target.schema, stream, target.options_json), undo)

    def row_ids(self, relation: LocalRelation, *, unique: bool = False) -> _core.RowIds:
        return self.consume(relation, lambda stream: _core.RowIds.collect(stream, unique=unique))

    def mark_deleted(
        self, rows: _core.RowIds, scan: Scan, *, deletion_timestamp: int, inline: bool, prefix_length: int
    ) -> _core.MarkedFiles:
        from deltaic.engine.connection import Work

        def mark() -> _core.MarkedFiles:
            return _core.mark_deleted(
                scan.store, scan.files, rows, deletion_timestamp=deletion_timestamp, inline=inline, prefix_length=prefix_length
            )

        from urllib.parse import unquote

        return Work().call(mark, lambda marked: scan.store.delete([unquote(path) for path in marked.written]))

    @contextmanager
    def hold(self, relation: LocalRelation, alias: str) -> Iterator[Data]:
        """An ordinary table of the in-memory database: unlike a temporary one it is seen by every cursor, and it spills."""
        from deltaic.engine.connection import Work, database
        from deltaic.engine.lowering import quote

        name = f"__deltaic_held_{next(_held)}"
        connection = database(planned=True)
        work = Work()
        try:

            def fill() -> None:
                cursor = work.cursor()
                cursor.register(f"{name}_rows", relation.open(work))
                cursor.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM {quote(name + '_rows')}")

            try:
                work.call(fill)
            except Exception as error:
                raise _first_error(work, error) from error
            finally:
                work.close()
            yield Data(handle=name, schema=relation.schema, alias=alias)
        finally:
            cursor = connection.cursor()
            cursor.execute(f"DROP TABLE IF EXISTS {quote(name)}")
            cursor.close()

    def cluster(self, plan: Scan, columns: Sequence[str], curve: Curve, files: int) -> LocalRelation:
        """One narrow scan samples the boundaries, one full scan is keyed in `_core` and sorted in DuckDB. Meanwhile fields of structs are
        columns of their own."""
        from deltaic.engine.lowering import Lowered, quote
        from deltaic.scan.opening import scan_schema

        nested = {name: f"__deltaic_curve_{number}" for number, name in enumerate(columns) if name not in plan.schema.names}
        keys = [nested.get(name, name) for name in columns]
        roots = dict.fromkeys(plan.schema.find(name)[0][0] for name in columns)
        narrow = self.run(_with_fields(replace(plan, columns=tuple(roots), row_tracking=None), nested))
        whole = self.run(_with_fields(plan, nested))
        bounds = self.consume(narrow, lambda stream: _core.RangeBounds.sample(stream, keys))
        schema = scan_schema(plan)
        names = ", ".join(quote(item.name) for item in schema)

        def keyed(work: Work) -> Any:
            return _core.curve_keys(whole.open(work), bounds, curve)

        sql = f'SELECT {names} FROM "__deltaic_keyed" ORDER BY "__deltaic_key"'
        return LocalRelation(schema, lambda work: _execute(work, Lowered(sql, schema, {"__deltaic_keyed": keyed})))


def _with_fields(scan: Scan, fields: Mapping[str, str]) -> Plan:
    """The scan's columns, and fields of structs (dotted name -> column)."""
    if not fields:
        return scan
    from deltaic.scan.opening import scan_schema

    kept = [(name, f"{col(scan.alias)}.{col(name)}") for name in scan_schema(scan).names]
    found = [(column, ".".join(map(col, (scan.alias, *scan.schema.find(name)[0])))) for name, column in fields.items()]
    return Project(scan, (*kept, *found), scan.alias)


def _limited(reader: pa.RecordBatchReader, limit: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        left = limit
        with reader:
            for batch in reader if left > 0 else ():
                yield batch.slice(0, left)
                left -= min(left, batch.num_rows)
                if left == 0:
                    return

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def arrow_schema(schema: Schema) -> pa.Schema:
    """Delta's exact Arrow types of these columns."""
    return _core.TableSchema(schema.to_json()).to_arrow()


def _declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same arrays under the relation's schema: engines give every column as nullable."""
    return batch if batch.schema.equals(schema, check_metadata=True) else pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _execute(work: Work, query: Lowered, *, planned: bool = True) -> _core.ReadStream:
    from deltaic.relation.duckdb import prepare

    cursor = work.cursor(planned=planned)
    if any(map(_PREPARED.search, (query.sql, *query.constants))):
        prepare(cursor)
    for constant in query.constants:  # by its hash, as the value itself may be large
        cursor.execute(f"SELECT hash({constant})").fetchall()
    for name, opener in query.leaves.items():
        cursor.register(name, opener(work))
    reader = cursor.sql(query.sql).to_arrow_reader(BATCH_ROWS)
    return _core.conform(reader, _core.TableSchema(query.schema.to_json()))


def _voided(stream: _core.ReadStream, schema: Schema) -> pa.RecordBatchReader:
    """The same rows with columns of type void as Arrow's null."""
    declared = arrow_schema(schema)
    void = [field.type == "void" for field in schema]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in pa.RecordBatchReader.from_stream(stream):
            columns = [pa.nulls(batch.num_rows) if gone else column for gone, column in zip(void, batch.columns, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=declared)

    return pa.RecordBatchReader.from_batches(declared, batches())


class _Stream:
    """A source of rows as DuckDB sees it: no columns and no filters are pushed, so its values are compared by DuckDB alone."""

    def __init__(self, work: Work, relation: LocalRelation) -> None:
        self._work, self._relation = work, relation

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._relation.open(self._work).__arrow_c_stream__(requested_schema)


def _tracked(work: Work, stream: _core.ReadStream) -> _core.ReadStream:
    work.streams.append(stream)
    return stream


def _chain(relations: Sequence[LocalRelation]) -> LocalRelation:
    """The inputs one after the other, without a query around them."""
    if len(relations) == 1:
        return relations[0]
    # Whether a column takes null is for the one who writes it to say, with the row: Arrow's own refusal does not name what it is.
    nullable = _nullable(relations[0].schema)
    schema = arrow_schema(nullable)

    def opened(work: Work) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for relation in relations:
                    for batch in pa.RecordBatchReader.from_stream(relation.open(work)):
                        yield _declared(batch, schema)
            except Exception as error:
                work.failure = work.failure or error
                raise

        return pa.RecordBatchReader.from_batches(schema, batches())

    return LocalRelation(nullable, opened)


def _nullable(schema: Schema) -> Schema:
    """The same columns and struct fields, all of which take null."""
    return Schema([item.with_(nullable=True, type=map_fields(item.type, lambda field: field.with_(nullable=True))) for item in schema])


def _plain_projection(plan: Plan) -> Scan | None:
    """The scan with fewer columns that a projection of bare names means; None for any other plan."""
    if not isinstance(plan, Project) or not isinstance(plan.input, Scan):
        return None
    scan = plan.input
    wanted = [text for name, text in plan.columns if name == text]
    if len(wanted) != len(plan.columns):
        return None
    hidden = [FILE_COLUMN, ROW_COLUMN] if scan.row_ids else []
    data = [name for name in wanted if name not in hidden]
    if wanted != data + hidden or any(name not in scan.schema.names for name in data) or scan.constants:
        return None
    return replace(scan, columns=tuple(data), alias=plan.alias)


def _first_error(work: Work, error: Exception) -> Exception:
    """The error of the first source that failed, else what DuckDB or Arrow raised, by our name."""
    for stream in list(work.streams):
        try:
            stream.check()
        except Exception as first:
            return first
    return _named(work.failure or error)


def _named(error: Exception) -> Exception:
    """DuckDB's error as ours. On its way through an Arrow stream only its text is left, which begins with its kind."""
    import duckdb

    from deltaic.relation.duckdb import failure_of
    from deltaic.relation.failures import read_failure

    text = str(error)
    if (raised := read_failure(text)) is not None:
        return raised
    if "Out of Memory Error" in text:
        return MemoryError(f"the engine needs more than configure(memory_limit=, temp_limit=) allows: {text.splitlines()[0]}")
    if (failed := failure_of(error)) is not None:
        return failed
    for kind, cls in _KINDS.items():
        if kind in text and (failed := failure_of(getattr(duckdb, cls)(text))) is not None:
            return failed
    return error
