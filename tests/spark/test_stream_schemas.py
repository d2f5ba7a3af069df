"""Streams that continue while columns of their table are renamed, dropped and widened
(`schemaTrackingLocation`). Rules: delta-spark's DeltaSourceSchemaEvolutionSuite and its documentation of
streaming reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable, _core
from deltaic.errors import InvalidArgumentError, ProtocolError, SchemaMismatchError
from deltaic.log.schema_log import DROP, RENAME, SETTINGS, TYPE, SchemaLog, TrackedSchema, non_additive
from deltaic.log.stream import TableStream
from deltaic.log.stream_offset import StreamOffset
from deltaic.log.stream_options import StreamOptions
from deltaic.protocol.schema import Schema
from spark_session import setting, with_jvm

PROPERTIES = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
ALL = dict.fromkeys((RENAME, DROP, TYPE), "always")


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


@pytest.fixture(params=["native", "public"])
def either(request: pytest.FixtureRequest, session: Any) -> Any:
    """A session that reads by Spark's driver interfaces, and one that reads by the Python data source."""
    if request.param == "native":
        return session
    if session.version.startswith("4.1."):
        pytest.skip("a Python data source of Spark 4.1 keeps no log: test_the_python_source_of_spark_4_1")
    return public_of(session)


def public_of(session: Any) -> Any:
    public = session.newSession()
    deltaic.spark.enable(public, native="never")
    return public


class Follower:
    """A stream of the table `t` that keeps its rows, and its log of schemas below its checkpoint."""

    def __init__(self, session: Any, place: Path) -> None:
        self.session, self.place = session, place
        self.rows: list[dict[str, Any]] = []
        self.checkpoint = place / "checkpoint"
        self.table = deltaic.write(
            place / "t", pa.table({"id": pa.array([0], pa.int32()), "a": ["x"]}), properties=PROPERTIES
        )

    def run(self, **options: Any) -> list[dict[str, Any]]:
        """Returns the rows of this run."""

        def collect(batch: Any, number: int) -> None:
            self.rows += [row.asDict() for row in batch.collect()]

        before = len(self.rows)
        options = {"schemaTrackingLocation": str(self.checkpoint), **options}
        chosen = {name: value for name, value in options.items() if value is not None}
        frame = self.session.readStream.format("delta").options(**chosen).load(str(self.place / "t"))
        writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(60)
        return self.rows[before:]

    def ends(self, condition: str, **options: Any) -> list[dict[str, Any]]:
        """Returns the rows of a run that ends with a condition."""
        from pyspark.errors import StreamingQueryException

        before = len(self.rows)
        with pytest.raises(StreamingQueryException, match=condition):
            self.run(**options)
        return self.rows[before:]

    def add(self, **values: Any) -> None:
        schema = pa.schema(DeltaTable(self.place / "t").schema)
        deltaic.write(
            self.place / "t",
            pa.table({name: [value] for name, value in values.items()}).cast(schema),
            mode="append",
        )

    def alter(self) -> Any:
        return DeltaTable(self.place / "t").alter

    @property
    def entries(self) -> list[Path]:
        return sorted((self.checkpoint / f"_schema_log_{self.table.metadata.id}").glob("[0-9]*"))


def test_columns_are_renamed_dropped_and_widened(either: Any, tmp_path: Path) -> None:
    follower = Follower(either, tmp_path)
    assert follower.run() == [{"id": 0, "a": "x"}]
    assert len(follower.entries) == 1
    follower.add(id=1, a="y")
    follower.alter().rename_column("a", "b")
    follower.add(id=2, b="z")
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION") == [{"id": 1, "a": "y"}]
    assert len(follower.entries) == 2
    assert (
        follower.ends("DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION", **{DROP: "always"})
        == []
    )
    assert follower.run(**{RENAME: "always"}) == [{"id": 2, "b": "z"}]

    follower.alter().drop_columns("b")
    follower.add(id=3)
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION", **ALL) == []
    assert follower.run(**ALL) == [{"id": 3}]
    follower.alter().change_column("id", type="long")
    follower.add(id=2**40)
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION", **ALL) == []
    either.conf.set(f"{SETTINGS}{TYPE}", "always")
    try:
        assert follower.run() == [{"id": 2**40}]
    finally:
        either.conf.unset(f"{SETTINGS}{TYPE}")
    assert len(follower.entries) == 4
    assert follower.run(**ALL) == []
    assert sorted(row["id"] for row in follower.rows) == [0, 1, 2, 3, 2**40]


def test_new_columns_need_no_leave(either: Any, tmp_path: Path) -> None:
    follower = Follower(either, tmp_path)
    follower.run()
    follower.alter().add_columns("c int")
    follower.add(id=1, a="y", c=5)
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION") == []
    assert follower.run() == [{"id": 1, "a": "y", "c": 5}]


def test_changes_without_rows_between_them_end_a_query_once(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSchemaEvolutionSuite: "consecutive schema evolutions"."""
    follower = Follower(session, tmp_path)
    follower.run()
    follower.alter().rename_column("a", "b")
    follower.alter().rename_column("b", "c")
    follower.alter().set_properties({"delta.appendOnly": "true"})
    follower.alter().add_columns("d int")
    follower.add(id=1, c="y", d=5)
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION") == []
    assert follower.ends("DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION") == []
    assert follower.run(**{RENAME: "4"}) == [{"id": 1, "c": "y", "d": 5}]
    newest = json.loads(follower.entries[-1].read_text().split("\n")[1])
    assert (len(follower.entries), newest["deltaCommitVersion"], newest["previousMetadataSeqNum"]) == (
        3,
        4,
        0,
    )


def test_the_python_source_of_spark_4_1(session: Any, tmp_path: Path) -> None:
    """Spark 4.1 passes the start of a batch to such a source only afterwards: a stream would wait for ever at
    a change of the schema."""
    follower = Follower(public_of(session), tmp_path)
    if not session.version.startswith("4.1."):
        assert follower.run() == [{"id": 0, "a": "x"}]
        return
    with pytest.raises(Exception, match=r"cannot keep a schema log on Spark 4\.1"):
        follower.run()
    assert not follower.checkpoint.exists()


def test_a_stream_that_begins_before_a_change(session: Any, tmp_path: Path) -> None:
    """The first entry is the definition where the stream begins, though the table has another one by now."""
    follower = Follower(session, tmp_path)
    follower.add(id=1, a="y")
    follower.alter().rename_column("a", "b")
    follower.add(id=2, b="z")
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION", startingVersion=0, **ALL) == []
    assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION", startingVersion=0, **ALL) == [
        {"id": 0, "a": "x"},
        {"id": 1, "a": "y"},
    ]
    assert follower.run(startingVersion=0, **ALL) == [{"id": 2, "b": "z"}]


def test_a_stream_without_a_log_continues_with_one(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSchemaEvolutionSuite: "detect incompatible schema change while streaming". Spark first
    requests the last batch again."""
    follower = Follower(session, tmp_path)
    assert follower.run(schemaTrackingLocation=None) == [{"id": 0, "a": "x"}]
    follower.alter().rename_column("a", "b")
    follower.add(id=1, b="y")
    condition = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    assert follower.ends(condition, schemaTrackingLocation=None) == []
    for count in (1, 2):
        assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION", **ALL) == []
        assert len(follower.entries) == count
    assert follower.run(**ALL) == [{"id": 1, "b": "y"}]


def test_a_column_that_is_renamed_while_the_query_is_stopped(either: Any, tmp_path: Path) -> None:
    """DeltaSourceColumnMappingSuite: "column mapping + streaming: blocking workflow - rename column". The
    rename is the first commit after the last batch."""
    follower = Follower(either, tmp_path)
    assert follower.run(schemaTrackingLocation=None) == [{"id": 0, "a": "x"}]
    follower.alter().rename_column("a", "b")
    condition = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    assert follower.ends(condition, schemaTrackingLocation=None) == []
    assert follower.ends(condition, schemaTrackingLocation=None) == []


def test_a_batch_of_two_definitions_has_no_log(tmp_path: Path) -> None:
    """DeltaSourceSchemaEvolutionSuite: "detect invalid offset during initialization before initializing
    schema log", "resolve the most encompassing schema during getBatch to initialize schema log"."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [0], "a": ["x"]}), properties=PROPERTIES)
    table.alter.add_columns("c int")
    deltaic.write(tmp_path / "t", pa.table({"id": [1], "a": ["y"], "c": [2]}), mode="append")
    table.alter.rename_column("a", "b")
    identity = table.metadata.id
    store = _core.Store(str(tmp_path / "log"))
    stream = TableStream(DeltaTable(tmp_path / "t")._snapshot, StreamOptions(), SchemaLog(store, identity))
    start = StreamOffset(identity, 0)
    with pytest.raises(SchemaMismatchError, match="LOG_INIT_FAILED_INCOMPATIBLE_METADATA") as raised:
        stream.batch(start, StreamOffset(identity, 4))
    assert raised.value.found == "column a is now b"
    with pytest.raises(SchemaMismatchError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        stream.batch(start, StreamOffset(identity, 3))
    noted = SchemaLog(store, identity).current
    assert noted is not None
    assert (noted.version, noted.schema.names) == (2, ["id", "a", "c"])


def test_entries_are_files_of_delta_spark(session: Any, tmp_path: Path) -> None:
    follower = Follower(session, tmp_path)
    follower.run(streamingSourceTrackingId="one")
    (file,) = (follower.checkpoint / f"_schema_log_{follower.table.metadata.id}_one").glob("[0-9]*")
    head, body = file.read_text().split("\n")
    values = json.loads(body)
    assert (head, file.name) == ("v1", "0")
    assert (values["tableId"], values["deltaCommitVersion"]) == (follower.table.metadata.id, 0)
    assert Schema.from_json(values["dataSchemaJson"]) == follower.table.schema
    assert json.loads(values["partitionSchemaJson"]) == {"type": "struct", "fields": []}
    assert values["tableConfigurations"] == dict(follower.table.metadata.configuration)
    assert json.loads(values["protocolJson"]).keys() == {"protocol"}
    assert values["sourceMetadataPath"] == f"file:{follower.checkpoint}/sources/0"


@pytest.mark.parametrize("sink", ["noop", "delta", "name", "parquet name", "function", "setting"])
def test_a_query_with_a_log_outside_of_its_checkpoint_does_not_start(
    session: Any, tmp_path: Path, sink: str
) -> None:
    """DeltaSourceSchemaEvolutionSuite: "schema location must be placed under checkpoint location"."""
    from pyspark.errors import AnalysisException

    follower = Follower(session, tmp_path)
    outside = str(tmp_path / "checkpoint-of-another")
    reader = session.readStream.format("delta").option("schemaTrackingLocation", outside)
    writer = reader.load(str(tmp_path / "t")).writeStream
    named = writer.option("checkpointLocation", str(follower.checkpoint))
    start = {
        "noop": lambda: named.format("noop").start(),
        "delta": lambda: named.format("delta").start(str(tmp_path / "out")),
        "name": lambda: named.toTable("table_of_a_refused_stream", format="delta"),
        "parquet name": lambda: named.toTable("table_of_a_refused_stream", format="parquet"),
        "function": lambda: named.foreachBatch(lambda batch, number: None).start(),
        "setting": lambda: writer.format("noop").queryName("checkpoint").start(),
    }[sink]
    with (
        setting(session, "spark.sql.streaming.checkpointLocation", str(tmp_path)),
        pytest.raises(AnalysisException) as refused,
    ):
        start()
    assert refused.value.getCondition() == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    assert refused.value.getSqlState() == "22000"
    assert refused.value.getMessageParameters() == {
        "schemaTrackingLocation": f"{outside}/_schema_log_{follower.table.metadata.id}",
        "checkpointLocation": str(follower.checkpoint),
    }
    assert not session.streams.active
    assert not session.catalog.tableExists("table_of_a_refused_stream")


def test_a_log_may_lie_anywhere_if_a_setting_allows_it(session: Any, tmp_path: Path) -> None:
    follower = Follower(session, tmp_path)
    outside = str(tmp_path / "checkpoint-of-another")
    condition = "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    frame = session.readStream.format("delta").option("schemaTrackingLocation", outside)
    query = frame.load(str(tmp_path / "t")).writeStream.format("memory").queryName("temporary_log").start()
    with pytest.raises(Exception, match=condition):  # a temporary checkpoint is known to the query only
        query.processAllAvailable()
    with setting(session, f"{SETTINGS}allowSchemaLocationOutsideCheckpointLocation", "true"):
        assert follower.run(schemaTrackingLocation=outside) == [{"id": 0, "a": "x"}]


def test_two_sources_of_a_query_have_two_logs(session: Any, tmp_path: Path) -> None:
    """DeltaSourceSchemaEvolutionSuite: "multiple delta source sharing same schema log is blocked"."""
    from pyspark.errors import AnalysisException

    follower = Follower(session, tmp_path)
    place = str(tmp_path / "t")

    def source(name: str) -> Any:
        reader = session.readStream.format("delta").option("schemaTrackingLocation", str(follower.checkpoint))
        return reader.option("streamingSourceTrackingId", name).load(place)

    def start(frame: Any) -> Any:
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(follower.checkpoint))
        return writer.trigger(availableNow=True).start()

    with pytest.raises(AnalysisException) as refused:
        start(source("a").union(source("a")))
    assert refused.value.getCondition() == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    assert refused.value.getSqlState() == "22000"
    log = f"{follower.checkpoint}/_schema_log_{follower.table.metadata.id}_a"
    assert refused.value.getMessageParameters() == {"loc": log, "table": place}
    assert start(source("a").union(source("b"))).awaitTermination(60)


def java_hash(text: str) -> int:
    """Returns `hashCode` of a Java string."""
    number = 0
    for letter in text:
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


@pytest.mark.parametrize(
    ("name", "value", "continues"),
    [("", "1", True), ("AndDrop", "always", True), ("", "7", False)],
)
def test_a_setting_for_one_checkpoint(
    session: Any, tmp_path: Path, name: str, value: str, continues: bool
) -> None:
    follower = Follower(session, tmp_path)
    follower.run()
    follower.alter().rename_column("a", "b")
    follower.add(id=2, b="z")
    follower.ends("DELTA_STREAMING_METADATA_EVOLUTION")
    number = java_hash(f"file:{follower.checkpoint}/sources/0")
    setting = f"spark.databricks.delta.streaming.allowSourceColumnRename{name}.ckpt_{number}"
    session.conf.set(setting, value)
    try:
        if continues:
            assert follower.run() == [{"id": 2, "b": "z"}]
        else:
            follower.ends("DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION")
    finally:
        session.conf.unset(setting)


def test_each_source_of_a_query_has_its_own_log(session: Any, tmp_path: Path) -> None:
    """The path of a source's metadata is that which Spark gives to a source of delta-spark."""
    follower = Follower(session, tmp_path)
    reader = session.readStream.format("delta").option("schemaTrackingLocation", str(follower.checkpoint))
    one, two = (
        reader.option("streamingSourceTrackingId", name).load(str(tmp_path / "t")) for name in ("one", "two")
    )
    query = (
        one.union(session.readStream.format("rate").load().selectExpr("1", "'rate'")).union(two).union(one)
    )
    query = query.writeStream.format("noop").option("checkpointLocation", str(follower.checkpoint))
    query.trigger(availableNow=True).start().awaitTermination(60)
    found = {}
    for name in ("one", "two"):
        file = follower.checkpoint / f"_schema_log_{follower.table.metadata.id}_{name}" / "0"
        found[name] = json.loads(file.read_text().split("\n")[1])["sourceMetadataPath"]
    root = f"file:{follower.checkpoint}/sources"
    assert found == {"one": f"{root}/0", "two": f"{root}/2"}


def test_the_log_of_another_source_is_refused(session_of_the_test: Any, tmp_path: Path) -> None:
    """DeltaSourceSchemaEvolutionSuite: "multiple sources with schema evolution". The names of the logs are
    swapped after the first run."""
    session = with_jvm(session_of_the_test)
    follower = Follower(session, tmp_path)
    reader = session.readStream.format("delta").option("schemaTrackingLocation", str(follower.checkpoint))

    def run(*names: str) -> None:
        one, two = (
            reader.option("streamingSourceTrackingId", name).load(str(tmp_path / "t")) for name in names
        )
        writer = one.union(two).writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(follower.checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination(60)

    run("a", "b")
    with pytest.raises(Exception, match="another source of a stream uses this log of schemas"):
        run("b", "a")
    session.conf.set("spark.databricks.delta.streaming.schemaTracking.metadataPathCheck.enabled", "false")
    run("b", "a")


def test_each_change_ends_the_query_if_changes_are_not_merged(
    session_of_the_test: Any, tmp_path: Path
) -> None:
    """DeltaSourceSchemaEvolutionSuite: "consecutive schema evolutions without schema merging"."""
    session = with_jvm(session_of_the_test)
    setting = "spark.databricks.delta.streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled"
    session.conf.set(setting, "false")
    follower = Follower(session, tmp_path)
    follower.run()
    follower.alter().rename_column("a", "b")
    follower.alter().rename_column("b", "c")
    follower.add(id=1, c="y")
    for count in (2, 3):
        assert follower.ends("DELTA_STREAMING_METADATA_EVOLUTION", **ALL) == []
        assert len(follower.entries) == count
    assert follower.run(**ALL) == [{"id": 1, "c": "y"}]


def test_no_log_is_kept_if_all_changes_are_allowed(session_of_the_test: Any, tmp_path: Path) -> None:
    """DeltaSourceSchemaEvolutionSuite: "schema tracking interacting with unsafe escape flag"."""
    session = with_jvm(session_of_the_test)
    name = "unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled"
    session.conf.set(f"spark.databricks.delta.streaming.{name}", "true")
    follower = Follower(session, tmp_path)
    follower.alter().rename_column("a", "b")
    assert follower.run(startingVersion=0) == [{"id": 0, "b": "x"}]
    assert follower.entries == []


def test_a_query_that_dies_before_it_has_noted_a_change(tmp_path: Path) -> None:
    """Its checkpoint has both positions in front of the change, the log of schemas nothing of it."""
    table = deltaic.write(tmp_path / "t", pa.table({"id": [0], "a": ["x"]}), properties=PROPERTIES)
    store = _core.Store(str(tmp_path / "log"))

    def stream() -> TableStream:
        return TableStream(table._snapshot, StreamOptions(), SchemaLog(store, table.metadata.id))

    first = stream()
    at = first.next(first.start(), None)
    DeltaTable(tmp_path / "t").alter.rename_column("a", "b")
    end = first.next(at, None)
    after = first.next(end, None)
    assert [(each.version, each.index, each.initial) for each in (end, after)] == [
        (1, -20, False),
        (1, -19, False),
    ]
    assert [StreamOffset.parse(each.json(), each.table_id) for each in (end, after)] == [end, after]
    assert first.batch(end, after).added.num_rows == 0
    with pytest.raises(SchemaMismatchError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        stream().next(after, None)
    noted = SchemaLog(store, table.metadata.id)
    assert noted.current is not None
    assert (noted.current.version, noted.current.schema.names) == (1, ["id", "b"])


def entry(version: int = 0, ddl: str = "id int, st struct<a: int>") -> TrackedSchema:
    return TrackedSchema("table", version, Schema.from_ddl(ddl), ())


def test_the_log_by_itself(tmp_path: Path) -> None:
    store = _core.Store(str(tmp_path))
    log, other = SchemaLog(store, "table"), SchemaLog(store, "table")
    assert log.current is None
    log.append(entry())
    with pytest.raises(InvalidArgumentError, match="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"):
        other.append(entry(1))
    log.append(entry(3, "id long, st struct<a: int>"))
    read = SchemaLog(store, "table")
    assert (read.current, read.previous) == (entry(3, "id long, st struct<a: int>"), entry())
    read.append(entry(4), replace_newest=True)
    read.append(entry(5), replace_newest=True)
    again = SchemaLog(store, "table")
    assert (again.previous, read.previous) == (entry(), entry())
    assert again.current == read.current == replace(entry(5), previous=0)
    again.append(entry(6))
    assert SchemaLog(store, "table").previous == replace(entry(5), previous=0)
    with pytest.raises(InvalidArgumentError, match="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"):
        SchemaLog(store, "another")
    for damaged in ("v1\n{", "v2\n{}", "v1\n{}", "", "v1\n[]"):
        (tmp_path / "4").write_text(damaged)
        with pytest.raises(ProtocolError, match="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"):
            SchemaLog(store, "table")


def test_what_is_not_additive() -> None:
    before = entry().schema
    assert list(non_additive(before, before)) == []
    assert (
        list(non_additive(before, Schema.from_ddl("id int, st struct<a: int, b: int>, c array<int>"))) == []
    )
    assert list(non_additive(before, Schema.from_ddl("id long, st struct<b: int>"))) == [
        (TYPE, "column id was integer and is now long"),
        (DROP, "column st.a is dropped"),
    ]
    assert list(non_additive(before, Schema.from_ddl("id int"))) == [(DROP, "column st is dropped")]
