"""Checks and runs CREATE TABLE and CREATE OR REPLACE TABLE."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from deltaic import _core, configuration
from deltaic.errors import (
    InvalidArgumentError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    check_instance,
    items_of,
)
from deltaic.log.segment import A_FILE, NO_FOLDER, NO_PLACE
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_store
from deltaic.options import CommitOptions
from deltaic.protocol import clustering, definition, features, iceberg, properties, row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import MAX_ID, MODE
from deltaic.protocol.properties import TableProperties, text_of
from deltaic.protocol.schema import Schema, path_text
from deltaic.transaction import giving_way
from deltaic.transaction.checks import check_mapped_feed
from deltaic.transaction.transaction import Transaction, already_committed, new_uuid, now_ms

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

Mode = Literal["error", "ignore", "overwrite"]
_managed: ContextVar[bool] = ContextVar("deltaic_managed", default=False)
_table_required: ContextVar[bool] = ContextVar("deltaic_table_required", default=False)
_other_engine: ContextVar[Engine | None] = ContextVar("deltaic_other_engine", default=None)


@contextmanager
def making_managed(is_managed: bool) -> Iterator[None]:
    """Marks tables that are created inside the block as managed by a catalog, which deletes their files
    together with their names. The history shows the mark."""
    token = _managed.set(is_managed)
    try:
        yield
    finally:
        _managed.reset(token)


@contextmanager
def requiring_table(is_required: bool) -> Iterator[None]:
    """Marks definitions inside the block as those of REPLACE TABLE, for which the caller has checked that the
    table exists. The history shows that statement instead of CREATE OR REPLACE TABLE."""
    token = _table_required.set(is_required)
    try:
        yield
    finally:
        _table_required.reset(token)


@contextmanager
def computing_with(engine: Engine) -> Iterator[None]:
    """Definitions inside the block may have expressions that only `engine` computes, such as the default
    `current_user()` of a Spark session."""
    token = _other_engine.set(engine)
    try:
        yield
    finally:
        _other_engine.reset(token)


def operation_of(*, replaces: bool) -> str:
    """Returns the operation in commitInfo, as in delta-spark: that of the statement, whether or not a table
    exists. `replaces`: False for CREATE TABLE."""
    if not replaces:
        return "CREATE TABLE"
    return "REPLACE TABLE" if _table_required.get() else "CREATE OR REPLACE TABLE"


def refuse_other_files(
    location: str, storage_options: Mapping[str, str] | None, names: Mapping[str, str] | None
) -> None:
    """Raises TableAlreadyExistsError if a folder without a Delta table has files: a new table there would
    hide them, and VACUUM would delete them. `names`: values of the error that a catalog's table has, None for
    a table without a name. With the value `log`, the folder was expected to have that log."""
    found = open_store(location, storage_options).list_from("", recursive=True)["path"]
    if not len(found):
        return
    condition = "" if names is None else "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] "
    if "log" in (names or {}):
        condition = "[DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG] "
    error = TableAlreadyExistsError(
        f"{condition}the folder of the new table has files, but no Delta table",
        where=location,
        found=found[0].as_py(),
        expected="an empty folder, or CONVERT TO DELTA for Parquet files",
    )
    raise error.with_values(**(names or {}))


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of CREATE TABLE other than the columns. None: as in the existing table."""

    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    name: str | None = None
    description: str | None = None
    properties: Mapping[str, Any] | None = None

    @staticmethod
    def of(
        partition_by: str | Iterable[str] | None,
        cluster_by: str | Iterable[str] | None,
        name: str | None,
        description: str | None,
        wanted: Mapping[str, Any] | None,
    ) -> TableOptions:
        """Validates and normalizes options. `partition_by` and `cluster_by` may be one name or several.
        `wanted`: properties; `comment` among them is the description, unless `description` is given."""
        check_instance(name, (str, type(None)), "name", "text")
        check_instance(description, (str, type(None)), "description", "text")
        check_instance(wanted, (Mapping, type(None)), "properties", "a mapping of names to values")
        if wanted is not None and "comment" in wanted:
            description = text_of("comment", wanted["comment"]) if description is None else description
            wanted = {key: value for key, value in wanted.items() if key != "comment"}
        properties.check_retentions(wanted or {})
        partitions, clusters = _names(partition_by), _names(cluster_by)
        return TableOptions(
            partition_by=partitions,
            cluster_by=clusters,
            name=name,
            description=description,
            properties=wanted,
        )

    def new(self, schema: Any, *, max_known_id: int | None = None) -> tuple[Protocol, Metadata]:
        """Returns the definition of a new table. `max_known_id`: as in `definition.new_table`."""
        return definition.new_table(
            schema,
            partition_columns=self.partition_by,
            properties=self.properties,
            defaults=configuration.current().default_properties,
            features=self._features,
            name=self.name,
            description=self.description,
            max_known_id=max_known_id,
        )

    @property
    def _features(self) -> tuple[str, ...]:
        return (clustering.FEATURE,) if self.cluster_by else ()

    def clustering(self, metadata: Metadata) -> str | None:
        """Returns the configuration of the metadata domain for the clustering columns; None without them."""
        return (
            clustering.configuration_of(features.Definition(metadata), self.cluster_by)
            if self.cluster_by
            else None
        )

    def replacing(self, snapshot: Snapshot, schema: Any) -> tuple[Protocol, Metadata]:
        """Returns the definition of a table that replaces another. From the old table, only its protocol
        features, row tracking, whether it has deletion vectors, and properties of the log (`OF_REPLACED`)
        are kept, as in delta-spark: not column mapping. If the new table has column mapping, too, its
        columns keep the ids of columns with their names and types. The new table has an id of its own, so a
        stream cannot continue with it."""
        own = snapshot.metadata.configuration
        mode = properties.request(self.properties, defines=True).stored.get(MODE, "none")
        ids = () if mode == "none" else (MAX_ID,)
        names = (*ids, *row_tracking.OF_REPLACED, *properties.OF_REPLACED)
        kept = {name: own[name] for name in names if name in own}
        old = replace(
            snapshot.metadata,
            id=new_uuid(),
            name=None,
            description=None,
            configuration=kept,
            created_time=now_ms(),
        )
        defaults = {
            name: value
            for name, value in configuration.current().default_properties.items()
            if name not in kept
        }
        # a default, because the new table's properties may exclude deletion vectors
        defaults |= {name: own[name] for name in (iceberg.VECTORS,) if name in own}
        return definition.evolve(
            snapshot.protocol,
            old,
            schema=Schema.of(schema),
            replace_schema=True,
            partition_columns=self.partition_by or (),
            properties=definition.with_defaults(self.properties, defaults),
            features=self._features,
            name=self.name,
            description=self.description,
        )

    def check_agrees(self, snapshot: Snapshot) -> None:
        """Raises InvalidArgumentError if an option differs from what the existing table has."""
        metadata = snapshot.metadata
        if self.partition_by is not None and _folded(self.partition_by) != _folded(
            metadata.partition_columns
        ):
            raise _differs(
                "partition_by",
                list(self.partition_by),
                list(metadata.partition_columns),
                "mode='overwrite' with schema_mode='overwrite'",
            )
        if self.cluster_by is not None:
            current = [
                path_text(path)
                for path in clustering.logical_columns(
                    snapshot.schema, snapshot.domains.get(clustering.DOMAIN)
                )
            ]
            if _folded(self.cluster_by) != _folded(current):
                raise _differs("cluster_by", list(self.cluster_by), current, "alter.cluster_by")
        if self.name is not None and self.name != metadata.name:
            raise _differs("name", self.name, metadata.name, "alter.set_name")
        if self.description is not None and self.description != metadata.description:
            raise _differs("description", self.description, metadata.description, "alter.set_description")
        asked = properties.request(self.properties, defines=True)
        typed = TableProperties(asked.stored)
        for name, text in asked.stored.items():
            if name in properties.REGISTRY:
                agrees = typed.value(name) == snapshot.properties.value(name)
            else:
                agrees = metadata.configuration.get(name) == text
            if not agrees:
                raise _differs(
                    f"property {name}",
                    text,
                    metadata.configuration.get(name, "unset"),
                    "alter.set_properties",
                )
        for name, text in asked.constraints.items():
            condition = metadata.configuration.get(properties.CONSTRAINT_PREFIX + name)
            if condition != text:
                raise _differs(f"constraint {name}", text, condition or "none", "alter.add_constraints")
        protocol = snapshot.protocol
        if (asked.min_reader_version or 0) > protocol.min_reader_version:
            raise _differs(
                "delta.minReaderVersion",
                asked.min_reader_version,
                protocol.min_reader_version,
                "alter.set_properties",
            )
        if (asked.min_writer_version or 0) > protocol.min_writer_version:
            raise _differs(
                "delta.minWriterVersion",
                asked.min_writer_version,
                protocol.min_writer_version,
                "alter.set_properties",
            )
        for name in sorted(features.spelled(asked.features)):
            if name not in features.supported(protocol):
                raise _differs(f"feature {name}", "supported", "unsupported", "alter.add_features")


def create(
    store: _core.Store,
    schema: Any,
    *,
    mode: Mode = "error",
    wanted: TableOptions | None = None,
    commit: CommitOptions | None = None,
) -> Snapshot:
    """Creates a table without rows. `mode`, if a table exists: "error", "ignore" (keeps the table),
    "overwrite" (replaces it)."""
    if mode not in ("error", "ignore", "overwrite"):
        raise InvalidArgumentError(
            "unknown mode of create", found=repr(mode), expected="'error', 'ignore' or 'overwrite'"
        )
    wanted = wanted or TableOptions()
    while True:
        current = existing(store)
        if current is not None:
            if mode == "error":
                raise TableAlreadyExistsError("a table already exists here", where=store.location)
            if mode == "ignore" or already_committed(current, commit):
                return current
            with giving_way.command(current) as current:
                return _replace(current, schema, wanted, commit)
        protocol, metadata = wanted.new(schema)
        check_rules(metadata)
        transaction = Transaction(
            None,
            operation_of(replaces=mode == "overwrite"),
            definition_parameters(wanted, metadata),
            commit,
            store=store,
        )
        transaction.set_protocol(protocol)
        transaction.set_metadata(metadata)
        set_clustering(transaction, wanted.clustering(metadata))
        try:
            return transaction.commit()
        except TableAlreadyExistsError:
            if mode == "error":
                raise


def existing(store: _core.Store) -> Snapshot | None:
    """Returns the newest version of the table; None if there is no table."""
    try:
        return Snapshot.load(store)
    except TableNotFoundError as error:
        found = A_FILE if error.found == NO_FOLDER and _is_below_file(str(error.where)) else error.found
        if found in NO_PLACE:
            raise InvalidArgumentError(
                "no table can be created here", where=error.where, found=found, expected=error.expected
            ) from None
        return None


def _is_below_file(path: str) -> bool:
    """True if the first parent of a local path that exists is a file."""
    parent = os.path.dirname(path.rstrip("/"))
    while parent and not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    return os.path.isfile(parent)


def _replace(snapshot: Snapshot, schema: Any, wanted: TableOptions, commit: CommitOptions | None) -> Snapshot:
    protocol, metadata = wanted.replacing(snapshot, schema)
    check_rules(metadata)
    transaction = Transaction(
        snapshot, operation_of(replaces=True), definition_parameters(wanted, metadata), commit
    )
    transaction.read()
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    transaction.set_metadata(metadata)
    set_clustering(transaction, wanted.clustering(metadata))
    files = snapshot.files().adds
    transaction.remove(_core.removes_of(files, transaction.clock()))
    check_mapped_feed(transaction, is_on_spark=_other_engine.get() is not None)
    return transaction.commit()


def check_rules(metadata: Metadata) -> None:
    """Checks that defaults and generated columns of a definition can be computed with the types of their
    columns, and that its constraints are conditions on its columns. Of a definition for Spark, checks NOT
    NULL, too."""
    if '"nullable":false' in metadata.schema_string and (engine := _other_engine.get()) is not None:
        from deltaic.commands.invariants import check_nested_not_null

        check_nested_not_null(Schema.from_json(metadata.schema_string), engine)
    if properties.constraint_names(metadata.configuration) or any(
        key in metadata.schema_string
        for key in ("CURRENT_DEFAULT", "delta.generationExpression", "delta.identity.")
    ):
        from deltaic.engine.duckdb.engine import LocalEngine

        try:
            _check_with(LocalEngine(), metadata)
        except UnsupportedFeatureError:
            if (engine := _other_engine.get()) is None:
                raise
            _check_with(engine, metadata)


def _check_with(engine: Engine, metadata: Metadata) -> None:
    from deltaic.commands import constraints, defaults, generated, identity

    configuration, schema = metadata.configuration, Schema.from_json(metadata.schema_string)
    defaults.check(engine, schema)
    identity.check(schema, metadata.partition_columns)
    generated.check(engine, schema)
    names = properties.constraint_names(configuration)
    constraints.named(
        {name: configuration[properties.CONSTRAINT_PREFIX + name] for name in names}, engine, schema
    )


def set_clustering(transaction: Transaction, configuration: str | None) -> None:
    """Stages the clustering columns if they change. `configuration`: of the domain; None: the table is not
    clustered."""
    before = transaction.snapshot.domains.get(clustering.DOMAIN) if transaction.snapshot else None
    if configuration is None and before is not None:
        transaction.set_domain(clustering.DOMAIN, before, removed=True)
    elif configuration is not None and configuration != before:
        transaction.set_domain(clustering.DOMAIN, configuration)


def definition_parameters(wanted: TableOptions, metadata: Metadata) -> dict[str, Any]:
    """Returns the operationParameters of a commit that creates a table."""
    return {
        "isManaged": str(_managed.get()).lower(),
        "description": wanted.description,
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": list(wanted.cluster_by or ()),
        "properties": dict(metadata.configuration),
    }


def _names(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    check_instance(value, Iterable, "names of columns", "one name or several")
    names = (value,) if isinstance(value, str) else items_of(value, "names of columns")
    for name in names:
        check_instance(name, str, "a column's name", "text")
    return names


def _folded(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _differs(what: str, requested: object, table_has: object, change: str) -> InvalidArgumentError:
    """Returns the error for an option that differs from the table. `change`: the call that would change the
    table."""
    expected = f"{table_has!r} as the table has it, or nothing; to change it use {change}"
    return InvalidArgumentError(f"{what} differs from the table's", found=repr(requested), expected=expected)
