"""Resolves the names in an expression: columns of aliased schemas, struct fields, parameters of lambda
functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from deltaic.errors import InvalidArgumentError, most_similar, nearest_names
from deltaic.protocol.schema import Array, Field, Map, Schema, Struct, collation_of, walk
from deltaic.spark_sql import values as v
from deltaic.spark_sql.values import Value

ColumnSql = Callable[[str, tuple[str, ...]], str]
Path = tuple[str, tuple[str, ...]]
LIMITS = "deltaic.limits"
"""Key in a field's metadata for the `values.Limits` of the column. Only schemas that a query is translated
with have it."""


class Scope:
    """The names that an expression may use. `columns` collects (alias, path) of each column and field that
    was resolved, in the case of the schemas."""

    def __init__(self, schemas: Mapping[str, Schema], column_sql: ColumnSql) -> None:
        self._schemas = schemas
        self._column_sql = column_sql
        self._parameters: list[dict[str, Value]] = []
        self._count = 0
        self.columns: set[Path] = set()

    @property
    def joins(self) -> bool:
        """True if the expression may read more than one table."""
        return len(self._schemas) > 1

    def resolve(self, parts: Sequence[str]) -> Value:
        """Returns the value of a dotted name. Raises InvalidArgumentError if the name is unknown or
        ambiguous."""
        if (value := self.find(parts)) is None:
            raise self._unknown(".".join(parts), parts)
        return value

    def find(self, parts: Sequence[str]) -> Value | None:
        """Returns the value of a dotted name, or None if the name is unknown. Raises InvalidArgumentError if
        it is ambiguous."""
        for frame in reversed(self._parameters):
            if (found := frame.get(parts[0].lower())) is not None:
                return fields(found, parts[1:])
        matches = [
            (alias, field, parts[2:])
            for alias in self._aliases(parts)
            for field in self._fields(alias, parts[1])
        ]
        if not matches:
            matches = [
                (alias, field, parts[1:])
                for alias in self._schemas
                for field in self._fields(alias, parts[0])
            ]
        if not matches:
            return None
        if len(matches) > 1:
            raise InvalidArgumentError(
                f"[AMBIGUOUS_REFERENCE] column {'.'.join(parts)} is ambiguous",
                found=".".join(parts),
                expected=" or ".join(f"{alias}.{field.name}" for alias, field, _ in matches),
            )
        alias, field, rest = matches[0]
        return self._column(alias, field, rest)

    def push(self, parameters: Mapping[str, Value]) -> None:
        """Adds the parameters of a lambda function, which hide columns of the same names until `pop`."""
        self._parameters.append({name.lower(): value for name, value in parameters.items()})

    def pop(self) -> None:
        self._parameters.pop()

    def fresh(self) -> str:
        """Returns a unique name for the parameter of a lambda function."""
        self._count += 1
        return f"deltaic_p{self._count}"

    def names(self, alias: str | None = None) -> list[tuple[str, Field]]:
        """Returns (alias, field) of all columns, or of the columns of one alias: the columns of a star."""
        if alias is None:
            return [(key, field) for key, schema in self._schemas.items() for field in schema.fields]
        found = [key for key in self._schemas if key.lower() == alias.lower()]
        if not found:
            raise InvalidArgumentError(f"no such table: {alias}", expected=", ".join(self._schemas))
        return [(found[0], field) for field in self._schemas[found[0]].fields]

    def column(self, alias: str, field: Field) -> Value:
        """Returns the value of a column."""
        return self._column(alias, field, ())

    def _column(self, alias: str, field: Field, rest: Sequence[str]) -> Value:
        path, kind, nullable, reached = [field.name], field.type, field.nullable, field
        collation, rest = collation_of(field), list(rest)
        while rest and isinstance(kind, Struct):
            inner = _field(kind, rest[0], ".".join(path))
            path.append(inner.name)
            kind, nullable, reached = inner.type, nullable or inner.nullable, inner
            rest.pop(0)
        collation = collation or collation_within(reached)
        self.columns.add((alias, tuple(path)))
        limits = known_limits(field) if len(path) == 1 else None
        return fields(
            Value(self._column_sql(alias, tuple(path)), kind, nullable, limits=limits, collation=collation),
            rest,
        )

    def _aliases(self, parts: Sequence[str]) -> list[str]:
        return [alias for alias in self._schemas if len(parts) > 1 and alias.lower() == parts[0].lower()]

    def _fields(self, alias: str, name: str) -> list[Field]:
        found = self._schemas[alias].get(name)
        return [] if found is None else [found]

    def _unknown(self, shown: str, parts: Sequence[str]) -> InvalidArgumentError:
        aliases = self._aliases(parts) or list(self._schemas)
        many = len(self._schemas) > 1
        return unknown_column(
            shown,
            (
                f"{alias}.{field.name}" if alias and many else field.name
                for alias, field in self.names()
                if alias in aliases
            ),
        )


def unknown_column(shown: str, known: Iterable[str]) -> InvalidArgumentError:
    """Returns the error for an unknown column. If no column has a similar name, the error suggests text in
    quotes: `city = Rome` may mean `city = 'Rome'`."""
    names = tuple(known)
    expected = nearest_names(shown, names)
    if shown.lower() in ("none", "nan"):
        expected = "NULL, which IS NULL finds" if shown.lower() == "none" else "double('NaN')"
    elif expected is not None and expected.startswith("one of") and shown.isidentifier():
        expected += f"; or {shown!r}, if it is text"
    return InvalidArgumentError(
        f"[UNRESOLVED_COLUMN] no column {shown}", found=shown, expected=expected or "no columns here"
    ).with_values(columns=most_similar(shown, names), unresolved=shown)


def known_limits(field: Field) -> v.Limits | None:
    """Returns the limits of a column, or None. The type is checked because a table's own metadata (JSON) may
    have the same key."""
    limits = field.metadata.get(LIMITS)
    return limits if isinstance(limits, v.Limits) else None


def collation_within(field: Field) -> str | None:
    """Returns the collation of a column, or of the first text nested in it, or None if all its text is
    compared by bytes."""
    return next((found for _, each in walk((field,)) if (found := collation_of(each))), None)


def fields(value: Value, names: Sequence[str]) -> Value:
    """Returns a field within a value: a field of a struct, an array of the fields of structs in an array, or
    a map's value by a text key."""
    for name in names:
        kind = value.type
        if kind == "void":
            return value
        if isinstance(kind, Struct):
            field = _field(kind, name, "the struct")
            value = value.like(
                f"struct_extract({value.sql}, {v.text(field.name)})",
                field.type,
                nullable=value.nullable or field.nullable,
            )
        elif isinstance(kind, Array) and isinstance(kind.element, Struct):
            field = _field(kind.element, name, "the array's struct")
            sql = (
                f"list_transform({value.sql}, lambda deltaic_field: struct_extract(deltaic_field,"
                f" {v.text(field.name)}))"
            )
            value = value.like(sql, Array(field.type, kind.contains_null or field.nullable))
        elif isinstance(kind, Map) and kind.key == "string":
            value = value.like(f"map_extract_value({value.sql}, {v.text(name)})", kind.value, nullable=True)
        elif isinstance(kind, Map):
            raise v.unsupported(f"the value at {name} of", kind)
        else:
            raise InvalidArgumentError(
                f"[INVALID_EXTRACT] no field {name} in a value of type {v.type_text(kind)}", found=name
            )
    return value


def _field(struct: Struct, name: str, where: str) -> Field:
    for field in struct.fields:
        if field.name.lower() == name.lower():
            return field
    raise InvalidArgumentError(
        f"[FIELD_NOT_FOUND] no field {name} in {where}",
        found=name,
        expected=", ".join(field.name for field in struct.fields),
    )
