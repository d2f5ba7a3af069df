"""The live files of an Iceberg snapshot, by its manifests: data files, files of position deletes, deletion
vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deltaic import _core
from deltaic.commands.iceberg_io import reading
from deltaic.errors import ProtocolError, UnsupportedFeatureError


@dataclass(frozen=True)
class DataFile:
    """A live Parquet file of data, or a file of equality deletes.

    `path`: as Iceberg's metadata spells it. `sequence_number`: of its data. `snapshot_id`: of the snapshot
    that added it. `spec_id`: of the partition spec that it was written with. `entry`: PyIceberg's record
    of the file, with its partition values and bounds.
    """

    path: str
    size: int
    num_records: int
    sequence_number: int
    snapshot_id: int
    spec_id: int
    entry: Any


@dataclass(frozen=True)
class DeleteFile:
    """A Parquet file of position deletes."""

    path: str
    size: int
    sequence_number: int


@dataclass(frozen=True)
class Vector:
    """A deletion vector: `size` bytes at `offset` of the Puffin file `path`, framed by length and
    checksum."""

    path: str
    offset: int
    size: int
    data_file: str
    sequence_number: int


@dataclass(frozen=True)
class LiveFiles:
    """The live files of a snapshot."""

    data: list[DataFile] = field(default_factory=list)
    deletes: list[DeleteFile] = field(default_factory=list)
    vectors: list[Vector] = field(default_factory=list)


def live_files(io: Any, manifest_list: str, specs: Mapping[int, Any]) -> LiveFiles:
    """Returns the live files of the snapshot with this manifest list. `specs`: the table's partition specs by
    id."""
    from pyiceberg.manifest import DataFileContent, FileFormat, read_manifest_list

    files = LiveFiles()
    equality: list[DataFile] = []
    with reading(manifest_list):
        manifests = list(read_manifest_list(io.new_input(manifest_list)))
    for manifest in manifests:
        with reading(manifest.manifest_path):
            entries = _entries(io, manifest)
        for snapshot_id, sequence_number, found in entries:
            path = found.file_path
            if found.key_metadata is not None:
                raise UnsupportedFeatureError("an encrypted file cannot be converted", where=path)
            size, rows = found.file_size_in_bytes, found.record_count
            file = DataFile(path, size, rows, sequence_number, snapshot_id, manifest.partition_spec_id, found)
            if found.content == DataFileContent.DATA:
                _check_format(found, path, FileFormat.PARQUET)
                files.data.append(file)
            elif found.content == DataFileContent.EQUALITY_DELETES:
                equality.append(file)
            elif found.file_format == FileFormat.PUFFIN:
                referenced, offset, size = found[_REFERENCED], found[_OFFSET], found[_SIZE]
                if referenced is None or offset is None or size is None:
                    raise ProtocolError("a deletion vector without its data file, offset or size", where=path)
                files.vectors.append(Vector(path, offset, size, referenced, sequence_number))
            else:
                _check_format(found, path, FileFormat.PARQUET)
                files.deletes.append(DeleteFile(path, found.file_size_in_bytes, sequence_number))
    for deletes in equality:
        if any(_applies(deletes, file, specs) for file in files.data):
            raise UnsupportedFeatureError(
                "equality deletes cannot be converted: they name values, and a Delta table's deletion vectors"
                " name rows",
                where=deletes.path,
                expected=(
                    "an Iceberg table whose data files were rewritten, so that no equality deletes apply"
                ),
            )
    return files


def _applies(deletes: DataFile, file: DataFile, specs: Mapping[int, Any]) -> bool:
    """True if a file of equality deletes applies to a data file: an older one of the same partition, or of
    any if the deletes have none."""
    if file.sequence_number >= deletes.sequence_number:
        return False
    if all(str(item.transform) == "void" for item in specs[deletes.spec_id].fields):
        return True
    return deletes.spec_id == file.spec_id and bool(deletes.entry.partition == file.entry.partition)


# Positions in PyIceberg's record of a data file of version 3.
_REFERENCED, _OFFSET, _SIZE = 17, 18, 19


def _entries(io: Any, manifest: Any) -> list[tuple[int, int, Any]]:
    """Returns (id of the snapshot that added it, sequence number, PyIceberg's record) of each live file of a
    manifest. PyIceberg's own method does not read the fields of version 3."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    types, enums = (
        {-1: ManifestEntry, 2: DataFile},
        {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    )
    with AvroFile(
        io.new_input(manifest.manifest_path), MANIFEST_ENTRY_SCHEMAS[3], read_types=types, read_enums=enums
    ) as entries:
        live = [entry for entry in entries if entry.status != ManifestEntryStatus.DELETED]
    snapshot_id, number = manifest.added_snapshot_id, manifest.sequence_number or 0  # what entries inherit
    return [
        (
            snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
            number if entry.sequence_number is None else entry.sequence_number,
            entry.data_file,
        )
        for entry in live
    ]


def _check_format(found: Any, path: str, expected: Any) -> None:
    if found.file_format != expected:
        raise UnsupportedFeatureError(
            "only Parquet files can be files of a Delta table",
            where=path,
            found=str(found.file_format.value),
            expected="PARQUET",
        )


def vector_bytes(data: bytes, vector: Vector) -> bytes:
    """Returns the bitmap of a vector of version 3, which has the bytes of PROTOCOL.md's vectors. `data`: the
    whole Puffin file, which has the vector as length (4 bytes, big-endian), bitmap, CRC-32 (4 bytes)."""
    framed = data[vector.offset : vector.offset + vector.size]
    bitmap = framed[4:-4]
    if len(framed) != vector.size or vector.size < 12 or int.from_bytes(framed[:4], "big") != len(bitmap):
        raise ProtocolError(
            "a deletion vector's length does not agree with the manifest",
            where=f"{vector.path} at {vector.offset}",
        )
    if int.from_bytes(framed[-4:], "big") != _core.crc32(bitmap):
        raise ProtocolError(
            "a deletion vector's checksum is wrong", where=f"{vector.path} at {vector.offset}"
        )
    return bitmap
