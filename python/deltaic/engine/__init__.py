"""Engines: who does the relational work. `engine.py` is the interface; `duckdb/` runs on this machine, `spark/` on a cluster."""
