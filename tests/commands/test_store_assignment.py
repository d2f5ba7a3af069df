"""Values of UPDATE and MERGE are converted to the types of their columns: fields by name at every depth; a
value that does not fit is an error or null."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pytest
from commands_model import Make

from deltaic import DeltaTable
from deltaic.errors import SchemaMismatchError

XY = pa.struct({"x": pa.int64(), "y": pa.int64()})
YX = pa.struct({"y": pa.int32(), "X": pa.int64()})
X = pa.struct({"x": pa.int64()})
OLD, NEW, NEW_YX = {"x": 1, "y": 2}, {"x": 10, "y": 20}, {"y": 20, "X": 10}
BY_NAME: dict[str, tuple[pa.DataType, Any, pa.DataType, Any, Any]] = {
    "struct": (XY, OLD, YX, NEW_YX, NEW),
    "struct in struct": (pa.struct({"a": XY}), {"a": OLD}, pa.struct({"a": YX}), {"a": NEW_YX}, {"a": NEW}),
    "array": (pa.list_(XY), [OLD], pa.list_(YX), [NEW_YX, None], [NEW, None]),
    "map": (
        pa.map_(pa.string(), XY),
        [("k", OLD)],
        pa.map_(pa.string(), YX),
        [("q", NEW_YX), ("n", None)],
        [("q", NEW), ("n", None)],
    ),
    "array in struct": (
        pa.struct({"a": pa.list_(XY)}),
        {"a": [OLD]},
        pa.struct({"a": pa.list_(YX)}),
        {"a": [NEW_YX]},
        {"a": [NEW]},
    ),
    "array in array": (
        pa.list_(pa.list_(XY)),
        [[OLD]],
        pa.list_(pa.list_(YX)),
        [[NEW_YX], None, []],
        [[NEW], None, []],
    ),
}


def column(kind: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({"id": range(len(values)), "v": pa.array(values, kind)})


def values(table: DeltaTable) -> list[Any]:
    found = table.scan().to_arrow().sort_by("id")
    listed: list[Any] = found["v"].to_pylist()
    return listed


@pytest.mark.parametrize("name", BY_NAME)
def test_merge_matches_fields_by_name(make: Make, name: str) -> None:
    target, old, source, new, expected = BY_NAME[name]
    rows = column(source, new, new)
    table = make(column(target, old), name="all")
    table.merge(rows, "t.id = s.id").when_matched_update({"v": "s.v"}).when_not_matched_insert_all().execute()
    assert values(table) == [expected, expected]
    table = make(column(target, old), name="explicit")
    table.merge(rows, "t.id = s.id").when_not_matched_insert({"id": "s.id", "v": "s.v"}).execute()
    assert values(table) == [old, expected]


LACKING: dict[str, tuple[pa.DataType, Any, pa.DataType, Any, Any, Any, str]] = {
    "struct": (XY, OLD, X, {"x": 5}, {"x": 5, "y": 2}, {"x": 5, "y": None}, "named_struct('x', 5)"),
    "array": (
        pa.list_(XY),
        [OLD],
        pa.list_(X),
        [{"x": 5}],
        [{"x": 5, "y": None}],
        [{"x": 5, "y": None}],
        "array(named_struct('x', 5))",
    ),
    "map": (
        pa.map_(pa.string(), XY),
        [("k", OLD)],
        pa.map_(pa.string(), X),
        [("k", {"x": 5})],
        [("k", {"x": 5, "y": None})],
        [("k", {"x": 5, "y": None})],
        "map('k', named_struct('x', 5))",
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_fields_that_a_struct_lacks(make: Make, name: str) -> None:
    """An error, as delta-spark's, unless the merge evolves the schema: a star update then keeps them,
    anything else makes them null."""
    target, old, source, new, starred, set_whole, text = LACKING[name]
    table, rows = make(column(target, old)), column(source, new, new)
    merge = table.merge(rows, "t.id = s.id")
    for command in (
        lambda: table.update({"v": text}),
        merge.when_matched_update_all().execute,
        merge.when_matched_update({"v": "s.v"}).execute,
        merge.when_not_matched_insert_all().execute,
        merge.when_not_matched_insert({"id": "s.id", "v": "s.v"}).execute,
        table.merge(rows, "t.id = s.id", casting="try").when_matched_update({"v": "s.v"}).execute,
    ):
        with pytest.raises(SchemaMismatchError, match=r"lacks fields|does not fit"):
            command()
    assert (table.version, values(table)) == (0, [old])
    evolving = table.merge(rows, "t.id = s.id", schema_mode="merge")
    evolving.when_matched_update_all().when_not_matched_insert_all().execute()
    assert values(table) == [starred, set_whole]
    table.merge(rows, "t.id = s.id", schema_mode="merge").when_matched_update({"v": "s.v"}).execute()
    assert values(table) == [set_whole, set_whole]


def test_a_star_clause_needs_each_column_of_the_table(make: Make) -> None:
    table = make(pa.table({"id": [1], "v": [1], "w": [1]}))
    rows = pa.table({"id": [1, 2], "v": [5, 5], "W_": [6, 6]})
    merge = table.merge(rows, "t.id = s.id")
    for clause in (
        merge.when_matched_update_all(),
        merge.when_not_matched_insert_all(),
        merge.when_matched_update_all(exclude=["v"]),
    ):
        with pytest.raises(SchemaMismatchError, match=r"^w: \[DELTA_MERGE_UNRESOLVED_EXPRESSION\]"):
            clause.execute()
    assert table.version == 0
    merge.when_matched_update_all(exclude=["w"]).when_not_matched_insert_all(exclude=["w"]).execute()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "v": 5, "w": 1},
        {"id": 2, "v": 5, "w": None},
    ]
    table.merge(
        rows.drop_columns(["W_"]), "t.id = s.id", schema_mode="merge"
    ).when_matched_update_all().execute()


def test_update_matches_fields_by_name(make: Make) -> None:
    table = make(column(pa.list_(XY), [OLD], [], None))
    table.update({"v": "transform(v, e -> named_struct('y', e.y * 10, 'x', e.x * 10))"})
    assert values(table) == [[NEW], [], None]


@pytest.mark.parametrize(
    ("target", "old", "source", "new", "tried"),
    [
        (pa.int32(), 1, pa.int64(), 2**40, None),
        (pa.struct({"a": pa.int32()}), {"a": 1}, pa.struct({"a": pa.int64()}), {"a": 2**40}, {"a": None}),
        (pa.list_(pa.int32()), [1], pa.list_(pa.int64()), [2, 2**40], [2, None]),
        (
            pa.map_(pa.string(), pa.int8()),
            [("k", 1)],
            pa.map_(pa.string(), pa.int64()),
            [("k", 300)],
            [("k", None)],
        ),
    ],
    ids=["long", "struct", "array", "map"],
)
def test_what_does_not_fit(
    make: Make, target: pa.DataType, old: Any, source: pa.DataType, new: Any, tried: Any
) -> None:
    table = make(column(target, old))
    rows = column(source, new)
    with pytest.raises(SchemaMismatchError, match="column v"):
        table.merge(rows, "t.id = s.id").when_matched_update({"v": "s.v"}).execute()
    with pytest.raises(SchemaMismatchError, match="column v"):
        table.merge(rows, "t.id = s.id").when_matched_update_all().execute()
    assert values(table) == [old]
    table.merge(rows, "t.id = s.id", casting="try").when_matched_update_all().execute()
    assert values(table) == [tried]


def test_text_that_is_no_number(make: Make) -> None:
    table = make(column(pa.int64(), 1, 2))
    with pytest.raises(SchemaMismatchError):
        table.merge(column(pa.string(), "7", "x"), "t.id = s.id").when_matched_update_all().execute()
    table.merge(
        column(pa.string(), "7", "x"), "t.id = s.id", casting="try"
    ).when_matched_update_all().execute()
    assert values(table) == [7, None]


@pytest.mark.parametrize("schema_mode", [None, "merge"])
def test_all_columns_of_a_source_are_cast(make: Make, schema_mode: Literal["merge"] | None) -> None:
    table = make(column(pa.int64(), 1, 2))
    merge = table.merge(column(pa.string(), "7", "8", "9"), "t.id = s.id", schema_mode=schema_mode)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert values(table) == [7, 8, 9]


def test_types_that_never_fit(make: Make) -> None:
    table = make(column(XY, OLD))
    for wrong in ("1", "array(1)", "named_struct('x', 1, 'z', 2)"):
        with pytest.raises(SchemaMismatchError, match="column v"):
            table.update({"v": wrong})
    for wrong in ("DATE'2020-01-01'", "X'01'"):  # no row needs to be read
        with pytest.raises(SchemaMismatchError, match="column id: a value does not fit its column"):
            table.update({"id": wrong}, "false")
