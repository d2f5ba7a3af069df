"""Pushed predicates as reports show them: as SQL, in place of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from deltaic.sql_text import duckdb_text

_PLAIN = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|NaN|true|false")
_SHOWN_VALUES = 3
"""Maximum number of values of IN that are shown; of more, the first ones and the number of all are."""


def shown_predicate(predicate: str | None) -> str:
    """Returns a predicate, given as JSON, as SQL: `{"op":"=","column":["a"],"literal":"5"}` is `a = 5`.
    Returns an empty text for None."""
    return "" if predicate is None else _shown(json.loads(predicate))


def _shown(node: Mapping[str, Any], *, inside: bool = False) -> str:
    op, name = node["op"], ".".join(node.get("column", ()))
    if op in ("and", "or"):
        text = f" {op} ".join(_shown(each, inside=True) for each in node["args"])
        return f"({text})" if inside and len(node["args"]) > 1 else text
    if op == "not":
        if node["arg"]["op"] == "is_null":
            return f"{'.'.join(node['arg']['column'])} is not null"
        return f"not ({_shown(node['arg'])})"
    if op == "is_null":
        return f"{name} is null"
    if op == "null":
        return "null"
    if op == "starts_with":
        return f"{name} like {_literal(node['literal'] + '%')}"
    if op != "in":
        return f"{name} {op} {_literal(node['literal'])}"
    values = [_literal(each) for each in node["literals"]]
    more = f", … {len(values)} values" if len(values) > _SHOWN_VALUES + 1 else ""
    return f"{name} in ({', '.join(values[:_SHOWN_VALUES] if more else values)}{more})"


def _literal(text: str | None) -> str:
    """Returns a literal, which JSON has as text of any type: numbers and booleans without quotes."""
    if text is None:
        return "null"
    return text if _PLAIN.fullmatch(text) else duckdb_text(text)
