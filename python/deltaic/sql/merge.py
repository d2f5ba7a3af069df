"""MERGE INTO: parses the statement, and calls a method of `Merge` for each clause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deltaic.commands.assignment import unqualified
from deltaic.commands.merge import MergeSpec
from deltaic.engine.source import buffered
from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Schema, split_path
from deltaic.rows.rows import Rows
from deltaic.sql.change import defaulted, is_left_to_table, read_assignment
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.results import counts
from deltaic.sql.subqueries import engine_with
from deltaic.sql.tokens import Reader, requalified
from deltaic.sql_text import quote_name

_CLAUSE_ENDS = ("WHEN",)


def merge(reader: Reader, tables: Tables) -> Rows:
    """MERGE [WITH SCHEMA EVOLUTION] INTO target [[AS] alias] USING source [[AS] alias] ON condition WHEN ...
    THEN ..."""
    reader.expect("MERGE")
    evolution = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = read_name(reader, alias=True)
    reader.expect("USING")
    source, source_alias, source_name = _source(reader, tables)
    alias = target.alias or target.parts[-1]
    is_named = source_name is not None and not target.alias and not source_name.alias
    if is_named and alias.lower() == source_alias.lower():  # tables of two schemas with one name
        alias, source_alias = "__deltaic_target", "__deltaic_source"
    aliases = {target: alias} if source_name is None else {target: alias, source_name: source_alias}
    reader = _with_short_names(reader, aliases, tables)
    reader.expect("ON")
    condition = reader.slice("WHEN", expected="a condition")
    table = tables.table(target)
    spec = MergeSpec(
        source=buffered(source),
        on=condition,
        source_alias=source_alias,
        target_alias=alias,
        schema_mode="merge" if evolution or tables.evolves else None,
    )
    building: Any = table._merging(spec, engine_with(tables, table))
    if reader.done:
        raise InvalidArgumentError(
            "[MERGE_WITHOUT_WHEN] MERGE needs a clause", expected="WHEN MATCHED or WHEN NOT MATCHED"
        )
    unconditional: set[str] = set()
    while not reader.done:
        building = _clause(reader, building, table.schema, alias, unconditional)
    return merge_rows(building.execute())


def merge_rows(metrics: Mapping[str, int]) -> Rows:
    """Returns the result row of MERGE from the metrics of the command."""
    rows = {kind: metrics.get(f"num_target_rows_{kind}", 0) for kind in ("updated", "deleted", "inserted")}
    return counts(
        num_affected_rows=sum(rows.values()), **{f"num_{kind}_rows": number for kind, number in rows.items()}
    )


def _source(reader: Reader, tables: Tables) -> tuple[Any, str, Name | None]:
    """name [VERSION AS OF n] [[AS] alias], or (query) [[AS] alias [(columns)]]. Returns the data, its alias,
    and the name of a table (None for a query)."""
    if reader.at("("):
        text = reader.inside("a query")
        reader.accept("AS")
        alias, rows = (reader.name() if not reader.at("ON") else "__deltaic_s"), tables.query(text)
        return (tables.renamed(rows, reader.bracketed(reader.name)) if reader.at("(") else rows), alias, None
    name: Name = read_name(reader, alias=True, travel=True)
    return tables.rows(name), name.alias or name.parts[-1], name


def _with_short_names(reader: Reader, aliases: Mapping[Name, str], tables: Tables) -> Reader:
    """Returns the rest of the statement with the alias of its table in place of each qualifier of several
    parts: delta.`path`.id becomes `path`.id. `aliases`: alias by table."""
    long = {
        qualifier: f"{quote_name(alias)}."
        for name, alias in aliases.items()
        for qualifier in tables.qualifiers(name)
        if len(qualifier) > 1
    }
    if not long or reader.done:
        return reader
    rest = reader.text[reader.tokens[reader.position].start :]
    return Reader(requalified(rest, long))


def _assigned(
    assignments: Iterable[tuple[tuple[str, ...], str]], schema: Schema, alias: str
) -> list[tuple[str, str]]:
    """Returns (key for `Merge`, SQL of the value) of assignments. DEFAULT becomes the default of the
    column."""
    pairs = []
    for column, value in assignments:
        path = unqualified(column, schema, alias)
        key = ".".join(quote_name(part) for part in column)
        pairs.append((key, defaulted(value, schema, ".".join(quote_name(part) for part in path))))
    return pairs


def _path_of(key: str, schema: Schema, alias: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in unqualified(split_path(key), schema, alias))


def _clause(reader: Reader, building: Any, schema: Schema, alias: str, unconditional: set[str]) -> Any:
    """WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action. `unconditional`: kinds of
    clauses that have had one without a condition, after which none can come."""
    reader.expect("WHEN")
    missing = reader.accept("NOT")
    reader.expect("MATCHED")
    by_source = missing and reader.accept("BY", "SOURCE")
    if missing and not by_source:
        reader.accept("BY", "TARGET")
    kind = "NOT MATCHED BY SOURCE" if by_source else "NOT MATCHED BY TARGET" if missing else "MATCHED"
    if kind in unconditional:
        condition = f"NON_LAST_{kind.replace(' ', '_')}_CLAUSE_OMIT_CONDITION"
        raise InvalidArgumentError(f"[{condition}] only the last WHEN {kind} clause may have no condition")
    where = reader.slice("THEN", expected="a condition") if reader.accept("AND") else None
    if where is None:
        unconditional.add(kind)
    reader.expect("THEN")
    if missing and not by_source:
        return _insert(reader, building, where, schema, alias)
    if reader.accept("DELETE"):
        return (
            building.when_not_matched_by_source_delete(where)
            if by_source
            else building.when_matched_delete(where)
        )
    reader.expect("UPDATE", "SET")
    if not by_source and reader.accept("*"):
        return building.when_matched_update_all(where)
    assignments = reader.listed(lambda: read_assignment(reader, *_CLAUSE_ENDS))
    values = dict(_assigned(assignments, schema, alias))
    if len(values) < len(assignments):
        error = InvalidArgumentError(
            "a column is set twice in one clause", where="MERGE", found=sorted(values)
        )
        paths = [unqualified(column, schema, alias) for column, _ in assignments]
        raise error.with_values(columns=tuple(".".join(path) for path in paths))
    return (
        building.when_not_matched_by_source_update(values, where)
        if by_source
        else building.when_matched_update(values, where)
    )


def _insert(reader: Reader, building: Any, where: str | None, schema: Schema, alias: str) -> Any:
    """INSERT * or INSERT (columns) VALUES (expressions)"""
    reader.expect("INSERT")
    if reader.accept("*"):
        return building.when_not_matched_insert_all(where)
    columns = reader.bracketed(reader.dotted)
    reader.expect("VALUES")
    texts = reader.bracketed(lambda: reader.slice(","))
    if len(columns) != len(texts):
        raise InvalidArgumentError(
            "INSERT needs one value for each column", where="MERGE", found=len(texts), expected=len(columns)
        )
    pairs = list(zip(columns, texts, strict=True))
    explicit = [
        pair
        for pair in pairs
        if len(pair[0]) > 1 or not is_left_to_table(pair[1], schema, quote_name(pair[0][0]))
    ]
    values = _assigned(explicit or pairs, schema, alias)
    if len({_path_of(name, schema, alias) for name, _ in values}) < len(values):
        raise InvalidArgumentError(
            "a column is listed twice in one clause", where="MERGE", found=[name for name, _ in values]
        )
    return building.when_not_matched_insert(dict(values), where)
