"""The format "delta", where no Delta jar has it: see `pyspark_deltaic`."""

from deltaic.spark.portable.data_source import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
