"""A crash or an error at each call that a command makes to its store: every command, on several kinds of
tables, and every kind of failure. The table is unchanged or has the commit once, and can still be written.

`DELTAIC_CRASH_POINTS=1` runs all points, which takes several minutes; the default is each 23rd one.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import CommitUnknownError, DeltaError
from numbered_store import Fault, NumberedStore
from test_faults import COMMANDS as WRITES
from test_faults import Command, content, data_files, place, rows, scheme  # noqa: F401

STEP = int(os.environ.get("DELTAIC_CRASH_POINTS", "23"))
TABLES: dict[str, dict[str, object]] = {
    "vectors": {"delta.enableDeletionVectors": True},
    "copies": {"delta.enableDeletionVectors": False},
    "change feed": {"delta.enableDeletionVectors": False, "delta.enableChangeDataFeed": True},
    "checkpoints": {"delta.enableDeletionVectors": True, "delta.checkpointInterval": 1},
    "sidecars": {
        "delta.enableDeletionVectors": True,
        "delta.checkpointInterval": 1,
        "delta.checkpointPolicy": "v2",
    },
    "mapped": {
        "delta.columnMapping.mode": "name",
        "delta.enableRowTracking": True,
        "delta.enableDeletionVectors": True,
    },
}
FAULTS: dict[str, tuple[Fault, bool]] = {
    "error before": ("before", False),
    "error after": ("after", False),
    "lost answer": ("lost", False),
    "torn write": ("torn", False),
    "crash before": ("before", True),
    "crash after": ("after", True),
}
"""What happens to a call; True if no later call of the command succeeds either."""


def merging(table: DeltaTable) -> Any:
    return table.merge(rows(5, 6, 100, word="new"), "t.id = s.id")


COMMANDS: dict[str, Command] = {
    **WRITES,
    "merge that deletes": lambda table: merging(table).when_matched_delete().execute(),
    "merge that inserts": lambda table: merging(table).when_not_matched_insert_all().execute(),
    "merge by source": lambda table: merging(table).when_not_matched_by_source_delete("t.id < 2").execute(),
    "delete all": lambda table: table.delete(),
    "delete a partition": lambda table: table.delete("month = '1'"),
    "statistics": lambda table: table.optimize.statistics(["id"]),
    "cluster by": lambda table: table.alter.cluster_by("id"),
    "comment": lambda table: table.alter.change_column("word", comment="a word"),
    "description": lambda table: table.alter.set_description("a table"),
    "properties": lambda table: table.alter.set_properties({"a": "b"}),
    "constraint": lambda table: table.alter.add_constraints({"positive": "id >= 0"}),
    "rename": lambda table: table.alter.rename_column("word", "text"),
    "row tracking": lambda table: table.alter.set_properties({"delta.enableRowTracking": "true"}),
    "drop vectors": lambda table: table.alter.drop_feature("deletionVectors"),
    "checkpoint": lambda table: table.checkpoint(),
    "compact the log": lambda table: table.compact_log(0, 2),
    "clean the log": lambda table: table.clean_log(),
    "repair": lambda table: table.repair(),
    "manifests": lambda table: table.generate(),
    "vacuum": lambda table: table.vacuum(retention=timedelta(0), enforce_retention=False),
}
SEVERAL_COMMITS = ("row tracking", "drop vectors", "vacuum")
"""Commands that commit several times, and keep the rows."""


def start(kind: str) -> NumberedStore:
    store = NumberedStore()
    properties = {"delta.checkpointInterval": 100, **TABLES[kind]}
    table = deltaic.write(place(store), rows(0, 1, 2, 3), partition_by="month", properties=properties)
    deltaic.write(table, rows(4, 5, 6, 7), mode="append")
    table.delete("id = 3")
    return store


def commits(store: NumberedStore) -> list[str]:
    return [path for path in store.objects if re.fullmatch(r"_delta_log/\d{20}\.json", path)]


class Enumeration:
    """The calls of a command on a table, and the content before and after it."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name, self.command = kind, name, COMMANDS[name]
        self.before = start(kind)
        self.origin = content(place(self.before))
        done = NumberedStore(self.before.objects)
        table = DeltaTable(place(done))
        done.reset()
        try:
            self.command(table)
        except DeltaError as error:
            pytest.skip(f"not a command of this table: {error}")
        self.calls = list(done.calls)
        done.reset()
        self.result = content(place(done))
        self.commits = len(commits(done)) - len(commits(self.before))

    def points(self) -> Iterator[tuple[int, str]]:
        """The number of a call and what happens to it."""
        for number, (method, _) in enumerate(self.calls, start=1):
            yield from ((number, fault) for fault in FAULTS if fault != "torn write" or method == "write")

    def check(self, number: int, name: str) -> None:
        fault, lasting = FAULTS[name]
        store = NumberedStore(self.before.objects)
        location = place(store)
        table = DeltaTable(location)
        store.reset(number, fault, lasting=lasting)
        error: BaseException | None = None
        try:
            self.command(table)
        except (DeltaError, OSError) as raised:
            error = raised
        store.reset()
        where = (number, self.calls[number - 1], name, repr(error))
        found, there = content(location), len(commits(store)) - len(commits(self.before))
        if self.name in SEVERAL_COMMITS:
            assert found == self.origin, where
        elif error is None:
            assert (found, there) == (self.result, self.commits), where
        elif isinstance(error, CommitUnknownError) or self.commits == 0:
            assert (found, there) in [(self.origin, 0), (self.result, self.commits)], where
        else:
            assert (found, there) == (self.origin, 0), where
        if (
            there == 0
            and name == "error before"
            and not isinstance(error, CommitUnknownError)
            and self.name != "manifests"
        ):
            assert data_files(store) <= data_files(self.before), where
        if there == 0:
            self.command(DeltaTable(location))
            assert content(location) == self.result, where
        before = DeltaTable(location).scan().count()
        with suppress(deltaic.errors.AppendOnlyError):
            after = deltaic.write(location, pa.table({"id": [500], "month": ["0"]}), mode="append")
            assert after.scan().count() == before + 1, where


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_failure_of_a_call(kind: str, name: str) -> None:
    enumeration = Enumeration(kind, name)
    first = zlib.crc32(f"{kind} {name}".encode()) % STEP
    for number, fault in list(enumeration.points())[first::STEP]:
        enumeration.check(number, fault)


def test_there_are_more_than_five_thousand() -> None:
    total = 0
    for kind in TABLES:
        for name in COMMANDS:
            with suppress(pytest.skip.Exception):
                total += len(list(Enumeration(kind, name).points()))
    assert total >= 5000
