"""Random runs of several writers over a simulated store; a seed replays a run. `DELTAIC_SIMULATIONS=20000`
makes a longer test."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltaic.commands import vacuum
from deltaic.log import checkpoint, references
from deltaic.log.segment import checkpoint_path
from deltaic.log.stream_offset import BASE, StreamOffset
from deltaic.transaction import conflicts
from deltaic.transaction.attempts import Attempts
from deltaic.transaction.transaction import Transaction
from simulation import Run

SEEDS = int(os.environ.get("DELTAIC_SIMULATIONS", "250"))


def test_nothing_is_lost_and_nothing_is_there_twice() -> None:
    wrong = {seed: run.problems for seed in range(SEEDS) if (run := Run(seed)).problems}
    assert wrong == {}


def test_without_faults_every_writer_gets_its_answer() -> None:
    for seed in range(10):
        run = Run(seed, faults=0.0)
        assert run.problems == []
        assert {operation.outcome for operation in run.operations[1:]} <= {"committed", "failed"}


def test_vacuum_has_something_to_do() -> None:
    runs = [Run(seed) for seed in range(20)]
    assert sum(run.vacuumed > 0 for run in runs) >= 1
    assert sum(len(follower.paths) > 3 for run in runs for follower in run.followers.values()) >= 10


def test_a_seed_replays_a_run() -> None:
    assert [Run(seed).world.trace.hexdigest() for seed in range(10)] == [
        Run(seed).world.trace.hexdigest() for seed in range(10)
    ]


def _attempts(name: str, replacement: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(Attempts, name, replacement)


_IS_OURS = Attempts._is_ours
_CHECK_FILES = conflicts.check_files
_CANDIDATES, _PARSE = vacuum._candidates, StreamOffset.parse

MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "added files are not looked at": lambda patch: patch.setattr(
        conflicts, "must_see_adds", lambda current, winner: False
    ),
    "rows taken by others are not compared": lambda patch: patch.setattr(
        conflicts,
        "check_files",
        lambda current, winner, overlap: _CHECK_FILES(
            current, winner, _without(overlap, "taken", "deleted_both")
        ),
    ),
    "files removed twice are not compared": lambda patch: patch.setattr(
        conflicts,
        "check_files",
        lambda current, winner, overlap: _CHECK_FILES(current, winner, _without(overlap, "removed_both")),
    ),
    "vectors are not joined": lambda patch: patch.setattr(
        Transaction, "move_marks", lambda self, rebased: None
    ),
    "a lost answer is taken for another's": _attempts("_is_ours", lambda self, version, txn: (False, None)),
    "exists means that it is another's": _attempts(
        "_is_ours",
        lambda self, version, txn: (
            (False, None) if _IS_OURS(self, version, txn)[0] is None else _IS_OURS(self, version, txn)
        ),
    ),
    "every commit is taken for one's own": _attempts("_is_ours", lambda self, version, txn: (True, None)),
    "vacuum takes vectors for files that nobody names": lambda patch: patch.setattr(
        references, "vector_files", lambda actions, location: pa.array([], pa.string())
    ),
    "vacuum does not ask how old a file is": lambda patch: patch.setattr(
        vacuum, "_candidates", lambda snapshot, cutoff, now: _CANDIDATES(snapshot, now, now)
    ),
    "a stream forgets where it was in a commit": lambda patch: patch.setattr(
        StreamOffset,
        "parse",
        staticmethod(lambda text, table_id: dataclasses.replace(_PARSE(text, table_id), index=BASE)),
    ),
    "a checkpoint has the name of the next version": lambda patch: patch.setattr(
        checkpoint, "checkpoint_path", lambda version, *rest: checkpoint_path(version + 1, *rest)
    ),
    "no winner is looked at": _attempts("_pass", lambda self, newest: setattr(self, "base", newest)),
}


def _without(overlap: conflicts.Overlap, *names: str) -> conflicts.Overlap:
    return dataclasses.replace(overlap, **dict.fromkeys(names, ()))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_is_off_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    assert _is_found(True)


def test_a_store_that_keeps_no_put_if_absent_is_found() -> None:
    assert _is_found(False)


def _is_found(put_if_absent: bool) -> bool:
    for seed in range(100):
        try:
            if Run(seed, put_if_absent=put_if_absent).problems:
                return True
        except Exception:
            return True  # a log that cannot be gone on with
    return False
