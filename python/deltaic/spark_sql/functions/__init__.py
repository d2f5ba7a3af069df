"""Functions by family. The registry (`registry.py`) has one record for each function: arguments, result, and how DuckDB computes it."""
