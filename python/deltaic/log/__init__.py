"""The log as a sequence of versions: which files make a version, checkpoints, checksums, cleaning, history, and the stores that hold it."""
