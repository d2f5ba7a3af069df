"""DELETE, UPDATE and TRUNCATE: the statements that change the rows of one table."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.commands.invariants import is_computed
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.rows.rows import Rows
from deltaic.session import committing
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.results import counts, nothing
from deltaic.sql.subqueries import engine_with, hold_queries
from deltaic.sql.tokens import Reader, without_qualifiers
from deltaic.sql_text import quote_name
from deltaic.table import DeltaTable


def delete(reader: Reader, tables: Tables) -> Rows:
    """DELETE FROM name [[AS] alias] [WHERE condition]"""
    reader.expect("DELETE", "FROM")
    name = read_name(reader, alias=True)
    written = reader.rest("a condition") if reader.accept("WHERE") else None
    reader.end()
    table = tables.table(name)
    return counts(num_affected_rows=delete_rows(table, written, name, tables).get("num_deleted_rows", 0))


def delete_rows(table: DeltaTable, condition: str | None, name: Name, tables: Tables) -> Mapping[str, int]:
    """Deletes the rows for which a condition is true, which knows the table by `name` -> the metrics."""
    if condition is None or not hold_queries([condition]):
        return table.delete(None if condition is None else without_qualifiers(condition, name.qualifiers))
    from deltaic.commands.delete import delete as delete_matching

    engine, alias = engine_with(tables, table), _alias(name)
    with committing(table._spark, None) as options:
        return table._run(
            "DELETE",
            lambda snapshot: delete_matching(snapshot, engine, condition, alias=alias, commit=options),
        )


def truncate(reader: Reader, tables: Tables) -> Rows:
    """TRUNCATE TABLE name"""
    reader.expect("TRUNCATE", "TABLE")
    name = read_name(reader)
    if reader.at("PARTITION"):
        raise UnsupportedFeatureError(
            "TRUNCATE TABLE of single partitions",
            found=reader.rest("partitions"),
            expected="DELETE ... WHERE",
        )
    reader.end()
    from deltaic.commands.delete import truncate as remove_files

    table = tables.table(name)
    with committing(table._spark, None) as options:
        table._run("TRUNCATE", lambda snapshot: remove_files(snapshot, table._engine, commit=options))
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
    assignments = [
        each
        for each in listed
        if not is_left_to_table(each[1], schema, _column(name, each[0]), of_new_row=False)
    ] or listed
    named = [(_column(name, column), value) for column, value in assignments]
    changes = {key: defaulted(value, table.schema, key) for key, value in named}
    if len({column.lower() for column in changes}) < len(assignments):
        error = InvalidArgumentError("a column is set twice", where="UPDATE", found=list(changes))
        raise error.with_values(columns=tuple(column for column, _ in named))
    return counts(
        num_affected_rows=update_rows(table, changes, written, name, tables).get("num_updated_rows", 0)
    )


def update_rows(
    table: DeltaTable, changes: Mapping[str, str], condition: str | None, name: Name, tables: Tables
) -> Mapping[str, int]:
    """Changes the rows for which a condition is true; condition and values know the table by `name` -> the
    metrics."""
    if not hold_queries([*changes.values(), condition or ""]):
        where = None if condition is None else without_qualifiers(condition, name.qualifiers)
        return table.update(
            {key: without_qualifiers(value, name.qualifiers) for key, value in changes.items()}, where
        )
    from deltaic.commands.update import update as update_matching

    engine, alias = engine_with(tables, table), _alias(name)
    with committing(table._spark, None) as options:
        return table._run(
            "UPDATE",
            lambda snapshot: update_matching(
                snapshot, engine, changes, condition, alias=alias, commit=options
            ),
        )


def read_assignment(reader: Reader, *stops: str) -> tuple[tuple[str, ...], str]:
    """column = expression"""
    column = reader.dotted()
    reader.expect("=")
    return column, reader.slice(",", *stops)


def defaulted(value: str, schema: Schema, column: str) -> str:
    """Returns the SQL of a value. DEFAULT becomes the default of the column (a name with dots), or NULL if it
    has none."""
    if value.upper() != "DEFAULT":
        return value
    return str(schema.find(column)[1].metadata.get("CURRENT_DEFAULT", "NULL"))


def is_left_to_table(value: str, schema: Schema, column: str, *, of_new_row: bool = True) -> bool:
    """True if a value is DEFAULT for a column (a name with dots) that the table computes, so that the
    statement sets no value. Identity columns are computed only for new rows."""
    if value.upper() != "DEFAULT":
        return False
    field = schema.find(column)[1]
    return is_computed(field) if of_new_row else "delta.generationExpression" in field.metadata


def _alias(name: Name) -> str:
    """Returns the name of the table in the statement's expressions. It is needed if a subquery has other
    tables with the same columns."""
    return name.alias or name.parts[-1]


def _column(name: Name, parts: tuple[str, ...]) -> str:
    """Returns a column without the table's alias as a key for `update()`, quoted and with dots."""
    for qualifier in sorted(name.qualifiers, key=len, reverse=True):
        head = tuple(part.lower() for part in parts[: len(qualifier)])
        if len(parts) > len(qualifier) and head == tuple(part.lower() for part in qualifier):
            parts = parts[len(qualifier) :]
            break
    return ".".join(quote_name(part) for part in parts)
