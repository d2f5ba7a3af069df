"""The 22 queries of TPC-H at scale 0.1 over Delta tables, compared with rows that scripts/record_tpch.py
recorded from Spark.

`tpchgen-cli` (PyPI) makes the data; TPCHGEN names it if it is not on the path. Without it the tests are
skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from tpch import SCALE, TABLES, answer_of, load, queries

import deltaic

RECORDED = load()
TEXTS = queries()


def generator() -> str | None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    return os.environ.get("TPCHGEN") or (str(beside) if beside.exists() else shutil.which("tpchgen-cli"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, deltaic.DeltaTable]:
    program = generator()
    if program is None:
        pytest.skip("tpchgen-cli is not installed")
    root = tmp_path_factory.mktemp("tpch")
    subprocess.run([program, "parquet", "-s", SCALE, f"--output-dir={root}"], check=True, capture_output=True)
    plain = {"delta.enableDeletionVectors": False}
    return {
        name: deltaic.write(root / name, ds.dataset(root / f"{name}.parquet"), properties=plain)
        for name in TABLES
    }


def test_all_queries_are_recorded() -> None:
    assert list(RECORDED) == list(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_rows_are_those_of_spark(name: str, tables: dict[str, deltaic.DeltaTable]) -> None:
    found, recorded = answer_of(deltaic.sql(TEXTS[name], tables=tables).to_arrow()), RECORDED[name]
    assert (found["columns"], found["rows"], found["first"]) == (
        recorded["columns"],
        recorded["rows"],
        recorded["first"],
    )
    assert found["hash"] == recorded["hash"]
