"""Errors of rows that our own expressions raise: carried through any engine as the text of `raise_error`, and read back from it."""

from __future__ import annotations

import json
import re

from deltaic import errors
from deltaic.relation.literal import lit

_MARK = re.compile(r"deltaic-error:(\{.*?\}):deltaic-error")


def failing(kind: type[errors.DeltaError], message: str, *, expected: str | None = None, where: str | None = None) -> str:
    """SQL that ends the query with this error."""
    body = json.dumps({"kind": kind.__name__, "message": message, "expected": expected, "where": where})
    # JSON keeps braces and quotes of the text apart; what is left needs no escape in SQL.
    return f"raise_error({lit('deltaic-error:' + _plain(body) + ':deltaic-error')})"


def read_failure(text: str) -> errors.DeltaError | None:
    """The error that a host's message carries, None when it carries none."""
    match = _MARK.search(text)
    if match is None:
        return None
    body = json.loads(bytes.fromhex(json.loads(match[1])["hex"]))
    kind: type[errors.DeltaError] = getattr(errors, body["kind"])
    return kind(body["message"], where=body["where"], expected=body["expected"])


def _plain(body: str) -> str:
    return json.dumps({"hex": body.encode().hex()})
