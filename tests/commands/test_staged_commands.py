"""Commands staged in a transaction over several tables: the result is that of each command alone, on both
engines."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from commands_model import Make, rows

import deltaic
from deltaic import DeltaTable

MORE = pa.table(
    {
        "id": pa.array([5, 500], pa.int64()),
        "grp": pa.array([9, 9], pa.int32()),
        "name": ["five", "new"],
        "x": [0.5, 0.5],
    }
)


def _without_times(metrics: dict[str, int] | None) -> dict[str, int]:
    return {
        name: value
        for name, value in (metrics or {}).items()
        if not name.endswith("_ms") and "bytes" not in name
    }


def test_staged_commands_leave_what_single_ones_leave(make: Make, sample: pa.Table) -> None:
    together = [make(sample, files=2, name=f"together {number}") for number in range(5)]
    alone = [make(sample, files=2, name=f"alone {number}") for number in range(5)]
    with deltaic.transaction(*together) as t:
        a, b, c, d, e = together
        found: list[Any] = [t.write(a, MORE), t.write(b, MORE, mode="overwrite", where="id = 5 or id = 500")]
        found += [t.delete(c, "id < 7"), t.update(d, {"name": "concat(name, '!')"}, "x > 20")]
        found += [
            t.merge(e, MORE, "s.id = t.id").when_matched_update_all().when_not_matched_insert_all().execute()
        ]
        assert all(rows(table) == rows(sample) for table in together)
    a, b, c, d, e = alone
    deltaic.write(a, MORE, mode="append")
    deltaic.write(b, MORE, mode="overwrite", where="id = 5 or id = 500")
    expected: list[Any] = [None, None, c.delete("id < 7"), d.update({"name": "concat(name, '!')"}, "x > 20")]
    expected += [
        e.merge(MORE, "s.id = t.id").when_matched_update_all().when_not_matched_insert_all().execute()
    ]
    assert [_without_times(each) for each in found] == [_without_times(each) for each in expected]
    for one, other in zip(together, alone, strict=True):
        assert rows(one) == rows(DeltaTable(one.location)) == rows(other)
        assert one.version == other.version + 1
        mine, theirs = one.history(1)[0], other.history(1)[0]
        for name in ("operation", "operationParameters", "isolationLevel", "isBlindAppend"):
            assert mine[name] == theirs[name]
        assert mine["operationMetrics"].keys() == theirs["operationMetrics"].keys()


def test_rows_of_one_file_by_another_writer(make: Make, sample: pa.Table, vectors: bool) -> None:
    a, b = make(sample, name="a"), make(sample, name="b")
    failure: Exception | None = None
    try:
        with deltaic.transaction(a, b) as t:
            t.write(a, MORE)
            t.update(b, {"x": "-1"}, "id = 3")
            DeltaTable(b.location).delete("id = 4")
    except deltaic.errors.DeltaConcurrentModificationException as error:
        failure = error
    found = {row["id"]: row["x"] for row in DeltaTable(b.location).scan()}
    assert 4 not in found
    assert (found[3], failure is None) == ((-1.0, True) if vectors else (0.75, False))
    assert DeltaTable(a.location).scan().count() == (102 if vectors else 100)
