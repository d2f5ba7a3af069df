"""Compaction after a write has returned, which waits for other commands of its process:
`configure(background_optimize=True)`."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.commands import alter, auto_compaction, clone, delete
from deltaic.commands.optimize_rewrite import Rewrite
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import DeltaConcurrentModificationException
from deltaic.log import background
from deltaic.transaction import giving_way, turns

FEW = 4
PROPERTIES = {"delta.autoOptimize.autoCompact": True}


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(auto_compaction, "AUTO_COMPACT_FILES", FEW)
    with deltaic.configure(background_optimize=True):
        yield
    assert background.wait(20)


def rows(number: int, part: int = 0) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "part": pa.array([part], pa.int64())})


def written(path: Path, count: int = FEW, **options: Any) -> DeltaTable:
    table = deltaic.write(path, rows(0), properties=PROPERTIES, **options)
    for number in range(1, count):
        deltaic.write(table, rows(number), mode="append")
    return table


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def operations(path: Path) -> list[str]:
    return [entry["operation"] for entry in reversed(DeltaTable(path).history())]


def left_behind(path: Path) -> set[str]:
    """Data files that no version of the table has."""
    table = DeltaTable(path)
    known = {
        file
        for version in range(table.version + 1)
        for file in table.at(version).files().to_arrow()["path"].to_pylist()
    }
    return {
        str(each.relative_to(path)) for each in path.rglob("*.parquet") if "_delta_log" not in each.parts
    } - known


@contextmanager
def compaction_held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Each compaction of the block has written its files and not committed yet when the event is set; it goes
    on when the block ends."""
    staged, release, real = threading.Event(), threading.Event(), Rewrite._stage_bin

    def stage(self: Any, *arguments: Any) -> None:
        real(self, *arguments)
        if self.job.gate is not None:
            staged.set()
            assert release.wait(20)

    with monkeypatch.context() as patch:
        patch.setattr(Rewrite, "_stage_bin", stage)
        try:
            yield staged
        finally:
            release.set()
            assert background.wait(20)


def test_the_file_of_an_update_is_compacted_after_it(tmp_path: Path) -> None:
    """The compaction waits for the command that submits it, which still runs for a moment."""
    table = deltaic.write(tmp_path, pa.concat_tables([rows(0), rows(9)]), properties=PROPERTIES)
    for number in range(1, FEW - 1):
        deltaic.write(table, rows(number), mode="append")
    table.update({"part": "7"}, "id = 0")
    assert background.wait(20)
    assert operations(tmp_path)[-2:] == ["UPDATE", "OPTIMIZE"]
    assert ids(DeltaTable(tmp_path)) == [0, 1, 2, 9]


def test_the_write_answers_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with compaction_held(monkeypatch) as staged:
        table = written(tmp_path)
        assert staged.wait(20)
        assert table.version == FEW - 1
        assert operations(tmp_path) == ["WRITE"] * FEW
    assert operations(tmp_path) == ["WRITE"] * FEW + ["OPTIMIZE"]
    assert table.version == FEW - 1
    assert ids(table) == ids(DeltaTable(tmp_path)) == list(range(FEW))
    assert DeltaTable(tmp_path).files().count() == 1
    assert DeltaTable(tmp_path).history(1)[0]["operationParameters"]["auto"] in ("true", True)


def test_without_the_setting_the_write_waits(tmp_path: Path) -> None:
    with deltaic.configure(background_optimize=False):
        table = written(tmp_path)
        assert operations(tmp_path) == ["WRITE"] * FEW + ["OPTIMIZE"]
        assert table.version == FEW


def test_nothing_is_done_where_the_table_does_not_ask(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, rows(0))
    for number in range(1, FEW + 2):
        deltaic.write(table, rows(number), mode="append")
    assert background.wait(20)
    assert operations(tmp_path) == ["WRITE"] * (FEW + 2)


def test_appends_go_on_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with compaction_held(monkeypatch) as staged:
        table = written(tmp_path)
        assert staged.wait(20)
        for number in range(FEW, FEW + 3):
            deltaic.write(table, rows(number), mode="append")
        assert table.version == FEW + 2
        # The compaction that waits finds nothing to do.
        monkeypatch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 100)
    assert operations(tmp_path) == ["WRITE"] * (FEW + 3) + ["OPTIMIZE"]
    assert ids(DeltaTable(tmp_path)) == list(range(FEW + 3))
    deltaic.write(table, rows(100), mode="append")
    assert ids(table) == [*range(FEW + 3), 100]


COMMANDS: dict[str, Callable[[DeltaTable], object]] = {
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"part": "9"}, "id = 1"),
    "merge": lambda table: table.merge(rows(1), "t.id = s.id").when_matched_delete().execute(),
    "overwrite": lambda table: deltaic.write(table, rows(7), mode="overwrite"),
    "overwrite by path": lambda table: deltaic.write(table.location, rows(7), mode="overwrite"),
    "overwrite where": lambda table: deltaic.write(table, rows(1), mode="overwrite", where="id = 1"),
    "compact": lambda table: table.optimize.compact(),
    "purge": lambda table: table.optimize.purge(),
    "restore": lambda table: table.restore(1),
    "vacuum": lambda table: table.vacuum(retention=timedelta(0), enforce_retention=False),
    "constraint": lambda table: table.alter.add_constraints({"low": "id < 1000"}),
    "statement": lambda table: deltaic.sql(f"DELETE FROM delta.`{table.location}` WHERE id = 1"),
    "replace": lambda table: DeltaTable.create(table.location, "id bigint", mode="overwrite"),
    "clone": (
        lambda table: deltaic.write(f"{table.location} source", rows(7)).clone(table.location, replace=True)
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_comes_meanwhile_wins(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with deltaic.configure(background_optimize=False), monkeypatch.context() as patch:
        patch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 100)
        wanted = written(tmp_path / "wanted")
        COMMANDS[name](wanted)
    with caplog.at_level(logging.INFO, "deltaic"), compaction_held(monkeypatch) as staged:
        table = written(tmp_path / "table")
        assert staged.wait(20)
        monkeypatch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 100)  # for what the command itself writes
        COMMANDS[name](table)
    expected = operations(tmp_path / "wanted")
    if name == "vacuum":  # of what the compaction has left
        expected += ["VACUUM START", "VACUUM END"]
    assert operations(tmp_path / "table") == expected
    assert ids(DeltaTable(tmp_path / "table")) == ids(DeltaTable(tmp_path / "wanted"))
    assert left_behind(tmp_path / "table") == set()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_the_version_before_it_succeeds(name: str, tmp_path: Path) -> None:
    table = written(tmp_path)
    assert background.wait(20)
    assert DeltaTable(tmp_path).version == FEW > table.version
    COMMANDS[name](table)
    after = DeltaTable(tmp_path)
    assert operations(tmp_path)[FEW] == "OPTIMIZE"
    lost = {"delete", "merge", "statement"}
    replaced = {"overwrite": [7], "overwrite by path": [7], "restore": [0, 1], "replace": [], "clone": [7]}
    assert ids(after) == replaced.get(name, [each for each in range(FEW) if each != 1 or name not in lost])


def test_a_running_command_keeps_it_from_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A VACUUM that has listed files already would take those of a compaction that begins now."""
    with monkeypatch.context() as patch:
        patch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 100)
        table = written(tmp_path)
        assert background.wait(20)
    with giving_way.command(table._snapshot):
        deltaic.write(table, rows(FEW), mode="append")
        assert background.wait(20)
    assert operations(tmp_path) == ["WRITE"] * (FEW + 1)
    deltaic.write(table, rows(FEW + 1), mode="append")
    assert background.wait(20)
    assert operations(tmp_path)[-1] == "OPTIMIZE"


def test_a_transaction_over_several_tables_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = deltaic.write(tmp_path / "other", rows(0))
    with compaction_held(monkeypatch) as staged:
        table = written(tmp_path / "table")
        assert staged.wait(20)
        with deltaic.transaction(table, other) as t:
            t.delete(table, "id = 1")
            t.delete(other, "id = 0")
    assert "OPTIMIZE" not in operations(tmp_path / "table")
    assert ids(DeltaTable(tmp_path / "table")) == [0, 2, 3]


def test_it_loses_to_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Commands of another process do not announce their beginning to this one."""
    with caplog.at_level(logging.DEBUG, "deltaic.commands"), compaction_held(monkeypatch) as staged:
        written(tmp_path)
        assert staged.wait(20)
        delete.delete(DeltaTable(tmp_path)._snapshot, LocalEngine(), "id = 1")
    assert operations(tmp_path) == ["WRITE"] * FEW + ["DELETE"]
    assert ids(DeltaTable(tmp_path)) == [0, 2, 3]
    assert left_behind(tmp_path) == set()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert f"compaction after version {FEW - 1} gave way: " in caplog.text
    assert f"OPTIMIZE was not committed: version {FEW} (DELETE) came first" in caplog.text


def test_a_version_that_another_process_took_is_not_taken_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later command on the version before would pass the other's commit over, and what both did to the same
    row."""
    with compaction_held(monkeypatch) as staged:
        table = written(tmp_path)
        assert staged.wait(20)
        delete.delete(DeltaTable(tmp_path)._snapshot, LocalEngine(), "id = 1")
        turns._TABLES.reset()  # like a command of another process, it is not registered here
    assert operations(tmp_path) == ["WRITE"] * FEW + ["DELETE"]
    with pytest.raises(DeltaConcurrentModificationException):
        table.update({"part": "9"}, "id = 1")


def test_what_another_process_did_after_it_is_a_conflict_as_ever(tmp_path: Path) -> None:
    table = written(tmp_path)
    assert background.wait(20)
    delete.delete(DeltaTable(tmp_path)._snapshot, LocalEngine(), "id = 1")
    assert operations(tmp_path) == ["WRITE"] * FEW + ["OPTIMIZE", "DELETE"]
    with pytest.raises(DeltaConcurrentModificationException):
        table.update({"part": "9"}, "id = 1")
    table.update({"part": "9"}, "id = 2")
    assert ids(DeltaTable(tmp_path)) == [0, 2, 3]


STEPS: dict[str, ModuleType] = {"new_constraints": alter, "evolve": alter, "_definition": clone}
"""A step of commands that have a snapshot already: the function, and the module that calls it."""
BY_STEP: dict[str, Callable[[DeltaTable], object]] = {
    "new_constraints": lambda table: table.alter.add_constraints({"low": "id < 1000"}),
    "evolve": lambda table: table.alter.set_properties({"delta.enableRowTracking": True}),
    "_definition": COMMANDS["clone"],
}


@pytest.mark.parametrize("step", STEPS)
def test_none_begins_between_the_snapshot_of_a_command_and_its_commit(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that the command has read, or must add again, would be replaced before it commits."""
    with monkeypatch.context() as patch:
        patch.setattr(auto_compaction, "AUTO_COMPACT_FILES", 100)
        table = written(tmp_path)
        assert background.wait(20)
    real = getattr(STEPS[step], step)

    def slow(*arguments: Any, **options: Any) -> Any:
        newest = DeltaTable(tmp_path)._snapshot
        auto_compaction.submit(newest, LocalEngine(), newest.files().adds)
        assert background.wait(20)
        return real(*arguments, **options)

    monkeypatch.setattr(STEPS[step], step, slow)
    BY_STEP[step](table)
    assert "OPTIMIZE" not in operations(tmp_path)
    assert DeltaTable(tmp_path).version == FEW


def test_a_forked_child_knows_of_it(tmp_path: Path) -> None:
    table = written(tmp_path)
    assert background.wait(20)
    giving_way._TABLES._reset()  # as in the child
    table.delete("id = 1")
    assert operations(tmp_path)[FEW:] == ["OPTIMIZE", "DELETE"]


def test_one_that_comes_when_its_files_were_taken_already_does_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = deltaic.write(tmp_path, rows(0), properties=PROPERTIES)
    with caplog.at_level(logging.DEBUG, "deltaic.commands"):
        auto_compaction._compact(deque(), table._snapshot, LocalEngine())
    assert not caplog.records


def test_the_log_names_the_version_that_was_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A compaction that a write has scheduled may begin after a later write."""
    began, real = threading.Event(), giving_way.compaction

    def late(committed: Any) -> Any:
        assert began.wait(20)
        return real(committed)

    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(giving_way, "compaction", late)
    monkeypatch.setattr(Rewrite, "_stage_bin", fail)
    written(tmp_path)
    began.set()
    assert background.wait(20)
    warnings = {
        record.getMessage().partition(": ")[2]
        for record in caplog.records
        if record.levelno >= logging.WARNING
    }
    assert warnings == {f"compaction after version {FEW - 1} failed: no room"}


def test_what_fails_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Rewrite, "_stage_bin", fail)
    table = written(tmp_path)
    assert background.wait(20)
    assert f"compaction after version {FEW - 1} failed: no room" in caplog.text
    assert ids(table) == list(range(FEW))
    assert operations(tmp_path) == ["WRITE"] * FEW
    monkeypatch.undo()


def test_one_at_a_time_and_no_partition_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, real = [0], [0], auto_compaction.auto_compact
    seen: list[int] = []
    began, release = threading.Event(), threading.Event()

    def counted(snapshot: Any, engine: Any, adds: pa.Table, gate: Any) -> Any:
        running[0] += 1
        most[0] = max(most[0], running[0])
        seen.append(adds.num_rows)
        began.set()
        assert release.wait(20)
        try:
            return real(snapshot, engine, adds, gate)
        finally:
            running[0] -= 1

    monkeypatch.setattr(auto_compaction, "auto_compact", counted)
    table = deltaic.write(tmp_path, rows(0, 0), partition_by="part", properties=PROPERTIES)
    deltaic.write(table, rows(1, 0), mode="append")
    assert began.wait(20)
    for part in (1, 2):
        for number in range(FEW):
            deltaic.write(table, rows(10 * part + number, part), mode="append")
    release.set()
    assert background.wait(20)
    assert (most, seen) == ([1], [1, 2 * FEW])
    newest = DeltaTable(tmp_path)
    assert newest.partitions().to_arrow().sort_by("part")["num_files"].to_pylist() == [2, 1, 1]
    assert ids(newest) == ids(table)


def test_a_put_under_way_is_waited_for(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path, rows(0))
    gate = giving_way.compaction(table._snapshot)
    began, order = threading.Event(), []

    def command() -> None:
        began.set()
        with giving_way.command(table._snapshot):
            order.append("command")

    thread = threading.Thread(target=command)

    def put() -> bool:
        thread.start()
        assert began.wait(20)
        thread.join(0.05)
        order.append("put")
        return False

    assert not gate(1, put)
    thread.join(20)
    assert order == ["put", "command"]
    with pytest.raises(giving_way.CompactionYielded):
        gate(2, put)
    with giving_way.command(table._snapshot), pytest.raises(giving_way.CompactionYielded):
        giving_way.compaction(table._snapshot)


def test_manifests_are_written_when_the_process_is_about_to_end(tmp_path: Path) -> None:
    """Python's thread pools take no more work then."""
    properties = {
        **PROPERTIES,
        "delta.compatibility.symlinkFormatManifest.enabled": True,
        "delta.enableDeletionVectors": False,
    }
    script = f"""
import threading, time
import pyarrow as pa, deltaic
from deltaic.commands import auto_compaction
from deltaic.log import manifests
auto_compaction.AUTO_COMPACT_FILES = {FEW}
deltaic.configure(background_optimize=True)
def late(snapshot, *arguments, **options):
    if snapshot.version == {FEW}:
        threading.main_thread().join()
        time.sleep(0.2)
    real(snapshot, *arguments, **options)
real, manifests.after_commit = manifests.after_commit, late
table = deltaic.write({str(tmp_path)!r}, pa.table({{"id": [0]}}), properties={properties!r})
for number in range(1, {FEW}):
    deltaic.write(table, pa.table({{"id": [number]}}), mode="append")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert operations(tmp_path) == ["WRITE"] * FEW + ["OPTIMIZE"]
    listed = (tmp_path / "_symlink_format_manifest" / "manifest").read_text().split()
    assert [each.rsplit("/", 1)[1] for each in listed] == DeltaTable(tmp_path).files().to_arrow()[
        "path"
    ].to_pylist()


def test_the_process_ends_when_it_is_done(tmp_path: Path) -> None:
    script = f"""
import pyarrow as pa, deltaic
from deltaic.commands import auto_compaction
auto_compaction.AUTO_COMPACT_FILES = {FEW}
deltaic.configure(background_optimize=True)
properties = {{"delta.autoOptimize.autoCompact": True}}
table = deltaic.write({str(tmp_path)!r}, pa.table({{"id": [0]}}), properties=properties)
for number in range(1, {FEW}):
    deltaic.write(table, pa.table({{"id": [number]}}), mode="append")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert operations(tmp_path) == ["WRITE"] * FEW + ["OPTIMIZE"]
    assert ids(DeltaTable(tmp_path)) == list(range(FEW))
    assert left_behind(tmp_path) == set()


def test_tables_of_long_ago_are_forgotten_unless_a_command_runs_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giving_way, "_MOST_TABLES", 2)
    monkeypatch.setattr(giving_way, "_TABLES", giving_way._Tables())
    first, *others = (
        deltaic.write(tmp_path / str(number), {"id": [number]})._snapshot for number in range(5)
    )
    with giving_way.command(first):
        for each in others:
            with giving_way.command(each):
                pass
        assert len(giving_way._TABLES._tables) == 2
        with pytest.raises(giving_way.CompactionYielded):
            giving_way.compaction(first)
    giving_way.compaction(first)
