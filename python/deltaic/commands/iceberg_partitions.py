"""The partition fields of an Iceberg table as partition columns of a Delta table, and their values as the log stores them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from deltaic.commands.iceberg_columns import TYPES
from deltaic.errors import ProtocolError, UnsupportedFeatureError
from deltaic.protocol.column_mapping import ID
from deltaic.protocol.schema import DataType, Field, Schema

GENERATED = "delta.generationExpression"
_FIRST_DAY = date(1970, 1, 1)
_FIRST_MOMENT = datetime(1970, 1, 1)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class PartitionColumn:
    """A partition column of the Delta table. `source_id` and `transform`: of the Iceberg partition field. `text`: a value of that field,
    as PyIceberg reads it, in the form that the log stores."""

    field: Field
    source_id: int
    transform: str
    text: Callable[[Any], str]


def partition_columns(metadata: Any, schema: Schema) -> Iterator[PartitionColumn]:
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
            generated = Field(item.name, data_type, nullable=not source.required, metadata={GENERATED: expression})
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
        return f"{column} - ((({column} % {width}) + {width}) % {width})", TYPES[str(source)], str
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


def partition_values(metadata: Any, partitions: tuple[PartitionColumn, ...]) -> Callable[[int, Any], tuple[str | None, ...]]:
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
