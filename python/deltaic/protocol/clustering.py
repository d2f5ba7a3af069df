"""Clustered tables: the metadata domain `delta.clustering` (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.protocol.column_mapping import PHYSICAL_NAME
from deltaic.protocol.schema import Schema, Struct, path_text, walk

if TYPE_CHECKING:
    from deltaic.protocol.features import Definition


def clustering_columns(configuration: str) -> list[tuple[str, ...]]:
    """Physical paths of the clustering columns. delta-spark writes a list of names for each column, PROTOCOL.md's example a single name."""
    try:
        columns = json.loads(configuration)["clusteringColumns"]
        paths = [(column,) if isinstance(column, str) else tuple(column) for column in columns]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ProtocolError("the metadata domain is not valid", where="delta.clustering", found=repr(configuration)[:200]) from None
    if not all(path and all(isinstance(part, str) for part in path) for path in paths):
        raise ProtocolError("the metadata domain is not valid", where="delta.clustering", found=repr(configuration)[:200])
    return paths


def columns_without_statistics(definition: Definition, configuration: str) -> list[str]:
    """Clustering columns (physical, dotted) that new files get no statistics of, by the table's properties."""
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
        wanted = [_resolved(definition.schema, name) for name in names]
        indexed = {physical[path] for path in leaves if any(path[: len(prefix)] == prefix for prefix in wanted if prefix)}
    else:
        count = definition.properties.data_skipping_num_indexed_cols
        indexed = {physical[path] for path in (leaves if count < 0 else leaves[:count])}
    return [path_text(path) for path in clustering_columns(configuration) if path not in indexed]


def _resolved(schema: Schema, name: str) -> tuple[str, ...]:
    try:
        return schema.find(name)[0]
    except InvalidArgumentError:
        return ()  # a column that is gone has no statistics


def _physical(schema: Schema, path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(schema.find(path[: end + 1])[1].metadata.get(PHYSICAL_NAME, path[end])) for end in range(len(path)))
