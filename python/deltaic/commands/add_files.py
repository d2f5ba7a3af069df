"""Adds Parquet files that another engine wrote to the table's folder, by `add` actions; no row is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands import change_files, delete
from deltaic.commands.constraints import check_files
from deltaic.commands.data_files import snapshot_target
from deltaic.commands.iceberg_footers import check_field_ids
from deltaic.commands.marking import staging, total_size
from deltaic.errors import InvalidArgumentError, InvalidTypeError, items_of
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.options import CommitOptions
from deltaic.planning.literals import value_text
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.partitioning import from_directory
from deltaic.protocol.paths import decoded_path, encoded_path
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

Mode = Literal["append", "overwrite"]


@dataclass(frozen=True)
class AddFile:
    """A Parquet file in the table's folder, for `DeltaTable.add_files`. With it, neither the size nor the
    statistics of the file must be read.

    `path`: relative to the table, decoded (`a b.parquet`, not `a%20b.parquet`). `size`: bytes.
    `partition_values`: a dict from the name of a partition column to its value; default: none.
    `modification_time`: ms since 1970; None (the default) takes the time from the store.
    `stats`: statistics as in PROTOCOL.md, a dict or JSON text; None (the default) reads them from the footer.

    >>> new = deltaic.AddFile("new.parquet", size=1042, stats={"numRecords": 3})
    """

    path: str
    size: int = field(kw_only=True)
    partition_values: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    modification_time: int | None = field(default=None, kw_only=True)
    stats: Mapping[str, Any] | str | None = field(default=None, kw_only=True)


def add_files(
    snapshot: Snapshot,
    engine: Engine,
    files: Iterable[str | AddFile],
    *,
    mode: Mode = "append",
    where: str | None = None,
    remove: Iterable[str] = (),
    check_rows: bool = True,
    commit: CommitOptions | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Commits files without changing them.

    `files`: for a path, size and statistics are read from the file, and partition values from its folders
        (`day=2026-01-01/x.parquet`).
    `mode`: "overwrite" replaces all files, or the rows that match `where`.
    `remove`: paths of live files to remove in the same commit.
    `check_rows`: True to read the rows and check them by the table's constraints.

    InvalidArgumentError is raised for a file that is outside the table, named twice or missing, and for
    missing partition values; SchemaMismatchError for columns that do not fit (with UniForm, also for their
    field ids); ConstraintViolationError for rows that violate a constraint.
    """
    if mode not in ("append", "overwrite"):
        raise InvalidArgumentError(
            "unknown mode of add_files", found=repr(mode), expected="'append' or 'overwrite'"
        )
    if where is not None and mode != "overwrite":
        raise InvalidArgumentError("where= requires mode='overwrite'", found=f"mode={mode!r}")
    if already_committed(snapshot, commit):
        return snapshot, {}
    new = _actions(
        snapshot,
        [file if isinstance(file, AddFile) else _stored(snapshot, file) for file in items_of(files, "files")],
    )
    if snapshot.properties.iceberg_compat:
        paths = list(map(decoded_path, new["path"].to_pylist()))
        check_field_ids(snapshot.store, snapshot.schema, zip(paths, new["size"].to_pylist(), strict=True))
    if check_rows:
        check_files(snapshot, engine, new)
    gone = _named(snapshot, list(items_of(remove, "remove")))
    parameters: dict[str, Any] = {
        "mode": "Append" if mode == "append" else "Overwrite",
        "partitionBy": list(snapshot.metadata.partition_columns),
    }
    if where is not None:
        parameters["predicate"] = where
    transaction = Transaction(snapshot, "WRITE", parameters, commit)
    metrics: dict[str, int] = {"num_files": new.num_rows, "num_output_bytes": total_size(new)}
    deleted: delete.Metrics = dict
    inserts: dict[str, int] = {}
    with staging(transaction):
        if where is not None:
            deleted = delete.stage(transaction, snapshot, engine, where, None) or dict
            inserts = change_files.write_inserts(
                transaction, engine, snapshot.protocol, snapshot.metadata, new, deleted()
            )
        elif mode == "overwrite":
            gone = snapshot.files().adds
            transaction.read()
        if gone.num_rows:
            if where is not None:
                raise InvalidArgumentError("remove= and where= cannot be combined", found=repr(where))
            transaction.remove(_core.removes_of(gone, transaction.clock()))
            metrics.update({"num_removed_files": gone.num_rows, "num_removed_bytes": total_size(gone)})
        transaction.add(new)

    def done() -> dict[str, int]:
        return {**metrics, **deleted(), **inserts}

    if not new.num_rows and not transaction.removes_files:
        return snapshot, done()
    return transaction.commit(done), done()


def _stored(snapshot: Snapshot, path: str) -> AddFile:
    if not isinstance(path, str):
        raise InvalidTypeError("files must be paths or AddFile objects", found=type(path).__name__)
    known = snapshot.store.head(path)
    if known is None:
        raise InvalidArgumentError(
            "no such file in the table's folder", where=snapshot.location, found=repr(path)
        )
    return AddFile(path, size=known[0], partition_values=from_directory(path), modification_time=known[1])


def _actions(snapshot: Snapshot, files: list[AddFile]) -> pa.Table:
    """Returns the `add` actions of files. Missing statistics are read from the footers."""
    empty = _core.empty_adds()
    if not files:
        return empty
    seen: set[str] = set()
    rows = []
    for file in files:
        if file.path in seen:
            raise InvalidArgumentError("a file is named twice", found=repr(file.path))
        seen.add(file.path)
        rows.append(_action(snapshot, file))
    table = pa.Table.from_pylist(rows, empty.schema)
    bare = pc.is_null(table["stats"])
    without, having = table.filter(bare), table.filter(pc.invert(bare))
    if not without.num_rows:
        return having
    target = snapshot_target(snapshot)
    return pa.concat_tables(
        [having, _core.file_statistics(snapshot.store, snapshot.table_schema, without, target.options_json)]
    )


def _action(snapshot: Snapshot, file: AddFile) -> dict[str, Any]:
    if file.path.startswith("/") or "://" in file.path or ".." in file.path.split("/"):
        raise InvalidArgumentError(
            "a file to add must lie in the table's folder", found=repr(file.path), expected="a relative path"
        )
    if isinstance(file.size, bool) or not isinstance(file.size, int) or file.size < 0:
        raise InvalidTypeError(
            "AddFile.size has the wrong type", where=file.path, found=repr(file.size), expected="bytes"
        )
    modified = file.modification_time
    if modified is None:
        known = snapshot.store.head(file.path)
        if known is None:
            raise InvalidArgumentError(
                "no such file in the table's folder", where=snapshot.location, found=repr(file.path)
            )
        modified = known[1]
    stats = (
        file.stats
        if file.stats is None or isinstance(file.stats, str)
        else json.dumps(dict(file.stats), default=str)
    )
    return {
        "path": encoded_path(file.path),
        "partitionValues": list(_partition_values(snapshot, file).items()),
        "size": file.size,
        "modificationTime": modified,
        "dataChange": True,
        "stats": stats,
    }


def _partition_values(snapshot: Snapshot, file: AddFile) -> dict[str, str | None]:
    """Returns the partition values of a file for the log: text by physical name."""
    by_name = {name.lower(): value for name, value in file.partition_values.items()}
    columns = snapshot.metadata.partition_columns
    if unknown := sorted(set(by_name) - {name.lower() for name in columns}):
        raise InvalidArgumentError(
            "not a partition column",
            where=file.path,
            found=", ".join(unknown),
            expected=", ".join(columns) or "none",
        )
    values: dict[str, str | None] = {}
    for name in columns:
        if name.lower() not in by_name:
            raise InvalidArgumentError(
                "a partition value is missing", where=file.path, expected=f"a value of {name}"
            )
        values[physical_name(snapshot.schema.field(name))] = _text(by_name[name.lower()], file.path)
    return values


def _text(value: Any, path: str) -> str | None:
    """Serializes a partition value by `value_text`; an empty text is null. Raises InvalidTypeError for a
    value of another type than those of partition columns."""
    if value is None or value == "":
        return None
    if isinstance(value, (bool, str, int, float, Decimal, date)):  # a datetime is a date
        return value_text(value)
    raise InvalidTypeError(
        "a partition value has the wrong type",
        where=path,
        found=repr(value),
        expected="text, a number, a bool, a date or a datetime",
    )


def _named(snapshot: Snapshot, paths: list[str]) -> pa.Table:
    """Returns the live files with these paths. A path that is no live file is an InvalidArgumentError."""
    adds = snapshot.files().adds
    if not paths:
        return adds.slice(0, 0)
    names = references.data_files(adds, snapshot.location)
    removed = pa.array(paths, pa.string())
    if missing := removed.filter(pc.invert(pc.is_in(removed, value_set=names))).to_pylist():
        raise InvalidArgumentError(
            "not a live file of the table", where=snapshot.location, found=repr(missing[0])
        )
    return adds.filter(pc.is_in(names, value_set=removed))
