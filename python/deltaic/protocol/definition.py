"""Protocol and metadata of a table, built for a new table and changed for an existing one. Pure functions; commands only commit.

    protocol, metadata = new_table("id bigint, day date", partition_columns=["day"], properties={"delta.appendOnly": True})
    protocol, metadata = evolve(snapshot.protocol, snapshot.metadata, schema=merged)

`evolve` gives back equal actions where nothing changes, so `(protocol, metadata) == (old_protocol, old_metadata)` means: commit nothing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from deltaic.errors import InvalidArgumentError
from deltaic.protocol import change_feed, column_mapping, edits, iceberg, partitioning, row_tracking, widening
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.evolution import merge_schemas
from deltaic.protocol.features import FEATURES, Definition, column_mapping_mode, in_use, supported
from deltaic.protocol.properties import CONSTRAINT_PREFIX, REGISTRY, RequestedProperties, TableProperties, canonical_name, request
from deltaic.protocol.schema import Schema, path_text, primitive_types, type_name, walk
from deltaic.protocol.versions import check_honoured, new_protocol, upgrade

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def new_table(
    schema: Any,
    *,
    partition_columns: str | Iterable[str] | None = None,
    properties: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
    features: Iterable[str] = (),
    name: str | None = None,
    description: str | None = None,
    max_known_id: int | None = None,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> tuple[Protocol, Metadata]:
    """The first protocol and metadata of a table.

    `schema`: whatever `Schema.of` takes; ids of another table are taken off. `properties`: the user's; `defaults`: of new tables in this
    process, they give way to the user's. `features`: names that it has besides. `max_known_id`: given where data files of another table
    format are there: `schema` keeps its ids, physical names and type changes, and ids up to this one are never given to other columns.
    `clock`: ms since 1970. Raises InvalidArgumentError (columns, names, properties that contradict), UnsupportedFeatureError (a property
    or field metadata that needs what this release cannot honour).
    """
    asked = request(with_defaults(properties, defaults), defines=True)
    configuration = dict(asked.stored) | _stored_constraints(asked.constraints)
    configuration = iceberg.completed(configuration, None)
    table = Schema.of(schema) if max_known_id is not None else column_mapping.strip(Schema.of(schema))
    _check_types(table)
    mode = TableProperties(configuration).column_mapping_mode
    column_mapping.check_names(table, mode)
    partitions = partitioning.partition_columns(table, partition_columns)
    configuration = row_tracking.with_columns(configuration, new_id)
    if mode != "none":
        if max_known_id is None and TableProperties(configuration).iceberg_compat:
            # Readers of Iceberg find columns by ids, but PyIceberg 0.12 takes structs in lists of lists for null where names differ.
            table, last = column_mapping.assign_existing(table)
        else:
            table, last = column_mapping.assign(table, max_known_id or 0, new_name=lambda: f"col-{new_id()}")
        column_mapping.check_unique(table)
        table, last = _with_nested_ids(table, last, configuration)
        configuration[column_mapping.MAX_ID] = str(last)
    metadata = Metadata(new_id(), name, description, table.to_json(), partitions, configuration, clock())
    definition = Definition(metadata, schema=table)
    _check_combination(definition)
    _check_stats_columns(table, asked)
    needed = in_use(definition) | {*asked.features, *features}
    _check_clustering(metadata, needed)
    check_honoured(sorted(needed))
    protocol = new_protocol(needed, min_reader_version=asked.min_reader_version, min_writer_version=asked.min_writer_version)
    iceberg.check(protocol, definition)
    return protocol, metadata


def _stored_constraints(constraints: Mapping[str, str]) -> dict[str, str]:
    return {CONSTRAINT_PREFIX + name: condition for name, condition in constraints.items()}


def with_defaults(properties: Mapping[str, object] | None, defaults: Mapping[str, object] | None) -> dict[str, object]:
    """The user's properties, and the defaults that they leave in force; names match as properties do. Deletion vectors
    are no default of a table whose Iceberg compatibility excludes them."""
    given = {canonical_name(name) for name in properties or ()}
    left = {name: value for name, value in (defaults or {}).items() if canonical_name(name) not in given}
    wanted = {**left, **(properties or {})}
    if any(version < 3 for version in TableProperties(request(wanted, defines=True).stored).iceberg_compat):
        wanted = {name: value for name, value in wanted.items() if name in (properties or ()) or canonical_name(name) != iceberg.VECTORS}
    return wanted


def evolve(
    protocol: Protocol,
    metadata: Metadata,
    *,
    schema: Schema | None = None,
    replace_schema: bool = False,
    partition_columns: Iterable[str] | None = None,
    properties: Mapping[str, object] | None = None,
    unset: Iterable[str] = (),
    features: Iterable[str] = (),
    constraints: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    new_name: column_mapping.NewName = column_mapping.new_physical_name,
) -> tuple[Protocol, Metadata]:
    """The protocol and metadata of a table after a change; equal to what they were where there is none.

    `schema`: the new schema, whose old fields carry their old metadata; fields without id get one where columns are mapped. With
    `replace_schema` it is another schema altogether, as every file is replaced: all its fields are new, and any mode may be set.
    `partition_columns`: the new ones, only with `replace_schema` or when renamed; None keeps them. `properties`: as the user gave them,
    `unset`: stored names to take away, `features`: names to add, `constraints`: SQL conditions by name to add.
    `name`, `description`: None keeps. Errors as `new_table`. The protocol never loses a feature.
    """
    asked = request(properties, defines=replace_schema)
    before = Definition(metadata)
    gone = set(unset)
    configuration = {key: value for key, value in {**metadata.configuration, **asked.stored}.items() if key not in gone}
    configuration |= _stored_constraints({**asked.constraints, **(constraints or {})})
    configuration = iceberg.completed(configuration, None if replace_schema else metadata.configuration)
    configuration = row_tracking.with_columns(configuration)
    table = _evolved_schema(before, schema, replace_schema, column_mapping_mode(protocol, before), configuration, new_name)
    partitions = metadata.partition_columns
    if partition_columns is not None or table != before.schema:
        partitions = partitioning.partition_columns(table, partitions if partition_columns is None else partition_columns)
    changed = replace(
        metadata,
        name=metadata.name if name is None else name,
        description=metadata.description if description is None else description,
        schema_string=metadata.schema_string if table == before.schema else table.to_json(),
        partition_columns=partitions,
        configuration=configuration,
    )
    after = Definition(changed, schema=table)
    _check_combination(after)
    _check_stats_columns(table, asked)
    needed = _newly_used(protocol, before, after, asked) | {*asked.features, *features}
    _check_clustering(changed, needed)
    check_honoured(sorted(needed))
    new = upgrade(
        protocol,
        needed,
        min_reader_version=asked.min_reader_version,
        min_writer_version=asked.min_writer_version,
    )
    iceberg.check(new, after, before)
    return new, changed


def _evolved_schema(
    before: Definition,
    schema: Schema | None,
    replace_schema: bool,
    mode_before: str,
    configuration: dict[str, str],
    new_name: column_mapping.NewName,
) -> Schema:
    """The new schema with ids and physical names where the mode asks for them; writes the largest id into `configuration`."""
    mode = TableProperties(configuration).column_mapping_mode
    table = before.schema if schema is None else schema
    if replace_schema:
        table = column_mapping.strip(table)  # no file of the old schema stays, so that any mode will do
    else:
        column_mapping.check_mode_change(mode_before, mode)
    if table != before.schema:
        if not replace_schema:
            table = _with_type_changes(before, table, configuration)
        _check_types(table, before.schema)
        column_mapping.check_names(table, mode, None if replace_schema else before.schema)
    last = before.properties.max_column_id
    if mode_before == "none" and mode == "name" and not replace_schema:
        old, last = column_mapping.assign_existing(column_mapping.strip(before.schema), last)
        table = old if schema is None else _carry_ids(old, table)
    if mode != "none":
        table, last = column_mapping.assign(table, last, new_name=new_name)
        column_mapping.check_unique(table)
        table, last = _with_nested_ids(table, last, configuration)
        configuration[column_mapping.MAX_ID] = str(last)
    return table


def _with_nested_ids(table: Schema, last: int, configuration: Mapping[str, str]) -> tuple[Schema, int]:
    """The schema with ids of elements, keys and values, and the largest id, where Iceberg compatibility wants them."""
    wanted = any(version > 1 for version in TableProperties(configuration).iceberg_compat)
    return iceberg.assign_nested(table, last) if wanted else (table, last)


def _with_type_changes(before: Definition, table: Schema, configuration: Mapping[str, str]) -> Schema:
    """The schema with the types that it widens noted; InvalidArgumentError where the table does not allow it."""
    noted = widening.recorded(before.schema, table)
    if noted != table and not TableProperties(configuration).type_widening:
        changed = next(path for path, item in walk(noted) if item.metadata != table.find(path)[1].metadata)
        raise InvalidArgumentError(
            "a column's type can only change where type widening is on",
            where=path_text(changed),
            found=f"{type_name(before.schema.find(changed)[1].type)} to {type_name(table.find(changed)[1].type)}",
            expected=f"alter.set_properties({{'{widening.ENABLED}': 'true'}}) first",
        )
    for path, item in walk(noted) if noted != table else ():
        if item.metadata != table.find(path)[1].metadata:
            edits.check_unused(before.schema, before.metadata, path)
            if "delta.generationExpression" in item.metadata or "delta.identity.start" in item.metadata:
                raise InvalidArgumentError("the type of a generated or an identity column stays", where=path_text(path))
    return noted


def _carry_ids(mapped: Schema, schema: Schema) -> Schema:
    """`schema` with the ids of `mapped` on the fields of the same path; for a schema that changes together with the mode."""
    if {path for path, _ in walk(mapped)} - {path for path, _ in walk(schema)}:
        raise InvalidArgumentError("columns cannot be dropped or renamed in the change that turns column mapping on")
    return merge_schemas(mapped, schema)


def _newly_used(protocol: Protocol, before: Definition, after: Definition, asked: RequestedProperties) -> set[str]:
    """Features that the change brings into use: those that the table does not have, and those that this release cannot honour.
    A use that was there before without its feature is none."""
    set_now = {REGISTRY[item].feature for item in asked.stored if item in REGISTRY}
    used = in_use(after)
    return {item for item in used - supported(protocol) if item not in in_use(before) or item in set_now} | {
        item for item in used - in_use(before) if not FEATURES[item].honoured
    }


def _check_types(schema: Schema, known: Schema | None = None) -> None:
    """A column of a new table may have no type yet (void, nothing but nulls): its values come with the first data that has one. It has no
    place in a Parquet file, so that another column must be there, and fields of structs, elements and map entries need a type."""
    there = {path for path, _ in walk(known or ())}
    for path, item in walk(schema):
        untyped = "void" in primitive_types(item.type) and (item.type != "void" or len(path) > 1 or known is not None)
        if path not in there and (untyped or all(each.type == "void" for each in schema)):
            raise InvalidArgumentError("a column holds nothing but nulls, so that its type is not known", where=path_text(path))


def _check_combination(definition: Definition) -> None:
    """Vectors are refused together with what cannot show them: manifests of files, and Iceberg before version 3; the change data feed with
    columns of its own names."""
    properties = definition.properties
    if properties.change_data_feed:
        change_feed.check_names(definition.schema)
    if not properties.deletion_vectors:
        return
    if properties.symlink_manifests:
        raise InvalidArgumentError(
            "deletion vectors and symlink manifests exclude each other: readers of a manifest would see deleted rows",
            where="delta.enableDeletionVectors",
            found="delta.compatibility.symlinkFormatManifest.enabled = true",
        )
    if versions := [version for version in properties.iceberg_compat if version < 3]:
        raise InvalidArgumentError(
            "deletion vectors and Iceberg compatibility below version 3 exclude each other",
            where="delta.enableDeletionVectors",
            found=f"delta.enableIcebergCompatV{versions[0]} = true",
        )


def _check_clustering(metadata: Metadata, needed: Collection[str]) -> None:
    if "clustering" in needed and metadata.partition_columns:
        raise InvalidArgumentError(
            "a table is partitioned or clustered, not both", found=f"partitioned by {', '.join(metadata.partition_columns)}"
        )


def _check_stats_columns(schema: Schema, asked: RequestedProperties) -> None:
    if _STATS_COLUMNS in asked.stored:
        for path in TableProperties(asked.stored).data_skipping_stats_columns or ():
            schema.find(path)
