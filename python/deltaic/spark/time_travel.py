"""Parses the time travel of a table in a Spark query: VERSION AS OF and TIMESTAMP AS OF."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.sql.tokens import Reader

_OPERATORS = ("+", "-", "*", "/", "%", "DIV", "||")
_UNITS = frozenset(
    [
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "NANOSECOND",
    ]
)
_KINDS = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "timestamp",
    "SYSTEM_TIME": "timestamp",
}
"""First word of time travel (`VERSION AS OF 3`) -> what the value is."""


def time_travel(reader: Reader) -> tuple[str, str] | None:
    """Reads [FOR] VERSION | TIMESTAMP AS OF value after a table's name. Returns "version" or "timestamp", and
    the value; None if the table's name has no time travel."""
    start = reader.position
    reader.accept("FOR")
    for word, kind in _KINDS.items():
        if reader.accept(word, "AS", "OF"):
            return kind, _value(reader)
    reader.position = start
    return None


def check_no_range(options: Mapping[str, str]) -> None:
    """Raises InvalidArgumentError for options of a table with time travel that are another time travel or a
    change feed. Other options have no effect."""
    given = {name.lower(): value for name, value in options.items()}
    if given.keys() & {"versionasof", "timestampasof"}:
        raise InvalidArgumentError(
            "[MULTIPLE_TIME_TRAVEL_SPEC] time travel is given both in the query and as an option"
        )
    if "true" not in (given.get(name, "").lower() for name in ("readchangefeed", "readchangedata")):
        return
    starts = [given[name] for name in ("startingversion", "startingtimestamp") if name in given]
    if not starts:
        raise InvalidArgumentError("a change feed needs a first version or timestamp")
    raise InvalidArgumentError(
        "a change data feed and time travel exclude each other", found=starts[0], expected="endingVersion"
    )


def _value(reader: Reader) -> str:
    """Reads a version or time: operands with operators between them. No clause of a query begins with an
    operator, so the value ends at the first other token."""
    first = reader.position
    _operand(reader)
    while any(reader.accept(operator) for operator in _OPERATORS):
        _operand(reader)
    return reader.text[reader.tokens[first].start : reader.tokens[reader.position - 1].end]


def _operand(reader: Reader) -> None:
    """Reads a literal, a parameter marker, a name, a call, or an expression in brackets."""
    while reader.accept("-") or reader.accept("+"):
        pass
    if reader.at("INTERVAL"):
        _interval(reader)
        return
    any(reader.accept(word) for word in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE"))
    reader.accept(":")  # begins the marker `:name`
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
            "a version or time of this form is not supported",
            found=token.text,
            expected="a literal, or an expression in brackets",
        )


def _interval(reader: Reader) -> None:
    """Reads INTERVAL 1 DAY 2 HOURS, INTERVAL '1 day', INTERVAL '1:30' HOUR TO MINUTE or INTERVAL (x) DAY."""
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
