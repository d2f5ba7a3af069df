"""Random transactions over several tables, single commits and readers in a simulated store; a seed replays a
run. `DELTAIC_SIMULATIONS=2000` makes a longer test.

Oracle: each transaction is in all of its tables once or in none, as its writer was informed; each table has
the rows of its commits, one after the other; and a reader that sees a transaction in one table sees it in all
tables that it reads after that.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import pyarrow as pa
import pytest
from simulated_store import ActorStore, World

import deltaic
from deltaic import _core
from deltaic.errors import CommitError, CommitUnknownError, DeltaError
from deltaic.log import intents
from deltaic.log.segment import commit_path
from deltaic.log.snapshot import Snapshot
from deltaic.protocol.definition import new_table
from deltaic.transaction import several
from deltaic.transaction.attempts import Attempts
from deltaic.transaction.several import SeveralTables
from deltaic.transaction.transaction import Transaction
from deltaic.transaction.winners import Winners

SEEDS = int(os.environ.get("DELTAIC_SIMULATIONS", "250"))
_worlds = itertools.count()
VIEW: ContextVar[ActorStore | None] = ContextVar("the store of an actor", default=None)


class TableStore:
    """deltaic.log.store.LogStore: one table in the world, as an actor sees it."""

    def __init__(self, view: ActorStore, name: str) -> None:
        self.view, self.name = view, f"{name}/"

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool
    ) -> Iterable[tuple[str, int, int]]:
        self.view._step(f"list {self.name}")
        found = [(path, len(data), modified) for path, (data, modified) in self.view.world.objects.items()]
        inside = [
            (path.removeprefix(self.name), size, modified)
            for path, size, modified in found
            if path.startswith(self.name + prefix)
        ]
        self.view.world.random.shuffle(inside)
        return inside

    def head(self, path: str) -> tuple[int, int] | None:
        return self.view.head(self.name + path)

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self.view.read(self.name + path, start, end)

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        return self.view.write_if_absent(self.name + path, data)

    def write(self, path: str, data: bytes) -> None:
        self.view._step(f"write {path[-12:]}")
        self.view.world.objects[self.name + path] = (data, self.view.world.now)

    def delete(self, path: str) -> bool:
        self.view._step(f"delete {path[-12:]}")
        return self.view.delete(self.name + path)


class DoneByActor:
    """`intents.DONE`, as each actor is a process of its own."""

    def __init__(self) -> None:
        self.processes: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        view = VIEW.get()
        return getattr(
            self.processes.setdefault(-1 if view is None else view.actor, intents._FinishedTransactions()),
            name,
        )


class Run:
    """The run of one seed. `problems`: the violated invariants.

    A table is a set of files; a transaction adds one file with its own name to each of its tables, and may
    remove one that it has read. So the files of a version show which transactions it has.
    """

    def __init__(self, seed: int, *, faults: float = 0.1) -> None:
        self.world = World(seed, faults=0.0)
        self.random = random.Random(seed + 1)
        self.root = f"simtables://{next(_worlds)}"
        self.problems: list[str] = []
        self.told: dict[str, str] = {}
        """Name of a commit's file -> the outcome that its writer got."""
        self.parts: dict[str, tuple[str, ...]] = {}
        """Name of a commit's file -> the tables of its transaction."""
        self.taken: dict[tuple[str, str], str] = {}
        """(Name, table) -> the file that it takes away."""
        self.names = "abc"[: self.random.randint(2, 3)]
        self.numbers = itertools.count()
        with deltaic.configure(log_stores={"simtables": self._open}):
            self.world.over = True
            for name in self.names:
                self._create(name)
            self.world.over, self.world.faults = False, faults
            count = self.random.randint(2, 5)
            seeds = [self.random.randrange(1 << 30) for _ in range(count)]
            context = [lambda number=number: self._act(number, seeds[number]) for number in range(count)]
            self.world.run(context)  # type: ignore[arg-type]
            self.world.faults = 0.0
            self._check()

    def _open(self, location: str, options: Any = None) -> TableStore:
        return TableStore(VIEW.get() or ActorStore(self.world, -1), location.rsplit("/", 1)[-1])

    def _store(self, name: str, view: ActorStore | None = None) -> _core.Store:
        location = f"{self.root}/{name}"
        return _core.Store.from_python(TableStore(view or ActorStore(self.world, -1), name), location)

    def _create(self, name: str) -> None:
        protocol, metadata = new_table("id bigint", properties={"delta.checkpointInterval": 3})
        transaction = Transaction(
            None, "CREATE TABLE", {}, store=self._store(name), clock=lambda: self.world.now
        )
        transaction.set_protocol(protocol)
        transaction.set_metadata(metadata)
        transaction.add(_file("first"))
        transaction.commit()

    def _act(self, actor: int, seed: int) -> None:
        chance = random.Random(seed)
        view = ActorStore(self.world, actor)
        VIEW.set(view)
        for _ in range(chance.randint(2, 4)):
            kind = chance.choice(["several", "several", "single", "read"])
            tables = chance.sample(self.names, chance.randint(2, len(self.names)) if kind == "several" else 1)
            try:
                if kind == "read":
                    self._read(view, chance)
                    continue
                opened = [Snapshot.load(self._store(name, view), sleep=lambda _: None) for name in tables]
            except (DeltaError, OSError):
                continue
            self._commit(kind, dict(zip(tables, opened, strict=True)), view, chance)

    def _commit(
        self, kind: str, opened: dict[str, Snapshot], view: ActorStore, chance: random.Random
    ) -> None:
        name = f"{kind}-{next(self.numbers)}"
        parts = []
        for table, snapshot in opened.items():
            new_id = lambda: f"{view.actor}-{next(self.numbers)}"  # noqa: E731
            transaction = Transaction(
                snapshot, name, {}, clock=view.clock, new_id=new_id, sleep=lambda _: None
            )
            if chance.random() < 0.5:
                live = snapshot.files().adds
                chosen = live.slice(chance.randrange(live.num_rows), 1) if live.num_rows else live
                if chosen.num_rows:
                    transaction.read(None)
                    transaction.remove(_core.removes_of(chosen, 1, True))
                    self.taken[(name, table)] = chosen["path"][0].as_py()
            transaction.add(_file(name))
            parts.append(transaction)
        self.parts[name], self.told[name] = tuple(opened), "unknown"
        try:
            if kind == "single":
                parts[0].commit()
            else:
                group = SeveralTables(clock=view.clock, new_id=lambda: f"t-{name}", sleep=lambda _: None)
                for part in parts:
                    group.add(part, dict)
                group.commit()
            self.told[name] = "committed"
        except CommitError:
            self.told[name] = "failed"
        except CommitUnknownError:
            pass
        except (DeltaError, OSError) as error:
            self.problems.append(f"{name} raised {type(error).__name__}: {error}")

    def _read(self, view: ActorStore, chance: random.Random) -> None:
        """Tables one after the other: a transaction in one of them is in all that come later."""
        order = chance.sample(self.names, len(self.names))
        seen: set[str] = set()
        for table in order:
            found = set(self._ever(Snapshot.load(self._store(table, view), sleep=lambda _: None), table))
            missing = {name for name in seen if table in self.parts[name]} - found
            if missing:
                self.problems.append(
                    f"reader of {order}: {missing} is in a table before {table}, but not there"
                )
            seen |= {name for name in found if name.startswith("several")}

    def _ever(self, snapshot: Snapshot, table: str) -> Iterator[str]:
        """Commits that a version has, whether their files are still there or not."""
        for version in range(snapshot.version + 1):
            data = self.world.objects.get(f"{table}/{commit_path(version)}")
            if data is not None:
                info = json.loads(data[0].splitlines()[0])["commitInfo"]
                if info["operation"] in self.parts:
                    yield info["operation"]
        if snapshot.is_unwritten:  # the store refused the put: the newest version is in an intent alone
            yield from (path for path in snapshot.files().adds["path"].to_pylist() if path in self.parts)

    # --- what must hold

    def _check(self) -> None:
        counted: dict[str, Counter[str]] = {}
        for table in self.names:
            store = self._store(table)
            newest = Snapshot.load(store)
            commits = list(self._ever(newest, table))
            counted[table] = Counter(commits)
            live = Counter(["first"])
            for name in commits:
                if taken := self.taken.get((name, table)):
                    if not live[taken]:
                        self.problems.append(f"{table}: {name} took {taken}, which was not there")
                    live[taken] -= 1
                live[name] += 1
            found = newest.files().adds["path"].to_pylist()
            if sorted(found) != sorted(live.elements()):
                self.problems.append(f"{table} has {sorted(found)} instead of {sorted(live.elements())}")
        for name, tables in self.parts.items():
            times = {table: counted[table][name] for table in tables}
            if set(times.values()) not in ({0}, {1}):
                self.problems.append(f"{name} ({self.told[name]}) is there {times}")
            elif {"committed": 1, "failed": 0}.get(self.told[name], times[tables[0]]) != times[tables[0]]:
                self.problems.append(f"{name} was {self.told[name]}, and is there {times}")


def _file(path: str) -> pa.Table:
    row = {
        "path": path,
        "partitionValues": [],
        "size": 100,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":1},"nullCount":{"id":0}}',
    }
    return pa.Table.from_pylist([row], _core.empty_adds().schema)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits gives way to the others, and one actor runs at a time."""
    monkeypatch.setattr(several, "_together", lambda calls, waits: [call() for call in calls])
    monkeypatch.setattr(intents, "WAITS", (0.0,) * 4)
    monkeypatch.setattr(intents, "RECORD_WAITS", (0.0,) * 3)
    monkeypatch.setattr(intents, "DONE", DoneByActor())
    monkeypatch.setattr("deltaic.transaction.rolling_forward.RECORD_WAITS", (0.0,) * 3)


def test_all_or_none() -> None:
    runs = {seed: Run(seed) for seed in range(SEEDS)}
    assert {seed: run.problems for seed, run in runs.items() if run.problems} == {}
    told = Counter(
        outcome for run in runs.values() for name, outcome in run.told.items() if name.startswith("several")
    )
    assert min(told[outcome] for outcome in ("committed", "failed", "unknown")) > 0
    records = [
        run.world.objects[path][0]
        for run in runs.values()
        for path in run.world.objects
        if "_transactions" in path
    ]
    assert {b'"state":"aborted"' in record for record in records} == {True, False}


def test_without_faults_every_writer_gets_its_answer() -> None:
    for seed in range(20):
        run = Run(seed, faults=0.0)
        assert run.problems == []
        assert "unknown" not in run.told.values()


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "readers take what is decided for what is not": lambda patch: patch.setattr(
        intents, "resolve", lambda store, found, latest, now: (False, [])
    ),
    "writers pass over starts": lambda patch: patch.setattr(intents, "settle", lambda *_, **__: None),
    "no record is written": lambda patch: patch.setattr(
        intents, "decide", lambda store, name, commit, *_: commit
    ),
    "a commit is rolled forward without a look at whose a version is": lambda patch: patch.setattr(
        "deltaic.transaction.rolling_forward._is_ours", lambda *_: False
    ),
    "no winner is looked at": lambda patch: patch.setattr(
        Attempts, "_pass", lambda self, newest: setattr(self, "base", newest)
    ),
    "winners of a start are not checked": lambda patch: patch.setattr(
        Winners, "check", lambda self, current, version: None
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_is_off_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    assert any(_is_wrong(seed) for seed in range(150))


def _is_wrong(seed: int) -> bool:
    try:
        return bool(Run(seed).problems)
    except Exception:
        return True
