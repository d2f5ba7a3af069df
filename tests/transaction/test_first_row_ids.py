"""First row ids of the files that a commit adds: they depend only on the numbers of rows in the
statistics."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import deltaic
from deltaic import _core
from deltaic.log.snapshot import Snapshot
from deltaic.transaction.row_ids import assigned

BY_NAME = (
    '{"minValues":{"numRecords":7},"maxValues":{"numRecords":900},"nullCount":{"numRecords":0},'
    '"numRecords":3}'
)


def test_a_column_may_be_called_like_the_count(tmp_path: Path) -> None:
    deltaic.write(tmp_path, pa.table({"numRecords": [7, 8, 900]}))
    adds = Snapshot.load(_core.Store(str(tmp_path))).files().adds
    place = adds.schema.get_field_index("stats")
    twice = pa.concat_tables([adds, adds]).set_column(
        place, adds.schema.field("stats"), pa.array([BY_NAME, BY_NAME])
    )
    assert _core.physical_rows(twice).to_pylist() == [3, 3]
    given, mark = assigned(twice, version=4, mark=9)
    assert given["baseRowId"].to_pylist() == [10, 13]
    assert given["defaultRowCommitVersion"].to_pylist() == [4, 4]
    assert mark == 15
    without = adds.set_column(place, adds.schema.field("stats"), pa.array(['{"minValues":{"numRecords":7}}']))
    assert _core.physical_rows(without).to_pylist() == [None]
