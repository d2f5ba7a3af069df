"""*Understanding Delta Lake's consistency model* and its TLA+ specification, on the real commit loop: two
writers, every order of the steps CoordinatePrepareWrite (checks if the version is taken) and TryCommitTxn
(writes it) of a store, and ConsistentRead after each order.

With put-if-absent, or with a lock of the writers around both steps, no order breaks it. With neither, some
order must break it: a checker that finds no violation in that case would never find one.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import DeltaConcurrentModificationException
from fault_store import FaultStore

ORDERS = sorted(set(permutations([0, 0, 1, 1])))  # whose step comes next; what is left over runs freely
STALLED = 0.1  # seconds; a writer whose turn it is but who waits for the other's lock, or is done


class StepwiseStore(FaultStore):
    """Two writers' commits go through it step by step in a given order. `guard`: "put-if-absent", "lock" or
    "neither"."""

    def __init__(self, guard: str) -> None:
        super().__init__()
        self.guard = guard
        self.order: list[int] = []
        self.start = threading.Barrier(2)
        self.came: set[int] = set()
        self.turn = threading.Condition()
        self.writers_lock = threading.Lock()

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        writer = (
            json.loads(data.split(b"\n")[0]).get("commitInfo", {}).get("userMetadata")
            if path.endswith(".json")
            else None
        )
        if writer is None:
            return super().write_if_absent(path, data)
        if int(writer) not in self.came:
            self.came.add(int(writer))
            self.start.wait(30)
        with self.writers_lock if self.guard == "lock" else nullcontext():
            there = self.step(int(writer), lambda: path in self.objects)
            return bool(self.step(int(writer), lambda: self.commit(path, data, there)))

    def commit(self, path: str, data: bytes, there: bool) -> bool:
        if self.guard == "put-if-absent":
            return bool(super().write_if_absent(path, data))
        if not there:
            self.write(path, data)
        return not there

    def step(self, writer: int, action: Any) -> Any:
        with self.turn:
            while not self.turn.wait_for(lambda: not self.order or self.order[0] == writer, STALLED):
                self.order.pop(0)
            if self.order:
                self.order.pop(0)
            self.turn.notify_all()
            return action()


def increment(location: str, writer: int) -> None:
    deltaic.DeltaTable(location, version=0).update(
        {"n": "n + 1"}, "id = 0", commit=deltaic.CommitOptions(user_metadata=str(writer))
    )


def append(location: str, writer: int) -> None:
    new = pa.table({"id": [writer + 1], "n": [1]})
    deltaic.write(
        deltaic.DeltaTable(location, version=0),
        new,
        mode="append",
        commit=deltaic.CommitOptions(user_metadata=str(writer)),
    )


def run(operation: Any, guard: str, order: tuple[int, ...], vectors: bool) -> bool:
    """Returns true if ConsistentRead holds: every version has exactly the commits up to it that were
    acknowledged to their writers."""
    store = StepwiseStore(guard)
    with deltaic.configure(log_stores={"steps": lambda location, options: store}):
        location = "steps://model/t"
        deltaic.write(
            location, pa.table({"id": [0], "n": [0]}), properties={"delta.enableDeletionVectors": vectors}
        )
        store.order = list(order)

        def attempt(writer: int) -> bool:
            try:
                operation(location, writer)
            except DeltaConcurrentModificationException:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            # Threads see the settings of a `with` block by its context alone.
            contexts = [copy_context(), copy_context()]
            told = sum(pool.map(lambda writer: contexts[writer].run(attempt, writer), [0, 1]))
        table = deltaic.DeltaTable(location)
        seen = [
            sum(table.at(version).scan(["n"]).to_arrow()["n"].to_pylist())
            for version in range(table.version + 1)
        ]
    return told >= 1 and seen == list(range(told + 1))


@pytest.mark.parametrize("vectors", [False, True], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("operation", [increment, append])
@pytest.mark.parametrize("guard", ["put-if-absent", "lock"])
def test_consistent_read(guard: str, operation: Any, vectors: bool) -> None:
    assert [order for order in ORDERS if not run(operation, guard, order, vectors)] == []


@pytest.mark.parametrize("operation", [increment, append])
def test_without_guard_a_violation_is_found(operation: Any) -> None:
    broken = [order for order in ORDERS if not run(operation, "neither", order, True)]
    assert (0, 1, 0, 1) in broken
    assert (0, 0, 1, 1) not in broken
