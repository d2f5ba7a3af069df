"""An expression in Spark's SQL dialect: parsed, its names resolved, its type known. What the commands ask before they plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType, Schema
from deltaic.relation.duckdb import translate
from deltaic.relation.parsing import parse, parse_statement, split_conjuncts

__all__ = ["Resolved", "conjuncts_of", "parse", "parse_statement", "resolve"]


@dataclass(frozen=True)
class Resolved:
    """`columns`: the (alias, path) pairs that the expression reads, in the schemas' own case; a path goes through structs only.
    `conjuncts`: slices of
    `text` whose AND it is, (text,) where it is none."""

    text: str
    type: DataType
    nullable: bool
    columns: frozenset[tuple[str, tuple[str, ...]]]
    deterministic: bool
    conjuncts: tuple[str, ...]


def resolve(text: str, schemas: Mapping[str, Schema]) -> Resolved:
    """Parses and types `text` against aliased schemas; names match without regard to case.

    InvalidArgumentError: it does not parse, a column is unknown or ambiguous, types do not go together, or an aggregate, window or
    subquery stands
    where a scalar is expected. UnsupportedFeatureError: a form that the embedded engine does not answer.
    """
    tree = parse(text)
    found = translate(tree, schemas, column_sql=lambda alias, path: "c")
    return Resolved(text, found.type, found.nullable, found.columns, found.deterministic, _conjuncts(text, tree))


def conjuncts_of(text: str) -> tuple[str, ...]:
    """Slices of `text` whose AND it is; (text,) where it is none, or is a text that only another engine can read."""
    try:
        return _conjuncts(text, parse(text))
    except InvalidArgumentError:
        return (text,)


def _conjuncts(text: str, tree: exp.Expression) -> tuple[str, ...]:
    conjuncts = split_conjuncts(text)
    return conjuncts if len(conjuncts) == _count(tree) else (text,)


def _count(tree: exp.Expression) -> int:
    """How many parts a conjunction has."""
    pending, count = [tree], 0
    while pending:
        node = pending.pop()
        if isinstance(node, exp.And):
            pending += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            pending.append(node.this)
        else:
            count += 1
    return count
