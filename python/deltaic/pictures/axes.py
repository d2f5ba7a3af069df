"""Axes of a picture: bounds of a column as numbers, their place between 0 and 1, and labelled ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
TICKS = 5
"""Maximum number of labels on an axis."""
_LABEL = 14
"""Maximum characters of a label on an axis of text."""
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_STEPS = [
    *(10**power * part for power in range(6) for part in (1, 2, 5)),
    *(
        _SECOND * part
        for part in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
    ),
    *(_DAY * part for part in (1, 2, 7, 14)),
]
"""Distances of ticks in microseconds, up to two weeks; longer ones are whole months."""


@dataclass(frozen=True)
class Axis:
    """`low` and `high`: the numbers at its ends. `ticks`: (place between 0 and 1, label)."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]

    def place(self, numbers: Numbers) -> Numbers:
        """Places between 0 and 1; infinities lie on the ends, NaN (no bound) stays NaN."""
        return np.asarray(
            (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low), dtype=np.float64
        )


def axis_of(title: str, bounds: Sequence[pa.Array]) -> tuple[Axis, list[Numbers]]:
    """The axis that holds all these bounds (arrays of one type), and each array as numbers; a null becomes
    NaN.

    Numbers stand for themselves, dates and timestamps for microseconds since 1970, other types for their rank
    among all bounds.
    """
    kind = bounds[0].type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = [_floats(array.cast(pa.float64(), safe=False)) for array in bounds]
        low, high = _ends(numbers, 1.0)
        return Axis(title, low, high, _number_ticks(low, high, whole=pa.types.is_integer(kind))), numbers
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_date(kind):
            numbers = [_floats(array.cast(pa.int32()).cast(pa.float64())) * _DAY for array in bounds]
        else:
            numbers = [
                _floats(
                    array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.float64(), safe=False)
                )
                for array in bounds
            ]
        low, high = _ends(numbers, float(_DAY if pa.types.is_date(kind) else _SECOND))
        zone = ", UTC" if pa.types.is_timestamp(kind) and kind.tz is not None else ""
        ticks, more = _time_ticks(low, high, days=pa.types.is_date(kind), zone=zone)
        return Axis(title + more, low, high, ticks), numbers
    return _ranked(title, bounds)


def _floats(array: pa.Array) -> Numbers:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _ends(numbers: Sequence[Numbers], least: float) -> tuple[float, float]:
    """The smallest and the greatest finite number, apart by `least` at least where all are equal."""
    together = np.concatenate(numbers) if numbers else np.empty(0)
    finite = together[np.isfinite(together)]
    if not finite.size:
        return 0.0, least
    low, high = float(finite.min()), float(finite.max())
    if low < high:
        return low, high
    apart = max(least, abs(low) * 1e-9)
    return low - apart / 2, high + apart / 2


def _ranked(title: str, bounds: Sequence[pa.Array]) -> tuple[Axis, list[Numbers]]:
    """Returns the axis of values that can only be compared: strings and booleans. Each distinct bound is one
    step, in order."""
    plain = [array.cast(pa.string()) if pa.types.is_boolean(array.type) else array for array in bounds]
    known = sorted({value for array in plain for value in pc.unique(array).to_pylist() if value is not None})
    ranks = {value: float(rank) for rank, value in enumerate(known)}
    numbers = [
        np.array([ranks.get(value, math.nan) for value in array.to_pylist()], dtype=np.float64)
        for array in plain
    ]
    last = max(len(known) - 1, 1)
    shown = sorted({round(step * (len(known) - 1) / (TICKS - 1)) for step in range(TICKS)}) if known else []
    left_out = _common_beginning(known)
    ticks = [(rank / last if len(known) > 1 else 0.5, _short(known[rank], left_out)) for rank in shown]
    if len(known) <= 1:
        return Axis(title, -0.5, 0.5, ticks), numbers
    return Axis(title, 0.0, float(last), ticks), numbers


def _common_beginning(values: Sequence[object]) -> int:
    """Returns the number of characters at the beginning of all values that labels leave out: the labels of
    `https://a.org/x1` and `https://a.org/x2` are `…x1` and `…x2`. Returns 0 if all labels are short
    enough."""
    texts = [str(value) for value in values]
    if len(texts) < 2 or all(len(text) <= _LABEL for text in texts):
        return 0
    first, last = texts[0], texts[-1]  # sorted: a prefix of both is a prefix of all
    return next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )


def _short(value: object, left_out: int) -> str:
    text = str(value) or "''"
    text = "…" + text[left_out:] if left_out > 1 else text
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def _number_ticks(low: float, high: float, *, whole: bool) -> list[tuple[float, str]]:
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / TICKS))
    step *= next(part for part in (1, 2, 5, 10) if span / (step * part) <= TICKS)
    step = max(step, 1.0) if whole else step
    values = [math.ceil(low / step) * step + number * step for number in range(TICKS + 1)]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [
        ((value - low) / span, number_text(value, decimals))
        for value in values
        if low <= value <= high + step * 1e-9
    ]


def number_text(value: float, decimals: int = 0) -> str:
    """A number as short text: `12,500`, `2013`, `0.25`, `1.25e+12`."""
    if value and (abs(value) >= 1e10 or decimals > 6):
        return f"{value:.4g}"
    text = f"{value:,.{decimals}f}"
    return text.replace(",", "") if abs(value) < 10_000 else text


def _time_ticks(low: float, high: float, *, days: bool, zone: str) -> tuple[list[tuple[float, str]], str]:
    """Ticks on whole days, hours, months or years, and what their labels leave out, for the axis's title."""
    span = high - low
    step = next((step for step in _STEPS if span / step <= TICKS and not (days and step < _DAY)), None)
    if step is None:
        return _month_ticks(low, high), ""
    first = math.ceil(low / step)
    at = [(first + number) * step for number in range(TICKS + 1) if (first + number) * step <= high]
    texts = [str(np.datetime64(int(value), "us")) for value in at]
    if step >= _DAY:
        return [
            ((value - low) / span, text[: text.index("T")]) for value, text in zip(at, texts, strict=True)
        ], ""
    ending = 5 if step >= 60 * _SECOND else 8 if step >= _SECOND else 15
    dates = {text.partition("T")[0] for text in texts}
    clock = [text.partition("T")[2][:ending] for text in texts]
    while ending == 15 and all(text.endswith("0") for text in clock):  # 12:00:01.5 instead of 12:00:01.500000
        clock = [text[:-1] for text in clock]
    if len(dates) == 1:
        return [
            ((value - low) / span, text) for value, text in zip(at, clock, strict=True)
        ], f" ({dates.pop()}{zone})"
    days_of = [text.partition("T")[0][-5:] for text in texts]
    year = texts[0].partition("T")[0][:-6]
    return [
        ((value - low) / span, f"{day} {text}") for value, day, text in zip(at, days_of, clock, strict=True)
    ], f" ({year}{zone})"


def _month_ticks(low: float, high: float) -> list[tuple[float, str]]:
    span = high - low
    first, last = (
        int(np.datetime64(int(value), "us").astype("datetime64[M]").astype(np.int64)) for value in (low, high)
    )
    steps = (1, 2, 3, 6, *(12 * part * 10**power for power in range(6) for part in (1, 2, 5)))
    step = next((step for step in steps if (last - first) / step <= TICKS), steps[-1])
    found = []
    for month in range(-(-first // step) * step, last + 1, step):
        moment = np.datetime64(month, "M")
        place = (float(moment.astype("datetime64[us]").astype(np.int64)) - low) / span
        if 0 <= place <= 1:
            found.append((place, str(moment.astype("datetime64[Y]")) if step >= 12 else str(moment)))
    return found
