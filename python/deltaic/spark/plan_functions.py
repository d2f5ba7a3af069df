"""Creates temporary table functions that return DataFrames. In `FROM name()` the column `_metadata` is
visible; a temporary view would hide it."""

from __future__ import annotations

import re
from typing import Any

from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.native.session import analyzed_plan, session_catalog, table_functions

_METADATA = re.compile(r"\b_metadata\b", re.IGNORECASE)


def mentions_metadata(text: str) -> bool:
    """True if a statement may read `_metadata`."""
    return _METADATA.search(text) is not None


def make(spark: Any, name: str, frame: Any) -> bool:
    """Creates a table function that returns a DataFrame, whose columns can be qualified as `name`.x. Returns
    True; False on the public path, which has no such functions."""
    engine = engine_of(spark)

    def native() -> bool:
        plan = analyzed_plan(frame.alias(name))
        table_functions(spark).createOrReplaceTempFunction(
            name, engine.jvm.callbacks.function(plan), "internal"
        )
        return True

    return engine.read_path.planned("a plan as a table function", native, lambda: False)


def drop(spark: Any, name: str) -> None:
    """Removes the function, if it exists."""
    session_catalog(spark).dropTempFunction(name, True)
