"""Small inputs are collected to the driver once, and grouped, joined and written there with Arrow.

Without it a MERGE of a small source would start a Spark job, with a plan, for each of its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.engine.spark.native.jvm import LOCAL_BYTES, Jvm
from deltaic.engine.spark.native.session import analyzed_plan, optimized_plan
from deltaic.errors import UnsupportedFeatureError
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
    is_shape,
    primitive_types,
    type_name,
)

if TYPE_CHECKING:
    from deltaic.engine.spark.engine import SparkEngine

SETTING = "spark.deltaic.driverRows"
"""Up to so many rows come to the driver, where commands go on with them there; 0: tasks do all of it."""
BYTES_SETTING = "spark.deltaic.driverBytes"
"""A MERGE of so few rows reads and writes on the driver if the target's files that may match have at most so many bytes; 0: tasks do it."""
MOST_BYTES = 256 * 1024**2
MOST_ROWS = 5_000
"""Rows in a plan are gone through by each rule of the optimizer: at 40,000 of them a MERGE takes a third longer than by tasks alone."""
SOURCE_BYTES = 1024**2
"""A source that Spark takes for larger stays where it is."""
BATCH_ROWS = 100_000
"""Rows of a batch in which Java hands them over."""
_PLAIN = frozenset(
    ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz")
)
_GROUPED = _PLAIN - {"float", "double", "binary"}
"""Types whose values are the same, and in the same order, to Arrow as they are to Spark."""
_ONE = Expression("1", "integer", nullable=False)


def most_rows(spark: Any) -> int:
    return int(spark.conf.get(SETTING, str(MOST_ROWS)))


def most_bytes(spark: Any) -> int:
    return int(spark.conf.get(BYTES_SETTING, str(MOST_BYTES)))


def is_plain(data_type: DataType) -> bool:
    """Types that go to Arrow and back as they are."""
    if isinstance(data_type, Struct):
        return all(is_plain(item.type) for item in data_type.fields)
    if isinstance(data_type, Array):
        return is_plain(data_type.element)
    if isinstance(data_type, Map):
        return is_plain(data_type.key) and is_plain(data_type.value)
    return data_type in _PLAIN or decimal_parts(data_type) is not None


def are_plain(schema: Schema) -> bool:
    return all(is_plain(field.type) for field in schema)


def is_local(frame: Any) -> bool:
    """True if Spark's optimizer has the rows, computed, on the driver."""
    return str(optimized_plan(frame).getClass().getSimpleName()) == "LocalRelation"


def _lying(jvm: Jvm, frame: Any) -> pa.Table | None:
    """The rows of such a frame, by no job; None of any other."""
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


def collected(engine: SparkEngine, frame: Any) -> pa.Table:
    """All rows of a frame."""
    table = engine.read_path.planned("rows on the driver", lambda: _lying(engine.jvm, frame), lambda: None)
    return _loosened(frame).toArrow() if table is None else table


def with_bytes_of_shapes(frame: Any, schema: Schema) -> Any:
    """A frame of these columns, where shapes are the bytes that Delta has for them. UnsupportedFeatureError for shapes within a column."""
    from pyspark.sql import functions as F

    inside = [item for item in schema if not isinstance(item.type, str) and any(map(is_shape, primitive_types(item.type)))]
    if inside:
        raise UnsupportedFeatureError(
            "shapes within a column do not come from Spark to the driver", where=f"column {inside[0].name}", found=type_name(inside[0].type)
        )
    if not any(is_shape(item.type) for item in schema):
        return frame
    columns = (
        F.expr(f"st_asbinary({col(item.name)})").alias(item.name) if is_shape(item.type) else F.col(col(item.name)) for item in schema
    )
    return frame.select(*columns)


def _loosened(frame: Any) -> Any:
    """Returns the rows with nullable struct fields: pyarrow refuses a null struct whose fields are not nullable."""
    from pyspark.sql import functions as F

    wanted = [(field.name, field.dataType, _with_nulls(field.dataType)) for field in frame.schema.fields]
    if all(given == loose for _, given, loose in wanted):
        return frame
    return frame.select(*(F.col(col(name)) if given == loose else F.col(col(name)).cast(loose) for name, given, loose in wanted))


def _with_nulls(data_type: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(data_type, StructType):
        return StructType([StructField(field.name, _with_nulls(field.dataType), True, field.metadata) for field in data_type.fields])
    if isinstance(data_type, ArrayType):
        return ArrayType(_with_nulls(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(_with_nulls(data_type.keyType), _with_nulls(data_type.valueType), data_type.valueContainsNull)
    return data_type


def gathered(engine: SparkEngine, frame: Any) -> pa.Table | None:
    """All rows of a frame; None where they are not few: then not many have come."""
    most = engine.most_here
    if not most:
        return None
    table = collected(engine, frame if has_few_rows(engine, frame) else frame.limit(most + 1))
    return table if table.num_rows <= most and table.nbytes <= LOCAL_BYTES else None


def has_few_rows(engine: SparkEngine, frame: Any) -> bool:
    """True if the plan itself says that there are at most so many rows as may come to the driver."""

    def native() -> bool:
        known = optimized_plan(frame).maxRows()
        return bool(known.isDefined()) and int(str(known.get())) <= engine.most_here

    return engine.read_path.planned("how many rows there are", native, lambda: False)


def is_of_few(plan: Plan) -> bool:
    """True if the rows of a plan come from rows on the driver, so that they are likely few."""
    if isinstance(plan, Data):
        return bool(getattr(plan.handle, "on_driver", False))
    if isinstance(plan, (Project, Filter)):
        return is_of_few(plan.input)
    if isinstance(plan, Join):
        return plan.kind in ("inner", "right", "left_semi") and is_of_few(plan.right)
    return isinstance(plan, Union) and all(map(is_of_few, plan.inputs))


def grouped(engine: SparkEngine, plan: Aggregate) -> tuple[pa.Table, Schema] | None:
    """The groups of rows that lie on the driver; None for any others, and for values that Arrow groups in another way than Spark."""
    if not is_of_few(plan.input):
        return None
    functions = [(name, each.function) for name, each in plan.columns]
    arguments = [(name, each.argument or _ONE) for name, each in plan.columns]
    rows = engine.run(Project(plan.input, (*plan.keys, *arguments), plan.alias))
    if not all(_is_grouped(field.type) for field in rows.schema) or not engine.is_local(rows.frame):
        return None
    keys = [name for name, _ in plan.keys]
    found = engine.to_table(rows).group_by(keys, use_threads=False).aggregate(functions)
    columns = [*(found[name] for name in keys), *(found[f"{name}_{function}"] for name, function in functions)]
    counts = {name for name, function in functions if function == "count"}
    fields = [Field(field.name, "long") if field.name in counts else field for field in rows.schema]
    return pa.table(columns, names=[field.name for field in fields]), Schema(fields)


def _is_grouped(data_type: DataType) -> bool:
    return isinstance(data_type, str) and (data_type in _GROUPED or decimal_parts(data_type) is not None)
