"""Mistakes of newcomers: each error has what was found, what was expected and, if there is one, the
solution."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import deltaic
from deltaic.deltalake_names import ALTER, MODULE_OF_FRAMES, ROWS, TABLE_OF_FRAMES
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    InvalidTypeError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
    nearest_names,
    shown,
)

FRAME = pd.DataFrame(
    {
        "id": [1, 2, 3],
        "city": ["Oslo", "Rome", "Lima"],
        "degrees": [4.5, 19.0, None],
        "day": [datetime.date(2026, 1, day) for day in (1, 2, 3)],
    }
)


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    return deltaic.write(tmp_path / "weather", FRAME)


def merged(table: deltaic.DeltaTable, on: Any, source: Any = FRAME) -> object:
    return table.merge(source, on).when_matched_update_all().execute()


Case = tuple[Callable[[deltaic.DeltaTable], object], type[Exception], str]
CASES: dict[str, Case] = {
    # names of columns
    "a column": (
        lambda t: t.scan(["citty"]),
        InvalidArgumentError,
        "no such column; found 'citty'; expected city",
    ),
    "a column like none": (
        lambda t: t.scan(["x"]),
        InvalidArgumentError,
        "found 'x'; expected one of id, city, degrees, day",
    ),
    "columns as text": (
        lambda t: t.scan("id"),
        InvalidTypeError,
        "columns must be a sequence of names; found 'id'",
    ),
    "a column of a condition": (
        lambda t: t.scan(where="citty = 'Rome'"),
        InvalidArgumentError,
        "no column citty; found citty; expected city",
    ),
    "text without quotes": (
        lambda t: t.scan(where="city = Rome"),
        InvalidArgumentError,
        "found Rome; expected one of id, city, degrees, day; or 'Rome', if it is text",
    ),
    "None in SQL": (
        lambda t: t.delete("degrees = None"),
        InvalidArgumentError,
        "found None; expected NULL, which IS NULL finds",
    ),
    "a column of SQL": (
        lambda t: deltaic.sql(f"SELECT citty FROM delta.`{t.location}`"),
        InvalidArgumentError,
        "no column citty; found citty; expected city",
    ),
    "a column of a join": (
        lambda t: deltaic.sql(
            f"SELECT a.citty FROM delta.`{t.location}` a JOIN delta.`{t.location}` b ON a.id = b.id"
        ),
        InvalidArgumentError,
        "found a.citty; expected a.city",
    ),
    "a column of Z-order": (
        lambda t: t.optimize.z_order("idd"),
        InvalidArgumentError,
        "found 'idd'; expected id",
    ),
    "a partition column": (
        lambda t: deltaic.write(t.location + "2", FRAME, partition_by="citty"),
        InvalidArgumentError,
        "no such partition column; found 'citty'; expected city",
    ),
    # conditions
    "& of pandas": (
        lambda t: t.scan(where="(id > 1) & (city = 'Rome')"),
        UnsupportedFeatureError,
        r"&\(boolean, boolean\) is not supported by .*; expected AND between conditions",
    ),
    "filters as a list": (
        lambda t: t.scan(where=[("id", "=", 1)]),  # type: ignore[arg-type]
        InvalidTypeError,
        r"""found list \[\('id', '=', 1\)\]; expected text, like "id = 1\"""",
    ),
    "a frame to delete": (
        lambda t: t.delete(FRAME),  # type: ignore[arg-type]
        InvalidTypeError,
        "found DataFrame id city degrees day 0 1 Oslo",
    ),
    "a whole statement": (
        lambda t: t.delete("DELETE FROM t WHERE id = 1"),
        InvalidArgumentError,
        (
            "column 11: SQL does not parse at or near 'FROM'; found .*; expected one expression without words"
            " of a statement"
        ),
    ),
    "WHERE in a condition": (
        lambda t: t.delete("where id = 1"),
        InvalidArgumentError,
        "expected one expression without words of a statement",
    ),
    "a quote": (
        lambda t: t.scan(where="city = 'Rome"),
        InvalidArgumentError,
        "a quote, comment or number is not complete; found",
    ),
    "a bracket": (
        lambda t: t.scan(where="(id = 1"),
        InvalidArgumentError,
        r"a bracket is never closed; found '\(id = 1'",
    ),
    "no condition": (lambda t: t.scan(where=""), InvalidArgumentError, "the text is empty; found ''"),
    "half a character": (
        lambda t: t.update({"city": "'\ud83d'"}),
        InvalidArgumentError,
        "half of a surrogate pair",
    ),
    "a number as a condition": (
        lambda t: t.scan(where="id"),
        SchemaMismatchError,
        "'id': a condition must be a boolean; found long",
    ),
    "an aggregate in a condition": (
        lambda t: t.scan(where="max(id) = 1"),
        InvalidArgumentError,
        "aggregate function max cannot stand",
    ),
    "a function": (
        lambda t: t.scan(where="lenght(city) = 4"),
        UnsupportedFeatureError,
        r"function lenght\(string\) .*expected one of length",
    ),
    "a function's arguments": (
        lambda t: t.scan(where="length() = 4"),
        UnsupportedFeatureError,
        r"; expected length\(string\) or",
    ),
    # places
    "no folder": (
        lambda t: deltaic.DeltaTable(t.location + "2"),
        TableNotFoundError,
        "weather2: the path is not a Delta table; found no such folder",
    ),
    "a file": (
        lambda t: deltaic.DeltaTable(__file__),
        TableNotFoundError,
        "found a file; expected the folder of a table",
    ),
    "the log": (
        lambda t: deltaic.DeltaTable(t.location + "/_delta_log"),
        TableNotFoundError,
        "found the folder of a log; expected the folder of its table, .*weather$",
    ),
    "a tilde": (
        lambda t: deltaic.DeltaTable("~/weather"),
        TableNotFoundError,
        r"expected a path without '~': os\.path\.expanduser",
    ),
    "a number as a path": (
        lambda t: deltaic.DeltaTable(5),  # type: ignore[arg-type]
        InvalidTypeError,
        "found int; expected text or os.PathLike",
    ),
    "no path": (lambda t: deltaic.DeltaTable(""), InvalidArgumentError, "the path of a table is empty"),
    "a scheme": (
        lambda t: deltaic.DeltaTable("foo://x/y"),
        InvalidArgumentError,
        "found foo; expected a local path, file://",
    ),
    "write into a file": (
        lambda t: deltaic.write(__file__, FRAME),
        InvalidArgumentError,
        "no table can be created here; found a file; expected",
    ),
    "write below a file": (
        lambda t: deltaic.write(f"{__file__}/a/b", FRAME),
        InvalidArgumentError,
        "no table can be created here; found a file; expected",
    ),
    "a name with a NUL character": (  # which would end the name in Arrow's C interface
        lambda t: deltaic.write(t.location, pd.DataFrame({"s": [{"a\0b": 1}]}), mode="append"),
        InvalidArgumentError,
        "a column's name has a NUL character",
    ),
    "create in a log": (
        lambda t: deltaic.DeltaTable.create(t.location + "/_delta_log", "id int"),
        InvalidArgumentError,
        "no table can be created here; found the folder of a log",
    ),
    "swapped arguments": (
        lambda t: deltaic.write(FRAME, t.location),  # type: ignore[arg-type]
        InvalidTypeError,
        "path of a table has the wrong type; found DataFrame",
    ),
    "options as text": (
        lambda t: deltaic.DeltaTable(t.location, storage_options="region"),  # type: ignore[arg-type]
        InvalidTypeError,
        "storage_options has the wrong type; found str; expected a mapping",
    ),
    "a path in quotes in SQL": (
        lambda t: deltaic.sql("SELECT * FROM 'weather'"),
        InvalidArgumentError,
        r"SQL does not parse after 'weather' at the end; .*; expected delta\.`weather`",
    ),
    "a frame's name in SQL": (
        lambda t: deltaic.sql("SELECT * FROM FRAME"),
        InvalidArgumentError,
        "no such table; found `FRAME`; expected delta",
    ),
    "a path in SQL": (
        lambda t: deltaic.sql(f"SELECT * FROM delta.`{t.location}2`"),
        TableNotFoundError,
        "the path is not a Delta table; found no such folder",
    ),
    "a table in a transaction": (
        lambda t: deltaic.transaction("weather").__enter__(),  # type: ignore[arg-type]
        InvalidTypeError,
        "found str 'weather'",
    ),
    # versions
    "a version": (lambda t: t.at(7), VersionNotFoundError, "no such version; found 7; expected 0 to 0"),
    "a version as text": (
        lambda t: t.at("0"),  # type: ignore[arg-type]
        InvalidTypeError,
        "version; found '0'; expected a whole number",
    ),
    "yesterday": (
        lambda t: t.at(timestamp="yesterday"),
        InvalidArgumentError,
        "not a timestamp; found 'yesterday'; expected ISO 8601",
    ),
    "an early time": (
        lambda t: t.at(timestamp="2001-01-01"),
        VersionNotFoundError,
        "before the first version; found 2001-01-01",
    ),
    "two versions": (
        lambda t: t.at(0, timestamp="2030-01-01"),
        InvalidArgumentError,
        "version and timestamp exclude each other; found",
    ),
    "restore to nothing": (
        lambda t: t.restore(),
        InvalidArgumentError,
        "restore takes either a version or a timestamp; found version=None",
    ),
    # data
    "a second write": (
        lambda t: deltaic.write(t.location, FRAME),
        TableAlreadyExistsError,
        "already exists here; expected mode='append' or",
    ),
    "a mode": (
        lambda t: deltaic.write(t, FRAME, mode="apend"),  # type: ignore[arg-type]
        InvalidArgumentError,
        "unknown mode of write; found 'apend'; expected 'error', 'app",
    ),
    "a new column": (
        lambda t: deltaic.write(t, FRAME.assign(x=1), mode="append"),
        SchemaMismatchError,
        "x: the data has a column that the table lacks; expected .*schema_mode='merge'",
    ),
    "other columns": (
        lambda t: deltaic.write(t, FRAME.assign(x=1), mode="overwrite"),
        SchemaMismatchError,
        "expected .*schema_mode='merge' to add it, or 'overwrite' to replace the columns",
    ),
    "text for a date": (
        lambda t: deltaic.write(t, FRAME.assign(day="2026-01-01"), mode="append"),
        SchemaMismatchError,
        "day: the data's type does not fit the column's; found string; expected date",
    ),
    "text for a date, as SQL": (
        lambda t: t.update({"day": "'soon'"}),
        SchemaMismatchError,
        "column day: .*string does not fit; found .*; expected date",
    ),
    "values of two types": (
        lambda t: deltaic.write(t.location + "2", {"a": [1, "x"]}),
        SchemaMismatchError,
        "column a: ",
    ),
    "columns of two lengths": (
        lambda t: deltaic.write(t.location + "2", {"a": [1], "b": []}),
        InvalidArgumentError,
        r"found \{'a': 1, 'b': 0\}",
    ),
    "a path as data": (
        lambda t: deltaic.write(t, "weather.csv", mode="append"),
        InvalidTypeError,
        "not a source of rows; found str; expected",
    ),
    "a property": (
        lambda t: deltaic.write(t.location + "2", FRAME, properties={"delta.appendOnyl": "true"}),
        InvalidArgumentError,
        "unknown table property; found 'delta.appendOnyl'; expected .*delta.appendOnly",
    ),
    "a property's value": (
        lambda t: t.alter.set_properties({"delta.appendOnly": "yes"}),
        InvalidArgumentError,
        "property delta.appendOnly: not a boolean; found 'yes'; expected 'true' or 'false'",
    ),
    # assignments and merge
    "text for a mapping": (
        lambda t: t.update("degrees = 1"),  # type: ignore[arg-type]
        InvalidTypeError,
        "found str 'degrees = 1'; expected {'column': 'SQL'}",
    ),
    "text in an update": (
        lambda t: t.update({"city": "Berlin"}),
        InvalidArgumentError,
        "found Berlin; expected .* or 'Berlin', if it is text",
    ),
    "keys as a list": (
        lambda t: merged(t, ["id"]),
        InvalidTypeError,
        r"found list \['id'\]; expected text, like 't.id = s.id'",
    ),
    "a key alone": (
        lambda t: merged(t, "id"),
        InvalidArgumentError,
        r"column id is ambiguous; found id; expected t\.id or s\.id",
    ),
    "another alias": (
        lambda t: merged(t, "target.id = s.id"),
        InvalidArgumentError,
        r"found target\.id; expected one of t\.id, s\.id",
    ),
    "a key that is missing": (
        lambda t: merged(t, "t.id = s.idd"),
        InvalidArgumentError,
        r"found s\.idd; expected s\.id$",
    ),
    "a source without columns": (
        lambda t: merged(t, "t.id = s.id", FRAME[["id"]]),
        SchemaMismatchError,
        "city, degrees, day: .*found id; expected",
    ),
    "a source by its path": (
        lambda t: merged(t, "t.id = s.id", "news.csv"),
        InvalidTypeError,
        "not a source of rows; found str; expected Arrow",
    ),
    "a merge without clauses": (
        lambda t: t.merge(FRAME, "t.id = s.id").execute(),
        InvalidArgumentError,
        "expected when_matched_",
    ),
    # upkeep and definition
    "hours": (
        lambda t: t.vacuum(retention=7),  # type: ignore[arg-type]
        InvalidTypeError,
        "retention has the wrong type; found int; expected datetime.timedelta",
    ),
    "a short retention": (
        lambda t: t.vacuum(retention=datetime.timedelta(0)),
        InvalidArgumentError,
        "found 0:00:00; expected at least 7 days",
    ),
    "a type": (
        lambda t: t.alter.add_columns("x strng"),
        InvalidArgumentError,
        "character 3 of 'x strng': .*; found 'strng'; expected a type",
    ),
    "a column that is there": (
        lambda t: t.alter.add_columns("ID int"),
        InvalidArgumentError,
        "(?i)id: the column exists already",
    ),
    "a column of a constraint": (
        lambda t: t.alter.add_constraints({"c": "idd > 0"}),
        InvalidArgumentError,
        "found idd; expected id",
    ),
    "dropping a column": (
        lambda t: t.alter.drop_columns("id"),
        InvalidArgumentError,
        "expected alter.set_properties.*'name'.* first",
    ),
    "memory": (
        lambda t: deltaic.configure(memory_limit="lots"),
        InvalidArgumentError,
        "memory_limit: not a size; found 'lots'; expected bytes",
    ),
    "a time zone": (
        lambda t: deltaic.configure(time_zone="Mars"),
        InvalidArgumentError,
        "found 'Mars'; expected an IANA name",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake(name: str, table: deltaic.DeltaTable) -> None:
    call, kind, message = CASES[name]
    with pytest.raises(kind, match=message) as raised:
        call(table)
    assert isinstance(raised.value, DeltaError)
    assert "\n" not in str(raised.value)
    assert deltaic.DeltaTable(table.location).version == 0


def test_parquet_files_without_a_log(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(
        TableNotFoundError, match=r"found Parquet files without a log; expected .*DeltaTable\.convert\(path\)"
    ):
        deltaic.DeltaTable(tmp_path)
    assert deltaic.DeltaTable.convert(tmp_path).scan().count() == 3


@pytest.mark.parametrize(
    ("of", "names"),
    [("table", TABLE_OF_FRAMES), ("rows", ROWS), ("module", MODULE_OF_FRAMES), ("alter", ALTER)],
    ids=lambda item: str(item)[:6],
)
def test_names_of_other_packages(of: str, names: dict[str, str], table: deltaic.DeltaTable) -> None:
    owner = {"table": table, "rows": table.scan(), "module": deltaic, "alter": table.alter}[of]
    for name, ours in names.items():
        with pytest.raises(AttributeError, match=re.escape(ours)):
            getattr(owner, name)


def test_the_names_that_are_recommended_are_there(table: deltaic.DeltaTable) -> None:
    owners = ((table, TABLE_OF_FRAMES), (table.scan(), ROWS), (table.alter, ALTER))
    for owner, names in owners:
        for ours in names.values():
            first = re.split(r"[.(\[ ]", ours)[0]
            assert first in ("deltaic", "scan") or hasattr(owner, first), ours


def test_nearest_names() -> None:
    assert nearest_names("x", []) is None
    assert nearest_names("x", ["Abc"]) == "Abc"
    assert nearest_names("IDD", ["id", "City"]) == "id"
    assert nearest_names("t.idd", ["t.id", "s.id", "t.x"]) == "one of t.id, s.id"
    assert nearest_names("zz", [f"a{number}" for number in range(30)], 3) == "one of a0, a1, a2, ..."


def test_a_value_is_shown_in_one_short_line() -> None:
    assert shown(5) == "int 5"
    assert shown("a" * 500) == f"str '{'a' * 75}"
    assert "\n" not in shown(FRAME)
