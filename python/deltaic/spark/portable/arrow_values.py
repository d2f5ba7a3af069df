"""Converts schemas between Delta and PySpark, for data that Spark's Python workers and the driver
exchange."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from deltaic.engine.spark.types import spark_struct, users_metadata
from deltaic.protocol.column_mapping import map_fields
from deltaic.protocol.evolution import nullable_field
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(schema: Schema) -> StructType:
    """Converts a schema to Spark's StructType."""
    return cast("StructType", spark_struct(Schema([_shown(item) for item in schema])))


def delta_schema(schema: StructType) -> Schema:
    """Converts Spark's StructType to a schema. Raises UnsupportedFeatureError for a type that Delta does not
    have."""
    return Schema.from_json(json.dumps(schema.jsonValue()))


def written_schema(schema: StructType) -> Schema:
    """Returns the columns of a table that is created from a DataFrame. All are nullable, as in delta-spark,
    because rows that are appended later may have nulls."""
    return Schema(nullable_field(_shown(item)) for item in delta_schema(schema))


def _shown(item: Field) -> Field:
    return item.with_(type=map_fields(item.type, _shown), metadata=users_metadata(item.metadata))
