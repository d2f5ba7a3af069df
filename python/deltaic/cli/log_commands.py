"""The subcommands `log` and `inspect`, which read the log itself and also work if the table cannot be
read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltaic.cli.app import AsJson, Path, StorageOptions, app, pairs
from deltaic.cli.render import note, print_mapping, print_records, to_json, working
from deltaic.errors import DeltaError
from deltaic.html_tables import readable_size
from deltaic.log.history import moment
from deltaic.log.store import open_store
from deltaic.protocol.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.log import inspection


@app.command()
def log(
    path: Path,
    versions: Annotated[
        str | None, typer.Argument(help="5, 3..7, 3.. or ..7  [default: the newest]", show_default=False)
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=0,
            help="files to print of each commit, 0 all of them  [default: 20, with --json all]",
        ),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print the actions of a commit, or of a range of commits, oldest first."""
    # here and below: it imports pyarrow, which the other commands start without
    from deltaic.log import inspection

    store = open_store(path, pairs(storage_option, "--storage-option"))
    found = inspection.commits(store, versions)
    if as_json:
        _print_json(found, limit or 0)
        return
    for number, commit in enumerate(found):
        if number:
            print()
        _print_commit(commit, 20 if limit is None else limit)


def _print_json(commits: Iterator[inspection.Commit], limit: int) -> None:
    """Writes a JSON array of commits, each as soon as it is read. `limit`: files of each kind; 0 is all."""
    separator = "["
    for commit in commits:
        document = {
            **{name: getattr(commit, name) for name in ("version", "timestamp")},
            "commitInfo": commit.information,
            "protocol": commit.protocol,
            "metaData": commit.metadata,
            "txn": commit.transactions,
            "domainMetadata": commit.domains,
            "remove": list(_files(commit.removes, limit)),
            "add": list(_files(commit.adds, limit)),
            "cdc": commit.has_change_files,
        }
        sys.stdout.write(separator + to_json(document))
        separator = ",\n "
    sys.stdout.write("]\n")


def _files(table: pa.Table, limit: int) -> Iterator[dict[str, Any]]:
    """Returns actions as in the log: maps as objects, without nulls."""
    rows = (row for batch in table.to_batches() for row in batch.to_pylist(maps_as_pydicts="lossy"))
    for row in islice(rows, limit or None):
        yield {key: value for key, value in row.items() if value is not None}


def _print_commit(commit: inspection.Commit, limit: int) -> None:
    information = dict(commit.information or {})
    facts: dict[str, Any] = {
        "time": moment(commit.timestamp).isoformat(" ", "milliseconds"),
        "operation": information.pop("operation", None),
        "parameters": information.pop("operationParameters", None),
        "metrics": information.pop("operationMetrics", None),
        "protocol": commit.protocol,
        "definition": _definition(commit.metadata),
        "transactions": commit.transactions,
        "domains": {name: "removed" if value is None else value for name, value in commit.domains.items()},
        "change_files": "yes" if commit.has_change_files else None,
        "more": {key: value for key, value in information.items() if key != "timestamp"},
    }
    print_mapping(
        {key: value for key, value in facts.items() if value not in (None, {})},
        as_json=False,
        title=f"version {commit.version}",
    )
    rows = [("remove", row) for row in _files(commit.removes, limit)] + [
        ("add", row) for row in _files(commit.adds, limit)
    ]
    shown = rows[:limit] if limit else rows
    if shown:
        print_records([_row(action, row) for action, row in shown], as_json=False)
    if left := commit.removes.num_rows + commit.adds.num_rows - len(shown):
        note(f"{left} more files; --limit 0 prints all")


def _definition(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the metaData action with its schema as DDL, if the schema can be parsed."""
    if metadata is None:
        return None
    shown = dict(metadata)
    try:
        shown["schema"] = Schema.from_json(str(shown.get("schemaString"))).to_ddl()
        del shown["schemaString"]
    except DeltaError:
        pass  # shown as it stands
    return shown


def _row(action: str, row: Mapping[str, Any]) -> dict[str, Any]:
    try:
        statistics = json.loads(row.get("stats") or "{}")
    except (ValueError, RecursionError):
        statistics = {}
    return {
        "action": action,
        "path": row["path"],
        "size": None if row.get("size") is None else readable_size(row["size"]),
        "rows": statistics.get("numRecords") if isinstance(statistics, dict) else None,
        "deleted": (row.get("deletionVector") or {}).get("cardinality"),
        "partition": row.get("partitionValues") or None,
        "data_change": row.get("dataChange"),
    }


@app.command()
def inspect(path: Path, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """Print protocol, features, checkpoint and sizes, and why a table cannot be read."""
    from deltaic.log import inspection

    store = open_store(path, pairs(storage_option, "--storage-option"))
    with working(f"reading the log of {store.location}"):
        found = inspection.inspect(store)
    facts = {field.name: getattr(found, field.name) for field in fields(found)}
    if not as_json:
        facts = {key: value for key, value in facts.items() if value is not None}
        facts["features"] = [_feature_text(feature) for feature in found.features]
        facts["log"] = {
            kind: f"{each['files']}, {readable_size(each['bytes'])}"
            for kind, each in found.log.items()
            if each["files"]
        }
        if found.size_in_bytes is not None:
            facts["size_in_bytes"] = readable_size(found.size_in_bytes)
        if found.checkpoint is not None:
            facts["checkpoint"] = {**found.checkpoint, "bytes": readable_size(found.checkpoint["bytes"])}
    print_mapping(facts, as_json=as_json)


def _feature_text(feature: Mapping[str, Any]) -> str:
    words = [] if feature["used"] else ["not in use"]
    words += [] if feature["writes"] else ["not every commit can be made"]
    return f"{feature['name']} ({', '.join(words)})" if words else str(feature["name"])
