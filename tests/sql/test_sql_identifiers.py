"""IDENTIFIER: names of tables, columns and functions that are given as text, in any statement."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltaic
from deltaic.errors import InvalidArgumentError


def test_names_come_from_parameters(tmp_path: Path) -> None:
    deltaic.write(str(tmp_path / "t"), {"id": [1, 2, 3], "a-b": ["x", "y", "z"]})
    given = {"table": f"delta.`{tmp_path / 't'}`", "column": "`a-b`", "function": "upper"}
    deltaic.sql("DELETE FROM IDENTIFIER(:table) WHERE IDENTIFIER('i' || 'd') = 3", parameters=given)
    text = "SELECT IDENTIFIER(:function)(IDENTIFIER(:column)) AS c FROM IDENTIFIER(:table) ORDER BY 1"
    rows = deltaic.sql(text, parameters=given)
    assert rows.to_pylist() == [{"c": "X"}, {"c": "Y"}]


@pytest.mark.parametrize("text", ["a b", "a.", ""])
def test_a_text_that_is_no_name(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        deltaic.sql(f"SELECT IDENTIFIER('{text}') FROM (SELECT 1 AS a)")
