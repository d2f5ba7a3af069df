"""Places within the types of a schema: of types that a table cannot have, of structs without fields, and of
fields with one name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, DataType, Field, Map, ResultType, Struct

_IN_NAMES = {"element": ".element", "key": ".key", "value": ".value"}
_IN_BRACKETS = {"element": "[]", "key": "[key]", "value": "[value]"}


def result_types(fields: Iterable[Field]) -> Iterator[tuple[str, ResultType]]:
    """Yields the types that no column of a table can have, with their places as delta-spark writes them:
    `tags[]` is the element of an array, `names[key]` the key of a map."""
    for item in fields:
        for place, data_type in _places(item.type, item.name, _IN_BRACKETS):
            if isinstance(data_type, ResultType):
                yield place, data_type


def empty_structs(fields: Iterable[Field]) -> Iterator[str]:
    """Yields the places of structs without fields, at any depth: `tags.element`."""
    for item in fields:
        for place, data_type in _places(item.type, item.name, _IN_NAMES):
            if isinstance(data_type, Struct) and not data_type.fields:
                yield place


def _places(data_type: DataType, place: str, parts: Mapping[str, str]) -> Iterator[tuple[str, DataType]]:
    """Yields a type and the types within it, with their places. `parts`: how the places of elements, keys and
    values are written."""
    yield place, data_type
    if isinstance(data_type, Struct):
        for item in data_type.fields:
            yield from _places(item.type, f"{place}.{item.name}", parts)
    elif isinstance(data_type, Array):
        yield from _places(data_type.element, place + parts["element"], parts)
    elif isinstance(data_type, Map):
        yield from _places(data_type.key, place + parts["key"], parts)
        yield from _places(data_type.value, place + parts["value"], parts)


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
