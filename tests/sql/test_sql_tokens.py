"""`deltaic.sql.tokens`: statements divided so that every expression stays the text the user wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.errors import InvalidArgumentError
from deltaic.sql.tokens import Reader, without_qualifiers
from deltaic.sql_text import string_value


def test_slice_stops_at_a_word_outside_brackets_case_and_quotes() -> None:
    text = "a IN (1, 2 /* WHERE */) AND CASE WHEN b THEN 'WHERE' END = `WHERE` WHERE c"
    reader = Reader(text)
    assert (
        reader.slice("WHERE", "WHEN", "THEN")
        == "a IN (1, 2 /* WHERE */) AND CASE WHEN b THEN 'WHERE' END = `WHERE`"
    )
    reader.expect("WHERE")
    assert reader.rest("x") == "c"


def test_slice_knows_columns_called_case_and_end() -> None:
    assert Reader("t.case = t.end THEN DELETE").slice("THEN") == "t.case = t.end"
    assert Reader("(id INT, case INT)").inside("columns") == "id INT, case INT"
    assert Reader("case WHERE case = 1").slice("WHERE") == "case"
    for value in (
        "CASE WHEN end > 2 THEN end ELSE when END",
        "CASE WHEN end = 9 THEN 1 WHEN id = 3 THEN then ELSE else END",
        "CASE s.end WHEN 1 THEN CASE WHEN a THEN INTERVAL 1 DAY END END",
        "CASE end WHEN end THEN case ELSE end END",
        "1 + when",
        "'a'::ARRAY<INT>",
    ):
        for stop in ("WHERE", "WHEN", ","):
            assert Reader(f"{value} {stop} a").slice("WHERE", "WHEN", ",") == value


def test_comments_stand_in_comments() -> None:
    for text in (
        "a /* b /* c */ d */ e /* x */ f",
        "a /* b /* c /* d */ */ ' */ e -- x \\\n y \n f /*+ hint */",
        "a /*/ b /* ' */ */ e /**/ f",
        "a /* b /*+ no comment in a hint */ e f",
    ):
        assert [token.text for token in Reader(text).tokens] == ["a", "e", "f"], text


@pytest.mark.parametrize(
    "value",
    [
        "null::MAP<INT, INT>",
        "null::MAP<INT, ARRAY<INT>>",
        "null::STRUCT<a: INT, b: INT>.a",
        "map < 1",
        "a::INT < map",
    ],
)
def test_slice_knows_types_with_commas(value: str) -> None:
    assert Reader(f"{value}, b = 1 > 0").slice(",") == value


def test_slice_keeps_comments_and_spaces_between_its_ends() -> None:
    assert Reader("  a  -- why\n + 1 , b").slice(",") == "a  -- why\n + 1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.a = 1 AND b.t.c = 't.a'", "a = 1 AND b.t.c = 't.a'"),
        ("T.`a b` + `t`.b", "`a b` + b"),
        ("tt.a + t", "tt.a + t"),
        ("delta.`/x`.a > 0", "delta.`/x`.a > 0"),
        ("f(t.a, t.b.c)", "f(a, b.c)"),
    ],
)
def test_an_alias_is_taken_from_before_columns(text: str, expected: str) -> None:
    assert without_qualifiers(text, (("t",),)) == expected


def test_a_path_is_taken_from_before_columns() -> None:
    assert without_qualifiers("delta.`/x`.a > `/x`.b", (("delta", "/x"), ("/x",))) == "a > b"


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        (r"'a\'b'", "a'b"),
        (r"'\n\t\\'", "\n\t\\"),
        (r"r'\n'", r"\n"),
        ('"x"', "x"),
        (r"'\u00e9'", "é"),
        (r"'10\%'", r"10\%"),
    ],
)
def test_string_literals_are_sparks(literal: str, value: str) -> None:
    assert string_value(literal) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 'a", "never closed"),
        ("SELECT `a", "never closed"),
        ("DELETE FROM t /* a /* b */ WHERE id = 1", "never closed"),
        ("", "empty"),
        (" ; ", "empty"),
        ("a; b", "one statement"),
        ("SELECT " + "9" * 5000, "a number is too long"),
    ],
)
def test_text_that_is_no_statement(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Reader(text)


def test_errors_say_line_and_column() -> None:
    reader = Reader("DELETE\n  FORM t")
    reader.expect("DELETE")
    with pytest.raises(InvalidArgumentError, match="line 2, column 3") as caught:
        reader.expect("FROM")
    assert caught.value.found == "FORM"
    assert caught.value.expected == "FROM"


@given(st.text(alphabet="ab'\"`\\ \n.(;-/*", max_size=30))
def test_any_text_divides_or_is_refused(text: str) -> None:
    try:
        reader = Reader(text)
    except InvalidArgumentError:
        return
    assert [text[token.start : token.end] for token in reader.tokens] == [
        token.text for token in reader.tokens
    ]


@given(st.text(max_size=20))
def test_a_string_survives_its_quoting(value: str) -> None:
    assert string_value("'" + value.replace("\\", "\\\\").replace("'", "''") + "'") == value
