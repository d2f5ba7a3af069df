"""The format "deltaic": PySpark finds this package by the beginning of its name, and `DefaultSource` in
it."""

from deltaic.spark.portable.data_source import DeltaicSource as DefaultSource

__all__ = ["DefaultSource"]
