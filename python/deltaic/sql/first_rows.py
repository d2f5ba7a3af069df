"""Queries of the form `SELECT columns FROM table [WHERE ...] [ORDER BY ...] [LIMIT n]` that read only as much
as they need.

Without WHERE and ORDER BY, the scan ends after n rows. With ORDER BY and LIMIT, a first query reads only the
columns of the conditions and keys, and returns the row ids of the first n rows; then the query runs over
these rows. For the ten largest values of a table with 40 columns, the first query reads one column and
returns ten row ids, and the second one reads ten rows.

`SELECT count(*) FROM table` reads no data file if the statistics in the log have the number of rows of each
file, as in delta-spark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from deltaic import _core
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN, Data, Scan
from deltaic.planning.opening import OPENED, ROW_ID_FIELDS, SMALL_BYTES, bytes_of_files
from deltaic.protocol.evolution import nullable_field
from deltaic.protocol.schema import Schema
from deltaic.spark_sql.query.queries import translate_query

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.duckdb.connection import Work
    from deltaic.engine.duckdb.engine import LocalEngine, LocalRelation
    from deltaic.engine.duckdb.registering import Keep
    from deltaic.spark_sql.query.queries import TranslatedQuery

MAX_ROWS = 10_000
"""Maximum number of rows that are read by their ids. For more rows, reading the whole columns is as fast."""
_CLAUSES = {"expressions", "from_", "where", "order", "limit", "offset"}


def relation(
    engine: LocalEngine,
    tree: exp.Expr,
    translated: TranslatedQuery,
    leaves: Mapping[str, Scan | Data],
    keep: Mapping[str, Keep],
) -> LocalRelation:
    """Returns the rows of a query, and reads less if it has the form above. `keep`: as for
    `LocalEngine.query`."""
    name, leaf = next(iter(leaves.items()), ("", None))
    if (
        len(leaves) != 1
        or not isinstance(leaf, Scan)
        or not _is_plain(tree)
        or not _plain_columns(tree, leaf)
    ):
        return engine.query(translated, leaves, keep)
    rows, ordered = _rows(tree), tree.args.get("order") is not None
    if (
        not ordered
        and tree.args.get("where") is None
        and (rows is not None or tree.args.get("limit") is None)
    ):
        return _copied(engine, tree, translated, leaf, rows) or engine.query(
            translated, {name: replace(leaf, limit=rows)}
        )
    whole = engine.query(translated, leaves, keep)
    if rows is None or not ordered:
        return whole
    needed = _columns_of_keys(tree, leaf)
    if (
        needed is None
        or not 0 < rows <= MAX_ROWS
        or len(translated.schema) <= len(needed)
        or bytes_of_files(leaf) <= SMALL_BYTES
    ):
        return whole

    ids = _ids_query(tree, rows)
    schema = Schema([*(leaf.schema.field(name) for name in leaf.columns), *ROW_ID_FIELDS])
    first = engine.query(
        translate_query(ids, {name: schema}, time_zone=engine.time_zone), {name: replace(leaf, row_ids=True)}
    )

    def opened(work: Work) -> Any:
        row_ids = _core.RowIds.collect(first.open(work))
        return engine.query(translated, {name: replace(leaf, files=row_ids.select(leaf.files))}).open(work)

    return replace(whole, open=opened)


def is_count(tree: exp.Expr) -> bool:
    """True for `SELECT count(*) FROM table`, also with several columns of this kind."""
    if not isinstance(tree, exp.Select) or any(
        value and key not in ("expressions", "from_") for key, value in tree.args.items()
    ):
        return False
    return _one_table(tree) is not None and all(_counts_rows(item.unalias()) for item in tree.expressions)


def _counts_rows(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Anonymous) or node.this.lower() != "count" or len(node.expressions) != 1:
        return False
    return isinstance(node.expressions[0], exp.Star) and not any(node.expressions[0].args.values())


def counted(whole: LocalRelation, rows: int) -> LocalRelation:
    """Returns the answer of such a query on a table of this many rows. A report on what a query reads runs
    the query itself."""

    def opened(work: Work) -> Any:
        import pyarrow as pa

        from deltaic.engine.duckdb.engine import arrow_schema

        if OPENED.get() is not None:
            return whole.open(work)
        schema = arrow_schema(whole.schema)
        value = pa.py_buffer(rows.to_bytes(8, sys.byteorder))  # `pa.array` would import pandas
        count = pa.Array.from_buffers(pa.int64(), 1, [None, value])
        return pa.Table.from_arrays([count] * len(schema), schema=schema).to_reader()

    return replace(whole, open=opened)


def _one_table(tree: exp.Expr) -> exp.Table | None:
    """Returns the table of a FROM with one table and nothing around it."""
    table = tree.args["from_"].this if tree.args.get("from_") is not None else None
    if not isinstance(table, exp.Table) or any(
        value for key, value in table.args.items() if key not in ("this", "alias")
    ):
        return None
    return table


def _copied(
    engine: LocalEngine, tree: exp.Expr, translated: TranslatedQuery, leaf: Scan, rows: int | None
) -> LocalRelation | None:
    """Returns the rows of the scan without DuckDB, which would only copy them: for 1,000 columns, its binder
    takes longer than reading them. None if a column would change."""
    names: list[str] = []  # a name may occur twice
    for item in tree.expressions:
        names += leaf.columns if isinstance(item, exp.Star) else [leaf.schema.field(item.parts[-1].name).name]
    read = tuple(dict.fromkeys(names))
    result = Schema.of_query(map(nullable_field, translated.schema))
    same = all(
        field.type == leaf.schema.field(name).type != "void"
        for field, name in zip(result, names, strict=True)
    )
    if not same or tree.args.get("offset") is not None or rows == 0:
        return None
    from deltaic.engine.duckdb.engine import LocalRelation

    scan, places = engine.run(replace(leaf, columns=read, limit=rows)), [read.index(name) for name in names]
    return LocalRelation(result, lambda work: _first(scan.open(work), places, result, rows), polls=scan.polls)


def _first(stream: Any, places: Sequence[int], schema: Schema, rows: int | None) -> pa.RecordBatchReader:
    """Returns the first `rows` rows of a stream (None: all), with its columns at `places` under the names of
    `schema`."""
    import pyarrow as pa

    from deltaic.engine.duckdb.engine import arrow_schema

    declared = arrow_schema(schema)

    def batches() -> Iterator[pa.RecordBatch]:
        left = sys.maxsize if rows is None else rows
        for batch in pa.RecordBatchReader.from_stream(stream):
            part = batch.slice(0, min(left, batch.num_rows))
            yield pa.RecordBatch.from_arrays([part.column(place) for place in places], schema=declared)
            left -= part.num_rows
            if left == 0:
                return

    return pa.RecordBatchReader.from_batches(declared, batches())


def _is_plain(tree: exp.Expr) -> bool:
    """True if the query is a SELECT with no clauses other than those of _CLAUSES."""
    return isinstance(tree, exp.Select) and not any(
        value and key not in _CLAUSES for key, value in tree.args.items()
    )


def _rows(tree: exp.Expr) -> int | None:
    """Returns LIMIT + OFFSET, the number of rows in order that the query needs; None if they are no plain
    numbers."""
    amounts = [clause.expression for key in ("limit", "offset") if (clause := tree.args.get(key)) is not None]
    if tree.args.get("limit") is None or not all(
        isinstance(item, exp.Literal) and item.name.isdecimal() for item in amounts
    ):
        return None
    return sum(int(item.name) for item in amounts)


def _plain_columns(tree: exp.Expr, leaf: Scan) -> bool:
    """True if the query returns only unchanged columns of one table, and has no subquery."""
    if (table := _one_table(tree)) is None:
        return False
    if (alias := table.args.get("alias")) is not None and alias.args.get("columns"):
        return False
    if any(node is not tree for node in tree.find_all(exp.Query)):
        return False
    return all(
        (isinstance(item, exp.Star) and not any(item.args.values()))
        or (isinstance(item, exp.Column) and _is_column(item, table, leaf))
        for item in tree.expressions
    )


def _is_column(node: exp.Column, table: exp.Table, leaf: Scan) -> bool:
    parts = [part.name for part in node.parts]
    named = len(parts) == 1 or (len(parts) == 2 and parts[0].lower() == table.alias_or_name.lower())
    return not isinstance(node.this, exp.Star) and named and leaf.schema.get(parts[-1]) is not None


def _columns_of_keys(tree: exp.Expr, leaf: Scan) -> set[str] | None:
    """Returns the columns that WHERE and ORDER BY read; None if a key of ORDER BY is a position."""
    order = tree.args["order"].expressions
    if any(isinstance(item.this if isinstance(item, exp.Ordered) else item, exp.Literal) for item in order):
        return None
    clauses = [*order, *([tree.args["where"]] if tree.args.get("where") is not None else [])]
    # Both first parts of a name are included, as `t.a` may be column `a` of the table or field `a` of the
    # column `t`.
    return {
        node.name.lower()
        for clause in clauses
        for column in clause.find_all(exp.Column)
        for node in column.parts[:2]
    }


def _ids_query(tree: exp.Expr, rows: int) -> exp.Expr:
    """Returns the query for the row ids of the first `rows` rows."""
    ids = tree.copy()
    ids.set(
        "expressions",
        [exp.column(exp.to_identifier(name, quoted=True)) for name in (FILE_COLUMN, ROW_COLUMN)],
    )
    ids.set("offset", None)
    ids.set("limit", exp.Limit(expression=exp.Literal.number(rows)))
    return ids
