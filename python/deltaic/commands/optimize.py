"""OPTIMIZE: writes the same rows to fewer files, in a better order, or without deleted rows. All actions have
dataChange=false.

Each command here says which files it takes and how they are grouped; `optimize_rewrite.py` rewrites them.

Source: delta-spark's OptimizeTableCommand, for the semantics and the metrics.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands.bins import CandidateFiles, compaction_bins, purge_bins, whole_partitions
from deltaic.commands.data_files import snapshot_target
from deltaic.commands.marking import staging
from deltaic.commands.optimize_rewrite import Job, Outcome, Rewrite
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError, items_of
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.planning.planned import plan
from deltaic.protocol.clustering import DOMAIN, columns_without_statistics, logical_columns
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import Definition
from deltaic.protocol.row_tracking import hidden_columns
from deltaic.protocol.schema import Array, Map, Struct, is_shape, path_text, type_name
from deltaic.transaction import giving_way
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Curve, Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.pictures.picture import Kind, Picture

CLUSTERING_PROVIDER = "liquid"
ZCUBE_COLUMNS = "ZCUBE_ZORDER_BY"
"""Tag of a clustered file: the columns by which its rows are sorted, as delta-spark writes it. delta-spark
sorts a file without the tags ZCUBE_ID and ZCUBE_ZORDER_BY again in each OPTIMIZE."""
MAX_HILBERT_COLUMNS = 9
"""Maximum number of columns of a Hilbert curve; more are an InvalidArgumentError."""


class Optimize:
    """Changes of the layout of a table's files: `table.optimize`. The rows do not change (`dataChange` is
    false).

    Arguments that several methods have:
    `where` (str): a condition on partition columns; all partitions by default.
    `target_size` (int): target size of new files in bytes; default: the table's `delta.targetFileSize`, which
    is 256 MiB unless it is set.
    `commit_interval` (timedelta): None (the default) for one commit at the end; else finished bins (groups of
    files that are rewritten together) are committed at this interval (0: after each partition), and only the
    last commit records the application transactions of `commit`.
    `parquet`: ParquetOptions of the new files. `commit`: CommitOptions.

    Result of `compact`, `z_order`, `cluster`, `purge`: a dict with `num_files_added`, `num_files_removed`,
    `bytes_added`, `bytes_removed`, `partitions_optimized`, `num_bins`, `num_batches` (commits),
    `total_considered_files`, `total_files_skipped`, `num_deletion_vectors_removed`,
    `num_deletion_vector_rows_removed`; if files were written also `min_bytes_added`, `max_bytes_added`,
    `min_bytes_removed`, `max_bytes_removed`. If no file needs to be rewritten, nothing is committed.

    Raises InvalidArgumentError (an unknown column, a `where` on other columns), the exceptions of conflicts,
    CommitUnknownError.

    >>> table.optimize.compact()["num_files_removed"]
    2
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
        """Merges small files (below half of the target size), and files with more than 5 % deleted rows, into
        files of the target size. Rows keep their order.

        Arguments, result keys and errors: see `help(table.optimize)`.

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

        `columns`: one name or several, not of partition columns. `curve`: "zorder" (the default) or "hilbert"
        (at most 9 columns).
        Other arguments, result keys and errors: see `help(table.optimize)`.

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
        """Sorts the rows of files that are not sorted yet along a Hilbert curve over the table's clustering
        columns (`alter.cluster_by`). `full` (bool): True to include files that were sorted by other columns.
        A table without clustering columns raises UnsupportedFeatureError.

        Other arguments, result keys and errors: see `help(table.optimize)`.

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

        Arguments, result keys and errors: see `help(table.optimize)`.

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
        `where`, `commit` and errors: see `help(table.optimize)`.

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
    return Rewrite(snapshot, engine, job, "OPTIMIZE").run(
        partial(compaction_bins, limit=engine.compaction.small),
        {"zOrderBy": [], "clusterBy": [], "auto": job.auto},
    )


def purge(snapshot: Snapshot, engine: Engine, job: Job) -> Outcome:
    def bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
        if snapshot.properties.column_mapping_mode == "none":  # no column can be dropped
            return purge_bins(files, target)
        known = snapshot.table_schema.with_hidden(hidden_columns(snapshot.metadata) or ())
        dropped = _core.has_dropped_columns(snapshot.store, known, files.files)
        return purge_bins(files, target, dropped.to_numpy(zero_copy_only=False))

    return Rewrite(snapshot, engine, job, "REORG").run(bins, {"applyPurge": True})


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
    checks = engine.compaction.checks_statistics
    names = _curve_columns(snapshot, columns, curve, what="Z-ordering", checks_statistics=checks)
    rewrite = Rewrite(snapshot, engine, job, "OPTIMIZE", columns=names, curve=curve)
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
    tags = {"ZCUBE_ID": str(uuid.uuid4()), ZCUBE_COLUMNS: _names_text(names)}
    more = {
        "clusteringProvider": pa.scalar(CLUSTERING_PROVIDER),
        "tags": pa.scalar(tags, pa.map_(pa.string(), pa.string())),
    }
    rewrite = Rewrite(snapshot, engine, job, "OPTIMIZE", columns=names, curve=curve, more=more)

    def bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
        ours = files.only(_ours_to_cluster(files))
        chosen = _unclustered(ours, target)
        return whole_partitions(ours.only(chosen | _in_another_order(ours, names) if full else chosen))

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


def _in_another_order(files: CandidateFiles, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns a mask of files that were not sorted by these columns, as far as their tags say."""
    columns = pc.map_lookup(files.files["tags"].combine_chunks(), pa.scalar(ZCUBE_COLUMNS), "first")
    same = pc.fill_null(pc.equal(columns, _names_text(names)), False)
    return ~np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _names_text(names: Sequence[str]) -> str:
    """Returns names as delta-spark writes them into the tag: `["a","s.x"]`."""
    return json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))


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


def _curve_columns(
    snapshot: Snapshot,
    columns: Sequence[str],
    curve: Curve,
    *,
    what: str = "clustering",
    checks_statistics: bool = True,
) -> list[str]:
    """Checks the columns of a curve and returns their names as the schema spells them. `what`: the command,
    for the error of columns without statistics."""
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
            unknown = InvalidArgumentError(message, found=error.found, expected=error.expected)
            raise unknown.with_values(**error.values, table_schema=snapshot.schema) from None
        text = path[0] if len(path) == 1 else path_text(path)
        if path[0] in snapshot.metadata.partition_columns:
            raise InvalidArgumentError(
                f"{text} is a partition column. Z-Ordering can only be performed on data columns", found=text
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
    bare = columns_without_statistics(definition, json.dumps({"clusteringColumns": physical}))
    if bare and checks_statistics:
        ineffective = InvalidArgumentError(
            f"{what} by a column without statistics skips no file",
            found=", ".join(bare),
            expected="columns within delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns",
        )
        raise ineffective.with_values(cols=f"[{', '.join(bare)}]")
    return names
