"""A command parses and resolves each expression once, on both engines."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltaic import DeltaTable, write
from deltaic.spark_sql import parsing
from deltaic.spark_sql.translation import Translator

# Each expression of these commands calls a function that no other one calls.
_FUNCTION = re.compile(r"\b(upper|lower|reverse|length|ltrim|initcap|soundex|ascii|repeat)\(")


def scan(table: DeltaTable) -> None:
    rows = table.scan(["id"], where="upper(b) = 'B1' AND length(b) > 1 AND id < 100")
    assert rows.to_arrow().num_rows == rows.count() == 1


def delete(table: DeltaTable) -> None:
    assert table.delete("upper(b) = 'B1' AND length(b) > 1")["num_deleted_rows"] == 1


def update(table: DeltaTable) -> None:
    changed = table.update({"b": "reverse(b)", "n": "ascii(b)"}, where="upper(b) = 'B1' OR lower(b) = 'b2'")
    assert changed["num_updated_rows"] == 2


def merge(table: DeltaTable) -> None:
    source = pa.table({"id": [1, 2, 3, 9, 10], "b": ["x", "y", "z", "new", "newer"]})
    merged = (
        table.merge(source, on="t.id = s.id AND length(t.b) > 1")
        .when_matched_delete(where="upper(s.b) = 'X'")
        .when_matched_update({"b": "reverse(s.b)", "n": "ascii(t.b)"}, where="lower(s.b) < 'zz'")
        .when_not_matched_insert({"id": "s.id", "b": "repeat(b, 2)"}, where="ltrim(b) = 'new'")
        .when_not_matched_by_source_update({"b": "initcap(b)"}, where="soundex(b) <> ''")
        .execute()
    )
    counts = [
        merged[f"num_target_rows_{what}"] for what in ("matched_deleted", "matched_updated", "inserted")
    ]
    assert counts == [1, 2, 1]
    assert merged["num_target_rows_not_matched_by_source_updated"] == 5


JOBS = {"scan": (scan, 2), "delete": (delete, 2), "update": (update, 4), "merge": (merge, 9)}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often text with each function was parsed; nothing that was parsed before is kept."""
    found, parse = Counter[str](), parsing._parse

    def counted(text: str, *rest: Any, **options: Any) -> Any:
        found.update(set(_FUNCTION.findall(text)))
        return parse(text, *rest, **options)

    monkeypatch.setattr(parsing, "_parse", counted)
    for name, value in (("characters", 0), ("_newer", {}), ("_older", {})):
        monkeypatch.setattr(parsing._TREES, name, value)
    return found


def made(path: Path, spark: Any = None) -> DeltaTable:
    write(
        path,
        pa.table(
            {
                "id": list(range(8)),
                "b": [f"b{number}" for number in range(8)],
                "n": pa.array(range(8), pa.int32()),
            }
        ),
    )
    return DeltaTable(path, spark=spark)


@pytest.mark.parametrize("job", JOBS)
def test_one_parse_and_one_translation(
    job: str, tmp_path: Path, parsed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    translated, function = Counter[str](), Translator.function

    def counted(self: Translator, node: Any) -> Any:
        translated[str(node.this).lower()] += 1
        return function(self, node)

    monkeypatch.setattr(
        "deltaic.spark_sql.translation._HANDLERS", {**_handlers(), parsing.exp.Anonymous: counted}
    )
    run, expressions = JOBS[job]
    run(made(tmp_path / "table"))
    assert set(parsed.values()) == {1}
    assert {name: count for name, count in translated.items() if name in parsed} == dict.fromkeys(parsed, 1)
    assert len(parsed) == expressions


def _handlers() -> dict[Any, Any]:
    from deltaic.spark_sql.translation import _HANDLERS

    return _HANDLERS


@pytest.mark.parametrize("job", JOBS)
def test_one_analysis_on_spark(
    job: str, tmp_path: Path, parsed: Counter[str], monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    from deltaic.engine.spark.expressions import Analyser

    resolved, resolve = Counter[str](), Analyser.resolve

    def counted(self: Analyser, text: str, *rest: Any) -> Any:
        resolved.update(set(_FUNCTION.findall(text)))
        return resolve(self, text, *rest)

    monkeypatch.setattr(Analyser, "resolve", counted)
    run, expressions = JOBS[job]
    run(made(tmp_path / "table", spark))
    assert set(resolved.values()) == {1}
    assert set(parsed.values()) <= {1}
    assert len(resolved) == expressions
