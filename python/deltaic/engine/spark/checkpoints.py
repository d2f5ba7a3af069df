"""Checkpoints: rows of a DataFrame that is not deterministic, computed once and dropped after the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deltaic.engine.spark.native.session import has_jvm


@contextmanager
def checkpointed(frame: Any) -> Iterator[Any]:
    """Computes the frame now and yields one that reads the computed rows, until the body ends. If a block of
    them is lost, a query fails and never computes other rows."""
    checkpoint, spark = frame.localCheckpoint(eager=True), frame.sparkSession
    if has_jvm(spark):
        yield checkpoint
        return
    if checkpoint.sparkSession is not spark:
        # PySpark's client of Connect returns a frame of the active session, but the server knows the
        # checkpoint only in the session of `frame`.
        remote = checkpoint._plan
        checkpoint = spark._create_remote_dataframe(remote._relation_id)
        remote._relation_id = None
    try:
        yield checkpoint
    finally:
        _drop(checkpoint._plan)


def _drop(remote: Any) -> None:
    """Asks the server of Spark Connect to drop a checkpoint.

    PySpark sends this request when Python deletes the plan (`__del__`). If the plan is part of a reference
    cycle, such as that of an error and its traceback, the garbage collector deletes it at any moment, also
    within another request, whose lock the new one can then wait for without end. A plan without an id sends
    no request."""
    delete = getattr(type(remote), "__del__", None)
    if delete is not None:
        delete(remote)
        remote._relation_id = None
