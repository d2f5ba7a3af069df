"""DELETE, UPDATE and MERGE by the name of a temporary view over another view, an alias or a subquery of a
Delta table.

Rules: delta-spark's UpdateSuiteBase, DeleteSuiteBase and MergeIntoSuiteBase, "temp views".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from deltaic.errors import UnsupportedFeatureError

pytestmark = pytest.mark.usefixtures("catalog_of_the_test_alone")

MERGE = "MERGE INTO {v} USING (SELECT 3 AS id) s ON {v}.id = s.id WHEN MATCHED THEN DELETE"


@pytest.fixture
def viewed(session: Any) -> Iterator[Any]:
    session.sql("CREATE TABLE vv_base (id INT, name STRING) USING delta")
    session.sql("INSERT INTO vv_base VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    session.sql("CREATE TEMPORARY VIEW vv_first AS SELECT x.* FROM vv_base x")
    yield session
    for name in ("vv_first", "vv_view"):
        session.catalog.dropTempView(name)
    session.catalog.dropGlobalTempView("vv_global")


def left(session: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, session.sql("SELECT * FROM vv_base").collect()))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM vv_first",
        "SELECT q.id, q.name FROM (SELECT * FROM vv_first) AS q",
    ],
)
def test_views_of_all_columns(viewed: Any, query: str) -> None:
    viewed.sql(f"CREATE TEMPORARY VIEW vv_view AS {query}")
    viewed.sql("DELETE FROM vv_view WHERE vv_view.id = 1")
    viewed.sql("UPDATE vv_first AS f SET name = 'z' WHERE f.id = 2")
    viewed.sql(MERGE.format(v="vv_view"))
    assert left(viewed) == [(2, "z"), (4, "d")]
    assert sorted(row.id for row in viewed.table("vv_view").collect()) == [2, 4]


def test_global_views(viewed: Any) -> None:
    viewed.sql("CREATE GLOBAL TEMPORARY VIEW vv_global AS SELECT * FROM vv_first")
    viewed.sql("DELETE FROM global_temp.vv_global WHERE vv_global.id = 1")
    viewed.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW vv_global AS SELECT id FROM vv_first")
    viewed.sql("DELETE FROM global_temp.vv_global WHERE vv_global.id = 2")
    assert left(viewed) == [(3, "c"), (4, "d")]
    assert viewed.table("global_temp.vv_global").columns == ["id"]


def test_views_of_some_columns_take_no_merge(viewed: Any) -> None:
    viewed.sql("CREATE TEMPORARY VIEW vv_view AS SELECT name, id FROM vv_first")
    viewed.sql("UPDATE vv_view SET name = 'z' WHERE id = 1")
    assert left(viewed)[0] == (1, "z")
    with pytest.raises(UnsupportedFeatureError, match="MERGE of a view; found `vv_view`"):
        viewed.sql(MERGE.format(v="vv_view"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name AS id, id AS name FROM vv_first",
        "SELECT id, name FROM vv_first WHERE id > 1",
        "SELECT id + 1 AS id FROM vv_first",
        "SELECT * FROM vv_base VERSION AS OF 1",
        "SELECT * FROM vv_first UNION ALL SELECT * FROM vv_first",
        "SELECT id, 'x' AS name FROM range(3)",
    ],
)
def test_other_views_are_refused(viewed: Any, query: str) -> None:
    viewed.sql(f"CREATE TEMPORARY VIEW vv_view AS {query}")
    for change in ("DELETE FROM vv_view", "UPDATE vv_view SET id = 1", MERGE.format(v="vv_view")):
        with pytest.raises(UnsupportedFeatureError, match=r"of a view.*; found `vv_view`"):
            viewed.sql(change)
    assert len(left(viewed)) == 4


@pytest.mark.parametrize(
    ("query", "condition", "parameters"),
    [
        ("SELECT id FROM vv_base WHERE id > 1", "DELTA_UNEXPECTED_PARTIAL_SCAN", {"path"}),
        (
            "SELECT * FROM vv_base VERSION AS OF 1",
            "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
            {"historicalVersion": "1"},
        ),
        ("SELECT * FROM vv_base LIMIT 1", "DELTA_UNSUPPORTED_SOURCE", {"operation": "DELETE"}),
        ("SELECT count(*) AS id FROM vv_base", "DELTA_UNSUPPORTED_SOURCE", {"operation": "DELETE"}),
        ("SELECT x.id FROM vv_base x JOIN vv_base y USING (id)", "DELTA_UNSUPPORTED_SOURCE", {"operation"}),
        ("SELECT *, id AS k FROM vv_base", "DELTA_CANNOT_RESOLVE_COLUMN", {"columnName": "k"}),
        ("SELECT id + 1 AS id FROM vv_base", "DELTA_OPERATION_ON_VIEW_NOT_ALLOWED", set()),
    ],
)
def test_the_condition_names_what_the_view_has(
    viewed: Any, query: str, condition: str, parameters: set[str] | dict[str, str]
) -> None:
    viewed.sql(f"CREATE TEMPORARY VIEW vv_view AS {query}")
    with pytest.raises(AnalysisException) as caught:
        viewed.sql("DELETE FROM vv_view WHERE id = 1")
    assert caught.value.getCondition() == condition
    given = caught.value.getMessageParameters() or {}
    wanted = (
        parameters.items() if isinstance(parameters, dict) else ((name, given[name]) for name in parameters)
    )
    assert dict(wanted).items() <= given.items()
    with pytest.raises(AnalysisException) as caught:
        viewed.sql("INSERT INTO vv_view SELECT * FROM vv_view")
    assert caught.value.getCondition() == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
    assert caught.value.getMessageParameters() == {"viewName": "`vv_view`", "operation": "INSERT"}


def test_a_view_with_other_columns_of_a_table_with_generated_ones(viewed: Any) -> None:
    viewed.sql("DROP TABLE vv_base")
    viewed.sql("CREATE TABLE vv_base (id INT, more INT GENERATED ALWAYS AS (id + 1)) USING delta")
    viewed.sql("CREATE TEMPORARY VIEW vv_view AS SELECT id AS k, more FROM vv_base")
    with pytest.raises(AnalysisException) as caught:
        viewed.sql("UPDATE vv_view SET k = 1")
    condition = "DELTA_OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS_NOT_SUPPORTED"
    assert (caught.value.getCondition(), caught.value.getMessageParameters()) == (
        condition,
        {"operation": "UPDATE"},
    )


def test_names_of_columns_may_differ_in_case(viewed: Any) -> None:
    viewed.sql("CREATE TEMPORARY VIEW vv_view AS SELECT ID, Name FROM vv_base")
    viewed.sql(MERGE.format(v="vv_view"))
    assert [row[0] for row in left(viewed)] == [1, 2, 4]
