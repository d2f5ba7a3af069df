"""Derives conditions on generated partition columns from conditions on their source columns (PROTOCOL.md,
"Generated Columns").

`ts >= '2024-03-05'` selects partitions of `year int GENERATED ALWAYS AS (year(ts))` with `year >= 2024`. The
log does not record the time zone of a writer's session, so conditions that depend on it are widened by the
largest offset from UTC. A partition whose value is null is always read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import Any, TypeAlias

from sqlglot import exp

from deltaic.errors import DeltaError
from deltaic.planning.bounds import FURTHEST_ZONE, function_of
from deltaic.planning.literals import instant, value_text
from deltaic.protocol.schema import DataType, Field, Schema
from deltaic.spark_sql.parsing import parse

Json: TypeAlias = dict[str, Any]

# Patterns of `date_format` whose texts sort like the timestamps: units of fixed width from the year
# downwards.
_PATTERN = re.compile(r"yyyy(-?MM(-?dd(-?HH)?)?)?")
_UNITS: dict[str, Callable[[datetime], str]] = {
    "yyyy": lambda moment: f"{moment.year:04}",
    "MM": lambda moment: f"{moment.month:02}",
    "dd": lambda moment: f"{moment.day:02}",
    "HH": lambda moment: f"{moment.hour:02}",
}
# Upper bound of the time from a truncated value to the value, by the unit of `trunc` and `date_trunc`.
_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), timedelta(days=366)),
    "QUARTER": timedelta(days=92),
    **dict.fromkeys(("MONTH", "MON", "MM"), timedelta(days=31)),
    "WEEK": timedelta(days=7),
    **dict.fromkeys(("DAY", "DD"), timedelta(days=1)),
    "HOUR": timedelta(hours=1),
}
_PARTS = ("year", "month", "day", "hour")
_MOST_VALUES = 100
"""Maximum values of an IN list that are translated one by one; a longer list is treated as the range of its
values."""


@dataclass(frozen=True)
class Interval:
    """Range of values that a condition allows for a column. `low`, `high`: both inclusive, as literals of the
    column's type; None: unbounded."""

    low: str | None = None
    high: str | None = None

    def __bool__(self) -> bool:
        return self.low is not None or self.high is not None


@dataclass(frozen=True)
class Rule:
    """A partition column that is generated from one other column, `base`.

    `span`: converts an interval of `base` to predicates on the partition column.
    `part`: the part of the calendar that the column is, one of _PARTS; None for any other column."""

    column: str
    base: str
    base_type: DataType
    span: Callable[[Interval], list[Json]]
    part: str | None = None

    def of(self, interval: Interval) -> list[Json]:
        """Returns predicates on the partition column that hold for every row whose base is in `interval`."""
        null = {"op": "is_null", "column": [self.column]}
        try:
            return [{"op": "or", "args": [predicate, null]} for predicate in self.span(interval)]
        except (ValueError, OverflowError):  # Python's dates end with the year 9999
            return []


@dataclass(frozen=True)
class GenerationRules:
    """Rules by which a table's conditions on source columns prune its generated partition columns."""

    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, schema: Schema, partition_columns: Sequence[str]) -> GenerationRules:
        fields = [schema.field(name) for name in partition_columns]
        return cls(tuple(rule for field in fields if (rule := _rule(field, schema)) is not None))

    def derive(self, conjuncts: Iterable[Json]) -> Json | None:
        """Returns a predicate on the generated columns that is true for every row for which all `conjuncts`
        are true; None if the rules give none."""
        if not self.rules:
            return None
        args = [arg for node in conjuncts for arg in _flat(node)]
        derived = [part for node in args if (part := self._special(node)) is not None]
        for base, base_type in dict.fromkeys((rule.base, rule.base_type) for rule in self.rules):
            interval = _interval([node for node in args if node.get("column") == [base]], base_type)
            if interval:
                rules = [rule for rule in self.rules if rule.base == base]
                derived += [predicate for rule in rules for predicate in rule.of(interval)]
                derived += _calendar(
                    {rule.part: rule.column for rule in rules if rule.part}, interval, base_type
                )
        return derived[0] if len(derived) == 1 else {"op": "and", "args": derived} if derived else None

    def _special(self, node: Json) -> Json | None:
        """Derives a predicate of an OR, an IN list or IS NULL, which no interval describes; else None."""
        if node["op"] == "or":
            sides = [self.derive([side]) for side in node["args"]]
            return None if None in sides else {"op": "or", "args": sides}
        if node["op"] == "in" and len(node["literals"]) <= _MOST_VALUES:
            return self._special(
                {
                    "op": "or",
                    "args": [{"op": "=", "column": node["column"], "literal": it} for it in node["literals"]],
                }
            )
        if node["op"] == "is_null":
            nulls = [
                {"op": "is_null", "column": [rule.column]}
                for rule in self.rules
                if [rule.base] == node["column"]
            ]
            return {"op": "and", "args": nulls} if nulls else None
        return None


_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _flat(node: Json) -> Iterable[Json]:
    """Splits a condition at its ANDs. A NOT moves inwards: `NOT (a OR b < 1)` becomes `NOT a` and `b >=
    1`."""
    if node["op"] == "not":
        arg = node["arg"]
        if arg["op"] in _NEGATED:
            return [{**arg, "op": _NEGATED[arg["op"]]}]
        if arg["op"] in ("and", "or"):
            other = "or" if arg["op"] == "and" else "and"
            return _flat({"op": other, "args": [{"op": "not", "arg": each} for each in arg["args"]]})
    if node["op"] != "and":
        return [node]
    return [part for arg in node["args"] for part in _flat(arg)]


def _interval(nodes: Sequence[Json], data_type: DataType) -> Interval:
    order = _moment if data_type != "string" else str
    lows: list[str] = []
    highs: list[str] = []
    for node in nodes:
        if node["op"] in ("=", ">", ">=", "starts_with"):
            lows.append(node["literal"])
        if node["op"] in ("=", "<", "<="):
            highs.append(node["literal"])
        if node["op"] == "in" and node["literals"]:
            lows.append(min(node["literals"], key=order))
            highs.append(max(node["literals"], key=order))
    return Interval(max(lows, key=order, default=None), min(highs, key=order, default=None))


def _moment(literal: str) -> datetime:
    """Parses the literal of a date or timestamp to a datetime without a zone; instants (`...Z`) are in
    UTC."""
    return datetime.fromisoformat(literal.removesuffix("Z"))


def _rule(field: Field, schema: Schema) -> Rule | None:
    text = field.metadata.get("delta.generationExpression")
    if not isinstance(text, str) or "\\" in text:
        return None
    try:
        tree = parse(text)
    except DeltaError:
        return None
    while isinstance(tree, exp.Paren):
        tree = tree.this
    read = list(tree.find_all(exp.Column))
    base = schema.get(read[0].name) if len(read) == 1 and len(read[0].parts) == 1 else None
    if base is None:
        return None
    span = _text_span(tree, field) if base.type == "string" else _time_span(tree, field, base.type)
    unit = found[0] if (found := function_of(tree)) is not None else None
    # the unit "day" is a whole date
    part = "day" if unit == "dayofmonth" else unit if unit != "day" else None
    return None if span is None else Rule(field.name, base.name, base.type, span, part)


def _calendar(columns: Mapping[str, str], interval: Interval, base_type: DataType) -> list[Json]:
    """Compares columns of the year, month, day and hour together: from 2024-03-10 on, `year > 2024 OR year =
    2024 AND (month > 3 OR month = 3 AND day >= 10)`. `columns`: name of the column of each part."""
    chain = [(part, columns[part]) for part in takewhile(columns.__contains__, _PARTS)]
    if len(chain) < 2:
        return []
    try:
        ends = zip((">", "<"), _clock(interval, base_type), strict=True)
        sides = [_ordered(op, chain, moment) for op, moment in ends if moment is not None]
    except OverflowError:
        return []
    nulls: list[Json] = [{"op": "is_null", "column": [column]} for _, column in chain]
    return [{"op": "or", "args": [side, *nulls]} for side in sides]


def _ordered(op: str, chain: Sequence[tuple[str, str]], moment: datetime) -> Json:
    (part, column), *rest = chain
    compared: Json = {
        "op": op if rest else f"{op}=",
        "column": [column],
        "literal": str(getattr(moment, part)),
    }
    if not rest:
        return compared
    return {
        "op": "or",
        "args": [compared, {"op": "and", "args": [{**compared, "op": "="}, _ordered(op, rest, moment)]}],
    }


def _between(column: str, low: str | None, high: str | None) -> list[Json]:
    sides = ((">=", low), ("<=", high))
    return [
        {"op": op, "column": [column], "literal": literal} for op, literal in sides if literal is not None
    ]


def _text_span(tree: exp.Expr, field: Field) -> Callable[[Interval], list[Json]] | None:
    """Returns the span of a partition column that is generated as the text column itself, or as its first
    characters: `substring(name, 1, 2)`."""
    length: int | None = None
    if type(tree) is exp.Substring and isinstance(tree.this, exp.Column):
        start, count = tree.args.get("start"), tree.args.get("length")
        if not (
            isinstance(start, exp.Literal)
            and start.this in ("0", "1")
            and isinstance(count, exp.Literal)
            and not count.is_string
            and str(count.this).isdecimal()
        ):
            return None
        length = int(count.this)
    elif not isinstance(tree, exp.Column):
        return None
    if field.type != "string":
        return None
    cut = slice(None, length)
    return lambda at: _between(
        field.name, at.low if at.low is None else at.low[cut], at.high if at.high is None else at.high[cut]
    )


def _clock(at: Interval, base_type: DataType) -> tuple[datetime | None, datetime | None]:
    """Returns the earliest and the latest local time that the writer's session may have computed with."""
    blur = FURTHEST_ZONE if base_type == "timestamp" else timedelta()
    return (
        None if at.low is None else _moment(at.low) - blur,
        None if at.high is None else _moment(at.high) + blur,
    )


def _time_span(tree: exp.Expr, field: Field, base_type: DataType) -> Callable[[Interval], list[Json]] | None:
    if base_type not in ("date", "timestamp", "timestamp_ntz"):
        return None

    def texts(write: Callable[[datetime], str]) -> Callable[[Interval], list[Json]]:
        return lambda at: _between(
            field.name, *(None if moment is None else write(moment) for moment in _clock(at, base_type))
        )

    if isinstance(tree, exp.Column):
        return (lambda at: _between(field.name, at.low, at.high)) if field.type == base_type else None
    if (found := function_of(tree)) is not None and isinstance(found[1], exp.Column):
        unit = found[0]
        if unit == "day":
            return texts(lambda moment: value_text(moment.date())) if field.type == "date" else None
        if field.type not in ("integer", "long", "short"):
            return None
        if unit == "year":
            return texts(lambda moment: str(moment.year))
        return lambda at: _part(field.name, unit, *_clock(at, base_type))
    if isinstance(tree, exp.Anonymous) and len(tree.expressions) == 2:
        return _two_arguments(tree, field, base_type, texts)
    return None


def _part(column: str, unit: str, low: datetime | None, high: datetime | None) -> list[Json]:
    """Returns bounds of a month, day or hour, if all larger units of both ends are equal: from 2024-03-05 to
    2024-05-01 the month is between 3 and 5, and the day has no bounds."""
    index = _PARTS.index("day" if unit == "dayofmonth" else unit)
    if (
        low is None
        or high is None
        or any(getattr(low, part) != getattr(high, part) for part in _PARTS[:index])
    ):
        return []
    return _between(column, str(getattr(low, _PARTS[index])), str(getattr(high, _PARTS[index])))


def _two_arguments(
    tree: exp.Anonymous,
    field: Field,
    base_type: DataType,
    texts: Callable[[Callable[[datetime], str]], Callable[[Interval], list[Json]]],
) -> Callable[[Interval], list[Json]] | None:
    name, (first, second) = tree.name.lower(), tree.expressions
    column, literal = (second, first) if name == "date_trunc" else (first, second)
    if not isinstance(column, exp.Column) or not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    if name == "date_format" and field.type == "string" and _PATTERN.fullmatch(literal.this):
        plain = texts(
            lambda moment: re.sub("yyyy|MM|dd|HH", lambda unit: _UNITS[unit[0]](moment), literal.this)
        )
        # Years after 9999 are written with a sign (+12024), which sorts before the digits.
        signed: Json = {"op": "starts_with", "column": [field.name], "literal": "+"}
        return lambda at: [{"op": "or", "args": [predicate, signed]} for predicate in plain(at)]
    length = _TRUNCATED.get(literal.this.upper())
    if length is None:
        return None
    if name == "trunc" and field.type == "date":
        return lambda at: _truncated(
            field.name, texts(lambda moment: value_text(moment.date()))(at), length, _shift_day
        )
    if name == "date_trunc" and field.type == base_type and base_type != "date":
        # The writer truncated in local time, in which a change to daylight saving time may lie: one day more.
        return lambda at: _truncated(
            field.name, _between(field.name, at.low, at.high), length + timedelta(days=1), _shift_time
        )
    return None


def _truncated(
    column: str, nodes: list[Json], length: timedelta, shift: Callable[[str, timedelta], str]
) -> list[Json]:
    """Moves lower bounds back by `length`, as a truncated value lies less than `length` before the value."""
    return [
        {**node, "literal": shift(node["literal"], length)} if node["op"] == ">=" else node for node in nodes
    ]


def _shift_day(literal: str, length: timedelta) -> str:
    return value_text(date.fromisoformat(literal) - length)


def _shift_time(literal: str, length: timedelta) -> str:
    moved = _moment(literal) - length
    return instant(moved) if literal.endswith("Z") else value_text(moved)
