"""A Catalyst expression that is true if a row's index is in the deletion vector of its file, or in the file's
selected row indexes.

The row indexes are a constant of the file, so each task gets those of its own files. Nothing is joined or
broadcast: the generated code of the scan's stage looks up each row's index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deltaic.engine.spark.native.jvm import EXPRESSIONS, Jvm

ROW_INDEX = "_tmp_metadata_row_index"
"""Name of a data column of type bigint that Spark's Parquet reader fills with the row's index in its file."""

BITS = "__deltaic_bits"
ROARING = "__deltaic_roaring"
INDEX_COLUMNS = (BITS, ROARING)
"""Constants of a file with its row indexes: as a plain bitmap, or as a serialized 32-bit Roaring bitmap. At
most one of them is not null."""


def in_row_indexes(jvm: Jvm, names: Sequence[str]) -> Any:
    """Returns a column that is true if the row's index is in the row indexes of its file. `names`: those of
    INDEX_COLUMNS that the frame has."""
    from pyspark.sql import functions as F

    condition = None
    for name, lookup in ((BITS, _in_bits), (ROARING, _in_roaring)):
        if name in names:
            is_listed = F.col(name).isNotNull() & lookup(jvm)
            condition = is_listed if condition is None else condition | is_listed
    return F.lit(False) if condition is None else condition


def _in_bits(jvm: Jvm) -> Any:
    """Returns the column `bits[row_index]`, false behind the end, for a row whose file has bits.
    `BitSetMethods.isSet` reads memory without a check, so the comparison with the length must come first.
    `KnownNotNull` keeps checks for null out of the generated code."""
    from pyspark.sql import functions as F

    bits, row_index = (_tagged(jvm, "KnownNotNull", F.col(name)) for name in (BITS, ROW_INDEX))
    offset = F.lit(jvm.get("org.apache.spark.unsafe.Platform").BYTE_ARRAY_OFFSET).cast("long")
    arguments = [jvm.expression(column) for column in (bits, offset, row_index.cast("int"))]
    integers = jvm.primitive("Long"), jvm.primitive("Integer")
    methods = jvm.having(
        "org.apache.spark.unsafe.bitset.BitSetMethods", "isSet", jvm.type_of("java.lang.Object"), *integers
    )
    call = jvm.get(EXPRESSIONS + "objects.StaticInvoke")(
        methods,
        jvm.companion("org.apache.spark.sql.types.BooleanType"),
        "isSet",
        jvm.seq(*arguments),
        jvm.seq(),
        False,
        False,
        True,
        jvm.none,
    )
    return (F.shiftright(row_index, 3) < F.octet_length(bits).cast("long")) & jvm.column(call)


def _in_roaring(jvm: Jvm) -> Any:
    from pyspark.sql import functions as F

    def of(name: str) -> Any:
        return jvm.get("org.apache.spark.sql.types.ObjectType")(jvm.type_of(name))

    buffer = jvm.get(EXPRESSIONS + "objects.StaticInvoke")(
        jvm.type_of("java.nio.ByteBuffer"),
        of("java.nio.ByteBuffer"),
        "wrap",
        jvm.seq(jvm.expression(F.col(ROARING))),
        jvm.seq(),
        True,
        False,
        True,
        jvm.none,
    )
    bitmap_class = "org.roaringbitmap.buffer.ImmutableRoaringBitmap"
    bitmap = jvm.get(EXPRESSIONS + "objects.NewInstance")(
        jvm.having(bitmap_class, "contains", jvm.primitive("Integer")),
        jvm.seq(buffer),
        jvm.seq(),
        True,
        of(bitmap_class),
        jvm.none,
    )
    contains = jvm.get(EXPRESSIONS + "objects.Invoke")(
        bitmap,
        "contains",
        jvm.companion("org.apache.spark.sql.types.BooleanType"),
        jvm.seq(jvm.expression(F.col(ROW_INDEX).cast("int"))),
        jvm.seq(),
        True,
        True,
        True,
    )
    return jvm.column(contains)


def opaque(jvm: Jvm, column: Any) -> Any:
    """Wraps a column in an expression without cost, through which Spark pushes no condition."""
    return _tagged(jvm, "KnownNullable", column)


def _tagged(jvm: Jvm, tag: str, column: Any) -> Any:
    """Wraps a column in an expression without cost that tells Spark whether the column may be null."""
    return jvm.column(jvm.get(EXPRESSIONS + tag)(jvm.expression(column)))
