"""DELETE, UPDATE and MERGE with subqueries: `DELETE FROM t WHERE id IN (SELECT ...)`, `UPDATE t SET a =
(SELECT ...)`.

All tables, including the changed one, are read at the versions that they have when the statement begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from deltaic.errors import InvalidArgumentError
from deltaic.sql.names import Tables
from deltaic.sql.tokens import Reader
from deltaic.sql_text import MAY_HOLD_QUERY, QUERY_STARTS, edited, opens_query

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.table import DeltaTable


def engine_with(tables: Tables, table: DeltaTable) -> Engine:
    """Returns the table's engine, which gets the tables of the statement, for subqueries in expressions."""
    from deltaic.engine.duckdb.engine import LocalEngine
    from deltaic.sql.select import leaf_of

    if not isinstance(table._engine, LocalEngine):
        return tables.engine_with_queries(table._engine)
    return LocalEngine(tables=lambda name, alias: leaf_of(tables, name, alias, LocalEngine()))


def hold_queries(texts: Sequence[str]) -> bool:
    """True if one of these conditions and values contains a subquery."""
    return any(_holds_query(text) for text in texts if MAY_HOLD_QUERY.search(text))


def _holds_query(text: str) -> bool:
    tokens = Reader(text).tokens
    return any(opens_query(tokens, index) for index in range(len(tokens)))


def read_definitions(reader: Reader, statements: Collection[str]) -> tuple[str, list[str]] | None:
    """Reads WITH name AS (query), … before one of the `statements` (first words): returns its text and the
    names in lower case, and moves the cursor behind it. None, without moving the cursor, if there is none."""
    start = reader.position
    names = [name for name, _ in definition_names(reader)]
    if not names or reader.done or reader.tokens[reader.position].keyword not in statements:
        reader.position = start
        return None
    return reader.text[reader.tokens[start].start : reader.tokens[reader.position - 1].end], names


def definition_names(reader: Reader) -> list[tuple[str, int]]:
    """Reads WITH name AS (query), … and moves the cursor behind it. Returns each name in lower case, with the
    position in the text from which on it hides a table: the end of its query, or with RECURSIVE the name
    itself. Returns an empty list if there are no definitions at the cursor."""
    if not reader.accept("WITH"):
        return []
    names: list[tuple[str, int]] = []
    is_recursive = reader.accept("RECURSIVE")
    try:
        while True:
            start, name = reader.position, reader.name()
            if reader.at("("):
                reader.inside("columns")
            if reader.accept("MAX", "RECURSION", "LEVEL"):
                reader.position += 1
            reader.accept("AS")
            reader.inside("a query")
            token = reader.tokens[start if is_recursive else reader.position - 1]
            names.append((name.lower(), token.start))
            if not reader.accept(","):
                return names
    except InvalidArgumentError:
        return []


def defined(text: str, definitions: str, names: Collection[str]) -> str:
    """The text with definitions (WITH name AS (query), ...) in front of each query in it. `names`: what they
    define, in lower case."""
    if not definitions:
        return text
    edits: list[tuple[int, int, str]] = []
    reader = Reader(text)
    while not reader.done:
        start = reader.tokens[reader.position]
        if not opens_query(reader.tokens, reader.position):
            reader.position += 1
            continue
        query = reader.inside("a query")
        edits.append(
            (start.end, reader.tokens[reader.position - 1].start, _defined_query(query, definitions, names))
        )
    return edited(text, edits)


def _defined_query(query: str, definitions: str, names: Collection[str]) -> str:
    """The query with definitions in front. A name that the query defines itself is its own."""
    reader = Reader(query)
    behind_with, is_recursive = reader.tokens[1:], reader.at("WITH", "RECURSIVE")
    own = read_definitions(reader, (*QUERY_STARTS, "("))
    if own is None:
        return f"{definitions} {query}"
    if is_recursive or not set(own[1]).isdisjoint(names):
        return f"{definitions} SELECT * FROM ({query})"
    return f"{definitions}, {query[behind_with[0].start :]}"
