"""Spark's SQL for the embedded engine: expressions and queries are parsed, their names and types resolved, and written as DuckDB's SQL."""
