"""Expressions for a walk over the list of forms: every form with arguments of every type, limits of types,
nulls, unusual text, literals.

scripts/walk_spark_expressions.py runs them on Spark; test_walk.py has a part of the walk, with Spark's
results.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from spark_cases import Family
from walk_forms import CASTS, LAMBDAS, LITERALS, PAIRS, SINGLES, TRIPLES

from deltaic.spark_sql.functions import registered
from deltaic.spark_sql.functions.registry import FORMS

assert registered  # its import fills the registry of forms

INF, NAN = float("inf"), float("nan")
_UTC = dt.timezone.utc
_PAIR = pa.struct([("p", pa.int32()), ("q", pa.string())])
_DAYS = [
    (2024, 2, 29),
    (1970, 1, 1),
    (1969, 12, 31),
    (1, 1, 1),
    (9999, 12, 31),
    (1500, 3, 1),
    (2024, 12, 31),
    (2023, 1, 31),
]
_MOMENTS = [
    (2024, 3, 10, 7, 30, 0, 0),
    (2024, 11, 3, 6, 30, 15, 250000),
    (2024, 11, 3, 5, 30, 0, 1),
    (1970, 1, 1, 0, 0, 0, 0),
    (1969, 12, 31, 23, 59, 59, 999999),
    (1500, 3, 1, 12, 0, 0, 0),
    (1, 1, 2, 0, 0, 0, 0),
    (9999, 12, 30, 23, 59, 59, 999999),
    (2024, 6, 1, 20, 30, 40, 500000),
]
_NUMBERS = [
    "1",
    "12",
    "-5",
    " 7 ",
    "1.5",
    "-0.0",
    "1e3",
    "",
    "abc",
    "NaN",
    "99999999999",
    "3000000000",
    "true",
    "0x1F",
    "1d",
]
_TIMES = [
    "2024-02-29",
    "2024-03-10 02:30:00",
    "2024-11-03T01:30:00.123",
    "1969-12-31 23:59:59",
    "2023-02-29",
    "12:30:00",
    "2024-6",
    "UTC",
    "Asia/Tokyo",
]
_WORDS = [
    "",
    "a",
    "abc",
    "a,b,,c",
    "Hello World",
    "straße",
    "añb😀c",
    "  x ",
    "year",
    "k",
    "a:1,b:2",
    "%",
    "_b",
    "\\",
    "616263",
    "true",
]

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "y": (pa.int8(), [2, 0, 1, -1, 127, -128, 65]),
    "h": (pa.int16(), [3, 0, 1, -1, 32767, -32768, 300]),
    "i": (pa.int32(), [2, 0, 1, -1, 3, 2147483647, -2147483648, 31, 32, 2024]),
    "j": (pa.int32(), [1, 0, -1, 2, -2, 2147483647, -2147483648, 12, 40]),
    "n": (pa.int32(), [2, 0, 1, -1, 3, -2, 5, 12, 7]),
    "l": (pa.int64(), [5, 0, 1, -1, 2147483648, 9223372036854775807, -9223372036854775808, 1717288240, 33]),
    "f": (
        pa.float32(),
        [
            1.5,
            0.0,
            -0.0,
            0.1,
            -2.5,
            3.4028234663852886e38,
            1.401298464324817e-45,
            INF,
            -INF,
            NAN,
            16777216.0,
            0.35,
            8.345,
        ],
    ),
    "x": (
        pa.float64(),
        [
            2.5,
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.1,
            1.7976931348623157e308,
            5e-324,
            INF,
            -INF,
            NAN,
            1e15,
            1e19,
            -0.5,
            2.675,
            -1.005,
        ],
    ),
    "d": (
        pa.decimal128(10, 2),
        [Decimal(n) for n in ("1.50", "0.00", "1.00", "-2.55", "99999999.99", "-99999999.99", "0.01")],
    ),
    "w": (
        pa.decimal128(38, 18),
        [
            Decimal(n)
            for n in ("1.5", "0", "-0.000000000000000001", "99999999999999999999.999999999999999999")
        ],
    ),
    "g": (
        pa.decimal128(20, 0),
        [Decimal(n) for n in ("3", "0", "-1", "99999999999999999999", "9223372036854775808")],
    ),
    "s": (pa.string(), _NUMBERS + _TIMES),
    "t": (pa.string(), _WORDS),
    "u": (pa.string(), ["b", "", "a", "c", ",", "World", "😀", "ß", "x", "x,y", "%b", ":", "bc"]),
    "p": (pa.bool_(), [True, False]),
    "a": (pa.date32(), [dt.date(*day) for day in _DAYS]),
    "m": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(*moment, tzinfo=_UTC) for moment in _MOMENTS],  # type: ignore[misc]
    ),
    "z": (
        pa.timestamp("us"),
        [dt.datetime(*moment) for moment in [(2024, 3, 10, 2, 30), (2024, 11, 3, 1, 30), *_MOMENTS]],
    ),
    "b": (pa.binary(), [b"abc", b"", b"\x00\x7f", b"1", b"\xc3\x9f", b"12"]),
    "ai": (pa.list_(pa.int32()), [[1, 2, 3], [], [None], [2, None, 2], [2147483647, -1]]),
    "at": (pa.list_(pa.string()), [["a", "b"], [], [None], ["abc", None, "a"], ["1", "2"]]),
    "ax": (pa.list_(pa.float64()), [[1.5, -1.0], [], [None, NAN], [0.0, -0.0, NAN], [INF, 2.5]]),
    "aa": (pa.list_(pa.list_(pa.int32())), [[[1], [2, 3]], [[]], [None, [4]], [], [[None]]]),
    "ar": (pa.list_(_PAIR), [[{"p": 1, "q": "a"}], [], [None], [{"p": None, "q": "b"}, {"p": 2, "q": None}]]),
    "mt": (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", 2)], [], [("abc", None)], [("", 0)]]),
    "mi": (pa.map_(pa.int32(), pa.string()), [[(1, "x"), (2, "y")], [], [(0, None)], [(-1, "z")]]),
    "r": (_PAIR, [{"p": 1, "q": "a"}, {"p": None, "q": "b"}, {"p": 3, "q": None}]),
}
COLUMNS = tuple(VALUES)
KINDS = {
    "byte": "y", "short": "h", "integer": "nij", "long": "l", "float": "f", "double": "x", "decimal": "dwg",
    "string": "stu", "boolean": "p", "date": "a", "timestamp": "m", "timestamp_ntz": "z", "binary": "b",
    "integral": "yhnijl", "numeric": "yhnijlfxdwg", "temporal": "amz",
}  # fmt: skip
_BINARY = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "div",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "&",
    "|",
    "^",
    "||",
    "AND",
    "OR",
    "<<",
    ">>",
    ">>>",
)
_UNITS = (
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "dayofyear",
)
_FIELDS = (
    "year", "quarter", "month", "week", "day", "dayofweek", "dow", "dayofweek_iso", "doy", "hour", "minute",
    "second", "yearofweek", "epoch", "microsecond",
)  # fmt: skip


_PACES = (1, 5, 7, 11, 13, 17, 19, 23, 29, 31)


def rows(count: int = 26) -> pa.Table:
    """In the first row each column's first value; then each goes through its values, nulls among them, at a
    pace of its own."""
    columns = {}
    for number, (name, (kind, values)) in enumerate(VALUES.items()):
        all_values, pace = [*values, None], _PACES[number % len(_PACES)]
        columns[name] = pa.array(
            [
                all_values[(row * pace + row // len(all_values) * number) % len(all_values)]
                for row in range(count)
            ],
            kind,
        )
    return pa.table(columns)


_GROWING = re.compile(r"\b(repeat|space|lpad|rpad|array_repeat|sequence)\(")
_LARGE = re.compile(r"\b([ijlfxdwgsam]|bigint|(?!20\d\d-)\d{4,}|1e0)\b")


def is_small(form: str) -> bool:
    """Returns true if a form makes no value of gigabytes, here or in Spark."""
    return not (_GROWING.search(form) and _LARGE.search(form))


def arguments() -> tuple[str, ...]:
    return (*COLUMNS, *LITERALS)


def _fitting(pattern: str, chosen: random.Random) -> str:
    """Returns an argument, mostly one that a parameter of this pattern takes."""
    pattern = pattern.removesuffix("...")
    if pattern in KINDS and chosen.random() < 0.7:
        return chosen.choice(KINDS[pattern] if len(KINDS[pattern]) == 1 else [*KINDS[pattern]])
    if pattern.startswith("array") and chosen.random() < 0.8:
        return chosen.choice(["ai", "at", "ax", "aa", "ar"])
    if pattern.startswith("map") and chosen.random() < 0.8:
        return chosen.choice(["mt", "mi"])
    return chosen.choice(arguments())


def calls(name: str, chosen: random.Random, size: int) -> Iterator[str]:
    """Calls of a function: one argument of every kind, two of all pairs of columns, more at random; and wrong
    numbers of arguments."""
    lengths = {len(form.parameters) for form in FORMS[name]}
    lengths |= {length + 1 for length in lengths} | {max(length - 1, 0) for length in lengths}
    for length in sorted(lengths):
        if length == 0:
            yield f"{name}()"
        elif length == 1:
            yield from (f"{name}({argument})" for argument in arguments())
        else:
            if length == 2:
                yield from (f"{name}({a}, {b})" for a, b in itertools.product(COLUMNS, COLUMNS))
            patterns = [form.parameters for form in FORMS[name] if len(form.parameters) == length] or [
                ("any",) * length
            ]
            for _ in range(size):
                picked = [_fitting(pattern, chosen) for pattern in chosen.choice(patterns)]
                if chosen.random() < 0.3:
                    picked[chosen.randrange(length)] = chosen.choice(arguments())
                yield f"{name}({', '.join(picked)})"


def _operators(chosen: random.Random, size: int) -> Iterator[str]:
    for operator in _BINARY:
        yield from (f"{a} {operator} {b}" for a, b in itertools.product(COLUMNS, COLUMNS))
        yield from (
            f"{chosen.choice(arguments())} {operator} {chosen.choice(arguments())}" for _ in range(size)
        )
    for target in CASTS:
        for argument in arguments():
            yield f"cast({argument} AS {target})"
            yield f"try_cast({argument} AS {target})"
    for field, argument in itertools.product(_FIELDS, (*COLUMNS, *LITERALS[::3])):
        yield f"extract({field} FROM {argument})"
    for unit, argument in itertools.product(
        _UNITS, ("a", "m", "z", "s", "i", "NULL", "DATE'2024-01-31'", "'2024-01-31'")
    ):
        yield f"timestampadd({unit}, {chosen.choice('yhijls')}, {argument})"
        yield f"date_add({unit}, {chosen.choice(arguments())}, {argument})"
        yield f"timestampdiff({unit}, {argument}, {chosen.choice('amzs')})"
        yield f"datediff({unit}, {chosen.choice(arguments())}, {argument})"


def _decimals() -> Iterator[str]:
    """Precision and scale of results, and what does not fit."""
    kinds = ("1,0", "3,1", "10,2", "18,18", "20,0", "28,10", "38,0", "38,18", "38,37")
    for (left, one), (right, other) in itertools.product(
        zip(kinds, itertools.cycle("dwg")), zip(kinds, itertools.cycle("gdw"))
    ):
        a, b = f"try_cast({one} AS decimal({left}))", f"try_cast({other} AS decimal({right}))"
        yield from (f"{a} {operator} {b}" for operator in ("+", "-", "*", "/", "%", "div", "=", "<"))
        yield from (
            f"{name}({a}, {b})" for name in ("pmod", "greatest", "coalesce", "array", "try_add", "try_divide")
        )
    for name, column, places in itertools.product(
        ("round", "bround", "ceil", "floor"), KINDS["numeric"], (-20, -3, -1, 0, 1, 2, 5, 30)
    ):
        yield f"{name}({column}, {places})"


def _moments() -> Iterator[str]:
    """Dates and timestamps with intervals, and text beside everything."""
    lengths = (
        "1 DAY", "-1 DAY", "2 WEEK", "'1' MONTH", "13 MONTH", "-1 YEAR", "'1-2' YEAR TO MONTH", "1 HOUR",
        "'25:30' HOUR TO MINUTE", "1.5 SECOND", "'1 02:03:04.5' DAY TO SECOND", "'-0 01:00:00' DAY TO SECOND",
        "1 MICROSECOND", "9000 YEAR", "'1' DAY", "1 QUARTER",
    )  # fmt: skip
    for column, length in itertools.product("amzsti", lengths):
        yield f"{column} + INTERVAL {length}"
        yield f"{column} - INTERVAL {length}"
        yield f"INTERVAL {length} + {column}"
        yield f"a + INTERVAL {length} * {column}"
        yield f"m - {column} > INTERVAL {length}"
    for column, text in itertools.product(COLUMNS, (*_NUMBERS, *_TIMES)):
        yield f"{column} = '{text}'"
        yield f"{column} < '{text}'"
        yield f"'{text}' IN ({column}, '1')"
        yield f"{column} BETWEEN '{text}' AND s"


def _likes() -> Iterator[str]:
    for pattern in (
        "a%",
        "%b",
        "_",
        "\\\\%",
        "\\\\_b",
        "%\\\\\\\\",
        "a\\\\b",
        "",
        "%%",
        "_%c",
        "%ß%",
        "A%",
        "%\\\\",
        "1%",
        "_\\\\%%",
        "a.c",
    ):
        yield from (
            f"{column} {negated}{word} '{pattern}'"
            for column in "tusib"
            for word in ("LIKE", "ILIKE")
            for negated in ("", "NOT ")
        )
        yield from (f"{column} LIKE '{pattern.replace(chr(92) * 2, '!')}' ESCAPE '!'" for column in "tu")
    for pattern in (
        "^a",
        "c$",
        "a|b",
        "[a-c]+",
        "\\\\d+",
        "(a)(b)?",
        ".",
        "",
        "\\\\s",
        "x*",
        "[^a]",
        "a{2}",
        "ß",
    ):
        yield from (f"{column} RLIKE '{pattern}'" for column in "tus")
        yield from (f"regexp_extract(t, '{pattern}', {group})" for group in (0, 1, 2))
        yield from (f"regexp_replace(t, '{pattern}', '{to}')" for to in ("", "x", "$0", "[$1]", "\\\\"))
        yield f"split(t, '{pattern}')"


def _items() -> Iterator[str]:
    for column, index in itertools.product(
        ("ai", "at", "ax", "aa", "ar", "mt", "mi", "r", "s", "i"), arguments()
    ):
        yield f"{column}[{index}]"
        yield f"{column}[{index}] IS NULL"


def _filled(templates: Sequence[str], count: int, chosen: random.Random, size: int) -> Iterator[str]:
    for template in templates:
        for _ in range(size):
            yield template.format(
                *(chosen.choice(COLUMNS if chosen.random() < 0.6 else LITERALS) for _ in range(count))
            )


def first_level(size: int = 120, seed: int = 1) -> list[str]:
    """Returns every form on columns and literals, in a fixed order, each expression once."""
    chosen = random.Random(seed)
    found: list[str] = []
    for name in FORMS:
        if name.isidentifier():
            found += calls(name, chosen, size)
    found += _operators(chosen, size)
    found += [*_decimals(), *_moments(), *_likes(), *_items()]
    found += [template.format(argument) for template in SINGLES for argument in arguments()]
    found += _filled(PAIRS, 2, chosen, size)
    found += _filled(TRIPLES, 3, chosen, 2 * size)
    found += _filled(LAMBDAS, 2, chosen, size)
    return [form for form in dict.fromkeys(found) if is_small(form)]


def nested(known: Sequence[str], count: int, seed: int = 2) -> list[str]:
    """Forms over expressions that are supported (`known`), so that coercions, errors and nulls are
    combined."""
    chosen = random.Random(seed)
    templates = [
        *SINGLES,
        *PAIRS,
        *TRIPLES,
        *(f"cast({{0}} AS {target})" for target in CASTS),
        *(f"try_cast({{0}} AS {target})" for target in CASTS),
    ]
    templates += [f"({{0}}) {operator} ({{1}})" for operator in _BINARY]
    for name, forms in FORMS.items():
        if name.isidentifier():
            templates += sorted(
                {
                    f"{name}({', '.join(f'{{{place}}}' for place in range(len(form.parameters)))})"
                    for form in forms
                }
            )
    found = []
    for _ in range(count):
        parts = [
            f"({chosen.choice(known)})" if chosen.random() < 0.7 else chosen.choice(arguments())
            for _ in range(6)
        ]
        found.append(chosen.choice(templates).format(*parts))
    return [form for form in dict.fromkeys(found) if is_small(form)]


WALK = Family("walk", rows(), (), ("UTC", "America/New_York"))
