"""Translates Spark's SQL for the embedded engine: parses expressions and queries, resolves their names and
types, and writes them as SQL of DuckDB."""
