"""A condition that is read without the parser has the same meaning as with the parser, or is left to the
parser."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest
from sqlglot.dialects.databricks import Databricks

from deltaic import _core
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import DeltaError
from deltaic.planning import simple
from deltaic.planning.pushdown import push
from deltaic.protocol.schema import Field, Schema

SCHEMA = Schema.from_ddl(
    "a bigint, i int, y byte, b string, c double, f float, d date, e decimal(10,2), w decimal(38,2), flag"
    " boolean, st struct<x: int, S: string>, t struct<a: string>, ts timestamp, n timestamp_ntz, `odd.name`"
    " int, `my col` string, bin binary, l array<int>, v void"
)
TABLE = _core.TableSchema(SCHEMA.to_json())
ENGINE = LocalEngine()


def flat(node: dict[str, Any]) -> dict[str, Any]:
    """Flattens ANDs of ANDs to one AND, and likewise ORs: the nesting of operands has no meaning."""
    if node["op"] not in ("and", "or"):
        return {**node, "arg": flat(node["arg"])} if "arg" in node else node
    args = [
        part
        for arg in map(flat, node["args"])
        for part in (arg["args"] if arg["op"] == node["op"] else [arg])
    ]
    return {"op": node["op"], "args": args}


def same(text: str, *, schema: Schema = SCHEMA, zone: str = "UTC") -> bool:
    """Returns true if the text was simple; checks then that both readings agree."""
    said = simple.read(text, schema, "t", zone)
    if said is None:
        return False
    table = _core.TableSchema(schema.to_json())
    resolved = ENGINE.resolve(text, {"t": schema})
    assert resolved.type in ("boolean", "void"), text
    whole = push(resolved.conjuncts, schema, table, "t", time_zone=zone)
    found = simple.predicate_of(said, schema, table)
    assert whole.residual == (), text
    assert whole.predicate is not None, text
    assert found is not None, text
    assert flat(json.loads(found.json)) == flat(json.loads(whole.predicate.json)), text
    return True


@pytest.mark.parametrize(
    "text",
    [
        "a = 5",
        "A=-5",
        "5 < t.a",
        "T.`a` >= 0",
        "i in (1, 2,3)",
        "b in ('x', 'y')",
        "b = ''",
        "b <> 'it is'",
        "'x' != b",
        "a == 1 and i < 2 or (c >= 1.5 and f = 0.25)",
        "(a = 1)",
        "((a between 1 and 3) and (b is not null))",
        "a between -3 and 5 and i = 2",
        "d = '2024-01-31'",
        "ts >= '2024-01-31 10:00:00'",
        "ts >= '2024-01-31T10:00:00.5+02:00'",
        "n < '2024-01-31 10:00:00.123456'",
        "e = 1.5",
        "e <= 10",
        "w = -123456789012345678901234567890.12",
        "st.x = 1",
        "t.st.s = 'q'",
        "`odd.name` = 1",
        "`my col` is null",
        "y = 127",
        "flag is null",
        "\ta\n=\r 1 ",
    ],
)
def test_simple_conditions(text: str) -> None:
    assert same(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "flag",
        "a =",
        "a = 5L",
        "a = 1e3",
        "a = 5.",
        "a = .5",
        "a = - 5",
        "a = --5",
        "a = 5 -- why",
        "a = /* why */ 5",
        "a = 5;",
        "a <=> 5",
        "a = b",
        "a = '5'",
        "b = 5",
        "b in ('x', 1)",
        "y = 128",
        "i = 1.5",
        "e = 1.555",
        "f = 0.1",
        "d = '2024-02-30'",
        "d = '2024'",
        "d = date'2024-01-31'",
        "b = 'it''s'",
        "b = 'a' 'b'",
        "b = 'a\\'",
        'b = "a"',
        "b like 'x%'",
        "not a = 5",
        "a not in (1)",
        "a = null",
        "a = true",
        "a = 1 = 2",
        "a between 1 and",
        "a in ()",
        "a is 5",
        "nothing = 5",
        "st = 5",
        "bin = 'x'",
        "l = 1",
        "v = 1",
        "st.nothing = 1",
        "a.b = 1",
        "a = 1 and",
        "(a = 1",
        "a = 1)",
        "ä = 1",
        "a = 1ä",
        "a << 5",
        "a = 5 and lower(b) = 'x'",
        "1 = 1",
        "(" * 60 + "a = 1" + ")" * 60,
        "a\u00a0= 1",
        "a = ٣",
    ],
)
def test_what_is_left_to_the_parser(text: str) -> None:
    assert simple.read(text, SCHEMA, "t", "UTC") is None


def test_anything_but_text_and_zones() -> None:
    assert simple.read(5, SCHEMA, "t", "UTC") is None  # type: ignore[arg-type]
    assert simple.read("a = 1 or " * 20_000 + "a = 1", SCHEMA, "t", "UTC") is None
    assert not same("ts = '2024-01-31 10:00:00'", zone="Europe/Berlin")
    assert same("ts = '2024-01-31 10:00:00Z'", zone="Europe/Berlin")


def test_words_that_are_columns() -> None:
    """A column may have the name of any keyword: it is read as the parser reads it."""
    words = sorted(
        {word.lower() for word in Databricks.Tokenizer.KEYWORDS if word.isidentifier()}
        | {"date", "timestamp", "interval"}
    )
    assert len(words) > 200
    simple_words = 0
    for word in words:
        schema = Schema([Field("a", "integer"), Field(word, "integer"), Field("z", "string")])
        for text in (
            f"{word} = 1",
            f"a = 1 and {word} < 2",
            f"1 = {word}",
            f"t.{word} is null",
            f"{word} in (1, 2)",
            f"z = 'q' or {word} between 1 and 2",
        ):
            simple_words += same(text, schema=schema)
    assert simple_words > 500


def test_random_texts() -> None:
    draw, read = random.Random(4), 0
    columns = [
        "a",
        "i",
        "y",
        "b",
        "c",
        "f",
        "d",
        "e",
        "w",
        "flag",
        "st.x",
        "t.a",
        "ts",
        "n",
        "`odd.name`",
        "t.st.S",
        "bin",
        "v",
        "l",
        "T.b",
    ]
    values = [
        "0",
        "1",
        "-1",
        "12.5",
        "-0.5",
        "300",
        "1e2",
        "7L",
        "'x'",
        "''",
        "'2024-02-29'",
        "'2024-02-29 01:02:03'",
        "null",
        "true",
        "9" * 30,
    ]
    values += [
        "'1'",
        "0.10",
        "99999999.99",
        "99999999.999",
        "123456789.12",
        "-9223372036854775808",
        "9223372036854775808",
        "1.0",
        "00012",
    ]

    def test() -> str:
        column, value, other = draw.choice(columns), draw.choice(values), draw.choice(values)
        operator = draw.choice(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
        forms = [f"{column} {operator} {value}"] * 4 + [
            f"{value}{operator}{column}",
            f"{column} is null",
            f"{column} IS NOT NULL",
        ]
        forms += [
            f"{column} between {value} and {other}",
            f"{column} in ({value}, {other})",
            f"not {column} = {value}",
        ]
        return draw.choice(forms)

    for _ in range(3000):
        text = test()
        for _ in range(draw.choice([0, 0, 1, 2])):
            word, more = draw.choice(["and", "or", "AND"]), test()
            text = draw.choice(
                [f"{text} {word} {more}", f"({text}) {word} {more}", f"{more} {word} ({text})"]
            )
        read += same(text)
    assert read > 300


def test_generated_columns_are_thought_of() -> None:
    generated = Field("day", "date", metadata={"delta.generationExpression": "cast(ts as date)"})
    schema = Schema([Field("ts", "timestamp"), generated])
    table = _core.TableSchema(schema.to_json(), ["day"])
    said = simple.read("ts >= '2024-03-05 00:00:00'", schema, "t", "UTC")
    assert said is not None
    found = simple.predicate_of(said, schema, table)
    assert found is not None
    assert "day" in found.json
    resolved = ENGINE.resolve("ts >= '2024-03-05 00:00:00'", {"t": schema})
    whole = push(resolved.conjuncts, schema, table, "t").predicate
    assert whole is not None
    assert json.loads(whole.json) == json.loads(found.json)


def test_wide_decimals_keep_all_their_digits() -> None:
    for text in ("w = -123456789012345678901234567890.12", "w = 999999999999999999999999999999999999.99"):
        literal = text.removeprefix("w = ")
        for predicate in (
            push(ENGINE.resolve(text, {"t": SCHEMA}).conjuncts, SCHEMA, TABLE, "t").predicate,
            simple.predicate_of(simple.read(text, SCHEMA, "t", "UTC") or [], SCHEMA, TABLE),
        ):
            assert predicate is not None
            assert json.loads(predicate.json)["literal"] == literal
    refused = push(
        ENGINE.resolve("w = 123456789012345678901234567890.123", {"t": SCHEMA}).conjuncts, SCHEMA, TABLE, "t"
    )
    assert refused.predicate is None
    assert refused.residual


def test_a_plan_imports_neither_parser_nor_engine_nor_arrow(tmp_path: Any) -> None:
    """What takes most of the time of planning a small table."""
    import pyarrow as pa

    import deltaic

    deltaic.write(tmp_path / "t", pa.table({"a": [1, 2], "p": ["x", "y"]}), partition_by=["p"])
    code = (
        "import sys, deltaic; found = deltaic.DeltaTable(sys.argv[1]).files(\"p = 'x' and a >="
        " 1\").count();print(found, [name for name in ('sqlglot', 'duckdb', 'pyarrow', 'numpy', 'pandas') if"
        " name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split(" ", 1) == ["1", "[]\n"]


def test_errors_are_those_of_the_parser(tmp_path: Any) -> None:
    import pyarrow as pa

    import deltaic

    table = deltaic.write(tmp_path / "t", pa.table({"a": [1, 2]}))
    for text in ("nothing = 1", "a = 1 and", "a ="):
        with pytest.raises(DeltaError):
            table.files(text).count()
