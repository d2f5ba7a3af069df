"""Schemas and types as Spark writes them, for parameters of errors: `tree_text` like `printSchema`, and
`class_text` by the names of Spark's classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaic.protocol.schema import Array, DataType, Field, Map, Struct
from deltaic.spark_sql.interval_types import DAY_TIME_FIELDS, YEAR_MONTH_FIELDS

_CLASSES = {"timestamp_ntz": "TimestampNTZ", "void": "Null", "interval": "CalendarInterval"}
"""Names of types in the log -> names of Spark's classes, where they differ in more than the case."""


def tree_text(fields: Iterable[Field]) -> str:
    """Writes columns as a tree: `root`, then a line for each column, with those of a struct below it.

    >>> tree_text([Field("id", "long")])
    'root\\n |-- id: long (nullable = true)\\n'
    """
    return "".join(f"{line}\n" for line in ("root", *_fields(fields, " ")))


def class_text(data_type: DataType) -> str:
    """Writes a type by the names of Spark's classes.

    >>> class_text(Array("integer", False))
    'ArrayType(IntegerType,false)'
    """
    if isinstance(data_type, Struct):
        fields = (
            f"StructField({item.name},{class_text(item.type)},{_java(item.nullable)})"
            for item in data_type.fields
        )
        return f"StructType({','.join(fields)})"
    if isinstance(data_type, Array):
        return f"ArrayType({class_text(data_type.element)},{_java(data_type.contains_null)})"
    if isinstance(data_type, Map):
        sides = f"{class_text(data_type.key)},{class_text(data_type.value)}"
        return f"MapType({sides},{_java(data_type.value_contains_null)})"
    if data_type.startswith("interval "):
        units = data_type.split()[1::2]
        of_months = units[0] in YEAR_MONTH_FIELDS
        kind = "YearMonth" if of_months else "DayTime"
        known: tuple[str, ...] = YEAR_MONTH_FIELDS if of_months else DAY_TIME_FIELDS
        return f"{kind}IntervalType({known.index(units[0])},{known.index(units[-1])})"
    name, _, arguments = data_type.partition("(")
    return f"{_CLASSES.get(name, name.capitalize())}Type" + (f"({arguments}" if arguments else "")


def places_text(types: Iterable[tuple[str, DataType]]) -> str:
    """Writes places in a schema with their types.

    >>> places_text([("a.b", "interval day to second")])
    '[a.b: DayTimeIntervalType(0,3)]'
    """
    return f"[{', '.join(f'{place}: {class_text(data_type)}' for place, data_type in types)}]"


def _fields(fields: Iterable[Field], margin: str) -> Iterator[str]:
    for field in fields:
        yield from _lines(field.name, field.type, f"nullable = {_java(field.nullable)}", margin)


def _lines(name: str, data_type: DataType, note: str | None, margin: str) -> Iterator[str]:
    suffix, below = "" if note is None else f" ({note})", f"{margin}|    "
    if isinstance(data_type, Struct):
        yield f"{margin}|-- {name}: struct{suffix}"
        yield from _fields(data_type.fields, below)
    elif isinstance(data_type, Array):
        yield f"{margin}|-- {name}: array{suffix}"
        yield from _lines(
            "element", data_type.element, f"containsNull = {_java(data_type.contains_null)}", below
        )
    elif isinstance(data_type, Map):
        yield f"{margin}|-- {name}: map{suffix}"
        yield from _lines("key", data_type.key, None, below)
        yield from _lines(
            "value", data_type.value, f"valueContainsNull = {_java(data_type.value_contains_null)}", below
        )
    else:
        yield f"{margin}|-- {name}: {data_type}{suffix}"


def _java(value: bool) -> str:
    return str(value).lower()
