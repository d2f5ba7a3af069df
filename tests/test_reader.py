"""Reading data files (`_core.read`). Source: PROTOCOL.md, "Deletion Vectors", "Column Mapping".

The oracle is naive: pyarrow reads each whole file, a Python set has the deleted rows, and plain Python
filters.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic import _core
from deltaic.errors import DeltaError, InvalidArgumentError, ProtocolError

ROWS = 5000
MAP = pa.map_(pa.string(), pa.string())


def schema(
    *fields: tuple[str, Any],
    partition: tuple[str, ...] = (),
    mapping: str = "none",
    metadata: dict[str, Any] | None = None,
) -> _core.TableSchema:
    made = [
        {"name": n, "type": t, "nullable": True, "metadata": (metadata or {}).get(n, {})} for n, t in fields
    ]
    return _core.TableSchema(json.dumps({"type": "struct", "fields": made}), partition, mapping)


TABLE = schema(
    ("id", "long"), ("k", "integer"), ("d", "double"), ("s", "string"), ("p", "integer"), partition=("p",)
)


def vector(rows: set[int]) -> dict[str, Any]:
    made = _core.DeletionVector.from_rows(pa.array(sorted(rows), pa.uint64()))
    return {
        "storageType": "i",
        "pathOrInlineDv": made.to_inline(),
        "offset": None,
        "sizeInBytes": len(made.to_bytes()),
        "cardinality": len(rows),
    }


def listing(root: Path, *names: str, deleted: dict[str, set[int]] | None = None, **columns: Any) -> pa.Table:
    kind = pa.struct(
        [
            ("storageType", pa.string()),
            ("pathOrInlineDv", pa.string()),
            ("offset", pa.int32()),
            ("sizeInBytes", pa.int32()),
            ("cardinality", pa.int64()),
        ]
    )
    vectors = [vector(deleted[name]) if deleted and deleted.get(name) else None for name in names]
    values: dict[str, Any] = {
        "path": list(names),
        "size": pa.array(
            [(root / name).stat().st_size if (root / name).exists() else 1 for name in names], pa.int64()
        ),
        "partitionValues": pa.array([[("p", str(number))] for number in range(len(names))], MAP),
        "deletionVector": pa.array(vectors, kind),
    }
    return pa.table({**values, **columns})


def read(
    root: Path,
    files: pa.Table,
    columns: list[str],
    predicate: Any = None,
    table: _core.TableSchema = TABLE,
    **options: Any,
) -> pa.Table:
    made = _core.Predicate.from_json(json.dumps(predicate), table) if predicate else None
    return _core.read(_core.Store(str(root)), table, files, columns, made, **options).to_table()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of different row groups and pages; the values of every column are clustered, random or with
    nulls."""
    path = tmp_path_factory.mktemp("files")
    chance = random.Random(7)
    for number, (groups, pages) in enumerate([(ROWS, 1 << 20), (777, 400), (64, 50)]):
        data = pa.table(
            {
                "id": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64()),
                "k": pa.array([chance.choice([None, *range(50)]) for _ in range(ROWS)], pa.int32()),
                "d": [
                    chance.choice([math.nan, -0.0, 0.0, None, math.inf, chance.random() * 10])
                    for _ in range(ROWS)
                ],
                "s": [chance.choice([None, "", "é" * 5, f"v{chance.randrange(300)}"]) for _ in range(ROWS)],
            }
        )
        pq.write_table(
            data,
            path / f"{number}.parquet",
            row_group_size=groups,
            data_page_size=pages,
            write_batch_size=64,
            write_page_index=True,
        )
    return path


NAMES = ("0.parquet", "1.parquet", "2.parquet")


def greater(left: float, right: float) -> bool:
    """Spark's order: NaN is greatest."""
    return (math.isnan(left) and not math.isnan(right)) or left > right


PREDICATES: list[tuple[Any, Any]] = [
    (None, lambda row: True),
    ({"op": "=", "column": ["k"], "literal": "7"}, lambda row: row["k"] == 7),
    ({"op": "<", "column": ["id"], "literal": "6001"}, lambda row: row["id"] < 6001),
    ({"op": "=", "column": ["p"], "literal": "1"}, lambda row: row["p"] == 1),
    (
        {"op": ">", "column": ["d"], "literal": "9.0"},
        lambda row: row["d"] is not None and greater(row["d"], 9.0),
    ),
    (
        {"op": "=", "column": ["d"], "literal": "NaN"},
        lambda row: row["d"] is not None and math.isnan(row["d"]),
    ),
    ({"op": "=", "column": ["d"], "literal": "-0.0"}, lambda row: row["d"] == 0.0),
    ({"op": "is_null", "column": ["s"]}, lambda row: row["s"] is None),
    (
        {"op": "not", "arg": {"op": "in", "column": ["k"], "literals": [str(i) for i in range(45)]}},
        lambda row: row["k"] is not None and row["k"] >= 45,
    ),
    (
        {"op": "starts_with", "column": ["s"], "literal": "v1"},
        lambda row: row["s"] is not None and row["s"].startswith("v1"),
    ),
    (
        {
            "op": "and",
            "args": [
                {"op": ">=", "column": ["id"], "literal": "5100"},
                {"op": "<", "column": ["id"], "literal": "5110"},
            ],
        },
        lambda row: 5100 <= row["id"] < 5110,
    ),
    (
        {
            "op": "or",
            "args": [
                {"op": "=", "column": ["p"], "literal": "2"},
                {"op": "=", "column": ["k"], "literal": "3"},
            ],
        },
        lambda row: row["p"] == 2 or row["k"] == 3,
    ),
    (
        {
            "op": "and",
            "args": [
                {"op": "=", "column": ["p"], "literal": "0"},
                {"op": "=", "column": ["id"], "literal": "99999"},
            ],
        },
        lambda row: False,
    ),
]


def naive(root: Path, deleted: dict[str, set[int]]) -> list[dict[str, Any]]:
    rows = []
    for number, name in enumerate(NAMES):
        for index, row in enumerate(pq.read_table(root / name).to_pylist()):
            if index not in deleted.get(name, ()):
                rows.append({**row, "p": number, "__deltaic_file": number, "__deltaic_row": index})
    return rows


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    return repr(found) == repr(expected)  # as text, NaN equals itself and -0.0 is not 0.0


deleted_rows = st.one_of(
    st.just(set()),
    st.sets(st.integers(0, ROWS - 1), max_size=5),
    st.integers(2, 20).map(lambda step: set(range(0, ROWS, step))),
    st.tuples(st.integers(0, ROWS - 1), st.integers(1, ROWS)).map(
        lambda run: set(range(run[0], min(ROWS, run[0] + run[1])))
    ),
    st.just(set(range(ROWS))),
)


@settings(max_examples=int(os.environ.get("DELTAIC_READER_EXAMPLES", "60")))
@given(
    deleted=st.fixed_dictionaries(dict.fromkeys(NAMES, deleted_rows)),
    which=st.integers(0, len(PREDICATES) - 1),
    columns=st.lists(st.sampled_from(["id", "k", "d", "s", "p"]), unique=True),
    batch_size=st.sampled_from([1, 7, 8192, 65536]),
    threads=st.sampled_from([1, 2, 8]),
    limit=st.one_of(st.none(), st.sampled_from([0, 1, 100, ROWS, 10**9])),
    pruning=st.booleans(),
    memory_limit=st.sampled_from([None, 1]),
)
def test_reads_agree_with_a_naive_reader(
    root: Path,
    deleted: dict[str, set[int]],
    which: int,
    columns: list[str],
    batch_size: int,
    threads: int,
    limit: int | None,
    pruning: bool,
    memory_limit: int | None,
) -> None:
    predicate, keeps = PREDICATES[which]
    if batch_size == 1:
        deleted = {**deleted, "0.parquet": set(range(200, ROWS))}  # one row a batch is slow
    found = read(
        root,
        listing(root, *NAMES, deleted=deleted),
        columns,
        predicate,
        row_ids=True,
        batch_size=batch_size,
        threads=threads,
        limit=limit,
        pruning=pruning,
        memory_limit=memory_limit,
    )
    names = [*columns, "__deltaic_file", "__deltaic_row"]
    expected = [{name: row[name] for name in names} for row in naive(root, deleted) if keeps(row)]
    assert same(found.to_pylist(), expected[:limit] if limit is not None else expected)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_first_rows_of_many_columns(tmp_path: Path, codec: str, version: str) -> None:
    """They are read some columns at a time, and the pages of Zstandard are unfolded by one context."""
    random.seed(4)
    names = [f"c{number}" for number in range(70)]
    kinds = {name: ("long", "string", "double")[number % 3] for number, name in enumerate(names)}
    makes = {
        "long": lambda: random.randrange(50),
        "string": lambda: random.choice("abc") * 9,
        "double": random.random,
    }
    rows = [
        {
            name: None if random.random() < 0.2 else makes[kind]()
            for name, kind in kinds.items()
            if name != "c5"
        }
        for _ in range(300)
    ]
    pq.write_table(
        pa.Table.from_pylist(rows),
        tmp_path / "wide.parquet",
        compression=codec,
        data_page_version=version,
        row_group_size=100,
        data_page_size=200,
    )
    table = schema(*kinds.items())
    for deleted in (set(), {0, 1, 5}, set(range(120)), set(range(300)) - {99, 250}):
        files = listing(tmp_path, "wide.parquet", deleted={"wide.parquet": deleted})
        left = [
            {"c5": None, **row, "__deltaic_row": place}
            for place, row in enumerate(rows)
            if place not in deleted
        ]
        for limit in (0, 1, 5, 100, 250, 1000):
            for batch_size in (3, 8192):
                store = _core.Store(str(tmp_path))
                stream = _core.read(
                    store, table, files, names, row_ids=True, limit=limit, batch_size=batch_size
                )
                found = (
                    pa.RecordBatchReader.from_stream(stream)
                    .read_all()
                    .drop_columns(["__deltaic_file"])
                    .to_pylist()
                )
                assert found == [
                    {name: row[name] for name in (*names, "__deltaic_row")} for row in left[:limit]
                ]


@settings(max_examples=30)
@given(
    selected=deleted_rows, deleted=deleted_rows, keep=st.booleans(), which=st.integers(0, len(PREDICATES) - 1)
)
def test_selections_read_just_these_rows_or_all_but_them(
    root: Path, selected: set[int], deleted: set[int], keep: bool, which: int
) -> None:
    predicate, keeps = PREDICATES[which]
    bitmap = _core.DeletionVector.from_rows(pa.array(sorted(selected), pa.uint64())).to_bytes()
    files = listing(
        root,
        *NAMES,
        deleted={"1.parquet": deleted},
        selection=pa.array([None, bitmap, None], pa.binary()),
        keep_selected=[None, keep, None],
    )
    found = read(root, files, ["s"], predicate, row_ids=True)
    wanted = [
        r
        for r in naive(root, {"1.parquet": deleted})
        if keeps(r) and (r["__deltaic_file"] != 1 or (r["__deltaic_row"] in selected) == keep)
    ]
    assert same(
        found.to_pylist(),
        [{name: row[name] for name in ("s", "__deltaic_file", "__deltaic_row")} for row in wanted],
    )


def test_pruning_reads_less_and_the_same(root: Path) -> None:
    predicate = {"op": "=", "column": ["id"], "literal": "6000"}
    made = _core.Predicate.from_json(json.dumps(predicate), TABLE)
    streams = [
        _core.read(_core.Store(str(root)), TABLE, listing(root, *NAMES), ["s"], made, pruning=pruning)
        for pruning in (True, False)
    ]
    tables = [stream.to_table() for stream in streams]
    assert tables[0].equals(tables[1])
    assert streams[0].metrics["row_groups_read"] == 1
    assert streams[1].metrics["row_groups_read"] == streams[1].metrics["row_groups"] == 1 + 7 + 79
    assert streams[0].metrics["rows"] == 1


def test_constants_and_ordinals_come_from_the_files(root: Path) -> None:
    files = listing(
        root,
        "1.parquet",
        "0.parquet",
        __deltaic_file=pa.array([7, 3], pa.int32()),
        _change_type=["insert", None],
    )
    found = read(root, files, ["p"], row_ids=True, constants=["_change_type"])
    assert found.schema.names == ["p", "_change_type", "__deltaic_file", "__deltaic_row"]
    assert found.slice(ROWS - 1, 2).to_pylist() == [
        {"p": 0, "_change_type": "insert", "__deltaic_file": 7, "__deltaic_row": ROWS - 1},
        {"p": 1, "_change_type": None, "__deltaic_file": 3, "__deltaic_row": 0},
    ]
    with pytest.raises(InvalidArgumentError, match="nowhere"):
        read(root, files, [], constants=["nowhere"])


def test_no_columns_still_count(root: Path) -> None:
    assert read(root, listing(root, *NAMES, deleted={"0.parquet": {1, 2}}), []).num_rows == 3 * ROWS - 2


def test_nested_columns_evolve_and_are_read_by_branch(tmp_path: Path) -> None:
    old = pa.table(
        {
            "r": pa.array(
                [{"x": 1, "gone": 5}, None, {"x": None, "gone": 6}],
                pa.struct([("x", pa.int32()), ("gone", pa.int32())]),
            ),
            "l": [[{"q": 1}], None, []],
        }
    )
    pq.write_table(old, tmp_path / "a.parquet")
    field = lambda n, t: {"name": n, "type": t, "nullable": True, "metadata": {}}  # noqa: E731
    inner = {"type": "struct", "fields": [field("new", "string"), field("X", "long")]}
    element = {"type": "struct", "fields": [field("w", "double"), field("q", "long")]}
    table = schema(
        ("l", {"type": "array", "elementType": element, "containsNull": True}), ("r", inner), ("c", "date")
    )
    found = read(tmp_path, listing(tmp_path, "a.parquet"), ["r", "l", "c"], table=table)
    assert found["r"].to_pylist() == [{"new": None, "X": 1}, None, {"new": None, "X": None}]
    assert found["l"].to_pylist() == [[{"w": None, "q": 1}], None, []]
    assert found["c"].to_pylist() == [None] * 3
    assert found.schema == table.to_arrow(["r", "l", "c"])
    assert read(tmp_path, listing(tmp_path, "a.parquet"), ["r.new"], table=table)["r"].to_pylist() == [
        {"new": None},
        None,
        {"new": None},
    ]
    assert read(tmp_path, listing(tmp_path, "a.parquet"), ["r.x"], table=table).to_pylist() == [
        {"r": {"X": 1}},
        {"r": None},
        {"r": {"X": None}},
    ]
    only = read(
        tmp_path,
        listing(tmp_path, "a.parquet"),
        ["l"],
        {"op": "=", "column": ["r", "X"], "literal": "1"},
        table=table,
    )
    assert only["l"].to_pylist() == [[{"w": None, "q": 1}]]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_by_physical_name_or_id(tmp_path: Path, mode: str) -> None:
    metadata = {
        n: {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"col-{i}"}
        for n, i in (("a", 1), ("b", 2), ("p", 3))
    }
    table = schema(
        ("b", "long"), ("a", "long"), ("p", "string"), partition=("p",), mapping=mode, metadata=metadata
    )
    fields = [
        pa.field("col-2" if mode == "name" else "x", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        pa.field("col-1" if mode == "name" else "col-2", pa.int64(), metadata={"PARQUET:field_id": "1"}),
    ]
    pq.write_table(pa.table([[20], [10]], schema=pa.schema(fields)), tmp_path / "a.parquet")
    files = listing(tmp_path, "a.parquet").set_column(2, "partitionValues", pa.array([[("col-3", "v")]], MAP))
    assert read(tmp_path, files, ["a", "b", "p"], table=table).to_pylist() == [{"a": 10, "b": 20, "p": "v"}]
    assert (
        read(tmp_path, files, ["a"], {"op": "=", "column": ["b"], "literal": "20"}, table=table).num_rows == 1
    )
    assert (
        read(tmp_path, files, ["a"], {"op": "=", "column": ["b"], "literal": "10"}, table=table).num_rows == 0
    )


def test_files_of_other_writers_become_the_tables_types(tmp_path: Path) -> None:
    table = schema(
        ("t", "timestamp"),
        ("w", "timestamp_ntz"),
        ("i", "long"),
        ("d", "double"),
        ("n", "decimal(14,4)"),
        ("h", "short"),
        ("s", "string"),
    )
    instant = dt.datetime(1500, 1, 1, 12, 0, 0, 123456, tzinfo=dt.timezone.utc)
    columns: dict[str, Any] = {
        "t": pa.array([instant], pa.timestamp("us", "UTC")),
        "w": pa.array([-1], pa.timestamp("ns")),
        "i": pa.array([-5], pa.int32()),
        "d": pa.array([1.5], pa.float32()),
        "n": pa.array([125], pa.int32()).cast(pa.decimal128(10, 0)),
        "h": pa.array([-3], pa.int32()),
        "s": pa.array([b"\xc3\xa9"], pa.binary()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", store_schema=False)
    (row,) = read(tmp_path, listing(tmp_path, "a.parquet"), table.to_arrow().names, table=table).to_pylist()
    assert [row["t"], row["i"], row["d"], str(row["n"]), row["h"], row["s"]] == [
        instant,
        -5,
        1.5,
        "125.0000",
        -3,
        "é",
    ]
    assert row["w"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    ancient = pa.table(
        {"t": pa.array([dt.datetime(1970, 1, 1), dt.datetime(2262, 1, 1)], pa.timestamp("us"))}
    )
    pq.write_table(ancient, tmp_path / "b.parquet", use_deprecated_int96_timestamps=True)
    found = read(tmp_path, listing(tmp_path, "b.parquet"), ["t"], table=table)
    assert found["t"].to_pylist() == [
        value.replace(tzinfo=dt.timezone.utc) for value in ancient["t"].to_pylist()
    ]


def test_a_wrong_type_names_file_and_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["text"]}), tmp_path / "a.parquet")
    with pytest.raises(ProtocolError, match=r"a\.parquet.*column id.*Utf8.*Int64"):
        read(tmp_path, listing(tmp_path, "a.parquet"), ["id"])


def test_files_that_are_not_what_the_log_says_are_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "short.parquet").write_bytes((root / "0.parquet").read_bytes()[:-100])
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "text.parquet").write_bytes(b"x" * 1000)
    for name in ("short.parquet", "empty.parquet", "text.parquet"):
        with pytest.raises(ProtocolError, match=name):
            read(tmp_path, listing(tmp_path, name), ["id"])
    with pytest.raises(ProtocolError, match=r"none\.parquet"):
        read(tmp_path, listing(tmp_path, "none.parquet"), ["id"])
    with pytest.raises(ProtocolError, match="beyond the file's end"):
        read(root, listing(root, "0.parquet", deleted={"0.parquet": {ROWS}}), ["id"])
    files = listing(root, "0.parquet", deleted={"0.parquet": {1}}, stats=['{"numRecords":4999}'])
    with pytest.raises(ProtocolError, match="number of rows in its statistics"):
        read(root, files, ["id"])
    wrong_size = listing(root, "0.parquet").set_column(1, "size", pa.array([99], pa.int64()))
    assert read(root, wrong_size, ["id"]).num_rows == ROWS


def test_the_first_error_is_kept_after_the_rows_before_it(root: Path) -> None:
    stream = _core.read(_core.Store(str(root)), TABLE, listing(root, "0.parquet", "nowhere.parquet"), ["id"])
    reader = stream.to_reader()
    stream.check()
    with pytest.raises(Exception, match="nowhere"):
        reader.read_all()
    with pytest.raises(ProtocolError, match=r"nowhere\.parquet"):
        stream.check()


def test_a_stream_is_read_once_and_can_be_cancelled(root: Path) -> None:
    stream = _core.read(_core.Store(str(root)), TABLE, listing(root, *NAMES), ["id"], batch_size=10)
    assert pa.table(stream).num_rows == 3 * ROWS
    with pytest.raises(OSError, match="read already"):
        stream.to_table()
    stream = _core.read(_core.Store(str(root)), TABLE, listing(root, *NAMES), ["id"], batch_size=10)
    reader = stream.to_reader()
    reader.read_next_batch()
    stream.cancel()
    # An end without an error would look as if all rows were read.
    with pytest.raises(pa.ArrowInvalid, match="stopped by the user"):
        reader.read_all()


@settings(max_examples=int(os.environ.get("DELTAIC_HOSTILE_EXAMPLES", "150")))
@given(seed=st.integers(0, 2**32), cut=st.booleans(), name=st.sampled_from(NAMES))
def test_hostile_files_give_rows_or_an_error_by_name(
    root: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, cut: bool, name: str
) -> None:
    chance = random.Random(seed)
    data = bytearray((root / name).read_bytes())
    if cut:
        del data[chance.randrange(len(data)) : chance.randrange(len(data))]
    for _ in range(chance.randrange(1, 8)):
        near_end = chance.random() < 0.7
        at = (
            max(0, len(data) - 1 - chance.randrange(6000))
            if near_end
            else chance.randrange(max(1, len(data)))
        )
        if data:
            data[at] = chance.randrange(256)
    path = tmp_path_factory.mktemp("hostile")
    (path / "x.parquet").write_bytes(data)
    predicate = chance.choice(PREDICATES)[0]
    deleted = {"x.parquet": {1, 5, 99}} if chance.random() < 0.5 else None
    begun, said = time.monotonic(), "x.parquet"
    try:
        read(path, listing(path, "x.parquet", deleted=deleted), ["id", "k", "d", "s"], predicate)
    except (DeltaError, OSError) as error:
        said = str(error)
    assert "x.parquet" in said
    assert time.monotonic() - begun < 20
