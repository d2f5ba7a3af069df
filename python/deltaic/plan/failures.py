"""Errors that expressions of commands raise for a row, such as a violated constraint.

`raise_error` of SQL carries an error through an engine as text; `read_failure` makes a DeltaError of that
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from deltaic import errors
from deltaic.plan.expression import Expression, Pieces
from deltaic.plan.literal import lit

_MARK = re.compile(r"deltaic-error:(\{.*?\}):deltaic-error(?::values:([0-9A-F]*):)?")

_LONGEST = 1000
"""Maximum characters of a value in an error; the rest of a longer one is cut off."""


def failing(
    kind: type[errors.DeltaError], message: str, *, expected: str | None = None, where: str | None = None
) -> str:
    """Returns SQL that fails the query with this error."""
    return f"raise_error({lit(_marked(kind, message, expected, where))})"


def failing_with(
    shown: Sequence[tuple[str, Pieces]], kind: type[errors.DeltaError], message: str, *, expected: str
) -> Pieces:
    """Like `failing`, with values of the row. `shown`: name and SQL text of each value; the error has them as
    `found="price = -1, id = 7"`."""
    if not shown:
        return (failing(kind, message, expected=expected),)
    values: list[str | Expression] = []
    for number, (name, text) in enumerate(shown):
        values += [
            ", " if number else "",
            lit(f"{', ' if number else ''}{name} = "),
            ", coalesce(",
            *text,
            ", 'null')",
        ]
    return _raised(values, kind, message, expected)


def failing_on(text: Pieces, kind: type[errors.DeltaError], message: str, *, expected: str) -> Pieces:
    """Like `failing`, with `text`, SQL of a string that is not null: the error has it as `found="'abc'"`."""
    return _raised(
        [lit("'"), ", substring(", *text, f", 1, {_LONGEST}), ", lit("'")], kind, message, expected
    )


def _raised(
    values: Sequence[str | Expression], kind: type[errors.DeltaError], message: str, expected: str
) -> Pieces:
    """Returns SQL that fails the query. `values`: SQL of the arguments of a `concat`, which makes the error's
    `found`."""
    mark = lit(f"{_marked(kind, message, expected, None)}:values:")
    return (f"raise_error(concat({mark}, hex(concat(", *values, ")), ':'))")


def _marked(kind: type[errors.DeltaError], message: str, expected: str | None, where: str | None) -> str:
    body = json.dumps({"kind": kind.__name__, "message": message, "expected": expected, "where": where})
    # The body is hexadecimal, so it contains no quote or brace that SQL or _MARK would read as its own.
    return f"deltaic-error:{_plain(body)}:deltaic-error"


def read_failure(text: str) -> errors.DeltaError | None:
    """Returns the error that the message of an engine carries; None if it carries none."""
    match = _MARK.search(text)
    if match is None:
        return None
    body = json.loads(bytes.fromhex(json.loads(match[1])["hex"]))
    kind: type[errors.DeltaError] = getattr(errors, body["kind"])
    found = bytes.fromhex(match[2]).decode(errors="replace") if match[2] else None
    return kind(body["message"], where=body["where"], found=found, expected=body["expected"])


def _plain(body: str) -> str:
    return json.dumps({"hex": body.encode().hex()})
