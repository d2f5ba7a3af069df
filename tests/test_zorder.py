"""Clustering kernels: range ids, interleaved bits, the Hilbert index, and the files that a reader can
skip."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic import errors
from deltaic._core import RangeBounds, curve_keys, hilbert_index, interleave_bits, range_ids


def int32(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def naive_interleave(row: list[int]) -> bytes:
    bits = "".join(str(value >> place & 1) for place in reversed(range(32)) for value in row)
    return int(bits, 2).to_bytes(4 * len(row), "big")


@given(
    st.integers(1, 10).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 2**31 - 1), min_size=k, max_size=k), min_size=1, max_size=5
        )
    )
)
def test_interleave_is_the_bits_in_turn(rows: list[list[int]]) -> None:
    columns = [int32(*column) for column in zip(*rows, strict=True)]
    assert interleave_bits(columns).to_pylist() == [naive_interleave(row) for row in rows]


def test_interleave_example_of_a_walk_through_deltas_z_order() -> None:
    key = interleave_bits([int32(214), int32(97)]).to_pylist()[0]  # y leads
    assert int.from_bytes(key, "big") == 46633 == 0b1011011000101001


def test_null_is_zero_and_negative_is_its_bits() -> None:
    assert interleave_bits([int32(None, -1)]).to_pylist() == [bytes(4), b"\xff" * 4]


@pytest.mark.parametrize(
    ("columns", "part"),
    [([pa.array([1], pa.int64())], "Int64"), ([int32(1), int32(1, 2)], "different lengths")],
)
def test_columns_that_do_not_fit_are_refused(columns: list[pa.Array], part: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=part):
        interleave_bits(columns)


def test_hilbert_refuses_coordinates_outside_the_grid() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="8 in 3 bits"):
        hilbert_index([int32(8)], 3)
    with pytest.raises(errors.InvalidArgumentError, match="0 bits"):
        hilbert_index([int32(0)], 0)


def test_range_ids_count_the_boundaries_below() -> None:
    assert range_ids(int32(None, 0, 10, 11, 30), int32(10, 20, 20)).to_pylist() == [0, 0, 0, 1, 3]
    with pytest.raises(errors.InvalidArgumentError, match="different types"):
        range_ids(int32(1), pa.array(["a"]))


def reader(table: pa.Table) -> pa.RecordBatchReader:
    return table.to_reader(max_chunksize=10_000)


def grid_files(curve: str) -> int:
    """Returns the number of files that a query on x = 2 reads plus those on y = 2: an 8 x 8 grid in 16 files
    of 4."""
    cells = [(x, y) for x in range(8) for y in range(8)]
    if curve == "linear":
        order = sorted(range(64), key=lambda i: cells[i])
    else:
        keys = interleave_bits([int32(*(x for x, _ in cells)), int32(*(y for _, y in cells))]).to_pylist()
        order = sorted(range(64), key=keys.__getitem__)
    files = [[cells[i] for i in order[start : start + 4]] for start in range(0, 64, 4)]
    hits = 0
    for file in files:
        xs, ys = [x for x, _ in file], [y for _, y in file]
        hits += (min(xs) <= 2 <= max(xs)) or (min(ys) <= 2 <= max(ys))
    return hits


def test_a_walk_through_deltas_z_order_reads_7_files_where_a_sort_reads_9() -> None:
    assert (grid_files("linear"), grid_files("zorder")) == (9, 7)


def skipped(curve: str) -> np.ndarray:
    """Returns the share of 100 files that a point query skips, for each of 4 uniform fields over 1 M rows
    (VLDB 2020, figure 5)."""
    random = np.random.default_rng(1)
    table = pa.table({f"c{i}": random.integers(0, 2**40, 1_000_000) for i in range(4)})
    names = table.column_names
    bounds = RangeBounds.sample(reader(table), names, ranges=1000, sample_size=100_000, seed=3)
    keyed = pa.table(curve_keys(reader(table), bounds, curve))
    keyed = keyed.take(pc.sort_indices(keyed["__deltaic_key"]))
    probes = random.integers(0, 2**40, 200)
    shares = []
    for name in names:
        files = keyed[name].to_numpy().reshape(100, -1)
        low, high = files.min(axis=1), files.max(axis=1)
        shares.append(np.mean([(probe < low) | (probe > high) for probe in probes]))
    return np.array(shares)


@pytest.mark.parametrize(("curve", "mean", "worst"), [("zorder", 0.54, 0.43), ("hilbert", 0.60, 0.57)])
def test_files_skipped_on_four_uniform_fields(curve: str, mean: float, worst: float) -> None:
    shares = skipped(curve)
    assert shares.mean() >= mean, shares
    assert shares.min() >= worst, shares


def test_keys_are_bytes_where_they_do_not_fit_a_number() -> None:
    table = pa.table({f"c{i}": pa.array([3, 1, 2], pa.int32()) for i in range(40)})
    bounds = RangeBounds.sample(reader(table), table.column_names, ranges=4)
    keys = pa.table(curve_keys(reader(table), bounds, "zorder"))["__deltaic_key"].combine_chunks()
    assert pa.types.is_binary(keys.type)
    assert pc.sort_indices(keys).to_pylist() == [1, 2, 0]
    with pytest.raises(errors.InvalidArgumentError, match="zorder or hilbert"):
        curve_keys(reader(table), bounds, "peano")
    with pytest.raises(errors.InvalidArgumentError, match="nope"):
        RangeBounds.sample(reader(table), ["nope"])
