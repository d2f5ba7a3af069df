"""Creates the protocol and metadata of a new table, and changes those of an existing one. Commands commit
them.

    protocol, metadata = new_table("id bigint, day date", partition_columns=["day"])
    protocol, metadata = evolve(snapshot.protocol, snapshot.metadata, schema=merged)

`evolve` returns actions equal to the old ones if nothing changes. The command then need not commit them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol import (
    change_feed,
    clustering,
    column_mapping,
    dependents,
    edits,
    iceberg,
    partitioning,
    row_tracking,
    widening,
)
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.default_properties import is_given
from deltaic.protocol.evolution import merge_schemas
from deltaic.protocol.features import (
    FEATURES,
    Definition,
    column_mapping_mode,
    in_use,
    spelled,
    supported,
    without_previewed,
)
from deltaic.protocol.properties import (
    CONSTRAINT_PREFIX,
    REGISTRY,
    RequestedProperties,
    TableProperties,
    canonical_name,
    request,
)
from deltaic.protocol.schema import (
    Field,
    ResultType,
    Schema,
    Struct,
    path_text,
    primitive_types,
    type_name,
    walk,
)
from deltaic.protocol.type_places import result_types
from deltaic.protocol.versions import (
    check_addable,
    check_upgrade,
    new_protocol,
    refuses_as_delta_spark,
    upgrade,
)
from deltaic.protocol.void import check_void


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
    """Creates the protocol and metadata of a new table.

    `schema`: any argument of `Schema.of`; column mapping of another table is removed from it.
    `properties`: the user's. `defaults`: this process's defaults for new tables; the user's properties win.
    `features`: names of further table features.
    `max_known_id`: set if the table's data files come from another table format. Then `schema` keeps its ids,
        physical names and type changes, and new columns get ids above this one.
    `new_id`: returns a unique text. `clock`: returns ms since 1970.
    Invalid columns, names and combinations of properties are an InvalidArgumentError; a property or field
    metadata that this release cannot honour is an UnsupportedFeatureError.
    """
    asked = request(with_defaults(properties, defaults), defines=True)
    configuration = dict(asked.stored) | _stored_constraints(asked.constraints)
    configuration = iceberg.completed(configuration, None)
    table = Schema.of(schema) if max_known_id is not None else column_mapping.strip(Schema.of(schema))
    _check_types(table)
    mode = TableProperties(configuration).column_mapping_mode
    partition_columns = (
        (partition_columns,) if isinstance(partition_columns, str) else tuple(partition_columns or ())
    )
    column_mapping.check_names(table, mode, partitions=partition_columns)
    partitions = partitioning.partition_columns(table, partition_columns)
    configuration = row_tracking.with_columns(configuration, new_id)
    if mode != "none":
        if max_known_id is None and TableProperties(configuration).iceberg_compat:
            # Physical names equal logical ones. Readers of Iceberg find columns by ids, but PyIceberg 0.12
            # reads structs in lists of lists as null if the names differ.
            table, last = column_mapping.assign_existing(table)
        else:
            table, last = column_mapping.assign(table, max_known_id or 0, new_name=lambda: f"col-{new_id()}")
        column_mapping.check_unique(table)
        table, last = _with_nested_ids(table, last, configuration)
        configuration[column_mapping.MAX_ID] = str(last)
    metadata = Metadata(new_id(), name, description, table.to_json(), partitions, configuration, clock())
    definition = Definition(metadata, schema=table)
    _check_combination(definition, properties)
    _check_stats_columns(definition, asked)
    named = _named(asked, features, "CREATE")
    needed = without_previewed(in_use(definition), named) | named
    _check_clustering(metadata, needed)
    check_addable(None, needed, named, "CREATE")
    protocol = new_protocol(
        needed, min_reader_version=asked.min_reader_version, min_writer_version=asked.min_writer_version
    )
    iceberg.check(protocol, definition)
    return protocol, metadata


def _stored_constraints(constraints: Mapping[str, str]) -> dict[str, str]:
    return {CONSTRAINT_PREFIX + name: condition for name, condition in constraints.items()}


def with_defaults(
    properties: Mapping[str, object] | None, defaults: Mapping[str, object] | None
) -> dict[str, object]:
    """Adds the defaults to the user's properties, which win. A default of deletion vectors is left out if the
    table's Iceberg compatibility excludes them, or a protocol that the properties name is below theirs."""
    explicit = {canonical_name(name) for name in properties or ()}
    remaining = {
        name: value for name, value in (defaults or {}).items() if canonical_name(name) not in explicit
    }
    merged = {**remaining, **(properties or {})}
    asked = request(merged, defines=True)
    is_legacy = (asked.min_reader_version or 3) < 3 or (asked.min_writer_version or 7) < 7
    if is_legacy or any(version < 3 for version in TableProperties(asked.stored).iceberg_compat):
        merged = {
            name: value
            for name, value in merged.items()
            if name in (properties or ()) or canonical_name(name) != iceberg.VECTORS
        }
    return merged


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
    upcasts: bool = False,
) -> tuple[Protocol, Metadata]:
    """Returns the protocol and metadata of a table after a change; equal to the old ones if nothing changes.

    `schema`: the new schema, in which the table's fields have their metadata; new fields get ids if columns
        are mapped.
    `replace_schema`: True if every file is replaced. Then any mode of column mapping may be set, and a field
        keeps its id only if the old schema has a column of its name and type.
    `partition_columns`: the new ones, only with `replace_schema` or for a rename; None: unchanged.
    `properties`: as the user passed them. `unset`: names of stored properties to remove;
        `comment` removes the description.
    `features`: names to add. `constraints`: SQL conditions to add, by name.
    `name`, `description`: None: unchanged.
    `upcasts`: True if `schema` changes types without type widening, and only as `widening.is_upcast` allows.
    The errors are those of `new_table`. The protocol never loses a feature.
    """
    asked = request(properties, defines=replace_schema)
    before = Definition(metadata)
    gone = set(unset)
    configuration = {
        key: value for key, value in {**metadata.configuration, **asked.stored}.items() if key not in gone
    }
    configuration |= _stored_constraints({**asked.constraints, **(constraints or {})})
    configuration = iceberg.completed(configuration, None if replace_schema else metadata.configuration)
    configuration = row_tracking.with_columns(configuration)
    table = _evolved_schema(
        before,
        schema,
        replace_schema,
        column_mapping_mode(protocol, before),
        configuration,
        new_name,
        upcasts,
    )
    partitions = metadata.partition_columns
    if partition_columns is not None or table != before.schema:
        wanted = partitions if partition_columns is None else partition_columns
        partitions = partitioning.partition_columns(table, wanted)
    changed = replace(
        metadata,
        name=metadata.name if name is None else name,
        description=_described(metadata.description, description, gone),
        schema_string=metadata.schema_string if table == before.schema else table.to_json(),
        partition_columns=partitions,
        configuration=configuration,
    )
    after = Definition(changed, schema=table)
    _check_combination(after, properties, before)
    _check_stats_columns(after, asked)
    if not replace_schema:
        check_upgrade(protocol, asked.min_reader_version, asked.min_writer_version)
    new = upgrade(
        protocol,
        _added_features(protocol, before, after, asked, features, replaces=replace_schema),
        min_reader_version=asked.min_reader_version,
        min_writer_version=asked.min_writer_version,
    )
    iceberg.check(new, after, before)
    return new, changed


def _described(old: str | None, new: str | None, gone: set[str]) -> str | None:
    if "comment" in gone:
        return None
    return old if new is None else new


def _evolved_schema(
    before: Definition,
    schema: Schema | None,
    replace_schema: bool,
    mode_before: str,
    configuration: dict[str, str],
    new_name: column_mapping.NewName,
    upcasts: bool,
) -> Schema:
    """Returns the new schema. If columns are mapped, its fields have ids and physical names, and the largest
    id is written to `configuration`."""
    mode = TableProperties(configuration).column_mapping_mode
    table = before.schema if schema is None else schema
    if replace_schema:
        table = column_mapping.strip(table)  # no file of the old schema remains, so any mode is allowed
    else:
        column_mapping.check_mode_change(mode_before, mode)
    if table != before.schema:
        if not replace_schema:
            table = _with_type_changes(before, table, configuration, upcasts)
        _check_types(table, before.schema)
        column_mapping.check_names(table, mode, None if replace_schema else before.schema)
    last = before.properties.max_column_id
    if mode_before == "none" and mode == "name" and not replace_schema:
        old, last = column_mapping.assign_existing(column_mapping.strip(before.schema), last)
        table = old if schema is None else _carry_ids(old, table)
    if mode != "none":
        if replace_schema:
            table = column_mapping.with_ids_of(table, before.schema)
        table, last = column_mapping.assign(table, last, new_name=new_name)
        column_mapping.check_unique(table)
        table, last = _with_nested_ids(table, last, configuration)
        configuration[column_mapping.MAX_ID] = str(last)
    return table


def _with_nested_ids(table: Schema, last: int, configuration: Mapping[str, str]) -> tuple[Schema, int]:
    """Adds ids of elements, keys and values if the table's Iceberg compatibility requires them. Returns the
    schema and the largest id."""
    required = any(version > 1 for version in TableProperties(configuration).iceberg_compat)
    return iceberg.assign_nested(table, last) if required else (table, last)


def _with_type_changes(
    before: Definition, table: Schema, configuration: Mapping[str, str], upcasts: bool
) -> Schema:
    """Records widened types in the metadata of fields (`delta.typeChanges`), if the table has type widening.
    Without it, types only change if `upcasts` is True: each change is one that `widening.is_upcast` allows.
    InvalidArgumentError is raised for another change, and if an expression uses the column."""
    widened = widening.recorded(before.schema, table)
    is_recorded = TableProperties(configuration).type_widening
    changed = (
        [path for path, item in walk(widened) if item.metadata != table.find(path)[1].metadata]
        if widened != table
        else []
    )
    for path in changed:
        item = table.find(path)[1]
        old = before.schema.find(path)[1]
        if "delta.generationExpression" in item.metadata:
            raise dependents.type_is_fixed("a generated", path, old.type, item.type)
        if "delta.identity.start" in item.metadata:
            raise dependents.type_is_fixed("an identity", path, old.type, item.type)
        if not is_recorded and not upcasts:
            error = InvalidArgumentError(
                "a column's type can only change where type widening is on",
                where=path_text(path),
                found=f"{type_name(old.type)} to {type_name(item.type)}",
                expected=f"alter.set_properties({{'{widening.ENABLED}': 'true'}}) first",
            )
            raise error.with_values(before=type_name(old.type), after=type_name(item.type))
        values = _widened_type(path, item, widened.find(path)[1])
        dependents.check_unused(before.schema, before.metadata, path, widened=values)
    return widened if is_recorded else table


def _widened_type(path: tuple[str, ...], field: Field, recorded: Field) -> dict[str, str]:
    """Returns the values of an error about a field that gets a wider type: the path of the type, which may
    be within arrays and maps of the field (`a.element`), and its old and its new type. `recorded`: the field
    with the changes of its type."""
    change = recorded.metadata[widening.CHANGES][len(field.metadata.get(widening.CHANGES, ()))]
    inner = change["fieldPath"].split(".") if "fieldPath" in change else ()
    return {
        "column": path_text((*path, *inner)),
        "before": change["fromType"],
        "after": change["toType"],
        "expected": f"rows with the type {change['fromType']}",
    }


def _carry_ids(mapped: Schema, schema: Schema) -> Schema:
    """Adds the ids of `mapped` to the fields of `schema` with equal paths. Used if the schema changes
    together with the mode of column mapping."""
    if {path for path, _ in walk(mapped)} - {path for path, _ in walk(schema)}:
        raise InvalidArgumentError(
            "columns cannot be dropped or renamed in the change that turns column mapping on"
        )
    return merge_schemas(mapped, schema)


def _added_features(
    protocol: Protocol,
    before: Definition,
    after: Definition,
    asked: RequestedProperties,
    features: Iterable[str],
    *,
    replaces: bool,
) -> set[str]:
    """Returns the features that a change needs or names, and raises the errors about them. `replaces`: as
    `replace_schema` of `evolve`."""
    verb = "CREATE" if replaces else "ALTER"
    named = _named(asked, features, verb)
    used = _newly_used(protocol, before, after, asked)
    needed = without_previewed(used, supported(protocol) | named) | named
    _check_clustering(after.metadata, needed, protocol if replaces else None)
    check_addable(protocol, needed, named, verb)
    return needed


def _named(asked: RequestedProperties, features: Iterable[str], verb: str) -> set[str]:
    """Returns the features that properties and the command name. InvalidArgumentError is raised for
    clustering among the properties: only a table with clustering columns gets it. `verb`: of the statement
    that delta-spark's condition names."""
    named = spelled(asked.features)
    if clustering.FEATURE in named:
        raise InvalidArgumentError(
            f"[DELTA_{verb}_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED] a property cannot add the feature"
            " of clustered tables",
            found=f"delta.feature.{clustering.FEATURE}",
            expected="CLUSTER BY",
        )
    return named | set(features)


def _newly_used(
    protocol: Protocol, before: Definition, after: Definition, asked: RequestedProperties
) -> set[str]:
    """Returns the features that the change brings into use: those that the protocol lacks, and those that
    this release cannot honour. A feature that the table used before without listing it counts only if one of
    its properties is set now."""
    set_now = {REGISTRY[item].feature for item in asked.stored if item in REGISTRY}
    used = in_use(after)
    return {item for item in used - supported(protocol) if item not in in_use(before) or item in set_now} | {
        item for item in used - in_use(before) if not FEATURES[item].honoured
    }


def _check_types(schema: Schema, known: Schema | None = None) -> None:
    """Raises an error for types that a table cannot store. `known`: the schema of an existing table."""
    check_void(schema, known)
    for path, item in walk(schema):
        types = primitive_types(item.type)
        if (shown := next((each for each in types if isinstance(each, ResultType)), None)) is not None:
            message, where = f"the type {str(shown)!r} is not supported", path_text(path)
            raise UnsupportedFeatureError(
                message, where=where, found=repr(str(shown)), expected="another type"
            ).with_values(
                unsupported=tuple(result_types(schema)), column=path[0], column_type=type_name(item.type)
            )


def _check_combination(
    definition: Definition, properties: Mapping[str, object] | None, before: Definition | None = None
) -> None:
    """Raises InvalidArgumentError for deletion vectors together with symlink manifests or Iceberg
    compatibility below version 3, whose readers would not see them, and SchemaMismatchError for columns with
    the names of the change data feed or of hidden columns. `properties`: as the user passed them."""
    effective = definition.properties
    row_tracking.check_names(definition.schema, definition.metadata)
    if effective.change_data_feed:
        had_feed = before is not None and before.properties.change_data_feed
        # delta-spark applies the session's defaults before it compares the table with its former definition
        is_turned_on = is_given(properties, change_feed.PROPERTY) and not had_feed
        change_feed.check_names(definition.schema, is_turned_on=is_turned_on)
    if not effective.deletion_vectors:
        return
    if effective.symlink_manifests:
        raise InvalidArgumentError(
            "deletion vectors and symlink manifests exclude each other: readers of a manifest would see"
            " deleted rows",
            where="delta.enableDeletionVectors",
            found="delta.compatibility.symlinkFormatManifest.enabled = true",
        ).with_values(table=definition.metadata.id)
    if versions := [version for version in effective.iceberg_compat if version < 3]:
        raise InvalidArgumentError(
            "deletion vectors and Iceberg compatibility below version 3 exclude each other",
            where="delta.enableDeletionVectors",
            found=f"delta.enableIcebergCompatV{versions[0]} = true",
        ).with_values(version=versions[0])


def _check_clustering(metadata: Metadata, needed: Collection[str], replaced: Protocol | None = None) -> None:
    """Raises InvalidArgumentError for a partitioned table that gets clustering columns, and where delta-spark
    does for one that replaces a clustered table. `replaced`: the protocol of the replaced table."""
    if not metadata.partition_columns:
        return
    found = f"partitioned by {', '.join(metadata.partition_columns)}"
    if replaced is not None and clustering.FEATURE in supported(replaced) and refuses_as_delta_spark():
        raise InvalidArgumentError(
            "[DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE] a partitioned table cannot replace a"
            " clustered one",
            found=found,
            expected="CLUSTER BY, or DROP TABLE before",
        )
    if clustering.FEATURE in needed:
        raise InvalidArgumentError("a table is partitioned or clustered, not both", found=found)


def _check_stats_columns(definition: Definition, asked: RequestedProperties) -> None:
    """Raises InvalidArgumentError for a column of `delta.dataSkippingStatsColumns` that gets no statistics,
    and for one that is named twice. As in delta-spark, the type of a nested column does not matter."""
    if edits.STATS_COLUMNS not in asked.stored:
        return
    schema, leaves = definition.schema, list[str]()
    for name in TableProperties(asked.stored).data_skipping_stats_columns or ():
        try:
            path, field = schema.find(name)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                "no such column to collect statistics", found=error.found, expected=error.expected
            ).with_values(**error.values, table_schema=schema) from None
        column = path_text(path)
        if path[0] in definition.metadata.partition_columns:
            raise InvalidArgumentError("a partition column has no statistics", found=column)
        if isinstance(field.type, Struct):
            inner = (leaf for leaf, item in walk(field.type.fields) if clustering.is_ordered(item.type))
            leaves += [path_text((*path, *leaf)) for leaf in inner]
        elif clustering.is_ordered(field.type):
            leaves.append(column)
        elif len(path) == 1 and field.type != "variant":
            raise InvalidArgumentError(
                f"column {column}: no statistics of this type", found=type_name(field.type)
            ).with_values(column=column)
    if twice := sorted({leaf for leaf in leaves if leaves.count(leaf) > 1}):
        raise InvalidArgumentError("a column to collect statistics comes twice", found=", ".join(twice))
