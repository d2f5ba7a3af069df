"""A store, a clock and a scheduler for several actors, of which one runs at a time: a seed decides which
actor runs, and which call fails."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterable

# What may become of a put of a commit; see `FaultStore`. The answer "exists" to a put that wrote nothing is a
# 409 of S3.
FAULTS = ("lost", "timeout", "own", "dropped", "phantom", "refused")
HOUR_MS = 3_600_000
WORK_MS = 10 * HOUR_MS
"""How long a transaction or a reader may last."""


class Crash(BaseException):
    """The actor's process ended here."""


class World:
    """`faults`: how often a put of a commit, a listing or an actor fails, 0 to 1. `put_if_absent`: whether
    the store keeps it."""

    def __init__(self, seed: int, *, faults: float, put_if_absent: bool = True) -> None:
        self.random, self.faults, self.put_if_absent = random.Random(seed), faults, put_if_absent
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.deleted: dict[str, tuple[bytes, int]] = {}
        """Read when the run is over: what old versions were can be checked though their files are gone."""
        self.working: dict[int, int] = {}
        """Actor -> since when its transaction or its reading lasts."""
        self.now = 1_800_000_000_000
        self.trace = hashlib.sha256()
        self._turn = threading.Condition()
        self._waiting: set[int] = set()
        self._chosen: int | None = None
        self.over = False

    def run(self, actors: list[Callable[[], None]]) -> None:
        """Runs all to their ends. The first error that is none of the simulation is raised."""
        failures: list[BaseException] = []

        def one(number: int) -> None:
            try:
                self.step(number, "start")
                actors[number]()
            except Crash:
                pass
            except BaseException as error:
                failures.append(error)
            with self._turn:
                left.discard(number)
                self._chosen = None
                self._turn.notify_all()

        left = set(range(len(actors)))
        threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in left]
        for thread in threads:
            thread.start()
        with self._turn:
            while left:
                assert self._turn.wait_for(lambda: self._chosen is None and self._waiting == left, 120), (
                    "an actor waits for another one"
                )
                if left:
                    self._chosen = self.random.choice(sorted(self._waiting))
                    self._turn.notify_all()
                    self._turn.wait_for(lambda: self._chosen is None, 120)
        for thread in threads:
            thread.join()
        self.over = True
        if failures:
            raise failures[0]

    def pass_time(self) -> None:
        """Advances the clock by at most 2 * WORK_MS, so that no command works for longer than WORK_MS."""
        most = min([2 * WORK_MS, *(since + WORK_MS - self.now for since in self.working.values())])
        self.now += max(most, 0)

    def step(self, actor: int, what: str) -> None:
        """Lets the others go on, until it is this actor's turn again."""
        if self.over:
            return
        with self._turn:
            self._waiting.add(actor)
            if self._chosen == actor:
                self._chosen = None
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._chosen == actor)
            self._waiting.discard(actor)
            self.now += self.random.randrange(5)
            self.trace.update(f"{actor} {what}\n".encode())


class ActorStore:
    """deltaic.log.store.LogStore of one actor in a world. Others go on before and after each change of the
    log and each listing."""

    def __init__(self, world: World, actor: int) -> None:
        self.world, self.actor = world, actor
        self.skew = 0
        self.dead = False

    def clock(self) -> int:
        """ms since 1970, by a clock that jumps."""
        if self.world.faults and self.world.random.random() < 0.05:
            self.skew = self.world.random.randrange(-HOUR_MS, HOUR_MS)
        return self.world.now + self.skew

    def _happens(self, share: float = 1.0) -> bool:
        return not self.world.over and self.world.random.random() < self.world.faults * share

    def _step(self, what: str) -> None:
        self._check_alive()
        self.world.step(self.actor, what)
        if self._happens(0.05):
            self.dead = True
        self._check_alive()

    def _check_alive(self) -> None:
        if self.dead:
            raise Crash

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool
    ) -> Iterable[tuple[str, int, int]]:
        self._step("list")
        found = sorted(
            (path, len(data), modified)
            for path, (data, modified) in self.world.objects.items()
            if path.startswith(prefix)
        )
        if self._happens(0.3):  # stale: what came last is not in it yet
            commits = [
                entry for entry in found if entry[0].endswith(".json") and "checkpoint" not in entry[0]
            ]
            found = [entry for entry in found if not commits[1:] or entry != commits[-1]]
        self.world.random.shuffle(found)
        return found

    def head(self, path: str) -> tuple[int, int] | None:
        self._check_alive()
        found = self.world.objects.get(path)
        return None if found is None else (len(found[0]), found[1])

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        self._check_alive()
        found = self.world.objects.get(path) or (self.world.deleted.get(path) if self.world.over else None)
        if found is None:
            raise FileNotFoundError(path)
        return found[0][start:end]

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        if not path.endswith(".json"):
            return self._create(path, data)
        there = path in self.world.objects
        self._step(f"put {path[-12:]}")
        fault = self.world.random.choice(FAULTS) if self._happens() else None
        if fault == "refused":
            raise PermissionError(f"not allowed to write {path}")
        if fault in ("dropped", "phantom"):
            return None if fault == "dropped" else False
        created = self._create(path, data) if self.world.put_if_absent else self._replace(path, data, there)
        self._step(f"answered {created}")
        if fault == "timeout":
            raise TimeoutError(path)
        return None if fault == "lost" else False if fault == "own" else created

    def _create(self, path: str, data: bytes) -> bool:
        self._check_alive()
        if path in self.world.objects:
            return False
        self.world.objects[path] = (data, self.world.now)
        return True

    def _replace(self, path: str, data: bytes, there: bool) -> bool:
        """Writes an object as a store does that first checks and then writes."""
        if not there:
            self.world.objects[path] = (data, self.world.now)
        return not there

    def write(self, path: str, data: bytes) -> None:
        if path.startswith("_delta_log/"):
            self._step("write")
        self._check_alive()
        self.world.objects[path] = (data, self.world.now)

    def delete(self, path: str) -> bool:
        self._check_alive()
        found = self.world.objects.pop(path, None)
        if found is not None:
            self.world.deleted[path] = found
        return found is not None
