"""TPC-H for tests and for the script that records Spark's results: queries, tables, and the form of a
recorded result."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from spark_recording import FOLDER, encode

SCALE = "0.1"
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SHOWN = 20
"""Rows of an answer that are kept as they are; the others count by their hash."""
QUERIES = Path(__file__).resolve().parents[2] / "benches" / "spark" / "tpch.sql"
ANSWERS = FOLDER / "tpch.json"


def queries() -> dict[str, str]:
    """Returns the text of each query by its name."""
    parts = re.split(r"^-- (q\d+)$", QUERIES.read_text(), flags=re.MULTILINE)[1:]
    return {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}


def answer_of(rows: pa.Table) -> dict[str, Any]:
    """Names, types, the number of rows, the first of them and a hash of all."""
    columns = [encode(column) for column in rows.columns]
    lines = [json.dumps(row, ensure_ascii=False) for row in zip(*columns, strict=True)]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    types = [f"{field.name} {str(field.type).removeprefix('large_')}" for field in rows.schema]
    return {
        "columns": types,
        "rows": len(lines),
        "first": [json.loads(line) for line in lines[:SHOWN]],
        "hash": digest,
    }


def save(answers: dict[str, dict[str, Any]]) -> None:
    """One query a line."""
    ANSWERS.write_text(
        "{\n"
        + ",\n".join(
            f"{json.dumps(name)}: {json.dumps(answers[name], ensure_ascii=False)}" for name in answers
        )
        + "\n}\n"
    )


def load() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(ANSWERS.read_text())
    return found
