"""The queries of `FILES` by name, and their results in the form in which they are recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from spark_recording import encode

import deltaic
from deltaic.spark_sql.values import type_text

FILES = ("queries.sql", "intervals.sql", "jobs.sql", "formats.sql", "reports.sql")


def queries() -> list[tuple[str, str]]:
    """(name, text) of each."""
    found, heading = [], ""
    lines: list[str] = []
    texts = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in FILES]
    for line in (line for text in texts for line in text.splitlines()[3:]):
        if line.startswith("-- "):
            heading, lines = line[3:], []
            continue
        lines.append(line)
        if line.endswith(";"):
            found.append((heading, "\n".join(lines)[:-1]))
    if lines and not lines[-1].endswith(";"):
        found.append((heading, "\n".join(lines)))
    if len({name for name, _ in found}) != len(found):
        raise ValueError("two queries of one name")
    return found


def difference(
    columns: list[list[str]], rows: list[list[Any]], expected: Mapping[str, Any], *, ordered: bool
) -> str:
    """What an answer has that `expected`, which was recorded from Spark, has not; empty where nothing
    differs. `ordered`: rows are compared in their order. Sums of floating point depend on the order of rows
    in their last digit."""
    if columns != expected["columns"]:
        return f"columns {columns}, expected {expected['columns']}"
    found, wanted = rows, expected["rows"]
    if not ordered:
        found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
    if len(found) != len(wanted):
        return f"{len(found)} rows, expected {len(wanted)}"
    kinds = [kind for _, kind in columns]
    for one, other in zip(found, wanted, strict=True):
        if not all(map(_same, kinds, one, other)):
            return f"the row {one}, expected {other}"
    return ""


def _same(kind: str, mine: Any, theirs: Any) -> bool:
    if kind in ("double", "float") and mine is not None and theirs is not None:
        return bool(mine == theirs) or math.isclose(float(mine), float(theirs), rel_tol=1e-12)
    return bool(mine == theirs)


def encoded(table: pa.Table) -> list[list[Any]]:
    """Rows, each a list of its values."""
    columns = [encode(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def answer(text: str, rows: Mapping[str, pa.Table]) -> tuple[list[list[str]], list[list[Any]]]:
    """Returns names and types of the columns of a query over these tables, and its rows."""
    found = deltaic.sql(text, tables=dict(rows))
    return [[field.name, type_text(field.type).lower()] for field in found.schema], encoded(found.to_arrow())
