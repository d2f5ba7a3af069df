"""Settings of delta-spark that affect how commands change rows and columns, with the results of delta-spark
4.4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.settings import (
    CAST_BY_ANSI_MODE,
    DROP_COLUMN,
    DROP_IF_EXISTS,
    MERGE_SCHEMA,
    NULL_STRUCTS,
    NULL_STRUCTS_OF_STAR,
    PERSISTENT_VECTORS,
    STRUCTS_BY_NAME,
)
from deltaic.errors import InvalidArgumentError, SchemaMismatchError


@pytest.fixture
def session(session_of_the_test: Any) -> Any:
    return session_of_the_test


NULLS = {"a": None, "b": None}
SWAPPED, WIDER = "STRUCT<b: INT, a: INT>", "STRUCT<a: BIGINT, b: BIGINT>"
ASSIGNED, STAR = "SET v = s.v", "SET *"


@pytest.mark.parametrize(
    ("setting", "evolves", "struct", "clause", "updated", "inserted"),
    [
        # (row whose source struct is null, row with the values 7 and 8), and an inserted null struct
        (None, False, SWAPPED, ASSIGNED, (None, {"a": 8, "b": 7}), None),
        (NULL_STRUCTS, False, SWAPPED, ASSIGNED, (NULLS, {"a": 8, "b": 7}), NULLS),
        (NULL_STRUCTS, False, "STRUCT<A: INT, B: INT>", ASSIGNED, (None, {"a": 7, "b": 8}), None),
        (NULL_STRUCTS_OF_STAR, False, WIDER, STAR, (None, {"a": 7, "b": 8}), None),
        (NULL_STRUCTS_OF_STAR, True, WIDER, ASSIGNED, (None, {"a": 7, "b": 8}), None),
        (NULL_STRUCTS_OF_STAR, True, WIDER, STAR, (NULLS, {"a": 7, "b": 8}), None),
        (NULL_STRUCTS, True, WIDER, STAR, (NULLS, {"a": 7, "b": 8}), NULLS),
        (STRUCTS_BY_NAME, False, SWAPPED, STAR, (None, {"a": 7, "b": 8}), None),
    ],
)
def test_the_session_sets_how_structs_are_merged(
    tmp_path: Path,
    session: Any,
    setting: str | None,
    evolves: bool,
    struct: str,
    clause: str,
    updated: tuple[object, object],
    inserted: object,
) -> None:
    path = tmp_path / "t"
    session.sql(f"CREATE TABLE delta.`{path}` (id INT, v STRUCT<a: INT, b: INT>)")
    session.sql(
        f"INSERT INTO delta.`{path}` SELECT id, named_struct('a', 1, 'b', 2) FROM VALUES (1), (2) AS _(id)"
    )
    if setting is not None:
        session.conf.set(setting, "false")
    session.conf.set(MERGE_SCHEMA, str(evolves).lower())
    session.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT id, CAST(v AS {struct}) AS v FROM VALUES (1, NULL),"
        f" (2, named_struct('x', 7, 'y', 8)), (3, NULL) AS _(id, v)) s ON t.id = s.id"
        f" WHEN MATCHED THEN UPDATE {clause} WHEN NOT MATCHED THEN INSERT *"
    )
    rows = {row["id"]: row["v"] for row in DeltaTable(path).scan().to_arrow().to_pylist()}
    assert rows == {1: updated[0], 2: updated[1], 3: inserted}


def test_fields_that_the_source_lacks_keep_their_values_field_by_field(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    session.sql(f"CREATE TABLE delta.`{path}` (id INT, v STRUCT<a: INT, b: STRUCT<c: INT, d: INT>>)")
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1, NULL)")
    session.conf.set(NULL_STRUCTS_OF_STAR, "false")
    session.conf.set(MERGE_SCHEMA, "true")
    session.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 1 AS id, named_struct('b', named_struct('c', 5)) AS v) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )
    assert DeltaTable(path).scan(["v"]).to_arrow()["v"].to_pylist() == [{"a": None, "b": {"c": 5, "d": None}}]


def test_structs_by_position_have_the_same_number_of_fields(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    session.sql(f"CREATE TABLE delta.`{path}` (id INT, v STRUCT<a: INT, b: INT>)")
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1, NULL)")
    session.conf.set(STRUCTS_BY_NAME, "false")
    session.sql(f"UPDATE delta.`{path}` SET v = named_struct('x', '7', 'y', 8)")
    assert DeltaTable(path).scan(["v"]).to_arrow()["v"].to_pylist() == [{"a": 7, "b": 8}]
    with pytest.raises(SchemaMismatchError, match="another number of fields") as raised:
        session.sql(f"UPDATE delta.`{path}` SET v = named_struct('a', 7)")
    assert raised.value.getCondition() == "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"


def test_update_and_merge_cast_by_the_ansi_mode(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    deltaic.write(path, {"id": [1]})
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (n TINYINT)")
    session.conf.set(CAST_BY_ANSI_MODE, "true")
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        session.sql(f"UPDATE delta.`{path}` SET n = 300")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.sql(f"UPDATE delta.`{path}` SET n = 300")
    session.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 2 AS id, 'x' AS n) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert sorted(DeltaTable(path).scan().to_arrow().to_pylist(), key=str) == [
        {"id": 1, "n": 44},
        {"id": 2, "n": None},
    ]


def test_the_session_makes_commands_rewrite_files(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    deltaic.write(path, {"id": list(range(20))}, properties={"delta.enableChangeDataFeed": "true"})
    statements = {
        "delete": f"DELETE FROM delta.`{path}` WHERE id = 0",
        "update": f"UPDATE delta.`{path}` SET id = -id WHERE id = 1",
        "merge": f"MERGE INTO delta.`{path}` t USING (SELECT 2L AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE",
    }
    for command, statement in statements.items():
        session.conf.set(PERSISTENT_VECTORS[command], "false")
        session.sql(statement)
        assert DeltaTable(path).files().to_arrow()["deletion_vector"].null_count == 1
    assert sorted(DeltaTable(path).scan().to_arrow()["id"].to_pylist()) == [-1, *range(3, 20)]
    changes = session.sql(f"SELECT id, _change_type FROM table_changes('delta.`{path}`', 1) ORDER BY 1, 2")
    assert [tuple(row) for row in changes.collect()] == [
        (-1, "update_postimage"),
        (0, "delete"),
        (1, "update_preimage"),
        (2, "delete"),
    ]
    for name in PERSISTENT_VECTORS.values():
        session.conf.set(name, "true")
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    assert DeltaTable(path).files().to_arrow()["deletion_vector"].null_count == 0


def test_the_session_sets_what_alter_table_drops(tmp_path: Path, session: Any) -> None:
    path = tmp_path / "t"
    session.sql(
        f"CREATE TABLE delta.`{path}` (id INT, n INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    session.conf.set(DROP_IF_EXISTS, "true")
    session.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT nothing")
    session.conf.set(DROP_COLUMN, "false")
    with pytest.raises(InvalidArgumentError, match="refuses to drop columns") as raised:
        session.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN n")
    assert raised.value.getCondition() == "DELTA_UNSUPPORTED_DROP_COLUMN"
    session.conf.set(DROP_COLUMN, "true")
    session.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN n")
    assert DeltaTable(path).schema.names == ["id"]
