"""SQL functions by family: one record of the registry (`registry.py`) for each, with arguments, result, and
how DuckDB computes it."""
