"""ALTER TABLE: each method of `table.alter` makes one commit that changes the table's definition and no
rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import wraps
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from deltaic.commands import backfill, identity
from deltaic.commands.column_changes import ColumnChange, changed, field_json, path_in_history, position_of
from deltaic.commands.constraints import new_constraints
from deltaic.commands.invariants import check_nested_not_null
from deltaic.deltalake_names import ALTER, unknown
from deltaic.errors import InvalidArgumentError, InvalidTypeError, check_instance
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.plan.literal import enclosed
from deltaic.planning.planned import ScanPlan
from deltaic.protocol import clustering, dependents, edits, iceberg, row_tracking
from deltaic.protocol.column_mapping import MODE
from deltaic.protocol.definition import evolve
from deltaic.protocol.features import Definition, column_mapping_mode, supported
from deltaic.protocol.properties import (
    CONSTRAINT_PREFIX,
    REGISTRY,
    Status,
    canonical_name,
    check_retentions,
    constraint_names,
    text_of,
)
from deltaic.protocol.schema import DataType, Schema, path_text
from deltaic.protocol.versions import refuses_as_delta_spark
from deltaic.protocol.widening import is_widening
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

P = ParamSpec("P")


def _command(change: Callable[Concatenate[Alter, P], None]) -> Callable[Concatenate[Alter, P], None]:
    """Decorates a method so that compactions in the background give way to it while it runs, as some methods
    read or write files."""

    @wraps(change)
    def run(alter: Alter, /, *arguments: P.args, **options: P.kwargs) -> None:
        with alter._running():
            change(alter, *arguments, **options)

    return run


class Alter:
    """Changes of a table's definition: `table.alter`. Each method makes one commit, or none if nothing
    changes.

    Each method takes `commit=CommitOptions(...)` and returns None. All methods can raise InvalidArgumentError
    (unknown or conflicting columns or properties), InvalidTypeError (an argument of another type),
    UnsupportedFeatureError (something that this release cannot do), the exceptions of conflicts, and
    CommitUnknownError.

    >>> table.alter.add_columns("carrier string")
    >>> table.schema.names[-1]
    'carrier'
    """

    def __init__(
        self,
        pin: Callable[[], Snapshot],
        running: Callable[[], AbstractContextManager[object]],
        move: Callable[[Snapshot], None],
        engine: Callable[[], Engine],
        options: Callable[[CommitOptions | None], CommitOptions | None],
    ) -> None:
        """`pin`: returns the snapshot from which a change starts. `running`: a context manager around each
        change. `move`: called with the new snapshot. `options`: completes the CommitOptions of a call.
        """
        self._pin = pin
        self._running = running
        self._move = move
        self._engine = engine
        self._options = options

    @_command
    def add_columns(
        self,
        schema: Any,
        *,
        places: Mapping[str, str | None] | None = None,
        commit: CommitOptions | None = None,
    ) -> None:
        """Adds columns, whose values are null in existing rows. For an existing struct column, its new fields
        are added to the struct.

        `schema`: DDL text, or any schema that `DeltaTable.create` takes. `places`: positions of new columns
        or fields (with dots) that do not go to the end: the column after which each is placed, or None for
        the first place.
        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.add_columns("carrier string, tail string", places={"carrier": "id"})
        """
        check_instance(
            places,
            (Mapping, NoneType),
            "places",
            "a mapping of new columns to the column that each follows, or None",
        )
        snapshot, new = self._pin(), Schema.of(schema)
        table = edits.add_columns(snapshot.schema, new)
        for name, after in (places or {}).items():
            new.find(name)
            table = edits.move_field(table, table.find(name)[0], after)
        positions = {new.find(name)[0]: position_of(after) for name, after in (places or {}).items()}
        added = edits.new_fields(snapshot.schema, new)
        parameters = {
            "columns": [{"column": field_json(item, path), **positions.get(path, {})} for path, item in added]
        }
        self._commit(snapshot, "ADD COLUMNS", parameters, commit, schema=table)

    @_command
    def replace_columns(self, schema: Any, *, commit: CommitOptions | None = None) -> None:
        """Replaces the columns of the table by those of a schema, in their order and with their comments. A
        column for which the schema has no comment keeps its own. The schema must have all columns of the
        table, with their types, or wider ones in a table with type widening, and may have new ones. With
        column mapping, it may leave out columns or struct fields instead, which are dropped as by
        `drop_columns`. A table or struct in which a column is new and another one is missing is refused,
        because the new one may be the old one with another name; `rename_column` is for that.

        `schema`: DDL text, or any schema that `DeltaTable.create` takes.
        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> plain.alter.replace_columns(
        ...     "id bigint COMMENT 'of the airline', origin string, delay bigint, carrier string"
        ... )
        """
        snapshot, new = self._pin(), Schema.of(schema)
        if refuses_as_delta_spark() and identity.columns_of(snapshot.protocol, snapshot.schema):
            raise InvalidArgumentError("the columns of a table with identity columns cannot be replaced")
        is_mapped = column_mapping_mode(snapshot.protocol, snapshot.metadata) != "none"
        widen = is_widening if snapshot.properties.type_widening else None
        try:
            dropped = edits.dropped_fields(snapshot.schema, new) if is_mapped else []
            self._check_unused(snapshot, dropped)
            table = edits.replace_columns(edits.drop_columns(snapshot.schema, dropped), new, widen=widen)
        except InvalidArgumentError as error:
            error.with_values(old_schema=snapshot.schema, new_schema=new)
            raise
        check_nested_not_null(table, self._engine())
        self._commit(
            snapshot,
            "REPLACE COLUMNS",
            {"columns": [field_json(item, (item.name,)) for item in table]},
            commit,
            schema=table,
            properties=edits.stats_columns(snapshot.metadata, dict.fromkeys(dropped)),
        )

    @_command
    def rename_column(self, name: str, new_name: str, *, commit: CommitOptions | None = None) -> None:
        """Renames a column, or a struct field (`name` with dots). `new_name` is only the last part of the
        name. No file is written. Column mapping must be on:
        `table.alter.set_properties({"delta.columnMapping.mode": "name"})`.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.rename_column("origin", "airport")
        """
        snapshot = self._pin()
        if not isinstance(new_name, str):
            raise InvalidTypeError("a column name must be a string", found=repr(new_name))
        path, _ = snapshot.schema.find(name)
        dependents.check_unused(snapshot.schema, snapshot.metadata, path)
        self._needs_mapping(snapshot, "renamed", path)
        new_path = (*path[:-1], new_name)
        partitions = [
            new_name if len(path) == 1 and item == path[0] else item
            for item in snapshot.metadata.partition_columns
        ]
        parameters = {"oldColumnPath": path_in_history(path), "newColumnPath": path_in_history(new_path)}
        self._commit(
            snapshot,
            "RENAME COLUMN",
            parameters,
            commit,
            schema=edits.rename_column(snapshot.schema, path, new_name),
            partition_columns=partitions,
            properties=edits.stats_columns(snapshot.metadata, {path: new_path}),
        )

    @_command
    def drop_columns(self, *names: str, commit: CommitOptions | None = None) -> None:
        """Drops the columns or struct fields (with dots) `names`. Column mapping must be on, as for
        `rename_column`. Their values stay in the files until `optimize.purge()`. InvalidArgumentError is
        raised for partition columns, columns that an expression or the clustering uses, and the last column
        of a table or struct.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.drop_columns("delay")
        """
        snapshot = self._pin()
        if not names:
            raise InvalidArgumentError("no columns to drop")
        paths = [snapshot.schema.find(name)[0] for name in names]
        if len(set(paths)) != len(paths):
            twice = next(path for index, path in enumerate(paths) if path in paths[:index])
            raise InvalidArgumentError("a column is dropped twice", where=path_text(twice)).with_values(
                table_schema=edits.drop_columns(snapshot.schema, [twice])
            )
        for path in paths:
            self._needs_mapping(snapshot, "dropped", path)
        self._check_unused(snapshot, paths)
        self._commit(
            snapshot,
            "DROP COLUMNS",
            {"columns": [path_in_history(path) for path in paths]},
            commit,
            schema=edits.drop_columns(snapshot.schema, paths),
            properties=edits.stats_columns(snapshot.metadata, dict.fromkeys(paths)),
        )

    @_command
    def change_column(
        self,
        name: str,
        *,
        type: DataType | None = None,  # the public name
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        first: bool = False,
        after: str | None = None,
        commit: CommitOptions | None = None,
    ) -> None:
        """Changes one column. Arguments that are None change nothing.

        `name`: a column; or with dots a field, an array's `element`, a map's `key` or `value`.
        `type`: the new type, by Delta's name (`"long"`) or as DDL (`"bigint"`). A wider type requires the
        property `delta.enableTypeWidening`, a longer VARCHAR(n) does not.
        `nullable`: True to drop NOT NULL; False is refused for a column without NOT NULL.
        `comment`: text. `default`: SQL without columns, for later rows whose writer does not name the column;
        "" removes the default.
        `first`: True to make the column the first. `after`: the column after which it is placed.
        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.change_column("delay", comment="minutes; null where nobody knows", after="id")
        """
        change = ColumnChange(type, nullable, comment, default, first, after)
        snapshot = self._pin()
        table, parameters = changed(snapshot, snapshot.schema, name, change, self._engine)
        self._commit(snapshot, "CHANGE COLUMN", parameters, commit, schema=table)

    @_command
    def change_columns(
        self, changes: Mapping[str, Mapping[str, Any]], *, commit: CommitOptions | None = None
    ) -> None:
        """Changes several columns in one commit, one after the other.

        `changes`: a dict from the name of a column to a dict of arguments of `change_column`.
        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.change_columns({"id": {"comment": "of the airline"}, "delay": {"after": "id"}})
        """
        check_instance(changes, Mapping, "changes", "a mapping of columns to their changes")
        snapshot = self._pin()
        table, columns = snapshot.schema, []
        paths = [table.find(name)[0] for name in changes]
        if (twice := _changed_twice(paths)) is not None:
            raise InvalidArgumentError(
                "[NOT_SUPPORTED_CHANGE_SAME_COLUMN] a column is changed twice", where=path_text(twice)
            )
        for name, arguments in changes.items():
            table, parameters = changed(snapshot, table, name, ColumnChange.of(name, arguments), self._engine)
            columns.append({**parameters.pop("column"), **parameters})
        self._commit(snapshot, "CHANGE COLUMNS", {"columns": columns}, commit, schema=table)

    @_command
    def sync_identity(self, name: str, *, commit: CommitOptions | None = None) -> None:
        """Sets the high-water mark of the identity column `name` to the largest number in the table (with a
        negative step, the smallest). The next rows then get unused numbers, even after rows whose writers set
        the numbers themselves.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> numbered.alter.sync_identity("n")
        """
        snapshot = self._pin()
        field = snapshot.schema.field(snapshot.schema.find(name)[0][0])
        if field.name not in identity.columns_of(snapshot.protocol, snapshot.schema):
            raise InvalidArgumentError(
                "not an identity column", where=name, expected="a column that is GENERATED ... AS IDENTITY"
            )
        low, high = identity.value_range(self._engine(), ScanPlan(snapshot).scan([field.name]), field)
        synced = field if low is None or high is None else identity.further(field, low, high)
        schema = Schema([synced if item.name == field.name else item for item in snapshot.schema])
        self._commit(
            snapshot,
            "CHANGE COLUMN",
            {"column": field_json(synced, (name,))},
            commit,
            schema=schema,
            reads=True,
        )

    @_command
    def set_column_metadata(
        self, name: str, metadata: Mapping[str, Any], *, commit: CommitOptions | None = None
    ) -> None:
        """Sets keys of the metadata of the column or struct field `name` (with dots) to JSON values; None
        removes a key. Raises InvalidArgumentError for keys that belong to a feature, such as `delta.…`.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.set_column_metadata("delay", {"unit": "minutes"})
        """
        check_instance(metadata, Mapping, "metadata", "a mapping of keys to JSON values")
        snapshot = self._pin()
        path, _ = snapshot.schema.find(name)
        table = edits.set_metadata(snapshot.schema, path, metadata)
        self._commit(
            snapshot,
            "CHANGE COLUMN",
            {"column": field_json(table.find(path)[1], path)},
            commit,
            schema=table,
        )

    @_command
    def set_properties(
        self, properties: Mapping[str, object], *, commit: CommitOptions | None = None
    ) -> None:
        """Sets table properties.

        `properties`: a dict from name to value (str, bool, int or timedelta). `delta.minReaderVersion`,
        `delta.minWriterVersion` and `delta.feature.<name>` upgrade the protocol and are not stored. If a
        property requires a feature, the protocol is upgraded for it. An unknown name that begins with
        `delta.` is an InvalidArgumentError, which lists similar names. `comment` is not a property but the
        table's description, as in delta-spark. `delta.columnMapping.mode` = none writes all files again, in a
        commit of its own (REMOVE COLUMN MAPPING), if columns are mapped.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.set_properties({"delta.logRetentionDuration": "interval 60 days", "team": "arrivals"})
        """
        check_instance(properties, Mapping, "properties", "a mapping of names to values")
        if not properties:
            raise InvalidArgumentError("no properties to set")
        shown = {canonical_name(name): text_of(name, value) for name, value in properties.items()}
        if clustering.COLUMNS in shown:
            raise InvalidArgumentError(
                "this property belongs to its feature and cannot be set",
                found=repr(clustering.COLUMNS),
                expected="CLUSTER BY",
            )
        check_retentions(shown)
        stored = {name: value for name, value in properties.items() if name != "comment"}
        if (shown.get(MODE) or "").lower() == "none" and self._removes_mapping(
            commit, stored, len(shown) == 1
        ):
            return
        self._commit(
            self._pin(),
            "SET TBLPROPERTIES",
            {"properties": shown},
            commit,
            properties=stored,
            description=shown.get("comment"),
        )

    @_command
    def unset_properties(
        self, *names: str, if_exists: bool = False, commit: CommitOptions | None = None
    ) -> None:
        """Removes the properties `names`, so that their defaults apply; `comment` removes the description.
        Without `delta.columnMapping.mode`, all files are written again, as by `set_properties`. Raises
        InvalidArgumentError for a property that is not set, unless `if_exists`.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.unset_properties("team", if_exists=True)
        """
        snapshot = self._pin()
        stored = snapshot.metadata.configuration
        gone, shown = [], []
        has_comment = "comment" in names and snapshot.metadata.description is not None
        for name in names:
            try:
                exact = name if name in stored else canonical_name(name)
            except InvalidArgumentError:
                if not if_exists:
                    raise
                exact = name  # an unknown name is not set
            shown.append(exact)
            if exact in REGISTRY and REGISTRY[exact].status is Status.INTERNAL:
                raise InvalidArgumentError(
                    "this property belongs to its feature and cannot be removed", found=repr(name)
                )
            if exact in stored:
                gone.append(exact)
            elif not if_exists and not (exact == "comment" and has_comment):
                raise InvalidArgumentError(
                    "the property is not set", found=repr(name), expected=", ".join(sorted(stored)) or None
                )
        if not names:
            raise InvalidArgumentError("no properties to unset")
        if MODE in gone and self._removes_mapping(commit, {}, gone == [MODE] and not has_comment):
            return
        self._commit(
            self._pin(),
            "UNSET TBLPROPERTIES",
            {"properties": shown, "ifExists": if_exists},
            commit,
            unset=[*gone, "comment"] if has_comment else gone,
        )

    @_command
    def set_name(self, name: str, *, commit: CommitOptions | None = None) -> None:
        """Sets the table's name in its metadata. The table stays at its location.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.set_name("flights of 2026")
        """
        _check_text("name", name)
        self._commit(self._pin(), "UPDATE TABLE METADATA", {"name": name}, commit, name=name)

    @_command
    def set_description(self, text: str, *, commit: CommitOptions | None = None) -> None:
        """Sets the table's description in its metadata.

        `text` (str): the description, which may be empty.
        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.set_description("a row for each departure")
        """
        _check_text("description", text)
        self._commit(self._pin(), "UPDATE TABLE METADATA", {"description": text}, commit, description=text)

    @_command
    def add_features(self, *names: str, commit: CommitOptions | None = None) -> None:
        """Adds features to the protocol, by PROTOCOL.md's names, with those that they require. Versions are
        upgraded as needed. The table does not use the features yet. An unknown name is an
        InvalidArgumentError.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.add_features("vacuumProtocolCheck")
        """
        if not names:
            raise InvalidArgumentError("no features to add")
        snapshot = self._pin()
        new = [name for name in names if name not in supported(snapshot.protocol)]
        self._commit(snapshot, "ADD FEATURE", {"features": list(names)}, commit, features=new)

    @_command
    def drop_feature(
        self, name: str, *, truncate_history: bool = False, commit: CommitOptions | None = None
    ) -> None:
        """Removes a feature from the protocol. First, the table's uses of the feature are removed, by commits
        of their own, which may write every file again.

        Old versions still need a reader-writer feature. Either they are protected (the table gets
        checkpointProtection), or with `truncate_history` the log is cleaned of versions older than
        `delta.dropFeatureTruncateHistory.retentionDuration`. While some versions with the feature are
        younger, InvalidArgumentError is raised, and the call must be repeated later.

        `name` (str): the feature's name in PROTOCOL.md, such as "deletionVectors".
        `truncate_history`: False (the default) protects old versions, True deletes them from the log.
        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.drop_feature("changeDataFeed")
        """
        from deltaic.commands.drop_feature import drop_feature

        check_instance(name, str, "a feature's name", "text")
        self._move(
            drop_feature(
                self._pin(),
                self._engine(),
                name,
                truncate_history=truncate_history,
                commit=self._options(commit),
            )
        )

    @_command
    def upgrade_uniform(self, version: int = 2, *, commit: CommitOptions | None = None) -> None:
        """Turns on Iceberg compatibility `version` (1, 2 or 3; default 2) and Iceberg metadata, and writes
        all files again. First, column mapping is turned on, deletion vectors are turned off (below version
        3), and row tracking is turned on (version 3). Does nothing if the table has the version already.

        Raises InvalidArgumentError (no such version), UnsupportedFeatureError (a type or a default that the
        version does not allow). `commit` and other errors: see `help(table.alter)`.

        >>> table.alter.upgrade_uniform(2)

        Source: delta-spark's `REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))`.
        """
        from deltaic.commands.upgrade_uniform import needed_before, upgrade_uniform

        if already_committed(self._pin(), commit):
            return
        if needed := needed_before(self._pin(), version):
            self.set_properties(needed)
        engine, snapshot = self._engine(), self._pin()
        with engine.working_on("REORG", snapshot.location):
            self._move(upgrade_uniform(snapshot, engine, version, self._options(commit)))

    @_command
    def add_constraints(self, constraints: Mapping[str, str], *, commit: CommitOptions | None = None) -> None:
        """Adds CHECK constraints.

        `constraints`: a dict from the name of a constraint to its condition in Spark's SQL dialect. Names are
        compared without case.

        The existing rows are checked first: if some violate a constraint, ConstraintViolationError has their
        number. A row for which a condition is null violates it, too.

        `commit`: CommitOptions. Other errors: see `help(table.alter)`.

        >>> table.alter.add_constraints({"positive_id": "id > 0"})
        """
        snapshot = self._pin()
        if already_committed(snapshot, commit):
            return
        engine = self._engine()
        with engine.working_on("ADD CONSTRAINT", snapshot.location):
            added = new_constraints(snapshot, engine, constraints)
        shown = {
            "name": ", ".join(constraints),
            "expr": " AND ".join(added.values() if len(added) == 1 else map(enclosed, added.values())),
        }
        self._commit(snapshot, "ADD CONSTRAINT", shown, commit, constraints=added, reads=True)

    @_command
    def drop_constraint(
        self, name: str, *, if_exists: bool = False, commit: CommitOptions | None = None
    ) -> None:
        """Drops a CHECK constraint. If there is none of this name, InvalidArgumentError is raised unless
        `if_exists`.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.drop_constraint("positive_id", if_exists=True)
        """
        check_instance(name, str, "a constraint name", "text")
        snapshot = self._pin()
        stored = {each.lower(): each for each in constraint_names(snapshot.metadata.configuration)}
        if (known := stored.get(name.lower())) is None:
            if not if_exists and not already_committed(snapshot, commit):
                raise InvalidArgumentError(
                    "no such constraint",
                    found=repr(name),
                    expected=", ".join(sorted(stored.values())) or None,
                )
            return
        key = CONSTRAINT_PREFIX + known
        parameters = {"name": name, "expr": snapshot.metadata.configuration[key], "existed": "true"}
        self._commit(snapshot, "DROP CONSTRAINT", parameters, commit, unset=[key])

    @_command
    def cluster_by(self, *columns: str, commit: CommitOptions | None = None) -> None:
        """Sets the columns by which `optimize.cluster()` sorts rows, at most four. Without columns, the table
        is no longer clustered. No file is changed. All files must have statistics of the columns, which
        `optimize.statistics()` adds.

        `commit`: CommitOptions. Errors: see `help(table.alter)`.

        >>> table.alter.cluster_by("origin", "delay")
        """
        snapshot = self._pin()
        before = snapshot.domains.get(clustering.DOMAIN)
        if not columns and before is None:
            return
        if columns and (partitions := snapshot.metadata.partition_columns):
            raise InvalidArgumentError(
                "a partitioned table cannot be clustered", found=f"partitioned by {', '.join(partitions)}"
            )
        configuration = clustering.configuration_of(
            Definition(snapshot.metadata, schema=snapshot.schema), columns
        )
        old = [path_text(path) for path in clustering.logical_columns(snapshot.schema, before)]
        new = [path_text(snapshot.schema.find(name)[0]) for name in columns]
        backfill.check_statistics(snapshot, [name for name in new if name not in old])
        parameters = {"oldClusteringColumns": ",".join(old), "newClusteringColumns": ",".join(new)}
        domain = {} if configuration == before else {clustering.DOMAIN: configuration}
        self._commit(
            snapshot, "CLUSTER BY", parameters, commit, features=[clustering.FEATURE], domains=domain
        )

    def __getattr__(self, name: str) -> Any:
        raise unknown(name, "DeltaTable.alter", ALTER)

    def _check_unused(self, snapshot: Snapshot, paths: Iterable[Sequence[str]]) -> None:
        """Raises InvalidArgumentError for columns or fields that cannot be dropped."""
        domain = snapshot.domains.get(clustering.DOMAIN)
        for path in paths:
            if len(path) == 1 and path[0] in snapshot.metadata.partition_columns:
                raise InvalidArgumentError("a partition column cannot be dropped", where=path_text(path))
            dependents.check_unused(
                snapshot.schema,
                snapshot.metadata,
                path,
                clustering=clustering.clustering_columns(domain) if domain else (),
            )

    def _removes_mapping(
        self, commit: CommitOptions | None, properties: Mapping[str, object], is_whole: bool
    ) -> bool:
        """Removes column mapping, if columns are mapped. `properties`: those that the caller sets afterwards;
        an error of them is raised before a file is written. `is_whole`: True if the caller has nothing else
        to change. Returns True if the caller's change is complete."""
        from deltaic.commands.drop_feature import remove_mapping, unmapped

        snapshot, options = self._pin(), self._options(commit)
        if column_mapping_mode(snapshot.protocol, snapshot.metadata) == "none":
            return False
        if already_committed(snapshot, commit):
            return True
        evolve(snapshot.protocol, unmapped(snapshot), properties=properties)
        if not is_whole and options is not None:
            options = replace(options, transactions={})  # the last commit has them
        self._move(remove_mapping(snapshot, self._engine(), options))
        return is_whole

    def _needs_mapping(self, snapshot: Snapshot, verb: str, path: Sequence[str]) -> None:
        if column_mapping_mode(snapshot.protocol, snapshot.metadata) == "none":
            raise InvalidArgumentError(
                f"a column can only be {verb} where columns are mapped",
                where=path_text(path),
                found="delta.columnMapping.mode = 'none'",
                expected="alter.set_properties({'delta.columnMapping.mode': 'name'}) first",
            )

    def _commit(
        self,
        snapshot: Snapshot,
        operation: str,
        parameters: Mapping[str, Any],
        commit: CommitOptions | None,
        *,
        schema: Schema | None = None,
        partition_columns: Iterable[str] | None = None,
        properties: Mapping[str, object] | None = None,
        unset: Iterable[str] = (),
        features: Iterable[str] = (),
        constraints: Mapping[str, str] | None = None,
        reads: bool = False,
        domains: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        if already_committed(snapshot, commit):
            return
        protocol, metadata = evolve(
            snapshot.protocol,
            snapshot.metadata,
            schema=schema,
            partition_columns=partition_columns,
            properties=properties,
            unset=unset,
            features=features,
            constraints=constraints,
            name=name,
            description=description,
        )
        if (protocol, metadata) == (snapshot.protocol, snapshot.metadata) and not domains:
            return
        transaction = Transaction(snapshot, operation, parameters, self._options(commit))
        compatibility = iceberg.active_version(protocol, metadata)
        if compatibility != iceberg.active_version(snapshot.protocol, snapshot.metadata):
            reads = True
        if reads:  # rows that are added meanwhile were not checked, so they must be a conflict
            transaction.read()
        if protocol != snapshot.protocol:
            transaction.set_protocol(protocol)
        if metadata != snapshot.metadata:
            transaction.set_metadata(metadata)
        for domain, configuration in (domains or {}).items():
            transaction.set_domain(domain, configuration)
        if row_tracking.is_enabled(protocol, metadata) and not row_tracking.is_enabled(
            snapshot.protocol, snapshot.metadata
        ):
            backfill.stage_row_ids(transaction, snapshot)
        self._move(transaction.commit({}))


def _changed_twice(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Returns a path that is there twice or leads to another one of the paths; None if there is none."""
    pairs = ((path, each) for i, path in enumerate(paths) for j, each in enumerate(paths) if i != j)
    return next((path for path, each in pairs if each[: len(path)] == path), None)


def _check_text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidTypeError(f"the table's {what} must be a string", found=repr(value))
