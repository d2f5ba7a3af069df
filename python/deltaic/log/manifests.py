"""Writes symlink manifests: lists of the paths of a table's files, one for each partition, for engines that
cannot read Delta tables (Presto, Trino, Athena).

Like delta-spark's, they are in `_symlink_format_manifest/[name=value/...]manifest`, with one path on each
line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import UnsupportedFeatureError
from deltaic.log import references
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.features import column_mapping_mode
from deltaic.protocol.paths import NULL_FOLDER, escaped_in_folder, url_path
from deltaic.protocol.properties import TableProperties

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

FOLDER = "_symlink_format_manifest"
PROPERTY = "delta.compatibility.symlinkFormatManifest.enabled"
_VECTORS_EXIST = (
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
    ".EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION"
)
_AT_ONCE = 16
"""Number of manifests that are written at the same time."""


def are_kept(metadata: Metadata | None) -> bool:
    """True if each commit must update the manifests."""
    return metadata is not None and TableProperties(metadata.configuration).symlink_manifests


def check(protocol: Protocol, metadata: Metadata, with_vectors: int, *, by_each_commit: bool = False) -> None:
    """Raises UnsupportedFeatureError if readers of the manifests would see deleted rows, or columns under
    wrong names.
    `with_vectors`: number of files with a deletion vector. `by_each_commit`: True for manifests that each
    commit updates."""
    if with_vectors:
        tag = f"[{_VECTORS_EXIST}] " if by_each_commit else ""
        error = UnsupportedFeatureError(
            f"{tag}readers of a symlink manifest would see deleted rows",
            where=PROPERTY,
            found=f"{with_vectors} files with a deletion vector",
            expected="optimize.purge() first, and delta.enableDeletionVectors = false",
        )
        raise error.with_values(table=metadata.id)
    if (mode := column_mapping_mode(protocol, metadata)) != "none":
        raise UnsupportedFeatureError(
            "readers of a symlink manifest know columns by the names in the files",
            where=PROPERTY,
            found=f"delta.columnMapping.mode = {mode}",
            expected="a table without column mapping",
        )


def generate(snapshot: Snapshot) -> None:
    """Writes the manifests of all partitions, and deletes those of partitions without files."""
    check(snapshot.protocol, snapshot.metadata, snapshot.core.with_vectors[0])
    written = _write(snapshot, snapshot.files().adds)
    paths = snapshot.store.list_from(FOLDER, recursive=True)["path"]
    snapshot.store.delete(
        paths.filter(pc.invert(pc.is_in(paths, value_set=pa.array(written, pa.string())))).combine_chunks()
    )


def after_commit(snapshot: Snapshot, adds: pa.Table, removes: pa.Table, *, redefined: bool) -> None:
    """Updates the manifests after a commit with these actions. `redefined`: True if the commit changed the
    table's metadata; then all manifests are written."""
    columns = snapshot.metadata.partition_columns
    if redefined or not columns:
        if redefined or adds.num_rows or removes.num_rows:
            generate(snapshot)
        return
    physical = [physical_name(snapshot.schema.field(name)) for name in columns]
    touched = (
        pa.concat_tables([_partitions(actions, physical) for actions in (adds, removes)])
        .group_by(physical)
        .aggregate([])
    )
    if not touched.num_rows:
        return
    rows = [tuple(row[name] for name in physical) for row in touched.to_pylist()]
    predicate = _core.Predicate.from_json(json.dumps(_any_of(columns, rows)), snapshot.table_schema)
    written = set(_write(snapshot, snapshot.files(predicate, skipping=False).adds))
    empty = [path for row in rows if (path := _manifest(columns, row)) not in written]
    snapshot.store.delete(pa.array(empty, pa.string()))


def _any_of(columns: Sequence[str], rows: Iterable[tuple[str | None, ...]]) -> dict[str, object]:
    """Returns the predicate (for `_core.Predicate`) that a file is in one of the partitions."""

    def one(name: str, value: str | None) -> dict[str, object]:
        column = {"column": [name]}
        return {"op": "is_null", **column} if value is None else {"op": "=", **column, "literal": value}

    return {
        "op": "or",
        "args": [
            {"op": "and", "args": [one(*pair) for pair in zip(columns, row, strict=True)]} for row in rows
        ],
    }


def _partitions(actions: pa.Table, physical: Sequence[str]) -> pa.Table:
    """Returns the partition values of actions as string columns."""
    maps = actions["partitionValues"].chunks
    columns = [
        pa.chunked_array([pc.map_lookup(each, name, "first") for each in maps], pa.string())
        for name in physical
    ]
    return pa.table(
        [pc.if_else(pc.equal(column, ""), None, column) for column in columns], names=list(physical)
    )


def _write(snapshot: Snapshot, adds: pa.Table) -> list[str]:
    """Writes the manifests of these files. Returns the paths of the manifests."""
    columns = snapshot.metadata.partition_columns
    physical = [physical_name(snapshot.schema.field(name)) for name in columns]
    paths = _locations(references.data_files(adds, snapshot.location), snapshot.location)
    if not columns:
        texts = pc.binary_join(pa.array([paths.to_pylist()], pa.list_(pa.string())), "\n")
        manifests = [(_manifest((), ()), texts[0].as_py())]
    else:
        table = _partitions(adds, physical).append_column("", paths)
        groups = table.group_by(physical).aggregate([("", "list")])
        texts = pc.binary_join(groups["_list"].combine_chunks(), "\n")
        values = (groups[name].to_pylist() for name in physical)
        manifests = [
            (_manifest(columns, row), text) for *row, text in zip(*values, texts.to_pylist(), strict=True)
        ]

    def put(manifest: tuple[str, str | None]) -> None:
        path, text = manifest
        snapshot.store.put(path, f"{text}\n".encode() if text else b"")

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(put, manifests))
    except RuntimeError:
        # the interpreter is shutting down while a compaction runs in the background, and pools accept no work
        for manifest in manifests:
            put(manifest)
    return [path for path, _ in manifests]


def _manifest(columns: Sequence[str], values: Sequence[str | None]) -> str:
    folders = (
        f"{escaped_in_folder(name)}={NULL_FOLDER if value is None else escaped_in_folder(value)}/"
        for name, value in zip(columns, values, strict=True)
    )
    return f"{FOLDER}/{''.join(folders)}manifest"


def _locations(paths: pa.Array, location: str) -> pa.Array:
    """Converts paths to URLs for the readers of manifests. Relative paths follow the table's location, with
    `file:` on a local disk: `file:/data/orders/x.parquet`."""
    root = location if "://" in location else f"file:{url_path(location)}"
    inside = pc.is_in(paths, value_set=references.inside(paths))
    return pc.if_else(inside, pc.binary_join_element_wise(root.rstrip("/"), paths, "/"), paths)
