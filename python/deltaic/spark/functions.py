"""Functions over Spark columns: keys of space-filling curves, Z85 text, and lookups in deletion vectors.

Each function is an Arrow UDF (`form="arrow"`, the default) or a vectorised pandas UDF (`form="pandas"`); both
have the same results. Another `form` raises InvalidArgumentError. A column is a Column or a name. `register`,
and `deltaic.spark.enable`, add the functions to the session's SQL under the same names. Executors need the
deltaic wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import pyarrow as pa

from deltaic import _core
from deltaic.errors import InvalidArgumentError

Form = Literal["arrow", "pandas"]
ColumnOrName = Any
"""A Column or the name of a column."""

__all__ = [
    "hilbert_index",
    "interleave_bits",
    "range_partition_id",
    "register",
    "row_is_deleted",
    "z85_decode",
    "z85_encode",
]


def range_partition_id(column: ColumnOrName, bounds: Sequence[Any], *, form: Form = "arrow") -> Any:
    """Returns an int column with the number of `bounds` that are less than the value: with bounds [10, 20],
    10 is in range 0 and 15 in range 1. Null is in range 0.

    `bounds`: values of the column's type, ascending. In SQL they are a constant array:
    `range_partition_id(x, array(10, 20))`.

    >>> spark.range(15, 16).select(functions.range_partition_id("id", [10, 20])).first()[0]
    1
    """
    limits = list(bounds)

    def ids(values: pa.Array) -> pa.Array:
        return _range_ids(values, limits)

    return _udf(ids, "int", form)(column)


def interleave_bits(*columns: ColumnOrName, form: Form = "arrow") -> Any:
    """Returns a binary column with the Z-order key of int columns, 4 bytes for each: their bits by turns, the
    most significant first. Null counts as 0. Raises InvalidArgumentError without columns.

    >>> point = spark.sql("SELECT 1 AS x, 0 AS y")
    >>> point.select(functions.interleave_bits("x", "y")).first()[0].hex()
    '0000000000000002'
    """
    return _udf(_interleaved, "binary", form)(*_some(columns))


def hilbert_index(bits: int, *columns: ColumnOrName, form: Form = "arrow") -> Any:
    """Returns a binary column with the position of a point on the Hilbert curve; the position sorts as the
    curve runs. `columns`: the point's coordinates, int columns. `bits`: bits of each coordinate, 1 to 32.
    Raises InvalidArgumentError without columns.

    >>> point = spark.sql("SELECT 1 AS x, 1 AS y")
    >>> point.select(functions.hilbert_index(8, "x", "y")).first()[0].hex()
    '0002'
    """

    def index(*values: pa.Array) -> pa.Array:
        return _core.hilbert_index([value.cast(pa.int32()) for value in values], bits)

    return _udf(index, "binary", form)(*_some(columns))


def z85_encode(column: ColumnOrName, *, form: Form = "arrow") -> Any:
    """Returns a string column with a binary column as Z85 text. Bytes are padded with zeros to a multiple of
    4.

    >>> spark.sql("SELECT X'864FD26FB559F75B' AS b").select(functions.z85_encode("b")).first()[0]
    'HelloWorld'
    """
    return _udf(_core_function("z85_encode_values"), "string", form)(column)


def z85_decode(column: ColumnOrName, *, form: Form = "arrow") -> Any:
    """Returns a binary column with the bytes of a string column of Z85 text. A query fails on text that is
    not Z85.

    >>> spark.sql("SELECT 'HelloWorld' AS t").select(functions.z85_decode("t")).first()[0].hex()
    '864fd26fb559f75b'
    """
    return _udf(_core_function("z85_decode_values"), "binary", form)(column)


def row_is_deleted(vector: ColumnOrName, row_index: ColumnOrName, *, form: Form = "arrow") -> Any:
    """Returns a boolean column: True if a deletion vector contains a row index. A null vector contains none;
    the result for a null index is null.

    `vector`: a binary column of vectors in PROTOCOL.md's portable format. `row_index`: an integer column.

    >>> vector = deltaic.DeletionVector.from_rows([1]).to_bytes()
    >>> rows = spark.createDataFrame([(vector, 0), (vector, 1)], "vector BINARY, row BIGINT")
    >>> [row[0] for row in rows.select(functions.row_is_deleted("vector", "row")).collect()]
    [False, True]
    """
    return _udf(_deleted, "boolean", form)(vector, row_index)


def register(spark: Any, *, form: Form = "arrow") -> None:
    """Adds all functions of this module to the session's SQL.

    >>> functions.register(spark)
    >>> spark.sql("SELECT range_partition_id(15, array(10, 20))").first()[0]
    1
    """
    for name, (function, kind) in _in_sql().items():
        spark.udf.register(name, _udf(function, kind, form))


def unregister(spark: Any) -> None:
    """Removes the functions of this module from the session's SQL."""
    from deltaic.spark.patches import spark_sql

    for name in _in_sql():
        spark_sql(spark, f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def _in_sql() -> dict[str, tuple[Callable[..., pa.Array], str]]:
    return {
        "range_partition_id": (_ids_in_rows, "int"),
        "interleave_bits": (_interleaved, "binary"),
        "hilbert_index": (_index_in_rows, "binary"),
        "z85_encode": (_core_function("z85_encode_values"), "string"),
        "z85_decode": (_core_function("z85_decode_values"), "binary"),
        "row_is_deleted": (_deleted, "boolean"),
    }


def _some(columns: tuple[ColumnOrName, ...]) -> tuple[ColumnOrName, ...]:
    if not columns:
        raise InvalidArgumentError("a curve needs columns", found="none", expected="at least one column")
    return columns


def _core_function(name: str) -> Callable[..., pa.Array]:
    """Returns a Python function that calls a function of `_core` by name, because functions of a compiled
    module cannot be pickled."""

    def call(*values: pa.Array) -> pa.Array:
        return getattr(_core, name)(*values)

    return call


def _interleaved(*values: pa.Array) -> pa.Array:
    return _core.interleave_bits([value.cast(pa.int32()) for value in values])


def _deleted(vectors: pa.Array, rows: pa.Array) -> pa.Array:
    return _core.rows_deleted(vectors, rows.cast(pa.int64()))  # pandas stores integers with nulls as floats


def _ids_in_rows(values: pa.Array, bounds: pa.Array) -> pa.Array:
    return _range_ids(values, _constant(bounds, "range_partition_id: the bounds") or [])


def _range_ids(values: pa.Array, limits: Sequence[Any]) -> pa.Array:
    if pa.types.is_null(values.type):  # a pandas column of nulls alone has no type
        return pa.repeat(pa.scalar(0, pa.int32()), len(values))
    return _core.range_ids(values, pa.array(limits, values.type))


def _index_in_rows(bits: pa.Array, *values: pa.Array) -> pa.Array:
    return _core.hilbert_index(
        [value.cast(pa.int32()) for value in values], _constant(bits, "hilbert_index: the bits") or 0
    )


def _constant(values: pa.Array, what: str) -> Any:
    """Returns the value of a constant column; None for a batch without rows. Raises InvalidArgumentError if
    the values differ."""
    if not len(values):
        return None
    first = values[0]
    # One comparison of two columns instead of one for each row. Spark repeats a constant in each row.
    repeated = pa.repeat(first, len(values))
    if not repeated.equals(values.cast(repeated.type)):
        raise InvalidArgumentError(f"{what} differ from row to row", expected="one constant")
    return first.as_py()


def _udf(function: Callable[..., pa.Array], kind: str, form: Form) -> Any:
    """Returns a UDF of a function over Arrow arrays. `kind`: Spark's name of the result's type."""
    if form == "arrow":
        from pyspark.sql.functions import arrow_udf

        return arrow_udf(_arrow(function), kind)
    if form == "pandas":
        from pyspark.sql.functions import pandas_udf

        return pandas_udf(_pandas(function), kind)
    raise InvalidArgumentError("unknown form of a function", found=repr(form), expected="'arrow' or 'pandas'")


def _arrow(function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    def call(*columns: pa.Array) -> pa.Array:
        return function(*columns)

    return _annotated(call, pa.Array)


def _pandas(function: Callable[..., pa.Array]) -> Callable[..., Any]:
    import pandas

    def call(*columns: Any) -> Any:
        answer = function(*(pa.Array.from_pandas(column) for column in columns))
        # A column of objects with None for null: pandas' own number types would turn integers with nulls
        # into floats.
        return answer.to_pandas(integer_object_nulls=True).astype(object)

    return _annotated(call, pandas.Series)


def _annotated(call: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """Sets the annotations by which PySpark finds out a UDF's form."""
    call.__annotations__ = {"columns": kind, "return": kind}
    return call
