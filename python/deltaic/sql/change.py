"""DELETE, UPDATE, TRUNCATE: the statements that change one table by a condition on it."""

from __future__ import annotations

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Schema, quote_name
from deltaic.scan.rows import Rows
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.results import counts, nothing
from deltaic.sql.tokens import Reader, without_qualifiers


def delete(reader: Reader, tables: Tables) -> Rows:
    """DELETE FROM name [[AS] alias] [WHERE condition]"""
    reader.expect("DELETE", "FROM")
    name = read_name(reader, alias=True)
    where = read_where(reader, name)
    reader.end()
    return counts(num_affected_rows=tables.table(name).delete(where).get("num_deleted_rows", 0))


def truncate(reader: Reader, tables: Tables) -> Rows:
    """TRUNCATE TABLE name"""
    reader.expect("TRUNCATE", "TABLE")
    name = read_name(reader)
    reader.end()
    tables.table(name).delete()
    return nothing()


def update(reader: Reader, tables: Tables) -> Rows:
    """UPDATE name [[AS] alias] SET column = expression, ... [WHERE condition]"""
    reader.expect("UPDATE")
    name = read_name(reader, alias=True)
    reader.expect("SET")
    assignments = reader.listed(lambda: read_assignment(reader, "WHERE"))
    where = read_where(reader, name)
    reader.end()
    table = tables.table(name)
    named = [(_column(name, column), value) for column, value in assignments]
    changes = {key: without_qualifiers(defaulted(value, table.schema, key), name.qualifiers) for key, value in named}
    if len({column.lower() for column in changes}) < len(assignments):
        raise InvalidArgumentError("a column is set twice", where="UPDATE", found=list(changes))
    return counts(num_affected_rows=table.update(changes, where).get("num_updated_rows", 0))


def read_where(reader: Reader, name: Name) -> str | None:
    """[WHERE condition], in the table's own columns."""
    return without_qualifiers(reader.rest("a condition"), name.qualifiers) if reader.accept("WHERE") else None


def read_assignment(reader: Reader, *stops: str) -> tuple[tuple[str, ...], str]:
    """column = expression"""
    column = reader.dotted()
    reader.expect("=")
    return column, reader.slice(",", *stops)


def defaulted(value: str, schema: Schema, column: str) -> str:
    """The value, or for DEFAULT what the column (dotted) has as its default: null where it has none."""
    if value.upper() != "DEFAULT":
        return value
    return str(schema.find(column)[1].metadata.get("CURRENT_DEFAULT", "NULL"))


def _column(name: Name, parts: tuple[str, ...]) -> str:
    """The column that `parts` name, less the table's alias, as a key of update(): quoted and dotted."""
    for qualifier in sorted(name.qualifiers, key=len, reverse=True):
        head = tuple(part.lower() for part in parts[: len(qualifier)])
        if len(parts) > len(qualifier) and head == tuple(part.lower() for part in qualifier):
            parts = parts[len(qualifier) :]
            break
    return ".".join(quote_name(part) for part in parts)
