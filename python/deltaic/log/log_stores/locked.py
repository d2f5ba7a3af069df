"""Commits under a lock, for stores without put-if-absent."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from deltaic.errors import CommitError, InvalidArgumentError, InvalidTypeError
from deltaic.log.log_stores.objects import Objects
from deltaic.log.store import locate, public_options
from deltaic.process_state import call_after_fork

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

Lock = Callable[[str], AbstractContextManager[Any]]
"""(location of a table) -> a context manager that only one writer of this table can enter at a time."""

_POLL = 0.005
"""Seconds between two attempts to lock a file that another process holds."""


class FileLocks:
    """Locks on a file that all writers can open: POSIX locks (fcntl), or on Windows those of `LockFile`. They
    work between threads and processes, and between machines if the file system supports it.

    `folder`: the folder of the lock files, one for each table; None: `_delta_log/.deltaic.lock` of the table,
        which must be on a file system then.
    `timeout`: seconds that a writer waits for a lock (60).

    The system releases a lock when the process that holds it ends, even if it was killed. Between machines,
    the locks work on NFS (version 4, or version 3 with lockd, not mounted with `nolock` or `local_lock`), SMB
    and most cluster file systems, but usually not on object stores that are mounted as file systems.

    Entering a lock raises CommitError after `timeout`, and OSError if the file system has no locks.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, timeout: float = 60.0) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout < 0:
            raise InvalidArgumentError("invalid timeout", found=repr(timeout), expected="seconds, 0 or more")
        self.folder = None if folder is None else locate(folder)
        self.timeout = timeout

    def __call__(self, location: str) -> AbstractContextManager[None]:
        return self._held(self._path(location), location)

    def __repr__(self) -> str:
        return f"FileLocks({self.folder!r}, timeout={self.timeout!r})"

    def _path(self, location: str) -> Path:
        if self.folder is not None:
            return Path(self.folder) / f"{hashlib.sha256(location.encode()).hexdigest()[:32]}.lock"
        if "://" in location:
            raise InvalidArgumentError(
                "FileLocks() keeps its lock file in the table, which is not on a file system",
                where=location,
                expected="FileLocks(folder) with a folder that all writers share",
            )
        return Path(location, "_delta_log", ".deltaic.lock")

    @contextmanager
    def _held(self, path: Path, location: str) -> Iterator[None]:
        deadline = time.monotonic() + self.timeout
        within = _of_this_process(str(path))
        if not within.acquire(timeout=min(self.timeout, threading.TIMEOUT_MAX)):
            raise self._not_had(path, location)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                while not _try_lock(file):
                    if time.monotonic() > deadline:
                        raise self._not_had(path, location)
                    time.sleep(_POLL)
                try:
                    yield
                finally:
                    _unlock(file)
            finally:
                os.close(file)
        finally:
            within.release()

    def _not_had(self, path: Path, location: str) -> CommitError:
        return CommitError(f"no lock within {self.timeout} s: another writer holds {path}", where=location)


if sys.platform == "win32":

    def _try_lock(file: int) -> bool:
        """Locks the first byte of a file, which may be empty; returns False if another writer has it."""
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(file: int) -> None:
        """Releases the lock at once: Windows may release locks of a closed file later."""
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:

    def _try_lock(file: int) -> bool:
        """Locks a file; returns False if another process has locked it."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, depending on the system
            return False
        return True

    def _unlock(file: int) -> None:
        """Does nothing: closing the file releases the lock."""


# A POSIX lock belongs to the process, not to a thread, and is released when the process closes any descriptor
# of the file. So threads of a process exclude each other by these locks.
_in_process: dict[str, threading.Lock] = {}
_registry = threading.Lock()


def _of_this_process(path: str) -> threading.Lock:
    with _registry:
        return _in_process.setdefault(path, threading.Lock())


def _forget() -> None:
    """Resets the locks in a forked child, where no thread exists that would release those of the parent's
    threads."""
    global _registry
    _registry = threading.Lock()
    _in_process.clear()


call_after_fork(_forget)


class LockedLogStores:
    """LogStores for `configure(log_stores=)` that commit under a lock: for local folders (`file`), and for
    buckets with the protocol of S3 (`s3`, `s3a`) whose store has no put-if-absent.

    `lock`: a function that takes a table's location and returns a context manager, which waits while another
        writer is inside. Several threads may call it. Default: `FileLocks()`.

    Inside the lock, a commit is written only if its version does not exist. So a commit is as safe as the
    lock: all writers of the table must use the same lock, and no other writer may get it while a put is
    running. Locks with a time limit (leases of Redis, DynamoDB or ZooKeeper) violate this if they expire
    during a put: set a limit that is much longer than a put with all its retries.

    Opening a table with another scheme is an UnsupportedFeatureError.

    Example:
        with deltaic.configure(log_stores={"file": deltaic.LockedLogStores(deltaic.FileLocks())}):
            deltaic.write("/mnt/share/orders", rows, mode="append")
    """

    def __init__(self, lock: Lock | None = None) -> None:
        if lock is not None and not callable(lock):
            raise InvalidTypeError(
                "lock is not a function",
                found=type(lock).__name__,
                expected="a callable that takes a table's location",
            )
        self.lock: Lock = FileLocks() if lock is None else lock

    def __call__(self, location: str, options: Mapping[str, str]) -> LockedLogStore:
        return LockedLogStore(self, location, options)

    def __repr__(self) -> str:
        return f"LockedLogStores({self.lock!r})"


class LockedLogStore(Objects):
    """The `deltaic.log.store.LogStore` of one table."""

    def __init__(self, stores: LockedLogStores, location: str, options: Mapping[str, str]) -> None:
        super().__init__(location, options)
        self._made = stores, (location, public_options(options))
        self._lock = stores.lock

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made

    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        with self._lock(self.location):
            if self._is_there(path):
                return False
            try:
                self.write(path, data)
            except PermissionError:
                raise
            except Exception:
                if self.is_local:  # a local file is renamed when it is complete, so it was not created
                    raise
                return None  # a request without a response may have been executed
            return True
        return None  # the lock's context manager suppressed an exception, so the outcome is unknown

    def _is_there(self, path: str) -> bool:
        # opening the folder makes NFS refresh its cache, which may have the file as missing
        if self.is_local:
            with suppress(OSError):
                os.close(os.open(os.path.dirname(os.path.join(self.location, path)), os.O_RDONLY))
        return self.head(path) is not None
