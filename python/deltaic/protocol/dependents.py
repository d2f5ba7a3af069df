"""Refuses changes of a column or field on which expressions of the table, its clustering or a computed column
depend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.actions import Metadata
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.expression_names import uses
from deltaic.protocol.properties import CONSTRAINT_PREFIX
from deltaic.protocol.schema import DataType, Schema, path_text, type_name, walk


def check_unused(
    schema: Schema,
    metadata: Metadata,
    path: Sequence[str],
    *,
    clustering: Iterable[Sequence[str]] = (),
    widened: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raises InvalidArgumentError if a field cannot be renamed, dropped or get another type. The reason is
    that the table is clustered by the field, or that a constraint, an invariant or a generated column
    contains its name (even as the name of another column's field) or uses a struct as a whole that has the
    field (`hash(s)` for `s.x`).

    `clustering`: physical paths of the clustering columns.
    `widened`: values of the error for a write that gives the field a wider type, such as `expected`."""
    expressions = {
        key: text for key, text in metadata.configuration.items() if key.startswith(CONSTRAINT_PREFIX)
    }
    generated: dict[str, str] = {}
    for where, item in walk(schema):
        for key in ("delta.generationExpression", "delta.invariants"):
            if key in item.metadata:
                expressions[f"{key} of {path_text(where)}"] = _expression(item.metadata[key])
                if key == "delta.generationExpression":
                    generated[f"{key} of {path_text(where)}"] = f"{path_text(where)} -> {item.metadata[key]}"
    folded = tuple(part.lower() for part in path)
    users = {key: text for key, text in expressions.items() if uses(text, folded)}
    for key, text in users.items():
        constraints = [f"{key} -> {text}" for key, text in users.items() if key.startswith(CONSTRAINT_PREFIX)]
        raise InvalidArgumentError(
            "an expression of the table uses the column",
            where=path_text(path),
            found=f"{key}: {text}",
            expected=widened.get("expected"),
        ).with_values(
            generated="\n".join(generated[key] for key in users if key in generated) or None,
            constraints="\n".join(constraints) or None,
            **widened,
        )
    physical = tuple(physical_name(schema.find(path[: end + 1])[1]) for end in range(len(path)))
    if any(tuple(column[: len(physical)]) == physical for column in clustering):
        raise InvalidArgumentError("the table is clustered by the column", where=path_text(path))


def type_is_fixed(computed: str, path: Sequence[str], old: DataType, new: DataType) -> InvalidArgumentError:
    """Returns the error of another type for a column that the table computes. `computed`: "a generated" or
    "an identity"."""
    return InvalidArgumentError(
        f"the type of {computed} column cannot change",
        where=path_text(path),
        found=type_name(new),
        expected=type_name(old),
    )


def _expression(value: Any) -> str:
    """Returns the SQL of the key `delta.invariants`, which is the JSON text `{"expression": {"expression":
    sql}}`."""
    try:
        return str(json.loads(value)["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        return str(value)
