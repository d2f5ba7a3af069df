"""DESCRIBE DETAIL and DESCRIBE HISTORY, with delta-spark's names in snake_case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltaic.html_tables import html_facts, html_table, readable_size
from deltaic.log import catalog
from deltaic.log import history as log_history
from deltaic.log.segment import list_log
from deltaic.log.snapshot import Snapshot
from deltaic.protocol import features
from deltaic.protocol.clustering import DOMAIN, logical_columns
from deltaic.protocol.schema import path_text


@dataclass(frozen=True, kw_only=True)
class Detail:
    """The result of `DeltaTable.detail`: facts of one version of a table.

    `format`: always "delta". `id`: the table's id. `name`, `description`: text, or None.
    `location`: absolute path or URL.
    `created_at`, `last_modified`: in UTC; None if the log does not have them.
    `partition_columns`, `clustering_columns`: names.
    `num_files`, `size_in_bytes`: number and bytes of the live data files.
    `properties`: the properties that are set, by name.
    `min_reader_version`, `min_writer_version`: of the protocol.
    `table_features`: the features that the protocol lists or that its versions imply."""

    format: str
    id: str
    name: str | None
    description: str | None
    location: str
    created_at: datetime | None
    last_modified: datetime | None
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    num_files: int
    size_in_bytes: int
    properties: Mapping[str, str]
    min_reader_version: int
    min_writer_version: int
    table_features: tuple[str, ...]


def detail(snapshot: Snapshot) -> Detail:
    """Returns DESCRIBE DETAIL of a version."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    return Detail(
        format="delta",
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        location=snapshot.location,
        created_at=None if metadata.created_time is None else log_history.moment(metadata.created_time),
        last_modified=_last_modified(snapshot),
        partition_columns=metadata.partition_columns,
        clustering_columns=_clustering(snapshot),
        num_files=snapshot.core.file_count,
        size_in_bytes=snapshot.core.size_in_bytes,
        properties=metadata.configuration,
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
        table_features=tuple(sorted(features.supported(protocol))),
    )


class History(list[dict[str, Any]]):
    """Entries of the history, newest first: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (
                entry["version"],
                f"{entry['timestamp']:%Y-%m-%d %H:%M:%S}",
                entry.get("operation", ""),
                _details(entry),
            )
            for entry in self
        ]
        return html_table(("version", "time (UTC)", "operation", "details"), rows)


def _details(entry: Mapping[str, Any]) -> str:
    """Returns parameters and metrics of an entry as text, without those that are empty or 0."""
    both = (entry.get("operationParameters"), entry.get("operationMetrics"))
    named = {name: value for part in both if isinstance(part, dict) for name, value in part.items()}
    return ", ".join(
        f"{name}: {value}" for name, value in named.items() if value not in (None, "", "[]", "{}", "0", 0)
    )


def history(snapshot: Snapshot, limit: int | None = None) -> History:
    """Returns the commitInfo of the versions up to this one, newest first, with the keys `version` and
    `timestamp` (UTC)."""
    era = log_history.Era.of(snapshot.metadata.configuration)
    return History(log_history.entries(snapshot.store, snapshot.version, limit, era=era))


def html(snapshot: Snapshot) -> str:
    """Returns the summary and columns of a version as HTML; reads only the log."""
    rows = snapshot.core.num_records
    facts = {
        "location": snapshot.location,
        "version": snapshot.version,
        "rows": "(not in the statistics)" if rows is None else f"{rows:,}",
        "files": f"{snapshot.core.file_count:,}, {readable_size(snapshot.core.size_in_bytes)}",
        "partitioned by": ", ".join(snapshot.metadata.partition_columns),
        "clustered by": ", ".join(_clustering(snapshot)),
        "properties": ", ".join(
            f"{name} = {value}" for name, value in snapshot.metadata.configuration.items()
        ),
    }
    return (
        html_facts({name: value for name, value in facts.items() if value != ""})
        + snapshot.schema._repr_html_()
    )


def transaction_state(snapshot: Snapshot, txn_id: str) -> int | None:
    """Returns the newest version with this commitInfo.txnId; None if there is none in the log."""
    for version in sorted(list_log(snapshot.store).commits, reverse=True):
        if log_history.commit_info(snapshot.store, version).get("txnId") == txn_id:
            return version
    return None


def _last_modified(snapshot: Snapshot) -> datetime | None:
    commit = snapshot.store.head(catalog.commit_file(snapshot.store, snapshot.version))
    if commit is not None and log_history.Era.of(snapshot.metadata.configuration) is not None:
        return log_history.moment(log_history.in_commit_time(snapshot.store, snapshot.version))
    return None if commit is None else log_history.moment(commit[1])


def _clustering(snapshot: Snapshot) -> tuple[str, ...]:
    """Returns the logical names of the clustering columns, with dots."""
    return tuple(path_text(path) for path in logical_columns(snapshot.schema, snapshot.domains.get(DOMAIN)))
