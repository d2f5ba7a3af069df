"""Scans: which files and columns, what is pushed down, and the lazy result."""
