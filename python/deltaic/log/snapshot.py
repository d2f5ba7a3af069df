"""One version of a table, immutable: its files are in Rust, what defines it is parsed here when first asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from deltaic import _core
from deltaic.errors import ProtocolError
from deltaic.log import history
from deltaic.log.segment import Sleep, commit_path, list_log, segments
from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Schema


class Snapshot:
    """A version of a table. Threads may share it; nothing in it changes but caches."""

    def __init__(self, store: _core.Store, core: _core.Snapshot) -> None:
        self.store = store
        self.core = core
        if core.protocol is None:
            raise ProtocolError("the log has no protocol action", where=self._where, expected="one in the first commit or the checkpoint")
        if core.metadata is None:
            features.check_readable(self.protocol)
            raise ProtocolError("the log has no metaData action", where=self._where, expected="one in the first commit or the checkpoint")
        features.check_readable(self.protocol, self.metadata)

    @staticmethod
    def load(
        store: _core.Store,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
        sleep: Sleep = time.sleep,
        again: bool = False,
    ) -> Snapshot:
        """The newest version, or the one asked for. A checkpoint that cannot be read is replaced by an older one or by commits.

        `again`: this is the second attempt after files went away while it was loaded. Raises TableNotFoundError, VersionNotFoundError,
        ProtocolError, UnsupportedFeatureError.
        """
        if timestamp is not None:
            version = history.version_at(store, timestamp, version)
        first_error: Exception | None = None
        for segment in segments(store, version, sleep=sleep):
            try:
                return Snapshot(store, _core.Snapshot.load(store, segment.version, segment.checkpoint_parts, segment.commits))
            except (ProtocolError, FileNotFoundError) as error:
                first_error = first_error or error
                if segment.checkpoint is None:
                    break
        assert first_error is not None  # segments() yields or raises
        if isinstance(first_error, FileNotFoundError) and not again:  # a cleanup took files between listing and reading
            return Snapshot.load(store, version=version, sleep=sleep, again=True)
        raise first_error

    def refresh(self, *, sleep: Sleep = time.sleep) -> Snapshot:
        """The newest version: this very object when nothing is new; reads only the new commits where they follow on this one."""
        listing = list_log(self.store, self.version + 1)
        if listing.latest <= self.version:
            return self
        if not all(version in listing.commits for version in range(self.version + 1, listing.latest + 1)):
            return Snapshot.load(self.store, sleep=sleep)
        return self.advance(listing.latest)

    def advance(self, version: int) -> Snapshot:
        """A later version, whose commits are known to be there; lists nothing."""
        if version == self.version:
            return self
        commits = [(each, commit_path(each)) for each in range(self.version + 1, version + 1)]
        return Snapshot(self.store, self.core.refresh(self.store, commits))

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> Snapshot:
        """Another version of the same table; the newest when neither is given."""
        if version == self.version and timestamp is None:
            return self
        return Snapshot.load(self.store, version=version, timestamp=timestamp)

    @property
    def version(self) -> int:
        return self.core.version

    @property
    def location(self) -> str:
        return self.store.location

    @cached_property
    def protocol(self) -> Protocol:
        text = self.core.protocol
        assert text is not None  # checked when made
        return Protocol.from_json(text)

    @cached_property
    def metadata(self) -> Metadata:
        text = self.core.metadata
        assert text is not None  # checked when made
        return Metadata.from_json(text)

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_json(self.metadata.schema_string)

    @cached_property
    def properties(self) -> TableProperties:
        return TableProperties(self.metadata.configuration)

    @cached_property
    def table_schema(self) -> _core.TableSchema:
        """The schema as Rust sees it, with partition columns and column mapping."""
        return table_schema(self.protocol, self.metadata)

    @cached_property
    def domains(self) -> Mapping[str, str]:
        """Metadata domains: name -> its configuration."""
        actions = ((name, json.loads(text)) for name, text in self.core.domains.items())
        parsed = ((name, action.get("domainMetadata", action)) for name, action in actions)
        return {name: str(action.get("configuration", "")) for name, action in parsed if not action.get("removed")}

    def files(self, predicate: _core.Predicate | None = None, *, skipping: bool = True) -> _core.FileSelection:
        """The live files that may hold a matching row, and what was skipped."""
        return self.core.files(self.table_schema, predicate, skipping=skipping)

    @property
    def _where(self) -> str:
        return f"{self.store.location} version {self.core.version}"

    def __repr__(self) -> str:
        return f"Snapshot({self.location!r}, version={self.version})"


def table_schema(protocol: Protocol, metadata: Metadata) -> _core.TableSchema:
    """`_core.TableSchema` of a table's definition."""
    mode = features.column_mapping_mode(protocol, metadata)
    return _core.TableSchema(metadata.schema_string, metadata.partition_columns, mode)
