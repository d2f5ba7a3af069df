"""Keys of the Z-order curve as Catalyst expressions: look-ups in sorted arrays of boundaries, and shifts. No row leaves the JVM.

The keys are those of `_core.curve_keys`. Types that Java compares as Spark does; of others the Arrow function makes the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deltaic.engine.spark.native.deleted_rows import column_of, expression_of
from deltaic.engine.spark.native.jvm import EXPRESSIONS, Jvm

NOISE_BITS = 20


def key_column(jvm: Jvm, texts: Sequence[str], boundaries: Sequence[pa.Array]) -> tuple[Any, int] | None:
    """Column (bigint) with the Z-order key of expressions over a frame, and how many bits it has; None where there is no such form."""
    from pyspark.sql import functions as F

    bits = max(1, max(map(len, boundaries)).bit_length())
    forms = [_form(text, limits.type) for text, limits in zip(texts, boundaries, strict=True)]
    if bits * len(texts) > 63 or any(form is None for form in forms):
        return None
    ids = []
    for form, limits in zip(forms, boundaries, strict=True):
        assert form is not None
        values, plain = form
        at = F.coalesce(position(jvm, F.expr(values), _numbers(limits, plain)).cast("long"), F.lit(0))
        ids.append(at)
    key = None
    for bit in range(bits):
        for number, at in enumerate(ids):
            moved = F.shiftleft(F.shiftright(at, bit).bitwiseAND(F.lit(1)), bit * len(ids) + len(ids) - 1 - number)
            key = moved if key is None else key.bitwiseOR(moved)
    return key, bits * len(ids)


def position(jvm: Jvm, values: Any, limits: Any) -> Any:
    """Column: how many of the ascending `limits` (a NumPy array of int64 or float64, each once) are less than the value; null for null."""
    from pyspark.sql import functions as F

    kind = jvm.get("long") if limits.dtype == np.int64 else jvm.get("double")
    array = _java_array(jvm, kind, limits)
    held = jvm.get(EXPRESSIONS + "Literal")(array, jvm.get("org.apache.spark.sql.types.ObjectType")(array.getClass()))
    call = jvm.get(EXPRESSIONS + "objects.StaticInvoke")(
        jvm.type_of("java.util.Arrays"),
        jvm.companion("org.apache.spark.sql.types.IntegerType"),
        "binarySearch",
        jvm.seq(held, expression_of(jvm, values)),
        jvm.seq(),
        True,
        True,
        True,
        jvm.none,
    )
    found = column_of(jvm, call)
    return F.when(found < 0, -found - 1).otherwise(found)


def spread(jvm: Jvm, keyed: Any, key: str, bits: int, sampled: Any, tasks: int, *, noise: bool) -> Any | None:
    """The rows in `tasks` partitions of about equal size by ranges of `key`, which `sampled` (a NumPy array of keys) cuts. With `noise` the
    rows of one key go to as many as they fill. None where key and noise do not fit into one number."""
    from pyspark.sql import functions as F

    if not len(sampled) or bits + NOISE_BITS > 63 or not hasattr(keyed, "repartitionById"):
        return None
    drawn = np.random.default_rng(0).integers(0, 1 << NOISE_BITS, len(sampled)) if noise else np.zeros(len(sampled), np.int64)
    places = np.sort((sampled.astype(np.int64) << NOISE_BITS) + drawn)
    limits = np.unique(places[[len(places) * number // tasks for number in range(1, tasks)]])
    mine = F.shiftleft(F.col(key), NOISE_BITS)
    if noise:
        mine = mine + (F.rand(0) * (1 << NOISE_BITS)).cast("long")
    return keyed.repartitionById(tasks, position(jvm, mine, limits))


def _form(text: str, data_type: pa.DataType) -> tuple[str, pa.DataType] | None:
    """The expression as a number that is ordered as its values are, and the Arrow type that boundaries become."""
    if pa.types.is_signed_integer(data_type):
        return f"CAST({text} AS BIGINT)", pa.int64()
    if pa.types.is_date32(data_type):
        return f"CAST(unix_date({text}) AS BIGINT)", pa.int32()
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return f"unix_micros({text})", pa.int64()
    if pa.types.is_floating(data_type):  # one zero, one NaN
        wide = f"CAST({text} AS DOUBLE)"
        return f"CASE WHEN isnan({wide}) THEN double('NaN') WHEN {wide} = 0 THEN 0.0D ELSE {wide} END", pa.float64()
    return None


def _numbers(limits: pa.Array, plain: pa.DataType) -> Any:
    found = limits.cast(plain).to_numpy(zero_copy_only=False)
    return found.astype(np.float64 if pa.types.is_floating(plain) else np.int64)


def _java_array(jvm: Jvm, kind: Any, values: Any) -> Any:
    """long[] or double[] in one call."""
    made = jvm.gateway.new_array(kind, len(values))
    if len(values):
        buffer = jvm.get("java.nio.ByteBuffer").wrap(bytearray(values.astype(values.dtype.newbyteorder(">")).tobytes()))
        (buffer.asLongBuffer() if values.dtype == np.int64 else buffer.asDoubleBuffer()).get(made)
    return made
