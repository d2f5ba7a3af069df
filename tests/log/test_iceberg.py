"""Iceberg metadata of a Delta table: PyIceberg reads the rows that deltaic reads."""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
import threading
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.log import iceberg, iceberg_document, iceberg_manifests

pyiceberg = pytest.importorskip("pyiceberg")
from pyiceberg.table import StaticTable  # noqa: E402

UNIFORM = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}
UNIFORM_V3 = {"delta.enableIcebergCompatV3": "true", "delta.universalFormat.enabledFormats": "iceberg"}


def newest(path: Any) -> Path:
    folder = Path(str(path)) / "metadata"
    return folder / f"v{(folder / 'version-hint.text').read_text()}.metadata.json"


def opened(path: Any) -> StaticTable:
    return StaticTable.from_metadata(str(newest(path)))


def ordered(rows: pa.Table) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows.to_pylist())


def check(table: DeltaTable) -> StaticTable:
    """PyIceberg sees the rows, the columns and the version that deltaic sees; its own counts agree."""
    table.refresh()
    iceberg_table = opened(table.location)
    assert iceberg_table.properties["delta-version"] == str(table.version)
    rows = iceberg_table.scan().to_arrow()
    mine = table.scan().to_arrow()
    assert rows.column_names == mine.column_names
    assert ordered(rows) == ordered(mine)
    assert iceberg_table.scan().count() == mine.num_rows
    if (snapshot := iceberg_table.current_snapshot()) is not None:
        assert int(snapshot.summary["total-records"]) == mine.num_rows
        assert int(snapshot.summary["total-data-files"]) == table._snapshot.core.file_count
        check_summaries(iceberg_table)
    return iceberg_table


def check_summaries(iceberg_table: StaticTable) -> None:
    """The totals of a snapshot are those of the one before, plus the added and minus the deleted rows and
    files."""
    known: dict[Any, dict[str, int]] = {None: {}}
    for snapshot in iceberg_table.snapshots():
        numbers = {name: int(text) for name, text in snapshot.summary.additional_properties.items()}
        if (before := known.get(snapshot.parent_snapshot_id)) is not None:
            for total, added, gone in [
                ("total-data-files", "added-data-files", "deleted-data-files"),
                ("total-records", "added-records", "deleted-records"),
                ("total-files-size", "added-files-size", "removed-files-size"),
            ]:
                assert numbers[total] == before.get(total, 0) + numbers[added] - numbers[gone], (
                    numbers,
                    before,
                )
        known[snapshot.snapshot_id] = numbers


def check_folder(iceberg_table: StaticTable) -> None:
    """Each Avro file belongs to a snapshot."""
    used = {snapshot.manifest_list for snapshot in iceberg_table.snapshots()}
    for snapshot in iceberg_table.snapshots():
        used |= {manifest.manifest_path for manifest in snapshot.manifests(iceberg_table.io)}
    folder = Path(iceberg_table.location()) / "metadata"
    assert {str(each) for each in folder.glob("*.avro")} == used


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def made(path: str, rows: pa.Table, **options: Any) -> DeltaTable:
    deltaic.write(path, rows, properties={**UNIFORM, **options.pop("properties", {})}, **options)
    return DeltaTable(path)


NUMBERS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{each}" for each in range(10)]})


def test_commands(path: str) -> None:
    table = made(path, NUMBERS)
    check(table)
    deltaic.write(path, NUMBERS.slice(0, 3), mode="append")
    check(table)
    table.delete("id = 2")
    check(table)
    table.update({"name": "'new'"}, where="id > 7")
    check(table)
    source = pa.table({"id": pa.array([1, 100], pa.int64()), "name": ["one", "hundred"]})
    table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    check(table)
    deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
    table.refresh()
    assert table.optimize.compact()["num_files_removed"] > 1
    assert check(table).current_snapshot().summary.operation.value == "replace"
    deltaic.write(path, NUMBERS.slice(5), mode="overwrite")
    check(table)
    table.restore(1)
    check(table)
    table.delete()
    check(table)


@pytest.mark.parametrize("seed", range(4))
def test_random_commands(path: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of many commands, some of whose metadata is not written, all snapshots have the rows of
    their versions."""
    chance = random.Random(seed)
    monkeypatch.setattr(iceberg_manifests, "_MOST_MANIFESTS", 4)
    monkeypatch.setattr(iceberg_manifests, "_MOST_ENTRIES", 3)
    partitions = ["name"] if seed % 2 else None
    third = UNIFORM_V3 | {"delta.enableIcebergCompatV2": "false", "delta.enableDeletionVectors": "false"}
    version = {"properties": third} if seed > 1 else {}
    table = made(path, NUMBERS, partition_by=partitions, **version)
    write = iceberg.write
    for _ in range(14):
        start = chance.randrange(9)
        commands: list[Any] = [
            lambda start=start: deltaic.write(path, NUMBERS.slice(start, 2), mode="append"),
            lambda start=start: table.delete(f"id % 5 = {start % 5}"),
            lambda start=start: table.update({"id": "id + 1"}, f"id = {start}"),
            lambda: table.optimize.compact(),
            lambda: table.restore(chance.randrange(table.version + 1)),
            lambda start=start: deltaic.write(path, NUMBERS.slice(start), mode="overwrite"),
        ]
        is_silent = chance.random() < 0.25
        monkeypatch.setattr(iceberg, "write", (lambda snapshot: None) if is_silent else write)
        chance.choice(commands)()
        table.refresh()
        if not is_silent and opened(path).properties["delta-version"] == str(table.version):
            check(table)
    monkeypatch.setattr(iceberg, "write", write)
    deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
    found = check(table)
    check_folder(found)
    for snapshot in found.snapshots():
        rows = DeltaTable(path, version=int(snapshot.summary["delta-version"])).scan().to_arrow()
        assert ordered(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == ordered(rows)


def test_added_files_have_the_ids_of_the_table(path: str) -> None:
    table = made(path, pa.table({"a": [1], "b": [[2]]}))
    other = deltaic.write(path + "-other", pa.table({"b": [[20]], "a": [10]}), properties=UNIFORM)
    shutil.copy(next(Path(path).rglob("*.parquet")), Path(path) / "ids.parquet")
    shutil.copy(next(Path(other.location).rglob("*.parquet")), Path(path) / "other.parquet")
    pq.write_table(pa.table({"a": [5], "b": [[6]]}), Path(path) / "without ids.parquet")
    table.add_files(["without ids.parquet", "ids.parquet"])
    check(table)
    with pytest.raises(
        SchemaMismatchError,
        match=r"other\.parquet, column b: a file has other field ids.*found id 1; expected id 2",
    ):
        table.add_files(["other.parquet"])


def test_time_travel_by_snapshot(path: str) -> None:
    table = made(path, NUMBERS)
    for start in range(1, 4):
        deltaic.write(path, NUMBERS.slice(start, 1), mode="append")
    table.refresh()
    table.delete("id < 3")
    found = check(table)
    assert [each.summary["delta-version"] for each in found.snapshots()] == ["0", "1", "2", "3", "4"]
    for snapshot in found.snapshots():
        version = int(snapshot.summary["delta-version"])
        assert ordered(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == ordered(
            DeltaTable(path, version=version).scan().to_arrow()
        )
    parents = [each.parent_snapshot_id for each in found.snapshots()]
    assert parents == [None, *(each.snapshot_id for each in found.snapshots()[:-1])]


def test_types(path: str) -> None:
    utc = timezone.utc
    rows = pa.table(
        {
            "flag": [True, None],
            "small": pa.array([1, -128], pa.int8()),
            "medium": pa.array([1, -32768], pa.int16()),
            "number": pa.array([1, -(2**31)], pa.int32()),
            "large": pa.array([2**63 - 1, None], pa.int64()),
            "single": pa.array([1.5, -0.0], pa.float32()),
            "double": pa.array([float("nan"), 0.1], pa.float64()),
            "amount": pa.array([Decimal("-12345.67"), Decimal("0.01")], pa.decimal128(12, 2)),
            "huge": pa.array([Decimal(10**37), None], pa.decimal128(38, 0)),
            "text": ["ä", ""],
            "data": pa.array([b"\x00\xff", None], pa.binary()),
            "day": [date(1969, 12, 31), date(9999, 12, 31)],
            "moment": pa.array([datetime(2020, 1, 1, 0, 0, 0, 123456, utc), None], pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(1, 1, 1), datetime(2020, 1, 1, 1, 2, 3, 999999)], pa.timestamp("us")),
            "inner": pa.array(
                [{"a": 1, "b": {"c": "x"}}, None],
                pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]),
            ),
            "list": pa.array([[1, None], []], pa.list_(pa.int64())),
            "deep": pa.array([[[1], None], None], pa.list_(pa.list_(pa.int64()))),
            "renamed": pa.array([[[{"k": 1}]], None], pa.list_(pa.list_(pa.struct([("k", pa.int64())])))),
            # None of the lists is null.
            "structs": pa.array([[{"k": 1}], [None]], pa.list_(pa.struct([("k", pa.int64())]))),
            "map": pa.array([[("a", [1])], None], pa.map_(pa.string(), pa.list_(pa.int32()))),
        }
    )
    table = made(path, rows)
    found = check(table)
    assert str(found.schema().find_type("amount")) == "decimal(12, 2)"
    deltaic.write(path, rows, mode="append")
    check(table)


def test_null_lists_of_structs(path: str) -> None:
    """PyIceberg 0.12 shows nulls as empty values, as the page on UniForm says. The file has nulls."""
    import pyarrow.parquet as pq

    lists = pa.array([[{"k": 1}], None], pa.list_(pa.struct([("k", pa.int64())])))
    table = made(path, pa.table({"lists": lists}))
    (task,) = opened(path).scan().plan_files()
    assert pq.read_table(task.file.file_path)["lists"].null_count == 1
    assert table.scan().to_arrow()["lists"].to_pylist() == [[{"k": 1}], None]
    assert opened(path).scan().to_arrow()["lists"].to_pylist() == [[{"k": 1}], []]


def test_statistics_prune_right(path: str) -> None:
    rows = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "at": pa.array(
                [datetime(2020, 1, day + 1, 0, 0, 0, 999) for day in range(6)], pa.timestamp("us")
            ),
            "amount": pa.array([Decimal(each) - 3 for each in range(6)], pa.decimal128(9, 2)),
            "text": ["x" * 40 + str(each) for each in range(6)],
            "real": [float(each) for each in range(6)],
        }
    )
    table = made(path, rows.slice(0, 1))
    for row in range(1, 6):
        deltaic.write(path, rows.slice(row, 1), mode="append")
    found = check(table)
    for row in rows.to_pylist():
        for name in ("id", "at", "amount", "text", "real"):
            value = row[name]
            text = (
                repr(value)
                if isinstance(value, (str, int, float))
                else f"'{value.isoformat()}'"
                if isinstance(value, datetime)
                else str(value)
            )
            scan = found.scan(row_filter=f"{name} = {text}")
            assert scan.to_arrow().num_rows == 1, (name, value)
            # Texts differ behind the 32 characters of a bound.
            assert len(list(scan.plan_files())) == (6 if name == "text" else 1)
    assert len(list(found.scan(row_filter="id > 3").plan_files())) == 2
    assert len(list(found.scan(row_filter="id is null").plan_files())) == 0


def test_partitions(path: str) -> None:
    rows = pa.table(
        {
            "day": [date(2020, 1, 1), date(2020, 1, 1), None],
            "kind": ["a b", "ü/%", None],
            "amount": pa.array([Decimal("-1.50"), Decimal("99.99"), None], pa.decimal128(4, 2)),
            "at": pa.array([datetime(2020, 1, 1, 1, 2, 3, 4), None, None], pa.timestamp("us")),
            "flag": [True, False, None],
            "number": pa.array([1, -1, None], pa.int16()),
            "id": pa.array([1, 2, 3], pa.int64()),
        }
    )
    table = made(path, rows, partition_by=["day", "kind", "amount", "at", "flag", "number"])
    found = check(table)
    assert len(list(found.scan(row_filter="kind = 'a b'").plan_files())) == 1
    assert len(list(found.scan(row_filter="day is null").plan_files())) == 1
    table.delete("day is null")
    check(table)
    table.alter.rename_column("kind", "sort of kind")
    deltaic.write(path, table.scan().to_arrow(), mode="append")
    check(table)


def test_columns_change(path: str) -> None:
    table = made(path, NUMBERS, properties={"delta.enableTypeWidening": "true"})
    table.alter.add_columns("extra int, list array<int>")
    check(table)
    wide = pa.table(
        {
            "id": pa.array([20], pa.int64()),
            "name": ["x"],
            "extra": pa.array([5], pa.int32()),
            "list": pa.array([[1]], pa.list_(pa.int32())),
        }
    )
    deltaic.write(path, wide, mode="append")
    check(table)
    table.alter.rename_column("name", "title")
    check(table)
    table.alter.change_column("extra", type="long")
    check(table)
    again = wide.rename_columns(["id", "title", "extra", "list"]).set_column(
        2, "extra", pa.array([2**40], pa.int64())
    )
    deltaic.write(path, again, mode="append")
    found = check(table)
    assert found.scan(row_filter="extra = 5").to_arrow().num_rows == 1
    table.alter.drop_columns("title")
    check(table)
    deltaic.write(path, pa.table({"other": [1.5]}), mode="overwrite", schema_mode="overwrite")
    check(table)


def test_floats_that_become_doubles(path: str) -> None:
    """The file's statistics have 0.7, and its float is 0.699999988079071."""
    table = made(
        path,
        pa.table({"real": pa.array([0.7], pa.float32())}),
        properties={"delta.enableTypeWidening": "true"},
    )
    deltaic.write(path, pa.table({"real": pa.array([0.1], pa.float32())}), mode="append")
    table.refresh()
    table.alter.change_column("real", type="double")
    deltaic.write(path, pa.table({"real": [5.0]}), mode="append")
    found = check(table)
    for value in (0.699999988079071, 0.10000000149011612):
        scan = found.scan(row_filter=f"real = {value}")
        assert scan.to_arrow()["real"].to_pylist() == [value]
        assert len(list(scan.plan_files())) == 1


def test_each_type_of_a_manifest_has_a_name_of_its_own(path: str) -> None:
    """Avro allows one definition of a name."""
    amounts = pa.array([Decimal("1.50"), None], pa.decimal128(4, 2))
    table = made(path, pa.table({"a": amounts, "b": amounts, "id": [1, 2]}), partition_by=["a", "b"])
    check(table)
    (manifest,) = (Path(path) / "metadata").glob("*-m0.avro")
    names = re.findall(rb'"name":"(decimal_[^"]*)"', manifest.read_bytes())
    assert len(set(names)) == len(names) == 2


def test_vectors_of_version_3(path: str) -> None:
    """The entry of a vector names its own bytes in Delta's file, in the frame that Iceberg requires."""
    deltaic.write(path, NUMBERS, properties={**UNIFORM_V3, "delta.enableDeletionVectors": "true"})
    table = DeltaTable(path)
    found = check(table)
    assert found.format_version == 3
    table.delete("id in (2, 5)")
    table.refresh()
    entries = vectors(table)
    assert len(entries) == 1
    place, offset, size, referenced, rows = entries[0]
    framed = Path(place).read_bytes()[offset : offset + size]
    assert int.from_bytes(framed[:4], "big") == len(framed) - 8
    assert framed[4:8] == bytes([0xD1, 0xD3, 0x39, 0x64])
    assert sorted(deltaic._core.DeletionVector.from_bytes(framed[4:-4])) == [2, 5]
    assert rows == 2
    assert Path(referenced).exists()
    with pytest.raises(ValueError, match="magic bytes"):  # PyIceberg 0.12 reads vectors of Puffin files alone
        opened(path).scan().to_arrow()
    table.delete("id = 7")
    ((_, _, _, _, rows),) = vectors(table)
    assert rows == 3
    deltaic.write(path, NUMBERS, mode="append")
    assert len(vectors(table)) == 1
    table.optimize.purge()
    assert vectors(table) == []
    check(table)


def vectors(table: DeltaTable) -> list[tuple[Any, ...]]:
    """Returns the live deletion vectors of the newest snapshot: path, offset, size, data file, rows."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import ManifestContent

    from deltaic.commands.iceberg_files import _entries

    found = []
    for manifest in opened(table.location).current_snapshot().manifests(PyArrowFileIO()):
        if manifest.content == ManifestContent.DELETES:
            for *_, file in _entries(PyArrowFileIO(), manifest):
                found.append((file.file_path, file[18], file[19], file[17], file.record_count))
    return found


def test_row_lineage(path: str) -> None:
    """First row ids are those of Delta, data sequence numbers the versions that wrote the rows."""
    deltaic.write(path, NUMBERS, properties=UNIFORM_V3)
    deltaic.write(path, NUMBERS.slice(0, 4), mode="append")
    document = json.loads(newest(path).read_text())
    assert document["next-row-id"] == 14
    assert [(each["first-row-id"], each["added-rows"]) for each in document["snapshots"]] == [
        (0, 10),
        (10, 4),
    ]


def test_a_commit_adds_one_manifest(path: str) -> None:
    table = made(path, NUMBERS)
    sizes = []
    for _ in range(5):
        before = set((Path(path) / "metadata").iterdir())
        deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
        new = [each for each in (Path(path) / "metadata").iterdir() if each not in before]
        assert sorted(each.suffix for each in new) == [".avro", ".avro", ".json"]
        sizes.append(next(each.stat().st_size for each in new if each.name.endswith("-m0.avro")))
    assert max(sizes) - min(sizes) < 64
    check(table)


def test_manifests_stay_few_and_old_ones_go(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_manifests, "_MOST_MANIFESTS", 5)
    monkeypatch.setattr(iceberg_document, "_MOST_FORMER", 4)
    retentions = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    table = made(path, NUMBERS, properties=dict.fromkeys(retentions, "interval 0 seconds"))
    for number in range(40):
        deltaic.write(path, NUMBERS.slice(number % 10, 1), mode="append")
    found = check(table)
    assert len(found.current_snapshot().manifests(found.io)) <= 6
    assert len(found.snapshots()) <= 3
    check_folder(found)
    for snapshot in found.snapshots():
        found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    table.refresh()
    table.delete("id = 3")
    check(table)


def test_a_later_commit_catches_up(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = made(path, NUMBERS)
    with monkeypatch.context() as broken:
        broken.setattr(iceberg, "write", lambda snapshot: (_ for _ in ()).throw(OSError("the disk is full")))
        with caplog.at_level(logging.WARNING, "deltaic.log"):
            deltaic.write(path, NUMBERS, mode="append")
        table.refresh()
        table.delete("id = 1")
    assert "could not be written: the disk is full" in caplog.text
    assert opened(path).properties["delta-version"] == "0"
    deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
    found = check(table)
    assert [each.summary["delta-version"] for each in found.snapshots()] == ["0", "3"]


def test_a_file_that_came_and_went_while_no_metadata_was_written(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is restored and another is added twice, since the last metadata: neither hides the other."""
    table = made(path, NUMBERS)
    with monkeypatch.context() as silent:
        silent.setattr(iceberg, "write", lambda snapshot: None)
        deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
        table.refresh()
        table.restore(0)
        table.restore(1)
    table.optimize.statistics(["name"])
    check_folder(check(table))


@pytest.mark.parametrize("call", range(5))
def test_a_store_that_fails_leaves_what_was_there(
    path: str, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """If any request for the metadata fails, the commit stays, readers see one version or the other, and the
    next commit repairs the metadata."""
    table = made(path, NUMBERS)
    count = 0
    original = iceberg.DocumentWriter

    class Failing(original):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.store = Store(self.store)

    class Store:
        def __init__(self, store: Any) -> None:
            self.store = store

        def __getattr__(self, name: str) -> Any:
            def method(*arguments: Any, **options: Any) -> Any:
                nonlocal count
                count += 1
                if count == call + 1:
                    raise OSError("gone")
                return getattr(self.store, name)(*arguments, **options)

            return method

    with monkeypatch.context() as broken:
        broken.setattr(iceberg, "DocumentWriter", Failing)
        read = iceberg_document._core.read_commit  # compiled: it takes the store itself
        broken.setattr(
            iceberg_document._core,
            "read_commit",
            lambda store, *rest: read(getattr(store, "store", store), *rest),
        )
        deltaic.write(path, NUMBERS.slice(0, 2), mode="append")
    assert opened(path).properties["delta-version"] in ("0", "1")
    opened(path).scan().to_arrow()
    deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
    check_folder(check(table))


def test_concurrent_writers(path: str) -> None:
    made(path, NUMBERS.slice(0, 0))
    failures: list[BaseException] = []

    def append() -> None:
        try:
            for _ in range(8):
                deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    table = DeltaTable(path)
    assert table.version == 32
    assert check(table).scan().count() == 32


def test_the_hint_never_goes_back(path: str) -> None:
    table = made(path, NUMBERS)
    for _ in range(3):
        deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
    store = table._snapshot.store
    iceberg._point(store, 1)
    assert (Path(path) / "metadata/version-hint.text").read_text() == "3"
    store.put(iceberg.HINT, b"0")  # a writer of version 1 comes last
    iceberg._point(store, 1)
    assert (Path(path) / "metadata/version-hint.text").read_text() == "3"


@pytest.mark.parametrize("name", ["other", "moved far away"])
def test_a_copy_of_the_folder_has_its_own_files(tmp_path: Path, name: str) -> None:
    """The metadata of a copy names the original's files until its next commit, never after it."""
    first, copy = str(tmp_path / "first"), str(tmp_path / name)
    table = made(first, NUMBERS)
    deltaic.write(first, NUMBERS, mode="append")
    shutil.copytree(first, copy)
    deltaic.write(copy, NUMBERS.slice(0, 1), mode="append")
    found = check(DeltaTable(copy))
    assert all(task.file.file_path.startswith(f"{copy}/") for task in found.scan().plan_files())
    assert [each.summary["delta-version"] for each in found.snapshots()] == ["2"]
    deltaic.write(copy, NUMBERS.slice(0, 1), mode="append")
    assert len(check(DeltaTable(copy)).snapshots()) == 2
    check(table)


def test_a_lower_version_of_the_format_begins_anew(path: str) -> None:
    deltaic.write(path, NUMBERS, properties={**UNIFORM_V3, "delta.enableDeletionVectors": "true"})
    table = DeltaTable(path)
    table.delete("id = 1")
    table.alter.set_properties(
        {"delta.enableIcebergCompatV3": "false", "delta.enableDeletionVectors": "false"}
    )
    table.alter.upgrade_uniform(2)
    found = check(table)
    assert found.format_version == 2
    for snapshot in found.snapshots():
        found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def test_another_table_at_the_same_place(path: str) -> None:
    made(path, NUMBERS)
    deltaic.write(path, NUMBERS, mode="append")
    shutil.rmtree(Path(path) / "_delta_log")
    table = made(path, NUMBERS.slice(0, 2))
    assert check(table).scan().count() == 2


def test_in_the_background(path: str) -> None:
    from deltaic.log import background

    with deltaic.configure(background_checkpoints=True):
        table = made(path, NUMBERS)
        for _ in range(5):
            deltaic.write(path, NUMBERS.slice(0, 1), mode="append")
        assert background.wait(60)
    check(table)


def test_vacuum_leaves_the_metadata(path: str) -> None:
    table = made(path, NUMBERS)
    deltaic.write(path, NUMBERS, mode="overwrite")
    table.refresh()
    table.vacuum(retention=timedelta(0), dry_run=False, enforce_retention=False)
    check(table)


def test_statistics_again(path: str) -> None:
    """Files that are added again, as `optimize.statistics` does it, are there once."""
    table = made(path, NUMBERS)
    table.optimize.statistics(["name"])
    check(table)


def test_clone(path: str, tmp_path: Path) -> None:
    table = made(path, NUMBERS)
    table.clone(str(tmp_path / "copy"), shallow=True)
    target = DeltaTable(str(tmp_path / "copy"), storage_options={"allowed_roots": str(tmp_path)})
    assert ordered(opened(target.location).scan().to_arrow()) == ordered(NUMBERS)


# --- rules


@pytest.mark.parametrize("version", [1, 2, 3])
def test_new_tables_are_completed(path: str, version: int) -> None:
    rows = NUMBERS
    deltaic.write(path, rows, properties={f"delta.enableIcebergCompatV{version}": "true"})
    table = DeltaTable(path)
    assert table.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert f"icebergCompatV{version}" in table.protocol.writer_features
    assert "columnMapping" in table.protocol.writer_features
    assert ("rowTracking" in table.protocol.writer_features) == (version == 3)
    assert not (Path(path) / "metadata").exists()


@pytest.mark.parametrize("former", [None, UNIFORM])
def test_a_table_is_replaced(path: str, former: dict[str, str] | None) -> None:
    """Deletion vectors, on by default, give way to what excludes them, as they do in a new table."""
    deltaic.write(path, NUMBERS, properties=former)
    table = DeltaTable.create(path, "other int", mode="overwrite", properties=UNIFORM)
    check(table)
    deltaic.write(path, pa.table({"other": pa.array([1], pa.int32())}), mode="append")
    check(table)
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        DeltaTable.create(
            path, "other int", mode="overwrite", properties={**UNIFORM, "delta.enableDeletionVectors": "true"}
        )


def test_a_replaced_table_is_the_same_for_iceberg(path: str) -> None:
    """REPLACE TABLE gives the Delta table a new id. The Iceberg table keeps its uuid, and the metadata of
    former versions stays, which readers may have opened."""
    former = check(made(path, NUMBERS))
    table = DeltaTable.create(path, "other int", mode="overwrite", properties=UNIFORM)
    replaced = check(table)
    assert replaced.metadata.table_uuid == former.metadata.table_uuid
    assert [Path(entry.metadata_file).exists() for entry in replaced.metadata.metadata_log] == [True]
    assert ordered(former.scan().to_arrow()) == ordered(NUMBERS)
    table.restore(0)
    assert check(table).metadata.table_uuid == former.metadata.table_uuid


@pytest.mark.parametrize(
    ("schema", "properties", "message"),
    [
        (
            "a int",
            {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "none"},
            "needs column mapping",
        ),
        (
            "a int",
            {"delta.enableIcebergCompatV1": "true", "delta.enableIcebergCompatV2": "true"},
            "exclude each other",
        ),
        (
            "a int",
            {"delta.enableIcebergCompatV2": "true", "delta.enableDeletionVectors": "true"},
            "exclude each other",
        ),
        (
            "a int",
            {"delta.enableIcebergCompatV3": "true", "delta.enableRowTracking": "false"},
            "needs row tracking",
        ),
        (
            "a int",
            {"delta.universalFormat.enabledFormats": "iceberg"},
            "needs a version of Iceberg compatibility",
        ),
        ("a int", {"delta.universalFormat.enabledFormats": "hudi"}, "not a format"),
        ("a array<int>", {"delta.enableIcebergCompatV1": "true"}, "does not allow the column's type"),
        (
            "s struct<m: map<int, int>>",
            {"delta.enableIcebergCompatV1": "true"},
            "does not allow the column's type",
        ),
        ("a variant", {"delta.enableIcebergCompatV2": "true"}, "does not allow the column's type"),
        ("a int, b void", {"delta.enableIcebergCompatV2": "true"}, "does not allow the column's type"),
    ],
)
def test_definitions_that_are_refused(
    path: str, schema: str, properties: dict[str, str], message: str
) -> None:
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=message):
        deltaic.DeltaTable.create(path, schema, properties=properties)
    assert not Path(path).exists() or not list(Path(path).rglob("*.json"))


def test_existing_tables(path: str) -> None:
    deltaic.write(path, NUMBERS, properties={"delta.enableDeletionVectors": "false"})
    table = DeltaTable(path)
    with pytest.raises(InvalidArgumentError, match="needs column mapping"):
        table.alter.set_properties(UNIFORM)
    table.alter.set_properties({**UNIFORM, "delta.columnMapping.mode": "name"})
    check(table)
    deltaic.write(path, NUMBERS, mode="append")
    check(table)
    table.alter.rename_column("name", "title")
    check(table)
    for change, message in [
        ({"delta.enableDeletionVectors": "true"}, "exclude each other"),
        ({"delta.enableIcebergCompatV1": "true"}, "exclude each other"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            table.alter.set_properties(change)
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError)):
        table.alter.drop_feature("columnMapping")
    table.alter.set_properties({"delta.enableIcebergCompatV2": "false"})
    assert "delta.universalFormat.enabledFormats" not in table.metadata.configuration


def test_columns_that_are_refused_later(path: str) -> None:
    deltaic.write(
        path, NUMBERS, properties={"delta.enableIcebergCompatV1": "true", "delta.enableTypeWidening": "true"}
    )
    table = DeltaTable(path)
    with pytest.raises(UnsupportedFeatureError, match="does not allow the column's type"):
        table.alter.add_columns("list array<int>")
    with pytest.raises(UnsupportedFeatureError, match="does not allow the column's type"):
        deltaic.write(
            path, NUMBERS.append_column("list", pa.array([[1]] * 10)), mode="append", schema_mode="merge"
        )
    table.alter.add_columns("day date, small int")
    with pytest.raises(UnsupportedFeatureError, match="widened in a way that Iceberg does not have"):
        table.alter.change_column("day", type="timestamp_ntz")
    with pytest.raises(UnsupportedFeatureError, match="widened in a way that Iceberg does not have"):
        table.alter.change_column("small", type="double")
    table.alter.change_column("small", type="long")


def test_partitioning_stays(path: str) -> None:
    table = made(path, NUMBERS, partition_by=["name"])
    with pytest.raises(InvalidArgumentError, match="keeps the names of its partition columns"):
        deltaic.write(
            path, NUMBERS, mode="overwrite", schema_mode="overwrite", partition_by=["id"], properties=UNIFORM
        )
    check(table)


def test_upgrade(path: str) -> None:
    nested = NUMBERS.append_column("list", pa.array([[each, None] for each in range(10)]))
    deltaic.write(
        path,
        nested,
        partition_by=["name"],
        properties={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )
    table = DeltaTable(path)
    table.delete("id = 4")
    table.alter.set_properties({"delta.enableDeletionVectors": "false"})
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"REORG TABLE \.\.\. APPLY \(UPGRADE UNIFORM \(ICEBERG_COMPAT_VERSION = 2\)\)",
    ):
        table.alter.set_properties(UNIFORM)
    table.alter.set_properties({"delta.enableDeletionVectors": "true"})
    before = ordered(table.scan().to_arrow())
    answer = deltaic.sql(
        f"REORG TABLE delta.`{path}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
    ).to_arrow()
    assert answer["metrics"][0]["numFilesAdded"].as_py() > 0
    check(table)
    assert ordered(table.scan().to_arrow()) == before
    version = table.version
    table.alter.upgrade_uniform(2)
    assert table.version == version
    with pytest.raises(UnsupportedFeatureError, match="must be written again"):
        table.alter.set_properties(
            {
                "delta.enableIcebergCompatV2": "false",
                "delta.enableIcebergCompatV3": "true",
                "delta.enableRowTracking": "true",
            }
        )
    table.alter.upgrade_uniform(3)
    assert check(table).format_version == 3


def test_files_have_ids_for_all_their_parts(path: str) -> None:
    import pyarrow.parquet as pq

    nested = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "deep": pa.array([[("a", [1])]], pa.map_(pa.string(), pa.list_(pa.int32()))),
        }
    )
    deltaic.write(path, nested, properties=UNIFORM_V3)
    table = DeltaTable(path)
    table.update({"id": "2"})
    (file,) = table.files().to_arrow()["path"].to_pylist()
    schema = str(pq.ParquetFile(Path(path) / file).schema)
    ids = {int(each) for each in re.findall(r"field_id=([0-9]+)", schema)} - {-1}
    assert {2147483540, 2147483539} <= ids
    assert len(ids) == 7, schema  # id, deep, its key, value and the value's element, both of row tracking
    check(table)


def test_a_foreign_folder_is_left_alone(path: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = Path(path) / "metadata"
    folder.mkdir(parents=True)
    (folder / "v3.metadata.json").write_text('{"format-version": 2}')
    with caplog.at_level(logging.WARNING, "deltaic.log"):
        made(path, NUMBERS)
    assert "another program wrote Iceberg metadata" in caplog.text
    assert (folder / "v3.metadata.json").read_text() == '{"format-version": 2}'


@pytest.mark.parametrize("size", [0, 100])
def test_metadata_that_was_lost_with_the_power_is_written_again(path: str, size: int) -> None:
    table = made(path, NUMBERS)
    deltaic.write(path, NUMBERS, mode="append")
    newest(path).write_bytes(newest(path).read_bytes()[:size])
    iceberg._TABLES.reset()
    deltaic.write(path, NUMBERS, mode="append")
    assert [each.summary["delta-version"] for each in check(table).snapshots()] == ["0", "2"]


def test_commits_without_statistics_are_refused(path: str) -> None:
    table = made(path, NUMBERS)
    from deltaic.transaction.transaction import Transaction

    snapshot = table._snapshot
    adds = snapshot.files().adds
    adds = adds.set_column(
        adds.schema.get_field_index("stats"), "stats", pa.nulls(adds.num_rows, pa.string())
    )
    transaction = Transaction(snapshot, "WRITE", {})
    transaction.add(adds)
    with pytest.raises(UnsupportedFeatureError, match="number of rows in the statistics"):
        transaction.commit()


def test_a_vector_that_another_writer_made_is_never_left_out(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A writer that breaks the rules of version 2: readers of Iceberg keep an older version, and never see a
    deleted row."""
    table = made(path, NUMBERS)
    log = Path(path) / "_delta_log"
    (add,) = [
        json.loads(line)["add"]
        for line in (log / f"{0:020}.json").read_text().splitlines()
        if '"add"' in line
    ]
    rows = deltaic._core.DeletionVector.from_rows([1])
    vector = {
        "storageType": "i",
        "pathOrInlineDv": deltaic._core.z85_encode(rows.to_bytes()),
        "sizeInBytes": len(rows.to_bytes()),
        "cardinality": 1,
    }
    remove = {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 0}}
    marked = {"add": {**add, "deletionVector": vector}}
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, [remove, marked])))
    table.refresh()
    with caplog.at_level(logging.WARNING, "deltaic.log"):
        deltaic.write(path, NUMBERS, mode="append")
    assert "has a deletion vector, which this version of Iceberg compatibility does not allow" in caplog.text
    assert opened(path).properties["delta-version"] == "0"
