"""Reads the settings of delta-spark in the Spark session that deltaic honours. An explicit option or argument
of a call always wins."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Literal, TypedDict

from deltaic.engine.engine import USUAL_RULES, AssignmentRules, Changing, Compaction, StoreAssignment
from deltaic.errors import InvalidArgumentError, check_instance
from deltaic.log.schema_log import DROP, RENAME, TYPE
from deltaic.log.schema_log import SETTINGS as STREAMING
from deltaic.options import CommitOptions
from deltaic.protocol.ddl import timestamps_without_zone
from deltaic.protocol.default_properties import DefaultText
from deltaic.protocol.properties import canonical_name
from deltaic.protocol.unknown_properties import allowed_by
from deltaic.sql_text import with_backticks
from deltaic.transaction.transaction import listening

log = logging.getLogger("deltaic.spark")

_PREFIX = "spark.databricks.delta."
_with_effect: set[str] = set()


def _delta(name: str) -> str:
    """Defines a setting of delta-spark, and returns its full name. `enable` warns of all settings that are
    not defined with this function."""
    _with_effect.add(_PREFIX + name)
    return _PREFIX + name


USER_METADATA = _delta("commitInfo.userMetadata")
LAST_COMMIT = _delta("lastCommitVersionInSession")
"""Setting that each commit of the session sets: the version of the table that it wrote."""
TXN_APP_ID = _delta("write.txnAppId")
TXN_VERSION = _delta("write.txnVersion")
TXN_AUTO_RESET = _delta("write.txnVersion.autoReset.enabled")
"""Setting: if true, a command with the application transaction of the settings unsets TXN_VERSION afterwards,
so that the next command is not skipped."""
AUTO_COMPACT_SIZE = _delta("autoCompact.maxFileSize")
"""Setting: bytes of the files that auto compaction writes."""
AUTO_COMPACT_SMALL = _delta("autoCompact.minFileSize")
"""Setting: bytes below which auto compaction compacts a file; without it, half of AUTO_COMPACT_SIZE."""
AUTO_COMPACT_FILES = _delta("autoCompact.minNumFiles")
"""Setting: minimum number of small files of a partition that auto compaction compacts."""
OPTIMIZE_SIZE = _delta("optimize.maxFileSize")
"""Setting: bytes of the files that OPTIMIZE writes."""
OPTIMIZE_SMALL = _delta("optimize.minFileSize")
"""Setting: bytes below which OPTIMIZE compacts a file; without it, half of the bytes of the files that it
writes."""
RETENTION_CHECK = _delta("retentionDurationCheck.enabled")
"""Setting: if false, VACUUM may delete files that are younger than the table's retention."""
ZORDER_CHECK = _delta("optimize.zorder.checkStatsCollection.enabled")
"""Setting: if false, OPTIMIZE sorts files by columns without statistics, too."""
USUAL_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ansi",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}
"""Settings on which the meaning of operators, names and literals depends, and their defaults. The embedded
engine, which computes few rows on the driver, implements the meaning of the defaults only."""
LITE_VACUUM = _delta("vacuum.lite.enabled")
"""Setting: if true, a VACUUM without LITE or FULL takes the files from the log alone (LITE)."""
LOGGED_VACUUM = _delta("vacuum.logging.enabled")
"""Setting: if false, VACUUM makes no commits."""
DOWNGRADE = _delta("restore.protocolDowngradeAllowed")
"""Setting: if true, RESTORE also restores the protocol of the older version."""
IGNORE_MISSING = "spark.sql.files.ignoreMissingFiles"
"""Setting of Spark: if true, RESTORE leaves out files that do not exist any more."""
STRICT_TIMES = _delta("timeTravel.parsing.strict")
"""Setting: if false, time travel takes a text that is no timestamp for 1970-01-01 00:00:00 UTC."""
UNSAFE_COLUMNS = _delta("streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled")
"""Setting: if true, a stream continues after a column is dropped, as if its later values were null, or
renamed."""
TRACKED_TYPES = _delta("typeWidening.enableStreamingSchemaTracking")
"""Setting: if true, a stream continues after a column gets a wider type only with a log of schemas."""
ALLOWED_CHANGES = {name: _delta((STREAMING + name).removeprefix(_PREFIX)) for name in (RENAME, DROP, TYPE)}
"""Option of a stream that allows a kind of change -> setting that allows it for all streams if it is
`always`."""
RENAME_AND_DROP = _delta("streaming.allowSourceColumnRenameAndDrop")
"""Setting: `always` allows both renamed and dropped columns for all streams."""
SCHEMA_LOG_ANYWHERE = _delta("streaming.allowSchemaLocationOutsideCheckpointLocation")
"""Setting: if true, the log of schemas of a stream need not be below its checkpoint."""
SCHEMA_LOG_OF_ANY_SOURCE = _delta("streaming.schemaTracking.metadataPathCheck.enabled")
"""Setting: if false, a stream may continue with the log of schemas of another source."""
MERGE_SCHEMA_CHANGES = _delta("streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled")
"""Setting: if false, each change of the definition ends a stream with a log of schemas, also if no rows lie
between two changes."""
MERGE_SCHEMA = _delta("schema.autoMerge.enabled")
"""Setting: if true, writes and MERGE add new columns to the table."""
OPTIMIZE_WRITE = _delta("optimizeWrite.enabled")
"""Setting: if true, a write shuffles the rows of each partition into fewer files."""
AUTO_COMPACT = _delta("autoCompact.enabled")
"""Setting: `true` or `auto` to compact each table after a write to it, `false` for none. Without it, the
table's property `delta.autoOptimize.autoCompact` holds."""
PROPERTIES = f"{_PREFIX}properties.defaults."
"""Prefix of settings with default properties of new tables: the setting PROPERTIES + `appendOnly` is the
default of `delta.appendOnly`."""
_PROTOCOL_VERSIONS = {_delta(name): f"delta.{name}" for name in ("minReaderVersion", "minWriterVersion")}
"""Settings with the default protocol versions, by the short names that delta-spark's tests set -> the
property."""
REPLACE_WHERE_CHECK = _delta("replaceWhere.constraintCheck.enabled")
"""Setting: if false, an overwrite of the rows for which a condition is true may write rows for which it is
not."""
REPLACE_WHERE_DATA = _delta("replaceWhere.dataColumns.enabled")
"""Setting: if false, the condition of such an overwrite may read partition columns only."""
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
OVERWRITE_PARTITIONS = _delta("dynamicPartitionOverwrite.enabled")
"""Setting: if false, an overwrite by partition is an error."""
RECORDS = "spark.sql.files.maxRecordsPerFile"
"""Setting: maximum number of rows of a written file; 0: no limit."""
BYPASS_LOCATION_CHECK = _delta("alterLocation.bypassSchemaCheck")
"""Setting: if true, ALTER TABLE SET LOCATION accepts a table with another schema or other partition
columns."""
NULLS_FOR_MISSING = "spark.sql.defaultColumn.useNullsForMissingDefaultValues"
"""Setting of Spark: if false, an INSERT with a list of columns, or BY NAME, must have each column without a
default."""
OUT_OF_RANGE = _delta("changeDataFeed.timestampOutOfRange.enabled")
"""Setting: if true, a change feed may start or end after the newest commit."""
STORE_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"
"""Setting: `strict` and `legacy` replace the ANSI rules by which values are cast to the types of columns."""
CAST_BY_ANSI_MODE = _delta("updateAndMergeCastingFollowsAnsiEnabledFlag")
"""Setting: if true, UPDATE and MERGE cast values as CAST does, whatever STORE_ASSIGNMENT is."""
STRUCTS_BY_NAME = _delta("resolveMergeUpdateStructsByName.enabled")
"""Setting: if false, UPDATE and MERGE match the fields of structs by position."""
NULL_STRUCTS = _delta("merge.preserveNullSourceStructs")
"""Setting: if false, UPDATE and MERGE turn a null struct with other fields than its column into a struct of
nulls."""
NULL_STRUCTS_OF_STAR = _delta("merge.preserveNullSourceStructs.updateStar")
"""Setting: if false, or if NULL_STRUCTS is, UPDATE SET * of a MERGE that evolves the schema assigns the
fields of structs one by one."""
PERSISTENT_VECTORS: Mapping[Changing, str] = {
    "delete": _delta("delete.deletionVectors.persistent"),
    "update": _delta("update.deletionVectors.persistent"),
    "merge": _delta("merge.deletionVectors.persistent"),
}
"""Command -> setting: if false, the command rewrites files also in a table with deletion vectors."""
DROP_COLUMN = _delta("alterTable.dropColumn.enabled")
"""Setting: if false, ALTER TABLE DROP COLUMN is an error."""
DROP_IF_EXISTS = _delta("constraints.assumesDropIfExists.enabled")
"""Setting: if true, DROP CONSTRAINT of a constraint that does not exist is no error."""
TIMESTAMP_TYPE = "spark.sql.timestampType"
"""Setting: TIMESTAMP_NTZ makes TIMESTAMP of SQL the type without a time zone."""
ARBITRARY_PROPERTIES = _delta("allowArbitraryProperties.enabled")
"""Setting: if true, tables can get unknown properties whose names begin with `delta.`."""
MAPPING_REMOVAL = _delta("columnMapping.allowRemoval")
"""Setting: if false, column mapping cannot be removed from a table."""
TWO_PATHS = _delta("legacy.allowAmbiguousPathsInCreateTable")
"""Setting: if true, CREATE TABLE of a path ignores a LOCATION with another path."""
SINK_LOG = _delta("convert.useMetadataLog")
"""Setting: if false, CONVERT TO DELTA takes all files of a folder that a stream wrote, and not those of the
stream's log alone."""
NESTED_NOT_NULL = _delta("constraints.allowUnenforcedNotNull.enabled")
"""Setting: if true, fields within arrays and maps may be NOT NULL."""


def without_effect(names: Iterable[str]) -> list[str]:
    """Returns the settings of delta-spark among `names` that deltaic does not read, sorted."""
    return sorted(
        name
        for name in names
        if name.startswith(_PREFIX) and not name.startswith(PROPERTIES) and name not in _with_effect
    )


def with_names_in_backticks(spark: Any, text: str) -> str:
    """Returns SQL text in which double quotes enclose no names. They do in a session with ANSI mode and
    `spark.sql.ansi.doubleQuotedIdentifiers`; elsewhere the text is returned as it is."""
    if '"' not in text:
        return text
    names = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.ansi.enabled")
    quotes = all(str(spark.conf.get(name, USUAL_MEANING[name])).lower() == "true" for name in names)
    return with_backticks(text) if quotes else text


def setting_text(spark: Any, name: str) -> str | None:
    """Returns the text of a setting; None if it is not set."""
    text = spark.conf.get(name, None)
    return None if text is None else str(text)


def is_on(spark: Any, name: str) -> bool:
    return (setting_text(spark, name) or "").lower() == "true"


def changes_of_checkpoint(spark: Any, checkpoint: int) -> dict[str, str]:
    """Returns the kinds of changes that the settings for one checkpoint allow, with the settings' values:
    `always`, or a version. `checkpoint`: the number at the end of the settings' names, as in
    `...allowSourceColumnDrop.ckpt_1234`."""
    of_both = setting_text(spark, f"{RENAME_AND_DROP}.ckpt_{checkpoint}")
    values = {
        name: setting_text(spark, f"{setting}.ckpt_{checkpoint}")
        or (of_both if name in (RENAME, DROP) else None)
        for name, setting in ALLOWED_CHANGES.items()
    }
    return {name: value for name, value in values.items() if value is not None}


def is_off(spark: Any, name: str) -> bool:
    """True if a setting is false, which is not so if it is not set."""
    return (setting_text(spark, name) or "").lower() == "false"


@contextmanager
def timestamps_of(spark: Any) -> Iterator[None]:
    """In the body, TIMESTAMP of DDL text is the type that the setting TIMESTAMP_TYPE names."""
    is_without_zone = (setting_text(spark, TIMESTAMP_TYPE) or "").upper() == "TIMESTAMP_NTZ"
    with timestamps_without_zone() if is_without_zone else nullcontext():
        yield


def fills_missing(spark: Any) -> bool:
    return not is_off(spark, NULLS_FOR_MISSING)


def checks_replace_where(spark: Any) -> bool:
    return not is_off(spark, REPLACE_WHERE_CHECK)


def replaces_partitions(spark: Any) -> bool:
    """True if the condition of `replaceWhere` may read partition columns only."""
    return is_off(spark, REPLACE_WHERE_DATA)


def auto_compacts(spark: Any) -> bool | None:
    """Returns the setting AUTO_COMPACT; None if it is not set."""
    text = setting_text(spark, AUTO_COMPACT)
    return None if text is None else text.lower() in ("true", "auto")


def enforces_retention(spark: Any) -> bool:
    """True if VACUUM refuses a shorter time than the table's retention."""
    return not is_off(spark, RETENTION_CHECK)


def vacuum_mode(spark: Any) -> Literal["full", "lite"]:
    """Returns the mode of a VACUUM that names none."""
    return "lite" if is_on(spark, LITE_VACUUM) else "full"


def logs_vacuum(spark: Any) -> bool:
    return not is_off(spark, LOGGED_VACUUM)


class RestoreArguments(TypedDict):
    """Arguments of `DeltaTable.restore` that settings decide."""

    allow_protocol_downgrade: bool
    ignore_missing_files: bool


def of_restore(spark: Any) -> RestoreArguments:
    return {
        "allow_protocol_downgrade": is_on(spark, DOWNGRADE),
        "ignore_missing_files": is_on(spark, IGNORE_MISSING),
    }


def compaction(spark: Any) -> Compaction:
    """Returns the settings about OPTIMIZE and auto compaction. Raises InvalidArgumentError for text that is
    no whole number above 0."""

    def number(name: str) -> int | None:
        if (text := setting_text(spark, name)) is None:
            return None
        if not text.strip().isdecimal() or int(text) < 1:
            raise InvalidArgumentError(
                f"invalid setting {name}", found=repr(text), expected="a whole number, at least 1"
            )
        return int(text)

    return Compaction(
        target=number(OPTIMIZE_SIZE),
        small=number(OPTIMIZE_SMALL),
        auto_target=number(AUTO_COMPACT_SIZE),
        auto_small=number(AUTO_COMPACT_SMALL),
        auto_files=number(AUTO_COMPACT_FILES),
        checks_statistics=not is_off(spark, ZORDER_CHECK),
    )


def overwrites_partitions(spark: Any) -> bool:
    """True if an overwrite replaces only the partitions that get new rows (dynamic partition overwrite)."""
    return (setting_text(spark, OVERWRITE_MODE) or "").lower() == "dynamic"


def refuses_partition_overwrites(spark: Any) -> bool:
    return is_off(spark, OVERWRITE_PARTITIONS)


def partition_overwrite_refused() -> InvalidArgumentError:
    """Returns the error of a dynamic partition overwrite in a session in which OVERWRITE_PARTITIONS is
    false."""
    return InvalidArgumentError(
        "[DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED] the session refuses to overwrite by partition",
        found=f"{OVERWRITE_PARTITIONS} = false",
        expected="true, or partitionOverwriteMode = static",
    )


def store_assignment(spark: Any) -> StoreAssignment:
    """Returns how values are cast to the types of columns."""
    policy = (setting_text(spark, STORE_ASSIGNMENT) or "").lower()
    if policy == "legacy":
        # `get` without a default returns Spark's own default, which is ANSI mode.
        return "try_cast" if str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true" else "CAST"
    return "strict" if policy == "strict" else "ansi"


def assignment_rules(spark: Any) -> AssignmentRules:
    expands = is_off(spark, NULL_STRUCTS)
    return AssignmentRules(
        casts="CAST" if is_on(spark, CAST_BY_ANSI_MODE) else None,
        by_position=is_off(spark, STRUCTS_BY_NAME),
        expands_nulls=expands,
        star_by_fields=expands or is_off(spark, NULL_STRUCTS_OF_STAR),
    )


def merges_as_usual(spark: Any) -> bool:
    """True if the embedded engine, which knows no settings, may run a MERGE of the session."""
    usual = all(str(spark.conf.get(name, value)).lower() == value for name, value in USUAL_MEANING.items())
    marks = not is_off(spark, PERSISTENT_VECTORS["merge"])
    return usual and marks and assignment_rules(spark) == USUAL_RULES


def commit_options(spark: Any, options: CommitOptions | None) -> CommitOptions | None:
    """Returns the options of a commit, with the session's setting USER_METADATA if `options` has no user
    metadata."""
    check_instance(options, (CommitOptions, type(None)), "commit", "CommitOptions")
    if (options is not None and options.user_metadata is not None) or (
        text := setting_text(spark, USER_METADATA)
    ) is None:
        return options
    return replace(options or CommitOptions(), user_metadata=text)


def noting_commits(spark: Any) -> AbstractContextManager[None]:
    """In the body, each commit sets LAST_COMMIT in the session. An error is only logged, because the commit
    has succeeded."""

    def note(version: int) -> None:
        try:
            spark.conf.set(LAST_COMMIT, str(version))
        except Exception as error:
            log.warning("%s is not set to %d: %s", LAST_COMMIT, version, str(error).split("\n")[0])

    return listening(note)


def with_unknown_properties(spark: Any) -> AbstractContextManager[None]:
    """In the body, ARBITRARY_PROPERTIES decides about unknown properties."""
    return allowed_by(lambda: is_on(spark, ARBITRARY_PROPERTIES))


@contextmanager
def committing(spark: Any, options: CommitOptions | None) -> Iterator[CommitOptions | None]:
    """Yields the options of the commit of a command that writes or changes rows. They are those of
    `commit_options`, with the application transaction of the session's settings if `options` has none. After
    the command, the transaction's version is unset if TXN_AUTO_RESET is true."""
    complete = commit_options(spark, options)
    with with_unknown_properties(spark):
        if (complete is not None and complete.transactions) or not (transaction := _transaction(spark)):
            yield complete
            return
        yield replace(complete or CommitOptions(), transactions=transaction)
    if is_on(spark, TXN_AUTO_RESET):
        spark.conf.unset(TXN_VERSION)


def _transaction(spark: Any) -> dict[str, int]:
    """Returns application id -> version, empty if neither setting is set. Raises InvalidArgumentError if only
    one is set."""
    app_id, version = setting_text(spark, TXN_APP_ID), setting_text(spark, TXN_VERSION)
    if app_id is None and version is None:
        return {}
    if app_id is None or version is None:
        expected = f"both {TXN_APP_ID} and {TXN_VERSION}, or neither"
        raise InvalidArgumentError(
            "only one of the two settings of an application transaction is set",
            found=f"{app_id!r}, {version!r}",
            expected=expected,
        )
    if not version.strip().isdecimal():
        raise InvalidArgumentError(
            f"invalid value of the setting {TXN_VERSION}",
            found=repr(version),
            expected="a whole number, at least 0",
        )
    return {app_id: int(version)}


def table_properties(spark: Any, properties: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns the properties of a new table: `properties`, and the session's defaults for others. A default
    of an unknown property has no effect, as in delta-spark."""
    defaults = {}
    for setting, text in spark.conf.getAll.items():
        name = _PROTOCOL_VERSIONS.get(str(setting))
        if name is None and str(setting).startswith(PROPERTIES):
            name = "delta." + str(setting).removeprefix(PROPERTIES)
        if name is not None:
            try:
                with allowed_by(bool):
                    defaults[canonical_name(name)] = DefaultText(text)
            except InvalidArgumentError:
                log.warning("the setting %s has no effect: %s is not a table property", setting, name)
    return {**defaults, **(properties or {})} if defaults else properties
