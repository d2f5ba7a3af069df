"""The embedded engine: DuckDB for relational work, `_core` for files."""
