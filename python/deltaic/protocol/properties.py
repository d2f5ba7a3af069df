"""Table properties: the registry of known `delta.*` names, how their text is parsed, and which ones are
honoured.

Sources: PROTOCOL.md ("Table Properties" and each feature's section) and delta-spark's documentation of table
properties. docs/features.md has the same list; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    ProtocolError,
    UnsupportedFeatureError,
    check_instance,
)
from deltaic.protocol.unknown_properties import are_allowed
from deltaic.protocol.values import (
    INT64_MAX,
    format_duration,
    parse_boolean,
    parse_columns,
    parse_duration,
    parse_integer,
    parse_size,
)


class Status(Enum):
    """Effect of setting a property."""

    HONOURED = "honoured"
    REFUSED = "refused"
    """Only the default value may be set; any other raises UnsupportedFeatureError."""
    INTERNAL = "internal"
    """Written by a feature; a user cannot set it."""


@dataclass(frozen=True)
class Property:
    """A known property. `parse` parses its text, or raises InvalidArgumentError. `default`: the value if the
    property is not set."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    status: Status = Status.HONOURED
    feature: str | None = None
    """The table feature that any value other than the default requires."""


def _integer(minimum: int, maximum: int = 2**31 - 1) -> Callable[[str], int]:
    return lambda text: parse_integer(text, minimum, maximum)


def _choice(*values: str) -> Callable[[str], str]:
    """Returns a parser of one of these names in any case. It returns the name as it is spelled here."""

    def parse(text: str) -> str:
        for value in values:
            if value.lower() == text.strip().lower():
                return value
        raise InvalidArgumentError(
            "not a valid value", found=repr(text), expected=f"one of {', '.join(values)}"
        )

    return parse


def _codec(text: str) -> str:
    name = _choice("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "brotli")(text)
    return {"none": "uncompressed", "lz4": "lz4_raw"}.get(name, name)  # Hadoop's framing of lz4 is deprecated


def _format_version(text: str) -> str:
    """Parses a version of the Parquet format. delta-spark allows 1.0.0 and 2.12.0; here any release of 2 is
    allowed, as all have the same pages and encodings."""
    if re.fullmatch(r"1\.0\.0|2\.[0-9]{1,3}\.[0-9]{1,3}", text.strip()):
        return text.strip()
    raise InvalidArgumentError(
        "not a version of the Parquet format", found=repr(text), expected="1.0.0 or 2.12.0"
    )


def _auto_compact(text: str) -> bool:
    return _choice("true", "false", "auto")(text) != "false"


def _formats(text: str) -> str:
    names = [each.strip().lower() for each in text.split(",") if each.strip()]
    if any(each != "iceberg" for each in names):
        raise InvalidArgumentError(
            "not a format that metadata is written in", found=repr(text), expected="iceberg"
        )
    return ",".join(names)


def _text(text: str) -> str:
    return text


_R, _I = Status.REFUSED, Status.INTERNAL
_DAY = timedelta(days=1)
_LOG_RETENTION, _FILE_RETENTION = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_INT64 = _integer(0, INT64_MAX)
_COORDINATED = "coordinatedCommits-preview"

REGISTRY: Mapping[str, Property] = {
    item.name: item
    for item in (
        Property("delta.appendOnly", parse_boolean, False, feature="appendOnly"),
        Property("delta.enableDeletionVectors", parse_boolean, False, feature="deletionVectors"),
        Property("delta.columnMapping.mode", _choice("none", "name", "id"), "none", feature="columnMapping"),
        Property("delta.columnMapping.maxColumnId", _integer(0), 0, _I),
        Property("delta.checkpointInterval", _integer(1), 10),
        Property("delta.checkpoint.writeStatsAsJson", parse_boolean, True),
        Property("delta.checkpoint.writeStatsAsStruct", parse_boolean, True),
        Property("delta.checkpointRetentionDuration", parse_duration, 2 * _DAY),
        Property(_LOG_RETENTION, parse_duration, 30 * _DAY),
        Property(_FILE_RETENTION, parse_duration, 7 * _DAY),
        Property("delta.setTransactionRetentionDuration", parse_duration, None),
        Property("delta.enableExpiredLogCleanup", parse_boolean, True),
        Property("delta.enableFullRetentionRollback", parse_boolean, True, _R),
        Property("delta.dataSkippingNumIndexedCols", _integer(-1), 32),
        Property("delta.dataSkippingStatsColumns", parse_columns, None),
        Property("delta.dataSkippingStringPrefixLength", _integer(0), 32),
        Property(
            "delta.isolationLevel",
            _choice("Serializable", "WriteSerializable", "SnapshotIsolation"),
            "Serializable",
        ),
        Property("delta.targetFileSize", parse_size, 256 * 1024**2),
        Property("delta.autoOptimize.autoCompact", _auto_compact, False),
        Property("delta.autoOptimize.optimizeWrite", parse_boolean, False),
        Property("delta.autoOptimize", parse_boolean, False, _R),
        Property("delta.randomizeFilePrefixes", parse_boolean, False),
        Property("delta.randomPrefixLength", _integer(1, 64), 2),
        Property("delta.parquet.compression.codec", _codec, "zstd"),
        Property("delta.parquet.format.version", _format_version, "1.0.0"),
        Property("delta.enableChangeDataFeed", parse_boolean, False, feature="changeDataFeed"),
        Property("delta.enableRowTracking", parse_boolean, False, feature="rowTracking"),
        Property("delta.rowTrackingSuspended", parse_boolean, False, feature="rowTracking"),
        Property("delta.rowTracking.materializedRowIdColumnName", _text, None, _I, "rowTracking"),
        Property("delta.rowTracking.materializedRowCommitVersionColumnName", _text, None, _I, "rowTracking"),
        Property("delta.enableTypeWidening", parse_boolean, False, feature="typeWidening"),
        Property("delta.enableInCommitTimestamps", parse_boolean, False, feature="inCommitTimestamp"),
        Property("delta.inCommitTimestampEnablementVersion", _INT64, None, _I, "inCommitTimestamp"),
        Property("delta.inCommitTimestampEnablementTimestamp", _INT64, None, _I, "inCommitTimestamp"),
        Property("delta.checkpointPolicy", _choice("classic", "v2"), "classic", feature="v2Checkpoint"),
        Property("delta.compatibility.symlinkFormatManifest.enabled", parse_boolean, False),
        Property("delta.universalFormat.enabledFormats", _formats, ""),
        Property("delta.enableIcebergCompatV1", parse_boolean, False, feature="icebergCompatV1"),
        Property("delta.enableIcebergCompatV2", parse_boolean, False, feature="icebergCompatV2"),
        Property("delta.enableIcebergCompatV3", parse_boolean, False, feature="icebergCompatV3"),
        Property("delta.enableIcebergWriterCompatV1", parse_boolean, False, _R, "icebergWriterCompatV1"),
        Property("delta.enableIcebergWriterCompatV3", parse_boolean, False, _R, "icebergWriterCompatV3"),
        Property("delta.universalFormat.iceberg.atomicConversion.supported", parse_boolean, False, _R),
        Property("delta.castIcebergTimeType", parse_boolean, False, _R),
        Property("delta.ignoreIcebergBucketPartition", parse_boolean, False, _R),
        Property("delta.enableVariantShredding", parse_boolean, False, feature="variantShredding"),
        Property(
            "delta.enableMaterializePartitionColumnsFeature",
            parse_boolean,
            False,
            feature="materializePartitionColumns",
        ),
        Property("delta.writePartitionColumnsToParquet", parse_boolean, False),
        Property("delta.requireCheckpointProtectionBeforeVersion", _INT64, 0, _I, "checkpointProtection"),
        Property("delta.dropFeatureTruncateHistory.retentionDuration", parse_duration, _DAY),
        Property("delta.sampleRetentionDuration", parse_duration, 7 * _DAY, _R),
        Property("delta.coordinatedCommits.commitCoordinator-preview", _text, "", _R, _COORDINATED),
        Property("delta.coordinatedCommits.commitCoordinatorConf-preview", _text, "", _R, _COORDINATED),
        Property("delta.coordinatedCommits.tableConf-preview", _text, "", _R, _COORDINATED),
        Property("delta.redirectReaderWriter-preview", _text, "", _R, "redirectReaderWriter-preview"),
        Property("delta.redirectWriterOnly-preview", _text, "", _R, "redirectWriterOnly-preview"),
        Property("deltaic.inlineDeletionVectors", parse_boolean, False),
    )
}
_BY_LOWER = {name.lower(): item for name, item in REGISTRY.items()}

MIN_READER_VERSION = "delta.minReaderVersion"
MIN_WRITER_VERSION = "delta.minWriterVersion"
IGNORE_PROTOCOL_DEFAULTS = "delta.ignoreProtocolDefaults"
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."


OF_THE_LOG = (
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.requireCheckpointProtectionBeforeVersion",
)
"""Properties of the log rather than of the rows. Clones have their own ones, and RESTORE changes only the
first."""
OF_REPLACED = ("delta.checkpointPolicy", "delta.requireCheckpointProtectionBeforeVersion")
"""Properties that a table keeps when it is replaced."""


@dataclass(frozen=True)
class RequestedProperties:
    """A user's `properties=` after validation.

    `stored`: text for the configuration, by name. `constraints`: SQL conditions, by name in lower case. The
    other fields change the protocol and are not stored."""

    stored: Mapping[str, str]
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    features: tuple[str, ...] = ()
    constraints: Mapping[str, str] = field(default_factory=dict)


def text_of(name: str, value: object) -> str:
    """Returns the text of a property's value for the log: `True` becomes `"true"`. `value`: str, bool, int or
    timedelta; any other type is an InvalidTypeError."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, timedelta):
        return format_duration(value)
    raise InvalidTypeError(
        "a property's value has the wrong type",
        where=name,
        found=type(value).__name__,
        expected="str, bool, int or timedelta",
    )


def canonical_name(name: str) -> str:
    """Returns the name under which a property is stored. Names that begin with `delta.` or `deltaic.` match
    without case, and an unknown one is an InvalidArgumentError, unless unknown ones are allowed. Any other
    name is the user's and stays as it is."""
    if not isinstance(name, str) or not name:
        raise InvalidTypeError("a property name must be a string", found=repr(name))
    lowered = name.lower()
    if not lowered.startswith(("delta.", "deltaic.")):
        return name
    for special in (MIN_READER_VERSION, MIN_WRITER_VERSION, IGNORE_PROTOCOL_DEFAULTS):
        if lowered == special.lower():
            return special
    for prefix in (FEATURE_PREFIX, CONSTRAINT_PREFIX):
        if lowered.startswith(prefix.lower()):
            return prefix + name[len(prefix) :]
    if lowered in _BY_LOWER:
        return _BY_LOWER[lowered].name
    if lowered.startswith("delta.") and are_allowed():
        return name
    raise InvalidArgumentError("unknown table property", found=repr(name), expected=_nearest(lowered))


def request(properties: Mapping[str, object] | None, *, defines: bool = False) -> RequestedProperties:
    """Validates and normalizes the properties that a user sets.

    `defines`: True for a new table, or one whose rows are all replaced; only there constraints may be among
        the properties.
    InvalidArgumentError is raised for an unknown `delta.` name, a value that does not parse, and a name that
    only features write; UnsupportedFeatureError for a known property with a value that this release cannot
    honour.
    """
    check_instance(properties, (Mapping, type(None)), "properties", "a mapping of names to values")
    stored: dict[str, str] = {}
    versions: dict[str, int] = {}
    features: list[str] = []
    constraints: dict[str, str] = {}
    for given, value in (properties or {}).items():
        name = canonical_name(given)
        if name in stored or name in versions:
            raise InvalidArgumentError("a property is given twice, in two spellings", found=repr(given))
        text = text_of(name, value)
        if name in (MIN_READER_VERSION, MIN_WRITER_VERSION):
            versions[name] = _located(name, _integer(1), text)
        elif name == IGNORE_PROTOCOL_DEFAULTS:
            # no effect: deltaic has no defaults of the protocol to ignore
            _located(name, parse_boolean, text)
        elif name.startswith(FEATURE_PREFIX):
            _located(name, _choice("supported", "enabled"), text)
            features.append(name[len(FEATURE_PREFIX) :])
        elif name.startswith(CONSTRAINT_PREFIX) and defines:
            constraints[name[len(CONSTRAINT_PREFIX) :].lower()] = text
        elif name.startswith(CONSTRAINT_PREFIX):
            raise InvalidArgumentError(
                "a constraint is not set as a property", found=repr(given), expected="alter.add_constraints"
            )
        else:
            stored[name] = _checked(name, text)
    return RequestedProperties(
        stored,
        versions.get(MIN_READER_VERSION),
        versions.get(MIN_WRITER_VERSION),
        tuple(features),
        constraints,
    )


def check_retentions(given: Mapping[str, object]) -> None:
    """Raises InvalidArgumentError if the properties that a user sets keep the log for less time than deleted
    files. A retention that is not among them counts with its default, as in delta-spark. The defaults of a
    process or session are not checked."""
    names = {name.lower(): name for name in given if isinstance(name, str)}
    durations = []
    for known in (REGISTRY[_LOG_RETENTION], REGISTRY[_FILE_RETENTION]):
        name = names.get(known.name.lower())
        text = None if name is None else text_of(known.name, given[name])
        durations.append(known.default if text is None else _located(known.name, known.parse, text))
    log, files = durations
    if log < files:
        raise InvalidArgumentError(
            f"{_LOG_RETENTION} is shorter than {_FILE_RETENTION}",
            found=format_duration(log),
            expected=f"at least {format_duration(files)}",
        )


def _checked(name: str, text: str) -> str:
    """Returns the text to store. A property that is not in the registry is the user's and stays as it is."""
    known = REGISTRY.get(name)
    if known is None:
        return text
    if known.status is Status.INTERNAL:
        raise InvalidArgumentError("this property belongs to its feature and cannot be set", found=repr(name))
    value = _located(name, known.parse, text)
    if known.status is Status.REFUSED and value != known.default:
        raise UnsupportedFeatureError(
            f"{name} = {text!r} is not supported by this release",
            where=name,
            expected=f"{known.default!r} or unset",
        )
    return value if isinstance(value, str) else text.strip()


def _located(name: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            error.message, where=f"property {name}", found=error.found, expected=error.expected
        ) from None


def _nearest(lowered: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(lowered, _BY_LOWER, n=3)
    return (
        " or ".join(_BY_LOWER[item].name for item in near)
        if near
        else "a known property, or a name without the prefix delta."
    )


class TableProperties:
    """Typed access to a table's configuration. Reading a value that does not parse is a ProtocolError."""

    __slots__ = ("_configuration", "_values")

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self._configuration = configuration
        self._values: dict[str, Any] = {}

    def value(self, name: str) -> Any:
        """Returns the parsed value of a known property; its default if it is not set."""
        if name not in self._values:
            known = REGISTRY[name]
            text = self._configuration.get(name)
            try:
                self._values[name] = known.default if text is None else known.parse(text)
            except InvalidArgumentError as error:
                raise ProtocolError(
                    error.message, where=f"table property {name}", found=error.found, expected=error.expected
                ) from None
        return self._values[name]

    def is_set(self, name: str) -> bool:
        return name in self._configuration

    @property
    def append_only(self) -> bool:
        return bool(self.value("delta.appendOnly"))

    @property
    def deletion_vectors(self) -> bool:
        """True if new deletion vectors may be written. The protocol must have the feature, too."""
        return bool(self.value("delta.enableDeletionVectors"))

    @property
    def inline_deletion_vectors(self) -> bool:
        return bool(self.value("deltaic.inlineDeletionVectors"))

    @property
    def column_mapping_mode(self) -> str:
        """One of none, name, id, as set. `features.column_mapping_mode` also looks at the protocol."""
        return str(self.value("delta.columnMapping.mode"))

    @property
    def max_column_id(self) -> int:
        return int(self.value("delta.columnMapping.maxColumnId"))

    @property
    def checkpoint_interval(self) -> int:
        """Commits between checkpoints."""
        return int(self.value("delta.checkpointInterval"))

    @property
    def checkpoint_stats_as_json(self) -> bool:
        return bool(self.value("delta.checkpoint.writeStatsAsJson"))

    @property
    def checkpoint_stats_as_struct(self) -> bool:
        return bool(self.value("delta.checkpoint.writeStatsAsStruct"))

    @property
    def checkpoint_policy(self) -> str:
        """One of classic, v2."""
        return str(self.value("delta.checkpointPolicy"))

    @property
    def log_retention(self) -> timedelta:
        return _duration(self.value(_LOG_RETENTION))

    @property
    def deleted_file_retention(self) -> timedelta:
        return _duration(self.value(_FILE_RETENTION))

    @property
    def set_transaction_retention(self) -> timedelta | None:
        """Time for which application transactions stay in checkpoints; None: forever."""
        value = self.value("delta.setTransactionRetentionDuration")
        return None if value is None else _duration(value)

    @property
    def expired_log_cleanup(self) -> bool:
        return bool(self.value("delta.enableExpiredLogCleanup"))

    @property
    def checkpoint_protection_before_version(self) -> int:
        """The log and the checkpoints of versions below this one must not be deleted (feature
        checkpointProtection); 0: no such versions."""
        return int(self.value("delta.requireCheckpointProtectionBeforeVersion"))

    @property
    def truncated_history_retention(self) -> timedelta:
        """Minimum age of versions that are deleted when a feature is dropped with TRUNCATE HISTORY."""
        return _duration(self.value("delta.dropFeatureTruncateHistory.retentionDuration"))

    @property
    def target_file_size(self) -> int:
        """Target size of new data files in bytes."""
        return int(self.value("delta.targetFileSize"))

    @property
    def compression(self) -> str:
        """Codec of new Parquet files, as arrow-rs names it. `ParquetOptions.compression` wins."""
        return str(self.value("delta.parquet.compression.codec"))

    @property
    def data_skipping_num_indexed_cols(self) -> int:
        """Number of leaf columns from the left that get statistics; -1: all."""
        return int(self.value("delta.dataSkippingNumIndexedCols"))

    @property
    def data_skipping_stats_columns(self) -> tuple[str, ...] | None:
        """Paths of the columns that get statistics, as written. It wins over
        `data_skipping_num_indexed_cols`. Empty: no column gets statistics. None: not set."""
        value: tuple[str, ...] | None = self.value("delta.dataSkippingStatsColumns")
        return value

    @property
    def data_skipping_string_prefix_length(self) -> int:
        """Maximum number of characters in the minimum and maximum of a string column."""
        return int(self.value("delta.dataSkippingStringPrefixLength"))

    @property
    def isolation_level(self) -> str:
        """One of Serializable, WriteSerializable."""
        return str(self.value("delta.isolationLevel"))

    @property
    def auto_compact(self) -> bool:
        return bool(self.value("delta.autoOptimize.autoCompact"))

    @property
    def optimize_write(self) -> bool:
        """True if a parallel engine must collect the rows of a partition before it writes them, so that it
        writes few files of about equal size."""
        return bool(self.value("delta.autoOptimize.optimizeWrite"))

    @property
    def second_parquet_version(self) -> bool:
        """True if new files have pages and encodings of version 2 of the Parquet format."""
        return str(self.value("delta.parquet.format.version")).startswith("2.")

    @property
    def checkpoint_retention(self) -> timedelta | None:
        """Age at which a checkpoint may be deleted, even if the commits around it are kept; None if it is not
        set, and checkpoints are kept as long as the commits."""
        name = "delta.checkpointRetentionDuration"
        return _duration(self.value(name)) if self.is_set(name) else None

    @property
    def random_prefix_length(self) -> int:
        """Length of the random name of the folder for a new file; 0: no such folder."""
        return int(self.value("delta.randomPrefixLength")) if self.value("delta.randomizeFilePrefixes") else 0

    @property
    def change_data_feed(self) -> bool:
        return bool(self.value("delta.enableChangeDataFeed"))

    @property
    def row_tracking(self) -> bool:
        return bool(self.value("delta.enableRowTracking"))

    @property
    def partition_columns_in_files(self) -> bool:
        """True if data files must contain the partition columns, even without the feature
        materializePartitionColumns."""
        return bool(self.value("delta.writePartitionColumnsToParquet"))

    @property
    def type_widening(self) -> bool:
        return bool(self.value("delta.enableTypeWidening"))

    @property
    def in_commit_timestamps(self) -> bool:
        return bool(self.value("delta.enableInCommitTimestamps"))

    @property
    def symlink_manifests(self) -> bool:
        return bool(self.value("delta.compatibility.symlinkFormatManifest.enabled"))

    @property
    def universal_formats(self) -> tuple[str, ...]:
        """Other formats whose metadata is written after each commit: "iceberg"."""
        return tuple(str(self.value("delta.universalFormat.enabledFormats")).split(","))

    @property
    def iceberg_compat(self) -> tuple[int, ...]:
        """The versions of Iceberg compatibility that are turned on."""
        return tuple(version for version in (1, 2, 3) if self.value(f"delta.enableIcebergCompatV{version}"))


def _duration(value: object) -> timedelta:
    assert isinstance(value, timedelta)
    return value


def constraint_names(configuration: Iterable[str]) -> list[str]:
    """Returns the names of the CHECK constraints in a configuration, sorted."""
    return sorted(
        name[len(CONSTRAINT_PREFIX) :] for name in configuration if name.startswith(CONSTRAINT_PREFIX)
    )
