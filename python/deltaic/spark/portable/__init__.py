"""Reads and writes tables by PySpark's public interfaces alone: the Python data source, and what Spark
Connect needs."""
