"""The embedded engine: it lowers plans to DuckDB relations, which read files through `_core`."""
