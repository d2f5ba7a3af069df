"""Plans: the relational work that commands give to an engine, as frozen dataclasses over resolved
expressions.

Nothing here runs. To change how a plan is run, see `engine/duckdb` and `engine/spark`."""
