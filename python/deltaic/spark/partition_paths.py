"""Parses paths of partitions: a read of `sales/day=2026-01-01` returns that partition of the table `sales`,
as in delta-spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, TableNotFoundError
from deltaic.plan.literal import lit
from deltaic.protocol.ddl import cast_type
from deltaic.protocol.partitioning import from_directory
from deltaic.sql_text import quote_name
from deltaic.table import DeltaTable


def partition_of(
    spark: Any, path: str, storage_options: Mapping[str, str] | None = None
) -> tuple[str, str | None]:
    """Splits the path of a partition into the table's path and a condition: `sales/p=1/q=a` becomes `sales`
    and `p = 1 AND q = 'a'`, with the values cast to the columns' types. For any other path it returns the
    path and None.

    Raises InvalidArgumentError for a column that is no partition column, TableNotFoundError if no file is in
    the partition.
    """
    root = path.rstrip("/")
    while "=" in root.rpartition("/")[2] and "/" in root:
        root = root.rpartition("/")[0]
    values = from_directory(path.rstrip("/")[len(root) :] + "/")
    if not values:
        _refuse_other_folder(path.rstrip("/"), storage_options)
        return path, None
    with opening(spark):
        options = dict(storage_options or {})
        if DeltaTable.exists(path, storage_options=options) or not DeltaTable.exists(
            root, storage_options=options
        ):
            return path, None
        table = DeltaTable(root, storage_options=options)
        condition = " AND ".join(_condition(table, *each) for each in values.items())
        if not table.files(condition).count():
            raise TableNotFoundError(
                "[DELTA_PATH_DOES_NOT_EXIST] the path is not a Delta table",
                where=path,
                found="a partition without files",
                expected="a partition of the table",
            )
    return root, condition


def _refuse_other_folder(path: str, storage_options: Mapping[str, str] | None) -> None:
    """Raises InvalidArgumentError for a folder within a partition that names no partition: /t/p=1/x."""
    at = next((at for at, part in enumerate(path.split("/")) if "=" in part), None)
    root = "" if at is None else "/".join(path.split("/")[:at])
    options = dict(storage_options or {})
    if not root or DeltaTable.exists(path, storage_options=options):
        return
    if DeltaTable.exists(root, storage_options=options):
        raise InvalidArgumentError(
            "[DELTA_INVALID_PARTITION_PATH] a folder of the path names no partition",
            where=path,
            expected="folders as p=1/q=2 below the table",
        ).with_values(partition=path[len(root) + 1 :])


def _condition(table: DeltaTable, name: str, value: str | None) -> str:
    columns = {column.lower(): column for column in table.metadata.partition_columns}
    column = columns.get(name.lower())
    if column is None:
        raise InvalidArgumentError(
            "the path names a partition by other columns",
            where=table.location,
            found=f"{name}={value}",
            expected=", ".join(columns.values()) or "none",
        ).with_values(columns=(name,))
    if value is None:
        return f"{quote_name(column)} IS NULL"
    return f"{quote_name(column)} = CAST({lit(value)} AS {cast_type(table.schema.field(column).type)})"
