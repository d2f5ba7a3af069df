"""Registers the format "delta" with PySpark, unless a Delta jar has it: PySpark imports each package whose
name begins with `pyspark_` and takes the class `DefaultSource`. Do not rename either."""

from deltaic.spark.portable.data_source import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
