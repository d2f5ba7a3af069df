"""Clustered tables: the metadata domain `delta.clustering` (PROTOCOL.md, "Clustered Table").

The domain has a list of physical names for each column, as delta-spark writes it:
`{"clusteringColumns":[["id"],["address","city"]]}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.protocol.column_mapping import PHYSICAL_NAME, physical_name
from deltaic.protocol.ddl import format_type
from deltaic.protocol.schema import DataType, Schema, Struct, decimal_parts, path_text, type_name, walk

if TYPE_CHECKING:
    from deltaic.protocol.features import Definition

FEATURE = "clustering"
DOMAIN = "delta.clustering"
COLUMNS = "clusteringColumns"
# Maximum number of clustering columns of a table; more are an InvalidArgumentError.
MAX_COLUMNS = 4
# Types whose minimum and maximum are in the statistics of a file.
_ORDERED = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}
)


def is_ordered(data_type: DataType) -> bool:
    """True for a type whose values have an order, so that statistics hold their minimum and maximum."""
    return isinstance(data_type, str) and (data_type in _ORDERED or decimal_parts(data_type) is not None)


def configuration_of(definition: Definition, names: Iterable[str]) -> str:
    """Returns the domain's configuration for clustering by columns. `names`: logical names, with dots;
    without names the table is no longer clustered.

    InvalidArgumentError is raised for an unknown or repeated column, more than four columns, a type without
    order, a column without statistics, and a partitioned table.
    """
    paths: list[tuple[str, ...]] = []
    for name in names:
        try:
            path, item = definition.schema.find(name)
        except InvalidArgumentError as error:
            unknown = InvalidArgumentError(
                "no such clustering column", found=error.found, expected=error.expected
            )
            raise unknown.with_values(**error.values, table_schema=definition.schema) from None
        if path in paths:
            raise InvalidArgumentError("a clustering column comes twice", found=path_text(path))
        if not is_ordered(item.type):
            where = f"column {path_text(path)}"
            unordered = InvalidArgumentError(
                "no statistics to cluster by",
                where=where,
                found=type_name(item.type),
                expected="numbers, times, text",
            )
            raise unordered.with_values(columns=f"{path_text(path)} : {format_type(item.type).upper()}")
        paths.append(path)
    if paths and definition.metadata.partition_columns:
        raise InvalidArgumentError(
            "a table is partitioned or clustered, not both",
            found=f"partitioned by {', '.join(definition.metadata.partition_columns)}",
        )
    if len(paths) > MAX_COLUMNS:
        raise InvalidArgumentError(f"a table is clustered by at most {MAX_COLUMNS} columns", found=len(paths))
    columns = [list(_physical(definition.schema, path)) for path in paths]
    text = json.dumps({COLUMNS: columns}, ensure_ascii=False, separators=(",", ":"))
    if bare := columns_without_statistics(definition, text):
        raise InvalidArgumentError(
            "clustering by a column without statistics skips no file",
            found=", ".join(bare),
            expected="columns within delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns",
        )
    return text


def logical_columns(schema: Schema, configuration: str | None) -> list[tuple[str, ...]]:
    """Returns the logical paths of the clustering columns. `configuration`: None if the table has no such
    domain. A column that is not in the schema is a ProtocolError."""
    return [
        logical_path(schema, path) for path in (clustering_columns(configuration) if configuration else ())
    ]


def logical_path(schema: Schema, physical: Sequence[str]) -> tuple[str, ...]:
    """Converts a path of physical names to logical names."""
    fields, path = tuple(schema), []
    for part in physical:
        field = next((item for item in fields if physical_name(item) == part), None)
        if field is None:
            raise ProtocolError(
                "the schema has no such clustering column", where=DOMAIN, found=path_text(list(physical))
            )
        path.append(field.name)
        fields = field.type.fields if isinstance(field.type, Struct) else ()
    return tuple(path)


def clustering_columns(configuration: str) -> list[tuple[str, ...]]:
    """Returns the physical paths of the clustering columns. delta-spark writes a list of names for each
    column; PROTOCOL.md's example has a single name, which is read, too."""
    try:
        columns = json.loads(configuration)[COLUMNS]
        paths = [(column,) if isinstance(column, str) else tuple(column) for column in columns]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ProtocolError(
            "the metadata domain is not valid", where="delta.clustering", found=repr(configuration)[:200]
        ) from None
    if not all(path and all(isinstance(part, str) for part in path) for path in paths):
        raise ProtocolError(
            "the metadata domain is not valid", where="delta.clustering", found=repr(configuration)[:200]
        )
    return paths


def columns_without_statistics(definition: Definition, configuration: str) -> list[str]:
    """Returns the clustering columns (logical names, with dots) of which new files get no statistics, because
    of the table's properties."""
    leaves = [
        path
        for path, item in walk(definition.schema)
        if not isinstance(item.type, Struct) and not {"element", "key", "value"} & set(path[1:])
    ]
    partitions = {name.lower() for name in definition.metadata.partition_columns}
    leaves = [path for path in leaves if path[0].lower() not in partitions]
    physical = {path: _physical(definition.schema, path) for path in leaves}
    names = definition.properties.data_skipping_stats_columns
    if names is not None:
        prefixes = [_resolved(definition.schema, name) for name in names]
        indexed = {
            physical[path]
            for path in leaves
            if any(path[: len(prefix)] == prefix for prefix in prefixes if prefix)
        }
    else:
        count = definition.properties.data_skipping_num_indexed_cols
        indexed = {physical[path] for path in (leaves if count < 0 else leaves[:count])}
    logical = {name: path for path, name in physical.items()}
    return [
        path_text(logical.get(path, path))
        for path in clustering_columns(configuration)
        if path not in indexed
    ]


def check_kept(before: Definition | None, old: str | None, after: Definition, new: str | None) -> None:
    """Raises InvalidArgumentError if a change of the definition or of the clustering leaves a clustering
    column without statistics. `old`, `new`: the domain's configuration before and after; None: not
    clustered."""
    missing = columns_without_statistics(after, new) if new is not None else []
    known = (
        columns_without_statistics(before, old) if before is not None and old is not None and missing else []
    )
    if gone := [name for name in missing if name not in known]:
        raise InvalidArgumentError(
            "the table is clustered by a column that would have no statistics",
            where=DOMAIN,
            found=", ".join(gone),
            expected=(
                "clustering columns within delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns"
            ),
        )


def _resolved(schema: Schema, name: str) -> tuple[str, ...]:
    try:
        return schema.find(name)[0]
    except InvalidArgumentError:
        return ()  # a dropped column has no statistics


def _physical(schema: Schema, path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        str(schema.find(path[: end + 1])[1].metadata.get(PHYSICAL_NAME, path[end]))
        for end in range(len(path))
    )
