"""Python values and names as Spark SQL text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.sql_text import duckdb_text, spark_name

# A quoted name of two or more parts. A single name keeps its brackets: `a`.b would be column b of table a,
# but (`a`).b is field b of column a.
_QUOTED = re.compile(r"`[^`]+`(\.`[^`]+`)+")


def col(name: str) -> str:
    """Returns a column's name as SQL: `col("my col")` is `` `my col` ``. Dots are part of the name:
    `col("a.b")` is the column `` `a.b` ``, not field b of column a.

    `name` (str). Raises InvalidTypeError for anything but a string, and for an empty one.

    >>> table.scan(where=f"{deltaic.col('origin')} = 'JFK'").count()
    1
    """
    if not isinstance(name, str) or not name:
        raise InvalidTypeError("a column name must be a string", found=repr(name))
    return spark_name(name)


def lit(value: Any) -> str:
    """Returns a Python value as SQL: `lit("O'Neil")` is `'O''Neil'`.

    `value`: None, bool, int, float, Decimal, str, bytes, date, datetime (with a zone: timestamp, without:
    timestamp_ntz), timedelta (an interval), list or tuple (an array), dict (a struct), or a scalar of NumPy
    or pandas (NA and NaT are NULL). Raises InvalidTypeError for any other type, and InvalidArgumentError for
    a Decimal that is not finite or has more than 38 digits, and for a time with digits below a microsecond.

    >>> deltaic.lit("O'Neil"), deltaic.lit([1, 2])
    ("'O''Neil'", 'array(1, 2)')
    """
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{_special(value)}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex().upper()}'"
    if isinstance(value, datetime):
        return _datetime(value)
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, timedelta):
        return _interval(value)
    if isinstance(value, Mapping):
        return _struct(value)
    if isinstance(value, Sequence):
        return f"array({', '.join(map(lit, value))})"
    if hasattr(value, "item"):  # a NumPy scalar
        return lit(_item(value))
    raise InvalidTypeError("a value of this type has no SQL literal", found=type(value).__name__)


def _integer(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return str(value)
    if -(2**63) < value < 2**63:
        return f"{value}L"
    if value == -(2**63):
        return "CAST('-9223372036854775808' AS BIGINT)"
    return _decimal(Decimal(value))


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise InvalidArgumentError("a decimal literal must be finite", found=str(value))
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:
        raise InvalidArgumentError("a decimal has at most 38 digits", found=str(value))
    return f"CAST('{value:f}' AS DECIMAL({precision},{scale}))"


def _text(value: str) -> str:
    # Spark and tokenizers may treat backslashes and control characters in a literal as escapes.
    if any(character in value for character in "\\\0") or any(ord(character) < 32 for character in value):
        return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"
    return duckdb_text(value)  # as Spark reads it, too


def _datetime(value: datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
    return f"TIMESTAMP'{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(sep=' ')}Z'"


def _interval(value: timedelta) -> str:
    sign, length = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(length.seconds, 60)
    time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{length.microseconds:06}"
    return f"INTERVAL '{sign}{length.days} {time}' DAY TO SECOND"


def _item(value: Any) -> Any:
    """Returns the Python value of a NumPy scalar. Times in nanoseconds, whose `item()` is an int, become
    datetime or timedelta."""
    item = value.item()
    if not isinstance(item, int) or value.dtype.kind not in "mM":
        return item
    if not str(value.dtype).endswith("[ns]"):
        raise InvalidTypeError("Python has no value for this time of NumPy", found=f"{value!r}")
    if item % 1000:
        raise InvalidArgumentError("a time has digits below a microsecond", found=value)
    return value.astype(f"{value.dtype.kind}8[us]").item()


def _struct(value: Mapping[Any, Any]) -> str:
    parts = []
    for name, item in value.items():
        if not isinstance(name, str):
            raise InvalidTypeError("field names of a struct must be strings", found=repr(name))
        parts += [_text(name), lit(item)]
    return f"named_struct({', '.join(parts)})"


def enclosed(text: str) -> str:
    """Puts a user's expression in brackets, for use inside a longer text. The line break ends a `--` comment.
    A quoted name needs neither."""
    return text if _QUOTED.fullmatch(text) else f"({text}\n)"
