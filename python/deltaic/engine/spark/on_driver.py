"""Collects small inputs to the driver once, where they are grouped, joined and written with Arrow. Otherwise
a MERGE of a small source would plan and start a Spark job for each of its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.engine.spark.batches import invalid_text
from deltaic.engine.spark.native.jvm import LOCAL_BYTES, Jvm
from deltaic.engine.spark.native.session import analyzed_plan, is_local, optimized_plan
from deltaic.plan.expression import Expression
from deltaic.plan.literal import col
from deltaic.plan.nodes import Aggregate, Data, Filter, Join, Plan, Project, Union
from deltaic.protocol.schema import (
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    decimal_parts,
    has_user_type,
    is_shape,
    primitive_types,
)

if TYPE_CHECKING:
    from deltaic.engine.spark.engine_session import EngineSession

BYTES_SETTING = "spark.deltaic.driverBytes"
"""Setting: maximum bytes, in total, of the target's files that a MERGE may change, for a MERGE on the driver:
if its source is there, these files are also read and written there. Above it, and with 0, tasks do it."""
MOST_BYTES = 256 * 1024**2
"""Default of BYTES_SETTING."""
SOURCE_BYTES = 1024**2
"""Maximum bytes, as Spark estimates them, of rows that are collected to the driver; larger ones stay in
tasks."""
BATCH_ROWS = 100_000
"""Maximum number of rows in an Arrow batch that the JVM converts for Python."""
# Types whose values Spark converts to Arrow and back without a change; decimals are a further one.
_PLAIN = frozenset(
    (
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    )
)
_GROUPED = _PLAIN - {"float", "double", "binary"}
"""Types whose values Arrow groups and compares as Spark does; decimals are a further one."""
_ONE = Expression("1", "integer", nullable=False)


def most_bytes(spark: Any) -> int:
    return int(spark.conf.get(BYTES_SETTING, str(MOST_BYTES)))


def is_plain(data_type: DataType) -> bool:
    """True if Spark converts all values of the type to Arrow and back without a change."""
    if isinstance(data_type, Struct):
        return all(is_plain(item.type) for item in data_type.fields)
    if isinstance(data_type, Array):
        return is_plain(data_type.element)
    if isinstance(data_type, Map):
        return is_plain(data_type.key) and is_plain(data_type.value)
    return data_type in _PLAIN or decimal_parts(data_type) is not None


def are_plain(schema: Schema) -> bool:
    return all(is_plain(field.type) and not has_user_type(field) for field in schema)


def _local_rows(jvm: Jvm, frame: Any) -> pa.Table | None:
    """Returns the rows of a frame for which `is_local` is true, without a job; None for any other frame."""
    if not is_local(frame):
        return None
    plan = optimized_plan(frame)
    converters = jvm.companion("org.apache.spark.sql.execution.arrow.ArrowConverters")
    batches = converters.toBatchWithSchemaIterator(
        plan.data().iterator(), analyzed_plan(frame).schema(), BATCH_ROWS, LOCAL_BYTES, "UTC", True, False
    )
    tables = []
    while batches.hasNext():
        tables.append(pa.ipc.open_stream(batches.next()).read_all())
    return pa.concat_tables(tables) if tables else None


def collected(session: EngineSession, frame: Any) -> pa.Table:
    """Collects all rows of a frame."""
    table = session.read_path.planned(
        "rows on the driver", lambda: _local_rows(session.jvm, frame), lambda: None
    )
    return nullable_fields(frame).toArrow() if table is None else table


def with_bytes_of_shapes(frame: Any, schema: Schema) -> Any:
    """Returns the frame with geometries and geographies as WKB, the bytes that Delta stores."""
    from pyspark.sql import functions as F

    if not any(map(_has_shapes, (item.type for item in schema))):
        return frame
    return frame.select(
        *(_bytes_of_shapes(F.col(col(item.name)), item.type).alias(item.name) for item in schema)
    )


def _has_shapes(data_type: DataType) -> bool:
    return any(map(is_shape, primitive_types(data_type)))


def _bytes_of_shapes(value: Any, data_type: DataType) -> Any:
    """Returns a column with the values of `value`, in which all geometries and geographies are WKB."""
    from pyspark.sql import functions as F

    if not _has_shapes(data_type):
        return value
    if isinstance(data_type, Struct):
        fields = (
            _bytes_of_shapes(value.getField(item.name), item.type).alias(item.name)
            for item in data_type.fields
        )
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(data_type, Array):
        return F.transform(value, lambda item: _bytes_of_shapes(item, data_type.element))
    if isinstance(data_type, Map):
        values = F.transform_values(value, lambda _, item: _bytes_of_shapes(item, data_type.value))
        return (
            F.transform_keys(values, lambda key, _: _bytes_of_shapes(key, data_type.key))
            if _has_shapes(data_type.key)
            else values
        )
    return F.call_function("st_asbinary", value)


def nullable_fields(frame: Any) -> Any:
    """Returns the frame with nullable struct fields, because pyarrow does not accept a null struct whose
    fields are not nullable."""
    from pyspark.sql import functions as F

    def column(field: Any) -> Any:
        nullable, values = _nullable_type(field.dataType), F.col(col(field.name))
        return values if nullable == field.dataType else values.cast(nullable)

    if all(_nullable_type(field.dataType) == field.dataType for field in frame.schema.fields):
        return frame
    return frame.select(*map(column, frame.schema.fields))


def _nullable_type(data_type: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(data_type, StructType):
        return StructType(
            [
                StructField(field.name, _nullable_type(field.dataType), True, field.metadata)
                for field in data_type.fields
            ]
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable_type(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(
            _nullable_type(data_type.keyType),
            _nullable_type(data_type.valueType),
            data_type.valueContainsNull,
        )
    return data_type


def gathered(session: EngineSession, frame: Any) -> pa.Table | None:
    """Collects all rows of a frame. Returns None if there are more than `session.max_driver_rows`, or more
    bytes than LOCAL_BYTES; then at most `session.max_driver_rows` + 1 rows have been collected. Returns None
    for text that is not UTF-8, too, such as `CAST(X'ff' AS STRING)`: Spark writes its bytes, and Arrow has no
    such text."""
    most = session.max_driver_rows
    if not most:
        return None
    table = collected(session, frame if session.has_few_rows(frame) else frame.limit(most + 1))
    is_small = table.num_rows <= most and table.nbytes <= LOCAL_BYTES
    return table if is_small and invalid_text(table) is None else None


def is_of_few(plan: Plan) -> bool:
    """True if all rows of a plan come from, or match, rows that are on the driver, so that they are likely
    few."""
    if isinstance(plan, Data):
        return bool(getattr(plan.handle, "on_driver", False))
    if isinstance(plan, (Project, Filter)):
        return is_of_few(plan.input)
    if isinstance(plan, Join):
        return plan.kind in ("inner", "right", "left_semi") and is_of_few(plan.right)
    return isinstance(plan, Union) and all(map(is_of_few, plan.inputs))


def keys_and_arguments(plan: Aggregate) -> Project:
    """Returns a plan of the rows that an aggregation groups: its keys, and the argument of each function."""
    arguments = [(name, each.argument or _ONE) for name, each in plan.columns]
    return Project(plan.input, (*plan.keys, *arguments), plan.alias)


def are_grouped(schema: Schema) -> bool:
    """True if Arrow groups and compares values of these types as Spark does, as for all but floats, binary
    and nested types."""
    return all(_is_grouped(field.type) for field in schema)


def grouped(plan: Aggregate, rows: pa.Table, schema: Schema) -> tuple[pa.Table, Schema]:
    """Computes an aggregation with Arrow, and returns the result and its schema. `rows`, `schema`: the result
    of the plan of `keys_and_arguments`."""
    functions = [(name, each.function) for name, each in plan.columns]
    keys = [name for name, _ in plan.keys]
    groups = rows.group_by(keys, use_threads=False).aggregate(functions)
    columns = [
        *(groups[name] for name in keys),
        *(groups[f"{name}_{function}"] for name, function in functions),
    ]
    counts = {name for name, function in functions if function == "count"}
    fields = [Field(field.name, "long") if field.name in counts else field for field in schema]
    return pa.table(columns, names=[field.name for field in fields]), Schema(fields)


def _is_grouped(data_type: DataType) -> bool:
    return isinstance(data_type, str) and (data_type in _GROUPED or decimal_parts(data_type) is not None)
