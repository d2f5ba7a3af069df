"""Table features: every one that is known, what this release does with it, and the gates that reading and writing pass.

Source: PROTOCOL.md, "Table Features", "Valid Feature Names", "Writer Version Requirements", "Reader Version Requirements", and each
feature's own section. The rule: a feature that is listed, or implied by an old version, hinders nobody while the table does not use it; one
in use that cannot be honoured refuses what would break it; an unknown one refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from deltaic.errors import ProtocolError, UnsupportedFeatureError
from deltaic.protocol.actions import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, Metadata, Protocol
from deltaic.protocol.clustering import columns_without_statistics
from deltaic.protocol.properties import Status, TableProperties, constraint_names
from deltaic.protocol.schema import Schema, is_shape, path_text, primitive_types, walk
from deltaic.protocol.widening import unsupported_type_change

SUPPORTED_READER_VERSION = 3
SUPPORTED_WRITER_VERSION = 7


class Change(Enum):
    """Kinds of changes that a commit makes to a table's rows, for `check_writable`."""

    DEFINITION = "changes the definition"
    """No file is added or removed."""
    ADD = "adds rows"
    REMOVE = "removes rows"
    """Vectors or whole files; what is rewritten is copied unchanged."""
    REPLACE = "adds and removes rows"
    REARRANGE = "rearranges rows"
    """Every add and remove has dataChange=false."""

    @staticmethod
    def of(*, adds: bool, removes: bool, data_change: bool = True) -> Change:
        """From what a transaction stages: whether there are adds and removes, and whether any of them has dataChange=true.

        A rewrite of a DELETE without vectors looks like REPLACE; its command knows better and may say REMOVE.
        """
        if not adds and not removes:
            return Change.DEFINITION
        if not data_change:
            return Change.REARRANGE
        return Change.REPLACE if adds and removes else Change.ADD if adds else Change.REMOVE


NOTHING: frozenset[Change] = frozenset()
ALL = frozenset(Change)
FILES = ALL - {Change.DEFINITION}
NEW_ROWS = frozenset({Change.ADD, Change.REPLACE})


class Read(Enum):
    """True if a table with the feature is read."""

    ALWAYS = "yes"
    UNUSED = "only where the table does not use it"
    CATALOG = "only with a commit coordinator"
    NEVER = "no"


class Definition:
    """A metadata action with its schema and properties parsed once."""

    def __init__(self, metadata: Metadata, *, schema: Schema | None = None) -> None:
        self.metadata = metadata
        if schema is not None:
            self.schema = schema  # fills the cache below

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_json(self.metadata.schema_string)

    @cached_property
    def properties(self) -> TableProperties:
        return TableProperties(self.metadata.configuration)

    @cached_property
    def types(self) -> frozenset[str]:
        """Names of all primitive types, however deep."""
        return frozenset(name for item in self.schema for name in primitive_types(item.type))

    @cached_property
    def field_keys(self) -> frozenset[str]:
        """Keys of the metadata of all fields, however deep."""
        return frozenset(key for _, item in walk(self.schema) for key in item.metadata)


Used = Callable[[Definition], bool]


def _always(_: Definition) -> bool:
    return True


def _flag(name: str) -> Used:
    """The boolean property is true."""
    return lambda definition: bool(definition.properties.value(name))


def _set(*names: str) -> Used:
    """One of the text properties says something."""
    return lambda definition: any(definition.metadata.configuration.get(name) for name in names)


def _key(*names: str) -> Used:
    """A field's metadata has one of the keys."""
    return lambda definition: not definition.field_keys.isdisjoint(names)


def _type(*names: str) -> Used:
    return lambda definition: not definition.types.isdisjoint(names)


def _has_shapes(definition: Definition) -> bool:
    return any(map(is_shape, definition.types))


def _widens(definition: Definition) -> bool:
    return definition.properties.type_widening or _key("delta.typeChanges")(definition)


@dataclass(frozen=True)
class Feature:
    """`reader`: a reader-writer feature. `legacy`: the (reader, writer) versions that imply it. `used`: whether a table uses it, from its
    metadata. `asked`: whether the metadata says that a table must have it (None: as `used`). `refused`: changes that this release refuses
    on a table that uses it. `requires`: features that must be there too."""

    name: str
    reader: bool
    used: Used
    legacy: tuple[int, int] | None = None
    read: Read = Read.ALWAYS
    refused: frozenset[Change] = NOTHING
    requires: tuple[str, ...] = ()
    asked: Used | None = None

    def is_asked(self, definition: Definition) -> bool:
        """True if the metadata alone says that the table needs it: never of one that is in use just by being listed."""
        if self.asked is None:
            return self.used is not _always and self.used(definition)
        return self.asked(definition)

    @property
    def honoured(self) -> bool:
        """True if this release reads and writes tables with the feature, so that it may be turned on."""
        return self.status is Status.HONOURED

    @property
    def status(self) -> Status:
        """HONOURED or REFUSED, for the page of features."""
        if self.read is Read.ALWAYS and not self.refused:
            return Status.HONOURED
        return Status.REFUSED


_PREVIEW = "-preview"
MANAGED = "catalogManaged"

FEATURES: Mapping[str, Feature] = {
    item.name: item
    for item in (
        Feature("appendOnly", False, _flag("delta.appendOnly"), (1, 2)),
        Feature("invariants", False, _key("delta.invariants"), (1, 2)),
        Feature("checkConstraints", False, lambda item: bool(constraint_names(item.metadata.configuration)), (1, 3)),
        Feature("changeDataFeed", False, _flag("delta.enableChangeDataFeed"), (1, 4)),
        Feature("generatedColumns", False, _key("delta.generationExpression"), (1, 4)),
        Feature("columnMapping", True, lambda item: item.properties.column_mapping_mode != "none", (2, 5)),
        Feature("identityColumns", False, _key("delta.identity.start", "delta.identity.step"), (1, 6)),
        Feature("deletionVectors", True, _flag("delta.enableDeletionVectors")),
        Feature("timestampNtz", True, _type("timestamp_ntz")),
        Feature("v2Checkpoint", True, lambda item: item.properties.checkpoint_policy == "v2"),
        Feature("vacuumProtocolCheck", True, _always),
        *(Feature(f"typeWidening{end}", True, _key("delta.typeChanges"), asked=_widens) for end in ("", _PREVIEW)),
        *(Feature(f"variantType{end}", True, _type("variant")) for end in ("", _PREVIEW)),
        # Ours are written whole, as a writer may.
        *(Feature(f"variantShredding{end}", True, _type("variant"), asked=_flag("delta.enableVariantShredding")) for end in ("", _PREVIEW)),
        *(Feature(name, True, _has_shapes) for name in ("geospatial", "geospatial-dev")),
        Feature(MANAGED, True, _always, read=Read.CATALOG, refused=frozenset({Change.REARRANGE}), requires=("inCommitTimestamp",)),
        Feature("catalogOwned-preview", True, _always, read=Read.NEVER, refused=ALL),
        Feature("adaptiveMetadata-preview", True, _always, read=Read.NEVER, refused=ALL),
        Feature("redirectReaderWriter-preview", True, _set("delta.redirectReaderWriter-preview"), read=Read.UNUSED, refused=ALL),
        Feature("redirectWriterOnly-preview", False, _set("delta.redirectWriterOnly-preview"), refused=ALL),
        # Row ids must be given to every file as soon as the feature is listed, whether or not it is enabled.
        Feature(
            "rowTracking",
            False,
            lambda item: not item.properties.value("delta.rowTrackingSuspended"),
            requires=("domainMetadata",),
            asked=_flag("delta.enableRowTracking"),
        ),
        Feature("domainMetadata", False, _always),
        Feature("clustering", False, _always, requires=("domainMetadata",)),
        Feature("allowColumnDefaults", False, _key("CURRENT_DEFAULT")),
        Feature("inCommitTimestamp", False, _flag("delta.enableInCommitTimestamps")),
        *(Feature(f"icebergCompatV{n}", False, _flag(f"delta.enableIcebergCompatV{n}"), requires=("columnMapping",)) for n in (1, 2)),
        Feature(
            "icebergCompatV3", False, _flag("delta.enableIcebergCompatV3"), requires=("columnMapping", "rowTracking", "domainMetadata")
        ),
        *(Feature(f"icebergWriterCompatV{n}", False, _flag(f"delta.enableIcebergWriterCompatV{n}"), refused=ALL) for n in (1, 3)),
        Feature("checkpointProtection", False, lambda item: item.properties.checkpoint_protection_before_version > 0),
        Feature(
            "materializePartitionColumns",
            False,
            lambda item: bool(item.metadata.partition_columns),
            asked=_flag("delta.enableMaterializePartitionColumnsFeature"),
        ),
        Feature("coordinatedCommits-preview", False, _set("delta.coordinatedCommits.commitCoordinator-preview"), refused=ALL),
        *(Feature(f"collations{end}", False, _key("__COLLATIONS"), refused=FILES) for end in ("", _PREVIEW)),
    )
}


def implied(reader: int, writer: int) -> frozenset[str]:
    """Features that a legacy protocol has without naming them."""
    return frozenset(
        item.name
        for item in FEATURES.values()
        if item.legacy and writer >= item.legacy[1] and writer < WRITER_FEATURES_VERSION and (reader >= item.legacy[0] or not item.reader)
    )


def supported(protocol: Protocol) -> frozenset[str]:
    """The features that a table has: listed, or implied by its versions. They need not be in use."""
    if protocol.writer_features is not None:
        return frozenset(protocol.writer_features)
    return implied(protocol.min_reader_version, protocol.min_writer_version)


def reader_features(protocol: Protocol) -> frozenset[str]:
    """The features that a reader must know."""
    if protocol.reader_features is not None:
        return frozenset(protocol.reader_features)
    return frozenset({"columnMapping"} if protocol.min_reader_version == 2 else ())


def in_use(metadata: Metadata | Definition) -> frozenset[str]:
    """Features that the metadata alone says it needs (so none that is in use just by being listed)."""
    definition = metadata if isinstance(metadata, Definition) else Definition(metadata)
    named = (item for item in FEATURES.values() if not item.name.endswith((_PREVIEW, "-dev")))
    return frozenset(item.name for item in named if item.is_asked(definition))


def dropped(before: Protocol, after: Protocol) -> frozenset[str]:
    """Features that the table had and has no more."""
    return supported(before) - supported(after)


def column_mapping_mode(protocol: Protocol, metadata: Metadata | Definition) -> str:
    """ "none", "name" or "id": the table's property, which counts only where the protocol has the feature for readers."""
    if "columnMapping" not in reader_features(protocol):
        return "none"
    definition = metadata if isinstance(metadata, Definition) else Definition(metadata)
    return definition.properties.column_mapping_mode


def is_managed(protocol: Protocol) -> bool:
    """True if a catalog manages the table."""
    return MANAGED in supported(protocol)


def check_maintained(protocol: Protocol, operation: str) -> None:
    """UnsupportedFeatureError for maintenance of a table that a catalog manages: only the catalog may do it (PROTOCOL.md)."""
    if is_managed(protocol):
        raise UnsupportedFeatureError(
            f"{operation} is refused on a table that a catalog manages", where="protocol.writerFeatures", found=MANAGED
        )


def check_readable(protocol: Protocol, metadata: Metadata | None = None, *, catalog: Callable[[], bool] | None = None) -> None:
    """Refuses, by name, what this release cannot read (UnsupportedFeatureError) or what PROTOCOL.md does not allow (ProtocolError).

    Without metadata nothing is known of the use of a feature: one that is read only where unused is refused then. `catalog`: whether a
    commit coordinator says which commits a catalog's table has; asked for such a table alone, None for no.
    """
    if protocol.min_reader_version > SUPPORTED_READER_VERSION:
        raise UnsupportedFeatureError(
            "the table needs a newer reader", where="protocol.minReaderVersion", found=protocol.min_reader_version, expected="1 to 3"
        )
    if protocol.min_reader_version == READER_FEATURES_VERSION and protocol.min_writer_version < WRITER_FEATURES_VERSION:
        raise ProtocolError(
            "reader version 3 goes with writer version 7", where="protocol.minWriterVersion", found=protocol.min_writer_version, expected=7
        )
    definition = Definition(metadata) if metadata is not None else None
    refused = [name for name in sorted(reader_features(protocol)) if not _is_readable(name, definition, catalog)]
    if refused == [MANAGED]:
        raise UnsupportedFeatureError(
            "the table is managed by a catalog, which alone knows its newest commits",
            where="protocol.readerFeatures",
            found=MANAGED,
            expected="the catalog's commit coordinator, by deltaic.configure(commit_coordinator=)",
        )
    if refused:
        raise UnsupportedFeatureError(
            f"the table uses {_plural(refused)} that this release cannot read",
            where="protocol.readerFeatures",
            found=_shown(refused),
            expected="features that this release reads",
        )
    if definition is not None and _key("delta.typeChanges")(definition):
        _check_type_changes(definition.schema)


def check_writable(
    protocol: Protocol,
    metadata: Metadata,
    change: Change = Change.DEFINITION,
    *,
    domains: Mapping[str, str] | None = None,
    catalog: Callable[[], bool] | None = None,
) -> None:
    """Refuses, by name, a commit that this release cannot make on a table (UnsupportedFeatureError). Checks that it can be read, too.

    `change`: what the commit does to rows; the default asks only what every commit must keep (a command calls it again with what it does,
    the transaction with what it staged). `domains`: the snapshot's metadata domains (name -> JSON), for clustered tables. `catalog`: as for
    `check_readable`.
    """
    check_readable(protocol, metadata, catalog=catalog)
    if protocol.min_writer_version > SUPPORTED_WRITER_VERSION:
        raise UnsupportedFeatureError(
            "the table needs a newer writer", where="protocol.minWriterVersion", found=protocol.min_writer_version, expected="1 to 7"
        )
    listed = supported(protocol)
    if hidden := reader_features(protocol) - listed - ({"columnMapping"} if protocol.min_reader_version == 2 else set()):
        raise ProtocolError(
            "readerFeatures lists what writerFeatures does not",
            where="protocol",
            found=_shown(sorted(hidden)),
            expected="each in writerFeatures too",
        )
    if unknown := sorted(listed - FEATURES.keys()):
        raise UnsupportedFeatureError(
            f"the table has {_plural(unknown)} that this release does not know",
            where="protocol.writerFeatures",
            found=_shown(unknown),
            expected="features that this release writes",
        )
    definition = Definition(metadata)
    if MANAGED in listed and not ("inCommitTimestamp" in listed and definition.properties.in_commit_timestamps):
        raise ProtocolError(
            "a table that a catalog manages needs in-commit timestamps",
            where="table property delta.enableInCommitTimestamps",
            found=definition.properties.in_commit_timestamps,
            expected=True,
        )
    refused = [name for name in sorted(listed) if change in FEATURES[name].refused and FEATURES[name].used(definition)]
    if refused:
        raise UnsupportedFeatureError(
            f"the table uses {_plural(refused)} that this release cannot keep up in a commit that {change.value}",
            where="protocol.writerFeatures",
            found=_shown(refused),
            expected="features that this release writes",
        )
    if change in NEW_ROWS | {Change.REARRANGE} and domains and "clustering" in listed and "delta.clustering" in domains:
        _check_clustering(definition, domains["delta.clustering"])


def _is_readable(name: str, definition: Definition | None, catalog: Callable[[], bool] | None) -> bool:
    known = FEATURES.get(name)
    if known is None or known.read is Read.NEVER:
        return False
    if known.read is Read.CATALOG:
        return catalog is not None and catalog()
    return known.read is Read.ALWAYS or (definition is not None and not known.used(definition))


def _check_type_changes(schema: Schema) -> None:
    """PROTOCOL.md, type widening: readers must fail on a type change that they do not know."""
    for path, item in walk(schema):
        if problem := unsupported_type_change(item.metadata.get("delta.typeChanges", [])):
            raise UnsupportedFeatureError(
                "a column's type was changed in a way that this release cannot read", where=path_text(path), found=problem
            )


def _check_clustering(definition: Definition, configuration: str) -> None:
    """PROTOCOL.md, clustered tables: files must carry statistics of the clustering columns."""
    if missing := columns_without_statistics(definition, configuration):
        raise UnsupportedFeatureError(
            "clustering columns must have statistics, and the table's properties leave them out",
            where="delta.clustering",
            found=", ".join(missing),
        )


def _shown(names: list[Any]) -> str:
    return ", ".join(name or "''" for name in names)[:200]


def _plural(names: list[Any]) -> str:
    return "a feature" if len(names) == 1 else "features"
