"""`RowIds`: pairs of file ordinal and row index, gathered into one bitmap per file."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic import DeletionVector
from deltaic._core import RowIds
from deltaic.errors import InvalidArgumentError, InvalidTypeError, MergeCardinalityError

SCHEMA = pa.schema([("__deltaic_file", pa.int32()), ("__deltaic_row", pa.int64())])
FILES = pa.table({"path": ["a", "b", "c"], "size": [1, 2, 3]})


def pairs(*of: tuple[int, int]) -> pa.Table:
    return pa.table(
        {"__deltaic_file": [file for file, _ in of], "__deltaic_row": [row for _, row in of]}, SCHEMA
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(st.integers(0, 300), st.integers(65_000, 66_000))), min_size=1
    ),
    st.integers(1, 40),
)
def test_collect_and_select(of: list[tuple[int, int]], chunk: int) -> None:
    rows = RowIds.collect(pa.Table.from_batches(pairs(*of).to_batches(chunk), SCHEMA))
    assert len(rows) == len(set(of))
    touched = sorted({file for file, _ in of})
    assert rows.file_count == len(touched)
    selected = rows.select(FILES)
    assert selected["path"].to_pylist() == [FILES["path"][file].as_py() for file in touched]
    assert selected["__deltaic_file"].to_pylist() == touched
    assert selected["keep_selected"].to_pylist() == [True] * len(touched)
    for file, bitmap in zip(touched, selected["selection"].to_pylist(), strict=True):
        assert list(DeletionVector.from_bytes(bitmap)) == sorted({row for at, row in of if at == file})
    assert rows.select(FILES, keep_selected=False)["keep_selected"].to_pylist() == [False] * len(touched)


def test_pairs_that_come_twice() -> None:
    assert len(RowIds.collect(pairs((0, 5), (1, 5), (0, 6)), unique=True)) == 3
    shuffled = [(file, row) for file in range(3) for row in range(5000)] + [(2, 4321)]
    random.Random(1).shuffle(shuffled)
    stream = pa.Table.from_batches(pairs(*shuffled).to_batches(700), SCHEMA).to_reader()
    with pytest.raises(MergeCardinalityError, match="same target row; found row 4321 of file 2"):
        RowIds.collect(stream, unique=True)


def test_bitmaps_of_parts() -> None:
    """Parts gathered in different places are together what one place would have gathered."""
    of = [(file, row * row % 70_001) for file in range(3) for row in range(900)]
    whole = RowIds.collect(pairs(*of))
    parts = [RowIds.collect(pairs(*of[start::4])).bitmaps() for start in range(4)]
    assert parts[0].schema.names == ["__deltaic_file", "__deltaic_bitmap", "__deltaic_count"]
    together = RowIds.of_bitmaps(pa.concat_tables(parts))
    assert (len(together), together.file_count) == (len(whole), 3)
    assert together.select(FILES).equals(whole.select(FILES))
    assert together.bitmaps().equals(whole.bitmaps())
    assert len(RowIds.of_bitmaps(RowIds.collect(pairs((0, 1), (2, 1))).bitmaps(), unique=True)) == 2
    for twice in ([(0, 1), (0, 1)], [(0, 1), (0, 2)]):
        bitmaps = pa.concat_tables(
            [RowIds.collect(pairs(*twice)).bitmaps(), RowIds.collect(pairs((0, 2))).bitmaps()]
        )
        with pytest.raises(MergeCardinalityError, match="same target row; found"):
            RowIds.of_bitmaps(bitmaps, unique=True)


def test_no_rows() -> None:
    rows = RowIds.collect(SCHEMA.empty_table())
    assert (len(rows), rows.file_count) == (0, 0)
    assert rows.select(FILES).num_rows == 0


def test_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="row id is negative; found -1"):
        RowIds.collect(pairs((0, -1)))
    with pytest.raises(InvalidArgumentError, match="rows of 1 files, of which 0 are there"):
        RowIds.collect(pairs((3, 1))).select(FILES)
    with pytest.raises(InvalidArgumentError, match="row ids lack a column; expected __deltaic_file"):
        RowIds.collect(FILES)
    with pytest.raises(InvalidTypeError, match="no Arrow data; found list"):
        RowIds.collect([(0, 1)])


def test_a_failing_stream() -> None:
    def batches() -> object:
        yield pairs((0, 1)).to_batches()[0]
        raise RuntimeError("lost")

    with pytest.raises(Exception, match="lost"):
        RowIds.collect(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
