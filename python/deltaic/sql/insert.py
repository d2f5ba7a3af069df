"""INSERT INTO, INSERT OVERWRITE, INSERT ... REPLACE WHERE, REPLACE USING and REPLACE ON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any

from deltaic.commands.replacement import Replacement
from deltaic.commands.write_job import Mode
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError, nearest_names
from deltaic.protocol.ddl import cast_type
from deltaic.protocol.evolution import left_out
from deltaic.protocol.schema import Schema
from deltaic.protocol.widening import is_widening
from deltaic.rows.rows import Rows
from deltaic.sql.change import defaulted, has_default_inside, is_left_to_table, refuse_default_inside
from deltaic.sql.insert_replace import alias_length, bound, check_query, read_alias, unaliased_query
from deltaic.sql.names import Tables, read_name
from deltaic.sql.positions import fit_by_name, matched
from deltaic.sql.results import nothing
from deltaic.sql.subqueries import hold_queries, read_definitions
from deltaic.sql.tokens import Reader, without_qualifiers
from deltaic.sql_text import QUERY_STARTS, Token, edited, opens_query, quote_name
from deltaic.table import DeltaTable

_BEFORE_SUBQUERIES = {"IN", "EXISTS", "AND", "OR", "NOT", "=", "<", ">", "<=", ">=", "<>", "!=", "<=>"}
"""Words and operators behind which a query in brackets is a part of the condition."""
_CLAUSES = ("WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
"""Words that end the list of a SELECT, beside FROM."""
_BRANCHES = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


@dataclass(frozen=True)
class _Target:
    """The columns of an INSERT. `columns`: columns of the table that the query fills, in the query's order.
    `by_name`: True if the query's columns match by name instead. `fixed`: SQL of the values that PARTITION
    sets for other columns. `listed`: True if the statement lists the columns."""

    columns: tuple[str, ...]
    by_name: bool
    fixed: Mapping[str, str]
    listed: bool


def insert(reader: Reader, tables: Tables) -> Rows:
    """INSERT [WITH SCHEMA EVOLUTION] INTO | OVERWRITE [TABLE] name [PARTITION (column [= value], ...)]
    [(columns) | BY NAME] [REPLACE WHERE condition] query
    INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] name [[AS] alias] [BY NAME] REPLACE USING (columns) query
    INSERT ... [BY NAME] REPLACE ON condition query | (query) [[AS] alias]"""
    reader.expect("INSERT")
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION") or tables.evolves
    overwrite = reader.accept("OVERWRITE")
    if not overwrite:
        reader.expect("INTO")
    reader.accept("TABLE")
    name = read_name(reader)
    alias = read_alias(reader) if tables.replaces_matches and not overwrite else None
    partition, listed, by_name, replaced = insert_clauses(reader, matches=tables.replaces_matches)
    where = replacement = None
    if isinstance(replaced, Replacement):
        query, source = unaliased_query(reader)
        replacement = bound(replaced, replace(name, alias=alias), source, tables)
    elif alias is not None:
        raise InvalidArgumentError(
            "an INSERT takes an alias only with REPLACE USING and REPLACE ON", where=str(name), found=alias
        )
    else:
        query = reader.rest("a query")
        where = replaced if isinstance(replaced, str) else None
    table = tables.table(name)
    if where is not None:
        if hold_queries([where]):
            raise UnsupportedFeatureError(
                "[UNSUPPORTED_FEATURE.OVERWRITE_BY_SUBQUERY] the condition of REPLACE WHERE has a subquery",
                found=where,
                expected="a condition on the columns of the table",
            )
        where = without_qualifiers(where, tables.qualifiers(name), table.schema.names)
    fixed = fixed_values(partition, table)
    filled = _filled(table.schema, listed)
    target = _Target(
        tuple(name for name in filled if listed is not None or name not in fixed),
        by_name,
        fixed,
        listed is not None,
    )
    if both := set(target.columns) & set(fixed):
        raise SchemaMismatchError(
            "PARTITION gives a value to a column that is listed too", where=str(name), found=sorted(both)
        ).with_values(column=min(both))
    text, computed = _with_defaults(query, target, table.schema, tables)
    if computed:
        text, target = _without(text, target, computed)
    if replacement is not None and not by_name:
        check_query(replacement, table.schema, tables.column_names(tables.query(text)))
    rows = _placed(text, target, table, str(name), tables, evolves)
    mode: Mode = "append" if not overwrite and replaced is None else "overwrite"
    if overwrite and table.metadata.partition_columns and tables.overwrites_partitions():
        mode = "overwrite_partitions"
    shown_where = None
    if mode == "overwrite" and overwrite and fixed:
        where = " AND ".join(f"{quote_name(column)} {_equal_to(value)}" for column, value in fixed.items())
        given = {name: value for name, value in partition if value is not None}
        shown_where = " AND ".join(f"{quote_name(name)} <=> {value}" for name, value in given.items())
    tables.insert(table, rows, mode, where, "merge" if evolves else None, shown_where, replacement)
    return nothing()


def insert_clauses(
    reader: Reader, *, matches: bool = False
) -> tuple[list[tuple[str, str | None]], tuple[str, ...] | None, bool, str | Replacement | None]:
    """[PARTITION (column [= value], ...)] [(columns) | BY NAME] [REPLACE WHERE condition], or [BY NAME]
    REPLACE USING (columns), or [BY NAME] REPLACE ON condition, between the name and the query of an INSERT.
    Returns the partition columns with their values, the listed columns (None without a list), True for BY
    NAME, and the condition of WHERE or the replacement. `matches`: False to refuse USING and ON."""
    partition = reader.bracketed(lambda: partition_value(reader)) if reader.accept("PARTITION") else []
    if partition and reader.accept("IF", "NOT", "EXISTS"):
        raise UnsupportedFeatureError(
            "[UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS] INSERT into a partition that must not"
            " exist is not supported",
            found="IF NOT EXISTS",
            expected="INSERT, or MERGE with WHEN NOT MATCHED",
        )
    listed = tuple(reader.bracketed(reader.name)) if _lists_columns(reader) else None
    by_name = reader.accept("BY", "NAME")
    if by_name and listed is not None:
        reader.fail("a query, as BY NAME takes no list of columns")
    if not reader.accept("REPLACE"):
        return partition, listed, by_name, None
    if not reader.at("USING") and not reader.at("ON"):
        reader.expect("WHERE")
        return partition, listed, by_name, _condition(reader)
    if not matches:
        raise UnsupportedFeatureError(
            "INSERT ... REPLACE USING and REPLACE ON are not supported", expected="REPLACE WHERE"
        )
    if partition or listed is not None:
        reader.fail("WHERE, or no PARTITION and no list of columns")
    if reader.accept("USING"):
        columns = tuple(reader.bracketed(reader.name))
        replacement = Replacement(columns=columns, text=", ".join(map(quote_name, columns)))
    else:
        reader.expect("ON")
        condition = _condition(reader, alias_length(reader))
        replacement = Replacement(on=condition, text=condition)
    return partition, listed, by_name, replacement


def _condition(reader: Reader, alias: int = 0) -> str:
    """Returns the condition of REPLACE WHERE or REPLACE ON, and moves the cursor to the query behind it. The
    query may be in brackets, as in `id = 1 (SELECT 1, 2)`. In `id IN (SELECT 1)` the brackets belong to the
    condition. `alias`: number of tokens behind the brackets that are the alias of the query."""
    start = reader.position
    condition = reader.slice(*QUERY_STARTS, expected="a condition")
    last = len(reader.tokens) - 1 - alias
    if not reader.done or reader.tokens[last].text != ")":
        return condition
    first, depth = last, 1
    while depth and first > start:
        first -= 1
        depth += {")": 1, "(": -1}.get(reader.tokens[first].text, 0)
    is_query = opens_query(reader.tokens, first)
    if first == start or not is_query or reader.tokens[first - 1].keyword in _BEFORE_SUBQUERIES:
        return condition
    reader.position = first
    return reader.text[reader.tokens[start].start : reader.tokens[first - 1].end]


def partition_value(reader: Reader) -> tuple[str, str | None]:
    """column [= value]"""
    name = reader.name()
    value = reader.slice(",", expected="a value") if reader.accept_equals() else None
    if value is not None and value.upper() == "DEFAULT":
        raise InvalidArgumentError(
            "[REF_DEFAULT_VALUE_IS_NOT_ALLOWED_IN_PARTITION] PARTITION does not take DEFAULT",
            found=f"{name} = DEFAULT",
            expected="a value, or DEFAULT in the query",
        )
    return name, value


def fixed_values(partition: list[tuple[str, str | None]], table: DeltaTable) -> dict[str, str]:
    """Returns the columns for which PARTITION has a value, as the schema spells them, with SQL that casts the
    value to their type."""
    columns = {name.lower(): name for name in table.metadata.partition_columns}
    names = [name.lower() for name, _ in partition]
    if twice := [name for name, _ in partition if names.count(name.lower()) > 1]:
        raise InvalidArgumentError("PARTITION names a column twice", found=twice[0])
    if unknown := [name for name, _ in partition if name.lower() not in columns]:
        error = SchemaMismatchError(
            "PARTITION takes partition columns",
            found=[name for name, _ in partition],
            expected=list(columns.values()),
        )
        raise error.with_values(column=unknown[0])
    values = {columns[name.lower()]: value for name, value in partition if value is not None}
    return {
        name: f"CAST({value} AS {cast_type(table.schema.field(name).type)})" for name, value in values.items()
    }


def _equal_to(value: str) -> str:
    return "IS NULL" if value.upper().startswith("CAST(NULL AS ") else f"= {value}"


def _lists_columns(reader: Reader) -> bool:
    """True if the next bracket contains a list of columns and no query."""
    if not reader.at("(") or reader.position + 1 == len(reader.tokens):
        return False
    is_query = opens_query(reader.tokens, reader.position)
    return not is_query and reader.tokens[reader.position + 1].text != "("


def _filled(schema: Schema, listed: tuple[str, ...] | None) -> tuple[str, ...]:
    if listed is None:
        return tuple(schema.names)
    names = tuple(schema.field(name).name for name in listed)
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise SchemaMismatchError(
            "a column is listed twice", where="INSERT", found=twice[0], expected="each column once"
        )
    return names


def _with_defaults(text: str, target: _Target, schema: Schema, tables: Tables) -> tuple[str, set[str]]:
    """Replaces DEFAULT in `VALUES (1, DEFAULT), ...` and `SELECT 1, DEFAULT ...` by the defaults of the
    columns. Returns the text, and the columns that the table must compute, which have DEFAULT in every row.
    Any other query is returned unchanged."""
    reader = Reader(text)
    rows = _rows_of_values(reader) if reader.at("VALUES", "(") else _list_of_select(reader)
    edits: list[tuple[int, int, str]] = []
    computed: Counter[str] = Counter()
    for row in rows:
        for column, (token, value) in zip(target.columns, row, strict=False):
            computed[column] += is_left_to_table(value, schema, quote_name(column))
            if value.upper() == "DEFAULT":
                edits.append((token.start, token.end, f"({defaulted(value, schema, quote_name(column))})"))
    has_default = bool(edits) or any(has_default_inside(value) for _, value in chain(*rows))
    if not has_default or (not reader.at("VALUES") and _has_column_default(text, tables)):
        return text, set()
    for _, value in chain(*rows):
        refuse_default_inside(value, "SELECT")
    computed += Counter()  # removes columns with the count 0
    if partly := sorted(column for column, count in computed.items() if count < len(rows)):
        raise UnsupportedFeatureError(
            "a column that the table computes must be DEFAULT in all rows or in none", where=partly[0]
        )
    return edited(text, edits), set(computed)


_Item = tuple[Token, str]
"""The first token of a value, and the value's text."""


def _item(reader: Reader, *stops: str) -> _Item:
    first = reader.tokens[min(reader.position, len(reader.tokens) - 1)]
    return first, reader.slice(",", *stops)


def _rows_of_values(reader: Reader) -> list[list[_Item]]:
    """Returns the values of `VALUES (...), (...)`, without moving the cursor. Raises InvalidArgumentError for
    DEFAULT in an expression: there is no column that it could be."""
    start = reader.position
    reader.expect("VALUES")
    rows = []
    while reader.at("("):
        rows.append(reader.bracketed(lambda: _item(reader)))
        if not reader.accept(","):
            break
    for _, value in chain(*rows):
        refuse_default_inside(value, "VALUES")
    reader.position = start
    return rows


def _list_of_select(reader: Reader) -> list[list[_Item]]:
    """Returns the list of a query that is one SELECT, up to the first `*`, as one row; empty for any other
    query. The cursor does not move."""
    start = reader.position
    read_definitions(reader, ("SELECT", "FROM"))
    if reader.at("FROM"):
        reader.slice("SELECT")
    if not reader.accept("SELECT") or "DEFAULT" not in reader.text.upper():
        reader.position = start
        return []
    if not reader.accept("DISTINCT"):
        reader.accept("ALL")
    row = reader.listed(lambda: _item(reader, "FROM", "LATERAL", *_CLAUSES, *_BRANCHES))
    if not reader.done and reader.tokens[reader.position].keyword not in _BRANCHES:
        reader.slice(*_BRANCHES)
    is_one, reader.position = reader.done, start
    return [list(takewhile(lambda item: not item[1].endswith("*"), row))] if is_one else []


def _has_column_default(text: str, tables: Tables) -> bool:
    """True if the query has a meaning without defaults: a table in it has a column named `default`."""
    if not any(token.keyword == "FROM" for token in Reader(text).tokens):
        return False
    try:
        tables.column_names(tables.query(text))
    except Exception:  # of Spark or of the embedded engine; the query with defaults raises its own errors
        return False
    return True


def _without(text: str, target: _Target, computed: set[str]) -> tuple[str, _Target]:
    """Removes the columns that the table computes from a query."""
    kept = tuple(name for name in target.columns if name not in computed)
    if not kept:
        raise UnsupportedFeatureError(
            "a row must have a column that the table does not compute", found=text[:80]
        )
    columns, named = (", ".join(map(quote_name, names)) for names in (kept, target.columns))
    return f"SELECT {columns} FROM ({text}) AS __deltaic_given({named})", replace(target, columns=kept)


def _placed(text: str, target: _Target, table: DeltaTable, where: str, tables: Tables, evolves: bool) -> Any:
    """Runs the query and renames its columns, and the fields of its structs, to those of the table, by
    position. With BY NAME, columns keep their names, and the fields of structs are renamed by position if the
    rows need a cast, as `named_columns` describes."""
    if target.fixed:
        text = (
            f"SELECT *, {', '.join(f'{value} AS {quote_name(name)}' for name, value in target.fixed.items())}"
            f" FROM ({text})"
        )
    rows = tables.query(text)
    widen = is_widening if evolves and table._snapshot.properties.type_widening else None
    if target.by_name:
        given = tables.column_names(rows)
        columns = [table.schema.get(name) for name in given]
        if not evolves and None in columns:
            is_cast = not fit_by_name(tables.fields(rows), columns, widen)
            raise _unknown_column(table.schema, given, where, is_cast)
        _check_given(table.schema, given, tables)
        comes_twice = len({name.lower() for name in given}) < len(given)
        return rows if comes_twice else tables.placed(rows, columns, widen=widen)
    names = tables.column_names(rows)[: -len(target.fixed) or None]
    if target.listed:
        _check_given(table.schema, [*target.columns, *target.fixed], tables)
    fields = [table.schema.field(name) for name in target.columns]
    columns = matched(names, fields, where, listed=target.listed, fixed=len(target.fixed), evolves=evolves)
    columns += [table.schema.field(name) for name in target.fixed]
    return tables.placed(rows, columns, listed=target.listed, widen=widen)


def _unknown_column(schema: Schema, given: Sequence[str], where: str, is_cast: bool) -> SchemaMismatchError:
    """Returns the error of an INSERT ... BY NAME with a column that the table lacks. As in delta-spark, its
    condition depends on whether other columns need a cast (`is_cast`)."""
    unknown = next(name for name in given if schema.get(name) is None)
    names = tuple(schema.names)
    if is_cast and len(given) > len(names):
        error = SchemaMismatchError(
            "INSERT BY NAME has more columns than the table",
            where=where,
            found=f"{len(given)} ({', '.join(given)})",
            expected=f"{len(names)} ({', '.join(names)})",
        )
    elif is_cast:
        error = SchemaMismatchError(
            "INSERT BY NAME has a column that the table lacks",
            found=unknown,
            expected=nearest_names(unknown, names),
        )
    else:
        error = SchemaMismatchError(
            "INSERT BY NAME: the data has a column that the table lacks",
            where=where,
            found=unknown,
            expected=f"{nearest_names(unknown, names)}, or WITH SCHEMA EVOLUTION to add it",
        )
    return error.with_values(columns=names, given=tuple(given))


def _check_given(schema: Schema, given: Sequence[str], tables: Tables) -> None:
    """Raises SchemaMismatchError if an INSERT that names its columns leaves out one that is not computed and
    has no default, and that is NOT NULL or does not become null in this session."""
    if (missing := left_out(schema, given, nullable=not tables.fills_missing)) is not None:
        kind = " that is NOT NULL and" if tables.fills_missing else " that"
        raise SchemaMismatchError(f"INSERT leaves out a column{kind} has no default", where=missing)
