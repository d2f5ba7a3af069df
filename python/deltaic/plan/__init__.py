"""Plans: what commands ask of an engine, as frozen dataclasses over resolved expressions. Nothing here runs."""
