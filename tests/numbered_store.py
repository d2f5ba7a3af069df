"""A store in memory that counts its calls and lets one of them fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Literal

Fault = Literal["before", "after", "lost", "torn"]


class NumberedStore:
    """deltaic.log.store.LogStore. The call with number `fail_at` (from 1) fails: "before" it does anything,
    "after" it did everything (both OSError), its answer is "lost" (TimeoutError after the deed), or a write
    is "torn" (OSError after half of the bytes). `lasting`: all later calls fail too. `error`: what is raised
    instead, also after the deed of a commit.

    `calls`: what was asked, one entry for each call: the method and its path.
    """

    def __init__(self, objects: dict[str, tuple[bytes, int]] | None = None) -> None:
        self.objects = dict(objects or {})
        self.calls: list[tuple[str, str]] = []
        self.fail_at: int | None = None
        self.fault: Fault = "before"
        self.lasting = False
        self.error: type[BaseException] | None = None
        self._lock = threading.Lock()

    def reset(self, fail_at: int | None = None, fault: Fault = "before", *, lasting: bool = False) -> None:
        """Counts from 1 again."""
        self.calls, self.fail_at, self.fault, self.lasting = [], fail_at, fault, lasting

    def _begin(self, method: str, path: str) -> bool:
        """Returns true if this call must fail after its work; raises if it must fail before."""
        with self._lock:
            self.calls.append((method, path))
            number = len(self.calls)
        if self.fail_at is None or number < self.fail_at or (number > self.fail_at and not self.lasting):
            return False
        if self.fault == "before":
            raise (self.error or OSError)(f"call {number}, {method} of {path or '/'}, failed")
        return True

    def _end(self, failing: bool, path: str) -> None:
        if failing and self.error is not None:
            raise self.error(f"failed after the deed: {path}")
        if failing:
            raise (
                TimeoutError(f"no answer for {path}")
                if self.fault == "lost"
                else OSError(f"failed after the deed: {path}")
            )

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool
    ) -> Iterable[tuple[str, int, int]]:
        failing = self._begin("list", prefix)
        with self._lock:
            found = [
                (path, len(data), modified)
                for path, (data, modified) in self.objects.items()
                if path.startswith(prefix)
            ]
        self._end(failing, prefix)
        return found

    def head(self, path: str) -> tuple[int, int] | None:
        failing = self._begin("head", path)
        with self._lock:
            found = self.objects.get(path)
        self._end(failing, path)
        return None if found is None else (len(found[0]), found[1])

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        failing = self._begin("read", path)
        with self._lock:
            if path not in self.objects:
                raise FileNotFoundError(path)
            data = self.objects[path][0][start:end]
        self._end(failing, path)
        return data

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        failing = self._begin("commit", path)
        with self._lock:
            there = path in self.objects
            if not there:
                self.objects[path] = (data, time.time_ns() // 1_000_000)
        # What fails after the deed is not known to the caller: the protocol's third answer.
        if failing:
            raise (
                self.error(f"failed after the deed: {path}")
                if self.error is not None
                else TimeoutError(f"no answer for {path}")
            )
        return not there

    def write(self, path: str, data: bytes) -> None:
        failing = self._begin("write", path)
        with self._lock:
            written = data[: len(data) // 2] if failing and self.fault == "torn" else data
            self.objects[path] = (written, time.time_ns() // 1_000_000)
        self._end(failing, path)

    def delete(self, path: str) -> bool:
        failing = self._begin("delete", path)
        with self._lock:
            there = self.objects.pop(path, None) is not None
        self._end(failing, path)
        return there
