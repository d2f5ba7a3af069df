"""Streams from tables: schemas that change, and columns of partitions. Each test has the behaviour of the
tests of delta-spark's DeltaSourceSuite that its docstring or its parameters name."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from collector import CONTINUOUS, Collector, commit, commit_file, failure

from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, TableNotFoundError
from single_rows import appended
from spark_session import setting, with_jvm

CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


def test_a_log_without_commits(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceSuite: "no schema should throw an exception"."""
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(TableNotFoundError) as raised:
        collector.frame(tmp_path / "t")
    error: Any = raised.value
    assert error.getCondition() == "DELTA_SCHEMA_NOT_SET"


@pytest.mark.parametrize("schema", ["a INT, b STRING", "id BIGINT", "id BIGINT, p BIGINT, age INT"])
def test_a_reader_cannot_set_another_schema(session: Any, tmp_path: Path, schema: str) -> None:
    """DeltaSourceSuite: "disallow user specified schema", "createSource should create source with empty or
    matching table schema provided"."""
    appended(tmp_path / "t", 1)
    with pytest.raises(InvalidArgumentError) as raised:
        session.readStream.schema(schema).format("delta").load(str(tmp_path / "t"))
    error: Any = raised.value
    assert error.getCondition() == "DELTA_READ_SOURCE_SCHEMA_CONFLICT"


def test_columns_that_were_added_before_the_start(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "allow to change schema before starting a streaming query"."""
    table = f"delta.`{tmp_path / 't'}`"
    for statement in (
        f"CREATE TABLE {table} (id STRING) USING delta",
        f"INSERT INTO {table} VALUES ('0')",
        f"ALTER TABLE {table} ADD COLUMN value STRING",
        f"INSERT INTO {table} VALUES ('1', '1')",
    ):
        session.sql(statement)
    assert Collector(session, tmp_path, "id", "value").run(tmp_path / "t") == [[("0", None), ("1", "1")]]


UNSAFE = "spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled"
TRACKED = "spark.databricks.delta.typeWidening.enableStreamingSchemaTracking"
NAMED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
NOT_ADDITIVE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


@pytest.mark.parametrize(
    ("properties", "changes", "switch", "condition"),
    [
        pytest.param(
            "",
            "REPLACE COLUMNS (id INT, value STRING, more STRING)",
            None,
            CHANGED,
            id="disallow to change schema after starting a streaming query",
        ),
        pytest.param(
            NAMED,
            "DROP COLUMN value",
            None,
            NOT_ADDITIVE,
            id="drop column: should fail with non-additive schema change error",
        ),
        pytest.param(
            NAMED,
            "RENAME COLUMN value TO renamed_value",
            None,
            NOT_ADDITIVE,
            id="rename column: should fail with non-additive schema change error",
        ),
        pytest.param(
            NAMED,
            "RENAME COLUMN value TO renamed_value",
            UNSAFE,
            CHANGED,
            id="rename column: should throw schema change error with unsafe flag enabled",
        ),
        pytest.param(
            "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            "ALTER COLUMN id TYPE BIGINT",
            TRACKED,
            NOT_ADDITIVE,
            id="type widening: should fail with non-additive schema change error when enable schema tracking",
        ),
    ],
)
def test_a_change_of_columns_ends_a_running_query(
    session: Any, tmp_path: Path, properties: str, changes: str, switch: str | None, condition: str
) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} (id INT, value STRING) USING delta {properties}")
    session.sql(f"INSERT INTO {table} VALUES (0, 'a')")
    collector = Collector(session, tmp_path, "id", "value")
    switched_on = nullcontext() if switch is None else setting(session, switch, "true")
    with switched_on, collector.running(collector.frame(tmp_path / "t")) as more:
        assert more() == [[(0, "a")]]
        session.sql(f"ALTER TABLE {table} {changes}")
        assert failure(more).getCondition() == condition


def test_a_dropped_column_is_null_if_a_setting_allows_it(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "drop column: should succeed with unsafe column mapping schema change flag
    enabled"."""
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} (id INT, value STRING) USING delta {NAMED}")
    session.sql(f"INSERT INTO {table} VALUES (0, 'a')")
    collector = Collector(session, tmp_path, "id", "value")
    with setting(session, UNSAFE, "true"), collector.running(collector.frame(tmp_path / "t")) as more:
        assert more() == [[(0, "a")]]
        session.sql(f"ALTER TABLE {table} DROP COLUMN value")
        session.sql(f"INSERT INTO {table} VALUES (1)")
        assert more() == [[(1, None)]]


@pytest.mark.parametrize(
    ("definition", "changes", "values", "is_stale", "expected"),
    [
        pytest.param(
            "id INT",
            "ADD COLUMN newcol STRING",
            "(10, 'a')",
            False,
            [{"id": 0, "newcol": None}, {"id": 10, "newcol": "a"}],
            id="add column: restarting with new DataFrame should recover",
        ),
        pytest.param(
            "id INT",
            "ADD COLUMN newcol STRING",
            "(10, 'a')",
            True,
            None,
            id="add column: restarting with stale DataFrame should fail",
        ),
        *(
            pytest.param(
                "id INT NOT NULL",
                "ALTER COLUMN id DROP NOT NULL",
                "(NULL)",
                is_stale,
                [{"id": 0}, {"id": None}],
                id=f"relax nullability: restarting with {name} DataFrame should recover",
            )
            for is_stale, name in ((False, "new"), (True, "stale"))
        ),
        *(
            pytest.param(
                "id INT",
                "ALTER COLUMN id TYPE BIGINT",
                "(2147483648)",
                is_stale,
                [{"id": 0}, {"id": 2147483648}],
                id=f"type widening: restarting with {name} DataFrame should recover",
            )
            for is_stale, name in ((False, "new"), (True, "stale"))
        ),
    ],
)
def test_a_query_is_started_again_after_a_change_of_columns(
    session: Any,
    tmp_path: Path,
    definition: str,
    changes: str,
    values: str,
    is_stale: bool,
    expected: list[dict[str, Any]] | None,
) -> None:
    """The sink takes new columns and wider types by mergeSchema."""
    path, table = tmp_path / "t", f"delta.`{tmp_path / 't'}`"
    widening = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    session.sql(f"CREATE TABLE {table} ({definition}) USING delta {widening}")
    session.sql(f"CREATE TABLE delta.`{tmp_path / 'copy'}` (id INT) USING delta {widening}")
    session.sql(f"INSERT INTO {table} VALUES (0)")
    frame = session.readStream.format("delta").load(str(path))

    def started(frame: Any) -> Any:
        writer = frame.writeStream.format("delta").options(
            mergeSchema=True, checkpointLocation=str(tmp_path / "checkpoint")
        )
        return writer.trigger(**CONTINUOUS).start(str(tmp_path / "copy"))

    query = started(frame)
    query.processAllAvailable()
    session.sql(f"ALTER TABLE {table} {changes}")
    session.sql(f"INSERT INTO {table} VALUES {values}")
    assert failure(query.processAllAvailable).getCondition() == CHANGED
    query = started(frame if is_stale else session.readStream.format("delta").load(str(path)))
    if expected is None:
        error = failure(query.processAllAvailable)
        assert error.getCondition() == "DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART"
        return
    query.processAllAvailable()
    query.stop()
    written = DeltaTable(tmp_path / "copy").scan().to_arrow().to_pylist()
    assert sorted(written, key=lambda row: (row["id"] is None, row["id"])) == expected


@pytest.mark.usefixtures("catalog_of_the_test_alone")
def test_a_column_takes_null_from_a_version_on(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "handling nullability schema changes"."""
    path, collector = tmp_path / "t", Collector(session, tmp_path, "a", "b")
    session.sql(f"CREATE TABLE srcTable (a STRING NOT NULL, b STRING NOT NULL) USING delta LOCATION '{path}'")
    session.sql("INSERT INTO srcTable VALUES ('a', 'b')")
    with collector.running(session.readStream.table("srcTable")) as more:
        assert more() == [[("a", "b")]]
        session.sql("INSERT INTO srcTable VALUES ('c', 'd')")
        session.sql("ALTER TABLE srcTable ALTER COLUMN a DROP NOT NULL")
        session.sql("INSERT INTO srcTable VALUES ('e', 'f')")
        assert failure(more).getCondition() == CHANGED
    collector.run_frame(session.readStream.table("srcTable"))
    assert [row for batch in collector.batches for row in batch] == [("a", "b"), ("c", "d"), ("e", "f")]

    # The column refuses null again, which is not so for the rows of version 4.
    (actions,) = [
        line for line in map(json.loads, commit_file(path, 3).read_text().splitlines()) if "metaData" in line
    ]
    schema = json.loads(actions["metaData"]["schemaString"])
    schema["fields"][0]["nullable"] = False
    commit(path, {"metaData": {**actions["metaData"], "schemaString": json.dumps(schema)}})
    session.sql("INSERT INTO srcTable VALUES ('g', 'h')")
    late = Collector(session, tmp_path / "late", "a", "b")
    error = failure(lambda: late.run_frame(session.readStream.option("startingVersion", 4).table("srcTable")))
    assert error.getCondition() == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
    assert late.batches == []


MIDDLE = "id BIGINT, part BIGINT, col3 INT"


@pytest.mark.parametrize(
    ("definition", "partitions", "columns"),
    [
        pytest.param(
            MIDDLE,
            "part",
            ("id", "part", "col3"),
            id="streaming read returns correct data from table with partition column in middle",
        ),
        pytest.param(
            MIDDLE,
            "part",
            ("part", "id"),
            id="streaming read with column pruning and partition column in middle",
        ),
        pytest.param(
            "a BIGINT, p1 STRING, b INT, p2 STRING, c DOUBLE",
            "p2, p1",
            ("a", "p1", "b", "p2", "c"),
            id="reading from table with multiple partition columns succeeds during restart",
        ),
    ],
)
def test_partition_columns_are_anywhere(
    session: Any, tmp_path: Path, definition: str, partitions: str, columns: tuple[str, ...]
) -> None:
    """DeltaSourceSuite: "reading from partitioned table succeeds during restart" and those of the
    parameters."""
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} ({definition}) USING delta PARTITIONED BY ({partitions})")
    names = [column.split()[0] for column in definition.split(", ")]
    collector = Collector(session, tmp_path, *columns)
    for number in (1, 2):
        row = [number * 10**place for place in range(len(names))]
        session.sql(f"INSERT INTO {table} VALUES ({', '.join(map(str, row))})")
        frame = collector.frame(tmp_path / "t")
        assert frame.columns == names
        values: list[Any] = [row[names.index(column)] for column in columns]
        wanted = [
            str(value) if column.startswith("p") and column != "part" else value
            for column, value in zip(columns, values, strict=True)
        ]
        assert collector.run_frame(frame) == [[tuple(wanted)]]


def test_a_partition_column_in_the_middle_and_ids_of_columns(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "streaming read with column mapping id and partition column in middle"."""
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(
        f"CREATE TABLE {table} ({MIDDLE}) USING delta PARTITIONED BY (part)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'id')"
    )
    session.sql(f"INSERT INTO {table} VALUES (1, 10, 100), (2, 20, 200)")
    collector = Collector(session, tmp_path, "id", "part", "col3")
    assert collector.frame(tmp_path / "t").columns == ["id", "part", "col3"]
    assert collector.run(tmp_path / "t") == [[(1, 10, 100), (2, 20, 200)]]


def test_columns_that_were_renamed_before_the_start(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "streaming read after column rename with partition column in middle"."""
    table = f"delta.`{tmp_path / 't'}`"
    for statement in (
        f"CREATE TABLE {table} (id BIGINT, part BIGINT, original_col INT) USING delta PARTITIONED BY (part)"
        f" {NAMED}",
        f"INSERT INTO {table} VALUES (1, 10, 100)",
        f"ALTER TABLE {table} RENAME COLUMN original_col TO renamed_col",
        f"INSERT INTO {table} VALUES (2, 20, 200)",
        f"ALTER TABLE {table} RENAME COLUMN part TO renamed_part",
        f"INSERT INTO {table} VALUES (3, 30, 300)",
    ):
        session.sql(statement)
    collector = Collector(session, tmp_path, "id", "renamed_part", "renamed_col")
    assert collector.frame(tmp_path / "t").columns == ["id", "renamed_part", "renamed_col"]
    assert collector.run(tmp_path / "t") == [[(1, 10, 100), (2, 20, 200), (3, 30, 300)]]


def test_percent_signs_of_partition_values(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "streaming read preserves percent-literal string partition value"."""
    table = f"delta.`{tmp_path / 't'}`"
    session.sql(f"CREATE TABLE {table} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    session.sql(f"INSERT INTO {table} VALUES (1, '%20'), (2, '%25'), (3, 'a%2Fb')")
    found = Collector(session, tmp_path, "id", "p").run(tmp_path / "t")
    assert found == [[(1, "%20"), (2, "%25"), (3, "a%2Fb")]]


def test_a_column_without_a_type_stays(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSuite: "streaming delta source should not drop null columns"."""
    nothing = session.sql("SELECT CAST(NULL AS VOID) AS nothing, id FROM range(2)")
    nothing.write.format("delta").save(str(tmp_path / "t"))
    collector = Collector(session, tmp_path, "nothing", "id")
    assert collector.frame(tmp_path / "t").columns == ["nothing", "id"]
    assert collector.run(tmp_path / "t") == [[(None, 0), (None, 1)]]
