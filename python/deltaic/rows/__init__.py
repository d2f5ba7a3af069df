"""Lazy rows of reads, and their exits: Arrow, pandas, Polars, DuckDB, datasets. Every public read returns one of these."""
