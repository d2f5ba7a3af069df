"""Rows with several fields of one struct, as in `scan(["a.x", "a.y"])`: the whole struct is read, and other
fields are removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.protocol.schema import Field, Schema, Struct
from deltaic.rows.rows import Rows
from deltaic.sql_text import spark_name


class BranchRows(Rows):
    """Rows with a part of the fields of structs. `whole`: the rows with all fields. `schema`: the requested
    columns and fields."""

    def __init__(self, whole: Rows, schema: Schema) -> None:
        super().__init__(schema, self._open, reads=whole._reads)
        self._all = whole

    def _open(self) -> pa.RecordBatchReader:
        arrow_schema = _core.TableSchema(self.schema.to_json()).to_arrow()

        def batches() -> Iterator[pa.RecordBatch]:
            with self._all.to_reader() as reader:
                for batch in reader:
                    columns = [_narrowed(batch.column(item.name), item.type) for item in arrow_schema]
                    yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema)

        return pa.RecordBatchReader.from_batches(arrow_schema, batches())

    def _first(self, count: int) -> pa.Table:
        arrow_schema = _core.TableSchema(self.schema.to_json()).to_arrow()
        whole = self._all._first(count).combine_chunks()
        columns = (
            [_narrowed(pa.concat_arrays(whole[item.name].chunks), item.type) for item in arrow_schema]
            if whole.num_rows
            else None
        )
        return (
            arrow_schema.empty_table()
            if columns is None
            else pa.Table.from_arrays(columns, schema=arrow_schema)
        )

    def count(self) -> int:
        return self._all.count()

    def explain(self) -> Any:
        return self._all.explain()

    def to_spark(self) -> Any:
        from pyspark.sql import functions as F

        frame = self._all.to_spark()
        return frame.select(
            *(
                _narrowed_on_spark(F, frame[spark_name(item.name)], item).alias(item.name)
                for item in self.schema
            )
        )


def _narrowed(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Removes the fields of a struct array that `data_type` lacks."""
    if array.type.equals(data_type) or not pa.types.is_struct(data_type):
        return array
    fields: Iterable[pa.Field] = [data_type.field(at) for at in range(data_type.num_fields)]
    children = [_narrowed(array.field(item.name), item.type) for item in fields]
    return pa.StructArray.from_arrays(children, fields=list(fields), mask=pc.is_null(array))


def _narrowed_on_spark(functions: Any, column: Any, field: Field) -> Any:
    if not isinstance(field.type, Struct):
        return column
    fields = [
        _narrowed_on_spark(functions, column.getField(item.name), item).alias(item.name)
        for item in field.type.fields
    ]
    return functions.when(column.isNotNull(), functions.struct(*fields))
