"""A scan as a `pyarrow.dataset.Dataset`: DuckDB and pyarrow push their columns and filters into it.

There are no file fragments: a fragment could not say which of its rows are deleted, so everything that would
show one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from deltaic.engine.float_order import said_by_pyarrow
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.nodes import Scan
from deltaic.planning.opening import narrowed_scan, open_scan, scan_arrow_schema, with_predicate


class ScanDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A scan as a dataset with `schema`, `scanner`, `to_table`, `to_batches`, `head`, `count_rows` and
    `filter`. Any other method of Dataset raises an error that names it. `read` opens the scan with the
    requested columns and a further predicate; `observe` is called with each stream that was opened. `retyped`
    gives the schema that a stream of this schema is read under, of the same layout.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        read: Callable[[Scan], Any] = open_scan,
        observe: Callable[[Any], None] | None = None,
        filter: Any = None,
        retyped: Callable[[pa.Schema], pa.Schema] | None = None,
    ) -> None:
        self._scan, self._read, self._observe, self._filter, self._retyped = (
            scan,
            read,
            observe,
            filter,
            retyped,
        )
        schema = scan_arrow_schema(scan)
        self._schema = schema if retyped is None else retyped(schema)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self, columns: Any = None, filter: Any = None, batch_size: int | None = None, **options: Any
    ) -> ScanScanner:
        """`columns`: names, or a mapping of names to pyarrow expressions. `filter`: a pyarrow expression;
        exactly the rows that match it are returned."""
        both = filter if self._filter is None else self._filter if filter is None else self._filter & filter
        return ScanScanner(self, columns, both)

    def to_table(self, **options: Any) -> pa.Table:
        return self.scanner(**options).to_table()

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(**options).to_batches()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        return self.scanner(**options).head(num_rows)

    def count_rows(self, **options: Any) -> int:
        return self.scanner(**options).count_rows()

    def filter(self, expression: Any) -> ScanDataset:
        both = expression if self._filter is None else self._filter & expression
        return ScanDataset(
            self._scan, read=self._read, observe=self._observe, filter=both, retyped=self._retyped
        )

    def take(self, indices: Any, **options: Any) -> pa.Table:
        return self.to_table(**options).take(indices)

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        return ds.InMemoryDataset(self.to_table(**options).sort_by(sorting))

    def get_fragments(self, filter: Any = None) -> Any:
        raise _no_fragments("get_fragments")

    def replace_schema(self, schema: Any) -> Any:
        raise _no_fragments("replace_schema")

    def join(self, *args: Any, **options: Any) -> Any:
        raise _no_fragments("join")

    def join_asof(self, *args: Any, **options: Any) -> Any:
        raise _no_fragments("join_asof")

    @property
    def partition_expression(self) -> Any:
        raise _no_fragments("partition_expression")

    def __reduce__(self) -> Any:
        raise _no_fragments("pickling")

    def __repr__(self) -> str:
        return f"ScanDataset({', '.join(self._schema.names)})"


def _no_fragments(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{what}: a Delta scan has no file fragments, because a fragment does not contain which rows are"
        " deleted"
    )


class ScanScanner:
    """One reading of a dataset, in the form of pyarrow's `Scanner`. DuckDB uses `projected_schema` and
    `to_reader`."""

    def __init__(self, dataset: ScanDataset, columns: Any, filter: Any) -> None:
        self._dataset, self._filter = dataset, filter
        self._computed = dict(columns) if isinstance(columns, Mapping) else None
        self._columns: list[str] | None = (
            None if columns is None or self._computed is not None else _names(columns, dataset.schema)
        )

    @property
    def dataset_schema(self) -> pa.Schema:
        return self._dataset.schema

    @property
    def projected_schema(self) -> pa.Schema:
        if self._computed is not None:
            return self._rest(self._dataset.schema.empty_table().to_reader(), self._computed, None).schema
        schema = self._dataset.schema
        return schema if self._columns is None else pa.schema([schema.field(name) for name in self._columns])

    def to_reader(self) -> pa.RecordBatchReader:
        scan, exact = self._dataset._scan, True
        if self._filter is not None:
            predicate, exact = said_by_pyarrow(self._filter, self._dataset.schema, scan.table_schema)
            scan = with_predicate(scan, predicate)
        if self._computed is not None or not exact:
            reader = self._open(scan)
            return self._rest(reader, self._computed or self._columns, None if exact else self._filter)
        names = self._columns
        if names is None or names == self._dataset.schema.names:
            return self._open(scan)
        reader = self._open(narrowed_scan(scan, names))
        return reader if reader.schema.names == names else reordered(reader, names)

    def _open(self, scan: Scan) -> pa.RecordBatchReader:
        stream = self._dataset._read(scan)
        if self._dataset._observe is not None:
            self._dataset._observe(stream)
        reader = (
            stream if isinstance(stream, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(stream)
        )
        return (
            reader
            if self._dataset._retyped is None
            else viewed(reader, self._dataset._retyped(reader.schema))
        )

    @staticmethod
    def _rest(reader: pa.RecordBatchReader, columns: Any, filter: Any) -> pa.RecordBatchReader:
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, use_threads=False).to_reader()

    def to_table(self) -> pa.Table:
        return self.to_reader().read_all()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self.to_reader())

    def head(self, num_rows: int) -> pa.Table:
        taken: list[pa.RecordBatch] = []
        left = num_rows
        with self.to_reader() as reader:
            for batch in reader if left > 0 else ():
                taken.append(batch.slice(0, left))
                left -= taken[-1].num_rows
                if left <= 0:
                    break
        return pa.Table.from_batches(taken, self.projected_schema)

    def count_rows(self) -> int:
        narrow = ScanScanner(self._dataset, [], self._filter)
        return sum(batch.num_rows for batch in narrow.to_reader())


def viewed(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Relabels the reader's columns with the types of `schema`, which have the same layout in memory; no
    value is copied."""

    def columns(batch: pa.RecordBatch) -> list[pa.Array]:
        return [_relabelled(column, item.type) for column, item in zip(batch.columns, schema, strict=True)]

    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_arrays(columns(batch), schema=schema) for batch in reader)
    )


def _relabelled(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Returns the array with another type of the same layout. `Array.view` refuses a NOT NULL field of a
    struct that is null itself, so nested arrays are put together from their children."""
    if array.type == target:
        return array
    if pa.types.is_struct(target):
        children = [_relabelled(array.field(number), item.type) for number, item in enumerate(target)]
        return pa.StructArray.from_arrays(
            children, fields=list(target), mask=array.is_null() if array.null_count else None
        )
    if not pa.types.is_list(target) and not pa.types.is_map(target):
        return array.view(target)
    is_map = pa.types.is_map(target)
    values = _relabelled(
        array.values, pa.struct([target.key_field, target.item_field]) if is_map else target.value_type
    )
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def _names(columns: Sequence[str], schema: pa.Schema) -> list[str]:
    """Returns the requested columns, spelled as in the schema. An unknown column is a KeyError, as in
    pyarrow."""
    by_lower = {name.lower(): name for name in schema.names}
    missing = [name for name in columns if name.lower() not in by_lower]
    if missing:
        raise KeyError(f"no column {missing[0]!r} among {', '.join(schema.names)}")
    return [by_lower[name.lower()] for name in columns]


def reordered(reader: pa.RecordBatchReader, names: list[str]) -> pa.RecordBatchReader:
    schema = pa.schema([reader.schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(names) for batch in reader))
