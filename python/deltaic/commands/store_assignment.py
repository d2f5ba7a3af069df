"""Store assignment: an expression as the type of the column that it goes to, by Spark's ANSI rules, structs by name at every depth.

Source: Spark's ANSI store assignment as delta-spark applies it in UPDATE and MERGE (UpdateExpressionsSupport.castIfNeeded): a value becomes
the column's type by a cast that fails where it does not fit; fields of structs, also within arrays and maps, are matched by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from deltaic.errors import SchemaMismatchError
from deltaic.protocol.ddl import format_type
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, decimal_parts, type_name
from deltaic.relation.failures import failing
from deltaic.relation.literal import col, lit

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

Casting: TypeAlias = Literal["strict", "try"]

_WIDER = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "long": set[str](),
    "float": {"double"},
}
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


def null_of(column: Field) -> str:
    return f"CAST(NULL AS {format_type(column.type)})"


def enclosed(text: str) -> str:
    """A user's expression within a longer text; the line break ends a comment."""
    return f"({text}\n)"


def assigned(engine: Engine, text: str, target: DataType, path: tuple[str, ...], scope: Mapping[str, Schema], casting: Casting) -> str:
    """The expression as the column's type. SchemaMismatchError: here where the types never fit, at a row where its value does not."""
    resolved = engine.resolve(text, scope)
    if same_type(resolved.type, target):
        return enclosed(text)
    fit = _Fit(f"column {'.'.join(path)}", casting)
    if resolved.deterministic:
        return fit.value(enclosed(text), resolved.type, target)
    # What differs from one evaluation to the next is evaluated once.
    once = f"__deltaic_value{fit.depth}"
    converted = _Fit(fit.where, casting, fit.depth + 1).value(once, resolved.type, target)
    return f"element_at(transform(array({enclosed(text)}), {once} -> {converted}), 1)"


@dataclass(frozen=True)
class _Fit:
    """`where` names the column or field. `depth`: of lambdas around the text."""

    where: str
    casting: Casting
    depth: int = 0

    def value(self, text: str, source: DataType, target: DataType) -> str:
        """`text`, of type `source`, as `target`."""
        if same_type(source, target):
            return text
        if source == "void":
            return f"CAST({text} AS {format_type(target)})"
        if isinstance(source, Struct) and isinstance(target, Struct):
            return self._struct(text, source, target)
        if isinstance(source, Array) and isinstance(target, Array):
            item, inner = self._inner()
            return f"transform({text}, {item} -> {inner.value(item, source.element, target.element)})"
        if isinstance(source, Map) and isinstance(target, Map):
            item, inner = self._inner()
            key, value = inner.value(f"{item}.key", source.key, target.key), inner.value(f"{item}.value", source.value, target.value)
            return f"map_from_entries(transform(map_entries({text}), {item} -> named_struct('key', {key}, 'value', {value})))"
        if not isinstance(source, str) or not isinstance(target, str):
            raise SchemaMismatchError(
                "a value does not fit its column", where=self.where, found=type_name(source), expected=type_name(target)
            )
        return self._primitive(text, source, target)

    def _inner(self) -> tuple[str, _Fit]:
        return f"__deltaic_item{self.depth}", _Fit(self.where, self.casting, self.depth + 1)

    def _struct(self, text: str, source: Struct, target: Struct) -> str:
        """A field that the source lacks is null, one that the target lacks is an error."""
        by_name = {item.name.lower(): item for item in source.fields}
        if extra := sorted(by_name.keys() - {item.name.lower() for item in target.fields}):
            raise SchemaMismatchError(
                "a struct has fields that its column lacks", where=self.where, found=", ".join(extra), expected=type_name(target)
            )
        parts = []
        for item in target.fields:
            found = by_name.get(item.name.lower())
            inner = _Fit(f"{self.where}.{item.name}", self.casting, self.depth)
            value = null_of(item) if found is None else inner.value(f"{text}.{col(found.name)}", found.type, item.type)
            parts.append(f"{lit(item.name)}, {value}")
        return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(parts)}) END"

    def _primitive(self, text: str, source: str, target: str) -> str:
        sql_type = format_type(target)
        if _always_fits(source, target):
            return f"CAST({text} AS {sql_type})"
        attempt = f"try_cast({text} AS {sql_type})"
        if self.casting == "try":
            return attempt
        message = f"{self.where}: a value of type {type_name(source)} does not fit"
        failure = failing(SchemaMismatchError, message, expected=type_name(target))
        return f"coalesce({attempt}, CASE WHEN {text} IS NOT NULL THEN CAST({failure} AS {sql_type}) END)"


def same_type(left: DataType, right: DataType) -> bool:
    """Equal but for what may be null."""
    if isinstance(left, Struct) and isinstance(right, Struct):
        return len(left.fields) == len(right.fields) and all(
            a.name == b.name and same_type(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)
        )
    if isinstance(left, Array) and isinstance(right, Array):
        return same_type(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return same_type(left.key, right.key) and same_type(left.value, right.value)
    return left == right


def _always_fits(source: DataType, target: DataType) -> bool:
    """No value of `source` fails as `target`."""
    if not isinstance(source, str) or not isinstance(target, str):
        return False
    if target in _WIDER.get(source, ()) or target == "string":
        return True
    wanted = decimal_parts(target)
    if wanted is None:
        return (source, target) in {("date", "timestamp"), ("date", "timestamp_ntz"), ("timestamp", "date"), ("timestamp_ntz", "date")}
    have = decimal_parts(source) or ((_DIGITS[source], 0) if source in _DIGITS else None)
    return have is not None and wanted[1] >= have[1] and wanted[0] - wanted[1] >= have[0] - have[1]
