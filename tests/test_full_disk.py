"""A disk that becomes full at each page that a command writes: the error is the system's, the table is
unchanged, the space is free again, and the command succeeds once there is room."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import CommitUnknownError, DeltaError, ProtocolError
from deltaic.log import background

PAGE = 4096
"""Bytes that a tmpfs takes for each begun 4096 bytes of a file."""
MOST_PAGES = 400
NAMES = ("one", "two")
PROPERTIES = {"delta.checkpointInterval": 100, "delta.setTransactionRetentionDuration": "interval 1 day"}


@dataclass(frozen=True)
class Disk:
    """A small file system with the tables `one` and `two`. `origin`: a copy of its content elsewhere."""

    root: Path
    origin: Path

    def reset(self, pages: int | None) -> None:
        """Restores the tables and leaves room for this number of pages; None for all."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.origin, self.root, dirs_exist_ok=True)
        if pages is not None:
            room = os.statvfs(self.root)
            with (self.root / "filler").open("wb") as filler:
                os.posix_fallocate(filler.fileno(), 0, max(room.f_bavail * room.f_frsize - pages * PAGE, 1))

    def make_room(self) -> None:
        (self.root / "filler").unlink()

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def table(self, name: str = "one") -> DeltaTable:
        with deltaic.configure(allowed_roots=[str(self.root)]):
            return DeltaTable(self.root / name)

    def content(self) -> list[Any]:
        """Version, columns, properties and rows of each table."""
        found: list[Any] = []
        for name in sorted(path.name for path in self.root.iterdir() if (path / "_delta_log").is_dir()):
            try:
                table = self.table(name)
            except DeltaError:  # a new table without a commit
                continue
            rows = sorted(map(str, table.scan().to_arrow().to_pylist()))
            properties = {
                key: value for key, value in table.metadata.configuration.items() if "materialized" not in key
            }
            found.append((name, table.schema.to_json(), rows, table.version, properties))
        return found


def rows(first: int, count: int = 400) -> pa.Table:
    """Returns rows whose file takes several pages."""
    chance = random.Random(first)
    numbers = range(first, first + count)
    words = [chance.randbytes(20).hex() for _ in numbers]
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "part": [str(at % 2) for at in numbers], "word": words}
    )


@pytest.fixture(scope="module", params=[True, False], ids=["vectors", "copies"])
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    root = tmp_path_factory.mktemp("small")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        for name in NAMES:
            properties = {**PROPERTIES, "delta.enableDeletionVectors": request.param}
            table = deltaic.write(root / name, rows(0), partition_by="part", properties=properties)
            table = deltaic.write(table, rows(400), mode="append")
            table.delete("id % 50 = 7")
        (root / "plain").mkdir()
        pq.write_table(rows(2000), root / "plain" / "plain.parquet")
        pq.write_table(rows(2000).drop_columns("part"), root / "one" / "part=0" / "plain.parquet")
        assert background.wait(10)
        origin = tmp_path_factory.mktemp("origin")
        shutil.copytree(root, origin, dirs_exist_ok=True)
        yield Disk(root, origin)
    finally:
        subprocess.run(["umount", str(root)], check=True)


def merge(disk: Disk) -> None:
    merging = disk.table().merge(rows(700), "t.id = s.id")
    merging.when_matched_update_all().when_not_matched_insert_all().when_not_matched_by_source_delete(
        "t.id = 3"
    ).execute()


def several(disk: Disk) -> None:
    one, two = (disk.table(name) for name in NAMES)
    with deltaic.transaction(one, two) as transaction:
        transaction.write(one, rows(900))
        transaction.update(two, {"word": "'new'"}, "id < 50")


def convert(disk: Disk) -> None:
    DeltaTable.convert(disk.root / "plain")


def vacuum(disk: Disk) -> None:
    disk.table().vacuum(retention=timedelta(0), enforce_retention=False)


COMMANDS: dict[str, Callable[[Disk], object]] = {
    "create": lambda disk: DeltaTable.create(disk.root / "new", "id bigint, word string"),
    "write a new table": lambda disk: deltaic.write(disk.root / "new", rows(0)),
    "append": lambda disk: deltaic.write(disk.table(), rows(900), mode="append"),
    "overwrite": lambda disk: deltaic.write(disk.table(), rows(900), mode="overwrite"),
    "overwrite where": lambda disk: deltaic.write(
        disk.table(), rows(900), mode="overwrite", where="id >= 300"
    ),
    "overwrite partitions": lambda disk: deltaic.write(disk.table(), rows(900), mode="overwrite_partitions"),
    "new column": lambda disk: deltaic.write(
        disk.table(), rows(900).append_column("n", pa.array(range(400))), mode="append", schema_mode="merge"
    ),
    "add files": lambda disk: disk.table().add_files(["part=0/plain.parquet"]),
    "delete": lambda disk: disk.table().delete("id % 40 = 3"),
    "delete a partition": lambda disk: disk.table().delete("part = '1'"),
    "update": lambda disk: disk.table().update({"word": "upper(word)"}, "id % 10 = 3"),
    "merge": merge,
    "several tables": several,
    "compact": lambda disk: disk.table().optimize.compact(),
    "z-order": lambda disk: disk.table().optimize.z_order(["word"]),
    "purge": lambda disk: disk.table().optimize.purge(),
    "statistics": lambda disk: disk.table().optimize.statistics(["word"]),
    "restore": lambda disk: disk.table().restore(0),
    "deep clone": lambda disk: disk.table().clone(disk.root / "new"),
    "shallow clone": lambda disk: disk.table().clone(disk.root / "new", shallow=True),
    "convert": convert,
    "add a column": lambda disk: disk.table().alter.add_columns("n int"),
    "set properties": lambda disk: disk.table().alter.set_properties(
        {"delta.appendOnly": "false", "a": "b" * 5000}
    ),
    "add a constraint": lambda disk: disk.table().alter.add_constraints({"positive": "id >= 0"}),
    "add a feature": lambda disk: disk.table().alter.set_properties({"delta.enableRowTracking": "true"}),
    "drop a feature": lambda disk: disk.table().alter.drop_feature("deletionVectors"),
    "checkpoint": lambda disk: disk.table().checkpoint(),
    "compact the log": lambda disk: disk.table().compact_log(0, 2),
    "clean the log": lambda disk: disk.table().clean_log(),
    "manifests": lambda disk: disk.table().generate(),
    "repair": lambda disk: disk.table().repair(),
    "vacuum": vacuum,
}


SEVERAL_COMMITS = ("several tables", "add a feature", "drop a feature")
"""Commands of several commits: the rows are as before when a later one fails, the version and properties need
not be."""


def attempt(command: Callable[[Disk], object], disk: Disk) -> BaseException | None:
    try:
        command(disk)
    except (DeltaError, OSError) as error:
        return error
    finally:
        assert background.wait(30)
    return None


def is_full_disk(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return True
        error = error.__cause__ or error.__context__
    return False


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(disk: Disk, name: str) -> None:
    disk.reset(None)
    origin = disk.content()
    before = disk.files()
    refused = attempt(COMMANDS[name], disk)
    if refused is not None:
        pytest.skip(f"not a command of this table: {refused}")
    result, writes = disk.content(), disk.files() - before
    some = 3 if name in SEVERAL_COMMITS else None
    errors = 0
    for pages in range(MOST_PAGES):
        disk.reset(pages)
        error = attempt(COMMANDS[name], disk)
        found = disk.content()
        disk.make_room()
        assert disk.content() == found, pages
        where = pages, repr(error)
        errors += error is not None
        assert error is None or is_full_disk(error), where
        if error is None or (name == "several tables" and "is committed, do not do it again" in str(error)):
            assert [each[:some] for each in found] == [each[:some] for each in result], where
        else:
            assert not isinstance(error, (ProtocolError, CommitUnknownError)), where
            assert [each[:some] for each in found] == [each[:some] for each in origin], where
            assert {path for path in disk.files() - before if not may_stay(path, name)} == set(), where
            refused = attempt(COMMANDS[name], disk)
            assert refused is None, (*where, repr(refused))
            assert [each[:some] for each in disk.content()] == [each[:some] for each in result], where
        if error is None and not is_short(disk, pages):
            break
    else:
        raise AssertionError(f"{name} takes more than {MOST_PAGES} pages")
    assert errors > 0 or not writes or name == "vacuum"


def may_stay(path: str, name: str) -> bool:
    """True for manifests and checkpoints, each of which is whole; for commits that came before the one that
    failed; and for what tells others about a transaction over several tables, which the next process that
    meets it aborts: its intents and start commits."""
    if name == "several tables":
        return "/_delta_log/" in path
    return (
        name in SEVERAL_COMMITS
        or "/_symlink_format_manifest/" in path
        or path.endswith(".checkpoint.parquet")
    )


def is_short(disk: Disk, pages: int) -> bool:
    """True if the command may have left out a file that need not be there, like a checksum, as nothing was
    left of the room."""
    used = sum(-(-path.stat().st_size // PAGE) for path in disk.root.rglob("*") if path.is_file())
    kept = sum(-(-path.stat().st_size // PAGE) for path in disk.origin.rglob("*") if path.is_file())
    return used - kept >= pages
