"""Filters that Spark hands to a file index: exactly, on the files' constants; as hints, on their statistics."""

from __future__ import annotations

import json
from typing import Any

from deltaic import _core
from deltaic.engine.spark.native.jvm import DATASOURCES, EXPRESSIONS, Jvm
from deltaic.engine.spark.read_path import is_unexpected, log
from deltaic.errors import DeltaError
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.schema import CHAR_TYPES, Field, Schema, Struct, split_path

_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
MOST_VALUES = 200
"""An IN with more values is no hint: each is a call."""

INTERPRETED_FILES = 5000
"""Up to so many files a predicate is interpreted: compiling one costs more."""

_YEAR_1900 = -2_208_902_400_000


def exact_predicate(jvm: Jvm, filters: Any, schema: Any, files: int) -> Any | None:
    """The conjunction of Catalyst expressions over the columns of `schema` (StructType), bound to rows of it; None where there are none."""
    count = filters.size()
    if not count:
        return None
    whole, attributes = filters.apply(0), list(schema.fieldNames())
    for index in range(1, count):
        whole = jvm.get(EXPRESSIONS + "And")(whole, filters.apply(index))
    places = {name.lower(): index for index, name in enumerate(attributes)}
    known = jvm.companion("org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)
    references = whole.references().toSeq()
    for index in range(references.size()):
        attribute = references.apply(index)
        known = known.updated(places[attribute.name().lower()], attribute)
    predicates = jvm.companion(EXPRESSIONS + "Predicate")
    if files > INTERPRETED_FILES:
        return predicates.create(whole, known)
    bound = jvm.companion(EXPRESSIONS + "BindReferences").bindReference(whole, jvm.get(EXPRESSIONS + "package$AttributeSeq")(known), False)
    return predicates.createInterpreted(bound)


def skipping_predicate(jvm: Jvm, filters: Any, schema: Schema, table_schema: _core.TableSchema) -> _core.Predicate | None:
    """Translates Spark's filters into the predicate tree, as far as possible. Filters have the names of columns in data files; `schema`
    and `table_schema`: the table's.

    Only ever a hint: what cannot be said leaves no file out, and Spark applies the filters itself."""
    found: _core.Predicate | None = None
    strategy = jvm.companion(DATASOURCES + "DataSourceStrategy")
    for index in range(filters.size()):
        translated = strategy.translateFilter(filters.apply(index), True)
        node = None if translated.isEmpty() else _weaker(translated.get())
        if node is None:
            continue
        try:
            predicate = _core.Predicate.from_json(json.dumps(_named(node, schema)), table_schema)
        except (DeltaError, LookupError):  # a literal that is no value of the column's type, a column of the scan that is none of the table
            continue
        found = predicate if found is None else found & predicate
    return found


def partition_predicate(jvm: Jvm, filters: Any, schema: Schema, table_schema: _core.TableSchema) -> _core.Predicate | None:
    """The conjunction of Catalyst conditions over columns by the table's own names, true for just the rows for which they are; None where
    one reads a column that is not a partition column, or the predicate tree cannot say it exactly."""
    try:
        parts = _exact_nodes(jvm, filters)
    except Exception as error:
        if not is_unexpected(error):
            raise
        log.debug("filters have another form here", exc_info=error)
        return None
    if None in parts:
        return None
    columns = {field.name: field for field in schema if field.name in table_schema.partition_columns}
    try:
        predicate = _core.Predicate.from_json(json.dumps({"op": "and", "args": parts}), table_schema)
    except DeltaError:  # a literal that is no value of the column's type
        return None
    exact = all(name in columns and _has_exact_values(columns[name]) for name in predicate.columns)
    return predicate if exact else None


def _exact_nodes(jvm: Jvm, filters: Any) -> list[dict[str, Any] | None]:
    strategy = jvm.companion(DATASOURCES + "DataSourceStrategy")
    parts = []
    for index in range(filters.size()):
        translated = strategy.translateFilter(filters.apply(index), True)
        node = None if translated.isEmpty() else _node(translated.get())
        parts.append(None if node is None or "starts_with" in _operators(node) else node)
    return parts


_EXACT = frozenset({"byte", "short", "integer", "long", "date", "string", "boolean"})


def _has_exact_values(field: Field) -> bool:
    """True if Spark compares the values of a partition column as they stand in the log: not those of CHAR(n), which it pads, of a
    collation, or of a type that was another one."""
    others = ("delta.typeChanges", CHAR_TYPES, "__COLLATIONS")
    return field.type in _EXACT and not any(key in field.metadata for key in others)


def _operators(node: dict[str, Any]) -> set[str]:
    inner = [*node.get("args", ()), *([node["arg"]] if "arg" in node else ())]
    return {node["op"]}.union(*map(_operators, inner))


def _named(node: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The node with the table's own names. LookupError for columns that it has not."""
    found = dict(node)
    if "column" in node:
        found["column"] = _logical(node["column"], schema)
    if "args" in node:
        found["args"] = [_named(each, schema) for each in node["args"]]
    if "arg" in node:
        found["arg"] = _named(node["arg"], schema)
    return found


def _logical(path: list[str], schema: Schema) -> list[str]:
    fields, names = list(schema), []
    for part in path:
        field = {physical_name(each): each for each in fields}[part]
        names.append(field.name)
        fields = list(field.type.fields) if isinstance(field.type, Struct) else []
    return names


def _weaker(node: Any) -> dict[str, Any] | None:
    """A predicate that is true wherever the filter is; None when that would be no restriction."""
    if _kind(node) != "And":
        return _node(node)
    parts = [part for side in (node.left(), node.right()) if (part := _weaker(side)) is not None]
    return parts[0] if len(parts) == 1 else {"op": "and", "args": parts} if parts else None


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _node(node: Any) -> dict[str, Any] | None:
    """The filter (org.apache.spark.sql.sources) in the tree's JSON, None where it has no form."""
    kind = _kind(node)
    if kind in ("And", "Or"):
        sides = [_node(side) for side in (node.left(), node.right())]
        return None if None in sides else {"op": kind.lower(), "args": sides}
    if kind == "Not":
        inner = _node(node.child())
        return None if inner is None else {"op": "not", "arg": inner}
    if kind in _COMPARISONS:
        return _compared(_COMPARISONS[kind], node.attribute(), [node.value()])
    if kind == "In":
        values = node.values()
        return _compared("in", node.attribute(), list(values)) if len(values) <= MOST_VALUES else None
    if kind == "StringStartsWith":
        return _compared("starts_with", node.attribute(), [node.value()])
    if kind in ("IsNull", "IsNotNull"):
        null = {"op": "is_null", "column": list(split_path(node.attribute()))}
        return null if kind == "IsNull" else {"op": "not", "arg": null}
    return None


def _compared(op: str, attribute: str, values: list[Any]) -> dict[str, Any] | None:
    texts = [_text(value) for value in values]
    if None in texts:
        return None
    column = list(split_path(attribute))
    return {"op": op, "column": column, **({"literals": texts} if op == "in" else {"literal": texts[0]})}


def _text(value: Any) -> str | None:
    """A filter's value as PROTOCOL.md's "Partition Value Serialization"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if not hasattr(value, "getClass"):
        return None if value is None or isinstance(value, (bytes, bytearray)) else str(value)
    kind = _kind(value)
    if kind == "Timestamp":  # before 1900 it is not the instant that Spark compares with, but one of the Julian calendar or of local time
        return str(value.toInstant().toString()) if value.getTime() > _YEAR_1900 else None
    if kind == "LocalDateTime":
        return str(value.toString()).replace("T", " ")
    return str(value.toString()) if kind in ("Date", "LocalDate", "Instant", "BigDecimal") else None
