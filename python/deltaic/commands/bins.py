"""Which files OPTIMIZE rewrites together: pure functions on Arrow tables of file actions, without a step per file in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core

DELETED_SHARE = 0.05
"""Files with more of their rows deleted are rewritten, also alone and also large ones."""


@dataclass(frozen=True, eq=False)
class CandidateFiles:
    """Files that OPTIMIZE may select. `size`: bytes of each file; `live`: bytes that its live rows take, by their share of all rows;
    `partition`: a number for each file, equal for files of one partition."""

    files: pa.Table
    size: npt.NDArray[np.int64]
    live: npt.NDArray[np.int64]
    deleted_share: npt.NDArray[np.float64]
    has_vector: npt.NDArray[np.bool_]
    partition: npt.NDArray[np.int64]

    def only(self, mask: npt.NDArray[np.bool_]) -> CandidateFiles:
        kept = self.files.filter(pa.array(mask))
        return CandidateFiles(kept, self.size[mask], self.live[mask], self.deleted_share[mask], self.has_vector[mask], self.partition[mask])


def measure(files: pa.Table, partition_keys: Sequence[str]) -> CandidateFiles:
    """`files`: add actions. `partition_keys`: physical names of the partition columns. A file without numRecords counts as wholly live."""
    size = _numbers(files["size"])
    records = _numbers(pa.chunked_array([_core.physical_rows(files)]))
    deleted = _numbers(pc.struct_field(files["deletionVector"], "cardinality"))
    share = np.where(records > 0, deleted / np.maximum(records, 1), 0.0)
    live = (size * (1.0 - share)).astype(np.int64)
    vector = np.asarray(pc.is_valid(files["deletionVector"]).combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return CandidateFiles(files, size, live, share, vector, _partition_numbers(files, partition_keys))


def _numbers(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    filled = pc.fill_null(pc.cast(values, pa.int64()), 0)
    return np.asarray(filled.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.int64)


def _partition_numbers(files: pa.Table, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    numbers = np.zeros(files.num_rows, dtype=np.int64)
    values = files["partitionValues"]
    for key in keys:
        found = pc.map_lookup(values.combine_chunks(), key, "first")
        codes = found.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Numbered anew after each key: the product of the counts would not fit.
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return numbers


def worth_compacting(files: CandidateFiles, target: int) -> npt.NDArray[np.bool_]:
    """Small files, files whose live rows are small, and files with many deleted rows."""
    return np.asarray((files.size < target / 2) | (files.live < target / 2) | _often_deleted(files), dtype=np.bool_)


def _often_deleted(files: CandidateFiles) -> npt.NDArray[np.bool_]:
    return np.asarray(files.deleted_share > DELETED_SHARE, dtype=np.bool_)


def compaction_bins(files: CandidateFiles, target: int) -> list[list[pa.Table]]:
    """For each partition, bins of neighbouring candidates whose live rows together make about one file of `target` bytes. A bin of a
    single file is none, unless many of its rows are deleted."""
    chosen = files.only(worth_compacting(files, target))
    lone = _often_deleted(chosen)

    def cut(live: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        for start, end in _cuts(live, target):
            if end - start > 1 or lone[places[start]]:
                yield places[start:end]

    return _by_partition(chosen, cut)


def purge_bins(files: CandidateFiles, target: int, also: npt.NDArray[np.bool_] | None = None) -> list[list[pa.Table]]:
    """For each partition, bins of all files with a vector. `also`: of these files, too."""
    chosen = files.only(files.has_vector if also is None else files.has_vector | also)

    def cut(live: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        for start, end in _cuts(live, target):
            yield places[start:end]

    return _by_partition(chosen, cut)


def whole_partitions(files: CandidateFiles) -> list[list[pa.Table]]:
    """For each partition, all its files in one bin."""
    return _by_partition(files, lambda live, places: iter([places]))


def _cuts(live: npt.NDArray[np.int64], target: int) -> Iterator[tuple[int, int]]:
    """Runs of neighbours that sum up to at most `target`; a larger file is a run of its own. One step for each run."""
    total = np.cumsum(live)
    start = 0
    while start < len(live):
        before = total[start - 1] if start else 0
        end = max(int(np.searchsorted(total, before + target, side="right")), start + 1)
        yield start, end
        start = end


Cut = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Iterator[npt.NDArray[np.int64]]]


def _by_partition(files: CandidateFiles, cut: Cut) -> list[list[pa.Table]]:
    """One step for each partition: its files in their order, divided by `cut` (their live sizes, their places -> places of each bin)."""
    order = np.argsort(files.partition, kind="stable")
    edges = np.flatnonzero(np.diff(files.partition[order])) + 1
    found = []
    for places in np.split(order, edges) if len(order) else []:
        bins = [files.files.take(pa.array(chosen)) for chosen in cut(files.live[places], places)]
        if bins:
            found.append(bins)
    return found
