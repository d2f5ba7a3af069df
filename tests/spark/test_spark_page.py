"""Runs the blocks of `py` of every page, on a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from test_documents import PAGES
from test_readme import blocks

ON_SPARK = [page for page in PAGES if any(language == "py" for language, _ in blocks(page))]


@pytest.mark.parametrize("page", ON_SPARK, ids=lambda page: page.name)
def test_the_page_runs(page: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page", "spark": spark}
    from deltaic.engine.spark.engine import SETTING

    try:
        for number, (language, text) in enumerate(blocks(page), 1):
            if language != "py" or ("CREATE TABLE orders" in text and not hasattr(spark, "_jsparkSession")):
                continue  # names need a JVM
            if hasattr(spark, "_jsparkSession"):  # the JVM's current folder is another one than the test's
                text = text.replace('"checkpoint"', f'"{tmp_path / "checkpoint"}"')
            exec(compile(text, f"{page.name}, block {number}", "exec"), names)
    finally:
        for name in ("sql", SETTING):
            spark.__dict__.pop(name, None)


def test_pages_on_spark_are_found() -> None:
    assert {"spark.md", "streams.md", "from-delta-spark.md"} <= {page.name for page in ON_SPARK}
