"""Errors of rows that our own expressions raise: carried through any engine as the text of `raise_error`, and read back from it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from deltaic import errors
from deltaic.plan.expression import Pieces
from deltaic.plan.literal import lit

_MARK = re.compile(r"deltaic-error:(\{.*?\}):deltaic-error(?::values:([0-9A-F]*):)?")


def failing(kind: type[errors.DeltaError], message: str, *, expected: str | None = None, where: str | None = None) -> str:
    """SQL that ends the query with this error."""
    return f"raise_error({lit(_marked(kind, message, expected, where))})"


def failing_with(shown: Sequence[tuple[str, Pieces]], kind: type[errors.DeltaError], message: str, *, expected: str) -> Pieces:
    """Like `failing`; `shown`: (name, its text) of values of the row that the error says it found."""
    if not shown:
        return (failing(kind, message, expected=expected),)
    values = []
    for number, (name, text) in enumerate(shown):
        values += [", " if number else "", lit(f"{', ' if number else ''}{name} = "), ", coalesce(", *text, ", 'null')"]
    mark = lit(f"{_marked(kind, message, expected, None)}:values:")
    return (f"raise_error(concat({mark}, hex(concat(", *values, ")), ':'))")


def _marked(kind: type[errors.DeltaError], message: str, expected: str | None, where: str | None) -> str:
    body = json.dumps({"kind": kind.__name__, "message": message, "expected": expected, "where": where})
    # JSON keeps braces and quotes of the text apart; what is left needs no escape in SQL.
    return f"deltaic-error:{_plain(body)}:deltaic-error"


def read_failure(text: str) -> errors.DeltaError | None:
    """The error that a host's message carries, None when it carries none."""
    match = _MARK.search(text)
    if match is None:
        return None
    body = json.loads(bytes.fromhex(json.loads(match[1])["hex"]))
    kind: type[errors.DeltaError] = getattr(errors, body["kind"])
    found = bytes.fromhex(match[2]).decode(errors="replace") if match[2] else None
    return kind(body["message"], where=body["where"], found=found, expected=body["expected"])


def _plain(body: str) -> str:
    return json.dumps({"hex": body.encode().hex()})
