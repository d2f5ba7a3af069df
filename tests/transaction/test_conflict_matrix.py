"""The outcome of a command if another one was committed first: every cell of the table below is tested, on
real tables.

The table has partitions `a` and `b` of two files with ten rows each. The loser works on the row with id 3 of
partition `a`, from the version before the winner's commit. The winner works

- far: in partition `b`
- near: on other rows of the same file, or of the same partition where it appends or rearranges
- same: on the same row, or it appends a row for which the loser's condition is true

A cell has the loser's outcome under Serializable, WriteSerializable and SnapshotIsolation; one word if the
three are equal.

    ok   committed; the rows are those of the winner's command followed by the loser's (under
         WriteSerializable and SnapshotIsolation an appended row that the loser did not see stays)
    CA   ConcurrentAppendException         DR   ConcurrentDeleteReadException
    DD   ConcurrentDeleteDeleteException   MC   MetadataChangedException
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import CommitOptions, DeltaTable
from deltaic.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
)

# Where deletion vectors are written.
BY_VECTORS = """
winner    overlap  | append delete   update   merge    upsert   optimize replace  overwrite alter copy
append    far      | ok     ok       ok       ok       ok       ok       ok       CA,ok,ok  ok    ok
append    near     | ok     ok       ok       ok       ok       ok       ok       CA,ok,ok  ok    ok
append    same     | ok     CA,ok,ok CA,ok,ok CA,ok,ok CA,ok,ok ok       CA,ok,ok CA,ok,ok  ok    CA,ok,ok
delete    far      | ok     ok       ok       ok       ok       ok       ok       DR        ok    ok
delete    near     | ok     ok       ok       ok       ok       DD       ok       DR        ok    DR
delete    same     | ok     ok       DR       DR       DR       DD       DR       DR        ok    DR
update    far      | ok     ok       ok       ok       ok       ok       ok       CA,CA,DR  ok    ok
update    near     | ok     ok       ok       ok       ok       DD       ok       CA,CA,DR  ok    DR
update    same     | ok     CA,CA,DR CA,CA,DR CA,CA,DR CA,CA,DR DD       CA,CA,DR CA,CA,DR  ok    CA,CA,DR
merge     far      | ok     ok       ok       ok       ok       ok       ok       CA,CA,DR  ok    ok
merge     near     | ok     ok       ok       ok       ok       DD       ok       CA,CA,DR  ok    DR
merge     same     | ok     CA,CA,DR CA,CA,DR CA,CA,DR CA,CA,DR DD       CA,CA,DR CA,CA,DR  ok    CA,CA,DR
optimize  far      | ok     ok       ok       ok       ok       ok       ok       CA,CA,DR  ok    ok
optimize  near     | ok     DR       DR       DR       DR       DD       DR       CA,CA,DR  ok    ok
overwrite same     | ok     DR       DR       DR       DR       DD       DR       CA,CA,DR  ok    DR
alter     far      | MC     MC       MC       MC       MC       MC       MC       MC        MC    MC
copy      far      | ok     ok       ok       ok       ok       ok       ok       CA,CA,ok  ok    ok
copy      same     | ok     CA,CA,ok CA,CA,ok CA,CA,ok CA,CA,ok ok       CA,CA,ok CA,CA,ok  ok    CA,CA,ok
"""

# For rewriting commands: two commands that touch one file conflict, whichever rows they change.
BY_COPIES = """
winner    overlap  | append  delete    update    optimize
append    near     | ok      ok        ok        ok
append    same     | ok      CA,ok,ok  CA,ok,ok  ok
delete    far      | ok      ok        ok        ok
delete    near     | ok      CA,CA,DR  CA,CA,DR  DD
delete    same     | ok      CA,CA,DR  CA,CA,DR  DD
update    near     | ok      CA,CA,DR  CA,CA,DR  DD
optimize  far      | ok      ok        ok        ok
optimize  near     | ok      DD        DD        DD
"""

ISOLATIONS = {
    "serializable": "Serializable",
    "write_serializable": "WriteSerializable",
    "snapshot": "SnapshotIsolation",
}
ERRORS: dict[str, type[DeltaConcurrentModificationException]] = {
    "CA": ConcurrentAppendException,
    "DR": ConcurrentDeleteReadException,
    "DD": ConcurrentDeleteDeleteException,
    "MC": MetadataChangedException,
}
LOSERS_ROW = 3
Rows = Counter[tuple[int, str, int]]


def rows(*found: tuple[int, str, int]) -> pa.Table:
    return pa.table(
        {"id": [row[0] for row in found], "part": [row[1] for row in found], "n": [row[2] for row in found]}
    )


BASE = [
    (first + each, part, 0)
    for first, part in ((0, "a"), (50, "a"), (100, "b"), (150, "b"))
    for each in range(10)
]


def append(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return deltaic.write(table, rows((target[0], target[1], 7)), mode="append", commit=commit)


def delete(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return table.delete(f"id = {target[0]}", commit=commit)


def update(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return table.update({"n": "n + 1"}, f"id = {target[0]}", commit=commit)


def merge(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    source = rows((*target, 9))
    return table.merge(source, "t.id = s.id", commit=commit).when_matched_update({"n": "t.n + 2"}).execute()


def upsert(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    new = target[0] + 1000
    source = rows((*target, 9), (new, target[1], 9))
    return (
        table.merge(source, "t.id = s.id", commit=commit)
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def copy(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    """Appends the table's own row once more: no blind append."""
    return deltaic.write(table, table.scan(where=f"id = {target[0]}"), mode="append", commit=commit)


def optimize(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return table.optimize.compact(f"part = '{target[1]}'", commit=commit)


def replace(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return deltaic.write(
        table, rows((*target, 8)), mode="overwrite", where=f"id = {target[0]}", commit=commit
    )


def overwrite(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return deltaic.write(table, rows((1, "a", 5), (2, "b", 5)), mode="overwrite", commit=commit)


def alter(table: DeltaTable, target: tuple[int, str], commit: CommitOptions) -> Any:
    return table.alter.set_properties({"delta.checkpointInterval": "7"}, commit=commit)


COMMANDS: dict[str, Callable[[DeltaTable, tuple[int, str], CommitOptions], Any]] = {
    each.__name__: each
    for each in (append, delete, update, merge, upsert, optimize, replace, overwrite, alter, copy)
}


def after(before: Rows, command: str, target: tuple[int, str]) -> Rows:
    """Returns the rows that a command leaves."""
    left = Counter(before)
    hit = [row for row in before.elements() if row[0] == target[0]]
    if command in ("delete", "update", "merge", "upsert", "replace"):
        left -= Counter(hit)
    if command == "append":
        left[(*target, 7)] += 1
    elif command in ("update", "merge"):
        left += Counter((row[0], row[1], row[2] + (1 if command == "update" else 2)) for row in hit)
    elif command == "upsert":
        left += Counter([*((*row[:2], 9) for row in hit), (target[0] + 1000, target[1], 9)])
    elif command == "copy":
        left += Counter(hit)
    elif command == "replace":
        left[(*target, 8)] += 1
    elif command == "overwrite":
        left = Counter([(1, "a", 5), (2, "b", 5)])
    return left


def winners_target(winner: str, overlap: str) -> tuple[int, str]:
    if overlap == "far":
        return (104, "b") if winner != "append" else (900, "b")
    if overlap == "near":
        return (4, "a") if winner != "append" else (900, "a")
    return (LOSERS_ROW, "a")


def cells(matrix: str) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    header, *lines = matrix.strip().splitlines()
    losers = header.split("|")[1].split()
    for line in lines:
        left, right = line.split("|")
        winner, overlap = left.split()
        for loser, text in zip(losers, right.split(), strict=True):
            each = text.split(",")
            yield winner, overlap, loser, dict(zip(ISOLATIONS, each * (3 // len(each)), strict=True))


def found(table: DeltaTable) -> Rows:
    data = table.scan(["id", "part", "n"]).to_arrow()
    return Counter(zip(*(data[name].to_pylist() for name in ("id", "part", "n")), strict=True))


def base_table(path: Path, vectors: bool) -> Path:
    for number in range(4):
        deltaic.write(
            path,
            rows(*BASE[number * 10 : number * 10 + 10]),
            mode="append",
            partition_by="part",
            **({"properties": {"delta.enableDeletionVectors": vectors}} if number == 0 else {}),
        )
    return path


def check_line(
    folder: Path, base: Path, winner: str, overlap: str, losers: dict[str, dict[str, str]]
) -> list[str]:
    """Does all cells of one line; -> those that came out otherwise."""
    target, wrong = winners_target(winner, overlap), []
    won = folder / "won"
    shutil.copytree(base, won)
    COMMANDS[winner](DeltaTable(won), target, CommitOptions())
    assert DeltaTable(won).version == 4
    for loser, expected in losers.items():
        for isolation, outcome in expected.items():
            path = folder / f"{loser}-{isolation}"
            shutil.copytree(won, path)
            got, problem = "ok", ""
            try:
                COMMANDS[loser](
                    DeltaTable(path, version=3),
                    (LOSERS_ROW, "a"),
                    CommitOptions(isolation=isolation),  # type: ignore[arg-type]
                )
            except DeltaConcurrentModificationException as error:
                got = next(name for name, kind in ERRORS.items() if type(error) is kind)
                operation = DeltaTable(path).history(1)[0]["operation"]
                named = f"version 4 ({operation})" in str(error) and (
                    error.winner,
                    error.winner_operation,
                ) == (4, operation)
                problem = "" if named else f"; the error does not name the winner: {error}"
            table = DeltaTable(path)
            want = after(Counter(BASE), winner, target)
            if got == "ok":
                want = after_both(want, winner, loser, target)
            if found(table) != want:
                problem += (
                    f"; rows that should not be there {found(table) - want}, missing {want - found(table)}"
                )
            if table.version != (5 if got == "ok" else 4):
                problem += f"; version {table.version}"
            if got != outcome or problem:
                wrong.append(
                    f"{winner} {overlap} | {loser} under {isolation}: expected {outcome}, got {got}{problem}"
                )
            shutil.rmtree(path)
    return wrong


def after_both(won: Rows, winner: str, loser: str, target: tuple[int, str]) -> Rows:
    """Returns the rows after both commands. A loser that read did not see a row that the winner appended: the
    row is neither changed nor replaced."""
    appended = {"append": [(*target, 7)], "copy": [(*target, 0)]}
    unseen = Counter(appended.get(winner, []))
    return after(won - unseen, loser, (LOSERS_ROW, "a")) + unseen


def lines(matrix: str) -> list[Any]:
    grouped: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for winner, overlap, loser, expected in cells(matrix):
        grouped.setdefault((winner, overlap), {})[loser] = expected
    return [pytest.param(*key, losers, id="-".join(key)) for key, losers in grouped.items()]


@pytest.fixture(scope="module")
def by_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_table(tmp_path_factory.mktemp("vectors") / "t", True)


@pytest.fixture(scope="module")
def by_copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_table(tmp_path_factory.mktemp("copies") / "t", False)


@pytest.mark.parametrize(("winner", "overlap", "losers"), lines(BY_VECTORS))
def test_by_vectors(
    tmp_path: Path, by_vectors: Path, winner: str, overlap: str, losers: dict[str, dict[str, str]]
) -> None:
    assert check_line(tmp_path, by_vectors, winner, overlap, losers) == []


@pytest.mark.parametrize(("winner", "overlap", "losers"), lines(BY_COPIES))
def test_by_copies(
    tmp_path: Path, by_copies: Path, winner: str, overlap: str, losers: dict[str, dict[str, str]]
) -> None:
    assert check_line(tmp_path, by_copies, winner, overlap, losers) == []


def test_the_tables_property_decides_where_the_command_does_not(tmp_path: Path) -> None:
    for name, expected in zip(ISOLATIONS.values(), (ConcurrentAppendException, None, None), strict=True):
        path = tmp_path / name
        deltaic.write(path, rows(*BASE), properties={"delta.isolationLevel": name})
        loser = DeltaTable(path)
        append(DeltaTable(path), (LOSERS_ROW, "a"), CommitOptions())
        if expected is None:
            delete(loser, (LOSERS_ROW, "a"), CommitOptions())
            assert DeltaTable(path).history(1)[0]["isolationLevel"] == name
        else:
            with pytest.raises(
                expected, match=r"version 1 \(WRITE\) came first and added files .* \(id = 3\)"
            ):
                delete(loser, (LOSERS_ROW, "a"), CommitOptions())
