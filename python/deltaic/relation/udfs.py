"""The few forms on text that the engine has no word for: vectorised functions over Arrow arrays, called only for rows that need them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa


def _mapped(function: Callable[[str], str]) -> Callable[[Any], pa.Array]:
    def run(values: Any) -> pa.Array:
        return pa.array([None if value is None else function(value) for value in values.to_pylist()], pa.string())

    return run


def _title(value: str) -> str:
    """Each word, words being divided by a space, with its first character in title case, the rest in lower case."""
    return " ".join(map(_title_word, value.split(" ")))


def _title_word(word: str) -> str:
    return word[:1].title() + word.lower()[len(word[:1].lower()) :]


def _levenshtein(left: Any, right: Any) -> pa.Array:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else _distance(a, b) for a, b in pairs], pa.int32())


def _distance(left: str, right: str) -> int:
    """In code points; the engine's own counts bytes."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def _decimal(operators: Any, left: Any, right: Any, scales: Any) -> pa.Array:
    rows = zip(operators.to_pylist(), left.to_pylist(), right.to_pylist(), scales.to_pylist(), strict=True)
    return pa.array(
        [None if a is None or b is None else _calculate(operator, Decimal(a), Decimal(b), scale) for operator, a, b, scale in rows],
        pa.string(),
    )


def _calculate(operator: str, left: Decimal, right: Decimal, scale: int) -> str | None:
    """As Spark's Decimal: exact, a product rounded to 38 digits and a quotient to 38 places first, then to the result's scale, half up."""
    with localcontext() as context:
        context.prec, context.rounding = 160, ROUND_HALF_UP
        if operator in ("/", "%") and not right:
            return None
        result = _OPERATORS[operator](left, right)
        if operator == "*":
            context.prec = 38
            result = +result
            context.prec = 160
        elif operator == "/":
            result = result.quantize(Decimal(1).scaleb(-38))
        return format(result.quantize(Decimal(1).scaleb(-scale)), "f")


_OPERATORS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": Decimal.__add__,
    "-": Decimal.__sub__,
    "*": Decimal.__mul__,
    "/": Decimal.__truediv__,
    "%": Decimal.__mod__,
}

# Full Unicode case mapping, as Java's: 'straße' has the upper case 'STRASSE', a final sigma its own lower case.
FUNCTIONS: dict[str, tuple[Callable[..., pa.Array], tuple[str, ...], str]] = {
    "deltaic_upper": (_mapped(str.upper), ("VARCHAR",), "VARCHAR"),
    "deltaic_lower": (_mapped(str.lower), ("VARCHAR",), "VARCHAR"),
    "deltaic_initcap": (_mapped(_title), ("VARCHAR",), "VARCHAR"),
    "deltaic_decimal": (_decimal, ("VARCHAR", "VARCHAR", "VARCHAR", "INTEGER"), "VARCHAR"),
    "deltaic_levenshtein": (_levenshtein, ("VARCHAR", "VARCHAR"), "INTEGER"),
}
"""Name -> function over Arrow arrays, types of its arguments, type of its result."""
