"""Forms and rows for which Spark's results are recorded: scripts/record_spark_expressions.py runs them on
Spark, test_recorded.py on deltaic."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Family:
    """Rows (an Arrow table), the expressions evaluated on each of them, and the session time zones to do it
    in."""

    name: str
    rows: pa.Table
    forms: tuple[str, ...]
    zones: tuple[str, ...] = ("UTC",)


def lines(text: str) -> tuple[str, ...]:
    """Returns the lines of a text without its comments; a line that ends with a backslash goes on in the next
    one."""
    return tuple(
        line.strip()
        for line in text.replace("\\\n", "").strip().splitlines()
        if line.strip() and not line.strip().startswith("#")
    )


def _table(**columns: tuple[pa.DataType, list[object]]) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


def _dec(*values: str | None) -> list[Decimal | None]:
    return [None if value is None else Decimal(value) for value in values]


UTC = dt.timezone.utc


def _moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


NUMBERS = _table(
    a=(pa.int8(), [1, -7, None, 127, -128, 0, 5, 100, 3]),
    s=(pa.int16(), [2, 3, None, 32767, -32768, 0, -5, 1000, 7]),
    i=(pa.int32(), [10, -7, None, 2147483647, -2147483648, 0, 25, 1000000, 3]),
    j=(pa.int32(), [3, 2, 5, -1, -1, 0, None, 1000000, -2]),
    l=(pa.int64(), [10, -7, None, 9223372036854775807, -9223372036854775808, 0, 4294967296, 3000000000, 2]),
    m=(pa.int64(), [4, 2, 5, -1, -1, 0, None, 4000000000, 62]),
    f=(pa.float32(), [1.5, -2.5, None, 3.4028234663852886e38, INF, 0.0, NAN, 0.1, -0.0]),
    x=(pa.float64(), [2.5, -1.5, None, 1.7976931348623157e308, -INF, 0.0, NAN, 0.1, -0.0]),
    y=(pa.float64(), [0.5, 2.0, 1.0, 10.0, INF, 0.0, 1.0, 3.0, NAN]),
    d=(
        pa.decimal128(10, 2),
        _dec("1.25", "-7.50", None, "99999999.99", "-99999999.99", "0.00", "2.55", "0.01", "3.45"),
    ),
    e=(
        pa.decimal128(10, 2),
        _dec("0.30", "2.00", "1.00", "99999999.99", "0.01", "0.00", None, "3.00", "-7.00"),
    ),
    g=(
        pa.decimal128(20, 0),
        _dec(
            "5",
            "-3",
            None,
            "99999999999999999999",
            "-99999999999999999999",
            "0",
            "7",
            "12345678901234567890",
            "1",
        ),
    ),
    h=(
        pa.decimal128(5, 4),
        _dec("1.2345", "-9.9999", None, "9.9999", "0.0001", "0.0000", "2.5000", "0.5000", "-0.5000"),
    ),
    w=(
        pa.decimal128(38, 10),
        _dec(
            "1.5",
            "-2.5",
            None,
            "9999999999999999999999999999.9999999999",
            "0.0000000001",
            "0",
            "3.3333333333",
            "12345.6789",
            "-1",
        ),
    ),
    p=(pa.bool_(), [True, False, None, True, False, True, False, None, True]),
)

TEXT = _table(
    s=(pa.string(), ["abc", "", None, "  Hello World ", "straße İI", "añb😀c", "a,b,,c", "aaa", "ΑΣ ΟΔΟΣ"]),
    t=(pa.string(), ["b", "a", "x", "o", "ß", "😀", ",", None, "Σ"]),
    u=(pa.string(), ["12", " -5 ", None, "1.5", "abc", "", "1e3", "300", "99999999999999999999"]),
    v=(pa.string(), ["true", " Yes ", None, "0", "f", "maybe", "N", "1.0", "T"]),
    k=(pa.string(), ["1.255", "-2.5e2", None, "NaN", "-Infinity", "1.5f", ".5", "5.", "1e400"]),
    w=(
        pa.string(),
        ["apple pie", "Zebra", None, "x_y%z", "100%", "tab\there", "line\nbreak", "\\back", "it's"],
    ),
    n=(pa.int32(), [1, 0, 2, -2, 3, 10, -10, None, 100]),
    b=(pa.binary(), [b"abc", b"", None, b"\x00\xff", b"\xc3\x9f", b"hello", b"\x01", b"x", b"zz"]),
)

_D = dt.date
TIMES = _table(
    d=(
        pa.date32(),
        [
            _D(2024, 6, 1),
            _D(2024, 2, 29),
            None,
            _D(1969, 12, 31),
            _D(1500, 1, 1),
            _D(9999, 12, 31),
            _D(1, 1, 1),
            _D(2023, 1, 31),
            _D(2024, 12, 30),
        ],
    ),
    c=(
        pa.date32(),
        [
            _D(2024, 5, 31),
            _D(2023, 2, 28),
            _D(2020, 1, 1),
            _D(1970, 1, 1),
            _D(1499, 12, 31),
            None,
            _D(1, 2, 1),
            _D(2022, 12, 31),
            _D(2024, 3, 31),
        ],
    ),
    t=(
        pa.timestamp("us", "UTC"),
        [
            _moment(2024, 6, 1, 20, 30, 40, 500000),
            _moment(2024, 3, 10, 7, 15, 0),  # just after New York's clocks went forward
            None,
            _moment(1969, 12, 31, 23, 59, 59, 999999),
            _moment(1500, 1, 1, 4, 56, 2),
            _moment(9999, 12, 30, 23, 59, 59, 999999),
            _moment(2024, 11, 3, 6, 30, 0),  # 01:30 for the second time in New York
            _moment(2024, 11, 3, 5, 30, 0),  # 01:30 for the first time
            _moment(2000, 2, 29, 0, 0, 0, 1),
        ],
    ),
    r=(
        pa.timestamp("us", "UTC"),
        [
            _moment(2024, 5, 30, 10, 0, 0),
            _moment(2024, 3, 9, 7, 30, 0),
            _moment(2024, 1, 1),
            _moment(1970, 1, 1),
            _moment(1499, 12, 31, 23, 0, 0),
            None,
            _moment(2024, 11, 2, 5, 30, 0),
            _moment(2024, 11, 4, 6, 30, 0),
            _moment(1999, 1, 31, 12, 0, 0, 5),
        ],
    ),
    z=(
        pa.timestamp("us"),
        [
            dt.datetime(2024, 6, 1, 20, 30, 40),
            dt.datetime(2024, 3, 10, 2, 30),  # in New York's gap
            None,
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
            dt.datetime(1500, 1, 1),
            dt.datetime(9999, 12, 30, 23, 59, 59),
            dt.datetime(2024, 11, 3, 1, 30),  # twice in New York
            dt.datetime(2024, 11, 2, 1, 30),
            dt.datetime(2000, 2, 29, 12, 0, 0, 120000),
        ],
    ),
    u=(
        pa.string(),
        [
            "2024-06-01 10:11:12",
            "2024-03-10 02:30:00",
            None,
            "2024-11-03T01:30:00.123456789",
            " 1500-1-1 ",
            "2024-02-30",
            "2024-06-01 10:11:12+05:30",
            "2024-6",
            "nonsense",
        ],
    ),
    v=(
        pa.string(),
        [
            "2024-06-01",
            "2024-2-3",
            None,
            "2024",
            "24-01-01",
            "2024-06-01T25:00:00",
            "2024-06-01 10:11:12 Europe/Paris",
            "+12345-01-01",
            "",
        ],
    ),
    n=(pa.int32(), [1, -1, 2, 30, 12, 0, None, 400, -13]),
    l=(pa.int64(), [0, 1717288240, None, -1, 253402300799, 1717288240500, 86400, -62135596800, 1]),
    x=(pa.float64(), [0.5, -1.25, None, 1717288240.123456, 1e9, 0.0, -0.000001, 12.0, 59.999999]),
    y=(pa.int32(), [2024, 2023, None, 1, 1970, 2024, 2000, 9999, 1500]),
    o=(pa.int32(), [1, 2, 3, 1, 12, 13, 0, None, 2]),
    q=(pa.int32(), [31, 28, 1, 1, 31, 1, 1, 5, 29]),
)

_PAIR = pa.struct([("p", pa.int32()), ("q", pa.string())])
NESTED = _table(
    a=(pa.list_(pa.int32()), [[3, 1, 2], [], None, [1, None, 3, 1], [None], [5], [2, 2, 2]]),
    b=(pa.list_(pa.int32()), [[2, 9], [1], [3], [None, 1], [None], None, [2, 3]]),
    s=(pa.list_(pa.string()), [["x", "y"], [], None, ["b", None, "a"], ["é", "z"], [""], ["a", "a"]]),
    x=(pa.list_(pa.float64()), [[1.5, NAN], [0.0, -1.0], None, [INF, None, -INF], [], [NAN, NAN], [2.0]]),
    c=(pa.list_(pa.list_(pa.int32())), [[[1], [2, 3]], [[]], None, [None, [4]], [], [[None]], [[1], [1]]]),
    r=(
        _PAIR,
        [
            {"p": 1, "q": "a"},
            {"p": None, "q": "b"},
            None,
            {"p": 3, "q": None},
            {"p": 0, "q": ""},
            {"p": 1, "q": "a"},
            {"p": 2, "q": "é"},
        ],
    ),
    o=(
        _PAIR,
        [
            {"p": 1, "q": "a"},
            {"p": None, "q": "b"},
            {"p": 1, "q": "x"},
            {"p": 2, "q": None},
            None,
            {"p": 1, "q": "b"},
            {"p": 2, "q": "é"},
        ],
    ),
    z=(
        pa.list_(_PAIR),
        [
            [{"p": 1, "q": "a"}],
            [],
            None,
            [None, {"p": None, "q": "x"}],
            [{"p": 5, "q": None}],
            [],
            [{"p": 2, "q": "b"}, {"p": 1, "q": "c"}],
        ],
    ),
    m=(
        pa.map_(pa.string(), pa.int32()),
        [[("a", 1), ("b", 2)], [], None, [("a", None)], [("é", 5)], [("b", 7), ("a", 3)], [("", 0)]],
    ),
    n=(
        pa.map_(pa.int32(), pa.string()),
        [[(1, "x"), (2, "y")], [], None, [(1, None)], [(0, "z")], [(-1, "m")], [(2, "q")]],
    ),
    i=(pa.int32(), [0, 1, 2, -1, None, 3, 1]),
    k=(pa.string(), ["a", "b", "c", "a", "é", "b", None]),
)
