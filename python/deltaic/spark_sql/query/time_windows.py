"""Translates time windows: `window(at, '1 day' [, slide [, start]])` in GROUP BY is a column `window` with
`start` and `end`.

A row is repeated for each window that contains its time, and left out if its time is null: a layer around the
rows unnests a list of windows. Windows begin at 1970-01-01 00:00:00 UTC plus `start` and then every `slide`;
the second argument is their length. `session_window(at, '5 minutes')` gives each row one window, which ends
when no other row follows within five minutes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Field, Struct
from deltaic.spark_sql.casts import cast
from deltaic.spark_sql.nested_values import normalized
from deltaic.spark_sql.query.scopes import Column
from deltaic.spark_sql.values import name, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.sources import Rows
    from deltaic.spark_sql.query.subqueries import QueryTranslator

_UNITS = {"microsecond": 1, "millisecond": 10**3, "second": 10**6, "minute": 60 * 10**6,
          "hour": 3600 * 10**6, "day": 86400 * 10**6, "week": 7 * 86400 * 10**6}  # fmt: skip
_PART = re.compile(r"\s*([+-]?\d+)\s*([a-z]+?)s?(?=\s|$)", re.IGNORECASE)


def with_windows(node: exp.Select, translator: QueryTranslator, rows: Rows) -> exp.Select:
    """Returns the SELECT with a column in place of each call of `window` or `session_window`, and adds a
    layer to the rows that computes this column."""
    calls = [call for call in _calls(node) if len(call.expressions) > 1]
    if not calls:
        return node
    if len({call.sql(dialect="databricks").lower() for call in calls}) > 1:
        raise InvalidArgumentError(
            "[MULTI_TIME_WINDOW_EXPRESSIONS_NOT_SUPPORTED] a SELECT has more than one time window"
        )
    kind = str(calls[0].this).lower()
    column = (
        _session(calls[0], node, translator, rows)
        if kind == "session_window"
        else _generate(calls[0], translator, rows)
    )
    node = node.copy()
    for call in _calls(node):
        if len(call.expressions) > 1:
            call.replace(_known(column))
    if translator.scope.locate([kind]) is None:
        for each in list(node.find_all(exp.Column)):  # `window.start` beside GROUP BY window(...)
            if each.table.lower() == kind and not each.args.get("db"):
                each.replace(exp.Dot(this=_known(column), expression=each.this))
            elif each.name.lower() == kind and not each.table and each.meta.get("column") is None:
                each.replace(_known(column))
    return node


def _known(column: Column) -> exp.Column:
    """Returns a tree that stands for this column, even if other columns have the same name."""
    stand_in = exp.Column(this=exp.to_identifier(column.name, quoted=True))
    stand_in.meta["column"] = column
    return stand_in


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    """Returns the calls of `window` and `session_window` in the SELECT, GROUP BY, HAVING and ORDER BY,
    without those in subqueries."""
    order = node.args.get("order")
    roots = [*node.expressions, node.args.get("group"), node.args.get("having"), order]
    found: list[exp.Anonymous] = []
    for root in roots:
        if root is not None:
            found += [
                each
                for each in root.walk(prune=lambda inner: isinstance(inner, exp.Query))
                if isinstance(each, exp.Anonymous)
                and isinstance(each.this, str)
                and each.this.lower() in ("window", "session_window")
            ]
    return found


def _session(call: exp.Anonymous, node: exp.Select, translator: QueryTranslator, rows: Rows) -> Column:
    """Translates session_window: adds layers to the rows and returns the column with their windows.

    Rows with the same other keys of GROUP BY are in one session if each follows another one within the gap. A
    session ends one gap after its last row. The three layers compute the time, whether the row begins a
    session, and the number of sessions begun so far."""
    if len(call.expressions) != 2:
        raise InvalidArgumentError(
            "[WRONG_NUM_ARGS] session_window takes two arguments", found=len(call.expressions)
        )
    if isinstance(call.expressions[1], exp.Interval):
        raise InvalidArgumentError(
            "the gap of session_window is a text",
            found=call.expressions[1].sql("databricks"),
            expected="'5 minutes'",
        )
    queries, zone = translator.queries, translator.zone
    time = queries.used(translator.value(call.expressions[0]))
    time = time if time.type == "timestamp_ntz" else cast(time, "timestamp", zone)
    gap = _micros(call.expressions[1])
    group = node.args.get("group")
    others = [each for each in (group.expressions if group is not None else ()) if each != call]
    if group is not None and (
        any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets", "all"))
        or call not in group.expressions
    ):
        raise unsupported("session_window beside ROLLUP, CUBE, GROUPING SETS or ALL")
    if any(isinstance(each, exp.Literal) for each in others):
        raise unsupported("session_window beside a position in GROUP BY")
    keys = [(queries.fresh("key"), normalized(queries.used(translator.value(each))).sql) for each in others]
    at, begins, number = (queries.fresh(name) for name in ("at", "begins", "session"))
    if gap > 0:
        rows.where(f"{time.sql} IS NOT NULL")
    else:
        rows.where("false")
    rows.add([(at, f"epoch_us({time.sql})"), *keys])
    column = Column(
        "session_window",
        queries.fresh("window"),
        Struct([Field(side, time.type, True) for side in ("start", "end")]),
        False,
    )
    make = "make_timestamp" if time.type == "timestamp_ntz" else "make_timestamptz"
    pair = f"""struct_pack("start" := {make}({{first}}), "end" := {make}({{last}} + {gap}))"""
    if group is None:
        rows.layer(column.label, pair.format(first=name(at), last=name(at)))
        return column
    parts = ", ".join(name(label) for label, _ in keys)
    each = f"PARTITION BY {parts}" if parts else ""
    rows.layer(
        begins,
        f"CAST(coalesce({name(at)} - lag({name(at)}) OVER ({each} ORDER BY {name(at)}) > {gap}, true) AS"
        " INTEGER)",
    )
    rows.layer(number, f"sum({name(begins)}) OVER ({each} ORDER BY {name(at)} ROWS UNBOUNDED PRECEDING)")
    together = f"OVER (PARTITION BY {', '.join([*(name(label) for label, _ in keys), name(number)])})"
    rows.layer(
        column.label, pair.format(first=f"min({name(at)}) {together}", last=f"max({name(at)}) {together}")
    )
    return column


def _generate(call: exp.Anonymous, translator: QueryTranslator, rows: Rows) -> Column:
    value, *rest = call.expressions
    if len(rest) > 3:
        raise InvalidArgumentError("[WRONG_NUM_ARGS] window takes two to four arguments", found=len(rest) + 1)
    time = translator.queries.used(translator.value(value))
    time = time if time.type == "timestamp_ntz" else cast(time, "timestamp", translator.zone)
    length = _micros(rest[0])
    slide = _micros(rest[1]) if len(rest) > 1 else length
    start = _micros(rest[2]) if len(rest) > 2 else 0
    if not 0 < slide <= length or abs(start) >= slide:
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH] a window of time slides by more than nothing and at most its length, and"
            " starts within its slide",
            found=call.sql(dialect="databricks")[:100],
        )
    at = f"(epoch_us({time.sql}) - {start})"
    last = f"({at} - (({at} % {slide}) + {slide}) % {slide} + {start})"
    make = "make_timestamp" if time.type == "timestamp_ntz" else "make_timestamptz"
    begin = f"({last} - deltaic_w * {slide})"
    pair = f"""struct_pack("start" := {make}({begin}), "end" := {make}({begin} + {length}))"""
    inside = f"{begin} + {length} > epoch_us({time.sql})"
    numbers = f"list_filter(range(0, {-(-length // slide)}), lambda deltaic_w: {inside})"
    windows = f"CASE WHEN {time.sql} IS NOT NULL THEN list_transform({numbers}, lambda deltaic_w: {pair}) END"
    kind = Struct([Field("start", time.type, True), Field("end", time.type, True)])
    column = Column("window", translator.queries.fresh("window"), kind, False)
    rows.layer(column.label, f"unnest({windows})")
    return column


def _micros(tree: exp.Expr) -> int:
    """Returns the number of microseconds of `'1 day 12 hours'` or `INTERVAL 1 DAY`."""
    if isinstance(tree, exp.Interval) and tree.args.get("unit") is not None:
        text = f"{tree.this.name} {tree.args['unit'].name}"
    elif isinstance(tree, exp.Literal) and tree.is_string:
        text = tree.name
    else:
        raise unsupported("a window of time whose length is not a literal")
    text = text.strip().lower().removeprefix("interval ")
    total, end = 0, 0
    while match := _PART.match(text, end):
        if match[2] not in _UNITS:
            raise InvalidArgumentError(
                "[CANNOT_PARSE_INTERVAL] not an interval of days or shorter units", found=text
            )
        total, end = total + int(match[1]) * _UNITS[match[2]], match.end()
    if not end or text[end:].strip():
        raise InvalidArgumentError(
            "[CANNOT_PARSE_INTERVAL] not an interval of days or shorter units", found=text
        )
    return total
