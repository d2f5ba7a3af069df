"""DROP FEATURE: removes a feature from a table's protocol, after removing all uses of it from the table.

Source: PROTOCOL.md, "Table Features", "Checkpoint Protection"; the steps and their order are those of
delta-spark's DROP FEATURE. Old versions of the table still need a reader-writer feature. Either they are
protected (feature checkpointProtection: a client that does not know their features may not make checkpoints
of them during a log cleanup), or the history is truncated until no such version is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import identity, rewrite
from deltaic.commands.create import set_clustering
from deltaic.commands.optimize import purge
from deltaic.commands.optimize_rewrite import Job
from deltaic.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.log import checkpoint, cleanup, history, references
from deltaic.log.segment import Checkpoint, checkpoint_path, commit_path, list_log
from deltaic.options import CommitOptions
from deltaic.protocol import clustering, column_mapping, row_tracking, widening
from deltaic.protocol.actions import Metadata
from deltaic.protocol.features import FEATURES, Definition, supported
from deltaic.protocol.properties import REGISTRY, constraint_names
from deltaic.protocol.schema import Schema
from deltaic.protocol.versions import without_features
from deltaic.transaction import timestamps
from deltaic.transaction.transaction import Transaction, already_committed, now_ms

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

log = logging.getLogger("deltaic.commands")
PROTECTION = "checkpointProtection"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"

Clear = Callable[["Snapshot", "Engine", "CommitOptions | None"], "Snapshot"]
"""Function that removes the uses of a feature from the table by commits of its own. Returns the new snapshot,
or the same one if there are no uses."""


@dataclass(frozen=True)
class DropSteps:
    """The steps of dropping a feature.

    `clear`: called before the commit that drops the feature. `properties`: removed in that commit.
    `stage`: stages further actions in that commit.
    `in_history`: tells if readers of an older version need the feature, from its commit; None: they never
    do."""

    clear: Clear | None = None
    properties: tuple[str, ...] = ()
    stage: Callable[[Transaction, Snapshot], None] | None = None
    in_history: Callable[[_core.Commit], bool] | None = None


def drop_feature(
    snapshot: Snapshot,
    engine: Engine,
    name: str,
    *,
    truncate_history: bool = False,
    commit: CommitOptions | None = None,
) -> Snapshot:
    """Drops a feature. Returns the version without it.

    InvalidArgumentError is raised if the table lacks the feature, if another feature requires it, or with
    `truncate_history` if versions that need it have not expired. A feature that cannot be dropped is an
    UnsupportedFeatureError.
    """
    if already_committed(snapshot, commit):
        return snapshot
    steps = _checked(snapshot, name)
    of_readers = FEATURES[name].reader
    if truncate_history and not of_readers and name != PROTECTION:
        raise InvalidArgumentError(
            "only a feature of readers needs the history to be truncated",
            found=f"{name}, a feature of writers",
            expected="truncate_history=False",
        )
    if name == PROTECTION and not truncate_history:
        raise InvalidArgumentError(
            "checkpoint protection ends with the versions that it protects",
            found=name,
            expected="truncate_history=True",
        )
    # only the last commit has the application transactions
    before = None if commit is None else replace(commit, transactions={})
    cleared = snapshot if steps.clear is None else steps.clear(snapshot, engine, before)
    if truncate_history:
        cleared = _truncate(cleared, steps, name, before, changed=cleared is not snapshot)
    dropped = _drop(cleared, steps, name, commit, of_readers=of_readers, truncate_history=truncate_history)
    if of_readers:
        try:
            # readers of the newest version then need no earlier commit with the feature
            checkpoint.write(dropped, now=now_ms())
        except (DeltaError, OSError) as error:  # the feature is dropped, so no error may make it look failed
            log.warning(
                "%s: the checkpoint of version %d could not be written: %s",
                dropped.location,
                dropped.version,
                error,
            )
    return dropped


def _checked(snapshot: Snapshot, name: str) -> DropSteps:
    listed = supported(snapshot.protocol)
    if name not in listed and name.lower() in {each.lower() for each in REGISTRY}:
        raise InvalidArgumentError(
            "this is the name of a property and not of a feature",
            found=repr(name),
            expected=", ".join(sorted(listed)) or None,
        )
    if name not in listed and name.lower() in {each.lower() for each in FEATURES}:
        raise InvalidArgumentError(
            "the table does not have this feature",
            found=repr(name),
            expected=", ".join(sorted(listed)) or None,
        )
    if name not in FEATURES:
        raise InvalidArgumentError(
            "no feature to drop has this name", found=repr(name), expected=", ".join(sorted(listed)) or None
        )
    if name not in DROPPABLE:
        raise UnsupportedFeatureError(
            "this feature cannot be dropped", found=name, expected=", ".join(sorted(DROPPABLE))
        )
    if dependent := sorted(
        other for other in listed if other in FEATURES and name in FEATURES[other].requires
    ):
        raise InvalidArgumentError(
            "another feature needs this one", found=f"{dependent[0]} needs {name}"
        ).with_values(feature=name, dependents=tuple(dependent))
    return DROPPABLE[name]


def _drop(
    snapshot: Snapshot,
    steps: DropSteps,
    name: str,
    commit: CommitOptions | None,
    *,
    of_readers: bool,
    truncate_history: bool,
) -> Snapshot:
    """Commits the protocol without the feature. For a feature of readers whose history stays, the protected
    versions end at this version, which is known only if it is the next one; so the commit is not retried
    after a conflict."""
    protect = of_readers and not truncate_history
    added = {PROTECTION} if protect else set()
    protocol = without_features(snapshot.protocol, {name}, added)
    configuration = {
        key: text for key, text in snapshot.metadata.configuration.items() if key not in steps.properties
    }
    options = commit or CommitOptions()
    if protect:
        configuration[PROTECTED_BEFORE] = str(snapshot.version + 1)
        options = replace(options, max_retries=0)
    parameters = {"featureName": name, "truncateHistory": truncate_history}
    transaction = Transaction(snapshot, "DROP FEATURE", parameters, options)
    if steps.clear is not None or steps.stage is not None:
        transaction.read()  # another writer may add uses of the feature meanwhile, which must be a conflict
    transaction.set_protocol(protocol)
    if configuration != snapshot.metadata.configuration:
        transaction.set_metadata(replace(snapshot.metadata, configuration=configuration))
    if steps.stage is not None:
        steps.stage(transaction, snapshot)
    return transaction.commit()


def _truncate(
    snapshot: Snapshot, steps: DropSteps, name: str, commit: CommitOptions | None, *, changed: bool
) -> Snapshot:
    """Writes a checkpoint of the newest version and cleans the log before it. Returns that version. If a
    version that needs the feature is left, InvalidArgumentError is raised. `changed`: True if the command has
    removed uses of the feature, which its error says."""
    if _needs(snapshot, steps, snapshot.version):  # a version can expire only if there is a later one
        snapshot = Transaction(snapshot, "Empty Commit", {}, commit).commit()
    checkpoint.write(snapshot, now=now_ms())
    retention = snapshot.properties.truncated_history_retention
    cleanup.clean(snapshot, now=now_ms(), retention=retention)
    left = sorted(version for version in list_log(snapshot.store).commits if version <= snapshot.version)
    if name == PROTECTION:
        kept = (
            left[0] if left and left[0] < snapshot.properties.checkpoint_protection_before_version else None
        )
    elif name == "v2Checkpoint":
        kept = next(
            iter(
                sorted(
                    each.version for each in list_log(snapshot.store).checkpoints if _has_second_form(each)
                )
            ),
            None,
        )
    else:
        kept = next((version for version in left if _needs(snapshot, steps, version)), None)
    if kept is not None:
        done = f"the table does not use {name} any more, but " if changed else ""
        raise InvalidArgumentError(
            f"{done}older versions of the table still need {name}: drop it again when they have expired",
            where=f"{snapshot.location}/{commit_path(kept)}",
            found=(
                f"version {kept} of"
                f" {history.moment(history.commit_times(list_log(snapshot.store))[kept]).isoformat()}"
            ),
            expected=(
                f"versions from {snapshot.version} on alone, after {retention}"
                " (delta.dropFeatureTruncateHistory.retentionDuration)"
            ),
        )
    return snapshot


def _needs(snapshot: Snapshot, steps: DropSteps, version: int) -> bool:
    return steps.in_history is not None and steps.in_history(
        _core.read_commit(snapshot.store, version, commit_path(version))
    )


def _configuration(commit: _core.Commit) -> dict[str, str]:
    return dict(Metadata.from_json(commit.metadata).configuration) if commit.metadata else {}


# --- deletion vectors


def _clear_vectors(snapshot: Snapshot, engine: Engine, commit: CommitOptions | None) -> Snapshot:
    snapshot = _without_property(snapshot, "delta.enableDeletionVectors", "false", commit)
    return purge(snapshot, engine, Job(commit=commit))[0]


def _protect_vector_files(transaction: Transaction, snapshot: Snapshot) -> None:
    """Stages `remove` actions of the files with deletion vectors. Without them, a VACUUM of a client that
    does not know deletion vectors would delete these files, which older versions still need."""
    vectors = references.inside(references.vector_files(snapshot.core.tombstones(), snapshot.location))
    stored = snapshot.store.list_from("", None, recursive=True)["path"].combine_chunks()
    paths = vectors.filter(pc.is_in(vectors, value_set=stored)).unique()
    now = transaction.clock()
    transaction.remove(
        pa.table(
            {
                "path": references.encoded(paths),
                "deletionTimestamp": pa.array([now] * len(paths), pa.int64()),
                "dataChange": pa.array([False] * len(paths)),
            }
        )
    )


def _has_vectors(commit: _core.Commit) -> bool:
    vectors = sum(
        table.num_rows - table["deletionVector"].null_count for table in (commit.adds, commit.removes)
    )
    return bool(vectors) or _configuration(commit).get("delta.enableDeletionVectors", "").lower() == "true"


# --- columns


def unmapped(snapshot: Snapshot) -> Metadata:
    """Returns the table's metadata without column mapping. Raises InvalidArgumentError for a column whose
    name needs column mapping."""
    column_mapping.check_unmapped_names(snapshot.schema)
    kept = {
        key: text
        for key, text in snapshot.metadata.configuration.items()
        if key not in (column_mapping.MODE, column_mapping.MAX_ID)
    }
    schema = column_mapping.unmapped(snapshot.schema)
    return replace(snapshot.metadata, schema_string=schema.to_json(), configuration=kept)


def remove_mapping(snapshot: Snapshot, engine: Engine, commit: CommitOptions | None) -> Snapshot:
    """Writes all files again with the names of the schema, and turns column mapping off. The protocol stays
    as it is. Raises InvalidArgumentError for a column whose name needs column mapping."""
    definition = Definition(snapshot.metadata, schema=snapshot.schema)
    if definition.properties.column_mapping_mode == "none" and column_mapping.ID not in definition.field_keys:
        return snapshot
    metadata = unmapped(snapshot)
    names = [
        ".".join(path)
        for path in clustering.logical_columns(snapshot.schema, snapshot.domains.get(clustering.DOMAIN))
    ]
    domains = {clustering.DOMAIN: clustering.configuration_of(Definition(metadata), names)} if names else {}
    return rewrite.all_files(snapshot, engine, "REMOVE COLUMN MAPPING", metadata, commit, domains=domains)


def _has_mapping(commit: _core.Commit) -> bool:
    return _configuration(commit).get(column_mapping.MODE, "none").lower() != "none"


def _clear_widening(snapshot: Snapshot, engine: Engine, commit: CommitOptions | None) -> Snapshot:
    schema = widening.forgotten(snapshot.schema)
    if schema == snapshot.schema:
        return snapshot
    configuration = {
        key: text for key, text in snapshot.metadata.configuration.items() if key != widening.ENABLED
    }
    metadata = replace(snapshot.metadata, schema_string=schema.to_json(), configuration=configuration)
    return rewrite.all_files(snapshot, engine, "REORG", metadata, commit)


def _has_widening(commit: _core.Commit) -> bool:
    if commit.metadata is None:
        return False
    schema = Schema.from_json(Metadata.from_json(commit.metadata).schema_string)
    return widening.forgotten(schema) != schema


# --- checkpoints


def _clear_second_form(snapshot: Snapshot, engine: Engine, commit: CommitOptions | None) -> Snapshot:
    snapshot = _without_property(snapshot, "delta.checkpointPolicy", "classic", commit)
    checkpoint.write(snapshot, now=now_ms())
    return snapshot


def _has_second_form(each: Checkpoint) -> bool:
    return len(each.parts) == 1 and each.parts[0] != checkpoint_path(each.version)


# --- features of writers


def _forget_row_ids(transaction: Transaction, snapshot: Snapshot) -> None:
    """Stages the files without row ids, and the removal of the high-water mark."""
    files = _core.adds_again(snapshot.files().adds, data_change=False)
    for name in ("baseRowId", "defaultRowCommitVersion"):
        files = files.set_column(
            files.schema.get_field_index(name), files.schema.field(name), pa.nulls(files.num_rows, pa.int64())
        )
    transaction.add(files)
    if (mark := snapshot.domains.get(row_tracking.DOMAIN)) is not None:
        transaction.set_domain(row_tracking.DOMAIN, mark, removed=True)


def _remove_domains(transaction: Transaction, snapshot: Snapshot) -> None:
    for domain, configuration in snapshot.domains.items():
        transaction.set_domain(domain, configuration, removed=True)


def _without_keys(*keys: str) -> Callable[[Transaction, Snapshot], None]:
    """Returns a `stage` function that removes keys from the metadata of all columns."""

    def stage(transaction: Transaction, snapshot: Snapshot) -> None:
        schema = column_mapping.without_keys(snapshot.schema, keys)
        if schema != snapshot.schema:
            transaction.set_metadata(
                replace(transaction.metadata or snapshot.metadata, schema_string=schema.to_json())
            )

    return stage


def _remove_clustering(transaction: Transaction, snapshot: Snapshot) -> None:
    set_clustering(transaction, None)


def _check_no_constraints(snapshot: Snapshot, engine: Engine, commit: CommitOptions | None) -> Snapshot:
    if names := constraint_names(snapshot.metadata.configuration):
        error = InvalidArgumentError(
            "the table has constraints", found=", ".join(names), expected="alter.drop_constraint first"
        )
        raise error.with_values(constraints=tuple(names))
    return snapshot


def _without_property(snapshot: Snapshot, name: str, default: str, commit: CommitOptions | None) -> Snapshot:
    if snapshot.metadata.configuration.get(name, default).lower() == default:
        return snapshot
    configuration = {key: text for key, text in snapshot.metadata.configuration.items() if key != name}
    transaction = Transaction(
        snapshot, "UNSET TBLPROPERTIES", {"properties": [name], "ifExists": True}, commit
    )
    transaction.set_metadata(replace(snapshot.metadata, configuration=configuration))
    return transaction.commit()


DROPPABLE: dict[str, DropSteps] = {
    "deletionVectors": DropSteps(
        _clear_vectors, ("delta.enableDeletionVectors",), _protect_vector_files, _has_vectors
    ),
    "columnMapping": DropSteps(remove_mapping, in_history=_has_mapping),
    "typeWidening": DropSteps(_clear_widening, (widening.ENABLED,), in_history=_has_widening),
    "typeWidening-preview": DropSteps(_clear_widening, (widening.ENABLED,), in_history=_has_widening),
    "v2Checkpoint": DropSteps(_clear_second_form, ("delta.checkpointPolicy",)),
    "vacuumProtocolCheck": DropSteps(),
    "rowTracking": DropSteps(
        properties=(
            row_tracking.ENABLED,
            row_tracking.SUSPENDED,
            row_tracking.ROW_ID_COLUMN,
            row_tracking.VERSION_COLUMN,
        ),
        stage=_forget_row_ids,
    ),
    "inCommitTimestamp": DropSteps(
        properties=(timestamps.ENABLED, timestamps.SINCE_VERSION, timestamps.SINCE_TIME)
    ),
    "domainMetadata": DropSteps(stage=_remove_domains),
    "checkConstraints": DropSteps(_check_no_constraints),
    "materializePartitionColumns": DropSteps(properties=("delta.enableMaterializePartitionColumnsFeature",)),
    "changeDataFeed": DropSteps(properties=("delta.enableChangeDataFeed",)),
    "generatedColumns": DropSteps(stage=_without_keys("delta.generationExpression")),
    "identityColumns": DropSteps(
        stage=_without_keys(identity.START, identity.STEP, identity.MARK, identity.EXPLICIT)
    ),
    "allowColumnDefaults": DropSteps(stage=_without_keys("CURRENT_DEFAULT")),
    "clustering": DropSteps(stage=_remove_clustering),
    PROTECTION: DropSteps(properties=(PROTECTED_BEFORE,)),
}
