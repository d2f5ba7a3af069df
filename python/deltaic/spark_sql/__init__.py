"""Spark's SQL: parsed, names and types resolved, and written as DuckDB's SQL for the embedded engine."""
