"""Reads an Iceberg table's metadata with PyIceberg: its columns, its partition columns, its live data files and its deleted rows.

Source: the Iceberg table specification, versions 1 to 3. PyIceberg parses JSON and Avro; all bytes come through the table's own store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deltaic import _core
from deltaic.commands.iceberg_columns import delta_schema
from deltaic.commands.iceberg_files import LiveFiles, live_files
from deltaic.commands.iceberg_io import Paths, StoreFile, StoreIO, reading
from deltaic.commands.iceberg_partitions import GENERATED, PartitionColumn, partition_columns, partition_values
from deltaic.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema

_METADATA_FILE = re.compile(r"(?:v(?P<hadoop>[0-9]+)|(?P<catalog>[0-9]+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_NAME_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True)
class IcebergTable:
    """The current snapshot of an Iceberg table, as a Delta table sees it. `schema`: with Iceberg's ids as the ids of column mapping.
    `last_column_id`: the largest id that the table has ever given to a column. `timestamp`: of the snapshot, ms since 1970."""

    schema: Schema
    partitions: tuple[PartitionColumn, ...]
    last_column_id: int
    properties: Mapping[str, str]
    timestamp: int
    files: LiveFiles


def read_iceberg(store: _core.Store, source: Any = None) -> tuple[IcebergTable, Paths]:
    """The current snapshot of the Iceberg table in the store.

    `source`: a table of PyIceberg, the path of a metadata file relative to the store, or None for the newest metadata file in `metadata/`.
    Raises ModuleNotFoundError without PyIceberg; TableNotFoundError; InvalidArgumentError (two newest metadata files); ProtocolError
    (metadata that cannot be read); UnsupportedFeatureError names what Delta or this release does not have; PathOutsideTableError.
    """
    _require_pyiceberg()
    metadata = source.metadata if hasattr(source, "metadata") else _read_metadata(store, source or newest_metadata(store))
    paths = Paths(store, metadata.location)
    return _table(store, paths, metadata), paths


def newest_metadata(store: _core.Store) -> str:
    """The path of the metadata file with the largest version, relative to the store."""
    found: dict[int, list[str]] = {}
    for path, _, _ in store.entries("metadata"):
        if match := _METADATA_FILE.fullmatch(path.rpartition("/")[2]):
            found.setdefault(int(match["hadoop"] or match["catalog"]), []).append(path)
    if not found:
        raise TableNotFoundError("no Iceberg table is there", where=store.location, expected="metadata/*.metadata.json")
    newest = sorted(found[max(found)])
    if len(newest) > 1:
        raise InvalidArgumentError(
            "the folder does not say which metadata file is the newest: only the table's catalog knows",
            where=store.location,
            found=" and ".join(newest),
            expected="the path of one of them, or the table as PyIceberg's catalog loads it",
        )
    return newest[0]


def _require_pyiceberg() -> None:
    try:
        import pyiceberg  # noqa: F401
    except ModuleNotFoundError:
        message = "Iceberg metadata is read by PyIceberg, which is not installed: pip install 'deltaic[iceberg]'"
        raise ModuleNotFoundError(message, name="pyiceberg") from None


def _read_metadata(store: _core.Store, path: str) -> Any:
    from pyiceberg.serializers import FromInputFile

    with reading(path):
        return FromInputFile.table_metadata(StoreFile(store, path, path))


def _table(store: _core.Store, paths: Paths, metadata: Any) -> IcebergTable:
    _check_properties(metadata)
    schema, snapshot = delta_schema(metadata), metadata.current_snapshot()
    partitions = tuple(partition_columns(metadata, schema))
    files = LiveFiles()
    if snapshot is not None:
        files = live_files(StoreIO(store, paths), snapshot.manifest_list, partition_values(metadata, partitions))
    return IcebergTable(
        Schema([*schema, *(each.field for each in partitions if GENERATED in each.field.metadata)]),
        partitions,
        metadata.last_column_id,
        dict(metadata.properties),
        snapshot.timestamp_ms if snapshot is not None else metadata.last_updated_ms,
        files,
    )


def _check_properties(metadata: Any) -> None:
    if _NAME_MAPPING in metadata.properties:
        raise UnsupportedFeatureError(
            "data files whose columns are found by a name mapping cannot be converted: a Delta table finds these columns by their ids",
            where=f"table property {_NAME_MAPPING}",
            expected="a table whose data files were written by Iceberg",
        )
    if getattr(metadata, "encryption_keys", None):
        raise UnsupportedFeatureError("an encrypted Iceberg table cannot be converted", where=metadata.location)
