"""Columns of text with a collation: their rows can be read; their statistics, which compare bytes, rule out
no file; and no comparison is evaluated by bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, Field, Schema
from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.schema import Struct


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Two files as a writer with support for collations makes them: `name` and `st.x` ignore case, `plain`
    declares that it compares bytes."""
    for n, names in enumerate((["a", "B"], ["C", "d"])):
        data = {
            "id": [2 * n, 2 * n + 1],
            "name": names,
            "st": [{"x": each} for each in names],
            "plain": names,
        }
        deltaic.write(
            tmp_path,
            pa.table(data),
            mode="append",
            properties={"delta.enableDeletionVectors": False} if n == 0 else None,
        )
    collated = Schema(
        [
            Field("id", "long"),
            Field("name", "string", metadata={"__COLLATIONS": {"name": "ICU.UNICODE_CI"}}),
            Field("st", Struct([Field("x", "string", metadata={"__COLLATIONS": {"x": "ICU.UNICODE_CI"}})])),
            Field("plain", "string", metadata={"__COLLATIONS": {"plain": "SPARK.UTF8_BINARY"}}),
        ]
    )
    metadata = json.loads(DeltaTable(tmp_path).metadata.to_json())
    metadata["metaData"]["schemaString"] = collated.to_json()
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["collations", "domainMetadata"],
    }
    lines = [{"commitInfo": {"operation": "x"}}, {"protocol": protocol}, metadata]
    (tmp_path / "_delta_log" / f"{2:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return DeltaTable(tmp_path)


def test_rows_are_read(table: DeltaTable) -> None:
    assert sorted(table.scan(where="id >= 1").to_arrow()["name"].to_pylist()) == ["B", "C", "d"]
    assert table.scan(where="plain = 'b'").explain().files_read == 1
    assert table.scan(where="name IS NOT NULL AND st.x IS NOT NULL").count() == 4
    query = "SELECT name FROM t UNION ALL SELECT (SELECT name FROM t WHERE id = 1)"
    assert sorted(deltaic.sql(query, tables={"t": table}).to_arrow()["name"].to_pylist()) == [
        "B",
        "B",
        "C",
        "a",
        "d",
    ]
    found = (
        deltaic.sql("SELECT name AS n, st, id FROM t WHERE id < 1", tables={"t": table})
        .to_arrow()
        .to_pylist()
    )
    assert found == [{"n": "a", "st": {"x": "a"}, "id": 0}]


@pytest.mark.parametrize(
    "where",
    [
        "name = 'A'",
        "name > 'b'",
        "name IN ('A')",
        "name LIKE 'A%'",
        "st.x = 'A'",
        "upper(name) = 'A'",
        "st = st",
    ],
)
def test_comparisons_are_refused(table: DeltaTable, where: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"ICU\.UNICODE_CI"):
        table.scan(where=where).to_arrow()
    assert table.files(where="id = 0").count() == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT name FROM t",
        "SELECT count(*) FROM t GROUP BY name",
        "SELECT id FROM t ORDER BY name",
        "SELECT max(name) FROM t",
        "SELECT name FROM t UNION SELECT 'x'",
        "SELECT 'x' AS name UNION SELECT name FROM t",
        "SELECT name FROM t EXCEPT SELECT 'a'",
        "SELECT 'a' AS name EXCEPT ALL SELECT name FROM t",
        "SELECT name FROM t INTERSECT SELECT 'A'",
        "SELECT st FROM t UNION SELECT st FROM t",
        "SELECT DISTINCT name FROM (SELECT name FROM t UNION ALL SELECT 'A')",
        "SELECT DISTINCT name FROM (SELECT 'A' AS name UNION ALL SELECT name FROM t)",
        "SELECT 'b' IN (SELECT name FROM t)",
        "SELECT id FROM t WHERE 'b' NOT IN (SELECT name FROM t)",
        "SELECT id FROM t WHERE (id, 'b') IN (SELECT id, name FROM t)",
        "SELECT id FROM t WHERE (SELECT name FROM t WHERE id = 0) = 'A'",
        "SELECT id FROM t WHERE 'A' = (SELECT name FROM t WHERE id = 0)",
        "SELECT 1 FROM (SELECT 'b' AS name) AS one JOIN t USING (name)",
        "SELECT 1 FROM (SELECT 'b' AS name) AS one NATURAL JOIN t",
        "WITH names AS (SELECT name FROM t) SELECT DISTINCT name FROM names",
        "SELECT count(DISTINCT name) FROM t",
        "FROM t |> SELECT name |> UNION DISTINCT (SELECT 'x')",
    ],
)
def test_queries_that_compare_are_refused(table: DeltaTable, query: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"ICU\.UNICODE_CI"):
        deltaic.sql(query, tables={"t": table}).to_arrow()


def test_files_are_not_chosen_by_their_statistics(table: DeltaTable) -> None:
    def counted(where: str) -> Any:
        try:
            return table.files(where=where).count()
        except UnsupportedFeatureError:
            return "refused"

    assert counted("name = 'A'") in (2, "refused")
    assert counted("id = 0") == 1
