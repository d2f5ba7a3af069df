"""The verbs (delete, merge, optimize, ...): a module each, which takes a snapshot and returns the snapshot of its commit, with metrics.

A command builds plans for an engine and stages actions for a transaction, so that it is written once for all engines."""
