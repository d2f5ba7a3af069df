"""Result of OPTIMIZE and REORG: the path, and delta-spark's struct of metrics.

Source: delta-io/delta, OptimizeStats.scala and ZOrderMetrics.scala for names and types. Metrics without a
counterpart here (cubes of earlier clusterings, the parallelism of auto compaction) are null, 0, or an empty
count, as delta-spark returns for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.rows.rows import Rows
from deltaic.sql.results import rows_of

if TYPE_CHECKING:
    from deltaic.table import DeltaTable


def _longs(*names: str) -> pa.DataType:
    return pa.struct([(name, pa.int64()) for name in names])


_SIZES = pa.struct(
    [
        ("min", pa.int64()),
        ("max", pa.int64()),
        ("avg", pa.float64()),
        ("totalFiles", pa.int64()),
        ("totalSize", pa.int64()),
    ]
)
_FILES = _longs("num", "size")
_CLUSTERED = _longs("numFiles", "size")
METRICS = pa.struct(
    [
        ("numFilesAdded", pa.int64()),
        ("numFilesRemoved", pa.int64()),
        ("filesAdded", _SIZES),
        ("filesRemoved", _SIZES),
        ("partitionsOptimized", pa.int64()),
        (
            "zOrderStats",
            pa.struct(
                [
                    ("strategyName", pa.string()),
                    ("inputCubeFiles", _FILES),
                    ("inputOtherFiles", _FILES),
                    ("inputNumCubes", pa.int64()),
                    ("mergedFiles", _FILES),
                    ("numOutputCubes", pa.int64()),
                    ("mergedNumCubes", pa.int64()),
                ]
            ),
        ),
        (
            "clusteringStats",
            pa.struct(
                [
                    ("inputZCubeFiles", _CLUSTERED),
                    ("inputOtherFiles", _CLUSTERED),
                    ("inputNumZCubes", pa.int64()),
                    ("mergedFiles", _CLUSTERED),
                    ("numOutputZCubes", pa.int64()),
                ]
            ),
        ),
        ("numBins", pa.int64()),
        ("numBatches", pa.int64()),
        ("totalConsideredFiles", pa.int64()),
        ("totalFilesSkipped", pa.int64()),
        ("preserveInsertionOrder", pa.bool_()),
        ("numFilesSkippedToReduceWriteAmplification", pa.int64()),
        ("numBytesSkippedToReduceWriteAmplification", pa.int64()),
        ("startTimeMs", pa.int64()),
        ("endTimeMs", pa.int64()),
        ("totalClusterParallelism", pa.int64()),
        ("totalScheduledTasks", pa.int64()),
        (
            "autoCompactParallelismStats",
            _longs(
                "maxClusterActiveParallelism",
                "minClusterActiveParallelism",
                "maxSessionActiveParallelism",
                "minSessionActiveParallelism",
            ),
        ),
        ("deletionVectorStats", _longs("numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved")),
        ("numTableColumns", pa.int64()),
        ("numTableColumnsWithStats", pa.int64()),
    ]
)


def optimized(table: DeltaTable, run: Callable[[], Mapping[str, int]], kind: str = "compaction") -> Rows:
    """Runs the command and returns the row (path, metrics). `kind`: "compaction", "zorder" or
    "clustering"."""
    started = time.time_ns() // 1_000_000
    metrics = run()
    values = (
        _metrics(metrics, kind)
        | _columns(table)
        | {"startTimeMs": started, "endTimeMs": time.time_ns() // 1_000_000}
    )
    return rows_of(pa.table({"path": pa.array([table.location]), "metrics": pa.array([values], METRICS)}))


def z_ordered(table: DeltaTable, columns: Sequence[str], where: str | None) -> Rows:
    """Runs OPTIMIZE with ZORDER BY. A column that is named twice counts once, as in delta-spark."""
    once = list({name.lower(): name for name in columns}.values())
    return optimized(table, lambda: table.optimize.z_order(once, where), "zorder")


def optimized_in_order(table: DeltaTable, where: str | None) -> Rows:
    """Runs OPTIMIZE without ZORDER BY, as delta-spark does: a table with clustering columns is clustered,
    files that already are excepted; another one is compacted. `where`: a condition on partition columns."""
    if where is None and table.detail().clustering_columns:
        return optimized(table, table.optimize.cluster, "clustering")
    return optimized(table, lambda: table.optimize.compact(where))


def _metrics(metrics: Mapping[str, int], kind: str) -> dict[str, Any]:
    removed = (metrics["num_files_removed"], metrics["bytes_removed"])
    vectors = metrics["num_deletion_vectors_removed"]
    return {
        "numFilesAdded": metrics["num_files_added"],
        "numFilesRemoved": metrics["num_files_removed"],
        "filesAdded": _sizes(metrics, "added"),
        "filesRemoved": _sizes(metrics, "removed"),
        "partitionsOptimized": metrics["partitions_optimized"],
        "zOrderStats": _zorder(removed, metrics["partitions_optimized"]) if kind == "zorder" else None,
        "clusteringStats": _clustering(removed, metrics["partitions_optimized"])
        if kind == "clustering"
        else None,
        "numBins": metrics["num_bins"],
        "numBatches": max(metrics["num_batches"], 1),  # delta-spark also counts a batch without work
        "totalConsideredFiles": metrics["total_considered_files"],
        "totalFilesSkipped": metrics["total_files_skipped"],
        "preserveInsertionOrder": False,  # as delta-spark says, although compaction keeps the order
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "totalClusterParallelism": 0,
        "totalScheduledTasks": 0,
        "autoCompactParallelismStats": None,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": vectors,
            "numDeletionVectorRowsRemoved": metrics["num_deletion_vector_rows_removed"],
        }
        if vectors
        else None,
    }


def _sizes(metrics: Mapping[str, int], what: str) -> dict[str, Any]:
    count, total = metrics[f"num_files_{what}"], metrics[f"bytes_{what}"]
    return {
        "min": metrics.get(f"min_bytes_{what}"),
        "max": metrics.get(f"max_bytes_{what}"),
        "avg": total / count if count else 0.0,
        "totalFiles": count,
        "totalSize": total,
    }


def _zorder(files: tuple[int, int], partitions: int) -> dict[str, Any]:
    """Returns `zOrderStats`; all files of a partition count as one cube."""
    merged = dict(zip(("num", "size"), files, strict=True))
    return {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": merged,
        "inputNumCubes": 0,
        "mergedFiles": merged,
        "numOutputCubes": partitions,
        "mergedNumCubes": None,
    }


def _clustering(files: tuple[int, int], partitions: int) -> dict[str, Any]:
    merged = dict(zip(("numFiles", "size"), files, strict=True))
    return {
        "inputZCubeFiles": {"numFiles": 0, "size": 0},
        "inputOtherFiles": merged,
        "inputNumZCubes": 0,
        "mergedFiles": merged,
        "numOutputZCubes": partitions,
    }


def _columns(table: DeltaTable) -> dict[str, Any]:
    count, indexed = len(table.schema), table._snapshot.properties.data_skipping_num_indexed_cols
    return {
        "numTableColumns": count,
        "numTableColumnsWithStats": count if indexed < 0 else min(count, indexed),
    }
