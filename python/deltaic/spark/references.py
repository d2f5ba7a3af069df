"""Where a query of Spark names Delta tables: delta.`path`, and temporary views of tables with a version or time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark.views import path_of
from deltaic.sql.names import Name
from deltaic.sql.tokens import Reader, Token

_FORMATS = ("delta", "deltaic")
_QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_BEFORE_A_TABLE = frozenset({"FROM", "JOIN", ",", "(", "USING"})
_ENDS_FROM = frozenset(
    [
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LIMIT",
        "OFFSET",
        "SELECT",
        "UNION",
        "EXCEPT",
        "MINUS",
        "INTERSECT",
        "WINDOW",
        "QUALIFY",
        "SET",
        "VALUES",
    ]
)
_OPERATORS = ("+", "-", "*", "/", "%", "DIV", "||")
_UNITS = frozenset(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND"])
_KINDS = {"VERSION": "version", "SYSTEM_VERSION": "version", "TIMESTAMP": "moment", "SYSTEM_TIME": "moment"}


@dataclass(frozen=True)
class Reference:
    """One place in a text, from `start` to `end`, that stands for a table: at a version, at a moment (SQL of a time), or the newest.
    `is_marked`: markers of arguments stand in the version or moment, which are known when these are filled in. `by_path`: not a view."""

    start: int
    end: int
    path: str
    version: int | None = None
    moment: str | None = None
    is_marked: bool = False
    by_path: bool = True


def references(reader: Reader, spark: Any) -> list[Reference]:
    """All of them, in their order. The cursor stays where it is."""
    places = Reader(reader.text)
    clauses = _Clauses()
    found: list[Reference] = []
    while not places.done:
        before = places.tokens[places.position - 1] if places.position else None
        table = clauses.holds_table(before)
        clauses.pass_by(places)
        if table and (reference := _reference(places, spark)) is not None:
            found.append(reference)
        else:
            places.position += 1
    return found


def spliced(text: str, names: Mapping[Reference, str]) -> str:
    """The text with each reference replaced by a name, and so what qualifies columns by a path: delta.`path`.column, `path`.column."""
    edits = {reference.start: (reference.end, name) for reference, name in names.items()}
    edits |= {start: (end, name) for start, end, name in _qualifiers(Reader(text), names)}
    pieces: list[str] = []
    copied = 0
    for start, (end, name) in sorted(edits.items()):
        pieces += [text[copied:start], name]
        copied = end
    return "".join(pieces) + text[copied:]


def _qualifiers(reader: Reader, names: Mapping[Reference, str]) -> Iterator[tuple[int, int, str]]:
    """Start, end and the name that takes its place, of each qualifier that is a path. One that several references have is left to Spark."""
    paths = [reference.path for reference in names if reference.by_path]
    known = {reference.path: name for reference, name in names.items() if reference.by_path and paths.count(reference.path) == 1}
    inside = [(reference.start, reference.end) for reference in names]
    tokens = reader.tokens
    for index, token in enumerate(tokens[:-2]):
        if token.kind != "quoted" or tokens[index + 1].text != "." or any(start <= token.start < end for start, end in inside):
            continue
        name = known.get(token.text[1:-1].replace("``", "`"))
        if name is None:
            continue
        whole = index > 1 and tokens[index - 1].text == "." and tokens[index - 2].text.lower() in _FORMATS
        if whole or index == 0 or tokens[index - 1].text != ".":
            yield tokens[index - 2 if whole else index].start, token.end, name


class _Clauses:
    """Which clause a token stands in, bracket by bracket: the same words are columns in one and tables in another."""

    def __init__(self) -> None:
        self._in_from = [False]
        self._is_query = [True]

    def holds_table(self, before: Token | None) -> bool:
        """Whether the next token may begin a table's name."""
        if before is None:
            return False
        word = before.keyword
        return word == "TABLE" or (self._in_from[-1] and word in _BEFORE_A_TABLE)

    def pass_by(self, reader: Reader) -> None:
        """Takes note of the next token."""
        token = reader.tokens[reader.position]
        before = reader.tokens[reader.position - 1].keyword if reader.position else ""
        after = reader.tokens[reader.position + 1].keyword if reader.position + 1 < len(reader.tokens) else ""
        word = token.keyword if before != "." else ""
        if word == "(":
            inherits = self._in_from[-1] and before in _BEFORE_A_TABLE
            self._is_query.append(inherits or after in _QUERY or after == "(")
            self._in_from.append(inherits and after not in _QUERY)
        elif word == ")" and len(self._in_from) > 1:
            self._is_query.pop()
            self._in_from.pop()
        elif (word == "FROM" and self._is_query[-1]) or word in ("JOIN", "USING"):
            self._in_from[-1] = True
        elif word in _ENDS_FROM:
            self._in_from[-1] = False


def _reference(reader: Reader, spark: Any) -> Reference | None:
    """The table that begins at the cursor, with its moment; the cursor then stands behind it. None where it is Spark's."""
    first = reader.position
    token = reader.tokens[first]
    if token.kind not in ("word", "quoted"):
        return None
    parts = reader.dotted()
    by_path = len(parts) == 2 and parts[0].lower() in _FORMATS
    end = reader.tokens[reader.position - 1].end
    moment = _moment(reader)
    path = path_of(spark, Name(("delta", parts[1]) if by_path else parts)) if by_path or moment is not None else None
    if path is None:
        reader.position = first
        return None
    if moment is None:
        return Reference(token.start, end, path)
    kind, text = moment
    end = reader.tokens[reader.position - 1].end
    is_marked = any(each.text in (":", "?") for each in Reader(text).tokens)
    if kind == "moment" or is_marked:
        return Reference(token.start, end, path, moment=text, is_marked=is_marked, by_path=by_path)
    digits = text.strip("'\"")
    if not digits.isdecimal():
        raise InvalidArgumentError("not a version of a table", found=text, expected="a whole number")
    return Reference(token.start, end, path, version=int(digits), by_path=by_path)


def _moment(reader: Reader) -> tuple[str, str] | None:
    """[FOR] VERSION | TIMESTAMP AS OF value, after a table's name: a literal, a call, or a query or expression in brackets."""
    start = reader.position
    reader.accept("FOR")
    for word, kind in _KINDS.items():
        if reader.accept(word, "AS", "OF"):
            return kind, _value(reader)
    reader.position = start
    return None


def _value(reader: Reader) -> str:
    """A version or time: operands with Spark's operators between them. What may follow in a query begins with no operator."""
    first = reader.position
    _operand(reader)
    while any(reader.accept(operator) for operator in _OPERATORS):
        _operand(reader)
    return reader.text[reader.tokens[first].start : reader.tokens[reader.position - 1].end]


def _operand(reader: Reader) -> None:
    """A literal, a marker, a name or call, or an expression in brackets."""
    while reader.accept("-") or reader.accept("+"):
        pass
    if reader.at("INTERVAL"):
        _interval(reader)
        return
    reader.accept("TIMESTAMP") or reader.accept("TIMESTAMP_LTZ") or reader.accept("TIMESTAMP_NTZ") or reader.accept("DATE")
    reader.accept(":")  # of a marker
    if reader.done:
        reader.fail("a version or a time")
    token = reader.tokens[reader.position]
    if token.text == "(":
        reader.inside("a value")
    elif token.kind in ("string", "number") or token.text == "?":
        reader.position += 1
    elif token.kind in ("word", "quoted"):
        reader.dotted()
        if reader.at("(", ")"):
            reader.position += 2
        elif reader.at("("):
            reader.inside("a value")
    else:
        raise UnsupportedFeatureError(
            "a version or time of this form", found=token.text, expected="a literal, or an expression in brackets"
        )


def _interval(reader: Reader) -> None:
    """INTERVAL 1 DAY 2 HOURS, INTERVAL '1 day', INTERVAL '1:30' HOUR TO MINUTE, INTERVAL (x) DAY."""
    reader.expect("INTERVAL")
    while not reader.done:
        start = reader.position
        reader.accept("-") or reader.accept("+")
        if reader.at("("):
            reader.inside("a value")
        elif reader.tokens[reader.position].kind in ("string", "number"):
            reader.position += 1
        else:
            reader.position = start
            return
        if not reader.done and reader.tokens[reader.position].keyword.rstrip("S") in _UNITS:
            reader.position += 1
            if reader.accept("TO"):
                reader.name()
