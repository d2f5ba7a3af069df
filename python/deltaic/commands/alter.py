"""ALTER TABLE: each method of `table.alter` is one commit that changes the table's definition and no row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from deltaic.commands import backfill, defaults
from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError, check_instance
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.protocol import clustering, edits, row_tracking
from deltaic.protocol.ddl import parse_type
from deltaic.protocol.definition import evolve
from deltaic.protocol.features import Definition, column_mapping_mode, supported
from deltaic.protocol.properties import REGISTRY, Status, canonical_name, text_of
from deltaic.protocol.schema import DataType, Field, Schema, check_type, path_text, type_to_json
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine


class Alter:
    """Changes of a table's definition. `pin` gives the snapshot that a change starts from, `move` takes the snapshot with the commit.

    A call that changes nothing commits nothing. Each takes `commit=CommitOptions(...)`. Errors: InvalidArgumentError (unknown or clashing
    columns, properties), UnsupportedFeatureError (what this release cannot do, by name), and those of a commit.
    """

    def __init__(self, pin: Callable[[], Snapshot], move: Callable[[Snapshot], None], engine: Callable[[], Engine]) -> None:
        self._pin = pin
        self._move = move
        self._engine = engine

    def add_columns(self, schema: Any, *, commit: CommitOptions | None = None) -> None:
        """Adds columns at the end (DDL text, or any schema); a struct column that exists gets the new fields. All take null."""
        snapshot, new = self._pin(), Schema.of(schema)
        table = edits.add_columns(snapshot.schema, new)
        parameters = {"columns": [{"column": _field_json(item)} for item in new]}
        self._commit(snapshot, "ADD COLUMNS", parameters, commit, schema=table)

    def rename_column(self, name: str, new_name: str, *, commit: CommitOptions | None = None) -> None:
        """Renames a column or a struct's field (dotted); `new_name` is the last part alone. Needs column mapping."""
        snapshot = self._pin()
        if not isinstance(new_name, str):
            raise InvalidTypeError("a column's name is text", found=repr(new_name))
        path, _ = snapshot.schema.find(name)
        self._needs_mapping(snapshot, "renamed", path)
        edits.check_unused(snapshot.schema, snapshot.metadata, path)
        new_path = (*path[:-1], new_name)
        partitions = [new_name if len(path) == 1 and item == path[0] else item for item in snapshot.metadata.partition_columns]
        parameters = {"oldColumnPath": path_text(path), "newColumnPath": path_text(new_path)}
        self._commit(
            snapshot,
            "RENAME COLUMN",
            parameters,
            commit,
            schema=edits.rename_column(snapshot.schema, path, new_name),
            partition_columns=partitions,
            properties=edits.stats_columns(snapshot.metadata, {path: new_path}),
        )

    def drop_columns(self, *names: str, commit: CommitOptions | None = None) -> None:
        """Drops columns or struct fields (dotted). Needs column mapping. Their values stay in the files until these are written again.
        Refused: partition columns, columns that an expression or the clustering uses, the last column of a table or struct."""
        snapshot = self._pin()
        if not names:
            raise InvalidArgumentError("no columns to drop")
        paths = [snapshot.schema.find(name)[0] for name in names]
        if len(set(paths)) != len(paths):
            raise InvalidArgumentError("a column is named twice", found=", ".join(names))
        domain = snapshot.domains.get(clustering.DOMAIN)
        for path in paths:
            self._needs_mapping(snapshot, "dropped", path)
            if len(path) == 1 and path[0] in snapshot.metadata.partition_columns:
                raise InvalidArgumentError("a partition column cannot be dropped", where=path_text(path))
            edits.check_unused(snapshot.schema, snapshot.metadata, path, clustering=clustering.clustering_columns(domain) if domain else ())
        self._commit(
            snapshot,
            "DROP COLUMNS",
            {"columns": [path_text(path) for path in paths]},
            commit,
            schema=edits.drop_columns(snapshot.schema, paths),
            properties=edits.stats_columns(snapshot.metadata, dict.fromkeys(paths)),
        )

    def change_column(
        self,
        name: str,
        *,
        type: DataType | None = None,  # the public name
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        commit: CommitOptions | None = None,
    ) -> None:
        """Widens the type, drops NOT NULL (`nullable=True`), sets a comment; what is None stays. `type`: Delta's name or DDL, of a column,
        a field, an array's `element`, a map's `key` or `value` (dotted); needs `delta.enableTypeWidening`. `default`: SQL without columns,
        for rows to come whose writer does not name the column."""
        check_instance(nullable, (bool, NoneType), "nullable", "True, False or None")
        check_instance(comment, (str, NoneType), "comment", "text")
        check_instance(default, (str, NoneType), "default", "SQL as text")
        snapshot = self._pin()
        path, field = snapshot.schema.find(name)
        if type is not None and (wanted := _as_type(type)) != field.type:
            edits.check_unused(snapshot.schema, snapshot.metadata, path)
            table = edits.change_type(snapshot.schema, path, wanted)
        else:
            table = snapshot.schema
        if nullable is False and field.nullable:
            raise InvalidArgumentError("NOT NULL cannot be set on a column that takes null, only dropped", where=path_text(path))

        said = {key: text for key, text in (("comment", comment), (defaults.KEY, default)) if text is not None}

        def change(item: Field) -> Field:
            return item.with_(nullable=item.nullable or nullable is True, metadata={**item.metadata, **said})

        if nullable is not None or said:
            table = edits.edit_field(table, path, change)
        if default is not None:
            if len(path) > 1:
                raise InvalidArgumentError("only a whole column has a default", where=path_text(path))
            defaults.check(self._engine(), [table.field(path[0])])
        parameters = {"column": _field_json(table.find(path)[1])}
        self._commit(snapshot, "CHANGE COLUMN", parameters, commit, schema=table)

    def set_column_metadata(self, name: str, metadata: Mapping[str, Any], *, commit: CommitOptions | None = None) -> None:
        """Sets keys of a column's metadata, JSON values; None takes a key away. Keys that features use are refused."""
        check_instance(metadata, Mapping, "metadata", "a mapping of keys to JSON values")
        snapshot = self._pin()
        path, _ = snapshot.schema.find(name)
        table = edits.set_metadata(snapshot.schema, path, metadata)
        self._commit(snapshot, "CHANGE COLUMN", {"column": _field_json(table.find(path)[1])}, commit, schema=table)

    def set_properties(self, properties: Mapping[str, object], *, commit: CommitOptions | None = None) -> None:
        """Sets table properties (str, bool, int, timedelta). `delta.minReaderVersion`, `delta.minWriterVersion` and
        `delta.feature.<name>` raise the protocol and are not stored. It rises by itself where a property needs a feature."""
        check_instance(properties, Mapping, "properties", "a mapping of names to values")
        if not properties:
            raise InvalidArgumentError("no properties to set")
        shown = {canonical_name(name): text_of(name, value) for name, value in properties.items()}
        self._commit(self._pin(), "SET TBLPROPERTIES", {"properties": shown}, commit, properties=properties)

    def unset_properties(self, *names: str, if_exists: bool = False, commit: CommitOptions | None = None) -> None:
        """Takes properties away, so that their defaults hold. InvalidArgumentError for one that is not set, unless `if_exists`."""
        snapshot = self._pin()
        stored = snapshot.metadata.configuration
        gone = []
        for name in names:
            exact = name if name in stored else canonical_name(name)
            if exact in REGISTRY and REGISTRY[exact].status is Status.INTERNAL:
                raise InvalidArgumentError("this property belongs to its feature and cannot be taken away", found=repr(name))
            if exact in stored:
                gone.append(exact)
            elif not if_exists:
                raise InvalidArgumentError("the property is not set", found=repr(name), expected=", ".join(sorted(stored)) or None)
        if not names:
            raise InvalidArgumentError("no properties to unset")
        self._commit(snapshot, "UNSET TBLPROPERTIES", {"properties": gone, "ifExists": if_exists}, commit, unset=gone)

    def set_name(self, name: str, *, commit: CommitOptions | None = None) -> None:
        """Sets the table's name in its metadata; the place of the table stays."""
        _check_text("name", name)
        self._commit(self._pin(), "UPDATE TABLE METADATA", {"name": name}, commit, name=name)

    def set_description(self, text: str, *, commit: CommitOptions | None = None) -> None:
        """Sets the table's description."""
        _check_text("description", text)
        self._commit(self._pin(), "UPDATE TABLE METADATA", {"description": text}, commit, description=text)

    def add_features(self, *names: str, commit: CommitOptions | None = None) -> None:
        """Lists features in the protocol, PROTOCOL.md's names, with those they require; versions rise as needed. It uses none."""
        if not names:
            raise InvalidArgumentError("no features to add")
        snapshot = self._pin()
        new = [name for name in names if name not in supported(snapshot.protocol)]
        self._commit(snapshot, "ADD FEATURE", {"features": list(names)}, commit, features=new)

    def drop_feature(self, name: str, *, truncate_history: bool = False, commit: CommitOptions | None = None) -> None:
        """Takes a feature out of the protocol, and what the table has of it out of the table: by commits of their own, which may write
        every file again. Old versions still need a feature of readers: they are protected (the table gets checkpointProtection), or with
        `truncate_history` the log is cleaned up to `delta.dropFeatureTruncateHistory.retentionDuration` ago; while some of these versions
        are younger, the call ends with InvalidArgumentError and is to be made again."""
        from deltaic.commands.drop_feature import drop_feature

        check_instance(name, str, "a feature's name", "text")
        self._move(drop_feature(self._pin(), self._engine(), name, truncate_history=truncate_history, commit=commit))

    def add_constraints(self, constraints: Mapping[str, str], *, commit: CommitOptions | None = None) -> None:
        """Not in this release: UnsupportedFeatureError."""
        raise UnsupportedFeatureError("constraints (feature checkConstraints) are not supported by this release", found=repr(constraints))

    def drop_constraint(self, name: str, *, if_exists: bool = False, commit: CommitOptions | None = None) -> None:
        """Not in this release: UnsupportedFeatureError."""
        raise UnsupportedFeatureError("constraints (feature checkConstraints) are not supported by this release", found=repr(name))

    def cluster_by(self, *columns: str, commit: CommitOptions | None = None) -> None:
        """What `optimize.cluster()` sorts rows by from now on, at most four columns; none: the table is not clustered any more. No file is
        changed: all must have statistics of the columns (`optimize.statistics` gives them)."""
        snapshot = self._pin()
        before = snapshot.domains.get(clustering.DOMAIN)
        if not columns and before is None:
            return
        configuration = clustering.configuration_of(Definition(snapshot.metadata, schema=snapshot.schema), columns)
        old = [path_text(path) for path in clustering.logical_columns(snapshot.schema, before)]
        new = [path_text(snapshot.schema.find(name)[0]) for name in columns]
        backfill.check_statistics(snapshot, [name for name in new if name not in old])
        parameters = {"oldClusteringColumns": ",".join(old), "newClusteringColumns": ",".join(new)}
        domain = {} if configuration == before else {clustering.DOMAIN: configuration}
        self._commit(snapshot, "CLUSTER BY", parameters, commit, features=[clustering.FEATURE], domains=domain)

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
            name=name,
            description=description,
        )
        if (protocol, metadata) == (snapshot.protocol, snapshot.metadata) and not domains:
            return
        transaction = Transaction(snapshot, operation, parameters, commit)
        if protocol != snapshot.protocol:
            transaction.set_protocol(protocol)
        if metadata != snapshot.metadata:
            transaction.set_metadata(metadata)
        for domain, configuration in (domains or {}).items():
            transaction.set_domain(domain, configuration)
        if row_tracking.is_enabled(protocol, metadata) and not row_tracking.is_enabled(snapshot.protocol, snapshot.metadata):
            backfill.stage_row_ids(transaction, snapshot)
        self._move(transaction.commit({}))


def _field_json(item: Field) -> dict[str, Any]:
    return {"name": item.name, "type": type_to_json(item.type), "nullable": item.nullable, "metadata": dict(item.metadata)}


def _as_type(given: DataType) -> DataType:
    """Delta's own name, Struct, Array, Map, or Spark's DDL text."""
    if isinstance(given, str):
        try:
            return check_type(given)
        except InvalidArgumentError:
            return parse_type(given)
    return check_type(given)


def _check_text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidTypeError(f"a table's {what} is text", found=repr(value))
