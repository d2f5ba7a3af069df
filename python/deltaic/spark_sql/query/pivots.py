"""Translates PIVOT and UNPIVOT after a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import cast
from deltaic.spark_sql.column_names import column_name
from deltaic.spark_sql.functions.aggregates import OF_ONE_ROW
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.query.aggregate_calls import AggregateCall, aggregate_call, is_aggregate
from deltaic.spark_sql.query.scopes import Attribute, Column, QueryScope
from deltaic.spark_sql.query.subqueries import QueryTranslator
from deltaic.spark_sql.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.queries import Context, Queries
    from deltaic.spark_sql.query.sources import Rows


def pivoted(
    queries: Queries, context: Context, rows: Rows, attributes: list[Attribute], node: exp.Pivot
) -> list[Attribute]:
    """Applies PIVOT or UNPIVOT to `rows`; returns the columns of the result."""
    if (
        any(node.args.get(key) for key in ("group", "using", "into", "with_"))
        or len(node.args.get("fields") or ()) != 1
    ):
        raise unsupported("PIVOT of this kind")
    translator = QueryTranslator(queries, QueryScope(attributes, context.outer), context)
    shown = [each for each in attributes if not each.qualified]
    found = (_unpivot if node.args.get("unpivot") else _pivot)(translator, rows, shown, node)
    alias = node.args.get("alias")
    table = alias.name if alias is not None and alias.this is not None else None
    if alias is not None and alias.args.get("columns"):
        from deltaic.spark_sql.query.queries import renamed

        columns = renamed([each.column for each in found], alias)
        return [Attribute(column, table) for column in columns]
    return [Attribute(each.column, table or each.table) for each in found]


def _pivot(
    translator: QueryTranslator, rows: Rows, attributes: Sequence[Attribute], node: exp.Pivot
) -> list[Attribute]:
    """Applies PIVOT: groups by all columns that it does not name, and adds a column for each pair of a value
    and an aggregate.

    If all aggregates are numbers or booleans, Spark groups by the value too and then spreads the groups over
    columns: a value without rows gives null, even for count. Otherwise Spark aggregates over the rows of each
    value alone: count gives 0.
    """
    queries, trees = (
        translator.queries,
        [each.this if isinstance(each, exp.Alias) else each for each in node.expressions],
    )
    (field,) = node.args["fields"]
    keys = field.this.expressions if isinstance(field.this, exp.Tuple) else [field.this]
    used = {label for tree in [*trees, *keys] for label in _labels(translator, tree)}
    groups = [each for each in attributes if each.column.label not in used]
    values = [translator.value(key) for key in keys]
    pivot_values = [_value_of_pivot(translator, item, values) for item in field.expressions]
    # The type of an aggregate is the same for all values of PIVOT.
    types = [_OverRows(translator, pivot_values[0][1]).value(tree).type for tree in trees]
    spread = all(
        kind in (*v.INTEGRAL, *v.FRACTIONAL, "boolean") or v.decimal_parts(kind) is not None for kind in types
    )
    columns, listed = [], []
    for shown, holds in pivot_values:
        for tree, call in zip(trees, node.expressions, strict=True):
            result = _OverRows(translator, holds, spread=spread).value(tree)
            if spread:
                there = f"count(CASE WHEN {holds.sql} THEN 1 END) > 0"
                result = result.like(f"CASE WHEN {there} THEN {result.sql} END", result.type, nullable=True)
            name = (
                shown
                if len(trees) == 1
                else f"{shown}_{call.alias if isinstance(call, exp.Alias) else column_name(tree)}"
            )
            columns.append(queries.column(name, result))
            listed.append(f"{result.sql} AS {v.name(columns[-1].label)}")
    keyed = [(queries.column(each.name, each.column.value), normalized(each.column.value)) for each in groups]
    texts = [f"{value.sql} AS {v.name(column.label)}" for column, value in keyed]
    grouped = f" GROUP BY {', '.join(str(index + 1) for index in range(len(texts)))}" if texts else ""
    rows.replace(f"SELECT {', '.join([*texts, *listed])}{rows.clause}{grouped}")
    return [
        *(Attribute(column, each.table) for (column, _), each in zip(keyed, groups, strict=True)),
        *(Attribute(column, None) for column in columns),
    ]


def _value_of_pivot(
    translator: QueryTranslator, item: exp.Expr, values: Sequence[Value]
) -> tuple[str, Value]:
    """Returns the name of a value of PIVOT, and the condition that a row has this value."""
    name, tree = (
        (item.args["alias"].name, item.this)
        if isinstance(item, (exp.PivotAlias, exp.Alias))
        else (None, item)
    )
    parts = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
    if len(parts) != len(values):
        raise InvalidArgumentError(
            "a value of PIVOT has as many parts as FOR has columns", found=len(parts), expected=len(values)
        )
    constants = [translator.value(each) for each in parts]
    shown = tree.sql(dialect="databricks")
    if not all(each.is_constant or each.foldable for each in constants):
        raise InvalidArgumentError("[NON_LITERAL_PIVOT_VALUES] a value of PIVOT is a literal", found=shown)
    if name is None and not all(each.is_constant for each in constants):
        raise unsupported(f"a value of PIVOT that is computed and has no alias: {shown[:60]}")
    zone = translator.zone
    # the value is cast to the column's type, whatever it loses: 0.004 is 0.00 for a decimal(9,2)
    same = [cast(each, value.type, zone) for value, each in zip(values, constants, strict=True)]
    equal = [operators.compare("<=>", value, each, zone) for value, each in zip(values, same, strict=True)]
    return name or _shown(constants), operators.connect("AND", equal)


class _OverRows(QueryTranslator):
    """Translates expressions of aggregates over the rows that fulfil a condition. `spread`: these rows are a
    group of their own, see `_pivot`."""

    def __init__(self, translator: QueryTranslator, condition: Value, *, spread: bool = True) -> None:
        super().__init__(translator.queries, translator.scope, translator.context)
        self._rows = translator
        self._condition = condition
        self._spread = spread

    def value(self, node: exp.Expr) -> Value:
        if is_aggregate(node):
            call = AggregateCall.of(node)
            # rows that do not fulfil the condition give null
            if not self._spread and call.name in OF_ONE_ROW:
                call = replace(call, ignore_nulls=True)
            return aggregate_call(self._rows, call, among=self._condition)
        if isinstance(node, exp.Column):
            raise InvalidArgumentError(
                "a column of PIVOT stands in an aggregate function", found=node.sql(dialect="databricks")
            )
        return super().value(node)


def _labels(translator: QueryTranslator, tree: exp.Expr) -> list[str]:
    names = [
        [part.name for part in each.parts]
        for each in tree.find_all(exp.Column)
        if not isinstance(each.this, exp.Star)
    ]
    return [
        located[0].column.label for parts in names if (located := translator.scope.locate(parts)) is not None
    ]


def _shown(constants: Sequence[Value]) -> str:
    """Returns the name of a value without an alias: the value as text, or several values in braces, `{1,
    x}`."""
    texts = []
    for each in constants:
        constant = each.constant
        texts.append(
            "null"
            if constant is None
            else str(constant).lower()
            if isinstance(constant, bool)
            else str(constant)
        )
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def _unpivot(
    translator: QueryTranslator, rows: Rows, attributes: Sequence[Attribute], node: exp.Pivot
) -> list[Attribute]:
    """Applies UNPIVOT: replaces each row by one for each listed column, with the column's name and its
    value."""
    queries = translator.queries
    (field,) = node.args["fields"]
    targets = (
        node.expressions[0].expressions if isinstance(node.expressions[0], exp.Tuple) else node.expressions
    )
    names = [each.name for each in targets]
    groups = [_unpivoted(translator, item, len(names)) for item in field.expressions]
    types = [
        v.common_of([columns[index].value for _, columns in groups], "UNPIVOT") for index in range(len(names))
    ]
    elements = []
    for shown, columns in groups:
        cells = [
            queries.used(cast(column.value, kind, translator.zone)).sql
            for column, kind in zip(columns, types, strict=True)
        ]
        packed = ", ".join(f"value_{index} := {cell}" for index, cell in enumerate(cells))
        elements.append(f"struct_pack(name := {v.text(shown)}, {packed})")
    element = queries.fresh("element")
    name = queries.column(field.this.name, Value("", "string", False))
    nullable = bool(node.args.get("include_nulls")) or len(names) > 1
    given_columns = [
        queries.column(each, Value("", kind, nullable)) for each, kind in zip(names, types, strict=True)
    ]
    rows.add([(element, f"unnest([{', '.join(elements)}])")])
    extracted = [(name.label, f"struct_extract({v.name(element)}, 'name')")]
    extracted += [
        (column.label, f"struct_extract({v.name(element)}, 'value_{index}')")
        for index, column in enumerate(given_columns)
    ]
    rows.add(extracted)
    if not node.args.get("include_nulls"):
        rows.where("(" + " OR ".join(f"{column.value.sql} IS NOT NULL" for column in given_columns) + ")")
        rows.replace(f"SELECT *{rows.clause}")
    used = {column.label for _, columns in groups for column in columns}
    kept = [each for each in attributes if each.column.label not in used]
    return [*kept, Attribute(name, None), *(Attribute(column, None) for column in given_columns)]


def _unpivoted(translator: QueryTranslator, item: exp.Expr, count: int) -> tuple[str, list[Column]]:
    """Returns the name and the `count` columns of an item of UNPIVOT's list, such as `a` or `(a, b) AS x`."""
    alias, tree = (
        (item.args["alias"].name, item.this)
        if isinstance(item, (exp.PivotAlias, exp.Alias))
        else (None, item)
    )
    trees = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
    if len(trees) != count:
        raise InvalidArgumentError(
            "UNPIVOT takes as many columns as it gives", found=len(trees), expected=count
        )
    located = [
        translator.scope.locate([part.name for part in each.parts]) if isinstance(each, exp.Column) else None
        for each in trees
    ]
    if None in located:
        raise InvalidArgumentError(
            "[UNRESOLVED_COLUMN] no such column to unpivot", found=tree.sql(dialect="databricks")
        )
    columns = [each[0].column for each in located if each is not None]
    return alias or "_".join(column.name for column in columns), columns
