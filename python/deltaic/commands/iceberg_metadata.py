"""Reads an Iceberg table's metadata with PyIceberg: its columns, its partition columns, its live data files and its deleted rows.

Source: the Iceberg table specification, versions 1 to 3. PyIceberg parses JSON and Avro; all bytes come through the table's own store.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from typing import Any

from deltaic import _core
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    PathOutsideTableError,
    ProtocolError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from deltaic.protocol.column_mapping import ID, PHYSICAL_NAME
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, path_text
from deltaic.protocol.widening import recorded

_METADATA_FILE = re.compile(r"(?:v(?P<hadoop>[0-9]+)|(?P<catalog>[0-9]+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_FIRST_DAY = date(1970, 1, 1)
_FIRST_MOMENT = datetime(1970, 1, 1)
_GENERATED = "delta.generationExpression"
_NAME_MAPPING = "schema.name-mapping.default"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Iceberg's primitive types that Delta has, by Iceberg's name.
_TYPES = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "binary": "binary",
    "unknown": "void",
}


@dataclass(frozen=True)
class PartitionColumn:
    """A partition column of the Delta table. `source_id` and `transform`: of the Iceberg partition field. `text`: a value of that field,
    as PyIceberg reads it, in the form that the log stores."""

    field: Field
    source_id: int
    transform: str
    text: Callable[[Any], str]


@dataclass(frozen=True)
class DataFile:
    """A live Parquet data file. `path`: as Iceberg's metadata spells it. `values`: its partition values as texts, in the order of the
    partition columns. `sequence_number`: of its data."""

    path: str
    size: int
    num_records: int
    values: tuple[str | None, ...]
    sequence_number: int


@dataclass(frozen=True)
class DeleteFile:
    """A Parquet file of position deletes."""

    path: str
    size: int
    sequence_number: int


@dataclass(frozen=True)
class Vector:
    """A deletion vector: `size` bytes at `offset` of the Puffin file `path`, framed by length and checksum."""

    path: str
    offset: int
    size: int
    data_file: str
    sequence_number: int


@dataclass(frozen=True)
class IcebergTable:
    """The current snapshot of an Iceberg table, as a Delta table sees it. `schema`: with Iceberg's ids as the ids of column mapping.
    `last_column_id`: the largest id that the table has ever given to a column. `timestamp`: of the snapshot, ms since 1970."""

    schema: Schema
    partitions: tuple[PartitionColumn, ...]
    last_column_id: int
    properties: Mapping[str, str]
    timestamp: int
    files: list[DataFile] = field(default_factory=list)
    deletes: list[DeleteFile] = field(default_factory=list)
    vectors: list[Vector] = field(default_factory=list)


class Paths:
    """Iceberg's absolute paths, as paths relative to the table's store. `location`: where the metadata says that the table is."""

    def __init__(self, store: _core.Store, location: str) -> None:
        roots = (_plain_location(root).rstrip("/") + "/" for root in (store.location, location))
        self._roots = tuple(dict.fromkeys(roots))
        self._location = store.location

    def relative(self, path: str) -> str:
        """PathOutsideTableError where the file lies elsewhere: a table is converted where its files are."""
        plain = _plain_location(path)
        for root in self._roots:
            if plain.startswith(root) and len(plain) > len(root):
                return plain[len(root) :]
        raise PathOutsideTableError(
            "the Iceberg table has a file outside its folder", where=path, found=path, expected=f"a file below {self._location}"
        )


def read_iceberg(store: _core.Store, source: Any = None) -> tuple[IcebergTable, Paths]:
    """The current snapshot of the Iceberg table in the store.

    `source`: a table of PyIceberg, the path of a metadata file relative to the store, or None for the newest metadata file in `metadata/`.
    Raises ModuleNotFoundError without PyIceberg; TableNotFoundError; InvalidArgumentError (two newest metadata files); ProtocolError
    (metadata that cannot be read); UnsupportedFeatureError names what Delta or this release does not have; PathOutsideTableError.
    """
    _require_pyiceberg()
    metadata = source.metadata if hasattr(source, "metadata") else _read_metadata(store, source or newest_metadata(store))
    paths = Paths(store, metadata.location)
    return _table(_StoreIO(store, paths), metadata), paths


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


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Errors of PyIceberg about a file of metadata become a ProtocolError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise ProtocolError("a file of the Iceberg metadata is missing", where=path, expected="the file") from None
    except (DeltaError, OSError, MemoryError):
        raise
    except Exception as error:  # PyIceberg's own errors have no base class, and damaged files raise those of Python
        reason = (str(error).splitlines() or [""])[0]
        raise ProtocolError("Iceberg metadata that cannot be read", where=path, found=reason or type(error).__name__) from error


def _read_metadata(store: _core.Store, path: str) -> Any:
    from pyiceberg.serializers import FromInputFile

    with _reading(path):
        return FromInputFile.table_metadata(_StoreFile(store, path, path))


def _table(io: Any, metadata: Any) -> IcebergTable:
    _check_properties(metadata)
    schema, snapshot = _schema(metadata), metadata.current_snapshot()
    partitions = tuple(_partitions(metadata, schema))
    table = IcebergTable(
        Schema([*schema, *(each.field for each in partitions if _GENERATED in each.field.metadata)]),
        partitions,
        metadata.last_column_id,
        dict(metadata.properties),
        snapshot.timestamp_ms if snapshot is not None else metadata.last_updated_ms,
    )
    if snapshot is not None:
        _read_files(table, io, metadata, snapshot.manifest_list)
    return table


def _check_properties(metadata: Any) -> None:
    if _NAME_MAPPING in metadata.properties:
        raise UnsupportedFeatureError(
            "data files whose columns are found by a name mapping cannot be converted: a Delta table finds these columns by their ids",
            where=f"table property {_NAME_MAPPING}",
            expected="a table whose data files were written by Iceberg",
        )
    if getattr(metadata, "encryption_keys", None):
        raise UnsupportedFeatureError("an encrypted Iceberg table cannot be converted", where=metadata.location)


# --- columns


def _schema(metadata: Any) -> Schema:
    """The current columns. Types that Iceberg promoted are noted as type changes, as older data files have the older types."""
    current = metadata.schema()
    result = Schema([_field(item, ()) for item in current.fields])
    types: dict[int, DataType] = {}
    earlier: list[Schema] = []
    for schema in metadata.schemas:
        types |= {item.field_id: item.field_type for item in _all_fields(schema)}
        before = Schema([_as_before(item, types) for item in current.fields])
        if not earlier or before != earlier[-1]:
            earlier.append(before)
    for before, after in pairwise(earlier):
        result = _with_changes(result, recorded(before, after))
    return result


def _all_fields(schema: Any) -> list[Any]:
    from pyiceberg.schema import index_by_id

    return list(index_by_id(schema).values())


def _as_before(item: Any, types: Mapping[int, Any]) -> Field:
    """A column of today with the primitive types that `types` has by id."""
    return Field(item.name, _type_as_before(item.field_id, item.field_type, types))


def _type_as_before(field_id: int, today: Any, types: Mapping[int, Any]) -> DataType:
    if today.is_struct:
        return Struct([_as_before(item, types) for item in today.fields])
    if hasattr(today, "element_id"):
        return Array(_type_as_before(today.element_id, today.element_type, types))
    if hasattr(today, "key_id"):
        key = _type_as_before(today.key_id, today.key_type, types)
        return Map(key, _type_as_before(today.value_id, today.value_type, types))
    before = types.get(field_id, today)
    return _primitive(before if before.is_primitive else today, ())


def _with_changes(schema: Schema, noted: Schema) -> Schema:
    """`schema` with the type changes of `noted`, which has the same columns, after those that it has."""
    return Schema([_changed(mine, other) for mine, other in zip(schema, noted, strict=True)])


def _changed(mine: Field, other: Field) -> Field:
    key = "delta.typeChanges"
    data_type = _type_changed(mine.type, other.type)
    changes = [*mine.metadata.get(key, []), *other.metadata.get(key, [])]
    return mine.with_(type=data_type, metadata={**mine.metadata, key: changes} if changes else mine.metadata)


def _type_changed(mine: DataType, other: DataType) -> DataType:
    if isinstance(mine, Struct) and isinstance(other, Struct):
        return Struct([_changed(one, two) for one, two in zip(mine.fields, other.fields, strict=True)])
    if isinstance(mine, Array) and isinstance(other, Array):
        return Array(_type_changed(mine.element, other.element), mine.contains_null)
    if isinstance(mine, Map) and isinstance(other, Map):
        return Map(_type_changed(mine.key, other.key), _type_changed(mine.value, other.value), mine.value_contains_null)
    return mine


def _field(item: Any, above: tuple[str, ...]) -> Field:
    path = (*above, item.name)
    for kind in ("initial", "write"):
        if (value := getattr(item, f"{kind}_default", None)) is not None:
            raise UnsupportedFeatureError(
                f"the {kind}-default of a column cannot be converted",
                where=f"column {path_text(path)}",
                found=repr(value),
                expected="no default",
            )
    metadata: dict[str, Any] = {ID: item.field_id, PHYSICAL_NAME: item.name}
    if item.doc:
        metadata["comment"] = item.doc
    return Field(item.name, _type(item.field_type, path), nullable=not item.required, metadata=metadata)


def _type(found: Any, path: tuple[str, ...]) -> DataType:
    if found.is_struct:
        return Struct([_field(item, path) for item in found.fields])
    if hasattr(found, "element_id"):
        return Array(_type(found.element_type, (*path, "element")), not found.element_required)
    if hasattr(found, "key_id"):
        key, value = _type(found.key_type, (*path, "key")), _type(found.value_type, (*path, "value"))
        return Map(key, value, not found.value_required)
    return _primitive(found, path)


def _primitive(found: Any, path: tuple[str, ...]) -> DataType:
    name = str(found)
    if match := re.fullmatch(r"decimal\(\s*([0-9]+),\s*([0-9]+)\)", name):
        return f"decimal({match[1]},{match[2]})"
    if re.fullmatch(r"fixed\[[0-9]+\]", name):
        return "binary"
    if name not in _TYPES:
        raise UnsupportedFeatureError(
            "a column has an Iceberg type that Delta does not have", where=f"column {path_text(path)}", found=name, expected=_shown_types()
        )
    return _TYPES[name]


def _shown_types() -> str:
    return ", ".join([*(name for name in _TYPES if name != "unknown"), "decimal", "fixed", "struct, list or map"])


# --- partition columns


def _partitions(metadata: Any, schema: Schema) -> Iterator[PartitionColumn]:
    """A column for each partition field of the current spec: the column itself for `identity`, for other transforms a generated one."""
    by_id = metadata.schema()
    for item in metadata.spec().fields:
        transform = str(item.transform)
        if transform == "void":
            continue
        name = by_id.find_column_name(item.source_id)
        if name is None:
            raise ProtocolError("a partition field has no column", where=f"partition field {item.name}", found=f"id {item.source_id}")
        source = by_id.find_field(item.source_id)
        where = f"partition field {item.name}: {transform}({name})"
        if transform == "identity":
            column = next((each for each in schema if each.metadata[ID] == item.source_id), None)
            if column is None:
                raise _unsupported("a Delta table cannot be partitioned by a field of a struct", where)
            yield PartitionColumn(column, item.source_id, transform, _identity(column.type, where))
        else:
            expression, data_type, text = _generated(transform, _quoted(by_id, item.source_id), source.field_type, where)
            generated = Field(item.name, data_type, nullable=not source.required, metadata={_GENERATED: expression})
            if any(each.name.lower() == item.name.lower() for each in schema):
                raise _unsupported("a partition field has the name of another column", where)
            yield PartitionColumn(generated, item.source_id, transform, text)


def _unsupported(message: str, where: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(message, where=where, expected="a table that Iceberg has partitioned in another way and rewritten")


def _quoted(schema: Any, source_id: int) -> str:
    """The column's name in an expression of Spark's SQL."""
    accessor = _path_to(schema.fields, source_id)
    return ".".join(part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in accessor)


def _path_to(fields: Any, source_id: int) -> tuple[str, ...]:
    for item in fields:
        if item.field_id == source_id:
            return (item.name,)
        if item.field_type.is_struct and (below := _path_to(item.field_type.fields, source_id)):
            return (item.name, *below)
    return ()


def _identity(data_type: DataType, where: str) -> Callable[[Any], str]:
    if data_type == "binary":
        raise _unsupported("a Delta table cannot be partitioned by binary values", where)
    if data_type == "string":
        return lambda value: _not_empty(value, where)
    return _TEXTS.get(str(data_type), str)


def _not_empty(value: str, where: str) -> str:
    if value == "":
        raise UnsupportedFeatureError(
            "a partition value is an empty text, which a Delta table reads as null", where=where, expected="texts that are not empty"
        )
    return value


def _generated(transform: str, column: str, source: Any, where: str) -> tuple[str, str, Callable[[Any], str]]:
    """The generation expression, the type and the text of values, as delta-spark converts the transform."""
    if transform == "year":
        return f"year({column})", "integer", lambda value: str(1970 + value)
    if transform == "month":
        return f"date_format({column}, 'yyyy-MM')", "string", lambda value: f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
    if transform == "day":
        return f"CAST({column} AS DATE)", "date", _date_text
    if transform == "hour":
        return f"date_format({column}, 'yyyy-MM-dd-HH')", "string", _hour_text
    if (match := re.fullmatch(r"truncate\[([0-9]+)\]", transform)) and str(source) == "string":
        return f"substring({column}, 0, {match[1]})", "string", lambda value: _not_empty(value, where)
    if match and str(source) in ("int", "long"):
        width = match[1]
        return f"{column} - ((({column} % {width}) + {width}) % {width})", _TYPES[str(source)], str
    raise _unsupported("a Delta table has no such partitioning", where)


def _date_text(value: Any) -> str:
    return (value if isinstance(value, date) else _FIRST_DAY + timedelta(days=value)).isoformat()


def _hour_text(value: int) -> str:
    moment = _FIRST_MOMENT + timedelta(hours=value)
    return f"{moment.date().isoformat()}-{moment.hour:02d}"


def _moment_text(value: int) -> str:
    return (_FIRST_MOMENT + timedelta(microseconds=value)).isoformat(" ", "microseconds")


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else repr(value)


_TEXTS: dict[str, Callable[[Any], str]] = {
    "boolean": lambda value: "true" if value else "false",
    "date": _date_text,
    "timestamp": lambda value: _moment_text(value).replace(" ", "T") + "Z",
    "timestamp_ntz": _moment_text,
    "float": _float_text,
    "double": _float_text,
}


def _partition_values(metadata: Any, partitions: tuple[PartitionColumn, ...]) -> Callable[[int, Any], tuple[str | None, ...]]:
    """A function of a spec's id and PyIceberg's record of a data file -> the file's partition values."""
    positions: dict[int, list[int]] = {}
    wanted = [(each.source_id, each.transform) for each in partitions]
    for spec_id, spec in metadata.specs().items():
        active = {(item.source_id, str(item.transform)): at for at, item in enumerate(spec.fields) if str(item.transform) != "void"}
        if active.keys() == set(wanted):
            positions[spec_id] = [active[key] for key in wanted]

    def values(spec_id: int, data_file: Any) -> tuple[str | None, ...]:
        path, record = data_file.file_path, data_file.partition
        if spec_id not in positions:
            raise UnsupportedFeatureError(
                "a data file was written with another partitioning than the table has now, which a Delta table cannot have",
                where=path,
                found=str(metadata.specs()[spec_id]) if spec_id in metadata.specs() else f"spec {spec_id}",
                expected=f"{metadata.spec()}, after Iceberg has rewritten its data files",
            )
        return tuple(
            None if (value := record[at]) is None else _text_of(each, value, data_file)
            for each, at in zip(partitions, positions[spec_id], strict=True)
        )

    return values


def _text_of(column: PartitionColumn, value: Any, data_file: Any) -> str:
    where = f"{data_file.file_path}, partition column {column.field.name}"
    if column.field.type == "double":
        value = _exact(value, data_file, column.source_id, where)
    try:
        return f"{value:f}" if isinstance(value, Decimal) else column.text(value)
    except OverflowError:
        raise UnsupportedFeatureError("a time outside the years 1 to 9999", where=where, found=value) from None


def _exact(value: float, data_file: Any, source_id: int, where: str) -> float:
    """A partition value of type double. The compiled decoder of PyIceberg 0.12 reads doubles as floats (0.1 as 0.10000000149011612). Lower
    and upper bound of the column are bytes, and both are the partition's value."""
    from pyiceberg.avro.decoder import new_decoder

    if math.isnan(value) or new_decoder(struct.pack("<d", 0.1)).read_double() == 0.1:
        return value
    lower, upper = ((bounds or {}).get(source_id) for bounds in (data_file.lower_bounds, data_file.upper_bounds))
    if lower is None or lower != upper or len(lower) != 8:
        raise UnsupportedFeatureError(
            "this release of PyIceberg does not read a partition value of type double exactly", where=where, found=value
        )
    return float(struct.unpack("<d", lower)[0])


# --- files


def _read_files(table: IcebergTable, io: Any, metadata: Any, manifest_list: str) -> None:
    """Live files of a snapshot, by its manifests; fills `table`."""
    from pyiceberg.manifest import DataFileContent, FileFormat, read_manifest_list

    values = _partition_values(metadata, table.partitions)
    equality: list[tuple[str, int]] = []
    with _reading(manifest_list):
        manifests = list(read_manifest_list(io.new_input(manifest_list)))
    for manifest in manifests:
        with _reading(manifest.manifest_path):
            entries = _entries(io, manifest)
        for sequence_number, found in entries:
            path = found.file_path
            if found.key_metadata is not None:
                raise UnsupportedFeatureError("an encrypted file cannot be converted", where=path)
            if found.content == DataFileContent.DATA:
                _check_format(found, path, FileFormat.PARQUET)
                of_file = values(manifest.partition_spec_id, found)
                table.files.append(DataFile(path, found.file_size_in_bytes, found.record_count, of_file, sequence_number))
            elif found.content == DataFileContent.EQUALITY_DELETES:
                equality.append((path, sequence_number))
            elif found.file_format == FileFormat.PUFFIN:
                referenced, offset, size = found[_REFERENCED], found[_OFFSET], found[_SIZE]
                if referenced is None or offset is None or size is None:
                    raise ProtocolError("a deletion vector without its data file, offset or size", where=path)
                table.vectors.append(Vector(path, offset, size, referenced, sequence_number))
            else:
                _check_format(found, path, FileFormat.PARQUET)
                table.deletes.append(DeleteFile(path, found.file_size_in_bytes, sequence_number))
    oldest = min((file.sequence_number for file in table.files), default=0)
    for path, sequence_number in equality:
        if oldest < sequence_number:
            raise UnsupportedFeatureError(
                "equality deletes cannot be converted: they name values, and a Delta table's deletion vectors name rows",
                where=path,
                expected="an Iceberg table whose data files were rewritten, so that no equality deletes apply",
            )


# Positions in PyIceberg's record of a data file of version 3.
_REFERENCED, _OFFSET, _SIZE = 17, 18, 19


def _entries(io: Any, manifest: Any) -> list[tuple[int, Any]]:
    """Live files of a manifest with their sequence numbers. PyIceberg's own method does not read the fields of version 3."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    types, enums = {-1: ManifestEntry, 2: DataFile}, {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
    with AvroFile(io.new_input(manifest.manifest_path), MANIFEST_ENTRY_SCHEMAS[3], read_types=types, read_enums=enums) as entries:
        live = [entry for entry in entries if entry.status != ManifestEntryStatus.DELETED]
    inherited = manifest.sequence_number or 0
    return [(inherited if entry.sequence_number is None else entry.sequence_number, entry.data_file) for entry in live]


def _check_format(found: Any, path: str, expected: Any) -> None:
    if found.file_format != expected:
        raise UnsupportedFeatureError(
            "only Parquet files can be files of a Delta table", where=path, found=str(found.file_format.value), expected="PARQUET"
        )


def vector_bytes(data: bytes, vector: Vector) -> bytes:
    """The bitmap of a vector of version 3, whose bytes are those of PROTOCOL.md's vectors. `data`: of the whole Puffin file."""
    framed = data[vector.offset : vector.offset + vector.size]
    bitmap = framed[4:-4]
    if len(framed) != vector.size or vector.size < 12 or int.from_bytes(framed[:4], "big") != len(bitmap):
        raise ProtocolError("a deletion vector's length does not agree with the manifest", where=f"{vector.path} at {vector.offset}")
    if int.from_bytes(framed[-4:], "big") != _core.crc32(bitmap):
        raise ProtocolError("a deletion vector's checksum is wrong", where=f"{vector.path} at {vector.offset}")
    return bitmap


# --- bytes


def _plain_location(path: str) -> str:
    """One spelling of a location: local paths without `file:`, `s3a://` and `s3n://` as `s3://`."""
    if path.startswith("file:"):
        return "/" + path[len("file:") :].lstrip("/")
    return re.sub(r"^s3[an]://", "s3://", path)


class _StoreIO:
    """The part of PyIceberg's FileIO that reading metadata needs, over a table's store."""

    def __init__(self, store: _core.Store, paths: Paths) -> None:
        self._store, self._paths = store, paths

    def new_input(self, location: str) -> _StoreFile:
        return _StoreFile(self._store, location, self._paths.relative(location))


@dataclass(frozen=True)
class _StoreFile:
    """The part of PyIceberg's InputFile that reading metadata needs."""

    store: _core.Store
    location: str
    path: str

    def open(self, seekable: bool = True) -> BytesIO:
        return BytesIO(self.store.get(self.path))
