"""Type widening: which changes of a column's type PROTOCOL.md allows (section "Type Widening")."""

from __future__ import annotations

from typing import Any

from deltaic.protocol.schema import decimal_parts

_ORDER = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_TO_DOUBLE = frozenset({"byte", "short", "integer", "float"})


def is_widening(before: str, after: str) -> bool:
    """Whether a column of type `before` may become `after` (Delta's names of primitive types)."""
    if before in _ORDER and after in _ORDER:
        return _ORDER.index(before) < _ORDER.index(after)
    if after == "double":
        return before in _TO_DOUBLE
    if (before, after) == ("date", "timestamp_ntz"):
        return True
    wide = decimal_parts(after)
    if wide is None:
        return False
    narrow = decimal_parts(before)
    if narrow is None:
        # A whole number as a decimal: all its digits before the point must fit.
        return before in _DIGITS and wide[0] - wide[1] >= _DIGITS[before]
    more_digits, more_scale = wide[0] - narrow[0], wide[1] - narrow[1]
    return more_digits >= more_scale >= 0 and more_digits > 0


def unsupported_type_change(changes: Any) -> str | None:
    """The first entry of a field's `delta.typeChanges` that is no widening, as text; None when all are."""
    if not isinstance(changes, list):
        return repr(changes)[:200]
    for change in changes:
        before, after = (change.get("fromType"), change.get("toType")) if isinstance(change, dict) else (None, None)
        if not isinstance(before, str) or not isinstance(after, str) or not is_widening(before, after):
            return f"{before} to {after}"
    return None
