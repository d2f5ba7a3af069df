"""Translates pyarrow's filters over float columns to the predicate tree, which orders NaN as Spark does.

For the tree, as for Spark, NaN equals itself and is greater than every number; for pyarrow it is different
from every value and neither less nor greater. `x > 1` of pyarrow becomes `x > 1 and x <= Infinity`, so that a
dataset answers as pyarrow does over rows in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from deltaic import _core

Node = dict[str, Any]


def said_by_pyarrow(
    expression: Any, schema: pa.Schema, table_schema: _core.TableSchema
) -> tuple[_core.Predicate | None, bool]:
    """Translates a `pyarrow.dataset.Expression` into the predicate tree as far as possible. The second result
    is True if the whole filter was translated."""
    predicate, exact = _core.Predicate.from_pyarrow(expression, table_schema)
    if predicate is None:
        return None, exact
    types = [schema.field(name).type for name in predicate.columns if name in schema.names]
    if not any(_has(pa.types.is_floating, data_type) for data_type in types):
        return predicate, exact
    # JSON has no text for empty bytes, nor for bytes that are no UTF-8.
    if any(_has(pa.types.is_binary, data_type) for data_type in types):
        return None, False
    parts = [_translated(node, schema) for node in _conjuncts(json.loads(predicate.json))]
    known = [node for node in parts if node is not None]
    if not known:
        return None, False
    return _core.Predicate.from_json(json.dumps({"op": "and", "args": known}), table_schema), exact and len(
        known
    ) == len(parts)


def _conjuncts(node: Node) -> list[Node]:
    return [part for each in node["args"] for part in _conjuncts(each)] if node["op"] == "and" else [node]


def _translated(node: Node, schema: pa.Schema) -> Node | None:
    """Returns the node by the order of the predicate tree; None if the tree cannot express it."""
    operator = node["op"]
    if operator in ("and", "or"):
        parts = [_translated(each, schema) for each in node["args"]]
        return None if None in parts else {**node, "args": parts}
    if operator == "not":
        inner = _translated(node["arg"], schema)
        return None if inner is None else {**node, "arg": inner}
    if "column" not in node or not pa.types.is_floating(_type_at(schema, node["column"])):
        return node
    if operator == "in":
        # pyarrow does not find -0.0 in a set with 0.0.
        return None if any(float(text) == 0 for text in node["literals"] if text is not None) else node
    if operator not in ("=", "!=", "<", "<=", ">", ">="):
        return node
    if float(node["literal"]) != float(node["literal"]):
        # Null stays null; every other value is different from NaN.
        return {**node, "op": ">=" if operator == "!=" else "<", "literal": "-Infinity"}
    if operator in (">", ">="):
        return {"op": "and", "args": [node, {**node, "op": "<=", "literal": "Infinity"}]}
    return node


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    """Returns the type of a column, or of a field within structs. `path`: the names as in the table."""
    data_type = schema.field(path[0]).type
    for name in path[1:]:
        data_type = data_type.field(data_type.get_field_index(name)).type
    return data_type


def _has(is_kind: Callable[[pa.DataType], bool], data_type: pa.DataType) -> bool:
    """True if the type or a type in it is of this kind."""
    return is_kind(data_type) or any(
        _has(is_kind, data_type.field(at).type) for at in range(data_type.num_fields)
    )
