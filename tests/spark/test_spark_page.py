"""The Python of docs/spark.md, on a session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def test_the_page_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page", "spark": spark}
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    from deltaic.engine.spark.engine import SETTING

    try:
        for number, block in enumerate(blocks, 1):
            if "CREATE TABLE orders" in block and not hasattr(spark, "_jsparkSession"):
                continue  # names need a JVM
            exec(compile(block, f"spark.md, block {number}", "exec"), names)
    finally:
        for name in ("sql", SETTING):
            spark.__dict__.pop(name, None)
