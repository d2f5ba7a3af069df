"""`deltaic.spark.tables` and `.exceptions` have the names, parameters and defaults of delta-spark.

`delta_api.txt` has those of delta-spark 4.4.1; if that package is installed, its own modules are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from delta_signatures import exceptions, signatures

pytest.importorskip("pyspark")

LISTED = Path(__file__).with_name("delta_api.txt").read_text(encoding="utf-8").splitlines()


def ours() -> list[str]:
    from deltaic.spark import exceptions as errors
    from deltaic.spark import tables

    return [*signatures(tables), *(f"exceptions.{name}" for name in exceptions(errors))]


def test_the_same_names_parameters_and_defaults() -> None:
    assert ours() == LISTED


def test_the_list_is_delta_sparks() -> None:
    tables = pytest.importorskip("delta.tables")
    import delta.exceptions

    assert [*signatures(tables), *(f"exceptions.{name}" for name in exceptions(delta.exceptions))] == LISTED


def test_conflicts_are_deltaics_own() -> None:
    import deltaic.errors
    from deltaic.spark import exceptions as errors

    for name in errors.__all__:
        assert getattr(errors, name) is getattr(deltaic.errors, name)
