"""DELETE, UPDATE and TRUNCATE: the statements that change the rows of one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltaic.commands.invariants import is_computed
from deltaic.errors import ConstraintViolationError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.rows.rows import Rows
from deltaic.session import committing
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.results import counts, nothing
from deltaic.sql.subqueries import engine_with, hold_queries
from deltaic.sql.tokens import Reader, is_field, requalified, without_qualifiers
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
    """Deletes the rows for which `condition` is true; None for all rows. Returns the metrics. `name`: the
    table in the statement, whose qualifiers the condition may use."""
    if condition is None or not hold_queries([condition]):
        qualifiers = tables.qualifiers(name)
        columns = table.schema.names
        return table.delete(None if condition is None else without_qualifiers(condition, qualifiers, columns))
    from deltaic.commands.delete import delete as delete_matching

    engine = engine_with(tables, table)
    alias, (where,) = _aliased([condition], name, tables)
    with committing(table._spark, None) as options:
        return table._run(
            "DELETE",
            lambda snapshot: delete_matching(snapshot, engine, where, alias=alias, commit=options),
        )


def truncate(reader: Reader, tables: Tables) -> Rows:
    """TRUNCATE TABLE name"""
    reader.expect("TRUNCATE", "TABLE")
    name = read_name(reader)
    if reader.at("PARTITION"):
        raise UnsupportedFeatureError(
            "TRUNCATE TABLE of single partitions is not supported",
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
    schema, qualifiers = table.schema, tables.qualifiers(name)
    assignments = [
        each
        for each in listed
        if not is_left_to_table(each[1], schema, _column(schema, qualifiers, each[0]), of_new_row=False)
    ] or listed
    named = [(_column(schema, qualifiers, column), value) for column, value in assignments]
    for key, value in named:
        if schema.get("default") is None:
            refuse_default_inside(value, f"UPDATE SET {key}")
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
    """Changes the rows for which `condition` is true; None for all rows. Returns the metrics. `changes`: SQL
    of the new value by column. `name`: the table in the statement, whose qualifiers the SQL may use."""
    if not hold_queries([*changes.values(), condition or ""]):
        qualifiers, columns = tables.qualifiers(name), table.schema.names
        where = None if condition is None else without_qualifiers(condition, qualifiers, columns)
        return table.update(
            {key: without_qualifiers(value, qualifiers, columns) for key, value in changes.items()}, where
        )
    from deltaic.commands.update import update as update_matching

    engine = engine_with(tables, table)
    written = [*changes.values()] if condition is None else [*changes.values(), condition]
    alias, texts = _aliased(written, name, tables)
    values, where = dict(zip(changes, texts, strict=False)), None if condition is None else texts[-1]
    with committing(table._spark, None) as options:
        return table._run(
            "UPDATE",
            lambda snapshot: update_matching(snapshot, engine, values, where, alias=alias, commit=options),
        )


def read_assignment(reader: Reader, *stops: str) -> tuple[tuple[str, ...], str]:
    """column = expression"""
    column = reader.dotted()
    if not reader.accept_equals():
        reader.fail("=")
    return column, reader.slice(",", *stops)


def defaulted(value: str, schema: Schema, column: str) -> str:
    """Returns the SQL of a value. DEFAULT becomes the default of the column (a name with dots), or NULL if it
    has none. Raises ConstraintViolationError for a NOT NULL column without a default."""
    if value.upper() != "DEFAULT":
        return value
    field = schema.find(column)[1]
    if not field.nullable and "CURRENT_DEFAULT" not in field.metadata and not is_computed(field):
        raise ConstraintViolationError(
            "[NO_DEFAULT_COLUMN_VALUE_AVAILABLE] the column is NOT NULL and has no default", where=field.name
        )
    return str(field.metadata.get("CURRENT_DEFAULT", "NULL"))


def refuse_default_inside(value: str, where: str) -> None:
    """Raises InvalidArgumentError if DEFAULT is a part of a value: `DEFAULT + 1`. `where`: for the text of
    the error."""
    if has_default_inside(value):
        raise InvalidArgumentError(
            "DEFAULT is part of an expression", where=where, found=value, expected="DEFAULT alone"
        )


def has_default_inside(value: str) -> bool:
    """True if DEFAULT is a part of a value: `DEFAULT + 1`. `default.t.c` names a column of the schema
    `default`, and in a subquery DEFAULT may be a column."""
    if value.upper() == "DEFAULT" or "DEFAULT" not in value.upper():
        return False
    words = ["", *(token.keyword for token in Reader(value).tokens), ""]
    alone = any(
        word == "DEFAULT" and "." not in (before, after)
        for before, word, after in zip(words, words[1:], words[2:], strict=False)
    )
    return alone and "SELECT" not in words


def is_left_to_table(value: str, schema: Schema, column: str, *, of_new_row: bool = True) -> bool:
    """True if a value is DEFAULT for a column (a name with dots) that the table computes, so that the
    statement sets no value. Identity columns are computed only for new rows."""
    if value.upper() != "DEFAULT":
        return False
    field = schema.find(column)[1]
    return is_computed(field) if of_new_row else "delta.generationExpression" in field.metadata


def _aliased(texts: list[str], name: Name, tables: Tables) -> tuple[str, list[str]]:
    """Returns an alias for the table in expressions with subqueries, and the expressions with the alias in
    place of qualifiers of several parts: `s.t.id` becomes `t.id`. If a subquery reads a table of the same
    name in another schema, the alias is another one, unless the expressions also have the qualifier `t`."""
    alias, qualifiers = name.alias or name.parts[-1], tables.qualifiers(name)
    own = {tuple(part.lower() for part in qualifier) for qualifier in qualifiers}
    names = {each for text in texts for each in _dotted_names(text)}
    if not name.alias and any(each[-1] == alias.lower() and each not in own for each in names):
        if any(each[0] == alias.lower() for each in names):
            return alias, texts
        alias = "__deltaic_changed"
    long = {each: f"{quote_name(alias)}." for each in qualifiers if len(each) > 1}
    return alias, [requalified(text, long) for text in texts]


def _dotted_names(text: str) -> Iterator[tuple[str, ...]]:
    """Yields the names of several parts in an expression, and each of their beginnings, in lower case."""
    names: list[str] = []
    before = ""
    for token in Reader(text).tokens:
        is_name = token.kind in ("word", "quoted")
        if is_name:
            names = [*names, token.name.lower()] if before == "." else [token.name.lower()]
            if len(names) > 1:
                yield tuple(names)
        elif token.text != ".":
            names = []
        before = token.text


def _column(schema: Schema, qualifiers: Iterable[tuple[str, ...]], parts: tuple[str, ...]) -> str:
    """Returns a column without a qualifier of its table as a key for `update()`, quoted and with dots.
    `qualifiers`: the longest first."""
    columns = {column.lower() for column in schema.names}
    for qualifier in qualifiers:
        head = tuple(part.lower() for part in parts[: len(qualifier) + 1])
        if len(head) > len(qualifier) and head[:-1] == tuple(part.lower() for part in qualifier):
            if is_field(head, columns):
                continue
            parts = parts[len(qualifier) :]
            break
    return ".".join(quote_name(part) for part in parts)
