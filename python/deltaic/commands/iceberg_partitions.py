"""The partition fields of an Iceberg table as partition columns of a Delta table, and their values as the log
stores them."""

from __future__ import annotations

import logging
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from deltaic.commands.iceberg_columns import TYPES
from deltaic.commands.iceberg_files import DataFile
from deltaic.errors import ProtocolError
from deltaic.protocol.column_mapping import ID, PHYSICAL_NAME
from deltaic.protocol.schema import DataType, Field, Schema, path_text

log = logging.getLogger("deltaic.commands")

GENERATED = "delta.generationExpression"
_FIRST_DAY = date(1970, 1, 1)
_FIRST_MOMENT = datetime(1970, 1, 1)
# Formats of floats by their bytes; those of a column that was promoted to double have four.
_FLOATS = {4: "<f", 8: "<d"}


@dataclass(frozen=True)
class PartitionColumn:
    """A partition column of the Delta table. `source_id` and `transform`: of the Iceberg partition field.
    `values`: the partition values of the data files in their order, as the log stores them."""

    field: Field
    source_id: int
    transform: str
    values: list[str | None]


class _NoPartitionColumn(Exception):
    """The reason why a partition field cannot be a partition column of a Delta table."""


def partition_columns(metadata: Any, schema: Schema, files: Sequence[DataFile]) -> Iterator[PartitionColumn]:
    """Yields a column for each partition field of the current spec: the column itself for `identity`, a
    generated column for other transforms.

    A field that Delta does not have (`bucket`, ...), or that some file was written without, is left out with
    a warning: data files have the columns whose transforms partition them, so the Delta table has the same
    rows with fewer partition columns.
    """
    by_id = metadata.schema()
    for item in metadata.spec().fields:
        transform = str(item.transform)
        if transform == "void":
            continue
        name = by_id.find_column_name(item.source_id)
        if name is None:
            raise ProtocolError(
                "a partition field has no column",
                where=f"partition field {item.name}",
                found=f"id {item.source_id}",
            )
        try:
            column, text = _column(item, transform, by_id, schema)
            yield PartitionColumn(
                column,
                item.source_id,
                transform,
                _values(metadata, item.source_id, transform, column, text, files),
            )
        except _NoPartitionColumn as reason:
            where = f"{metadata.location}, partition field {item.name}: {transform}({name})"
            log.warning("%s: the Delta table is not partitioned by it: %s", where, reason)


def _column(item: Any, transform: str, by_id: Any, schema: Schema) -> tuple[Field, Callable[[Any], str]]:
    """Returns the partition column for a partition field, and the function that serializes a value that
    PyIceberg has read."""
    if transform == "identity":
        column = next((each for each in schema if each.metadata[ID] == item.source_id), None)
        if column is None:
            raise _NoPartitionColumn("a partition column of a Delta table cannot be a field of a struct")
        return column, _identity(column.type)
    source = by_id.find_field(item.source_id)
    expression, data_type, text = _generated(
        transform, path_text(path_to(by_id.fields, item.source_id)), source.field_type
    )
    if any(each.name.lower() == item.name.lower() for each in schema):
        raise _NoPartitionColumn("another column has the name of the partition field")
    return Field(
        item.name,
        data_type,
        nullable=not source.required,
        metadata={GENERATED: expression, PHYSICAL_NAME: item.name},
    ), text


def path_to(fields: Any, source_id: int) -> tuple[str, ...]:
    """Returns the path of the column with this id, through structs alone; () if there is none."""
    for item in fields:
        if item.field_id == source_id:
            return (item.name,)
        if item.field_type.is_struct and (below := path_to(item.field_type.fields, source_id)):
            return (item.name, *below)
    return ()


def _identity(data_type: DataType) -> Callable[[Any], str]:
    if data_type == "binary":
        raise _NoPartitionColumn("a Delta table cannot be partitioned by binary values")
    return _not_empty if data_type == "string" else _TEXTS.get(str(data_type), str)


def _not_empty(value: str) -> str:
    if value == "":
        raise _NoPartitionColumn("a partition value is an empty text, which Delta readers take for null")
    return value


def _generated(transform: str, column: str, source: Any) -> tuple[str, str, Callable[[Any], str]]:
    """Returns the generation expression, the type and the function that serializes values, as delta-spark
    converts the transform. Raises _NoPartitionColumn for a transform that Delta does not have."""
    if transform == "year":
        return f"year({column})", "integer", lambda value: str(1970 + value)
    if transform == "month":
        return (
            f"date_format({column}, 'yyyy-MM')",
            "string",
            lambda value: f"{1970 + value // 12:04d}-{value % 12 + 1:02d}",
        )
    if transform == "day":
        return f"CAST({column} AS DATE)", "date", _date_text
    if transform == "hour":
        return f"date_format({column}, 'yyyy-MM-dd-HH')", "string", _hour_text
    if (match := re.fullmatch(r"truncate\[([0-9]+)\]", transform)) and str(source) == "string":
        return f"substring({column}, 0, {match[1]})", "string", _not_empty
    if match and str(source) in ("int", "long"):
        width = match[1]
        return f"{column} - ((({column} % {width}) + {width}) % {width})", TYPES[str(source)], str
    raise _NoPartitionColumn("Delta has no such partitioning")


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


def _values(
    metadata: Any,
    source_id: int,
    transform: str,
    column: Field,
    text: Callable[[Any], str],
    files: Sequence[DataFile],
) -> list[str | None]:
    positions = {spec_id: _position(spec, source_id, transform) for spec_id, spec in metadata.specs().items()}
    result: list[str | None] = []
    for file in files:
        position = positions.get(file.spec_id)
        if position is None:
            raise _NoPartitionColumn(f"{file.path} was written with another partitioning")
        value = file.entry.partition[position]
        result.append(None if value is None else _text_of(column, source_id, value, text, file.entry))
    return result


def _position(spec: Any, source_id: int, transform: str) -> int | None:
    """Returns the position of a partition field in the partition values of the files of a spec; None if the
    spec lacks the field."""
    return next(
        (
            at
            for at, item in enumerate(spec.fields)
            if (item.source_id, str(item.transform)) == (source_id, transform)
        ),
        None,
    )


def written_without(metadata: Any, source_id: int, files: Iterable[DataFile]) -> list[DataFile]:
    """Returns the files that may lack a column, because their partition has its value: those of an `identity`
    partition, in tables that were migrated from Hive."""
    positions = {
        spec_id: _position(spec, source_id, "identity") for spec_id, spec in metadata.specs().items()
    }
    return [
        file
        for file in files
        if (at := positions.get(file.spec_id)) is not None and file.entry.partition[at] is not None
    ]


def _text_of(column: Field, source_id: int, value: Any, text: Callable[[Any], str], entry: Any) -> str:
    if column.type == "double":
        value = _exact(value, entry, source_id)
    try:
        return f"{value:f}" if isinstance(value, Decimal) else text(value)
    except OverflowError:
        raise _NoPartitionColumn(f"{entry.file_path} has a time outside the years 1 to 9999") from None


def _exact(value: float, entry: Any, source_id: int) -> float:
    """Returns a partition value of type double exactly. The compiled decoder of PyIceberg 0.12 reads doubles
    as floats (0.1 as 0.10000000149011612), so the value is taken from the file's lower and upper bound of the
    column, which are bytes and both equal to it."""
    from pyiceberg.avro.decoder import new_decoder

    if math.isnan(value) or new_decoder(struct.pack("<d", 0.1)).read_double() == 0.1:
        return value
    lower, upper = ((bounds or {}).get(source_id) for bounds in (entry.lower_bounds, entry.upper_bounds))
    if lower is None or lower != upper or len(lower) not in _FLOATS:
        raise _NoPartitionColumn(
            f"this release of PyIceberg does not read the double of {entry.file_path} exactly"
        )
    return float(struct.unpack(_FLOATS[len(lower)], lower)[0])
