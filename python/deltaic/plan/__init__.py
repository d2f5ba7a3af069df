"""Plans: what commands ask of an engine, as frozen dataclasses over expressions in Spark SQL."""
