"""Writes docs/benchmarks.md and its pictures from benches/records: `python scripts/draw_benchmarks.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltaic.pictures.svg import document, element, label

ROOT = Path(__file__).resolve().parents[1]
COLOURS = {
    "deltaic": "#c4610a",
    "deltalake": "#2f6fb0",
    "duckdb": "#6a8f2f",
    "pyarrow": "#7a5ea8",
    "delta-spark": "#2f6fb0",
}
OTHERS = {
    "parquet": "#6a8f2f",
    "deltalake_query": "#7fb2e0",
    **dict.fromkeys(("without_vectors", "rewriting", "no rules", "no feed", "checkpoint"), "#888"),
}
NAMES = {
    "deltalake_query": "deltalake, by its SQL engine",
    "without_vectors": "deltaic, the same rows without vectors",
    "rewriting": "deltaic, rewriting files instead",
    "parquet": "the same files as plain Parquet",
    "no rules": "no rules",
    "no feed": "no change data feed",
    "checkpoint": "writing its checkpoint",
}
_WIDTH, _LEFT, _TOP, _ROW = 520, 330, 62, 26


@dataclass(frozen=True)
class Chart:
    """One record as a picture. `jobs`: of the record, with what each one is."""

    record: str
    title: str
    text: str
    jobs: Mapping[str, str]


CHARTS = (
    Chart(
        "read",
        "Reading",
        "Rows are read to Arrow. The sum and the groups are SQL queries.",
        {
            "all": "all of five columns",
            "two": "two of five columns",
            "selective": "a range that statistics narrow down",
            "deleted_10pct_all": "all columns, 10 % of the rows deleted",
            "deleted_10pct_two": "two columns, 10 % of the rows deleted",
            "sum": "the sum of a column",
            "group_by": "count and sum of each group",
        },
    ),
    Chart(
        "write",
        "Writing",
        "Rows are written from Arrow, with the compression in the table.",
        {"zstd": "zstd", "snappy": "snappy", "defaults": "each writer's defaults"},
    ),
    Chart(
        "dml",
        "Changing rows",
        "deltalake rewrites the files that hold the rows; deltaic marks the old rows in deletion vectors.",
        {
            "delete_one": "delete 1 row",
            "update_one": "update 1 row",
            "delete_1pct": "delete 1 % of the rows",
            "merge_1pct": "merge 1 % of the rows",
            "z_order": "Z-order by two columns",
        },
    ),
    Chart(
        "dml_fractions",
        "Deleting a part of the rows",
        "DELETE with deletion vectors, and by rewriting the files (`delta.enableDeletionVectors` off).",
        {
            "fraction:0.00001": "0.001 %",
            "fraction:0.001": "0.1 %",
            "fraction:0.01": "1 %",
            "fraction:0.1": "10 %",
            "fraction:0.5": "50 %",
            "fraction:0.9": "90 %",
        },
    ),
    Chart(
        "log",
        "A log of a million files",
        "The table is opened, queries are planned and files are committed. No data file is read.",
        {
            "open checkpoint": "open, from a checkpoint",
            "open commits": "open, from commits",
            "plan range": "plan a query on a range",
            "plan 1 of 1000 partitions": "plan a query on 1 of 1,000 partitions",
            "refresh": "refresh after a commit",
            "append": "append a file",
            "checkpoint": "write a checkpoint",
        },
    ),
    Chart(
        "features",
        "The cost of features",
        "Each job is compared with the same job without the feature, with deltalake, or with a checkpoint of"
        " the table.",
        {
            "append": "append, constraints and generated columns",
            "delete": "delete 1 %, with the change data feed",
            "update": "update 1 %, with the feed",
            "merge": "merge 1 %, with the feed",
            "changes": "read the feed of 100 commits",
            "convert": "convert 10,000 Parquet files",
            "clone": "clone a million files, by reference",
        },
    ),
    Chart(
        "small",
        "Small tables",
        "The time of a call if there is hardly any data: the table has three rows.",
        {
            "open": "open",
            "append": "append",
            "delete": "delete",
            "update": "update",
            "merge": "merge",
            "append durable": "append, synced to the disk",
            "50 appends": "50 appends",
        },
    ),
    Chart(
        "sql",
        "SQL",
        "Queries over one table.",
        {
            "like": "LIKE '%7' over text",
            "length": "the sum of the lengths of texts",
            "group": "groups by text",
            "top": "the first 10 rows by a number",
            "top_text": "the first 10 rows by a text",
            "wide": "5 rows of 1,000 columns",
        },
    ),
    Chart(
        "tpch_embedded",
        "TPC-H in the process",
        "The 22 queries of TPC-H at scale 1 by `deltaic.sql`, compared with DuckDB on the bare files.",
        {f"q{number}": f"query {number}" for number in range(1, 23)},
    ),
    Chart(
        "tpch",
        "TPC-H on Spark",
        "The 22 queries of TPC-H at scale 1, compared with Spark's own reader on the same files. The table"
        " lineitem has\na partition for each month.",
        {f"q{number}": f"query {number}" for number in range(1, 23)},
    ),
    Chart(
        "functions",
        "Functions of SQL",
        "Processor time of all threads, compared with the most similar expression of"
        " DuckDB.\n`benches/records/functions.json` has all 349 functions, with the reason if one takes more"
        " than three times as\nlong.",
        {
            name: name
            for name in (
                "upper(s)",
                "regexp_replace(w, '[aeiou]', '_')",
                "date_trunc('YEAR', t)",
                "sort_array(a)",
                "aggregate(a, 0, (acc, v) -> acc + v)",
                "map('a', 1, 'b', i)",
                "parse_json(j)",
                "variant_get(v, '$.a', 'string')",
                "levenshtein(s, t)",
                "collect_list(i)",
                "percentile(x, 0.5)",
                "kurtosis(x)",
            )
        },
    ),
    Chart(
        "spark",
        "On Spark",
        "Spark 4.2 on two threads. The changes concern a table of 4,000,000 rows.",
        {
            "scan_two": "read two columns",
            "scan_all": "read all columns",
            "scan_selective": "read a range",
            "holes_two": "two columns, 10 % of the rows deleted",
            "append": "append 20,000,000 rows",
            "appends_50": "50 small appends",
            "delete_one": "delete 1 row",
            "update_one": "update 1 row",
            "merge_1pct": "merge 1 % of the rows",
            "z_order": "Z-order by two columns",
        },
    ),
    Chart(
        "statements",
        "Small statements and streams on Spark",
        "The session is warm. A statement changes ten rows of a million; the stream reads 200 commits in 100"
        " batches. A\nmicro-batch is timed from the commit of its rows until a running stream has copied"
        " them.",
        {
            "delete_ten": "DELETE",
            "update_ten": "UPDATE",
            "merge_ten": "MERGE",
            "queries_by_name": "100 queries by name",
            "stream": "stream of 200 commits",
            "micro_batch": "one micro-batch of 100 rows",
        },
    ),
    Chart(
        "merge_batches",
        "A stream of merges on Spark",
        "`foreachBatch` merges 20 batches of 1,000 rows, half of them new, into a table of 4,000,000 rows.",
        {"merge_batches": "20 batches"},
    ),
    Chart(
        "spark_features",
        "Change feed and constraints on Spark",
        "The session is warm. The feed has 100 commits and 3,600,000 changes, and the table has three"
        " constraints.",
        {"changes": "read the change feed", "append": "append 4,000,000 rows"},
    ),
    Chart(
        "spark_plans",
        "A log of a million files on Spark",
        "Time until the first query is planned in a new session, until it is planned in a warm session, and"
        " for a\nsecond query.",
        {"plan_first": "in a new session", "plan_warm": "in a warm session", "plan_again": "a second query"},
    ),
)


def seconds(record: Mapping[str, Any], job: str) -> dict[str, float]:
    """Returns the seconds of a job by system, deltaic first."""
    row = next(row for row in record["results"] if row["job"] == job)
    if "rivals" in row:
        rivals = {
            name: rival["seconds"] for name, rival in row["rivals"].items() if rival["seconds"] is not None
        }
        return {"deltaic": row["deltaic"], **rivals}
    return {
        name: value["seconds"]
        for name, value in row.items()
        if name in {**COLOURS, **OTHERS} and value["seconds"]
    }


def readable(value: float) -> str:
    """Seconds with their unit: `0.0124` becomes `12 ms`."""
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    if value < 0.0995:
        return f"{value * 1000:.1f} ms" if value < 0.00995 else f"{value * 1000:.0f} ms"
    return f"{value:.2f} s" if value < 9.95 else f"{value:.1f} s"


def tick_text(value: float) -> str:
    """Seconds of a tick with their unit: `0.02` becomes `20 ms`, `0.5` becomes `0.5 s`."""
    for unit, seconds in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.0999 * seconds or unit == "µs":
            return f"{value / seconds:.3g} {unit}"
    raise AssertionError(value)


def _ticks(low: float, high: float) -> list[float]:
    """Ticks between two powers of ten: the whole powers, and if they are fewer than three, also 2 and 5 times
    each."""
    powers = range(math.floor(low), math.floor(high) + 1)
    steps = (1, 2, 5) if math.floor(high) - math.ceil(low) < 2 else (1,)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low <= math.log10(step * 10.0**power) <= high
    ]


def drawing(chart: Chart, times: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Jobs as rows, systems as points on a logarithmic scale of seconds."""
    values = [value for _, row in times for value in row.values()]
    low, high = math.floor(math.log10(min(values)) * 2) / 2, math.ceil(math.log10(max(values)) * 2) / 2
    base = _TOP + _ROW * len(times)

    def place(value: float) -> float:
        return _LEFT + _WIDTH * (math.log10(value) - low) / (high - low)

    systems = list(dict.fromkeys(name for _, row in times for name in row))
    body = [label(16, 24, f"{chart.title}: seconds, logarithmic; further left is faster", class_="title")]
    x = 16.0
    for name in systems:
        text = NAMES.get(name, name)
        body.append(element("circle", cx=x + 5, cy=42.0, r=5, fill=_colour(name)))
        body.append(label(x + 15, 46, text))
        x += 34 + 6.6 * len(text)
    body.append(element("rect", x=_LEFT, y=_TOP, width=_WIDTH, height=base - _TOP, class_="frame"))
    for value in _ticks(low, high):
        body.append(element("line", x1=place(value), x2=place(value), y1=_TOP, y2=base, class_="tick"))
        body.append(label(place(value), base + 16, tick_text(value), anchor="middle"))
    for number, (text, row) in enumerate(times):
        y = _TOP + _ROW * (number + 0.5)
        body.append(label(_LEFT - 10, y + 4, text, anchor="end"))
        places = [place(value) for value in row.values()]
        body.append(element("line", x1=min(places), x2=max(places), y1=y, y2=y, stroke="#bbb"))
        for name, value in reversed(row.items()):
            about = element("title", f"{NAMES.get(name, name)}: {readable(value)}")
            body.append(
                element("circle", about, cx=place(value), cy=y, r=6, fill=_colour(name), fill_opacity=0.9)
            )
    return document(_LEFT + _WIDTH + 32, base + 32, f"{chart.title}: seconds of each system", body)


def _colour(name: str) -> str:
    return {**COLOURS, **OTHERS}[name]


_INTRODUCTION = """\
This page compares whole jobs. The systems take turns on the same data and the same machine, and the best run
of each counts. Their answers are compared before their times. The numbers are from the records in
`benches/records`, which the scripts of this repository write. `scripts/draw_benchmarks.py` writes this page
and its pictures from them. Other machines have other times, but the systems should compare in the same
way."""


def files() -> dict[str, str]:
    """Returns the text of the page and its pictures, by path below docs/."""
    texts = {}
    lines = [
        "# Benchmarks",
        "",
        _INTRODUCTION,
    ]
    for chart in CHARTS:
        record = json.loads(
            (ROOT / "benches" / "records" / f"{chart.record}.json").read_text(encoding="utf-8")
        )
        times = [(text, seconds(record, job)) for job, text in chart.jobs.items()]
        texts[f"drawings/bench-{chart.record}.svg"] = drawing(chart, times) + "\n"
        systems = list(dict.fromkeys(name for _, row in times for name in row))
        versions = [
            f"{name} {record['versions'][name]}"
            for name in ("deltaic", "deltalake", "duckdb", "pyarrow", "pyspark")
            if name in record["versions"]
        ]
        machine = record["machine"]
        # The tables of these two do not have the record's number of rows.
        rows = (
            f"{record['rows']:,} rows, "
            if "rows" in record and chart.record not in ("small", "spark_plans", "merge_batches")
            else ""
        )
        lines += [
            "",
            f"## {chart.title}",
            "",
            chart.text,
            "",
            f"![{chart.title}](drawings/bench-{chart.record}.svg)",
            "",
        ]
        lines += [
            "| job | " + " | ".join(NAMES.get(name, name) for name in systems) + " |",
            "|---" * (len(systems) + 1) + "|",
        ]
        lines += [
            f"| {text} | " + " | ".join(readable(row[name]) if name in row else "" for name in systems) + " |"
            for text, row in times
        ]
        lines += ["", f"{rows}{machine.get('processor', 'x86-64')}, {machine['cores']} cores;"]
        lines += [f"{', '.join(versions)}. Measured by:"]
        lines += ["", "```text", record["command"], "```"]
    texts["benchmarks.md"] = "\n".join(lines) + "\n"
    return texts


if __name__ == "__main__":
    for path, text in files().items():
        target = ROOT / "docs" / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target.relative_to(ROOT))
