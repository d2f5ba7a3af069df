"""Held rows that are few: they stay in memory as Arrow, and what the commands ask of them next is computed without a query of DuckDB.

MERGE asks four things of its source and of the pairs that match: which keys there are, how many pairs each clause has, which target rows
change, and the values that were copied from the source. Each query of DuckDB costs a millisecond, however few its rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from deltaic.plan.expression import COUNT, Expression
from deltaic.plan.nodes import Aggregate, Data, Filter, Plan, Project
from deltaic.protocol.schema import Field, Schema, decimal_parts
from deltaic.spark_sql.parsing import operands

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

HELD_BYTES = 1 << 20
"""Maximum bytes of held rows that stay in memory as Arrow; more go to a table of DuckDB, which can spill. Below 0 all of them go there."""
_GROUPED = frozenset(("boolean", "byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz"))
"""Types whose values are equal to Arrow where they are equal to Spark."""


class HeldRows:
    """Rows in memory, until `release`."""

    def __init__(self, table: pa.Table) -> None:
        self._table: pa.Table | None = table

    @property
    def table(self) -> pa.Table:
        if self._table is None:
            raise ValueError("the held rows have been released")
        return self._table

    def release(self) -> None:
        self._table = None


class BatchStream:
    """An Arrow stream of batches whose schema DuckDB sees without opening it, and into which it pushes nothing."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema, self._batches = schema, batches

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches).__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class ComputedRows:
    """Rows of a plan, with the alias under which expressions name their columns."""

    schema: Schema
    table: pa.Table
    alias: str

    def column_of(self, value: Expression) -> Field | None:
        """The column that an expression is; None for any other expression."""
        return self.schema.get(value.path[1][0]) if value.path is not None and len(value.path[1]) == 1 else None

    def column(self, node: exp.Expr, whole: Expression | None = None) -> Field | None:
        """The column that a bare name, a name behind the alias, or a placeholder of `whole` means; None for any other expression."""
        while isinstance(node, exp.Paren):
            node = node.this
        if whole is not None and isinstance(node, exp.Placeholder):
            return self.column_of(whole.parts[node.name])
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        parts = [part.name for part in node.parts]
        if len(parts) == 2 and parts[0].lower() == self.alias.lower() and self.schema.get(parts[0]) is None:
            return self.schema.get(parts[1])
        return self.schema.get(parts[0]) if len(parts) == 1 else None


def computed(plan: Plan) -> ComputedRows | None:
    """The rows of a plan over held rows in memory, where it only copies, filters and counts by the forms below; None for any other."""
    if isinstance(plan, Data):
        held = getattr(plan.handle, "held", None)
        return None if held is None else ComputedRows(plan.schema, held.table, plan.alias)
    if not isinstance(plan, (Filter, Project, Aggregate)) or (rows := computed(plan.input)) is None:
        return None
    if isinstance(plan, Filter):
        return _filtered(rows, plan.condition)
    return _projected(rows, plan) if isinstance(plan, Project) else _counted(rows, plan)


def _filtered(rows: ComputedRows, condition: Expression) -> ComputedRows | None:
    import pyarrow.compute as pc

    table, tree = rows.table, condition.tree
    if tree is None:
        return None
    for part in operands(tree) if isinstance(tree, exp.And) else [tree]:
        mask = _mask(rows, table, part, condition)
        if mask is None:
            return None
        if not pc.all(mask).as_py():
            table = table.filter(mask)
    return ComputedRows(rows.schema, table, rows.alias)


def _mask(rows: ComputedRows, table: pa.Table, condition: exp.Expr, whole: Expression) -> pa.ChunkedArray | None:
    """Where `x IS NOT NULL`, or `x IN (1, 2)` of whole numbers, holds; None for any other condition."""
    import pyarrow.compute as pc

    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is) and isinstance(condition.this.expression, exp.Null):
        column = rows.column(condition.this.this, whole)
        return None if column is None else pc.is_valid(table[column.name])
    if not isinstance(condition, exp.In) or any(condition.args.get(part) for part in ("query", "unnest", "field")):
        return None
    column, numbers = rows.column(condition.this, whole), [_whole_number(item) for item in condition.expressions]
    if column is None or column.type not in ("integer", "long") or None in numbers:
        return None
    return pc.is_in(table[column.name], value_set=pa.array(numbers, table.schema.field(column.name).type))


def _whole_number(node: exp.Expr) -> int | None:
    """A literal that an `integer` can hold."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdecimal() or len(node.name) > 9:
        return None
    return int(node.name)


def _projected(rows: ComputedRows, plan: Project) -> ComputedRows | None:
    columns = [rows.column_of(value) for _, value in plan.columns]
    found = [column for column in columns if column is not None]
    if len(found) < len(columns):
        return None
    names = [name for name, _ in plan.columns]
    fields = [Field(name, column.type) for name, column in zip(names, found, strict=True)]
    table = rows.table.select([column.name for column in found]).rename_columns(names)
    return ComputedRows(Schema(fields), table, plan.alias)


def _counted(rows: ComputedRows, plan: Aggregate) -> ComputedRows | None:
    """`count(*)`, of all rows or for each value of one column."""
    import pyarrow.compute as pc

    if len(plan.columns) != 1 or plan.columns[0][1] != COUNT or len(plan.keys) > 1:
        return None
    counts, fields = plan.columns[0][0], [Field(plan.columns[0][0], "long")]
    if not plan.keys:
        return ComputedRows(Schema(fields), pa.table({counts: pa.array([rows.table.num_rows], pa.int64())}), plan.alias)
    name, value = plan.keys[0]
    column = rows.column_of(value)
    if column is None or not isinstance(column.type, str) or not (column.type in _GROUPED or decimal_parts(column.type)):
        return None
    found = pc.value_counts(rows.table[column.name])
    table = pa.table({name: found.field(0), counts: found.field(1)})
    return ComputedRows(Schema([Field(name, column.type), *fields]), table, plan.alias)


def read_few(stream: Any) -> tuple[pa.Schema, list[pa.RecordBatch], Iterator[pa.RecordBatch] | None]:
    """The rows of a stream -> its schema, all of its batches and None where these have at most HELD_BYTES; else its first batches and
    the others, still to be read."""
    reader = pa.RecordBatchReader.from_stream(stream)
    batches: list[pa.RecordBatch] = []
    left = HELD_BYTES
    while left >= 0:
        batch = next(reader, None)
        if batch is None:
            return reader.schema, batches, None
        batches.append(batch)
        left -= batch.nbytes
    return reader.schema, batches, iter(reader)
