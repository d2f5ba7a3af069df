"""Rows of a list of files, for `changes` and `tail`, whose files need not be live in any snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deltaic.plan.nodes import Plan, Scan, Union
from deltaic.planning.opening import open_scan, scan_schema, with_predicate
from deltaic.protocol import change_feed
from deltaic.rows.rows import Rows, ScanReport

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.plan.expression import Expression
else:
    from deltaic.deferred import pyarrow as pa


class FileRows(Rows):
    """Rows of several scans with the same columns, one after the other. A scan may have a path several times.
    `where`: a condition on all rows."""

    def __init__(self, scans: Sequence[Scan], engine: Engine, where: Expression | None = None) -> None:
        super().__init__(scan_schema(scans[0]), self._open, self._whole)
        self._whole_scans, self._engine, self._where = list(scans), engine, where

    @cached_property
    def _scans(self) -> list[Scan]:
        """Returns the scans with files that may contain a match; the first scan if none has."""
        scans = [self._pruned(scan) for scan in self._whole_scans]
        if not self._engine.takes_repeated_files:
            scans = [part for scan in scans for part in _without_repeats(scan)]
        return [scan for scan in scans if scan.files.num_rows] or scans[:1]

    @property
    def plan(self) -> Plan:
        scans = self._scans
        return scans[0] if len(scans) == 1 else Union(tuple(scans))

    def _pruned(self, scan: Scan) -> Scan:
        if self._where is None:
            return scan
        from deltaic.planning.pushdown import push

        engine = self._engine
        conjuncts = self._where.conjuncts
        pushed = push(
            conjuncts,
            scan.schema,
            scan.table_schema,
            scan.alias,
            time_zone=engine.time_zone,
            pads_char=engine.pads_char,
        )
        return replace(with_predicate(scan, pushed.predicate), where=pushed.residual)

    def _open(self) -> pa.RecordBatchReader:
        if not self._engine.takes_repeated_files:
            return self._whole().to_reader()
        readers = (self._engine.to_arrow(self._engine.run(scan)) for scan in self._scans)
        first = next(readers)

        def batches() -> Iterator[pa.RecordBatch]:
            with first:
                yield from first
            for reader in readers:
                with reader:
                    yield from reader

        return pa.RecordBatchReader.from_batches(first.schema, batches())

    def _whole(self) -> pa.Table:
        if not self._engine.takes_repeated_files:
            return self._engine.to_table(self._engine.run(self.plan))
        return pa.concat_tables([self._engine.to_table(self._engine.run(scan)) for scan in self._scans])

    def _first(self, count: int) -> pa.Table:
        if self._engine.takes_repeated_files:
            return super()._first(count)
        return self._engine.to_arrow(self._engine.run(self.plan), limit=count).read_all()

    def to_spark(self) -> Any:
        return super().to_spark() if self._engine.takes_repeated_files else self._engine.run(self.plan).frame

    def count(self) -> int:
        """Counts the rows. For changes, only the column with the version is read, which is a partition value
        and in no file."""
        in_log = change_feed.COMMIT_VERSION
        columns = [in_log if in_log in scan.schema.names else scan.columns[0] for scan in self._scans]
        counted = [
            replace(scan, columns=(column,), constants=())
            for scan, column in zip(self._scans, columns, strict=True)
        ]
        return self._cancellation.started_by(
            lambda: sum(self._engine.count(self._engine.run(scan)) for scan in counted)
        )()

    def explain(self) -> ScanReport:
        import pyarrow.compute as pc

        totals = dict.fromkeys(
            (
                "files",
                "files_read",
                "row_groups",
                "row_groups_read",
                "bytes",
                "bytes_of_files",
                "bytes_read",
                "rows",
            ),
            0,
        )
        for whole in self._whole_scans:
            totals["files"] += whole.files.num_rows
            totals["bytes"] += pc.sum(whole.files["size"]).as_py() or 0
        for scan in self._scans:
            stream = open_scan(scan)
            totals["rows"] += sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
            totals["files_read"] += scan.files.num_rows
            totals["bytes_of_files"] += pc.sum(scan.files["size"]).as_py() or 0
            for name in ("row_groups", "row_groups_read", "bytes_read"):
                totals[name] += stream.metrics[name]
        first = self._scans[0]
        pushed = None if first.predicate is None else first.predicate.json
        return ScanReport(
            columns=first.columns, pushed=pushed, evaluated=tuple(each.text for each in first.where), **totals
        )


def _without_repeats(scan: Scan) -> list[Scan]:
    """Splits a scan into several, each of which has every path at most once."""
    seen: Counter[str] = Counter()
    turns = []
    for path in scan.files["path"].to_pylist():
        turns.append(seen[path])
        seen[path] += 1
    if max(turns, default=0) == 0:
        return [scan]
    return [
        replace(scan, files=scan.files.filter(pa.array([turn == each for turn in turns])))
        for each in range(max(turns) + 1)
    ]
