"""New data files by our own writer within Spark's tasks: for stores where the renames of Spark's committer are copies.

A task that ran twice, or in vain, leaves files that no version names, for vacuum: only what the attempts that count answer is committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.batches import of_bytes, relabelled, to_bytes
from deltaic.engine.spark.stores import travels
from deltaic.errors import CommitError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.column_mapping import NESTED_IDS
from deltaic.protocol.schema import Schema, walk

if TYPE_CHECKING:
    from deltaic.engine.engine import WriteTarget
    from deltaic.engine.spark.engine import SparkEngine

SETTING = "spark.deltaic.write.direct"
"""true, false, or auto: where renames are dear."""
_DEAR = frozenset({"s3", "s3a", "s3n", "gs"})


def is_direct(engine: SparkEngine, target: WriteTarget) -> bool:
    """True if tasks write a table's files by themselves: where the setting says so, and where elements, keys and values have ids
    (Iceberg compatibility), which Spark's own writer leaves out. UnsupportedFeatureError where they have to and cannot."""
    said = str(engine.spark.conf.get(SETTING, "auto")).lower()
    if said not in ("true", "false", "auto"):
        raise InvalidArgumentError(f"the setting {SETTING}", found=said, expected="true, false or auto")
    if any(NESTED_IDS in item.metadata for _, item in walk(Schema.from_json(target.schema.json))):
        if travels(target.store):
            return True
        raise UnsupportedFeatureError(
            "tasks write arrays and maps of tables with Iceberg compatibility themselves, where only Hadoop's file system reaches",
            where=target.store.location,
        )
    if said == "auto":
        return target.store.location.partition("://")[0].lower() in _DEAR and travels(target.store)
    if said == "true" and not travels(target.store):
        raise UnsupportedFeatureError("tasks that write by themselves where only Hadoop's file system reaches", where=target.store.location)
    return said == "true"


def write_directly(frame: Any, table: Schema, target: WriteTarget) -> pa.Table:
    """-> the `add` actions of the rows of `frame`, whose columns are those of `table`: the target's, hidden ones of row tracking last."""
    store, options = target.store, json.dumps({**target.options, "threads": 1, "synced_by_commit": False})
    definition = (target.schema.json, target.schema.partition_columns, target.schema.column_mapping)
    hidden, ids, columns = list(target.row_tracking or ()), list(target.hidden_ids), table.to_json()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = _core.TableSchema(*definition)
        given = _core.TableSchema(columns)
        declared = given.to_arrow()
        seen = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal seen
            for batch in relabelled(batches, declared):
                seen += batch.num_rows
                yield batch

        rows = _core.conform(pa.RecordBatchReader.from_batches(declared, counted()), given)
        adds = _core.write(store, schema.with_hidden(hidden, ids) if hidden else schema, rows, options)
        yield pa.RecordBatch.from_arrays([pa.array([to_bytes(adds)], pa.binary()), pa.array([seen], pa.int64())], names=["adds", "seen"])

    answers = frame.mapInArrow(task, "adds binary, seen bigint").toArrow()
    adds = pa.concat_tables([of_bytes(each) for each in answers["adds"].to_pylist()] or [_core.empty_adds()])
    found, expected = int(pc.sum(_core.physical_rows(adds)).as_py() or 0), int(pc.sum(answers["seen"]).as_py() or 0)
    if found != expected:
        raise CommitError("the files that were written have not the rows that were written", found=found, expected=expected)
    return adds
