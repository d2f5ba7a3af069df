"""Row tracking: which tables give their rows ids, where ids and versions of copied rows are kept, and how far ids have been given.

Source: PROTOCOL.md, "Row Tracking". *Supported* (the feature is listed): every file gets a first row id and the version that added it.
*Enabled* (the property besides): rows that are copied or updated keep theirs, in two hidden columns of the data files.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping

from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import supported
from deltaic.protocol.properties import TableProperties

FEATURE = "rowTracking"
DOMAIN = "delta.rowTracking"
ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
NO_MARK = -1
"""The high-water mark of a table that has given no row id yet."""


def gives_ids(protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """True if every file that is added must get row ids."""
    if protocol is None or metadata is None or FEATURE not in supported(protocol):
        return False
    return not TableProperties(metadata.configuration).value(SUSPENDED)


def is_enabled(protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """True if all rows have ids that stay with them."""
    if protocol is None or metadata is None or FEATURE not in supported(protocol):
        return False
    return TableProperties(metadata.configuration).row_tracking


def kept_in(protocol: Protocol, metadata: Metadata) -> tuple[str, str] | None:
    """The hidden columns that a rewrite keeps row ids and row commit versions in; None where rows keep none. ProtocolError where the
    table should name them and does not."""
    if not is_enabled(protocol, metadata):
        return None
    if (names := hidden_columns(metadata)) is not None:
        return names
    raise ProtocolError("row tracking is on, and the table does not say where row ids are kept", where=ROW_ID_COLUMN, expected="a name")


def hidden_columns(metadata: Metadata) -> tuple[str, str] | None:
    """The hidden columns that files of the table may have, whether or not row tracking is on now."""
    names = tuple(metadata.configuration.get(key) for key in (ROW_ID_COLUMN, VERSION_COLUMN))
    return (names[0], names[1]) if names[0] and names[1] else None


def with_columns(configuration: Mapping[str, str], new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> dict[str, str]:
    """The configuration with names of hidden columns where row tracking is to be on; those that it has stay for ever."""
    properties = TableProperties(configuration)
    if not properties.row_tracking:
        return dict(configuration)
    if properties.value(SUSPENDED):
        raise InvalidArgumentError("row tracking cannot be on while it is suspended", where=ENABLED, found=f"{SUSPENDED} = true")
    new = {ROW_ID_COLUMN: f"_row-id-col-{new_id()}", VERSION_COLUMN: f"_row-commit-version-col-{new_id()}"}
    return {**new, **configuration}


def high_water_mark(configuration: str | None) -> int:
    """The highest row id given so far, from the domain's configuration (None: the table has no such domain).

    Writers call it `rowIdHighWaterMark`; PROTOCOL.md says `highWaterMark`. Both are read."""
    if configuration is None:
        return NO_MARK
    try:
        document = json.loads(configuration)
        mark = document.get("rowIdHighWaterMark", document.get("highWaterMark"))
    except (ValueError, AttributeError, RecursionError):
        mark = None
    if not isinstance(mark, int) or isinstance(mark, bool):
        raise ProtocolError(
            "the metadata domain is not valid", where=DOMAIN, found=repr(configuration)[:200], expected="rowIdHighWaterMark"
        )
    return mark


def mark_configuration(mark: int) -> str:
    """The domain's configuration for a high-water mark."""
    return json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":"))
