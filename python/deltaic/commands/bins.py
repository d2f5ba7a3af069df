"""Groups files that OPTIMIZE rewrites together (bins). The functions are pure, and compute on Arrow tables of
actions without a Python step for each file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core

DELETED_SHARE = 0.05
"""Share of deleted rows above which a file is rewritten even if it is large or alone in its bin."""


@dataclass(frozen=True, eq=False)
class CandidateFiles:
    """Files that OPTIMIZE may select, with a value of each array for each file.

    `size`: bytes of the file. `live`: estimated bytes of its live rows, by their share of all rows.
    `partition`: a number that is equal for files of one partition."""

    files: pa.Table
    size: npt.NDArray[np.int64]
    live: npt.NDArray[np.int64]
    deleted_share: npt.NDArray[np.float64]
    has_vector: npt.NDArray[np.bool_]
    partition: npt.NDArray[np.int64]

    def only(self, mask: npt.NDArray[np.bool_]) -> CandidateFiles:
        kept = self.files.filter(pa.array(mask))
        return CandidateFiles(
            kept,
            self.size[mask],
            self.live[mask],
            self.deleted_share[mask],
            self.has_vector[mask],
            self.partition[mask],
        )


def measure(files: pa.Table, partition_keys: Sequence[str]) -> CandidateFiles:
    """Computes sizes and shares from `add` actions. `partition_keys`: physical names of the partition
    columns. A file without numRecords counts as having no deleted rows."""
    size = _numbers(files["size"])
    records = _numbers(pa.chunked_array([_core.physical_rows(files)]))
    deleted = _numbers(pc.struct_field(files["deletionVector"], "cardinality"))
    share = np.where(records > 0, deleted / np.maximum(records, 1), 0.0)
    live = (size * (1.0 - share)).astype(np.int64)
    vector = np.asarray(
        pc.is_valid(files["deletionVector"]).combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_
    )
    return CandidateFiles(files, size, live, share, vector, _partition_numbers(files, partition_keys))


def _numbers(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    filled = pc.fill_null(pc.cast(values, pa.int64()), 0)
    return np.asarray(filled.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.int64)


def _partition_numbers(files: pa.Table, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    numbers = np.zeros(files.num_rows, dtype=np.int64)
    values = files["partitionValues"]
    for key in keys:
        column = pc.map_lookup(values.combine_chunks(), key, "first")
        codes = (
            column.dictionary_encode(null_encoding="encode")
            .indices.to_numpy(zero_copy_only=False)
            .astype(np.int64)
        )
        # Renumbered after each key, as the product of the counts of all keys could overflow.
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(
            np.int64
        )
    return numbers


def worth_compacting(files: CandidateFiles, small: float) -> npt.NDArray[np.bool_]:
    """Returns a mask of files to compact: of less than `small` bytes, with live rows below that, or with many
    deleted rows."""
    return np.asarray((files.size < small) | (files.live < small) | _often_deleted(files), dtype=np.bool_)


def _often_deleted(files: CandidateFiles) -> npt.NDArray[np.bool_]:
    return np.asarray(files.deleted_share > DELETED_SHARE, dtype=np.bool_)


def small_size(target: int, limit: int | None) -> float:
    """Returns the bytes below which a file is small: the host's limit, or half of `target`."""
    return target / 2 if limit is None else limit


def compaction_bins(files: CandidateFiles, target: int, limit: int | None = None) -> list[list[pa.Table]]:
    """Returns, for each partition, bins of adjacent candidates whose live rows make about one file of
    `target` bytes. A single file is a bin only if many of its rows are deleted. `limit`: as for
    `small_size`."""
    chosen = files.only(worth_compacting(files, small_size(target, limit)))
    lone = _often_deleted(chosen)

    def cut(live: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        for start, end in _cuts(live, target):
            if end - start > 1 or lone[places[start]]:
                yield places[start:end]

    return _by_partition(chosen, cut)


def purge_bins(
    files: CandidateFiles, target: int, also: npt.NDArray[np.bool_] | None = None
) -> list[list[pa.Table]]:
    """Returns, for each partition, bins of all files with a deletion vector. `also`: mask of further
    files."""
    chosen = files.only(files.has_vector if also is None else files.has_vector | also)

    def cut(live: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        for start, end in _cuts(live, target):
            yield places[start:end]

    return _by_partition(chosen, cut)


def whole_partitions(files: CandidateFiles) -> list[list[pa.Table]]:
    """Returns, for each partition, one bin with all its files."""
    return _by_partition(files, lambda live, places: iter([places]))


def _cuts(live: npt.NDArray[np.int64], target: int) -> Iterator[tuple[int, int]]:
    """Yields (start, end) of runs of adjacent files with a sum of at most `target`; a larger file is a run of
    its own. With the target 10, [4, 5, 3, 20, 1] gives (0, 2), (2, 3), (3, 4), (4, 5)."""
    total = np.cumsum(live)
    start = 0
    while start < len(live):
        before = total[start - 1] if start else 0
        end = max(int(np.searchsorted(total, before + target, side="right")), start + 1)
        yield start, end
        start = end


Cut = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Iterator[npt.NDArray[np.int64]]]


def _by_partition(files: CandidateFiles, cut: Cut) -> list[list[pa.Table]]:
    """Divides the files of each partition into bins. `cut`: (live sizes, indexes of the files) -> the indexes
    of each bin."""
    order = np.argsort(files.partition, kind="stable")
    edges = np.flatnonzero(np.diff(files.partition[order])) + 1
    partitions = []
    for places in np.split(order, edges) if len(order) else []:
        bins = [files.files.take(pa.array(chosen)) for chosen in cut(files.live[places], places)]
        if bins:
            partitions.append(bins)
    return partitions
