"""The behaviour of tables as sinks of structured streams that delta-spark's suites test: DeltaSinkSuite,
DeltaSinkColumnMappingSuite and DeltaSinkImplicitCastSuite. A docstring names the tests of the suite."""

from __future__ import annotations

import json
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from deltaic import DeltaTable
from spark_session import setting, with_jvm

MERGES = "spark.databricks.delta.schema.autoMerge.enabled"
CASTS = "spark.databricks.delta.streaming.sink.allowImplicitCasts"
MAPPED = {"delta.columnMapping.mode": "name"}


class Sink:
    """A table that streams write, and a folder of JSON lines that they read. `columns`: names and types of
    the lines."""

    def __init__(self, session: Any, place: Path, columns: str = "value long") -> None:
        self.session, self.place, self.columns = session, place, columns
        self.path = str(place / "t")
        self.files = 0

    def add(self, *rows: Any) -> None:
        """Adds a file with these rows; a row of one column is its value."""
        names = [column.split()[0] for column in self.columns.split(", ")]
        lines = [dict(zip(names, row if isinstance(row, tuple) else (row,), strict=True)) for row in rows]
        (self.place / "in").mkdir(exist_ok=True)
        self.files += 1
        text = "\n".join(json.dumps(line, default=str) for line in lines)
        (self.place / "in" / f"{self.files:04}.json").write_text(text)

    def source(self, *expressions: str) -> Any:
        (self.place / "in").mkdir(exist_ok=True)
        frame = self.session.readStream.schema(self.columns).json(str(self.place / "in"))
        return frame.selectExpr(*(expressions or ("*",)))

    def start(self, frame: Any, trigger: dict[str, Any] | None = None, **how: Any) -> Any:
        """Starts a query. `how`: arguments of `start`, or options."""
        writer = frame.writeStream.format("delta")
        writer = writer.option("checkpointLocation", str(self.place / "checkpoint"))
        return writer.trigger(**(trigger or {"availableNow": True})).start(self.path, **how)

    def run(self, frame: Any, **how: Any) -> Any:
        query = self.start(frame, **how)
        assert query.awaitTermination(60)
        return query

    def write(self, *rows: Any, select: tuple[str, ...] = (), **how: Any) -> Any:
        """Adds rows and runs a query that writes these expressions of them."""
        self.add(*rows)
        return self.run(self.source(*select), **how)

    @property
    def frame(self) -> Any:
        return self.session.read.format("delta").load(self.path)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return in_order(tuple(row) for row in self.frame.collect())

    @property
    def types(self) -> dict[str, str]:
        return dict(self.frame.dtypes)

    @property
    def operations(self) -> list[str]:
        return [entry["operation"] for entry in reversed(DeltaTable(self.path).history())]


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


@pytest.fixture
def sink(session: Any, tmp_path: Path) -> Sink:
    return Sink(session, tmp_path)


def refused(sink: Sink, *rows: Any, select: tuple[str, ...] = (), **how: Any) -> str:
    """Returns the text of the error that ends a query."""
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException) as raised:
        sink.write(*rows, select=select, **how)
    return str(raised.value)


@pytest.mark.parametrize(
    ("rule", "select", "message"),
    [
        (None, ("value", "1 AS more"), "[DELTA_METADATA_MISMATCH] "),
        (None, ("array(value) AS value",), "[DELTA_FAILED_TO_MERGE_FIELDS] "),
        (None, ("value", "value"), "[DELTA_DUPLICATE_COLUMNS_FOUND.DATA] "),
        ("NOT NULL", ("nullif(value, 1) AS value",), "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] "),
        ("CHECK (value < 1)", (), "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] "),
        (None, ("value div (value - 1) AS value",), "[DIVIDE_BY_ZERO] "),
        (None, ("CAST(raise_error('no') AS BIGINT) AS value",), "[USER_RAISED_EXCEPTION] "),
    ],
)
def test_an_error_of_a_sink_ends_a_query_as_a_failed_stream(
    sink: Sink, rule: str | None, select: tuple[str, ...], message: str
) -> None:
    """As in delta-spark, the message of STREAM_FAILED is the error's text."""
    from pyspark.errors import StreamingQueryException

    rows = f"delta.`{sink.path}`"
    sink.session.sql(f"CREATE TABLE {rows} (value BIGINT {rule if rule == 'NOT NULL' else ''}) USING delta")
    if rule is not None and rule != "NOT NULL":
        sink.session.sql(f"ALTER TABLE {rows} ADD CONSTRAINT low {rule}")
    sink.write(0)
    with pytest.raises(StreamingQueryException) as raised:
        sink.write(1, select=select)
    assert (raised.value.getCondition(), raised.value.getSqlState()) == ("STREAM_FAILED", "XXKST")
    parameters = raised.value.getMessageParameters()
    assert parameters.keys() == {"id", "runId", "message"}
    assert parameters["message"].startswith(message)
    assert "Traceback" not in str(raised.value)
    assert sink.rows == [(0,)]


def test_a_stopped_query_has_no_exception(sink: Sink) -> None:
    """The jobs of a batch are cancelled with the query, whose thread runs them."""
    sink.add(1)
    slow = "value + int(reflect('java.lang.Thread', 'sleep', value * 60000) IS NULL) AS value"
    query = sink.start(sink.source(slow), {"processingTime": "0 seconds"})
    while not query.status["isTriggerActive"] or not sink.session._jsc.sc().statusTracker().getActiveJobIds():
        time.sleep(0.05)
    query.stop()
    assert query.exception() is None
    assert not sink.session._jsc.sc().statusTracker().getActiveJobIds()


@pytest.mark.parametrize(
    ("mode", "mapping"), [("append", "none"), ("complete", "none"), ("append", "name"), ("complete", "id")]
)
def test_each_batch_is_a_commit(sink: Sink, mode: str, mapping: str) -> None:
    """DeltaSinkSuite: "append mode", "complete mode"; also of DeltaSinkIdColumnMappingSuite and
    DeltaSinkNameColumnMappingSuite."""
    counted = sink.source().groupBy().count()
    with setting(sink.session, "spark.databricks.delta.properties.defaults.columnMapping.mode", mapping):
        query = sink.start(
            sink.source() if mode == "append" else counted, {"processingTime": "0 seconds"}, outputMode=mode
        )
        try:
            for number in (1, 2, 3):
                sink.add(number)
                query.processAllAvailable()
                expected = [(each,) for each in range(1, number + 1)] if mode == "append" else [(number,)]
                assert sink.rows == expected
                assert DeltaTable(sink.path).transaction_version(query.id) == number - 1
        finally:
            query.stop()
    table = DeltaTable(sink.path)
    assert table.metadata.configuration.get("delta.columnMapping.mode", "none") == mapping
    assert [entry["operationParameters"] for entry in table.history()] == [
        {"outputMode": mode.capitalize(), "queryId": query.id, "epochId": str(number)} for number in (2, 1, 0)
    ]


def test_update_mode_is_refused(sink: Sink) -> None:
    """DeltaSinkSuite: "update mode: not supported"."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as raised:
        sink.start(sink.source(), outputMode="update")
    assert raised.value.getCondition() == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    assert raised.value.getMessageParameters() == {
        "dataSource": "org.apache.spark.sql.delta.sources.DeltaDataSource",
        "mode": "Update",
    }


def test_a_partition_column_that_the_stream_lacks(sink: Sink) -> None:
    """Spark refuses it when the query starts, before the sink exists."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as raised:
        sink.start(sink.source(), partitionBy="nope")
    assert (raised.value.getCondition(), raised.value.getSqlState()) == ("_LEGACY_ERROR_TEMP_1196", None)
    assert raised.value.getMessageParameters() == {
        "columnType": "Partition",
        "columnName": "nope",
        "validColumnNames": "value",
    }


def test_a_sink_needs_a_path(sink: Sink) -> None:
    """DeltaSinkSuite: "path not specified"."""
    from pyspark.errors import IllegalArgumentException

    writer = sink.source().writeStream.format("delta")
    with pytest.raises(IllegalArgumentException, match="has exactly one path"):
        writer.option("checkpointLocation", str(sink.place / "checkpoint")).start()
    assert not (sink.place / "checkpoint").exists()


def test_values_of_partitions_are_encoded_in_paths(session: Any, tmp_path: Path) -> None:
    """DeltaSinkSuite: "SPARK-21167: encode and decode path correctly"."""
    sink = Sink(session, tmp_path, "value string")
    sink.write("hello world", select=("value", "length(value) AS len"), partitionBy="value")
    assert sink.rows == [("hello world", 11)]
    (file,) = DeltaTable(sink.path).files()
    assert Path(file["location"]).parent.name == "value=hello world"


def test_partitions_are_written_and_pruned(sink: Sink) -> None:
    """DeltaSinkSuite: "partitioned writing and batch reading"."""
    sink.write(1, 2, 3, select=("int(value) AS id", "int(value * 1000) AS value"), partitionBy="id")
    assert (sink.types, sink.rows) == ({"id": "int", "value": "int"}, [(1, 1000), (2, 2000), (3, 3000)])
    table = DeltaTable(sink.path)
    assert list(table.metadata.partition_columns) == ["id"]
    for where, values in ((None, [1, 2, 3]), ("id = 1", [1]), ("id in (1, 2)", [1, 2])):
        files = table.files(where).to_arrow().to_pylist()
        assert sorted(dict(file["partition_values"])["id"] for file in files) == values
        read = sink.frame.where(where or "true")
        assert sorted(map(tuple, read.collect())) == [(each, 1000 * each) for each in values]


def test_windows_with_a_watermark(sink: Sink) -> None:
    """DeltaSinkSuite: "work with aggregation + watermark"."""
    times = sink.source("CAST(value AS timestamp) AS time").withWatermark("time", "10 seconds")
    from pyspark.sql.functions import window

    counted = times.groupBy(window("time", "5 seconds")).count()
    query = sink.start(counted.select("window.start", "window.end", "count"), {"processingTime": "0 seconds"})
    try:
        for seconds in ([100], [104, 123], [140]):
            sink.add(*seconds)
            query.processAllAvailable()
    finally:
        query.stop()
    found = sink.frame.selectExpr("CAST(start AS long)", "CAST(end AS long)", "count").collect()
    assert sorted(map(tuple, found)) == [(100, 105, 2), (120, 125, 1)]


def test_a_batch_write_with_other_partitions(sink: Sink) -> None:
    """DeltaSinkSuite: "throw exception when users are trying to write in batch with different partitioning",
    "incompatible schema merging throws errors - first streaming then batch"."""
    from pyspark.errors import AnalysisException

    sink.write(1, 2, 3, select=("int(value) AS id", "int(value * 1000) AS value"), partitionBy="id")
    rows = sink.session.range(100)
    for frame, columns, condition in (
        (
            rows.selectExpr("int(id)", "id % 4 AS by4", "int(id) * 1000 AS value"),
            ["id", "by4"],
            "DELTA_METADATA_MISMATCH",
        ),
        (rows.selectExpr("id", "string(id * 3) AS value"), ["id"], "DELTA_FAILED_TO_MERGE_FIELDS"),
    ):
        with pytest.raises(AnalysisException) as raised:
            frame.write.partitionBy(*columns).format("delta").mode("append").save(sink.path)
        assert raised.value.getCondition() == condition
    assert DeltaTable(sink.path).version == 0


def test_not_all_columns_may_be_partition_columns(sink: Sink) -> None:
    """DeltaSinkSuite: "can't write out with all columns being partition columns"."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as raised:
        sink.write(1, select=("value AS id", "value * 1000 AS value"), partitionBy=["id", "value"])
    assert raised.value.getCondition() == "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"
    assert not Path(sink.path).exists()


def test_blind_appends(sink: Sink) -> None:
    """DeltaSinkSuite: "streaming write correctly sets isBlindAppend in CommitInfo"."""
    sink.write(0)
    sink.add(0)
    sink.run(sink.source().join(sink.frame, "value"))
    history = DeltaTable(sink.path).history()
    assert [entry["isBlindAppend"] for entry in history] == [False, True]
    assert sink.rows == [(0,), (0,)]


def test_columns_of_a_stream_are_nullable(session: Any, tmp_path: Path) -> None:
    """DeltaSinkSuite: "do not trust user nullability, so that parquet files aren't corrupted"."""
    from pyspark.sql.functions import input_file_name

    sink = Sink(session, tmp_path, "s string, b struct<s: string, i: int not null>, c int not null")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"s": "ss", "b": {"s": "ss"}}')
    sink.run(sink.source().withColumn("file", input_file_name()), trigger={"once": True})
    (row,) = sink.frame.drop("file").collect()
    assert row.asDict(recursive=True) == {"s": "ss", "b": {"s": "ss", "i": None}, "c": None}


def test_metadata_of_the_user_is_in_the_history(sink: Sink) -> None:
    """DeltaSinkSuite: "history includes user-defined metadata for DataFrame.writeStream API"."""
    sink.write(1, userMetadata="testMeta!")
    newest = sink.session.sql(f"DESCRIBE HISTORY delta.`{sink.path}` LIMIT 1").first()
    assert (newest.userMetadata, newest.operation) == ("testMeta!", "STREAMING UPDATE")
    metrics = newest.operationMetrics
    assert {name: metrics[name] for name in ("numAddedFiles", "numRemovedFiles", "numOutputRows")} == {
        "numAddedFiles": "1",
        "numRemovedFiles": "0",
        "numOutputRows": "1",
    }
    assert int(metrics["numOutputBytes"]) > 0


@pytest.mark.usefixtures("catalog_of_the_test_alone")
def test_the_table_of_a_sink_is_found_by_name(sink: Sink) -> None:
    """DeltaSinkSuite: "DeltaSink.catalogTable is correctly populated - catalog-based table"."""
    sink.add(1, 2, 3)
    writer = sink.source().writeStream.format("delta").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(sink.place / "checkpoint")).toTable("sink_by_name")
    assert query.awaitTermination(60)
    assert sorted(row.value for row in sink.session.table("sink_by_name").collect()) == [1, 2, 3]


@pytest.mark.parametrize("merges", ["true", "false"])
@pytest.mark.parametrize("change", ["rename", "drop"])
def test_the_sink_after_a_change_of_its_columns(
    session: Any, tmp_path: Path, change: str, merges: str
) -> None:
    """DeltaSinkColumnMappingSuite: "allow schema evolution after renaming column", "allow schema evolution
    after dropping column"."""
    sink = Sink(session, tmp_path, "id int, value int")
    table = DeltaTable.create(sink.path, "id int, value int", properties=MAPPED)
    with setting(session, MERGES, merges):
        query = sink.start(sink.source(), {"processingTime": "0 seconds"})
        try:
            sink.add((1, 100))
            query.processAllAvailable()
            assert sink.rows == [(1, 100)]
            table.refresh()
            assert table.transaction_version(query.id) == 0
            if change == "rename":
                table.alter.rename_column("value", "renamed")
            else:
                table.alter.drop_columns("value")
            sink.add((2, 200))
            if merges == "true":
                query.processAllAvailable()
            else:
                with pytest.raises(Exception, match="DELTA_METADATA_MISMATCH"):
                    query.processAllAvailable()
        finally:
            query.stop()
        if merges == "true":
            expected = {
                "rename": ({"id": "int", "renamed": "int", "value": "int"}, [(1, 100, None), (2, None, 200)]),
                "drop": ({"id": "int", "value": "int"}, [(1, None), (2, 200)]),
            }
            assert (sink.types, sink.rows) == expected[change]
            return
        assert "DELTA_METADATA_MISMATCH" in refused(sink, (3, 300))
        select = ("id", "value AS renamed") if change == "rename" else ("id",)
        sink.write((4, 400), select=select)
        # The batch that failed is written again with its rows, and the rest comes in the next one.
        ids = [1, 2, 3, 4]
        assert sink.rows == [(each, 100 * each) if change == "rename" else (each,) for each in ids]
        assert list(sink.types) == (["id", "renamed"] if change == "rename" else ["id"])


@pytest.mark.parametrize(
    ("values", "before", "after", "type", "expected"),
    [
        pytest.param((17, 23), "INT", "LONG", "int", (17, 23), id="write wider type - long -> int"),
        pytest.param(
            (1234.56, 98.7654),
            "DECIMAL(6, 2)",
            "DECIMAL(10, 4)",
            "decimal(6,2)",
            (Decimal("1234.56"), Decimal("98.77")),
            id="write wider type - Decimal(10, 4) -> Decimal(6, 2)",
        ),
        pytest.param(
            (-(2**63), 23), "LONG", "INT", "bigint", (-(2**63), 23), id="write narrower type - int -> long"
        ),
        pytest.param(
            ("abc", "2024-07-25"),
            "STRING",
            "DATE",
            "string",
            ("abc", "2024-07-25"),
            id="write different type - date -> string",
        ),
    ],
)
def test_values_are_cast(
    session: Any, tmp_path: Path, values: Any, before: str, after: str, type: str, expected: Any
) -> None:
    """DeltaSinkImplicitCastSuite: the ids of the parameters; "handling type mismatch in addBatch"."""
    sink = Sink(session, tmp_path, "value string")
    sink.write(values[0], select=(f"CAST(value AS {before})",))
    assert (sink.types, sink.rows) == ({"value": type}, [(expected[0],)])
    sink.write(values[1], select=(f"CAST(value AS {after})",))
    assert (sink.types, sink.rows) == ({"value": type}, in_order((each,) for each in expected))
    assert sink.operations == ["STREAMING UPDATE", "STREAMING UPDATE"]


@pytest.mark.parametrize("policy", ["STRICT", "ANSI", "LEGACY"])
def test_values_that_do_not_fit(sink: Sink, policy: str) -> None:
    """DeltaSinkImplicitCastSuite: "write wider type - long -> int - overflow with storeAssignmentPolicy=" and
    the policy."""
    sink.write(17, select=("CAST(value AS INT)",))
    with setting(sink.session, "spark.sql.storeAssignmentPolicy", policy):
        if policy == "LEGACY":
            sink.write(2**63 - 1)
            assert sink.rows == [(-1,), (17,)]
            return
        text = refused(sink, 2**63 - 1)
    condition = {"STRICT": "CANNOT_UP_CAST_DATATYPE", "ANSI": "CAST_OVERFLOW_IN_TABLE_INSERT"}
    assert f"[{condition[policy]}]" in text
    assert sink.rows == [(17,)]


@pytest.mark.parametrize(
    ("first", "second", "type", "expected"),
    [
        (
            "named_struct('a', int(value)) AS c",
            "named_struct('a', value) AS c",
            "struct<a:int>",
            [{"a": -12}, {"a": 17}],
        ),
        (
            "map(int(value), int(value + 40)) AS c",
            "map(value, string(value + 15)) AS c",
            "map<int,int>",
            [{-12: 3}, {17: 57}],
        ),
        (
            "array(int(value), int(value + 40)) AS c",
            "array(value, value + 15) AS c",
            "array<int>",
            [[-12, 3], [17, 57]],
        ),
    ],
)
def test_nested_values_are_cast(sink: Sink, first: str, second: str, type: str, expected: list[Any]) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast in nested struct/array/map"."""
    sink.write(17, select=(first,))
    sink.write(-12, select=(second,))
    assert sink.types == {"c": type}
    found = [row.asDict(recursive=True)["c"] for row in sink.frame.collect()]
    assert sorted(found, key=repr) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("named_struct('a', value) AS s", "array(value) AS s"),
        ("int(value) AS s", "date '2024-07-25' AS s"),
        ("array(value) AS s", "array(named_struct('a', value)) AS s"),
    ],
)
def test_types_that_no_cast_converts(sink: Sink, first: str, second: str) -> None:
    """DeltaSinkImplicitCastSuite: "write invalid nested type - array -> struct"; other types have the same
    condition."""
    sink.write(17, select=(first,))
    assert "[DELTA_FAILED_TO_MERGE_FIELDS]" in refused(sink, -12, select=(second,))
    assert sink.operations == ["STREAMING UPDATE"]


def test_values_of_partitions_are_cast(session: Any, tmp_path: Path) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast on partition value"."""
    sink = Sink(session, tmp_path, "a string, b int")
    session.sql(f"CREATE TABLE delta.`{sink.path}` (day date, value int) USING delta PARTITIONED BY (day)")
    sink.write(("2024-07-26", 1), select=("CAST(a AS DATE) AS day", "b AS value"))
    sink.write(("2024-07-27", 2), select=("CAST(a AS TIMESTAMP) AS day", "CAST(b AS DECIMAL(4, 1)) AS value"))
    assert sink.types == {"day": "date", "value": "int"}
    assert sink.rows == [(date(2024, 7, 26), 1), (date(2024, 7, 27), 2)]


def test_casts_with_a_new_column(session: Any, tmp_path: Path) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast with schema evolution"."""
    sink = Sink(session, tmp_path, "a long, b string")
    sink.write((123, "unused"), select=("CAST(a AS DECIMAL(6, 3)) AS a",))
    with setting(session, MERGES, "true"):
        sink.write((678, "abc"))
    assert sink.types == {"a": "decimal(6,3)", "b": "string"}
    assert sink.rows == [(Decimal("123.000"), None), (Decimal("678.000"), "abc")]


def test_the_schema_is_overwritten(sink: Sink) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast with schema overwrite"."""

    def write(number: int, *columns: str) -> None:
        sink.add(number)
        counted = sink.source("CAST(value AS DECIMAL(6, 3)) AS a").groupBy("a").count()
        frame = counted.selectExpr("a", "count", *columns)
        sink.run(frame, outputMode="complete", overwriteSchema=True)

    write(10, "int(count) AS b", "'11' AS c")
    assert sink.types == {"a": "decimal(6,3)", "count": "bigint", "b": "int", "c": "string"}
    assert sink.rows == [(Decimal("10.000"), 1, 1, "11")]
    write(20, "count AS b", "'21' AS d")
    assert sink.types == {"a": "decimal(6,3)", "count": "bigint", "b": "bigint", "d": "string"}
    assert sink.rows == [(Decimal("10.000"), 1, 1, "21"), (Decimal("20.000"), 1, 1, "21")]


@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_names_of_columns_by_case(sink: Sink, sensitive: str) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast with case sensitivity, caseSensitive=" and the value."""
    sink.write(17)
    with setting(sink.session, "spark.sql.caseSensitive", sensitive):
        sink.write(23, select=("CAST(value AS INT) AS VALUE",))
    assert (sink.types, sink.rows) == ({"value": "bigint"}, [(17,), (23,)])


@pytest.mark.parametrize("casts", ["true", "false"])
def test_new_columns_by_case(session: Any, tmp_path: Path, casts: str) -> None:
    """DeltaSinkImplicitCastSuite: "schema evolution with case sensitivity and without type mismatch,
    allowImplicitCasts=" and the value."""
    sink = Sink(session, tmp_path, "x long, y long")
    with (
        setting(session, CASTS, casts),
        setting(session, MERGES, "true"),
        setting(session, "spark.sql.caseSensitive", "true"),
    ):
        sink.write((17, -1), select=("int(x) AS a",))
        sink.write((21, 22), select=("int(x) AS A", "y AS b"))
    assert (sink.types, sink.rows) == ({"a": "int", "b": "bigint"}, [(17, None), (21, 22)])


def test_casts_with_a_column_that_is_missing(session: Any, tmp_path: Path) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast and missing column"."""
    sink = Sink(session, tmp_path, "a string, b string")
    sink.write(("2024-07-28 12:00:00", "abc"), select=("CAST(a AS TIMESTAMP) AS a", "b"))
    sink.write(("2024-07-29", "unused"), select=("CAST(a AS DATE) AS a",))
    assert sink.types == {"a": "timestamp", "b": "string"}
    assert sink.rows == [(datetime(2024, 7, 28, 12), "abc"), (datetime(2024, 7, 29), None)]
    assert sink.operations == ["STREAMING UPDATE", "STREAMING UPDATE"]


def test_casts_after_columns_were_renamed_and_dropped(session: Any, tmp_path: Path) -> None:
    """DeltaSinkImplicitCastSuite: "implicit cast after renaming/dropping columns with column mapping"."""
    sink = Sink(session, tmp_path, "a int, b long")
    sink.write((1, 100))
    target = f"ALTER TABLE delta.`{sink.path}`"
    session.sql(f"{target} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    session.sql(f"{target} DROP COLUMN a")
    session.sql(f"{target} RENAME COLUMN b TO a")
    sink.write((17, -1), select=("CAST(a AS STRING) AS a",))
    assert (sink.types, sink.rows) == ({"a": "bigint"}, [(100,), (17,)])
    assert sink.operations == [
        "STREAMING UPDATE",
        "SET TBLPROPERTIES",
        "DROP COLUMNS",
        "RENAME COLUMN",
        "STREAMING UPDATE",
    ]
