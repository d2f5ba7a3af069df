"""Partition columns generated from others, and functions that keep the order of a column: fewer files are
read, and the rows are the same."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.rows.scan import scan

MOMENTS = [
    dt.datetime(year, month, day, hour, 59, 59, 999_999)
    for year in (1, 999, 2023, 2024, 9999)
    for month, day in ((1, 1), (6, 15), (12, 31))
    for hour in (0, 11, 23)
]
# Generated column, its type, what Spark's session with a clock `ahead` of UTC makes of a moment.
GENERATED: dict[str, tuple[str, pa.DataType, str]] = {
    "g_year": ("year({})", pa.int32(), "%Y"),
    "g_month": ("MONTH({})", pa.int32(), "%m"),
    "g_day": ("day({})", pa.int32(), "%d"),
    "g_hour": ("hour({})", pa.int32(), "%H"),
    "g_date": ("CAST({} AS DATE)", pa.date32(), "date"),
    "g_text": ("date_format({}, 'yyyy-MM-dd-HH')", pa.string(), "text"),
    "g_trunc": ("trunc({}, 'MM')", pa.date32(), "first"),
    "g_hours": ("date_trunc('DAY', {})", pa.timestamp("us"), "midnight"),
}


def made(how: str, moment: dt.datetime) -> Any:
    if how.startswith("%"):
        return int(moment.strftime(how))
    if how == "text":
        return f"{moment.year:04}-{moment.month:02}-{moment.day:02}-{moment.hour:02}"
    if how == "first":
        return moment.date().replace(day=1)
    return moment.date() if how == "date" else moment.replace(hour=0, minute=0, second=0, microsecond=0)


def table_of(path: Path, base: str, names: list[str], ahead: int) -> deltaic.DeltaTable:
    """Written by a session whose clock was `ahead` hours of UTC's."""
    clock = [None, *MOMENTS]
    shift = dt.timedelta(hours=ahead if base == "timestamp" else 0)
    instants = [None if moment is None or not 2 < moment.year < 9999 else moment - shift for moment in clock]
    shown = [None if moment is None else moment + shift for moment in instants]
    column = {
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "date": pa.date32(),
    }[base]
    values = [moment.date() if moment is not None and base == "date" else moment for moment in instants]
    if base == "date":
        shown = [None if value is None else dt.datetime.combine(value, dt.time()) for value in values]
    columns = {"c": pa.array(values, column), "n": pa.array(range(len(values)))}
    for name in names:
        _, kind, how = GENERATED[name]
        if name == "g_hours" and base == "timestamp":
            kind = pa.timestamp("us", "UTC")
        cells = [None if moment is None else made(how, moment) for moment in shown]
        columns[name] = pa.array(
            [cell - shift if cell is not None and name == "g_hours" else cell for cell in cells], kind
        )
    table = deltaic.write(path, pa.table(columns), partition_by=names)
    return declared(table, {name: GENERATED[name][0].format("c") for name in names})


def declared(table: deltaic.DeltaTable, expressions: dict[str, str]) -> deltaic.DeltaTable:
    """Returns the table with these columns as generated ones. deltaic must not write rows to it
    afterwards."""
    log = Path(table.location.removeprefix("file://")) / "_delta_log"
    lines = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    (metadata,) = (line["metaData"] for line in lines if "metaData" in line)
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        if field["name"] in expressions:
            field["metadata"]["delta.generationExpression"] = expressions[field["name"]]
    metadata["schemaString"] = json.dumps(schema)
    (protocol,) = (line["protocol"] for line in lines if "protocol" in line)
    protocol["minWriterVersion"] = 7
    protocol["writerFeatures"] = sorted({*protocol.get("writerFeatures", []), "generatedColumns"})
    (log / f"{table.version + 1:020}.json").write_text(
        "\n".join(json.dumps(line) for line in ({"metaData": metadata}, {"protocol": protocol}))
    )
    return deltaic.DeltaTable(table.location)


CONDITIONS = (
    "c >= '2024-06-15'",
    "c < '2024-01-01 00:00:00'",
    "c = '2024-06-15 11:59:59.999999'",
    "c > '2023-12-31 23:30:00' and c <= '2024-01-01 12:00:00'",
    "c between '2024-06-15 10:00:00' and '2024-06-15 12:00:00'",
    "c in ('2023-06-15 11:59:59.999999', '2024-12-31 23:59:59.999999')",
    "c < '1000-01-01 00:00:00' or c = '2024-06-15 00:59:59.999999'",
    "c is null",
    "c is not null",
    "not c > '2023-06-15 00:00:00'",
    "not (c > '2023-06-15 00:00:00' and c <= '2024-06-15 11:59:59.999999')",
    "not (c < '2023-06-15 00:00:00' or not c >= '2024-01-01 00:00:00')",
    "date(c) = '2024-06-15'",
    "to_date(c) > date'2023-12-31'",
    "cast(c as date) <= '2023-06-15'",
    "year(c) = 2024",
    "2023 >= year(c)",
    "year(c) between 2024 and 9999",
    "cast(c as date) between '2023-06-15' and '2024-01-01'",
)


@pytest.mark.parametrize(
    ("base", "ahead"),
    [("timestamp", 0), ("timestamp", 14), ("timestamp", -12), ("timestamp_ntz", 0), ("date", 0)],
)
def test_the_same_rows(tmp_path: Path, base: str, ahead: int) -> None:
    engine = LocalEngine()
    names = [name for name in GENERATED if base != "date" or name not in ("g_hour", "g_hours")]
    table = table_of(tmp_path / "t", base, names, ahead)
    for zone in ("UTC", "Asia/Kolkata"):
        with deltaic.configure(time_zone=zone):
            for where in CONDITIONS:
                whole, narrow = (
                    scan(table._snapshot, engine, ["n"], where, skipping=skipping)
                    for skipping in (False, True)
                )
                assert sorted(narrow.to_arrow()["n"].to_pylist()) == sorted(
                    whole.to_arrow()["n"].to_pylist()
                ), (where, zone)


@pytest.mark.parametrize(
    ("names", "where", "files"),
    [
        ("g_year", "c >= '2024-06-15 00:00:00'", 2),
        ("g_year", "c < '2023-06-01 00:00:00'", 3),
        ("g_date", "c between '2024-06-15 00:00:00' and '2024-06-15 23:00:00'", 2),
        ("g_text", "c < '2023-01-01 11:00:00'", 12),
        ("g_trunc", "c = '2023-06-15 11:59:59.999999'", 2),
        ("g_hours", "c > '2024-12-31 05:00:00'", 2),
        ("g_hour", "c between '2024-06-15 11:00:00' and '2024-06-15 11:59:59'", 2),
        ("g_month", "c between '2024-06-01 00:00:00' and '2024-06-30 00:00:00'", 2),
        ("g_year", "c is null", 1),
        ("g_year", "year(c) = 2024", 2),
        ("g_year", "not c < '2024-06-15 00:00:00'", 2),
        ("g_year g_month", "c >= '2024-06-15 00:00:00'", 3),
        ("g_year g_month g_day", "c > '2023-06-15 23:30:00' and c < '2024-06-15 00:00:00'", 5),
        ("g_year g_month g_day g_hour", "c < '2023-06-15 12:00:00'", 15),
        ("g_month g_day", "c >= '2024-06-15 00:00:00'", 4),
        ("g_year", "not (c < '2024-06-15 00:00:00' or c is null and not c > '2024-01-01 00:00:00')", 2),
    ],
)
def test_files_that_cannot_match_are_left_out(tmp_path: Path, names: str, where: str, files: int) -> None:
    """Partition values alone: the statistics of the column itself are taken away. The file of the null is
    always one of them."""
    table = table_of(tmp_path / "t", "timestamp_ntz", names.split(), 0)
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    (tmp_path / "t" / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("\n".join(json.dumps(line) for line in lines))
    table = deltaic.DeltaTable(table.location)
    found = table.files(where).to_arrow()
    assert len(found) == files


def test_prefixes_and_copies(tmp_path: Path) -> None:
    words = ["a", "abc", "abd", "abdomen", "äb", "b", "zz", None]
    data = pa.table({"c": words, "n": range(8), "p": [word and word[:2] for word in words], "same": words})
    table = deltaic.write(tmp_path / "t", data, partition_by=["p", "same"])
    table = declared(table, {"p": "substring(c, 0, 2)", "same": "c"})
    for where in (
        "c = 'abd'",
        "c >= 'abd'",
        "c < 'abd'",
        "c like 'abd%'",
        "c in ('a', 'zz')",
        "c is null",
        "c > 'ab' and c < 'ac'",
    ):
        whole, narrow = (
            scan(table._snapshot, LocalEngine(), ["n"], where, skipping=skipping)
            for skipping in (False, True)
        )
        assert sorted(narrow.to_arrow()["n"].to_pylist()) == sorted(whole.to_arrow()["n"].to_pylist()), where
    pushed = json.loads(scan(table._snapshot, LocalEngine(), ["n"], "c = 'abd'").explain().pushed or "")
    assert [arg["args"][0] for arg in pushed["args"][1]["args"] if arg["args"][0]["column"] == ["p"]] == [
        {"op": ">=", "column": ["p"], "literal": "ab"},
        {"op": "<=", "column": ["p"], "literal": "ab"},
    ]


def test_an_expression_that_is_not_known_says_nothing(tmp_path: Path) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"c": [1, 2], "p": [2, 4]}), partition_by=["p"])
    for expression in ("c * 2", "no such(", "other", "substring(c, 2, 1)", "c \\\\ 2"):
        table = declared(table, {"p": expression})
        assert table.scan(where="c >= 2").to_arrow()["p"].to_pylist() == [4]
