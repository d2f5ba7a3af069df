"""One module per verb. Each takes a snapshot and gives back the snapshot with its commit, and its metrics."""
