"""Functions over several arrays or maps, of which some may have nulls: the result may have a null if one of
them may."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb import engine as local
from deltaic.errors import SchemaMismatchError

ARRAYS = {"a": [1, 2], "b": [2, None], "e": [], "z": None}
MAPS = {"m": [(1, 1)], "w": [(2, None)]}


def table() -> pa.Table:
    """a, e and m hold no null by their types; b, z and w may."""
    strict, loose = pa.list_(pa.field("element", pa.int32(), nullable=False)), pa.list_(pa.int32())
    types = {"a": strict, "b": loose, "e": strict, "z": loose}
    columns = {name: pa.array([values], types[name]) for name, values in ARRAYS.items()}
    never = pa.map_(pa.int32(), pa.field("value", pa.int32(), nullable=False))
    columns |= {
        "m": pa.array([MAPS["m"]], never),
        "w": pa.array([MAPS["w"]], pa.map_(pa.int32(), pa.int32())),
    }
    struct = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    columns |= {
        "s": pa.array([[{"x": 1}]], pa.list_(struct)),
        "n": pa.array([[{"x": None}]], pa.list_(pa.struct({"x": pa.int32()}))),
    }
    return pa.table(columns)


CASES: list[tuple[str, Any]] = [
    ("array_union({0}, {1})", lambda x, y: list(dict.fromkeys([*x, *y]))),
    ("array_intersect({0}, {1})", lambda x, y: [item for item in dict.fromkeys(x) if item in y]),
    ("array_except({0}, {1})", lambda x, y: [item for item in dict.fromkeys(x) if item not in y]),
    ("concat({0}, {1})", lambda x, y: [*x, *y]),
    ("coalesce({0}, {1})", lambda x, y: x),
    ("if(size({0}) > 1, {0}, {1})", lambda x, y: x if len(x) > 1 else y),
    ("array({0}, {1})[1]", lambda x, y: y),
    ("flatten(array({0}, {1}))", lambda x, y: [*x, *y]),
    ("array_append({0}, {1}[0])", lambda x, y: [*x, y[0]]),
    ("array_remove({0}, 9)", lambda x, y: x),
    ("map(1, {0}, 2, {1})[2]", lambda x, y: y),
    ("struct({0} AS f, {1} AS g).g", lambda x, y: y),
    ("reverse({1})", lambda x, y: y[::-1]),
]


@pytest.mark.parametrize(("form", "expected"), CASES, ids=[form for form, _ in CASES])
def test_arrays(form: str, expected: Any) -> None:
    pairs = [("a", "b"), ("b", "a"), ("a", "a"), ("b", "b")]
    texts = [form.format(*pair) for pair in pairs]
    columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    row = deltaic.sql(f"SELECT {columns} FROM t", tables={"t": table()}).to_arrow().to_pylist()[0]
    assert list(row.values()) == [expected(ARRAYS[left], ARRAYS[right]) for left, right in pairs]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("map_concat(m, w)", [(1, 1), (2, None)]),
        ("map_concat(w, m)", [(2, None), (1, 1)]),
        ("coalesce(m, w)", [(1, 1)]),
        ("map_values(map_concat(m, w))", [1, None]),
        ("array(m, w)[1]", [(2, None)]),
        ("CASE WHEN size(m) > 5 THEN m ELSE w END", [(2, None)]),
        ("concat(s, n)", [{"x": 1}, {"x": None}]),
        ("array_union(a, z)", None),
        ("array_union(e, b)", [2, None]),
        ("array_union(array(1), array(cast(NULL AS int)))", [1, None]),
        ("array_union(array_compact(b), b)", [2, None]),
        ("transform(array_union(a, b), x -> x)", [1, 2, None]),
    ],
)
def test_maps_and_structs(form: str, expected: Any) -> None:
    assert deltaic.sql(f"SELECT {form} AS x FROM t", tables={"t": table()}).to_arrow()["x"].to_pylist() == [
        expected
    ]


def test_results_can_be_stored(tmp_path: Any) -> None:
    target = deltaic.write(tmp_path / "t", pa.table({"x": pa.array([[0]], pa.list_(pa.int32()))}))
    deltaic.sql("INSERT INTO t SELECT array_union(a, b) AS x FROM d", tables={"t": target, "d": table()})
    assert sorted(target.scan().to_arrow()["x"].to_pylist(), key=len) == [[0], [1, 2, None]]


def test_errors_of_arrow_do_not_leave() -> None:
    found = local._named(pa.ArrowInvalid("field x contains nulls\nsecond line"))
    assert isinstance(found, SchemaMismatchError)
    assert "field x contains nulls" in str(found)
    assert "second line" not in str(found)
