"""The file `_last_checkpoint`, which names a recent checkpoint (PROTOCOL.md: Last Checkpoint File Schema,
JSON checksum).

The file is only a hint: if it is missing or invalid, the log is listed from its beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from deltaic._core import Store, canonical_json
from deltaic.errors import ProtocolError
from deltaic.protocol.bounded_json import parse_json

LAST_CHECKPOINT = "_delta_log/_last_checkpoint"
_MAX_VERSION = 2**63 - 1
MOST_BYTES = 4 << 20
"""Maximum bytes of the file, which may contain the schema of the checkpoint; a larger file is ignored."""
_MOST_PARTS = 100
"""Maximum number of parts of a checkpoint whose names `Hint.names` has."""
_KEPT = 64 << 10
"""Maximum bytes of a file whose result is kept for the next one with the same bytes."""


@dataclass(frozen=True)
class Hint:
    """The parsed file. `size_in_bytes`: size of the checkpoint with its sidecars; 0 if unknown. `names`:
    of the checkpoint's file or its parts in the log; empty if they do not follow from the file."""

    version: int
    size_in_bytes: int = 0
    names: tuple[str, ...] = ()


def read(store: Store) -> Hint | None:
    """Reads the file; None if it is missing, invalid, or does not match its checksum."""
    try:
        return parse(store.get(LAST_CHECKPOINT, most=MOST_BYTES))
    except (OSError, ProtocolError):
        return None


def read_version(store: Store) -> int | None:
    """Reads the version in the file without checking the checksum, which takes much longer; None as for
    `read`."""
    try:
        document = parse_json(store.get(LAST_CHECKPOINT, most=MOST_BYTES))
    except (OSError, ProtocolError, ValueError, RecursionError):
        return None
    version = document.get("version") if isinstance(document, dict) else None
    return version if _is_number(version) else None


def parse(data: bytes | None) -> Hint | None:
    """Parses the bytes of the file; None as for `read`."""
    if data is None:
        return None
    return _parsed(data) if len(data) <= _KEPT else _parsed.__wrapped__(data)


@lru_cache(maxsize=32)
def _parsed(data: bytes) -> Hint | None:
    """Parses the bytes of the file. The result is cached by the bytes, because a table that is opened
    repeatedly mostly has the same file, and computing its checksum takes most of the time."""
    try:
        text = data.decode()
        document = parse_json(text, object_pairs_hook=_without_repetition)
        version = document.get("version") if isinstance(document, dict) else None
        if not (_is_number(version) and version <= _MAX_VERSION):
            return None
        if "checksum" in document and document["checksum"] != checksum(text):
            return None
    except (ValueError, RecursionError, ProtocolError):
        return None
    size = document.get("sizeInBytes")
    return Hint(version, size if _is_number(size) else 0, _names(document, version))


def _names(document: Mapping[str, Any], version: int) -> tuple[str, ...]:
    parts, second = document.get("parts"), document.get("v2Checkpoint")
    if isinstance(second, dict):
        name = second.get("path")
        return (
            (name,)
            if isinstance(name, str) and re.fullmatch(rf"{version:020}\.checkpoint\.[0-9A-Za-z.-]+", name)
            else ()
        )
    if parts is None:
        return (f"{version:020}.checkpoint.parquet",)
    if not (_is_number(parts) and 0 < parts <= _MOST_PARTS):
        return ()
    return tuple(f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1))


def to_json(document: Mapping[str, Any]) -> bytes:
    """Serializes the document with its checksum."""
    fields = {key: value for key, value in document.items() if value is not None}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    return f'{text[:-1]},"checksum":"{checksum(text)}"}}'.encode()


def checksum(document: str) -> str:
    """Returns the MD5 of a JSON document in PROTOCOL.md's canonical form, without its field `checksum`."""
    try:
        # CPython's own MD5: loading OpenSSL would take milliseconds each time that a process opens its first
        # table
        from _md5 import md5  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import md5
    return str(md5(canonical_json(document).encode(), usedforsecurity=False).hexdigest())


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key occurs twice")
    return document


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
