"""Finds the Delta tables in a Spark query: delta.`path`, names of the session catalog, temporary views with
a version or time, permanent views over Delta tables, and table_changes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.plan.literal import col
from deltaic.spark.builders import FORMATS
from deltaic.spark.named_tables import (
    SESSION_CATALOG,
    ViewQuery,
    is_in_catalog,
    is_temporary_view,
    naming,
    parsed,
    path_in_catalog,
    query_of_view,
    schema_and_name,
)
from deltaic.spark.patches import spark_sql
from deltaic.spark.table_positions import ENDS_FROM, QUERY, Clauses, Definition, definitions_of, is_name
from deltaic.spark.time_travel import check_no_range, time_travel
from deltaic.spark.views import path_of
from deltaic.sql.create import read_properties
from deltaic.sql.names import Name
from deltaic.sql.tokens import Reader
from deltaic.sql_text import edited

_CHANGES = ("table_changes", "table_changes_by_path")
"""Table functions whose first argument names a Delta table: by name, and by path."""
_NO_ALIAS = ENDS_FROM | {
    *(
        "ANTI",
        "ASOF",
        "CROSS",
        "FULL",
        "INNER",
        "INSERT",
        "JOIN",
        "LATERAL",
        "LEFT",
        "NATURAL",
        "ON",
        "PIVOT",
        "RIGHT",
        "SEMI",
        "UNPIVOT",
    ),
    *("TABLESAMPLE", "USING", "WHEN"),
}
"""Words after a table that cannot be its alias."""
_BEFORE_TABLE_QUERY = QUERY | {
    "(",
    "AS",
    "UNION",
    "ALL",
    "DISTINCT",
    "EXCEPT",
    "MINUS",
    "INTERSECT",
    "INSERT",
    ")",
}
"""Words after which `TABLE name` is a query (`INSERT INTO t TABLE s`) and not part of a statement (`DROP
TABLE s`)."""


@dataclass(frozen=True)
class Reference:
    """The part of a text, from `start` to `end`, that names a Delta table.

    `version`, `timestamp`: the time travel; `timestamp` is SQL. With neither, the newest version is read.
    `is_marked`: True if the version or timestamp has parameter markers, so that it is known only after they
    are filled in.
    `by_path`: True if the text names the table as delta.`path`.
    `view`: a permanent view over Delta tables; `path` is empty then.
    `alias`: if the text gives the table no alias, the name by which the query may qualify its columns.
    `parts`: schema and name of a table or view of the session catalog; empty for a path.
    `changes`: the arguments of table_changes after the table's name.
    `is_query`: True if the text is the query `TABLE name`.
    `is_sampled`: True if TABLESAMPLE follows.
    `stream`: the options of STREAM, with which the table is a streaming source; else None.
    `options`: the options of a read, as in `FROM t WITH (versionAsOf = 3)`.
    """

    start: int
    end: int
    path: str
    version: int | None = None
    timestamp: str | None = None
    is_marked: bool = False
    by_path: bool = True
    view: ViewQuery | None = None
    alias: str | None = None
    parts: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    is_query: bool = False
    is_sampled: bool = False
    stream: tuple[tuple[str, str], ...] | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_newest(self) -> bool:
        """True for the rows of a table at its newest version."""
        others = (self.version, self.timestamp, self.stream)
        is_read_as_it_is = not self.changes and not self.options
        return bool(self.path) and is_read_as_it_is and others == (None, None, None)


def references(reader: Reader, spark: Any) -> list[Reference]:
    """Returns the references of a whole text, in their order. The cursor does not move."""
    whole = Reader(reader.text)
    if whole.at("SHOW"):  # has no query; its FROM names a schema
        return []
    if whole.accept("DESCRIBE") or whole.accept("DESC"):
        if (column_of_view := _described(whole, spark)) is not None:
            return [column_of_view]
        whole.position = 0
    clauses, definitions = Clauses(), definitions_of(whole)
    result: list[Reference] = []
    while not whole.done:
        first, may_be_table = whole.position, clauses.may_name_table(whole)
        clauses.update(whole)
        if may_be_table and (reference := _reference(whole, spark, definitions)) is not None:
            reference = replace(reference, is_sampled=whole.at("TABLESAMPLE"))
            if first and whole.tokens[first - 1].keyword == "TABLE" and reference.alias is not None:
                reference = replace(reference, start=whole.tokens[first - 1].start, is_query=True)
            result.append(reference)
        else:
            whole.position += 1
    return result


def view_over_delta(spark: Any, parts: Sequence[str]) -> ViewQuery | None:
    """Returns the permanent view with this name, if it reads Delta tables, itself or through other views."""
    view = query_of_view(spark, parts)
    return view if view is not None and references_of_view(view, spark) else None


def _described(reader: Reader, spark: Any) -> Reference | None:
    """Returns the reference of DESCRIBE [TABLE] [EXTENDED | FORMATTED] view column; None for other
    statements. The cursor is behind DESCRIBE."""
    reader.accept_option("TABLE")
    if not reader.accept_option("EXTENDED"):
        reader.accept_option("FORMATTED")
    if reader.done or (token := reader.tokens[reader.position]).kind not in ("word", "quoted"):
        return None
    parts = reader.dotted()
    end = reader.tokens[reader.position - 1].end
    if reader.done or reader.at("AS") or reader.at("PARTITION"):
        return None
    view = view_over_delta(spark, parts)
    return None if view is None else Reference(token.start, end, "", by_path=False, view=view)


def references_of_view(view: ViewQuery, spark: Any) -> list[Reference]:
    """Returns the references of a view's query."""
    return references(Reader(text_of_view(view, spark)), spark)


def text_of_view(view: ViewQuery, spark: Any) -> str:
    """Returns a view's query, in which each table and permanent view has its catalog and schema: a temporary
    view of its name, the session's current schema and its current catalog do not matter then."""
    whole = Reader(view.text)
    clauses, definitions = Clauses(), definitions_of(whole)
    edits: list[tuple[int, int, str]] = []
    while not whole.done:
        token = whole.tokens[whole.position]
        may_be_table = clauses.may_name_table(whole) and token.kind in ("word", "quoted")
        clauses.update(whole)
        if not may_be_table:
            whole.position += 1
            continue
        parts = whole.dotted()
        if whole.at("("):
            if len(parts) == 1 and parts[0].lower() == _CHANGES[0]:
                edits += _qualified_argument(whole, view, spark)
            continue
        is_defined = len(parts) == 1 and any(each.hides(parts[0], token.start) for each in definitions)
        if not is_defined and (missing := _missing_parts(parts, view, spark)):
            edits.append((token.start, token.start, missing))
    return edited(view.text, edits)


def _missing_parts(parts: Sequence[str], view: ViewQuery, spark: Any) -> str:
    """Returns the catalog and schema that a name in a view's query does not have, each with a dot; "" for a
    name that is not that of a table or permanent view."""
    missing = (SESSION_CATALOG, view.schema)[: max(0, 3 - len(parts))]
    is_known = bool(missing) and is_in_catalog(spark, (*missing, *parts))
    return "".join(f"{col(each)}." for each in missing) if is_known else ""


def _qualified_argument(reader: Reader, view: ViewQuery, spark: Any) -> list[tuple[int, int, str]]:
    """Returns the edit that gives the table of table_changes('table', …) its catalog and schema."""
    token = reader.tokens[reader.position + 1]
    name = parsed(Reader(token.text).string()) if token.kind == "string" else None
    missing = "" if name is None else _missing_parts(name.parts, view, spark)
    start = token.start + len(token.text) - len(token.text.lstrip("rR")) + 1  # behind the quote
    return [(start, start, missing)] if missing else []


def spliced(text: str, names: Mapping[Reference, str], functions: Container[str] = ()) -> str:
    """Replaces each reference in the text by a name, and each column qualifier that is a path by the same
    name: delta.`path`.x and `path`.x become name.x. `functions`: names of table functions, which are called
    (`name()`)."""
    reader = Reader(text)
    aliases = _aliases(reader, names)
    edits = {
        each.start: (each.start, each.end, _replacement(name, each, aliases.get(each), name in functions))
        for each, name in names.items()
    }
    for qualifiers in (_qualifiers(reader, names), _long_qualifiers(reader, names, aliases)):
        edits |= {edit[0]: edit for edit in qualifiers}
    return edited(text, edits.values())


def _aliases(reader: Reader, names: Mapping[Reference, str]) -> dict[Reference, str]:
    """Returns the alias that each reference without one gets: the table's own name. Tables of two schemas may
    have the same name, as in `FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE a.t.x = b.t.x)`. Each of them is
    its own alias then, unless the text also has the qualifier `t`."""
    result = {each: each.alias for each in names if each.alias is not None}
    for alias in {alias.lower() for alias in result.values()}:
        same = [each for each in result if result[each].lower() == alias]
        if len({_lower(each.parts) for each in same}) > 1 and not _is_qualifier(reader, alias):
            result |= {each: names[each] for each in same}
    return result


def _is_qualifier(reader: Reader, name: str) -> bool:
    """True if a name of several parts begins with `name`."""
    tokens = reader.tokens
    return any(
        token.name.lower() == name and after.text == "." and (index == 0 or tokens[index - 1].text != ".")
        for index, (token, after) in enumerate(pairwise(tokens))
    )


def _lower(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _replacement(name: str, reference: Reference, alias: str | None, is_function: bool) -> str:
    suffix = "" if alias is None or alias == name else f" AS {col(alias)}"
    text = f"{name}{'()' if is_function else ''}{suffix}"
    if reference.is_query:  # TABLE takes no alias
        return f"SELECT * FROM {text}"
    # TABLESAMPLE takes a name or an expression in brackets
    return f"({text})" if reference.is_sampled and text != name else text


def _qualifiers(reader: Reader, names: Mapping[Reference, str]) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and replacement of each qualifier that is a path. If several references have the
    path, the qualifier is ambiguous and stays, so that Spark raises its error."""
    paths = [reference.path for reference in names if reference.by_path]
    name_by_path = {
        reference.path: name
        for reference, name in names.items()
        if reference.by_path and paths.count(reference.path) == 1
    }
    inside = [(reference.start, reference.end) for reference in names]
    tokens = reader.tokens
    for index, token in enumerate(tokens[:-2]):
        if (
            token.kind != "quoted"
            or tokens[index + 1].text != "."
            or any(start <= token.start < end for start, end in inside)
        ):
            continue
        name = name_by_path.get(token.name)
        if name is None:
            continue
        whole = index > 1 and tokens[index - 1].text == "." and tokens[index - 2].text.lower() in FORMATS
        if whole or index == 0 or tokens[index - 1].text != ".":
            yield tokens[index - 2 if whole else index].start, token.end, name


def _long_qualifiers(
    reader: Reader, names: Mapping[Reference, str], aliases: Mapping[Reference, str]
) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and replacement (the alias) of each qualifier `schema.table` or
    `spark_catalog.schema.table` of a column or `*`. A qualifier stays if its alias is that of two tables."""
    long = {
        qualifier: alias
        for each, alias in aliases.items()
        if each.parts
        for qualifier in (_lower(each.parts), (SESSION_CATALOG, *_lower(each.parts)))
        if all(
            _lower(other.parts) == _lower(each.parts)
            for other, name in aliases.items()
            if name.lower() == alias.lower()
        )
    }
    inside = [(reference.start, reference.end) for reference in names]
    tokens = reader.tokens
    for index, token in enumerate(tokens):
        if (index and tokens[index - 1].text == ".") or any(
            start <= token.start < end for start, end in inside
        ):
            continue
        for size in (3, 2):
            part = tokens[index : index + 2 * size]
            alias = long.get(tuple(each.name.lower() for each in part[::2]))
            if alias is not None and len(part) == 2 * size and all(dot.text == "." for dot in part[1::2]):
                yield token.start, part[-2].end, col(alias)
                break


def _reference(reader: Reader, spark: Any, definitions: list[Definition]) -> Reference | None:
    """Reads a reference at the cursor, and moves the cursor behind it. Returns None, and does not move the
    cursor, if the table is not a Delta table. `definitions`: the names that WITH defines in the text."""
    first = reader.position
    token = reader.tokens[first]
    if token.kind not in ("word", "quoted"):
        return None
    if token.keyword == "STREAM" and (stream := _stream(reader, spark)) is not None:
        return stream
    before = [each.keyword for each in reader.tokens[max(first - 2, 0) : first]]
    follows_table = before[-1:] == ["TABLE"]
    # False for DROP TABLE name
    by_name = not follows_table or first < 2 or before[0] in _BEFORE_TABLE_QUERY
    # False for the argument of a function, f(TABLE name)
    qualifies = not follows_table or (by_name and before[0] != "(")
    parts = reader.dotted()
    by_name = by_name and not (
        len(parts) == 1 and any(each.hides(parts[0], token.start) for each in definitions)
    )
    if parts[-1].lower() in _CHANGES and len(parts) == 1 and reader.at("("):
        return _changes(reader, spark, token.start, by_path=parts[-1].lower() != _CHANGES[0])
    by_path = len(parts) == 2 and parts[0].lower() in FORMATS
    travel = time_travel(reader)
    options = _options(reader)
    if travel is not None:
        check_no_range(dict(options))
    end = reader.tokens[reader.position - 1].end
    if by_path or travel is not None:
        path = path_of(spark, Name(("delta", parts[1]) if by_path else parts))
    else:  # not `path_of`: Spark reads temporary views itself
        path = path_in_catalog(spark, parts) if by_name and not reader.at("(") else None
    alias = None if by_path or not qualifies or _alias_follows(reader) else parts[-1]
    if path is None:
        may_be_view = by_name and travel is None and not options and not reader.at("(")
        view = view_over_delta(spark, parts) if may_be_view else None
        if view is not None:
            whole_name = schema_and_name(spark, parts)
            return Reference(token.start, end, "", by_path=False, view=view, alias=alias, parts=whole_name)
        reader.position = first
        return None
    whole_name = () if by_path else schema_and_name(spark, parts)
    if travel is None:
        return Reference(
            token.start, end, path, by_path=by_path, alias=alias, parts=whole_name, options=options
        )
    kind, text = travel
    is_marked = any(each.text in (":", "?") for each in Reader(text).tokens)
    if kind == "timestamp" or is_marked:
        return Reference(
            token.start,
            end,
            path,
            timestamp=text,
            is_marked=is_marked,
            by_path=by_path,
            alias=alias,
            parts=whole_name,
        )
    digits = text.strip("'\"")
    if not digits.isdecimal():
        raise InvalidArgumentError("not a version of a table", found=text, expected="a whole number")
    return Reference(
        token.start, end, path, version=int(digits), by_path=by_path, alias=alias, parts=whole_name
    )


def _stream(reader: Reader, spark: Any) -> Reference | None:
    """Reads STREAM name or STREAM(name), with options in WITH ('key' = 'value'). Returns None, and does not
    move the cursor, if no Delta table has the name."""
    first = reader.position
    reader.position += 1
    in_brackets = reader.accept("(")
    is_name = not reader.done and reader.tokens[reader.position].kind in ("word", "quoted")
    name = Name(reader.dotted()) if is_name else None
    path = None if name is None else path_of(spark, name)
    if name is None or path is None or (in_brackets and not reader.accept(")")):
        reader.position = first
        return None
    options = _options(reader)
    by_path = name.path is not None
    return Reference(
        reader.tokens[first].start,
        reader.tokens[reader.position - 1].end,
        path,
        by_path=by_path,
        alias=None if by_path or _alias_follows(reader) else name.parts[-1],
        parts=() if by_path else schema_and_name(spark, name.parts),
        stream=options,
    )


def _options(reader: Reader) -> tuple[tuple[str, str], ...]:
    """Reads WITH ('key' = 'value') after a table's name, if it is there."""
    if not reader.at("WITH", "("):
        return ()
    reader.expect("WITH")
    return tuple(read_properties(reader).items())


def _changes(reader: Reader, spark: Any, start: int, *, by_path: bool) -> Reference | None:
    """Reads the arguments of table_changes('name', first[, last]) or table_changes_by_path('path', first[,
    last]), from the opening bracket on."""
    if reader.at("(", ")"):
        raise _wrong_count(by_path, 0)
    inner = Reader(reader.inside("the table and the range of its changes"))
    end = reader.tokens[reader.position - 1].end
    text = _named_by_text(inner, spark, "path" if by_path else "name")
    ends: list[str] = []
    while inner.accept(","):
        ends.append(inner.slice(",", expected="a version or a time"))
    inner.end()
    if not 1 <= len(ends) <= 2:
        raise _wrong_count(by_path, len(ends) + 1)
    name = parsed(text)
    path = text if by_path else None if name is None else name.path or path_in_catalog(spark, name.parts)
    if path is None:
        if name is not None and (is_temporary_view(spark, name.parts) or is_in_catalog(spark, name.parts)):
            raise InvalidArgumentError(
                "[DELTA_TABLE_ONLY_OPERATION] not a Delta table", where=str(name)
            ).with_values(operation=_CHANGES[0])
        error = InvalidArgumentError(
            "no such table or view",
            found=text if name is None else str(name),
            expected="the name of a Delta table",
        )
        if name is not None:
            names = naming(spark, name.parts)
            error.with_values(
                **names, function_path=names["search_path"].replace("[", "[`system`.`builtin`, ", 1)
            )
        raise error
    alias = None if by_path or name is None or _alias_follows(reader) else name.parts[-1]
    return Reference(start, end, path, by_path=False, alias=alias, changes=tuple(ends))


def _named_by_text(arguments: Reader, spark: Any, what: str) -> str:
    """Reads the first argument of a call of table_changes: the text that names the table. `what`: "name" or
    "path"."""
    token = arguments.tokens[arguments.position]
    given = arguments.slice(",", expected="the table")
    if token.kind == "string" and given == token.text:
        return Reader(given).string()
    kind = spark_sql(spark, f"SELECT ({given})").schema[0].dataType
    raise unsupported_argument(kind, f"table {what}", "StringType literal")


def _wrong_count(by_path: bool, count: int) -> InvalidArgumentError:
    """Returns the error for a call of table_changes with `count` arguments."""
    failure = "not enough args" if count < 2 else "too many args"
    return InvalidArgumentError(
        "[INCORRECT_NUMBER_OF_ARGUMENTS] table_changes takes a table, a start and, if wanted, an end",
        found=f"{count} arguments",
    ).with_values(failure=failure, function=_CHANGES[1 if by_path else 0])


def unsupported_argument(kind: Any, argument: str, expected: str) -> InvalidArgumentError:
    """Returns the error for an argument of table_changes whose type `kind` is not allowed. `argument`: which
    argument it is, such as "starting option"."""
    return InvalidArgumentError(
        f"[DELTA_UNSUPPORTED_EXPRESSION] an expression of this type is not supported for the {argument}",
        found=str(kind).replace("()", ""),
        expected=expected,
    ).with_values(argument=argument)


def _alias_follows(reader: Reader) -> bool:
    """True if an alias follows at the cursor."""
    if reader.done:
        return False
    token = reader.tokens[reader.position]
    if token.keyword in ENDS_FROM:
        return is_name(reader, reader.position)
    return token.kind == "quoted" or (token.kind == "word" and token.keyword not in _NO_ALIAS)
