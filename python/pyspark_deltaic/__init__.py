"""Registers the format "deltaic" with PySpark, which imports each package whose name begins with `pyspark_`
and takes the class `DefaultSource`. Do not rename either."""

from deltaic.spark.portable.data_source import DeltaicSource as DefaultSource

__all__ = ["DefaultSource"]
