"""LIKE 'text%' as a condition: only files that may have a text with this beginning are read, and the rows are
those of LIKE."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic

LAST, BEFORE_SURROGATES, AFTER_SURROGATES = chr(0x10FFFF), chr(0xD7FF), chr(0xE000)
TEXTS = [
    *(
        "",
        "a",
        "ab",
        "abc",
        "abd",
        "ac",
        "b",
        "AB",
        "é",
        "éa",
        "ê",
        "a%",
        "a%b",
        "a_b",
        "a\\b",
        "a'b",
        "\0",
        "\0x",
        None,
    ),
    *(
        f"ab{LAST}",
        f"ab{LAST}{LAST}",
        f"ac{LAST}",
        LAST,
        f"{LAST}x",
        f"ab{BEFORE_SURROGATES}",
        f"ab{AFTER_SURROGATES}",
    ),
]
PATTERNS = [
    *(
        "a%",
        "ab%",
        "ab_",
        "ab%d",
        "abc",
        "%b",
        "_b%",
        "",
        "%",
        "é%",
        "c%",
        "a''%",
        r"a\\%%",
        r"a\\_%",
        r"a\\\\%",
    ),
    *(f"{LAST}%", f"ab{LAST}%", f"{LAST}{LAST}%", f"ab{BEFORE_SURROGATES}%"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> deltaic.DeltaTable:
    return deltaic.write(
        tmp_path_factory.mktemp("like") / "t", pa.table({"s": TEXTS, "n": range(len(TEXTS))})
    )


def like(text: str | None, pattern: str) -> bool:
    """Evaluates LIKE in the slow way, by a Python expression, character by character."""
    signs = re.findall(r"\\.|.", pattern, re.DOTALL)
    as_regex = "".join({"%": ".*", "_": "."}.get(sign) or re.escape(sign[-1]) for sign in signs)
    return text is not None and re.fullmatch(as_regex, text, re.DOTALL) is not None


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows(table: deltaic.DeltaTable, pattern: str) -> None:
    meant = pattern.replace("\\\\", "\\").replace("''", "'")
    expected = [n for n, text in enumerate(TEXTS) if like(text, meant)]
    for condition in (f"s LIKE '{pattern}'", f"n >= 0 AND (s LIKE '{pattern}' AND n < 1000)"):
        found = deltaic.sql(f"SELECT n FROM t WHERE {condition} ORDER BY n", tables={"t": table}).to_arrow()
        assert found["n"].to_pylist() == expected, condition
    others = deltaic.sql(
        f"SELECT n FROM t WHERE s NOT LIKE '{pattern}' ORDER BY n", tables={"t": table}
    ).to_arrow()
    assert others["n"].to_pylist() == [
        n for n, text in enumerate(TEXTS) if text is not None and n not in expected
    ]


def test_files_that_cannot_begin_so_are_skipped(tmp_path: Path) -> None:
    for first in "abcd":
        table = deltaic.write(
            tmp_path / "t", pa.table({"s": [f"{first}{n}" for n in range(10)]}), mode="append"
        )
    report = (
        deltaic.sql("SELECT count(*) AS n FROM t WHERE s LIKE 'c1%'", tables={"t": table})
        .explain()
        .scans["t"]
    )
    assert (report.files_read, report.files_skipped_by_statistics) == (1, 3)
