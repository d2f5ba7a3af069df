"""Table features: the registry of known features, and the checks that every read and commit must pass.

Source: PROTOCOL.md, "Table Features", "Valid Feature Names", "Writer Version Requirements", "Reader Version
Requirements", and each feature's section. A feature that is listed, or implied by an old version, has no
effect while the table does not use it. A feature in use that this release cannot honour makes the changes
fail that would break it. An unknown feature makes every read or commit fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from deltaic.errors import ProtocolError, UnsupportedFeatureError
from deltaic.protocol.actions import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, Metadata, Protocol
from deltaic.protocol.clustering import columns_without_statistics
from deltaic.protocol.properties import Status, TableProperties, constraint_names
from deltaic.protocol.schema import Field, Schema, Struct, is_shape, path_text, primitive_types, walk
from deltaic.protocol.widening import unsupported_type_change

SUPPORTED_READER_VERSION = 3
SUPPORTED_WRITER_VERSION = 7


class Change(Enum):
    """Kinds of changes that a commit makes to a table's rows, for `check_writable`."""

    DEFINITION = "changes the definition"
    """No file is added or removed."""
    ADD = "adds rows"
    REMOVE = "removes rows"
    """By deletion vectors, or by removing files; a file that is written again has only unchanged rows."""
    REPLACE = "adds and removes rows"
    REARRANGE = "rearranges rows"
    """Every add and remove has dataChange=false."""

    @staticmethod
    def of(*, adds: bool, removes: bool, data_change: bool = True) -> Change:
        """Returns the kind of change of a transaction with such actions. `data_change`: True if any add or
        remove has dataChange=true.

        A DELETE without deletion vectors looks like REPLACE here; its command passes REMOVE instead.
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
    """When a table with the feature can be read."""

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
        """Names of all primitive types, at any depth."""
        return frozenset(name for item in self.schema for name in primitive_types(item.type))

    @cached_property
    def field_keys(self) -> frozenset[str]:
        """Keys of the metadata of all fields, at any depth."""
        return frozenset(key for _, item in walk(self.schema) for key in item.metadata)


Used = Callable[[Definition], bool]


def _always(_: Definition) -> bool:
    return True


def _flag(name: str) -> Used:
    """Used if the boolean property is true."""
    return lambda definition: bool(definition.properties.value(name))


def _set(*names: str) -> Used:
    """Used if one of the text properties is set and not empty."""
    return lambda definition: any(definition.metadata.configuration.get(name) for name in names)


def _key(*names: str) -> Used:
    """Used if the metadata of a field has one of the keys."""
    return lambda definition: not definition.field_keys.isdisjoint(names)


def _has_invariants(definition: Definition) -> bool:
    """Used if a field has a condition, or if a column or a field of a struct is NOT NULL: delta-spark does
    not open a table with such a column that lists its features without this one."""
    return _key("delta.invariants")(definition) or _has_not_null(definition.schema)


def _has_not_null(fields: Iterable[Field]) -> bool:
    return any(
        not item.nullable or (isinstance(item.type, Struct) and _has_not_null(item.type.fields))
        for item in fields
    )


def _type(*names: str) -> Used:
    return lambda definition: not definition.types.isdisjoint(names)


def _has_shapes(definition: Definition) -> bool:
    return any(map(is_shape, definition.types))


def _widens(definition: Definition) -> bool:
    return definition.properties.type_widening or _key("delta.typeChanges")(definition)


@dataclass(frozen=True)
class Feature:
    """One table feature.

    `reader`: True for a reader-writer feature, False for a writer feature.
    `used`: tells from the metadata if a table that lists the feature uses it.
    `legacy`: the (reader, writer) versions that imply the feature.
    `read`: when a table with the feature can be read.
    `refused`: changes that this release refuses on a table that uses the feature.
    `requires`: features that the table must have, too.
    `asked`: tells from the metadata if the table must list the feature; None: as `used`."""

    name: str
    reader: bool
    used: Used
    legacy: tuple[int, int] | None = None
    read: Read = Read.ALWAYS
    refused: frozenset[Change] = NOTHING
    requires: tuple[str, ...] = ()
    asked: Used | None = None

    def is_asked(self, definition: Definition) -> bool:
        """True if the metadata requires the feature. It never requires a feature that is in use by being
        listed."""
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
        Feature("invariants", False, _has_invariants, (1, 2)),
        Feature(
            "checkConstraints",
            False,
            lambda item: bool(constraint_names(item.metadata.configuration)),
            (1, 3),
        ),
        Feature("changeDataFeed", False, _flag("delta.enableChangeDataFeed"), (1, 4)),
        Feature("generatedColumns", False, _key("delta.generationExpression"), (1, 4)),
        Feature("columnMapping", True, lambda item: item.properties.column_mapping_mode != "none", (2, 5)),
        Feature("identityColumns", False, _key("delta.identity.start", "delta.identity.step"), (1, 6)),
        Feature("deletionVectors", True, _flag("delta.enableDeletionVectors")),
        Feature("timestampNtz", True, _type("timestamp_ntz")),
        Feature("v2Checkpoint", True, lambda item: item.properties.checkpoint_policy == "v2"),
        Feature("vacuumProtocolCheck", True, _always),
        *(
            Feature(f"typeWidening{end}", True, _key("delta.typeChanges"), asked=_widens)
            for end in ("", _PREVIEW)
        ),
        *(Feature(f"variantType{end}", True, _type("variant")) for end in ("", _PREVIEW)),
        # deltaic writes variants without shredding, which the feature allows.
        *(
            Feature(
                f"variantShredding{end}", True, _type("variant"), asked=_flag("delta.enableVariantShredding")
            )
            for end in ("", _PREVIEW)
        ),
        *(Feature(name, True, _has_shapes) for name in ("geospatial", "geospatial-dev")),
        Feature(
            MANAGED,
            True,
            _always,
            read=Read.CATALOG,
            refused=frozenset({Change.REARRANGE}),
            requires=("inCommitTimestamp",),
        ),
        Feature("catalogOwned-preview", True, _always, read=Read.NEVER, refused=ALL),
        Feature("adaptiveMetadata-preview", True, _always, read=Read.NEVER, refused=ALL),
        Feature(
            "redirectReaderWriter-preview",
            True,
            _set("delta.redirectReaderWriter-preview"),
            read=Read.UNUSED,
            refused=ALL,
        ),
        Feature("redirectWriterOnly-preview", False, _set("delta.redirectWriterOnly-preview"), refused=ALL),
        # Every file must get row ids as soon as the feature is listed, even if row tracking is not enabled.
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
        *(
            Feature(
                f"icebergCompatV{n}",
                False,
                _flag(f"delta.enableIcebergCompatV{n}"),
                requires=("columnMapping",),
            )
            for n in (1, 2)
        ),
        Feature(
            "icebergCompatV3",
            False,
            _flag("delta.enableIcebergCompatV3"),
            requires=("columnMapping", "rowTracking", "domainMetadata"),
        ),
        *(
            Feature(
                f"icebergWriterCompatV{n}", False, _flag(f"delta.enableIcebergWriterCompatV{n}"), refused=ALL
            )
            for n in (1, 3)
        ),
        Feature(
            "checkpointProtection",
            False,
            lambda item: item.properties.checkpoint_protection_before_version > 0,
        ),
        Feature(
            "materializePartitionColumns",
            False,
            lambda item: bool(item.metadata.partition_columns),
            asked=_flag("delta.enableMaterializePartitionColumnsFeature"),
        ),
        Feature(
            "coordinatedCommits-preview",
            False,
            _set("delta.coordinatedCommits.commitCoordinator-preview"),
            refused=ALL,
        ),
        *(Feature(f"collations{end}", False, _key("__COLLATIONS"), refused=FILES) for end in ("", _PREVIEW)),
    )
}


def implied(reader: int, writer: int) -> frozenset[str]:
    """Returns the features that a legacy protocol implies: writer version 3 implies `checkConstraints`."""
    return frozenset(
        item.name
        for item in FEATURES.values()
        if item.legacy
        and writer >= item.legacy[1]
        and writer < WRITER_FEATURES_VERSION
        and (reader >= item.legacy[0] or not item.reader)
    )


def spelled(names: Iterable[str]) -> set[str]:
    """Returns the names of features as PROTOCOL.md writes them. They match without case; an unknown name
    stays as it is."""
    known = {name.lower(): name for name in FEATURES}
    return {known.get(name.lower(), name) for name in names}


def supported(protocol: Protocol) -> frozenset[str]:
    """Returns the features that a table has, listed or implied by its versions. They need not be in use."""
    if protocol.writer_features is not None:
        return frozenset(protocol.writer_features)
    return implied(protocol.min_reader_version, protocol.min_writer_version)


def reader_features(protocol: Protocol) -> frozenset[str]:
    """Returns the features that a reader must know."""
    if protocol.reader_features is not None:
        return frozenset(protocol.reader_features)
    return frozenset({"columnMapping"} if protocol.min_reader_version == 2 else ())


def in_use(metadata: Metadata | Definition) -> frozenset[str]:
    """Returns the features that the metadata requires (none that is in use by being listed)."""
    definition = metadata if isinstance(metadata, Definition) else Definition(metadata)
    named = (item for item in FEATURES.values() if not item.name.endswith((_PREVIEW, "-dev")))
    return frozenset(item.name for item in named if item.is_asked(definition))


def without_previewed(needed: Iterable[str], listed: Iterable[str]) -> set[str]:
    """Returns the features `needed` without those whose preview is among `listed`: a table with
    `variantType-preview` has variants without `variantType`, as in delta-spark."""
    return set(needed) - {item.removesuffix(_PREVIEW) for item in listed if item.endswith(_PREVIEW)}


def dropped(before: Protocol, after: Protocol) -> frozenset[str]:
    """Returns the features of `before` that `after` lacks."""
    return supported(before) - supported(after)


def column_mapping_mode(protocol: Protocol, metadata: Metadata | Definition) -> str:
    """Returns "none", "name" or "id": the table's property if the protocol has columnMapping as a reader
    feature, else "none"."""
    if "columnMapping" not in reader_features(protocol):
        return "none"
    definition = metadata if isinstance(metadata, Definition) else Definition(metadata)
    return definition.properties.column_mapping_mode


def is_managed(protocol: Protocol) -> bool:
    """True if a catalog manages the table."""
    return MANAGED in supported(protocol)


def check_maintained(protocol: Protocol, operation: str) -> None:
    """Raises UnsupportedFeatureError if a catalog manages the table: only the catalog may maintain it
    (PROTOCOL.md)."""
    if is_managed(protocol):
        raise UnsupportedFeatureError(
            f"{operation} is refused on a table that a catalog manages",
            where="protocol.writerFeatures",
            found=MANAGED,
        )


def check_readable(
    protocol: Protocol, metadata: Metadata | None = None, *, catalog: Callable[[], bool] | None = None
) -> None:
    """Raises UnsupportedFeatureError for a table that this release cannot read, and ProtocolError for a
    protocol that PROTOCOL.md does not allow.

    `metadata`: None if unknown; then a feature that can be read only if unused is refused.
    `catalog`: returns True if a commit coordinator knows the commits of the table; called only for a table
        that a catalog manages. None: there is no coordinator.
    """
    if protocol.min_reader_version > SUPPORTED_READER_VERSION:
        raise UnsupportedFeatureError(
            "the table needs a newer reader",
            where="protocol.minReaderVersion",
            found=protocol.min_reader_version,
            expected="1 to 3",
        )
    if (
        protocol.min_reader_version == READER_FEATURES_VERSION
        and protocol.min_writer_version < WRITER_FEATURES_VERSION
    ):
        raise ProtocolError(
            "reader version 3 goes with writer version 7",
            where="protocol.minWriterVersion",
            found=protocol.min_writer_version,
            expected=7,
        )
    definition = Definition(metadata) if metadata is not None else None
    refused = [
        name for name in sorted(reader_features(protocol)) if not _is_readable(name, definition, catalog)
    ]
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
    """Raises UnsupportedFeatureError for a commit that this release cannot make on a table. Includes
    `check_readable`.

    `change`: the kind of change. The default checks only what applies to every commit; a command checks again
        with its kind, and the transaction with that of its staged actions.
    `domains`: the snapshot's metadata domains (name -> JSON), for clustered tables.
    `catalog`: as for `check_readable`.
    """
    check_readable(protocol, metadata, catalog=catalog)
    if protocol.min_writer_version > SUPPORTED_WRITER_VERSION:
        raise UnsupportedFeatureError(
            "the table needs a newer writer",
            where="protocol.minWriterVersion",
            found=protocol.min_writer_version,
            expected="1 to 7",
        )
    listed = _known_features(protocol)
    definition = Definition(metadata)
    if MANAGED in listed and not (
        "inCommitTimestamp" in listed and definition.properties.in_commit_timestamps
    ):
        raise ProtocolError(
            "a table that a catalog manages needs in-commit timestamps",
            where="table property delta.enableInCommitTimestamps",
            found=definition.properties.in_commit_timestamps,
            expected=True,
        )
    refused = [
        name
        for name in sorted(listed)
        if change in FEATURES[name].refused and FEATURES[name].used(definition)
    ]
    if refused:
        raise UnsupportedFeatureError(
            f"the table uses {_plural(refused)} that this release cannot keep up in a commit that"
            f" {change.value}",
            where="protocol.writerFeatures",
            found=_shown(refused),
            expected="features that this release writes",
        )
    if (
        change in NEW_ROWS | {Change.REARRANGE}
        and domains
        and "clustering" in listed
        and "delta.clustering" in domains
    ):
        _check_clustering(definition, domains["delta.clustering"])


def _known_features(protocol: Protocol) -> frozenset[str]:
    """Returns the features of a protocol. Raises ProtocolError if only readerFeatures lists one, and
    UnsupportedFeatureError if this release does not know one."""
    listed = supported(protocol)
    by_version = {"columnMapping"} if protocol.min_reader_version == 2 else set()
    if hidden := reader_features(protocol) - listed - by_version:
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
    return listed


def _is_readable(name: str, definition: Definition | None, catalog: Callable[[], bool] | None) -> bool:
    known = FEATURES.get(name)
    if known is None or known.read is Read.NEVER:
        return False
    if known.read is Read.CATALOG:
        return catalog is not None and catalog()
    return known.read is Read.ALWAYS or (definition is not None and not known.used(definition))


def _check_type_changes(schema: Schema) -> None:
    """Raises UnsupportedFeatureError for a type change that this release does not know, as PROTOCOL.md
    requires of readers (type widening)."""
    for path, item in walk(schema):
        if problem := unsupported_type_change(item.metadata.get("delta.typeChanges", [])):
            raise UnsupportedFeatureError(
                "a column's type was changed in a way that this release cannot read",
                where=path_text(path),
                found=problem,
            ).with_values(field=path_text(path))


def _check_clustering(definition: Definition, configuration: str) -> None:
    """Raises UnsupportedFeatureError if new files would have no statistics of a clustering column, which
    PROTOCOL.md requires (clustered tables)."""
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
