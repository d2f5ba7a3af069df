"""DELETE, UPDATE, MERGE and INSERT with queries inside: subqueries in conditions and values, sources that are
the target itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import InvalidArgumentError

NAMES = pa.table(
    {"part": ["a", "b", None], "factor": [10.0, 100.0, 1.0], "id": pa.array([1, 9, None], pa.int64())}
)


@pytest.fixture(params=["vectors", "copies", "tracked"])
def some(request: Any, tmp_path: Path) -> deltaic.DeltaTable:
    data = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "part": pa.array(["a", "a", "b", None]),
            "amount": pa.array([1.5, None, -2.0, 40.0]),
            "s": [{"x": 1, "y": "p"}, {"x": 2, "y": None}, None, {"x": 4, "y": "q"}],
        }
    )
    properties: dict[str, Any] = {"delta.enableDeletionVectors": request.param != "copies"}
    if request.param == "tracked":
        properties["delta.enableRowTracking"] = True
    deltaic.write(tmp_path / "some table", data.slice(0, 2), properties=properties)
    return deltaic.write(tmp_path / "some table", data.slice(2), mode="append")


def run(statement: str, table: deltaic.DeltaTable) -> list[dict[str, Any]]:
    return deltaic.sql(statement, tables={"t": table, "n": NAMES}).to_pylist()


def ids(table: deltaic.DeltaTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id IN (SELECT id FROM n)", [2, 3, 4]),
        ("part NOT IN (SELECT part FROM n)", [1, 2, 3, 4]),
        ("part NOT IN (SELECT part FROM n WHERE part = 'a')", [1, 2, 4]),
        ("EXISTS (SELECT 1 FROM n WHERE n.part = t.part AND n.id = t.id)", [2, 3, 4]),
        ("NOT EXISTS (SELECT 1 FROM n WHERE n.part = t.part)", [1, 2, 3]),
        ("id = (SELECT max(id) FROM t)", [1, 2, 3]),
        ("id > 1 AND id < (SELECT max(u.id) FROM t AS u)", [1, 4]),
        ("amount = (SELECT max(u.amount) FROM t AS u WHERE u.part = t.part)", [2, 4]),
        ("t.id IN (SELECT 2) OR id IN (WITH q AS (SELECT 3 AS k) SELECT k FROM q)", [1, 4]),
    ],
)
def test_delete(some: deltaic.DeltaTable, where: str, left: list[int]) -> None:
    version = some.version
    assert run(f"DELETE FROM t WHERE {where}", some) == [{"num_affected_rows": 4 - len(left)}]
    assert ids(some) == left
    assert some.version == (version if len(left) == 4 else version + 1)
    assert len(left) == 4 or some.history(limit=1)[0]["operation"] == "DELETE"


def test_delete_with_an_alias(some: deltaic.DeltaTable) -> None:
    run("DELETE FROM t AS x WHERE x.id IN (SELECT n.id FROM n WHERE n.part = x.part)", some)
    assert ids(some) == [2, 3, 4]
    run(f"DELETE FROM delta.`{some.location}` WHERE id = (SELECT min(id) FROM delta.`{some.location}`)", some)
    assert ids(deltaic.DeltaTable(some.location)) == [3, 4]


def test_update_by_and_with_queries(some: deltaic.DeltaTable) -> None:
    statement = (
        "UPDATE t SET amount = (SELECT max(factor) FROM n WHERE n.part = t.part), s.y = part WHERE id IN"
        " (SELECT id FROM t WHERE id < 4)"
    )
    assert run(statement, some) == [{"num_affected_rows": 3}]
    rows = run("SELECT id, amount, s.y AS y, s.x AS x FROM t ORDER BY id", some)
    assert [tuple(row.values()) for row in rows] == [
        (1, 10.0, "a", 1),
        (2, 10.0, "a", 2),
        (3, 100.0, "b", None),
        (4, 40.0, "q", 4),
    ]


def test_update_of_values_alone(some: deltaic.DeltaTable) -> None:
    assert run("UPDATE t SET id = (SELECT max(id) FROM t) + id, part = 'z' WHERE t.id >= 3", some) == [
        {"num_affected_rows": 2}
    ]
    assert ids(some) == [1, 2, 7, 8]
    assert run("UPDATE t SET amount = 0 WHERE id NOT IN (SELECT 1)", some) == [{"num_affected_rows": 3}]
    assert run("SELECT sum(amount) AS s FROM t", some) == [{"s": 1.5}]


def test_values_are_cast_by_store_assignment(some: deltaic.DeltaTable) -> None:
    with pytest.raises(deltaic.errors.DeltaError):
        run("UPDATE t SET id = (SELECT 'x')", some)
    with pytest.raises(InvalidArgumentError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        run("UPDATE t SET id = (SELECT id FROM t)", some)
    with pytest.raises(InvalidArgumentError, match="no column nothing"):
        run("DELETE FROM t WHERE id IN (SELECT nothing FROM n)", some)
    assert ids(some) == [1, 2, 3, 4]


def test_merge_and_insert_from_the_target_itself(some: deltaic.DeltaTable) -> None:
    run(
        "INSERT INTO t SELECT id + (SELECT max(id) FROM t), part, amount, s FROM t WHERE EXISTS (SELECT 1"
        " FROM n WHERE n.part = t.part)",
        some,
    )
    assert ids(some) == [1, 2, 3, 4, 5, 6, 7]
    run(
        "MERGE INTO t USING (SELECT part, max(id) AS top, rank() OVER (ORDER BY part) AS r FROM t GROUP BY"
        " part) AS q ON t.id = q.top WHEN MATCHED THEN UPDATE SET amount = q.r WHEN NOT MATCHED BY SOURCE"
        " THEN DELETE",
        some,
    )
    assert [tuple(row.values()) for row in run("SELECT id, amount FROM t ORDER BY id", some)] == [
        (4, 1.0),
        (6, 2.0),
        (7, 3.0),
    ]


def test_files_that_the_rest_of_the_condition_rules_out_are_not_in_conflict(some: deltaic.DeltaTable) -> None:
    other = deltaic.DeltaTable(some.location)
    run("DELETE FROM t WHERE id = 1", other)
    assert run("DELETE FROM t WHERE id >= 3 AND part IN (SELECT part FROM n)", some) == [
        {"num_affected_rows": 1}
    ]
    assert ids(deltaic.DeltaTable(some.location)) == [2, 4]


def test_a_subquery_over_the_target_is_in_conflict_with_any_change_of_it(some: deltaic.DeltaTable) -> None:
    other = deltaic.DeltaTable(some.location)
    run("DELETE FROM t WHERE id = 1", other)
    with pytest.raises(deltaic.errors.DeltaConcurrentModificationException):
        run("DELETE FROM t WHERE id >= 3 AND id > (SELECT min(id) FROM t)", some)
    assert ids(deltaic.DeltaTable(some.location)) == [2, 3, 4]


@pytest.fixture
def other(tmp_path: Path) -> str:
    """delta.`path` of a table with ids, parts and factors."""
    deltaic.write(tmp_path / "other", NAMES)
    return f"delta.`{tmp_path / 'other'}`"


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id IN (SELECT id FROM {other})", [2, 3, 4]),
        ("part NOT IN (SELECT part FROM {other})", [1, 2, 3, 4]),
        (
            "id > 1 AND EXISTS (SELECT 1 FROM {other} AS o WHERE o.part = t.part) AND amount IS NOT NULL",
            [1, 2, 4],
        ),
        ("id = (SELECT max(id) FROM {itself})", [1, 2, 3]),
        ("amount = (SELECT max(u.amount) FROM {itself} AS u WHERE u.part = t.part)", [2, 4]),
        ("t.id IN (SELECT 2) OR id IN (WITH q AS (SELECT 3 AS k) SELECT k FROM q)", [1, 4]),
    ],
)
def test_delete_of_the_table_itself(
    some: deltaic.DeltaTable, other: str, where: str, left: list[int]
) -> None:
    text = where.format(other=other, itself=f"delta.`{some.location}`")
    assert some.delete(text)["num_deleted_rows"] == 4 - len(left)
    assert ids(some) == left
    assert len(left) == 4 or some.history(limit=1)[0]["operationParameters"][
        "predicate"
    ] == f'["{text}"]'.replace("\\", "\\\\")


def test_update_of_the_table_itself(some: deltaic.DeltaTable, other: str) -> None:
    changed = some.update(
        {"amount": f"(SELECT max(factor) FROM {other} AS o WHERE o.part = t.part)", "s.y": "part"},
        where=f"id IN (SELECT id FROM delta.`{some.location}` WHERE id < 4) AND id <> 2",
    )
    assert changed["num_updated_rows"] == 2
    rows = some.scan(["id", "amount", "s"]).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["amount"], (row["s"] or {}).get("y")) for row in rows] == [
        (1, 10.0, "a"),
        (2, None, None),
        (3, 100.0, "b"),
        (4, 40.0, "q"),
    ]


SOURCE = pa.table({"id": pa.array([1, 2, 3, 8, 9], pa.int64()), "part": ["x", "y", "z", "new", "newer"]})


def test_merge_with_queries_in_its_clauses(some: deltaic.DeltaTable, other: str) -> None:
    metrics = (
        some.merge(SOURCE, "t.id = s.id")
        .when_matched_delete(where=f"s.id IN (SELECT id FROM {other})")
        .when_matched_update(
            {"amount": f"(SELECT sum(factor) FROM {other} AS o WHERE o.part = t.part) + s.id"}
        )
        .when_not_matched_insert(
            {"id": "id", "part": f"(SELECT min(part) FROM {other})"},
            where=f"EXISTS (SELECT 1 FROM {other} AS o WHERE o.id = s.id)",
        )
        .when_not_matched_by_source_update(
            {"part": "'none'"}, where=f"id = (SELECT max(id) FROM delta.`{some.location}`)"
        )
        .execute()
    )
    assert metrics["num_target_rows_deleted"] == metrics["num_target_rows_inserted"] == 1
    rows = some.scan(["id", "part", "amount"]).to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (2, "a", 12.0),
        (3, "b", 103.0),
        (4, "none", 40.0),
        (9, "a", None),
    ]


def test_merge_statement_with_queries_in_its_clauses(some: deltaic.DeltaTable) -> None:
    statement = (
        "MERGE INTO t USING source AS s ON t.id = s.id WHEN MATCHED AND s.id IN (SELECT n.id FROM n) THEN"
        " DELETE WHEN MATCHED THEN UPDATE SET amount = (SELECT count(*) FROM t AS u WHERE u.part = t.part)"
        " WHEN NOT MATCHED AND s.id NOT IN (SELECT id FROM n WHERE id IS NOT NULL) THEN INSERT (id, part)"
        " VALUES (s.id, s.part)"
    )
    deltaic.sql(statement, tables={"t": some, "n": NAMES, "source": SOURCE})
    rows = some.scan(["id", "part", "amount"]).to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (2, "a", 2.0),
        (3, "b", 1.0),
        (4, None, 40.0),
        (8, "new", None),
    ]


def test_a_subquery_that_reads_the_table_makes_any_change_of_it_a_conflict(
    some: deltaic.DeltaTable, other: str
) -> None:
    for text, conflicts in (
        (f"id = 4 AND id IN (SELECT max(id) FROM delta.`{some.location}`)", True),
        ("id = 4", False),
    ):
        late = deltaic.DeltaTable(some.location)
        late.delete("id = 1") if conflicts else late.delete("id = 2")
        before = deltaic.DeltaTable(some.location, version=late.version - 1)
        if conflicts:
            with pytest.raises(deltaic.errors.DeltaConcurrentModificationException):
                before.delete(text)
        else:
            before.delete(text)


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("id IN (SELECT id FROM n)", "no such table"),
        ("id IN (SELECT id, part FROM {other})", "as many columns"),
        ("id = (SELECT nope FROM {other})", "no column nope"),
        ("id IN (SELECT id FROM {other}) AND nope = 1", "no column nope"),
        ("(SELECT part FROM {other} LIMIT 1)", "boolean"),
        ("id = 1) FROM {other} WHERE (true", "does not parse"),
        ("id IN (SELECT id FROM {other}) AS x", "expression is expected|does not parse"),
        ("SELECT true", "does not parse"),
        ("(SELECT true) x", "does not parse"),
    ],
)
def test_errors_of_subqueries_in_conditions(
    some: deltaic.DeltaTable, other: str, where: str, error: str
) -> None:
    with pytest.raises(deltaic.errors.DeltaError, match=error):
        some.delete(where.format(other=other))
    assert ids(some) == [1, 2, 3, 4]


def test_where_no_subquery_may_stand(some: deltaic.DeltaTable, other: str) -> None:
    text = f"id IN (SELECT id FROM {other})"
    for refused in (
        lambda: some.merge(SOURCE, f"t.id = s.id AND t.{text}").when_matched_delete().execute(),
        lambda: some.alter.add_constraints({"known": text}),
        lambda: some.scan(where=text),
    ):
        with pytest.raises(deltaic.errors.UnsupportedFeatureError, match="subquery"):
            refused()


# --- WITH before a statement that changes a table

BEFORE: list[tuple[str, list[tuple[int, str]]]] = [
    ("INSERT INTO t SELECT id + 10, v FROM q", [(1, "a"), (2, "b"), (3, "c"), (13, "x"), (14, "y")]),
    ("INSERT INTO t (SELECT id + 10, v FROM q)", [(1, "a"), (2, "b"), (3, "c"), (13, "x"), (14, "y")]),
    (
        "INSERT INTO t (v, id) WITH z AS (SELECT v, id FROM q WHERE id > 3) SELECT * FROM z",
        [(1, "a"), (2, "b"), (3, "c"), (4, "y")],
    ),
    ("INSERT INTO t VALUES ((SELECT max(id) FROM q), 'most')", [(1, "a"), (2, "b"), (3, "c"), (4, "most")]),
    ("INSERT OVERWRITE t FROM q |> WHERE id = 4", [(4, "y")]),
    ("FROM q INSERT INTO t SELECT id + 10, v WHERE id = 3", [(1, "a"), (2, "b"), (3, "c"), (13, "x")]),
    (
        (
            "INSERT INTO t SELECT * FROM (WITH q AS (SELECT id + 20 AS id, v FROM q WHERE id = 3) SELECT *"
            " FROM q)"
        ),
        [(1, "a"), (2, "b"), (3, "c"), (23, "x")],
    ),
    ("DELETE FROM t WHERE id IN (WITH p AS (SELECT id - 1 AS id FROM q) SELECT id FROM p)", [(1, "a")]),
    (
        (
            "DELETE FROM t WHERE id IN (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE"
            " n < 2) SELECT n FROM r)"
        ),
        [(3, "c")],
    ),
    ("DELETE FROM t WHERE id IN (SELECT id FROM q)", [(1, "a"), (2, "b")]),
    (
        "UPDATE t SET v = (SELECT max(v) FROM q) WHERE id IN (SELECT id FROM q)",
        [(1, "a"), (2, "b"), (3, "y")],
    ),
    (
        "MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        [(1, "a"), (2, "b"), (3, "x"), (4, "y")],
    ),
    (
        (
            "MERGE INTO t USING (SELECT id, v || '!' AS v FROM q) AS z ON t.id = z.id WHEN MATCHED THEN"
            " UPDATE SET v = z.v"
        ),
        [(1, "a"), (2, "b"), (3, "x!")],
    ),
]


@pytest.mark.parametrize(("statement", "expected"), BEFORE)
def test_with_comes_before_a_change(statement: str, expected: list[tuple[int, str]], tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"id": [1, 2, 3], "v": ["a", "b", "c"]})
    rows = pa.table({"id": [2, 3, 4], "v": ["w", "x", "y"]})
    deltaic.sql(
        f"WITH p AS (SELECT * FROM s), q AS (SELECT * FROM p WHERE id > 2) {statement}",
        tables={"t": table, "s": rows},
    )
    found = deltaic.DeltaTable(tmp_path / "t").scan().to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == expected


@pytest.mark.parametrize(
    "statement", ["DELETE FROM q WHERE id = 1", "INSERT INTO t SELECT * FROM w", "TRUNCATE TABLE t"]
)
def test_with_before_a_change_that_fails(statement: str, tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"id": [1], "v": ["a"]})
    with pytest.raises(deltaic.errors.InvalidArgumentError):
        deltaic.sql(f"WITH q AS (SELECT 1 AS id, 'b' AS v) {statement}", tables={"t": table})
    assert deltaic.DeltaTable(tmp_path / "t").version == 0
