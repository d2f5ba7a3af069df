"""Queries of Spark's SQL: SELECT, set operations, VALUES, and each clause in a module of its own."""
