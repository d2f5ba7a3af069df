"""Lazy rows of reads, and their conversions to Arrow, pandas, Polars, DuckDB and datasets.

Every public read returns a `Rows` (`rows.py`)."""
