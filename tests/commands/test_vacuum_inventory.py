"""VACUUM with an inventory: it deletes the files that a listing would find, also if the inventory contradicts
the log."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.commands.inventory import PathSet
from deltaic.errors import DeltaError, InvalidArgumentError, InvalidTypeError, SchemaMismatchError
from numbered_store import NumberedStore

ZERO: dict[str, Any] = {"retention": timedelta(0), "enforce_retention": False}
WEEK = {"retention": timedelta(days=7)}
SCHEMA = pa.schema(
    [("path", pa.string()), ("length", pa.int64()), ("isDir", pa.bool_()), ("modificationTime", pa.int64())]
)


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts
    }


def inventory_of(folder: Path, prefix: str | None = None) -> pa.Table:
    """Returns all files in the folder, including those of its log."""
    prefix = str(folder) if prefix is None else prefix
    rows = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        full = f"{prefix}/{path.relative_to(folder)}"
        rows.append(
            {
                "path": full,
                "length": status.st_size,
                "isDir": path.is_dir(),
                "modificationTime": status.st_mtime_ns // 1_000_000,
            }
        )
    return pa.Table.from_pylist(rows, SCHEMA)


def entry(path: str, *, days: float = 100, length: int | None = 1, is_folder: bool = False) -> dict[str, Any]:
    moment = int((time.time() - days * 86_400) * 1000)
    return {"path": path, "length": length, "isDir": is_folder, "modificationTime": moment}


def age(folder: Path, days: float) -> None:
    then = time.time() - days * 86_400
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (then, then))


def gone(table: DeltaTable, inventory: Any, **options: Any) -> set[str]:
    return set(table.vacuum(inventory=inventory, **options).to_arrow()["path"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Files that were replaced, a vector, odd names, and what no version names."""
    root = tmp_path / "t"
    rows = pa.table({"id": list(range(20)), "part": ["a b", "x=y/z", "100%", "ü"] * 5})
    table = deltaic.write(
        root, rows, partition_by="part", properties={"deltaic.inlineDeletionVectors": "false"}
    )
    table.delete("id = 4")
    table.delete("id = 8")
    table.update({"id": "id + 100"}, "part = 'ü'")
    deltaic.write(table, rows, mode="append")
    (root / "left behind.parquet").write_bytes(b"x")
    (root / "part=ü").mkdir(exist_ok=True)
    (root / "part=ü" / "left.parquet").write_bytes(b"xy")
    (root / "_hidden").mkdir()
    (root / "_hidden" / "file").write_bytes(b"x")
    age(root, 100)
    return table


@pytest.mark.parametrize("prefix", ["{}", "file:{}", "file://{}"])
def test_what_goes_is_what_a_listing_finds(table: DeltaTable, prefix: str) -> None:
    root = Path(table.location)
    time.sleep(0.01)
    listed = set(table.vacuum(dry_run=True, **ZERO).to_arrow()["path"].to_pylist())
    assert len(listed) >= 4
    inventory = inventory_of(root, prefix.format(root))
    before = files(root)
    assert gone(table, inventory, dry_run=True, **ZERO) == listed
    assert (files(root), DeltaTable(root).version) == (before, table.version)
    assert gone(table, inventory, **ZERO) == listed
    assert files(root) == before - listed
    assert sorted(DeltaTable(root).scan().to_arrow()["id"].to_pylist()) == sorted(
        table.scan().to_arrow()["id"].to_pylist()
    )
    end, start = table.history(2)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert end["operationMetrics"]["numDeletedFiles"] == str(len(listed))


def test_files_of_retained_versions_stay(table: DeltaTable) -> None:
    """Tombstones and files are of this minute, even if an inventory gives them another age."""
    root = Path(table.location)
    old = [entry(f"{root}/{path}") for path in files(root)]
    unknown = {"left behind.parquet", "part=ü/left.parquet"}
    assert gone(table, pa.Table.from_pylist(old, SCHEMA), dry_run=True, **WEEK) == unknown
    first = DeltaTable(root, version=0)
    ids = first.scan().to_arrow()["id"].to_pylist()
    assert len(gone(table, pa.Table.from_pylist(old, SCHEMA), keep_versions=[0], **ZERO)) > len(unknown)
    assert sorted(first.scan().to_arrow()["id"].to_pylist()) == sorted(ids)


def test_a_commit_that_came_meanwhile_keeps_its_files(table: DeltaTable) -> None:
    """The inventory is read while another writer brings a version back."""
    root = Path(table.location)
    inventory = inventory_of(root)
    time.sleep(0.01)

    def batches() -> Any:
        DeltaTable(root).restore(0)
        yield from inventory.to_batches()

    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    gone(table, reader, **ZERO)
    assert len(DeltaTable(root).scan().to_arrow()) == 20


def test_entries_elsewhere_are_passed_over(
    table: DeltaTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = Path(table.location)
    outside = tmp_path / "precious"
    outside.write_bytes(b"1")
    paths = [
        str(outside),
        f"{root}/../precious",
        f"{root}/part/../../precious",
        f"{root}x/file",
        "left behind.parquet",
        "./left behind.parquet",
        f"s3a:/{root}/left behind.parquet",
        f"{root}//left behind.parquet",
        f"{root}/",
        f"{root}",
        f"{root}/left%20behind.parquet",
        f"{root}/_delta_log/{0:020}.json",
        f"{root}/_hidden/file",
    ]
    before = files(root)
    inventory = pa.Table.from_pylist([entry(path) for path in paths], SCHEMA)
    answer = gone(table, inventory, **ZERO)
    assert answer <= {"left%20behind.parquet"}  # named so, and there is none
    assert (files(root), outside.read_bytes()) == (before, b"1")
    with caplog.at_level(logging.WARNING, "deltaic.commands"):
        assert gone(table, inventory.slice(0, 1), **ZERO) == set()
    assert "no entry of the inventory lies below the table" in caplog.text


def test_links_are_left_alone(table: DeltaTable, tmp_path: Path) -> None:
    root, outside = Path(table.location), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"1")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "precious")
    paths = ["folder/precious", "file", "left behind.parquet"]
    rows = [*(entry(f"{root}/{path}") for path in paths), entry(f"{root}/folder", is_folder=True)]
    assert gone(table, pa.Table.from_pylist(rows, SCHEMA), **ZERO) == {"left behind.parquet"}
    assert (outside / "precious").exists()
    assert (root / "file").is_symlink()


def test_folders_that_are_named_and_empty_go(table: DeltaTable) -> None:
    root = Path(table.location)
    for name in ("empty", "empty/inner", "full", "young", "_secret", "unnamed"):
        (root / name).mkdir()
    (root / "full/file").write_bytes(b"1")
    (root / "full/old").write_bytes(b"1")
    folders = [
        entry(f"{root}/{name}", is_folder=True, length=0)
        for name in ("empty", "empty/inner", "full", "_secret")
    ]
    young = entry(f"{root}/young", is_folder=True, days=-1)
    rows = [*folders, young, entry(f"{root}/full/old"), entry(f"{root}/left behind.parquet")]
    gone(table, pa.Table.from_pylist(rows, SCHEMA), **ZERO)
    assert not (root / "empty").exists()
    assert all((root / name).exists() for name in ("full/file", "young", "_secret", "unnamed"))


def test_the_newest_entry_of_a_path_counts(table: DeltaTable) -> None:
    path = f"{table.location}/left behind.parquet"
    twice = [entry(path, days=100), entry(path, days=0)]
    for rows in (twice, twice[::-1]):
        assert gone(table, pa.Table.from_pylist(rows, SCHEMA), **WEEK) == set()
    answer = table.vacuum(
        inventory=pa.Table.from_pylist([entry(path, days=100), entry(path, days=99)], SCHEMA), **WEEK
    ).to_arrow()
    assert answer["path"].to_pylist() == ["left behind.parquet"]


def test_checksums_of_hadoop_go_with_their_files(table: DeltaTable) -> None:
    root = Path(table.location)
    (root / ".left behind.parquet.crc").write_bytes(b"crc")
    gone(table, inventory_of(root), **ZERO)
    assert not (root / ".left behind.parquet.crc").exists()


def test_lite_takes_only_what_the_log_names(table: DeltaTable) -> None:
    root = Path(table.location)
    time.sleep(0.01)
    lite = set(table.vacuum(mode="lite", dry_run=True, **ZERO).to_arrow()["path"].to_pylist())
    assert lite
    assert gone(table, inventory_of(root), mode="lite", dry_run=True, **ZERO) == lite


def kinds(inventory: pa.Table, folder: Path) -> dict[str, Callable[[], Any]]:
    import duckdb
    import polars

    folder.mkdir()
    pq.write_table(inventory, folder / "inventory.parquet", row_group_size=3)
    pq.write_table(inventory.slice(0, 2), folder / "more.parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    wide = inventory.append_column("storageClass", pa.array(["STANDARD"] * inventory.num_rows)).select(
        ["modificationTime", "storageClass", "isDir", "length", "path"]
    )
    views = pa.schema([("path", pa.string_view()), *list(SCHEMA)[1:]])
    return {
        "table": lambda: inventory,
        "reader": lambda: inventory.to_reader(max_chunksize=2),
        "wide": lambda: wide,
        "large text": lambda: inventory.set_column(0, "path", inventory["path"].cast(pa.large_string())),
        "views": lambda: inventory.cast(views),
        "pandas": lambda: inventory.to_pandas(),
        "polars": lambda: polars.from_arrow(inventory),
        "duckdb": lambda: duckdb.connect().from_arrow(inventory),
        "file": lambda: folder / "inventory.parquet",
        "text": lambda: str(folder / "inventory.parquet"),
        "folder": lambda: folder,
        "dicts": lambda: inventory.to_pylist(),
        "delta": lambda: deltaic.write(folder.parent / "inventory table", inventory),
    }


def test_every_kind_of_rows(table: DeltaTable, tmp_path: Path) -> None:
    time.sleep(0.01)
    listed = set(table.vacuum(dry_run=True, **ZERO).to_arrow()["path"].to_pylist())
    for name, made in kinds(inventory_of(Path(table.location)), tmp_path / "inventories").items():
        assert gone(table, made(), dry_run=True, **ZERO) == listed, name


@pytest.mark.parametrize(
    ("column", "type_", "found"),
    [
        ("path", pa.binary(), "path binary"),
        ("length", pa.int32(), "length int32"),
        ("isDir", pa.int8(), "isDir int8"),
        ("modificationTime", pa.timestamp("ms"), "modificationTime timestamp"),
        ("path", None, "found length long"),
    ],
)
def test_other_columns_are_refused(
    table: DeltaTable, tmp_path: Path, column: str, type_: pa.DataType | None, found: str
) -> None:
    rows = pa.table([pa.array([], of) for of in SCHEMA.types], names=SCHEMA.names)
    place = SCHEMA.names.index(column)
    rows = rows.remove_column(place) if type_ is None else rows.set_column(place, column, pa.array([], type_))
    pq.write_table(rows, tmp_path / "inventory.parquet")
    for given in (rows, tmp_path / "inventory.parquet"):
        with pytest.raises(
            SchemaMismatchError,
            match=f"required columns.*{found}.*expected path string, length long, isDir boolean",
        ):
            table.vacuum(inventory=given)


def test_what_is_no_inventory(table: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="not a source of rows"):
        table.vacuum(inventory=7)
    with pytest.raises(InvalidArgumentError, match="has no Parquet files"):
        table.vacuum(inventory=tmp_path / "nothing")
    with pytest.raises((FileNotFoundError, DeltaError)):
        table.vacuum(inventory=tmp_path / "nothing.parquet")


@pytest.mark.parametrize("name", ["length", "isDir", "modificationTime"])
def test_nulls_below_the_table_are_refused(table: DeltaTable, name: str) -> None:
    before = files(Path(table.location))
    rows = [entry(f"{table.location}/left behind.parquet"), {**entry(f"{table.location}/x"), name: None}]
    with pytest.raises(InvalidArgumentError, match=rf"/x: the inventory has a null in {name}"):
        table.vacuum(inventory=pa.Table.from_pylist(rows, SCHEMA), **ZERO)
    elsewhere = [{**entry("/elsewhere"), name: None}, {**entry("/elsewhere"), "path": None}]
    assert gone(table, pa.Table.from_pylist(elsewhere, SCHEMA), **ZERO) == set()
    assert files(Path(table.location)) == before


def test_seconds_are_not_taken_for_milliseconds(table: DeltaTable) -> None:
    rows = [{**entry(f"{table.location}/x"), "modificationTime": int(time.time())}]
    with pytest.raises(InvalidArgumentError, match=r"not in milliseconds; found 1\d{9}"):
        table.vacuum(inventory=pa.Table.from_pylist(rows, SCHEMA), **ZERO)


def test_nothing_but_the_log_is_listed() -> None:
    store = NumberedStore()
    with deltaic.configure(log_stores={"counted": lambda location, options: store}):
        table = deltaic.write("counted://t", pa.table({"id": [1]}))
        deltaic.write(table, pa.table({"id": [2]}), mode="overwrite")
        rows = [entry(f"counted://t/{path}") for path in store.objects if not path.startswith("_delta_log")]
        time.sleep(0.01)
        store.calls.clear()
        assert len(gone(table, pa.Table.from_pylist(rows, SCHEMA), **ZERO)) == 1
    listed = {path.strip("/") for method, path in store.calls if method == "list"}
    assert listed == {"_delta_log"}
    assert len([path for method, path in store.calls if method == "delete"]) >= 1


def test_an_error_of_the_reader_deletes_nothing(table: DeltaTable) -> None:
    root = Path(table.location)
    before, inventory = files(root), inventory_of(root)

    def batches() -> Any:
        yield from inventory.to_batches()
        raise ZeroDivisionError("theirs")

    with pytest.raises(ZeroDivisionError, match="theirs"):
        table.vacuum(inventory=batches(), **ZERO)
    assert (files(root), DeltaTable(root).version) == (before, table.version)


def test_hashes_know_what_was_added() -> None:
    random = np.random.default_rng(1)
    texts = [
        "",
        "a",
        "b",
        "ab",
        "ba",
        "aa",
        "ü",
        "a" * 5000,
        *(f"part-{random.integers(1 << 40):x}.parquet" for _ in range(20_000)),
    ]
    paths = pa.array(texts)
    known = PathSet()
    known.add(paths.slice(3, 9_000))
    known.add(paths.slice(0, 2))
    expected = [at != 2 and at < 9_003 for at in range(len(texts))]
    first = dict(zip(texts[::-1], expected[::-1], strict=True))
    assert known.contain(paths).to_pylist() == [first[text] for text in texts]
    assert known.contain(pa.array([], pa.string())).to_pylist() == []
    assert PathSet().contain(paths.slice(0, 2)).to_pylist() == [False, False]
