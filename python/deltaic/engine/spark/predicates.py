"""Converts the predicate tree of planning to a condition in Spark's SQL that is true for the same rows. Each
literal gets the type of the column with which it is compared."""

from __future__ import annotations

import json
from typing import Any

from deltaic import _core
from deltaic.plan.literal import col, lit
from deltaic.protocol.ddl import cast_type
from deltaic.protocol.schema import DataType, Schema

_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">="})


def predicate_text(predicate: _core.Predicate, schema: Schema, alias: str) -> str:
    """Returns the predicate in Spark's SQL, over the columns of `schema` qualified by `alias`."""
    return _text(json.loads(predicate.json), schema, alias)


def _text(node: dict[str, Any], schema: Schema, alias: str) -> str:
    op = node["op"]
    if op in ("and", "or"):
        if not node["args"]:
            return "true" if op == "and" else "false"
        return "(" + f" {op.upper()} ".join(_text(arg, schema, alias) for arg in node["args"]) + ")"
    if op == "not":
        return f"(NOT {_text(node['arg'], schema, alias)})"
    if op in ("true", "false", "null"):
        return "CAST(NULL AS BOOLEAN)" if op == "null" else op
    column, data_type = _column(node["column"], schema, alias)
    if op == "is_null":
        return f"({column} IS NULL)"
    if op == "starts_with":
        return f"startswith({column}, {lit(node['literal'])})"
    if op == "in":
        return (
            f"({column} IN ({', '.join(_literal(text, data_type) for text in node['literals'])}))"
            if node["literals"]
            else "false"
        )
    assert op in _OPERATORS, op
    return f"({column} {op} {_literal(node['literal'], data_type)})"


def _column(path: list[str], schema: Schema, alias: str) -> tuple[str, DataType]:
    names, field = schema.find(path)
    return ".".join(map(col, (alias, *names))), field.type


def _literal(text: str | None, data_type: DataType) -> str:
    """Returns the SQL of a value in PROTOCOL.md's text form, which Spark casts to every type."""
    if text is None:
        return f"CAST(NULL AS {cast_type(data_type)})"
    return lit(text) if data_type == "string" else f"CAST({lit(text)} AS {cast_type(data_type)})"
