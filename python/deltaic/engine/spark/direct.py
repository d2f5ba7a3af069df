"""Writes data files with `_core` inside Spark's tasks, directly to their final location. This is used for
object stores, where each rename of Spark's committer copies the file.

Only the add actions that successful tasks return are committed. A task that fails or runs twice leaves files
that no version refers to; VACUUM deletes them.
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
    from deltaic.engine.spark.engine_session import EngineSession

SETTING = "spark.deltaic.write.direct"
"""Setting: `true`, `false`, or `auto` (the default), which means true for the schemes of _COPYING_RENAMES."""
_COPYING_RENAMES = frozenset({"s3", "s3a", "s3n", "gs"})
"""Schemes of stores whose rename copies the file."""


def is_direct(session: EngineSession, target: WriteTarget) -> bool:
    """True if tasks write the table's files with `_core`. Tables with Iceberg compatibility are always
    written so: array elements, map keys and map values have field ids there, which Spark's writer leaves out.
    Else SETTING decides. Raises UnsupportedFeatureError if tasks must write the files and cannot use the
    store."""
    setting = str(session.spark.conf.get(SETTING, "auto")).lower()
    if setting not in ("true", "false", "auto"):
        raise InvalidArgumentError(
            f"invalid value of the setting {SETTING}", found=setting, expected="true, false or auto"
        )
    if any(NESTED_IDS in item.metadata for _, item in walk(Schema.from_json(target.schema.json))):
        if travels(target.store):
            return True
        raise UnsupportedFeatureError(
            "arrays and maps of a table with Iceberg compatibility cannot be written to a location that only"
            " Hadoop's file system reaches",
            where=target.store.location,
        )
    if setting == "auto":
        return target.store.location.partition("://")[0].lower() in _COPYING_RENAMES and travels(target.store)
    if setting == "true" and not travels(target.store):
        raise UnsupportedFeatureError(
            f"{SETTING} for a location that only Hadoop's file system reaches", where=target.store.location
        )
    return setting == "true"


def write_directly(frame: Any, table: Schema, target: WriteTarget) -> pa.Table:
    """Writes the rows of `frame` and returns the add actions of the new files. `table`: the frame's columns:
    the columns of the target's schema, then the hidden columns of row tracking."""
    store, options = target.store, json.dumps({**target.options, "threads": 1, "synced_by_commit": False})
    definition = (target.schema.json, target.schema.partition_columns, target.schema.column_mapping)
    hidden, ids, columns = list(target.row_tracking or ()), list(target.hidden_ids), table.to_json()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = _core.TableSchema(*definition)
        input_schema = _core.TableSchema(columns)
        declared = input_schema.to_arrow()
        row_count = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal row_count
            for batch in relabelled(batches, declared):
                row_count += batch.num_rows
                yield batch

        rows = _core.conform(pa.RecordBatchReader.from_batches(declared, counted()), input_schema)
        adds = _core.write(store, schema.with_hidden(hidden, ids) if hidden else schema, rows, options)
        counts = pa.array([row_count], pa.int64())
        yield pa.RecordBatch.from_arrays(
            [pa.array([to_bytes(adds)], pa.binary()), counts], names=["adds", "row_count"]
        )

    results = frame.mapInArrow(task, "adds binary, row_count bigint").toArrow()
    adds = pa.concat_tables([of_bytes(each) for each in results["adds"].to_pylist()] or [_core.empty_adds()])
    row_count, expected = (
        int(pc.sum(_core.physical_rows(adds)).as_py() or 0),
        int(pc.sum(results["row_count"]).as_py() or 0),
    )
    if row_count != expected:
        raise CommitError(
            "the new files do not have as many rows as were written", found=row_count, expected=expected
        )
    return adds
