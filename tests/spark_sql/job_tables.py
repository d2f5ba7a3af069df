"""Tables of events, subscriptions and odd values for `jobs.sql` and `intervals.sql`: the same rows here and
in Spark."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal as D
from typing import Any

import pyarrow as pa

_UTC = dt.timezone.utc
_USERS = [f"u{number}" for number in range(8)]


def tables() -> dict[str, pa.Table]:
    """Name -> rows. All random numbers are drawn in one order, so that the rows are always the same."""
    draw = random.Random(11)
    found = {"clicks": _clicks(draw), "subs": _subs(draw), "kinds": _kinds(), "nest": _nest(), "emp": _emp()}
    return {**found, "nothing": found["emp"].slice(0, 0)}


def _clicks(draw: random.Random) -> pa.Table:
    rows = []
    at = dt.datetime(2024, 3, 30, 20, 0, tzinfo=_UTC)
    for n in range(120):
        micros = draw.choice([0, 0, 123456])
        at += dt.timedelta(
            minutes=draw.choice([1, 3, 7, 29, 31, 45, 200]), seconds=draw.randint(0, 59), microseconds=micros
        )
        ev = draw.choice(["view", "view", "view", "cart", "purchase", "refund", None])
        props: dict[str, Any] = {
            "page": draw.choice(["/a", "/b", "/c?x=1&y=2"]),
            "price": draw.choice([1, 2.5, 10, None]),
        }
        props["tags"] = draw.sample(["x", "y", "z"], draw.randint(0, 3))
        props["geo"] = {"cc": draw.choice(["DE", "US", "ñ"]), "lat": draw.random()}
        text = json.dumps(props) if n % 13 else draw.choice([None, "{bad", ""])
        local = (at + dt.timedelta(hours=1)).replace(tzinfo=None)
        amount = D(draw.randint(-500, 100000)) / 100 if n % 5 else None
        user = draw.choice([*_USERS, None])
        rows.append(
            (
                n,
                user,
                ev,
                at if n % 17 else None,
                local,
                at.date(),
                text,
                amount,
                draw.choice([1, 2, 3, None]),
            )
        )
    types = {
        "id": pa.int64(), "user_id": pa.string(), "ev": pa.string(), "at": pa.timestamp("us", "UTC"),
        "at_ntz": pa.timestamp("us"), "day": pa.date32(), "props": pa.string(),
        "amount": pa.decimal128(12, 2), "qty": pa.int32(),
    }  # fmt: skip
    return _of_rows(rows, types)


def _subs(draw: random.Random) -> pa.Table:
    rows = []
    for user in _USERS:
        day = dt.date(2023, 1, 1) + dt.timedelta(days=draw.randint(0, 60))
        for _ in range(draw.randint(1, 5)):
            end = day + dt.timedelta(days=draw.choice([0, 10, 30, 45]))
            plan, is_closed = draw.choice(["free", "pro", "team"]), draw.random() < 0.8
            rows.append((user, plan, day, end if is_closed else None, D(draw.randint(0, 99999)) / 1000))
            day = end + dt.timedelta(days=draw.choice([0, 1, 1, 5]))
    types = {
        "user_id": pa.string(),
        "plan": pa.string(),
        "valid_from": pa.date32(),
        "valid_to": pa.date32(),
        "fee": pa.decimal128(18, 3),
    }
    return _of_rows(rows, types)


def _kinds() -> pa.Table:
    """Returns values of each type, at their limits and between."""
    nan, inf = float("nan"), float("inf")

    def at(*parts: int) -> tuple[dt.datetime, dt.datetime]:
        return dt.datetime(*parts, tzinfo=_UTC), dt.datetime(*parts)  # type: ignore[misc,arg-type]

    nines = D("99999999999999999999.999999999999999999")
    last = (1969, 12, 31, 23, 59, 59, 999999)
    rows = [
        (1, True, 1, 1, 3, 4, 1.5, 2.5, D("1.5"), D("12345678901234567890.123456789012345678"), "abc",
         dt.date(2024, 2, 29), dt.datetime(2024, 3, 10, 7, 30, tzinfo=_UTC), dt.datetime(2024, 3, 10, 2, 30),
         b"ab"),
        (2, False, -1, -2, -3, -4, -1.5, nan, D("-1.5"), D("-0.5"), "", dt.date(1582, 10, 4),
         dt.datetime(1900, 1, 1, tzinfo=_UTC), dt.datetime(1, 1, 1), b""),
        (3, *[None] * 14),
        (4, True, 127, 32767, 2147483647, 9223372036854775807, inf, inf, D("99999999.99"), nines, "ÄÖü ß",
         dt.date(9999, 12, 31), dt.datetime(2024, 11, 3, 5, 30, tzinfo=_UTC), dt.datetime(2024, 11, 3, 1, 30),
         b"\xff\x00"),
        (5, False, -128, -32768, -2147483648, -9223372036854775808, -inf, -inf, D(0), D(0), "12",
         dt.date(1969, 12, 31), *at(*last), b"zz"),
        (6, None, 0, 0, 0, 0, -0.0, -0.0, D("0.01"), D("0.000000000000000001"), " 7 ", dt.date(2024, 12, 30),
         *at(2024, 12, 30, 12), b"ab"),
        (7, None, 5, 5, 5, 5, 0.0, 0.0, D("1.50"), D("1.5"), "2024-01-01", dt.date(2024, 1, 1),
         *at(2024, 1, 1), None),
        (8, True, 5, 5, 7, 100, 0.1, 0.1, D("2.50"), D(7), "😀é", dt.date(2023, 1, 1),
         *at(2023, 1, 1, 1, 2, 3, 456789), b"q"),
    ]  # fmt: skip
    types = {
        "k": pa.int32(), "b": pa.bool_(), "ti": pa.int8(), "si": pa.int16(), "i": pa.int32(), "l": pa.int64(),
        "f": pa.float32(), "d": pa.float64(), "d1": pa.decimal128(10, 2), "d2": pa.decimal128(38, 18),
        "s": pa.string(), "dt": pa.date32(), "ts": pa.timestamp("us", "UTC"), "n": pa.timestamp("us"),
        "bi": pa.binary(),
    }  # fmt: skip
    return _of_rows(rows, types)


def _nest() -> pa.Table:
    deep = {"u": 1, "v": {"w": "deep", "z": [1, 2]}}
    parts = [{"p": "x", "q": 1, "r": [1.5, 2.5]}, {"p": "y", "q": None, "r": []}]
    others = [{"p": "x", "q": 10, "r": None}, None, {"p": "z", "q": 7, "r": [0.5]}]
    rows = [
        (
            1,
            [1, 2, None, 3],
            parts,
            {"a": 1, "b": 2},
            deep,
            [[1, 2], [], None, [3]],
            {"x": {"n": 1, "t": "one"}},
        ),
        (2, [], [], {}, {"u": None, "v": None}, [], {}),
        (3, *[None] * 6),
        (
            4,
            [5, 5, 1],
            others,
            {"b": None, "c": 9},
            {"u": 3, "v": {"w": None, "z": []}},
            [[None]],
            {"x": None, "y": {"n": 2, "t": "two"}},
        ),
        (5, [-1], [{"p": None, "q": 4, "r": [9.0]}], {"a": -1}, deep, [[7]], {"y": {"n": None, "t": "t"}}),
    ]
    part = pa.struct([("p", pa.string()), ("q", pa.int32()), ("r", pa.list_(pa.float64()))])
    inner = pa.struct([("w", pa.string()), ("z", pa.list_(pa.int32()))])
    types = {
        "k": pa.int32(), "a": pa.list_(pa.int32()), "ss": pa.list_(part),
        "m": pa.map_(pa.string(), pa.int32()), "st": pa.struct([("u", pa.int32()), ("v", inner)]),
        "aa": pa.list_(pa.list_(pa.int32())),
        "ms": pa.map_(pa.string(), pa.struct([("n", pa.int32()), ("t", pa.string())])),
    }  # fmt: skip
    return _of_rows(rows, types)


def _emp() -> pa.Table:
    rows = [
        (1, None, "Ada", "eng", D("9000.00"), dt.date(2019, 5, 1)),
        (2, 1, "Bob", "eng", D("7000.50"), dt.date(2020, 2, 29)),
        (3, 1, "Cy", "ops", D("6500.00"), dt.date(2020, 3, 31)),
        (4, 2, "Di", "eng", D("7000.50"), dt.date(2021, 12, 31)),
        (5, 2, "Ed", None, None, dt.date(2022, 1, 1)),
        (6, 3, "Fy", "ops", D("4000.00"), None),
        (7, 6, "Gil", "hr", D("5000.25"), dt.date(2023, 7, 4)),
    ]
    types = {
        "id": pa.int32(),
        "mgr": pa.int32(),
        "name": pa.string(),
        "dept": pa.string(),
        "sal": pa.decimal128(9, 2),
        "hired": pa.date32(),
    }
    return _of_rows(rows, types)


def _of_rows(rows: list[tuple[Any, ...]], types: dict[str, pa.DataType]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )
