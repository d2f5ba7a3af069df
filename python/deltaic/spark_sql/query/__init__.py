"""Translates Spark's queries to DuckDB's SQL: SELECT, set operations, VALUES, with a module for each
clause."""
