"""`DeletionVector` as a value: Python sets are the oracle, and the protocol's documents have the expected
bytes."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterable

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic import DeletionVector
from deltaic._core import set_vector_limit, z85_decode, z85_encode
from deltaic.errors import InvalidArgumentError, InvalidTypeError, ProtocolError

MAX_ROW = 2**63 - 1
HLD_INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


def naive_decode(data: bytes) -> set[int]:
    """PROTOCOL.md, "Deletion Vector Format", and the RoaringFormatSpec, read once from top to bottom, nothing
    checked."""
    stream = io.BytesIO(data)

    def read(form: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, stream.read(struct.calcsize("<" + form)))

    rows = set()
    (magic, bitmaps) = read("IQ")
    assert magic == 1681511377
    for _ in range(bitmaps):
        (high, cookie) = read("II")
        has_runs = cookie != 12346
        count = (cookie >> 16) + 1 if has_runs else read("I")[0]
        flags = int.from_bytes(stream.read((count + 7) // 8), "little") if has_runs else 0
        containers = [read("HH") for _ in range(count)]
        if not has_runs or count >= 4:
            read("I" * count)
        for i, (key, less_one) in enumerate(containers):
            if flags >> i & 1:
                runs = [read("HH") for _ in range(*read("H"))]
                low = {row for first, length in runs for row in range(first, first + length + 1)}
            elif less_one < 4096:
                low = set(read("H" * (less_one + 1)))
            else:
                bits = int.from_bytes(stream.read(8192), "little")
                low = {row for row in range(65536) if bits >> row & 1}
            rows |= {high << 32 | key << 16 | row for row in low}
    return rows


def runs(first: st.SearchStrategy[int], longest: int) -> st.SearchStrategy[range]:
    return st.builds(
        lambda start, length, step: range(start, start + length * step, step),
        first,
        st.integers(0, longest),
        st.integers(1, 3),
    )


def row_sets(longest: int = 6000) -> st.SearchStrategy[set[int]]:
    """Few rows and many, runs, several containers and bitmaps."""
    near = st.one_of(st.integers(0, 300), st.integers(65_000, 66_000), st.integers(2**32 - 50, 2**32 + 50))
    return st.lists(runs(near, longest), max_size=4).map(
        lambda parts: {row for part in parts for row in part}
    )


def test_inline_of_the_design_document() -> None:
    """Deletion Vectors High Level Design, JSON 3: 44 bytes, one bitmap with key 0; the rewrite is the same to
    the byte."""
    vector = DeletionVector.from_inline(HLD_INLINE)
    assert list(vector) == [3, 4, 7, 11, 18, 29]
    assert len(vector.to_bytes()) == 44
    assert struct.unpack("<I", vector.to_bytes()[:4]) == (1681511377,)
    assert vector.to_inline() == HLD_INLINE
    assert naive_decode(vector.to_bytes()) == set(vector)


def test_older_format_is_refused_by_name() -> None:
    """The 40 bytes that circulate in examples: big-endian, with the older magic."""
    with pytest.raises(ProtocolError, match="older format 1681511376, in big-endian order"):
        DeletionVector.from_inline("wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")


@settings(max_examples=60, deadline=None)
@given(row_sets())
def test_round_trip(rows: set[int]) -> None:
    vector = DeletionVector.from_rows(rows)
    assert naive_decode(vector.to_bytes()) == rows
    assert (
        DeletionVector.from_bytes(vector.to_bytes())
        == vector
        == DeletionVector.from_inline(vector.to_inline())
    )
    assert vector.rows().to_pylist() == list(vector) == sorted(rows)
    assert vector.rows().type == pa.uint64()
    assert len(vector) == vector.cardinality == len(rows)
    assert bool(vector) == bool(rows)
    assert pickle.loads(pickle.dumps(vector)) == vector


@settings(max_examples=60, deadline=None)
@given(row_sets(), row_sets())
def test_algebra(a: set[int], b: set[int]) -> None:
    x, y = DeletionVector.from_rows(a), DeletionVector.from_rows(b)
    assert set(x | y) == a | b
    assert set(x & y) == a & b
    assert set(x - y) == a - b
    assert (x == y) == (a == b)
    assert x | y == y | x
    assert hash(x | y) == hash(y | x) == hash(DeletionVector.from_bytes((x | y).to_bytes()))
    assert (x - y) | (x & y) == x


def test_other_types() -> None:
    vector = DeletionVector.from_rows([1])
    assert vector != {1}
    assert vector != 1
    with pytest.raises(TypeError):
        vector | {1}  # type: ignore[operator]


@pytest.mark.parametrize(
    "rows",
    [
        [9, 1, 9, 2**40],
        iter([9, 1, 2**40]),
        {9, 1, 2**40},
        pa.array([9, 1, 2**40]),
        pa.chunked_array([[9, 1], [], [2**40]]),
        pl.Series([9, 1, 2**40]),
        pd.Series([9, 1, 2**40]),
        pd.Series([9, 1, 2**40]).to_numpy(),
        pa.array([9, 1, 2**40], pa.uint64()),
    ],
    ids=lambda rows: type(rows).__module__,
)
def test_rows_from_anywhere(rows: Iterable[int]) -> None:
    assert list(DeletionVector.from_rows(rows)) == [1, 9, 2**40]


def test_no_rows() -> None:
    for rows in ([], pa.array([], pa.int64()), pa.nulls(0), pa.chunked_array([], pa.int8())):
        vector = DeletionVector.from_rows(rows)
        assert not vector
        assert list(vector) == []
        assert DeletionVector.from_bytes(vector.to_bytes()) == vector


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1, -1], "row index is out of range; found -1; expected 0 to 9223372036854775807"),
        ([2**63], "row index is too large"),
        ([2**64], "out of range"),
        (pa.array([1, -1]), "row index is negative"),
        (pa.array([1, None]), "row index is null; found 1 nulls"),
        (pa.array(["1"]), "row indexes are not integers; found Utf8"),
        (pa.array([1.0]), "row indexes are not integers; found Float64"),
    ],
)
def test_rows_that_are_none(rows: Iterable[int], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        DeletionVector.from_rows(rows)
    assert message in str(error.value)


def test_arguments_of_another_type() -> None:
    for wrong in (["1"], [1.5], 7, None):
        with pytest.raises(InvalidTypeError, match="expected Arrow integers or an iterable of int"):
            DeletionVector.from_rows(wrong)
    with pytest.raises(InvalidTypeError, match="no Arrow data; found list"):
        DeletionVector.from_rows([1]).filter([1])


def test_contains() -> None:
    vector = DeletionVector.from_rows([3, MAX_ROW])
    assert 3 in vector
    assert MAX_ROW in vector
    for other in (4, -1, 2**64, "3", None, 3.5):
        assert other not in vector


def test_shown() -> None:
    assert repr(DeletionVector.from_rows([5, 3])) == "DeletionVector(2 rows from 3 to 5)"
    assert repr(DeletionVector.from_rows([])) == "DeletionVector(no rows)"


@settings(max_examples=60, deadline=None)
@given(row_sets(), st.one_of(st.integers(0, 70_000), st.integers(2**32 - 60, 2**32)), st.integers(0, 700))
def test_mask(rows: set[int], first_row: int, count: int) -> None:
    mask = DeletionVector.from_rows(rows).mask(first_row, count)
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == [row not in rows for row in range(first_row, first_row + count)]


def test_mask_that_does_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match="mask does not fit into memory"):
        DeletionVector.from_rows([1]).mask(0, 2**63)


TABLE = pa.table(
    {"row": range(100, 120), "text": [f"t{i}" for i in range(20)], "lists": [[i, None] for i in range(20)]}
)


@settings(deadline=None)
@given(st.sets(st.integers(90, 130)), st.integers(0, 110), st.integers(1, 20))
def test_filter(rows: set[int], first_row: int, chunk: int) -> None:
    vector = DeletionVector.from_rows(rows)
    kept = vector.filter(pa.Table.from_batches(TABLE.to_batches(chunk)), first_row)
    assert isinstance(kept, pa.Table)
    assert kept.equals(TABLE.take(pa.array([i for i in range(20) if first_row + i not in rows], pa.int64())))


@pytest.mark.parametrize(
    "data",
    [TABLE, TABLE.to_batches()[0], TABLE.to_pandas(), pl.from_arrow(TABLE), TABLE.to_reader()],
    ids=["table", "batch", "pandas", "polars", "reader"],
)
def test_filter_of_any_arrow_data(data: object) -> None:
    kept = DeletionVector.from_rows([0, 100, 105]).filter(data, 100)
    assert isinstance(kept, pa.RecordBatch) == isinstance(data, pa.RecordBatch)
    assert kept.column("row").to_pylist() == [row for row in range(100, 120) if row not in (100, 105)]


def test_filter_of_no_data() -> None:
    kept = DeletionVector.from_rows([1]).filter(TABLE.slice(0, 0))
    assert kept.equals(TABLE.slice(0, 0))


def test_filter_of_a_failing_stream() -> None:
    def batches() -> Iterable[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise RuntimeError("lost")

    with pytest.raises(Exception, match="lost"):
        DeletionVector.from_rows([1]).filter(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))


VALID = [
    DeletionVector.from_rows([3, 4, 7, 11, 18, 29]).to_bytes(),
    DeletionVector.from_rows([*range(100_000), *range(2**32, 2**32 + 20_000, 3)]).to_bytes(),
    DeletionVector.from_rows(range(0, 600_000, 2)).to_bytes(),
]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(VALID),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 300),
)
def test_changed_bytes(data: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    """Refused by name, or read exactly by the rules of the format."""
    changed = bytearray(data)
    for at, byte in changes:
        changed[at % len(data)] = byte
    changed = changed[: len(changed) - cut] if cut < 20 else changed
    try:
        vector = DeletionVector.from_bytes(bytes(changed))
    except ProtocolError:
        return
    assert set(vector) == naive_decode(bytes(changed))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for made in (DeletionVector.from_bytes, lambda data: DeletionVector.from_inline(z85_encode(data))):
        try:
            vector = made(struct.pack("<I", 1681511377) + data)
        except ProtocolError:
            continue
        assert vector.cardinality < 2**32


def test_inline_shorter_than_its_magic() -> None:
    """The empty text and a few letters, which made another reader panic."""
    for text in ("", "00000", z85_encode(b"\xd1\xd3\x39")):
        with pytest.raises(ProtocolError, match="deletion vector"):
            DeletionVector.from_inline(text)
    with pytest.raises(ProtocolError, match="outside the alphabet"):
        DeletionVector.from_inline(HLD_INLINE[:-1] + "~")
    with pytest.raises(ProtocolError, match="goes on after its last bitmap"):
        DeletionVector.from_inline(HLD_INLINE + "00000")
    assert z85_decode(HLD_INLINE)[:4] == struct.pack("<I", 1681511377)


def bomb(cardinality: int) -> bytes:
    """65,536 full run containers in 0.9 MB, each of which declares `cardinality` rows."""
    count = 65536
    header = struct.pack("<IQIHH", 1681511377, 1, 0, 12347, count - 1) + b"\xff" * (count // 8)
    descriptions = b"".join(struct.pack("<HH", key, cardinality - 1) for key in range(count))
    first = 4 + count // 8 + 8 * count
    offsets = b"".join(struct.pack("<I", first + 6 * i) for i in range(count))
    return header + descriptions + offsets + struct.pack("<HHH", 1, 0, 65535) * count


def test_a_bomb_that_lies() -> None:
    with pytest.raises(ProtocolError, match="found 65536 rows; expected 1 rows"):
        DeletionVector.from_bytes(bomb(1))


def test_a_bomb_that_does_not_lie_stays_small() -> None:
    """2³² rows are a set like any other, unless they are listed one by one: checked in a process with 64 MiB
    more than it starts with."""
    script = (
        "import resource, sys, pyarrow, deltaic\n"
        "pyarrow.array([True]); deltaic.DeletionVector.from_rows([1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "vector = deltaic.DeletionVector.from_bytes(sys.stdin.buffer.read())\n"
        "assert vector.cardinality == 2**32 and (vector | vector) == vector and hash(vector)\n"
        "assert not any(vector.mask(2**31, 1000).to_pylist())\n"
        "assert next(iter(vector)) == 0\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], input=bomb(65536), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) < 64


def test_limit() -> None:
    before = set_vector_limit(43)
    try:
        with pytest.raises(
            ProtocolError,
            match="larger than the limit for vectors; found 44 bytes; expected at most 43 bytes",
        ):
            DeletionVector.from_inline(HLD_INLINE)
    finally:
        assert set_vector_limit(before) == 43
    assert before == 64 << 20


def test_filter_of_a_slice_that_arrow_rs_cannot_take_in() -> None:
    batch = pa.record_batch({"s": [{"a": {"b": row}} for row in range(10)]})
    rows = DeletionVector.from_rows([1])
    with pytest.raises(InvalidArgumentError, match="slice of structs within structs"):
        rows.filter(batch.slice(3, 5))
    whole = batch.slice(3, 5).take(pa.array(range(5)))
    assert [row["s"]["a"]["b"] for row in rows.filter(whole).to_pylist()] == [3, 5, 6, 7]


@pytest.mark.parametrize("rows", [range(65_536), range(10, 200_000), range(65_536, 131_073)])
def test_runs_that_fill_whole_chunks(rows: range) -> None:
    vector = DeletionVector.from_rows(pa.array(rows, pa.uint64()))
    for again in (vector, DeletionVector.from_bytes(vector.to_bytes())):
        mask = again.mask(0, 210_000)
        assert mask.false_count == len(rows)
        assert not mask[rows[0]].as_py()
        assert not mask[rows[-1]].as_py()
        assert mask[rows[-1] + 1].as_py()
