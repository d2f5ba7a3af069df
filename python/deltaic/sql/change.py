"""DELETE, UPDATE, TRUNCATE: the statements that change one table by a condition on it."""

from __future__ import annotations

from deltaic.commands.invariants import is_computed
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema, quote_name
from deltaic.rows.rows import Rows
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.results import counts, nothing
from deltaic.sql.subqueries import engine_with, hold_queries
from deltaic.sql.tokens import Reader, without_qualifiers


def delete(reader: Reader, tables: Tables) -> Rows:
    """DELETE FROM name [[AS] alias] [WHERE condition]"""
    reader.expect("DELETE", "FROM")
    name = read_name(reader, alias=True)
    written = reader.rest("a condition") if reader.accept("WHERE") else None
    reader.end()
    table = tables.table(name)
    if written is not None and hold_queries(table, [written]):
        from deltaic.commands.delete import delete as delete_rows

        engine, alias = engine_with(tables, table), _alias(name)
        metrics = table._run("DELETE", lambda snapshot: delete_rows(snapshot, engine, written, alias=alias))
        return counts(num_affected_rows=metrics.get("num_deleted_rows", 0))
    where = None if written is None else without_qualifiers(written, name.qualifiers)
    return counts(num_affected_rows=table.delete(where).get("num_deleted_rows", 0))


def truncate(reader: Reader, tables: Tables) -> Rows:
    """TRUNCATE TABLE name"""
    reader.expect("TRUNCATE", "TABLE")
    name = read_name(reader)
    if reader.at("PARTITION"):
        raise UnsupportedFeatureError("TRUNCATE TABLE of single partitions", found=reader.rest("partitions"), expected="DELETE ... WHERE")
    reader.end()
    tables.table(name).delete()
    return nothing()


def update(reader: Reader, tables: Tables) -> Rows:
    """UPDATE name [[AS] alias] SET column = expression, ... [WHERE condition]"""
    reader.expect("UPDATE")
    name = read_name(reader, alias=True)
    reader.expect("SET")
    listed = reader.listed(lambda: read_assignment(reader, "WHERE"))
    written = reader.rest("a condition") if reader.accept("WHERE") else None
    reader.end()
    table = tables.table(name)
    schema = table.schema
    assignments = [each for each in listed if not is_left_to_table(each[1], schema, _column(name, each[0]), of_new_row=False)] or listed
    named = [(_column(name, column), value) for column, value in assignments]
    changes = {key: defaulted(value, table.schema, key) for key, value in named}
    if len({column.lower() for column in changes}) < len(assignments):
        raise InvalidArgumentError("a column is set twice", where="UPDATE", found=list(changes))
    if not hold_queries(table, [*changes.values(), *([] if written is None else [written])]):
        where = None if written is None else without_qualifiers(written, name.qualifiers)
        plain = {key: without_qualifiers(value, name.qualifiers) for key, value in changes.items()}
        return counts(num_affected_rows=table.update(plain, where).get("num_updated_rows", 0))
    from deltaic.commands.update import update as update_rows

    engine, alias = engine_with(tables, table), _alias(name)
    metrics = table._run("UPDATE", lambda snapshot: update_rows(snapshot, engine, changes, written, alias=alias))
    return counts(num_affected_rows=metrics.get("num_updated_rows", 0))


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


def is_left_to_table(value: str, schema: Schema, column: str, *, of_new_row: bool = True) -> bool:
    """True if a value is DEFAULT for a column (dotted) that the table computes, so that the statement means none for it. The number of an
    identity column is computed of new rows alone."""
    if value.upper() != "DEFAULT":
        return False
    field = schema.find(column)[1]
    return is_computed(field) if of_new_row else "delta.generationExpression" in field.metadata


def _alias(name: Name) -> str:
    """Name of the table in the statement's expressions: a subquery may have other tables with the same columns."""
    return name.alias or name.parts[-1]


def _column(name: Name, parts: tuple[str, ...]) -> str:
    """The column that `parts` name, less the table's alias, as a key of update(): quoted and dotted."""
    for qualifier in sorted(name.qualifiers, key=len, reverse=True):
        head = tuple(part.lower() for part in parts[: len(qualifier)])
        if len(parts) > len(qualifier) and head == tuple(part.lower() for part in qualifier):
            parts = parts[len(qualifier) :]
            break
    return ".".join(quote_name(part) for part in parts)
