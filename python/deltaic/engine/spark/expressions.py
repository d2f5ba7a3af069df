"""Expressions as Spark's analyser sees them: type, columns, determinism, over frames without rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlglot import exp

from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.types import of_frame, to_spark
from deltaic.engine.spark.ways import Ways
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.protocol.schema import Field, Schema
from deltaic.relation.expression import Resolved, conjuncts_of, parse, resolve

_NO_SCALARS = {
    "AggregateExpression": "an aggregate",
    "WindowExpression": "a window function",
    "ScalarSubquery": "a subquery (SELECT)",
    "Exists": "a subquery (SELECT)",
    "InSubquery": "a subquery (SELECT)",
    "ListQuery": "a subquery (SELECT)",
    "FunctionTableSubqueryArgumentExpression": "a subquery (SELECT)",
}
_NAME = "__deltaic_expression"


class Analyser:
    """The expressions of one session. Answers are kept: commands ask for the same text again and again."""

    def __init__(self, spark: Any, ways: Ways) -> None:
        self._spark, self._ways = spark, ways
        self._scope = lru_cache(maxsize=64)(self._make_scope)
        self._columns = lru_cache(maxsize=64)(self._find_columns)
        self._kept = lru_cache(maxsize=1024)(self._analyse)

    def resolve(self, text: str, schemas: Mapping[str, Schema]) -> Resolved:
        """InvalidArgumentError where Spark does not take the text, or an aggregate, window, subquery or generator stands in it."""
        if not isinstance(text, str):
            raise InvalidTypeError("an expression is text in Spark's SQL dialect", found=repr(text)[:80])
        with named_errors():
            return self._kept(text, tuple(schemas.items()), self._spark.conf.get("spark.sql.ansi.enabled"))

    def _analyse(self, text: str, schemas: tuple[tuple[str, Schema], ...], ansi: str) -> Resolved:
        from pyspark.sql import functions as F

        scope = self._scope(schemas)
        frame = scope.select(F.expr(text).alias(_NAME))
        return self._ways.planned(
            "the tree of an expression",
            lambda: self._by_tree(text, schemas, frame),
            lambda: _without_tree(text, dict(schemas), of_frame(frame)[0]),
        )

    def _by_tree(self, text: str, schemas: tuple[tuple[str, Schema], ...], frame: Any) -> Resolved:
        columns = self._columns(schemas)
        plan = frame._jdf.queryExecution().analyzed()
        kinds = {plan.getClass().getSimpleName(), plan.children().apply(0).getClass().getSimpleName()}
        if "Generate" in kinds:
            raise _no_scalar("a generator", text)
        if "Project" not in kinds:
            raise _no_scalar("an aggregate", text)
        expression = plan.projectList().apply(0)
        nodes = json.loads(expression.toJSON())
        for node in nodes:
            if (what := _NO_SCALARS.get(node["class"].rsplit(".", 1)[-1])) is not None:
                raise _no_scalar(what, text)
        (field,) = of_frame(frame)
        by_alias = dict(schemas)
        found = frozenset((alias, by_alias[alias].find(path)[0]) for alias, path in _paths(nodes, columns, text))
        return Resolved(text, field.type, field.nullable, found, bool(expression.deterministic()), conjuncts_of(text))

    def _make_scope(self, schemas: tuple[tuple[str, Schema], ...]) -> Any:
        """A frame that shows the schemas under their aliases."""
        from pyspark.sql import functions as F

        scope = None
        for alias, schema in schemas:
            frame = self._spark.createDataFrame([], to_spark(schema)).alias(alias)
            scope = frame if scope is None else scope.crossJoin(frame)
        return self._spark.range(0).select(F.lit(1).alias("__deltaic_one")) if scope is None else scope

    def _find_columns(self, schemas: tuple[tuple[str, Schema], ...]) -> dict[int, tuple[str, str]]:
        """The column behind each id of the frame."""
        if not schemas:
            return {}
        listed = json.loads(self._scope(schemas).select("*")._jdf.queryExecution().analyzed().toJSON())[0]["projectList"]
        names = [(alias, name) for alias, schema in schemas for name in schema.names]
        return {_id(tree[0]): name for tree, name in zip(listed, names, strict=True)}


_NEVER_THE_SAME = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id)\s*\(", re.IGNORECASE
)


def _without_tree(text: str, schemas: Mapping[str, Schema], field: Field) -> Resolved:
    """What can be known where Spark does not show its trees (Connect): the type is Spark's, the rest our own reading of the text, and where
    we cannot read it any column may be in it."""
    try:
        found = resolve(text, schemas)
        columns, deterministic = found.columns, found.deterministic
    except UnsupportedFeatureError:
        _refuse_queries(text)
        columns = frozenset((alias, (name,)) for alias, schema in schemas.items() for name in schema.names)
        deterministic = _NEVER_THE_SAME.search(text) is None
    return Resolved(text, field.type, field.nullable, columns, deterministic, conjuncts_of(text))


def _refuse_queries(text: str) -> None:
    try:
        tree = parse(text)
    except InvalidArgumentError:  # a text that only Spark can read
        return
    if tree.find(exp.Query, exp.Window) is not None:
        raise _no_scalar("a subquery (SELECT) or window function", text)


def _id(node: Mapping[str, Any]) -> int:
    return int(node["exprId"]["id"])


def _paths(nodes: list[dict[str, Any]], columns: Mapping[int, tuple[str, str]], text: str) -> list[tuple[str, tuple[str, ...]]]:
    """(alias, path) of each column that is read; a path goes through the struct fields right above it. A column of nobody's is one that
    Spark computes in another step."""
    found, parts = [], []
    for node in nodes:  # parents stand before their children, a single child right behind
        kind = node["class"].rsplit(".", 1)[-1]
        if kind == "GetStructField":
            parts.append(node.get("name") or "")
            continue
        if kind == "AttributeReference":
            if _id(node) not in columns:
                raise _no_scalar("a window function", text)
            alias, name = columns[_id(node)]
            found.append((alias, (name, *reversed(parts))))
        parts = []
    return found


def _no_scalar(what: str, text: str) -> DeltaError:
    """Subqueries may come with a later release, the others have no value for a row."""
    kind = UnsupportedFeatureError if "subquery" in what else InvalidArgumentError
    return kind(f"{what} cannot stand in an expression on rows", found=repr(text[:200]))
