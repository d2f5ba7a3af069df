"""Measures the cost of a table's features: `python benches/peers/features.py [--pairs N] [--jobs ...]
[--record FILE]`.

Every run is a fresh process, the systems take turns, and the minimum of each counts; the results are compared
by count and sums.

append: four million rows into a table with three constraints and two generated columns, beside a table of the
same columns that gets values for all of them and has no rules. delete, update, merge: 1 % of a table's rows
with the change data feed, beside the same table without one. changes: the feed of 100 commits (appends of
40,000 rows, deletes of a row, MERGEs of 50 rows) as Arrow, beside deltalake's `load_cdf` of the same log.
convert: 10,000 Parquet files become a table, beside deltalake. clone: a shallow clone of a table of a million
files, beside writing a checkpoint of that table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _pairs import Job, Run, data, main, sums

FILES = 10_000
CLONED = 1_000_000
COMMITS = 100
APPENDED = 40_000
REPEATS = 2
CHANGED = "id % 100 = 7"
COLUMNS = "id long, key integer, value double, name string, at timestamp"
GENERATED = {"day": ("date", "CAST(at AS DATE)"), "tens": ("integer", "CAST(key / 10 AS INTEGER)")}
COMPUTED = " AND ".join(f"{name} = {value}" for name, (_, value) in GENERATED.items())
RULES = {"positive": "id >= 0", "small": "value < 100000", "named": "name IS NOT NULL"}
JOBS = (
    Job(name="append", limits={"no rules": 1.25}),
    Job(name="delete", limits={"no feed": 1.05}),
    Job(name="update", limits={"no feed": 1.3}),
    Job(name="merge", limits={"no feed": 1.3}),
    Job(name="changes", limits={"deltalake": 0.5}),
    Job(name="convert", limits={"deltalake": 0.3}),
    Job(name="clone", limits={"checkpoint": 2.0}),
)


def prepare(root: Path, rows: int) -> None:
    """Makes the rows, tables and files that all runs read."""
    import pyarrow.parquet as pq

    import deltaic
    from log import write_log

    table = data(rows)
    values = ", ".join(f"{value} AS {name}" for name, (_, value) in GENERATED.items())
    pq.write_table(table, root / "rows.parquet")
    pq.write_table(
        deltaic.sql(f"SELECT *, {values} FROM r", tables={"r": table}).to_arrow(),
        root / "all columns.parquet",
    )
    pq.write_table(table.filter([number % 100 == 7 for number in range(rows)]), root / "source.parquet")
    write_changes(root / "changes", table)
    (root / "files").mkdir()
    for number in range(FILES):
        pq.write_table(table.slice(number * 100, 100), root / "files" / f"part-{number:05}.parquet")
    write_log(root / "many", CLONED)
    deltaic.DeltaTable(root / "many").checkpoint()


def write_changes(place: Path, rows: Any) -> None:
    """Writes a table and `COMMITS` changes of it. It has no vectors: deltalake reads no feed of a commit with
    them."""
    import deltaic

    table = deltaic.write(
        place, rows, properties={"delta.enableDeletionVectors": False, "delta.enableChangeDataFeed": True}
    )
    for number in range(COMMITS):
        if number % 20 == 19:
            table.delete(f"id = {number * 10}")
        elif number % 20 == 9:
            table.merge(rows.slice(number * 50, 50), "t.id = s.id").when_matched_update(
                {"value": "s.value + 1"}
            ).execute()
        else:
            deltaic.write(table, rows.slice(number * APPENDED, APPENDED), mode="append")


def append(system: str, root: Path) -> Run:
    import pyarrow.parquet as pq

    import deltaic

    has_rules = system == "deltaic"
    rows = pq.read_table(root / ("rows.parquet" if has_rules else "all columns.parquet"))
    rule = " GENERATED ALWAYS AS ({})" if has_rules else ""
    columns = ", ".join(
        [COLUMNS, *(f"{name} {of}{rule.format(value)}" for name, (of, value) in GENERATED.items())]
    )
    tables = []
    for number in range(REPEATS):
        tables.append(deltaic.DeltaTable.create(place(root, system, "append", number), columns))
        if has_rules:
            tables[-1].alter.add_constraints(RULES)

    def check(table: Any) -> list[Any]:
        return [*sums_of_table(table), table.scan(where=COMPUTED).count()]

    return lambda: deltaic.write(tables.pop(), rows, mode="append"), REPEATS, check


def change(system: str, job: str, root: Path) -> Run:
    """Runs DELETE, UPDATE or MERGE of the rows of `CHANGED`, in tables of their own."""
    import pyarrow.parquet as pq

    import deltaic

    rows, source = pq.read_table(root / "rows.parquet"), pq.read_table(root / "source.parquet")
    properties = {"delta.enableChangeDataFeed": system == "deltaic"}
    places = (place(root, system, job, number) for number in range(REPEATS))
    tables = [deltaic.write(each, rows, properties=properties) for each in places]

    def work() -> Any:
        table = tables.pop()
        if job == "delete":
            table.delete(CHANGED)
        elif job == "update":
            table.update({"value": "value + 1"}, CHANGED)
        else:
            table.merge(source, "t.id = s.id").when_matched_update({"value": "s.value + 1"}).execute()
        return table

    return work, REPEATS, sums_of_table


def changes(system: str, root: Path) -> Run:
    path = str(root / "changes")
    if system == "deltaic":
        import deltaic

        return lambda: deltaic.DeltaTable(path).changes(1).to_arrow(), REPEATS, kinds
    import deltalake
    import pyarrow as pa

    return (
        lambda: pa.table(deltalake.DeltaTable(path).load_cdf(starting_version=1).read_all()),
        REPEATS,
        kinds,
    )


def convert(system: str, root: Path) -> Run:
    path = root / "files"
    if system == "deltaic":
        import deltaic

        call: Callable[[str], Any] = deltaic.DeltaTable.convert
    else:
        import deltalake

        call = deltalake.convert_to_deltalake

    def work() -> None:
        shutil.rmtree(path / "_delta_log", ignore_errors=True)
        call(str(path))

    return work, REPEATS, lambda _: sums_of_table(opened(path))


def clone(system: str, root: Path) -> Run:
    import deltaic

    table = deltaic.DeltaTable(root / "many")
    if system == "checkpoint":
        return table.checkpoint, REPEATS, lambda _: opened(root / "many").detail().num_files
    places = [place(root, system, "clone", number) for number in range(REPEATS)]
    return lambda: table.clone(places.pop(), shallow=True), REPEATS, lambda made: made.detail().num_files


def place(root: Path, system: str, job: str, number: int) -> Path:
    """Returns an empty place for a table."""
    path = root / f"{system} {job} {number}"
    shutil.rmtree(path, ignore_errors=True)
    return path


def sums_of_table(table: Any) -> list[Any]:
    return sums(table.scan(columns=["id", "key", "value", "name", "at"]).to_arrow())


def opened(path: Path) -> Any:
    import deltaic

    return deltaic.DeltaTable(path)


def kinds(feed: Any) -> list[Any]:
    """Returns the number of changes of each kind, and their ids."""
    found = feed.group_by("_change_type").aggregate([("id", "count"), ("id", "sum")]).to_pylist()
    return sorted([row["_change_type"], row["id_count"], row["id_sum"]] for row in found)


def run(system: str, job: str, root: Path) -> Run:
    alone = {"append": append, "changes": changes, "convert": convert, "clone": clone}
    return alone[job](system, root) if job in alone else change(system, job, root)


if __name__ == "__main__":
    main(__file__, __doc__, JOBS, prepare, run)
