"""Planning of reads: divides a condition into the part that Rust evaluates on files and the part that an
engine evaluates, and selects files and columns.

`pushdown.py` decides which forms of conditions are pushed. No engine runs here, except for conditions on
partition values (`partition_functions.py`)."""
