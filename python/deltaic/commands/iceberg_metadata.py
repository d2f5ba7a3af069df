"""Reads an Iceberg table's metadata with PyIceberg: its columns, its partition columns, its live data files
and its deleted rows.

Source: the Iceberg table specification, versions 1 to 3. PyIceberg parses JSON and Avro; all bytes come
through the table's own store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deltaic import _core
from deltaic.commands.iceberg_columns import all_fields, delta_schema
from deltaic.commands.iceberg_files import DataFile, LiveFiles, live_files
from deltaic.commands.iceberg_footers import NAME_MAPPING, file_columns, missing_fields, with_names_of_files
from deltaic.commands.iceberg_io import Paths, StoreFile, StoreIO, reading
from deltaic.commands.iceberg_partitions import (
    GENERATED,
    PartitionColumn,
    partition_columns,
    path_to,
    written_without,
)
from deltaic.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from deltaic.protocol.column_mapping import PHYSICAL_NAME
from deltaic.protocol.schema import Field, Schema, path_text

_METADATA_FILE = re.compile(
    r"(?:v(?P<hadoop>[0-9]+)|(?P<catalog>[0-9]+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?"
)


@dataclass(frozen=True)
class IcebergTable:
    """The current snapshot of an Iceberg table, as a Delta table sees it.

    `schema`: the columns, with Iceberg's ids as the ids of column mapping.
    `mapping_mode`: the mode of column mapping by which the data files can be read.
    `last_column_id`: the largest id that the table has ever given to a column.
    `times`: ms since 1970 of the snapshots that the metadata still has, by id.
    """

    schema: Schema
    mapping_mode: str
    partitions: tuple[PartitionColumn, ...]
    last_column_id: int
    properties: Mapping[str, str]
    times: Mapping[int, int]
    files: LiveFiles

    def added_at(self, file: DataFile) -> int:
        """Returns the time of the snapshot that added a file, or that of the oldest known snapshot if it has
        expired."""
        return self.times.get(file.snapshot_id, min(self.times.values(), default=0))


def read_iceberg(store: _core.Store, source: Any = None) -> tuple[IcebergTable, Paths]:
    """Returns the current snapshot of the Iceberg table in the store, and the table's paths.

    `source`: a table of PyIceberg, the path of a metadata file relative to the store, or None for the newest
        metadata file in `metadata/`.
    Raises ModuleNotFoundError without PyIceberg; TableNotFoundError; InvalidArgumentError (two newest
    metadata files); ProtocolError (metadata that cannot be read); UnsupportedFeatureError names what Delta or
    this release does not have; PathOutsideTableError.
    """
    _require_pyiceberg()
    metadata = (
        source.metadata
        if hasattr(source, "metadata")
        else _read_metadata(store, source or newest_metadata(store))
    )
    paths = Paths(store, metadata.location)
    return _table(store, paths, metadata), paths


def newest_metadata(store: _core.Store) -> str:
    """Returns the path of the metadata file with the largest version, relative to the store. Raises
    TableNotFoundError if there is none, InvalidArgumentError if two have that version."""
    found: dict[int, list[str]] = {}
    for path, _, _ in store.entries("metadata"):
        if match := _METADATA_FILE.fullmatch(path.rpartition("/")[2]):
            found.setdefault(int(match["hadoop"] or match["catalog"]), []).append(path)
    if not found:
        raise TableNotFoundError(
            "no Iceberg table is there", where=store.location, expected="metadata/*.metadata.json"
        )
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
        message = (
            "Iceberg metadata is read by PyIceberg, which is not installed: pip install 'deltaic[iceberg]'"
        )
        raise ModuleNotFoundError(message, name="pyiceberg") from None


def _read_metadata(store: _core.Store, path: str) -> Any:
    from pyiceberg.serializers import FromInputFile

    with reading(path):
        return FromInputFile.table_metadata(StoreFile(store, path, path))


def _table(store: _core.Store, paths: Paths, metadata: Any) -> IcebergTable:
    if getattr(metadata, "encryption_keys", None):
        raise UnsupportedFeatureError(
            "an encrypted Iceberg table cannot be converted", where=metadata.location
        )
    schema, snapshot = delta_schema(metadata), metadata.current_snapshot()
    files = (
        live_files(StoreIO(store, paths), snapshot.manifest_list, metadata.specs())
        if snapshot is not None
        else LiveFiles()
    )
    partitions = tuple(partition_columns(metadata, schema, files.data))
    _check_identity_columns(store, paths, metadata, partitions, files.data)
    schema, mapping_mode = _mapped(store, paths, metadata, schema, partitions, files.data)
    return IcebergTable(
        Schema([*schema, *_generated(schema, partitions)]),
        mapping_mode,
        partitions,
        metadata.last_column_id,
        dict(metadata.properties),
        {each.snapshot_id: each.timestamp_ms for each in metadata.snapshots},
        files,
    )


def _generated(schema: Schema, partitions: tuple[PartitionColumn, ...]) -> list[Field]:
    """Returns the generated partition columns. The physical name of one is the name of its partition field,
    so that two conversions of a table agree, unless a column of the files has that name: then it gets a new
    one."""
    used = {str(item.metadata[PHYSICAL_NAME]).lower() for item in schema}
    generated = (each.field for each in partitions if GENERATED in each.field.metadata)
    return [
        (
            item.with_(metadata={key: value for key, value in item.metadata.items() if key != PHYSICAL_NAME})
            if str(item.metadata[PHYSICAL_NAME]).lower() in used
            else item
        )
        for item in generated
    ]


def _check_identity_columns(
    store: _core.Store,
    paths: Paths,
    metadata: Any,
    partitions: tuple[PartitionColumn, ...],
    files: list[DataFile],
) -> None:
    """Raises UnsupportedFeatureError for a data file without a column whose value only its partition has, if
    the Delta table is not partitioned by that column."""
    fields = metadata.schema().fields
    sources = {
        item.source_id
        for spec in metadata.specs().values()
        for item in spec.fields
        if str(item.transform) == "identity"
    }
    for source_id in sorted(sources - _identity_ids(partitions)):
        source = path_to(fields, source_id)
        for found in file_columns(
            store,
            paths,
            written_without(metadata, source_id, files) if source else (),
            _name_mapping(metadata),
        ):
            if any(
                path == source[: len(path)] for path, _ in missing_fields(metadata.schema(), found.columns)
            ):
                raise UnsupportedFeatureError(
                    "a data file lacks a column whose value only its partition has, and the Delta table"
                    " cannot be partitioned by it",
                    where=f"{found.path}, column {path_text(source)}",
                    expected="an Iceberg table whose data files were rewritten",
                )


def _mapped(
    store: _core.Store,
    paths: Paths,
    metadata: Any,
    schema: Schema,
    partitions: tuple[PartitionColumn, ...],
    files: list[DataFile],
) -> tuple[Schema, str]:
    """Returns the schema and the mode of column mapping by which a Delta table finds its columns in these
    data files."""
    defaults = {
        item.field_id for item in all_fields(metadata.schema()) if item.initial_default is not None
    } - _identity_ids(partitions)
    if not defaults and _name_mapping(metadata) is None:
        return schema, "id"
    columns = file_columns(store, paths, files, _name_mapping(metadata))
    for found in columns:
        for path, item in missing_fields(metadata.schema(), found.columns):
            if item.field_id in defaults:
                raise UnsupportedFeatureError(
                    "a data file lacks a column that has an initial-default: Delta readers read null in it",
                    where=f"{found.path}, column {path_text(path)}",
                    found=repr(item.initial_default),
                    expected="an Iceberg table whose data files were rewritten",
                )
    return (
        (schema, "id")
        if all(found.has_ids for found in columns)
        else (with_names_of_files(schema, columns), "name")
    )


def _identity_ids(partitions: tuple[PartitionColumn, ...]) -> set[int]:
    return {each.source_id for each in partitions if each.transform == "identity"}


def _name_mapping(metadata: Any) -> str | None:
    text: str | None = metadata.properties.get(NAME_MAPPING)
    return text
