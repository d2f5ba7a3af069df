"""The log as a sequence of versions: loading snapshots, checkpoints, checksums, cleanup, history, and the
stores that hold it.

To change how a version is loaded, begin with `segment.py` (which files of the log) and `snapshot.py` (the
state)."""
