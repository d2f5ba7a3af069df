"""OPTIMIZE, REORG, VACUUM, RESTORE, FSCK, GENERATE and CONVERT: the statements for the maintenance of a
table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from deltaic.commands.vacuum import hours
from deltaic.errors import InvalidArgumentError
from deltaic.log import references
from deltaic.protocol.schema import path_text
from deltaic.rows.rows import Rows
from deltaic.sql.names import Name, Tables, read_moment, read_name
from deltaic.sql.optimized import optimized, optimized_in_order, z_ordered
from deltaic.sql.results import counts, nothing, rows_of
from deltaic.sql.tokens import Reader, without_qualifiers
from deltaic.table import DeltaTable

_VACUUM_CLAUSES = {"LITE": "LITE/FULL", "FULL": "LITE/FULL", "DRY": "DRY RUN", "USING": "INVENTORY"}
"""First word of a clause of VACUUM -> delta-spark's name of the clause, if it is another one."""


def optimize(reader: Reader, tables: Tables) -> Rows:
    """OPTIMIZE name [FULL] [WHERE condition on partitions] [ZORDER BY (columns)] -> path, metrics"""
    reader.expect("OPTIMIZE")
    name = read_name(reader, path=True)
    full = reader.accept("FULL")
    where = None
    if reader.accept("WHERE"):
        where = without_qualifiers(reader.slice("ZORDER", expected="a condition"), tables.qualifiers(name))
    columns: list[str] | None = None
    if reader.accept("ZORDER", "BY"):
        columns = [
            path_text(column)
            for column in (
                reader.bracketed(reader.dotted) if reader.at("(") else reader.listed(reader.dotted)
            )
        ]
    reader.end()
    table = tables.table(name)
    if full:
        return optimized(table, lambda: table.optimize.cluster(full=True), "clustering")
    if columns is not None:
        return z_ordered(table, columns, where)
    return optimized_in_order(table, where)


def reorg(reader: Reader, tables: Tables) -> Rows:
    """REORG TABLE name [WHERE condition on partitions] APPLY (PURGE) | APPLY (UPGRADE UNIFORM
    (ICEBERG_COMPAT_VERSION = n)) -> path, metrics"""
    reader.expect("REORG", "TABLE")
    name = read_name(reader)
    where = None
    if reader.accept("WHERE"):
        where = without_qualifiers(reader.slice("APPLY", expected="a condition"), tables.qualifiers(name))
    reader.expect("APPLY", "(")
    if where is None and reader.accept("UPGRADE", "UNIFORM"):
        reader.expect("(", "ICEBERG_COMPAT_VERSION", "=")
        version = reader.integer()
        reader.expect(")", ")")
        reader.end()
        table = tables.table(name)
        return optimized(table, lambda: _upgraded(table, version))
    reader.expect("PURGE", ")")
    reader.end()
    table = tables.table(name)
    return optimized(table, lambda: table.optimize.purge(where))


def _upgraded(table: DeltaTable, version: int) -> dict[str, int]:
    """Runs UPGRADE UNIFORM and returns its metrics; it rewrites all files or none."""
    table.refresh()
    before, started = table._snapshot.core, table.version
    table.alter.upgrade_uniform(version)
    after = table._snapshot.core
    names = ("num_files_removed", "bytes_removed", "num_files_added", "bytes_added")
    counts = (before.file_count, before.size_in_bytes, after.file_count, after.size_in_bytes)
    done = dict(zip(names, counts if table.version != started else (0,) * 4, strict=True))
    vectors = {"num_deletion_vectors_removed": 0, "num_deletion_vector_rows_removed": 0}
    if table.version != started:
        rows, count, _ = before.deleted_records
        vectors = {"num_deletion_vectors_removed": count, "num_deletion_vector_rows_removed": rows}
    bins = int(table.version != started)
    layout = {"partitions_optimized": 0, "num_bins": bins, "num_batches": bins, "total_files_skipped": 0}
    return {**done, **vectors, **layout, "total_considered_files": before.file_count}


def vacuum(reader: Reader, tables: Tables) -> Rows:
    """VACUUM name and, in any order, LITE | FULL, USING INVENTORY name | (query), RETAIN n HOURS, DRY RUN ->
    path: of the table, or with DRY RUN of each file"""
    reader.expect("VACUUM")
    name = read_name(reader, path=True)
    mode: Literal["full", "lite"] | None = None
    retention: timedelta | None = None
    dry_run = False
    listed: str | Name | None = None
    seen: set[str] = set()
    while not reader.done:
        word = reader.tokens[reader.position].keyword
        clause = _VACUUM_CLAUSES.get(word, word)
        if clause in seen:
            raise InvalidArgumentError("[DUPLICATE_CLAUSES] a modifier of VACUUM comes twice", found=clause)
        seen.add(clause)
        if reader.accept("LITE"):
            mode = "lite"
        elif reader.accept("FULL"):
            mode = "full"
        elif reader.accept("RETAIN"):
            retention = hours(reader.number())
            if not reader.accept("HOURS"):
                reader.expect("HOUR")
        elif reader.accept("DRY", "RUN"):
            dry_run = True
        elif reader.accept("USING", "INVENTORY"):
            listed = reader.inside("a query") if reader.at("(") else read_name(reader, travel=True)
        else:
            reader.fail("LITE, FULL, USING INVENTORY name or (query), RETAIN n HOURS or DRY RUN")
    table = tables.table(name)
    inventory = (
        None if listed is None else tables.query(listed) if isinstance(listed, str) else tables.rows(listed)
    )
    if mode is None:
        mode = tables.vacuum_mode if listed is None else "full"
    gone = table.vacuum(
        retention=retention,
        mode=mode,
        dry_run=dry_run,
        enforce_retention=tables.enforces_retention,
        logged=tables.logs_vacuum,
        inventory=inventory,
    )
    if not dry_run:
        return rows_of(pa.table({"path": [table.location]}))
    paths = references.addresses(gone.to_arrow()["path"].combine_chunks(), table.location)
    return rows_of(pa.table({"path": paths}))


def restore(reader: Reader, tables: Tables) -> Rows:
    """RESTORE [TABLE] name [TO] VERSION AS OF number | TIMESTAMP AS OF time -> delta-spark's metrics"""
    reader.expect("RESTORE")
    reader.accept("TABLE")
    name = read_name(reader)
    reader.accept("TO")
    if reader.accept("VERSION", "AS", "OF"):
        moment = read_moment(reader, name, True)
    else:
        reader.expect("TIMESTAMP", "AS", "OF")
        moment = read_moment(reader, name, False)
    reader.end()
    return restored_rows(tables.restore(tables.table(name), moment))


def repair(reader: Reader, tables: Tables) -> Rows:
    """FSCK REPAIR TABLE name [DRY RUN] -> a row for each file that leaves the log, with Databricks'
    columns"""
    reader.expect("FSCK", "REPAIR", "TABLE")
    name = read_name(reader)
    dry_run = reader.accept("DRY", "RUN")
    reader.end()
    gone = tables.table(name).repair(dry_run=dry_run, commit=tables.commit_options()).to_arrow()
    return rows_of(
        gone.rename_columns(
            ["dataFilePath", "dataFileMissing", "deletionVectorPath", "deletionVectorFileMissing"]
        )
    )


def generate(reader: Reader, tables: Tables) -> Rows:
    """GENERATE symlink_format_manifest FOR TABLE name"""
    reader.expect("GENERATE")
    mode = reader.name()
    reader.expect("FOR", "TABLE")
    name = read_name(reader)
    reader.end()
    tables.table(name).generate(mode.lower())
    return nothing()


@dataclass(frozen=True)
class Conversion:
    """A statement CONVERT TO DELTA. `source`: the parts of a name, or of parquet.`path`. `columns`: the text
    in the brackets of PARTITIONED BY; None without it."""

    source: tuple[str, ...]
    columns: str | None
    statistics: bool


def read_conversion(reader: Reader) -> Conversion:
    """CONVERT TO DELTA name | parquet.`path` | iceberg.`path` [NO STATISTICS] [PARTITIONED BY (column type,
    ...)]"""
    reader.expect("CONVERT", "TO", "DELTA")
    source = tuple(reader.dotted())
    statistics = not reader.accept("NO", "STATISTICS")
    columns = reader.inside("columns") if reader.accept("PARTITIONED", "BY") else None
    reader.end()
    return Conversion(source, columns, statistics)


def convert(reader: Reader, tables: Tables) -> Rows:
    """CONVERT TO DELTA parquet.`path` | iceberg.`path` [NO STATISTICS] [PARTITIONED BY (column type, ...)],
    the last for Parquet alone"""
    conversion = read_conversion(reader)
    source_format, path = convertible(conversion.source)
    convert_path(
        source_format,
        path,
        conversion.columns,
        statistics=conversion.statistics,
        properties=tables.table_properties(None),
        commit=tables.commit_options(),
        storage_options=tables.storage_options,
    )
    return nothing()


def convert_path(source_format: str, path: str, partition_schema: Any, **options: Any) -> None:
    """Converts the files or the table at `path`. An existing Delta table is not changed. `options`: those of
    `DeltaTable.convert`."""
    if source_format == "parquet":
        DeltaTable.convert(path, partition_schema=partition_schema, mode="ignore", **options)
    elif partition_schema is not None:
        raise InvalidArgumentError(
            "PARTITIONED BY cannot be used for an Iceberg table, whose metadata has the partition columns",
            where=path,
            found="PARTITIONED BY",
            expected="no columns",
        )
    else:
        DeltaTable.convert_iceberg(path, mode="ignore", **options)


def convertible(parts: tuple[str, ...]) -> tuple[str, str]:
    """Returns format and path of the source of CONVERT: parquet.`path` -> ("parquet", path), iceberg.`path`
    -> ("iceberg", path)."""
    if len(parts) == 2 and parts[0].lower() in ("parquet", "iceberg") and parts[1]:
        return parts[0].lower(), parts[1]
    raise InvalidArgumentError(
        "unknown source of CONVERT", found=".".join(parts), expected="parquet.`path` or iceberg.`path`"
    )


def restored_rows(metrics: Mapping[str, int]) -> Rows:
    """Returns the result row of RESTORE from the metrics of the command."""
    return counts(**{key: metrics.get(key, 0) for key in _RESTORED})


_RESTORED = (
    "table_size_after_restore",
    "num_of_files_after_restore",
    "num_removed_files",
    "num_restored_files",
    "removed_files_size",
    "restored_files_size",
)
