"""The few forms on text that the engine has no word for: vectorised functions over Arrow arrays, called only for rows that need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def _mapped(function: Callable[[str], str]) -> Callable[[Any], pa.Array]:
    def run(values: Any) -> pa.Array:
        return pa.array([None if value is None else function(value) for value in values.to_pylist()], pa.string())

    return run


def _title(value: str) -> str:
    """UTF8String.toTitleCase over the lower-case text: the first character of each word, words being divided by a space."""
    return " ".join(word[:1].title() + word[1:] if len(word[:1].title()) == 1 else word for word in value.lower().split(" "))


# Full Unicode case mapping, as Java's: 'straße' has the upper case 'STRASSE', a final sigma its own lower case.
TEXT_FUNCTIONS: dict[str, Callable[[Any], pa.Array]] = {
    "deltaic_upper": _mapped(str.upper),
    "deltaic_lower": _mapped(str.lower),
    "deltaic_initcap": _mapped(_title),
}
