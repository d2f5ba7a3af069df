"""DESCRIBE HISTORY, DETAIL and TABLE, with delta-spark's columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from deltaic.commands.defaults import KEY
from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.schema import path_text
from deltaic.rows.rows import Rows
from deltaic.spark_sql.char_types import shown_type
from deltaic.sql.names import CatalogEntry, Tables, read_name
from deltaic.sql.results import rows_of
from deltaic.sql.show import shown_properties
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_TEXTS = pa.map_(pa.string(), pa.string())

HISTORY = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": _TIMESTAMP,
        "userId": pa.string(),
        "userName": pa.string(),
        "operation": pa.string(),
        "operationParameters": _TEXTS,
        "job": pa.struct(
            [
                (name, pa.string())
                for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
            ]
        ),
        "notebook": pa.struct({"notebookId": pa.string()}),
        "clusterId": pa.string(),
        "readVersion": pa.int64(),
        "isolationLevel": pa.string(),
        "isBlindAppend": pa.bool_(),
        "operationMetrics": _TEXTS,
        "userMetadata": pa.string(),
        "engineInfo": pa.string(),
    }
)
"""Columns of DESCRIBE HISTORY, which has the newest version first."""

DETAIL = pa.schema(
    {
        "format": pa.string(),
        "id": pa.string(),
        "name": pa.string(),
        "description": pa.string(),
        "location": pa.string(),
        "createdAt": _TIMESTAMP,
        "lastModified": _TIMESTAMP,
        "partitionColumns": pa.list_(pa.string()),
        "clusteringColumns": pa.list_(pa.string()),
        "numFiles": pa.int64(),
        "sizeInBytes": pa.int64(),
        "properties": _TEXTS,
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "tableFeatures": pa.list_(pa.string()),
    }
)
"""Columns of DESCRIBE DETAIL, which has one row."""

COLUMNS = pa.schema({"col_name": pa.string(), "data_type": pa.string(), "comment": pa.string()})
"""Columns of DESCRIBE TABLE, which has a row for each column, then the partition columns, and with EXTENDED
facts of the table."""

COLUMN = pa.schema({"info_name": pa.string(), "info_value": pa.string()})
"""Columns of DESCRIBE TABLE for one column."""


def describe(reader: Reader, tables: Tables) -> Rows:
    """DESCRIBE | DESC HISTORY name [LIMIT n] · DETAIL name · [TABLE] [EXTENDED | FORMATTED] name [column]"""
    if not reader.accept("DESC"):
        reader.expect("DESCRIBE")
    if reader.accept_option("HISTORY"):
        name = read_name(reader, path=True)
        limit = reader.integer() if reader.accept("LIMIT") else None
        reader.end()
        return history_rows(tables.table(name), limit)
    if reader.accept_option("DETAIL"):
        name = read_name(reader, path=True)
        reader.end()
        return detail_rows(tables.table(name), tables.entry(name))
    reader.accept_option("TABLE")
    extended = reader.accept_option("EXTENDED") or reader.accept_option("FORMATTED")
    name = read_name(reader)
    if reader.accept("AS", "JSON"):
        raise UnsupportedFeatureError(
            "DESCRIBE TABLE AS JSON is not supported", expected="DESCRIBE TABLE name"
        )
    if reader.at("PARTITION", "("):
        raise UnsupportedFeatureError(
            "DESCRIBE TABLE of single partitions is not supported", expected="SHOW PARTITIONS name"
        )
    column = None if reader.done else reader.dotted()
    reader.end()
    table = tables.table(name)
    return table_rows(table, extended, tables.entry(name)) if column is None else _column_rows(table, column)


def table_rows(table: DeltaTable, extended: bool, entry: CatalogEntry | None = None) -> Rows:
    """Returns the result of DESCRIBE TABLE. `extended`: True to add location, comment and properties of the
    table, the columns' defaults, and `entry`, the table's entry in a catalog."""
    metadata = table.metadata
    columns = {
        field.name: (field.name, shown_type(field), field.metadata.get("comment")) for field in table.schema
    }
    rows: list[tuple[str, str, str | None]] = list(columns.values())
    if metadata.partition_columns:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [columns[name] for name in metadata.partition_columns]
    if extended:
        properties = ",".join(f"{key}={value}" for key, value in shown_properties(table).items())
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        if entry is not None:
            rows += [
                ("Catalog", entry.catalog, ""),
                ("Namespace", entry.schema, ""),
                ("Database", entry.schema, ""),
            ]
            rows += [("Table", entry.name, ""), ("Type", "MANAGED" if entry.managed else "EXTERNAL", "")]
        elif metadata.name:
            rows += [("Name", metadata.name, "")]
        rows += [("Comment", metadata.description, "")] if metadata.description else []
        rows += [("Location", table.location, ""), ("Provider", "delta", "")]
        rows += [("Is_managed_location", "true", "")] if entry is not None and entry.managed else []
        rows += [("Table Properties", f"[{properties}]", "")]
        if defaults := [
            (each.name, shown_type(each), each.metadata[KEY]) for each in table.schema if KEY in each.metadata
        ]:
            rows += [("", "", ""), ("# Column Default Values", "", ""), *defaults]
    return rows_of(
        pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS)
    )


def _column_rows(table: DeltaTable, column: tuple[str, ...]) -> Rows:
    path, field = table.schema.find(column)
    name = path[0] if len(path) == 1 else path_text(path)
    values = name, shown_type(field), str(field.metadata.get("comment", "NULL"))
    names = COLUMNS.names
    return rows_of(pa.table({"info_name": names, "info_value": values}, COLUMN))


def history_rows(table: DeltaTable, limit: int | None = None) -> Rows:
    """Returns the result of DESCRIBE HISTORY."""
    return rows_of(pa.Table.from_pylist([_history_row(entry) for entry in table.history(limit)], HISTORY))


def detail_rows(table: DeltaTable, entry: CatalogEntry | None = None) -> Rows:
    """Returns the result of DESCRIBE DETAIL. `entry`: the table's entry in a catalog, which has its name."""
    row = _detail_row(table)
    return rows_of(pa.Table.from_pylist([row if entry is None else {**row, "name": str(entry)}], DETAIL))


def _history_row(entry: dict[str, Any]) -> dict[str, Any]:
    row = {name: entry.get(name) for name in HISTORY.names}
    for name in ("operationParameters", "operationMetrics"):
        if (value := row[name]) is not None:
            row[name] = [
                (key, item if item is None or isinstance(item, str) else json.dumps(item))
                for key, item in value.items()
            ]
    return row


def _detail_row(table: DeltaTable) -> dict[str, Any]:
    detail = table.detail()
    row = {column: getattr(detail, _snake(column), None) for column in DETAIL.names}
    row["properties"] = list(dict(row["properties"] or {}).items())
    for column in ("partitionColumns", "clusteringColumns", "tableFeatures"):
        row[column] = list(row[column] or ())
    return row


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
