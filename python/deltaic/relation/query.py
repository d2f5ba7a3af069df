"""Queries: SELECT, set operations, VALUES and what may stand around them, for DuckDB.

Structure is translated here, clause by clause; each expression goes through the allow-list of `relation.duckdb`. A clause or an argument of
a clause that is not known is refused by name. Every query gives columns under its own unique names, in Spark's types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Field, Schema
from deltaic.relation import values as v
from deltaic.relation.aggregates import normalized
from deltaic.relation.casts import Zone, cast
from deltaic.relation.column_names import column_name
from deltaic.relation.grouping import GroupedTranslator, holds_aggregate
from deltaic.relation.ordering import Ordering
from deltaic.relation.scope import Scope
from deltaic.relation.sources import Source, Sources
from deltaic.relation.subqueries import QueryTranslator
from deltaic.relation.values import Value, unsupported

Defined = Mapping[str, tuple[str, Schema]]
"""Names that WITH defines, in lower case -> the name in the engine's SQL, and the columns."""

_SELECT_ARGS = {"kind", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_"}
_OPERATIONS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


@dataclass(frozen=True)
class TranslatedQuery:
    """`sql`: a SELECT of the engine; `schema`: its columns, under these names and in the engine's types of these types.

    `constants`: what has to be computed before it (`Value.constants`); only the whole query has them, a query within leaves them to it."""

    sql: str
    schema: Schema
    constants: tuple[str, ...] = ()


def translate_query(tree: exp.Expr, tables: Mapping[str, Schema], *, time_zone: str = "UTC") -> TranslatedQuery:
    """The query `tree` (of `parsing.parse_statement`) over relations of the engine that have just these names and columns.

    UnsupportedFeatureError names a clause, an aggregate or a form that is not on the list. InvalidArgumentError: unknown or ambiguous
    names, a column that is neither grouped nor aggregated, types or numbers of columns that do not go together.
    """
    try:
        queries = Queries(tables, Zone(time_zone))
        return replace(queries.query(tree, {}), constants=tuple(queries.constants))
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply") from None


class Queries:
    """Translates queries within queries; numbers the names that it makes up."""

    def __init__(self, tables: Mapping[str, Schema], zone: Zone) -> None:
        self.tables = tables
        self.zone = zone
        self.constants: dict[str, None] = {}
        self._count = 0

    def fresh(self, what: str) -> str:
        self._count += 1
        return f"__deltaic_{what}_{self._count}"

    def used(self, value: Value) -> Value:
        """A value that becomes part of the query as it is; its constants are the query's."""
        self.constants.update(dict.fromkeys(value.constants))
        return value

    def query(self, node: exp.Expr, defined: Defined) -> TranslatedQuery:
        """Any query, with the WITH before it."""
        with_ = node.args.get("with_")
        if with_ is None:
            return self._body(node, defined)
        if with_.args.get("recursive"):
            raise unsupported("WITH RECURSIVE")
        names = dict(defined)
        definitions = []
        for item in with_.expressions:
            inner = self.query(item.this, names)
            schema = renamed(inner.schema, item.args["alias"])
            name = self.fresh("with")
            columns = ", ".join(v.name(column) for column in schema.names)
            definitions.append(f"{v.name(name)}({columns}) AS ({inner.sql})")
            names[item.alias.lower()] = (name, schema)
        body = self._body(node, names)
        return TranslatedQuery(f"WITH {', '.join(definitions)} {body.sql}", body.schema)

    def _body(self, node: exp.Expr, defined: Defined) -> TranslatedQuery:
        if isinstance(node, exp.Select):
            return self._select(node, defined)
        if isinstance(node, exp.Values):
            return self._values(node, defined)
        if isinstance(node, exp.Subquery):
            return Ordering(self, node).around(self.query(node.this, defined))
        for kind, word in _OPERATIONS.items():
            if isinstance(node, kind):
                return Ordering(self, node).around(self._set_operation(node, word, defined))
        raise unsupported(f"a query of the kind {type(node).__name__.upper()}")

    # --- SELECT

    def _select(self, node: exp.Select, defined: Defined) -> TranslatedQuery:
        unknown = [key for key, value in node.args.items() if value and key not in _SELECT_ARGS]
        if unknown or node.args.get("kind"):
            raise unsupported(f"{', '.join(unknown) or node.args['kind']} in a SELECT")
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise unsupported("DISTINCT ON")
        source = Sources(self, defined).of(node)
        translator = QueryTranslator(self, source.scope(), self.zone, defined)
        where = ""
        if condition := node.args.get("where"):
            where = f" WHERE {boolean(translator, condition.this).sql}"
        items = _items(node, source)
        if node.args.get("group") or node.args.get("having") or any(holds_aggregate(tree) for _, tree in items):
            translator = grouped = GroupedTranslator(self, translator, items, node)
        else:
            grouped = None
        columns = [(name, self.used(translator.value(tree))) for name, tree in items]
        if distinct is not None:
            columns = [(name, normalized(value)) for name, value in columns]
        schema = output(columns)
        ordering = Ordering(self, node, translator=None if distinct is not None else translator)
        hidden = ordering.resolve(schema)
        having = f" WHERE {boolean(grouped, node.args['having'].this).sql}" if grouped is not None and node.args.get("having") else ""
        listed = ", ".join(f"{value.sql} AS {v.name(name)}" for name, value in [*columns, *hidden])
        rows = f"FROM {grouped.sql(source.sql, where)}{having}" if grouped is not None else f"{source.clause}{where}"
        sql = f"SELECT {'DISTINCT ' if distinct is not None else ''}{listed} {rows}"
        return ordering.around(TranslatedQuery(sql, schema), hidden=bool(hidden))

    # --- other queries

    def _values(self, node: exp.Values, defined: Defined) -> TranslatedQuery:
        translator = QueryTranslator(self, Scope({}, lambda alias, path: ""), self.zone, defined)
        rows = [[translator.value(item) for item in _row(row)] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise InvalidArgumentError("rows of VALUES have different numbers of columns", found=sorted({len(row) for row in rows}))
        types = [v.common_of([row[index] for row in rows], "VALUES") for index in range(len(rows[0]))]
        cast_rows = [[self.used(cast(item, kind, self.zone)) for item, kind in zip(row, types, strict=True)] for row in rows]
        fields = [Field(f"col{index + 1}", kind, any(row[index].nullable for row in cast_rows)) for index, kind in enumerate(types)]
        schema = renamed(Schema(fields), node.args.get("alias"))
        text = ", ".join("(" + ", ".join(item.sql for item in row) + ")" for row in cast_rows)
        names = ", ".join(v.name(name) for name in schema.names)
        return Ordering(self, node).around(
            TranslatedQuery(f"SELECT * FROM (VALUES {text}) AS {v.name(self.fresh('values'))}({names})", schema)
        )

    def _set_operation(self, node: exp.SetOperation, word: str, defined: Defined) -> TranslatedQuery:
        if node.args.get("by_name") or node.args.get("side") or node.args.get("kind") or node.args.get("on"):
            raise unsupported(f"{word} BY NAME")
        left, right = self.query(node.this, defined), self.query(node.expression, defined)
        if len(left.schema) != len(right.schema):
            raise InvalidArgumentError(f"both sides of {word} need as many columns", found=len(right.schema), expected=len(left.schema))
        distinct = bool(node.args.get("distinct"))
        fields, sides = [], ([], [])  # type: ignore[var-annotated]
        for mine, other in zip(left.schema, right.schema, strict=True):
            kind = v.common_of([Value("", mine.type), Value("", other.type)], word)
            fields.append(Field(mine.name, kind, mine.nullable or other.nullable))
            for side, field in zip(sides, (mine, other), strict=True):
                value = cast(Value(v.name(field.name), field.type, field.nullable), kind, self.zone)
                side.append(f"{(value if word == 'UNION' and not distinct else normalized(value)).sql} AS {v.name(mine.name)}")
        texts = [f"SELECT {', '.join(side)} FROM ({query.sql})" for side, query in zip(sides, (left, right), strict=True)]
        operator = word if distinct else f"{word} ALL"
        return TranslatedQuery(f"({texts[0]}) {operator} ({texts[1]})", Schema(fields))


def boolean(translator: QueryTranslator, tree: exp.Expr) -> Value:
    from deltaic.relation import operators

    return translator.queries.used(operators.condition(translator.value(tree), translator.zone, "a condition"))


def renamed(schema: Schema, alias: exp.Expr | None) -> Schema:
    """Columns under the names of `AS alias(names)`, where it lists any."""
    columns: Sequence[exp.Expr] = alias.args.get("columns") or () if alias is not None else ()
    if not columns:
        return schema
    if len(columns) != len(schema):
        raise InvalidArgumentError("an alias needs one name for each column", found=len(columns), expected=len(schema))
    return Schema([field.with_(name=column.name) for field, column in zip(schema, columns, strict=True)])


def output(columns: Sequence[tuple[str, Value]]) -> Schema:
    """The columns of a SELECT; InvalidArgumentError where two have one name."""
    seen: set[str] = set()
    for name, value in columns:
        if name.lower() in seen:
            raise InvalidArgumentError("two columns of a query have one name", found=name, expected="an alias for one of them")
        seen.add(name.lower())
        if value.type in (v.DAY_TIME, v.DAYS, v.YEAR_MONTH):
            raise unsupported(f"a column of type {value.type}")
    return Schema([Field(name, value.type, value.nullable) for name, value in columns])


def _row(node: exp.Expr) -> Sequence[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node.this if isinstance(node, exp.Paren) else node]


def _items(node: exp.Select, source: Source) -> list[tuple[str, exp.Expr]]:
    """(name, tree) of each column, stars written out."""
    items: list[tuple[str, exp.Expr]] = []
    for tree in node.expressions:
        if isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)):
            star = tree if isinstance(tree, exp.Star) else tree.this
            if any(star.args.values()):
                raise unsupported("a star with EXCEPT or REPLACE")
            items += source.star(tree.table if isinstance(tree, exp.Column) else None)
        elif isinstance(tree, exp.Alias):
            items.append((tree.alias, tree.this))
        elif isinstance(tree, exp.Aliases):
            raise unsupported("several aliases of one column")
        else:
            items.append((column_name(tree), tree))
    if not items:
        raise InvalidArgumentError("SQL does not parse: a SELECT without columns")
    return items
