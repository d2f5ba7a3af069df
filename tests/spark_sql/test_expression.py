"""Parsing and resolving: names, errors, conjuncts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Field, Schema, Struct
from deltaic.spark_sql import parsing
from deltaic.spark_sql.expression import parse, resolve
from deltaic.spark_sql.text_cache import TextCache

TABLE = Schema(
    [
        Field("Id", "long", nullable=False),
        Field("name", "string"),
        Field("odd name", "integer"),
        Field("point", Struct([Field("X", "double"), Field("inner", Struct([Field("y", "date")]))])),
    ]
)
ONE = {"t": TABLE}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "a +",
        "1 1",
        "a; b",
        "select 1",
        "a,",
        "(a",
        "a is null = b",
        "-- only a comment",
        "a as b",
        "*",
        "0x1F",
        "9" * 5000,
        "case when a then",
    ],
)
def test_text_that_is_not_one_expression_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse(text)


def test_syntax_errors_say_where() -> None:
    with pytest.raises(InvalidArgumentError, match="line 2, column"):
        parse("a = 1 and\n b = = 2")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a | b & c ^ d", "a | ((b & c) ^ d)"),
        ("'x' || 1 + 2", "('x' || 1) + 2"),
        ("a = b < c", "(a = b) < c"),
        ("a = b is null", "(a = b) is null"),
        ("a << 1 + 2", "a << (1 + 2)"),
        ("a & b << c", "a & (b << c)"),
        ("not a = b and c", "(not (a = b)) and c"),
        ("-a::int", "-(a::int)"),
        ("a + b % c", "a + (b % c)"),
    ],
)
def test_precedence_is_sparks(text: str, same: str) -> None:
    assert _without_parentheses(parse(text)) == _without_parentheses(parse(same))


def _without_parentheses(tree: exp.Expression) -> exp.Expression:
    for inner in reversed(list(tree.find_all(exp.Paren))):
        inner.replace(inner.this)
    return tree


def test_names_match_without_case_and_come_back_in_the_schemas_own() -> None:
    found = resolve(
        "ID > 1 and T.NAME is null and `ODD name` = 1 and POINT.x > 0 and t.point.Inner.Y is null", ONE
    )
    assert found.columns == {
        ("t", ("Id",)),
        ("t", ("name",)),
        ("t", ("odd name",)),
        ("t", ("point", "X")),
        ("t", ("point", "inner", "y")),
    }
    assert found.type == "boolean"


def test_parentheses_leave_a_field_its_name() -> None:
    resolved = resolve("struct((name), point.X, (Id + 1))", ONE)
    assert isinstance(resolved.type, Struct)
    assert [field.name for field in resolved.type.fields] == ["name", "X", "col3"]


def test_an_alias_goes_before_a_column_of_the_same_name() -> None:
    schemas = {
        "s": Schema([Field("a", "integer")]),
        "t": Schema([Field("s", Struct([Field("a", "string")]))]),
    }
    assert resolve("s.a", schemas).columns == {("s", ("a",))}
    assert resolve("t.s.a", schemas).columns == {("t", ("s", "a"))}


def test_an_ambiguous_name_is_refused_with_both() -> None:
    with pytest.raises(InvalidArgumentError, match=r"s\.id or t\.Id"):
        resolve("id = 1", {"s": Schema([Field("id", "long")]), "t": TABLE})


def test_an_unknown_name_is_refused_with_candidates() -> None:
    with pytest.raises(InvalidArgumentError, match=r"naem.*name"):
        resolve("naem = 'x'", ONE)
    with pytest.raises(InvalidArgumentError, match=r"z.*X, inner"):
        resolve("point.z = 1", ONE)


@pytest.mark.parametrize(
    "text",
    ["sum(id) > 1", "row_number() over (order by id)", "id in (select 1)", "exists (select 1)", "(select 1)"],
)
def test_aggregates_windows_and_subqueries_are_no_scalars(text: str) -> None:
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError)):
        resolve(text, ONE)


def test_what_is_not_on_the_list_is_refused_by_name() -> None:
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"function sentences is not supported .*: the function needs the rules of a language",
    ):
        resolve("sentences(name)", ONE)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("id = 1", ("id = 1",)),
        ("id = 1 AND name = 'a and b'", ("id = 1", "name = 'a and b'")),
        (
            "(id between 1 and 2) and (name like 'x%' and id > 3)",
            ("id between 1 and 2", "name like 'x%'", "id > 3"),
        ),
        ("id not between 1 and 2 and id > 0", ("id not between 1 and 2", "id > 0")),
        ("id = 1 or id = 2 and id = 3", ("id = 1 or id = 2 and id = 3",)),
        (
            "case when id = 1 and id = 2 then true end and id > 0",
            ("case when id = 1 and id = 2 then true end", "id > 0"),
        ),
        ("not (id = 1 and id = 2) and id > 0", ("not (id = 1 and id = 2)", "id > 0")),
    ],
)
def test_conjuncts_are_slices_of_the_text(text: str, parts: tuple[str, ...]) -> None:
    assert tuple(each.text for each in resolve(text, ONE).conjuncts) == parts


def test_a_chain_of_thousands_is_no_deep_tree_for_the_translation() -> None:
    assert len(resolve(" or ".join(f"id = {number}" for number in range(300)), ONE).conjuncts) == 1


def test_nesting_without_end_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match="nested"):
        parse("(" * 20_000 + "1" + ")" * 20_000)


@pytest.mark.parametrize(
    "text",
    [
        *("`a`", "`t`.`a`", "`odd name`", "`a``b`.`c.d`", "`case`", "`t`.`*`", "`current_date`", "`1`"),
        *("`\"`.`'`", "`--`", "`ä`.`ß`", "``", "`a`.", "`a`.``"),
    ],
)
def test_names_in_quotes_are_read_without_the_parser(text: str) -> None:
    def read(function: Callable[[], exp.Expression]) -> exp.Expression | str:
        try:
            return function()
        except InvalidArgumentError as error:
            return str(error)

    found, expected = read(lambda: parse(text)), read(lambda: parsing._parse(text, exp.Condition))
    assert found == expected
    assert repr(found) == repr(expected)


def test_kept_results_are_bounded_by_their_characters() -> None:
    cache, made = TextCache[str](2_000), list[str]()

    def get(text: str, key: int = 0) -> str:
        return cache.get(
            text,
            lambda: made.append(text) or text.upper(),  # type: ignore[func-returns-value]
            key,
        )

    assert [get("a"), get("a"), get("b"), get("a", 1)] == ["A", "A", "B", "A"]
    assert made == ["a", "b", "a"]
    for number in range(100):
        get(f"text {number}")
        get("a")  # used repeatedly, so it stays cached
    assert made.count("a") == 2
    assert len(cache._newer) + len(cache._older) <= 20
    get("x" * 2_000)
    get("x" * 2_000)
    assert made.count("x" * 2_000) == 2


def test_the_same_text_over_other_columns_is_another_expression() -> None:
    for kind in ("integer", "string", "double"):
        assert resolve("v", {"t": Schema([Field("v", kind)])}).type == kind
        assert resolve("`t`.`v`", {"t": Schema([Field("v", kind)])}).type == kind
    with pytest.raises(InvalidArgumentError, match="no column v"):
        resolve("v", {"t": Schema([Field("w", "integer")])})


def test_trees_that_are_kept_answer_as_fresh_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is parsed once, however often it is used; what reads its tree leaves the tree as it was."""
    texts = [
        "Id between 1 and 3 and name like 'a%'",
        "point.inner.y > DATE'2020-01-01' or not (Id in (1, 2))",
        "upper(name) || cast(Id as string)",
    ]
    trees = [repr(parse(text)) for text in texts]
    kept = [resolve(text, ONE) for text in texts]
    assert [resolve(text, ONE) for text in texts] == kept
    assert all(parse(text) is parse(text) for text in texts)
    assert [repr(parse(text)) for text in texts] == trees
    monkeypatch.setattr(parsing._TREES, "characters", 0)
    monkeypatch.setattr(parsing._TREES, "_newer", {})
    monkeypatch.setattr(parsing._TREES, "_older", {})
    assert parse(texts[0]) is not parse(texts[0])
    assert [resolve(text, ONE) for text in texts] == kept
    assert [repr(parse(text)) for text in texts] == trees
