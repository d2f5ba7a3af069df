"""Arguments of wrong types and values: each is refused by name, and no argument is ignored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


@pytest.fixture
def table(tmp_path):
    return deltaic.write(tmp_path / "t", ROWS, properties={"delta.columnMapping.mode": "name"})


WRONG_TYPES = {
    "info": lambda table: deltaic.CommitOptions(info=5),
    "transactions": lambda table: deltaic.CommitOptions(transactions=5),
    "checkpoint": lambda table: deltaic.CommitOptions(checkpoint="no"),
    "clean_log": lambda table: deltaic.CommitOptions(clean_log=1),
    "max_retries": lambda table: deltaic.CommitOptions(max_retries="3"),
    "commit": lambda table: deltaic.write(table, ROWS, mode="append", commit={"user_metadata": "x"}),
    "commit of delete": lambda table: table.delete("id = 1", commit="x"),
    "parquet": lambda table: deltaic.write(table, ROWS, mode="append", parquet={"compression": "zstd"}),
    "compression": lambda table: deltaic.ParquetOptions(compression=5),
    "columns": lambda table: deltaic.ParquetOptions(columns=["id"]),
    "column": lambda table: deltaic.ParquetOptions(columns={"id": {"dictionary": True}}),
    "default": lambda table: deltaic.ParquetOptions(default="plain"),
    "dictionary": lambda table: deltaic.ColumnOptions(dictionary="yes"),
    "bloom_filter": lambda table: deltaic.ColumnOptions(bloom_filter=1),
    "bloom_filter_fpp": lambda table: deltaic.ColumnOptions(bloom_filter_fpp="0.1"),
    "bloom_filter_ndv": lambda table: deltaic.ColumnOptions(bloom_filter_ndv=True),
    "schema": lambda table: deltaic.DeltaTable.create(table.location + "2", 5),
    "schema from Arrow": lambda table: deltaic.Schema.from_arrow(5),
    "schema from JSON": lambda table: deltaic.Schema.from_json(5),
    "schema from DDL": lambda table: deltaic.Schema.from_ddl(5),
    "name": lambda table: deltaic.DeltaTable.create(table.location + "2", "id int", name=5),
    "partition_by": lambda table: deltaic.write(table.location + "2", ROWS, partition_by=5),
    "partition_by of numbers": lambda table: deltaic.write(table.location + "2", ROWS, partition_by=[5]),
    "properties": lambda table: deltaic.write(table.location + "2", ROWS, properties=["delta.appendOnly"]),
    "set_properties": lambda table: table.alter.set_properties("delta.appendOnly"),
    "set_column_metadata": lambda table: table.alter.set_column_metadata("id", "x"),
    "rename_column": lambda table: table.alter.rename_column(5, "x"),
    "drop_columns": lambda table: table.alter.drop_columns(5),
    "change_column": lambda table: table.alter.change_column("id", nullable="yes"),
    "comment": lambda table: table.alter.change_column("id", comment=5),
    "data": lambda table: deltaic.write(table, 5, mode="append"),
    "data of numbers": lambda table: deltaic.write(table, [1, 2], mode="append"),
    "where": lambda table: table.scan(where=5),
    "scan columns": lambda table: table.scan(columns="id"),
    "version": lambda table: table.at("1"),
    "log_stores": lambda table: deltaic.configure(log_stores={"s": 5}),
    "temp_directory": lambda table: deltaic.configure(temp_directory=5),
    "allowed_roots": lambda table: deltaic.configure(allowed_roots=[5]),
    "vector from bytes": lambda table: deltaic.DeletionVector.from_bytes("x"),
    "vector from text": lambda table: deltaic.DeletionVector.from_inline(b"x"),
    "vector's mask": lambda table: deltaic.DeletionVector.from_rows([1]).mask("0", 5),
}


@pytest.mark.parametrize("call", WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_a_wrong_type_is_a_type_error_of_ours(table, call):
    with pytest.raises(InvalidTypeError) as raised:
        call(table)
    assert isinstance(raised.value, DeltaError)
    assert isinstance(raised.value, TypeError)
    assert deltaic.DeltaTable(table.location).version == 0


@pytest.mark.parametrize(
    "options",
    [
        deltaic.ParquetOptions(columns={"name": deltaic.ColumnOptions(encoding="delta_binary_packed")}),
        deltaic.ParquetOptions(columns={"id": deltaic.ColumnOptions(encoding="delta_byte_array")}),
        deltaic.ParquetOptions(default=deltaic.ColumnOptions(encoding="rle")),
        deltaic.ParquetOptions(columns={"nope": deltaic.ColumnOptions()}),
        deltaic.ParquetOptions(compression="zstd(99)"),
    ],
    ids=repr,
)
def test_options_that_the_columns_cannot_have(table, options, capfd):
    with pytest.raises(InvalidArgumentError):
        deltaic.write(table, ROWS, mode="append", parquet=options)
    assert "panicked" not in capfd.readouterr().err


def test_a_column_may_have_another_encoding_than_the_rest(table):
    options = deltaic.ParquetOptions(
        default=deltaic.ColumnOptions(encoding="delta_binary_packed"),
        columns={"name": deltaic.ColumnOptions(encoding="delta_byte_array")},
    )
    assert deltaic.write(table, ROWS, mode="append", parquet=options).scan().count() == 4


def test_a_schema_comes_from_whatever_has_one(tmp_path):
    import polars as pl

    for number, given in enumerate(
        (ROWS, ROWS.schema, pl.DataFrame(ROWS), ROWS.to_pandas(), deltaic.Schema.from_arrow(ROWS.schema))
    ):
        assert deltaic.DeltaTable.create(tmp_path / str(number), given).schema.names == ["id", "name"]


def test_an_iterator_that_was_read_before_is_an_error_and_not_no_names(tmp_path: Path) -> None:
    rows = pa.table({"a": [1], "b": [2]})
    table = deltaic.write(tmp_path / "t", rows, partition_by=(name for name in ["a"]))
    assert table.metadata.partition_columns == ("a",)
    scan = table.scan(name for name in ["b", "a"])  # type: ignore[arg-type]
    assert scan.to_arrow().to_pylist() == [{"b": 2, "a": 1}]
    table.vacuum(keep_versions=iter([0]), dry_run=True)
    read = iter(["a"])
    list(read)
    for call in (
        lambda: deltaic.write(tmp_path / "u", rows, partition_by=read),
        lambda: deltaic.DeltaTable.create(tmp_path / "u", rows.schema, cluster_by=read),
        lambda: table.scan(read),  # type: ignore[arg-type]
        lambda: table.vacuum(keep_versions=read),  # type: ignore[arg-type]
        lambda: table.add_files(read, mode="overwrite"),
        lambda: table.add_files([], remove=read),
        lambda: table.merge(rows, "t.a = s.a").when_matched_update_all(exclude=read),
        lambda: table.optimize.statistics(read),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgumentError, match="read before"):
            call()
    assert table.scan().count() == 1
    assert table.scan([]).count() == 1
