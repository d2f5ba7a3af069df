"""DataFrames under the names of temporary table functions: `FROM name()` shows the column `_metadata`, which a temporary view hides."""

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
    """Makes the function of a DataFrame whose columns are also known as `name`.x; False where only a view can be made."""
    engine = engine_of(spark)

    def native() -> bool:
        plan = analyzed_plan(frame.alias(name))
        table_functions(spark).createOrReplaceTempFunction(name, engine.jvm.callbacks.function(plan), "internal")
        return True

    return engine.read_path.planned("a plan as a table function", native, lambda: False)


def drop(spark: Any, name: str) -> None:
    """Removes the function, if it is there."""
    session_catalog(spark).dropTempFunction(name, True)
