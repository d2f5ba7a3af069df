"""One memory budget for the process: how much there is, and how readers, writers and the embedded engine
divide it.

The limit is `configure(memory_limit=)`, or half of what the machine or the container allows. It covers the
libraries themselves, what scans have fetched and decoded, what writers have not put into a file yet, and the
embedded engine, which spills to `temp_directory` beyond its part. It does not cover objects of the caller: a
table given to `write`, or the result of `to_arrow()`.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

logger = logging.getLogger("deltaic")

MIB = 1 << 20
ASSUMED = 4 << 30
"""Bytes that are assumed for a machine whose system does not report its memory."""
_UNLIMITED = 1 << 60
"""A container limit of at least this many bytes means no limit: cgroup v1 writes the largest number of
pages."""

LIBRARIES = 200 * MIB
"""Bytes that Python, Arrow, DuckDB and this package take once each has done a little work: 202 MB after a
MERGE of two rows and a query."""
_THREAD_OF_READERS = 192 * MIB
_MOST_READERS = 256 * MIB
"""Maximum bytes that all readers hold, plus _THREAD_OF_READERS bytes for each thread."""
_MOST_WRITERS = 1 << 30
"""Maximum bytes that all writers hold."""
_ENGINE_THREAD = 192 * MIB
"""Bytes of memory for each thread of DuckDB. With much less, DuckDB fails instead of spilling: with 77 MB for
each thread it could not sort 3 GB, and with 300 MB in total it could not join 16 million rows with 16
million."""
_OUTSIDE = 40 * MIB
"""Bytes that each thread of DuckDB takes beyond its memory_limit: batches from and to Arrow, pages that its
allocator keeps."""
_SMALLEST_ENGINE = 48 * MIB
"""Minimum bytes of DuckDB's memory_limit, even if the whole limit is smaller."""
_ROOMY = 1 << 30
"""Minimum bytes of the limit at which freed memory is kept for a while (`Budget.kept_freed`)."""


@dataclass(frozen=True)
class Budget:
    """The parts of one limit, in bytes. `engine`: DuckDB's memory_limit, for `engine_threads` threads.
    `readers`: fetched and decoded data of all scans. `writers`: encoded data of all writes that is not in a
    file yet. `batch`: target size of a batch between DuckDB and `_core`."""

    limit: int
    engine: int
    engine_threads: int
    readers: int
    writers: int
    batch: int

    @property
    def kept_freed(self) -> int:
        """Milliseconds for which freed memory is kept for the next batch or query; 0 if the limit is below
        _ROOMY, because kept memory counts as used (80 MB at the peak of a `z_order` within 600 MB). With 10
        ms instead of 100, a quarter of the processor time of TPC-H's q1 went to clearing pages that had just
        been returned to the system."""
        return 100 if self.limit >= _ROOMY else 0


@functools.lru_cache(maxsize=64)
def budget(limit: int | None, threads: int | None) -> Budget:
    """Divides `limit` (None: half of the available memory) for work on `threads` threads (None: one for each
    processor).

    Example: 750 MB are divided into 210 MB for the libraries, 68 MB for readers, 68 MB for writers, and 405
    MB for DuckDB with two threads. DuckDB's own memory_limit is 321 MB of the 405 MB.
    """
    limit = available() // 2 if limit is None else limit
    threads = threads or _processors()
    work = limit - min(LIBRARIES, limit // 3)
    readers = min(work // 8, _MOST_READERS + _THREAD_OF_READERS * threads)
    writers = min(work // 8, _MOST_WRITERS)
    whole = work - readers - writers
    engine_threads = max(1, min(threads, whole // _ENGINE_THREAD))
    engine = max(whole - engine_threads * _OUTSIDE, whole // 2, _SMALLEST_ENGINE)
    return Budget(limit, engine, engine_threads, readers, writers, batch=max(MIB, min(64 * MIB, engine // 8)))


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


@functools.cache
def available() -> int:
    """Returns the bytes of memory of the machine, or the limit of this process's container if that is less.
    The result is cached for the process."""
    machine = machine_memory()
    container = container_limit()
    return machine if container is None else min(machine, container)


def machine_memory(root: str = "/") -> int:
    """Returns the bytes of main memory. If the system does not tell, 4 GiB are assumed, with a warning in the
    log."""
    for line in _lines(os.path.join(root, "proc/meminfo")):
        name, _, value = line.partition(":")
        if name == "MemTotal" and (number := value.split()[:1]) and number[0].isdigit():
            return int(number[0]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        pass
    if sys.platform == "win32" and (found := _windows_memory()):
        return found
    logger.warning(
        "the system does not say how much memory it has: 4 GiB are assumed; configure(memory_limit=) sets the"
        " limit itself"
    )
    return ASSUMED


def _windows_memory() -> int | None:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *(
                (name, ctypes.c_uint64)
                for name in (
                    "total",
                    "free",
                    "page_total",
                    "page_free",
                    "virtual",
                    "virtual_free",
                    "extended",
                )
            ),
        )

    status = Status(length=ctypes.sizeof(Status))
    windll = getattr(ctypes, "windll")  # noqa: B009  # not on other systems
    answered = windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total) if answered else None


def container_limit(root: str = "/") -> int | None:
    """Returns the smallest memory limit of the control groups of this process in bytes; None if there is
    none.

    Both versions of control groups are read: `memory.limit_in_bytes` of the first; `memory.max` and
    `memory.high` of the second. A limit of a group holds for the groups in it, so all groups from that of the
    process up to the mounted one count. `root`: the folder that stands for "/", for tests.
    """
    found = [
        limit
        for folder, names in _groups(root)
        for name in names
        for limit in _limits(os.path.join(folder, name))
    ]
    return min(found, default=None)


def _groups(root: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the folder of each control group that contains this process, from the innermost one outwards,
    and the names of its files with limits."""
    mounts = list(_mounts(root))
    for line in _lines(os.path.join(root, "proc/self/cgroup")):
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        first = "memory" in controllers.split(",")
        if not first and controllers:
            continue
        names = ("memory.limit_in_bytes",) if first else ("memory.max", "memory.high")
        for top, point, kind, options in mounts:
            if kind != ("cgroup" if first else "cgroup2") or (first and "memory" not in options):
                continue
            # In a container, the mounted folder is often the container's own group, while `path` begins at
            # the machine's root group: with the group /docker/ab mounted, /docker/ab/job is the folder job of
            # the mount.
            inner = path[len(top) :] if top != "/" and (path == top or path.startswith(top + "/")) else path
            mounted = os.path.join(root, point.lstrip("/"))
            parts = [part for part in inner.split("/") if part and part != ".."]
            for depth in range(len(parts), -1, -1):
                yield os.path.join(mounted, *parts[:depth]), names


def _mounts(root: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yields (mounted folder, mount point, kind, options) for each mounted hierarchy of control groups."""
    for line in _lines(os.path.join(root, "proc/self/mountinfo")):
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) >= 5 and kinds and kinds[0] in ("cgroup", "cgroup2"):
            yield fields[3], fields[4], kinds[0], kinds[-1].split(",")


def _limits(path: str) -> list[int]:
    found = [int(line) for line in _lines(path)[:1] if line.strip().isdigit()]  # "max" is no limit
    return [limit for limit in found if 0 < limit < _UNLIMITED]


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
