"""JSON of a log that Python holds as objects. A value of two bytes takes a hundred of memory, so that a text may not have too many."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from deltaic.errors import ProtocolError

# About 200 bytes each in the worst case; a schema of 100,000 plain columns has some 900,000.
MAX_VALUES = 1_500_000


def parse_json(text: str | bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Like `json.loads`, but ProtocolError for a text of more than MAX_VALUES values."""
    if isinstance(text, bytes):
        text = text.decode()
    # Those within quotes count too: it is a bound.
    values = sum(map(text.count, ",[{"))
    if values > MAX_VALUES:
        raise ProtocolError("the JSON is too large", where="JSON", found=f"about {values} values", expected=f"at most {MAX_VALUES}")
    return json.loads(text, object_pairs_hook=object_pairs_hook)
