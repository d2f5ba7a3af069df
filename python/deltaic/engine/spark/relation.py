"""`SparkRelation`, which the engine on Spark returns for a plan: a DataFrame, and what is known about its
rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deltaic.protocol.schema import Schema


@dataclass(frozen=True, eq=False)
class SparkRelation:
    """A DataFrame and its columns in Delta's types.

    `bytes`: size of the files, or of the Arrow data, that hold exactly its rows; None if unknown.
    `files`: number of files into which its partitions are to be written, None if the writer decides.
    `rows`: maximum number of rows, None if unknown.
    `on_driver`: True if its rows come from rows on the driver, so that they are likely few.
    `partitioned`: True if its partitions are those of a user's DataFrame, each of which becomes a file."""

    frame: Any
    schema: Schema
    bytes: int | None = None
    files: int | None = None
    rows: int | None = None
    on_driver: bool = False
    partitioned: bool = False
