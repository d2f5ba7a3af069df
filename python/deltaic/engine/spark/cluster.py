"""Sorts rows along a space-filling curve (Z-order or Hilbert) on a cluster. A sample gives the boundaries of
each column's ranges; each row gets a key from the ranges of its values; ranges of keys become files of about
equal size.

Rows with equal keys would all go to one file. Random bits behind the key (noise) divide them over several
files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.engine import Curve
from deltaic.engine.spark.native import curve as native_curve
from deltaic.plan.literal import col
from deltaic.plan.nodes import Scan
from deltaic.planning.opening import scan_schema

if TYPE_CHECKING:
    from deltaic.engine.spark.engine_session import EngineSession

RANGES_SETTING = "spark.deltaic.zorder.ranges"
"""Setting: number of ranges into which the values of a column are divided."""
NOISE_SETTING = "spark.deltaic.zorder.noise"
"""Setting: if true (the default), rows with equal keys may be divided over several files."""
NATIVE_SETTING = "spark.deltaic.zorder.native"
"""Setting: if true (the default), Catalyst expressions compute the keys of the Z-order curve for the types
that they can compare; if false, an Arrow function computes all keys."""
SMALLEST_SETTING = "spark.deltaic.zorder.smallestFile"
"""Setting: minimum bytes of a file, if more files than necessary are written so that all cores have a
task."""
SMALLEST_FILE = 32 * 1024**2
"""Default of SMALLEST_SETTING."""
SAMPLED_ROWS = 100_000
"""Number of rows from which the boundaries of ranges are computed."""
KEY = "__deltaic_key"


def clustered(
    session: EngineSession,
    frame_of: Callable[[Scan], Any],
    scan: Scan,
    columns: Sequence[str],
    curve: Curve,
    files: int,
) -> Any:
    """Returns a DataFrame of the scan's rows. Its partitions are ranges of the curve, and each is sorted
    along the curve. It has `files` partitions, or as many as the cluster runs tasks at once, if each file
    then still has SMALLEST_SETTING bytes."""
    from pyspark.sql import functions as F

    texts = [".".join(map(col, (scan.alias, *scan.schema.find(name)[0]))) for name in columns]
    names = [f"__deltaic_curve_{number}" for number in range(len(columns))]
    tasks = max(
        files, min(_tasks(session), int(pc.sum(scan.files["size"]).as_py() or 0) // _smallest_file(session))
    )
    sampled = _sampled(frame_of, scan, columns, texts, names)
    bounds = _core.RangeBounds.sample(
        sampled.to_reader(), names, ranges=_ranges(session), sample_size=SAMPLED_ROWS
    )
    frame = frame_of(scan)
    noise = session.spark.conf.get(NOISE_SETTING, "true").lower() == "true"
    spread = None
    if curve == "zorder" and len(columns) == 1:
        keyed = frame.withColumn(KEY, F.expr(texts[0]))
    elif (native_key := _native_key(session, texts, bounds, curve)) is not None:
        keyed, bits = frame.withColumn(KEY, native_key[0]), native_key[1]
        if tasks > 1:
            keys = _core.curve_keys(sampled.to_reader(), bounds, curve).read_all()[KEY].to_numpy()
            spread = session.read_path.planned(
                "ranges of a curve",
                lambda: native_curve.spread(session.jvm, keyed, KEY, bits, keys, tasks, noise=noise),
                lambda: None,
            )
    else:
        function, kind = _key_function(bounds, names, curve)
        keyed = frame.withColumn(KEY, F.arrow_udf(function, kind)(*map(F.expr, texts)))
    if spread is None:
        order = [F.col(KEY), F.rand(0)] if noise else [F.col(KEY)]
        spread = keyed.repartitionByRange(tasks, *order) if tasks > 1 else keyed.coalesce(1)
    return spread.sortWithinPartitions(KEY).select(*(F.col(col(name)) for name in scan_schema(scan).names))


def _tasks(session: EngineSession) -> int:
    return int(session.spark.sparkContext.defaultParallelism) if session.is_native else 1


def _smallest_file(session: EngineSession) -> int:
    return max(1, int(session.spark.conf.get(SMALLEST_SETTING, str(SMALLEST_FILE))))


def _ranges(session: EngineSession) -> int:
    return int(session.spark.conf.get(RANGES_SETTING, "1000"))


def _native_key(
    session: EngineSession, texts: Sequence[str], bounds: _core.RangeBounds, curve: Curve
) -> tuple[Any, int] | None:
    """Returns the key as a column of a Catalyst expression, and its number of bits; None if an Arrow function
    must compute the key."""
    if (
        not session.is_native
        or curve != "zorder"
        or session.spark.conf.get(NATIVE_SETTING, "true").lower() != "true"
    ):
        return None
    return session.read_path.planned(
        "the key of a curve",
        lambda: native_curve.key_column(session.jvm, texts, bounds.boundaries),
        lambda: None,
    )


def _sampled(
    frame_of: Callable[[Scan], Any],
    scan: Scan,
    columns: Sequence[str],
    texts: Sequence[str],
    names: Sequence[str],
) -> pa.Table:
    """Returns the curve's columns of about 1.5 * SAMPLED_ROWS rows; of all rows, if there are at most 2 *
    SAMPLED_ROWS or their number is unknown."""
    from pyspark.sql import functions as F

    roots = dict.fromkeys(scan.schema.find(name)[0][0] for name in columns)
    narrow = frame_of(replace(scan, columns=tuple(roots), row_tracking=None))
    counts = _core.physical_rows(scan.files)
    total = None if counts.null_count else int(pc.sum(counts).as_py() or 0)
    if total is not None and total > 2 * SAMPLED_ROWS:
        narrow = narrow.sample(fraction=min(1.0, 1.5 * SAMPLED_ROWS / total), seed=0)
    return narrow.select(
        *(F.expr(text).alias(name) for text, name in zip(texts, names, strict=True))
    ).toArrow()


def _key_function(
    bounds: _core.RangeBounds, names: Sequence[str], curve: Curve
) -> tuple[Callable[..., Any], str]:
    """Returns a function over Arrow arrays that computes each row's key, and Spark's name of the key's type.
    The function is pickled for the tasks together with the boundaries."""
    boundaries, columns = bounds.boundaries, list(names)

    def keys(*values: pa.Array) -> pa.Array:
        task_bounds = _core.RangeBounds.of(columns, boundaries)
        batch = pa.RecordBatch.from_arrays(
            [_plain(value, limit.type) for value, limit in zip(values, boundaries)],  # noqa: B905
            names=columns,
        )
        reader = _core.curve_keys(
            pa.RecordBatchReader.from_batches(batch.schema, [batch]), task_bounds, curve
        )
        return reader.read_all().column("__deltaic_key").combine_chunks()

    keys.__annotations__ = {"values": pa.Array, "return": pa.Array}
    empty = keys(*(pa.array([], limit.type) for limit in boundaries))
    return keys, "long" if pa.types.is_integer(empty.type) else "binary"


def _plain(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Returns the values in the type of the boundaries, because Spark's timestamps may have another time zone
    in their Arrow type."""
    return values if values.type == data_type else values.cast(data_type)
