"""Makes actions for tests of the log that need no data files."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic._core import Store
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol.definition import new_table
from deltaic.transaction.transaction import Transaction


def memory_store() -> Store:
    return Store(f"memory://{uuid.uuid4().hex}/table")


def adds(
    *paths: str, month: str | None = None, ids: tuple[int, int] | None = None, data_change: bool = True
) -> pa.Table:
    """add actions; `ids`: minimum and maximum of the column id."""
    stats: dict[str, Any] = {"numRecords": 10}
    if ids is not None:
        stats |= {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[1]}, "nullCount": {"id": 0}}
    rows = [
        {
            "path": path,
            "partitionValues": [] if month is None else [("month", month)],
            "size": 100,
            "modificationTime": 1_700_000_000_000,
            "dataChange": data_change,
            "stats": json.dumps(stats),
        }
        for path in paths
    ]
    return pa.Table.from_pylist(rows, _core.empty_adds().schema)


def create(store: Store, *, partitioned: bool = False, properties: dict[str, Any] | None = None) -> Snapshot:
    protocol, metadata = new_table(
        "id bigint, month string", partition_columns=["month"] if partitioned else None, properties=properties
    )
    transaction = Transaction(None, "CREATE TABLE", {}, store=store)
    transaction.set_protocol(protocol)
    transaction.set_metadata(metadata)
    return transaction.commit()


def append(snapshot: Snapshot, *paths: str, options: CommitOptions | None = None, **details: Any) -> Snapshot:
    transaction = Transaction(
        snapshot, "WRITE", {"mode": "Append", "partitionBy": []}, options, sleep=lambda _: None
    )
    transaction.add(adds(*paths, **details))
    return transaction.commit({"num_files": len(paths)})


def paths(snapshot: Snapshot) -> list[str]:
    return snapshot.files().adds["path"].to_pylist()


def remove(transaction: Transaction, snapshot: Snapshot, *names: str, data_change: bool = True) -> None:
    live = snapshot.files().adds
    chosen = live.filter(pa.compute.is_in(live["path"], value_set=pa.array(names)))
    assert chosen.num_rows == len(names)
    transaction.remove(_core.removes_of(chosen, 1_700_000_000_000, data_change))


def month_is(snapshot: Snapshot, month: str) -> _core.Predicate:
    return _core.Predicate.from_json(
        json.dumps({"op": "=", "column": ["month"], "literal": month}), snapshot.table_schema
    )


def id_below(snapshot: Snapshot, limit: int) -> _core.Predicate:
    return _core.Predicate.from_json(
        json.dumps({"op": "<", "column": ["id"], "literal": str(limit)}), snapshot.table_schema
    )


def commit_lines(store: Store, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.get(f"_delta_log/{version:020}.json").splitlines()]
