"""Refuses values and extension types of the user's Arrow data that no Delta type can store, with an error
that names the column. Without these checks a cast would change the values.

Examples: DuckDB and PostgreSQL export the timestamp `infinity` as `9223372036854775807` microseconds; a
reader would see the year 294247. pyarrow reads text of Parquet files without looking at its bytes, and a
table with text that is not UTF-8 could not be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic.engine.exporters import Failure
from deltaic.errors import SchemaMismatchError
from deltaic.protocol.column_mapping import check_no_nul

_PLAIN = {
    "arrow.json",
    "arrow.uuid",
    "arrow.parquet.variant",
    "parquet.variant",
    "geoarrow.wkb",
    "geoarrow.wkt",
    "ogc.wkb",
    "ogc.wkt",
}
"""Extension types whose storage has the values themselves. The storage of other types has something else: a
period of pandas is stored as a number."""

_NAME = b"ARROW:extension:name"
_DAYS, _LARGEST = 2**31 - 1, 2**63 - 1
_MILLIS_OF_DAY = 86_400_000

Check = Callable[[pa.Array], pa.Array]
"""Function that returns a mask of an array: True for each value that is refused."""


def check_columns(schema: pa.Schema) -> None:
    """Raises SchemaMismatchError for a column or field of an extension type that Delta has no type for, and
    InvalidArgumentError for a name with a NUL character, at which Arrow's C interface would end the name."""
    fields = [(item.name, item) for item in schema]
    while fields:
        place, item = fields.pop()
        data_type = item.type
        check_no_nul(place, item.name)
        name = (
            data_type.extension_name
            if isinstance(data_type, pa.BaseExtensionType)
            else (item.metadata or {}).get(_NAME, b"").decode()
        )
        if name and name not in _PLAIN:
            raise SchemaMismatchError(
                "Delta has no type for this extension type of Arrow",
                where=f"column {place}",
                found=name,
                expected="a type of Arrow itself: cast the column to its storage or to text",
            )
        fields += [
            (f"{place}.{data_type.field(at).name}", data_type.field(at)) for at in range(data_type.num_fields)
        ]


def value_checks(
    schema: pa.Schema, rounding: bool
) -> dict[int, list[tuple[tuple[int, ...], Check, str, str]]]:
    """Returns the checks of each column: which part of the column is checked, which values are refused, and
    the `found` and `expected` of the error."""
    found: dict[int, list[tuple[tuple[int, ...], Check, str, str]]] = {}
    for at, item in enumerate(schema):
        for path, data_type in _leaves(item.type, ()):
            found.setdefault(at, []).extend((path, *check) for check in _checks_of(data_type, rounding))
    return {at: checks for at, checks in found.items() if checks}


def _leaves(data_type: pa.DataType, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], pa.DataType]]:
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        yield path, data_type.value_type
    elif not data_type.num_fields:
        yield path, data_type
    elif not pa.types.is_union(data_type):
        for at in range(data_type.num_fields):
            yield from _leaves(data_type.field(at).type, (*path, at))


def _checks_of(data_type: pa.DataType, rounding: bool) -> list[tuple[Check, str, str]]:
    if pa.types.is_date32(data_type):
        return [
            (_equal(pa.int32(), days), name, "a date of a calendar")
            for days, name in ((_DAYS, "infinity"), (-_DAYS, "-infinity"))
        ]
    if pa.types.is_date64(data_type):
        return [(_odd_days, "a time of day, or a date too far away", "whole days")]
    if pa.types.is_timestamp(data_type):
        ends = ((_LARGEST, "infinity"), (-_LARGEST, "-infinity"))
        checks = [(_equal(pa.int64(), end), name, "a time of a calendar") for end, name in ends]
        if data_type.unit == "ns" and not rounding:
            checks.append(
                (_below_micros, "digits below a microsecond", "whole microseconds; round the column first")
            )
        return checks
    if pa.types.is_decimal128(data_type) and data_type.precision == 38:
        return [(_too_long, "more than 38 digits", str(data_type))]
    if data_type in (pa.string(), pa.large_string(), pa.string_view()):
        return [(_no_text, "text that is not UTF-8", "UTF-8; read the column as binary to convert it")]
    return []


def _equal(storage: pa.DataType, value: int) -> Check:
    wanted = pa.scalar(value, storage)
    return lambda array: pc.equal(array.view(storage), wanted)


def _odd_days(array: pa.Array) -> pa.Array:
    millis = array.view(pa.int64())
    days = pc.divide(millis, _MILLIS_OF_DAY)
    return pc.or_(
        pc.not_equal(pc.multiply(days, _MILLIS_OF_DAY), millis), pc.greater(pc.abs(days), _DAYS - 1)
    )


def _below_micros(array: pa.Array) -> pa.Array:
    nanos = array.view(pa.int64())
    return pc.not_equal(pc.multiply(pc.divide(nanos, 1000), 1000), nanos)


def _no_text(array: pa.Array) -> pa.Array:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([not _is_text(value) for value in array.cast(pa.large_binary()).to_pylist()])
    return pa.array([], pa.bool_())


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _too_long(array: pa.Array) -> pa.Array:
    """Returns a mask of decimals with 39 digits, some of which fit into 128 bits."""
    wide = pa.decimal256(76, array.type.scale)
    return pc.greater_equal(
        pc.abs(array.cast(wide)), pa.scalar(Decimal(1).scaleb(38 - array.type.scale), wide)
    )


class CheckedValues:
    """An Arrow stream whose batches pass through `checks`: a value that is refused is a
    SchemaMismatchError."""

    def __init__(
        self,
        exporter: Any,
        checks: dict[int, list[tuple[tuple[int, ...], Check, str, str]]],
        failure: Failure,
    ) -> None:
        self._exporter, self._checks, self._failure = exporter, checks, failure

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self._exporter)
        checked = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return checked.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        first = 0
        with reader:  # a DuckDB connection runs no other query while a result is open; the error keeps it
            for batch in reader:
                try:
                    self._check(batch, first)
                except SchemaMismatchError as error:  # errors of the stream itself are noted where they arise
                    self._failure.error = error
                    raise
                first += batch.num_rows
                yield batch

    def _check(self, batch: pa.RecordBatch, first: int) -> None:
        for at, checks in self._checks.items():
            for path, check, found, expected in checks:
                _check(batch.column(at), batch.schema.field(at).name, path, check, found, expected, first)


def _check(
    column: pa.Array, name: str, path: tuple[int, ...], check: Check, found: str, expected: str, first: int
) -> None:
    values = reduce(_inside, path, column)
    is_encoded = True
    if pa.types.is_dictionary(values.type):
        values = values.dictionary
    elif pa.types.is_run_end_encoded(values.type):
        values = values.values
    else:
        is_encoded = False
    refused = check(values)
    if not pc.any(refused).as_py():
        return
    row = "" if path or is_encoded else f"row {first + pc.index(refused, True).as_py()}: "
    raise SchemaMismatchError(
        f"{row}the value cannot be stored in a Delta table",
        where=f"column {name}",
        found=found,
        expected=expected,
    )


def _inside(array: pa.Array, at: int) -> pa.Array:
    """Returns a field, the elements or the entries of a nested array, without those of null rows."""
    if pa.types.is_struct(array.type):
        return pc.struct_field(array, [at])
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return array.flatten()
