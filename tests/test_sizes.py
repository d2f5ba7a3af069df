"""Files have at most 400 lines of code, and Python functions at most 60. Longer ones are listed here with the
reason, and may hardly grow."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE, FUNCTION = 400, 60
ROOM = 40
"""Number of lines by which a file of `LONGER` may exceed its entry, so that a small repair does not need a
change of the list."""

# Files above the bound: lines of code, and why one file is better for its readers than two.
LONGER = {
    "python/deltaic/commands/alter.py": (
        471,
        "one public class: a short method for each change of a definition",
    ),
    "python/deltaic/engine/duckdb/engine.py": (589, "the engine's interface, method by method"),
    "python/deltaic/engine/spark/engine.py": (474, "the engine's interface, method by method"),
    "python/deltaic/spark_sql/translation.py": (540, "one translator: a short method for each kind of node"),
    "python/deltaic/table.py": (
        663,
        "one public class: each method forwards, half of the lines are parameters",
    ),
    "rust/src/data_file/open.rs": (
        518,
        "one opened file: what its footer, vector and partition values leave to read",
    ),
    "rust/src/data_file/writer.rs": (459, "one writer, whose states follow each other"),
    "rust/src/expressions/java_regex.rs": (514, "one translator of patterns, construct by construct"),
    "rust/src/expressions/json.rs": (438, "functions that share one reader of paths"),
    "rust/src/expressions/variant_bytes.rs": (
        450,
        "one encoding: what reads and writes its bytes, type by type",
    ),
    "rust/src/store/local.rs": (545, "one implementation of `Store`, with what makes it durable"),
}


@cache
def lines_of_python(text: str) -> set[int]:
    """Lines with code: neither comments nor docstrings nor blank lines."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    layout = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return lines - documented


def lines_of_rust(text: str) -> int:
    """Lines with code before the tests at the end of a file."""
    before = re.split(r"^#\[cfg\(test\)\]\nmod \w+ \{", text, maxsplit=1, flags=re.MULTILINE)[0]
    return sum(bool(line.strip()) and not line.strip().startswith("//") for line in before.split("\n"))


def files() -> Iterator[tuple[str, int]]:
    for path in sorted((ROOT / "python").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), len(lines_of_python(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "rust" / "src").rglob("*.rs")):
        if path.name != "tests.rs":
            yield path.relative_to(ROOT).as_posix(), lines_of_rust(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return dict(files())


def test_files_are_short(counts: dict[str, int]) -> None:
    wrong = {
        name: count
        for name, count in counts.items()
        if count > (LONGER[name][0] + ROOM if name in LONGER else FILE)
    }
    assert wrong == {}, "divide these by subject, or give a reason in LONGER"


def test_every_exception_is_needed(counts: dict[str, int]) -> None:
    assert [name for name in LONGER if counts.get(name, 0) <= FILE] == []


def test_functions_are_short() -> None:
    wrong = []
    for path in sorted((ROOT / "python").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        code = lines_of_python(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = len(code & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
                if count > FUNCTION:
                    wrong.append(f"{path.relative_to(ROOT)}: {node.name} has {count} lines")
    assert wrong == []


def test_what_counts_as_code() -> None:
    text = '"""Text\nof a module."""\n\n# why\ndef f(\n    a,\n):\n    """Text."""\n    return 1\n'
    assert lines_of_python(text) == {5, 6, 7, 9}
    assert (
        lines_of_rust(
            "//! x\nfn a() {\n    // why\n    b()\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n"
        )
        == 3
    )


UNDIVIDED = re.compile(r"\||!\[|- \[[^]]*\]\(\S*\)$")
WIDTH = 110
"""Maximum number of characters of a line of code or text."""


def test_lines_are_short() -> None:
    files = [
        file
        for folder in ("python", "tests", "benches", "scripts", "packaging", "examples", "rust", "fuzz")
        for kind in ("*.py", "*.pyi", "*.rs")
        for file in (ROOT / folder).rglob(kind)
    ]
    assert len(files) > 500
    long = []
    for file in files:
        lines = enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        long += [f"{file.relative_to(ROOT)}:{number}" for number, line in lines if len(line) > WIDTH]
    assert long == []


def test_lines_of_pages_are_short() -> None:
    """All lines but those that cannot be divided: rows of tables, pictures, links alone, and commands that a
    script has recorded (blocks of text)."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 30
    long = []
    for page in pages:
        in_text = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith("```"):
                in_text = line == "```text"
            elif len(line) > WIDTH and not in_text and not UNDIVIDED.match(line):
                long.append(f"{page.relative_to(ROOT)}:{number}")
    assert long == []
