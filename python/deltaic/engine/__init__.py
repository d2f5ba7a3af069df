"""Engines: who does the relational work. `engine.py` is the interface, `local.py` the embedded one."""
