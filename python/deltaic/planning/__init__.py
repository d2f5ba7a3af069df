"""Planning of reads: which files and columns a condition can need, and what of it files can decide. No engine runs here."""
