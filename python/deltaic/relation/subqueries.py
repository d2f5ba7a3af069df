"""Expressions inside queries: what `Translator` knows, and subqueries that read nothing of the query around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Schema
from deltaic.relation import operators
from deltaic.relation.casts import Zone
from deltaic.relation.scope import Scope
from deltaic.relation.translation import Translator
from deltaic.relation.values import Value, name, unsupported

if TYPE_CHECKING:
    from deltaic.relation.query import Queries, TranslatedQuery


class QueryTranslator(Translator):
    """Answers EXISTS, IN (query) and scalar queries besides."""

    def __init__(self, queries: Queries, scope: Scope, zone: Zone, defined: Mapping[str, tuple[str, Schema]]) -> None:
        super().__init__(scope, zone)
        self.queries = queries
        self.defined = defined

    def value(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Exists):
            return Value(f"EXISTS ({self._within(node.this).sql})", "boolean", nullable=False)
        if isinstance(node, exp.Subquery):
            inner = self._one_column(node)
            (field,) = inner.schema
            return Value(f"({inner.sql})", field.type, raises=True)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self._among(node)
        return super().value(node)

    def refused(self, node: exp.Expr) -> Exception:
        if isinstance(node, exp.Window):
            return unsupported(f"a query with window functions, here {node.sql(dialect='databricks')[:100]},")
        return super().refused(node)

    def _within(self, node: exp.Expr) -> TranslatedQuery:
        """A query within; one that reads columns of this query is refused as such."""
        try:
            return self.queries.query(node, self.defined)
        except InvalidArgumentError as error:
            if "[UNRESOLVED_COLUMN]" not in str(error) or not self._knows(str(error.found)):
                raise
            raise unsupported(f"a subquery that reads {error.found} of the query around it,") from None

    def _knows(self, shown: str) -> bool:
        known = set(self.scope.columns)
        try:
            self.scope.resolve(shown.split("."))
        except InvalidArgumentError:
            return False
        finally:
            self.scope.columns = known
        return True

    def _among(self, node: exp.In) -> Value:
        """value IN (query): the query's column is compared as `=` compares, floats and mixed types included."""
        inner = self._one_column(node.args["query"])
        (field,) = inner.schema
        item = self.queries.fresh("item")
        left, right = operators.comparable(self.value(node.this), Value(name(item), field.type, field.nullable), self.zone, "IN")
        if left.type in ("float", "double"):
            raise unsupported("IN (query) over floating point")
        sql = f"({left.sql} IN (SELECT {right.sql} FROM ({inner.sql}) AS {name(item + '_rows')}({name(item)})))"
        return Value(sql, "boolean", left.nullable or field.nullable, raises=left.raises or right.raises)

    def _one_column(self, node: exp.Expr) -> TranslatedQuery:
        inner = self._within(node.this if isinstance(node, exp.Subquery) else node)
        if len(inner.schema) != 1:
            raise InvalidArgumentError("a query in an expression gives one column", found=inner.schema.names)
        return inner
