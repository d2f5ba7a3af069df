"""The text of a condition in the history of a table that Spark changes. delta-spark 4.4.0 writes
`(id#334L = 5)`, `((ID#1L = 6) OR (V#2 = -1))`, `((p#3 = b) AND (id#4L > 98))` and `id#5L IN (1,2,3)`.

Here the ids of columns are left out, texts have quotes, and IN has brackets, as in Spark's SQL of an
expression."""

from __future__ import annotations

import pytest

from deltaic.spark_sql.resolved_text import resolved_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id = 5", "(id = 5)"),
        ("id = 5L", "(id = 5)"),
        ("true", "true"),
        ("ID = 6 or V=-1", "((ID = 6) OR (V = -1))"),
        ("p='b' and id > 98 and x", "(((p = 'b') AND (id > 98)) AND x)"),
        ("id in (1,2,3)", "(id IN (1, 2, 3))"),
        ("id not in (1)", "(NOT (id IN (1)))"),
        ("id between 1 and v + 1", "((id >= 1) AND (id <= (v + 1)))"),
        ("not ((id = 3))and id<0", "((NOT (id = 3)) AND (id < 0))"),
        ("id != 3", "(NOT (id = 3))"),
        ("s is null or v is not null", "((s IS NULL) OR (v IS NOT NULL))"),
        ("s <=> null", "(s <=> NULL)"),
        ("s like 'a%'", "s LIKE 'a%'"),
        ("s like any ('a%', 'b%')", "s LIKE ANY ('a%', 'b%')"),
        ("UPPER(s)='Q'", "(upper(s) = 'Q')"),
        ("case when id=1 then true else false end", "CASE WHEN (id = 1) THEN true ELSE false END"),
        ("exists(a, x -> x > 1)", "exists(a, x -> (x > 1))"),
        ("a = (b = c)", "(a = (b = c))"),
        ("`odd name` = 1", "(`odd name` = 1)"),
        ("T.id = 5 and t.st.a = s.b", "((id = 5) AND (st.a = s.b))"),
        ("no condition at all", "no condition at all"),
    ],
)
def test_each_operation_has_brackets(text: str, shown: str) -> None:
    assert resolved_text(text, "t") == shown


def test_a_condition_over_two_relations_keeps_their_aliases() -> None:
    assert resolved_text("t.id = s.id and s.x>2", None) == "((t.id = s.id) AND (s.x > 2))"


def test_the_shared_tree_of_a_text_is_not_changed() -> None:
    assert [resolved_text("a = 1 or (b)", None) for _ in range(2)] == ["((a = 1) OR b)"] * 2


def test_thousands_of_operations() -> None:
    """One step for each operation: the work of a copy of each side grows with the square of their number."""
    shown = resolved_text(" OR ".join(f"a = {number}" for number in range(5_000)), None)
    assert shown == "(" * 4_999 + "(a = 0)" + "".join(f" OR (a = {number}))" for number in range(1, 5_000))
