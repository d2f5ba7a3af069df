"""Evaluates the timestamp of time travel in SQL, such as `current_timestamp() - INTERVAL 1 HOUR`."""

from __future__ import annotations

from datetime import datetime

from deltaic.deferred import pyarrow as pa
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.log.history import travel_time
from deltaic.plan.nodes import Project


def timestamp_of(text: str) -> datetime:
    """Evaluates an SQL expression of a timestamp, of a date or of their text, in the time zone of
    `configure(time_zone=)`."""
    engine = LocalEngine()
    value = engine.resolve(f"unix_micros(TRY_CAST(({text}) AS TIMESTAMP))", {})
    one = engine.source(pa.table({"one": [1]}), "d")
    (micros,) = engine.to_table(engine.run(Project(one, (("micros", value),), "d")))["micros"].to_pylist()
    return travel_time(micros, text)
