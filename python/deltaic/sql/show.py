"""SHOW COLUMNS, PARTITIONS and TBLPROPERTIES, and COMMENT ON, with delta-spark's columns."""

from __future__ import annotations

import pyarrow as pa

from deltaic.errors import InvalidArgumentError
from deltaic.rows.rows import Rows
from deltaic.sql.create import read_property_name
from deltaic.sql.names import Tables, read_name
from deltaic.sql.results import nothing, rows_of
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable


def show(reader: Reader, tables: Tables) -> Rows:
    """SHOW COLUMNS IN | FROM name · SHOW PARTITIONS name · SHOW TBLPROPERTIES name [(key)]"""
    reader.expect("SHOW")
    if reader.accept("COLUMNS"):
        if not reader.accept("IN"):
            reader.expect("FROM")
        return _columns(_named(reader, tables))
    if reader.accept("PARTITIONS"):
        return _partitions(_named(reader, tables))
    if not reader.accept("TBLPROPERTIES"):
        reader.fail("COLUMNS, PARTITIONS or TBLPROPERTIES")
    name = read_name(reader)
    (key,) = reader.bracketed(lambda: read_property_name(reader)) if reader.at("(") else (None,)
    reader.end()
    return _properties(tables.table(name), key)


def comment(reader: Reader, tables: Tables) -> Rows:
    """COMMENT ON TABLE name IS 'text' | NULL"""
    reader.expect("COMMENT", "ON", "TABLE")
    name = read_name(reader)
    reader.expect("IS")
    text = "" if reader.accept("NULL") else reader.string()
    reader.end()
    tables.table(name).alter.set_description(text)
    return nothing()


def shown_properties(table: DeltaTable) -> dict[str, str]:
    """The table's properties by name, and those that say its protocol."""
    protocol = table.protocol
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    found = {
        **table.metadata.configuration,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{feature}": "supported" for feature in features},
    }
    return dict(sorted(found.items()))


def _named(reader: Reader, tables: Tables) -> DeltaTable:
    name = read_name(reader)
    reader.end()
    return tables.table(name)


def _columns(table: DeltaTable) -> Rows:
    return rows_of(pa.table({"col_name": pa.array(table.schema.names, pa.string())}))


def _partitions(table: DeltaTable) -> Rows:
    names = table.metadata.partition_columns
    if not names:
        raise InvalidArgumentError("SHOW PARTITIONS needs a partitioned table", where=table.location)
    found = table.partitions().to_arrow()
    return rows_of(found.select(list(range(len(names)))))


def _properties(table: DeltaTable, key: str | None) -> Rows:
    shown = shown_properties(table)
    if key is not None:
        shown = {key: shown.get(key, f"Table delta.`{table.location}` does not have property: {key}")}
    return rows_of(pa.table({"key": pa.array(shown.keys(), pa.string()), "value": pa.array(shown.values(), pa.string())}))
