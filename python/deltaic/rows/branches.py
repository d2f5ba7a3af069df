"""Rows with several fields of one struct: the struct is read, and what was not asked for is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.protocol.schema import Field, Schema, Struct
from deltaic.rows.rows import Rows


class BranchRows(Rows):
    """`whole`: the same rows with all fields of the structs. `schema`: columns and fields that are asked for."""

    def __init__(self, whole: Rows, schema: Schema) -> None:
        super().__init__(schema, self._open)
        self._all = whole

    def _open(self) -> pa.RecordBatchReader:
        arrow_schema = _core.TableSchema(self.schema.to_json()).to_arrow()

        def batches() -> Iterator[pa.RecordBatch]:
            with self._all.to_reader() as reader:
                for batch in reader:
                    columns = [_chosen(batch.column(item.name), item.type) for item in arrow_schema]
                    yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema)

        return pa.RecordBatchReader.from_batches(arrow_schema, batches())

    def _first(self, count: int) -> pa.Table:
        arrow_schema = _core.TableSchema(self.schema.to_json()).to_arrow()
        whole = self._all._first(count).combine_chunks()
        columns = [_chosen(pa.concat_arrays(whole[item.name].chunks), item.type) for item in arrow_schema] if whole.num_rows else None
        return arrow_schema.empty_table() if columns is None else pa.Table.from_arrays(columns, schema=arrow_schema)

    def count(self) -> int:
        return self._all.count()

    def explain(self) -> Any:
        return self._all.explain()

    def to_spark(self) -> Any:
        from pyspark.sql import functions as F

        frame = self._all.to_spark()
        return frame.select(*(_chosen_on_spark(F, frame[f"`{item.name}`"], item).alias(item.name) for item in self.schema))


def _chosen(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type.equals(wanted) or not pa.types.is_struct(wanted):
        return array
    fields: Iterable[pa.Field] = [wanted.field(at) for at in range(wanted.num_fields)]
    children = [_chosen(array.field(item.name), item.type) for item in fields]
    return pa.StructArray.from_arrays(children, fields=list(fields), mask=pc.is_null(array))


def _chosen_on_spark(functions: Any, column: Any, wanted: Field) -> Any:
    if not isinstance(wanted.type, Struct):
        return column
    fields = [_chosen_on_spark(functions, column.getField(item.name), item).alias(item.name) for item in wanted.type.fields]
    return functions.when(column.isNotNull(), functions.struct(*fields))
