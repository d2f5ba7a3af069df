"""The log as a sequence of versions: which files make one, and what a version says."""
