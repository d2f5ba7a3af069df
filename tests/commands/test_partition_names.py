"""Partition columns whose names are more than one word, on the embedded engine: each command that uses their
names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable

NAMES = ("event-date", "a.b", "1st", "a:b", "p/q", "tick`ed")


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"id": numbers, "v-1": numbers, **{name: [i % 2 for i in numbers] for name in NAMES}})


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_every_command(tmp_path: Path, mapping: str) -> None:
    table = deltaic.write(
        tmp_path / "t", rows(0, 8), partition_by=NAMES, properties={"delta.columnMapping.mode": mapping}
    )
    assert table.metadata.partition_columns == NAMES
    deltaic.write(table, rows(8, 10), mode="append", partition_by=NAMES)
    assert sorted(row["num_files"] for row in table.partitions().to_arrow().to_pylist()) == [2, 2]
    table.update(
        {"`a.b`": "7", "v-1": "`v-1` + 1"}, "`event-date` = 0 and `a.b` = 0 and `tick``ed` = 0 and id = 0"
    )
    table.merge(rows(1, 2), "t.`p/q` = s.`p/q` and t.`a:b` = s.`a:b` and t.id = s.id").when_matched_update(
        {"`1st`": "8"}
    ).execute()
    table.delete("`1st` = 1 and id = 3")
    deltaic.write(table, rows(4, 5), mode="overwrite", where="`a.b` = 0 and id between 4 and 6")
    deltaic.sql("DELETE FROM t WHERE `p/q` = 1 AND id = 5", tables={"t": table})
    read = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["a.b"], row["1st"], row["v-1"]) for row in read) == [
        (0, 7, 0, 1), (1, 1, 8, 1), (2, 0, 0, 2), (4, 0, 0, 4), (7, 1, 1, 7), (8, 0, 0, 8), (9, 1, 1, 9),
    ]  # fmt: skip
    table.optimize.z_order(["v-1", "id"])
    table.optimize.compact("`a:b` = 1")
    deltaic.write(table, rows(21, 22), mode="overwrite_partitions")
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, 8, 21]
    assert table.scan(where="`event-date` = 1 and `1st` = 1").count() == 1


def test_statements_that_make_tables(tmp_path: Path) -> None:
    names = ", ".join("`" + name.replace("`", "``") + "`" for name in NAMES)
    columns = ", ".join("`" + name.replace("`", "``") + "` int" for name in NAMES)
    deltaic.sql(
        f"CREATE TABLE delta.`{tmp_path / 'a'}` (id bigint, {columns}) USING delta PARTITIONED BY ({names})"
    )
    deltaic.sql(
        f"CREATE TABLE delta.`{tmp_path / 'b'}` PARTITIONED BY ({names}) AS SELECT * FROM t",
        tables={"t": rows(0, 2)},
    )
    for name in ("a", "b"):
        assert DeltaTable(tmp_path / name).metadata.partition_columns == NAMES
