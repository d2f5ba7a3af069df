"""All families of forms, imported so that each adds itself to the registry."""

from deltaic.spark_sql import conditional, patterns
from deltaic.spark_sql.functions import arrays as forms_array
from deltaic.spark_sql.functions import (
    buckets,
    hashes,
    intervals,
    json_text,
    more_nested,
    text_formats,
    urls,
    variants,
)
from deltaic.spark_sql.functions import dates as forms_time
from deltaic.spark_sql.functions import nested as collections
from deltaic.spark_sql.functions import numbers as forms_math
from deltaic.spark_sql.functions import text as forms_string
from deltaic.spark_sql.functions import time_formats as forms_format

__all__ = [
    "buckets",
    "collections",
    "conditional",
    "forms_array",
    "forms_format",
    "forms_math",
    "forms_string",
    "forms_time",
    "hashes",
    "intervals",
    "json_text",
    "more_nested",
    "patterns",
    "text_formats",
    "urls",
    "variants",
]
