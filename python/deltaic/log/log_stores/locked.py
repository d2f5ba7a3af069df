"""Commits under a lock, for stores that cannot put an object only where there is none."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from deltaic.errors import CommitError, InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.log.log_stores.objects import Objects
from deltaic.log.store import locate, public_options

Lock = Callable[[str], AbstractContextManager[Any]]
"""(location of a table) -> a context manager that only one writer of this table is inside of at a time."""

_POLL = 0.005
"""Seconds between two looks at a lock file that another process holds."""


class FileLocks:
    """Locks of POSIX (fcntl) on a file that all writers see; for threads, processes, and machines where the file system carries locks.

    `folder`: where the lock files are, one for each table; None: `_delta_log/.deltaic.lock` of the table itself, which must be on a file
    system then. `timeout`: seconds that a writer waits for the others (60).

    A lock goes with the process that holds it, however it ends. NFS carries these locks between machines (version 4, or version 3 with
    lockd, not mounted with `nolock` or `local_lock`), as do SMB and most cluster file systems; object stores that are mounted as file
    systems mostly do not.

    Entering a lock raises CommitError after `timeout`, OSError where the file system has no locks.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, timeout: float = 60.0) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout < 0:
            raise InvalidArgumentError("timeout", found=repr(timeout), expected="seconds, 0 or more")
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
                "FileLocks() keeps its lock file in the table, which is on no file system",
                where=location,
                expected="FileLocks(folder) with a folder that all writers share",
            )
        return Path(location, "_delta_log", ".deltaic.lock")

    @contextmanager
    def _held(self, path: Path, location: str) -> Iterator[None]:
        try:
            import fcntl
        except ImportError:
            raise UnsupportedFeatureError("FileLocks need locks of POSIX", where=location, expected="another lock") from None
        deadline = time.monotonic() + self.timeout
        within = _of_this_process(str(path))
        if not within.acquire(timeout=self.timeout):
            raise self._not_had(path, location)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                while True:
                    try:
                        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the system likes
                        if time.monotonic() > deadline:
                            raise self._not_had(path, location) from None
                        time.sleep(_POLL)
                yield
            finally:
                os.close(file)  # which releases the lock
        finally:
            within.release()

    def _not_had(self, path: Path, location: str) -> CommitError:
        return CommitError(f"no lock within {self.timeout} s: another writer holds {path}", where=location)


# POSIX gives a lock to a process, not to a thread, and takes it back when the process closes any descriptor of the file.
_in_process: dict[str, threading.Lock] = {}
_registry = threading.Lock()


def _of_this_process(path: str) -> threading.Lock:
    with _registry:
        return _in_process.setdefault(path, threading.Lock())


def _forget() -> None:
    """A child begins without the locks that threads of its parent held."""
    global _registry
    _registry = threading.Lock()
    _in_process.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class LockedLogStores:
    """LogStores that commit under a lock, for `configure(log_stores=)`: local folders (`file`) and buckets that speak S3's protocol (`s3`,
    `s3a`) whose store has no put-if-absent.

    `lock`: a function of a table's location that gives a context manager, which waits while another writer is inside of it; any number of
    threads calls it. Default: `FileLocks()`.

    Inside the lock a commit is written only after a look whether its version is there. So what is guaranteed is what the lock guarantees:
    all writers of the table must use it, and it must not be given to another writer while a put is under way. Locks with a time limit
    (leases of Redis, DynamoDB or ZooKeeper) can do that: give them a limit that is far longer than a put with all its retries.

    Raises (when a table is opened) UnsupportedFeatureError for other schemes.

    Example:
        with deltaic.configure(log_stores={"file": deltaic.LockedLogStores(deltaic.FileLocks())}):
            deltaic.write("/mnt/share/orders", rows, mode="append")
    """

    def __init__(self, lock: Lock | None = None) -> None:
        if lock is not None and not callable(lock):
            raise InvalidTypeError("lock is no function", found=type(lock).__name__, expected="a callable that takes a table's location")
        self.lock: Lock = FileLocks() if lock is None else lock

    def __call__(self, location: str, options: Mapping[str, str]) -> LockedLogStore:
        return LockedLogStore(self, location, options)

    def __repr__(self) -> str:
        return f"LockedLogStores({self.lock!r})"


class LockedLogStore(Objects):
    """deltaic.log.store.LogStore of one table."""

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
                if self.is_local:  # written aside and renamed: it is not there
                    raise
                return None  # a request without an answer may have been done
            return True
        return None  # the lock has swallowed an exception: nobody knows

    def _is_there(self, path: str) -> bool:
        if self.is_local:  # what NFS remembers of a folder, also that a name is missing, is asked anew when the folder is opened
            with suppress(OSError):
                os.close(os.open(os.path.dirname(os.path.join(self.location, path)), os.O_RDONLY))
        return self.head(path) is not None
