"""A store in memory whose responses to commits can be lost, late or wrong, by script."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable


class FaultStore:
    """deltaic.log.store.LogStore. `script`: what happens to the next puts of a commit, first one first; then
    all goes well.

    "lost": written, no answer. "timeout": written, TimeoutError. "dropped": not written, no answer.
    "phantom": not written, answered "exists". "own": written, answered "exists". "refused": PermissionError,
    not written. "stopped": KeyboardInterrupt, not written. "stopped late": KeyboardInterrupt, written.
    `before_put` runs before each of these puts.
    """

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.script: list[str] = []
        self.puts: list[tuple[str, bytes]] = []
        self.unreadable: set[str] = set()
        self.before_put: Callable[[str], None] | None = None
        self._lock = threading.Lock()

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool
    ) -> Iterable[tuple[str, int, int]]:
        with self._lock:
            return [
                (path, len(data), modified)
                for path, (data, modified) in self.objects.items()
                if path.startswith(prefix)
            ]

    def head(self, path: str) -> tuple[int, int] | None:
        with self._lock:
            found = self.objects.get(path)
        return None if found is None else (len(found[0]), found[1])

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        if path in self.unreadable:
            raise ConnectionError(f"no answer for {path}")
        with self._lock:
            if path not in self.objects:
                raise FileNotFoundError(path)
            return self.objects[path][0][start:end]

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        commit = path.startswith("_delta_log/") and path.endswith(".json")
        if commit and self.before_put is not None:
            self.before_put(path)
        with self._lock:
            fault = self.script.pop(0) if commit and self.script else "none"
            if commit:
                self.puts.append((path, data))
            if fault == "refused":
                raise PermissionError(f"not allowed to write {path}")
            if fault == "stopped":
                raise KeyboardInterrupt
            if fault in ("dropped", "phantom"):
                return None if fault == "dropped" else False
            there = path in self.objects
            if not there:
                self.objects[path] = (data, time.time_ns() // 1_000_000)
        if fault == "timeout":
            raise TimeoutError(f"no answer for {path}")
        if fault == "stopped late":
            raise KeyboardInterrupt
        if fault == "lost":
            return None
        return not there and fault != "own"

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            self.objects[path] = (data, time.time_ns() // 1_000_000)

    def delete(self, path: str) -> bool:
        with self._lock:
            return self.objects.pop(path, None) is not None

    @property
    def commits(self) -> list[str]:
        return sorted(
            path for path in self.objects if path.startswith("_delta_log/") and path.endswith(".json")
        )
