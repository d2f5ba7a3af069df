"""Parameters of a statement: `:name` and `?` become literals of the values that are given for them, wherever a value may stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.plan.literal import lit
from deltaic.sql.tokens import Reader


def bound(statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """The statement with literals in place of its markers. A mapping gives the values of `:name`, a sequence those of `?` in their order;
    values that no marker asks for are left over in a mapping and an error in a sequence."""
    if parameters is None:
        return statement
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, (Mapping, Sequence)):
        raise InvalidTypeError(
            "parameters are a mapping of names, or a sequence", found=type(parameters).__name__, expected="a mapping or a sequence"
        )
    parts, position, count = [], 0, 0
    tokens = Reader(statement).tokens
    for index, token in enumerate(tokens):
        name = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.text == "?" and token.kind == "symbol":
            value, end = _positional(parameters, count), token.end
            count += 1
        elif token.text == ":" and name is not None and name.kind == "word" and name.start == token.end:
            value, end = _named(parameters, name.text), name.end
        else:
            continue
        parts += [statement[position : token.start], literal(value)]
        position = end
    if not isinstance(parameters, Mapping) and count != len(parameters):
        raise InvalidArgumentError("the statement has another number of ? than values are given", found=count, expected=len(parameters))
    return "".join([*parts, statement[position:]])


def literal(value: Any) -> str:
    """A value as an operand: a negative number in brackets, as `1 -:n` must not become a comment."""
    text = lit(value)
    return f"({text})" if text.startswith("-") else text


def _positional(parameters: Mapping[str, Any] | Sequence[Any], index: int) -> Any:
    if isinstance(parameters, Mapping):
        raise InvalidArgumentError("the statement has ?, whose values are a sequence", found="a mapping", expected="parameters=[...]")
    if index >= len(parameters):
        raise InvalidArgumentError("[UNBOUND_SQL_PARAMETER] no value for a ?", found=f"{len(parameters)} values", expected=index + 1)
    return parameters[index]


def _named(parameters: Mapping[str, Any] | Sequence[Any], name: str) -> Any:
    if not isinstance(parameters, Mapping):
        raise InvalidArgumentError(
            f"the statement has :{name}, whose values are a mapping", found="a sequence", expected="parameters={...}"
        )
    if name not in parameters:
        raise InvalidArgumentError(f"[UNBOUND_SQL_PARAMETER] no value for :{name}", found=sorted(map(str, parameters)), expected=name)
    return parameters[name]
