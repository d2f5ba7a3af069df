"""A user's program with every public call, with the types that a user would write.

`make lint` checks it with mypy in strict mode. test_user_program.py runs it, and compares the names in it
with public_api.txt.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import deltaic
from deltaic import (
    AddFile,
    ColumnOptions,
    CommitOptions,
    DeletionVector,
    DeltaTable,
    Field,
    ParquetOptions,
    Rows,
    Schema,
)
from deltaic.errors import DeltaError, InvalidArgumentError


def write_and_read(folder: Path) -> DeltaTable:
    days = pa.table({"id": [1, 2, 3], "day": ["mon", "tue", "tue"], "n": [1.5, 2.5, None]})
    table: DeltaTable = deltaic.write(
        folder / "days",
        days,
        mode="error",
        partition_by=["day"],
        name="days",
        description="numbers by day",
        properties={"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"},
        casting="strict",
        target_file_size=1 << 20,
        parquet=ParquetOptions(compression="zstd(3)", columns={"n": ColumnOptions(dictionary=False)}),
        commit=CommitOptions(user_metadata="first load", info={"job": "nightly"}, transactions={"job": 1}),
    )
    again: DeltaTable = deltaic.write(
        str(table.location), {"id": [4], "day": ["wed"], "n": [4.0]}, mode="append"
    )
    rows: Rows = again.scan(["id", "n"], where="n > 1", limit=10)
    schema: Schema = rows.schema
    names: list[str] = list(schema.names)
    arrow: pa.Table = rows.to_arrow()
    reader: pa.RecordBatchReader = rows.to_reader()
    listed: list[dict[str, Any]] = rows.to_pylist()
    count: int = rows.count()
    frame: Any = rows.to_pandas()
    polars: Any = rows.to_polars(lazy=True)
    relation: Any = rows.to_duckdb()
    dataset: Any = rows.to_dataset()
    plan: Any = rows.explain()
    assert names == ["id", "n"]
    assert arrow.num_rows == count == len(listed) == len(frame)
    assert (
        reader.read_all().num_rows
        == len(relation.fetchall())
        == dataset.count_rows()
        == len(polars.collect())
    )
    assert plan is not None
    rows.cancel()
    try:
        rows.to_spark()  # rows of a table that was opened without Spark
    except DeltaError as error:
        message: str = str(error)
        assert message
    return again


def look(table: DeltaTable) -> None:
    version: int = table.version
    earlier: DeltaTable = table.at(0)
    at_time: DeltaTable = table.at(timestamp=dt.datetime.now(dt.timezone.utc))
    changed: Rows = table.changes(1, version, columns=["id"], where="id > 0", allow_out_of_range=True)
    history: list[dict[str, Any]] = table.history(limit=5)
    size: int = table.detail().size_in_bytes
    partitions: Rows = table.partitions("day = 'tue'")
    files: Rows = table.files("id > 1", deleted_rows=True)
    properties: Mapping[str, str] = table.metadata.configuration
    writer: int = table.protocol.min_writer_version
    options: Mapping[str, str] = table.storage_options
    last: int | None = table.transaction_version("job")
    state: int | None = table.transaction_state("job")
    found: bool = DeltaTable.exists(table.location)
    table.refresh()
    opened = DeltaTable(table.location, version=version)
    fields: list[Field] = list(opened.schema)
    assert earlier.version == 0
    assert at_time.version == version
    assert changed.count() == 1
    assert len(history) == version + 1
    assert size > 0
    assert partitions.count() == 1
    assert files.count() == 2
    assert properties
    assert not options
    assert writer >= 2
    assert last == 1
    assert state is None
    assert found
    assert [field.name for field in fields] == ["id", "day", "n"]


def change(table: DeltaTable, other: DeltaTable) -> None:
    deleted: dict[str, int] = table.delete(
        f"{deltaic.col('id')} = {deltaic.lit(4)}", commit=CommitOptions(max_retries=3)
    )
    updated: dict[str, int] = table.update({"n": "n + 1"}, where="id = 1", casting="strict")
    merged: dict[str, int] = (
        table.merge(
            {"id": [2, 9], "day": ["tue", "sun"], "n": [0.0, 9.0]},
            "s.id = t.id",
            source_alias="s",
            target_alias="t",
        )
        .when_matched_update({"n": "s.n"}, where="s.n < 1")
        .when_matched_update_all(where="s.n > 100", exclude=["day"])
        .when_matched_delete(where="s.n > 10")
        .when_not_matched_insert({"id": "s.id", "day": "s.day", "n": "s.n"}, where="s.id > 5")
        .when_not_matched_insert_all(where="s.id < 0", exclude=["n"])
        .when_not_matched_by_source_update({"n": "0"}, where="t.id = 3")
        .when_not_matched_by_source_delete(where="t.id > 1000")
        .execute()
    )
    assert (
        deleted["num_deleted_rows"] == updated["num_updated_rows"] == merged["num_target_rows_inserted"] == 1
    )
    with deltaic.transaction(table, other, commit=CommitOptions(user_metadata="both")) as several:
        several.write(other, {"id": [20], "n": [2.0]}, mode="append")
        several.update(other, {"n": "3.0"}, where="id = 20")
        several.delete(table, where="id = 9")
        several.merge(other, {"id": [21], "n": [1.0]}, "s.id = t.id").when_not_matched_insert_all().execute()
    identity: str | None = several.id
    assert identity is not None
    assert table.transaction_state(identity) == table.version


def keep_up(table: DeltaTable) -> None:
    compacted: dict[str, int] = table.optimize.compact(where="day = 'tue'", target_size=1 << 20)
    ordered: dict[str, int] = table.optimize.z_order(["id"], curve="hilbert")
    purged: dict[str, int] = table.optimize.purge()
    statistics: dict[str, int] = table.optimize.statistics(["id", "n"])
    picture = table.optimize.picture(["id", "n"], kind="layout")
    svg: str = picture.svg
    notes: tuple[str, ...] = picture.notes
    picture.save(Path(table.location).parent / "layout.svg")
    vacuumed: Rows = table.vacuum(retention=dt.timedelta(days=7), dry_run=True, keep_versions=[0])
    table.checkpoint()
    table.clean_log()
    table.compact_log(0, 1)
    table.generate()
    table.repair(dry_run=True)
    restored: dict[str, int] = table.restore(table.version - 1)
    copy: DeltaTable = table.clone(Path(table.location).parent / "copy", shallow=True)
    assert None not in (compacted, ordered, purged, statistics, notes, vacuumed, restored)
    assert svg.startswith("<svg")
    assert copy.scan().count() == table.scan().count()


def alter(folder: Path) -> None:
    schema = Schema(
        [
            Field("id", "long", nullable=False),
            Field("a", "integer"),
            Field("b", "string", metadata={"comment": "text"}),
        ]
    )
    assert Schema.from_json(schema.to_json()) == Schema.from_ddl(schema.to_ddl()) == schema
    assert Schema.from_arrow(pa.schema([("id", pa.int64())])).names == ["id"]
    table = DeltaTable.create(
        folder / "rules", schema, cluster_by=["a"], properties={"delta.columnMapping.mode": "name"}
    )
    clustered: dict[str, int] = table.optimize.cluster(full=True)
    table.alter.add_columns(Schema.from_ddl("c DOUBLE, d DATE"), places={"c": None, "d": "id"})
    table.alter.add_constraints({"positive": "a > 0"})
    table.alter.add_features("changeDataFeed")
    table.alter.change_column("a", comment="a number", after="b")
    table.alter.change_columns({"a": {"comment": "a count"}, "b": {"first": True}})
    table.alter.set_column_metadata("b", {"unit": "none"})
    table.alter.cluster_by("b")
    table.alter.rename_column("d", "day")
    table.alter.drop_columns("c")
    table.alter.drop_constraint("positive", if_exists=True)
    table.alter.set_name("rules")
    table.alter.set_description("a table with rules")
    table.alter.set_properties({"delta.appendOnly": "false"})
    table.alter.unset_properties("delta.appendOnly", if_exists=True)
    plain = DeltaTable.create(folder / "plain_names", Schema.from_ddl("id BIGINT, a INT"))
    plain.alter.replace_columns(Schema.from_ddl("id BIGINT, a INT, b STRING"))
    try:
        table.alter.drop_feature("changeDataFeed", truncate_history=False)
        table.alter.sync_identity("a")
    except InvalidArgumentError:
        pass
    with contextlib.suppress(DeltaError):
        table.alter.upgrade_uniform(2)
    assert clustered is not None


def adopt(folder: Path) -> None:
    import pyarrow.parquet as pq

    (folder / "plain").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), folder / "plain" / "a.parquet")
    table = DeltaTable.convert(folder / "plain", statistics=True, name="plain")
    pq.write_table(pa.table({"id": [3]}), folder / "plain" / "b.parquet")
    size = (folder / "plain" / "b.parquet").stat().st_size
    table.add_files([AddFile("b.parquet", size=size)], check_rows=True)
    assert table.scan().count() == 3
    with contextlib.suppress(DeltaError):
        DeltaTable.convert_iceberg(folder / "plain", name="no such table of Iceberg")


def rows_of_vectors() -> None:
    vector: DeletionVector = DeletionVector.from_rows([1, 5])
    assert (
        DeletionVector.from_bytes(vector.to_bytes()).rows()
        == DeletionVector.from_inline(vector.to_inline()).rows()
    )
    kept: pa.Table = vector.filter(pa.table({"id": [0, 1, 2]}), first_row=0)
    mask: Any = vector.mask(0, 3)
    assert vector.cardinality == 2
    assert kept.num_rows == 2
    assert len(mask) == 3


def settings(folder: Path, table: DeltaTable) -> None:
    with deltaic.configure(memory_limit="1GB", threads=1, time_zone="Europe/Berlin", durable=False):
        rows = deltaic.sql(
            "SELECT count(*) AS n FROM days WHERE id > :least",
            tables={"days": table},
            parameters={"least": 0},
        )
        assert rows.to_pylist()[0]["n"] >= 1
    locks = deltaic.FileLocks(folder / "locks", timeout=5.0)
    with deltaic.configure(log_stores={"locked": deltaic.LockedLogStores(locks)}):
        pass
    deltaic.DynamoDBLogStores(table="delta_log", region="eu-west-1", client=object())


def follow(table: DeltaTable) -> None:
    batches: Iterator[Any] = iter(table.tail(start=0, max_files=1, poll=0.01))
    first = next(batches)
    assert first is not None


def main(folder: Path) -> None:
    table = write_and_read(folder)
    look(table)
    change(table, deltaic.write(folder / "numbers", {"id": [1], "n": [0.5]}))
    follow(table.at(0))
    settings(folder, table)
    keep_up(table)
    alter(folder)
    adopt(folder)
    rows_of_vectors()
