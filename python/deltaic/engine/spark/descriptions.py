"""Sets the descriptions of a command's jobs in Spark's web interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deltaic.engine.spark.native.session import spark_context

_PROPERTY = "spark.job.description"
_PREFIX = "Delta: "


@contextmanager
def job_description(spark: Any, text: str) -> Iterator[None]:
    """While the context is entered, jobs of this thread have the description `Delta: text`, or `Delta:
    nightly: text` if the user has set the description `nightly`. A command within a command keeps the outer
    command's description. Spark Connect has no descriptions.

    Source of the form: delta-spark's DeltaProgressReporter."""
    context = spark_context(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_PROPERTY)
    if before is not None and before.startswith(_PREFIX):
        yield
        return
    context.setLocalProperty(
        _PROPERTY, f"{_PREFIX}{text}" if before is None else f"{_PREFIX}{before}: {text}"
    )
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, before)
