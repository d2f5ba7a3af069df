"""What users hand over, as something that opens a fresh Arrow stream: `Rows` in, rows out.

Types become Delta's in `_core.conform`; a stream that can be read only once is told apart, so that the engine holds it first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.protocol.schema import Schema


@dataclass(frozen=True)
class Source:
    """`open` gives a new stream of all rows, in Delta's types. `once`: it works a single time."""

    schema: Schema
    open: Callable[[], _core.ReadStream]
    once: bool


def read_source(data: Any) -> Source:
    """Columns that differ only in case are refused, as are things that hold no rows (InvalidTypeError)."""
    exporter, once = _exporter(data)
    arrow_schema = _arrow_schema(exporter)
    _refuse_twins(arrow_schema.names)
    schema = Schema.from_arrow(arrow_schema)
    table_schema = _core.TableSchema(schema.to_json())
    return Source(schema, lambda: _core.conform(exporter, table_schema), once)


def _exporter(data: Any) -> tuple[Any, bool]:
    """An object with `__arrow_c_stream__`, and whether that works only once."""
    if _instance(data, "polars", "LazyFrame"):
        return data.collect(), False
    if type(data).__name__ == "DeltaTable" and hasattr(data, "scan"):
        return data.scan(), False
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return (pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data), False
    if isinstance(data, pa.RecordBatchReader) or (hasattr(data, "__arrow_c_stream__") and hasattr(data, "read_next_batch")):
        return data, True
    if _instance(data, "pandas", "DataFrame"):
        return pa.Table.from_pandas(data, preserve_index=False), False
    if hasattr(data, "__arrow_c_stream__"):
        return data, False
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)]), False
    if isinstance(data, (str, bytes, dict)) or not isinstance(data, Iterable):
        raise InvalidTypeError(
            "not a source of rows",
            found=type(data).__name__,
            expected="Arrow data (__arrow_c_stream__), pandas, Polars, a DuckDB relation, a DeltaTable, an iterable of record batches",
        )
    return _from_batches(iter(data)), True


def _instance(data: Any, module: str, name: str) -> bool:
    """Whether `data` is of a class of a library that need not be installed, and so is not imported here."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, name))


def _from_batches(batches: Iterator[Any]) -> pa.RecordBatchReader:
    first = next(batches, None)
    if first is None:
        raise InvalidArgumentError(
            "an empty iterable has no schema", expected="record batches; pass a pyarrow.RecordBatchReader for no rows"
        )

    def rest() -> Iterator[pa.RecordBatch]:
        yield from _as_batches(first)
        for item in batches:
            yield from _as_batches(item)

    schema = first.schema if isinstance(first, (pa.RecordBatch, pa.Table)) else pa.schema(first)
    return pa.RecordBatchReader.from_batches(schema, rest())


def _as_batches(item: Any) -> list[pa.RecordBatch]:
    if isinstance(item, pa.RecordBatch):
        return [item]
    if isinstance(item, pa.Table):
        batches: list[pa.RecordBatch] = item.to_batches()
        return batches
    if hasattr(item, "__arrow_c_array__"):
        return [pa.record_batch(item)]
    if hasattr(item, "__arrow_c_stream__"):
        return _as_batches(pa.table(item))
    raise InvalidTypeError("not a record batch", found=type(item).__name__, expected="an object with __arrow_c_array__")


def _arrow_schema(exporter: Any) -> pa.Schema:
    if isinstance(exporter, (pa.Table, pa.RecordBatchReader)):
        return exporter.schema
    if hasattr(exporter, "__arrow_c_schema__"):
        return pa.schema(exporter)
    return pa.RecordBatchReader.from_stream(exporter).schema


def _refuse_twins(names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise InvalidArgumentError(
                "two columns of the data differ only in case" if other != name else "a column of the data comes twice",
                found=f"{other!r} and {name!r}",
                expected="names that are unique without regard to case",
            )
