"""A name of the deltalake package that deltaic does not have raises an error with the name to use instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.deltalake_names import MODULE, TABLE
from deltaic.errors import InvalidTypeError


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    return deltaic.write(tmp_path / "t", pa.table({"id": [1, 2]}))


@pytest.mark.parametrize("name", TABLE)
def test_attributes_of_a_table(name: str, table: deltaic.DeltaTable) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"deltalake's {name} is {TABLE[name]} here")):
        getattr(table, name)


def test_static_names_and_unknown_names(table: deltaic.DeltaTable) -> None:
    with pytest.raises(AttributeError, match=r"DeltaTable\.exists\(path\)"):
        deltaic.DeltaTable.is_deltatable("t")
    with pytest.raises(AttributeError, match=r"^DeltaTable has no attribute 'nothing'$"):
        table.nothing  # noqa: B018
    assert not hasattr(table, "to_pandas")


@pytest.mark.parametrize("name", MODULE)
def test_names_of_the_package(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"deltalake's {name} is {MODULE[name]} here")):
        getattr(deltaic, name)


@pytest.mark.parametrize(
    ("call", "argument", "ours"),
    [
        (lambda table: table.delete(predicate="id = 1"), "predicate", "where"),
        (lambda table: table.update(updates={"id": "3"}), "updates", "set"),
        (lambda table: table.update(new_values={"id": 3}), "new_values", "set"),
        (lambda table: table.merge(pa.table({"id": [1]}), predicate="s.id = t.id"), "predicate", "on"),
        (lambda table: table.vacuum(retention_hours=1), "retention_hours", "retention"),
        (
            lambda table: deltaic.write(table, pa.table({"id": [1]}), configuration={}),
            "configuration",
            "properties",
        ),
        (lambda table: deltaic.write(table, pa.table({"id": [1]}), predicate="id = 1"), "predicate", "where"),
        (
            lambda table: deltaic.DeltaTable.create("x", "id int", configuration={}),
            "configuration",
            "properties",
        ),
    ],
)
def test_arguments(call: Callable[[Any], Any], argument: str, ours: str, table: deltaic.DeltaTable) -> None:
    with pytest.raises(
        InvalidTypeError, match=f"has no argument '{argument}'; found {argument}=; expected {ours}="
    ):
        call(table)
    assert table.version == 0


def test_version_is_a_property(table: deltaic.DeltaTable) -> None:
    with pytest.raises(
        TypeError, match=r"version is a property; found table\.version\(\); expected table\.version"
    ):
        table.version()  # type: ignore[operator]
    assert table.version == 0
    assert repr(table.version) == "0"


def test_completion_shows_the_public_names_alone() -> None:
    assert set(dir(deltaic)) == {*deltaic.__all__, "__version__"}
