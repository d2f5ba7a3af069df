"""Evaluates the timestamp of time travel in SQL, such as `current_timestamp() - INTERVAL 1 HOUR`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from deltaic.deferred import pyarrow as pa
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import InvalidArgumentError
from deltaic.plan.nodes import Project

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def timestamp_of(text: str) -> datetime:
    """Evaluates an SQL expression of a timestamp, of a date or of their text, in the time zone of
    `configure(time_zone=)`."""
    engine = LocalEngine()
    value = engine.resolve(f"unix_micros(TRY_CAST(({text}) AS TIMESTAMP))", {})
    one = engine.source(pa.table({"one": [1]}), "d")
    (micros,) = engine.to_table(engine.run(Project(one, (("micros", value),), "d")))["micros"].to_pylist()
    if micros is None:
        raise InvalidArgumentError(
            f"The provided timestamp ({text}) cannot be converted to a valid timestamp", found=text
        )
    return _EPOCH + timedelta(microseconds=micros)
