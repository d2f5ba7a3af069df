"""Arrow data between Delta's types and those that PySpark wants: the same values under other labels.

They differ in variants (Spark has the value first), in the nullability that Spark gives a column, and in the zone's name of timestamps.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from deltaic.engine.spark.types import spark_struct, users_metadata
from deltaic.protocol.column_mapping import map_fields
from deltaic.protocol.evolution import nullable_everywhere
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(schema: Schema) -> StructType:
    """The columns as Spark's StructType."""
    return cast("StructType", spark_struct(Schema([_shown(item) for item in schema])))


def delta_schema(schema: StructType) -> Schema:
    """Spark's columns as Delta's; UnsupportedFeatureError names a type that Delta has not."""
    return Schema.from_json(json.dumps(schema.jsonValue()))


def written_schema(schema: StructType) -> Schema:
    """The columns of a DataFrame as those of a table that it makes: all take null, as with delta-spark. That Spark knows of no null in a
    column is no promise of those who append to it."""
    return Schema([_shown(item).with_(nullable=True, type=nullable_everywhere(_shown(item).type)) for item in delta_schema(schema)])


def _shown(item: Field) -> Field:
    return item.with_(type=map_fields(item.type, _shown), metadata=users_metadata(item.metadata))
