"""Translates queries to DuckDB's SQL: set operations, VALUES and WITH here, SELECT in `selects.py`.

Queries are translated clause by clause, and their expressions as in `spark_sql.duckdb`. A clause or argument
that is not known raises UnsupportedFeatureError with its name. Joins, subqueries, windows and grouping are
DuckDB's own, as they mean the same there; names, scopes and types are resolved here by Spark's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import DataType, Field, Schema
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.query.ordering import Ordering
from deltaic.spark_sql.query.pipes import Pipe
from deltaic.spark_sql.query.scopes import Attribute, Column, QueryScope, Resolve, refuse_collations
from deltaic.spark_sql.query.selects import Select
from deltaic.spark_sql.query.sources import check_named
from deltaic.spark_sql.query.subqueries import QueryTranslator, boolean
from deltaic.spark_sql.values import Value, unsupported

_OPERATIONS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}
TableColumn = tuple[str, str]
"""The names of a table of a query and of one of its columns."""
MAX_RECURSION = 100
"""Number of the step of a recursive WITH without MAX RECURSION LEVEL that may not add rows: it raises
RECURSION_LEVEL_LIMIT_EXCEEDED, as in Spark."""


@dataclass(frozen=True)
class TranslatedQuery:
    """A query in DuckDB's SQL. `sql`: a SELECT; `schema`: its columns. If names repeat, DuckDB's columns are
    named by `labels` instead.

    `constants`: SQL to compute before the query, see `Value.constants`; it includes the constants of
    subqueries. `definitions`: all names that WITH defines in the query. `keys`: pairs of columns (table,
    name). Of the second column's table, the query needs only the rows whose value is in the first column."""

    sql: str
    schema: Schema
    constants: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    keys: tuple[tuple[TableColumn, TableColumn], ...] = ()
    learned: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Table -> filters that DuckDB pushed into it when it first planned the query: predicates of `_core` as
    JSON. They depend on the query's text alone, so they are valid for any version of the table."""

    def reads_once(self, table: str) -> bool:
        """True if the query's text reads the table in one place only. A definition of WITH is one place, even
        if the query uses it several times (`shared`)."""
        return self.sql.count(v.name(table)) == 1

    @property
    def shared(self) -> tuple[str, ...]:
        """Names that WITH defines and the query uses several times. DuckDB computes such a definition once,
        or for each use."""
        return tuple(name for name in self.definitions if self.sql.count(v.name(name)) > 2)


@dataclass(frozen=True)
class Query:
    """A translated query within a statement: a SELECT of DuckDB whose columns have the labels of
    `columns`."""

    sql: str
    columns: tuple[Column, ...]

    @property
    def attributes(self) -> list[Attribute]:
        return [Attribute(column, None) for column in self.columns]


@dataclass(frozen=True)
class Context:
    """What a query may use of the queries around it. `defined`: the definitions of WITH, by names in lower
    case; `outer`: resolves columns of outer queries; `aggregate`: translates aggregates of the outer query's
    groups, in the WHERE of a subquery of HAVING."""

    defined: Mapping[str, tuple[str, tuple[Column, ...]]] = field(default_factory=dict)
    outer: Resolve | None = None
    aggregate: Callable[[exp.Expr], Value | None] | None = None


def translate_query(
    tree: exp.Expr, tables: Mapping[str, Schema], *, time_zone: str = "UTC"
) -> TranslatedQuery:
    """Translates a query. `tree`: from `parsing.parse_statement`; `tables`: name -> columns of each relation
    that the query may read.

    Raises UnsupportedFeatureError for a clause, an aggregate or a form that is not supported, and
    InvalidArgumentError for an unknown or ambiguous name, for a column that is neither grouped nor
    aggregated, and for types or numbers of columns that do not fit.
    """
    try:
        queries = Queries(tables, Zone(time_zone))
        query = queries.query(tree, Context())
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply") from None
    for column in query.columns:
        if column.type == v.CALENDAR:
            raise unsupported(f"a column of type {column.type}")
        if not isinstance(column.type, str) and v.holds(column.type, v.is_year_month):
            message = (
                "[UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION] Arrow has no type for months within a nested"
                " value"
            )
            raise UnsupportedFeatureError(message, found=v.type_text(column.type))
    schema = Schema.of_query([Field(column.name, column.type, column.nullable) for column in query.columns])
    # Only the outermost SELECT has the users' names: within it, columns have labels, which are unique in the
    # statement.
    names = zip(query.columns, schema.distinct().names, strict=True)
    listed = ", ".join(f"{v.name(column.label)} AS {v.name(name)}" for column, name in names)
    sql = f"SELECT {listed} FROM ({query.sql})"
    return TranslatedQuery(
        sql, schema, tuple(queries.constants), tuple(queries.definitions), tuple(queries.keys)
    )


@dataclass(frozen=True)
class _Key:
    """A table's column in a condition. `is_own`: the column belongs to this query, not to an outer one."""

    origin: TableColumn
    type: DataType
    is_own: bool


class Queries:
    """Translates a query and its subqueries, and generates names that are unique in the statement."""

    def __init__(self, tables: Mapping[str, Schema], zone: Zone, *, first: int = 0) -> None:
        self.tables = tables
        self.zone = zone
        self.constants: dict[str, None] = {}
        self.definitions: list[str] = []
        self.origins: dict[str, TableColumn] = {}
        """SQL of a table's column -> its table and name. A column is removed when only some of its table's
        rows are read: see `narrowed`."""
        self.outputs: dict[str, TableColumn] = {}
        """SQL of a query's column -> table and name of a table's column that holds all its values."""
        self.keys: dict[tuple[TableColumn, TableColumn], None] = {}
        """See `TranslatedQuery`."""
        self._count = first

    def fresh(self, what: str) -> str:
        self._count += 1
        return f"{what}_{self._count}"

    def column(self, name: str, value: Value) -> Column:
        """Returns a column with a new label and this value's type."""
        return Column(name, self.fresh(name), value.type, value.nullable, value.limits, value.collation)

    def used(self, value: Value) -> Value:
        """Returns `value`, and adds its constants to those of the query. Call it for each value that becomes
        part of the query."""
        self.constants.update(dict.fromkeys(value.constants))
        return value

    def note_keys(self, condition: exp.Expr, scope: QueryScope, *, filters: bool = True) -> None:
        """Adds to `keys` the pairs of columns that a condition of WHERE, or of an inner join
        (`filters=False`), makes equal.

        `a.k = b.k`: of each table, only the rows whose key is in the other table matter. `a.k = outer.k`,
        with a column of an outer query: only the rows of `a` whose key is in the outer query's table matter.
        WHERE `a.k IN (SELECT b.k …)`: only the rows of `a` whose key is in `b` matter."""
        for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            tree = part.unnest()
            if isinstance(tree, exp.And):
                self.note_keys(tree, scope, filters=filters)
            elif isinstance(tree, exp.EQ):
                one, other = self._key(tree.this, scope), self._key(tree.expression, scope)
                if one is not None and other is not None and one.type == other.type:
                    self.keys |= {
                        (few.origin, many.origin): None
                        for few, many in ((one, other), (other, one))
                        if many.is_own
                    }
            elif filters and isinstance(tree, exp.In) and len(columns := tree.meta.get("columns", ())) == 1:
                many, few_origin = self._key(tree.this, scope), self.outputs.get(columns[0].value.sql)
                if (
                    many is not None
                    and few_origin is not None
                    and many.is_own
                    and many.type == columns[0].type
                ):
                    self.keys[few_origin, many.origin] = None

    def _key(self, tree: exp.Expr, scope: QueryScope) -> _Key | None:
        """Returns the table's column that an expression stands for, or None if it is not known to be one."""
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
        """Removes columns from `origins`, as a LIMIT or a sample has taken some of their rows. Which rows it
        takes depends on all rows, so conditions outside must not filter the rows inside."""
        for attribute in attributes:
            self.origins.pop(attribute.column.value.sql, None)

    def query(self, node: exp.Expr, context: Context) -> Query:
        """Translates a query of any kind, with its WITH."""
        with_ = node.args.get("with_")
        if with_ is None:
            return self._body(node, context)
        definitions = []
        names = [item.alias for item in with_.expressions]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise InvalidArgumentError(
                "[DUPLICATED_CTE_NAMES] two queries of WITH have one name", found=repeated[0]
            )
        for item in with_.expressions:
            name = self.fresh(item.alias)
            if (
                with_.args.get("recursive")
                and isinstance(item.this, exp.Union)
                and _reads(item.this, item.alias)
            ):
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
                return Select(
                    self, exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)), context
                ).query()
            return Ordering(self, node, context).around(self.query(node.this, context))
        if isinstance(node, exp.Table):  # TABLE name
            return Select(
                self, exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)), context
            ).query()
        for kind, word in _OPERATIONS.items():
            if isinstance(node, kind):
                return Ordering(self, node, context).around(self._set_operation(node, word, context))
        raise unsupported(f"a query of the kind {type(node).__name__.upper()}")

    def _recursive(self, item: exp.Expr, name: str, context: Context) -> tuple[str, tuple[Column, ...]]:
        """Translates a definition of WITH RECURSIVE, `anchor UNION ALL step`. The anchor gives the types;
        each step reads the rows that the step before added."""
        union = item.this
        if union.args.get("distinct") or any(
            union.args.get(key) for key in ("order", "limit", "offset", "by_name")
        ):
            raise unsupported("WITH RECURSIVE of anything but anchor UNION ALL step")
        anchor = self.query(union.this, context)
        columns = tuple(
            replace(column, nullable=True, limits=None)
            for column in renamed(anchor.columns, item.args["alias"])
        )
        level = self.fresh("level")
        seen = {
            **context.defined,
            item.alias.lower(): (name, (*columns, Column("", level, "integer", False))),
        }
        step = self.query(_with_level(union.expression, item.alias), replace(context, defined=seen))
        *step_columns, before = step.columns
        if len(step_columns) != len(columns):
            raise InvalidArgumentError(
                "[NUM_COLUMNS_MISMATCH] both sides of UNION need as many columns",
                found=len(step_columns),
                expected=len(columns),
            )
        fitted = [
            self.used(cast(step_column.value, column.type, self.zone)).sql
            for step_column, column in zip(step_columns, columns, strict=True)
        ]
        most = item.args["alias"].meta.get("levels", MAX_RECURSION)
        far = v.failure("RECURSION_LEVEL_LIMIT_EXCEEDED", v.text(f"recursion of more than {most} levels"))
        after = f"CASE WHEN {before.value.sql} + 1 >= {most} THEN {far} ELSE {before.value.sql} + 1 END"
        first = ", ".join(v.name(column.label) for column in anchor.columns)
        return (
            (
                f"SELECT {first}, CAST(0 AS INTEGER) AS {v.name(level)} FROM ({anchor.sql})"
                f" UNION ALL SELECT {', '.join(fitted)}, {after} FROM ({step.sql})"
            ),
            (*columns, Column("", level, "integer", False)),
        )

    def _values(self, node: exp.Values, context: Context) -> Query:
        translator = QueryTranslator(self, QueryScope(outer=context.outer), context)
        rows = [[translator.value(item) for item in _row(row)] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise InvalidArgumentError(
                "rows of VALUES have different numbers of columns", found=sorted({len(row) for row in rows})
            )
        types = [_inline_type([row[index] for row in rows], index) for index in range(len(rows[0]))]
        cast_rows = [
            [self.used(cast(item, kind, self.zone)) for item, kind in zip(row, types, strict=True)]
            for row in rows
        ]
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
        return self.combined(
            left, right, word, distinct=distinct, by_name=by_name, missing=bool(node.meta.get("missing"))
        )

    def combined(
        self,
        left: Query,
        right: Query,
        word: str,
        *,
        distinct: bool,
        by_name: bool = False,
        missing: bool = False,
    ) -> Query:
        """Returns UNION, EXCEPT or INTERSECT of two queries. `by_name`: columns are matched by name;
        `missing`: then a side may lack columns, which are null."""
        if by_name:
            left, right = self._by_name(left, right, missing=missing)
        if len(left.columns) != len(right.columns):
            raise InvalidArgumentError(
                f"[NUM_COLUMNS_MISMATCH] both sides of {word} need as many columns",
                found=len(right.columns),
                expected=len(left.columns),
            )
        columns, sides = [], ([], [])  # type: ignore[var-annotated]
        if distinct or word != "UNION":
            refuse_collations((*left.columns, *right.columns), word)
        for left_column, right_column in zip(left.columns, right.columns, strict=True):
            kind = v.common_type(left_column.type, right_column.type)
            if kind is None:
                types = f"{v.type_text(left_column.type)} and {v.type_text(right_column.type)}"
                raise InvalidArgumentError(
                    f"[INCOMPATIBLE_COLUMN_TYPE] a column of {word} has types without a common type",
                    found=types,
                )
            nullable = (
                left_column.nullable if word == "EXCEPT" else left_column.nullable or right_column.nullable
            )
            if word == "INTERSECT":
                nullable = left_column.nullable and right_column.nullable
            collation = left_column.collation or right_column.collation
            columns.append(
                Column(left_column.name, self.fresh(left_column.name), kind, nullable, collation=collation)
            )
            for side, column in zip(sides, (left_column, right_column), strict=True):
                value = cast(column.value, kind, self.zone)
                value = value if word == "UNION" and not distinct else normalized(value)
                side.append(f"{value.sql} AS {v.name(columns[-1].label)}")
        texts = [
            f"SELECT {', '.join(side)} FROM ({query.sql})"
            for side, query in zip(sides, (left, right), strict=True)
        ]
        return Query(f"({texts[0]}) {word if distinct else f'{word} ALL'} ({texts[1]})", tuple(columns))

    def _by_name(self, left: Query, right: Query, *, missing: bool) -> tuple[Query, Query]:
        """Returns both sides with the same columns: those of the left side in order, then those that only the
        right side has."""
        left_columns = {column.name.lower(): column for column in left.columns}
        right_columns = {column.name.lower(): column for column in right.columns}
        for query, known in ((left, left_columns), (right, right_columns)):
            if len(known) != len(query.columns):
                raise InvalidArgumentError("two columns of a side of UNION BY NAME have one name")
        if not missing and (lacking := [name for name in left_columns if name not in right_columns]):
            raise InvalidArgumentError(
                f"no column {lacking[0]} on the right side of UNION BY NAME",
                expected=", ".join(right_columns),
            )
        if not missing and len(left_columns) != len(right_columns):
            raise InvalidArgumentError(
                "[NUM_COLUMNS_MISMATCH] both sides of UNION need as many columns",
                found=len(right_columns),
                expected=len(left_columns),
            )
        names = [*left_columns, *(name for name in right_columns if name not in left_columns)]
        sides = []
        for query, known, other in (
            (left, left_columns, right_columns),
            (right, right_columns, left_columns),
        ):
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
    """Returns the columns with the names of `AS alias(names)`, or unchanged if the alias lists no names."""
    names: Sequence[exp.Expr] = alias.args.get("columns") or () if alias is not None else ()
    if not names:
        return tuple(columns)
    if len(names) != len(columns):
        raise InvalidArgumentError(
            "an alias needs one name for each column", found=len(names), expected=len(columns)
        )
    return tuple(replace(column, name=name.name) for column, name in zip(columns, names, strict=True))


def _inline_type(values: Sequence[Value], index: int) -> DataType:
    """The type of a column of VALUES: text does not become anything else there."""
    result: DataType = "void"
    for value in values:
        common = v.common_without_text(result, value.type)
        if common is None:
            raise InvalidArgumentError(
                f"[INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE] column {index + 1} of VALUES has"
                " types that do not go together",
                found=f"{v.type_text(result)} and {v.type_text(value.type)}",
            )
        result = common
    return result


def _reads(node: exp.Expr, name: str) -> bool:
    return any(
        table.name.lower() == name.lower() and not table.args.get("db") for table in node.find_all(exp.Table)
    )


def _with_level(step: exp.Expr, name: str) -> exp.Expr:
    """Returns the step of a recursion with a last column: the level of the row that it reads."""
    if not isinstance(step, exp.Select) or any(
        step.args.get(key) for key in ("group", "distinct", "having", "order", "limit", "with_")
    ):
        raise unsupported("a step of WITH RECURSIVE that is no plain SELECT")
    tables = [
        table
        for table in step.find_all(exp.Table)
        if table.name.lower() == name.lower() and not table.args.get("db")
    ]
    if len(tables) != 1:
        raise unsupported("a step of WITH RECURSIVE that reads itself more than once")
    step = step.copy()
    step.meta["level"] = True
    return step


def _row(node: exp.Expr) -> Sequence[exp.Expr]:
    return (
        node.expressions
        if isinstance(node, exp.Tuple)
        else [node.this if isinstance(node, exp.Paren) else node]
    )


__all__ = ["Context", "Queries", "Query", "TranslatedQuery", "boolean", "renamed", "translate_query"]
