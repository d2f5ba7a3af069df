"""Properties of a new table that its session adds, as the user has not given them."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.protocol.properties import canonical_name


class DefaultText(str):
    """The text of a property that is a default of the session, and was not given for the table."""

    __slots__ = ()


def is_given(properties: Mapping[str, object] | None, name: str) -> bool:
    """True if the property is among `properties`, and no default of the session."""
    return any(
        canonical_name(each) == name and not isinstance(value, DefaultText)
        for each, value in (properties or {}).items()
    )
