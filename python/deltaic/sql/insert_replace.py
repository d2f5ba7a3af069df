"""INSERT ... REPLACE USING and REPLACE ON, which replace the rows of the table that match a new row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltaic.commands.replacement import SOURCE, Replacement, check_positions
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.sql.names import Name, Tables
from deltaic.sql.tokens import Reader, requalified
from deltaic.sql_text import QUERY_STARTS, opens_query, quote_name


def read_alias(reader: Reader) -> str | None:
    """[AS] alias, between the name of the table and [BY NAME] REPLACE. None if there is none."""
    if reader.accept("AS"):
        return reader.name()
    ahead = reader.tokens[reader.position : reader.position + 2]
    if len(ahead) < 2 or ahead[0].kind not in ("word", "quoted") or ahead[1].keyword not in ("BY", "REPLACE"):
        return None
    return None if ahead[0].keyword in QUERY_STARTS else reader.name()


def unaliased_query(reader: Reader) -> tuple[str, str | None]:
    """(query) [[AS] alias], or a query without an alias, to the end of the statement. Returns the text of the
    query and the alias (None without one)."""
    start = reader.position
    if not reader.done and opens_query(reader.tokens, start):
        text = reader.inside("a query")
        if not reader.done and reader.tokens[reader.position].keyword != "AS":
            is_alias = len(reader.tokens) == reader.position + 1
        else:
            is_alias = reader.accept("AS")
        if is_alias:
            alias = reader.name()
            reader.end()
            return text, alias
        reader.position = start
    return reader.rest("a query"), None


def alias_length(reader: Reader) -> int:
    """Returns how many tokens at the end of the statement are the alias of a query in brackets: 2 for
    `) AS s`, 1 for `) s`, else 0."""
    ends = reader.tokens[-3:]
    if ends[-1].kind not in ("word", "quoted"):
        return 0
    if len(ends) == 3 and ends[1].keyword == "AS":
        return 2 if ends[0].text == ")" else 0
    return 1 if len(ends) > 1 and ends[-2].text == ")" else 0


def bound(replacement: Replacement, name: Name, source: str | None, tables: Tables) -> Replacement:
    """Returns the replacement with the aliases of the table `name` and of the query in its condition. A
    qualifier of several parts, such as delta.`path`, becomes the alias of the table."""
    target = name.alias or name.parts[-1]
    source = source or SOURCE
    if source.lower() == target.lower():
        raise InvalidArgumentError("the table and the query have the same alias", found=repr(source))
    on = replacement.on
    if on is not None:
        long = {parts: f"{quote_name(target)}." for parts in tables.qualifiers(name) if len(parts) > 1}
        on = requalified(on, long)
    return replace(replacement, on=on, target=target, source=source)


def check_query(replacement: Replacement, table: Schema, columns: Sequence[str]) -> None:
    """Checks a query with these columns, which are inserted by position. Raises InvalidArgumentError if a
    column of REPLACE USING has another position than in the table, and UnsupportedFeatureError for REPLACE ON
    if columns have other names than the table's, as the rows of its condition have the table's names."""
    if replacement.on is None:
        check_positions(replacement.columns, table.names, columns)
        return
    for name, column in zip(columns, table.names, strict=False):
        if name.lower() != column.lower():
            raise UnsupportedFeatureError(
                "REPLACE ON takes by position only columns with the names of the table's",
                found=name,
                expected=f"{column}, or INSERT ... BY NAME REPLACE ON",
            )
