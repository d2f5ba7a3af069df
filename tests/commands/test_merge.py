"""MERGE, with vectors and by rewriting files, compared with plain Python and DuckDB."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from commands_model import Make, asked, rows

import deltaic
from deltaic.commands.merge import Merge
from deltaic.commands.merge_run import Run
from deltaic.engine.duckdb import held_rows
from deltaic.errors import (
    ConstraintViolationError,
    InvalidArgumentError,
    InvalidTypeError,
    MergeCardinalityError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltaic.planning import opening

SOURCE = pa.table(
    {
        "id": pa.array([3, 50, 97, 200, 201], pa.int64()),
        "grp": pa.array([9, 9, 9, 9, 9], pa.int32()),
        "name": ["a", "b", "c", "d", "e"],
        "x": [0.5, 1.5, 2.5, 3.5, 4.5],
    }
)


@pytest.mark.parametrize("files", [1, 5])
def test_upsert(make: Make, sample: pa.Table, files: int) -> None:
    table = make(sample, files=files)
    metrics = (
        table.merge(SOURCE, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    )
    assert rows(table) == asked(
        "SELECT * FROM t WHERE id NOT IN (SELECT id FROM s) UNION ALL SELECT * FROM s", t=sample, s=SOURCE
    )
    assert metrics["num_source_rows"] == 5
    assert metrics["num_target_rows_inserted"] == 2
    assert metrics["num_target_rows_updated"] == metrics["num_target_rows_matched_updated"] == 3
    assert metrics["num_output_rows"] == 5 + metrics["num_target_rows_copied"]
    assert metrics["num_target_files_scanned"] + metrics["num_target_files_skipped"] == files
    assert rows(table.at(files - 1)) == rows(sample)


def test_all_clauses_the_first_that_applies_wins(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=3)
    metrics = (
        table.merge(SOURCE, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update({"t.x": "t.x + s.x"}, "s.name = 'a'")
        .when_matched_delete("t.id = 50")
        .when_matched_update({"name": "upper(s.name)"})
        .when_not_matched_insert({"id": "s.id", "x": "s.x * 2"}, "s.id = 200")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete("t.id > 90")
        .when_not_matched_by_source_update({"name": "'gone'"}, "t.id > 80")
        .execute()
    )
    expected = asked(
        """
        SELECT id, grp, CASE WHEN id = 97 THEN 'C' WHEN id > 80 THEN 'gone' ELSE name END,
            CASE WHEN id = 3 THEN x + 0.5 ELSE x END FROM t
        WHERE id <> 50 AND (id <= 90 OR id = 97)
        UNION ALL SELECT 200, NULL, NULL, 7.0 UNION ALL SELECT 201, 9, 'e', 4.5
        """,
        t=sample,
    )
    assert rows(table) == expected
    assert metrics["num_target_rows_matched_updated"] == 2
    assert metrics["num_target_rows_matched_deleted"] == 1
    assert metrics["num_target_rows_inserted"] == 2
    assert metrics["num_target_rows_not_matched_by_source_deleted"] == 8
    assert metrics["num_target_rows_not_matched_by_source_updated"] == 10
    assert metrics["num_target_rows_deleted"] == 9
    assert metrics["num_target_rows_updated"] == 12


def test_conditions_that_are_null_do_not_hold(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    metrics = (
        table.merge(SOURCE, "t.id = s.id")
        .when_matched_delete("t.name = null")
        .when_not_matched_insert_all("s.x > null")
        .execute()
    )
    assert metrics["num_target_rows_deleted"] == metrics["num_target_rows_inserted"] == 0
    assert table.version == 0


def test_insert_only_and_duplicates_in_the_source(make: Make, sample: pa.Table, vectors: bool) -> None:
    table = make(sample)
    twice = pa.concat_tables([SOURCE, SOURCE])
    metrics = table.merge(twice, "t.id = s.id").when_not_matched_insert_all().execute()
    assert metrics["num_target_rows_inserted"] == 4
    assert metrics["num_target_rows_copied"] == metrics["num_target_files_removed"] == 0
    assert rows(table) == asked(
        "SELECT * FROM t UNION ALL SELECT * FROM s WHERE id >= 200", t=sample, s=twice
    )


def test_null_and_nan_keys(make: Make) -> None:
    nan = float("nan")
    table = make(pa.table({"k": [1.0, None, nan, 0.0], "v": ["one", "null", "nan", "zero"]}))
    source = pa.table({"k": [None, nan, -0.0], "v": ["N", "NAN", "Z"]})
    table.merge(source, "t.k = s.k").when_matched_update({"v": "s.v"}).when_not_matched_insert(
        {"v": "s.v"}
    ).execute()
    assert sorted(row[1] for row in rows(table)) == ["N", "NAN", "Z", "null", "one"]
    table.merge(source.slice(0, 1), "t.k <=> s.k").when_matched_delete().execute()
    assert sorted(row[1] for row in rows(table)) == ["NAN", "Z", "one"]


@pytest.mark.parametrize("count", [8_191, 8_192, 8_193, 100_000])
def test_cardinality(make: Make, count: int) -> None:
    """As many matches as a batch has rows, one fewer, one more: valid merges pass, one row that comes twice
    is found."""
    table = make(pa.table({"id": pa.array(range(count), pa.int64()), "v": pa.array([0] * count)}))
    source = pa.table({"id": pa.array(range(count), pa.int64()), "v": pa.array([1] * count)})
    once_more = pa.concat_tables([source, source.slice(count - 1)])
    with pytest.raises(MergeCardinalityError):
        table.merge(once_more, "t.id = s.id").when_matched_update_all().execute()
    assert table.version == 0
    metrics = table.merge(source, "t.id = s.id").when_matched_update_all().execute()
    assert metrics["num_target_rows_updated"] == count
    assert table.scan(where="v = 1").count() == count


def test_two_matches(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    twice = pa.concat_tables([SOURCE, SOURCE])
    with pytest.raises(MergeCardinalityError):
        table.merge(twice, "t.id = s.id").when_matched_delete("s.x > 0").execute()
    with pytest.raises(MergeCardinalityError):
        table.merge(twice, "t.id = s.id").when_matched_update_all("t.id = 3").when_matched_delete().execute()
    # Only one of the two would change the row; and a delete of every match is the same however many there
    # are.
    one = pa.concat_tables([SOURCE, SOURCE.set_column(2, "name", pa.array(["z"] * 5))])
    assert (
        table.merge(one, "t.id = s.id")
        .when_matched_update_all("s.name = 'z'")
        .execute()["num_target_rows_updated"]
        == 3
    )
    assert table.merge(twice, "t.id = s.id").when_matched_delete().execute()["num_target_rows_deleted"] == 3


def test_the_source_is_the_tables_own_past(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=3)
    table.delete("id < 20")
    table.update({"name": "'changed'"}, "id > 90")
    metrics = (
        table.merge(table.at(2), "t.id = s.id")
        .when_matched_update_all("not t.name <=> s.name")
        .when_not_matched_insert_all()
        .execute()
    )
    assert metrics["num_target_rows_inserted"] == 20
    assert metrics["num_target_rows_updated"] == 9
    assert rows(table) == rows(sample)
    assert (
        table.merge(table.scan(where="id < 5"), "t.id = s.id")
        .when_matched_delete()
        .execute()["num_target_rows_deleted"]
        == 5
    )


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(range(4000), pa.int64()),
        pa.array([f"k{i:05}" for i in range(4000)]),
        pa.array([date.fromordinal(730_000 + i) for i in range(4000)]),
        pa.array([Decimal(i) / 4 for i in range(4000)], pa.decimal128(12, 2)),
        pa.array([datetime.fromtimestamp(i, timezone.utc) for i in range(4000)], pa.timestamp("us", "UTC")),
    ],
    ids=["long", "string", "date", "decimal", "timestamp"],
)
@pytest.mark.parametrize("many", [False, True], ids=["values", "range"])
def test_files_out_of_the_keys_reach_are_skipped(make: Make, keys: pa.Array, many: bool) -> None:
    table = make(pa.table({"k": keys, "v": [0] * 4000}), files=4)
    chosen = keys.slice(2000, 1500) if many else keys.slice(3998, 2)
    source = pa.table({"k": chosen, "v": [1] * len(chosen)})
    metrics = table.merge(source, "t.k = s.k").when_matched_update({"v": "s.v"}).execute()
    assert metrics["num_target_files_scanned"] == (2 if many else 1)
    assert metrics["num_target_rows_updated"] == len(chosen)
    assert table.scan(where="v = 1").count() == len(chosen)


def test_keys_beyond_the_columns_type_match_nothing(make: Make) -> None:
    table = make(pa.table({"k": pa.array([1, 127], pa.int8())}))
    source = pa.table({"k": pa.array([1, 300, -5000], pa.int64())})
    metrics = table.merge(source, "t.k = s.k").when_matched_delete().execute()
    assert metrics["num_target_rows_deleted"] == 1
    assert rows(table) == [(127,)]


def test_conditions_beside_the_keys(make: Make, sample: pa.Table) -> None:
    table = make(sample, files=4)
    metrics = (
        table.merge(SOURCE, "t.id = s.id and t.id > 10 and s.x < 2")
        .when_matched_delete()
        .when_not_matched_insert_all()
        .execute()
    )
    assert metrics["num_target_rows_deleted"] == 1
    assert metrics["num_target_rows_inserted"] == 4
    assert (
        table.merge(SOURCE.slice(0, 1), "t.x between s.x and s.x + 1")
        .when_matched_delete()
        .execute()["num_target_rows_deleted"]
        == 6
    )
    assert (
        table.merge(SOURCE.slice(0, 1), "true").when_matched_delete().execute()["num_target_rows_deleted"]
        == 97
    )
    assert table.scan().count() == 0


def test_an_empty_source_and_an_empty_target(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    assert (
        table.merge(SOURCE.slice(0, 0), "t.id = s.id")
        .when_matched_delete()
        .when_not_matched_insert_all()
        .execute()["num_source_rows"]
        == 0
    )
    assert table.version == 0
    metrics = (
        table.merge(SOURCE.slice(0, 0), "t.id = s.id")
        .when_not_matched_by_source_delete("t.id < 10")
        .execute()
    )
    assert metrics["num_target_rows_deleted"] == 10
    table.delete()
    assert (
        table.merge(SOURCE, "t.id = s.id").when_not_matched_insert_all().execute()["num_target_rows_inserted"]
        == 5
    )
    assert rows(table) == rows(SOURCE)


def test_schema_evolution(make: Make, sample: pa.Table) -> None:
    table = make(sample.select(["id", "name"]), files=2)
    source = pa.table({"ID": [1, 500], "name": ["a", "b"], "extra": [1.5, 2.5], "s": [{"f": 1}, {"f": 2}]})
    table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.schema.names == ["id", "name"]
    merging = table.merge(source, "t.id = s.id", schema_mode="merge")
    merging.when_matched_update_all(exclude=["extra"]).when_not_matched_insert_all(exclude=["s"]).execute()
    assert table.schema.names == ["id", "name", "extra", "s"]
    assert table.scan(where="id in (1, 2, 500)").to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "name": "a", "extra": None, "s": {"f": 1}},
        {"id": 2, "name": "n2", "extra": None, "s": None},
        {"id": 500, "name": "b", "extra": None, "s": {"f": 2}},
    ]
    wider = pa.table({"id": [1, 600], "s": [{"g": "x"}, {"g": "y"}]})
    table.merge(
        wider, "t.id = s.id", schema_mode="merge"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.scan(["s"], "id in (1, 600)").to_arrow()["s"].to_pylist() in (
        [{"f": 1, "g": "x"}, {"f": None, "g": "y"}],
        [{"f": None, "g": "y"}, {"f": 1, "g": "x"}],
    )


@pytest.mark.parametrize("feed", [False, True])
def test_schema_evolution_without_a_changed_row(make: Make, sample: pa.Table, feed: bool) -> None:
    table = make(sample.select(["id"]), properties={"delta.enableChangeDataFeed": feed})
    source = pa.table({"id": pa.array([500], pa.int64()), "extra": ["x"]})
    merging = table.merge(source, "t.id = s.id", schema_mode="merge")
    metrics = merging.when_matched_update_all().when_not_matched_insert_all("s.id < 0").execute()
    assert (table.version, table.schema.names) == (1, ["id", "extra"])
    assert metrics["num_target_rows_updated"] == metrics["num_target_files_added"] == 0
    merging.when_matched_update({"id": "s.id"}).execute()
    assert table.version == 1
    assert set(table.scan(["extra"]).to_arrow()["extra"].to_pylist()) == {None}


def test_sources_of_every_kind(make: Make, sample: pa.Table) -> None:
    import duckdb
    import polars

    connection = duckdb.connect()
    connection.register("source", SOURCE)
    kinds: list[Any] = [
        SOURCE,
        SOURCE.to_reader(),
        SOURCE.to_pandas(),
        polars.from_arrow(SOURCE),
        polars.from_arrow(SOURCE).lazy(),  # type: ignore[union-attr]
        connection.sql("SELECT * FROM source"),
        iter(SOURCE.to_batches()),
        SOURCE.to_batches()[0],
    ]
    expected = asked(
        "SELECT * FROM t WHERE id NOT IN (SELECT id FROM s) UNION ALL SELECT * FROM s", t=sample, s=SOURCE
    )
    for number, source in enumerate(kinds):
        table = make(sample, name=f"t{number}")
        table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
        assert rows(table) == expected, type(source)


def test_checks_of_new_rows(make: Make, tmp_path: Path) -> None:
    table = deltaic.DeltaTable.create(tmp_path / "strict", "id bigint not null, n int")
    table = deltaic.write(table, pa.table({"id": [1], "n": pa.array([1], pa.int32())}), mode="append")
    with pytest.raises(ConstraintViolationError):
        table.merge(pa.table({"id": [5]}), "t.id = s.id").when_not_matched_insert({"n": "s.id"}).execute()
    with pytest.raises(SchemaMismatchError, match="n"):
        table.merge(pa.table({"id": [2**40]}), "t.id = s.id").when_not_matched_insert(
            {"id": "s.id", "n": "s.id"}
        ).execute()
    table.merge(pa.table({"id": [2**40]}), "t.id = s.id", casting="try").when_not_matched_insert(
        {"id": "s.id", "n": "s.id"}
    ).execute()
    assert rows(table) == [(1, 1), (2**40, None)]


def test_the_builder_is_immutable_and_checks(make: Make, sample: pa.Table) -> None:
    table = make(sample)
    start = table.merge(SOURCE, "t.id = s.id")
    deleting = start.when_matched_delete()
    assert start is not deleting
    with pytest.raises(InvalidArgumentError, match="at least one clause"):
        start.execute()
    with pytest.raises(InvalidArgumentError, match="only the last"):
        deleting.when_matched_update_all()
    deleting.when_not_matched_insert_all()
    for wrong in ({}, {"nope": "1"}, {"id": "s.nope"}, {"id": "1", "ID": "2"}):
        with pytest.raises(InvalidArgumentError):
            start.when_matched_update(wrong).execute()
    with pytest.raises(InvalidArgumentError):
        start.when_not_matched_insert({"id": "t.id"}).execute()
    with pytest.raises(InvalidArgumentError):
        start.when_not_matched_by_source_update({"id": "s.id"}).execute()
    with pytest.raises(InvalidArgumentError):
        start.when_matched_update_all(exclude=["nope"]).execute()
    with pytest.raises(InvalidArgumentError):
        table.merge(SOURCE, "t.id = s.nope").when_matched_delete().execute()
    with pytest.raises(InvalidArgumentError):
        table.merge(SOURCE, "id = s.id").when_matched_delete().execute()  # both have one
    with pytest.raises(InvalidArgumentError):
        table.merge(SOURCE, "a.id = a.id", source_alias="a", target_alias="A")
    with pytest.raises(UnsupportedFeatureError):
        table.merge(SOURCE, "t.id = s.id and t.id in (select 1)").when_matched_delete().execute()
    with pytest.raises(InvalidTypeError):
        table.merge("SOURCE", "t.id = s.id").when_matched_delete().execute()
    with pytest.raises(InvalidArgumentError, match="case"):
        table.merge(pa.table({"id": [1], "ID": [2]}), "true").when_matched_delete().execute()
    assert table.version == 0


def test_history(make: Make, sample: pa.Table, way: str) -> None:
    table = make(sample)
    table.merge(SOURCE, "t.id = s.id").when_matched_delete("s.x > 1").when_not_matched_insert_all().execute()
    newest = table.history(1)[0]
    assert newest["operation"] == "MERGE"
    condition = "(s.x > 1)" if way.endswith("spark") else "s.x > 1"
    assert (
        newest["operationParameters"]["matchedPredicates"]
        == f'[{{"predicate":"{condition}","actionType":"delete"}}]'
    )
    assert newest["operationParameters"]["notMatchedPredicates"] == '[{"actionType":"insert"}]'
    assert newest["operationMetrics"]["numTargetRowsInserted"] == "2"
    assert newest["operationMetrics"]["numTargetRowsDeleted"] == "2"
    times = ("executionTimeMs", "materializeSourceTimeMs", "scanTimeMs", "rewriteTimeMs")
    assert all(int(newest["operationMetrics"][name]) >= 0 for name in times)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_random_merges(
    make: Make, way: str, seed: int, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys with repetition in the target and nulls on both sides, all clauses, against a loop over rows."""
    if not in_memory:
        if way.endswith("spark"):
            pytest.skip("Spark holds rows in its own way")
        monkeypatch.setattr(held_rows, "HELD_BYTES", -1)
    random.seed(seed)
    target = [(random.choice([None, *range(40)]), random.randrange(100)) for _ in range(300)]
    source = [(key, random.randrange(100)) for key in random.sample(range(60), 30)] + [(None, 1)]
    names = ("k", "v")
    table = make(pa.table(dict(zip(names, zip(*target, strict=True), strict=True))), files=3)
    (
        table.merge(pa.table(dict(zip(names, zip(*source, strict=True), strict=True))), "t.k = s.k")
        .when_matched_delete("t.v > 90")
        .when_matched_update({"v": "t.v + s.v"}, "s.v > 20")
        .when_not_matched_insert({"k": "s.k", "v": "-s.v"}, "s.v > 10 or s.k is null")
        .when_not_matched_by_source_update({"v": "1000"}, "t.v < 10")
        .when_not_matched_by_source_delete("t.v > 95")
        .execute()
    )
    by_key = {key: value for key, value in source if key is not None}
    expected = []
    for key, value in target:
        if key in by_key:
            if value <= 90:
                expected.append((key, value + by_key[key] if by_key[key] > 20 else value))
        elif value < 10:
            expected.append((key, 1000))
        elif value <= 95:
            expected.append((key, value))
    present = {key for key, _ in target}
    expected += [
        (key, -value)
        for key, value in source
        if (key is None or key not in present) and (value > 10 or key is None)
    ]
    assert rows(table) == sorted(expected, key=repr)


CLAUSES: dict[str, Callable[[Merge], Merge]] = {
    "upsert": lambda merge: merge.when_matched_update_all().when_not_matched_insert_all(),
    "upsert of some": (
        lambda merge: merge.when_matched_update_all("s.x > 1").when_not_matched_insert_all("s.x < 4")
    ),
    "other values": (
        lambda merge: merge.when_matched_update_all().when_not_matched_insert(
            {"id": "s.id", "name": "upper(s.name)"}
        )
    ),
    "one column": lambda merge: merge.when_matched_update({"name": "s.name"}).when_not_matched_insert_all(),
    "constants": lambda merge: merge.when_matched_update(
        {"id": 7, "grp": 1, "name": "'c'", "x": "cast(s.grp as double)"}
    ),
    "orphans": (
        lambda merge: merge.when_matched_update_all().when_not_matched_by_source_update(
            {"id": 1, "grp": 2, "name": "''", "x": 0.5}
        )
    ),
    "deleted": lambda merge: (
        merge.when_matched_delete("s.x > 1")
        .when_matched_update_all()
        .when_not_matched_by_source_delete("t.id > 90")
    ),
}


@pytest.mark.parametrize("clauses", CLAUSES)
def test_short_cuts_change_nothing(
    make: Make, sample: pa.Table, clauses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rows in memory, and with changed rows read again whatever their new values are: the same
    rows and metrics."""

    def merged(name: str) -> tuple[list[Any], dict[str, int]]:
        table = make(sample, files=3, name=name)
        metrics = CLAUSES[clauses](table.merge(SOURCE, "t.id = s.id")).execute()
        return rows(table), {name: value for name, value in metrics.items() if "bytes" not in name}

    short = merged("short")
    monkeypatch.setattr(held_rows, "HELD_BYTES", -1)
    monkeypatch.setattr(Run, "_reads_target", lambda *_: True)
    assert merged("long") == short


def test_an_upsert_of_all_columns_reads_no_row_again(
    tmp_path: Path, sample: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = deltaic.write(tmp_path / "table", sample, properties={"delta.enableDeletionVectors": True})
    opened: list[tuple[str, ...]] = []
    original = opening.open_scan
    monkeypatch.setattr(
        opening, "open_scan", lambda scan, **how: (opened.append(scan.columns), original(scan, **how))[1]
    )
    table.merge(SOURCE, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert opened == [("id",)]


def test_a_condition_of_an_insert_sees_the_source_alone(make: Make, sample: pa.Table) -> None:
    """A bare name is the source's there, also where the target has it and the matched clauses read it."""
    table = make(sample.slice(0, 50))
    building = table.merge(sample.slice(40, 20), "t.id = s.id").when_matched_update(
        {"x": "t.x + s.x"}, "t.grp = 1"
    )
    done = building.when_not_matched_insert({"id": "id", "grp": "grp"}, "id >= 55").execute()
    assert (done["num_target_rows_inserted"], done["num_target_rows_updated"]) == (5, 4)
    assert sorted(table.scan(["id"], "id >= 50").to_arrow()["id"].to_pylist()) == [55, 56, 57, 58, 59]
    with pytest.raises(InvalidArgumentError, match="ambiguous"):
        table.merge(sample, "t.id = s.id").when_matched_update({"x": "x"}).execute()


def test_assigned_columns_that_only_the_source_has(make: Make, sample: pa.Table) -> None:
    """delta-spark's schema evolution: not by stars alone."""
    table = make(pa.table({"id": [1, 2], "st": [{"a": 1}, {"a": 2}]}))
    source = pa.table(
        {"id": [2, 3], "st": [{"a": 20, "b": "x"}, {"a": 30, "b": "y"}], "more": [0.5, 1.5], "unused": [1, 1]}
    )
    with pytest.raises(InvalidArgumentError, match="more"):
        table.merge(source, "t.id = s.id").when_matched_update({"more": "s.more"}).execute()
    building = table.merge(source, "t.id = s.id", schema_mode="merge").when_matched_update(
        {"t.more": "s.more", "st.b": "s.st.b"}
    )
    building.when_not_matched_insert({"id": "s.id", "MORE": "s.more + 1"}).execute()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "st": {"a": 1, "b": None}, "more": None},
        {"id": 2, "st": {"a": 2, "b": "x"}, "more": 0.5},
        {"id": 3, "st": None, "more": 2.5},
    ]
    with pytest.raises(InvalidArgumentError, match="nowhere"):
        table.merge(source, "t.id = s.id", schema_mode="merge").when_matched_update(
            {"nowhere": "1"}
        ).execute()


def test_new_columns_have_the_order_of_the_source(make: Make) -> None:
    table = make(pa.table({"id": [1], "s": [{"n": 1}]}))
    inner = {"x": 1, "n": 2, "b": 3, "a": {"q": 4, "p": 5}}
    source = pa.table({"z": [1], "id": [1], "a": [2], "s": [inner], "m": [3]})
    merge = table.merge(source, "t.id = s.id", schema_mode="merge")
    values = {"m": "s.m", "a": "s.a", "s.a.p": "s.s.a.p", "s.a.q": "s.s.a.q", "s.b": "s.s.b"}
    merge.when_matched_update(values).when_not_matched_insert({"z": "s.z", "id": "s.id"}).execute()
    assert table.schema.names == ["id", "s", "z", "a", "m"]
    assert [item.name for item in table.schema.field("s").type.fields] == ["n", "b", "a"]
    (row,) = table.scan().to_arrow().to_pylist()
    assert row == {"id": 1, "s": {"n": 1, "b": 3, "a": {"q": 4, "p": 5}}, "z": None, "a": 2, "m": 3}
    assert list(row["s"]["a"]) == ["q", "p"]


def test_names_of_new_columns_mean_those_of_the_source(make: Make) -> None:
    """delta-spark's MergeIntoSchemaEvolutionSuite, "multiple clauses": the target has no such column yet."""
    table = make(pa.table({"id": [1, 2, 3], "old": ["a", "b", "c"]}))
    source = pa.table({"id": [1, 2, 3], "new": ["t", "u", None], "s": [1, 1, 1]})
    start = table.merge(source, "t.id = s.id AND new <> 'v'", schema_mode="merge")
    start = start.when_matched_update({"old": "upper(new)"}, where="`new` = 't' AND s.s = 1")
    start.when_matched_update_all().execute()
    assert table.scan(["id", "old", "new"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "old": "T", "new": None},
        {"id": 2, "old": "b", "new": "u"},
        {"id": 3, "old": "c", "new": None},
    ]
    bare = table.merge(source, "t.id = s.id", schema_mode="merge")
    with pytest.raises(InvalidArgumentError, match=r"DELTA_MERGE_UNRESOLVED_EXPRESSION\] no such column"):
        bare.when_not_matched_by_source_update({"more": "1"}).execute()


def test_an_alias_stands_before_a_column_of_its_name(make: Make) -> None:
    """delta-spark's MergeIntoSchemaEvolutionSuite, "existing top-level column assignment qualified with
    target name": `t.a` is a column of the table t, if there is one, and else a field of its column t."""
    table = make(pa.table({"a": [0], "t": [{"a": 1, "b": 1}]}))
    source = pa.table({"a": [2]})
    for values, row in (
        ({"t.a": "s.a"}, {"a": 2, "t": {"a": 1, "b": 1}}),
        ({"t.t.a": "s.a + 1"}, {"a": 2, "t": {"a": 3, "b": 1}}),
        ({"t.b": "5"}, {"a": 2, "t": {"a": 3, "b": 5}}),
    ):
        table.merge(source, "true").when_matched_update(values).execute()
        assert table.scan().to_arrow().to_pylist() == [row]


def test_an_insert_sets_whole_columns(make: Make) -> None:
    table = make(pa.table({"id": [1], "st": [{"a": 1, "b": 1}]}))
    merge = table.merge(pa.table({"id": [2]}), "t.id = s.id")
    with pytest.raises(UnsupportedFeatureError, match="no single field of a struct; found st"):
        merge.when_not_matched_insert({"id": "s.id", "st.a": "1"}).execute()


DEEP = {"id": 2, "info": {"name": "b", "in": {"x": 20, "y": 7}, "lvl": 5}, "tags": [{"a": 1, "b": 2}]}
ALIGNED = {"name": "a", "in": {"x": 1, "y": None}, "lvl": None}


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("inserts", [False, True])
def test_fields_inside_an_assigned_column_of_the_source(make: Make, mapping: str, inserts: bool) -> None:
    """delta-spark's schema evolution: a whole struct of the source brings its new fields at each depth."""
    rows = [{"id": number, "info": {"name": "a", "in": {"x": 1}}, "tags": [{"a": 0}]} for number in (1, 2)]
    table = make(
        pa.Table.from_pylist(rows[:1] if inserts else rows),
        properties={"delta.columnMapping.mode": mapping},
    )
    source = pa.Table.from_pylist([DEEP])
    start = table.merge(source, "t.id = s.id", schema_mode="merge")
    values = {"t.info": "s.INFO", "tags": "`s`.tags"}
    (
        start.when_not_matched_insert({"id": "id", "info": "info", "tags": "s.tags"})
        if inserts
        else start.when_matched_update(values)
    ).execute()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "info": ALIGNED, "tags": [{"a": 0, "b": None}]},
        DEEP,
    ]


def test_any_value_of_a_column_adds_the_fields_of_the_source(make: Make) -> None:
    """As in delta-spark, the column's name decides, not the value. Values are cast to the table's types."""
    table = make(
        pa.table(
            {"id": [1], "n": pa.array([1], pa.int32()), "info": [{"x": 1, "in": {"y": 1}}], "st": [{"x": 1}]}
        )
    )
    source = pa.table({"id": [1], "n": ["7"], "info": [{"x": 2, "in": {"y": 2, "z": 3}, "lvl": 4}]})
    for values in ({"info": "s.info.in"}, {"st": "s.info"}):
        with pytest.raises(SchemaMismatchError, match="has fields that its column lacks"):
            table.merge(source, "t.id = s.id", schema_mode="merge").when_matched_update(values).execute()
    assert table.version == 0
    for values, info in (
        ({"n": "s.n", "info.in": "s.info.in"}, {"x": 1, "in": {"y": 2, "z": 3}}),
        ({"info": "named_struct('x', 5, 'in', null)"}, {"x": 5, "in": None, "lvl": None}),
        ({"info": "coalesce(s.info, s.info)"}, {"x": 2, "in": {"y": 2, "z": 3}, "lvl": 4}),
    ):
        table.merge(source, "t.id = s.id", schema_mode="merge").when_matched_update(values).execute()
        assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 7, "info": info, "st": {"x": 1}}]
    assert table.schema.field("n").type == "integer"


def test_a_null_struct_of_the_source_in_an_update_of_all_columns(make: Make) -> None:
    """delta-spark's MergeIntoStructEvolutionNullnessSuite: the null is stored, unless it would remove fields
    that only the target has."""
    kind = pa.struct([("y", pa.int32()), ("z", pa.int32())])
    table = make(
        pa.table(
            {
                "id": [1, 2, 3],
                "more": pa.array([{"y": 1, "z": 2}, {"y": None, "z": None}, None], kind),
                "same": pa.array([{"y": 1, "z": 2}, {"y": None, "z": None}, None], kind),
                "deep": pa.array([{"in": {"y": 1, "z": 2}}, None, None], pa.struct([("in", kind)])),
            }
        )
    )
    less = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    source = pa.table(
        {
            "id": [1, 2, 3],
            "more": pa.array([None] * 3, less),
            "same": pa.array([None] * 3, pa.struct([("z", pa.int32()), ("y", pa.int32())])),
            "deep": pa.array([{"in": None}, {"in": None}, None], pa.struct([("in", less)])),
        }
    )
    merge = table.merge(source, "t.id = s.id", schema_mode="merge")
    merge.when_matched_update_all().execute()
    nulls = {"y": None, "z": None, "x": None}
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "more": nulls | {"z": 2}, "same": None, "deep": {"in": nulls | {"z": 2}}},
        {"id": 2, "more": nulls, "same": None, "deep": {"in": None}},
        {"id": 3, "more": None, "same": None, "deep": None},
    ]


def test_types_that_schema_evolution_does_not_convert(make: Make) -> None:
    table = make(pa.table({"id": [1], "n": [1], "text": ["a"]}))
    for column in ({"n": [True]}, {"n": [[1]]}, {"text": [[1]]}, {"text": [{"a": 1}]}):
        source = pa.table({"id": [1], **column})
        merge = table.merge(source, "t.id = s.id", schema_mode="merge")
        with pytest.raises(SchemaMismatchError, match="the data's type does not fit the column's"):
            merge.when_matched_update_all().execute()
    source = pa.table({"id": [1], "n": ["7"], "text": [True]})
    table.merge(source, "t.id = s.id", schema_mode="merge").when_matched_update_all().execute()
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 7, "text": "true"}]


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_partitions_and_mapped_columns(make: Make, mapping: str, partitioned: bool) -> None:
    target = pa.table({"id": [1, 2, 3], "k": [10, 20, 30], "p": ["a", "b", "a"]})
    table = make(
        target, properties={"delta.columnMapping.mode": mapping}, partition_by="p" if partitioned else None
    )
    if mapping != "none":
        table.alter.rename_column("k", "renamed k")
    k = "k" if mapping == "none" else "renamed k"
    source = pa.table({"id": [2, 3, 4, 5], "k": [200, 300, 400, 500], "p": ["b", "b", "c", "a"]})
    building = table.merge(source, "t.id = s.id").when_matched_update(
        {"p": "s.p", f"`{k}`": f"t.`{k}` + s.k"}
    )
    building = building.when_not_matched_insert(
        {"id": "id", f"`{k}`": "k", "p": "p"}
    ).when_not_matched_by_source_update({"p": "'z'"})
    building.execute()
    found = table.scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [1, 2, 3, 4, 5]
    assert found[k].to_pylist() == [10, 220, 330, 400, 500]
    assert found["p"].to_pylist() == ["z", "b", "b", "c", "a"]


def test_memory_is_bounded(make: Make, tmp_path: Path, vectors: bool) -> None:
    """The source is larger than what the engine may hold, so it spills; the rows are the same."""
    if not vectors:
        pytest.skip("the join is the same")
    count = 600_000
    table = make(
        pa.table({"id": pa.array(range(count)), "name": pa.array(["x" * 100]).take(pa.array([0] * count))})
    )
    source = pa.table(
        {
            "id": pa.array(range(0, 2 * count, 2)),
            "name": pa.array([f"{number:0100}" for number in range(0, 2 * count, 2)]),
        }
    )
    assert source.nbytes > 60_000_000
    with deltaic.configure(memory_limit="48MB", temp_directory=tmp_path / "spilled"):
        done = (
            table.merge(source, "t.id = s.id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
    assert (done["num_target_rows_updated"], done["num_target_rows_inserted"]) == (count // 2, count // 2)
    found = table.scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == sorted({*range(count), *range(0, 2 * count, 2)})
    assert found.filter(pc.equal(pc.bit_wise_and(found["id"], 1), 0))["name"].equals(source["name"])


def test_a_second_match_names_key_file_and_source_rows(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1, 2], "v": ["a", "b"]}))
    source = pa.table({"id": [2, 2, 7], "v": ["x", "y", "z"]})
    with pytest.raises(MergeCardinalityError) as raised:
        table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    message = str(raised.value)
    (file,) = table.files().to_arrow()["path"].to_pylist()
    assert "2 source rows with {id: 2}" in message
    assert "{id: 2, v: 'x'}" in message
    assert "{id: 2, v: 'y'}" in message
    assert f"row 1 of {file}" in message
    assert table.version == 0


def test_a_merge_that_has_not_run_says_so(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"id": [1]}))
    merge = table.merge(pa.table({"id": [1]}), "t.id = s.id")
    assert "(no clause yet)" in repr(merge)
    shown = repr(merge.when_matched_delete("s.id > 3").when_not_matched_insert_all())
    assert (
        shown == "<Merge of Table ON t.id = s.id WHEN MATCHED AND s.id > 3 THEN DELETE WHEN NOT MATCHED THEN"
        " INSERT; not run yet: call execute()>"
    )


def test_a_column_without_a_type_that_no_clause_sets(make: Make) -> None:
    table = make(pa.table({"id": [1], "v": pa.nulls(1)}))
    for evolves in (None, "merge"):
        merge = table.merge(pa.table({"id": [1, 2]}), "t.id = s.id", schema_mode=evolves)
        merge.when_matched_update({"id": "t.id"}).when_not_matched_insert({"id": "s.id"}).execute()
    assert rows(table) == [(1, None), (2, None)]
    with pytest.raises(SchemaMismatchError, match="found string; expected void"):
        table.update({"v": "'x'"})
