"""Row tracking: which tables assign row ids, the hidden columns that keep them, and the highest assigned id.

Source: PROTOCOL.md, "Row Tracking". *Supported* (the protocol has the feature): each file gets the id of its
first row and the version that added it. *Enabled* (the property is true, too): rows that are copied or
updated keep their ids, in two hidden columns of the data files.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping

from deltaic.errors import InvalidArgumentError, ProtocolError, SchemaMismatchError
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import supported
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Schema

FEATURE = "rowTracking"
DOMAIN = "delta.rowTracking"
ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
OF_REPLACED = (ENABLED, ROW_ID_COLUMN, VERSION_COLUMN)
"""Properties that a table which replaces another takes over from it, as in delta-spark."""
NO_MARK = -1
"""The high-water mark of a table without any row id."""


def gives_ids(protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """True if the table must assign row ids to every file that is added."""
    if protocol is None or metadata is None or FEATURE not in supported(protocol):
        return False
    return not TableProperties(metadata.configuration).value(SUSPENDED)


def is_enabled(protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """True if all rows have ids, and keep them when they are copied or updated."""
    if protocol is None or metadata is None or FEATURE not in supported(protocol):
        return False
    return TableProperties(metadata.configuration).row_tracking


def kept_in(protocol: Protocol, metadata: Metadata) -> tuple[str, str] | None:
    """Returns the hidden columns for row ids and row commit versions of copied rows; None if row tracking is
    not enabled. A table that should name them and does not is a ProtocolError."""
    if not is_enabled(protocol, metadata):
        return None
    if (names := hidden_columns(metadata)) is not None:
        return names
    raise ProtocolError(
        "row tracking is on, but the table has no name for the column of row ids",
        where=ROW_ID_COLUMN,
        expected="a name",
    )


def hidden_columns(metadata: Metadata) -> tuple[str, str] | None:
    """Returns the hidden columns that files of the table may have, even if row tracking is not enabled
    now."""
    names = tuple(metadata.configuration.get(key) for key in (ROW_ID_COLUMN, VERSION_COLUMN))
    return (names[0], names[1]) if names[0] and names[1] else None


def check_names(schema: Schema, metadata: Metadata) -> None:
    """Raises SchemaMismatchError if a column has the name of a hidden column, in the schema or in the data
    files: its values would be read as row ids."""
    hidden = {name.lower() for name in hidden_columns(metadata) or ()}
    for item in schema:
        if hidden & {item.name.lower(), physical_name(item).lower()}:
            raise SchemaMismatchError(
                "a column has the name of a hidden column of row tracking",
                where=f"column {item.name}",
                expected="another name",
            )


def with_columns(
    configuration: Mapping[str, str], new_id: Callable[[], str] = lambda: str(uuid.uuid4())
) -> dict[str, str]:
    """Adds names of hidden columns to a configuration that enables row tracking. Existing names never
    change."""
    properties = TableProperties(configuration)
    if not properties.row_tracking:
        return dict(configuration)
    if properties.value(SUSPENDED):
        raise InvalidArgumentError(
            "row tracking cannot be on while it is suspended", where=ENABLED, found=f"{SUSPENDED} = true"
        )
    new = {ROW_ID_COLUMN: f"_row-id-col-{new_id()}", VERSION_COLUMN: f"_row-commit-version-col-{new_id()}"}
    return {**new, **configuration}


def high_water_mark(configuration: str | None) -> int:
    """Returns the highest assigned row id. `configuration`: that of the domain; None if the table has no such
    domain.

    Writers use the key `rowIdHighWaterMark`, PROTOCOL.md has `highWaterMark`. Both are read."""
    if configuration is None:
        return NO_MARK
    try:
        document = json.loads(configuration)
        mark = document.get("rowIdHighWaterMark", document.get("highWaterMark"))
    except (ValueError, AttributeError, RecursionError):
        mark = None
    if not isinstance(mark, int) or isinstance(mark, bool):
        raise ProtocolError(
            "the metadata domain is not valid",
            where=DOMAIN,
            found=repr(configuration)[:200],
            expected="rowIdHighWaterMark",
        )
    return mark


def mark_configuration(mark: int) -> str:
    """Returns the domain's configuration for a high-water mark."""
    return json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":"))
