"""Taking in Parquet files that another engine wrote into the table's folder: add actions without writing a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote

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
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.partitioning import from_directory
from deltaic.transaction.transaction import Transaction, already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine

Mode = Literal["append", "overwrite"]


@dataclass(frozen=True)
class AddFile:
    """A Parquet file in the table's folder. `path`: relative to the table, decoded. `size`: bytes. `partition_values`: by the columns'
    names. `modification_time`: ms since 1970, None for the store's. `stats`: PROTOCOL.md's statistics as a dict or JSON text; without them
    they come from the footer."""

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
    """Commits the files as they are. Of a path alone, size and statistics come from the file and partition values from its folders
    (`day=2026-01-01/x.parquet`). `mode="overwrite"` replaces all files, or the rows that match `where`; `remove`: paths that go besides.
    `check_rows`: the rows are read and checked where the table has rules for them.

    Raises InvalidArgumentError (a file outside the table, named twice or not there; partition values that are missing),
    SchemaMismatchError where a file's columns do not fit (with UniForm, also their field ids), ConstraintViolationError.
    """
    if mode not in ("append", "overwrite"):
        raise InvalidArgumentError("unknown mode of add_files", found=repr(mode), expected="'append' or 'overwrite'")
    if where is not None and mode != "overwrite":
        raise InvalidArgumentError("where= goes with mode='overwrite'", found=f"mode={mode!r}")
    if already_committed(snapshot, commit):
        return snapshot, {}
    new = _actions(snapshot, [file if isinstance(file, AddFile) else _found(snapshot, file) for file in items_of(files, "files")])
    if snapshot.properties.iceberg_compat:
        paths = [unquote(path) for path in new["path"].to_pylist()]
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
    room: delete.Metrics = dict
    inserts: dict[str, int] = {}
    with staging(transaction):
        if where is not None:
            room = delete.stage(transaction, snapshot, engine, where, None) or dict
            inserts = change_files.write_inserts(transaction, engine, snapshot.protocol, snapshot.metadata, new, room())
        elif mode == "overwrite":
            gone = snapshot.files().adds
            transaction.read()
        if gone.num_rows:
            if where is not None:
                raise InvalidArgumentError("remove= and where= exclude each other", found=repr(where))
            transaction.remove(_core.removes_of(gone, transaction.clock()))
            metrics.update({"num_removed_files": gone.num_rows, "num_removed_bytes": total_size(gone)})
        transaction.add(new)

    def done() -> dict[str, int]:
        return {**metrics, **room(), **inserts}

    if not new.num_rows and not transaction.removes_files:
        return snapshot, done()
    return transaction.commit(done), done()


def _found(snapshot: Snapshot, path: str) -> AddFile:
    if not isinstance(path, str):
        raise InvalidTypeError("a file is a path or an AddFile", found=type(path).__name__)
    known = snapshot.store.head(path)
    if known is None:
        raise InvalidArgumentError("no such file in the table's folder", where=snapshot.location, found=repr(path))
    return AddFile(path, size=known[0], partition_values=from_directory(path), modification_time=known[1])


def _actions(snapshot: Snapshot, files: list[AddFile]) -> pa.Table:
    """The add actions; those without statistics get them from their footers."""
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
    return pa.concat_tables([having, _core.file_statistics(snapshot.store, snapshot.table_schema, without, target.options_json)])


def _action(snapshot: Snapshot, file: AddFile) -> dict[str, Any]:
    if file.path.startswith("/") or "://" in file.path or ".." in file.path.split("/"):
        raise InvalidArgumentError("a file to be added lies in the table's folder", found=repr(file.path), expected="a relative path")
    if isinstance(file.size, bool) or not isinstance(file.size, int) or file.size < 0:
        raise InvalidTypeError("AddFile.size", where=file.path, found=repr(file.size), expected="bytes")
    modified = file.modification_time
    if modified is None:
        known = snapshot.store.head(file.path)
        if known is None:
            raise InvalidArgumentError("no such file in the table's folder", where=snapshot.location, found=repr(file.path))
        modified = known[1]
    stats = file.stats if file.stats is None or isinstance(file.stats, str) else json.dumps(dict(file.stats), default=str)
    return {
        "path": quote(file.path, safe="/=:@!$&'()*+,;-._~"),
        "partitionValues": list(_partition_values(snapshot, file).items()),
        "size": file.size,
        "modificationTime": modified,
        "dataChange": True,
        "stats": stats,
    }


def _partition_values(snapshot: Snapshot, file: AddFile) -> dict[str, str | None]:
    """By physical names, as the log has them."""
    given = {name.lower(): value for name, value in file.partition_values.items()}
    columns = snapshot.metadata.partition_columns
    if unknown := sorted(set(given) - {name.lower() for name in columns}):
        raise InvalidArgumentError(
            "not a partition column", where=file.path, found=", ".join(unknown), expected=", ".join(columns) or "none"
        )
    values: dict[str, str | None] = {}
    for name in columns:
        if name.lower() not in given:
            raise InvalidArgumentError("a partition value is missing", where=file.path, expected=f"a value of {name}")
        values[physical_name(snapshot.schema.field(name))] = _text(given[name.lower()], file.path)
    return values


def _text(value: Any, path: str) -> str | None:
    """PROTOCOL.md, Partition Value Serialization; text is taken as it is, an empty one is null."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float, Decimal)):
        return str(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    raise InvalidTypeError("a partition value", where=path, found=repr(value), expected="text, a number, a bool, a date or a datetime")


def _named(snapshot: Snapshot, paths: list[str]) -> pa.Table:
    """The live files of these paths; InvalidArgumentError for one that is none."""
    adds = snapshot.files().adds
    if not paths:
        return adds.slice(0, 0)
    names = references.data_files(adds, snapshot.location)
    wanted = pa.array(paths, pa.string())
    if missing := wanted.filter(pc.invert(pc.is_in(wanted, value_set=names))).to_pylist():
        raise InvalidArgumentError("not a live file of the table", where=snapshot.location, found=repr(missing[0]))
    return adds.filter(pc.is_in(names, value_set=wanted))
