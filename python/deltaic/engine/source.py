"""What users hand over, as something that opens a fresh Arrow stream: `Rows` in, rows out.

Types become Delta's in `_core.conform`; a stream that can be read only once is told apart, so that the engine holds it first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deltaic import _core
from deltaic.errors import InvalidArgumentError, InvalidTypeError, SchemaMismatchError
from deltaic.protocol.schema import Schema


@dataclass(eq=False)
class Failure:
    """The error that a user's own Python code raised while it was read: Arrow's C stream leaves only its text."""

    error: BaseException | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def cancel(self) -> None:
        """Nothing runs here."""


@dataclass(frozen=True)
class Source:
    """`open` gives a new stream of all rows, in Delta's types. `once`: it works a single time. `failure`: what the user's code raised."""

    schema: Schema
    open: Callable[[], _core.ReadStream]
    once: bool
    failure: Failure = field(default_factory=Failure)


def read_source(data: Any) -> Source:
    """Columns that differ only in case are refused, as are things that hold no rows (InvalidTypeError)."""
    failure = Failure()
    exporter, once = _exporter(data, failure)
    arrow_schema = _arrow_schema(exporter)
    _refuse_twins(arrow_schema.names)
    schema = Schema.from_arrow(arrow_schema)
    table_schema = _core.TableSchema(schema.to_json())
    if any(_has_deep_struct(item.type) for item in arrow_schema):
        exporter = _Unsliced(exporter)
    return Source(schema, lambda: _core.conform(exporter, table_schema), once, failure)


def _exporter(data: Any, failure: Failure) -> tuple[Any, bool]:
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
    return _from_batches(iter(data), failure), True


def _instance(data: Any, module: str, name: str) -> bool:
    """Whether `data` is of a class of a library that need not be installed, and so is not imported here."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, name))


class _Unsliced:
    """Arrow data whose structs within structs begin at offset 0: arrow-rs 59 adds the offset of a sliced one to its children twice when it
    imports it, and fails."""

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self._exporter)
        return pa.RecordBatchReader.from_batches(reader.schema, map(_unsliced, reader)).__arrow_c_stream__(requested_schema)


def _unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Only columns that need it are copied."""
    columns = [_moved(column) if _has_deep_struct(column.type) and _is_sliced(column) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _moved(column: pa.Array) -> pa.Array:
    return column.take(pa.array(range(len(column)), pa.int64()))


def _is_sliced(array: pa.Array) -> bool:
    """Whether it, or an array in it, begins behind the start of its buffers."""
    if array.offset:
        return True
    if pa.types.is_struct(array.type):
        return any(_is_sliced(array.field(index)) for index in range(array.type.num_fields))
    return hasattr(array, "values") and _is_sliced(array.values)


def _has_deep_struct(data_type: pa.DataType, inside: bool = False) -> bool:
    """Whether a struct lies anywhere inside a struct."""
    is_struct = pa.types.is_struct(data_type)
    if is_struct and inside:
        return True
    return any(_has_deep_struct(data_type.field(index).type, inside or is_struct) for index in range(data_type.num_fields))


def _from_batches(batches: Iterator[Any], failure: Failure) -> pa.RecordBatchReader:
    first = next(batches, None)
    if first is None:
        raise InvalidArgumentError(
            "an empty iterable has no schema", expected="record batches; pass a pyarrow.RecordBatchReader for no rows"
        )

    def rest() -> Iterator[pa.RecordBatch]:
        try:
            yield from known
            for number, item in enumerate(batches, start=1):
                for batch in _as_batches(item):
                    yield _as_the_first(batch, schema, number)
        except GeneratorExit:
            raise
        except BaseException as error:  # Ctrl-C too
            failure.error = error
            raise

    known = _as_batches(first)
    schema = known[0].schema if known else _arrow_schema(first)
    return pa.RecordBatchReader.from_batches(schema, rest())


def _as_the_first(batch: pa.RecordBatch, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The batch under the first one's schema. An Arrow stream says its schema once: what differs would be read as other values."""
    if batch.schema.equals(schema):
        return batch
    if sorted(batch.schema.names) != sorted(schema.names):
        raise SchemaMismatchError(
            f"batch {number} has other columns than the first", found=", ".join(batch.schema.names), expected=", ".join(schema.names)
        )
    batch = batch.select(schema.names)
    for found, wanted in zip(batch.schema, schema, strict=True):
        if not found.type.equals(wanted.type):
            raise SchemaMismatchError(
                f"column {found.name} of batch {number} has another type than in the first", found=found.type, expected=wanted.type
            )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


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
        other = seen.get(name.lower())
        if other is not None:
            raise InvalidArgumentError(
                "two columns of the data differ only in case" if other != name else "a column of the data comes twice",
                found=f"{other!r} and {name!r}",
                expected="names that are unique without regard to case",
            )
        seen[name.lower()] = name
