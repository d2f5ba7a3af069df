"""Queries: SELECT, set operations, VALUES, and the clauses around them."""
