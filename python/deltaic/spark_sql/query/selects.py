"""Translates a SELECT: its clauses become layers of DuckDB's SQL, each around the rows of the one before.

FROM and WHERE give the rows, GROUP BY replaces them by groups, and HAVING filters the groups. Explode and
window functions add columns (`SELECT *, rank() OVER (…) AS "rank_9" FROM …`), QUALIFY filters again, and the
last layer has the columns of the SELECT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.column_names import column_name
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.query import generators
from deltaic.spark_sql.query.aggregate_calls import holds_aggregate
from deltaic.spark_sql.query.grouping import GroupedTranslator
from deltaic.spark_sql.query.ordering import Ordering
from deltaic.spark_sql.query.scopes import Attribute, Column, QueryScope, dotted
from deltaic.spark_sql.query.sources import Rows, Sources
from deltaic.spark_sql.query.subqueries import QueryTranslator, boolean, where
from deltaic.spark_sql.query.time_windows import with_windows
from deltaic.spark_sql.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Context, Queries, Query

_ARGS = {
    *(
        "kind",
        "expressions",
        "from_",
        "joins",
        "laterals",
        "where",
        "group",
        "having",
        "qualify",
        "windows",
        "order",
        "limit",
    ),
    *("offset", "distinct", "with_", "hint", "sort", "distribute", "cluster", "operation_modifiers"),
}
"""Clauses that are supported. Hints, and SORT BY, DISTRIBUTE BY and CLUSTER BY, which distribute rows over
Spark's tasks, are ignored."""

Item = tuple[str, exp.Expr]
"""A column of a SELECT: its name and tree."""


class Select:
    """Translates one SELECT."""

    def __init__(
        self,
        queries: Queries,
        node: exp.Select,
        context: Context,
        *,
        source: tuple[Rows, QueryScope] | None = None,
    ) -> None:
        """`source`: the rows and their columns, for a SELECT without FROM in the pipe syntax."""
        self._queries = queries
        self._node = node
        self._context = context
        self._source = source
        self._unnamed: set[int] = set()
        """Ids of the trees of columns without an alias: each is named after its expression."""

    def query(self) -> Query:
        node, queries = self._node, self._queries
        self._check()
        rows, scope = self._source or Sources(queries, self._context).of(node)
        self._node = node = _with_stars_in_calls(node, scope)
        below = QueryTranslator(queries, scope, self._context)
        below.lifts = True
        if condition := node.args.get("where"):
            held_rows = where(below, condition.this, inner=_has_inner_joins(node)).sql
            queries.note_keys(condition.this, scope)
            below.add_lifted(rows)
            rows.where(held_rows)
        self._node = node = with_windows(node, below, rows)
        items = self._items(scope)
        translator = self._translator(below, items)
        translator.lifts = True
        outputs = self._outputs(translator, items, rows)
        scope = translator.scope
        scope.first = outputs_by_name(outputs)
        having = node.args.get("having")
        translator.lifts = False  # HAVING comes before the layers
        having_condition = None
        if having is not None and isinstance(translator, GroupedTranslator):
            translator.filters = True
            having_condition = boolean(translator, having.this).sql
            translator.filters = False
        translator.lifts = True
        qualify = node.args.get("qualify")
        chosen = boolean(translator, qualify.this).sql if qualify is not None else None
        columns = tuple(queries.column(name, value) for name, value in outputs)
        distinct = node.args.get("distinct") is not None
        ordering = Ordering(
            queries, node, self._context, translator=None if distinct else translator, items=items
        )
        hidden = ordering.resolve(columns, [value for _, value in outputs])

        if isinstance(translator, GroupedTranslator):
            below.add_lifted(rows)
            translator.group(rows)
        if having_condition is not None:
            rows.where(having_condition)
        for layer in self._generated:
            rows.layer(*layer)
        translator.add_lifted(rows)
        if chosen is not None:
            rows.where(chosen)
        listed = [
            (column.label, queries.used(value)) for column, (_, value) in zip(columns, outputs, strict=True)
        ]
        queries.outputs |= {
            column.value.sql: origin
            for column, (_, value) in zip(columns, outputs, strict=True)
            if (origin := queries.origins.get(value.sql)) is not None
        }
        if distinct:
            listed = [(label, normalized(value)) for label, value in listed]
        selected = ", ".join(f"{value.sql} AS {v.name(label)}" for label, value in [*listed, *hidden])
        from deltaic.spark_sql.query.queries import Query

        sql = f"SELECT {'DISTINCT ' if distinct else ''}{selected}{rows.clause}"
        return ordering.around(Query(sql, columns))

    def _check(self) -> None:
        unknown = [key for key, value in self._node.args.items() if value and key not in _ARGS]
        if unknown or self._node.args.get("kind"):
            raise unsupported(f"{', '.join(unknown).upper() or self._node.args['kind']} in a SELECT")
        distinct = self._node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise unsupported("DISTINCT ON")
        if distinct is None and any(isinstance(each, exp.Distinct) for each in self._node.expressions):
            raise unsupported("DISTINCT in this place")
        qualify = self._node.args.get("qualify")
        if qualify is not None and holds_aggregate(qualify.this):
            raise InvalidArgumentError(
                "[MISSING_GROUP_BY] an aggregate function cannot stand in QUALIFY",
                found=qualify.this.sql(dialect="databricks")[:100],
                expected="the aggregate as a column of SELECT, and its name in QUALIFY",
            )

    def _translator(self, below: QueryTranslator, items: Sequence[Item]) -> QueryTranslator:
        """Returns the translator of the columns: over groups if the SELECT groups, else over the rows."""
        node = self._node
        order = node.args.get("order")
        trees = [*(tree for _, tree in items), *(order.expressions if order is not None else ())]
        if node.args.get("group") or node.args.get("having") or any(holds_aggregate(tree) for tree in trees):
            return GroupedTranslator(self._queries, below, items, node)
        return QueryTranslator(self._queries, below.scope, self._context, windows=node)

    def _outputs(
        self, translator: QueryTranslator, items: Sequence[Item], rows: Rows
    ) -> list[tuple[str, Value]]:
        """Returns (name, value) of each column. An expression may use the aliases of columns before it."""
        self._generated: list[tuple[str, str]] = []
        outputs: list[tuple[str, Value]] = []
        aliases = translator.scope.aliases
        for name, tree in items:
            if (call := generators.call(tree)) is not None:
                generated = generators.generate(call, translator)
                self._generated += generated.layers
                names = generators.names(tree, generated.columns)
                found = [
                    (alias, column.value) for alias, column in zip(names, generated.columns, strict=True)
                ]
            else:
                _check_no_alias_in_window(tree, translator.scope)
                value = self._queries.used(translator.value(tree))
                found = [
                    (
                        self._shown_name(tree, scope=translator.scope) if id(tree) in self._unnamed else name,
                        value,
                    )
                ]
            for each, value in found:
                outputs.append((each, value))
                aliases.setdefault(each.lower(), []).append(value)
        if self._node.meta.get("level"):
            level = next((each for each in translator.scope.attributes if not each.name), None)
            if level is None:
                raise unsupported("a step of WITH RECURSIVE that reads itself inside a query within")
            outputs.append(("", level.column.value))
        return outputs

    def _shown_name(self, tree: exp.Expr, scope: QueryScope) -> str:
        """Returns the name of a column without an alias. Its expression must be translated already. A
        struct's field is shown by its path."""
        for column in tree.find_all(exp.Column):
            parts = [part.name for part in column.parts]
            if len(parts) > 1 and (located := scope.locate(parts)) is not None:
                column.meta["shown"] = ".".join(parts[-1 - len(located[1]) :])
        return column_name(tree)

    def _items(self, scope: QueryScope) -> list[Item]:
        """Returns (name, tree) of each column, with the columns of a star in place of the star."""
        items: list[Item] = []
        for tree in self._node.expressions:
            if isinstance(tree, exp.Star) or (
                isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)
            ):
                items += _star(scope, tree)
            elif isinstance(tree, exp.Alias):
                items.append((tree.alias, tree.this))
            elif isinstance(tree, exp.Aliases):
                items.append(("", tree))
            else:
                self._unnamed.add(id(tree))
                items.append((column_name(tree), tree))
        if not items:
            raise InvalidArgumentError("SQL does not parse: a SELECT without columns")
        return items


def _check_no_alias_in_window(tree: exp.Expr, scope: QueryScope) -> None:
    """InvalidArgumentError where a window of a column reads an alias to its left, and no column of that
    name."""
    for window in tree.find_all(exp.Window):
        for column in window.find_all(exp.Column):
            is_alias = (
                not column.table and column.name.lower() in scope.aliases and not column.meta.get("column")
            )
            if (
                is_alias
                and column.find_ancestor(exp.Query) is window.find_ancestor(exp.Query)
                and scope.locate([column.name]) is None
            ):
                raise InvalidArgumentError(
                    "[UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW] a window function reads the alias"
                    f" {column.name} to its left",
                    found=window.sql(dialect="databricks")[:100],
                    expected="the alias in a query within",
                )


def _star(scope: QueryScope, tree: exp.Expr) -> list[Item]:
    star = tree if isinstance(tree, exp.Star) else tree.this
    if any(value for key, value in star.args.items() if key not in ("except_",)):
        raise unsupported("a star with REPLACE or RENAME")
    if isinstance(tree, exp.Column) and (fields := _fields_of(scope, tree, star)):
        return fields
    found = scope.star(tree.table if isinstance(tree, exp.Column) else None)
    if not scope.attributes:
        raise InvalidArgumentError("a star needs a table", expected="FROM")
    paths: dict[Attribute, list[Sequence[str]]] = {}
    for left_out in star.args.get("except_") or ():
        parts = (
            [part.name for part in left_out.parts]
            if isinstance(left_out, (exp.Column, exp.Dot))
            else [left_out.name]
        )
        located = scope.locate(parts)
        if located is None or located[0] not in found:
            raise InvalidArgumentError(
                f"[UNRESOLVED_COLUMN] no column {'.'.join(parts)} to leave out", found=".".join(parts)
            )
        if located[1]:
            paths.setdefault(located[0], []).append(located[1])
        else:
            found = [each for each in found if each is not located[0]]
    return [
        (each.name, _without(known(each.column, each.name), each.column.type, paths.get(each, ())))
        for each in found
    ]


def _without(tree: exp.Expr, kind: DataType, paths: Sequence[Sequence[str]]) -> exp.Expr:
    """Returns a struct without the fields at these paths; without paths, any value as it is. As in Spark, of
    a struct that is null a struct of nulls is left."""
    if not paths:
        return tree
    if not isinstance(kind, Struct):
        raise InvalidArgumentError("[UNRESOLVED_COLUMN] no field to leave out", found=".".join(paths[0]))
    parts: list[exp.Expr] = []
    for field in kind.fields:
        inner = [path[1:] for path in paths if path[0].lower() == field.name.lower()]
        if () not in map(tuple, inner):
            value = exp.Dot(this=tree.copy(), expression=exp.to_identifier(field.name, quoted=True))
            parts += [exp.Literal.string(field.name), _without(value, field.type, inner)]
    return exp.Anonymous(this="named_struct", expressions=parts)


def _with_stars_in_calls(node: exp.Select, scope: QueryScope) -> exp.Select:
    """Returns the SELECT with columns in place of stars among the arguments of calls: `to_json(struct(*))`,
    `hash(t.*)`, `count(DISTINCT *)`."""
    if not _stars_in_calls(node):
        return node
    node = node.copy()
    for tree in _stars_in_calls(node):
        call = tree.parent
        if call is None or (isinstance(call, exp.Anonymous) and call.name.lower() == "count"):
            message = (
                "[INVALID_USAGE_OF_STAR_WITH_TABLE_IDENTIFIER_IN_COUNT] count takes no star of one table"
            )
            raise InvalidArgumentError(message, found=tree.sql(dialect="databricks"), expected="count(*)")
        columns = [column for _, column in _star(scope, tree)]
        call.set(
            "expressions", [each for old in call.expressions for each in (columns if old is tree else [old])]
        )
    return node


def _stars_in_calls(node: exp.Select) -> list[exp.Expr]:
    """Returns the stars among the arguments of calls of this SELECT, without `count(*)` and without those in
    subqueries."""
    found: list[exp.Expr] = []
    for star in node.find_all(exp.Star):
        tree = star.parent if isinstance(star.parent, exp.Column) else star
        call = tree.parent
        if (
            not isinstance(call, (exp.Anonymous, exp.Struct, exp.Distinct, exp.In))
            or tree.find_ancestor(exp.Query) is not node
        ):
            continue
        if tree is not star or not (isinstance(call, exp.Anonymous) and call.name.lower() == "count"):
            check_no_star_of_order(tree)
            found.append(tree)
    return found


def check_no_star_of_order(star: exp.Expr) -> None:
    """InvalidArgumentError for `ORDER BY hash(*)`; a window may be in such an order."""
    order = star.find_ancestor(exp.Order, exp.Query)
    if isinstance(order, exp.Order) and isinstance(order.parent, exp.Query):
        message = "[INVALID_USAGE_OF_STAR_OR_REGEX] a star cannot stand in ORDER BY"
        raise InvalidArgumentError(message, found=order.sql(dialect="databricks")[:100])


def _fields_of(scope: QueryScope, tree: exp.Column, star: exp.Expr) -> list[Item]:
    """Returns the fields of `s.*` if `s` is no table but a column with a struct."""
    parts = tree.parts[:-1]
    if star.args.get("except_") or (
        len(parts) == 1
        and any((each.table or "").lower() == parts[0].name.lower() for each in scope.attributes)
    ):
        return []
    located = scope.locate([part.name for part in parts])
    if located is None:
        return []
    value = dotted(located[0].column.value, located[1])
    if not isinstance(value.type, Struct):
        return []
    base = known(located[0].column, parts[0].name)
    for name in located[1]:
        base = exp.Dot(this=base, expression=exp.to_identifier(name, quoted=True))
    return [
        (field.name, exp.Dot(this=base.copy(), expression=exp.to_identifier(field.name, quoted=True)))
        for field in value.type.fields
    ]


def known(column: Column, name: str) -> exp.Expr:
    """Returns a tree that stands for this column, even if other columns have the same name."""
    tree = exp.Column(this=exp.to_identifier(name, quoted=True))
    tree.meta["column"] = column
    return tree


def _has_inner_joins(node: exp.Expr) -> bool:
    """True if FROM has only tables and inner joins: no outer join, and no LATERAL or function that reads
    another table's columns."""
    parts = [part for part in (node.args.get("from_"), *(node.args.get("joins") or ())) if part is not None]
    if node.args.get("laterals") or any(part.find(exp.Lateral, exp.Unnest) is not None for part in parts):
        return False
    joins = [join for part in parts for join in part.find_all(exp.Join)]
    return not any(
        join.args.get("side") or (join.args.get("kind") or "").upper() in ("SEMI", "ANTI", "OUTER")
        for join in joins
    )


def outputs_by_name(outputs: Sequence[tuple[str, Value]]) -> Mapping[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for name, value in outputs:
        found.setdefault(name.lower(), []).append(value)
    return found
