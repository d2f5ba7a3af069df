"""Schemas: immutable values that read and write PROTOCOL.md's "Schema Serialization Format", Spark's DDL and
Arrow.

A type is Delta's name as text (`"long"`, `"decimal(10,2)"`), or a `Struct`, `Array` or `Map`. Names are
compared without case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, Union, overload

from deltaic.errors import InvalidArgumentError, InvalidTypeError, check_instance, nearest_names
from deltaic.protocol.actions import ReadOnlyDict
from deltaic.sql_text import name_of, quote_name

PRIMITIVES = frozenset(
    (
        *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary"),
        *("date", "timestamp", "timestamp_ntz", "variant", "void"),
    )
)
_SHAPE = re.compile(  # Spark writes the algorithm of edges in capitals: SPHERICAL
    r"(geometry)\(\s*([^\s(),:]+:[^\s(),]+)\s*\)"
    r"|(geography)\(\s*([^\s(),:]+:[^\s(),]+)\s*,\s*((?i:spherical|vincenty|thomas|andoyer|karney))\s*\)"
)
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,4})\s*,\s*(-?[0-9]{1,4})\s*\)")
INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
"""The types of whole numbers, in ascending order, with the number of their bits."""
INTEGER_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""The number of digits of the decimal as which Spark counts a whole number."""
CHAR_TYPES = "__CHAR_VARCHAR_TYPE_STRING"
"""Key of a column's metadata: the type as Spark writes it, if it contains CHAR(n) or VARCHAR(n)."""
COLLATIONS = "__COLLATIONS"
USER_TYPES = "__USER_TYPES"
"""Key of a column's metadata: Spark's user-defined types in the column, which a schemaString wraps around
the types of their values. Example: `{"": {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT"}}`
for a column of vectors; the key is "element" for an array of them. A schemaString does not have the key."""
# Collations that compare bytes, as columns without a collation do
_BY_BYTES = ("UTF8_BINARY", "SPARK.UTF8_BINARY")
MAX_DEPTH = 100
"""Maximum nesting of types; a deeper schema is an error, so that recursive functions do not overflow the
stack."""
# Maximum characters of a schema's JSON whose Schema is cached. A commit parses the same text at every step.
_MOST_KEPT = 16_384

DataType: TypeAlias = Union[str, "Struct", "Array", "Map"]


class ResultType(str):
    """The name of a type that the result of a query can have and no column of a table: `interval day`."""

    __slots__ = ()

    def __str__(self) -> str:
        return self  # `str(kind)` stays a ResultType


@dataclass(frozen=True)
class Field:
    """A column or a field of a struct.

    `name` (str). `type`: Delta's name of a primitive type (`"long"`, `"decimal(10,2)"`), or a `Struct`,
    `Array` or `Map`. `nullable`: False for a NOT NULL column; default True.
    `metadata`: a dict of JSON values, with PROTOCOL.md's keys (`comment`, `CURRENT_DEFAULT`, ...) and any
    others; default: none.

    Raises InvalidTypeError (a name that is no string, `nullable` that is no bool) and InvalidArgumentError
    (an unknown type).

    >>> price = deltaic.Field("price", "decimal(10,2)", nullable=False, metadata={"comment": "in euros"})
    >>> deltaic.Schema([price]).to_ddl()
    "price decimal(10,2) not null comment 'in euros'"
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidTypeError("a field name must be a string", found=repr(self.name))
        if not isinstance(self.nullable, bool):
            raise InvalidTypeError(
                f"nullable of field {self.name!r} must be True or False", found=repr(self.nullable)
            )
        object.__setattr__(self, "type", check_type(self.type))
        if not isinstance(self.metadata, ReadOnlyDict):
            object.__setattr__(self, "metadata", ReadOnlyDict(self.metadata))

    def with_(self, **changes: Any) -> Field:
        """Returns a copy of the field with other values of `name`, `type`, `nullable` or `metadata`. Raises
        the errors of `Field`.

        >>> deltaic.Field("id", "long").with_(nullable=False)
        Field('id', 'long', nullable=False)
        """
        parts = {"name": self.name, "type": self.type, "nullable": self.nullable, "metadata": self.metadata}
        return type(self)(**{**parts, **changes})

    def __repr__(self) -> str:
        rest = "" if self.nullable else ", nullable=False"
        if self.metadata:
            rest += f", metadata={dict(self.metadata)!r}"
        return f"Field({self.name!r}, {self.type!r}{rest})"


@dataclass(frozen=True)
class Struct:
    """A struct type. `fields`: `Field`s in order. Two fields whose names differ only in case are an
    InvalidArgumentError.

    >>> point = deltaic.Struct([deltaic.Field("x", "double"), deltaic.Field("y", "double")])
    >>> deltaic.Schema([deltaic.Field("at", point)]).to_ddl()
    'at struct<x: double, y: double>'
    """

    fields: tuple[Field, ...]

    def __init__(self, fields: Iterable[Field]) -> None:
        object.__setattr__(self, "fields", _unique_fields(fields))

    def __repr__(self) -> str:
        return f"Struct({list(self.fields)!r})"


@dataclass(frozen=True)
class Array:
    """An array type. `element`: the type of its elements. `contains_null`: True (the default) if elements may
    be null. An unknown type is an InvalidArgumentError.

    >>> deltaic.Schema([deltaic.Field("tags", deltaic.Array("string"))]).to_ddl()
    'tags array<string>'
    """

    element: DataType
    contains_null: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "element", check_type(self.element))


@dataclass(frozen=True)
class Map:
    """A map type. `key`, `value`: the types of keys and values; a key is never null. `value_contains_null`:
    True (the default) if values may be null. An unknown type is an InvalidArgumentError.

    >>> deltaic.Schema([deltaic.Field("counts", deltaic.Map("string", "long"))]).to_ddl()
    'counts map<string, bigint>'
    """

    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", check_type(self.key))
        object.__setattr__(self, "value", check_type(self.value))


def check_type(data_type: DataType) -> DataType:
    """Returns a type in its canonical spelling: `decimal( 10, 2 )` becomes `decimal(10,2)`. A name that Delta
    does not have is an InvalidArgumentError."""
    if isinstance(data_type, (Struct, Array, Map)):
        return data_type
    if not isinstance(data_type, str):
        raise InvalidTypeError(
            "a type must be Delta's name as a string, Struct, Array or Map", found=repr(data_type)
        )
    if data_type in PRIMITIVES or isinstance(data_type, ResultType):
        return data_type
    if data_type == "decimal":
        return "decimal(10,0)"
    if match := _DECIMAL.fullmatch(data_type):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise InvalidArgumentError(
                "a decimal's precision is 1 to 38 and its scale 0 to its precision", found=repr(data_type)
            )
        return f"decimal({precision},{scale})"
    if match := _SHAPE.fullmatch(data_type):
        return f"geometry({match[2]})" if match[1] else f"geography({match[4]}, {match[5].lower()})"
    raise InvalidArgumentError(
        "no such type", found=repr(data_type), expected="Delta's name of a type, such as 'long'"
    )


def decimal_parts(data_type: DataType) -> tuple[int, int] | None:
    """Returns (precision, scale) of a decimal type; None for any other type."""
    match = _DECIMAL.fullmatch(data_type) if isinstance(data_type, str) else None
    return (int(match[1]), int(match[2])) if match else None


def is_shape(data_type: DataType) -> bool:
    """True for geospatial types: `geometry(OGC:CRS84)`, `geography(OGC:CRS84, spherical)`. Their values are
    handled as bytes."""
    return isinstance(data_type, str) and data_type.startswith(("geometry(", "geography("))


class Schema(Sequence[Field]):
    """The columns of a table, in order. Immutable and hashable; two schemas are equal if all fields are, with
    their metadata.

    `fields`: `Field`s with unique names, without case. Raises InvalidArgumentError, InvalidTypeError.

    >>> deltaic.Schema([deltaic.Field("id", "long"), deltaic.Field("name", "string")]).names
    ['id', 'name']
    """

    __slots__ = ("_by_name", "_fields", "_hash")
    _fields: tuple[Field, ...]

    def __init__(self, fields: Iterable[Field] = ()) -> None:
        self._fields = _unique_fields(fields)
        self._by_name = {item.name.lower(): item for item in self._fields}
        self._hash: int | None = None

    @staticmethod
    def of_query(fields: Iterable[Field]) -> Schema:
        """Returns the columns of a query, in which several may have one name. A table cannot have such a
        schema."""
        result = Schema.__new__(Schema)
        result._fields, result._hash = tuple(fields), None
        result._by_name = {item.name.lower(): item for item in reversed(result._fields)}
        return result

    def distinct(self) -> Schema:
        """Returns a schema with unique, non-empty names: two columns `a` and one without a name become
        `a`, `a_2` and `_2`."""
        if len(self._by_name) == len(self._fields) and "" not in self._by_name:
            return self
        taken, fields = set(self._by_name), list[Field]()
        seen: set[str] = set()
        for item in self._fields:
            name, count = item.name, 1
            while not name or name.lower() in seen or (count > 1 and name.lower() in taken):
                count += 1
                name = f"{item.name}_{count}"
            seen.add(name.lower())
            fields.append(item.with_(name=name))
        return Schema(fields)

    # --- reading and writing

    @staticmethod
    def from_json(text: str) -> Schema:
        """Parses the schemaString of a metadata action. Raises ProtocolError (the text violates PROTOCOL.md)
        and UnsupportedFeatureError (a type of a feature that this release does not know).

        >>> deltaic.Schema.from_json(table.schema.to_json()) == table.schema
        True
        """
        check_instance(text, (str, bytes), "the schema", "JSON text")
        return _parsed_once(text) if len(text) <= _MOST_KEPT else _parsed(text)

    def to_json(self) -> str:
        """Returns the schemaString of a metadata action: JSON with all metadata. Raises InvalidArgumentError
        if two columns have one name.

        >>> deltaic.Schema.from_ddl("id bigint").to_json()
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
        """
        if len(self._by_name) < len(self._fields):
            _unique_fields(self._fields)
        return json.dumps(_fields_to_json(self._fields), ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def from_ddl(text: str) -> Schema:
        """Parses Spark's DDL. Raises InvalidArgumentError, with the position, if the text does not parse.

        >>> deltaic.Schema.from_ddl("id bigint not null, name string comment 'who'").names
        ['id', 'name']
        """
        from deltaic.protocol.ddl import parse_schema

        return parse_schema(text)

    def to_ddl(self) -> str:
        """Returns Spark's DDL. It cannot express arrays and maps without nulls, and metadata other than
        comments, defaults and generated columns: these are left out.

        >>> plain.schema.to_ddl()
        'id bigint, origin string, delay bigint'
        """
        from deltaic.protocol.ddl import format_schema

        return format_schema(self)

    @staticmethod
    def from_arrow(obj: Any) -> Schema:
        """Converts an object with `__arrow_c_schema__`, such as a pyarrow schema, with its field metadata.
        Raises InvalidTypeError, and SchemaMismatchError for a type that Delta does not have.

        >>> deltaic.Schema.from_arrow(pa.schema([("id", pa.int32())])).to_ddl()
        'id int'
        """
        from deltaic._core import schema_from_arrow

        if not hasattr(obj, "__arrow_c_schema__"):
            raise InvalidTypeError(
                "not a schema", found=type(obj).__name__, expected="an object with __arrow_c_schema__"
            )
        return Schema.from_json(schema_from_arrow(obj))

    @staticmethod
    def of(obj: Any) -> Schema:
        """Returns the Schema for an argument of the API: a Schema, DDL text, an iterable of fields, or an
        object with `__arrow_c_schema__`."""
        if isinstance(obj, Schema):
            return obj
        if isinstance(obj, str):
            return Schema.from_ddl(obj)
        if hasattr(obj, "__arrow_c_schema__"):
            return Schema.from_arrow(obj)
        if isinstance(obj, Struct):
            return Schema(obj.fields)
        if hasattr(obj, "__arrow_c_stream__"):
            return Schema.from_arrow(_stream_schema(obj))
        if isinstance(obj, Iterable) and not isinstance(obj, (bytes, Mapping)):
            return Schema(list(obj))
        raise InvalidTypeError(
            "not a schema", found=type(obj).__name__, expected="an object with __arrow_c_schema__ or DDL text"
        )

    def __arrow_c_schema__(self) -> object:
        from deltaic._core import TableSchema

        return TableSchema(self.to_json()).to_arrow().__arrow_c_schema__()

    # --- looking up

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns, in order.

        >>> deltaic.Schema([deltaic.Field("id", "long")]).fields
        (Field('id', 'long'),)
        """
        return self._fields

    @property
    def names(self) -> list[str]:
        """The names of the columns in order, spelled as in the log.

        >>> table.schema.names
        ['id', 'origin', 'delay']
        """
        return [item.name for item in self._fields]

    def get(self, name: str) -> Field | None:
        """Returns the column with this name, compared without case; None if there is none.

        >>> table.schema.get("carrier") is None
        True
        """
        check_instance(name, str, "a column's name", "text")
        return self._by_name.get(name.lower())

    def field(self, name: str) -> Field:
        """Returns the column with this name, compared without case. Raises InvalidArgumentError, with the
        most similar names, if there is none.

        >>> table.schema.field("ID").type
        'long'
        """
        field = self.get(name)
        if field is None:
            raise _unknown(name, self.names)
        return field

    def find(self, path: str | Sequence[str]) -> tuple[tuple[str, ...], Field]:
        """Finds a field by its dotted path, ``"a.`b.c`.d"``, or by the parts of it. Returns the path as the
        schema spells it, and the field.

        The part of an array is `element`, those of a map are `key` and `value`; they are returned as fields
        without metadata. A text that is the name of a top-level column, dots included, means that column.
        Raises InvalidArgumentError if there is no such field.

        >>> deltaic.Schema.from_ddl("address struct<city: string>").find("address.City")[0]
        ('address', 'city')
        """
        if isinstance(path, str):
            if top := self.get(path):
                return (top.name,), top
            path = split_path(path)
        check_instance(path, (list, tuple), "a column's name", "dotted text, or its parts")
        if not path:
            raise InvalidArgumentError("a column name is empty")
        current = self.field(path[0])
        names = [current.name]
        for part in path[1:]:
            try:
                current = _child(current, part, names)
            except InvalidArgumentError as error:
                raise error.with_values(path=tuple(path), columns=tuple(self.names)) from None
            names.append(current.name)
        return tuple(names), current

    # --- a sequence and a value

    @overload
    def __getitem__(self, index: int) -> Field: ...
    @overload
    def __getitem__(self, index: slice) -> Schema: ...
    def __getitem__(self, index: int | slice) -> Field | Schema:
        return Schema(self._fields[index]) if isinstance(index, slice) else self._fields[index]

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def __contains__(self, item: object) -> bool:
        return item.lower() in self._by_name if isinstance(item, str) else item in self._fields

    def __eq__(self, other: object) -> bool:
        return self._fields == other._fields if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._fields)
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema, (self._fields,)

    def __repr__(self) -> str:
        return f"Schema([{', '.join(map(repr, self._fields))}])"

    def _repr_html_(self) -> str:
        from deltaic.html_tables import html_table

        rows = [
            (item.name, type_name(item.type), item.nullable, item.metadata.get("comment", ""))
            for item in self._fields
        ]
        return html_table(("column", "type", "nullable", "comment"), rows)


def _stream_schema(rows: Any) -> Any:
    """Returns the Arrow schema of an object with `__arrow_c_stream__`."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(rows).schema


def path_text(path: Sequence[str]) -> str:
    """Returns a path as dotted text, such as ``a.`b.c` ``; the inverse of `split_path`."""
    return ".".join(map(quote_name, path))


def split_path(text: str) -> tuple[str, ...]:
    """Splits a dotted path into its parts: ``a.`b.c` `` -> `("a", "b.c")`. A backtick in a quoted part is
    doubled."""
    parts = []
    position = 0
    while True:
        match = re.compile(r"(`(?:[^`]|``)+`)|([^.`]+)").match(text, position)
        if match is None:
            raise InvalidArgumentError(
                "not a column name", found=repr(text), expected="names divided by dots"
            )
        parts.append(name_of(match[1]) if match[1] is not None else match[2].strip())
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise InvalidArgumentError(
                "not a column name", found=repr(text), expected=f"a dot at character {position + 1}"
            )
        position += 1


def walk(fields: Iterable[Field], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yields every column and struct field with its path, parents first. Array elements, map keys and map
    values are parts of paths, but are not yielded: `("tags", "element", "name")`. The fields within a
    user-defined type are not yielded, because they have neither ids nor rules."""
    for item in fields:
        path = (*prefix, item.name)
        yield path, item
        if not user_types_of(item):
            yield from _walk_type(item.type, path)


def collation_of(field: Field) -> str | None:
    """Returns the collation of a field, or of a string inside it; None if all strings are compared by their
    bytes. Metadata that is no mapping counts as an unknown collation."""
    collations = field.metadata.get(COLLATIONS)
    if collations is None:
        return None
    names = (
        [str(name) for name in collations.values()] if isinstance(collations, Mapping) else [str(collations)]
    )
    return next((name for name in names if name.upper() not in _BY_BYTES), None)


def user_types_of(field: Field) -> Mapping[str, Any]:
    """Returns the user-defined types of a field and of the elements, keys and values in it, as JSON by their
    paths (`""`, `element`); empty without any. Spark alone knows the fields of such a type."""
    user_types: Mapping[str, Any] = field.metadata.get(USER_TYPES, {})
    return user_types


def has_user_type(field: Field) -> bool:
    """True if a field has a user-defined type, at any depth."""
    return any(user_types_of(item) for _, item in walk([field]))


def _walk_type(data_type: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    if isinstance(data_type, Struct):
        yield from walk(data_type.fields, path)
    elif isinstance(data_type, Array):
        yield from _walk_type(data_type.element, (*path, "element"))
    elif isinstance(data_type, Map):
        yield from _walk_type(data_type.key, (*path, "key"))
        yield from _walk_type(data_type.value, (*path, "value"))


def primitive_types(data_type: DataType) -> Iterator[str]:
    """Yields the names of all primitive types in a type, at any depth."""
    if isinstance(data_type, Struct):
        for item in data_type.fields:
            yield from primitive_types(item.type)
    elif isinstance(data_type, Array):
        yield from primitive_types(data_type.element)
    elif isinstance(data_type, Map):
        yield from primitive_types(data_type.key)
        yield from primitive_types(data_type.value)
    else:
        yield data_type


def type_to_json(data_type: DataType) -> Any:
    """Converts a type to the JSON value of a schemaString."""
    return _type_to_json(data_type, {}, ())


def _type_to_json(
    data_type: DataType, user_types: Mapping[str, Mapping[str, Any]], path: tuple[str, ...]
) -> Any:
    """`user_types`: those of the column, as in its metadata. `path`: that of the type within the column."""
    value: Any = data_type
    if isinstance(data_type, Struct):
        value = _fields_to_json(data_type.fields)
    elif isinstance(data_type, Array):
        element = _type_to_json(data_type.element, user_types, (*path, "element"))
        value = {"type": "array", "elementType": element, "containsNull": data_type.contains_null}
    elif isinstance(data_type, Map):
        key = _type_to_json(data_type.key, user_types, (*path, "key"))
        item = _type_to_json(data_type.value, user_types, (*path, "value"))
        nullable = data_type.value_contains_null
        value = {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": nullable}
    user_type = user_types.get(".".join(path))
    return value if user_type is None else {**user_type, "sqlType": value}


def _fields_to_json(fields: Iterable[Field]) -> dict[str, Any]:
    parts = [
        {
            "name": item.name,
            "type": _type_to_json(item.type, user_types_of(item), ()),
            "nullable": item.nullable,
            "metadata": {key: value for key, value in item.metadata.items() if key != USER_TYPES},
        }
        for item in fields
    ]
    return {"type": "struct", "fields": parts}


def _parsed(text: str | bytes) -> Schema:
    from deltaic.protocol.schema_parser import parse_schema_string

    return Schema(parse_schema_string(text).fields)


@lru_cache(maxsize=128)
def _parsed_once(text: str | bytes) -> Schema:
    return _parsed(text)


def _unique_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    result = tuple(fields)
    seen: dict[str, str] = {}
    for item in result:
        if not isinstance(item, Field):
            raise InvalidTypeError("not a field", found=repr(item)[:80], expected="Field(name, type)")
        if (other := seen.get(item.name.lower())) is not None:
            message = "a column comes twice" if other == item.name else "two columns differ only in case"
            names = (other, item.name)
            raise InvalidArgumentError(
                message, found=f"{other!r} and {item.name!r}", expected="unique names"
            ).with_values(both=names, duplicate=item.name.lower(), duplicate_parts=(item.name.lower(),))
        seen[item.name.lower()] = item.name
    return result


def _child(parent: Field, part: str, path: Sequence[str]) -> Field:
    name = part.lower()
    if isinstance(parent.type, Struct):
        for item in parent.type.fields:
            if item.name.lower() == name:
                return item
        unknown = _unknown(
            path_text([*path, part]), [path_text([*path, item.name]) for item in parent.type.fields]
        )
        raise unknown.with_values(field=part, fields=tuple(item.name for item in parent.type.fields))
    if isinstance(parent.type, Array) and name == "element":
        return Field("element", parent.type.element, parent.type.contains_null)
    if isinstance(parent.type, Map) and name == "key":
        return Field("key", parent.type.key, False)
    if isinstance(parent.type, Map) and name == "value":
        return Field("value", parent.type.value, parent.type.value_contains_null)
    found, base = f"its type is {type_name(parent.type)}", path_text(path)
    error = InvalidArgumentError(f"column {base} has no field {part!r}", found=found).with_values(
        base=base, parent=type_name(parent.type), path=(*path, part), above=tuple(path)
    )
    if isinstance(parent.type, Array):
        raise error.with_values(element=f"{base}.element")
    if isinstance(parent.type, Map):
        raise error.with_values(key=f"{base}.key", value=f"{base}.value")
    raise error.with_values(leaf=base, leaf_type=parent.type, part=part)


def _unknown(name: str, names: Sequence[str]) -> InvalidArgumentError:
    error = InvalidArgumentError(
        "no such column", found=repr(name), expected=nearest_names(name, names) or "a table with columns"
    )
    return error.with_values(columns=tuple(names))


def type_name(data_type: DataType) -> str:
    """Returns a type as text for messages, with Delta's names: `array<struct<a: long>>`."""
    if isinstance(data_type, Struct):
        fields = (f"{quote_name(item.name)}: {type_name(item.type)}" for item in data_type.fields)
        return f"struct<{', '.join(fields)}>"
    if isinstance(data_type, Array):
        return f"array<{type_name(data_type.element)}>"
    if isinstance(data_type, Map):
        return f"map<{type_name(data_type.key)}, {type_name(data_type.value)}>"
    return data_type
