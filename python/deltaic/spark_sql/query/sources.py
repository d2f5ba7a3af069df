"""Translates FROM with its joins and LATERAL VIEW: the rows that a query reads, and the columns that its
expressions may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import cast
from deltaic.spark_sql.conditional import coalesce
from deltaic.spark_sql.query import generators
from deltaic.spark_sql.query.pivots import pivoted
from deltaic.spark_sql.query.scopes import Attribute, Column, QueryScope, refuse_collations
from deltaic.spark_sql.query.subqueries import QueryTranslator, boolean
from deltaic.spark_sql.scope import collation_within, known_limits
from deltaic.spark_sql.values import unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Context, Queries

_TABLE_ARGS = {"this", "alias", "joins", "db", "catalog", "sample", "pivots", "laterals", "hints"}
_JOIN_ARGS = {"this", "side", "kind", "on", "using", "method", "hint"}


class Rows:
    """The rows that the layers so far give. `sql`: the SQL after FROM, empty for a query without FROM."""

    def __init__(self, queries: Queries, sql: str = "") -> None:
        self._queries = queries
        self.sql = sql
        self._where: list[str] = []

    @property
    def clause(self) -> str:
        """The clauses FROM and WHERE of these rows."""
        where = f" WHERE {' AND '.join(self._where)}" if self._where else ""
        return f" FROM {self.sql}{where}" if self.sql else where

    def where(self, condition: str) -> None:
        self._where.append(condition)

    def replace(self, sql: str) -> None:
        """Replaces the rows by those of the query `sql`, which reads them."""
        self.sql = f"({sql}) AS {v.name(self._queries.fresh('rows'))}"
        self._where = []

    def add(self, columns: Sequence[tuple[str, str]]) -> None:
        """Adds columns, each given as (label, SQL), to the rows."""
        listed = ", ".join(f"{text} AS {v.name(label)}" for label, text in columns)
        self.replace(f"SELECT {'*, ' if self.sql else ''}{listed}{self.clause}")

    def layer(self, label: str, text: str) -> None:
        self.add([(label, text)])


Source = tuple[Rows, list[Attribute]]


class Sources:
    """Reads FROM clauses for one query."""

    def __init__(self, queries: Queries, context: Context) -> None:
        self._queries = queries
        self._context = context

    def of(self, node: exp.Select) -> tuple[Rows, QueryScope]:
        from_ = node.args.get("from_")
        source: Source = (Rows(self._queries), []) if from_ is None else self._relation(from_.this, [])
        for join in node.args.get("joins") or ():
            source = self.joined(source, join)
        for view in node.args.get("laterals") or ():
            source = self._viewed(source, view)
        return source[0], self._scope(source[1])

    def _scope(self, attributes: Sequence[Attribute]) -> QueryScope:
        return QueryScope(attributes, self._context.outer)

    def _relation(self, node: exp.Expr, left: list[Attribute], *, lateral: bool = False) -> Source:
        """Translates an item of FROM: a table, a query, VALUES or a table function, with its alias and the
        clauses after it, or a join in brackets. `left`: columns of the tables before it, which a `lateral`
        item may use."""
        if (named := node.args.get("alias")) is not None and not isinstance(
            named.this, (exp.Identifier, type(None))
        ):
            raise unsupported(f"{named.this.sql(dialect='databricks')} after a table")
        if isinstance(node, exp.Lateral):
            return self._relation(_with_alias(node), left, lateral=True)
        outer = self._scope(left).find if lateral else self._context.outer
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):  # brackets around a join
            source = self._relation(node.this, left)
            if node.alias:
                source = (
                    source[0],
                    [replace(each, table=node.alias) for each in source[1] if not each.qualified],
                )
        elif isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            source = self._function(
                node, QueryTranslator(self._queries, QueryScope(outer=outer), self._context), lateral
            )
        elif isinstance(node, exp.Table):
            source = self._table(node)
        elif isinstance(node, (exp.Subquery, exp.Values)):
            check_named(node)
            source = self._query(node, replace(self._context, outer=outer), lateral)
        else:
            raise unsupported(f"{type(node).__name__.upper()} in FROM")
        source = self.sampled(source, node.args.get("sample"))
        for pivot in node.args.get("pivots") or ():
            rows, attributes = source
            source = (rows, pivoted(self._queries, self._context, rows, attributes, pivot))
        for join in node.args.get("joins") or ():
            source = self.joined(source, join)
        for view in node.args.get("laterals") or ():
            source = self._viewed(source, view)
        return source

    def _table(self, node: exp.Table) -> Source:
        unknown = [key for key, value in node.args.items() if value and key not in _TABLE_ARGS]
        if unknown:
            raise unsupported(f"{', '.join(unknown).upper()} in FROM")
        queries = self._queries
        found = self._context.defined.get(node.name.lower()) if not node.args.get("db") else None
        if found is not None:
            name, defined = found
            columns = [replace(column, label=queries.fresh(column.name or "level")) for column in defined]
        elif not node.args.get("db") and (schema := queries.tables.get(node.name)) is not None:
            name = node.name
            columns = [
                Column(
                    each.name,
                    queries.fresh(each.name),
                    each.type,
                    each.nullable,
                    known_limits(each),
                    collation_within(each),
                )
                for each in schema
            ]
            queries.origins |= {column.value.sql: (name, column.name) for column in columns}
        else:
            raise InvalidArgumentError(
                "[TABLE_OR_VIEW_NOT_FOUND] no such table", found=node.sql(dialect="databricks")
            )
        labels = ", ".join(v.name(column.label) for column in columns)
        check_named(node)
        alias = node.alias or node.name
        attributes = [Attribute(each, alias if each.name else None, not each.name) for each in columns]
        rows = Rows(queries, f"{v.name(name)} AS {v.name(queries.fresh(alias))}({labels})")
        return rows, self._named(attributes, node.args.get("alias"))

    def _query(self, node: exp.Expr, context: Context, lateral: bool) -> Source:
        if isinstance(node, exp.Values):
            node = node.copy()
            alias = node.args.get("alias")
            node.set("alias", None)
            inner = self._queries.query(node, context)
        else:
            alias = node.args.get("alias")
            inner = self._queries.query(_inner(node), context)
        rows = Rows(self._queries)
        rows.replace(inner.sql)
        if lateral:
            rows.sql = f"LATERAL {rows.sql}"
        table = alias.name if alias is not None and alias.this is not None else None
        return rows, self._named([Attribute(column, table) for column in inner.columns], alias)

    def _function(self, node: exp.Table, translator: QueryTranslator, lateral: bool) -> Source:
        """Translates a table function: range, or a function that returns rows, such as explode."""
        call = node.this
        if not isinstance(call, exp.Anonymous):
            raise unsupported(f"{node.this.sql(dialect='databricks')[:60]} in FROM")
        rows = Rows(self._queries)
        if call.name.lower() == "range":
            columns = generators.number_range(call, translator, rows)
        else:
            if generators.call(call, in_from=True) is None:
                raise unsupported(f"the table function {call.name}")
            generated = generators.generate(call, translator)
            for layer in generated.layers:
                rows.layer(*layer)
            columns = generated.columns
            if lateral:
                rows.sql = f"LATERAL {rows.sql}"
        table = node.alias or None
        return rows, self._named([Attribute(column, table) for column in columns], node.args.get("alias"))

    def _named(self, attributes: list[Attribute], alias: exp.Expr | None) -> list[Attribute]:
        from deltaic.spark_sql.query.queries import renamed

        if alias is None or not alias.args.get("columns"):
            return attributes
        columns = renamed([each.column for each in attributes if each.name], alias)
        rest = iter(columns)
        return [replace(each, column=next(rest)) if each.name else each for each in attributes]

    def sampled(self, source: Source, sample: exp.Expr | None) -> Source:
        if sample is None:
            return source
        rows, attributes = source
        self._queries.narrowed(attributes)
        number = {key: value for key in ("percent", "size", "bucket_numerator", "bucket_denominator", "seed")
                  if (value := sample.args.get(key)) is not None}  # fmt: skip
        if any(
            not isinstance(value, exp.Literal) or value.is_string for value in number.values()
        ) or sample.args.get("bucket_field"):
            raise unsupported(f"{sample.sql(dialect='databricks').strip()}")
        seed = f" REPEATABLE ({int(number['seed'].name)})" if "seed" in number else ""
        if "size" in number:
            rows.replace(f"SELECT *{rows.clause} LIMIT {int(number['size'].name)}")
            return rows, attributes
        if "percent" in number:
            share = float(number["percent"].name)
        elif "bucket_numerator" in number and "bucket_denominator" in number:
            share = (
                100
                * float(number["bucket_numerator"].name)
                / max(float(number["bucket_denominator"].name), 1)
            )
        else:
            raise unsupported("TABLESAMPLE of this kind")
        if not 0 <= share <= 100:
            raise InvalidArgumentError("a sample has from 0 to 100 percent of the rows", found=share)
        rows.replace(f"SELECT *{rows.clause}")
        rows.sql += f" TABLESAMPLE BERNOULLI({share}%){seed}"
        return rows, attributes

    # --- joins

    def joined(self, left: Source, join: exp.Join) -> Source:
        unknown = [key for key, value in join.args.items() if value and key not in _JOIN_ARGS]
        if unknown or (join.args.get("method") or "NATURAL").upper() != "NATURAL":
            raise unsupported(f"{', '.join(unknown).upper() or join.args['method']} in JOIN")
        right = self._relation(join.this, left[1])
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        if kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI") or side not in (
            "",
            "LEFT",
            "RIGHT",
            "FULL",
        ):
            raise unsupported(f"{side} {kind} JOIN".strip())
        if kind in ("SEMI", "ANTI") and side not in ("", "LEFT"):
            raise unsupported(f"{side} {kind} JOIN")
        if isinstance(join.this, exp.Lateral) and (side in ("RIGHT", "FULL") or kind in ("SEMI", "ANTI")):
            raise InvalidArgumentError(
                "[INCOMPATIBLE_JOIN_TYPES] LATERAL takes an inner, cross or left join",
                found=f"{side} {kind}".strip(),
            )
        names = [column.name for column in join.args.get("using") or ()]
        if (join.args.get("method") or "").upper() == "NATURAL":
            there = {each.name.lower() for each in right[1] if not each.qualified}
            names = [each.name for each in left[1] if not each.qualified and each.name.lower() in there]
        both = [*left[1], *right[1]]
        on = join.args.get("on")
        condition: str | None = None
        if names:
            condition = self._using(left[1], right[1], names)
        elif on is not None:
            outer = bool(side) or kind in ("SEMI", "ANTI")
            inner = not outer and not isinstance(join.this, exp.Lateral)
            condition = boolean(self._translator(both), on, outer=outer, inner=inner).sql
            if not side and kind not in ("SEMI", "ANTI"):
                self._queries.note_keys(on, self._scope(both), filters=False)
        joined = self._text(left[0], right[0], side, kind, condition)
        if kind in ("SEMI", "ANTI"):
            return joined, left[1]
        left_columns = [each.as_nullable() if side in ("RIGHT", "FULL") else each for each in left[1]]
        added = [each.as_nullable() if side in ("LEFT", "FULL") else each for each in right[1]]
        return joined, self._merged(joined, left_columns, added, names, side) if names else [
            *left_columns,
            *added,
        ]

    def _translator(self, attributes: Sequence[Attribute]) -> QueryTranslator:
        return QueryTranslator(self._queries, self._scope(attributes), self._context)

    def _text(self, left: Rows, right: Rows, side: str, kind: str, condition: str | None) -> Rows:
        rows = Rows(self._queries)
        if condition is None and not side and kind not in ("SEMI", "ANTI"):
            rows.sql = f"{left.sql} CROSS JOIN {right.sql}"
        elif condition is not None and not side and "SELECT" in condition and kind not in ("SEMI", "ANTI"):
            rows.replace(f"SELECT * FROM {left.sql} CROSS JOIN {right.sql} WHERE {condition}")
        else:
            word = kind if kind in ("SEMI", "ANTI") else side or "INNER"
            rows.sql = f"{left.sql} {word} JOIN {right.sql} ON {condition or 'true'}"
        return rows

    def _using(self, left: list[Attribute], right: list[Attribute], names: Sequence[str]) -> str:
        """Returns the condition of USING (names): the columns with these names are equal on both sides."""
        parts = []
        for name in names:
            sides = [self._scope(side).locate([name]) for side in (left, right)]
            if sides[0] is None or sides[1] is None:
                which = "left" if sides[0] is None else "right"
                raise InvalidArgumentError(
                    f"[UNRESOLVED_USING_COLUMN_FOR_JOIN] no column {name} on the {which} side", found=name
                )
            columns = [located[0].column for located in sides if located is not None]
            refuse_collations(columns, "a join by USING or NATURAL")
            one, other = (column.value for column in columns)
            parts.append(operators.compare("=", one, other, self._queries.zone, joins=True))
        return operators.connect("AND", parts).sql

    def _merged(
        self, rows: Rows, left: list[Attribute], right: list[Attribute], names: Sequence[str], side: str
    ) -> list[Attribute]:
        """Returns the columns after a join with USING: first the columns in USING, once each, then all
        others. Each side's own columns of USING are found with their table's alias only."""
        shared = {name.lower() for name in names}
        left_by_name, right_by_name = (
            {each.name.lower(): each for each in part if not each.qualified} for part in (left, right)
        )
        rest = [each for each in (*left, *right) if each.qualified or each.name.lower() not in shared]
        if side == "FULL":
            shown, layers = [], []
            for name in names:
                value = coalesce(
                    [left_by_name[name.lower()].column.value, right_by_name[name.lower()].column.value],
                    self._queries.zone,
                )
                column = self._queries.column(
                    left_by_name[name.lower()].name, cast(value, value.type, self._queries.zone)
                )
                shown.append(Attribute(column, None))
                layers.append((column.label, value.sql))
            rows.add(layers)
            hidden = [each[name.lower()] for each in (left_by_name, right_by_name) for name in names]
        else:
            kept, other = (right_by_name, left_by_name) if side == "RIGHT" else (left_by_name, right_by_name)
            shown = [kept[name.lower()] for name in names]
            hidden = [other[name.lower()] for name in names]
        return [*shown, *rest, *(replace(each, qualified=True) for each in hidden)]

    def _viewed(self, source: Source, view: exp.Lateral) -> Source:
        """Translates LATERAL VIEW [OUTER] function(…) table AS columns."""
        rows, attributes = source
        call = view.this
        if not isinstance(call, exp.Anonymous) or generators.call(call) is None:
            raise unsupported(f"LATERAL VIEW of {call.sql(dialect='databricks')[:60]}")
        if (alias := view.args.get("alias")) is None or not (alias.this or alias.columns):
            message = "[PARSE_SYNTAX_ERROR] SQL does not parse: a LATERAL VIEW needs a name"
            raise InvalidArgumentError(
                message, found=view.sql(dialect="databricks")[:100], expected="LATERAL VIEW ... AS name"
            )
        generated = generators.generate(
            call, self._translator(attributes), outer=bool(view.args.get("outer"))
        )
        for layer in generated.layers:
            rows.layer(*layer)
        table = alias.name if alias.this is not None else None
        return rows, [
            *attributes,
            *self._named([Attribute(column, table) for column in generated.columns], alias),
        ]


def check_named(node: exp.Expr) -> None:
    """Raises InvalidArgumentError if an alias lists columns without a table's name: `VALUES (1) (2)`, where a
    comma is missing, is parsed so."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns") and alias.this is None:
        shown = ", ".join(name.name for name in alias.args["columns"])
        raise InvalidArgumentError(
            "[PARSE_SYNTAX_ERROR] SQL does not parse: names of columns follow the name of a table",
            found=f"({shown}) alone",
            expected="t(a, b)",
        )


def _with_alias(node: exp.Lateral) -> exp.Expr:
    """Returns the query or function of a LATERAL, with the alias of the LATERAL."""
    inner = node.this
    inner = exp.Table(this=inner.copy()) if isinstance(inner, exp.Anonymous) else inner.copy()
    if node.args.get("alias") is not None:
        inner.set("alias", node.args["alias"].copy())
    return inner


def _inner(node: exp.Expr) -> exp.Expr:
    """Returns the query in brackets, with the clauses after its inner brackets: `((SELECT …) ORDER BY a) AS
    t`."""
    if not any(node.args.get(key) for key in ("order", "limit", "offset", "with_")):
        return node.this  # type: ignore[no-any-return]
    bare = node.copy()
    for key in ("alias", "sample", "pivots", "joins", "laterals"):
        bare.set(key, None)
    return bare
