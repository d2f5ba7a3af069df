"""Converts the filters that Spark passes to a file index. Filters on the files' constants are evaluated
exactly; filters on data columns become predicates on statistics, which prune files."""

from __future__ import annotations

import json
from typing import Any

from deltaic import _core
from deltaic.engine.spark.native.jvm import EXPRESSIONS, Jvm
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
"""Maximum number of values of an IN that prunes files; an IN with more values prunes none."""

INTERPRETED_FILES = 5000
"""Maximum number of files for which a predicate is interpreted. For more files it is compiled to bytecode,
which takes longer than interpreting it a few times."""

_YEAR_1900 = -2_208_902_400_000
"""1900-01-02 UTC in milliseconds since 1970."""


def exact_predicate(jvm: Jvm, filters: Any, schema: Any, files: int) -> Any | None:
    """Returns the conjunction of Catalyst expressions as a `BasePredicate` on rows with the columns of
    `schema` (a Java StructType); None if there are no expressions. `files`: number of rows for which it will
    be evaluated."""
    count = filters.size()
    if not count:
        return None
    whole, attributes = filters.apply(0), list(schema.fieldNames())
    for index in range(1, count):
        whole = jvm.get(EXPRESSIONS + "And")(whole, filters.apply(index))
    places = {name.lower(): index for index, name in enumerate(attributes)}
    columns = jvm.companion("org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)
    references = whole.references().toSeq()
    for index in range(references.size()):
        attribute = references.apply(index)
        columns = columns.updated(places[attribute.name().lower()], attribute)
    predicates = jvm.companion(EXPRESSIONS + "Predicate")
    if files > INTERPRETED_FILES:
        return predicates.create(whole, columns)
    bound = jvm.companion(EXPRESSIONS + "BindReferences").bindReference(
        whole, jvm.get(EXPRESSIONS + "package$AttributeSeq")(columns), False
    )
    return predicates.createInterpreted(bound)


def skipping_predicate(
    jvm: Jvm, filters: Any, schema: Schema, table_schema: _core.TableSchema
) -> _core.Predicate | None:
    """Converts the filters of Spark that have a form in the predicate tree; None if none has. The filters
    have the physical column names of data files; the predicate has the names of `schema` and `table_schema`.

    The predicate may be used to prune files only: it is true for each row that matches the filters, and may
    be true for others. For `a = 1 AND f(b)` it is `a = 1`."""
    conjunction: _core.Predicate | None = None
    for tree in _trees(jvm, filters):
        node = None if tree is None else _weaker(tree)
        if node is None:
            continue
        try:
            predicate = _core.Predicate.from_json(json.dumps(_named(node, schema)), table_schema)
        except (DeltaError, LookupError):
            # The literal is no value of the column's type, or the column is one of the scan and not the
            # table's.
            continue
        conjunction = predicate if conjunction is None else conjunction & predicate
    return conjunction


def partition_predicate(
    jvm: Jvm, filters: Any, schema: Schema, table_schema: _core.TableSchema
) -> _core.Predicate | None:
    """Returns the conjunction of Catalyst conditions on partition columns, with the table's column names. It
    is true for exactly the rows for which the conditions are. Returns None if a condition reads another
    column, or has no exact form in the predicate tree."""
    try:
        parts = _exact_nodes(jvm, filters)
    except Exception as error:
        if not is_unexpected(error):
            raise
        log.debug("Spark's filters cannot be translated", exc_info=error)
        return None
    if None in parts:
        return None
    columns = {field.name: field for field in schema if field.name in table_schema.partition_columns}
    try:
        predicate = _core.Predicate.from_json(json.dumps({"op": "and", "args": parts}), table_schema)
    except DeltaError:
        # The literal is no value of the column's type.
        return None
    exact = all(name in columns and _has_exact_values(columns[name]) for name in predicate.columns)
    return predicate if exact else None


def _exact_nodes(jvm: Jvm, filters: Any) -> list[dict[str, Any] | None]:
    parts = []
    for tree in _trees(jvm, filters):
        node = None if tree is None else _node(tree)
        parts.append(None if node is None or "starts_with" in _operators(node) else node)
    return parts


_EXACT = frozenset({"byte", "short", "integer", "long", "date", "string", "boolean"})


def _has_exact_values(field: Field) -> bool:
    """True if Spark compares the values of a partition column in the form that they have in the log. It does
    not for CHAR(n), whose values it pads, for text with a collation, and for a column with a changed type,
    whose values may have the form of the old type."""
    others = ("delta.typeChanges", CHAR_TYPES, "__COLLATIONS")
    return field.type in _EXACT and not any(key in field.metadata for key in others)


def _operators(node: dict[str, Any]) -> set[str]:
    inner = [*node.get("args", ()), *([node["arg"]] if "arg" in node else ())]
    return {node["op"]}.union(*map(_operators, inner))


def _named(node: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Returns the node with the table's column names in place of the physical names. Raises LookupError for
    an unknown column."""
    named = dict(node)
    if "column" in node:
        named["column"] = _logical(node["column"], schema)
    if "args" in node:
        named["args"] = [_named(each, schema) for each in node["args"]]
    if "arg" in node:
        named["arg"] = _named(node["arg"], schema)
    return named


def _logical(path: list[str], schema: Schema) -> list[str]:
    fields, names = list(schema), []
    for part in path:
        field = {physical_name(each): each for each in fields}[part]
        names.append(field.name)
        fields = list(field.type.fields) if isinstance(field.type, Struct) else []
    return names


def _trees(jvm: Jvm, filters: Any) -> list[dict[str, Any] | None]:
    """Converts a Seq of Catalyst expressions to filters of Spark's data sources, in the JSON form of
    `FilterTrees` of `listing_classes`."""
    trees: list[dict[str, Any] | None] = json.loads(jvm.callbacks.filter_trees(filters))
    return trees


def _weaker(tree: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the JSON of a predicate that is true if the filter is, and perhaps for other rows; None if no
    part of the filter can be converted."""
    if tree["kind"] != "And":
        return _node(tree)
    parts = [part for side in tree["parts"] if (part := _weaker(side)) is not None]
    return parts[0] if len(parts) == 1 else {"op": "and", "args": parts} if parts else None


def _node(tree: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the JSON of the predicate for a filter; None if the predicate tree has no such form."""
    kind, parts = tree["kind"], tree["parts"]
    if kind in ("And", "Or"):
        sides = [_node(side) for side in parts]
        return None if None in sides else {"op": kind.lower(), "args": sides}
    if kind == "Not":
        inner = _node(parts[0])
        return None if inner is None else {"op": "not", "arg": inner}
    if kind in _COMPARISONS:
        return _compared(_COMPARISONS[kind], parts[0], [parts[1]])
    if kind == "EqualNullSafe":
        return _equal_or_null(parts[0], parts[1])
    if kind == "In":
        return _compared("in", parts[0], parts[1]) if len(parts[1]) <= MOST_VALUES else None
    if kind == "StringStartsWith":
        return _compared("starts_with", parts[0], [parts[1]])
    if kind in ("IsNull", "IsNotNull"):
        null = {"op": "is_null", "column": list(split_path(parts[0]))}
        return null if kind == "IsNull" else {"op": "not", "arg": null}
    return None


def _equal_or_null(attribute: str, value: dict[str, Any]) -> dict[str, Any] | None:
    """Converts `a <=> 1`, which is false for a null, to `a = 1 AND a IS NOT NULL`, which is, too."""
    null = {"op": "is_null", "column": list(split_path(attribute))}
    if value["type"] == "null":
        return null
    equal = _compared("=", attribute, [value])
    return None if equal is None else {"op": "and", "args": [equal, {"op": "not", "arg": null}]}


def _compared(op: str, attribute: str, values: list[dict[str, Any]]) -> dict[str, Any] | None:
    texts = [_text(value) for value in values]
    if None in texts:
        return None
    column = list(split_path(attribute))
    return {"op": op, "column": column, **({"literals": texts} if op == "in" else {"literal": texts[0]})}


_TEXT_TYPES = frozenset(
    {
        "Boolean",
        "Byte",
        "Short",
        "Integer",
        "Long",
        "Float",
        "Double",
        "BigDecimal",
        "String",
        "LocalDate",
        "Instant",
    }
)
"""Java types whose text has the form of PROTOCOL.md's "Partition Value Serialization"."""


def _text(value: dict[str, Any]) -> str | None:
    """Returns a filter's value as text in the form of PROTOCOL.md; None for a value without such a form."""
    kind, text = value["type"], str(value["text"])
    if kind in ("Date", "Timestamp"):
        # Before 1900, the classes of java.sql use the Julian calendar or local mean time, and are not
        # Spark's values: its 1582-10-10 becomes the java.sql.Date 1582-10-15.
        return text if value["milliseconds"] > _YEAR_1900 else None
    if kind == "LocalDateTime":
        # Java leaves out seconds that are zero: 2024-01-01T00:00.
        return text.replace("T", " ") + (":00" if text.count(":") == 1 else "")
    return text if kind in _TEXT_TYPES else None
