"""Scan planning: which files, which columns, what is pushed, for reads and for the listings of files and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.errors import InvalidArgumentError, InvalidTypeError, ProtocolError, SchemaMismatchError
from deltaic.protocol.schema import Schema
from deltaic.relation.plan import Scan
from deltaic.scan import simple
from deltaic.scan.columns import narrowed, resolve_columns
from deltaic.scan.opening import numbered, open_scan
from deltaic.scan.rows import Rows, ScanReport

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.relation.expression import Resolved
else:
    from deltaic.deferred import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Planned:
    """A condition over one snapshot: what the files and the scan can do, what is left as text (with the columns that it reads, in the
    table's order), and the files that may hold a match.

    `predicate`: what holds for the wanted rows of any version, so what a transaction has read. `among`: which of this version's partitions
    they are in besides; one that comes later may hold some, too."""

    snapshot: Snapshot
    predicate: _core.Predicate | None = None
    among: _core.Predicate | None = None
    residual: tuple[str, ...] = ()
    residual_columns: tuple[str, ...] = ()
    skipping: bool = True

    @cached_property
    def pushed(self) -> _core.Predicate | None:
        """All that is known about the wanted rows of this version."""
        if self.predicate is None or self.among is None:
            return self.predicate or self.among
        return self.predicate & self.among

    @cached_property
    def selection(self) -> _core.FileSelection:
        selection = self.snapshot.core.files(self.snapshot.table_schema, self.pushed, skipping=self.skipping)
        if (path := selection.live_twice) is not None:
            raise ProtocolError(
                "a file is live twice: each of its rows would be read twice",
                where=path[:1000],
                found="two add actions that stand, with different vectors",
                expected="one, as a commit that adds a file again removes it with its former vector",
            )
        return selection

    @property
    def partition_only(self) -> bool:
        """Whether partition values alone decide, so that a chosen file holds only matching rows."""
        return not self.residual and (self.pushed is None or self.pushed.is_partition_only())

    def scan(self, columns: Sequence[str], *, alias: str = "t", row_ids: bool = False) -> Scan:
        adds = self.selection.adds
        return replace(self._leaf(columns, numbered(adds) if row_ids else adds), alias=alias, row_ids=row_ids)

    def scan_later(self, columns: Sequence[str], most: int, most_marked: int, most_vectors: int) -> Scan:
        """The same; of more than `most` files none is chosen yet, nor where more than `most_marked` have a deletion vector, unless these
        have more than `most_vectors` bytes in all."""
        core = self.snapshot.core
        bound = most_marked if core.file_count > most_marked and core.with_vectors[0] > most_marked else most
        if not self.skipping or core.file_count <= bound or (self.pushed is not None and self._left <= bound):
            return self.scan(columns)
        if core.with_vectors[2] > most_vectors:
            return self.scan(columns)
        return replace(self._leaf(columns, _core.empty_adds()), later=LaterFiles(self))

    def _leaf(self, columns: Sequence[str], files: pa.Table) -> Scan:
        return Scan(
            store=self.snapshot.store,
            schema=self.snapshot.schema,
            table_schema=self.snapshot.table_schema,
            files=files,
            columns=tuple(columns),
            where=self.residual,
            predicate=self.pushed,
        )

    @property
    def _left(self) -> int:
        """How many files are chosen."""
        selection = self.selection
        return selection.total_files - selection.skipped_by_partition - selection.skipped_by_statistics


class LaterFiles:
    """The files of a planned scan, chosen when an engine plans a query over its rows: only what that query needs is ever looked at."""

    def __init__(self, planned: Planned) -> None:
        self._planned = replace(planned)  # without the files that it may have chosen
        core, pushed = planned.snapshot.core, planned.pushed
        if pushed is None:
            whole, marked = (core.file_count, core.size_in_bytes), core.with_vectors[:2]
        else:
            adds = planned.selection.adds
            whole, marked = _weight(adds), _weight(adds.filter(adds["deletionVector"].is_valid()))
        self.marked = marked
        self.plain = whole[0] - marked[0], whole[1] - marked[1]

    @property
    def key(self) -> str:
        snapshot, pushed = self._planned.snapshot, self._planned.pushed
        of_version = snapshot.location, snapshot.metadata.id, snapshot.version, snapshot.core.file_count, snapshot.core.size_in_bytes
        return " ".join(map(str, (*of_version, "" if pushed is None else pushed.json)))

    def files(self, predicate: _core.Predicate | None) -> pa.Table:
        known = self._planned.predicate
        both = known if predicate is None else predicate if known is None else known & predicate
        return replace(self._planned, predicate=both).selection.adds


def _weight(adds: pa.Table) -> tuple[int, int]:
    import pyarrow.compute as pc

    return adds.num_rows, pc.sum(adds["size"]).as_py() or 0


def plan(snapshot: Snapshot, engine: Engine, where: str | None, *, alias: str = "t", skipping: bool = True) -> Planned:
    """Resolves `where` against the table and divides it. InvalidArgumentError for text that is no condition over the table's columns."""
    if where is None:
        return Planned(snapshot, skipping=skipping)
    if engine.plain_sql and (said := simple.read(where, snapshot.schema, alias, engine.time_zone)) is not None:
        return Planned(snapshot, simple.together(said, snapshot.schema, snapshot.table_schema), skipping=skipping)
    from deltaic.scan.partition_functions import decided
    from deltaic.scan.pushdown import push

    resolved = resolve_condition(engine, where, snapshot.schema, alias)
    pushed = push(
        resolved.conjuncts,
        snapshot.schema,
        snapshot.table_schema,
        alias,
        time_zone=engine.time_zone,
    )
    among, left, read = None, [], []
    for text in pushed.residual:
        reads = engine.resolve(text, {alias: snapshot.schema})
        exact = decided(snapshot, engine, reads, text, pushed.predicate, alias) if skipping else None
        if exact is not None:
            among = exact if among is None else among & exact
        else:
            left.append(text)
            read.append(reads)
    return Planned(snapshot, pushed.predicate, among, tuple(left), column_names(read, snapshot.schema, alias), skipping)


def resolve_condition(engine: Engine, text: str, schema: Schema, alias: str = "t") -> Resolved:
    if not isinstance(text, str):
        raise InvalidTypeError("a condition is text in Spark's SQL dialect", found=repr(text)[:80])
    resolved = engine.resolve(text, {alias: schema})
    if resolved.type not in ("boolean", "void"):
        raise SchemaMismatchError("a condition must be a boolean", where=repr(text), found=resolved.type)
    return resolved


def column_names(resolved: Iterable[Resolved], schema: Schema, alias: str = "t") -> tuple[str, ...]:
    """The top-level columns of `schema`, known as `alias`, that expressions read, in the schema's order."""
    read = {path[0] for each in resolved for of, path in each.columns if of == alias}
    return tuple(name for name in schema.names if name in read)


def scan(
    snapshot: Snapshot,
    engine: Engine,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    limit: int | None = None,
    skipping: bool = True,
) -> Rows:
    """API.md section 2. `skipping=False` reads every file: for tests that compare."""
    names = resolve_columns(snapshot.schema, columns)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidArgumentError("limit", found=repr(limit), expected="a number of rows >= 0, or None")
    planned = plan(snapshot, engine, where, skipping=skipping)
    schema = Schema([narrowed(snapshot.schema, name) for name in names])
    return _ScanRows(schema, planned, engine, names, limit)


class _ScanRows(Rows):
    """Rows of a planned scan; the files are chosen when first asked and stay chosen."""

    def __init__(self, schema: Schema, planned: Planned, engine: Engine, names: tuple[str, ...], limit: int | None) -> None:
        super().__init__(schema, self._open, self._whole)
        self._planned, self._engine, self._names, self._limit = planned, engine, names, limit

    @cached_property
    def _scan(self) -> Scan:
        return self._planned.scan(self._names)

    def _open(self) -> pa.RecordBatchReader:
        return self._read(self._scan, self._limit)

    def _whole(self) -> pa.Table:
        if self._limit is not None or not self._scan.columns:
            return self._open().read_all()
        return self._engine.to_table(self._engine.run(self._scan))

    def _read(self, narrowed_scan: Scan, limit: int | None = None) -> pa.RecordBatchReader:
        if narrowed_scan.columns or not narrowed_scan.where:
            return self._engine.to_arrow(self._engine.run(narrowed_scan), limit=limit)
        # The engine knows no tables without columns: one is read, and taken off again.
        one = tuple(self._planned.residual_columns or narrowed_scan.schema.names)[:1]
        reader = self._read(replace(narrowed_scan, columns=one), limit)
        return pa.RecordBatchReader.from_batches(pa.schema([]), (batch.select([]) for batch in reader))

    def to_dataset(self) -> pa.dataset.Dataset:
        if self._limit is not None:
            return super().to_dataset()
        from deltaic.scan.dataset import ScanDataset

        return ScanDataset(self._scan, read=self._read)

    def to_spark(self) -> Any:
        frame_of = getattr(self._engine, "frame", None)
        if frame_of is None:
            return super().to_spark()
        frame = frame_of(self._planned, self._names)
        return frame if self._limit is None else frame.limit(self._limit)

    def count(self) -> int:
        if self._planned.partition_only:
            known = live_rows(self._planned)
            if known is not None:
                return known if self._limit is None else min(known, self._limit)
        # A condition that reads no column is evaluated on one nevertheless: the engine knows no tables without columns.
        one = self._planned.residual_columns or (self._scan.schema.names if self._scan.where else ())
        narrow = replace(self._scan, columns=tuple(one)[:1])
        counted = self._engine.count(self._engine.run(narrow))
        return counted if self._limit is None else min(counted, self._limit)

    def explain(self) -> ScanReport:
        import pyarrow.compute as pc  # here and below: planning does without it, and it takes a while to import

        selection = self._planned.selection
        stream = open_scan(self._scan)
        rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
        metrics = stream.metrics
        return ScanReport(
            columns=self._names,
            pushed=self._planned.pushed.json if self._planned.pushed is not None else None,
            evaluated=self._planned.residual,
            files=selection.total_files,
            files_skipped_by_partition=selection.skipped_by_partition,
            files_skipped_by_statistics=selection.skipped_by_statistics,
            files_read=selection.adds.num_rows,
            row_groups=metrics["row_groups"],
            row_groups_read=metrics["row_groups_read"],
            bytes=selection.total_bytes,
            bytes_of_files=pc.sum(selection.adds["size"]).as_py() or 0,
            bytes_read=metrics["bytes_read"],
            rows=rows,
        )


def live_rows(planned: Planned) -> int | None:
    """Rows of the chosen files from metadata, where partition values decide; None where a file does not say how many it has."""
    snapshot = planned.snapshot
    if planned.pushed is None:
        return snapshot.core.num_records
    import pyarrow.compute as pc

    listing = snapshot.core.listing(snapshot.table_schema, planned.pushed, statistics_columns=[]).to_table()
    if listing["num_records"].null_count:
        return None
    deleted = pc.sum(pc.struct_field(listing["deletion_vector"], "cardinality")).as_py() or 0
    return int(pc.sum(listing["num_records"]).as_py() or 0) - int(deleted)


def files(snapshot: Snapshot, engine: Engine, where: str | None = None, *, deleted_rows: bool = False) -> Rows:
    """API.md section 2: a row for each live file that may hold a matching row."""
    planned = plan(snapshot, engine, where)

    def listing() -> _core.Batches:
        return snapshot.core.listing(snapshot.table_schema, planned.pushed, store=snapshot.store, deleted_rows=deleted_rows)

    return Rows.computed(listing)


def partitions(snapshot: Snapshot, engine: Engine, where: str | None = None) -> Rows:
    """API.md section 2: a row for each partition that may hold a matching row: its columns, `num_files`, `size`."""
    planned = plan(snapshot, engine, where)
    names = list(snapshot.metadata.partition_columns)

    def grouped() -> pa.Table:
        import pyarrow.compute as pc

        listing = snapshot.core.listing(snapshot.table_schema, planned.pushed, statistics_columns=[]).to_table()
        values = listing["partition_values"].combine_chunks() if names else None
        columns = {name: pc.struct_field(values, [index]) for index, name in enumerate(names)}
        table = pa.table({**columns, "__deltaic_size": listing["size"]})
        counted = table.group_by(names, use_threads=False).aggregate([("__deltaic_size", "count"), ("__deltaic_size", "sum")])
        counted = counted.select([*names, "__deltaic_size_count", "__deltaic_size_sum"]).rename_columns([*names, "num_files", "size"])
        return counted.sort_by([(name, "ascending") for name in names]) if names else counted

    return Rows.computed(grouped)
