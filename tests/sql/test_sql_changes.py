"""DELETE, UPDATE, MERGE, INSERT, TRUNCATE as SQL: rows and results are those of delta-spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    MergeCardinalityError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)


def rows(table: deltaic.DeltaTable) -> list[tuple[Any, ...]]:
    """Returns all rows, sorted by id; nulls of id first."""
    table.refresh()
    found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    return sorted(found, key=lambda row: (row[0] is not None, row[0]))


def result(statement: str, **options: Any) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = deltaic.sql(statement, **options).to_arrow().to_pylist()
    return answer


def at(table: deltaic.DeltaTable) -> str:
    return f"delta.`{table.location}`"


def test_delete(table: deltaic.DeltaTable) -> None:
    assert result(f"DELETE FROM {at(table)} WHERE part = 'a' AND amount IS NULL") == [
        {"num_affected_rows": 1}
    ]
    assert [row[0] for row in rows(table)] == [1, 3, 4]


def test_delete_by_name_and_alias(table: deltaic.DeltaTable) -> None:
    assert result("delete from T as x where x.id >= 3 and X.`amount` > 0;", tables={"t": table}) == [
        {"num_affected_rows": 1}
    ]
    assert [row[0] for row in rows(table)] == [1, 2, 3]


def test_a_field_of_a_column_with_the_tables_name(tmp_path: Path) -> None:
    structs = [{"id": 9, "w": "a"}, {"id": 1, "w": "b"}]
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2], "t": structs}))
    tables = {"t": table}
    assert result("UPDATE t SET t.w = concat(t.w, '!'), t.id = 5 WHERE t.id = 1 AND t.w = 'a'", tables=tables)
    assert result("UPDATE t SET t.t.id = t.id + 1 WHERE t.t.w = 'b'", tables=tables)
    assert sorted([row["id"], row["t"]] for row in table.scan().to_arrow().to_pylist()) == [
        [2, {"id": 3, "w": "b"}],
        [5, {"id": 9, "w": "a!"}],
    ]
    assert result("DELETE FROM t WHERE t.w = 'b'", tables=tables) == [{"num_affected_rows": 1}]
    assert result("DELETE FROM t WHERE t.id = 9", tables=tables) == [{"num_affected_rows": 0}]


def test_a_table_that_was_handed_in_moves_to_the_commit(table: deltaic.DeltaTable) -> None:
    deltaic.sql("DELETE FROM t WHERE t.id = 1", tables={"t": table})
    assert table.version == 1


def test_delete_of_everything_and_of_nothing(table: deltaic.DeltaTable) -> None:
    assert result(f"DELETE FROM {at(table)} WHERE id > 100") == [{"num_affected_rows": 0}]
    assert result(f"DELETE FROM {at(table)}") == [{"num_affected_rows": 4}]
    assert rows(table) == []


def test_truncate(table: deltaic.DeltaTable) -> None:
    assert deltaic.sql(f"TRUNCATE TABLE {at(table)}").schema.names == []
    assert rows(table) == []
    info, version = table.history()[0], table.version
    assert (info["operation"], info["operationParameters"]) == ("TRUNCATE", {})
    assert set(info["operationMetrics"]) == {"numRemovedFiles", "executionTimeMs"}
    deltaic.sql(f"TRUNCATE TABLE {at(table)}")
    assert deltaic.DeltaTable(table.location).version == version


def test_update(table: deltaic.DeltaTable) -> None:
    statement = (
        f"UPDATE {at(table)} AS x SET x.amount = CASE WHEN x.amount > 0 THEN x.amount * 2 ELSE 0 END, part ="
        " 'z' WHERE x.id < 3"
    )
    assert result(statement) == [{"num_affected_rows": 2}]
    assert rows(table) == [(1, "z", 3.0), (2, "z", 0.0), (3, "b", -2.0), (4, None, 40.0)]


def test_update_of_a_nested_field(tmp_path: Path) -> None:
    data = pa.table({"id": [1], "s": pa.array([{"a": 1, "b": "x"}])})
    table = deltaic.write(tmp_path / "t", data)
    deltaic.sql("UPDATE t SET t.s.a = t.s.a + 1", tables={"t": table})
    assert rows(table) == [(1, {"a": 2, "b": "x"})]


def test_the_history_shows_the_condition_as_it_was_written(table: deltaic.DeltaTable) -> None:
    deltaic.sql(f"DELETE FROM {at(table)} WHERE  id=1 /* gone */ OR id  = 2")
    table.refresh()
    assert "id=1 /* gone */ OR id  = 2" in str(table.history(1)[0]["operationParameters"])


MERGE_SOURCE = pa.table(
    {"id": pa.array([2, 3, 9], pa.int64()), "part": ["a", "q", "n"], "amount": [20.0, 30.0, 90.0]}
)


def test_insert_stores_a_timestamp_as_its_seconds(table: deltaic.DeltaTable) -> None:
    """Spark's ANSI mode casts timestamps to numbers, but dates not."""
    times = "TIMESTAMP'2020-01-01', 'a', TIMESTAMP'1970-01-01 00:00:02'"
    deltaic.sql(f"INSERT INTO {at(table)} VALUES ({times})")
    assert rows(table)[-1] == (1577836800, "a", 2.0)
    with pytest.raises(SchemaMismatchError, match="column id: a value does not fit its column; found date"):
        deltaic.sql(f"INSERT INTO {at(table)} VALUES (DATE'2020-01-01', 'a', 1)")


def test_two_equals_signs_assign(table: deltaic.DeltaTable) -> None:
    """Spark's grammar takes `==` for `=` in assignments, properties and partitions."""
    deltaic.sql(f"UPDATE {at(table)} SET amount == 7, part == 'z' WHERE id == 1")
    deltaic.sql(
        f"MERGE INTO {at(table)} t USING (SELECT 2L AS id) s ON t.id == s.id"
        " WHEN MATCHED THEN UPDATE SET amount == 8"
    )
    deltaic.sql(f"ALTER TABLE {at(table)} SET TBLPROPERTIES ('team' == 'me')")
    deltaic.sql(f"INSERT INTO {at(table)} PARTITION (part == 'q') VALUES (9, 1.0)")
    found = {row[0]: row[1:] for row in rows(table)}
    assert (found[1], found[2], found[9]) == (("z", 7.0), ("a", 8.0), ("q", 1.0))
    assert table.metadata.configuration["team"] == "me"


def test_merge_all_clauses(table: deltaic.DeltaTable) -> None:
    statement = """
        MERGE INTO target AS t USING news s ON t.id = s.id
        WHEN MATCHED AND s.amount > 25 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.amount = s.amount, part = concat(t.part, s.part)
        WHEN NOT MATCHED BY TARGET AND s.id > 5 THEN INSERT (id, amount) VALUES (s.id, s.amount + 1)
        WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET amount = 0
        WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    expected = {"num_affected_rows": 5, "num_updated_rows": 2, "num_deleted_rows": 2, "num_inserted_rows": 1}
    assert result(statement, tables={"target": table, "news": MERGE_SOURCE}) == [expected]
    assert rows(table) == [(1, "a", 0.0), (2, "aa", 20.0), (9, None, 91.0)]


def test_merge_star_from_a_query(table: deltaic.DeltaTable) -> None:
    statement = f"""
        MERGE INTO {at(table)} t
        USING (SELECT id, part, amount * 10 AS amount FROM news WHERE id > 2) AS s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    assert result(statement, tables={"news": MERGE_SOURCE})[0]["num_affected_rows"] == 2
    assert rows(table)[2:] == [(3, "q", 300.0), (4, None, 40.0), (9, "n", 900.0)]


def test_merge_without_aliases_and_with_its_own_past(table: deltaic.DeltaTable) -> None:
    deltaic.sql(f"DELETE FROM {at(table)} WHERE id = 4")
    path = table.location
    statement = f"""
        MERGE INTO {at(table)} USING delta.`{path}` VERSION AS OF 0 AS old ON `{path}`.id = old.id
        WHEN NOT MATCHED THEN INSERT *"""
    assert result(statement)[0]["num_inserted_rows"] == 1
    assert len(rows(table)) == 4


def test_a_merge_whose_columns_have_the_whole_name(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    source = deltaic.write(tmp_path / "news", MERGE_SOURCE)
    target, news = at(table), at(source)
    statement = f"""
        MERGE INTO {target} USING {news} ON {target}.id = {news}.id AND {news}.part <> 'delta.`x`.id'
        WHEN MATCHED THEN UPDATE SET {target}.amount = {news}.amount + {target}.id
        WHEN NOT MATCHED THEN INSERT (id) VALUES ({news}.id)"""
    assert result(statement)[0]["num_affected_rows"] == 3
    rows = {row["id"]: row["amount"] for row in table.at().scan().to_arrow().to_pylist()}
    assert rows == {1: 1.5, 2: 22.0, 3: 33.0, 4: 40.0, 9: None}


def test_merge_with_schema_evolution(table: deltaic.DeltaTable) -> None:
    source = pa.table({"id": pa.array([1], pa.int64()), "extra": ["new"]})
    deltaic.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        tables={"t": table, "s": source},
    )
    assert table.schema.names == ["id", "part", "amount", "extra"]
    assert rows(table)[0] == (1, "a", 1.5, "new")


def test_conditions_in_the_history_name_only_aliases_of_the_user(table: deltaic.DeltaTable) -> None:
    deltaic.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1L AS key, 'new' AS extra) ON t.id = key AND"
        " extra = 'new' WHEN MATCHED AND extra IS NOT NULL THEN UPDATE SET extra = upper(extra)",
        tables={"t": table},
    )
    assert rows(table)[0][-1] == "NEW"
    shown = " ".join(table.history(1)[0]["operationParameters"].values())
    assert "t.id = key AND extra = 'new'" in shown
    assert "__deltaic" not in shown


def test_merge_refuses_an_ambiguous_source(table: deltaic.DeltaTable) -> None:
    source = pa.table({"id": pa.array([1, 1], pa.int64())})
    with pytest.raises(MergeCardinalityError):
        deltaic.sql(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 0",
            tables={"t": table, "s": source},
        )
    # one DELETE without condition is never ambiguous: the row goes, whoever matched it
    deltaic.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", tables={"t": table, "s": source}
    )
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [2, 3, 4]


def test_insert_values_by_position(table: deltaic.DeltaTable) -> None:
    assert deltaic.sql(f"INSERT INTO {at(table)} VALUES (5, 'e', 5.5), (6, NULL, NULL)").schema.names == []
    assert rows(table)[4:] == [(5, "e", 5.5), (6, None, None)]


def test_insert_listed_columns(table: deltaic.DeltaTable) -> None:
    deltaic.sql(f"INSERT INTO TABLE {at(table)} (AMOUNT, id) SELECT 7.25, 7")
    assert rows(table)[4:] == [(7, None, 7.25)]


def test_insert_a_query_over_the_table_itself(table: deltaic.DeltaTable) -> None:
    deltaic.sql("INSERT INTO t SELECT id + 10, part, amount FROM t WHERE id < 3", tables={"t": table})
    assert [row[0] for row in rows(table)] == [1, 2, 3, 4, 11, 12]


def test_insert_by_name(table: deltaic.DeltaTable) -> None:
    deltaic.sql("INSERT INTO t BY NAME SELECT 'z' AS part, 8 AS id", tables={"t": table})
    assert rows(table)[4:] == [(8, "z", None)]


@pytest.mark.parametrize("condition", ["part = 'a'", "id = 1", "id = 77"])
def test_the_metrics_of_replaced_rows(table: deltaic.DeltaTable, condition: str) -> None:
    part = "a" if "part" in condition else "z"
    identifier = 77 if "77" in condition else 1
    deltaic.sql(f"INSERT INTO {at(table)} REPLACE WHERE {condition} SELECT {identifier}, '{part}', 1.0D")
    table.refresh()
    metrics = table.history(1)[0]["operationMetrics"]
    assert set(metrics) == {
        *("numFiles", "numOutputRows", "numOutputBytes", "numRemovedFiles", "numRemovedBytes"),
        *("numAddedChangeFiles", "numDeletedRows", "numCopiedRows"),
    }


def test_copied_rows_count_as_written_if_rows_are_replaced(tmp_path: Path) -> None:
    """DescribeDeltaHistorySuite: "replaceWhere on data column - partial rewrite"."""
    table = deltaic.write(
        tmp_path / "t",
        {"id": list(range(10)), "b": [0, 1] * 5},
        properties={"delta.enableDeletionVectors": "false"},
    )
    size = table.detail().size_in_bytes
    deltaic.write(table.location, {"id": list(range(20)), "b": [1] * 20}, mode="overwrite", where="b = 1")
    table.refresh()
    metrics = table.history(1)[0]["operationMetrics"]
    assert metrics == {
        "numFiles": "2",
        "numOutputRows": "25",
        "numOutputBytes": str(table.detail().size_in_bytes),
        "numCopiedRows": "5",
        "numDeletedRows": "5",
        "numRemovedFiles": "1",
        "numRemovedBytes": str(size),
        "numAddedChangeFiles": "0",
    }


@pytest.mark.parametrize("values", ["1, 'z', 2.5D, 4", "1, 'z', 2.5D, 4, 5, 6"])
def test_insert_of_more_values_than_columns(table: deltaic.DeltaTable, values: str) -> None:
    with pytest.raises(SchemaMismatchError, match="more values than columns"):
        deltaic.sql(f"INSERT INTO {at(table)} VALUES ({values})")


def test_insert_with_schema_evolution(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", {"id": [1], "p": ["a"]}, partition_by="p")
    insert = f"INSERT WITH SCHEMA EVOLUTION INTO {at(table)}"
    with pytest.raises(SchemaMismatchError, match="more values than columns"):
        deltaic.sql(f"INSERT INTO {at(table)} SELECT 2, 'b', 2.5D AS price")
    deltaic.sql(f"{insert} SELECT 2 AS other, 'b', 2.5D AS price")
    deltaic.sql(f"{insert} PARTITION (p = 'c') SELECT 3, 3.5D, true AS paid")
    deltaic.sql(f"{insert} BY NAME SELECT 4 AS id, 'n' AS note")
    assert rows(table) == [
        (1, "a", None, None, None),
        (2, "b", 2.5, None, None),
        (3, "c", 3.5, True, None),
        (4, None, None, None, "n"),
    ]
    assert table.schema.names == ["id", "p", "price", "paid", "note"]
    with pytest.raises(InvalidArgumentError, match="a column comes twice; found ID"):
        deltaic.sql(f"{insert} SELECT 5, 'b', 1.0D, true, 'n', 6 AS ID")
    with pytest.raises(SchemaMismatchError, match="more values than columns"):
        deltaic.sql(f"{insert} (id, p) SELECT 5, 'b', 1 AS more")


def test_insert_overwrite(table: deltaic.DeltaTable) -> None:
    deltaic.sql(f"INSERT OVERWRITE {at(table)} SELECT 1, 'only', 1.0")
    assert rows(table) == [(1, "only", 1.0)]


def test_insert_replace_where(table: deltaic.DeltaTable) -> None:
    deltaic.sql(f"INSERT INTO {at(table)} REPLACE WHERE part = 'a' VALUES (20, 'a', 2.0)")
    assert [row[0] for row in rows(table)] == [3, 4, 20]
    with pytest.raises(ConstraintViolationError):
        deltaic.sql(f"INSERT INTO {at(table)} REPLACE WHERE part = 'a' VALUES (21, 'b', 2.0)")
    assert [row[0] for row in rows(table)] == [3, 4, 20]
    deltaic.sql(
        f"INSERT INTO {at(table)} REPLACE WHERE part IN ('a') (SELECT id + 1, 'a', 1.0 FROM {at(table)})"
    )
    assert [row[:2] for row in rows(table)] == [(3, "b"), (4, None), (4, "a"), (5, "a"), (21, "a")]
    with pytest.raises(InvalidArgumentError, match="query"):
        deltaic.sql(f"INSERT INTO {at(table)} REPLACE WHERE part IN (SELECT 'a')")


def test_insert_replace_using(table: deltaic.DeltaTable) -> None:
    query = "SELECT * FROM VALUES (20, 'a', 2.0), (21, NULL, 3.0) AS v(id, part, other)"
    deltaic.sql(f"INSERT INTO {at(table)} REPLACE USING (part) {query}")
    assert [row[:2] for row in rows(table)] == [(3, "b"), (4, None), (20, "a"), (21, None)]
    entry = table.history(1)[0]
    assert (entry["operation"], entry["operationParameters"]["replaceUsingCols"]) == ("WRITE", "(part)")
    by_name = "SELECT 9.0D AS amount, 'b' AS part, 20 AS id UNION ALL SELECT 8.0D, 'c', 5"
    deltaic.sql(f"INSERT INTO {at(table)} BY NAME REPLACE USING (id) {by_name}")
    assert [row[:2] for row in rows(table)] == [(3, "b"), (4, None), (5, "c"), (20, "b"), (21, None)]
    query = "SELECT 5 AS id, 'd' AS part, 1.0D AS amount, 7 AS n"
    deltaic.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {at(table)} REPLACE USING (ID) {query}")
    assert [row for row in rows(table) if row[0] in (4, 5)] == [(4, None, 40.0, None), (5, "d", 1.0, 7)]


def test_insert_replace_on(table: deltaic.DeltaTable) -> None:
    insert = f"INSERT INTO {at(table)}"
    query = "SELECT 20 AS id, 'a' AS part, 2.0D AS amount UNION ALL SELECT 21, NULL, 3.0D"
    deltaic.sql(f"{insert} AS x REPLACE ON x.part <=> s.part AND x.id IN (1, 4) ({query}) AS s")
    assert [row[:2] for row in rows(table)] == [(2, "a"), (3, "b"), (20, "a"), (21, None)]
    deltaic.sql(
        f"{insert} REPLACE ON {at(table)}.id + 1 = s.id (SELECT 4 AS id, 'z' AS part, 0D AS amount) s"
    )
    deltaic.sql(f"{insert} t BY NAME REPLACE ON t.id = 2 SELECT 'y' AS part, 5 AS id, 1D AS amount")
    assert [row[:2] for row in rows(table)] == [(4, "z"), (5, "y"), (20, "a"), (21, None)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("t REPLACE USING (part) SELECT 1 AS part, 'a' AS id, 1D", "another position"),
        ("t REPLACE USING (nope) SELECT 1, 'a', 1D", "the table lacks a column"),
        ("t REPLACE USING (id) SELECT 1, 'a', 1D", "the query lacks a column"),
        ("t (id) REPLACE USING (id) SELECT 1", "found USING; expected WHERE"),
        ("t REPLACE ON id = 1 SELECT 1 AS id, 'a' AS part, 1D AS amount", "both the table and the new rows"),
        ("t REPLACE ON nope = 1 SELECT 1 AS id, 'a' AS part, 1D AS amount", "neither the table nor"),
        ("t REPLACE ON t.id = s.x (SELECT 1 AS x, 'a' AS part, 1D AS amount) s", "found x; expected id"),
        ("t REPLACE ON t.id = T.id (SELECT 1 AS id, 'a' AS part, 1D AS amount) T", "the same alias"),
        ("t AS x REPLACE WHERE x.id = 1 SELECT 1, 'a', 1D", "an alias only with"),
    ],
)
def test_insert_replace_is_refused(table: deltaic.DeltaTable, statement: str, message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=message):
        deltaic.sql(f"INSERT INTO {statement}", tables={"t": table})
    assert len(rows(table)) == 4


def test_insert_into_a_partition(table: deltaic.DeltaTable) -> None:
    deltaic.sql(f"INSERT INTO {at(table)} PARTITION (part = 'x') (amount, id) VALUES (1.5, 9)")
    deltaic.sql(f"INSERT OVERWRITE {at(table)} PARTITION (part = 'a') SELECT 20, 2.5")
    assert [row[:2] for row in rows(table)] == [(3, "b"), (4, None), (9, "x"), (20, "a")]


def test_insert_needs_one_value_for_each_column(table: deltaic.DeltaTable) -> None:
    with pytest.raises(SchemaMismatchError, match="one value for each column"):
        deltaic.sql(f"INSERT INTO {at(table)} VALUES (1, 'a')")
    assert len(rows(table)) == 4


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("UPDATE t SET amount = 1, AMOUNT = 2", InvalidArgumentError, "twice"),
        ("UPDATE t SET nothing = 1", InvalidArgumentError, "nothing"),
        ("DELETE FROM t WHERE nothing = 1", InvalidArgumentError, "nothing"),
        ("DELETE t WHERE id = 1", InvalidArgumentError, "DELETE FROM|expected"),
        ("UPDATE t SET amount = 1 WHERE", InvalidArgumentError, "end of the statement"),
        ("MERGE INTO t USING s ON t.id = s.id", InvalidArgumentError, "WHEN"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
            InvalidArgumentError,
            "one value",
        ),
        ("INSERT INTO t PARTITION (id = 1) SELECT 'a', 2", SchemaMismatchError, "PARTITION"),
        (
            "INSERT INTO t PARTITION (part = 'a', part = 'b') SELECT 2",
            InvalidArgumentError,
            "names a column twice",
        ),
        (
            "INSERT INTO t PARTITION (part = DEFAULT) SELECT 2, 3",
            InvalidArgumentError,
            "not take DEFAULT",
        ),
        ("INSERT INTO t (id) BY NAME SELECT 2 AS id", InvalidArgumentError, "takes no list of columns"),
        ("INSERT INTO s VALUES (1)", InvalidArgumentError, "Delta table"),
        ("DELETE FROM nobody", InvalidArgumentError, "no such table"),
        ("DELETE FROM t; DELETE FROM t", InvalidArgumentError, "one statement"),
        ("DROP TABLE t", UnsupportedFeatureError, "DROP"),
        ("FROBNICATE t", InvalidArgumentError, "FROBNICATE"),
    ],
)
def test_refusals_name_what_is_wrong(
    table: deltaic.DeltaTable, statement: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        deltaic.sql(statement, tables={"t": table, "s": MERGE_SOURCE})
    table.refresh()
    assert table.version == 0


def test_insert_of_defaults(tmp_path: Path) -> None:
    place = tmp_path / "defaults"
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    deltaic.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, n INT DEFAULT 1 + 1, s STRING) {properties}")
    deltaic.sql(f"INSERT INTO delta.`{place}` VALUES (1L, DEFAULT, '(,DEFAULT'), (2L, 5, default)")
    deltaic.sql(f"INSERT INTO delta.`{place}` (s, n) VALUES ('DEFAULT', DEFAULT)")
    found = deltaic.DeltaTable(place).scan().to_arrow().to_pylist()
    assert sorted(map(str, (list(row.values()) for row in found))) == [
        "[1, 2, '(,DEFAULT']",
        "[2, 5, None]",
        "[None, 2, 'DEFAULT']",
    ]


@pytest.fixture
def nested(tmp_path: Path) -> deltaic.DeltaTable:
    """A table without rows, of all kinds of types."""
    pair = "STRUCT<a: INT, b: INT>"
    deltaic.sql(
        f"CREATE TABLE delta.`{tmp_path}/nested` (id INT, st {pair}, ar ARRAY<{pair}>, m MAP<STRING, {pair}>,"
        " s STRING, d DATE, big BIGINT)"
    )
    return deltaic.DeltaTable(tmp_path / "nested")


@pytest.mark.parametrize(
    ("insert", "stored"),
    [
        ("(id) VALUES ('5')", {"id": 5}),
        ("BY NAME SELECT '5' AS id", {"id": 5}),
        ("BY NAME SELECT named_struct('b', 9, 'a', 8) AS st", {"st": {"a": 8, "b": 9}}),
        ("BY NAME SELECT 5 AS id, named_struct('b', 9L, 'a', 8) AS st", {"id": 5, "st": {"a": 9, "b": 8}}),
        ("(id) VALUES (1.7), (NULL)", {"id": 1}),
        ("(id) VALUES (1.7D)", {"id": 1}),
        ("(id) VALUES (true)", {"id": 1}),
        ("(id) SELECT 5L", {"id": 5}),
        ("(s, big) VALUES (7, 8)", {"s": "7", "big": 8}),
        ("(s) VALUES (DATE'2020-01-01')", {"s": "2020-01-01"}),
        ("(s) VALUES (true)", {"s": "true"}),
        ("(s) VALUES (X'6162')", {"s": "ab"}),
        ("(d) VALUES ('2020-05-05')", {"d": date(2020, 5, 5)}),
        ("(d) VALUES (TIMESTAMP'2020-05-05 10:00:00')", {"d": date(2020, 5, 5)}),
        ("(st) VALUES (named_struct('x', 9, 'y', 8))", {"st": {"a": 9, "b": 8}}),
        ("(st) VALUES (named_struct('b', 9L, 'a', '8'))", {"st": {"a": 9, "b": 8}}),
        ("(ar) VALUES (array(named_struct('x', 9, 'y', 8), NULL))", {"ar": [{"a": 9, "b": 8}, None]}),
        ("(ar) VALUES (array(named_struct('b', 9, 'a', 8)))", {"ar": [{"a": 8, "b": 9}]}),
        ("(id, ar) VALUES (5L, array(named_struct('b', 9, 'a', 8)))", {"id": 5, "ar": [{"a": 9, "b": 8}]}),
        ("(m) VALUES (map(1, named_struct('b', 9, 'a', 8)))", {"m": [("1", {"a": 9, "b": 8})]}),
        ("(m) VALUES (map(1, named_struct('b', 9L, 'a', 8)))", {"m": [("1", {"a": 9, "b": 8})]}),
    ],
)
def test_insert_casts_as_store_assignment(
    nested: deltaic.DeltaTable, insert: str, stored: dict[str, Any]
) -> None:
    deltaic.sql("INSERT INTO t " + insert, tables={"t": nested})
    first = nested.scan().to_arrow().to_pylist()[0]
    assert {name: value for name, value in first.items() if value is not None} == stored


@pytest.mark.parametrize(
    ("insert", "message"),
    [
        ("(id) VALUES ('abc')", "column id: a value of type string does not fit"),
        ("(id) VALUES (3000000000)", "column id: a value of type long does not fit"),
        ("(st) VALUES (named_struct('b', 'x', 'a', 8))", "column st.a: a value of type string does not fit"),
        ("(id) VALUES (DATE'2020-01-01')", "does not fit"),
        ("(st) VALUES (5)", "does not fit"),
        ("(st) VALUES (named_struct('a', 9))", "lacks fields"),
        ("BY NAME SELECT named_struct('a', 9) AS st", "lacks fields"),
        ("(ar) VALUES (array(named_struct('a', 9)))", "lacks fields"),
        ("(st) VALUES (named_struct('a', 9, 'b', 8, 'c', 7))", "the table lacks"),
    ],
)
def test_insert_of_what_does_not_fit(nested: deltaic.DeltaTable, insert: str, message: str) -> None:
    with pytest.raises(SchemaMismatchError, match=message):
        deltaic.sql("INSERT INTO t " + insert, tables={"t": nested})
    assert nested.version == 0


def test_insert_of_a_query_places_its_structs(nested: deltaic.DeltaTable) -> None:
    found = pa.table({"k": ["1", "2"], "st": [{"p": 1, "q": 2}, None]})
    deltaic.sql("INSERT INTO t (big, st) SELECT * FROM f", tables={"t": nested, "f": found})
    assert nested.scan(["big", "st"]).to_arrow().to_pylist() == [
        {"big": 1, "st": {"a": 1, "b": 2}},
        {"big": 2, "st": None},
    ]


@pytest.mark.parametrize(
    ("insert", "stored"),
    [
        ("INTO t SELECT 1 AS a, named_struct('y', 5, 'x', 4) AS s", {"x": 4, "y": 5}),
        ("OVERWRITE t PARTITION (a = 1) SELECT named_struct('y', 5, 'x', 4) AS s", {"x": 4, "y": 5}),
        ("INTO t (a, s) SELECT 1 AS a, named_struct('y', 5, 'x', 4) AS s", {"x": 5, "y": 4}),
        ("INTO t SELECT 1L AS a, named_struct('y', 5, 'x', 4) AS s", {"x": 5, "y": 4}),
        ("INTO t SELECT 1 AS b, named_struct('y', 5, 'x', 4) AS s", {"x": 5, "y": 4}),
    ],
)
def test_fields_match_by_name_unless_a_column_is_cast_or_renamed(
    tmp_path: Path, insert: str, stored: dict[str, int]
) -> None:
    table = deltaic.DeltaTable.create(tmp_path / "t", "a int, s struct<x: int, y: int>", partition_by=["a"])
    deltaic.sql("INSERT " + insert, tables={"t": table})
    assert rows(table) == [(1, stored)]


def test_fields_of_wider_types_match_by_name_if_the_schema_evolves(tmp_path: Path) -> None:
    """delta-spark: a wider type needs no cast where the table takes it."""
    table = deltaic.DeltaTable.create(
        tmp_path / "t", "a int, s struct<x: int, y: int>", properties={"delta.enableTypeWidening": "true"}
    )
    query = "SELECT 1L AS a, named_struct('y', 5, 'x', 4L) AS s"
    deltaic.sql(f"INSERT WITH SCHEMA EVOLUTION INTO t {query}", tables={"t": table})
    assert rows(table) == [(1, {"x": 4, "y": 5})]
    assert [table.schema.find(name)[1].type for name in ("a", "s.x", "s.y")] == ["long", "long", "integer"]


def test_insert_behind_from(table: deltaic.DeltaTable) -> None:
    deltaic.sql("FROM t INSERT INTO t SELECT id + 10, part, amount WHERE id < 3", tables={"t": table})
    assert [row[0] for row in rows(table)] == [1, 2, 3, 4, 11, 12]
    deltaic.sql(
        "FROM (SELECT * FROM t) AS s INSERT INTO t (id) SELECT max(s.id) + 1 GROUP BY part HAVING part = 'a'",
        tables={"t": table},
    )
    assert [row[0] for row in rows(table)][-1] == 13
    assert deltaic.sql("FROM t SELECT id", tables={"t": table}).count() == 7
    for wrong in (
        "FROM t INSERT INTO t SELECT 1, 'a', 1 INSERT INTO t",
        "FROM t INSERT INTO t",
    ):
        with pytest.raises((InvalidArgumentError, UnsupportedFeatureError)):
            deltaic.sql(wrong, tables={"t": table})
    assert len(rows(table)) == 7


def test_several_inserts_behind_from(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    other = deltaic.write(tmp_path / "other", pa.table({"id": pa.array([0], pa.int64()), "part": ["z"]}))
    tables = {"t": table, "o": other}
    deltaic.sql(
        "FROM t -- all rows\n INSERT INTO t SELECT id + 10, part, amount WHERE id < 3 -- few\n"
        " INSERT INTO o (part) SELECT part WHERE part = 'b' INSERT OVERWRITE o BY NAME"
        " SELECT max(id) AS id, CASE WHEN part = 'b' THEN 'x' END AS part WHERE id < 10 GROUP BY part",
        tables=tables,
    )
    assert [row[0] for row in rows(table)] == [1, 2, 3, 4, 11, 12]
    assert sorted(map(str, other.scan().to_arrow().to_pylist())) == [
        "{'id': 2, 'part': None}",
        "{'id': 3, 'part': 'x'}",
        "{'id': 4, 'part': None}",
    ]
    deltaic.sql(
        "WITH n AS (SELECT 7 AS id) FROM n INSERT INTO o (id) SELECT id INSERT INTO t (id) SELECT id + 1",
        tables=tables,
    )
    assert (other.scan(where="id = 7").count(), table.scan(where="id = 8").count()) == (1, 1)


def test_defaults_in_the_list_of_a_select(tmp_path: Path) -> None:
    path = f"delta.`{tmp_path / 'd'}`"
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    deltaic.sql(
        f"CREATE TABLE {path} (id BIGINT, g BIGINT GENERATED ALWAYS AS (id * 2), p INT DEFAULT 1 + 2,"
        f" s STRING DEFAULT 'x') {properties}"
    )
    deltaic.sql(f"INSERT INTO {path} SELECT 1, DEFAULT, DEFAULT, DEFAULT")
    deltaic.sql(f"INSERT INTO {path} (p, id) FROM (SELECT 2 AS v) AS n SELECT default, v WHERE v > 1")
    deltaic.sql(f"INSERT INTO {path} (id, p) SELECT v, default FROM (SELECT 3 AS v, 30 AS default) AS n")
    deltaic.sql(f"FROM (SELECT 4 AS v) AS n INSERT INTO {path} (id, s) SELECT v, DEFAULT ORDER BY v LIMIT 1")
    found = deltaic.DeltaTable(tmp_path / "d").scan().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (1, 2, 3, "x"),
        (2, 4, 3, "x"),
        (3, 6, 30, "x"),
        (4, 8, 3, "x"),
    ]
    with pytest.raises(InvalidArgumentError, match="DEFAULT is part of an expression"):
        deltaic.sql(f"INSERT INTO {path} (id, p) SELECT 5, DEFAULT + 1")
    for wrong in ("SELECT 5, d FROM (SELECT DEFAULT + 1 AS d)", "SELECT 5, q FROM (SELECT DEFAULT AS q)"):
        with pytest.raises((InvalidArgumentError, UnsupportedFeatureError)):
            deltaic.sql(f"INSERT INTO {path} (id, p) {wrong}")
    with pytest.raises(InvalidArgumentError, match="DEFAULT is part of an expression"):
        deltaic.sql(f"INSERT INTO {path} (id, p) VALUES (5, coalesce(DEFAULT, 1))")
