"""Tables that a catalog manages (PROTOCOL.md: Catalog-managed tables): the catalog accepts commits, and knows
which versions exist.

A commit is staged in `_delta_log/_staged_commits`, ratified by the catalog, and published to `_delta_log`
afterwards.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from deltaic import _core, configuration
from deltaic.errors import CommitError, DeltaError, InvalidTypeError, ProtocolError

STAGED_COMMITS = "_delta_log/_staged_commits"
_STAGED_NAME = re.compile(r"([0-9]{20})\.[0-9A-Za-z-]{1,64}\.json")
_INLINE = uuid.UUID("6d0f4d2e-6f2c-5f0b-9d55-3c1d0b7a4e11")
"""Namespace of the names of staged files that have the contents of inline commits."""
log = logging.getLogger("deltaic.log")


@dataclass(frozen=True)
class RatifiedCommits:
    """Commits of a table that its catalog has ratified.

    `latest`: the newest ratified version.
    `staged`: name of the file in `_delta_log/_staged_commits` by version, for each ratified version that may
        not be published yet: {7: "00000000000000000007.016ae953-37a9-438e-8683-9a9a4a79a395.json"}.
    `inline`: content (lines of JSON, UTF-8) by version, for each commit that the catalog stores itself.
    """

    latest: int
    staged: Mapping[int, str] = field(default_factory=dict)
    inline: Mapping[int, bytes] = field(default_factory=dict)


@runtime_checkable
class CommitCoordinator(Protocol):
    """The client of a catalog for one table. Any thread may call it; its exceptions reach the caller
    unchanged.

    The catalog must ratify each version once, after the version before it, and return it from `commits` from
    then on.
    """

    def commits(self, start: int, /) -> RatifiedCommits:
        """Returns the newest ratified version, and the ratified versions from `start` on that may not be
        published yet."""
        ...

    def ratify(self, version: int, name: str, /) -> bool | None:
        """Proposes the staged file `name` as the commit of `version`.

        Returns True if the file is the commit, False if another file is, None if the outcome is unknown.
        TimeoutError and ConnectionError count as unknown. Any other exception means that the file will never
        be ratified."""
        ...

    def published(self, version: int, /) -> None:
        """Tells the catalog that all versions up to this one are published, so that it can forget them."""
        ...


def coordinator_of(store: _core.Store) -> CommitCoordinator | None:
    """Returns the coordinator of the table in the store, from `configure(commit_coordinator=)`; None if no
    catalog manages the table."""
    function = configuration.current().commit_coordinator
    coordinator = None if function is None else function(store.location)
    if coordinator is not None and not isinstance(coordinator, CommitCoordinator):
        raise InvalidTypeError(
            "the function of configure(commit_coordinator=) did not return a coordinator",
            where=store.location,
            found=type(coordinator).__name__,
            expected="an object with commits, ratify and published, or None",
        )
    return coordinator


def has_coordinator(store: _core.Store) -> bool:
    """True if a catalog manages the table in the store."""
    return coordinator_of(store) is not None


def ratified(store: _core.Store, start: int) -> RatifiedCommits | None:
    """Returns the catalog's commits from version `start` on, validated, with paths relative to the table
    instead of names; None for a table without a catalog."""
    coordinator = coordinator_of(store)
    if coordinator is None:
        return None
    commits = coordinator.commits(start)
    paths: dict[int, str] = {}
    for version, name in sorted(commits.staged.items()):
        match = _STAGED_NAME.fullmatch(name)
        if match is None or int(match[1]) != version or version > commits.latest:
            raise ProtocolError(
                "the catalog returned an invalid name of a staged commit",
                where=store.location,
                found=f"{name} as version {version} of {commits.latest}",
                expected=f"{version:020}.<uuid>.json, of a version up to the latest",
            )
        if version >= start:
            paths[version] = f"{STAGED_COMMITS}/{name}"
    paths |= {
        version: _staged_inline(store, version, commits)
        for version in sorted(commits.inline)
        if version >= start
    }
    return RatifiedCommits(commits.latest, paths)


def _staged_inline(store: _core.Store, version: int, commits: RatifiedCommits) -> str:
    """Writes the content of an inline commit to a staged commit, because commits are read from files. Returns
    the file's path, whose name is made of the content, so that all readers write the same file."""
    content = commits.inline[version]
    if version > commits.latest or version in commits.staged or not _is_commit(content):
        raise ProtocolError(
            "the catalog returned an invalid inline commit",
            where=store.location,
            found=f"{content[:100]!r} as version {version} of {commits.latest}",
            expected=(
                "lines of JSON objects as bytes, of a version up to the latest that has no staged commit"
            ),
        )
    path = f"{STAGED_COMMITS}/{version:020}.{uuid.uuid5(_INLINE, hashlib.sha256(content).hexdigest())}.json"
    if store.head(path) is None:
        try:
            store.put_if_absent(path, content)
        except (DeltaError, OSError) as error:
            raise CommitError(
                "a commit that the catalog stores itself is read from a staged file, which cannot be written",
                where=f"{store.location}/{path}",
                expected="a catalog that has published the commit, or permission to write",
            ) from error
    return path


def _is_commit(content: object) -> bool:
    if not isinstance(content, bytes):
        return False
    try:
        lines = [json.loads(line) for line in content.decode("utf-8").splitlines() if line.strip()]
    except ValueError:
        return False
    return bool(lines) and all(isinstance(line, dict) for line in lines)


def commit_files(store: _core.Store, versions: Sequence[int]) -> list[str]:
    """Returns the paths of commits relative to the table: the staged file if the catalog names one, else the
    published file. A version that the catalog has not ratified is a FileNotFoundError."""
    commits = ratified(store, min(versions)) if versions else None
    if commits is not None and max(versions) > commits.latest:
        raise FileNotFoundError(f"{store.location}: version {max(versions)} is not ratified by the catalog")
    staged = commits.staged if commits is not None else {}
    return [staged.get(version) or f"_delta_log/{version:020}.json" for version in versions]


def commit_file(store: _core.Store, version: int) -> str:
    """Like `commit_files`, for one version."""
    return commit_files(store, [version])[0]


def propose(
    store: _core.Store, version: int, body: bytes, after: Sequence[str]
) -> tuple[Literal["created", "exists", "unknown"], str]:
    """Stages a commit and asks the catalog to ratify it. Returns the outcome in the words of
    `Store.put_if_absent`, and the path of the staged file."""
    coordinator = coordinator_of(store)
    if coordinator is None:
        raise ProtocolError(
            "the catalog that manages the table is no longer configured",
            where=store.location,
            expected="the coordinator that configure(commit_coordinator=) gave when the table was opened",
        )
    name = f"{version:020}.{uuid.uuid4()}.json"
    path = f"{STAGED_COMMITS}/{name}"
    if store.put_if_absent(path, body, after=list(after)) == "exists":
        raise ProtocolError("the name of a staged commit is already in use", where=f"{store.location}/{path}")
    try:
        answer = coordinator.ratify(version, name)
    except (TimeoutError, ConnectionError) as error:
        log.warning(
            "%s: the catalog did not say whether it ratified version %d: %s", store.location, version, error
        )
        answer = None
    return ("unknown" if answer is None else "created" if answer else "exists"), path


def withdraw(store: _core.Store, path: str) -> None:
    """Deletes a staged file that was not ratified."""
    try:
        store.delete([path])
    except (DeltaError, OSError) as error:
        log.warning("%s: %s, which was not ratified, could not be deleted: %s", store.location, path, error)


def publish(store: _core.Store, version: int) -> bool:
    """Copies ratified commits up to `version` to the log, in order, and tells the catalog. True if they are
    published.

    Errors are logged and not raised: a ratified commit is valid, and the next writer publishes it."""
    try:
        commits = ratified(store, 0)
        if commits is None:
            return True
        for each, path in sorted(commits.staged.items()):
            if each <= version:
                store.put_if_absent(f"_delta_log/{each:020}.json", store.get(path))
        coordinator = coordinator_of(store)
        if store.head(f"_delta_log/{version:020}.json") is None or coordinator is None:
            return False
        coordinator.published(version)
        return True
    except Exception as error:  # the commit is ratified, so no error may make it look failed
        log.warning("%s: version %d is ratified, but not published yet: %s", store.location, version, error)
        return False
