"""`mark_deleted`: merges the rows that a command found into vectors in files, and makes the actions that add
these."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic import DeletionVector
from deltaic._core import (
    MarkedFiles,
    RowIds,
    Store,
    crc32,
    empty_adds,
    mark_deleted,
    read_deletion_vector,
    z85_encode,
)
from deltaic.errors import InvalidArgumentError, ProtocolError

ROW_IDS = pa.schema([("__deltaic_file", pa.int32()), ("__deltaic_row", pa.int64())])


def add(path: str, num_records: int | None = 1000, **more: Any) -> dict[str, Any]:
    stats = (
        None
        if num_records is None
        else json.dumps({"numRecords": num_records, "nullCount": {"a": 0}, "tightBounds": True})
    )
    return {
        "path": path,
        "partitionValues": [("p", "1")],
        "size": 10,
        "modificationTime": 7,
        "dataChange": False,
        "stats": stats,
        **more,
    }


def table(*adds: Mapping[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in adds], empty_adds().schema)


def row_ids(rows: Mapping[int, Iterable[int]]) -> RowIds:
    pairs = [(file, row) for file, of_file in rows.items() for row in of_file]
    return RowIds.collect(pa.table([[file for file, _ in pairs], [row for _, row in pairs]], schema=ROW_IDS))


def mark(store: Store, files: pa.Table, rows: Mapping[int, Iterable[int]], **options: Any) -> MarkedFiles:
    return mark_deleted(store, files, row_ids(rows), deletion_timestamp=123, **options)


def read(store: Store, vector: Mapping[str, Any]) -> set[int]:
    descriptor = (
        vector[name] for name in ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
    )
    return set(read_deletion_vector(store, *descriptor))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


def test_first_vectors(store: Store, tmp_path: Path) -> None:
    tags = {
        "tags": [("t", "1")],
        "baseRowId": 5,
        "defaultRowCommitVersion": 6,
        "clusteringProvider": "liquid",
    }
    files = table(add("a", **tags), add("b"), add("c"))
    marked = mark(store, files, {0: [3, 1], 2: [7]})
    adds, removes = marked.adds.to_pylist(), marked.removes.to_pylist()
    assert marked.adds.schema == empty_adds().schema
    assert [row["path"] for row in adds] == [row["path"] for row in removes] == ["a", "c"]
    assert [read(store, row["deletionVector"]) for row in adds] == [{1, 3}, {7}]
    for name in (
        "path",
        "partitionValues",
        "size",
        "modificationTime",
        "tags",
        "baseRowId",
        "defaultRowCommitVersion",
        "clusteringProvider",
    ):
        assert [row[name] for row in adds] == files.take([0, 2])[name].to_pylist()
    assert [row["dataChange"] for row in adds + removes] == [True] * 4
    for row in adds:
        assert json.loads(row["stats"]) == {"numRecords": 1000, "nullCount": {"a": 0}, "tightBounds": False}
    for row in removes:
        assert (
            row["deletionTimestamp"],
            row["extendedFileMetadata"],
            row["size"],
            row["deletionVector"],
        ) == (123, True, 10, None)
        assert row["partitionValues"] == [("p", "1")]
    assert (removes[0]["baseRowId"], removes[0]["defaultRowCommitVersion"]) == (5, 6)
    (path,) = marked.written
    assert re.fullmatch(r"deletion_vector_[0-9a-f-]{36}\.bin", path)
    assert marked.metrics == {
        "num_deleted_rows": 3,
        "num_deletion_vectors_added": 2,
        "num_deletion_vectors_removed": 0,
        "num_deletion_vectors_updated": 0,
        "num_removed_files": 0,
        "num_bytes_written": (tmp_path / path).stat().st_size,
    }


def test_the_bytes_of_a_file(store: Store, tmp_path: Path) -> None:
    """PROTOCOL.md, "Deletion Vector File Storage Format"; two vectors, the second not at offset 1."""
    marked = mark(store, table(add("a"), add("b")), {0: [1], 1: [2, 3]})
    data = (tmp_path / marked.written[0]).read_bytes()
    assert data[0] == 1
    vectors = [row["deletionVector"] for row in marked.adds.to_pylist()]
    assert [vector["offset"] for vector in vectors] == [1, 43]
    assert len(data) == 43 + 4 + 36 + 4
    for vector, rows in zip(vectors, ([1], [2, 3]), strict=True):
        at, size = vector["offset"], vector["sizeInBytes"]
        assert int.from_bytes(data[at : at + 4], "big") == size
        body = data[at + 4 : at + 4 + size]
        assert body == DeletionVector.from_rows(rows).to_bytes()
        assert int.from_bytes(data[at + 4 + size : at + 8 + size], "big") == crc32(body)
        assert vector["storageType"] == "u"
        assert len(vector["pathOrInlineDv"]) == 20


def test_design_document_steps(store: Store) -> None:
    """Deletion Vectors High Level Design, steps 2 and 3: rows 24 and 42 of a, then rows 300 to 800."""
    first = mark(store, table(add("a"), add("b")), {0: [24, 42]})
    assert first.adds["deletionVector"].to_pylist()[0]["cardinality"] == 2
    second = mark(store, first.adds, {0: range(300, 801)})
    (vector,) = second.adds["deletionVector"].to_pylist()
    assert vector["cardinality"] == 503
    assert read(store, vector) == {24, 42, *range(300, 801)}
    assert second.removes["deletionVector"].to_pylist() == first.adds["deletionVector"].to_pylist()


def test_a_row_deleted_already_counts_once(store: Store) -> None:
    first = mark(store, table(add("a"), add("b")), {0: [1, 2], 1: [1]})
    second = mark(store, first.adds, {0: [2, 3], 1: [1]})
    assert second.adds["path"].to_pylist() == second.removes["path"].to_pylist() == ["a"]
    assert read(store, second.adds["deletionVector"][0].as_py()) == {1, 2, 3}
    counts = [
        "num_deleted_rows",
        *(f"num_deletion_vectors_{what}" for what in ("added", "removed", "updated")),
    ]
    assert [second.metrics[name] for name in counts] == [1, 1, 1, 1]
    nothing = mark(store, first.adds, {1: [1]})
    assert (nothing.adds.num_rows, nothing.removes.num_rows, nothing.written) == (0, 0, [])
    assert set(nothing.metrics.values()) == {0}


def test_files_with_no_row_left(store: Store) -> None:
    """Only a remove; with a vector before, that one counts as removed."""
    first = mark(store, table(add("a", 3), add("b", 3)), {0: [1]})
    files = pa.concat_tables([first.adds, table(add("b", 3))])
    marked = mark(store, files, {0: [0, 2], 1: range(3)})
    assert marked.adds.num_rows == 0
    assert marked.removes["path"].to_pylist() == ["a", "b"]
    assert marked.removes["deletionVector"].to_pylist() == [first.adds["deletionVector"][0].as_py(), None]
    assert marked.written == []
    assert {name: count for name, count in marked.metrics.items() if count} == {
        "num_deleted_rows": 5,
        "num_removed_files": 2,
        "num_deletion_vectors_removed": 1,
    }


def test_files_by_ordinal(store: Store) -> None:
    files = table(add("a"), add("b")).append_column("__deltaic_file", pa.array([7, 3], pa.int32()))
    marked = mark(store, files, {3: [5]})
    assert marked.adds["path"].to_pylist() == ["b"]
    with pytest.raises(InvalidArgumentError, match="rows do not belong to these files"):
        mark(store, files, {0: [5]})


@pytest.mark.parametrize("stats", [None, "", '{"minValues":{"a":12345678901234567890.123456789}}'])
def test_rows_from_the_footer(store: Store, tmp_path: Path, stats: str | None) -> None:
    pq.write_table(pa.table({"a": range(5)}), tmp_path / "a b.parquet")
    files = table(add("a%20b.parquet", None, stats=stats))
    marked = mark(store, files, {0: [4]})
    written = marked.adds["stats"][0].as_py()
    assert json.loads(written)["numRecords"] == 5
    assert json.loads(written)["tightBounds"] is False
    assert ("12345678901234567890.123456789" in written) == bool(stats)
    assert mark(store, files, {0: range(5)}).adds.num_rows == 0
    with pytest.raises(
        ProtocolError, match=r"a%20b.parquet: data file has fewer rows .* found row 5; expected rows below 5"
    ):
        mark(store, files, {0: [5]})


def test_null_counts_of_tight_statistics(store: Store) -> None:
    """A column null in all live rows stays "all null" once the bounds are wide."""
    first = mark(store, table(add("a", 10)), {0: [0, 1]}).adds.to_pylist()[0]
    tight = {"numRecords": 10, "nullCount": {"all": 8, "some": 3, "s": {"x": 8}}, "tightBounds": True}
    (again,) = mark(store, table({**first, "stats": json.dumps(tight)}), {0: [2]}).adds["stats"].to_pylist()
    assert json.loads(again) == {
        "numRecords": 10,
        "nullCount": {"all": 10, "some": 3, "s": {"x": 10}},
        "tightBounds": False,
    }


def test_inline(store: Store, tmp_path: Path) -> None:
    marked = mark(store, table(add("a")), {0: [3, 4, 7, 11, 18, 29]}, inline=True)
    assert marked.adds["deletionVector"].to_pylist() == [
        {
            "storageType": "i",
            "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "offset": None,
            "sizeInBytes": 44,
            "cardinality": 6,
        }
    ]
    assert (marked.written, list(tmp_path.iterdir())) == ([], [])
    again = mark(store, marked.adds, {0: [1]})
    assert read(store, again.adds["deletionVector"][0].as_py()) == {1, 3, 4, 7, 11, 18, 29}


def test_random_prefixes(store: Store, tmp_path: Path) -> None:
    marked = mark(store, table(add("a"), add("b")), {0: [1], 1: [1]}, prefix_length=2, target_size=1)
    assert len(marked.written) == 2
    for path, vector in zip(marked.written, marked.adds["deletionVector"].to_pylist(), strict=True):
        assert re.fullmatch(r"[A-Za-z0-9]{2}/deletion_vector_[0-9a-f-]{36}\.bin", path)
        assert vector["pathOrInlineDv"][:2] == path[:2]
        assert read(store, vector) == {1}


def test_broken_vectors(store: Store, tmp_path: Path) -> None:
    """What cannot be read leaves nothing written."""
    first = mark(store, table(add("a"), add("b")), {0: [1], 1: [2]})
    path = tmp_path / first.written[0]
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    with pytest.raises(ProtocolError, match=r"\.bin, offset 43: deletion vector has a wrong CRC-32"):
        mark(store, first.adds, {0: [5], 1: [5]})
    assert mark(store, first.adds, {0: [5]}).adds.num_rows == 1
    path.unlink()
    with pytest.raises(ProtocolError, match=r"\.bin: a file that the log names is not there"):
        mark(store, first.adds, {0: [5]})
    assert len(list(tmp_path.iterdir())) == 1


def test_vectors_that_lie(store: Store) -> None:
    inline = DeletionVector.from_rows([2000]).to_bytes()
    lie = {
        "storageType": "i",
        "pathOrInlineDv": z85_encode(inline),
        "offset": None,
        "sizeInBytes": len(inline),
        "cardinality": 1,
    }
    with pytest.raises(
        ProtocolError, match="a row that its data file lacks; found row 2000; expected rows below 1000"
    ):
        mark(store, table(add("a", deletionVector=lie)), {0: [5]})
    with pytest.raises(ProtocolError, match="cardinality"):
        mark(store, table(add("a", 5000, deletionVector={**lie, "cardinality": 2})), {0: [5]})
    with pytest.raises(ProtocolError, match="unknown storage type"):
        mark(store, table(add("a", 5000, deletionVector={**lie, "storageType": "x"})), {0: [5]})
    with pytest.raises(ProtocolError, match="statistics of a file are no JSON object"):
        mark(store, table(add("a", stats="[1")), {0: [5]})


def test_one_row_of_a_large_file_costs_a_few_bytes(store: Store) -> None:
    marked = mark(store, table(add("a", 4_000_000)), {0: [2_345_678]})
    assert marked.metrics["num_bytes_written"] == 43


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 3), st.sets(st.integers(0, 49), min_size=1), min_size=1),
        min_size=1,
        max_size=5,
    )
)
def test_many_changes(changes: list[dict[int, set[int]]]) -> None:
    """Sets in Python are the oracle."""
    store = Store("memory://many_changes")
    live = {f"f{i}": (add(f"f{i}", 50), set[int]()) for i in range(4)}
    for change in changes:
        names = sorted(live)
        rows = {i: change[i] for i in range(len(names)) if i in change}
        marked = mark(store, table(*(live[name][0] for name in names)), rows)
        deleted = 0
        for i, new in rows.items():
            deleted += len(new - live[names[i]][1])
            live[names[i]] = (live[names[i]][0], live[names[i]][1] | new)
        assert marked.metrics["num_deleted_rows"] == deleted
        for row in marked.adds.to_pylist():
            live[row["path"]] = (row, live[row["path"]][1])
        gone = set(marked.removes["path"].to_pylist()) - set(marked.adds["path"].to_pylist())
        assert gone == {name for name, (_, rows) in live.items() if len(rows) == 50}
        live = {name: file for name, file in live.items() if name not in gone}
        for row, rows in live.values():
            assert (read(store, row["deletionVector"]) if "deletionVector" in row else set()) == rows
