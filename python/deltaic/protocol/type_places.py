"""Places within the types of a schema: of types that a table cannot have, of structs without fields, and of
fields with one name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, DataType, Field, Map, ResultType, Struct


def result_types(fields: Iterable[Field]) -> Iterator[tuple[str, ResultType]]:
    """Yields the types that no column of a table can have, with their places as delta-spark writes them:
    `tags[]` is the element of an array, `names[key]` the key of a map."""
    for item in fields:
        yield from _result_types(item.type, item.name)


def _result_types(data_type: DataType, place: str) -> Iterator[tuple[str, ResultType]]:
    if isinstance(data_type, Struct):
        for item in data_type.fields:
            yield from _result_types(item.type, f"{place}.{item.name}")
    elif isinstance(data_type, Array):
        yield from _result_types(data_type.element, f"{place}[]")
    elif isinstance(data_type, Map):
        yield from _result_types(data_type.key, f"{place}[key]")
        yield from _result_types(data_type.value, f"{place}[value]")
    elif isinstance(data_type, ResultType):
        yield place, data_type


def empty_structs(fields: Iterable[Field], place: str = "") -> Iterator[str]:
    """Yields the places of structs without fields, at any depth: `tags.element`."""
    for item in fields:
        yield from _empty_structs(item.type, f"{place}{item.name}")


def _empty_structs(data_type: DataType, place: str) -> Iterator[str]:
    if isinstance(data_type, Struct):
        if not data_type.fields:
            yield place
        yield from empty_structs(data_type.fields, f"{place}.")
    elif isinstance(data_type, Array):
        yield from _empty_structs(data_type.element, f"{place}.element")
    elif isinstance(data_type, Map):
        yield from _empty_structs(data_type.key, f"{place}.key")
        yield from _empty_structs(data_type.value, f"{place}.value")


@contextmanager
def inside(part: str) -> Iterator[None]:
    """Adds the enclosing part to the place of a field that has the name of another one."""
    try:
        yield
    except InvalidArgumentError as error:
        if isinstance(inner := error.values.get("duplicate_parts"), tuple):
            parts = (part.lower(), *inner)
            error.with_values(duplicate=".".join(parts), duplicate_parts=parts)
        raise
