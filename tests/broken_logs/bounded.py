"""Runs one operation on a table in a process of its own, with bounds on its time and memory, and returns the
outcome.

As a program, this module is a parent process that imports everything once, and forks for each request, a line
of JSON on stdin. A fork takes about ten milliseconds, so that every case of the corpus can have its own
process.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import duckdb  # noqa: F401  loaded once, not in each child
import pyarrow as pa
import pyarrow.dataset

import deltaic
import deltaic.commands.vacuum
import deltaic.commands.write
import deltaic.engine.duckdb.engine
import deltaic.sql.statement
from deltaic import _core
from deltaic.log.snapshot import Snapshot

PROCESSOR_SECONDS = 10
WALL_SECONDS = 120  # the processor may be shared with other work
PEAK_MIB = 512
# Of the address space, so that a case that goes wrong cannot take the machine down; what is used is measured.
ADDRESS_SPACE = 16 << 30


@dataclass(frozen=True)
class Result:
    """What came of an operation: its `value`, or an error by its class, the names of its bases, and its
    parts. `ended`: how the process ended where it did not answer. `peak_mib`: of its resident memory.
    `printed`: on stderr."""

    value: Any = None
    error: str | None = None
    bases: tuple[str, ...] = ()
    text: str = ""
    where: str | None = None
    found: str | None = None
    expected: str | None = None
    ended: str | None = None
    peak_mib: float = 0.0
    printed: str = ""


class Bounded:
    """The parent process, and the requests to it."""

    def __init__(self) -> None:
        # A parent with threads cannot fork safely.
        one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=one_thread,
        )

    def run(self, operation: str, path: str) -> Result:
        """`operation`: a name in OPERATIONS."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([operation, path]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Result(**{**answer, "bases": tuple(answer.get("bases", ()))})

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


# --- what is done to a table


def _table(path: str) -> deltaic.DeltaTable:
    return deltaic.DeltaTable(path)


def _rows(table: deltaic.DeltaTable) -> list[Any]:
    """Returns the rows by their first column, and further results that a user may request."""
    rows = table.scan().to_arrow()
    table.files(deleted_rows=True).to_arrow()
    table.scan(where="a > 1").count()
    return sorted(rows["a"].to_pylist())


def _append(path: str) -> list[Any]:
    table = _table(path)
    deltaic.write(table, pa.table({"a": [100], "p": ["x"]}), mode="append")
    return _rows(table)


def _delete(path: str) -> list[Any]:
    table = _table(path)
    table.delete("a = 4")
    return _rows(table)


def _vacuum(path: str) -> list[str]:
    gone = _table(path).vacuum(retention=_no_time(), mode="lite", enforce_retention=False).to_arrow()
    return sorted(os.path.basename(name) for name in gone["path"].to_pylist())


def _no_time() -> Any:
    from datetime import timedelta

    return timedelta(0)


OPERATIONS = {
    "read": lambda path: _rows(_table(path)),
    "open": lambda path: _table(path).version,
    "read version 0": lambda path: _rows(deltaic.DeltaTable(path, version=0)),
    "read version 9": lambda path: _rows(deltaic.DeltaTable(path, version=9)),
    "refresh": lambda path: Snapshot.load(_core.Store(path), version=1).refresh().version,
    "history": lambda path: [entry["version"] for entry in _table(path).history()],
    "append": _append,
    "delete": _delete,
    "vacuum": _vacuum,
    "checkpoint": lambda path: _table(path).checkpoint() and None,
}


# --- the parent


def _serve() -> None:
    for request in sys.stdin:
        operation, path = json.loads(request)
        with tempfile.TemporaryFile() as printed:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                os.dup2(printed.fileno(), 2)
                _answer(writer, operation, path)
            os.close(writer)
            answer = _wait(child, reader)
            printed.seek(0)
            answer["printed"] = printed.read().decode(errors="replace")
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _answer(writer: int, operation: str, path: str) -> None:
    """In the child; does not return."""
    answer: dict[str, Any]
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        try:
            answer = {"value": OPERATIONS[operation](path)}
        except BaseException as error:  # each error is passed to the test
            parts = {name: getattr(error, name, None) for name in ("where", "found", "expected")}
            answer = {
                "error": type(error).__name__,
                "bases": [base.__name__ for base in type(error).__mro__],
                "text": str(error),
                **{name: None if part is None else str(part) for name, part in parts.items()},
            }
        with os.fdopen(writer, "w") as stream:
            json.dump(answer, stream)
    finally:
        os._exit(0)


def _wait(child: int, reader: int) -> dict[str, Any]:
    pieces = []
    deadline = time.monotonic() + WALL_SECONDS
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        piece = os.read(reader, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
    os.close(reader)
    _, status, used = os.wait4(child, 0)
    answer: dict[str, Any] = {"peak_mib": used.ru_maxrss / 1024}
    if pieces:
        answer |= json.loads(b"".join(pieces))
    else:
        answer["ended"] = (
            f"by signal {signal.Signals(os.WTERMSIG(status)).name}"
            if os.WIFSIGNALED(status)
            else "without an answer"
        )
    return answer


if __name__ == "__main__":
    _serve()
