"""The engine's own result of a plan: a DataFrame, and what is known of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deltaic.protocol.schema import Schema


@dataclass(frozen=True, eq=False)
class SparkRelation:
    """A DataFrame and its columns as Delta has them. `bytes`: bytes of the files that hold exactly its rows.
    `files`: number of parts into which its rows were divided on purpose. `rows`: maximum number of rows, if
    known. `on_driver`: True if its rows come from rows on the driver, so that they are likely few.
    `partitioned`: True if its partitions are those of a user's DataFrame, each of which becomes a file."""

    frame: Any
    schema: Schema
    bytes: int | None = None
    files: int | None = None
    rows: int | None = None
    on_driver: bool = False
    partitioned: bool = False
