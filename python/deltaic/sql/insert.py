"""INSERT INTO, INSERT OVERWRITE, INSERT ... REPLACE WHERE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deltaic.commands.write import Mode
from deltaic.errors import SchemaMismatchError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema, quote_name
from deltaic.scan.rows import Rows
from deltaic.sql.change import defaulted
from deltaic.sql.names import Tables, read_name
from deltaic.sql.results import nothing
from deltaic.sql.tokens import Reader, without_qualifiers

_QUERY_STARTS = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")


@dataclass(frozen=True)
class _Target:
    """Which columns of the table the query fills, in its order; `by_name`: as the query calls them."""

    columns: tuple[str, ...]
    by_name: bool


def insert(reader: Reader, tables: Tables) -> Rows:
    """INSERT INTO | OVERWRITE [TABLE] name [(columns) | BY NAME] [REPLACE WHERE condition] query"""
    reader.expect("INSERT")
    overwrite = reader.accept("OVERWRITE")
    if not overwrite:
        reader.expect("INTO")
    reader.accept("TABLE")
    name = read_name(reader)
    if reader.at("PARTITION"):
        raise UnsupportedFeatureError("INSERT ... PARTITION", expected="the partition's columns in the query, or REPLACE WHERE")
    listed = tuple(reader.bracketed(reader.name)) if _lists_columns(reader) else None
    by_name = reader.accept("BY", "NAME")
    where = None
    if reader.accept("REPLACE"):
        if reader.at("USING") or reader.at("ON"):
            raise UnsupportedFeatureError("INSERT ... REPLACE USING and REPLACE ON", expected="REPLACE WHERE")
        reader.expect("WHERE")
        where = without_qualifiers(reader.slice(*_QUERY_STARTS, expected="a condition"), name.qualifiers)
    table = tables.table(name)
    target = _Target(_filled(table.schema, listed), by_name)
    rows = _placed(_with_defaults(reader.rest("a query"), target, table.schema), target, str(name), tables)
    mode: Mode = "overwrite" if overwrite or where is not None else "append"
    tables.insert(table, rows, mode, where)
    return nothing()


def _lists_columns(reader: Reader) -> bool:
    """Whether the bracket that follows lists columns and is not a query."""
    if not reader.at("(") or reader.position + 1 == len(reader.tokens):
        return False
    return reader.tokens[reader.position + 1].keyword not in (*_QUERY_STARTS, "(")


def _filled(schema: Schema, listed: tuple[str, ...] | None) -> tuple[str, ...]:
    if listed is None:
        return tuple(schema.names)
    names = tuple(schema.field(name).name for name in listed)
    if len(set(names)) < len(names):
        raise SchemaMismatchError("a column is listed twice", where="INSERT", found=listed)
    return names


def _with_defaults(text: str, target: _Target, schema: Schema) -> str:
    """VALUES (1, DEFAULT), ... with what the columns have as their defaults; any other query as it is."""
    reader = Reader(text)
    if not reader.accept("VALUES") or not reader.at("("):
        return text
    pieces: list[str] = []
    copied = 0
    while reader.accept("("):
        for column in (*target.columns, None):
            first = reader.position
            value = reader.slice(",")
            if column is not None and value.upper() == "DEFAULT":
                pieces += [text[copied : reader.tokens[first].start], f"({defaulted(value, schema, quote_name(column))})"]
                copied = reader.tokens[first].end
            if not reader.accept(","):
                break
        reader.expect(")")
        if not (reader.accept(",") and reader.at("(")):
            break
    return "".join(pieces) + text[copied:]


def _placed(text: str, target: _Target, where: str, tables: Tables) -> Any:
    """The query's columns under the names of the table's: by position, as SQL has it, unless BY NAME."""
    rows = tables.query(text)
    if target.by_name:
        return rows
    names = tables.column_names(rows)
    if len(names) != len(target.columns):
        raise SchemaMismatchError(
            "INSERT needs one value for each column",
            where=where,
            found=f"{len(names)} ({', '.join(names)})",
            expected=f"{len(target.columns)} ({', '.join(target.columns)})",
        )
    return tables.renamed(rows, target.columns)
