"""The commands (delete, merge, optimize, ...), one in each module. A command takes a snapshot and returns the
snapshot of its commit, with metrics.

A command builds plans for an engine and stages actions in a transaction, so it is written once for all
engines."""
