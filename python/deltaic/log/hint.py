"""`_last_checkpoint`: where a recent checkpoint is (PROTOCOL.md: Last Checkpoint File Schema, JSON checksum).

It is a hint and no more: whatever is wrong with it, the log is listed from its beginning instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from deltaic._core import Store
from deltaic.errors import ProtocolError
from deltaic.protocol.bounded_json import parse_json

LAST_CHECKPOINT = "_delta_log/_last_checkpoint"
_MAX_VERSION = 2**63 - 1
_MOST_BYTES = 4 << 20  # it may hold the schema of its checkpoint
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True)
class Hint:
    """`size_in_bytes`: of the checkpoint with its sidecars, 0 where the hint does not say."""

    version: int
    size_in_bytes: int = 0


def read(store: Store) -> Hint | None:
    """None where the file is missing, unreadable, or not what its own checksum says."""
    try:
        document = parse_json(store.get(LAST_CHECKPOINT, most=_MOST_BYTES), object_pairs_hook=_without_repetition)
        version = document.get("version") if isinstance(document, dict) else None
        if not (_is_number(version) and version <= _MAX_VERSION):
            return None
        if "checksum" in document and document["checksum"] != checksum(document):
            return None
    except (OSError, ValueError, RecursionError, ProtocolError):
        return None
    size = document.get("sizeInBytes")
    return Hint(version, size if _is_number(size) else 0)


def to_json(document: Mapping[str, Any]) -> bytes:
    """The file's bytes: the document, and its checksum."""
    fields = {key: value for key, value in document.items() if value is not None}
    return json.dumps({**fields, "checksum": checksum(fields)}, separators=(",", ":"), ensure_ascii=False).encode()


def checksum(document: Mapping[str, Any]) -> str:
    """MD5 of the document in the protocol's canonical form, without its own field `checksum`."""
    try:  # CPython's own, without the milliseconds that loading OpenSSL takes: every opening of a table comes by here
        from _md5 import md5  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import md5
    return str(md5(canonical(document).encode(), usedforsecurity=False).hexdigest())


def canonical(document: Mapping[str, Any]) -> str:
    """Each leaf as path=value, the path's parts joined by +, ordered by the bytes of the path."""
    leaves = [leaf for key, value in document.items() if key != "checksum" for leaf in _leaves(value, _text(key))]
    return ",".join(f"{path}={value}" for path, value in sorted(leaves))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}+{_text(key)}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}+{index}")
    else:
        yield path, _text(value) if isinstance(value, str) else json.dumps(value)


def _text(value: str) -> str:
    # As urllib.parse.quote with nothing safe, whose import takes longer than all else here.
    return '"' + "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in value.encode()) + '"'


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key is there twice")
    return document


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
