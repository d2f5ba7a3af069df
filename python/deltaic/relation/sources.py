"""FROM and its joins: which relations a query reads, under which aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Schema
from deltaic.relation import operators
from deltaic.relation import values as v
from deltaic.relation.scope import Scope
from deltaic.relation.values import unsupported

if TYPE_CHECKING:
    from deltaic.relation.query import Queries

_TABLE_ARGS = {"this", "alias", "joins", "db", "catalog"}
_JOIN_ARGS = {"this", "side", "kind", "on", "using"}


def column_sql(alias: str, path: tuple[str, ...]) -> str:
    """A column of an aliased relation, or a field of a struct in it."""
    return ".".join(v.name(part) for part in (alias, *path))


@dataclass(frozen=True)
class Source:
    """`sql`: what stands after FROM, empty where there is none; `schemas`: by alias, the columns in sight."""

    sql: str
    schemas: Mapping[str, Schema]

    @property
    def clause(self) -> str:
        return f"FROM {self.sql}" if self.sql else ""

    def scope(self) -> Scope:
        return Scope(self.schemas, column_sql)

    def star(self, alias: str | None) -> list[tuple[str, exp.Expr]]:
        """What `*` or `alias.*` stands for."""
        found = self.scope().names(alias)
        if not found:
            raise InvalidArgumentError("a star needs a table", expected="FROM")
        return [
            (field.name, exp.column(exp.to_identifier(field.name, quoted=True), table=exp.to_identifier(key, quoted=True)))
            for key, field in found
        ]


class Sources:
    """Reads FROM clauses for one query."""

    def __init__(self, queries: Queries, defined: Mapping[str, tuple[str, Schema]]) -> None:
        self._queries = queries
        self._defined = defined

    def of(self, node: exp.Select) -> Source:
        from_ = node.args.get("from_")
        if from_ is None:
            return Source("", {})
        source = self._relation(from_.this)
        for join in node.args.get("joins") or ():
            source = self._joined(source, join)
        return source

    def _relation(self, node: exp.Expr) -> Source:
        """A table, a query or VALUES with its alias, and the joins that are written inside brackets with it."""
        from deltaic.relation.query import renamed

        if (named := node.args.get("alias")) is not None and not isinstance(named.this, (exp.Identifier, type(None))):
            raise unsupported(f"{named.this.sql(dialect='databricks')} after a table")
        if isinstance(node, exp.Table):
            unknown = [key for key, value in node.args.items() if value and key not in _TABLE_ARGS]
            if unknown or not isinstance(node.this, exp.Identifier):
                raise unsupported(f"{', '.join(unknown) or 'a table function'} in FROM")
            name, schema = self._table(node)
            text = v.name(name)
        elif isinstance(node, (exp.Subquery, exp.Values)):
            if any(value for key, value in node.args.items() if key in ("pivots", "sample", "match_recognize")):
                raise unsupported("PIVOT or TABLESAMPLE")
            inner = self._queries.query(node.this if isinstance(node, exp.Subquery) else _bare(node), self._defined)
            text, schema = f"({inner.sql})", inner.schema
        else:
            raise unsupported(f"{type(node).__name__.upper()} in FROM")
        alias = node.alias or (node.name if isinstance(node, exp.Table) else "") or self._queries.fresh("query")
        schema = renamed(schema, node.args.get("alias"))
        columns = ", ".join(v.name(column) for column in schema.names)
        source = Source(f"{text} AS {v.name(alias)}({columns})", {alias: schema})
        for join in node.args.get("joins") or ():
            source = self._joined(source, join)
        return source

    def _table(self, node: exp.Table) -> tuple[str, Schema]:
        if not node.args.get("db"):
            if (found := self._defined.get(node.name.lower())) is not None:
                return found
            if (schema := self._queries.tables.get(node.name)) is not None:
                return node.name, schema
        raise InvalidArgumentError("no such table", found=node.sql(dialect="databricks"))

    def _joined(self, left: Source, join: exp.Join) -> Source:
        unknown = [key for key, value in join.args.items() if value and key not in _JOIN_ARGS]
        if unknown:
            raise unsupported(f"{', '.join(unknown)} in JOIN")
        right = self._relation(join.this)
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        if twice := {alias.lower() for alias in left.schemas} & {alias.lower() for alias in right.schemas}:
            raise InvalidArgumentError("two tables of a query have one alias", found=sorted(twice)[0])
        schemas = {**left.schemas, **right.schemas}
        if join.args.get("using"):
            condition, visible = self._using(left, right, join, side)
        else:
            visible = schemas
            on = join.args.get("on")
            condition = "" if on is None else f" ON {self._condition(on, schemas)}"
        if kind in ("SEMI", "ANTI") and side in ("", "LEFT"):
            return Source(f"{left.sql} {kind} JOIN {right.sql}{condition}", left.schemas)
        if kind not in ("", "INNER", "OUTER", "CROSS") or side not in ("", "LEFT", "RIGHT", "FULL"):
            raise unsupported(f"{side} {kind} JOIN".strip())
        if not condition:
            if side:
                raise unsupported(f"{side} JOIN without a condition")
            return Source(f"{left.sql} CROSS JOIN {right.sql}", visible)
        nullable = {"LEFT": right.schemas, "RIGHT": left.schemas, "FULL": schemas}.get(side, {})
        visible = {alias: _nullable(schema) if alias in nullable else schema for alias, schema in visible.items()}
        return Source(f"{left.sql} {side or 'INNER'} JOIN {right.sql}{condition}", visible)

    def _using(self, left: Source, right: Source, join: exp.Join, side: str) -> tuple[str, dict[str, Schema]]:
        """USING (names): equal columns, shown once. Of an outer join only LEFT can show its own side's."""
        if side not in ("", "LEFT"):
            raise unsupported(f"{side} JOIN USING")
        names = [column.name for column in join.args["using"]]
        zone = self._queries.zone
        parts = [operators.compare("=", left.scope().resolve([name]), right.scope().resolve([name]), zone) for name in names]
        hidden = {name.lower() for name in names}
        shown = {alias: Schema([field for field in schema if field.name.lower() not in hidden]) for alias, schema in right.schemas.items()}
        return f" ON {operators.connect('AND', parts).sql}", {**left.schemas, **shown}

    def _condition(self, tree: exp.Expr, schemas: Mapping[str, Schema]) -> str:
        from deltaic.relation.query import boolean
        from deltaic.relation.subqueries import QueryTranslator

        return boolean(QueryTranslator(self._queries, Scope(schemas, column_sql), self._queries.zone, self._defined), tree).sql


def _nullable(schema: Schema) -> Schema:
    return Schema([field.with_(nullable=True) for field in schema])


def _bare(node: exp.Values) -> exp.Values:
    """VALUES without its alias, which the relation around it carries."""
    bare = node.copy()
    bare.set("alias", None)
    return bare
