"""Kernels: functions that DuckDB does not have. `rust/src/expressions/` computes them on Arrow arrays,
without Python's global lock.

For each type of result, DuckDB has one vectorised function that calls kernels. Its first argument is the
kernel's name: `deltaic_kernel_integer('levenshtein', a, b)`. A kernel also gets the rows with nulls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaic import _core

if TYPE_CHECKING:
    import duckdb

_VARIANT = 'STRUCT("metadata" BLOB, "value" BLOB)'
RESULTS: dict[str, str] = {
    "deltaic_kernel_varchar": "VARCHAR",
    "deltaic_kernel_integer": "INTEGER",
    "deltaic_kernel_bigint": "BIGINT",
    "deltaic_kernel_boolean": "BOOLEAN",
    "deltaic_kernel_double": "DOUBLE",
    "deltaic_kernel_float": "FLOAT",
    "deltaic_kernel_date": "DATE",
    "deltaic_kernel_timestamp": "TIMESTAMP WITH TIME ZONE",
    "deltaic_kernel_timestamp_ntz": "TIMESTAMP",
    "deltaic_kernel_blob": "BLOB",
    "deltaic_kernel_digits": "DECIMAL(38, 0)",
    "deltaic_kernel_varchars": "VARCHAR[]",
    "deltaic_kernel_doubles": "DOUBLE[]",
    "deltaic_kernel_variant": _VARIANT,
    "deltaic_kernel_variant_parts": (
        'STRUCT("kind" VARCHAR, "whole" BIGINT, "number" DOUBLE, "text" VARCHAR, "bytes" BLOB)'
    ),
    "deltaic_kernel_variant_items": f'STRUCT("pos" INTEGER, "key" VARCHAR, "value" {_VARIANT})[]',
}
"""Name of each function of DuckDB that calls kernels -> the type of its result."""

_BY_TYPE: dict[str, str] = {
    "string": "deltaic_kernel_varchar",
    "integer": "deltaic_kernel_integer",
    "long": "deltaic_kernel_bigint",
    "boolean": "deltaic_kernel_boolean",
    "double": "deltaic_kernel_double",
    "float": "deltaic_kernel_float",
    "date": "deltaic_kernel_date",
    "timestamp": "deltaic_kernel_timestamp",
    "timestamp_ntz": "deltaic_kernel_timestamp_ntz",
    "binary": "deltaic_kernel_blob",
    "decimal(38,0)": "deltaic_kernel_digits",
    "array<string>": "deltaic_kernel_varchars",
    "array<double>": "deltaic_kernel_doubles",
    "variant": "deltaic_kernel_variant",
    "variant parts": "deltaic_kernel_variant_parts",
    "variant items": "deltaic_kernel_variant_items",
}


def kernel_sql(kernel: str, result: str, *arguments: str) -> str:
    """Returns SQL of a call: `kernel_sql("levenshtein", "integer", "a", "b")` is
    `deltaic_kernel_integer('levenshtein', a, b)`."""
    return f"{_BY_TYPE[result]}('{kernel}', {', '.join(arguments)})"


def _evaluate(*arguments: Any) -> Any:
    """Calls a kernel. DuckDB reads the number of parameters from the signature: any number, of any type."""
    return _core.evaluate_kernel(arguments)


def install(connection: duckdb.DuckDBPyConnection, known: set[str]) -> None:
    """Creates the functions of `RESULTS` that are not in `known`."""
    from duckdb import func

    for name, result in RESULTS.items():
        if name not in known:
            connection.create_function(
                name, _evaluate, None, result, type=func.ARROW, null_handling=func.SPECIAL
            )
