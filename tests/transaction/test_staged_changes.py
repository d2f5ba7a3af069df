"""Several changes of one table in a transaction: one commit with the rows of the same statements one after
the other."""

# ruff: noqa: PT012 - the block of a transaction is what raises

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_several_tables import View

import deltaic
from deltaic import CommitOptions, DeltaTable, _core
from deltaic.errors import (
    AppendOnlyError,
    CommitError,
    CommitUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConstraintViolationError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from deltaic.log import intents
from deltaic.transaction import rolling_forward, several
from deltaic.transaction.staged_changes import OPERATION, net
from numbered_store import NumberedStore

ROWS = {"id": [1, 2, 3, 4, 5, 6], "x": [0] * 6}
PROPERTIES: dict[str, dict[str, Any]] = {
    "vectors": {},
    "rewrites": {"delta.enableDeletionVectors": False},
    "mapped columns": {"delta.columnMapping.mode": "name"},
    "timestamps in commits": {"delta.enableInCommitTimestamps": True},
    "vectors in files": {"deltaic.inlineDeletionVectors": False},
}

Change = Callable[[Any], object]
"""A change, made by the methods of `Staged` or of `Alone`."""


class Staged:
    """The methods of a table, staged in a transaction."""

    def __init__(self, transaction: Any, table: DeltaTable) -> None:
        self.transaction, self.table = transaction, table

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: getattr(self.transaction, name)(self.table, *given, **named)


class Alone:
    """The methods of a table, each of which commits."""

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def write(self, data: Any, **named: Any) -> object:
        return deltaic.write(self.table, data, **{"mode": "append", **named})


def rows(table: DeltaTable | str) -> list[tuple[Any, ...]]:
    opened = DeltaTable(table) if isinstance(table, str) else table
    return sorted(tuple(row.values()) for row in opened.scan())


def left_behind(table: DeltaTable) -> set[str]:
    """Returns files beside the log that the newest version does not name."""
    files = {
        path.relative_to(table.location).as_posix()
        for path in Path(table.location).rglob("*")
        if path.is_file()
    }
    return {path for path in files if not path.startswith("_delta_log")} - {
        row["path"] for row in table.files().to_arrow().to_pylist()
    }


def _random_change(chance: random.Random, number: int) -> Change:
    low, high = sorted((chance.randint(0, 12), chance.randint(0, 12)))
    among = f"id BETWEEN {low} AND {high}"
    new = {"id": [100 + number, chance.randint(1, 9)], "x": [number, number]}
    kind = chance.choice(
        ["write", "delete", "update", "update", "merge", "overwrite"]
        if number
        else ["write", "delete", "update"]
    )
    if kind == "write":
        return lambda table: table.write(new)
    if kind == "overwrite":
        return lambda table: table.write(
            {"id": [low, high], "x": [number] * 2}, mode="overwrite", where=among
        )
    if kind == "delete":
        return lambda table: table.delete(among)
    if kind == "update":
        return lambda table: table.update({"x": "x * 2 + id"}, among)
    unique = {"id": sorted({low, high}), "x": [number] * len({low, high})}

    def merge(table: Any) -> object:
        merging = (
            table.merge(unique, "s.id = t.id")
            .when_matched_update({"x": "t.x + s.x"})
            .when_not_matched_insert_all()
        )
        return merging.execute()

    return merge


@pytest.mark.parametrize("properties", PROPERTIES)
@pytest.mark.parametrize("seed", range(6))
def test_the_rows_are_those_of_the_statements_one_after_the_other(
    tmp_path: Path, properties: str, seed: int
) -> None:
    chance = random.Random(seed)
    changes = [_random_change(chance, number) for number in range(chance.randint(2, 6))]
    a, b = (deltaic.write(tmp_path / name, ROWS, properties=PROPERTIES[properties]) for name in "ab")
    if seed % 2:  # some rows are deleted before
        a.delete("id = 4")
        b.delete("id = 4")
    before = a.version
    alone = Alone(b)
    for change in changes:
        try:
            change(alone)
        except deltaic.errors.DeltaError:
            with pytest.raises(deltaic.errors.DeltaError), deltaic.transaction(a) as t:
                for each in changes:
                    each(Staged(t, a))
            assert a.version == DeltaTable(a.location).version == before
            return
    with deltaic.transaction(a) as t:
        for change in changes:
            change(Staged(t, a))
        assert a.version == DeltaTable(a.location).version == before
    assert rows(a) == rows(a.location) == rows(b)
    assert a.version == DeltaTable(a.location).version == before + (b.version > before)
    a.checkpoint()
    assert rows(a.location) == rows(b)
    assert a.scan().count() == len(rows(b))


def test_one_commit_says_what_was_done(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    with deltaic.transaction(
        table, commit=CommitOptions(user_metadata="nightly", transactions={"job": 7})
    ) as t:
        t.write(table, {"id": [7, 8], "x": [1, 1]})
        assert t.delete(table, "id IN (2, 8)")["num_deleted_rows"] == 2
        assert t.update(table, {"x": "x + id"}, "id = 7")["num_updated_rows"] == 1
        assert rows(table) == [(each, 0) for each in range(1, 7)]
    newest = table.history(1)[0]
    assert (newest["operation"], newest["userMetadata"]) == (OPERATION, "nightly")
    assert newest["operationParameters"] == {"operations": '["WRITE","DELETE","UPDATE"]'}
    assert (newest["operationMetrics"]["numDeletedRows"], newest["operationMetrics"]["numUpdatedRows"]) == (
        "2",
        "1",
    )
    assert table.transaction_state(t.id) == table.version == 1
    assert table.transaction_version("job") == 7
    assert rows(table) == [(1, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 8)]


def test_files_that_came_and_went_are_deleted(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS, properties={"delta.enableDeletionVectors": False})
    with deltaic.transaction(table) as t:
        t.write(table, {"id": [7], "x": [0]})
        t.update(table, {"x": "1"})
        t.update(table, {"x": "x + 1"}, "id > 3")
        t.delete(table, "id = 7")
    assert rows(table) == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2)]
    former = {row["path"] for row in DeltaTable(table.location, version=0).files().to_arrow().to_pylist()}
    assert left_behind(table) == former
    with pytest.raises(ZeroDivisionError), deltaic.transaction(table) as t:
        t.write(table, {"id": [7], "x": [0]})
        t.update(table, {"x": "3"})
        1 / 0  # noqa: B018
    assert left_behind(table) == former
    assert table.version == 1


def test_all_that_was_inserted_is_deleted_again(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    with deltaic.transaction(table) as t:
        t.write(table, {"id": [7], "x": [0]})
        t.delete(table, "id = 7")
    assert rows(table) == rows(table.location) == [(each, 0) for each in range(1, 7)]


def test_definitions_change_within(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    with deltaic.transaction(table) as t:
        t.write(table, {"id": [7], "x": [0], "y": ["new"]}, schema_mode="merge")
        t.update(table, {"y": "concat(y, '!')"}, "y IS NOT NULL")
        t.delete(table, "y IS NULL AND id < 6")
    assert rows(table) == rows(table.location) == [(6, 0, None), (7, 0, "new!")]


def test_rules_of_the_table_hold_for_each_change(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "a", ROWS)
    table.alter.add_constraints({"few": "x < 10"})
    with pytest.raises(ConstraintViolationError), deltaic.transaction(table) as t:
        t.write(table, {"id": [7], "x": [5]})
        t.update(table, {"x": "x * 2"}, "id = 7")
    only = deltaic.write(tmp_path / "b", ROWS, properties={"delta.appendOnly": True})
    with pytest.raises(AppendOnlyError), deltaic.transaction(only) as t:
        t.write(only, {"id": [7], "x": [5]})
        t.delete(only, "id = 7")
    assert (rows(table), rows(only)) == ([(each, 0) for each in range(1, 7)],) * 2
    with deltaic.transaction(only) as t:
        t.write(only, {"id": [7], "x": [0]})
        t.write(only, {"id": [8], "x": [0]})
    assert [each for each, _ in rows(only)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_identity_columns_go_on(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id bigint GENERATED ALWAYS AS IDENTITY, x int")
    with deltaic.transaction(table) as t:
        t.write(table, {"x": [1, 2]})
        t.write(table, {"x": [3]})
        t.delete(table, "x = 2")
    deltaic.write(table, {"x": [4]}, mode="append")
    found = [row["id"] for row in DeltaTable(tmp_path).scan()]
    assert len(set(found)) == len(found) == 3


@pytest.mark.parametrize(
    "properties", [{"delta.enableRowTracking": True}, {"delta.enableChangeDataFeed": True}]
)
def test_tables_that_take_one_change(tmp_path: Path, properties: dict[str, Any]) -> None:
    table = deltaic.write(tmp_path, ROWS, properties=properties)
    with (
        pytest.raises(UnsupportedFeatureError, match="the table takes one change in a transaction"),
        deltaic.transaction(table) as t,
    ):
        t.write(table, {"id": [7], "x": [0]})
        t.delete(table, "id = 7")
    assert (table.version, len(left_behind(table))) == (0, 0)
    with deltaic.transaction(table) as t:
        t.write(table, {"id": [7], "x": [0]})
    assert DeltaTable(tmp_path).scan().count() == 7


def test_a_subquery_over_the_table_is_refused_after_a_change(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    where = f"id IN (SELECT max(id) FROM delta.`{tmp_path}`)"
    with (
        pytest.raises(UnsupportedFeatureError, match="does not see what the transaction staged before"),
        deltaic.transaction(table) as t,
    ):
        t.write(table, {"id": [7], "x": [0]})
        t.delete(table, where)
    with deltaic.transaction(table) as t:
        t.delete(table, where)
        t.write(table, {"id": [7], "x": [0]})
    assert [each for each, _ in rows(table)] == [1, 2, 3, 4, 5, 7]


def test_a_change_that_skips_what_is_staged_is_refused(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    group = several.SeveralTables()
    for expected in (None, InvalidArgumentError):
        transaction = several.Transaction(table._snapshot, "WRITE")
        if expected is None:
            group.add(transaction, dict)
        else:
            with pytest.raises(expected, match="does not follow"):
                group.add(transaction, dict)


def test_a_conflict_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, ROWS)
    other = DeltaTable(tmp_path)

    def conflicting(work: Callable[[], object], expected: type[Exception]) -> None:
        opened = DeltaTable(tmp_path)
        with pytest.raises(expected), deltaic.transaction(opened) as t:
            t.write(opened, {"id": [70], "x": [0]})
            t.delete(opened, "id >= 5")
            work()
        assert left_behind(DeltaTable(tmp_path)) <= left_behind(other)

    conflicting(lambda: deltaic.write(other, {"id": [9], "x": [0]}, mode="append"), ConcurrentAppendException)
    conflicting(lambda: other.delete("id = 5"), ConcurrentDeleteReadException)
    # Another row of the same file: files are compared.
    conflicting(lambda: other.delete("id = 1"), ConcurrentDeleteReadException)
    with deltaic.transaction(table := DeltaTable(tmp_path)) as t:
        t.write(table, {"id": [70], "x": [0]})
        t.delete(table, "id >= 6")
        deltaic.write(other.refresh() or other, {"id": [0], "x": [0]}, mode="append")
    assert [each for each, _ in rows(str(tmp_path))] == [0, 2, 3, 4]


def test_several_changes_of_several_tables(tmp_path: Path) -> None:
    a, b = (deltaic.write(tmp_path / name, ROWS) for name in "ab")
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [7], "x": [0]})
        t.update(b, {"x": "1"}, "id = 1")
        t.delete(a, "id IN (1, 7)")
        t.update(b, {"x": "x + 1"}, "id < 3")
    assert [each for each, _ in rows(a)] == [2, 3, 4, 5, 6]
    assert rows(b.location)[:2] == [(1, 2), (2, 1)]
    assert a.transaction_state(t.id) == b.transaction_state(t.id) == a.version == b.version == 2
    assert [each.history(1)[0]["operation"] for each in (a, b)] == [OPERATION, "UPDATE"]


# --- faults: each call of the store fails in turn


@pytest.mark.parametrize("lasting", [False, True], ids=["a failure", "a crash"])
@pytest.mark.parametrize("fault", ["before", "after", "lost"])
@pytest.mark.parametrize("both", [False, True], ids=["one table", "two tables"])
def test_each_call_fails(fault: Any, lasting: bool, both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deltaic.transaction.attempts.PUT_WAITS", "deltaic.transaction.transaction.READ_WAITS"):
        monkeypatch.setattr(name, (0.0,))
    monkeypatch.setattr(intents, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(intents, "RECORD_WAITS", (0.0,))
    monkeypatch.setattr(rolling_forward, "RECORD_WAITS", (0.0,))
    monkeypatch.setattr(several, "_MOST_THREADS", 1)
    store, root, names = NumberedStore(), f"staged://{uuid.uuid4().hex}", "ab" if both else "a"

    def open_view(location: str, options: Any = None) -> View:
        return View(store, location.rsplit("/", 1)[-1])

    def change() -> None:
        tables = [DeltaTable(f"{root}/{name}") for name in names]
        with deltaic.transaction(*tables) as t:
            for table in tables:
                t.write(table, pa.table({"id": [7, 8], "x": [0, 0]}))
                t.delete(table, "id IN (1, 8)")
                t.update(table, {"x": "x + 1"}, "id = 7 OR id = 2")

    after = [(2, 1), (3, 0), (4, 0), (5, 0), (6, 0), (7, 1)]
    before = [(each, 0) for each in range(1, 7)]
    with deltaic.configure(log_stores={"staged": open_view}):
        for name in names:
            deltaic.write(f"{root}/{name}", ROWS)
        start = dict(store.objects)
        store.reset()
        change()
        calls, step = len(store.calls), 1 if not both else 5
        for number in range(1, calls + 1, step):
            store, root = NumberedStore(start), f"staged://{uuid.uuid4().hex}"
            monkeypatch.setattr(intents, "DONE", intents._FinishedTransactions())
            store.reset(number, fault, lasting=lasting)
            outcome = "committed"
            try:
                change()
            except CommitUnknownError:
                outcome = "unknown"
            except (CommitError, OSError):
                outcome = "failed"
            store.reset()
            monkeypatch.setattr(intents, "DONE", intents._FinishedTransactions())
            found = [rows(f"{root}/{name}") for name in names]
            assert found in ([before] * len(names), [after] * len(names)), (number, outcome)
            expected = {"committed": [after], "failed": [before], "unknown": [before, after]}[outcome]
            assert found[0] in expected, (number, outcome)
            deltaic.write(f"{root}/a", {"id": [1000], "x": [0]}, mode="append")
            assert rows(f"{root}/a") == [*found[0], (1000, 0)], (number, outcome)


def net_row_by_row(steps: list[tuple[list[Any], list[Any]]]) -> tuple[list[Any], list[Any]]:
    """`net`, an action at a time: an action is a key and a number."""
    added: dict[Any, int] = {}
    removed: dict[Any, int] = {}
    for adds, removes in steps:
        for key, number in removes:
            if added.pop(key, None) is None:
                removed[key] = number
        added.update(adds)
    return sorted(added.values()), sorted(removed.values())


def as_actions(rows: list[Any], empty: pa.Table) -> pa.Table:
    vector = {"sizeInBytes": 1, "cardinality": 1}
    named = [
        {
            "path": path,
            "size": number,
            "partitionValues": [],
            "deletionVector": None
            if of is None
            else {**vector, "storageType": of[0], "pathOrInlineDv": of[1], "offset": of[2]},
        }
        for (path, of), number in rows
    ]
    return pa.Table.from_pylist(named, empty.schema)


def test_net_actions_are_those_of_one_action_at_a_time() -> None:
    chance = random.Random(3)
    vectors = [None, ("u", "x", 1), ("u", "x", None), ("u", "x", 9), ("i", "x", None)]
    keys = [(path, vector) for path in "ab" for vector in vectors]
    for _ in range(300):
        steps, number = [], 0
        for _ in range(chance.randint(1, 6)):
            kinds: list[list[Any]] = []
            for _ in range(2):
                chosen = chance.sample(keys, chance.choice([0, 1, 3, 6]))
                kinds.append([(key, number + at) for at, key in enumerate(chosen)])
                number += len(chosen)
            steps.append((kinds[0], kinds[1]))
        tables = [
            (as_actions(adds, _core.empty_adds()), as_actions(removes, _core.empty_removes()))
            for adds, removes in steps
        ]
        found = net(tables)
        assert tuple(sorted(each["size"].to_pylist()) for each in found) == net_row_by_row(steps)
