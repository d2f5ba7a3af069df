"""Writes checkpoints by hand with pyarrow, for cases in which one part of them is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from healthy import METADATA, WITH_VECTORS, Table

TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
ACTIONS: dict[str, dict[str, pa.DataType]] = {
    "txn": {"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()},
    "add": {
        "path": pa.string(),
        "partitionValues": TEXTS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "deletionVector": VECTOR,
    },
    "remove": {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "size": pa.int64(),
    },
    "metaData": {
        "id": pa.string(),
        "format": pa.struct({"provider": pa.string(), "options": TEXTS}),
        "schemaString": pa.string(),
        "partitionColumns": pa.list_(pa.string()),
        "configuration": TEXTS,
        "createdTime": pa.int64(),
    },
    "protocol": {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": pa.list_(pa.string()),
        "writerFeatures": pa.list_(pa.string()),
    },
    "domainMetadata": {"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()},
    "sidecar": {
        "path": pa.string(),
        "sizeInBytes": pa.int64(),
        "modificationTime": pa.int64(),
        "tags": TEXTS,
    },
    "checkpointMetadata": {"version": pa.int64(), "tags": TEXTS},
}

Rows = list[dict[str, Any]]


def state(table: Table) -> Rows:
    """What a checkpoint of version 2 holds."""
    return [
        {"protocol": WITH_VECTORS},
        {"metaData": METADATA},
        {"remove": table.remove(0)},
        {"add": table.add(1)},
        {"add": table.add(2)},
    ]


def columns(**changed: Mapping[str, pa.DataType] | pa.DataType | None) -> pa.Schema:
    """Returns the columns of a checkpoint. `changed`: other fields or another type for an action, or None to
    omit it."""
    wanted = {**ACTIONS, **changed}
    return pa.schema(
        [
            (name, pa.struct(kind) if isinstance(kind, Mapping) else kind)
            for name, kind in wanted.items()
            if kind is not None
        ]
    )


def to_arrow(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None = None) -> pa.Table:
    schema = schema or columns()
    return pa.table(
        {
            field.name: pa.array([_value(row.get(field.name), field.type) for row in rows], field.type)
            for field in schema
        },
        schema,
    )


def _value(value: Any, kind: pa.DataType) -> Any:
    """Returns objects in the form in which pyarrow takes maps: pairs."""
    if isinstance(value, Mapping) and pa.types.is_map(kind):
        return list(value.items())
    if isinstance(value, Mapping) and pa.types.is_struct(kind):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    return value


def classic(
    table: Table,
    rows: Sequence[Mapping[str, Any]] | pa.Table | None = None,
    *,
    version: int = 2,
    **options: Any,
) -> None:
    """A checkpoint in one file. `options`: of pyarrow's writer."""
    whole = rows if isinstance(rows, pa.Table) else to_arrow(state(table) if rows is None else rows)
    pq.write_table(whole, table.log / f"{version:020}.checkpoint.parquet", **options)


def part(table: Table, number: int, count: int, rows: Sequence[Mapping[str, Any]], version: int = 2) -> None:
    pq.write_table(to_arrow(rows), table.log / f"{version:020}.checkpoint.{number:010}.{count:010}.parquet")


def sidecar(table: Table, name: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> dict[str, Any]:
    """Returns a file of `_sidecars`, and the action that names it."""
    folder = table.log / "_sidecars"
    folder.mkdir(exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else to_arrow(rows), folder / name)
    return {"sidecar": {"path": name, "sizeInBytes": (folder / name).stat().st_size, "modificationTime": 1}}


UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def second(
    table: Table, more: Sequence[Mapping[str, Any]], *, rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """A V2 checkpoint in JSON: protocol, definition and `more`; or just `rows`."""
    from healthy import text

    whole = (
        [{"checkpointMetadata": {"version": 2}}, {"protocol": WITH_VECTORS}, {"metaData": METADATA}, *more]
        if rows is None
        else rows
    )
    (table.log / f"{2:020}.checkpoint.{UUID}.json").write_text("".join(text(row) + "\n" for row in whole))


def alone(write: Callable[[Table], object]) -> Callable[[Table], None]:
    """Returns a case in which the checkpoint is all that is left of the log."""

    def apply(table: Table) -> None:
        write(table)
        table.delete(0, 1, 2)

    return apply
