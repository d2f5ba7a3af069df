"""EXPLAIN of the statements that change rows of a Delta table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from deltaic.rows.rows import Rows
from deltaic.spark.heads import passes_head, target_of
from deltaic.sql.insert import insert_clauses
from deltaic.sql.names import Name, read_name
from deltaic.sql.results import rows_of
from deltaic.sql.subqueries import read_definitions
from deltaic.sql.tokens import Reader

_COMMANDS = {
    "DELETE": "DeleteCommand",
    "INSERT": "WriteIntoDelta",
    "MERGE": "MergeIntoCommand",
    "UPDATE": "UpdateCommand",
}
"""First word of a statement -> the command of delta-spark that runs it."""
_MODES = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")


def explained(
    reader: Reader, is_of_delta: Callable[[Reader, Name], bool], explain: Callable[[str], str]
) -> Rows | None:
    """Returns the result of EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED] of a statement that changes rows
    of a Delta table, None for any other statement. The result is the name of the command, and Spark's plan of
    the query for the rows that the command reads. Example: EXPLAIN DELETE FROM t WHERE id = 1 has the plan of
    SELECT * FROM t WHERE id = 1.

    `is_of_delta`: a function that returns True if the name is that of a Delta table; the cursor is at the
    first word of the statement.
    `explain`: a function that returns the text of EXPLAIN of a query.
    """
    start = reader.position
    try:
        if not reader.accept("EXPLAIN"):
            return None
        mode = next((f"{word} " for word in _MODES if reader.accept(word)), "")
        definitions = read_definitions(reader, _COMMANDS)
        word = "" if reader.done else reader.tokens[reader.position].keyword
        target = target_of(reader) if word in _COMMANDS else None
        if target is None or not is_of_delta(reader, target):
            return None
        before = "" if definitions is None else f"{definitions[0]} "
        plan = explain(f"EXPLAIN {mode}{before}{_query(reader, word)}")
        text = f"== Physical Plan ==\nExecute {_COMMANDS[word]} {target}\n\nRows that it reads:\n{plan}"
        return rows_of(pa.table({"plan": [text]}))
    finally:
        reader.position = start


def _query(reader: Reader, word: str) -> str:
    """Returns the query for the rows that a statement reads. `word`: the statement's first word, at which the
    cursor is."""
    passes_head(reader)
    if word == "INSERT":
        read_name(reader)
        insert_clauses(reader)
        return reader.rest("a query")
    if word == "DELETE":
        return f"SELECT * FROM {reader.rest('a table')}"
    if word == "UPDATE":
        table = reader.slice("SET")
        reader.slice("WHERE")
        return f"SELECT * FROM {table} {'' if reader.done else reader.rest('WHERE')}"
    table = reader.slice("USING")
    reader.expect("USING")
    source = reader.slice("ON")
    reader.expect("ON")
    return f"SELECT * FROM {table} JOIN {source} ON {reader.slice('WHEN')}"
