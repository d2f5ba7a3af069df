"""The engine on a Spark cluster: it lowers plans to DataFrames of plain PySpark, and reads through `native/`
(Spark's driver JVM) or `portable.py` (PySpark's public interfaces)."""
