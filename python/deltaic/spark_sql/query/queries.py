"""Queries: set operations, VALUES, WITH, and the SELECTs among them (`selects.py`), for DuckDB.

Structure is translated here, clause by clause; each expression goes through the allow-list of `spark_sql.duckdb`. A clause or an
argument of a clause that is not known is refused by name. Joins, subqueries, windows and grouping stay DuckDB's own, as they mean the
same there; names, scopes and types are Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType, Field, Schema
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.interval_types import ResultField
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.query.ordering import Ordering
from deltaic.spark_sql.query.pipes import Pipe
from deltaic.spark_sql.query.scopes import Attribute, Column, QueryScope, Resolve
from deltaic.spark_sql.query.selects import Select
from deltaic.spark_sql.query.sources import check_named
from deltaic.spark_sql.query.subqueries import QueryTranslator, boolean
from deltaic.spark_sql.values import Value, unsupported

_OPERATIONS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}
TableColumn = tuple[str, str]
"""A table of a query, and a column of it."""
MAX_RECURSION = 100
"""Steps of a recursive WITH; a further one is Spark's RECURSION_LEVEL_LIMIT_EXCEEDED."""


@dataclass(frozen=True)
class TranslatedQuery:
    """`sql`: a SELECT of the engine; `schema`: its columns, in the engine's types of these types. Where names repeat, the engine's columns
    are named by `labels` in their place.

    `constants`: what has to be computed before it (`Value.constants`); only the whole query has them, a query within leaves them to it.
    `definitions`: names that WITH defines anywhere in it. `keys`: pairs of columns (table, name): of the second one's table the query needs
    no row without an equal one in the first."""

    sql: str
    schema: Schema
    constants: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    keys: tuple[tuple[TableColumn, TableColumn], ...] = ()
    learned: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Filters that the engine pushed into each table when it first planned the query: predicates of `_core` as JSON. They follow from the
    text, so they hold for the rows of any version."""

    def reads_once(self, table: str) -> bool:
        """True if one place of the query alone reads the table, where what stands under WITH (`shared`) is computed once."""
        return self.sql.count(v.name(table)) == 1

    @property
    def shared(self) -> tuple[str, ...]:
        """Names that WITH defines and that several places read: the engine computes each once, or in every place."""
        return tuple(name for name in self.definitions if self.sql.count(v.name(name)) > 2)


@dataclass(frozen=True)
class Query:
    """A query inside a statement: a SELECT of the engine whose columns have the labels of `columns`."""

    sql: str
    columns: tuple[Column, ...]

    @property
    def attributes(self) -> list[Attribute]:
        return [Attribute(column, None) for column in self.columns]


@dataclass(frozen=True)
class Context:
    """The part of the queries around it that a query sees. `defined`: names that WITH defines, in lower case; `outer`: columns;
    `aggregate`: aggregates of the groups that HAVING filters, for the WHERE of a query in HAVING."""

    defined: Mapping[str, tuple[str, tuple[Column, ...]]] = field(default_factory=dict)
    outer: Resolve | None = None
    aggregate: Callable[[exp.Expr], Value | None] | None = None


def translate_query(tree: exp.Expr, tables: Mapping[str, Schema], *, time_zone: str = "UTC") -> TranslatedQuery:
    """The query `tree` (of `parsing.parse_statement`) over relations of the engine that have just these names and columns.

    UnsupportedFeatureError names a clause, an aggregate or a form that is not on the list. InvalidArgumentError: unknown or ambiguous
    names, a column that is neither grouped nor aggregated, types or numbers of columns that do not go together.
    """
    try:
        queries = Queries(tables, Zone(time_zone))
        query = queries.query(tree, Context())
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply") from None
    for column in query.columns:
        if column.type == v.CALENDAR:
            raise unsupported(f"a column of type {column.type}")
    schema = Schema.of_query(
        [(ResultField if v.is_interval(column.type) else Field)(column.name, column.type, column.nullable) for column in query.columns]
    )
    # The engine's columns are named last: a label is unique in the statement, a name need not be.
    names = zip(query.columns, schema.distinct().names, strict=True)
    listed = ", ".join(f"{v.name(column.label)} AS {v.name(name)}" for column, name in names)
    sql = f"SELECT {listed} FROM ({query.sql})"
    return TranslatedQuery(sql, schema, tuple(queries.constants), tuple(queries.definitions), tuple(queries.keys))


@dataclass(frozen=True)
class _Key:
    """A table's column that a condition names. `is_own`: it is of this query, not of one around."""

    origin: TableColumn
    type: DataType
    is_own: bool


class Queries:
    """Translates queries within queries; numbers the names that it makes up."""

    def __init__(self, tables: Mapping[str, Schema], zone: Zone, *, first: int = 0) -> None:
        self.tables = tables
        self.zone = zone
        self.constants: dict[str, None] = {}
        self.definitions: list[str] = []
        self.origins: dict[str, TableColumn] = {}
        """Table and name of a table's column, by its SQL, as long as every row of the table is at hand: see `narrowed`."""
        self.outputs: dict[str, TableColumn] = {}
        """Table and name of a table's column, by the SQL of a query's column that holds no other values than it."""
        self.keys: dict[tuple[TableColumn, TableColumn], None] = {}
        """See `TranslatedQuery`."""
        self._count = first

    def fresh(self, what: str) -> str:
        self._count += 1
        return f"{what}_{self._count}"

    def column(self, name: str, value: Value) -> Column:
        """A new column of this value's type."""
        return Column(name, self.fresh(name), value.type, value.nullable, value.limits, value.collation)

    def used(self, value: Value) -> Value:
        """A value that becomes part of the query as it is; its constants are the query's."""
        self.constants.update(dict.fromkeys(value.constants))
        return value

    def note_keys(self, condition: exp.Expr, scope: QueryScope, *, filters: bool = True) -> None:
        """Notes which tables need no other keys than another has: by a condition of WHERE, or ON of an inner join (`filters=False`).

        `a.k = b.k`: rows of either table without an equal one in the other go into no row that it keeps, whatever the joins below.
        `a.k = outer.k`, of a query around: rows of `a` without an equal one go into the answer for no row of that query. WHERE `a.k IN
        (SELECT b.k ...)`: rows of `a` without an equal one in `b` are not kept."""
        for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            tree = part.unnest()
            if isinstance(tree, exp.And):
                self.note_keys(tree, scope, filters=filters)
            elif isinstance(tree, exp.EQ):
                one, other = self._key(tree.this, scope), self._key(tree.expression, scope)
                if one is not None and other is not None and one.type == other.type:
                    self.keys |= {(few.origin, many.origin): None for few, many in ((one, other), (other, one)) if many.is_own}
            elif filters and isinstance(tree, exp.In) and len(columns := tree.meta.get("columns", ())) == 1:
                many, few_origin = self._key(tree.this, scope), self.outputs.get(columns[0].value.sql)
                if many is not None and few_origin is not None and many.is_own and many.type == columns[0].type:
                    self.keys[few_origin, many.origin] = None

    def _key(self, tree: exp.Expr, scope: QueryScope) -> _Key | None:
        """The table's column that this is; None where it is not known to be one."""
        if not isinstance(tree, exp.Column):
            return None
        parts = [name.name for name in tree.parts]
        if (found := scope.locate(parts)) is not None:
            value = None if found[1] else found[0].column.value
        else:
            value = scope.around.get(tuple(parts))
        if value is None or (origin := self.origins.get(value.sql)) is None:
            return None
        return _Key(origin, value.type, found is not None)

    def narrowed(self, attributes: Iterable[Attribute]) -> None:
        """Notes that a LIMIT or a sample has taken some of these rows: which ones depends on the rows that were there, so that no condition
        above may leave out rows below."""
        for attribute in attributes:
            self.origins.pop(attribute.column.value.sql, None)

    def query(self, node: exp.Expr, context: Context) -> Query:
        """Any query, with the WITH before it."""
        with_ = node.args.get("with_")
        if with_ is None:
            return self._body(node, context)
        definitions = []
        for item in with_.expressions:
            name = self.fresh(item.alias)
            if with_.args.get("recursive") and isinstance(item.this, exp.Union) and _reads(item.this, item.alias):
                sql, columns = self._recursive(item, name, context)
            else:
                inner = self.query(item.this, context)
                sql, columns = inner.sql, renamed(inner.columns, item.args["alias"])
            definitions.append(f"{v.name(name)} AS ({sql})")
            self.definitions.append(name)
            context = replace(context, defined={**context.defined, item.alias.lower(): (name, columns)})
        body = self._body(node, context)
        recursive = "RECURSIVE " if with_.args.get("recursive") else ""
        return Query(f"WITH {recursive}{', '.join(definitions)} {body.sql}", body.columns)

    def _body(self, node: exp.Expr, context: Context) -> Query:
        if (operators := node.meta.get("operators")) is not None:
            return Pipe(self, context).query(node.args["from_"].this.this, operators)
        if isinstance(node, exp.Select):
            return Select(self, node, context).query()
        if isinstance(node, exp.Values):
            return self._values(node, context)
        if isinstance(node, exp.Subquery):
            if any(node.args.get(key) for key in ("pivots", "sample", "joins")):
                return Select(self, exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)), context).query()
            return Ordering(self, node, context).around(self.query(node.this, context))
        if isinstance(node, exp.Table):  # TABLE name
            return Select(self, exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)), context).query()
        for kind, word in _OPERATIONS.items():
            if isinstance(node, kind):
                return Ordering(self, node, context).around(self._set_operation(node, word, context))
        raise unsupported(f"a query of the kind {type(node).__name__.upper()}")

    def _recursive(self, item: exp.Expr, name: str, context: Context) -> tuple[str, tuple[Column, ...]]:
        """`anchor UNION ALL step`: the anchor decides the types, the step reads the rows that the last one added."""
        union = item.this
        if union.args.get("distinct") or any(union.args.get(key) for key in ("order", "limit", "offset", "by_name")):
            raise unsupported("WITH RECURSIVE of anything but anchor UNION ALL step")
        anchor = self.query(union.this, context)
        columns = tuple(replace(column, nullable=True, limits=None) for column in renamed(anchor.columns, item.args["alias"]))
        level = self.fresh("level")
        seen = {**context.defined, item.alias.lower(): (name, (*columns, Column("", level, "integer", False)))}
        step = self.query(_with_level(union.expression, item.alias), replace(context, defined=seen))
        *given, before = step.columns
        if len(given) != len(columns):
            raise InvalidArgumentError(
                "[NUM_COLUMNS_MISMATCH] both sides of UNION need as many columns", found=len(given), expected=len(columns)
            )
        fitted = [self.used(cast(mine.value, column.type, self.zone)).sql for mine, column in zip(given, columns, strict=True)]
        far = v.failure("RECURSION_LEVEL_LIMIT_EXCEEDED", v.text(f"recursion of more than {MAX_RECURSION} levels"))
        after = f"CASE WHEN {before.value.sql} >= {MAX_RECURSION} THEN {far} ELSE {before.value.sql} + 1 END"
        first = ", ".join(v.name(column.label) for column in anchor.columns)
        return (
            f"SELECT {first}, CAST(0 AS INTEGER) AS {v.name(level)} FROM ({anchor.sql})"
            f" UNION ALL SELECT {', '.join(fitted)}, {after} FROM ({step.sql})"
        ), (*columns, Column("", level, "integer", False))

    def _values(self, node: exp.Values, context: Context) -> Query:
        translator = QueryTranslator(self, QueryScope(outer=context.outer), context)
        rows = [[translator.value(item) for item in _row(row)] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise InvalidArgumentError("rows of VALUES have different numbers of columns", found=sorted({len(row) for row in rows}))
        types = [_inline_type([row[index] for row in rows], index) for index in range(len(rows[0]))]
        cast_rows = [[self.used(cast(item, kind, self.zone)) for item, kind in zip(row, types, strict=True)] for row in rows]
        columns = tuple(
            Column(f"col{index + 1}", self.fresh("col"), kind, any(row[index].nullable for row in cast_rows))
            for index, kind in enumerate(types)
        )
        check_named(node)
        columns = renamed(columns, node.args.get("alias"))
        text = ", ".join("(" + ", ".join(item.sql for item in row) + ")" for row in cast_rows)
        names = ", ".join(v.name(column.label) for column in columns)
        query = Query(f"SELECT * FROM (VALUES {text}) AS {v.name(self.fresh('values'))}({names})", columns)
        return Ordering(self, node, context).around(query)

    # --- set operations

    def _set_operation(self, node: exp.SetOperation, word: str, context: Context) -> Query:
        if any(node.args.get(key) for key in ("side", "kind", "on")):
            raise unsupported(f"{word} with a side")
        left, right = self.query(node.this, context), self.query(node.expression, context)
        by_name, distinct = bool(node.args.get("by_name")), bool(node.args.get("distinct"))
        return self.combined(left, right, word, distinct=distinct, by_name=by_name, missing=bool(node.meta.get("missing")))

    def combined(self, left: Query, right: Query, word: str, *, distinct: bool, by_name: bool = False, missing: bool = False) -> Query:
        """UNION, EXCEPT or INTERSECT of two queries; `missing`: of those by name, a side may lack columns."""
        if by_name:
            left, right = self._by_name(left, right, missing=missing)
        if len(left.columns) != len(right.columns):
            raise InvalidArgumentError(
                f"[NUM_COLUMNS_MISMATCH] both sides of {word} need as many columns", found=len(right.columns), expected=len(left.columns)
            )
        columns, sides = [], ([], [])  # type: ignore[var-annotated]
        for mine, other in zip(left.columns, right.columns, strict=True):
            kind = v.common_type(mine.type, other.type)
            if kind is None:
                types = f"{v.type_text(mine.type)} and {v.type_text(other.type)}"
                raise InvalidArgumentError(f"[INCOMPATIBLE_COLUMN_TYPE] a column of {word} has types without a common type", found=types)
            nullable = mine.nullable if word == "EXCEPT" else mine.nullable or other.nullable
            if word == "INTERSECT":
                nullable = mine.nullable and other.nullable
            columns.append(Column(mine.name, self.fresh(mine.name), kind, nullable))
            for side, column in zip(sides, (mine, other), strict=True):
                value = cast(column.value, kind, self.zone)
                value = value if word == "UNION" and not distinct else normalized(value)
                side.append(f"{value.sql} AS {v.name(columns[-1].label)}")
        texts = [f"SELECT {', '.join(side)} FROM ({query.sql})" for side, query in zip(sides, (left, right), strict=True)]
        return Query(f"({texts[0]}) {word if distinct else f'{word} ALL'} ({texts[1]})", tuple(columns))

    def _by_name(self, left: Query, right: Query, *, missing: bool) -> tuple[Query, Query]:
        """Both sides with the columns of the left in their order, then those that only the right has."""
        mine = {column.name.lower(): column for column in left.columns}
        others = {column.name.lower(): column for column in right.columns}
        for query, known in ((left, mine), (right, others)):
            if len(known) != len(query.columns):
                raise InvalidArgumentError("two columns of a side of UNION BY NAME have one name")
        if not missing and (lacking := [name for name in mine if name not in others]):
            raise InvalidArgumentError(f"no column {lacking[0]} on the right side of UNION BY NAME", expected=", ".join(others))
        if not missing and len(mine) != len(others):
            raise InvalidArgumentError(
                "[NUM_COLUMNS_MISMATCH] both sides of UNION need as many columns", found=len(others), expected=len(mine)
            )
        names = [*mine, *(name for name in others if name not in mine)]
        sides = []
        for query, known, other in ((left, mine, others), (right, others, mine)):
            columns, listed = [], []
            for name in names:
                if name in known:
                    columns.append(known[name])
                    listed.append(v.name(known[name].label))
                else:
                    columns.append(Column(other[name].name, self.fresh(name), "void"))
                    listed.append(f"CAST(NULL AS INTEGER) AS {v.name(columns[-1].label)}")
            sides.append(Query(f"SELECT {', '.join(listed)} FROM ({query.sql})", tuple(columns)))
        return sides[0], sides[1]


def renamed(columns: Sequence[Column], alias: exp.Expr | None) -> tuple[Column, ...]:
    """Columns under the names of `AS alias(names)`, where it lists any."""
    names: Sequence[exp.Expr] = alias.args.get("columns") or () if alias is not None else ()
    if not names:
        return tuple(columns)
    if len(names) != len(columns):
        raise InvalidArgumentError("an alias needs one name for each column", found=len(names), expected=len(columns))
    return tuple(replace(column, name=name.name) for column, name in zip(columns, names, strict=True))


def _inline_type(values: Sequence[Value], index: int) -> DataType:
    """The type of a column of VALUES: text does not become anything else there."""
    result: DataType = "void"
    for value in values:
        common = v.common_without_text(result, value.type)
        if common is None:
            raise InvalidArgumentError(
                f"[INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE] column {index + 1} of VALUES has types that do not go together",
                found=f"{v.type_text(result)} and {v.type_text(value.type)}",
            )
        result = common
    return result


def _reads(node: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name.lower() and not table.args.get("db") for table in node.find_all(exp.Table))


def _with_level(step: exp.Expr, name: str) -> exp.Expr:
    """The step of a recursion with the level of the row that it reads as a last column."""
    if not isinstance(step, exp.Select) or any(step.args.get(key) for key in ("group", "distinct", "having", "order", "limit", "with_")):
        raise unsupported("a step of WITH RECURSIVE that is no plain SELECT")
    tables = [table for table in step.find_all(exp.Table) if table.name.lower() == name.lower() and not table.args.get("db")]
    if len(tables) != 1:
        raise unsupported("a step of WITH RECURSIVE that reads itself more than once")
    step = step.copy()
    step.meta["level"] = True
    return step


def _row(node: exp.Expr) -> Sequence[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node.this if isinstance(node, exp.Paren) else node]


__all__ = ["Context", "Queries", "Query", "TranslatedQuery", "boolean", "renamed", "translate_query"]
