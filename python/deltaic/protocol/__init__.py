"""A table's definition as PROTOCOL.md describes it: actions, schema, features, properties, column mapping.

The functions are pure: no I/O, no engine. The registries in `features.py` and `properties.py` are where a new
feature or property is added."""
