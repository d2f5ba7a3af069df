"""The typed table of live files."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from deltaic import errors
from deltaic._core import DeletionVector, Predicate, Snapshot, Store, TableSchema

FIELDS = [
    ("p q", "date"), ("id", "long"), ("t", "timestamp"), ("n", "decimal(20,2)"), ("d", "double"),
    ("bin", "binary"), ("ok", "boolean"),
    ("s", {"type": "struct", "fields": [{"name": "x", "type": "string", "nullable": True, "metadata": {}}]}),
]  # fmt: skip
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in FIELDS],
    }
)


def table(tmp_path: Path, adds: list[dict[str, Any]]) -> tuple[Store, Snapshot]:
    lines: list[dict[str, Any]] = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}]
    lines.append(
        {
            "metaData": {
                "id": "x",
                "format": {"provider": "parquet"},
                "schemaString": SCHEMA,
                "partitionColumns": ["p q"],
                "configuration": {},
            }
        }
    )
    base = {"size": 7, "modificationTime": 1_700_000_000_123, "dataChange": True}
    lines += [{"add": {**base, **add}} for add in adds]
    store = Store(str(tmp_path))
    store.put("_delta_log/00000000000000000000.json", "\n".join(map(json.dumps, lines)).encode())
    return store, Snapshot.load(store, 0, [], [(0, "_delta_log/00000000000000000000.json")])


def test_a_row_a_file_with_typed_values(tmp_path: Path) -> None:
    stats = {
        "numRecords": 5,
        "minValues": {"id": 1, "t": "2024-01-01T00:00:00.123Z", "n": 1.25, "d": -1.5, "s": {"x": "a"}},
        "maxValues": {"id": 9, "t": "2024-01-01T00:00:00.124Z", "n": 99, "d": 2, "s": {"x": "z"}},
        "nullCount": {"id": 0, "bin": 2, "s": {"x": 1}},
    }
    inline = DeletionVector.from_rows([1, 3])
    vector = {
        "storageType": "i",
        "pathOrInlineDv": inline.to_inline(),
        "sizeInBytes": len(inline.to_bytes()),
        "cardinality": 2,
    }
    adds = [
        {
            "path": "p%20q=2024-02-29/b%2525.parquet",
            "partitionValues": {"p q": "2024-02-29"},
            "stats": json.dumps(stats),
            "deletionVector": vector,
        },
        {"path": "a.parquet", "partitionValues": {"p q": None}, "tags": {"k": "v"}},
    ]
    store, snapshot = table(tmp_path, adds)
    schema = TableSchema(SCHEMA, ["p q"])
    plain, full = snapshot.listing(schema, store=store, deleted_rows=True).to_table().to_pylist()
    assert full["path"] == "p q=2024-02-29/b%25.parquet"
    assert full["location"] == f"{tmp_path}/p q=2024-02-29/b%25.parquet"
    assert full["size"] == 7
    assert full["modification_time"] == dt.datetime(2023, 11, 14, 22, 13, 20, 123000, dt.timezone.utc)
    assert full["partition_values"] == {"p q": dt.date(2024, 2, 29)}
    assert full["num_records"] == 5
    assert full["null_count"] == {
        "id": 0,
        "t": None,
        "n": None,
        "d": None,
        "bin": 2,
        "ok": None,
        "s": {"x": 1},
    }
    low, high = (dt.datetime(2024, 1, 1, 0, 0, 0, ms, dt.timezone.utc) for ms in (123000, 124000))
    assert full["min_values"] == {"id": 1, "t": low, "n": Decimal("1.25"), "d": -1.5, "s": {"x": "a"}}
    assert full["max_values"] == {"id": 9, "t": high, "n": Decimal("99.00"), "d": 2.0, "s": {"x": "z"}}
    assert full["deletion_vector"]["cardinality"] == 2
    assert full["deleted_rows"] == [1, 3]
    assert (plain["path"], plain["partition_values"], plain["num_records"], plain["tags"]) == (
        "a.parquet",
        {"p q": None},
        None,
        [("k", "v")],
    )
    assert plain["deleted_rows"] == []
    assert plain["deletion_vector"] is None
    assert (
        math.prod(value is None for value in plain["min_values"].values() if not isinstance(value, dict)) == 1
    )


def test_only_files_that_may_match_and_only_the_statistics_asked_for(tmp_path: Path) -> None:
    adds = [{"path": f"{day}.parquet", "partitionValues": {"p q": f"2024-01-0{day}"}} for day in (1, 2)]
    _, snapshot = table(tmp_path, adds)
    schema = TableSchema(SCHEMA, ["p q"])
    predicate = Predicate.from_json('{"op": "=", "column": ["p q"], "literal": "2024-01-02"}', schema)
    listed = snapshot.listing(schema, predicate, statistics_columns=["id", "s"]).to_table()
    assert listed["path"].to_pylist() == ["2.parquet"]
    assert [field.name for field in listed.schema.field("min_values").type] == ["id", "s"]
    assert "deleted_rows" not in listed.schema.names
    with pytest.raises(errors.InvalidArgumentError, match="nope"):
        snapshot.listing(schema, statistics_columns=["nope"])


def test_a_partition_value_that_is_none_is_an_error_with_its_column(tmp_path: Path) -> None:
    _, snapshot = table(tmp_path, [{"path": "a", "partitionValues": {"p q": "soon"}}])
    with pytest.raises(errors.ProtocolError, match=r'p q.*"soon"'):
        snapshot.listing(TableSchema(SCHEMA, ["p q"]))
