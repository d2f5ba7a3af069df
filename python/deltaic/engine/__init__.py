"""Engines do the relational work of commands: `engine.py` is their interface, `duckdb/` runs on this machine,
`spark/` on a cluster."""
