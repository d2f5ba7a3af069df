"""Lazy rows and their exits: Arrow, pandas, Polars, DuckDB, datasets."""
