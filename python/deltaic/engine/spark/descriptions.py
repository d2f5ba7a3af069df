"""Descriptions of a command's jobs in Spark's web interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deltaic.engine.spark.native.session import spark_context

_PROPERTY = "spark.job.description"
_PREFIX = "Delta: "


@contextmanager
def job_description(spark: Any, text: str) -> Iterator[None]:
    """While it is entered, jobs of this thread have the description `Delta: text`, behind what the user has
    set: `Delta: nightly: text`. A command within a command keeps the description of the outer one. Spark
    Connect has no descriptions.

    Source: delta-spark's DeltaProgressReporter, for the form."""
    context = spark_context(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_PROPERTY)
    if before is not None and before.startswith(_PREFIX):
        yield
        return
    context.setLocalProperty(_PROPERTY, f"{_PREFIX}{text}" if before is None else f"{_PREFIX}{before}: {text}")
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, before)
