"""A table's definition as PROTOCOL.md describes it: actions, schema, features, properties, column mapping. Pure: no I/O, no engine."""
