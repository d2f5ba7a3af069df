"""Rows with nested columns, as slices, and NOT NULL below the top level."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import AppendOnlyError, ConstraintViolationError

ROWS = pa.table(
    {
        "id": list(range(60)),
        "s": [
            None if i % 7 == 0 else {"a": i, "t": {"u": str(i), "v": [{"w": {"x": i}}]}} for i in range(60)
        ],
        "l": [[{"t": {"u": i}}] for i in range(60)],
    }
)


@pytest.mark.parametrize("rows", [slice(10, 15), slice(0, 2), slice(59, 60), slice(3, 3)], ids=str)
def test_slices_of_structs_in_structs(tmp_path, rows):
    part = ROWS.slice(rows.start, rows.stop - rows.start)
    for number, data in enumerate(
        (part, part.to_reader(), iter(part.to_batches() or [ROWS.slice(0, 0).to_batches()]))
    ):
        if rows.start == rows.stop and number == 2:
            continue
        assert deltaic.write(tmp_path / str(number), data).scan().to_arrow().to_pylist() == part.to_pylist()


def test_slices_as_the_source_of_a_merge(tmp_path):
    table = deltaic.write(tmp_path / "t", ROWS.slice(0, 20))
    source = pa.concat_tables([ROWS.slice(10, 5), ROWS.slice(30, 3)])
    metrics = (
        table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    )
    assert (metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]) == (5, 3)
    assert (
        table.scan().to_arrow().sort_by("id").to_pylist()
        == pa.concat_tables([ROWS.slice(0, 20), ROWS.slice(30, 3)]).to_pylist()
    )


@pytest.fixture(params=[True, False], ids=["vectors", "copies"])
def strict(request, tmp_path):
    table = deltaic.DeltaTable.create(
        tmp_path / "t",
        "id bigint not null, s struct<a: int not null, b: string>",
        properties={"delta.enableDeletionVectors": request.param},
    )
    return deltaic.write(table, pa.table({"id": [1, 2], "s": [{"a": 1, "b": "x"}, None]}), mode="append")


KEYS = pa.table({"k": [1, 9]})
BREAKS = {
    "update": lambda table: table.update({"id": "null"}),
    "update of one row": lambda table: table.update({"id": "case when id = 2 then null else id end"}),
    "update of a field": lambda table: table.update({"s.a": "null"}),
    "update of a struct": lambda table: table.update({"s": "named_struct('a', cast(null as int), 'b', 'x')"}),
    "merge update": lambda table: (
        table.merge(KEYS, "t.id = s.k").when_matched_update({"s.a": "nullif(s.k, 1)"}).execute()
    ),
    "merge insert": lambda table: (
        table.merge(KEYS, "t.id = s.k").when_not_matched_insert({"id": "nullif(s.k, 9)"}).execute()
    ),
}


@pytest.mark.parametrize("change", BREAKS.values(), ids=BREAKS)
def test_not_null_is_kept_by_every_change(strict, change):
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        change(strict)
    assert deltaic.DeltaTable(strict.location).version == 1


def test_an_update_beside_null_structs(strict):
    strict.update({"id": "id + 10"})
    assert sorted(strict.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 11, "s": {"a": 1, "b": "x"}},
        {"id": 12, "s": None},
    ]


MAPS = {
    "map<string,struct<y:int not null>>": [[("k", None)], None, [("a", {"y": 1}), ("b", None)], []],
    "map<string,array<struct<y:int not null>>>": [
        [("k", [None])],
        [("q", None)],
        [("a", [{"y": 3}, None])],
        None,
    ],
    "array<map<string,struct<y:int not null>>>": [[[("k", None)]], None, [None, [("r", {"y": 1})]], [[]]],
}


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("kind", MAPS)
def test_updates_beside_maps_with_null_structs(tmp_path, kind, vectors):
    """Maps pass through a command as lists of entries. A struct in them that is null has a null in a NOT NULL
    field."""
    definition = f"id bigint, s struct<a:int>, m {kind}"
    table = deltaic.DeltaTable.create(
        tmp_path / "t", definition, properties={"delta.enableDeletionVectors": vectors}
    )
    types = {item.name: item.type for item in table.scan().to_arrow().schema}
    free = {name: pa.int64() if name == "id" else _nullable(kind) for name, kind in types.items()}
    rows = [{"id": number, "s": {"a": number}, "m": value} for number, value in enumerate(MAPS[kind])]
    deltaic.write(table, pa.Table.from_pylist(rows, pa.schema(list(free.items()))), mode="append")
    table.update({"s.a": "5"})
    table.merge(pa.table({"id": [1]}), "t.id = s.id").when_matched_update({"s.a": "7"}).execute()
    table.update({"s": "named_struct('a', 9)"}, "id = 2")
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["s"]["a"] for row in found] == [5, 7, 9, 5]
    assert [row["m"] for row in found] == MAPS[kind]


def _nullable(kind):
    """The type without NOT NULL, as `pa.Table.from_pylist` makes it."""
    if pa.types.is_struct(kind):
        return pa.struct([(item.name, _nullable(item.type)) for item in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    return pa.list_(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def test_conditions_that_read_no_column(strict):
    for condition, count in (("upper('a') = 'A'", 2), ("upper('a') = 'a'", 0), ("1 = 1", 2), ("false", 0)):
        assert strict.scan(where=condition).count() == strict.scan([], condition).to_arrow().num_rows == count
        assert strict.scan(["id"], condition).to_arrow().num_rows == count


def test_a_query_may_answer_nothing_but_nulls():
    assert deltaic.sql("SELECT NULL AS n, array() AS a").to_arrow().to_pylist() == [{"n": None, "a": []}]


def test_a_table_that_only_takes_rows_refuses_before_it_looks(tmp_path):
    table = deltaic.write(tmp_path / "t", KEYS, properties={"delta.appendOnly": True})
    for change in (
        lambda: table.delete("k = 77"),
        lambda: table.update({"k": "0"}, "k = 77"),
        lambda: table.delete(),
    ):
        with pytest.raises(AppendOnlyError):
            change()
    table.merge(KEYS, "t.k = s.k + 1").when_not_matched_insert_all().execute()
    table.optimize.compact()
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 1, 9, 9]
