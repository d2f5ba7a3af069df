"""SHOW COLUMNS, PARTITIONS, TBLPROPERTIES and CREATE TABLE, and COMMENT ON, with delta-spark's columns."""

from __future__ import annotations

import pyarrow as pa

from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan.literal import lit
from deltaic.protocol.properties import REGISTRY, Status
from deltaic.protocol.schema import Schema
from deltaic.rows.rows import Rows
from deltaic.sql.create import read_property_name
from deltaic.sql.insert import fixed_values, partition_value
from deltaic.sql.names import Tables, read_name
from deltaic.sql.results import nothing, rows_of
from deltaic.sql.tokens import Reader
from deltaic.sql_text import quote_name
from deltaic.table import DeltaTable


def show(reader: Reader, tables: Tables) -> Rows:
    """SHOW COLUMNS IN | FROM name · SHOW PARTITIONS name [PARTITION (column = value, …)] · SHOW TBLPROPERTIES
    name [(key)] · SHOW CREATE TABLE name"""
    reader.expect("SHOW")
    if reader.accept("COLUMNS"):
        if not reader.accept("IN"):
            reader.expect("FROM")
        return _columns(_named(reader, tables))
    if reader.accept("PARTITIONS"):
        return _partitions(reader, tables)
    if reader.accept("CREATE", "TABLE"):
        name = read_name(reader)
        if reader.accept("AS", "SERDE"):
            raise UnsupportedFeatureError(
                "AS SERDE of a Delta table is not supported",
                found=str(name),
                expected="SHOW CREATE TABLE name",
            )
        reader.end()
        table = tables.table(name)
        shown, location = tables.created_as(name, table)
        return rows_of(
            pa.table({"createtab_stmt": pa.array([_statement(table, shown, location)], pa.string())})
        )
    if not reader.accept("TBLPROPERTIES"):
        reader.fail("COLUMNS, PARTITIONS, TBLPROPERTIES or CREATE TABLE")
    name = read_name(reader)
    (key,) = reader.bracketed(lambda: read_property_name(reader)) if reader.at("(") else (None,)
    reader.end()
    table = tables.table(name)
    return _properties(table, key, tables.created_as(name, table)[0])


def comment(reader: Reader, tables: Tables) -> Rows:
    """COMMENT ON TABLE name IS 'text' | NULL"""
    reader.expect("COMMENT", "ON", "TABLE")
    name = read_name(reader)
    reader.expect("IS")
    text = "" if reader.accept("NULL") else reader.string()
    reader.end()
    tables.table(name).alter.set_properties({"comment": text})  # the operation of delta-spark
    return nothing()


def shown_properties(table: DeltaTable) -> dict[str, str]:
    """Returns the table's properties, and those of its protocol (`delta.minReaderVersion`,
    `delta.feature.…`), sorted by name."""
    protocol = table.protocol
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    properties = {
        **table.metadata.configuration,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{feature}": "supported" for feature in features},
    }
    return dict(sorted(properties.items()))


def own_properties(table: DeltaTable) -> dict[str, str]:
    """Returns the `shown_properties` that CREATE TABLE can set. Properties that only features write are left
    out."""
    return {name: text for name, text in shown_properties(table).items() if not _is_noted(name)}


def _is_noted(name: str) -> bool:
    known = REGISTRY.get(name)
    return name == "delta.feature.clustering" or (known is not None and known.status is Status.INTERNAL)


def _statement(table: DeltaTable, name: str, location: str | None) -> str:
    """Returns the CREATE TABLE statement for a table with this definition, with the clauses in Spark's
    order."""
    metadata = table.metadata
    columns = ",\n  ".join(Schema([field]).to_ddl() for field in table.schema)
    lines = [f"CREATE TABLE {name} (\n  {columns})" if columns else f"CREATE TABLE {name}", "USING delta"]
    if metadata.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quote_name, metadata.partition_columns))})")
    if clusters := table.detail().clustering_columns:
        lines.append(f"CLUSTER BY ({', '.join(clusters)})")
    if metadata.description:
        lines.append(f"COMMENT {lit(metadata.description)}")
    if location is not None:
        lines.append(f"LOCATION {lit(location)}")
    if properties := own_properties(table):
        lines.append(
            "TBLPROPERTIES (\n  {})".format(
                ",\n  ".join(f"{lit(key)} = {lit(text)}" for key, text in properties.items())
            )
        )
    return "\n".join(lines) + "\n"


def _named(reader: Reader, tables: Tables) -> DeltaTable:
    name = read_name(reader)
    reader.end()
    return tables.table(name)


def _columns(table: DeltaTable) -> Rows:
    return rows_of(pa.table({"col_name": pa.array(table.schema.names, pa.string())}))


def _partitions(reader: Reader, tables: Tables) -> Rows:
    name = read_name(reader)
    given = reader.bracketed(lambda: partition_value(reader)) if reader.accept("PARTITION") else []
    reader.end()
    table = tables.table(name)
    names = table.metadata.partition_columns
    if not names:
        raise InvalidArgumentError(
            "the table is not partitioned, so it has no partitions to show", where=table.location
        )
    known = {each.lower() for each in names}
    if others := [column for column, _ in given if column.lower() not in known]:
        raise SchemaMismatchError(
            "SHOW PARTITIONS takes only partition columns",
            found=f"[{', '.join(others)}]",
            expected=", ".join(names),
        )
    where = " AND ".join(
        f"{quote_name(column)} <=> {value}" for column, value in fixed_values(given, table).items()
    )
    partitions = table.partitions(where=where or None).to_arrow()
    return rows_of(partitions.select(list(range(len(names)))))


def _properties(table: DeltaTable, key: str | None, name: str) -> Rows:
    """`name`: of the table, in the message about a property that it does not have."""
    shown = shown_properties(table)
    if key is not None:
        shown = {key: shown.get(key, f"Table {name} does not have property: {key}")}
    return rows_of(
        pa.table({"key": pa.array(shown.keys(), pa.string()), "value": pa.array(shown.values(), pa.string())})
    )
