"""The columns that expressions of a query may use: its own, and those of outer queries.

Each column has a label, a name in DuckDB's SQL that is unique in the whole statement (`"id_7"`). SQL refers
to a column by its label alone, without a table's name, so the reference stays valid in a layer that adds
columns (`SELECT *, rank() … AS "rank_9"`), in a join, and in a subquery that reads a column of the outer
query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType, Field, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.scope import Scope, fields, unknown_column
from deltaic.spark_sql.values import Value

Resolve = Callable[[Sequence[str]], "Value | None"]
"""Returns the value of a dotted name in the outer queries, or None if they have no such name."""


@dataclass(frozen=True)
class Column:
    """A column of a query or of a table in it. `name`: the name that the user wrote; several columns may have
    the same name. `limits` and `collation`: see `Value`."""

    name: str
    label: str
    type: DataType
    nullable: bool = True
    limits: v.Limits | None = None
    collation: str | None = None

    @property
    def value(self) -> Value:
        return Value(
            v.name(self.label), self.type, self.nullable, limits=self.limits, collation=self.collation
        )


def refuse_collations(columns: Iterable[Column], what: str) -> None:
    """Raises UnsupportedFeatureError if a column is text with a collation: `what` compares the columns, and
    DuckDB would compare their bytes."""
    for column in columns:
        if column.collation is not None:
            raise v.unsupported(f"{what} of text with the collation {column.collation}")


@dataclass(frozen=True)
class Attribute:
    """A column that expressions may use, of the table with the alias `table`. `qualified`: the column is
    found only with the alias, as the right side's `k` of USING (k)."""

    column: Column
    table: str | None
    qualified: bool = False

    @property
    def name(self) -> str:
        return self.column.name

    def as_nullable(self) -> Attribute:
        return replace(self, column=replace(self.column, nullable=True))


class QueryScope(Scope):
    """The names in a query. A name is looked up in this order: parameters of lambda functions; aliases of the
    SELECT that come before columns (`first`, in ORDER BY and HAVING); columns; other aliases of the SELECT
    (`aliases`); outer queries (`outer`)."""

    def __init__(self, attributes: Iterable[Attribute] = (), outer: Resolve | None = None) -> None:
        super().__init__({}, lambda alias, path: "")
        self.attributes = tuple(attributes)
        self.outer = outer
        self.first: Mapping[str, Sequence[Value]] = {}
        self.aliases: dict[str, list[Value]] = {}
        self.outer_columns: set[str] = set()
        """SQL of the columns of outer queries that this query reads."""
        self.around: dict[tuple[str, ...], Value] = {}
        """Columns of outer queries that this query reads, by the path as it was written."""

    @property
    def joins(self) -> bool:
        return len({attribute.table for attribute in self.attributes}) > 1

    def resolve(self, parts: Sequence[str]) -> Value:
        found = self.find(parts)
        if found is None:
            raise self._no_column(parts)
        return found

    def find(self, parts: Sequence[str]) -> Value | None:
        """Returns the value of a dotted name in this query or an outer one, or None if there is none."""
        for frame in reversed(self._parameters):
            if (parameter := frame.get(parts[0].lower())) is not None:
                return fields(parameter, parts[1:])
        for resolve in (
            lambda parts: _named(self.first, parts),
            self.own,
            lambda parts: _named(self.aliases, parts),
        ):
            if (found := resolve(parts)) is not None:
                return found
        found = None if self.outer is None else self.outer(parts)
        if found is not None:
            self.outer_columns.add(found.sql)
            self.around[tuple(parts)] = found
        return found

    def own(self, parts: Sequence[str]) -> Value | None:
        """Returns the value of a column of this query, or of a field in it, or None if there is none."""
        located = self.locate(parts)
        if located is None:
            return None
        attribute, rest = located
        self.columns.add((attribute.table or "", (attribute.column.label,)))
        return dotted(attribute.column.value, rest)

    def locate(self, parts: Sequence[str]) -> tuple[Attribute, Sequence[str]] | None:
        """Returns the column at the beginning of a dotted name, and the names of the fields after it. Returns
        None if there is no such column."""
        matches: list[tuple[Attribute, Sequence[str]]] = []
        if len(parts) > 1:
            matches = [
                (each, parts[2:])
                for each in self.attributes
                if _is(each.table, parts[0]) and _is(each.name, parts[1])
            ]
        if not matches:
            matches = [
                (each, parts[1:])
                for each in self.attributes
                if not each.qualified and _is(each.name, parts[0])
            ]
        if len({each.column.label for each, _ in matches}) > 1:
            shown = ".".join(parts)
            raise InvalidArgumentError(
                f"[AMBIGUOUS_REFERENCE] column {shown} is ambiguous",
                found=shown,
                expected=" or ".join(
                    f"{each.table}.{each.name}" if each.table else each.name for each, _ in matches
                ),
            )
        return matches[0] if matches else None

    def star(self, table: str | None) -> list[Attribute]:
        """Returns the columns of `*` or `table.*`."""
        if table is None:
            return [each for each in self.attributes if not each.qualified]
        found = [each for each in self.attributes if _is(each.table, table)]
        if not found:
            tables = dict.fromkeys(each.table for each in self.attributes if each.table)
            raise InvalidArgumentError(f"no such table: {table}", expected=", ".join(tables))
        return sorted(found, key=lambda each: not each.qualified)

    def names(self, alias: str | None = None) -> list[tuple[str, Field]]:
        return [
            (each.table or "", Field(each.name, each.column.type, each.column.nullable))
            for each in self.attributes
        ]

    def _no_column(self, parts: Sequence[str]) -> InvalidArgumentError:
        tables = {each.table for each in self.attributes if len(parts) > 1 and _is(each.table, parts[0])}
        return unknown_column(
            ".".join(parts),
            (
                f"{each.table}.{each.name}" if self.joins and each.table else each.name
                for each in self.attributes
                if not tables or each.table in tables
            ),
        )


def dotted(value: Value, names: Sequence[str]) -> Value:
    """Returns a field within a column. Fields of structs are written as dotted names: from those, the scan of
    a table knows which columns of a file to read."""
    rest = list(names)
    while rest and isinstance(value.type, Struct):
        field = next((each for each in value.type.fields if _is(each.name, rest[0])), None)
        if field is None:
            break
        value = value.like(
            f"{value.sql}.{v.name(field.name)}", field.type, nullable=value.nullable or field.nullable
        )
        rest.pop(0)
    return fields(value, rest)


def _is(name: str | None, other: str) -> bool:
    return name is not None and name.lower() == other.lower()


def _named(values: Mapping[str, Sequence[Value]], parts: Sequence[str]) -> Value | None:
    found = values.get(parts[0].lower())
    if not found:
        return None
    if len({value.sql for value in found}) > 1:
        raise InvalidArgumentError(
            f"[AMBIGUOUS_REFERENCE] column {parts[0]} is ambiguous",
            found=f"{len(found)} columns of this name",
        )
    return fields(found[0], parts[1:])
