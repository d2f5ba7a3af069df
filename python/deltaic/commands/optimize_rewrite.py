"""Rewrites files for the commands of OPTIMIZE: selects them by the condition, has the command group them into
bins, writes the rows of each bin to new files (in order, or sorted along a curve), and commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands.bins import CandidateFiles, measure
from deltaic.commands.data_files import snapshot_target
from deltaic.commands.marking import staging, total_size
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.plan.expression import Expression
from deltaic.plan.nodes import Scan
from deltaic.planning.partition_functions import matching_files
from deltaic.planning.planned import (
    ScanPlan,
    column_names,
    not_of_partitions,
    plan,
    resolve_condition,
    subquery_of_partitions,
)
from deltaic.protocol.clustering import DOMAIN, logical_columns
from deltaic.protocol.column_mapping import physical_names
from deltaic.protocol.features import Change
from deltaic.transaction.giving_way import Gate
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Curve, Engine
    from deltaic.log.snapshot import Snapshot

Outcome: TypeAlias = "tuple[Snapshot, dict[str, int]]"


@dataclass(frozen=True, kw_only=True)
class Job:
    """Arguments that the commands of `Optimize` have in common. `target_size`: bytes of a new file; None: the
    host's setting or the table's property. `auto`: True for auto compaction. `gate`: of a compaction in the
    background."""

    where: str | None = None
    target_size: int | None = None
    commit_interval: timedelta | None = None
    parquet: ParquetOptions | None = None
    commit: CommitOptions | None = None
    auto: bool = False
    gate: Gate | None = None

    def __post_init__(self) -> None:
        size = self.target_size
        is_size = isinstance(size, int) and not isinstance(size, bool) and 1 <= size < 2**63
        if size is not None and not is_size:
            raise InvalidArgumentError(
                "invalid target_size", found=repr(size), expected="bytes, at least 1 and below 2^63"
            )
        interval = self.commit_interval
        if interval is not None and not isinstance(interval, timedelta):
            raise InvalidTypeError(
                "commit_interval has the wrong type",
                found=type(interval).__name__,
                expected="a timedelta, or None for one commit",
            )


@dataclass
class Progress:
    """Files that OPTIMIZE has added and removed, in the current transaction or in all its commits."""

    added: list[pa.Table] = field(default_factory=list)
    removed: list[pa.Table] = field(default_factory=list)
    batches: int = 0
    partitions: int = 0


Binning: TypeAlias = "Callable[[CandidateFiles, int], list[list[pa.Table]]]"


class Rewrite:
    """Rewrites bins of files (in order, or sorted along a curve) and commits."""

    def __init__(
        self,
        snapshot: Snapshot,
        engine: Engine,
        job: Job,
        operation: str,
        *,
        columns: Sequence[str] = (),
        curve: Curve | None = None,
        more: Mapping[str, pa.Scalar[Any]] | None = None,
    ) -> None:
        self.snapshot, self.engine, self.job, self.operation = snapshot, engine, job, operation
        self.columns, self.curve, self.more = columns, curve, more or {}
        size = job.target_size or engine.compaction.target
        self.target = snapshot_target(snapshot, job.parquet, target_file_size=size, data_change=False)
        self.size = int(self.target.options["target_file_size"])

    def run(self, binning: Binning, parameters: dict[str, Any]) -> Outcome:
        if already_committed(self.snapshot, self.job.commit):
            return self.snapshot, self._metrics(Progress(), 0, 0)
        if self.job.where is not None and logical_columns(
            self.snapshot.schema, self.snapshot.domains.get(DOMAIN)
        ):
            raise UnsupportedFeatureError(
                "where= of OPTIMIZE on a clustered table, which has no partitions, is not supported",
                found=repr(self.job.where),
            )
        partition_columns = tuple(self.snapshot.metadata.partition_columns)
        try:
            planned = plan(self.snapshot, self.engine, self.job.where, as_stored=True)
        except DeltaError as error:
            if isinstance(error, UnsupportedFeatureError) and "a subquery" in error.message:
                raise subquery_of_partitions(self.job.where) from None
            error.with_values(columns=partition_columns)
            raise
        files = planned.selection.adds
        if not planned.partition_only:
            files = self._of_partitions(planned, files)
        measured = measure(files, partition_keys(self.snapshot))
        partitions = binning(measured, self.size)
        where = self.job.where
        parameters = {"predicate": [] if where is None else [self.engine.parsed_text(where)], **parameters}
        done, snapshot = self._rewrite(partitions, parameters)
        skipped = files.num_rows - sum(table.num_rows for table in done.removed)
        return snapshot, self._metrics(done, files.num_rows, skipped)

    def _of_partitions(self, planned: ScanPlan, files: pa.Table) -> pa.Table:
        """Returns the files whose partition values match the condition of the rewrite. Raises
        InvalidArgumentError for a condition that reads other columns or other tables, or that is not
        deterministic."""
        where = planned.condition
        if not isinstance(where, Expression):
            where = resolve_condition(self.engine, self.job.where or "", self.snapshot.schema)
        known = tuple(self.snapshot.metadata.partition_columns)
        read = column_names([where], self.snapshot.schema)
        if where.sources or not where.deterministic or not set(read) <= set(known):
            column = next((name for name in read if name not in known), None)
            raise not_of_partitions(self.job.where, column, known, "where= of OPTIMIZE")
        return matching_files(
            self.snapshot, self.engine, planned.residual, files, planned.pushed, planned.alias
        )

    def _rewrite(
        self, partitions: list[list[pa.Table]], parameters: dict[str, Any]
    ) -> tuple[Progress, Snapshot]:
        done, snapshot = Progress(partitions=len(partitions)), self.snapshot
        transaction, pending, started = None, Progress(), time.monotonic()
        for last_of_partition, is_last, bin_files in _last_marked(partitions):
            if transaction is None:
                transaction = Transaction(snapshot, self.operation, parameters, self.job.commit)
                transaction.expect(Change.REARRANGE)
                transaction.gate = self.job.gate
            with staging(transaction):
                self._stage_bin(transaction, bin_files, pending)
            if self._due(started, last_of_partition) and not is_last:
                # The last commit records the application transactions: a retry after a crash goes on.
                transaction.options = replace(transaction.options, transactions={})
                snapshot = transaction.commit(self._history(pending))
                _absorb(done, pending)
                transaction, pending, started = None, Progress(), time.monotonic()
        if transaction is not None:
            snapshot = transaction.commit(self._history(pending))
            _absorb(done, pending)
        return done, snapshot

    def _due(self, started: float, last_of_partition: bool) -> bool:
        interval = self.job.commit_interval
        if interval is None:
            return False
        return last_of_partition if not interval else time.monotonic() - started >= interval.total_seconds()

    def _stage_bin(self, transaction: Transaction, files: pa.Table, pending: Progress) -> None:
        scan = Scan(
            store=self.snapshot.store,
            schema=self.snapshot.schema,
            table_schema=self.snapshot.table_schema,
            files=files,
            columns=tuple(self.snapshot.schema.names),
            row_tracking=self.target.row_tracking,
            as_stored=True,
        )
        curve, engine = self.curve, self.engine
        relation = (
            engine.cluster(scan, self.columns, curve, self._files_of(files)) if curve else engine.run(scan)
        )
        adds = self.engine.write(relation, self.target)
        transaction.written(adds["path"].to_pylist())
        for name, value in self.more.items():
            column = pa.array([value] * adds.num_rows, value.type)
            adds = adds.drop_columns([name]) if name in adds.column_names else adds
            adds = adds.append_column(name, column)
        removes = _core.removes_of(files, transaction.clock(), data_change=False)
        transaction.add(adds)
        transaction.remove(removes)
        pending.added.append(adds)
        pending.removed.append(files)

    def _files_of(self, files: pa.Table) -> int:
        """Estimates the number of new files for the live rows of these files."""
        live = int(measure(files, partition_keys(self.snapshot)).live.sum())
        return max(1, -(-live // self.size))

    def _history(self, done: Progress) -> dict[str, int]:
        """Returns the operationMetrics of one commit, with delta-spark's names."""
        sizes = (
            np.concatenate([table["size"].to_numpy() for table in done.added]) if done.added else np.zeros(0)
        )
        metrics = {
            "num_added_files": _rows(done.added),
            "num_removed_files": _rows(done.removed),
            "num_added_bytes": sum(map(total_size, done.added)),
            "num_removed_bytes": sum(map(total_size, done.removed)),
            "num_deletion_vectors_removed": _vectors(done.removed),
        }
        if len(sizes):
            marks = {
                "min_file_size": 0,
                "p25_file_size": 25,
                "p50_file_size": 50,
                "p75_file_size": 75,
                "max_file_size": 100,
            }
            metrics |= {
                name: int(np.percentile(sizes, mark, method="nearest")) for name, mark in marks.items()
            }
        return metrics

    def _metrics(self, done: Progress, considered: int, skipped: int) -> dict[str, int]:
        return {
            "num_files_added": _rows(done.added),
            "num_files_removed": _rows(done.removed),
            "bytes_added": sum(map(total_size, done.added)),
            "bytes_removed": sum(map(total_size, done.removed)),
            "num_deletion_vectors_removed": _vectors(done.removed),
            "num_deletion_vector_rows_removed": _deleted_rows(done.removed),
            "num_bins": len(done.removed),
            "partitions_optimized": done.partitions,
            "num_batches": done.batches,
            "total_considered_files": considered,
            "total_files_skipped": skipped,
            **_extremes(done.added, "added"),
            **_extremes(done.removed, "removed"),
        }


def _absorb(done: Progress, pending: Progress) -> None:
    done.added += pending.added
    done.removed += pending.removed
    done.batches += 1


def _last_marked(partitions: list[list[pa.Table]]) -> Iterator[tuple[bool, bool, pa.Table]]:
    """Yields whether a bin is the last of its partition, whether it is the last of all, and its files."""
    left = sum(map(len, partitions))
    for bins in partitions:
        for number, files in enumerate(bins, start=1):
            left -= 1
            yield number == len(bins), not left, files


def _rows(tables: list[pa.Table]) -> int:
    return sum(table.num_rows for table in tables)


def _vectors(tables: list[pa.Table]) -> int:
    return sum(table.num_rows - table["deletionVector"].null_count for table in tables)


def _deleted_rows(tables: list[pa.Table]) -> int:
    """Counts the rows in the deletion vectors of these files."""
    return sum(
        int(pc.sum(pc.struct_field(table["deletionVector"], "cardinality")).as_py() or 0) for table in tables
    )


def _extremes(tables: list[pa.Table], what: str) -> dict[str, int]:
    """Returns the bytes of the smallest and the largest file; empty without files."""
    ranges = [pc.min_max(table["size"]).as_py() for table in tables if table.num_rows]
    sizes = [each for each in ranges if each["min"] is not None]
    if not sizes:
        return {}
    return {
        f"min_bytes_{what}": min(each["min"] for each in sizes),
        f"max_bytes_{what}": max(each["max"] for each in sizes),
    }


def partition_keys(snapshot: Snapshot) -> list[str]:
    return physical_names(snapshot.schema, snapshot.metadata.partition_columns)
