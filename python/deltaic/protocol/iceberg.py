"""Iceberg compatibility: checks that Iceberg metadata can describe a table, and sets the ids that its columns
need.

Source: PROTOCOL.md, "Iceberg Compatibility V1" and "V2", and its change "IcebergCompatV3"; delta-spark's
UniForm. Iceberg metadata can describe a table with one of the features; it is written if the property
`delta.universalFormat.enabledFormats` contains `iceberg`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol import row_tracking
from deltaic.protocol.column_mapping import ID, MODE, NESTED_IDS, map_fields, physical_name
from deltaic.protocol.features import Definition, column_mapping_mode, supported
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, path_text, type_name, walk

if TYPE_CHECKING:
    from deltaic.protocol.actions import Metadata, Protocol

FORMATS = "delta.universalFormat.enabledFormats"
VECTORS = "delta.enableDeletionVectors"
HIDDEN_IDS = (2147483540, 2147483539)
"""Field ids of the hidden columns with row ids and row commit versions. Version 3 requires them; in earlier
versions, readers fail on files in which only some columns have ids."""

_PLAIN_TYPES = frozenset(
    {
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "boolean",
        "timestamp",
        "timestamp_ntz",
        "date",
    }
)
_WIDER = {
    "byte": ("short", "integer", "long"),
    "short": ("integer", "long"),
    "integer": ("long",),
    "float": ("double",),
}
_LITERAL = re.compile(
    r"(?i)\s*(?:null|true|false|[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?(?:[lsydf]|bd)?"
    r"|(?:(?:date|timestamp|timestamp_ntz|timestamp_ltz|x)\s*)?"
    r"(?:'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"))\s*"
)
_REORG = "REORG TABLE ... APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {}))"


def enabling(version: int) -> str:
    """Returns the property that turns on a version of Iceberg compatibility."""
    return f"delta.enableIcebergCompatV{version}"


def active_version(protocol: Protocol, metadata: Metadata | Definition) -> int | None:
    """Returns the table's version of Iceberg compatibility: its property is true and the protocol has its
    feature. None if there is none."""
    definition = metadata if isinstance(metadata, Definition) else Definition(metadata)
    names = supported(protocol)
    return next(
        (each for each in definition.properties.iceberg_compat if f"icebergCompatV{each}" in names), None
    )


def is_described(protocol: Protocol, metadata: Metadata | None) -> bool:
    """True if Iceberg metadata is written after each commit."""
    if metadata is None or "iceberg" not in TableProperties(metadata.configuration).universal_formats:
        return False
    return active_version(protocol, metadata) is not None


def completed(configuration: Mapping[str, str], before: Mapping[str, str] | None) -> dict[str, str]:
    """Adds the properties that Iceberg compatibility implies, as delta-spark does.

    `before`: the table's current configuration; None for a new or replaced table. Only there column mapping
    (and for version 3 row tracking) is turned on, unless the configuration sets it. If compatibility is
    turned off, `delta.universalFormat.enabledFormats` is removed."""
    done = dict(configuration)
    versions = TableProperties(done).iceberg_compat
    if before is None and versions:
        done.setdefault(MODE, "name")
        if 3 in versions:
            done.setdefault(row_tracking.ENABLED, "true")
    if before is not None and not versions and TableProperties(before).iceberg_compat:
        done.pop(FORMATS, None)
    return done


def check(protocol: Protocol, definition: Definition, before: Definition | None = None) -> None:
    """Raises InvalidArgumentError or UnsupportedFeatureError if a definition breaks a rule of its version of
    Iceberg compatibility. `before`: the definition that it replaces."""
    version = active_version(protocol, definition)
    versions = definition.properties.iceberg_compat
    if "iceberg" in definition.properties.universal_formats and version is None:
        raise InvalidArgumentError(
            "Iceberg metadata needs a version of Iceberg compatibility",
            where=FORMATS,
            found="none that is on",
            expected=f"{enabling(2)} = true, or {enabling(3)} = true",
        )
    if version is None:
        return
    if len(versions) > 1:
        raise InvalidArgumentError(
            "versions of Iceberg compatibility exclude each other",
            found=" and ".join(enabling(each) for each in versions),
            expected="one of them",
        ).with_values(version=versions[0])
    where = f"{enabling(version)} = true"
    if (mode := column_mapping_mode(protocol, definition)) == "none":
        raise InvalidArgumentError(
            "Iceberg compatibility needs column mapping",
            where=where,
            found=f"{MODE} = {mode}",
            expected="'name' or 'id'",
        ).with_values(version=version, key=MODE, required="name", actual="NoMapping")
    if version == 3 and not row_tracking.is_enabled(protocol, definition.metadata):
        raise InvalidArgumentError(
            "Iceberg compatibility version 3 needs row tracking",
            where=where,
            expected=f"{row_tracking.ENABLED} = true",
        ).with_values(version=version, key=row_tracking.ENABLED, required="true", actual="false")
    if version < 3 and definition.properties.deletion_vectors and "deletionVectors" in supported(protocol):
        raise InvalidArgumentError(
            "deletion vectors and Iceberg compatibility below version 3 exclude each other",
            where=VECTORS,
            found=where,
        ).with_values(version=version)
    if version == 3 and definition.properties.inline_deletion_vectors:
        raise InvalidArgumentError(
            "Iceberg metadata cannot refer to deletion vectors in the log",
            where="deltaic.inlineDeletionVectors",
            found=where,
        )
    _check_schema(definition, version)
    if before is not None:
        _check_partitioning(definition, before, where)


def _check_schema(definition: Definition, version: int) -> None:
    for path, item in walk(definition.schema):
        place = f"column {path_text(path)}"
        if (unfit := _unfit(item.type, version)) is not None:
            raise UnsupportedFeatureError(
                f"Iceberg compatibility version {version} does not allow the column's type",
                where=place,
                found=unfit,
            ).with_values(version=version, type=unfit.partition("<")[0], schema=definition.schema)
        for change in item.metadata.get("delta.typeChanges", []):
            if not _is_promotion(change.get("fromType"), change.get("toType")):
                raise UnsupportedFeatureError(
                    "the column's type was widened in a way that Iceberg does not have",
                    where=place,
                    found=f"{change.get('fromType')} to {change.get('toType')}",
                    expected="a wider whole number, float to double, or a decimal of the same scale",
                )
        default = item.metadata.get("CURRENT_DEFAULT")
        if version == 3 and isinstance(default, str) and not _LITERAL.fullmatch(default):
            raise UnsupportedFeatureError(
                "Iceberg compatibility version 3 allows defaults that are literals alone",
                where=place,
                found=default,
                expected="a literal",
            )
    for name in definition.metadata.partition_columns:
        data_type = definition.schema.field(name).type
        if not isinstance(data_type, str) or not _is_plain(data_type):
            raise UnsupportedFeatureError(
                "Iceberg cannot partition by the column's type",
                where=f"column {name}",
                found=type_name(data_type),
            )


def _check_partitioning(definition: Definition, before: Definition, where: str) -> None:
    old, new = before.metadata.partition_columns, definition.metadata.partition_columns
    if old and tuple(old) != tuple(new) and _ids(before, old) != _ids(definition, new):
        raise InvalidArgumentError(
            "a table with Iceberg compatibility keeps the names of its partition columns",
            where=where,
            found=", ".join(new) or "no partition columns",
            expected=", ".join(old),
        )


def _ids(definition: Definition, names: Any) -> list[Any]:
    return [definition.schema.field(name).metadata.get(ID, name) for name in names]


def _unfit(data_type: DataType, version: int) -> str | None:
    """Returns the part of a type that the version does not allow, or None. Fields of structs are checked
    separately."""
    if isinstance(data_type, Struct):
        return None
    if isinstance(data_type, (Array, Map)):
        if version == 1:
            return type_name(data_type)
        parts = (data_type.element,) if isinstance(data_type, Array) else (data_type.key, data_type.value)
        return next((unfit for part in parts if (unfit := _unfit(part, version)) is not None), None)
    if _is_plain(data_type) or (version == 3 and data_type == "variant"):
        return None
    return type_name(data_type)


def _is_plain(name: str) -> bool:
    return name in _PLAIN_TYPES or name.startswith(("decimal", "char(", "varchar("))


def _is_promotion(before: Any, after: Any) -> bool:
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    old, new = (re.fullmatch(r"decimal\(([0-9]+),\s*([0-9]+)\)", each) for each in (before, after))
    if old and new:
        return old[2] == new[2] and int(old[1]) <= int(new[1])
    return after in _WIDER.get(before, ())


# --- ids of elements, keys and values


def assign_nested(schema: Schema, max_id: int) -> tuple[Schema, int]:
    """Adds an id to every element, key and value without one, in the metadata of the field that contains it:
    `{"col-1.element": 7}`. Returns the schema and the largest id."""
    last = max_id

    def change(item: Field) -> Field:
        nonlocal last
        known = dict(item.metadata.get(NESTED_IDS, {}))
        last = max([last, *known.values()])
        for path in _nested_paths(item.type, physical_name(item)):
            if path not in known:
                last += 1
                known[path] = last
        return item.with_(metadata={**item.metadata, NESTED_IDS: known}) if known else item

    last = max(
        [last, *(each for _, item in walk(schema) for each in item.metadata.get(NESTED_IDS, {}).values())]
    )
    mapped = map_fields(Struct(schema), change)
    assert isinstance(mapped, Struct)
    return Schema(mapped.fields), last


def _nested_paths(data_type: DataType, above: str) -> list[str]:
    if isinstance(data_type, Array):
        return [f"{above}.element", *_nested_paths(data_type.element, f"{above}.element")]
    if isinstance(data_type, Map):
        sides = ((f"{above}.key", data_type.key), (f"{above}.value", data_type.value))
        return [path for name, part in sides for path in (name, *_nested_paths(part, name))]
    return []


def has_nested(schema: Schema) -> bool:
    """True if a column or a field is an array or a map."""
    return any(isinstance(item.type, (Array, Map)) for _, item in walk(schema))


# --- existing files when compatibility is turned on


def check_files(
    protocol: Protocol,
    definition: Definition,
    before: tuple[Protocol, Definition],
    *,
    files: int,
    with_vectors: int,
    counted: bool,
) -> None:
    """Raises UnsupportedFeatureError if a change turns Iceberg compatibility on and existing files would have
    to be written again.

    `files`: number of files that the commit keeps. `with_vectors`: number of those with deletion vectors.
    `counted`: True if the statistics of all files have the number of rows."""
    version, former = active_version(protocol, definition), active_version(*before)
    if version is None or version == former or not files:
        return
    old_mode = column_mapping_mode(*before)
    reason = None
    if former is not None and version > former:
        reason = f"files written for version {former}"
    elif former == 3:
        raise UnsupportedFeatureError(
            "Iceberg compatibility version 3 is not replaced by an earlier one",
            found=f"{enabling(version)} = true",
        )
    elif version < 3 and with_vectors:
        reason = f"{with_vectors} files with a deletion vector"
    elif not counted:
        reason = "files whose statistics do not say how many rows they have"
    elif former is None and version >= 2 and old_mode != "none" and has_nested(definition.schema):
        reason = "files without ids of elements, keys and values"
    elif former is None and version == 1 and definition.metadata.partition_columns:
        reason = "files without their partition columns"
    elif former is None and row_tracking.is_enabled(before[0], before[1].metadata):
        reason = "files whose columns of row ids may have no ids"
    if reason is not None:
        raise UnsupportedFeatureError(
            "files of the table must be written again for Iceberg compatibility",
            where=f"{enabling(version)} = true",
            found=reason,
            expected=_REORG.format(version),
        )
