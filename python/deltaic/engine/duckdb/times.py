"""Evaluates the timestamp of time travel in SQL, such as `current_timestamp() - INTERVAL 1 HOUR`, and the
ends of a range of changes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from deltaic.deferred import pyarrow as pa
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import InvalidArgumentError
from deltaic.log.history import travel_time
from deltaic.plan.nodes import Project

_TIMES = ("string", "timestamp", "timestamp_ntz", "date")


def timestamp_of(text: str) -> datetime:
    """Evaluates an SQL expression of a timestamp, of a date or of their text, in the time zone of
    `configure(time_zone=)`."""
    micros, _ = _evaluated(f"unix_micros(TRY_CAST(({text}) AS TIMESTAMP))")
    return travel_time(micros, text)


def end_of_range(text: str) -> int | datetime:
    """Evaluates an SQL expression where a range of changes begins or ends: a version, or what `timestamp_of`
    takes."""
    value, kind = _evaluated(text)
    if value is None:
        raise InvalidArgumentError("a range of changes begins and ends at a version or a time", found=text)
    if kind in ("integer", "long"):
        return int(value)
    if kind not in _TIMES:
        raise InvalidArgumentError(
            "[DELTA_UNSUPPORTED_EXPRESSION] an expression of this type is no end of a range of changes",
            where=text,
            found=kind,
            expected="integer, long, string or timestamp",
        )
    return timestamp_of(text)


def _evaluated(text: str) -> tuple[Any, str]:
    """Returns the value of an expression without columns, and the name of its type."""
    engine = LocalEngine()
    one = engine.source(pa.table({"one": [1]}), "d")
    result = engine.run(Project(one, (("value", engine.resolve(text, {})),), "d"))
    (value,) = engine.to_table(result)["value"].to_pylist()
    return value, str(result.schema[0].type)
