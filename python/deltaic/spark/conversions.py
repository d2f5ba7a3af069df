"""CONVERT TO DELTA of a Parquet table by its name in the session catalog: writes a log beside its files, and
makes its entry that of a Delta table."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from deltaic.commands import convert as command
from deltaic.commands.create import TableOptions
from deltaic.commands.sink_log import ignoring_logs
from deltaic.engine.spark.native.session import has_jvm
from deltaic.engine.spark.settings import SINK_LOG, commit_options, is_off, table_properties
from deltaic.engine.spark.types import described
from deltaic.errors import InvalidArgumentError, PathOutsideTableError, UnsupportedFeatureError
from deltaic.log.store import open_store
from deltaic.protocol.paths import decoded_path
from deltaic.protocol.schema import Schema
from deltaic.spark.named_tables import (
    SESSION_CATALOG,
    OtherTable,
    convert,
    is_absolute,
    is_in_catalog,
    naming,
    other_table,
    path_at,
)
from deltaic.spark.patches import spark_sql
from deltaic.spark.views import lost_table, no_such_table, path_of
from deltaic.sql.names import Name
from deltaic.sql_text import spark_name
from deltaic.table import DeltaTable

_HIVE_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_LOCAL = re.compile(r"^file:/+")


def following_sink_log(spark: Any) -> AbstractContextManager[None]:
    """In the body, the setting SINK_LOG decides which files of a stream are converted."""
    return ignoring_logs() if is_off(spark, SINK_LOG) else nullcontext()


def convert_named(spark: Any, name: Name, partition_schema: Any, *, statistics: bool = True) -> bool:
    """Converts the Parquet table with this name. Returns False for parquet.`path` and iceberg.`path`, which
    it leaves to the caller; a Delta table stays as it is. Stores must be opened with the session's
    configuration.

    `partition_schema`: of PARTITIONED BY, which must agree with the catalog; None without it.

    Raises InvalidArgumentError (an unknown name, a view, other partition columns than those of the catalog,
    no files), UnsupportedFeatureError (a table of another format), PathOutsideTableError (a partition at
    another place than the table), and the errors of `DeltaTable.convert`.
    """
    may_be_path = len(name.parts) == 2 and name.parts[0].lower() in ("parquet", "iceberg")
    # parquet.name is a table if the catalog has it, in a schema called `parquet`
    if may_be_path and (is_absolute(name.parts[1]) or not is_in_catalog(spark, name.parts)):
        return False
    path = path_of(spark, name)
    if path is not None and (name.path is None or DeltaTable.exists(path)):
        with lost_table(spark, name.parts):
            DeltaTable(path, spark=spark)
        return True
    table = None if path is not None else other_table(spark, name.parts)
    if table is None:
        _refuse_path(name)
        raise no_such_table(
            spark, name, "parquet.`path`, iceberg.`path`, or the name of a table"
        ).with_values(**naming(spark, name.parts))
    _check_is_parquet(spark, table)
    location = path_at(str(table.location))
    if not DeltaTable.exists(location):
        _write_log(spark, table, location, partition_schema, statistics)
    convert(spark, table)
    return True


def _refuse_path(name: Name) -> None:
    """Raises an error for orc.`path` and for a path without a format."""
    *before, path = name.parts
    if name.path is not None or len(before) > 1 or not is_absolute(path):
        return
    if not before:
        raise InvalidArgumentError(
            "CONVERT TO DELTA needs the format of the files",
            found=path,
            expected=f"parquet.{spark_name(path)}",
        )
    relation = ".".join(map(spark_name, name.parts))
    raise _of_other_format(relation, before[0])


def _of_other_format(relation: str, source: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "CONVERT TO DELTA takes only Parquet tables",
        where=relation,
        found=source,
        expected="parquet",
    ).with_values(relation=relation)


def _check_is_parquet(spark: Any, table: OtherTable) -> None:
    relation = _quoted(table)
    if table.kind == "VIEW":
        raise InvalidArgumentError(
            "a view cannot be converted to a Delta table", found=relation, expected="a Parquet table"
        )
    provider = (table.provider or "").lower()
    if provider != "parquet" and not (provider == "hive" and table.serde == _HIVE_PARQUET):
        raise _of_other_format(relation, provider)
    if table.kind == "MANAGED" and not has_jvm(spark):
        expected = (
            f"an external table, or CONVERT TO DELTA parquet.{spark_name(path_at(str(table.location)))}"
        )
        raise UnsupportedFeatureError(
            "CONVERT TO DELTA of a managed table on Spark Connect is not supported",
            found=relation,
            expected=expected,
        )


def _write_log(spark: Any, table: OtherTable, location: str, partition_schema: Any, statistics: bool) -> None:
    name = _quoted(table)
    spark.catalog.refreshTable(name)
    frame = spark.table(name)
    schema, columns = described(frame), spark.catalog.listColumns(name)
    if defaults := [
        field["name"]
        for field in frame.schema.jsonValue()["fields"]
        if "CURRENT_DEFAULT" in field["metadata"]
    ]:
        raise UnsupportedFeatureError(
            "CONVERT TO DELTA of columns with defaults is not supported",
            where=name,
            found=", ".join(defaults),
            expected="ALTER COLUMN … DROP DEFAULT before",
        )
    partition_columns = tuple(each.name for each in columns if each.isPartition)
    files = [_below(table, decoded_path(uri)) for uri in frame.inputFiles()]
    if not files and partition_columns and not spark_sql(spark, f"SHOW PARTITIONS {name}").limit(1).collect():
        raise InvalidArgumentError(
            "[DELTA_CONVERSION_NO_PARTITION_FOUND] the catalog has no partition of the table",
            where=name,
            expected="MSCK REPAIR TABLE before, if the folder has partitions",
        ).with_values(**naming(spark, table.parts))
    properties = {row.key: row.value for row in spark_sql(spark, f"SHOW TBLPROPERTIES {name}").collect()}
    command.convert(
        open_store(location, None),
        partition_schema=partition_schema,
        statistics=statistics,
        wanted=TableOptions.of(
            None, None, None, spark.catalog.getTable(name).description, table_properties(spark, properties)
        ),
        commit=commit_options(spark, None),
        known=command.CatalogTable(f"{spark_name(SESSION_CATALOG)}.{name}", schema, partition_columns, files),
    )


def _below(table: OtherTable, file: str) -> str:
    """Returns the path of a file relative to the table's folder: `file:///w/t/p=1/a.parquet` becomes
    `p=1/a.parquet`."""
    root = _LOCAL.sub("/", decoded_path(str(table.location))).rstrip("/") + "/"
    path = _LOCAL.sub("/", file)
    if not path.startswith(root):
        raise PathOutsideTableError(
            "a partition of the table has its own place",
            where=".".join(table.parts),
            found=path,
            expected=root,
        )
    return path.removeprefix(root)


def _quoted(table: OtherTable) -> str:
    return ".".join(map(spark_name, table.parts))


def schema_of(given: Any) -> Any:
    """Converts partition columns as a StructType of PySpark to a Schema; text stays as it is."""
    return Schema.from_json(given.json()) if hasattr(given, "json") else given
