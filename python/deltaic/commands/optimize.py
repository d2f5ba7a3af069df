"""OPTIMIZE: writes the same rows to fewer files, in a better order, or without deleted rows. All actions have
dataChange=false.

Source: delta-spark's OptimizeTableCommand, for the semantics and the metrics.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands.bins import CandidateFiles, compaction_bins, measure, purge_bins, whole_partitions
from deltaic.commands.data_files import snapshot_target
from deltaic.commands.marking import staging, total_size
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    InvalidTypeError,
    UnsupportedFeatureError,
    items_of,
)
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.plan.nodes import Scan
from deltaic.planning.planned import column_names, plan, resolve_condition
from deltaic.protocol.clustering import DOMAIN, columns_without_statistics, logical_columns
from deltaic.protocol.column_mapping import physical_name, physical_names
from deltaic.protocol.features import Change, Definition
from deltaic.protocol.row_tracking import hidden_columns
from deltaic.protocol.schema import Array, Map, Struct, is_shape, path_text, type_name
from deltaic.transaction import giving_way
from deltaic.transaction.giving_way import Gate
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Curve, Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.pictures.picture import Kind, Picture

Outcome: TypeAlias = "tuple[Snapshot, dict[str, int]]"
CLUSTERING_PROVIDER = "liquid"
MAX_HILBERT_COLUMNS = 9

AUTO_COMPACT_FILES = 50
AUTO_COMPACT_SIZE = 128 * 1024**2


@dataclass(frozen=True, kw_only=True)
class Job:
    """Arguments that the commands of `Optimize` have in common. `target_size`: bytes of a new file; None: the
    table's property. `auto`: True for auto compaction. `gate`: of a compaction in the background."""

    where: str | None = None
    target_size: int | None = None
    commit_interval: timedelta | None = None
    parquet: ParquetOptions | None = None
    commit: CommitOptions | None = None
    auto: bool = False
    gate: Gate | None = None

    def __post_init__(self) -> None:
        size = self.target_size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InvalidArgumentError("invalid target_size", found=repr(size), expected="bytes, at least 1")
        interval = self.commit_interval
        if interval is not None and not isinstance(interval, timedelta):
            raise InvalidTypeError(
                "commit_interval has the wrong type",
                found=type(interval).__name__,
                expected="a timedelta, or None for one commit",
            )


class Optimize:
    """Changes of the layout of a table's files: `table.optimize`. The rows do not change (`dataChange` is
    false).

    Arguments of all methods: `where` (str): a condition on partition columns. `target_size` (int): target
    size of new files in bytes; default: the table's `delta.targetFileSize`. `commit_interval` (timedelta):
    None for one commit at the end; else finished bins are committed at this interval (0: after each
    partition). `parquet`: ParquetOptions of the new files.
    `commit`: CommitOptions.

    Result of `compact`, `z_order`, `cluster`, `purge`: `num_files_added`, `num_files_removed`, `bytes_added`,
    `bytes_removed`, `partitions_optimized`, `num_bins`, `num_batches`, `total_considered_files`,
    `total_files_skipped`, `num_deletion_vectors_removed`, `num_deletion_vector_rows_removed`; if files were
    written also `min_bytes_added`, `max_bytes_added`, `min_bytes_removed`, `max_bytes_removed`.

    Raises InvalidArgumentError (an unknown column, a `where` on other columns), the exceptions of conflicts,
    CommitUnknownError.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot],
        move: Callable[[Snapshot], None],
        engine: Engine,
        options: Callable[[CommitOptions | None], CommitOptions | None],
    ) -> None:
        """`current`: returns the snapshot from which a command starts. `move`: called with the new snapshot.
        `options`: completes the CommitOptions of a call."""
        self._current, self._move, self._engine, self._options = current, move, engine, options

    def compact(
        self,
        where: str | None = None,
        *,
        target_size: int | None = None,
        commit_interval: timedelta | None = None,
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Merges small files, and files with many deleted rows, into files of the target size. Rows keep
        their order.

        >>> table.optimize.compact()["num_files_added"]
        1
        """
        job = Job(
            where=where,
            target_size=target_size,
            commit_interval=commit_interval,
            parquet=parquet,
            commit=self._options(commit),
        )
        return self._run(lambda snapshot: compact(snapshot, self._engine, job))

    def z_order(
        self,
        columns: str | Sequence[str],
        where: str | None = None,
        *,
        curve: Curve = "zorder",
        target_size: int | None = None,
        commit_interval: timedelta | None = None,
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Sorts all rows along a curve over the columns, so that a condition on any of them skips files.

        `columns`: one name or several. `curve`: "zorder" (the default) or "hilbert" (at most 9 columns).

        >>> table.optimize.z_order(["origin", "delay"], curve="hilbert")["num_files_added"]
        1
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        job = Job(
            where=where,
            target_size=target_size,
            commit_interval=commit_interval,
            parquet=parquet,
            commit=self._options(commit),
        )
        return self._run(lambda snapshot: z_order(snapshot, self._engine, names, job, curve=curve))

    def cluster(
        self,
        *,
        full: bool = False,
        target_size: int | None = None,
        commit_interval: timedelta | None = None,
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Sorts rows along a Hilbert curve over the table's clustering columns (`alter.cluster_by`). `full`
        (bool): True to include files that are already sorted. A table without clustering columns raises
        UnsupportedFeatureError.

        >>> table.alter.cluster_by("delay")
        >>> table.optimize.cluster()["num_files_added"]
        1
        """
        job = Job(
            target_size=target_size,
            commit_interval=commit_interval,
            parquet=parquet,
            commit=self._options(commit),
        )
        return self._run(lambda snapshot: cluster(snapshot, self._engine, job, full=full))

    def purge(
        self,
        where: str | None = None,
        *,
        target_size: int | None = None,
        commit_interval: timedelta | None = None,
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Rewrites every file that has deleted rows, or values of dropped columns, without these.

        >>> table.optimize.purge()["num_deletion_vector_rows_removed"]
        1
        """
        job = Job(
            where=where,
            target_size=target_size,
            commit_interval=commit_interval,
            parquet=parquet,
            commit=self._options(commit),
        )
        return self._run(lambda snapshot: purge(snapshot, self._engine, job))

    def statistics(
        self,
        columns: str | Sequence[str] | None = None,
        where: str | None = None,
        *,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Adds missing statistics of files, and recomputes those that include deleted rows. Files are read
        and added again, but not rewritten.

        `columns`: one name or several, the only columns with statistics afterwards; default: those by the
        table's properties. Returns `num_files_updated`.

        >>> table.optimize.statistics("delay")["num_files_updated"]
        2
        """
        names = (
            [columns]
            if isinstance(columns, str)
            else None
            if columns is None
            else list(items_of(columns, "columns"))
        )
        return self._run(
            lambda snapshot: statistics(snapshot, self._engine, names, where, commit=self._options(commit))
        )

    def picture(
        self,
        columns: str | Sequence[str] | None = None,
        where: str | None = None,
        *,
        kind: Kind = "layout",
        before: int | None = None,
    ) -> Picture:
        """Draws this version of the table as SVG, from the log only; no data file is read.

        `kind`: "layout" (the default) draws each file as a rectangle from its minimum to its maximum of one
        or two columns; "sizes" draws each file as a bar with its deleted rows; "history" draws the newest
        1,000 commits on a time line.
        `columns`: of the layout, with dots for struct fields; default: the first two clustering columns, else
        the first two columns with statistics. `where`: a condition in Spark's SQL dialect; files that a query
        with it reads are orange, files that it skips are grey. `before`: an older version, drawn to the left
        with the same axes.

        Numbers, dates and timestamps have linear axes; on those of strings and booleans, each bound of a file
        is one step. Files that have only nulls in a column are drawn in a separate strip. Files without
        statistics are not drawn; `Picture.notes` and a line below the drawing have their number. Of more than
        2,000 files in a layout, or 1,000 in sizes, every k-th is drawn.

        Returns a `Picture`: `svg` (text), `notes`, `save(path)`; notebooks show it. Raises
        InvalidArgumentError (an unknown column, one without order or of which no file has statistics, a
        condition that does not parse), VersionNotFoundError (`before`).

        >>> table.optimize.picture(["origin", "delay"], where="delay > 60", before=0).save("layout.svg")
        """
        from deltaic.pictures.picture import picture

        return picture(self._current(), self._engine, columns, where, kind=kind, before=before)

    def _run(self, command: Callable[[Snapshot], Outcome]) -> dict[str, int]:
        current = self._current()
        with self._engine.working_on("OPTIMIZE", current.location), giving_way.command(current) as current:
            snapshot, metrics = command(current)
        self._move(snapshot)
        return metrics


def compact(snapshot: Snapshot, engine: Engine, job: Job) -> Outcome:
    return _Rewrite(snapshot, engine, job, "OPTIMIZE").run(
        compaction_bins, {"zOrderBy": [], "clusterBy": [], "auto": job.auto}
    )


def purge(snapshot: Snapshot, engine: Engine, job: Job) -> Outcome:
    def bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
        if snapshot.properties.column_mapping_mode == "none":  # no column can be dropped
            return purge_bins(files, target)
        known = snapshot.table_schema.with_hidden(hidden_columns(snapshot.metadata) or ())
        dropped = _core.has_dropped_columns(snapshot.store, known, files.files)
        return purge_bins(files, target, dropped.to_numpy(zero_copy_only=False))

    return _Rewrite(snapshot, engine, job, "REORG").run(bins, {"applyPurge": True})


def z_order(
    snapshot: Snapshot, engine: Engine, columns: Sequence[str], job: Job, *, curve: Curve = "zorder"
) -> Outcome:
    """Sorts rows along a curve. A partition column, an unknown one, one without statistics and one without
    order are an InvalidArgumentError."""
    if logical_columns(snapshot.schema, snapshot.domains.get(DOMAIN)):
        error = InvalidArgumentError(
            "a clustered table is clustered by its own columns", expected="optimize.cluster()"
        )
        raise error.with_values(columns=tuple(columns))
    names = _curve_columns(snapshot, columns, curve)
    rewrite = _Rewrite(snapshot, engine, job, "OPTIMIZE", columns=names, curve=curve)
    return rewrite.run(
        lambda files, target: whole_partitions(files), {"zOrderBy": names, "clusterBy": [], "auto": False}
    )


def cluster(snapshot: Snapshot, engine: Engine, job: Job, *, full: bool = False) -> Outcome:
    """Sorts rows by the clustering columns. A table without them is an UnsupportedFeatureError."""
    paths = logical_columns(snapshot.schema, snapshot.domains.get(DOMAIN))
    if not paths:
        raise UnsupportedFeatureError(
            "the table has no clustering columns",
            where=snapshot.location,
            expected="alter.cluster_by(...) first",
        )
    names = _curve_columns(snapshot, [path_text(path) for path in paths], "hilbert")
    curve: Curve = "hilbert" if len(names) > 1 else "zorder"
    more = {"clusteringProvider": CLUSTERING_PROVIDER}
    rewrite = _Rewrite(snapshot, engine, job, "OPTIMIZE", columns=names, curve=curve, more=more)

    def bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
        ours = files.only(_ours_to_cluster(files))
        return whole_partitions(ours if full else ours.only(_unclustered(ours, target)))

    return rewrite.run(bins, {"clusterBy": names, "zOrderBy": [], "auto": False, "isFull": full})


def _ours_to_cluster(files: CandidateFiles) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns a mask of files that are not clustered, or clustered by this provider. Files of other providers
    are not changed."""
    provider = files.files["clusteringProvider"]
    ours = pc.or_(pc.is_null(provider), pc.fill_null(pc.equal(provider, CLUSTERING_PROVIDER), False))
    return np.asarray(ours.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _unclustered(files: CandidateFiles, target: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns a mask of files to cluster: files that are not clustered, and small ones. A single small file,
    if all others are clustered, is not rewritten."""
    clustered = np.asarray(
        pc.is_valid(files.files["clusteringProvider"]).combine_chunks().to_numpy(zero_copy_only=False),
        dtype=np.bool_,
    )
    small = files.live < target / 2
    if clustered.all() and small.sum() < 2:
        return np.zeros(len(small), dtype=np.bool_)
    return np.asarray(~clustered | small, dtype=np.bool_)


def auto_compact(snapshot: Snapshot, engine: Engine, adds: pa.Table, gate: Gate | None = None) -> Snapshot:
    """Compacts the partitions of `adds` after a commit, if the table has auto compaction
    (`delta.autoOptimize.autoCompact`) and the partition has at least 50 files under 64 MiB."""
    if not snapshot.properties.auto_compact or not adds.num_rows:
        return snapshot
    keys = _partition_keys(snapshot)

    def bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
        together = measure(
            pa.concat_tables(
                [files.files.select(_MEASURED), adds.select(_MEASURED)], promote_options="permissive"
            ),
            keys,
        )
        touched = np.unique(together.partition[files.files.num_rows :])
        small = (files.live < target / 2) & np.isin(together.partition[: files.files.num_rows], touched)
        counts = np.bincount(files.partition[small], minlength=int(files.partition.max(initial=0)) + 1)
        return compaction_bins(files.only(small & (counts[files.partition] >= AUTO_COMPACT_FILES)), target)

    job = Job(target_size=AUTO_COMPACT_SIZE, auto=True, gate=gate)
    return _Rewrite(snapshot, engine, job, "OPTIMIZE").run(
        bins, {"zOrderBy": [], "clusterBy": [], "auto": True}
    )[0]


_MEASURED = ["path", "size", "stats", "deletionVector", "partitionValues"]


def statistics(
    snapshot: Snapshot,
    engine: Engine,
    columns: Sequence[str] | None,
    where: str | None,
    *,
    commit: CommitOptions | None = None,
) -> Outcome:
    """Recomputes the statistics of files that have none, or whose statistics include deleted rows. `columns`:
    if set, the statistics of these columns, for all files."""
    if already_committed(snapshot, commit):
        return snapshot, {"num_files_updated": 0}
    options = dict(snapshot_target(snapshot).options)
    files = plan(snapshot, engine, where, as_stored=True).selection.adds
    if columns is not None:
        for name in columns:
            snapshot.schema.find(name)
        options["statistics_columns"] = list(columns)
        chosen = files
    else:
        wide = pc.fill_null(pc.match_substring_regex(files["stats"], r'"tightBounds"\s*:\s*false'), True)
        chosen = files.filter(wide)
    if not chosen.num_rows:
        return snapshot, {"num_files_updated": 0}
    transaction = Transaction(
        snapshot, "COMPUTE STATS", {"predicate": [] if where is None else [where]}, commit
    )
    with staging(transaction):
        measured = _core.file_statistics(
            snapshot.store, snapshot.table_schema, chosen, json.dumps(options), tight=True
        )
        transaction.read(None)
        transaction.add(_core.adds_again(measured, data_change=False))
    metrics = {"num_files_updated": chosen.num_rows}
    return transaction.commit(metrics), metrics


@dataclass
class _Progress:
    """Files that OPTIMIZE has added and removed, in the current transaction or in all its commits."""

    added: list[pa.Table] = field(default_factory=list)
    removed: list[pa.Table] = field(default_factory=list)
    batches: int = 0
    partitions: int = 0


Binning: TypeAlias = "Callable[[CandidateFiles, int], list[list[pa.Table]]]"


class _Rewrite:
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
        more: dict[str, str] | None = None,
    ) -> None:
        self.snapshot, self.engine, self.job, self.operation = snapshot, engine, job, operation
        self.columns, self.curve, self.more = columns, curve, more or {}
        self.target = snapshot_target(
            snapshot, job.parquet, target_file_size=job.target_size, data_change=False
        )

    def run(self, binning: Binning, parameters: dict[str, Any]) -> Outcome:
        if already_committed(self.snapshot, self.job.commit):
            return self.snapshot, self._metrics(_Progress(), 0, 0)
        partition_columns = tuple(self.snapshot.metadata.partition_columns)
        try:
            planned = plan(self.snapshot, self.engine, self.job.where, as_stored=True)
        except DeltaError as error:
            error.with_values(columns=partition_columns)
            raise
        if self.job.where is not None and logical_columns(
            self.snapshot.schema, self.snapshot.domains.get(DOMAIN)
        ):
            raise UnsupportedFeatureError(
                "where= of OPTIMIZE on a clustered table, which has no partitions", found=repr(self.job.where)
            )
        if not planned.partition_only:
            raise self._not_of_partitions(self.job.where or "")
        files = planned.selection.adds
        measured = measure(files, _partition_keys(self.snapshot))
        size = self.job.target_size or self.snapshot.properties.target_file_size
        partitions = binning(measured, size)
        shown = (
            []
            if planned.condition is None
            else [self.engine.shown_condition(planned.condition, planned.alias)]
        )
        parameters = {"predicate": shown, **parameters}
        done, snapshot = self._rewrite(partitions, parameters)
        skipped = files.num_rows - sum(table.num_rows for table in done.removed)
        return snapshot, self._metrics(done, files.num_rows, skipped)

    def _not_of_partitions(self, where: str) -> InvalidArgumentError:
        known = tuple(self.snapshot.metadata.partition_columns)
        read = column_names(
            [resolve_condition(self.engine, where, self.snapshot.schema)], self.snapshot.schema
        )
        error = InvalidArgumentError(
            "where= of OPTIMIZE is a condition on partition columns", found=repr(where)
        )
        return error.with_values(
            columns=known, column=next((name for name in read if name not in known), None)
        )

    def _rewrite(
        self, partitions: list[list[pa.Table]], parameters: dict[str, Any]
    ) -> tuple[_Progress, Snapshot]:
        done, snapshot = _Progress(partitions=len(partitions)), self.snapshot
        transaction, pending, started = None, _Progress(), time.monotonic()
        for last_of_partition, bin_files in _last_marked(partitions):
            if transaction is None:
                transaction = Transaction(snapshot, self.operation, parameters, self.job.commit)
                transaction.expect(Change.REARRANGE)
                transaction.gate = self.job.gate
            with staging(transaction):
                self._stage_bin(transaction, bin_files, pending)
            if self._due(started, last_of_partition):
                snapshot = transaction.commit(self._history(pending))
                _absorb(done, pending)
                transaction, pending, started = None, _Progress(), time.monotonic()
        if transaction is not None:
            snapshot = transaction.commit(self._history(pending))
            _absorb(done, pending)
        return done, snapshot

    def _due(self, started: float, last_of_partition: bool) -> bool:
        interval = self.job.commit_interval
        if interval is None:
            return False
        return last_of_partition if not interval else time.monotonic() - started >= interval.total_seconds()

    def _stage_bin(self, transaction: Transaction, files: pa.Table, pending: _Progress) -> None:
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
            column = pa.array([value] * adds.num_rows, pa.string())
            adds = adds.drop_columns([name]) if name in adds.column_names else adds
            adds = adds.append_column(name, column)
        removes = _core.removes_of(files, transaction.clock(), data_change=False)
        transaction.add(adds)
        transaction.remove(removes)
        pending.added.append(adds)
        pending.removed.append(files)

    def _files_of(self, files: pa.Table) -> int:
        """Estimates the number of new files for the live rows of these files."""
        live = int(measure(files, _partition_keys(self.snapshot)).live.sum())
        return max(1, -(-live // int(self.target.options["target_file_size"])))

    def _history(self, done: _Progress) -> dict[str, int]:
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

    def _metrics(self, done: _Progress, considered: int, skipped: int) -> dict[str, int]:
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


def _absorb(done: _Progress, pending: _Progress) -> None:
    done.added += pending.added
    done.removed += pending.removed
    done.batches += 1


def _last_marked(partitions: list[list[pa.Table]]) -> Iterator[tuple[bool, pa.Table]]:
    for bins in partitions:
        for number, files in enumerate(bins, start=1):
            yield number == len(bins), files


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


def _partition_keys(snapshot: Snapshot) -> list[str]:
    return physical_names(snapshot.schema, snapshot.metadata.partition_columns)


def _curve_columns(snapshot: Snapshot, columns: Sequence[str], curve: Curve) -> list[str]:
    """Checks the columns of a curve and returns their names as the schema spells them."""
    if not columns:
        raise InvalidArgumentError("clustering needs at least one column")
    if curve not in ("zorder", "hilbert"):
        raise InvalidArgumentError("unknown curve", found=repr(curve), expected="'zorder' or 'hilbert'")
    if curve == "hilbert" and len(columns) > MAX_HILBERT_COLUMNS:
        raise InvalidArgumentError(
            f"a Hilbert curve has at most {MAX_HILBERT_COLUMNS} columns", found=len(columns)
        )
    names: list[str] = []
    physical: list[list[str]] = []
    for name in columns:
        try:
            path, item = snapshot.schema.find(name)
        except InvalidArgumentError as error:
            message = "no such column to order the files by"
            raise InvalidArgumentError(message, found=error.found, expected=error.expected) from None
        text = path[0] if len(path) == 1 else path_text(path)
        if path[0] in snapshot.metadata.partition_columns:
            raise InvalidArgumentError(
                "the files of a partition have one value of a partition column", found=text
            )
        if (
            isinstance(item.type, (Struct, Array, Map))
            or item.type in ("variant", "void")
            or is_shape(item.type)
        ):
            raise InvalidArgumentError(
                "the values of the column have no order to sort by",
                where=f"column {text}",
                found=type_name(item.type),
            )
        if text in names:
            raise InvalidArgumentError("a column is named twice", found=text)
        names.append(text)
        physical.append([physical_name(snapshot.schema.find(path[: end + 1])[1]) for end in range(len(path))])
    definition = Definition(snapshot.metadata, schema=snapshot.schema)
    if bare := columns_without_statistics(definition, json.dumps({"clusteringColumns": physical})):
        raise InvalidArgumentError(
            "clustering by a column without statistics skips no file",
            found=", ".join(bare),
            expected="columns within delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns",
        )
    return names
