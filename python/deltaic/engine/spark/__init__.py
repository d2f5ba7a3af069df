"""The engine on a Spark cluster: it lowers plans to DataFrames of plain PySpark, and reads through `native/`
or `portable.py`."""
