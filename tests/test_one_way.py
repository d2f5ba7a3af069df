"""Tokens, quoting and the encoding of paths have one module each: `sql_text.py` and `protocol/paths.py`."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "deltaic"

# Modules with a pattern of quotes for another text than Spark's SQL, or for a part of one.
OTHER_TEXT = {
    "engine/duckdb/native_tables.py": "DuckDB's SQL, as it was written here",
    "spark_sql/query/windows.py": "DuckDB's SQL, as it was written here",
    "spark_sql/functions/time_formats.py": "patterns of dates",
    "spark_sql/char_types.py": "types in a column's metadata, whose names stand there with any characters",
    "protocol/schema.py": "the path of a column, whose names need no quotes for spaces",
    "protocol/values.py": "a property's list of such paths",
    "spark/options.py": "an option's list of names, which need no quotes for spaces",
    "protocol/iceberg.py": "asks only whether all of a text is a literal",
    "plan/literal.py": "asks only whether all of a text is a quoted name",
    "spark_sql/parsing.py": "asks only whether all of a text is a quoted name",
}
# Modules that put words between quotes for people, or names without their quotes into sqlglot's trees.
NOT_WRITTEN = {
    "spark_sql/parsing.py": "what an error message suggests; a name without the tokenizer",
}
# Modules that name settings of delta-spark in the parameters of its errors.
CONDITIONS = [
    f"spark/conditions_of_{name}.py" for name in ("conversions", "features", "layout", "schemas", "tables")
]
# What a pattern of SQL has, and no other: a quote that is doubled, or all up to the next one.
_TOKENS = re.compile(r"""\|``\)|\|''\)|\|\\?"\\?"\)|\[\^`[^\]]*\][*+]`|\[\^'[^\]]*\][*+]'""")
_QUOTING = re.compile(
    r"""\.replace\((?:"'"|'"'|'\\''|"`"|'`'|"\\"")\s*,"""  # a quote is doubled, or gets a backslash
    r"""|\.replace\((?:"``"|'``'),"""  # and back
    r"""|[^`]`\{[^}"]*\}`"""  # what is between backticks in an f-string
    r"""|["'][`"'\\]+["'] \+ """
)


@cache
def _lines() -> list[tuple[str, int, str]]:
    """Returns the lines of code, without docstrings and comments: module, number, text."""
    lines = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        texts: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                texts |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for number, line in enumerate(text.splitlines(), start=1):
            if number not in texts and not line.lstrip().startswith("#"):
                lines.append((path.relative_to(PACKAGE).as_posix(), number, line))
    return lines


def _found(pattern: re.Pattern[str], *allowed: str) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, number, line in _lines()
        if pattern.search(line) and name not in allowed
    ]


def test_parts_of_texts_are_replaced_by_one_function() -> None:
    assert _found(re.compile(r"\[copied"), "sql_text.py", "spark/expressions.py") == [], (
        "take deltaic.sql_text.edited"
    )


def test_one_tokenizer() -> None:
    assert _found(_TOKENS, "sql_text.py", *OTHER_TEXT) == [], "take the tokens of deltaic.sql_text"


def test_one_quoting() -> None:
    assert _found(_QUOTING, "sql_text.py", *NOT_WRITTEN) == [], "quote by deltaic.sql_text"


def test_one_encoding_of_paths() -> None:
    assert _found(re.compile(r"urllib.*\b(?:un)?quote|__HIVE_DEFAULT"), "protocol/paths.py") == [], (
        "encode by deltaic.protocol.paths"
    )


def test_every_exception_is_needed() -> None:
    needed = {each.partition(":")[0] for each in _found(_TOKENS, "sql_text.py")}
    assert set(OTHER_TEXT) == needed
    assert set(NOT_WRITTEN) == {each.partition(":")[0] for each in _found(_QUOTING, "sql_text.py")}


def test_a_setting_of_delta_spark_is_defined_where_it_is_known_and_is_read_and_documented() -> None:
    """`enable` warns of all settings that `_delta` does not define."""
    module = "engine/spark/settings.py"
    assert _found(re.compile(r"spark\.databricks\."), module, "log/schema_log.py", *CONDITIONS) == [], (
        f"define the setting by `_delta` of {module}"
    )
    text = (PACKAGE / module).read_text(encoding="utf-8")
    assert len(re.findall(r"spark\.databricks\.delta\.[\"']", text)) == 1
    code = "\n".join(line for _, _, line in _lines())
    names = re.findall(r"^(\w+)(?:: [^=]+)? = (?:\{\s*.*)?_delta\(", text, re.MULTILINE)
    assert len(names) > 25
    assert [name for name in names if len(re.findall(rf"\b{name}\b", code)) < 2] == []
    page = (PACKAGE.parents[1] / "docs" / "spark.md").read_text(encoding="utf-8")
    settings = re.findall(r'_delta\("([\w.]+)"\)', text)
    assert [name for name in settings if name not in page and not name.startswith("streaming.")] == []
