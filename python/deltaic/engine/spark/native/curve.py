"""Keys of the Z-order curve as Catalyst expressions: binary searches in sorted arrays of boundaries, and
shifts of bits. No row leaves the JVM, unlike with an Arrow function.

The keys equal those of `_core.curve_keys`. Only types that Java compares as Spark does are handled; for
others `cluster.py` uses an Arrow function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deltaic.engine.spark.native.jvm import EXPRESSIONS, Jvm

NOISE_BITS = 20
"""Number of random bits behind a key, by which rows with the same key are divided over several files."""


def key_column(jvm: Jvm, texts: Sequence[str], boundaries: Sequence[pa.Array]) -> tuple[Any, int] | None:
    """Returns a column (bigint) with the Z-order key of the expressions `texts`, and its number of bits; None
    if a type is not handled or the key would have more than 63 bits. `boundaries`: for each expression, the
    ascending limits of its ranges."""
    from pyspark.sql import functions as F

    bits = max(1, max(map(len, boundaries)).bit_length())
    forms = [_form(text, limits.type) for text, limits in zip(texts, boundaries, strict=True)]
    if bits * len(texts) > 63 or any(form is None for form in forms):
        return None
    ids = []
    for form, limits in zip(forms, boundaries, strict=True):
        assert form is not None
        values, plain = form
        range_id = F.coalesce(position(jvm, F.expr(values), _numbers(limits, plain)).cast("long"), F.lit(0))
        ids.append(range_id)
    # The bits of the range ids are interleaved, those of the first column as the higher ones: the key of the
    # ids ab and cd (bits a, b, c, d) is acbd.
    key = None
    for bit in range(bits):
        for number, range_id in enumerate(ids):
            moved = F.shiftleft(
                F.shiftright(range_id, bit).bitwiseAND(F.lit(1)), bit * len(ids) + len(ids) - 1 - number
            )
            key = moved if key is None else key.bitwiseOR(moved)
    return key, bits * len(ids)


def position(jvm: Jvm, values: Any, limits: Any) -> Any:
    """Returns a column with the number of `limits` that are less than the value; null for null. `limits`: a
    NumPy array of int64 or float64, ascending and without duplicates."""
    from pyspark.sql import functions as F

    kind = jvm.get("long") if limits.dtype == np.int64 else jvm.get("double")
    array = _java_array(jvm, kind, limits)
    literal = jvm.get(EXPRESSIONS + "Literal")(
        array, jvm.get("org.apache.spark.sql.types.ObjectType")(array.getClass())
    )
    call = jvm.get(EXPRESSIONS + "objects.StaticInvoke")(
        jvm.type_of("java.util.Arrays"),
        jvm.companion("org.apache.spark.sql.types.IntegerType"),
        "binarySearch",
        jvm.seq(literal, jvm.expression(values)),
        jvm.seq(),
        True,
        True,
        True,
        jvm.none,
    )
    index = jvm.column(call)
    # For a value that is not in the array, `binarySearch` returns -(number of smaller elements) - 1.
    return F.when(index < 0, -index - 1).otherwise(index)


def spread(jvm: Jvm, keyed: Any, key: str, bits: int, sampled: Any, tasks: int, *, noise: bool) -> Any | None:
    """Returns the rows of `keyed` in `tasks` partitions of about equal size, by ranges of the column `key`;
    None if key and noise do not fit into 63 bits. `bits`: number of bits of a key. `sampled`: a NumPy array
    of keys, from which the ranges are computed. `noise`: True if rows with the same key may be divided over
    several partitions."""
    from pyspark.sql import functions as F

    if not len(sampled) or bits + NOISE_BITS > 63 or not hasattr(keyed, "repartitionById"):
        return None
    noises = (
        np.random.default_rng(0).integers(0, 1 << NOISE_BITS, len(sampled))
        if noise
        else np.zeros(len(sampled), np.int64)
    )
    noisy_keys = np.sort((sampled.astype(np.int64) << NOISE_BITS) + noises)
    limits = np.unique(noisy_keys[[len(noisy_keys) * number // tasks for number in range(1, tasks)]])
    noisy_key = F.shiftleft(F.col(key), NOISE_BITS)
    if noise:
        noisy_key = noisy_key + (F.rand(0) * (1 << NOISE_BITS)).cast("long")
    return keyed.repartitionById(tasks, position(jvm, noisy_key, limits))


def _form(text: str, data_type: pa.DataType) -> tuple[str, pa.DataType] | None:
    """Returns the SQL of a number that sorts as the expression's values do, and the Arrow type to which
    boundaries are cast; None for types without such a number."""
    if pa.types.is_signed_integer(data_type):
        return f"CAST({text} AS BIGINT)", pa.int64()
    if pa.types.is_date32(data_type):
        return f"CAST(unix_date({text}) AS BIGINT)", pa.int32()
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return f"unix_micros({text})", pa.int64()
    if pa.types.is_floating(data_type):
        # `binarySearch` orders -0.0 before 0.0. For Spark both are equal, and so are all NaNs.
        wide = f"CAST({text} AS DOUBLE)"
        return (
            f"CASE WHEN isnan({wide}) THEN double('NaN') WHEN {wide} = 0 THEN 0.0D ELSE {wide} END",
            pa.float64(),
        )
    return None


def _numbers(limits: pa.Array, plain: pa.DataType) -> Any:
    numbers = limits.cast(plain).to_numpy(zero_copy_only=False)
    return numbers.astype(np.float64 if pa.types.is_floating(plain) else np.int64)


def _java_array(jvm: Jvm, kind: Any, values: Any) -> Any:
    """Returns a NumPy array as long[] or double[]. The bytes are sent in one call."""
    array = jvm.gateway.new_array(kind, len(values))
    if len(values):
        buffer = jvm.get("java.nio.ByteBuffer").wrap(
            bytearray(values.astype(values.dtype.newbyteorder(">")).tobytes())
        )
        (buffer.asLongBuffer() if values.dtype == np.int64 else buffer.asDoubleBuffer()).get(array)
    return array
