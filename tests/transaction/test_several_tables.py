"""Commits over several tables: all tables have the commit or none, whichever process fails at any step; and
the view of other engines meanwhile."""

# ruff: noqa: PT012 - the block of a transaction is what raises

from __future__ import annotations

import errno
import json
import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic._core import Store
from deltaic.errors import (
    CommitError,
    CommitUnknownError,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    DeltaError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from deltaic.log import intents
from deltaic.log.segment import commit_path
from deltaic.transaction import rolling_forward, several
from numbered_store import NumberedStore

STEP = int(os.environ.get("DELTAIC_TABLE_FAULTS", "7"))
"""Every `STEP`th call fails, each in a run of its own; 1 means every call."""


def ids(table: DeltaTable | str) -> list[int]:
    opened = DeltaTable(table) if isinstance(table, str) else table
    return sorted(row["id"] for row in opened.scan())


def log_of(table: DeltaTable) -> list[str]:
    return sorted(os.listdir(Path(table.location) / "_delta_log"))


def data_files(table: DeltaTable) -> set[str]:
    return {
        path.name
        for path in Path(table.location).rglob("*")
        if path.is_file() and "_delta_log" not in path.parts
    }


@pytest.fixture
def tables(tmp_path: Path) -> list[DeltaTable]:
    return [deltaic.write(tmp_path / name, {"id": [1, 2, 3], "x": [0, 0, 0]}) for name in "abc"]


@pytest.fixture(autouse=True)
def a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has no cached transactions, and waits are short."""
    monkeypatch.setattr(intents, "DONE", intents._FinishedTransactions())
    monkeypatch.setattr(intents, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(intents, "RECORD_WAITS", (0.0,))
    monkeypatch.setattr(rolling_forward, "RECORD_WAITS", (0.0,))


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents, "DONE", intents._FinishedTransactions())


# --- what a commit is


def test_all_tables_get_their_version(tables: list[DeltaTable]) -> None:
    a, b, c = tables
    options = CommitOptions(user_metadata="nightly", isolation="snapshot")
    with deltaic.transaction(a, b, c, commit=options) as t:
        assert t.write(a, {"id": [4], "x": [0]}) is None
        assert t.delete(b, "id = 2")["num_deleted_rows"] == 1
        assert t.update(c, {"x": "x + id"}, "id > 1")["num_updated_rows"] == 2
        assert t.id is None
        assert [ids(each) for each in tables] == [[1, 2, 3]] * 3
        assert ids(a.location) == [1, 2, 3]
    assert [ids(each) for each in tables] == [[1, 2, 3, 4], [1, 3], [1, 2, 3]]
    assert sorted((row["id"], row["x"]) for row in c.scan()) == [(1, 0), (2, 2), (3, 3)]
    assert t.id is not None
    for table, operation in zip(tables, ("WRITE", "DELETE", "UPDATE"), strict=True):
        assert table.version == DeltaTable(table.location).version == table.transaction_state(t.id) == 2
        newest, start, _ = table.history()
        assert (newest["operation"], newest["userMetadata"], newest["isolationLevel"]) == (
            operation,
            "nightly",
            "SnapshotIsolation",
        )
        assert (start["operation"], start["operationParameters"]) == (intents.START, {"transaction": t.id})
        assert DeltaTable(table.location, version=1).scan().count() == 3
    assert tables[1].history(1)[0]["operationMetrics"]["numDeletedRows"] == "1"


def test_other_engines_read_each_table_before_between_and_after(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    seen: list[list[int]] = []

    def look(table: DeltaTable) -> list[int]:
        found = (
            deltalake.QueryBuilder()
            .register("t", deltalake.DeltaTable(table.location))
            .execute("SELECT id FROM t")
            .read_all()
        )
        return sorted(pa.table(found)["id"].to_pylist())

    decide, put = several.intents.decide, several.roll_forward

    def decided(*arguments: Any) -> bool:
        seen.extend([look(a), look(b)])
        answer = decide(*arguments)
        seen.extend([look(a), look(b)])
        return answer

    def rolled(*arguments: Any, **options: Any) -> Any:
        answer = put(*arguments, **options)
        seen.append(look(a if arguments[0].location == a.location else b))
        return answer

    monkeypatch.setattr(several.intents, "decide", decided)
    monkeypatch.setattr(several, "roll_forward", rolled)
    with deltaic.transaction(a, b) as t:
        t.delete(a, "id = 1")
        t.write(b, {"id": [9], "x": [0]})
    before, after = [1, 2, 3], ([2, 3], [1, 2, 3, 9])
    assert seen[:4] == [before] * 4
    assert sorted(seen[4:]) == sorted(after)
    for table, rows in zip((a, b), after, strict=True):
        assert look(table) == rows
        deltalake.DeltaTable(table.location).create_checkpoint()
        deltalake.write_deltalake(table.location, pa.table({"id": [50], "x": [0]}), mode="append")
        assert ids(table.location) == [*rows, 50]


def test_one_table_is_committed_as_ever(tables: list[DeltaTable]) -> None:
    a, b, _ = tables
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.delete(b, "id = 100")  # nothing to commit
    assert (a.version, b.version) == (1, 0)
    assert [entry["operation"] for entry in a.history()] == ["WRITE", "WRITE"]
    assert not any(name.startswith("_") for name in log_of(a))
    assert t.id is not None
    assert (a.transaction_state(t.id), b.transaction_state(t.id)) == (1, None)
    with deltaic.transaction(a, b):
        pass
    assert (a.version, b.version) == (1, 0)


def test_metadata_changes_and_overwrites_take_part(tables: list[DeltaTable]) -> None:
    a, b, _ = tables
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "y": ["new"]}, schema_mode="merge")
        t.write(b, {"id": [3, 8], "x": [1, 1]}, mode="overwrite", where="id >= 3")
    assert a.schema.names == ["id", "x", "y"]
    assert ids(b.location) == [1, 2, 3, 8]
    with deltaic.transaction(a, b, commit=CommitOptions(transactions={"app": 7})) as t:
        t.write(a, {"id": [5]})
        t.write(b, {"id": [6], "x": [1]}, mode="overwrite")
    assert a.transaction_version("app") == b.transaction_version("app") == 7
    with deltaic.transaction(a, b, commit=CommitOptions(transactions={"app": 7})) as t:  # is done already
        t.write(a, {"id": [5]})
        t.write(b, {"id": [6], "x": [1]}, mode="overwrite")
    assert (a.version, b.version) == (4, 4)


def test_a_merge_that_meets_a_winner_marks_its_rows_again(tables: list[DeltaTable]) -> None:
    a, b, _ = tables
    with deltaic.transaction(a, b) as t:
        source = pa.table({"id": [1, 7], "x": [5, 5]})
        t.merge(a, source, "s.id = t.id").when_matched_update(
            {"x": "s.x"}
        ).when_not_matched_insert_all().execute()
        t.delete(b, "id = 1")
        DeltaTable(a.location).delete("id = 2")
        DeltaTable(b.location).delete("id = 2")
    assert sorted((row["id"], row["x"]) for row in DeltaTable(a.location).scan()) == [(1, 5), (3, 0), (7, 5)]
    assert ids(b) == ids(b.location) == [3]
    assert (a.version, b.version) == (3, 3)


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableInCommitTimestamps": "true"},
        {"delta.enableRowTracking": "true"},
        {"delta.enableChangeDataFeed": "true"},
        {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true"},
    ],
    ids=lambda properties: "-".join(key.removeprefix("delta.") for key in properties),
)
@pytest.mark.parametrize("foreign", [False, True])
def test_features_of_tables(
    tmp_path: Path, properties: dict[str, str], foreign: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`foreign`: an append comes between the decision and the commit, by a writer that passes over the
    intent."""
    tables = [deltaic.write(tmp_path / name, {"id": [1, 2, 3]}, properties=properties) for name in "ab"]
    a, b = tables
    if foreign:
        _before_rolling_forward(
            monkeypatch, lambda: [_append_past_intents(each.location, 40) for each in tables]
        )
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4, 5]})
        t.update(b, {"id": "id * 10"}, "id = 3")
    extra = [40] if foreign else []
    assert ids(a.location) == ids(a) == sorted([1, 2, 3, 4, 5, *extra])
    assert ids(b.location) == ids(b) == sorted([1, 2, 30, *extra])
    assert a.version == (3 if foreign else 2)
    for table in tables:
        if "delta.enableInCommitTimestamps" in properties:
            times = [entry["inCommitTimestamp"] for entry in table.history()]
            assert times == sorted(times, reverse=True)
            assert len(set(times)) == len(times)
        if "delta.enableRowTracking" in properties:
            adds = DeltaTable(table.location)._snapshot.files().adds.to_pylist()
            spans = sorted(
                (add["baseRowId"], add["baseRowId"] + json.loads(add["stats"])["numRecords"]) for add in adds
            )
            assert all(left[1] <= right[0] for left, right in pairwise(spans))
            assert all(add["defaultRowCommitVersion"] <= table.version for add in adds)
        if "delta.enableChangeDataFeed" in properties:
            changes = table.changes(table.version).to_arrow()
            assert sorted(
                zip(changes["id"].to_pylist(), changes["_change_type"].to_pylist(), strict=True)
            ) == (
                [(4, "insert"), (5, "insert")]
                if table is a
                else [(3, "update_preimage"), (30, "update_postimage")]
            )


def test_checkpoints_are_written_though_their_version_is_a_start(tmp_path: Path) -> None:
    a, b = (
        deltaic.write(tmp_path / name, {"id": [0]}, properties={"delta.checkpointInterval": "3"})
        for name in "ab"
    )
    for number in range(1, 7):
        with deltaic.transaction(a, b) as t:
            t.write(a, {"id": [number]})
            t.write(b, {"id": [number]})
    assert sum(".checkpoint." in name for name in log_of(a)) == 4
    assert ids(a.location) == list(range(7))


# --- what is refused


def test_what_is_refused_leaves_all_tables_as_they_were(tables: list[DeltaTable], tmp_path: Path) -> None:
    a, b, c = tables
    files = data_files(a)
    with pytest.raises(InvalidArgumentError, match="not one of the tables"), deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.delete(c)
    with pytest.raises(ZeroDivisionError), deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        1 / 0  # noqa: B018
    with pytest.raises(InvalidArgumentError, match="each table only once"):
        deltaic.transaction(a, DeltaTable(a.location))
    with pytest.raises(InvalidArgumentError, match="each table only once"):
        deltaic.transaction()
    with (
        pytest.raises(InvalidArgumentError, match="mode of write in a transaction"),
        deltaic.transaction(a) as t,
    ):
        t.write(a, {"id": [4], "x": [0]}, mode="error")
    with pytest.raises(InvalidArgumentError, match="inside its with block"):
        deltaic.transaction(a).delete(a)
    with pytest.raises(InvalidArgumentError, match="entered only once"), t:
        pass
    assert (a.version, ids(a.location), data_files(a)) == (0, [1, 2, 3], files)


def test_a_conflict_in_one_table_leaves_all_as_they_were(tables: list[DeltaTable]) -> None:
    a, b, _ = tables
    files = data_files(a)
    with pytest.raises(ConcurrentDeleteReadException) as caught, deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.update(b, {"x": "x + 1"}, "id = 2")
        DeltaTable(b.location).delete("id = 2")
    assert (caught.value.winner, caught.value.winner_operation) == (1, "DELETE")
    assert (ids(a), ids(a.location), ids(b.location)) == ([1, 2, 3], [1, 2, 3], [1, 3])
    assert data_files(a) == files
    assert not any("_intent" in name for table in (a, b) for name in log_of(table))
    a.delete("id = 1")  # no writer waits for it
    assert ids(a.location) == [2, 3]


def test_retries_are_bounded_by_the_option(tables: list[DeltaTable]) -> None:
    a, b, _ = tables
    with (
        pytest.raises(ConcurrentWriteException, match="max_retries=0"),
        deltaic.transaction(a, b, commit=CommitOptions(max_retries=0)) as t,
    ):
        t.write(a, {"id": [4], "x": [0]})
        t.write(b, {"id": [4], "x": [0]})
        deltaic.write(DeltaTable(b.location), {"id": [5], "x": [0]}, mode="append")
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3], [1, 2, 3, 5])


# --- writers and readers that find a transaction


def _before_rolling_forward(monkeypatch: pytest.MonkeyPatch, work: Any) -> None:
    """Once, between the decision and the first commit."""
    decide = several.intents.decide

    def decided(store: Store, transaction: str, commit: bool, *others: Any) -> bool:
        answer = decide(store, transaction, commit, *others)
        if commit:
            work()
        return answer

    monkeypatch.setattr(several.intents, "decide", decided)


def _append_past_intents(location: str, *rows: int, where: str | None = None) -> None:
    """A commit of a writer that ignores intents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deltaic.log.segment._INTENT", re.compile("none"))
        patch.setattr("deltaic.log.intents.started_by", lambda info: None)
        table = DeltaTable(location)
        if where is not None:
            table.delete(where)
        else:
            columns = {name: list(rows) for name in table.schema.names}
            deltaic.write(table, columns, mode="append")


class Killed(BaseException):
    """The process ended here."""


def _killed_at(monkeypatch: pytest.MonkeyPatch, what: str) -> Any:
    """Makes a writer end as if killed, after the decision ("decided") or before it ("undecided")."""

    def die(*_: Any) -> Any:
        raise Killed

    if what == "undecided":
        monkeypatch.setattr(several.intents, "decide", die)
        monkeypatch.setattr(several.SeveralTables, "_abort", lambda *_: None)
    else:
        monkeypatch.setattr(several.SeveralTables, "_roll_forward", die)


def _leave(monkeypatch: pytest.MonkeyPatch, what: str, a: DeltaTable, b: DeltaTable) -> str:
    with monkeypatch.context() as patch:
        _killed_at(patch, what)
        with suppress(Killed), deltaic.transaction(DeltaTable(a.location), DeltaTable(b.location)) as t:
            t.write(t._tables[0], {"id": [4], "x": [0]})
            t.update(t._tables[1], {"id": "id + 100"}, "id = 2")
    forget(monkeypatch)
    assert t.id is not None
    return t.id


def test_a_reader_rolls_forward_what_is_decided(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    _leave(monkeypatch, "decided", a, b)
    assert ids(b.location) == [1, 3, 102]
    assert DeltaTable(b.location).version == 2
    assert not Path(a.location, commit_path(2)).exists()
    a.refresh()  # an object that was open already
    assert (a.version, ids(a)) == (2, [1, 2, 3, 4])


def test_a_writer_rolls_forward_what_is_decided(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    id = _leave(monkeypatch, "decided", a, b)
    deltaic.write(a, {"id": [5], "x": [0]}, mode="append")  # from version 0: meets the start
    with pytest.raises(ConcurrentDeleteReadException):
        b.update({"x": "1"}, "id = 2")
    assert ids(a.location) == ids(a) == [1, 2, 3, 4, 5]
    assert [entry["operation"] for entry in a.history()] == ["WRITE", "WRITE", intents.START, "WRITE"]
    assert (a.transaction_state(id), ids(b.location)) == (2, [1, 3, 102])


def test_a_stream_gives_what_is_decided(tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, _ = tables
    tail = a.tail(poll=None)
    _leave(monkeypatch, "decided", a, b)
    assert [row["id"] for batch in tail for row in batch.rows] == [4]


def test_what_is_not_decided_is_not_seen_and_a_writer_aborts_it(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    id = _leave(monkeypatch, "undecided", a, b)
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3], [1, 2, 3])
    opened = DeltaTable(b.location)
    assert opened.version == 1
    opened.delete("id = 2")  # on top of the start
    assert ids(b.location) == [1, 3]
    record = json.loads(Path(a.location, intents.record_path(id)).read_text())
    assert (record["state"], record["tables"]) == ("aborted", [a.location, b.location])
    assert ids(a.location) == [1, 2, 3]
    a.delete()
    assert not any("_intent" in name for table in (a, b) for name in log_of(table))


def test_a_transaction_that_was_aborted_while_it_worked(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    files = data_files(b)
    catch_up = several.Part.catch_up

    def slow(part: several.Part) -> None:
        catch_up(part)
        if part.store.location == b.location:
            DeltaTable(b.location).delete("id = 3")

    monkeypatch.setattr(several.Part, "catch_up", slow)
    with pytest.raises(ConcurrentWriteException, match="aborted it"), deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.write(b, {"id": [4], "x": [0]})
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3], [1, 2])
    assert files == {name for name in data_files(b) if name.endswith(".parquet")}


def test_readers_abort_what_is_old(tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, _ = tables
    id = _leave(monkeypatch, "undecided", a, b)
    for table in (a, b):
        os.utime(Path(table.location, intents.intent_path(id)), (1, 1))
    assert (ids(b.location), ids(a.location)) == ([1, 2, 3], [1, 2, 3])
    assert json.loads(Path(a.location, intents.record_path(id)).read_text())["state"] == "aborted"
    assert not any("_intent" in name for table in (a, b) for name in log_of(table))


@pytest.mark.parametrize(
    "failure",
    [PermissionError("read only"), OSError(errno.ENOSPC, "read only")],
    ids=["permission", "full disk"],
)
def test_who_cannot_write_sees_what_is_decided(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch, failure: OSError
) -> None:
    a, b, _ = tables
    _leave(monkeypatch, "decided", a, b)

    def refused(*_: Any) -> Any:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(rolling_forward, "_put", refused)
        shown = DeltaTable(a.location)
        assert (shown.version, ids(shown)) == (2, [1, 2, 3, 4])
        b.refresh()
        assert (b.version, ids(b)) == (2, [1, 3, 102])
        shown.refresh()
        assert (shown.version, ids(shown)) == (2, [1, 2, 3, 4])
        with pytest.raises(CommitError, match=r"could not be put into the log: .*read only"):
            shown.delete("id = 1")
        tail = DeltaTable(a.location, version=0).tail(poll=None)
        assert list(tail) == []
    _append_past_intents(a.location, 60)
    with monkeypatch.context() as patch:
        patch.setattr(rolling_forward, "_put", refused)
        with pytest.raises(CommitError, match="may not be written here"):
            shown.refresh()
    with pytest.raises(ConcurrentWriteException, match="shown before it was in the log"):
        shown.delete("id = 1")
    shown.refresh()
    assert (shown.version, ids(shown)) == (3, [1, 2, 3, 4, 60])


def test_who_cannot_write_leaves_out_what_is_old_and_undecided(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    id = _leave(monkeypatch, "undecided", a, b)
    for table in (a, b):
        os.utime(Path(table.location, intents.intent_path(id)), (1, 1))
    folder = Path(a.location, intents.RECORDS)
    folder.write_text("")  # no record can be written
    assert (ids(b.location), ids(a.location)) == ([1, 2, 3], [1, 2, 3])
    with pytest.raises(CommitError, match="cannot be read from its record"):
        b.delete("id = 1")
    folder.unlink()
    assert (ids(b.location), ids(a.location)) == ([1, 2, 3], [1, 2, 3])
    assert intents.decision(a._snapshot.store, id) is False


def test_who_may_not_write_reads_what_others_have_put_into_the_log(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    _before_rolling_forward(monkeypatch, lambda: _append_past_intents(a.location, 40))
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.delete(b, "id = 2")
    deltaic.write(a, {"id": [5], "x": [0]}, mode="append")
    forget(monkeypatch)

    def refused(*_: Any) -> Any:
        raise PermissionError("read only")

    monkeypatch.setattr(rolling_forward, "_put", refused)
    assert any("_intent" in name for name in log_of(a))
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3, 4, 5, 40], [1, 3])


def test_a_reader_that_cannot_learn_the_decision_says_so(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    id = _leave(monkeypatch, "decided", a, b)
    record = Path(a.location, intents.record_path(id))
    text = record.read_text()
    for broken in ('{"state": "perhaps"}', "{", "[" * 60_000):
        record.write_text(broken)
        for work in (lambda: DeltaTable(b.location), lambda: b.delete("id = 1")):
            with pytest.raises(CommitError, match="cannot be read from its record"):
                work()
    assert ids(DeltaTable(b.location, version=1)) == [1, 2, 3]
    record.write_text(text)
    assert ids(b.location) == [1, 3, 102]


# --- writers that ignore intents


def test_other_writers_between_decision_and_commit(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    _leave(monkeypatch, "decided", a, b)
    for table in (a, b):
        deltalake.write_deltalake(table.location, pa.table({"id": [70], "x": [0]}), mode="append")
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3, 4, 70], [1, 3, 70, 102])


def test_a_conflict_with_a_writer_that_passed_over_the_intent_is_named(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    id = _leave(monkeypatch, "decided", a, b)
    deltalake.DeltaTable(b.location).delete("id = 2")
    for work in (lambda: DeltaTable(b.location), lambda: b.delete("id = 1"), b.refresh):
        with pytest.raises(
            CommitError, match=r"version 2 \(DELETE\), of a writer that passed over its intent"
        ) as caught:
            work()
        assert intents.intent_path(id) in str(caught.value)
    assert ids(DeltaTable(b.location, version=2)) == [1, 3]
    assert ids(a.location) == [1, 2, 3, 4]
    Path(b.location, intents.intent_path(id)).unlink()
    assert ids(b.location) == [1, 3]


def test_what_comes_before_the_decision_is_judged_by_the_rules(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    start = several.Part.start

    def started(part: several.Part) -> None:
        start(part)
        _append_past_intents(part.store.location, 80)

    with monkeypatch.context() as patch:
        patch.setattr(several.Part, "start", started)
        with deltaic.transaction(a, b) as t:
            t.write(a, {"id": [4], "x": [0]})
            t.delete(b, "id = 2")
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3, 4, 80], [1, 3, 80])
    with monkeypatch.context() as patch:
        patch.setattr(
            several.Part, "start", lambda part: (start(part), _append_past_intents(part.store.location, 3))
        )
        with pytest.raises(CommitError, match="came first and added files"), deltaic.transaction(a, b) as t:
            t.write(a, {"id": [5], "x": [0]})
            t.delete(b, "id = 3")
    assert 5 not in ids(a.location)


# --- upkeep


def test_vacuum_leaves_files_that_an_intent_alone_names(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    a, b, _ = tables
    _leave(monkeypatch, "decided", a, b)
    DeltaTable(a.location, version=1).vacuum(retention=timedelta(0), enforce_retention=False)
    b.vacuum(retention=timedelta(0), enforce_retention=False)
    assert (ids(a.location), ids(b.location)) == ([1, 2, 3, 4], [1, 3, 102])


def test_old_intents_and_records_are_cleaned(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.write(b, {"id": [4], "x": [0]})
    assert t.id is not None
    record, left = (
        Path(a.location, intents.record_path(t.id)),
        [Path(each.location, intents.intent_path(t.id)) for each in (a, b)],
    )
    assert record.exists()
    assert all(path.exists() for path in left)
    for path in (record, *left):
        os.utime(path, (1, 1))
    a.clean_log()
    assert (record.exists(), left[0].exists(), left[1].exists()) == (True, False, True)  # b may still need it
    forget(monkeypatch)
    b.refresh()
    assert not left[1].exists()
    a.clean_log()
    assert not record.exists()


def test_the_coordinator_has_an_intent_before_other_tables(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that is killed between the two would leave tables whose intent cannot be decided."""
    begun: list[str] = []
    announce = several.Part.announce

    def killed(part: several.Part) -> None:
        begun.append(part.store.location)
        announce(part)
        raise MemoryError

    with monkeypatch.context() as context:
        context.setattr(several.Part, "announce", killed)
        context.setattr(several.SeveralTables, "_abort", lambda *given: None)
        with pytest.raises(MemoryError), deltaic.transaction(*reversed(tables)) as t:
            for table in tables:
                t.write(table, {"id": [9], "x": [9]})
    assert begun == [min(table.location for table in tables)]
    for table in tables:
        assert ids(deltaic.write(table.location, {"id": [5], "x": [5]}, mode="append")) == [1, 2, 3, 5]


def test_a_listing_shows_intents_whatever_it_begins_with(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    _leave(monkeypatch, "decided", a, b)
    for number in range(3):
        _append_past_intents(a.location, 90 + number)
    deltalake.DeltaTable(a.location).create_checkpoint()
    assert ids(a.location) == [1, 2, 3, 4, 90, 91, 92]


def test_a_process_that_knows_that_a_transaction_is_over_asks_for_nothing_more(worlds: Worlds) -> None:
    a, b = worlds.tables("a", "b")
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4]})
        t.write(b, {"id": [4]})
    assert t.id is not None
    worlds.store.reset()
    DeltaTable(a.location)
    assert sum(method == "list" for method, _ in worlds.store.calls) == 1
    assert all("_intent" not in path and "_transactions" not in path for _, path in worlds.store.calls)


# --- faults


class View:
    """A table's part of a store that all tables share."""

    def __init__(self, store: NumberedStore, name: str) -> None:
        self.store, self.name = store, f"{name}/"

    def list_from(self, prefix: str, start_after: str | None, recursive: bool) -> list[tuple[str, int, int]]:
        found = self.store.list_from(self.name + prefix, None, recursive)
        return [(path.removeprefix(self.name), size, modified) for path, size, modified in found]

    def head(self, path: str) -> tuple[int, int] | None:
        return self.store.head(self.name + path)

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self.store.read(self.name + path, start, end)

    def write_if_absent(self, path: str, data: bytes) -> bool | None:
        return self.store.write_if_absent(self.name + path, data)

    def write(self, path: str, data: bytes) -> None:
        self.store.write(self.name + path, data)

    def delete(self, path: str) -> bool:
        return self.store.delete(self.name + path)


class Worlds:
    """Tables `several://<world>/<name>` in one numbered store."""

    def __init__(self) -> None:
        self.store = NumberedStore()
        self.root = f"several://{uuid.uuid4().hex}"

    def open(self, location: str, options: Any = None) -> View:
        return View(self.store, location.rsplit("/", 1)[-1])

    def tables(self, *names: str) -> list[DeltaTable]:
        return [deltaic.write(f"{self.root}/{name}", {"id": [1, 2, 3]}) for name in names]


@pytest.fixture
def worlds() -> Iterator[Worlds]:
    world = Worlds()
    with deltaic.configure(log_stores={"several": world.open}):
        yield world


def _change(tables: list[DeltaTable]) -> None:
    a, b, c = tables
    with deltaic.transaction(a, b, c) as t:
        t.write(a, {"id": [4]})
        t.delete(b, "id = 2")
        t.update(c, {"id": "id + 100"}, "id = 3")


BEFORE, AFTER = [[1, 2, 3]] * 3, [[1, 2, 3, 4], [1, 3], [1, 2, 103]]


@pytest.mark.parametrize("lasting", [False, True], ids=["a failure", "a crash"])
@pytest.mark.parametrize("fault", ["before", "after", "lost", "stopped before", "stopped after"])
def test_each_call_fails(worlds: Worlds, fault: Any, lasting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables have the transaction or none, for readers of a new process and then for writers, whichever
    call fails or is the last one of a process."""
    monkeypatch.setattr("deltaic.transaction.attempts.PUT_WAITS", (0.0,))
    monkeypatch.setattr("deltaic.transaction.transaction.READ_WAITS", (0.0,))
    monkeypatch.setattr(several, "_MOST_THREADS", 1)
    worlds.tables("a", "b", "c")
    start = dict(worlds.store.objects)
    tables = [DeltaTable(f"{worlds.root}/{name}") for name in "abc"]
    worlds.store.reset()
    _change(tables)
    calls = len(worlds.store.calls)
    outcomes = set()
    for number in range(
        1 + {"before": 0, "after": 2, "lost": 4, "stopped before": 5, "stopped after": 6}[fault] % STEP,
        calls + 1,
        STEP,
    ):
        worlds.store = NumberedStore(start)
        worlds.root = f"several://{uuid.uuid4().hex}"
        tables = [DeltaTable(f"{worlds.root}/{name}") for name in "abc"]
        worlds.store.reset(number, fault.removeprefix("stopped "), lasting=lasting)
        worlds.store.error = KeyboardInterrupt if fault.startswith("stopped") else None
        outcome = "committed"
        try:
            _change(tables)
        except (CommitUnknownError, KeyboardInterrupt):
            outcome = "unknown"
        except (CommitError, OSError):
            outcome = "failed"
        if outcome == "failed" and fault == "before" and not lasting:
            left = {path for path in worlds.store.objects if "_delta_log" not in path} - set(start)
            assert left == set(), number
        worlds.store.reset()
        worlds.store.error = None
        forget(monkeypatch)
        order = "abc" if number % 2 else "cba"
        read = {name: ids(f"{worlds.root}/{name}") for name in order}
        found = [read[name] for name in "abc"]
        assert found in (BEFORE, AFTER), (number, outcome)
        expected = {"committed": [AFTER], "failed": [BEFORE], "unknown": [BEFORE, AFTER]}[outcome]
        assert found in expected, (number, outcome)
        for name in reversed(order):  # writers go on, on top of what was read
            deltaic.write(f"{worlds.root}/{name}", {"id": [1000]}, mode="append")
        forget(monkeypatch)
        assert [ids(f"{worlds.root}/{name}") for name in "abc"] == [[*rows, 1000] for rows in found], (
            number,
            outcome,
        )
        outcomes.add(outcome)
    assert "committed" in outcomes or lasting or fault.startswith("stopped")


# --- races


def test_writers_and_readers_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers of transactions in opposite orders, one of single commits, two readers: who has seen a
    transaction in one table sees it in the other."""
    monkeypatch.setattr(intents, "WAITS", (0.01, 0.02, 0.05, *[0.1] * 100))
    for name in "ab":
        deltaic.write(tmp_path / name, {"id": [0], "n": [0]})
    problems: list[str] = []
    over = threading.Event()

    def write(first: int, names: str) -> None:
        try:
            for number in range(first, first + 8):
                x, y = (DeltaTable(tmp_path / name) for name in names)
                with deltaic.transaction(x, y) as t:
                    for table in (x, y):
                        t.write(table, {"id": [number], "n": [0]})
        except BaseException as error:
            problems.append(f"writer: {error!r}")

    def alone() -> None:
        try:
            for _ in range(8):
                DeltaTable(tmp_path / "b").update(
                    {"n": "n + 1"}, "id = 0", commit=CommitOptions(isolation="snapshot")
                )
        except BaseException as error:
            problems.append(f"alone: {error!r}")

    def read(names: str) -> None:
        try:
            while not over.is_set():
                first, second = (set(ids(str(tmp_path / name))) for name in names)
                if not first <= second:
                    problems.append(f"{names}: {first - second} is missing")
        except BaseException as error:
            problems.append(f"reader: {error!r}")

    writers = [
        threading.Thread(target=write, args=(100, "ab")),
        threading.Thread(target=write, args=(200, "ba")),
    ]
    writers.append(threading.Thread(target=alone))
    readers = [threading.Thread(target=read, args=(names,)) for names in ("ab", "ba")]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in readers:
        thread.join()
    assert problems == []
    expected = [0, *range(100, 108), *range(200, 208)]
    assert [ids(str(tmp_path / name)) for name in "ab"] == [expected, expected]
    assert [row["n"] for row in DeltaTable(tmp_path / "b").scan(where="id = 0")] == [8]


def test_a_managed_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (deltaic.write(tmp_path / name, {"id": [0]}) for name in "ab")
    monkeypatch.setattr(several.features, "is_managed", lambda protocol: True)
    with pytest.raises(UnsupportedFeatureError, match="catalog manages"), deltaic.transaction(a, b) as t:
        t.write(a, {"id": [1]})
        t.write(b, {"id": [1]})
    assert (
        data_files(a)
        == data_files(DeltaTable(a.location))
        == {unquote(row["path"]) for row in a.files().to_arrow().to_pylist()}
    )


def test_a_log_that_was_cleaned_gets_no_commit_in_the_past(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    _leave(monkeypatch, "decided", a, b)
    for number in range(3):
        _append_past_intents(a.location, 90 + number)
    deltalake.DeltaTable(a.location).create_checkpoint()
    for version in range(3):
        Path(a.location, commit_path(version)).unlink()
    with pytest.raises(CommitError, match="the log was cleaned before its commit was put there"):
        DeltaTable(a.location)
    assert not Path(a.location, commit_path(2)).exists()


def test_rows_are_marked_again_on_a_winner_that_came_after_the_start(
    tables: list[DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = tables
    start = several.Part.start

    def started(part: several.Part) -> None:
        start(part)
        if part.store.location == b.location:
            _append_past_intents(b.location, where="id = 3")

    monkeypatch.setattr(several.Part, "start", started)
    with deltaic.transaction(a, b) as t:
        t.write(a, {"id": [4], "x": [0]})
        t.update(b, {"x": "9"}, "id = 2")
    assert sorted((row["id"], row["x"]) for row in DeltaTable(b.location).scan()) == [(1, 0), (2, 9)]


def _decided_and_killed(
    monkeypatch: pytest.MonkeyPatch, a: DeltaTable, b: DeltaTable, operation: str
) -> None:
    """A transaction that appends to a, and updates or deletes three rows of b, ends with its decision."""
    with monkeypatch.context() as patch:
        _killed_at(patch, "decided")
        with suppress(Killed), deltaic.transaction(a, b) as t:
            t.write(a, {"id": [10], "x": [0]})
            if operation == "update":
                t.update(b, {"x": "7"}, "id < 3")
            else:
                t.delete(b, "id < 3")
    forget(monkeypatch)


@pytest.mark.parametrize("operation", ["update", "delete"])
@pytest.mark.parametrize(
    "properties", [{}, {"delta.enableRowTracking": "true"}], ids=["plain", "row tracking"]
)
def test_rows_of_one_file_are_joined_with_those_of_a_writer_that_passed_over_the_intent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, properties: dict[str, str]
) -> None:
    a, b = (
        deltaic.write(tmp_path / name, {"id": list(range(10)), "x": [0] * 10}, properties=properties)
        for name in "ab"
    )
    b.delete("id = 9")
    _decided_and_killed(monkeypatch, a, b, operation)
    for where in ("id = 4", "id = 5 OR id = 6"):
        _append_past_intents(b.location, where=where)
    found = sorted((row["id"], row["x"]) for row in DeltaTable(b.location).scan())
    new = [(0, 7), (1, 7), (2, 7)] if operation == "update" else []
    assert found == [*new, (3, 0), (7, 0), (8, 0)]
    assert ids(a.location) == list(range(11))
    DeltaTable(b.location).delete("id = 8")
    assert (8, 0) not in [(row["id"], row["x"]) for row in DeltaTable(b.location).scan()]


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_the_same_row_is_a_conflict_for_an_update_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    a, b = (deltaic.write(tmp_path / name, {"id": list(range(10)), "x": [0] * 10}) for name in "ab")
    _decided_and_killed(monkeypatch, a, b, operation)
    _append_past_intents(b.location, where="id = 2")
    if operation == "delete":
        assert ids(b.location) == list(range(3, 10))
        return
    with pytest.raises(CommitError, match="passed over its intent"):
        DeltaTable(b.location)


# --- hostile intents


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("no JSON", "the intent of a transaction over several tables cannot be read"),
        (
            (
                '{"deltaicIntent": {"transaction": "other", "start": 1, "base": 1, "coordinator": "x",'
                ' "tables": []}}'
            ),
            "found the intent of another transaction",
        ),
        (
            (
                '{"deltaicIntent": {"transaction": "t", "start": 2, "base": 1, "coordinator": "x", "tables":'
                " []}}"
            ),
            "the start version 2 and the base version 1",
        ),
        (
            (
                '{"deltaicIntent": {"transaction": "t", "start": 1, "base": 1, "coordinator": "s3://b/x",'
                ' "tables": []}}'
            ),
            "in another store",
        ),
        (
            (
                '{"deltaicIntent": {"transaction": "t", "start": 1, "base": 9, "coordinator": "HERE",'
                ' "tables": []}}'
            ),
            "no version 9",
        ),
    ],
)
def test_an_intent_that_cannot_be_right_is_an_error(
    tables: list[DeltaTable], last: str, message: str
) -> None:
    a = tables[0]
    log = Path(a.location, "_delta_log")
    (log / "_transactions").mkdir()
    (log / "_transactions" / "t.json").write_text('{"state": "committed"}')
    (log / "_intent.t.json").write_text('{"commitInfo": {}}\n' + last.replace("HERE", a.location) + "\n")
    with pytest.raises(DeltaError, match=message):
        DeltaTable(a.location)
    assert ids(DeltaTable(a.location, version=0)) == [1, 2, 3]
    assert len(list(log.glob("*.json"))) == 2


def test_a_table_in_another_store_is_looked_for_where_the_user_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = f"memory://{uuid.uuid4().hex}"
    b, a = (
        deltaic.write(tmp_path / "b", {"id": [1], "x": [0]}),
        deltaic.write(f"{elsewhere}/a", {"id": [1, 2], "x": [0, 0]}),
    )
    with monkeypatch.context() as patch:
        _killed_at(patch, "decided")
        with suppress(Killed), deltaic.transaction(a, b) as t:
            t.delete(a, "id = 2")
            t.delete(b, "id = 1")
    forget(monkeypatch)
    assert sorted([a.location, b.location])[0] == b.location
    with pytest.raises(CommitError, match=r"names a table in another store.*allowed_roots"):
        DeltaTable(a.location)
    with deltaic.configure(allowed_roots=[str(tmp_path)]):
        assert ids(a.location) == [1]
    assert ids(b.location) == []
