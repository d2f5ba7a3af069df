"""Row tracking: each row keeps its id and the version that last changed it, whichever command moves it to
another file.

Source: PROTOCOL.md, "Row Tracking".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands_model import Make

import deltaic
from deltaic import CommitOptions, DeltaTable, _core
from deltaic.errors import (
    ConcurrentAppendException,
    InvalidArgumentError,
    MetadataChangedException,
    ProtocolError,
    SchemaMismatchError,
)
from deltaic.protocol import row_tracking

ON = {"delta.enableRowTracking": "true"}
Rows = dict[Any, tuple[int, int]]


def rows_of(table: DeltaTable, key: str = "id") -> Rows:
    """key -> (row id, row commit version), as a reader must rebuild them."""
    snapshot = table._snapshot
    names = row_tracking.hidden_columns(table.metadata) or ("no-id", "no-version")
    found = _core.read(
        snapshot.store, snapshot.table_schema, snapshot.files().adds, [key], row_tracking=names
    ).to_table()
    result = dict(
        zip(
            found[key].to_pylist(),
            zip(found[names[0]].to_pylist(), found[names[1]].to_pylist(), strict=True),
            strict=True,
        )
    )
    assert len(result) == found.num_rows
    assert len({row_id for row_id, _ in result.values()}) == found.num_rows, "a row id twice"
    return result


def mark_of(table: DeltaTable) -> int:
    return row_tracking.high_water_mark(table._snapshot.domains.get("delta.rowTracking"))


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "v": pa.array([0] * len(numbers), pa.int64())})


def actions(table: DeltaTable, version: int, name: str) -> list[dict[str, Any]]:
    text = (Path(table.location) / "_delta_log" / f"{version:020}.json").read_text()
    return [action[name] for action in map(json.loads, text.splitlines()) if name in action]


def test_new_files_get_ids_and_the_mark_follows(make: Make) -> None:
    table = make(ids(*range(6)), files=2, properties=ON)
    assert rows_of(table) == {n: (n, 0 if n < 3 else 1) for n in range(6)}
    assert mark_of(table) == 5
    assert {"rowTracking", "domainMetadata"} <= set(table.protocol.writer_features or ())
    assert actions(table, 1, "domainMetadata") == [
        {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":5}', "removed": False}
    ]
    assert actions(table, 1, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}


def test_update_keeps_ids_and_renews_the_version_of_changed_rows(make: Make) -> None:
    table = make(ids(*range(6)), files=2, properties=ON)
    before = rows_of(table)
    table.update({"v": "7"}, "id in (1, 4)")
    after = rows_of(table)
    assert {key: row_id for key, (row_id, _) in after.items()} == {
        key: row_id for key, (row_id, _) in before.items()
    }
    assert {key: version for key, (_, version) in after.items()} == {0: 0, 1: 2, 2: 0, 3: 1, 4: 2, 5: 1}
    assert mark_of(table) >= max(row_id for row_id, _ in after.values())
    assert actions(table, 2, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}


def test_delete_keeps_the_other_rows_as_they_were(make: Make) -> None:
    table = make(ids(*range(6)), files=2, properties=ON)
    before = rows_of(table)
    table.delete("id in (0, 5)")
    assert rows_of(table) == {key: value for key, value in before.items() if key not in (0, 5)}


def test_merge_keeps_ids_of_updated_rows_and_gives_new_ones(make: Make) -> None:
    table = make(ids(*range(6)), files=2, properties=ON)
    before = rows_of(table)
    (
        table.merge(pa.table({"id": [1, 2, 100], "v": [9, 9, 9]}), "t.id = s.id")
        .when_matched_delete("s.id = 2")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"v": "-1"}, "t.id = 5")
        .execute()
    )
    after = rows_of(table)
    assert set(after) == {0, 1, 3, 4, 5, 100}
    assert {key: after[key][0] for key in after if key != 100} == {
        key: before[key][0] for key in after if key != 100
    }
    assert {key: after[key][1] for key in after} == {0: 0, 1: 2, 3: 1, 4: 1, 5: 2, 100: 2}
    assert after[100][0] > 5
    assert mark_of(table) >= after[100][0]


@pytest.mark.parametrize("how", ["compact", "z_order", "purge"])
def test_optimize_keeps_everything(make: Make, how: str) -> None:
    table = make(ids(*range(40)), files=4, properties=ON)
    table.update({"v": "id % 3"}, "id % 4 = 1")
    table.delete("id % 10 = 7")
    before = rows_of(table)
    if how == "z_order":
        table.optimize.z_order(["id", "v"])
    else:
        getattr(table.optimize, how)()
    assert rows_of(table) == before
    table.update({"v": "99"}, "id = 3")
    table.optimize.compact()
    after = rows_of(table)
    assert {key: value for key, value in after.items() if key != 3} == {
        key: value for key, value in before.items() if key != 3
    }
    assert after[3][0] == before[3][0]
    assert table.scan().to_arrow().column_names == ["id", "v"]


def test_overwriting_a_part_keeps_the_ids_of_the_rest(make: Make) -> None:
    table = make(ids(*range(6)), files=1, properties=ON)
    before = rows_of(table)
    deltaic.write(table, ids(2, 3), mode="overwrite", where="id in (2, 3)")
    after = rows_of(table)
    assert {key: after[key] for key in (0, 1, 4, 5)} == {key: before[key] for key in (0, 1, 4, 5)}
    assert min(after[2][0], after[3][0]) > 5


@pytest.mark.parametrize("mode", ["name", "id"])
def test_under_column_mapping(make: Make, mode: str) -> None:
    table = make(ids(*range(6)), files=2, properties={**ON, "delta.columnMapping.mode": mode})
    before = rows_of(table)
    table.update({"v": "1"}, "id = 3")
    table.alter.rename_column("v", "w")
    table.delete("id = 0")
    table.optimize.compact()
    after = rows_of(table)
    assert {key: row_id for key, (row_id, _) in after.items()} == {key: before[key][0] for key in range(1, 6)}
    assert {key: version for key, (_, version) in after.items()} == {1: 0, 2: 0, 3: 2, 4: 1, 5: 1}


def test_on_a_partitioned_table(make: Make) -> None:
    data = pa.table({"id": list(range(8)), "v": [0] * 8, "p": ["a", "b"] * 4})
    table = make(data, files=2, properties=ON, partition_by="p")
    before = rows_of(table)
    table.update({"p": "'b'"}, "id = 0")
    table.optimize.compact()
    after = rows_of(table)
    assert {key: row_id for key, (row_id, _) in after.items()} == {
        key: row_id for key, (row_id, _) in before.items()
    }
    assert (before[0][1], after[0][1]) == (0, 2)


def test_hidden_columns_have_no_statistics_and_are_nobodys_columns(make: Make) -> None:
    table = make(ids(1, 2, 3), properties=ON)
    table.update({"v": "1"}, "id = 1")
    names = row_tracking.hidden_columns(table.metadata)
    assert names is not None
    hidden = set(names)
    written = [Path(table.location) / name for name in table.files().to_arrow()["path"].to_pylist()]
    assert any(hidden <= set(pq.read_schema(path).names) for path in written)
    for action in actions(table, table.version, "add"):
        assert not hidden & set(json.loads(action["stats"]).get("nullCount", {}))
    assert not hidden & set(table.schema.names)


def test_no_column_has_the_name_of_a_hidden_column(make: Make) -> None:
    table = make(ids(1, 2), properties=ON)
    for name in row_tracking.hidden_columns(table.metadata) or ():
        with pytest.raises(SchemaMismatchError, match=f"column {name}.*name of a hidden column"):
            table.alter.add_columns(f"`{name}` bigint")
        with pytest.raises(SchemaMismatchError, match="name of a hidden column"):
            deltaic.write(table, pa.table({name.upper(): [7]}), mode="append", schema_mode="merge")
    assert table.schema.names == ["id", "v"]


def test_turning_it_on_gives_ids_to_what_is_there(make: Make) -> None:
    table = make(ids(*range(6)), files=3)
    table.delete("id = 1")
    table.alter.set_properties(ON)
    found = rows_of(table)
    assert set(found) == {0, 2, 3, 4, 5}
    assert {version for _, version in found.values()} == {table.version}
    assert mark_of(table) >= max(row_id for row_id, _ in found.values())
    assert all(not action["dataChange"] for action in actions(table, table.version, "add"))
    table.update({"v": "5"}, "id = 2")
    assert rows_of(table)[2] == (found[2][0], table.version)


def test_turning_it_on_counts_the_rows_of_files_that_do_not_say(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", "id bigint, v bigint")
    pq.write_table(ids(1, 2, 3), tmp_path / "t" / "f.parquet")
    table.add_files(
        [deltaic.AddFile("f.parquet", size=(tmp_path / "t" / "f.parquet").stat().st_size, stats="{}")]
    )
    table.alter.set_properties(ON)
    assert sorted(row_id for row_id, _ in rows_of(table).values()) == [0, 1, 2]
    pq.write_table(ids(4), tmp_path / "t" / "g.parquet")
    with pytest.raises(InvalidArgumentError, match="number of rows"):
        table.add_files(
            [deltaic.AddFile("g.parquet", size=(tmp_path / "t" / "g.parquet").stat().st_size, stats="{}")]
        )


def test_no_file_comes_in_while_it_is_turned_on(make: Make) -> None:
    table = make(ids(1))
    stale = DeltaTable(table.location)
    deltaic.write(table, ids(2), mode="append")
    with pytest.raises(ConcurrentAppendException):
        stale.alter.set_properties(ON)
    writer = DeltaTable(table.location)
    table.alter.set_properties(ON)
    with pytest.raises(MetadataChangedException):
        deltaic.write(writer, ids(3), mode="append")
    assert set(rows_of(table)) == {1, 2}


def test_concurrent_appends_get_ids_of_their_own(make: Make) -> None:
    table = make(ids(0), properties=ON)
    stale = DeltaTable(table.location)
    deltaic.write(table, ids(1, 2), mode="append")
    deltaic.write(stale, ids(3), mode="append")
    found = rows_of(stale)
    assert found == {0: (0, 0), 1: (1, 1), 2: (2, 1), 3: (3, 2)}
    assert mark_of(stale) == 3


def test_restore_brings_ids_back_and_never_lowers_the_mark(make: Make) -> None:
    table = make(ids(0, 1), properties=ON)
    first = rows_of(table)
    deltaic.write(table, ids(5, 6, 7), mode="append")
    mark = mark_of(table)
    table.restore(0)
    assert rows_of(table) == first
    assert mark_of(table) == mark
    deltaic.write(table, ids(9), mode="append")
    assert rows_of(table)[9][0] > mark


def test_restore_to_before_it_was_on_gives_ids_all_the_same(make: Make) -> None:
    table = make(ids(0, 1), files=2)
    table.alter.set_properties(ON)
    names = row_tracking.hidden_columns(table.metadata)
    mark = mark_of(table)
    table.delete()
    table.restore(1)
    assert not row_tracking.is_enabled(table.protocol, table.metadata)
    assert row_tracking.hidden_columns(table.metadata) == names
    assert sorted(row_id for row_id, _ in rows_of(table).values()) == [mark + 1, mark + 2]


def test_listed_but_not_on_files_get_ids_and_rewrites_say_that_they_keep_none(
    make: Make, vectors: bool
) -> None:
    table = make(ids(0, 1, 2))
    table.alter.add_features("rowTracking")
    deltaic.write(table, ids(5), mode="append")
    (add,) = actions(table, table.version, "add")
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (0, table.version)
    table.delete("id = 1")
    assert all("baseRowId" in action for action in actions(table, table.version, "add"))
    assert actions(table, table.version, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "false"}


def test_suspended_nothing_is_given(make: Make) -> None:
    table = make(
        ids(0), properties={"delta.feature.rowTracking": "supported", "delta.rowTrackingSuspended": "true"}
    )
    assert "baseRowId" not in actions(table, 0, "add")[0]
    with pytest.raises(InvalidArgumentError, match="suspended"):
        table.alter.set_properties(ON)


def test_a_table_that_does_not_name_the_hidden_columns_refuses_to_copy_rows(make: Make) -> None:
    table = make(ids(0, 1), properties=ON)
    log = Path(table.location) / "_delta_log" / f"{0:020}.json"
    kept = log.read_text()
    for key in (row_tracking.ROW_ID_COLUMN, row_tracking.VERSION_COLUMN):
        kept = kept.replace(key, key.replace("delta.", "x."))
    log.write_text(kept)
    log.with_suffix(".crc").unlink()
    broken = DeltaTable(table.location)
    with pytest.raises(ProtocolError, match="has no name for the column of row ids"):
        broken.update({"v": "1"}, "id = 0")


def test_users_tags_stay(make: Make) -> None:
    table = make(ids(0), properties=ON)
    deltaic.write(table, ids(1), mode="append", commit=CommitOptions(info={"tags": {"mine": "1"}}))
    assert actions(table, 1, "commitInfo")[0]["tags"] == {"mine": "1", "delta.rowTracking.preserved": "true"}


def test_domains_of_both_spellings_are_read() -> None:
    assert row_tracking.high_water_mark('{"rowIdHighWaterMark":7}') == 7
    assert row_tracking.high_water_mark('{"highWaterMark":8}') == 8
    assert row_tracking.high_water_mark(None) == -1
    for bad in ("", "[]", "{}", '{"rowIdHighWaterMark":"7"}', '{"rowIdHighWaterMark":true}'):
        with pytest.raises(ProtocolError, match=r"delta\.rowTracking"):
            row_tracking.high_water_mark(bad)
