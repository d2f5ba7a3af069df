"""Reconciles actions as PROTOCOL.md describes it, in the simplest way: the oracle of the compiled module."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

Key = tuple[str, str | None]


@dataclass
class State:
    """A version: live files and tombstones by (path, id of the vector), the newest of everything else."""

    adds: dict[Key, dict[str, Any]] = field(default_factory=dict)
    removes: dict[Key, dict[str, Any]] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    protocol: dict[str, Any] | None = None

    def apply(self, lines: Iterable[dict[str, Any]]) -> None:
        """Applies one commit. Its adds and removes have different keys, so that their order does not
        matter."""
        for line in lines:
            for name, action in line.items():
                if name == "add":
                    self.removes.pop(key(action), None)
                    self.adds[key(action)] = action
                elif name == "remove":
                    self.adds.pop(key(action), None)
                    self.removes[key(action)] = action
                elif name == "txn":
                    self.transactions[action["appId"]] = action["version"]
                elif name == "domainMetadata":
                    self.domains.pop(action["domain"], None)
                    if not action["removed"]:
                        self.domains[action["domain"]] = action["configuration"]
                elif name == "metaData":
                    self.metadata = action
                elif name == "protocol":
                    self.protocol = action


def key(action: dict[str, Any]) -> Key:
    """Returns a logical file: its path decoded, and the unique id of its vector."""
    vector = action.get("deletionVector")
    if vector is None:
        return unquote(action["path"]), None
    offset = f"@{vector['offset']}" if "offset" in vector else ""
    return unquote(action["path"]), f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"


def replay(commits: Iterable[bytes]) -> State:
    """Returns the version that these commits lead to, from the first one on."""
    state = State()
    for commit in commits:
        state.apply(json.loads(line) for line in commit.splitlines())
    return state
