"""Computes the protocol of a table: for a new table the features in use, for an existing one its features and
those that a change adds.

Source: PROTOCOL.md, "Table Features for New and Existing Tables". A legacy version implies a set of features,
so it is written only if the table has exactly this set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.actions import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, Protocol
from deltaic.protocol.features import (
    FEATURES,
    MANAGED,
    SUPPORTED_READER_VERSION,
    SUPPORTED_WRITER_VERSION,
    implied,
    reader_features,
    supported,
)

BASE = Protocol(1, 2)
DEFAULTS = "allowColumnDefaults"
_NAMED_BY_USERS = frozenset({"timestampNtz", DEFAULTS})
"""Features that delta-spark never adds to an existing table because of its columns alone. A new table, too,
has column defaults only if its properties name the feature."""
_refuses: ContextVar[bool] = ContextVar("deltaic_refuses_as_delta_spark", default=False)


@contextmanager
def refusing_as_delta_spark() -> Iterator[None]:
    """Inside the block, definitions are refused where delta-spark refuses them: they must name
    `delta.feature.timestampNtz` and `delta.feature.allowColumnDefaults`, a partitioned table cannot replace a
    clustered one, and the columns of a table with identity columns cannot be replaced. Elsewhere, also for
    `DeltaTable(path, spark=spark)`, a table gets all features of its columns."""
    token = _refuses.set(True)
    try:
        yield
    finally:
        _refuses.reset(token)


def refuses_as_delta_spark() -> bool:
    """True if definitions are refused where delta-spark refuses them."""
    return _refuses.get()


def check_upgrade(protocol: Protocol, min_reader_version: int | None, min_writer_version: int | None) -> None:
    """Raises InvalidArgumentError where delta-spark refuses an upgrade: readers of version 3 need writers of
    version 7, which it does not add by itself."""
    writer = min_writer_version or protocol.min_writer_version
    if (
        min_reader_version == READER_FEATURES_VERSION
        and writer < WRITER_FEATURES_VERSION
        and refuses_as_delta_spark()
    ):
        raise InvalidArgumentError(
            f"[DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE] readers of version {READER_FEATURES_VERSION} need"
            f" writers of version {WRITER_FEATURES_VERSION}",
            found=f"delta.minWriterVersion = {writer}",
            expected=f"'delta.minWriterVersion' = '{WRITER_FEATURES_VERSION}'",
        )


def check_addable(
    protocol: Protocol | None, needed: Iterable[str], named: Iterable[str], verb: str = "ALTER"
) -> None:
    """Raises an error if a table cannot get the features `needed`: as `check_honoured`, and
    InvalidArgumentError for one that its columns need and the user must name. `protocol`: of the existing
    table; None for a new one. `named`: features that the change names. `verb`: CREATE or ALTER."""
    if MANAGED in needed and verb == "CREATE":
        raise UnsupportedFeatureError(
            "[DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION] a table that a catalog manages can be created"
            " by its catalog only",
            found=f"the feature {MANAGED}",
        )
    check_honoured(sorted(needed))
    if not refuses_as_delta_spark():
        return
    current = frozenset[str]() if protocol is None else supported(protocol)
    missing = _NAMED_BY_USERS.intersection(needed) - current - frozenset(named)
    if DEFAULTS in missing:
        raise InvalidArgumentError(
            "column defaults need a table feature that the table does not have",
            expected=f"'delta.feature.{DEFAULTS}' = 'supported' in TBLPROPERTIES",
        ).with_values(command=f"{verb} TABLE")
    if missing and protocol is not None:
        raise InvalidArgumentError(
            "the columns need a table feature that the table does not have",
            found=", ".join(sorted(missing)),
            expected=f"'delta.feature.{min(missing)}' = 'supported' by ALTER TABLE SET TBLPROPERTIES before",
        ).with_values(supported=", ".join(sorted(current)))


_LEGACY = ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6))


def new_protocol(
    needed: Iterable[str], *, min_reader_version: int | None = None, min_writer_version: int | None = None
) -> Protocol:
    """Returns the protocol of a new table: reader 1 and writer 2 if that is enough, else exactly the features
    `needed` and those that they require. They are listed unless a legacy version implies exactly the same
    set.

    `min_reader_version`, `min_writer_version`: lower bounds; a legacy version adds the features that it
    implies."""
    names = with_required(needed)
    reader, writer = _checked_versions(min_reader_version or 1, min_writer_version or BASE.min_writer_version)
    if (
        reader < READER_FEATURES_VERSION
        and writer < WRITER_FEATURES_VERSION
        and names <= implied(reader, writer)
    ):
        return Protocol(reader, writer)
    asked = (
        implied(reader, writer)
        if (min_reader_version, min_writer_version) != (None, None)
        else frozenset[str]()
    )
    return _least(names | asked, reader, writer)


def upgrade(
    protocol: Protocol,
    needed: Iterable[str] = (),
    *,
    min_reader_version: int | None = None,
    min_writer_version: int | None = None,
) -> Protocol:
    """Adds the features `needed`, and those that they require, to a table's protocol, with at least these
    versions.

    The table keeps all its features: those that legacy versions implied are listed if the versions change to
    3 and 7. Returns `protocol` itself if nothing is missing."""
    reader, writer = _checked_versions(min_reader_version or 1, min_writer_version or 1)
    reader, writer = max(reader, protocol.min_reader_version), max(writer, protocol.min_writer_version)
    names = (
        supported(protocol)
        | with_required(needed)
        | implied(min_reader_version or 1, min_writer_version or 1)
    )
    if names == supported(protocol) and (reader, writer) == (
        protocol.min_reader_version,
        protocol.min_writer_version,
    ):
        return protocol
    if (
        reader < READER_FEATURES_VERSION
        and writer < WRITER_FEATURES_VERSION
        and names <= implied(reader, writer)
    ):
        return Protocol(reader, writer)
    return _least(names, reader, writer, frozenset(protocol.reader_features or ()))


def without_features(protocol: Protocol, dropped: Iterable[str], added: Iterable[str] = ()) -> Protocol:
    """Returns the lowest protocol with the table's features without `dropped` and with `added`."""
    names = (supported(protocol) - frozenset(dropped)) | frozenset(added)
    return _least(names, 1, 1, reader_features(protocol) & names)


def with_required(names: Iterable[str]) -> frozenset[str]:
    """Adds the features that features require: `clustering` adds `domainMetadata`."""
    features: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in features:
            features.add(name)
            pending += FEATURES[name].requires if name in FEATURES else ()
    return frozenset(features)


def check_honoured(names: Iterable[str]) -> None:
    """Raises UnsupportedFeatureError for the first feature that this release does not know or cannot turn
    on."""
    for name in names:
        known = FEATURES.get(name)
        if known is None:
            raise UnsupportedFeatureError(
                "no feature of this name is known", found=repr(name), expected="a name of PROTOCOL.md"
            )
        if not known.honoured:
            raise UnsupportedFeatureError(
                f"the feature {name} cannot be turned on by this release", found=repr(name)
            )


def _least(names: frozenset[str], reader: int, writer: int, listed: frozenset[str] = frozenset()) -> Protocol:
    """Returns the lowest protocol from these versions on with exactly the features `names`. `listed`: reader
    features that the table already lists."""
    for legacy in _LEGACY:
        if legacy[0] >= reader and legacy[1] >= writer and implied(*legacy) == names:
            return Protocol(*legacy)
    of_readers = {name for name in names if name in listed or (name in FEATURES and FEATURES[name].reader)}
    if reader >= READER_FEATURES_VERSION or of_readers - {"columnMapping"}:
        return Protocol(READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, tuple(of_readers), tuple(names))
    # PROTOCOL.md: with reader version 2, readers must know columnMapping, which writerFeatures lists.
    return Protocol(max(reader, 2 if of_readers else 1), WRITER_FEATURES_VERSION, None, tuple(names))


def _checked_versions(reader: int, writer: int) -> tuple[int, int]:
    if not 1 <= reader <= SUPPORTED_READER_VERSION or not 1 <= writer <= SUPPORTED_WRITER_VERSION:
        raise InvalidArgumentError(
            "no such protocol version",
            found=f"{reader} / {writer}",
            expected="readers 1 to 3, writers 1 to 7",
        )
    return reader, WRITER_FEATURES_VERSION if reader == READER_FEATURES_VERSION else writer
