"""What PROTOCOL.md says of a table's definition: actions, schema, features, properties, column mapping. Pure: no I/O, no engine."""
