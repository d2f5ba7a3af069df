"""Offsets: positions of a reader that follows a table, as delta-spark writes them into checkpoints of streams
(DeltaSourceOffset)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.bounded_json import parse_json

BASE = -1
"""Index of the position before the first file of a version."""
METADATA_CHANGE, AFTER_METADATA_CHANGE = -20, -19
"""Indexes of the two positions before the files of a version that changes the definition of the table, in a
stream with a schema log. The first ends the last batch with the old definition. Then the new definition is
added to the schema log, and the query fails. The second is the position from which the restarted query
reads."""
_BEFORE_FILES = {-100: BASE, BASE: BASE}
"""Indexes that mean the position before the first file, in the formats of delta-spark: -100 since format 3,
-1 before."""
_NEWEST_FORMAT = 3
_RESERVED_FORMAT = 2


@dataclass(frozen=True)
class StreamOffset:
    """The position after file number `index` of a version. The files are those that the commit adds, in its
    order; with `initial` all files of the version, ordered by modification time and path. `table_id`: from
    the table's metadata."""

    table_id: str
    version: int
    index: int = BASE
    initial: bool = False

    def json(self) -> str:
        """Serializes the offset:
        `{"sourceVersion":1,"reservoirId":"…","reservoirVersion":3,"index":-1,"isStartingVersion":false}`."""
        values = {
            "sourceVersion": 1 if self.index >= BASE else _NEWEST_FORMAT,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": self.index,
            "isStartingVersion": self.initial,
        }
        return json.dumps(values, separators=(",", ":"))

    @staticmethod
    def parse(text: str, table_id: str) -> StreamOffset:
        """Parses an offset. Text that is no offset, or an offset of another table than `table_id`, is an
        InvalidArgumentError."""
        try:
            values = parse_json(text)
        except (ValueError, TypeError):
            raise _malformed(text) from None
        if not isinstance(values, dict):
            raise _malformed(text)
        format, index = _whole(values, "sourceVersion", text), _whole(values, "index", text)
        if format > _NEWEST_FORMAT:
            raise InvalidArgumentError(
                "[DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION] the offset is of a newer format",
                found=format,
                expected=f"{_NEWEST_FORMAT} or less",
            )
        if format < 1 or format == _RESERVED_FORMAT:
            raise InvalidArgumentError(
                "[DELTA_INVALID_SOURCE_VERSION] the offset's sourceVersion", found=format, expected="1 or 3"
            )
        found, initial = values.get("reservoirId"), values.get("isStartingVersion")
        if not isinstance(found, str) or not isinstance(initial, bool):
            raise _malformed(text)
        if found != table_id:
            raise InvalidArgumentError(
                "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] the offset is of another table; a new"
                " reader needs a checkpoint of its own",
                found=f"table id {found}",
                expected=f"table id {table_id}",
            )
        return StreamOffset(
            found, _whole(values, "reservoirVersion", text), _BEFORE_FILES.get(index, index), initial
        )


def _whole(values: dict[str, Any], name: str, text: str) -> int:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _malformed(text)
    return value


def _malformed(text: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        "[DELTA_INVALID_SOURCE_OFFSET_FORMAT] not an offset of a stream",
        found=repr(text)[:200],
        expected="JSON with sourceVersion, reservoirId, reservoirVersion, index and isStartingVersion",
    )
