"""Resolves SQL expressions by Spark's analyser, over frames without rows: type, columns, determinism."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlglot import exp

from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.native.session import analyzed_plan, parsed_expression
from deltaic.engine.spark.read_path import ReadPath
from deltaic.engine.spark.settings import USUAL_MEANING, with_names_in_backticks
from deltaic.engine.spark.types import of_frame, to_spark
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.plan.expression import Expression
from deltaic.plan.literal import enclosed
from deltaic.plan.nodes import UNKNOWN
from deltaic.planning.planned import NON_DETERMINISTIC
from deltaic.protocol.schema import DataType, Field, Schema
from deltaic.spark_sql.expression import conjuncts_of, resolve

_SUBQUERY = "a subquery (SELECT)"
_NOT_ON_ROWS = {
    "AggregateExpression": "an aggregate",
    "WindowExpression": "a window function",
    **dict.fromkeys(
        ("ScalarSubquery", "Exists", "InSubquery", "ListQuery", "FunctionTableSubqueryArgumentExpression"),
        _SUBQUERY,
    ),
}
"""Catalyst node that cannot be part of an expression on rows -> its description in errors."""
_NAME = "__deltaic_expression"


@dataclass(frozen=True, eq=False)
class _Scope:
    """The columns that an expression may use. `frame`: a DataFrame without rows, the cross join of one frame
    for each schema, under the schema's alias. `columns`: expression id in the plan of `frame` -> (alias,
    name); each frame has ids of its own."""

    frame: Any
    columns: Mapping[int, tuple[str, str]]


class Analyser:
    """Resolves the expressions of one session. Results are cached, because commands resolve the same text
    again and again. Threads may share it."""

    def __init__(self, spark: Any, read_path: ReadPath) -> None:
        self._spark, self._read_path = spark, read_path
        self._cached_scope = lru_cache(maxsize=64)(self._make_scope)
        self._scope_lock = threading.Lock()
        self._cached_analysis = lru_cache(maxsize=1024)(self._analyse)

    def resolve(self, text: str, schemas: Mapping[str, Schema], *, queries: bool = False) -> Expression:
        """Returns the resolved expression of a text. `schemas`: alias -> columns. `queries`: True if the text
        may hold subqueries.

        Raises InvalidArgumentError if the text as a whole is not one expression, or holds an aggregate,
        window function or generator; UnsupportedFeatureError for a subquery, unless `queries` is True."""
        if not isinstance(text, str):
            raise InvalidTypeError("an expression is text in Spark's SQL dialect", found=repr(text)[:80])
        try:
            with named_errors():
                zone = self._spark.conf.get("spark.sql.session.timeZone")
                meaning = tuple(self._spark.conf.get(name, usual) for name, usual in USUAL_MEANING.items())
                text = with_names_in_backticks(self._spark, text)
                # a subquery may read other tables next time
                analyse = self._analyse if queries else self._cached_analysis
                return analyse(text, tuple(schemas.items()), meaning, zone, queries)
        except InvalidArgumentError as error:
            # Spark takes an aggregate beside a column, as in `id = max(id)`, for a query without GROUP BY
            if getattr(error.__cause__, "getCondition", lambda: None)() == "MISSING_GROUP_BY":
                raise _not_on_rows("an aggregate", text) from error.__cause__
            raise
        except UnsupportedFeatureError as error:
            condition = getattr(error.__cause__, "getCondition", lambda: None)() or ""
            if condition.startswith("UNSUPPORTED_GENERATOR"):
                raise _not_on_rows("a generator", text) from error.__cause__
            raise

    def _analyse(
        self,
        text: str,
        schemas: tuple[tuple[str, Schema], ...],
        meaning: tuple[str, ...],
        zone: str,
        queries: bool,
    ) -> Expression:
        """Analyses the text in brackets, because `F.expr` accepts a name after an expression, as in `id = 1
        flag`. The text without brackets is parsed, too: otherwise `a) + (b` would be accepted. `meaning`: the
        values of USUAL_MEANING in the session, which are a part of the cache's key."""
        from pyspark.sql import functions as F

        scope = self._scope(schemas)
        alone = F.expr(enclosed(text)).alias(_NAME)
        return self._read_path.planned(
            "the tree of an expression",
            lambda: self._by_tree(text, scope, schemas, alone, zone, queries),
            lambda: _without_tree(
                text,
                dict(schemas),
                # a generator, such as explode, is only allowed as the whole value of a SELECT
                of_frame(scope.frame.select(F.struct(F.expr(text)).isNull().alias("__deltaic_open"), alone))[
                    1
                ],
                zone,
                queries,
            ),
        )

    def _parse(self, text: str) -> None:
        """Raises InvalidArgumentError for text that Spark does not parse, or parses as an expression with a
        name."""
        tree = parsed_expression(self._spark, text)
        if tree.getClass().getSimpleName() in ("Alias", "MultiAlias"):
            raise InvalidArgumentError(
                "[PARSE_SYNTAX_ERROR] SQL does not parse: words follow the expression",
                found=repr(text if len(text) <= 200 else "…" + text[-200:]),
                expected="one expression, without a name",
            )

    def _by_tree(
        self,
        text: str,
        scope: _Scope,
        schemas: tuple[tuple[str, Schema], ...],
        alone: Any,
        zone: str,
        queries: bool,
    ) -> Expression:
        self._parse(text)
        frame = scope.frame.select(alone)
        plan = analyzed_plan(frame)
        kinds = {plan.getClass().getSimpleName(), plan.children().apply(0).getClass().getSimpleName()}
        if "Generate" in kinds:
            raise _not_on_rows("a generator", text)
        if "Project" not in kinds:
            raise _not_on_rows("an aggregate", text)
        expression = plan.projectList().apply(0)
        nodes = json.loads(expression.toJSON())
        for node in nodes:
            if (what := _NOT_ON_ROWS.get(_kind(node))) is not None and not (queries and what == _SUBQUERY):
                raise _not_on_rows(what, text)
        (field,) = of_frame(frame)
        by_alias = dict(schemas)
        deterministic = bool(expression.deterministic())

        def resolved(
            text: str, data_type: DataType, nullable: bool, tree: exp.Expr | None, nodes: list[dict[str, Any]]
        ) -> Expression:
            paths = _paths(nodes, scope.columns, plan, text)
            read = frozenset((alias, by_alias[alias].find(path)[0]) for alias, path in paths)
            sources = (
                {"queries": UNKNOWN}
                if any(_NOT_ON_ROWS.get(_kind(node)) == _SUBQUERY for node in nodes)
                else {}
            )
            return Expression(
                text, data_type, nullable, read, deterministic, zone, tree=tree, sources=sources
            )

        tree, parts = _parsed(text, queries)
        whole = resolved(text, field.type, field.nullable, tree, nodes)
        each = _conjuncts(nodes)
        if len(parts) != len(each) or len(each) == 1:
            return whole
        inner = [
            resolved(part, "boolean", True, node, below)
            for (part, node), below in zip(parts, each, strict=True)
        ]
        return replace(whole, operands=tuple(inner))

    def _scope(self, schemas: tuple[tuple[str, Schema], ...]) -> _Scope:
        # without it, two threads could create two scopes of the same schemas, with different ids
        with self._scope_lock:
            return self._cached_scope(schemas)

    def _make_scope(self, schemas: tuple[tuple[str, Schema], ...]) -> _Scope:
        from pyspark.sql import functions as F

        whole = None
        for alias, schema in schemas:
            frame = self._spark.createDataFrame([], to_spark(schema)).alias(alias)
            whole = frame if whole is None else whole.crossJoin(frame)
        if whole is None:
            return _Scope(self._spark.range(0).select(F.lit(1).alias("__deltaic_one")), {})
        return _Scope(
            whole,
            self._read_path.planned("the columns of an expression", lambda: _ids_of(whole, schemas), dict),
        )


def _ids_of(frame: Any, schemas: tuple[tuple[str, Schema], ...]) -> dict[int, tuple[str, str]]:
    """Returns expression id -> (alias, name) of the frame's columns."""
    columns = json.loads(analyzed_plan(frame.select("*")).toJSON())[0]["projectList"]
    names = [(alias, name) for alias, schema in schemas for name in schema.names]
    return {_id(tree[0]): name for tree, name in zip(columns, names, strict=True)}


RANDOM = re.compile(rf"\b({'|'.join(NON_DETERMINISTIC)})\s*\(", re.IGNORECASE)
"""Matches a call of a function with another value at each call."""


def _without_tree(
    text: str, schemas: Mapping[str, Schema], field: Field, zone: str, queries: bool
) -> Expression:
    """Resolves an expression on Spark Connect, which does not show trees. `field`: the expression's type, as
    Spark returns it. The columns come from deltaic's own parser; if it does not parse the text, all columns
    count as used."""
    try:
        expression = resolve(text, schemas, zone)
        inner = [replace(each, handle=None) for each in expression.operands]
        return replace(
            expression,
            type=field.type,
            nullable=field.nullable,
            path=None,
            handle=None,
            operands=tuple(inner),
        )
    except UnsupportedFeatureError:
        tree, parts = _parsed(text, queries)
        nodes = (
            ()
            if tree is None
            else tree.find_all(exp.Window)
            if queries
            else tree.find_all(exp.Query, exp.Window)
        )
        if any(not queries or node.find_ancestor(exp.Query) is None for node in nodes):
            raise _not_on_rows("a subquery (SELECT) or window function", text) from None
    whole = _with_all_columns(text, tree, schemas, field.type, zone, queries)
    if len(parts) == 1:
        return whole
    return replace(
        whole, operands=tuple(_part_without_tree(part, node, schemas, zone, queries) for part, node in parts)
    )


def _part_without_tree(
    text: str, tree: exp.Expr | None, schemas: Mapping[str, Schema], zone: str, queries: bool
) -> Expression:
    try:
        return replace(resolve(text, schemas, zone), type="boolean", path=None, handle=None, operands=())
    except UnsupportedFeatureError:
        return _with_all_columns(text, tree, schemas, "boolean", zone, queries)


def _with_all_columns(
    text: str,
    tree: exp.Expr | None,
    schemas: Mapping[str, Schema],
    data_type: DataType,
    zone: str,
    queries: bool,
) -> Expression:
    """Returns an expression that counts as using all columns, and unknown tables if it may hold `queries`."""
    columns = frozenset((alias, (name,)) for alias, schema in schemas.items() for name in schema.names)
    sources = {"queries": UNKNOWN} if queries and (tree is None or tree.find(exp.Query) is not None) else {}
    return Expression(
        text,
        data_type,
        True,
        columns,
        RANDOM.search(text) is None,
        zone,
        tree=tree,
        sources=sources,
    )


def _parsed(text: str, queries: bool) -> tuple[exp.Expr | None, list[tuple[str, exp.Expr | None]]]:
    """Like `conjuncts_of`, but returns None as the tree of a text that only Spark can parse."""
    try:
        tree, parts = conjuncts_of(text)
    except InvalidArgumentError:
        return None, [(text, None)]
    except UnsupportedFeatureError:  # a subquery that is the whole expression
        if not queries:
            raise
        return None, [(text, None)]
    return tree, list(parts)


def _conjuncts(nodes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Splits a tree at its ANDs: returns the nodes of each conjunct. `nodes`: the nodes of a named
    expression; each node stands before its children."""
    ends = [0] * len(nodes)
    for index in range(len(nodes) - 1, -1, -1):
        end = index + 1
        for _ in range(nodes[index]["num-children"]):
            end = ends[end]
        ends[index] = end
    conjuncts, pending = [], [1]
    while pending:
        index = pending.pop()
        if nodes[index]["class"].rsplit(".", 1)[-1] == "And":
            pending += [ends[index + 1], index + 1]
        else:
            conjuncts.append(nodes[index : ends[index]])
    return conjuncts


def _kind(node: Mapping[str, Any]) -> str:
    return str(node["class"]).rsplit(".", 1)[-1]


def _id(node: Mapping[str, Any]) -> int:
    return int(node["exprId"]["id"])


def _paths(
    nodes: list[dict[str, Any]], columns: Mapping[int, tuple[str, str]], plan: Any, text: str
) -> list[tuple[str, tuple[str, ...]]]:
    """Returns (alias, path) of each column that is read. A path includes the struct fields that are taken of
    the column: `s.a` is ("s", "a"). Raises InvalidArgumentError for a column without a known id: Spark
    computes it in another step of `plan`, as for window functions and SQL functions."""
    paths, parts = [], []
    for node in nodes:  # parents stand before their children, and directly before an only child
        kind = node["class"].rsplit(".", 1)[-1]
        if kind == "GetStructField":
            parts.append(node.get("name") or "")
            continue
        if kind == "AttributeReference":
            if _id(node) not in columns:
                is_window = "Window" in plan.toString()
                raise _not_on_rows("a window function" if is_window else "a SQL function", text)
            alias, name = columns[_id(node)]
            paths.append((alias, (name, *reversed(parts))))
        parts = []
    return paths


def _not_on_rows(what: str, text: str) -> DeltaError:
    """Returns the error for a part that an expression on rows cannot have: UnsupportedFeatureError for a
    subquery, which has a value for a row, else InvalidArgumentError."""
    kind = UnsupportedFeatureError if "subquery" in what else InvalidArgumentError
    return kind(f"{what} cannot stand in an expression on rows", found=repr(text[:200]))
