"""Spark's own driver interfaces, reached by py4j: a native Parquet scan whose files, constants and deleted rows come from here."""
