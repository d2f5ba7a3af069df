"""Plans over few rows, computed by Arrow without a query of DuckDB: a query costs milliseconds, however few
its rows are.

Commands compute over few rows: the distinct keys, the rows that match by equal keys, the number of rows of
each clause, and copies of columns. `computation` accepts plans of these operations and of arithmetic on whole
numbers and doubles; DuckDB runs any other plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from deltaic import _core
from deltaic.engine.duckdb.registering import rows_of
from deltaic.plan.expression import COUNT, Expression
from deltaic.plan.nodes import Aggregate, Data, Filter, Join, Plan, Project, Scan, Union
from deltaic.planning.opening import scan_schema
from deltaic.protocol.schema import DataType, Field, Schema, decimal_parts
from deltaic.spark_sql.parsing import operands

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

FEW_FILES = 100
"""Maximum files of a scan whose rows are computed here."""
FEW_BYTES = 1 << 20
"""Maximum bytes of these files."""
FEW_ROWS = 10_000
"""Maximum rows of these files, deleted ones included."""
MOST_PAIRS = 100_000
"""Maximum rows of a join."""
_EQUAL = frozenset(
    ("boolean", "byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz")
)
"""Types for which Arrow and Spark agree on which values are equal."""
_WHOLE = {"integer": 31, "long": 63}
"""Types of whole numbers that arithmetic is computed on here, with the number of their bits without the
sign."""
_ARITHMETIC: dict[type, str] = {
    exp.Add: "add_checked",
    exp.Sub: "subtract_checked",
    exp.Mul: "multiply_checked",
}

Tables: TypeAlias = "Mapping[str, pa.Table]"
"""Rows by the alias of their columns; all tables have the same number of rows."""
Read: TypeAlias = "Callable[[Scan], pa.Table]"
_Value: TypeAlias = "tuple[DataType, Callable[[Tables], Any]]"
"""A type, and a function that returns the values of the rows: an array, or a scalar that is the value of
every row."""


class TooManyRowsError(Exception):
    """A join has more than MOST_PAIRS rows, so DuckDB must compute it."""


@dataclass(frozen=True)
class Computation:
    """Steps that compute the rows of a plan. `scope`: their columns by alias. `reads_files`: whether files
    are read, by the function that is passed as `tables`. If `rows` raises TooManyRowsError or
    pyarrow.ArrowInvalid (a value is out of its type's range), the caller runs the plan in DuckDB."""

    scope: Mapping[str, Schema]
    tables: Callable[[Read], Tables]
    reads_files: bool

    @property
    def schema(self) -> Schema:
        (schema,) = self.scope.values()
        return schema

    def rows(self, read: Read) -> pa.Table:
        (table,) = self.tables(read).values()
        return table


def computation(plan: Plan) -> Computation | None:
    """Steps that compute the rows of a plan over few rows; None if DuckDB is to compute them."""
    if isinstance(plan, Data):
        held = getattr(plan.handle, "held", None)
        return (
            None
            if held is None
            else Computation({plan.alias: plan.schema}, lambda read: {plan.alias: held.table}, False)
        )
    if isinstance(plan, Scan):
        return _scanned(plan)
    if isinstance(plan, Join):
        return _joined(plan)
    if isinstance(plan, Union) or (below := computation(plan.input)) is None:
        return None
    if isinstance(plan, Filter):
        return _filtered(below, plan.condition)
    return _projected(below, plan) if isinstance(plan, Project) else _counted(below, plan)


def _scanned(scan: Scan) -> Computation | None:
    """Returns the computation of a scan of small files with few rows; None if a condition must still be
    evaluated."""
    if scan.where or scan.later is not None or scan.files.num_rows > FEW_FILES:
        return None
    if sum(size or 0 for size in scan.files["size"].to_pylist()) > FEW_BYTES:
        return None
    if (rows := rows_of(scan.files)) is None or rows > FEW_ROWS:
        return None
    return Computation({scan.alias: scan_schema(scan)}, lambda read: {scan.alias: read(scan)}, True)


def _filtered(below: Computation, condition: Expression) -> Computation | None:
    tree = condition.tree
    if tree is None:
        return None
    masks = [
        _value(part, condition, below.scope)
        for part in (operands(tree) if isinstance(tree, exp.And) else [tree])
    ]
    tests = [found[1] for found in masks if found is not None and found[0] == "boolean"]
    if len(tests) < len(masks):
        return None

    def tables(read: Read) -> Tables:
        import pyarrow.compute as pc

        found = below.tables(read)
        for test in tests:
            mask = test(found)
            if not pc.all(mask, skip_nulls=False).as_py():
                found = {alias: table.filter(mask) for alias, table in found.items()}
        return found

    return Computation(below.scope, tables, below.reads_files)


def _projected(below: Computation, plan: Project) -> Computation | None:
    values = []
    for name, expression in plan.columns:
        if (value := _expression(expression, below.scope)) is None:
            return None
        values.append((name, *value))
    schema = Schema([Field(name, data_type) for name, data_type, _ in values])

    def tables(read: Read) -> Tables:
        found = below.tables(read)
        count = next(iter(found.values())).num_rows
        columns = [value(found) for _, _, value in values]
        arrays = [pa.repeat(column, count) if isinstance(column, pa.Scalar) else column for column in columns]
        return {plan.alias: pa.Table.from_arrays(arrays, names=schema.names)}

    return Computation({plan.alias: schema}, tables, below.reads_files)


def _counted(below: Computation, plan: Aggregate) -> Computation | None:
    """Computes `count(*)` of all rows, or of the rows for each value of one column."""
    if len(plan.columns) != 1 or plan.columns[0][1] != COUNT or len(plan.keys) > 1:
        return None
    counts, fields = plan.columns[0][0], [Field(plan.columns[0][0], "long")]
    if not plan.keys:

        def counted(read: Read) -> Tables:
            count = next(iter(below.tables(read).values())).num_rows
            return {plan.alias: pa.table({counts: pa.array([count], pa.int64())})}

        return Computation({plan.alias: Schema(fields)}, counted, below.reads_files)
    name, key = plan.keys[0]
    if (value := _column_of(key, below.scope)) is None or not (value[0] in _EQUAL or decimal_parts(value[0])):
        return None

    def grouped(read: Read) -> Tables:
        import pyarrow.compute as pc

        found = pc.value_counts(value[1](below.tables(read)))
        return {plan.alias: pa.table({name: found.field(0), counts: found.field(1)})}

    return Computation({plan.alias: Schema([Field(name, value[0]), *fields])}, grouped, below.reads_files)


def _joined(plan: Join) -> Computation | None:
    """Computes a join by equal keys: an inner join, or one that keeps the rows of the right side."""
    if plan.kind not in ("inner", "right") or plan.condition.tree is None:
        return None
    left, right = computation(plan.left), computation(plan.right)
    if (
        left is None
        or right is None
        or len(left.scope) > 1
        or len(right.scope) > 1
        or left.scope.keys() == right.scope.keys()
    ):
        return None
    (of_left,), (of_right,) = left.scope, right.scope
    scope = {**left.scope, **right.scope}
    keys = []
    for conjunct in plan.condition.conjuncts:
        sides = _equality(conjunct, scope)
        if sides is None or {alias for alias, _ in sides} != {of_left, of_right}:
            return None
        fields = dict(sides)
        if not fields[of_left].type == fields[of_right].type in _EQUAL:
            return None
        keys.append((fields[of_left].name, fields[of_right].name))

    def tables(read: Read) -> Tables:
        one, other = left.rows(read), right.rows(read)
        joined = _core.join(one, other, keys, most=MOST_PAIRS, keep_right=plan.kind == "right")
        if joined is None:
            raise TooManyRowsError
        width = one.num_columns
        return {
            of_left: joined.select(range(width)),
            of_right: joined.select(range(width, joined.num_columns)),
        }

    return Computation(scope, tables, left.reads_files or right.reads_files)


def _equality(
    condition: Expression, scope: Mapping[str, Schema]
) -> tuple[tuple[str, Field], tuple[str, Field]] | None:
    """The two columns that a condition compares by `=`, with their aliases."""
    tree = _bare(condition.tree)
    if not isinstance(tree, exp.EQ):
        return None
    one, other = (_place(side, condition, scope) for side in (tree.this, tree.expression))
    return None if one is None or other is None else (one, other)


# --- values


def _expression(expression: Expression, scope: Mapping[str, Schema]) -> _Value | None:
    """Translates an expression of one of the forms below; None if its computed type would differ from its
    resolved type."""
    if expression.path is not None:
        return _column_of(expression, scope)
    value = None if expression.tree is None else _value(expression.tree, expression, scope)
    return value if value is not None and value[0] == expression.type else None


def _column_of(expression: Expression, scope: Mapping[str, Schema]) -> _Value | None:
    """The column that an expression is; None for any other expression."""
    if expression.path is None or len(expression.path[1]) > 1:
        return None
    alias, (name,) = expression.path
    field = scope[alias].get(name) if alias in scope else None
    return None if field is None else (field.type, _taken(alias, field.name))


def _taken(alias: str, name: str) -> Callable[[Tables], Any]:
    return lambda tables: tables[alias][name]


def _place(node: exp.Expr | None, whole: Expression, scope: Mapping[str, Schema]) -> tuple[str, Field] | None:
    """The column that a bare name, a name behind an alias, or a placeholder of `whole` refers to; None for
    any other node."""
    node = _bare(node)
    if isinstance(node, exp.Placeholder):
        path = whole.parts[node.name].path
        if path is None or len(path[1]) > 1 or path[0] not in scope:
            return None
        field = scope[path[0]].get(path[1][0])
        return None if field is None else (path[0], field)
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    parts = [part.name for part in node.parts]
    named = [(alias, field) for alias, schema in scope.items() if (field := schema.get(parts[0])) is not None]
    if len(parts) == 1:
        return named[0] if len(named) == 1 else None
    if len(parts) > 2 or named:
        return None
    found = [
        (alias, field)
        for alias, schema in scope.items()
        if alias.lower() == parts[0].lower() and (field := schema.get(parts[1]))
    ]
    return found[0] if len(found) == 1 else None


def _value(node: exp.Expr, whole: Expression, scope: Mapping[str, Schema]) -> _Value | None:
    """A column, a literal, `IS [NOT] NULL`, `IN (1, 2)` of whole numbers, arithmetic and CASE over these;
    None for anything else."""
    node = _bare(node)
    if (place := _place(node, whole, scope)) is not None:
        return place[1].type, _taken(place[0], place[1].name)
    if isinstance(node, exp.Placeholder):
        return _expression(whole.parts[node.name], scope)
    if isinstance(node, (exp.Literal, exp.Neg)):
        return _literal(node)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return _tested(node, whole, scope, lambda column: column.is_null())
    if (
        isinstance(node, exp.Not)
        and isinstance(node.this, exp.Is)
        and isinstance(node.this.expression, exp.Null)
    ):
        return _tested(node.this, whole, scope, lambda column: column.is_valid())
    if isinstance(node, exp.In):
        return _listed(node, whole, scope)
    if isinstance(node, exp.Case):
        return _chosen(node, whole, scope)
    return _calculated(node, whole, scope) if type(node) in _ARITHMETIC else None


def _literal(node: exp.Expr) -> _Value | None:
    """Text without escapes, or a whole number."""
    sign, inner = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(inner, exp.Literal):
        return None
    if inner.is_string:
        plain = sign > 0 and inner.name.isprintable() and "\\" not in inner.name
        return ("string", lambda tables: pa.scalar(inner.name, pa.string())) if plain else None
    number = sign * int(inner.name) if inner.name.isascii() and inner.name.isdigit() else 2**63
    data_type = next((name for name, bits in _WHOLE.items() if -(2**bits) <= number < 2**bits), None)
    return (
        None if data_type is None else (data_type, lambda tables: pa.scalar(number, _arrow_type(data_type)))
    )


def _tested(
    node: exp.Is, whole: Expression, scope: Mapping[str, Schema], test: Callable[[Any], Any]
) -> _Value | None:
    """Condition that a column is null, or is not."""
    place = _place(node.this, whole, scope)
    return None if place is None else ("boolean", lambda tables: test(tables[place[0]][place[1].name]))


def _listed(node: exp.In, whole: Expression, scope: Mapping[str, Schema]) -> _Value | None:
    place = (
        None
        if any(node.args.get(part) for part in ("query", "unnest", "field"))
        else _place(node.this, whole, scope)
    )
    literals = [_literal(item) for item in node.expressions]
    if (
        place is None
        or place[1].type not in _WHOLE
        or not all(found is not None and found[0] == "integer" for found in literals)
    ):
        return None
    alias, name = place[0], place[1].name
    numbers = [found[1]({}).as_py() for found in literals if found is not None]

    def is_in(tables: Tables) -> Any:
        import pyarrow.compute as pc

        column = tables[alias][name]
        return pc.if_else(column.is_valid(), pc.is_in(column, value_set=pa.array(numbers, column.type)), None)

    return "boolean", is_in


def _chosen(node: exp.Case, whole: Expression, scope: Mapping[str, Schema]) -> _Value | None:
    """CASE with conditions and ELSE, whose branches have one type."""
    if node.this is not None or node.args.get("default") is None:
        return None
    whens = [_value(item.this, whole, scope) for item in node.args["ifs"]]
    thens = [
        _value(item, whole, scope)
        for item in (*(item.args["true"] for item in node.args["ifs"]), node.args["default"])
    ]
    conditions = [found[1] for found in whens if found is not None and found[0] == "boolean"]
    values = [found for found in thens if found is not None]
    if (
        len(conditions) < len(whens)
        or len(values) < len(thens)
        or len({str(data_type) for data_type, _ in values}) > 1
    ):
        return None

    def chosen(tables: Tables) -> Any:
        import pyarrow.compute as pc

        found = values[-1][1](tables)
        for condition, (_, value) in reversed(list(zip(conditions, values, strict=False))):
            found = pc.if_else(pc.fill_null(condition(tables), False), value(tables), found)
        return found

    return values[0][0], chosen


def _calculated(node: exp.Expr, whole: Expression, scope: Mapping[str, Schema]) -> _Value | None:
    """`+`, `-` and `*` of whole numbers and doubles; they fail on overflow, as in ANSI mode."""
    sides = [_value(side, whole, scope) for side in (node.this, node.expression)]
    (one, of_one), (other, of_other) = [side if side is not None else (None, None) for side in sides]
    if not {one, other} <= {*_WHOLE, "double"} or of_one is None or of_other is None:
        return None
    data_type = "double" if "double" in (one, other) else "long" if "long" in (one, other) else "integer"
    function = _ARITHMETIC[type(node)]

    def calculated(tables: Tables) -> Any:
        import pyarrow.compute as pc

        left, right = (side(tables).cast(_arrow_type(data_type), safe=False) for side in (of_one, of_other))
        return pc.call_function(function, [left, right])

    return data_type, calculated


def _arrow_type(name: str) -> pa.DataType:
    return {"double": pa.float64(), "long": pa.int64(), "integer": pa.int32()}[name]


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
