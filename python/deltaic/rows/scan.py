"""Reads the data, the files and the partitions of a table as lazy rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deltaic import _core
from deltaic.errors import DeltaError, InvalidArgumentError
from deltaic.plan.nodes import TableRead
from deltaic.planning.columns import narrowed, resolve_columns, united
from deltaic.planning.opening import open_scan, with_predicate
from deltaic.planning.planned import ScanPlan, live_rows, plan
from deltaic.protocol.schema import Schema
from deltaic.rows.rows import Rows, ScanReport

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.plan.nodes import Scan
else:
    from deltaic.deferred import pyarrow as pa


def scan(
    snapshot: Snapshot,
    engine: Engine,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    limit: int | None = None,
    skipping: bool = True,
) -> Rows:
    """Reads rows of a table; see `DeltaTable.scan`. `skipping`: False to read every file, for tests."""
    names = resolve_columns(snapshot.schema, columns, branches=True)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidArgumentError(
            "invalid limit", found=repr(limit), expected="a number of rows >= 0, or None"
        )
    engine = engine.pinned()
    planned = plan(snapshot, engine, where, skipping=skipping)
    roots = [narrowed(snapshot.schema, name).name for name in names]
    read = tuple(
        dict.fromkeys(
            root if roots.count(root) > 1 else name for root, name in zip(roots, names, strict=True)
        )
    )
    rows = _ScanRows(Schema([narrowed(snapshot.schema, name) for name in read]), planned, engine, read, limit)
    if len(read) == len(names):
        return rows
    from deltaic.rows.branches import BranchRows

    return BranchRows(rows, united(snapshot.schema, names))


class _ScanRows(Rows):
    """Rows of a planned scan. The files are selected on the first access."""

    def __init__(
        self, schema: Schema, planned: ScanPlan, engine: Engine, names: tuple[str, ...], limit: int | None
    ) -> None:
        snapshot = planned.snapshot
        read = TableRead(snapshot.location, snapshot.version, planned.predicate)
        super().__init__(schema, self._open, self._whole, (read,))
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
        # The engine has no tables without columns, so one column is read and removed again.
        one = tuple(self._planned.residual_columns or narrowed_scan.schema.names)[:1]
        reader = self._read(replace(narrowed_scan, columns=one), limit)
        return pa.RecordBatchReader.from_batches(pa.schema([]), (batch.select([]) for batch in reader))

    def to_dataset(self) -> pa.dataset.Dataset:
        if self._limit is not None:
            return super().to_dataset()
        from deltaic.engine.dataset import ScanDataset

        return ScanDataset(self._scan, read=self._read)

    def _open_narrow(
        self, columns: Sequence[str], nodes: Sequence[Mapping[str, Any]]
    ) -> pa.RecordBatchReader:
        if self._limit is not None:
            return super()._open_narrow(columns, nodes)
        from deltaic.engine.dataset import ScanDataset

        dataset = ScanDataset(
            with_predicate(self._scan, _predicate_of(nodes, self._scan.table_schema)), read=self._read
        )
        return dataset.scanner(columns).to_reader()

    def _first(self, count: int) -> pa.Table:
        return self._read(self._scan, count if self._limit is None else min(count, self._limit)).read_all()

    def to_spark(self) -> Any:
        if (frame := self._engine.frame(self._planned, self._names)) is None:
            return super().to_spark()
        return frame if self._limit is None else frame.limit(self._limit)

    def count(self) -> int:
        if self._planned.partition_only:
            known = live_rows(self._planned)
            if known is not None:
                return known if self._limit is None else min(known, self._limit)
        # The engine has no tables without columns, so a condition that reads no column is evaluated on one,
        # too.
        one = self._planned.residual_columns or (self._scan.schema.names if self._scan.where else ())
        narrow = replace(self._scan, columns=tuple(one)[:1])
        counted = self._cancellation.started_by(lambda: self._engine.count(self._engine.run(narrow)))()
        return counted if self._limit is None else min(counted, self._limit)

    def explain(self) -> ScanReport:
        # imported in functions, as the import is slow and planning does not need it
        import pyarrow.compute as pc

        selection = self._planned.selection
        stream = open_scan(self._scan)
        rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
        metrics = stream.metrics
        return ScanReport(
            columns=self._names,
            pushed=self._planned.pushed.json if self._planned.pushed is not None else None,
            evaluated=tuple(each.text for each in self._planned.residual),
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


def _predicate_of(
    nodes: Sequence[Mapping[str, Any]], table_schema: _core.TableSchema
) -> _core.Predicate | None:
    """Joins conditions to a predicate, without those that are not valid for the table."""
    predicate = None
    for node in nodes:
        try:
            part = _core.Predicate.from_json(json.dumps(node), table_schema)
        except DeltaError:
            continue
        predicate = part if predicate is None else predicate & part
    return predicate


def files(
    snapshot: Snapshot, engine: Engine, where: str | None = None, *, deleted_rows: bool = False
) -> Rows:
    """Returns a row for each live file that may contain a matching row; see `DeltaTable.files`."""
    planned = plan(snapshot, engine, where)

    def listing() -> _core.Batches:
        return snapshot.core.listing(
            snapshot.table_schema, planned.pushed, store=snapshot.store, deleted_rows=deleted_rows
        )

    return Rows.computed(listing)


def partitions(snapshot: Snapshot, engine: Engine, where: str | None = None) -> Rows:
    """Returns a row for each partition that may contain a matching row, with the partition columns,
    `num_files` and `size`; see `DeltaTable.partitions`."""
    planned = plan(snapshot, engine, where)
    names = list(snapshot.metadata.partition_columns)

    def grouped() -> pa.Table:
        import pyarrow.compute as pc

        listing = snapshot.core.listing(
            snapshot.table_schema, planned.pushed, statistics_columns=[]
        ).to_table()
        values = listing["partition_values"].combine_chunks() if names else None
        columns = {name: pc.struct_field(values, [index]) for index, name in enumerate(names)}
        table = pa.table({**columns, "__deltaic_size": listing["size"]})
        counted = table.group_by(names, use_threads=False).aggregate(
            [
                ("__deltaic_size", "count"),
                ("__deltaic_size", "sum", pc.ScalarAggregateOptions(min_count=0)),
            ]
        )
        counted = counted.select([*names, "__deltaic_size_count", "__deltaic_size_sum"]).rename_columns(
            [*names, "num_files", "size"]
        )
        return counted.sort_by([(name, "ascending") for name in names]) if names else counted

    return Rows.computed(grouped)
