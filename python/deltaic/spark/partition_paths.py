"""Paths of partitions: `sales/day=2026-01-01` stands for the rows of the table `sales` in that partition, as in delta-spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, TableNotFoundError
from deltaic.plan.literal import lit
from deltaic.protocol.ddl import format_type
from deltaic.protocol.partitioning import from_directory
from deltaic.protocol.schema import quote_name
from deltaic.table import DeltaTable


def partition_of(spark: Any, path: str, storage_options: Mapping[str, str] | None = None) -> tuple[str, str | None]:
    """The path of the table in which `path` is a partition, and the condition of its rows: `p=1/q=a` is `p = 1 AND q = 'a'`. The path
    itself and None if it names no partition of a table.

    InvalidArgumentError for other columns than those of the partitions, TableNotFoundError if the partition has no files."""
    root = path.rstrip("/")
    while "=" in root.rpartition("/")[2] and "/" in root:
        root = root.rpartition("/")[0]
    values = from_directory(path.rstrip("/")[len(root) :] + "/")
    if not values:
        return path, None
    with opening(spark):
        options = dict(storage_options or {})
        if DeltaTable.exists(path, storage_options=options) or not DeltaTable.exists(root, storage_options=options):
            return path, None
        table = DeltaTable(root, storage_options=options)
        condition = " AND ".join(_condition(table, *each) for each in values.items())
        if not table.files(condition).count():
            raise TableNotFoundError(
                "[DELTA_PATH_DOES_NOT_EXIST] no Delta table here",
                where=path,
                found="a partition without files",
                expected="a partition of the table",
            )
    return root, condition


def _condition(table: DeltaTable, name: str, value: str | None) -> str:
    columns = {column.lower(): column for column in table.metadata.partition_columns}
    column = columns.get(name.lower())
    if column is None:
        raise InvalidArgumentError(
            "the path names a partition by other columns",
            where=table.location,
            found=f"{name}={value}",
            expected=", ".join(columns.values()) or "none",
        )
    if value is None:
        return f"{quote_name(column)} IS NULL"
    return f"{quote_name(column)} = CAST({lit(value)} AS {format_type(table.schema.field(column).type)})"
