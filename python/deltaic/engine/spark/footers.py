"""Reads the statistics of files that Spark has written from their footers: on the driver, or in tasks if
there are many files."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic import _core
from deltaic.engine.spark.batches import of_bytes, to_bytes
from deltaic.engine.spark.stores import travels

if TYPE_CHECKING:
    from deltaic.engine.engine import WriteTarget
    from deltaic.engine.spark.engine_session import EngineSession

DRIVER_SETTING = "spark.deltaic.footers.driver"
"""Setting: maximum number of footers that the driver reads; more are read by tasks."""
TASK_SETTING = "spark.deltaic.footers.task"
"""Setting: number of footers that one task reads."""
log = logging.getLogger("deltaic.spark")


def with_statistics(session: EngineSession, adds: pa.Table, target: WriteTarget) -> pa.Table:
    """Returns the `add` actions in the same order, with statistics from the footers of their files."""
    options = json.dumps(dict(target.options))
    if adds.num_rows > int(session.spark.conf.get(DRIVER_SETTING, "2000")) and travels(target.store):
        try:
            return _by_tasks(session, adds, target, options)
        except Exception:
            # The executors may have no access to the store. Tasks have written nothing, so the driver can
            # read the footers instead.
            log.warning("footers could not be read by tasks, the driver reads them", exc_info=True)
    return _core.footers(target.store, target.schema, adds, options)


def _by_tasks(session: EngineSession, adds: pa.Table, target: WriteTarget, options: str) -> pa.Table:
    share = max(1, int(session.spark.conf.get(TASK_SETTING, "500")))
    parts = [to_bytes(adds.slice(start, share)) for start in range(0, adds.num_rows, share)]
    store, table = (
        target.store,
        (target.schema.json, target.schema.partition_columns, target.schema.column_mapping),
    )

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = _core.TableSchema(*table)
        for batch in batches:
            read_adds = [
                to_bytes(_core.footers(store, schema, of_bytes(each), options))
                for each in batch.column(1).to_pylist()
            ]
            yield pa.RecordBatch.from_arrays(
                [batch.column(0), pa.array(read_adds, pa.binary())], names=["part", "adds"]
            )

    spark: Any = session.spark
    part_rows = spark.createDataFrame(
        pa.table({"part": pa.array(range(len(parts)), pa.int32()), "adds": pa.array(parts, pa.binary())})
    )
    results = (
        part_rows.repartition(len(parts), "part")
        .mapInArrow(read, "part int, adds binary")
        .toArrow()
        .sort_by("part")
    )
    measured = pa.concat_tables([of_bytes(each) for each in results["adds"].to_pylist()])
    if not measured["path"].equals(adds["path"]):
        raise RuntimeError("tasks returned statistics of other files than those they got")
    return measured
