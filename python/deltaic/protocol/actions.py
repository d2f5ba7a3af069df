"""The two actions that define a table: `protocol` and `metaData`.

Source: PROTOCOL.md, "Protocol Evolution" and "Change Metadata". As PROTOCOL.md requires, unknown fields are
ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from deltaic.errors import DeltaError, InvalidArgumentError, ProtocolError
from deltaic.protocol.bounded_json import parse_json

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7


class ReadOnlyDict(dict[str, Any]):
    """A dict that cannot be changed, so that the values of a snapshot can be shared. It equals a dict with
    the same content, and can be pickled and copied."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping belongs to a snapshot and cannot change; make a dict(...) of it")

    __setitem__ = __delitem__ = _refuse
    pop = popitem = clear = update = setdefault = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnlyDict, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, default=str))


class Names(tuple[str, ...]):
    """An immutable list of names. It equals a list or tuple of the same names, as the log has lists."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


@dataclass(frozen=True)
class Protocol:
    """Versions and features that a client needs to read and to write a table.

    `reader_features`: sorted unique names; None below reader version 3.
    `writer_features`: sorted unique names; None below writer version 7.
    """

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("reader_features", "writer_features"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, Names(sorted(set(value))))

    @staticmethod
    def from_json(text: str) -> Protocol:
        """Parses a line of the log, `{"protocol": {...}}`, or only the value `{...}`. A ProtocolError names
        the invalid field."""
        action = _action(text, "protocol")
        reader, writer = _version(action, "minReaderVersion"), _version(action, "minWriterVersion")
        return Protocol(
            reader,
            writer,
            _features(action, "readerFeatures", reader, READER_FEATURES_VERSION),
            _features(action, "writerFeatures", writer, WRITER_FEATURES_VERSION),
        )

    def to_json(self) -> str:
        """Returns the action as a line of the log, `{"protocol": {...}}`."""
        action: dict[str, Any] = {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
        }
        if self.reader_features is not None:
            action["readerFeatures"] = list(self.reader_features)
        if self.writer_features is not None:
            action["writerFeatures"] = list(self.writer_features)
        return line({"protocol": action})


@dataclass(frozen=True)
class Metadata:
    """The `metaData` action. `schema_string`: JSON of the schema. `created_time`: ms since the epoch; None if
    the action has none."""

    id: str
    name: str | None = None
    description: str | None = None
    schema_string: str = '{"type":"struct","fields":[]}'
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"provider": "parquet", "options": {}})

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition_columns", Names(self.partition_columns))
        object.__setattr__(self, "configuration", ReadOnlyDict(self.configuration))
        object.__setattr__(self, "format", ReadOnlyDict(self.format))

    @staticmethod
    def from_json(text: str) -> Metadata:
        """Parses a line of the log, `{"metaData": {...}}`, or only the value `{...}`. A ProtocolError names
        the invalid field."""
        action = _action(text, "metaData")
        created = action.get("createdTime")
        if created is not None and (not isinstance(created, int) or isinstance(created, bool)):
            _bad("metaData", "createdTime", created, "milliseconds since the epoch")
        form = action.get("format")
        if not isinstance(form, dict):
            _bad("metaData", "format", form, "an object")
        if form.get("provider") != "parquet":
            _bad("metaData", "format.provider", form.get("provider"), "'parquet'")
        return Metadata(
            id=_text(action, "id", required=True) or "",
            name=_text(action, "name"),
            description=_text(action, "description"),
            schema_string=_text(action, "schemaString", required=True) or "",
            partition_columns=_texts(action.get("partitionColumns"), "metaData", "partitionColumns"),
            configuration=_configuration(action.get("configuration")),
            created_time=created,
            format=form,
        )

    def to_json(self) -> str:
        """Returns the action as a line of the log, `{"metaData": {...}}`. Fields that are None are left
        out."""
        action: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "format": self.format,
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": self.configuration,
            "createdTime": self.created_time,
        }
        return line({"metaData": {key: value for key, value in action.items() if value is not None}})


def line(action: Mapping[str, Any]) -> str:
    """Serializes an action as one line of JSON in UTF-8, without spaces. Text that UTF-8 cannot encode (half
    of a surrogate pair) is an InvalidArgumentError."""
    text = json.dumps(action, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            "text with half of a surrogate pair cannot be stored", found=repr(text[error.start : error.end])
        ) from None
    return text


def _bad(action: str, key: str, found: object, expected: str) -> NoReturn:
    raise ProtocolError(
        f"{action} action: {key} is not valid",
        where=f"{action}.{key}",
        found=repr(found)[:200],
        expected=expected,
    )


def _action(text: str, name: str) -> dict[str, Any]:
    try:
        value = parse_json(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            f"the {name} action is not JSON: {error}", where=name, found=repr(text[:80]), expected="JSON"
        ) from None
    except DeltaError as error:
        raise error.within(name) from None
    if isinstance(value, dict) and isinstance(value.get(name), dict):
        value = value[name]
    if not isinstance(value, dict):
        raise ProtocolError(
            f"the {name} action is not a JSON object", where=name, found=repr(text[:80]), expected="an object"
        )
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes the dict of a JSON object. A repeated key is a ProtocolError, as readers differ in which of its
    values they use."""
    document = dict(pairs)
    if len(document) != len(pairs):
        twice = next(key for key in document if sum(key == other for other, _ in pairs) > 1)
        raise ProtocolError(
            "a field occurs twice", where=twice[:200], found=f"two of {twice[:200]!r}", expected="each once"
        )
    return document


def _version(action: Mapping[str, Any], key: str) -> int:
    value = action.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        _bad("protocol", key, value, "a version from 1 on")
    return value


def _features(action: Mapping[str, Any], key: str, version: int, needed: int) -> tuple[str, ...] | None:
    value = action.get(key)
    if version >= needed:
        if value is None:
            # a later protocol; `check_readable` and `check_writable` refuse it by its version
            if version > needed:
                return None
            _bad("protocol", key, value, f"a list of names at version {version}")
        return _texts(value, "protocol", key)
    if value:  # an empty list is harmless, and some writers wrote it
        _bad("protocol", key, value, f"nothing below version {needed}")
    return None


def _text(action: Mapping[str, Any], key: str, *, required: bool = False) -> str | None:
    value = action.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        _bad("metaData", key, value, "text")
    return value


def _texts(value: object, action: str, key: str) -> tuple[str, ...]:
    if (
        not isinstance(value, Iterable)
        or isinstance(value, (str, dict))
        or not all(isinstance(item, str) for item in value)
    ):
        _bad(action, key, value, "a list of text")
    return tuple(value)


def _configuration(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        _bad("metaData", "configuration", value, "an object of text")
    for key, item in value.items():
        if item is not None and not isinstance(item, str):
            _bad("metaData", f"configuration[{key!r}]", item, "text")
    return {key: item for key, item in value.items() if item is not None}
