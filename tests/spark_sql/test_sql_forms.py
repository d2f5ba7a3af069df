"""docs/sql.md agrees with the registry, and each function on it has a result recorded from Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from spark_forms import FAMILIES

from deltaic.spark_sql.functions.nested import SPECIAL
from deltaic.spark_sql.functions.registry import FORMS
from loaded import loaded

ROOT = Path(__file__).resolve().parents[2]
# What they answer is never the same twice.
UNRECORDED = {"now", "current_timestamp", "current_date", "curdate", "localtimestamp"}
QUERIED = {"window_time", "make_interval", "try_make_interval", "make_dt_interval", "make_ym_interval"}
"""Functions of queries alone, recorded in queries.sql and intervals.sql."""


@pytest.fixture(scope="module")
def script() -> Any:
    return loaded("scripts/write_sql_forms.py")


def test_the_page_is_what_the_script_writes(script: Any) -> None:
    assert (ROOT / "docs" / "sql.md").read_text(encoding="utf-8") == script.render()


def test_every_function_is_recorded() -> None:
    text = "\n".join(form for family in FAMILIES for form in family.forms).lower()
    called = set(re.findall(r"([a-z_0-9]+)\(", text))
    names = {name for name in (*FORMS, *SPECIAL) if name.isidentifier()}
    assert names - called - UNRECORDED - QUERIED == set()


OPERATORS = {"extract"}
"""Names of which the page has another word: `date_part`."""


def test_every_function_of_spark_is_on_the_page() -> None:
    """`SHOW SYSTEM FUNCTIONS` of Spark 4.3: each is answered, or refused with a reason."""
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    listed = (ROOT / "tests" / "spark_sql" / "recorded" / "functions.txt").read_text(encoding="utf-8").split()
    assert len(listed) > 580
    words = set(re.findall(r"[a-z_0-9]+", page.lower()))
    assert [name for name in listed if name not in words | OPERATORS and name.isidentifier()] == []
