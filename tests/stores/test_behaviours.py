"""The usual work with tables, in every kind of store."""

from __future__ import annotations

import pickle
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import DeltaError, TableAlreadyExistsError, TableNotFoundError
from deltaic.transaction import several
from store_servers import Place

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def test_a_table_is_made_changed_and_read(place: Place) -> None:
    path, options = place.at(), place.options
    assert not DeltaTable.exists(path, storage_options=options)
    with pytest.raises(TableNotFoundError):
        DeltaTable(path, storage_options=options)
    table = deltaic.write(path, ROWS, storage_options=options)
    assert DeltaTable.exists(path, storage_options=options)
    with pytest.raises(TableAlreadyExistsError):
        deltaic.write(path, ROWS, storage_options=options)
    table = deltaic.write(path, ROWS.slice(0, 2), mode="append", storage_options=options)
    assert (table.version, ids(table)) == (1, sorted([*range(10), 0, 1]))
    table.delete("id < 2")
    table.update({"name": "'changed'"}, where="id = 5")
    source = pa.table({"id": pa.array([5, 100], pa.int64()), "name": ["merged", "new"]})
    table.merge(source, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    opened = DeltaTable(path, storage_options=options)
    assert ids(opened) == [*range(2, 10), 100]
    rows = {row["id"]: row["name"] for row in opened.scan().to_arrow().to_pylist()}
    assert (rows[5], rows[100], rows[3]) == ("merged", "new", "n3")
    assert opened.scan(where="id = 100").to_arrow()["name"].to_pylist() == ["new"]
    assert ids(DeltaTable(path, version=0, storage_options=options)) == list(range(10))
    assert [entry["version"] for entry in opened.history()] == [4, 3, 2, 1, 0]
    assert opened.detail().location == opened.location


def test_maintenance(place: Place) -> None:
    path, options = place.at(), place.options
    for start in range(4):
        table = deltaic.write(path, ROWS.slice(start * 2, 2), mode="append", storage_options=options)
    table.delete("id = 1")
    table.optimize.compact()
    table.restore(2)
    assert ids(table) == list(range(6))
    table.restore(5)
    table.checkpoint()
    gone = table.vacuum(retention=timedelta(0), enforce_retention=False).to_arrow()["path"].to_pylist()
    opened = DeltaTable(path, storage_options=options)
    assert ids(opened) == [0, 2, 3, 4, 5, 6, 7]
    [file] = opened.files().to_arrow()["path"].to_pylist()
    left = opened._snapshot.store.list_from("", recursive=True)["path"].to_pylist()
    assert file in left
    assert not set(gone) & set(left)
    # Stores of objects keep whole seconds: files of the running second are not older than no retention at
    # all.
    assert gone or place.options


def test_vacuum_with_an_inventory(place: Place) -> None:
    path, options = place.at("a b/t"), place.options
    table = deltaic.write(path, ROWS, storage_options=options)
    deltaic.write(table, ROWS, mode="overwrite")
    names = table._snapshot.store.list_from("", recursive=True)["path"].to_pylist()
    spelled = path.replace("s3://", "s3a://")
    columns = {
        "path": [f"{spelled}/{name}" for name in names],
        "length": pa.array([1] * len(names), pa.int64()),
        "isDir": [False] * len(names),
        "modificationTime": pa.array([1_600_000_000_000] * len(names), pa.int64()),
    }
    time.sleep(0.01)
    gone = (
        table.vacuum(inventory=pa.table(columns), retention=timedelta(0), enforce_retention=False)
        .to_arrow()["path"]
        .to_pylist()
    )
    assert len(gone) == 1
    left = table._snapshot.store.list_from("", recursive=True)["path"].to_pylist()
    assert set(names) - set(left) == set(gone)
    assert ids(DeltaTable(path, storage_options=options)) == list(range(10))


def test_partitions_with_any_text(place: Place) -> None:
    texts = ["a b", "x=y/z", "100%", "ü+é", "#?&", None]
    rows = pa.table({"part": texts, "id": list(range(len(texts)))})
    path, options = place.at("odd name/täble"), place.options
    deltaic.write(path, rows, partition_by="part", storage_options=options)
    table = DeltaTable(path, storage_options=options)
    assert {row["part"]: row["id"] for row in table.scan().to_arrow().to_pylist()} == {
        text: at for at, text in enumerate(texts)
    }
    assert table.scan(where="part = '100%'").to_arrow()["id"].to_pylist() == [2]
    table.delete("part = 'x=y/z'")
    assert ids(table) == [0, 2, 3, 4, 5]


def test_sql_and_pickles(place: Place) -> None:
    path, options = place.at(), place.options
    deltaic.write(path, ROWS, storage_options=options)
    found = deltaic.sql(
        f"SELECT count(*) AS n, max(id) AS top FROM delta.`{path}`", storage_options=options
    ).to_arrow()
    assert found.to_pylist() == [{"n": 10, "top": 9}]
    deltaic.sql(f"DELETE FROM delta.`{path}` WHERE id >= 8", storage_options=options)
    table = DeltaTable(path, storage_options=options)
    assert ids(table) == list(range(8))
    if not place.options:
        assert ids(pickle.loads(pickle.dumps(table))) == list(range(8))


def test_many_versions_are_read_from_a_checkpoint(place: Place) -> None:
    path, options = place.at(), place.options
    for number in range(12):
        deltaic.write(
            path,
            ROWS.slice(number % 10, 1),
            mode="append",
            properties={"delta.checkpointInterval": 5},
            storage_options=options,
        )
    table = DeltaTable(path, storage_options=options)
    assert (table.version, table.scan().count()) == (11, 12)
    listing = [name.rsplit("/", 1)[-1] for name, _, _ in table._snapshot.store.entries("_delta_log")]
    assert "_last_checkpoint" in listing
    assert "00000000000000000010.checkpoint.parquet" in listing
    table.refresh()
    assert ids(table.at(4)) == [0, 1, 2, 3, 4]


def test_a_table_without_its_log_is_none(place: Place) -> None:
    with pytest.raises(DeltaError):
        DeltaTable(place.at("nothing"), storage_options=place.options)
    assert not DeltaTable.exists(place.at("nothing"), storage_options=place.options)


def test_a_file_of_several_parts(place: Place) -> None:
    rows = pa.table(
        {
            "id": pa.array(range(3_000_000), pa.int64()),
            "half": pa.array([at * 7919 % 1_000_003 for at in range(3_000_000)]),
        }
    )
    table = deltaic.write(
        place.at(),
        rows,
        storage_options=place.options,
        parquet=deltaic.ParquetOptions(compression="uncompressed"),
    )
    assert table.files().to_arrow()["size"].to_pylist()[0] > 8 << 20
    again = DeltaTable(place.at(), storage_options=place.options)
    assert again.scan(columns=["half"]).to_arrow()["half"].to_pylist() == rows["half"].to_pylist()


def test_a_transaction_over_tables_of_two_stores(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one whose writer was killed after the decision: others finish it, where they may go to the table
    that has the record."""
    here, there, more = str(tmp_path / "here"), place.at("there"), place.at("more")
    options = {here: {}, there: place.options, more: place.options}
    tables = [deltaic.write(path, ROWS, storage_options=each) for path, each in options.items()]
    with deltaic.transaction(*tables) as t:
        t.delete(tables[0], "id = 1")
        t.update(tables[1], {"name": "'new'"}, "id = 2")
        t.write(tables[2], ROWS.slice(0, 1))
    assert [table.scan().count() for table in tables] == [9, 10, 11]
    with monkeypatch.context() as patch:
        patch.setattr(
            several.SeveralTables, "_roll_forward", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        # The end of the block raises.
        with pytest.raises(KeyboardInterrupt), deltaic.transaction(*tables[1:]) as t:  # noqa: PT012
            t.delete(tables[1], "id = 2")
            t.delete(tables[2], "id = 0")
    found = [DeltaTable(path, storage_options=options[path]).scan().count() for path in (there, more)]
    assert found == [9, 9]
