"""Converts data of other libraries (pandas, Polars, DuckDB, dicts, iterators) to Arrow streams. A new kind of
data is added here."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from deltaic.engine.engine import Replayable
from deltaic.errors import InvalidArgumentError, InvalidTypeError, SchemaMismatchError
from deltaic.process_state import module_lock

EXPECTED = (
    "Arrow data (__arrow_c_stream__), a pyarrow dataset, pandas, Polars, a DuckDB relation, a DeltaTable, a"
    " list of dicts, a dict of columns, an iterable of record batches"
)


@dataclass(eq=False)
class Failure:
    """The error that a user's Python code raised while its rows were read: Arrow's C stream keeps only its
    text."""

    error: BaseException | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def cancel(self) -> None:
        """Nothing runs here."""


def exporter_of(data: Any, failure: Failure) -> tuple[Any, pa.Schema]:
    """Returns an object with `__arrow_c_stream__`, and the schema of that stream."""
    if isinstance(data, (str, bytes)):
        raise InvalidTypeError("not a source of rows", found=type(data).__name__, expected=EXPECTED)
    if _instance(data, "polars", "LazyFrame"):
        return _of_lazy_frame(data, failure)
    data = rows_of(data)
    if _instance(data, "polars", "DataFrame"):
        _refuse_types_without_arrow(data.schema)
    if isinstance(data, pa.RecordBatch) or (
        hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__")
    ):
        data = pa.Table.from_batches([pa.record_batch(data)])
    elif _instance(data, "pandas", "DataFrame"):
        data = _of_pandas(data)
    elif isinstance(data, Mapping):
        data = _of_columns(data)
    elif isinstance(data, (list, tuple)) and data and all(isinstance(item, Mapping) for item in data):
        data = _of_dicts(data)
    elif _is_dataset(data):
        return _DeferredStream(lambda: data.scanner().to_reader()), data.schema
    elif _instance(data, "pyarrow.dataset", "Scanner"):
        return _DeferredStream(data.to_reader), data.projected_schema
    elif is_duckdb_relation(data):
        _refuse_inner_forms(data)
        return data, data.limit(0).to_arrow_table().schema
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data, data.schema
    if hasattr(data, "__arrow_c_stream__"):
        return _of_stream(data)
    if not isinstance(data, Iterable):
        raise InvalidTypeError("not a source of rows", found=type(data).__name__, expected=EXPECTED)
    reader = _from_batches(data, failure)
    return reader, reader.schema


def rows_of(data: Any) -> Any:
    """Returns the rows of a DeltaTable, and any other data unchanged."""
    return data.scan() if type(data).__name__ == "DeltaTable" and hasattr(data, "scan") else data


def is_duckdb_relation(data: Any) -> bool:
    return _instance(data, "duckdb", "DuckDBPyRelation")


def is_replayable(data: Any) -> bool:
    """True if each reading of the data begins at its first row. An unknown class counts as False: a stream of
    another library, a DuckDB relation (over a reader, it has rows once), a Scanner."""
    if isinstance(data, (pa.Table, pa.RecordBatch, Replayable, Mapping, list, tuple)) or hasattr(
        data, "scan"
    ):
        return True
    if any(
        _instance(data, *name)
        for name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"))
    ):
        return True
    if _instance(data, "pyarrow.dataset", "Scanner") or _instance(data, "pyarrow.dataset", "InMemoryDataset"):
        return False
    if _is_dataset(data) or type(data).__module__.startswith("pyspark."):
        return True
    return not (hasattr(data, "__arrow_c_stream__") or isinstance(data, Iterable))


def _is_dataset(data: Any) -> bool:
    return _instance(data, "pyarrow.dataset", "Dataset")


def _instance(data: Any, module: str, name: str) -> bool:
    """True if `data` is of a class of a library that need not be installed, and so is not imported here.

    If another thread is importing the library, the class may be missing; then no object of it exists yet."""
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(data, known)


# --- what can be read only once


@dataclass(eq=False)
class _StartedReader:
    """A reader or iterator whose first item was taken to learn the schema. `first`: that item, until it is
    read."""

    reference: weakref.ref[Any]
    first: Any = None
    is_read: bool = False


_lock = module_lock()
_begun: dict[int, _StartedReader] = {}


def _noted(data: Any) -> _StartedReader | None:
    """Returns the entry for a reader or iterator; None for other data, and for Python iterators without weak
    references."""
    if not (isinstance(data, (pa.RecordBatchReader, Iterator)) or hasattr(data, "read_next_batch")):
        return None
    with _lock:
        if (note := _begun.get(id(data))) is not None and note.reference() is data:
            return note
        key = id(data)
        try:
            reference = weakref.ref(data, lambda _: _begun.pop(key, None))
        except TypeError:
            return None
        _begun[key] = _StartedReader(reference)
        return _begun[key]


def check_unread(data: Any) -> None:
    """Raises InvalidArgumentError for a reader or iterator that has been read: it would return fewer rows
    now, or none."""
    note = _noted(data)
    if note is not None and note.is_read:
        raise InvalidArgumentError(
            "these rows can be read only once, and have been read before",
            found=type(data).__name__,
            expected="a new reader or iterator, or data that can be read again (a table, a list of batches)",
        )


def started(data: Any) -> None:
    """Notes that a reader or iterator will be read from now on."""
    check_unread(data)
    if (note := _noted(data)) is not None:
        note.is_read, note.first = True, None


# --- of one library each


class _DeferredStream:
    """An Arrow stream that is opened on its first use."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._opened().__arrow_c_stream__(requested_schema)


def _of_stream(data: Any) -> tuple[Any, pa.Schema]:
    """Returns the stream and its schema. A stream that has no `__arrow_c_schema__` is opened for its schema,
    once."""
    try:
        if hasattr(data, "__arrow_c_schema__"):
            return data, pa.schema(data)
        reader = pa.RecordBatchReader.from_stream(data)
        return reader, reader.schema
    except (pa.ArrowException, TypeError):
        raise InvalidTypeError(
            "not a source of rows: it has no columns with names", found=type(data).__name__, expected=EXPECTED
        ) from None


def _of_lazy_frame(frame: Any, failure: Failure) -> tuple[Any, pa.Schema]:
    """Returns a stream of batches from Polars' streaming engine; each opening runs the query again."""
    import polars

    types = frame.collect_schema()
    _refuse_types_without_arrow(types)
    schema: pa.Schema = polars.DataFrame(schema=types).to_arrow().schema

    def batches() -> Iterator[pa.RecordBatch]:
        running = frame.collect_batches(maintain_order=True)
        try:
            for number, batch in enumerate(running):
                for part in batch.to_arrow().to_batches():
                    yield _as_the_first(part, schema, number)
        finally:
            if hasattr(running, "stop"):
                running.stop()

    return (
        _DeferredStream(lambda: pa.RecordBatchReader.from_batches(schema, noting(batches(), failure))),
        schema,
    )


_TYPES_WITHOUT_ARROW = {
    "Object": "another type",
    "Int128": "another type: cast it to Decimal or text",
    "UInt128": "another type: cast it to Decimal or text",
}
"""Types of Polars that Polars does not export as Arrow types (for Object it exports addresses in memory),
with what is expected instead."""


def _refuse_types_without_arrow(types: Mapping[str, Any]) -> None:
    for name, data_type in types.items():
        inner = [data_type]
        while inner:
            each = inner.pop()
            if (expected := _TYPES_WITHOUT_ARROW.get(str(each))) is not None:
                raise SchemaMismatchError(
                    "Delta has no type for this type of Polars",
                    where=f"column {name}",
                    found=each,
                    expected=expected,
                )
            inner += [getattr(each, "inner", None)] if getattr(each, "inner", None) is not None else []
            inner += [item.dtype for item in getattr(each, "fields", ())]


_INNER_FORMS = {"bit", "bignum", "varint", "uhugeint"}
"""Types that DuckDB exports to Arrow as its internal bytes, or as numbers with fewer digits."""


def _refuse_inner_forms(relation: Any) -> None:
    for name, data_type in zip(relation.columns, relation.types, strict=True):
        inner = [data_type]
        while inner:
            each = inner.pop()
            if each.id in _INNER_FORMS:
                raise SchemaMismatchError(
                    "Delta has no type for this type of DuckDB",
                    where=f"column {name}",
                    found=each.id.upper(),
                    expected="another type: cast it to VARCHAR or DECIMAL",
                )
            if each.id in ("list", "array", "struct", "map"):
                inner += [child for _, child in each.children if not isinstance(child, int)]


def _of_pandas(frame: Any) -> pa.Table:
    """Returns the columns, and after them the named levels of the index (as `pyarrow.table` and `to_parquet`
    put them)."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        for position, item in enumerate(table.schema):
            _refuse_times_among_dates(frame.iloc[:, position], item.type)
    # Column by column: for sparse columns, and for an error that names the column
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        columns = [(str(name), frame.iloc[:, position]) for position, name in enumerate(frame.columns)]
        table = _table([(name, _pandas_array(name, values)) for name, values in columns])
    for level, name in enumerate(frame.index.names):
        if name is not None:
            table = table.append_column(
                str(name), _pandas_array(str(name), frame.index.get_level_values(level))
            )
    return table


def _pandas_array(name: str, values: Any) -> Any:
    if type(values.dtype).__name__ == "SparseDtype":
        values = values.sparse.to_dense() if hasattr(values, "sparse") else values.to_numpy()
    return _array(name, values, lambda: pa.Array.from_pandas(values))


def _of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    for name, values in columns.items():
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise InvalidTypeError(
                f"column {name} is not a sequence of values",
                found=type(values).__name__,
                expected="a list or an array for each column",
            )
    return _table(
        [
            (name, _array(name, values, lambda values=values: _values(values)))  # type: ignore[misc]
            for name, values in columns.items()
        ]
    )


def _values(values: Any) -> Any:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    return pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)


def _of_dicts(rows: Iterable[Mapping[Any, Any]]) -> pa.Table:
    """Returns the rows as a table. A key that a row lacks is null in this row."""
    names = dict.fromkeys(name for row in rows for name in row)

    def column(name: Any) -> Any:
        values = [row.get(name) for row in rows]
        return _array(name, values, lambda: pa.array(values))

    return _table([(name, column(name)) for name in names])


def _array(name: str, values: Any, convert: Callable[[], Any]) -> Any:
    try:
        array = convert()
        _refuse_times_among_dates(values, array.type)
        return array
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaMismatchError(
            "values of a column have no Arrow type in common",
            where=f"column {name}",
            found=_kind(values) or str(error).split("\n")[0],
            expected="values of one type that Arrow has",
        ) from error


def _refuse_times_among_dates(values: Any, data_type: pa.DataType) -> None:
    """Raises TypeError if Python objects that became dates have a datetime among them: pyarrow drops its time
    of day if the first object is a date. pandas' NaT is a datetime that is not equal to itself."""
    if (
        pa.types.is_date32(data_type)
        and not _kind(values)
        and any(isinstance(item, datetime) and item == item for item in values)
    ):
        raise TypeError("date and datetime")


def _kind(values: Any) -> str:
    """Returns the type of a NumPy array or a pandas Series; empty for `object`, which can hold any value."""
    kind = str(getattr(values, "dtype", ""))
    return "" if kind == "object" else kind


def _table(columns: list[tuple[Any, Any]]) -> pa.Table:
    for name, _ in columns:
        if not isinstance(name, str):
            raise InvalidTypeError("a column name must be a string", found=repr(name)[:80])
    lengths = {name: len(values) for name, values in columns}
    if len(set(lengths.values())) > 1:
        raise InvalidArgumentError("the columns differ in length", found=lengths)
    return pa.Table.from_arrays([values for _, values in columns], names=[name for name, _ in columns])


def _from_batches(data: Iterable[Any], failure: Failure) -> pa.RecordBatchReader:
    note = _noted(data)
    batches = iter(data)
    first = note.first if note is not None and note.first is not None else next(batches, None)
    if note is not None:
        note.first = first
    if first is None:
        raise InvalidArgumentError(
            "an empty iterable has no schema",
            expected="record batches; pass a pyarrow.RecordBatchReader for no rows",
        )

    def rest() -> Iterator[pa.RecordBatch]:
        yield from known
        for number, item in enumerate(batches, start=1):
            for batch in _as_batches(item):
                yield _as_the_first(batch, schema, number)

    known = _as_batches(first)
    schema = known[0].schema if known else pa.schema(first.schema if isinstance(first, pa.Table) else first)
    return pa.RecordBatchReader.from_batches(schema, noting(rest(), failure))


def noting(batches: Iterator[pa.RecordBatch], failure: Failure) -> Iterator[pa.RecordBatch]:
    """Yields the batches, and keeps the error that ends them in `failure`."""
    try:
        yield from batches
    except GeneratorExit:
        raise
    except BaseException as error:  # Ctrl-C too
        failure.error = error
        raise


def _as_the_first(batch: pa.RecordBatch, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """Returns the batch with the first batch's schema. An Arrow stream has one schema, so a batch with
    another one would be read as other values."""
    if batch.schema.equals(schema):
        return batch
    if sorted(batch.schema.names) != sorted(schema.names):
        raise SchemaMismatchError(
            f"batch {number} has other columns than the first",
            found=", ".join(batch.schema.names),
            expected=", ".join(schema.names),
        )
    batch = batch.select(schema.names)
    for found, wanted in zip(batch.schema, schema, strict=True):
        if not found.type.equals(wanted.type):
            raise SchemaMismatchError(
                f"column {found.name} of batch {number} has another type than in the first",
                found=found.type,
                expected=wanted.type,
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
    raise InvalidTypeError(
        "an item of the data is no record batch",
        found=type(item).__name__,
        expected=f"record batches, tables or DataFrames in an iterable; else {EXPECTED}",
    )


class UnslicedStream:
    """Arrow data whose structs within structs begin at offset 0: arrow-rs 59 adds the offset of a sliced one
    to its children twice when it imports it, and fails."""

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self._exporter)
        return pa.RecordBatchReader.from_batches(reader.schema, map(_unsliced, reader)).__arrow_c_stream__(
            requested_schema
        )


def _unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the batch without slices of structs in structs. Only columns that have some are copied."""
    columns = [
        _moved(column) if has_deep_struct(column.type) and _is_sliced(column) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _moved(column: pa.Array) -> pa.Array:
    return column.take(pa.array(range(len(column)), pa.int64()))


def _is_sliced(array: pa.Array) -> bool:
    """True if an array, or an array in it, begins after the start of its buffers."""
    if array.offset:
        return True
    if pa.types.is_struct(array.type):
        return any(_is_sliced(array.field(index)) for index in range(array.type.num_fields))
    return hasattr(array, "values") and _is_sliced(array.values)


def has_deep_struct(data_type: pa.DataType, inside: bool = False) -> bool:
    """True if a struct lies anywhere inside a struct."""
    is_struct = pa.types.is_struct(data_type)
    if is_struct and inside:
        return True
    return any(
        has_deep_struct(data_type.field(index).type, inside or is_struct)
        for index in range(data_type.num_fields)
    )
