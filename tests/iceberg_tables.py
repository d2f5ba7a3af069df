"""Makes Iceberg tables for tests: PyIceberg writes versions 1 and 2; this module writes deletes, and version
3, which PyIceberg only reads."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.table import StaticTable, Table
from pyiceberg.typedef import Record

from deltaic import _core

PATH_ID, POSITION_ID = 2147483546, 2147483545


def catalog(folder: Path) -> SqlCatalog:
    """Returns a catalog whose tables are in folder/n/<name>."""
    result = SqlCatalog("tests", uri="sqlite:///:memory:", warehouse=folder.as_uri())
    result.create_namespace_if_not_exists("n")
    return result


def folder_of(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def rows(table: Table, columns: Sequence[str] = ("*",)) -> list[dict[str, Any]]:
    """Returns the rows that PyIceberg reads."""
    return sorted(table.scan(selected_fields=tuple(columns)).to_arrow().to_pylist(), key=repr)


@dataclass
class Delete:
    """A file of deletes. `positions`: rows by data file. `kind`: "positions" (Parquet), "vector" (Puffin, one
    blob for each data file) or "equality". `sequence_number`: None for that of the new snapshot. `partition`:
    the value of the only partition field, None for that of the data file."""

    positions: Mapping[str, Sequence[int]]
    kind: str = "positions"
    sequence_number: int | None = None
    file_format: str = "PARQUET"
    partition: int | None = None


def with_deletes(table: Table, deletes: Sequence[Delete], *, version: int = 2) -> Table:
    """Adds a snapshot with these deletes to the table: a new metadata file, which is in no catalog."""
    folder, document = (
        folder_of(table),
        json.loads(Path(table.metadata_location.removeprefix("file://")).read_text()),
    )
    sequence_number = document.get("last-sequence-number", 0) + 1
    snapshot_id, io = 1000 + sequence_number, table.io
    spec = table.spec()
    data_file = data_file_with_partition(spec.partition_type(table.schema()), 3)
    entries = []
    for at, delete in enumerate(deletes):
        by_path = {entry.file_path: entry for entry in _data_files(table)}
        for path, size, blobs in _written(folder / "data" / f"deletes-{sequence_number}-{at}", delete):
            for referenced, offset, length, count in blobs:
                source = by_path.get(referenced or "") or next(iter(by_path.values()))
                bounds = {PATH_ID: referenced.encode()} if referenced else None
                found = DataFile.from_args(
                    _table_format_version=3,
                    content=DataFileContent.EQUALITY_DELETES
                    if delete.kind == "equality"
                    else DataFileContent.POSITION_DELETES,
                    file_path=path.as_uri(),
                    file_format=FileFormat.PUFFIN
                    if delete.kind == "vector"
                    else FileFormat[delete.file_format],
                    partition=source.partition if delete.partition is None else Record(delete.partition),
                    record_count=count,
                    file_size_in_bytes=size,
                    lower_bounds=bounds,
                    upper_bounds=bounds,
                    equality_ids=[1] if delete.kind == "equality" else None,
                    referenced_data_file=referenced,
                    content_offset=offset,
                    content_size_in_bytes=length,
                )
                entries.append(
                    ManifestEntry.from_args(
                        _table_format_version=3,
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=snapshot_id,
                        sequence_number=sequence_number
                        if delete.sequence_number is None
                        else delete.sequence_number,
                        file_sequence_number=sequence_number,
                        data_file=found,
                    )
                )
    manifest = folder / "metadata" / f"deletes-{sequence_number}.avro"
    meta = {
        "schema": table.schema().model_dump_json(),
        "partition-spec": "[]",
        "partition-spec-id": str(spec.spec_id),
    }
    schema = manifest_entry_schema_with_data_file(3, data_file)
    with AvroOutputFile(
        io.new_output(manifest.as_uri()),
        schema,
        "manifest_entry",
        record_schema=schema,
        metadata={**meta, "content": "deletes"},
    ) as out:
        out.write_block(entries)
    added = ManifestFile.from_args(
        manifest_path=manifest.as_uri(),
        manifest_length=manifest.stat().st_size,
        partition_spec_id=spec.spec_id,
        content=1,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number,
        added_snapshot_id=snapshot_id,
        added_files_count=len(entries),
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
    )
    before = table.current_snapshot()
    manifests = [*(before.manifests(io) if before else []), added]
    listing = folder / "metadata" / f"snap-{sequence_number}.avro"
    with AvroOutputFile(
        io.new_output(listing.as_uri()),
        MANIFEST_LIST_FILE_SCHEMAS[2],
        "manifest_file",
        metadata={"format-version": str(version)},
    ) as out:
        out.write_block(manifests)
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence_number,
        "timestamp-ms": document["last-updated-ms"] + 1,
        "manifest-list": listing.as_uri(),
        "summary": {"operation": "overwrite"},
        "schema-id": document["current-schema-id"],
    }
    if version == 3:
        document |= {"format-version": 3, "next-row-id": 1_000_000}
        snapshot |= {"first-row-id": 0, "added-rows": 0}
    document |= {
        "last-sequence-number": sequence_number,
        "current-snapshot-id": snapshot_id,
        "snapshots": [*document.get("snapshots", []), snapshot],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
    }
    return edited(table, document)


def edited(table: Table, changes: Mapping[str, Any], *, load: bool = True) -> Table:
    """Returns the table with another metadata file, in which these fields of its JSON have these values.
    Without `load`, the returned table is the one before."""
    path = Path(table.metadata_location.removeprefix("file://"))
    document = {**json.loads(path.read_text()), **changes}
    number = int(path.name.partition("-")[0]) + 1
    new = path.with_name(f"{number:05d}-edited.metadata.json")
    new.write_text(json.dumps(document))
    return StaticTable.from_metadata(new.as_uri()) if load else table


def without_ids(schema: pa.Schema) -> pa.Schema:
    """Returns the schema as a writer makes it that does not support Iceberg."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([(item.name, plain(item.type)) for item in kind])
        if pa.types.is_map(kind):
            return pa.map_(plain(kind.key_type), plain(kind.item_type))
        return pa.list_(plain(kind.value_type)) if isinstance(kind, (pa.ListType, pa.LargeListType)) else kind

    return pa.schema([(item.name, plain(item.type)) for item in schema])


def with_foreign_file(table: Table, data: list[dict[str, Any]], name: str = "foreign.parquet") -> None:
    """Adds a file without field ids; PyIceberg sets the name mapping of the table then."""
    path = folder_of(table) / "data" / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(data, without_ids(table.schema().as_arrow())), path)
    table.add_files([path.as_uri()])


def _data_files(table: Table) -> list[DataFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    return [each for each in found if each.content == DataFileContent.DATA]


Blob = tuple["str | None", "int | None", "int | None", int]


def _written(path: Path, delete: Delete) -> list[tuple[Path, int, list[Blob]]]:
    """(path, size, (referenced data file, offset, length, rows)) of the files that hold a delete."""
    path.parent.mkdir(exist_ok=True)
    if delete.kind == "vector":
        path = path.with_suffix(".puffin")
        data, blobs, footer = b"PFA1", list[Blob](), []
        for referenced, positions in delete.positions.items():
            bitmap = _core.DeletionVector.from_rows(positions).to_bytes()
            framed = struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
            blobs.append((referenced, len(data), len(framed), len(positions)))
            properties = {"referenced-data-file": referenced, "cardinality": str(len(positions))}
            blob = {
                "type": "deletion-vector-v1",
                "fields": [POSITION_ID],
                "snapshot-id": -1,
                "sequence-number": -1,
            }
            footer.append({**blob, "offset": len(data), "length": len(framed), "properties": properties})
            data += framed
        payload = json.dumps({"blobs": footer}).encode()
        path.write_bytes(data + b"PFA1" + payload + struct.pack("<I", len(payload)) + bytes(4) + b"PFA1")
        return [(path, path.stat().st_size, blobs)]
    path = path.with_suffix(".parquet")
    pairs = [(name, row) for name, positions in delete.positions.items() for row in positions]
    fields = [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION_ID)}),
    ]
    pq.write_table(pa.table(list(zip(*pairs, strict=True)), pa.schema(fields)), path)
    return [(path, path.stat().st_size, [(None, None, None, len(pairs))])]
