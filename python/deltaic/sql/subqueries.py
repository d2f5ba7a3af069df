"""DELETE, UPDATE and MERGE with subqueries: `DELETE FROM t WHERE id IN (SELECT ...)`, `UPDATE t SET a = (SELECT ...)`.

All tables, including the changed one, are read at the versions that they have when the statement begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaic.sql.names import Tables

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.table import DeltaTable


def engine_with(tables: Tables, table: DeltaTable) -> Engine:
    """Returns the table's engine. The embedded engine gets the tables of the statement, for subqueries in
    expressions."""
    from deltaic.engine.duckdb.engine import LocalEngine
    from deltaic.sql.select import leaf_of

    if not isinstance(table._engine, LocalEngine):
        return table._engine
    return LocalEngine(tables=lambda name, alias: leaf_of(tables, name, alias, LocalEngine()))


def hold_queries(table: DeltaTable, texts: Sequence[str]) -> bool:
    """True if one of these conditions and values contains a subquery, and the table's engine is the embedded
    one."""
    from deltaic.engine.duckdb.engine import LocalEngine

    if not isinstance(table._engine, LocalEngine) or not any("SELECT" in text.upper() or "VALUES" in text.upper() for text in texts):
        return False
    return any(map(_holds_query, texts))


def _holds_query(text: str) -> bool:
    from sqlglot import exp

    from deltaic.spark_sql.expression import parse_statement

    tree: exp.Expr = parse_statement(f"SELECT (\n{text}\n)")
    return any(node is not tree for node in tree.find_all(exp.Query))
