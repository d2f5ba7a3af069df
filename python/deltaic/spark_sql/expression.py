"""Parses an expression in Spark's SQL dialect, resolves its names, finds its type and translates it to
DuckDB's SQL."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.plan.expression import Expression, Pieces, composed
from deltaic.protocol.schema import DataType, Schema
from deltaic.spark_sql import operators
from deltaic.spark_sql.casts import Zone
from deltaic.spark_sql.duckdb import check_result
from deltaic.spark_sql.parsing import operands, parse, parse_statement, parse_with_queries, split_conjuncts
from deltaic.spark_sql.scope import Scope
from deltaic.spark_sql.translation import Translator
from deltaic.spark_sql.values import Value, name
from deltaic.sql_text import MAY_HOLD_QUERY

if TYPE_CHECKING:
    from deltaic.plan.nodes import Data, Scan
    from deltaic.spark_sql.query.tables import TableName

__all__ = ["compose", "conjuncts_of", "one_moment", "parse", "parse_statement", "resolve", "value_of"]

_PLACEHOLDER = "deltaic_part_{}"
_FIRST = 1_000_000_000
"""The first number in generated aliases of subqueries, so large that no such alias equals one of the outer
query, such as `t_1`."""


TablesOf: TypeAlias = "Callable[[TableName, str], Scan | Data]"
"""A function that opens a table that a subquery names, and returns it as a leaf of the plan under the
alias."""
_numbers = itertools.count()


_moment: ContextVar[int | None] = ContextVar("deltaic_moment", default=None)
"""Microseconds since 1970."""


@contextmanager
def one_moment() -> Iterator[None]:
    """Gives current_timestamp() one value in all expressions that are resolved inside the block, as in a
    query of Spark."""
    token = _moment.set(_moment.get() or _now())
    try:
        yield
    finally:
        _moment.reset(token)


def _zone(time_zone: str) -> Zone:
    """Returns the zone for expressions that are resolved now. Commands evaluate an expression several times,
    so its value of current_timestamp() is a constant."""
    return Zone(time_zone, _moment.get() or _now())


def _now() -> int:
    return time.time_ns() // 1000


def resolve(
    text: str, schemas: Mapping[str, Schema], time_zone: str = "UTC", tables: TablesOf | None = None
) -> Expression:
    """Parses and translates `text`. `schemas`: alias -> schema of the tables whose columns it may read; names
    match in any case. `tables`: opens the tables of subqueries; without it, subqueries are refused.

    Raises InvalidArgumentError if the text does not parse, a column is unknown or ambiguous, types do not
    fit, or an aggregate function, window function or subquery stands where a scalar is expected. Raises
    UnsupportedFeatureError for a form that the embedded engine does not support.
    """
    if tables is not None and isinstance(text, str) and MAY_HOLD_QUERY.search(text):
        return _with_queries(text, schemas, time_zone, tables)
    tree, parts = conjuncts_of(text)
    return _conjunction(text, tree, parts, Translator(Scope(schemas, column_sql), _zone(time_zone)))


def _with_queries(text: str, schemas: Mapping[str, Schema], time_zone: str, tables: TablesOf) -> Expression:
    from deltaic.spark_sql.query.queries import Context, Queries
    from deltaic.spark_sql.query.subqueries import QueryTranslator
    from deltaic.spark_sql.query.tables import bind

    tree: exp.Expr = parse_with_queries(text)
    sources = bind(tree, tables, prefix=f"__deltaic_read_{next(_numbers)}_")
    queries = Queries({name: leaf.schema for name, leaf in sources.items()}, _zone(time_zone), first=_FIRST)
    scope = Scope(schemas, column_sql)
    # it asks a scope for `find` alone
    translator = QueryTranslator(queries, scope, Context())  # type: ignore[arg-type]
    whole = _conjunction(text, tree, _parts(text, tree), translator)
    inner = tuple(replace(each, sources=_read_by(each, sources)) for each in whole.operands)
    value: Value = whole.handle
    return replace(
        whole,
        operands=inner,
        sources=sources,
        handle=replace(value, constants=tuple(dict.fromkeys((*value.constants, *queries.constants)))),
    )


def _read_by(expression: Expression, sources: Mapping[str, Scan | Data]) -> dict[str, Scan | Data]:
    if expression.tree is None:
        return {}
    return {
        table.name: sources[table.name]
        for table in expression.tree.find_all(exp.Table)
        if table.name in sources
    }


def _conjunction(
    text: str, tree: exp.Expr, parts: list[tuple[str, exp.Expr]], translator: Translator
) -> Expression:
    try:
        inner = [_resolved(part, node, translator) for part, node in parts] if len(parts) > 1 else []
        # Beside a boolean, Spark casts text to boolean, so such a condition means something else alone than
        # within the AND.
        if not inner or any(each.type not in ("boolean", "void") for each in inner):
            return _resolved(text, tree, translator)
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply") from None
    conditions = operators.booleans([each.handle for each in inner], translator.zone, "AND")
    inner = [
        replace(each, handle=value, type="boolean") for each, value in zip(inner, conditions, strict=True)
    ]
    whole = operators.connect("AND", conditions)
    check_result(whole)
    return Expression(
        text,
        whole.type,
        whole.nullable,
        frozenset().union(*(each.columns for each in inner)),
        whole.deterministic,
        translator.zone.name,
        tree=tree,
        handle=whole,
        operands=tuple(inner),
    )


def _resolved(text: str, tree: exp.Expr, translator: Translator) -> Expression:
    translator.scope.columns = set()
    value = translator.value(tree)
    check_result(value)
    columns = frozenset(translator.scope.columns)
    path = next(iter(columns)) if len(columns) == 1 else None
    if path is not None and value.sql != column_sql(*path):
        path = None
    return Expression(
        text,
        value.type,
        value.nullable,
        columns,
        value.deterministic,
        translator.zone.name,
        path=path,
        tree=tree,
        handle=value,
    )


def compose(pieces: Pieces, data_type: DataType, time_zone: str) -> Expression:
    """Returns one expression composed of text and of expressions. Only the text, which must be deltaic's own,
    is parsed; the expressions are not translated again."""
    if len(pieces) == 1 and isinstance(pieces[0], Expression):
        return pieces[0]
    # Conditions on columns alone are cached: a command composes the same few conditions each time it runs.
    if all(
        isinstance(piece, str)
        or (piece.handle is None and piece.path is not None and isinstance(piece.type, str))
        for piece in pieces
    ):
        return _of_columns(
            pieces, tuple(isinstance(piece, Expression) and piece.nullable for piece in pieces), time_zone
        )
    return _compose(pieces, time_zone)


@lru_cache(maxsize=256)
def _of_columns(pieces: Pieces, nullable: tuple[bool, ...], time_zone: str) -> Expression:
    """Returns `_compose(pieces, time_zone)`, cached. `nullable`: whether each piece may be null. It is part
    of the cache's key, as two column expressions are equal even if only one of them may be null."""
    return _compose(pieces, time_zone)


def _compose(pieces: Pieces, time_zone: str) -> Expression:
    names: dict[int, str] = {}
    parts: dict[str, Expression] = {}
    template = []
    for piece in pieces:
        if isinstance(piece, str):
            template.append(piece)
            continue
        place = names.setdefault(id(piece), _PLACEHOLDER.format(len(names)))
        parts[place] = piece
        template.append(f"(:{place})")
    tree = parse("".join(template))
    translator = Translator(Scope({}, column_sql), _zone(time_zone))
    translator.parts = {place: value_of(part, time_zone) for place, part in parts.items()}
    value = translator.value(tree)
    check_result(value)
    whole = composed(pieces, value.type, time_zone)
    return replace(whole, nullable=value.nullable, tree=tree, parts=parts, handle=value)


def value_of(expression: Expression, time_zone: str) -> Value:
    """Returns the translated value of an expression."""
    if isinstance(expression.handle, Value):
        return expression.handle
    if expression.path is not None:
        return Value(column_sql(*expression.path), expression.type, expression.nullable)
    return Translator(Scope({}, column_sql), _zone(time_zone)).value(parse(expression.text))


def column_sql(alias: str, path: tuple[str, ...]) -> str:
    """Returns SQL of a column, or of a field of a struct: `("t"."a")."b"`. Without the parentheses, DuckDB
    takes the alias for a schema."""
    whole = f"{name(alias)}.{name(path[0])}"
    return whole if len(path) == 1 else f"({whole})" + "".join(f".{name(part)}" for part in path[1:])


def conjuncts_of(text: str) -> tuple[exp.Expr, list[tuple[str, exp.Expr]]]:
    """Returns the tree of a text, and (text, tree) of each condition that the text joins with AND: of `a > 1
    AND b < 2`, both comparisons. A text without AND is its only condition."""
    tree: exp.Expr = parse(text)
    return tree, _parts(text, tree)


def _parts(text: str, tree: exp.Expr) -> list[tuple[str, exp.Expr]]:
    inner = tree
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.And):
        return [(text, tree)]
    trees, texts = operands(inner), split_conjuncts(text)
    return list(zip(texts, trees, strict=True)) if len(texts) == len(trees) else [(text, tree)]
