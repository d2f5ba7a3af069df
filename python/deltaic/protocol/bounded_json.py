"""JSON of a log, parsed to Python objects with a limit: a value of two bytes of text can take 200 bytes of
memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from deltaic.errors import ProtocolError

# Maximum number of values in one text; a text with more is a ProtocolError. At 200 bytes each in the worst
# case this is 300 MB. A schema of 100,000 plain columns has about 900,000 values.
MAX_VALUES = 1_500_000


def parse_json(
    text: str | bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Like `json.loads`, but raises ProtocolError for a text of more than MAX_VALUES values."""
    if isinstance(text, bytes):
        text = text.decode()
    # An upper bound: commas and brackets within strings are counted, too.
    values = sum(map(text.count, ",[{"))
    if values > MAX_VALUES:
        raise ProtocolError(
            "the JSON is too large",
            where="JSON",
            found=f"about {values} values",
            expected=f"at most {MAX_VALUES}",
        )
    return json.loads(text, object_pairs_hook=object_pairs_hook)
