"""Which rows of a file count, as a Catalyst expression over the file's own constants: a set of row indexes that travels with its task.

Nothing is joined and nothing broadcast; it is part of the generated code of the scan's stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deltaic.engine.spark.native.jvm import EXPRESSIONS, Jvm

ROW_INDEX = "_tmp_metadata_row_index"
"""A data column of this name and type bigint is filled by Spark's Parquet reader with the row's absolute index."""

BITS = "__deltaic_bits"
ROARING = "__deltaic_roaring"
SETS = (BITS, ROARING)


def in_set(jvm: Jvm, names: Sequence[str]) -> Any:
    """Column: whether the row is in its file's set, which stands in one of the columns `names` (of SETS)."""
    from pyspark.sql import functions as F

    found = None
    for name, look in ((BITS, _in_bits), (ROARING, _in_roaring)):
        if name in names:
            here = F.col(name).isNotNull() & look(jvm)
            found = here if found is None else found | here
    return F.lit(False) if found is None else found


def _in_bits(jvm: Jvm) -> Any:
    """`BitSetMethods.isSet` is an unsafe read: the bound before it must stay."""
    from pyspark.sql import functions as F

    offset = F.lit(jvm.get("org.apache.spark.unsafe.Platform").BYTE_ARRAY_OFFSET).cast("long")
    arguments = [expression_of(jvm, column) for column in (F.col(BITS), offset, F.col(ROW_INDEX).cast("int"))]
    integers = jvm.primitive("Long"), jvm.primitive("Integer")
    methods = jvm.having("org.apache.spark.unsafe.bitset.BitSetMethods", "isSet", jvm.type_of("java.lang.Object"), *integers)
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
    return (F.col(ROW_INDEX) < F.octet_length(BITS).cast("long") * 8) & column_of(jvm, call)


def _in_roaring(jvm: Jvm) -> Any:
    from pyspark.sql import functions as F

    def of(name: str) -> Any:
        return jvm.get("org.apache.spark.sql.types.ObjectType")(jvm.type_of(name))

    buffer = jvm.get(EXPRESSIONS + "objects.StaticInvoke")(
        jvm.type_of("java.nio.ByteBuffer"),
        of("java.nio.ByteBuffer"),
        "wrap",
        jvm.seq(expression_of(jvm, F.col(ROARING))),
        jvm.seq(),
        True,
        False,
        True,
        jvm.none,
    )
    bitmap_class = "org.roaringbitmap.buffer.ImmutableRoaringBitmap"
    bitmap = jvm.get(EXPRESSIONS + "objects.NewInstance")(
        jvm.having(bitmap_class, "contains", jvm.primitive("Integer")), jvm.seq(buffer), jvm.seq(), True, of(bitmap_class), jvm.none
    )
    contains = jvm.get(EXPRESSIONS + "objects.Invoke")(
        bitmap,
        "contains",
        jvm.companion("org.apache.spark.sql.types.BooleanType"),
        jvm.seq(expression_of(jvm, F.col(ROW_INDEX).cast("int"))),
        jvm.seq(),
        True,
        True,
        True,
    )
    return column_of(jvm, contains)


def opaque(jvm: Jvm, column: Any) -> Any:
    """The column behind an expression that costs nothing and that no source looks through."""
    return column_of(jvm, jvm.get(EXPRESSIONS + "KnownNullable")(expression_of(jvm, column)))


def expression_of(jvm: Jvm, column: Any) -> Any:
    return jvm.companion("org.apache.spark.sql.classic.ExpressionUtils").expression(column._jc)


def column_of(jvm: Jvm, expression: Any) -> Any:
    from pyspark.sql import Column

    return Column(jvm.companion("org.apache.spark.sql.classic.ExpressionUtils").column(expression))
