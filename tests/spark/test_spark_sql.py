"""SQL on Delta tables by path and by temporary view, on a Spark session."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

import deltaic
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)

pytest.importorskip("pyspark")


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "some table")
    rows = pa.table({"id": [1, 2, 3, 4], "part": ["a", "a", "b", "b"], "amount": [1.0, 2.0, 3.0, None]})
    deltaic.write(place, rows, partition_by="part", properties={"delta.enableDeletionVectors": True})
    deltaic.write(place, pa.table({"id": [5], "part": ["c"], "amount": [5.0]}), mode="append")
    return place


@pytest.fixture
def sql(spark: Any) -> Any:
    from deltaic.spark.statements import sql as run

    return lambda text, *args, **parameters: run(spark, text, *args, **parameters)


def rows_at(path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in deltaic.DeltaTable(path).scan().to_arrow().to_pylist())


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=str)


def newest_parameters(path: str, commits: int = 1) -> list[Any]:
    """Returns the operationParameters of the newest commits, the newest first."""
    return [commit["operationParameters"] for commit in deltaic.DeltaTable(path).history(commits)]


def ids(frame: Any) -> list[Any]:
    return sorted(row[0] for row in frame.collect())


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("DELETE FROM {t} t WHERE id IN (SELECT id FROM {o})", [3, 4, 5]),
        (
            "DELETE FROM {t} t WHERE part <> 'c' AND NOT EXISTS (SELECT 1 FROM {o} o WHERE o.id = t.id)",
            [1, 2, 5],
        ),
        (
            (
                "DELETE FROM {t} t WHERE amount > (SELECT avg(amount) FROM {t} u WHERE u.part = t.part) OR"
                " part = 'c'"
            ),
            [1, 3, 4],
        ),
        (
            "WITH c AS (SELECT id FROM {o} WHERE id = 2) DELETE FROM {t} WHERE id IN (SELECT id FROM c)",
            [1, 3, 4, 5],
        ),
        ("UPDATE {t} SET id = (SELECT max(id) FROM {o}) WHERE part = 'c'", [1, 2, 3, 4, 7]),
        (
            "UPDATE {t} t SET id = CASE WHEN id IN (SELECT id FROM {o}) THEN -id ELSE id END",
            [-2, -1, 3, 4, 5],
        ),
    ],
)
def test_subqueries_in_conditions_and_values(
    sql: Any, path: str, tmp_path: Path, change: str, left: list[int]
) -> None:
    other = str(tmp_path / "other")
    deltaic.write(other, pa.table({"id": [1, 2, 7]}))
    sql(change.format(t=f"delta.`{path}`", o=f"delta.`{other}`"))
    assert ids(sql(f"SELECT id FROM delta.`{path}`")) == left
    assert sql("SHOW VIEWS LIKE '__deltaic*'").count() == 0


def test_subqueries_as_values_of_merge(sql: Any, path: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    deltaic.write(other, pa.table({"id": [1, 2, 7]}))
    merge = f"MERGE INTO delta.`{path}` t USING delta.`{other}` o ON t.id = o.id"
    most = f"(SELECT max(id) FROM delta.`{other}`)"
    sql(
        f"{merge} WHEN MATCHED THEN UPDATE SET id = t.id + 10 * {most}"
        f" WHEN NOT MATCHED THEN INSERT (id) VALUES ((SELECT min(id) FROM delta.`{other}`) - o.id)"
    )
    assert ids(sql(f"SELECT id FROM delta.`{path}`")) == [-6, 3, 4, 5, 71, 72]
    for condition in (f"t.id = {most}", f"t.id IN (SELECT id FROM delta.`{other}`)"):
        with pytest.raises(UnsupportedFeatureError, match="subquery"):
            sql(f"{merge} WHEN MATCHED AND {condition} THEN DELETE")
        with pytest.raises(UnsupportedFeatureError, match="subquery"):
            sql(f"{merge} AND {condition} WHEN MATCHED THEN DELETE")
    assert ids(sql(f"SELECT id FROM delta.`{path}`")) == [-6, 3, 4, 5, 71, 72]


def test_subqueries_of_delta_table(spark: Any, path: str) -> None:
    from deltaic.spark.tables import DeltaTable

    spark.range(1, 3).createOrReplaceTempView("small_ids")
    table = DeltaTable.forPath(spark, path).alias("t")
    table.delete("t.id IN (SELECT s.id FROM small_ids s)")
    table.update(
        "EXISTS (SELECT 1 FROM small_ids s WHERE s.id + 2 = t.id)",
        {"amount": "(SELECT max(s.id) FROM small_ids s)"},
    )
    spark.catalog.dropTempView("small_ids")
    assert rows_at(path) == [(3, "b", 2.0), (4, "b", 2.0), (5, "c", 5.0)]


def test_statements_keep_rules_and_compute_columns(spark: Any, sql: Any, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    sql(
        f"""CREATE TABLE {name} (
        id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 10), n INT DEFAULT 4,
        day DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), ts TIMESTAMP) PARTITIONED BY (day)
        TBLPROPERTIES ('delta.constraints.few' = 'n < 100',
        'delta.feature.allowColumnDefaults' = 'supported')"""
    )
    days = "(1, TIMESTAMP '2024-01-01 10:00:00'), (2, TIMESTAMP '2024-01-02 10:00:00')"
    sql(f"INSERT INTO {name} (n, ts) VALUES {days}")
    sql(f"INSERT INTO {name} VALUES (DEFAULT, DEFAULT, DEFAULT, TIMESTAMP '2024-01-03 10:00:00')")
    sql(f"UPDATE {name} SET ts = ts + INTERVAL 1 DAY, n = n + 10 WHERE n = 2")
    sql(f"ALTER TABLE {name} ADD CONSTRAINT known CHECK (ts IS NOT NULL AND n IN (1, 4, 12, 50))")
    source = "(SELECT 50 AS n, TIMESTAMP '2024-01-05 00:00:00' AS ts)"
    sql(
        f"MERGE INTO {name} t USING {source} s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (n, ts) VALUES (s.n,"
        " s.ts)"
    )
    found = [(row["n"], str(row["day"])) for row in sql(f"SELECT * FROM {name} ORDER BY n").collect()]
    assert found == [(1, "2024-01-01"), (4, "2024-01-03"), (12, "2024-01-03"), (50, "2024-01-05")]
    numbers = ids(sql(f"SELECT id FROM {name}"))
    assert len(set(numbers)) == 4
    assert all(number % 10 == 0 for number in numbers)
    for statement, message in (
        (
            f"INSERT INTO {name} (n, ts) VALUES (101, TIMESTAMP '2024-01-01 10:00:00')",
            "constraint few; found (1 row, with )?n = 101",
        ),
        (f"INSERT INTO {name} (n, ts) VALUES (1, NULL)", "constraint known"),
        (
            f"INSERT INTO {name} (n, ts, day) VALUES (1, TIMESTAMP '2024-01-01 10:00:00', DATE '2024-01-02')",
            "generated column day",
        ),
        (f"UPDATE {name} SET n = 5 WHERE n = 1", "constraint known"),
        (
            f"ALTER TABLE {name} ADD CONSTRAINT none CHECK (n > 1)",
            "break the new CHECK constraint none; found 1 row",
        ),
        (f"ALTER TABLE {name} DROP CONSTRAINT nope", "no such constraint"),
    ):
        with pytest.raises(DeltaError, match=message):
            sql(statement)
    sql(f"ALTER TABLE {name} DROP CONSTRAINT known")
    sql(f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS nope")
    sql(f"ALTER TABLE {name} ALTER COLUMN id SYNC IDENTITY")
    rows = spark.sql("SELECT 5 AS n, TIMESTAMP '2024-02-01 00:00:00' AS ts, 7 AS wrong").drop("wrong")
    deltaic.write(deltaic.DeltaTable(tmp_path / "t", spark=spark), rows, mode="append")
    assert len(set(ids(sql(f"SELECT id FROM {name}")))) == 5


def test_queries(spark: Any, sql: Any, path: str) -> None:
    assert ids(sql(f"SELECT id FROM delta.`{path}`")) == [1, 2, 3, 4, 5]
    assert ids(sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 0 t WHERE t.id > 2")) == [3, 4]
    old = f"WITH o AS (SELECT * FROM delta.`{path}` VERSION AS OF 0)"
    joined = sql(f"{old} SELECT n.id FROM delta.`{path}` n LEFT ANTI JOIN o ON n.id = o.id")
    assert ids(joined) == [5]
    moment = deltaic.DeltaTable(path).history()[-1]["timestamp"]
    assert ids(sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF '{moment.isoformat()}'")) == [1, 2, 3, 4]
    with pytest.raises(VersionNotFoundError, match="after the last version"):
        sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF (current_timestamp() + INTERVAL 1 DAY)")
    times = f"(SELECT TIMESTAMP '{moment.isoformat()}' FROM delta.`{path}` WHERE id = 1)"
    assert ids(sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF {times}")) == [1, 2, 3, 4]
    assert ids(sql(f"SELECT x.id FROM delta.`{path}` WITH (versionAsOf = 0) x WHERE x.id > 2")) == [3, 4]
    assert [
        row[0]
        for row in spark.sql("SHOW VIEWS").select("viewName").collect()
        if row[0].startswith("__deltaic")
    ] == []


def test_a_query_follows_its_table_until_it_is_run(sql: Any, path: str) -> None:
    frame, pinned = (
        sql(f"SELECT id FROM delta.`{path}`"),
        sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 1"),
    )
    deltaic.DeltaTable(path).delete("id = 1")
    assert ids(frame) == [2, 3, 4, 5]
    assert ids(pinned) == [1, 2, 3, 4, 5]


def test_sparks_own(spark: Any, sql: Any) -> None:
    assert sql("SELECT 1 AS one").collect()[0]["one"] == 1
    assert sql("SELECT :a AS a", {"a": 3}).collect()[0]["a"] == 3
    assert sql("SELECT {x} AS x", x=4).collect()[0]["x"] == 4
    sql("CREATE OR REPLACE TEMPORARY VIEW plain AS SELECT id FROM range(3)")
    assert ids(sql("SELECT * FROM plain")) == [0, 1, 2]
    assert [row["col_name"] for row in sql("DESCRIBE plain").collect()] == ["id"]
    with pytest.raises(Exception, match=r"(?i)plain|not support"):
        sql("DELETE FROM plain WHERE id = 1")
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        sql("SELEC 1")


def test_insert(spark: Any, sql: Any, path: str) -> None:
    assert sql(f"INSERT INTO delta.`{path}` VALUES (6, 'c', 6.0), (7, 'd', NULL)").columns == []
    assert rows_at(path)[-2:] == [(6, "c", 6.0), (7, "d", None)]
    sql(f"INSERT INTO delta.`{path}` (part, id) SELECT 'e', id + 100 FROM delta.`{path}` WHERE id = 1")
    assert rows_at(path)[-1] == (101, "e", None)
    sql(f"INSERT INTO delta.`{path}` BY NAME SELECT 9.0D AS amount, 102L AS id, 'e' AS part")
    assert rows_at(path)[-1] == (102, "e", 9.0)
    sql(f"INSERT INTO delta.`{path}` REPLACE WHERE part = 'e' SELECT 103, 'e', 1.0D")
    assert [row for row in rows_at(path) if row[1] == "e"] == [(103, "e", 1.0)]
    sql(f"INSERT OVERWRITE delta.`{path}` SELECT * FROM delta.`{path}` WHERE id < 3")
    assert rows_at(path) == [(1, "a", 1.0), (2, "a", 2.0)]
    with pytest.raises(DeltaError):
        sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a')")


def test_conditions_of_inserts_in_the_history(sql: Any, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    sql(f"CREATE TABLE {table} (id INT, part INT) USING delta PARTITIONED BY (part)")
    sql(f"INSERT INTO {table} REPLACE WHERE part = 1 VALUES (5, 1)")
    sql(f"INSERT OVERWRITE {table} PARTITION (part = 1) VALUES (6)")
    history = deltaic.DeltaTable(tmp_path / "t").history(2)
    predicates = [commit["operationParameters"]["predicate"] for commit in history]
    assert predicates == ["(part <=> 1)", "(part = 1)"]


def test_insert_behind_from(sql: Any, path: str) -> None:
    sql(f"FROM delta.`{path}` INSERT INTO delta.`{path}` SELECT id + 10, part, amount WHERE id < 3")
    assert [row[0] for row in rows_at(path)] == [1, 2, 3, 4, 5, 11, 12]
    assert ids(sql(f"FROM delta.`{path}` SELECT id WHERE id > 10")) == [11, 12]


def test_several_inserts_behind_from(sql: Any, path: str, tmp_path: Path) -> None:
    table, other = f"delta.`{path}`", f"delta.`{tmp_path / 'other'}`"
    sql(f"CREATE TABLE {other} (id BIGINT, part STRING)")
    sql(
        f"FROM {table} INSERT INTO {table} SELECT id + 10, part, amount WHERE id < 3"
        f" INSERT INTO {other} (part) SELECT max(part) GROUP BY part HAVING part = 'b'"
        f" INSERT INTO TABLE {other} BY NAME SELECT 'x' AS part, id WHERE id = 1"
    )
    assert [row[0] for row in rows_at(path)] == [1, 2, 3, 4, 5, 11, 12]
    assert rows_of(sql(f"SELECT * FROM {other}")) == [(1, "x"), (None, "b")]
    sql(
        f"WITH n AS (SELECT 7L AS id) FROM n INSERT OVERWRITE {other} SELECT id, 'a'"
        f" INSERT INTO {other} SELECT 8, 'b'"
    )
    assert rows_of(sql(f"SELECT * FROM {other}")) == [(7, "a"), (8, "b")]
    with pytest.raises(DeltaError):
        sql(f"FROM {table} INSERT INTO {other} SELECT id INSERT INTO {other} SELECT id, 'z'")
    assert len(rows_of(sql(f"SELECT * FROM {other}"))) == 2


def test_insert_of_defaults_by_a_query(sql: Any, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 'd'}`"
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    sql(f"CREATE TABLE {table} (id BIGINT, p INT DEFAULT 1 + 2, s STRING DEFAULT 'x') {properties}")
    sql(f"INSERT INTO {table} (id, p) SELECT 1, DEFAULT")
    sql(f"INSERT INTO {table} SELECT DISTINCT v, default, DEFAULT FROM VALUES (2), (2) AS n(v) WHERE v > 1")
    sql(f"WITH n AS (SELECT 3 AS v) INSERT INTO {table} (s, id) SELECT DEFAULT, v FROM n")
    sql(f"INSERT INTO {table} (id, p) SELECT v, default FROM VALUES (4, 40) AS n(v, default)")
    assert rows_of(sql(f"SELECT * FROM {table}")) == [(1, 3, "x"), (2, 3, "x"), (3, 3, "x"), (4, 40, "x")]
    sql(f"INSERT INTO {table} (id, p) SELECT v, default + 1 FROM VALUES (6, 40) AS n(v, default)")
    sql(f"DELETE FROM {table} WHERE id = 6 AND p = 41 AND s = 'x'")
    assert len(rows_of(sql(f"SELECT * FROM {table}"))) == 4
    for query in (
        "(id, p) VALUES (5, DEFAULT + 1)",
        "(id, p) SELECT 5, 1 + DEFAULT",
        "BY NAME SELECT 5 AS id, DEFAULT AS p",
        "(id, p) SELECT v, coalesce(DEFAULT, 1) FROM VALUES (5) AS n(v)",
    ):
        with pytest.raises(DeltaError) as caught:
            sql(f"INSERT INTO {table} {query}")
        found = caught.value.getCondition(), caught.value.getSqlState()
        assert found == ("DEFAULT_PLACEMENT_INVALID", "42608")


def test_columns_that_only_spark_computes(sql: Any, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 'd'}`"
    sql(
        f"CREATE TABLE {table} (ts TIMESTAMP, who STRING DEFAULT current_user(),"
        " day DATE GENERATED ALWAYS AS (to_date(ts, 'yyyy-MM-dd')))"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    sql(f"INSERT INTO {table} (ts) VALUES (TIMESTAMP'2026-01-02 03:04:05')")
    query = f"SELECT who = current_user(), CAST(day AS STRING) FROM {table}"
    assert rows_of(sql(query)) == [(True, "2026-01-02")]


def test_insert_of_defaults(sql: Any, tmp_path: Path) -> None:
    place = tmp_path / "d"
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    sql(f"CREATE TABLE delta.`{place}` (id BIGINT, n INT DEFAULT 1 + 1, s STRING) {properties}")
    sql(f"INSERT INTO delta.`{place}` VALUES (1L, DEFAULT, 'a'), (2L, 5, DEFAULT)")
    sql(f"INSERT INTO delta.`{place}` (s, n) VALUES ('DEFAULT', DEFAULT)")
    found = deltaic.DeltaTable(place).scan().to_arrow().to_pylist()
    assert sorted(map(str, (list(row.values()) for row in found))) == [
        "[1, 2, 'a']",
        "[2, 5, None]",
        "[None, 2, 'DEFAULT']",
    ]


def test_changes(sql: Any, path: str) -> None:
    (row,) = sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 4)").collect()
    assert row.asDict() == {"num_affected_rows": 2}
    (row,) = sql(
        f"UPDATE delta.`{path}` t SET t.amount = t.amount * 2, part = upper(part) WHERE t.id > :least",
        {"least": 2},
    ).collect()
    assert row.asDict() == {"num_affected_rows": 2}
    assert rows_at(path) == [(2, "a", 2.0), (3, "B", 6.0), (5, "C", 10.0)]
    assert newest_parameters(path, 2) == [{"predicate": '["(id > 2)"]'}, {"predicate": '["(id IN (1, 4))"]'}]
    sql(f"TRUNCATE TABLE delta.`{path}`")
    assert rows_at(path) == []


def test_merge(spark: Any, sql: Any, path: str) -> None:
    spark.createDataFrame(
        [(1, 10.0), (3, None), (8, 8.0)], "id bigint, value double"
    ).createOrReplaceTempView("news")
    text = f"""MERGE INTO delta.`{path}` t USING news s ON t.id = s.id
        WHEN MATCHED AND s.value IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = s.value
        WHEN NOT MATCHED THEN INSERT (id, part, amount) VALUES (s.id, 'n', s.value)
        WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE"""
    (row,) = sql(text).collect()
    assert row.asDict() == {
        "num_affected_rows": 4,
        "num_updated_rows": 1,
        "num_deleted_rows": 2,
        "num_inserted_rows": 1,
    }
    assert rows_at(path) == [(1, "a", 10.0), (2, "a", 2.0), (5, "c", 5.0), (8, "n", 8.0)]
    assert newest_parameters(path) == [
        {
            "predicate": '["(t.id = s.id)"]',
            "matchedPredicates": (
                '[{"predicate":"(s.value IS NULL)","actionType":"delete"},{"actionType":"update"}]'
            ),
            "notMatchedPredicates": '[{"actionType":"insert"}]',
            "notMatchedBySourcePredicates": '[{"predicate":"(t.id = 4)","actionType":"delete"}]',
        }
    ]
    sql(
        f"MERGE INTO delta.`{path}` t USING delta.`{path}` VERSION AS OF 0 s ON t.id = s.id WHEN NOT MATCHED"
        " THEN INSERT *"
    )
    assert [row[0] for row in rows_at(path)] == [1, 2, 3, 4, 5, 8]
    sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 9L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT"
        " (id) VALUES (s.id)"
    )
    assert rows_at(path)[-1] == (9, None, None)


def test_a_merge_of_paths_without_aliases(sql: Any, path: str, tmp_path: Path) -> None:
    source = tmp_path / "news"
    deltaic.write(source, pa.table({"id": [1, 8], "part": ["x", "y"], "amount": [10.0, 8.0]}))
    (row,) = sql(
        f"""MERGE INTO delta.`{path}` USING delta.`{source}` ON delta.`{path}`.id = delta.`{source}`.id
        WHEN MATCHED AND delta.`{path}`.part = 'a'
        THEN UPDATE SET delta.`{path}`.amount = delta.`{source}`.amount + `{path}`.id
        WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (delta.`{source}`.id, delta.`{source}`.amount)"""
    ).collect()
    assert row.asDict() == {
        "num_affected_rows": 2,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
        "num_inserted_rows": 1,
    }
    assert [row for row in rows_at(path) if row[0] in (1, 8)] == [(1, "a", 11.0), (8, None, 8.0)]


def test_making_tables(sql: Any, tmp_path: Path, path: str) -> None:
    place = tmp_path / "made"
    columns = "(id BIGINT NOT NULL, part STRING COMMENT 'c')"
    sql(
        f"CREATE TABLE delta.`{place}` {columns} USING delta PARTITIONED BY (part) TBLPROPERTIES"
        " (delta.checkpointInterval = 5)"
    )
    assert deltaic.DeltaTable(place).metadata.partition_columns == ("part",)
    sql(f"CREATE TABLE IF NOT EXISTS delta.`{place}` (x INT)")
    with pytest.raises(DeltaError):
        sql(f"CREATE TABLE delta.`{place}` (x INT)")
    sql(
        f"CREATE OR REPLACE TABLE delta.`{place}` AS SELECT id, id * 2 AS double FROM delta.`{path}` WHERE"
        " id > 3"
    )
    assert rows_at(str(place)) == [(4, 8), (5, 10)]
    sql(f"ALTER TABLE delta.`{place}` ADD COLUMNS (note STRING)")
    assert deltaic.DeltaTable(place).schema.names == ["id", "double", "note"]
    sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert deltaic.DeltaTable(place).metadata.configuration["delta.enableDeletionVectors"] == "true"


def test_restore_to_a_time_of_the_zone_of_the_session(sql: Any, spark: Any, path: str) -> None:
    sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    for version, moment in enumerate(("2024-05-01 11:30:00", "2024-05-01 12:30:00")):
        seconds = sql(f"SELECT CAST(timestamp'{moment}' AS double)").first()[0]
        os.utime(Path(path) / "_delta_log" / f"{version:020}.json", (seconds, seconds))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # 14:00 there is 12:00 in UTC
    try:
        sql(f"RESTORE TABLE delta.`{path}` TO TIMESTAMP AS OF '2024-05-01 14:00:00'")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [row[0] for row in rows_at(path)] == [1, 2, 3, 4]


def test_upkeep(sql: Any, path: str) -> None:
    sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    assert sql(f"OPTIMIZE delta.`{path}` ZORDER BY (id)").columns == ["path", "metrics"]
    assert sql(f"OPTIMIZE '{path}' WHERE part = 'a'").collect()[0]["path"] == path
    assert sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)").count() == 1
    assert [row[0] for row in sql(f"VACUUM '{path}'").collect()] == [path]
    assert sql(f"VACUUM delta.`{path}` DRY RUN").columns == ["path"]
    restored = sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0").collect()[0]
    assert restored["num_restored_files"] > 0
    assert [row[0] for row in rows_at(path)] == [1, 2, 3, 4]
    history = sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 2").collect()
    assert [row["operation"] for row in history] == ["RESTORE", "OPTIMIZE"]
    assert sql(f"DESCRIBE DETAIL '{path}'").collect()[0]["numFiles"] == 2
    columns, partition = ["id", "part", "amount"], ["# Partition Information", "# col_name", "part"]
    assert [row["col_name"] for row in sql(f"DESCRIBE TABLE delta.`{path}`").collect()] == columns + partition
    assert ["Location", path, ""] in [
        list(row) for row in sql(f"DESCRIBE TABLE EXTENDED delta.`{path}`").collect()
    ]
    assert [row[0] for row in sql(f"SHOW COLUMNS IN delta.`{path}`").collect()] == columns
    assert sorted(row["part"] for row in sql(f"SHOW PARTITIONS delta.`{path}`").collect()) == ["a", "b"]
    assert dict(sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect())["delta.enableDeletionVectors"] == "true"
    (made,) = sql(f"SHOW CREATE TABLE delta.`{path}`").collect()
    assert made.createtab_stmt.startswith(f"CREATE TABLE delta.`{path}` (\n  id bigint,\n  part string,")
    sql(made.createtab_stmt.replace(path, f"{path}_made"))
    sql(f"CREATE TABLE delta.`{path}_like` LIKE delta.`{path}`")
    for other in ("made", "like"):
        assert (
            sql(f"SHOW CREATE TABLE delta.`{path}_{other}`").first()[0].replace(f"{path}_{other}", path)
            == made.createtab_stmt
        )
    with pytest.raises(UnsupportedFeatureError, match="ANALYZE TABLE"):
        sql(f"ANALYZE TABLE delta.`{path}` COMPUTE STATISTICS")
    assert sql(f"COMMENT ON TABLE delta.`{path}` IS 'new'").columns == []
    assert deltaic.DeltaTable(path).metadata.description == "new"


def test_views_of_tables(spark: Any, sql: Any, path: str) -> None:
    from deltaic.spark import read

    read(spark, path).createOrReplaceTempView("whole")
    sql("DELETE FROM whole WHERE id = 1")
    sql("INSERT INTO whole VALUES (6, 'c', 6.0)")
    assert [row[0] for row in rows_at(path)] == [2, 3, 4, 5, 6]
    assert ids(sql("SELECT id FROM whole VERSION AS OF 0")) == [1, 2, 3, 4]
    assert sql("DESCRIBE HISTORY whole").count() == 4
    # A view of other names is another view.
    sql(f"CREATE OR REPLACE TEMPORARY VIEW whole AS SELECT id AS k, part, amount FROM delta.`{path}`")
    assert spark.table("whole").columns == sql("SELECT * FROM whole").columns == ["k", "part", "amount"]
    # Another view of the same name is no table any more.
    spark.range(2).createOrReplaceTempView("whole")
    with pytest.raises(Exception, match=r"(?i)whole|not support|table relation"):
        sql("DELETE FROM whole WHERE id = 1")
    assert len(rows_at(path)) == 5


def test_views_of_columns(spark: Any, sql: Any, path: str) -> None:
    """DELETE and UPDATE through a view of columns of a table; delta-spark refuses those through other views,
    too."""
    sql(f"CREATE OR REPLACE TEMPORARY VIEW some AS SELECT amount, id FROM delta.`{path}`")
    try:
        assert sql("DELETE FROM some WHERE some.id = 1").first().num_affected_rows == 1
        assert sql("UPDATE some AS s SET amount = s.amount + 1 WHERE id = 2").first().num_affected_rows == 1
        assert [row[0] for row in rows_at(path)] == [2, 3, 4, 5]
        assert sql(f"SELECT amount FROM delta.`{path}` WHERE id = 2").first().amount == 3.0
        assert sorted(row.id for row in spark.table("some").collect()) == [2, 3, 4, 5]
        for statement in (
            "DELETE FROM some WHERE name = 'a'",
            "UPDATE some SET name = 'z'",
            "UPDATE some AS s SET amount = length(s.name) WHERE id = 2",
        ):
            with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
                sql(statement)
        for query in (
            f"SELECT id AS k FROM delta.`{path}`",
            f"SELECT id FROM delta.`{path}` WHERE id > 3",
            f"SELECT id + 1 AS id FROM delta.`{path}`",
        ):
            sql(f"CREATE OR REPLACE TEMPORARY VIEW some AS {query}")
            with pytest.raises(UnsupportedFeatureError, match=r"DELETE of a view.*; found `some`"):
                sql("DELETE FROM some")
    finally:
        spark.catalog.dropTempView("some")


def test_views_by_the_data_source(spark: Any, sql: Any, path: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sourced USING deltaic OPTIONS (path '{path}')")
    sql("UPDATE sourced SET amount = 0 WHERE id = 1")
    assert rows_at(path)[0] == (1, "a", 0.0)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW sourced USING deltaic OPTIONS (path '{path}', versionAsOf '0')"
    )
    with pytest.raises(UnsupportedFeatureError, match="DELETE of a view; found `sourced`"):
        sql("DELETE FROM sourced")


def test_a_temporary_view_over_a_path(spark: Any, sql: Any, path: str) -> None:
    sql(f"CREATE OR REPLACE TEMP VIEW some AS SELECT id FROM delta.`{path}` WHERE id > 3")
    assert ids(spark.table("some")) == [4, 5]


def test_a_cached_query(spark: Any, sql: Any, path: str) -> None:
    sql(f"CACHE TABLE kept AS SELECT id FROM delta.`{path}` WHERE id > 3")
    try:
        assert spark.catalog.isCached("kept")
        assert ids(spark.table("kept")) == [4, 5]
    finally:
        spark.sql("UNCACHE TABLE kept")
        spark.catalog.dropTempView("kept")


def test_tables_by_path_are_not_dropped(sql: Any, path: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        sql(f"DROP TABLE IF EXISTS delta.`{path}`")
    assert len(rows_at(path)) == 5


def test_into_sparks_tables(spark: Any, sql: Any, path: str) -> None:
    sql(f"CREATE TABLE copied USING parquet AS SELECT * FROM delta.`{path}`")
    try:
        sql(f"INSERT INTO copied SELECT * FROM delta.`{path}` VERSION AS OF 0")
        assert spark.table("copied").count() == 9
    finally:
        spark.sql("DROP TABLE copied")


def test_views_stand_for_tables(spark: Any, sql: Any, path: str) -> None:
    """The view shows what a statement by its name has made of the table, and a query of a whole table makes
    such a view."""
    sql(f"CREATE OR REPLACE TEMP VIEW everything AS SELECT * FROM delta.`{path}`")
    sql("DELETE FROM everything WHERE id < 3")
    assert ids(spark.table("everything")) == [3, 4, 5]
    before = spark.table("everything")
    sql("UPDATE everything SET id = 30 WHERE id = 3")
    assert ids(spark.table("everything")) == [4, 5, 30]
    assert ids(before) == [4, 5, 30]
    sql(f"CREATE GLOBAL TEMPORARY VIEW of_all (a, b, c) AS SELECT * FROM delta.`{path}`")
    try:
        assert spark.table("global_temp.of_all").columns == ["a", "b", "c"]
        assert spark.table("global_temp.of_all").count() == 3
    finally:
        spark.catalog.dropGlobalTempView("of_all")
    sql(f"CREATE OR REPLACE TEMP VIEW part_of_it AS SELECT id FROM delta.`{path}` WHERE id > 0")
    with pytest.raises(UnsupportedFeatureError, match="part_of_it"):
        sql("DELETE FROM part_of_it")


def test_definitions_before_a_statement(sql: Any, path: str) -> None:
    news = "WITH a AS (SELECT 7L AS id), news AS (SELECT id, 'n' AS part FROM a)"
    sql(f"{news} INSERT INTO delta.`{path}` (id, part) SELECT * FROM news")
    assert rows_at(path)[-1] == (7, "n", None)
    sql(f"{news} MERGE INTO delta.`{path}` t USING news ON t.id = news.id WHEN MATCHED THEN DELETE")
    clauses = "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"
    sql(f"MERGE INTO delta.`{path}` t USING (VALUES (1L), (8L)) s(k) ON t.id = s.k {clauses}")
    assert [row[0] for row in rows_at(path)] == [2, 3, 4, 5, 8]
    assert ids(sql(f"WITH a AS (SELECT * FROM delta.`{path}`) SELECT id FROM a WHERE id > 4")) == [5, 8]


def test_insert_into_a_partition(spark: Any, sql: Any, path: str) -> None:
    sql(f"INSERT INTO delta.`{path}` PARTITION (part = 'x') (amount, id) VALUES (1.0, 9)")
    sql(f"INSERT OVERWRITE delta.`{path}` PARTITION (part = 'a') SELECT 10L, 2.0D")
    assert [row for row in rows_at(path) if row[0] > 5] == [(9, "x", 1.0), (10, "a", 2.0)]
    assert not {1, 2} & {row[0] for row in rows_at(path)}
    before = rows_at(path)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        sql(f"INSERT OVERWRITE delta.`{path}` PARTITION (part) SELECT 11L, 'x', 3.0D")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows_at(path) == sorted([row for row in before if row[1] != "x"] + [(11, "x", 3.0)])
    with pytest.raises(SchemaMismatchError, match="PARTITION"):
        sql(f"INSERT INTO delta.`{path}` PARTITION (amount = 1) SELECT 1, 'a'")


def test_moments(sql: Any, path: str) -> None:
    """In the text of a path, as expressions, and as arguments."""
    assert ids(sql(f"SELECT id FROM delta.`{path}@v0`")) == [1, 2, 3, 4]
    # Two commits of one clock tick are a millisecond apart here.
    last = deltaic.DeltaTable(path).history(1)[0]["timestamp"]
    text = last.isoformat(" ", "milliseconds").partition("+")[0]
    assert ids(
        sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF timestamp'{text}' + INTERVAL 0 HOUR WHERE id > 3")
    ) == [4, 5]
    assert ids(
        sql(f"SELECT id FROM delta.`{path}` VERSION AS OF :v WHERE id > :least", {"v": 0, "least": 3})
    ) == [4]
    assert ids(
        sql(f"SELECT delta.`{path}`.id FROM delta.`{path}` TIMESTAMP AS OF ? WHERE id > ?", [text, 4])
    ) == [5]
    with pytest.raises(InvalidArgumentError, match="one of them"):
        sql(f"SELECT id FROM delta.`{path}@v0` VERSION AS OF 1")
    with pytest.raises(InvalidArgumentError, match="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"):
        sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF 'hello'")


@pytest.mark.parametrize(
    "text", ["OPTIMIZE gone", "VACUUM gone", "DESCRIBE HISTORY gone", "RESTORE gone TO VERSION AS OF 1"]
)
def test_names_that_are_none_of_a_delta_table(sql: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(text)


def test_parameters(spark: Any, sql: Any, path: str) -> None:
    assert ids(sql(f"SELECT id FROM delta.`{path}` WHERE id > ?", [3])) == [4, 5]
    news = spark.createDataFrame([(1,)], "id bigint")
    sql(f"DELETE FROM delta.`{path}` WHERE id = {{n}}", n=2)
    sql(f"MERGE INTO delta.`{path}` t USING {{news}} s ON t.id = s.id WHEN MATCHED THEN DELETE", news=news)
    assert [row[0] for row in rows_at(path)] == [3, 4, 5]


def test_errors(sql: Any, path: str) -> None:
    with pytest.raises(InvalidArgumentError):
        sql(f"DELETE FROM delta.`{path}` WHERE no_such_column = 1")
    with pytest.raises(DeltaError):
        sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 99")
    with pytest.raises(DeltaError):
        sql("DELETE FROM delta.`/no/such/table`")
    with pytest.raises(InvalidArgumentError, match="parquet"):
        sql("CONVERT TO DELTA delta.`/no/such/table`")
    with pytest.raises(UnsupportedFeatureError, match="subquery"):
        sql(
            f"MERGE INTO delta.`{path}` t USING delta.`{path}` s ON t.id = s.id WHEN MATCHED AND t.id IN"
            " (SELECT 1) THEN DELETE"
        )
    assert len(rows_at(path)) == 5


def test_clones_manifests_conversion_and_repair(spark: Any, sql: Any, path: str, tmp_path: Path) -> None:
    wanted = rows_at(path)
    done = sql(f"CREATE TABLE delta.`{tmp_path}/deep` DEEP CLONE delta.`{path}`").collect()[0].asDict()
    assert done["num_copied_files"] == done["source_num_of_files"]
    with deltaic.configure(allowed_roots=[tmp_path, path]):
        sql(f"CREATE TABLE delta.`{tmp_path}/shallow` SHALLOW CLONE delta.`{path}` TBLPROPERTIES ('x' = 'y')")
        for name in ("deep", "shallow"):
            assert rows_at(f"{tmp_path}/{name}") == wanted
            assert sorted(ids(sql(f"SELECT id FROM delta.`{tmp_path}/{name}`"))) == sorted(
                row[0] for row in wanted
            )
        sql(f"DELETE FROM delta.`{tmp_path}/shallow` WHERE id = 1")
        assert len(rows_at(f"{tmp_path}/shallow")) == len(wanted) - 1
    assert rows_at(path) == wanted
    spark.sql("SELECT id, CAST(id % 2 AS INT) p FROM range(5)").write.partitionBy("p").parquet(
        f"{tmp_path}/files"
    )
    sql(f"CONVERT TO DELTA parquet.`{tmp_path}/files` PARTITIONED BY (p INT)")
    sql(f"CONVERT TO DELTA parquet.`{tmp_path}/files`")  # it is one already
    sql(f"CONVERT TO DELTA delta.`{tmp_path}/files`")
    assert sorted(ids(sql(f"SELECT id FROM delta.`{tmp_path}/files` WHERE p = 1"))) == [1, 3]
    sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{tmp_path}/files`")
    lines = (tmp_path / "files/_symlink_format_manifest/p=1/manifest").read_text().split()
    assert lines
    assert all(Path(line.removeprefix("file:")).exists() for line in lines)
    Path(lines[0].removeprefix("file:")).unlink()
    gone = sql(f"FSCK REPAIR TABLE delta.`{tmp_path}/files` DRY RUN").collect()
    assert [row["dataFileMissing"] for row in gone] == [True]
    sql(f"FSCK REPAIR TABLE delta.`{tmp_path}/files`")
    assert sql(f"SELECT * FROM delta.`{tmp_path}/files`").count() == 5 - (2 if len(lines) == 1 else 1)


def test_installed(spark: Any, path: str) -> None:
    from deltaic.spark.statements import install

    install(spark)
    install(spark)
    try:
        assert ids(spark.sql(f"SELECT id FROM delta.`{path}`")) == [1, 2, 3, 4, 5]
        assert spark.sql("SELECT 1").count() == 1
    finally:
        del spark.sql


def test_enable(spark: Any, path: str) -> None:
    import deltaic.spark
    from deltaic.engine.spark.engine import SETTING

    try:
        for _ in range(2):
            deltaic.spark.enable(spark)
        assert ids(spark.sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 0")) == [1, 2, 3, 4]
        spark.read.format("delta").load(path).createOrReplaceTempView("loaded")
        spark.sql("DELETE FROM loaded WHERE id = 1")
        assert rows_at(path)[0][0] == 2
        assert spark.sql("SELECT z85_encode(X'864FD26FB559F75B')").collect()[0][0] == "HelloWorld"
        deltaic.spark.enable(spark, sql=False)
        with pytest.raises(Exception, match=r"(?i)delta"):
            spark.sql(f"DELETE FROM delta.`{path}`")
    finally:
        for name in ("sql", SETTING):
            spark.__dict__.pop(name, None)
    assert len(rows_at(path)) == 4


def test_what_has_another_value_each_time(spark: Any, sql: Any, path: str) -> None:
    """delta-spark refuses it in conditions and in UPDATE's SET; what MERGE assigns may be random."""
    table = deltaic.DeltaTable(path, spark=spark)
    source = pa.table({"id": [1], "part": ["a"], "amount": [1.0]})
    merge = table.merge(source, "t.id = s.id")
    for command in (
        lambda: sql(f"DELETE FROM delta.`{path}` WHERE id > 0 AND rand() < 2"),
        lambda: sql(f"UPDATE delta.`{path}` SET part = 'q' WHERE uuid() <> ''"),
        lambda: sql(f"UPDATE delta.`{path}` SET part = uuid()"),
        lambda: deltaic.write(table, source, mode="overwrite", where="monotonically_increasing_id() >= 0"),
        merge.when_matched_delete("rand() < 2").execute,
        merge.when_not_matched_insert_all("rand() < 2").execute,
        merge.when_not_matched_by_source_delete("rand() < 2").execute,
        table.merge(source, "t.id = s.id AND rand() < 2").when_matched_delete().execute,
    ):
        with pytest.raises(InvalidArgumentError, match="deterministic"):
            command()
    assert deltaic.DeltaTable(path).version == 1
    merge.when_matched_update({"part": "concat('x', uuid())"}).execute()
    assert sum(row[1].startswith("x") for row in rows_at(path)) == 1


def test_vacuum_hears_the_retention_check_of_the_session(spark: Any, sql: Any, path: str) -> None:
    deltaic.DeltaTable(path).optimize.purge()
    with pytest.raises(InvalidArgumentError, match="retention"):
        sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert rows_at(path)[0] == (1, "a", 1.0)


def test_vacuum_using_inventory(spark: Any, sql: Any, path: str, tmp_path: Path) -> None:
    """delta-spark's statement, with a query of the session and with a DataFrame by the Python API."""
    before = rows_at(path)
    lost, kept = Path(path) / "lost.parquet", Path(path) / "young.parquet"
    for file in (lost, kept):
        file.write_bytes(b"x")
    schema = "path string, length long, isDir boolean, modificationTime long"
    now = int(time.time() * 1000)
    listed = [
        (f"file:{each}", 1, False, now if each == kept else 1_600_000_000_000)
        for each in Path(path).rglob("*.parquet")
    ]
    frame = spark.createDataFrame(
        [*listed, ("file:/elsewhere/x", 1, False, 1), (None, None, None, None)], schema
    )
    frame.createOrReplaceTempView("listed_files")
    table = deltaic.DeltaTable(path, spark=spark)
    for source in ("listed_files", "(SELECT * FROM listed_files WHERE NOT isDir)"):
        assert [
            row.path for row in sql(f"VACUUM delta.`{path}` USING INVENTORY {source} DRY RUN").collect()
        ] == [f"{path}/lost.parquet"]
    assert table.vacuum(inventory=frame, dry_run=True).to_arrow()["path"].to_pylist() == ["lost.parquet"]
    with pytest.raises(SchemaMismatchError, match="length int"):
        table.vacuum(inventory=frame.withColumn("length", frame["length"].cast("int")))
    sql(f"VACUUM delta.`{path}` USING INVENTORY listed_files")
    assert (lost.exists(), kept.exists(), rows_at(path)) == (False, True, before)


def test_insert_casts_as_store_assignment(sql: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "typed")
    pair = "STRUCT<a: INT, b: INT>"
    sql(f"CREATE TABLE delta.`{place}` (id INT, s STRING, st {pair}, ar ARRAY<{pair}>) USING delta")
    sql(
        f"INSERT INTO delta.`{place}` VALUES ('5', 7, named_struct('b', 9L, 'a', '8'),"
        " array(named_struct('x', 9, 'y', 8), NULL))"
    )
    sql(f"INSERT INTO delta.`{place}` (id, s, ar) SELECT 6L, array(1), array(named_struct('b', 9, 'a', 8))")
    assert rows_at(place) == [
        (5, "7", {"a": 9, "b": 8}, [{"a": 9, "b": 8}, None]),
        (6, "[1]", None, [{"a": 9, "b": 8}]),
    ]
    for values, message in (
        ("('abc', '', NULL, NULL)", "column id"),
        ("(1, '', named_struct('a', 9), NULL)", "lacks fields"),
        ("(DATE'2020-01-01', '', NULL, NULL)", "does not fit"),
    ):
        with pytest.raises(SchemaMismatchError, match=message):
            sql(f"INSERT INTO delta.`{place}` VALUES {values}")
    assert deltaic.DeltaTable(place).version == 2


def test_the_place_of_columns(sql: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "placed")
    sql(
        f"CREATE TABLE delta.`{place}` (id INT, st STRUCT<a: INT NOT NULL COMMENT 'inner', b: INT>) USING"
        " delta"
    )
    assert deltaic.DeltaTable(place).schema == deltaic.Schema.from_ddl(
        "id INT, st STRUCT<a: INT NOT NULL COMMENT 'inner', b: INT>"
    )
    sql(f"INSERT INTO delta.`{place}` VALUES (1, named_struct('a', 2, 'b', 3))")
    sql(f"ALTER TABLE delta.`{place}` ADD COLUMNS (x INT FIRST, st.c INT AFTER a)")
    sql(f"ALTER TABLE delta.`{place}` ALTER COLUMN st.b FIRST")
    sql(f"INSERT INTO delta.`{place}` VALUES (4, 5, named_struct('b', 6, 'a', 7, 'c', 8))")
    found = sql(f"SELECT * FROM delta.`{place}` ORDER BY id")
    assert found.columns == ["x", "id", "st"]
    assert [(row["x"], row["id"], row["st"].asDict()) for row in found.collect()] == [
        (None, 1, {"b": 3, "a": 2, "c": None}),
        (4, 5, {"b": 6, "a": 7, "c": 8}),
    ]


@pytest.mark.parametrize(
    ("statement", "command"),
    [
        ("DELETE FROM {t} WHERE id = 1", "DeleteCommand"),
        ("DELETE FROM {t} AS x WHERE x.id IN (SELECT 1)", "DeleteCommand"),
        ("UPDATE {t} SET amount = 0 WHERE id = 1", "UpdateCommand"),
        ("UPDATE {t} x SET amount = 0", "UpdateCommand"),
        (
            "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "MergeIntoCommand",
        ),
        ("INSERT INTO {t} VALUES (6, 'a', 1.0)", "WriteIntoDelta"),
        ("INSERT OVERWRITE {t} PARTITION (part = 'a') (id) SELECT id FROM {t}", "WriteIntoDelta"),
        ("INSERT INTO {t} REPLACE WHERE id = 1 (SELECT 1, 'a', 1.0)", "WriteIntoDelta"),
        ("WITH c AS (SELECT 9L AS id) INSERT INTO {t} (id) SELECT id FROM c", "WriteIntoDelta"),
    ],
)
def test_explain_of_a_change_changes_nothing(sql: Any, path: str, statement: str, command: str) -> None:
    before, name = rows_at(path), f"delta.`{path}`"
    for mode in ("", "FORMATTED ", "EXTENDED "):
        (row,) = sql(f"EXPLAIN {mode}{statement.format(t=name)}").collect()
        head, plan = row.plan.split("Rows that it reads:")
        assert head == f"== Physical Plan ==\nExecute {command} `delta`.`{path}`\n\n"
        assert "== Physical Plan ==" in plan
        assert "Error" not in plan
    assert rows_at(path) == before
    assert len(deltaic.DeltaTable(path).history()) == 2


def test_explain_takes_parameters(sql: Any, path: str) -> None:
    (row,) = sql(f"EXPLAIN DELETE FROM delta.`{path}` WHERE id = :n", {"n": 77}).collect()
    assert "77" in row.plan


def test_column_mapping_is_removed(sql: Any, path: str) -> None:
    name = f"delta.`{path}`"
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    sql(f"ALTER TABLE {name} RENAME COLUMN id TO `the id`")
    sql(f"DELETE FROM {name} WHERE `the id` = 1")
    with pytest.raises(InvalidArgumentError, match="the id"):
        sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')")
    sql(f"ALTER TABLE {name} RENAME COLUMN `the id` TO number")
    before = rows_at(path)
    sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.columnMapping.mode')")
    assert rows_at(path) == before == rows_of(sql(f"SELECT * FROM {name}"))
    assert deltaic.DeltaTable(path).history(1)[0]["operation"] == "REMOVE COLUMN MAPPING"
    for file in deltaic.DeltaTable(path).files().to_pylist():
        assert pq.read_schema(file["location"]).names == ["number", "amount"]
