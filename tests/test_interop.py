"""Other implementations: `deltalake` reads what is written here, and tables that others wrote read to exactly their rows.

The golden tables (tests/README.md) are not part of this project: without them their tests are skipped.
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from row_model import arrow_rows, multiset

import deltaic
from deltaic.errors import DeltaError

GOLDEN = Path(__file__).resolve().parent.parent.parent / "shared" / "golden"

# --- deltalake reads ours


def every_type() -> pa.Table:
    """Each type twice: a value at an edge of its range, and null."""
    utc = timezone.utc
    columns: dict[str, pa.Array] = {
        "id": pa.array([1, 2], pa.int64()),
        "byte": pa.array([-128, None], pa.int8()),
        "short": pa.array([32767, None], pa.int16()),
        "int": pa.array([-(2**31), None], pa.int32()),
        "float": pa.array([0.5, None], pa.float32()),
        "double": pa.array([float("inf"), None], pa.float64()),
        "decimal": pa.array([Decimal("-99999999.99"), None], pa.decimal128(10, 2)),
        "decimal38": pa.array([Decimal(10**37), None], pa.decimal128(38, 0)),
        "boolean": pa.array([True, None], pa.bool_()),
        "string": pa.array(["é\0\n", None], pa.string()),
        "binary": pa.array([b"\0\xff", None], pa.binary()),
        "date": pa.array([date(1900, 1, 1), None], pa.date32()),
        "timestamp": pa.array([datetime(2024, 2, 29, 23, 59, 59, 999999, utc), None], pa.timestamp("us", tz="UTC")),
        "timestamp_ntz": pa.array([datetime(1969, 12, 31, 23, 59, 59, 1), None], pa.timestamp("us")),
        "array": pa.array([[1, None], None], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": {"c": "x"}}, None], pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string()})})),
        "map": pa.array([[("k", 1.5), ("l", None)], None], pa.map_(pa.string(), pa.float64())),
    }
    return pa.table(columns)


def deltalake_rows(path: str, columns: list[str]) -> Any:
    from deltalake import DeltaTable, QueryBuilder

    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    reader = QueryBuilder().register("t", DeltaTable(path)).execute(f"SELECT {names} FROM t")
    return multiset(arrow_rows(pa.table(reader)))


def ours(table: deltaic.DeltaTable, columns: list[str]) -> Any:
    return multiset(arrow_rows(table.scan(columns).to_arrow()))


@pytest.mark.parametrize("partition", [None, "string", "int", "date", "boolean", "decimal", "timestamp"])
def test_deltalake_reads_every_type(tmp_path: Path, partition: str | None) -> None:
    data = every_type()
    table = deltaic.write(tmp_path / "t", data, partition_by=partition)
    assert ours(table, data.column_names) == multiset(arrow_rows(data))
    assert deltalake_rows(table.location, data.column_names) == multiset(arrow_rows(data))


def test_deltalake_reads_our_vectors(tmp_path: Path) -> None:
    data = pa.table({"id": list(range(10_000)), "part": [number % 3 for number in range(10_000)], "text": [str(n) for n in range(10_000)]})
    table = deltaic.write(
        tmp_path / "t", data, partition_by="part", target_file_size=20_000, properties={"delta.enableDeletionVectors": True}
    )
    table.delete("id % 10 = 3")
    table.update({"text": "concat(text, '!')"}, "id % 100 = 5")
    table.delete("id < 50")
    news = pa.table({"id": [60, 20_000], "part": [0, 9], "text": ["merged", "inserted"]})
    table.merge(news, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert any(row["deletion_vector"] for row in table.files().to_arrow().to_pylist())
    found = ours(table, ["id", "part", "text"])
    assert sum(found.values()) == 10_000 - 1_000 - 45 + 1
    assert deltalake_rows(table.location, ["id", "part", "text"]) == found


def test_deltalake_reads_after_upkeep(tmp_path: Path) -> None:
    data = pa.table({"id": list(range(2_000)), "text": [str(number % 50) for number in range(2_000)]})
    table = deltaic.write(
        tmp_path / "t", data, target_file_size=2_000, properties={"delta.enableDeletionVectors": True, "delta.checkpointInterval": 2}
    )
    table.delete("id % 2 = 0")
    table.optimize.z_order(["text", "id"])
    table.delete("id < 100")
    table.optimize.purge()
    table.restore(1)
    table.checkpoint()
    assert deltalake_rows(table.location, ["id", "text"]) == ours(table, ["id", "text"])


def test_we_read_what_deltalake_wrote(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    data = every_type()
    write_deltalake(str(tmp_path / "t"), data, partition_by=["string"])
    write_deltalake(str(tmp_path / "t"), data, mode="append")
    table = deltaic.DeltaTable(tmp_path / "t")
    assert ours(table, data.column_names) == multiset(arrow_rows(data) * 2)
    table.delete("id = 2")
    assert table.scan(where="byte = -128").count() == 2
    assert deltalake_rows(table.location, ["id"]) == ours(table, ["id"])


# --- golden tables
