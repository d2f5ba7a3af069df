"""Spark's own driver interfaces, reached by py4j: a Parquet scan of Spark whose files, constants and deleted rows come from here."""
