"""Pictures: well-formed SVG whose rectangles have the positions of the files' statistics."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import InvalidArgumentError, VersionNotFoundError
from deltaic.pictures import layout, sizes

SVG = "{http://www.w3.org/2000/svg}"
DAY = date(2024, 1, 1)
ZERO = datetime(2024, 5, 1, tzinfo=timezone.utc)


@pytest.fixture
def table(tmp_path: Path) -> deltaic.DeltaTable:
    """Six files with disjoint ranges of every kind of column; of the last two, `empty` is null."""
    for number in range(6):
        rows = range(number * 10, number * 10 + 10)
        data = pa.table(
            {
                "whole": pa.array(rows, pa.int64()),
                "price": pa.array([row / 4 for row in rows]),
                "day": pa.array([DAY + timedelta(days=31 * row) for row in rows]),
                "at": pa.array([ZERO + timedelta(minutes=row) for row in rows]),
                "name": pa.array([f"<k{row:03}>" for row in rows]),
                "flag": pa.array([number % 2 == 0] * 10),
                "empty": pa.array([None if number > 3 else row for row in rows], pa.int64()),
                "st": pa.array([{"x": row} for row in rows]),
            }
        )
        last = deltaic.write(tmp_path / "t", data, mode="append")
    return last


def rectangles(picture: deltaic.Picture, *classes: str) -> dict[str, dict[str, float]]:
    """x, y, width, height of each file by its path; of files that come twice (two panels) the last one."""
    found = {}
    for item in ElementTree.fromstring(picture.svg).iter(f"{SVG}rect"):
        title = item.find(f"{SVG}title")
        if title is not None and (not classes or item.get("class") in classes):
            path = str(title.text).split("\n")[0]
            found[path] = {name: float(str(item.get(name))) for name in ("x", "y", "width", "height")}
    return found


def texts(picture: deltaic.Picture) -> list[str]:
    return [str(item.text) for item in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


def fit(pixels: list[float], values: list[float]) -> float:
    """Distance in pixels of the worst point from the straight line through all."""
    line = np.polyfit(values, pixels, 1)
    return float(np.abs(np.polyval(line, values) - np.array(pixels)).max())


COLUMNS: dict[str, Any] = {
    "whole": float,
    "price": float,
    "day": lambda value: value.toordinal(),
    "at": lambda value: value.timestamp(),
    "st.x": float,
}


@pytest.mark.parametrize(("x", "y"), [(x, y) for x in COLUMNS for y in ("whole", "day", "at") if x != y])
def test_rectangles_are_the_statistics(table: deltaic.DeltaTable, x: str, y: str) -> None:
    drawn = rectangles(table.optimize.picture([x, y]))
    files = {row["path"]: row for row in table.files()}
    assert drawn.keys() == files.keys()

    def bound(path: str, which: str, column: str) -> float:
        value = files[path][which]
        for part in column.split("."):
            value = value[part]
        return float(COLUMNS[column](value))

    across = [(rect["x"], bound(path, "min_values", x)) for path, rect in drawn.items()]
    across += [(rect["x"] + rect["width"], bound(path, "max_values", x)) for path, rect in drawn.items()]
    assert fit(*map(list, zip(*across, strict=True))) < 0.05
    # Pixels grow downwards: the minimum is the lower edge.
    down = [(rect["y"] + rect["height"], bound(path, "min_values", y)) for path, rect in drawn.items()]
    down += [(rect["y"], bound(path, "max_values", y)) for path, rect in drawn.items()]
    pixels, values = map(list, zip(*down, strict=True))
    assert fit(pixels, values) < 0.05
    assert (
        np.polyfit(values, pixels, 1)[0]
        < 0
        < np.polyfit(*map(list, zip(*[(v, p) for p, v in across], strict=True)), 1)[0]
    )


def test_text_lies_in_order_and_its_labels_are_escaped(table: deltaic.DeltaTable) -> None:
    picture = table.optimize.picture(["name", "whole"])
    drawn = rectangles(picture)
    order = sorted(table.files(), key=lambda row: row["min_values"]["name"])
    edges = [
        edge
        for row in order
        for edge in (drawn[row["path"]]["x"], drawn[row["path"]]["x"] + drawn[row["path"]]["width"])
    ]
    assert edges == sorted(edges)
    assert "<k000>" in texts(picture)


def test_labels_leave_out_what_all_texts_begin_with(tmp_path: Path) -> None:
    for end in "abc":
        table = deltaic.write(
            tmp_path / "t", pa.table({"url": [f"https://example.org/path/{end}1"]}), mode="append"
        )
    assert {"…a1", "…b1", "…c1"} <= set(texts(table.optimize.picture("url")))
    for column in ("ab1", "ab2"):
        short = deltaic.write(tmp_path / "s", pa.table({"t": [column]}), mode="append")
    assert {"ab1", "ab2"} <= set(texts(short.optimize.picture("t")))


def test_a_column_of_booleans(table: deltaic.DeltaTable) -> None:
    partitioned = deltaic.write(
        table.location + "b", pa.table({"f": [True, False], "n": [1, 2]}), partition_by="f"
    )
    picture = partitioned.optimize.picture(["f", "n"])
    assert len(rectangles(picture)) == 2
    assert {"true", "false"} <= set(texts(picture))


def test_a_condition_colours_the_files_that_a_scan_reads(table: deltaic.DeltaTable) -> None:
    where = "whole >= 40"
    for kind, read, skipped in (("layout", "read", "skipped"), ("sizes", "live read", "live skipped")):
        columns = ["whole", "day"] if kind == "layout" else None
        picture = table.optimize.picture(columns, where, kind=kind)  # type: ignore[arg-type]
        expected = set(table.files(where).to_arrow()["path"].to_pylist())
        assert 0 < len(expected) < 6
        assert set(rectangles(picture, read)) == expected
        assert len(rectangles(picture, skipped)) == 6 - len(expected)
    assert table.scan(where=where).explain().files_read == len(expected)


def test_files_of_nulls_lie_in_a_strip_of_their_own(table: deltaic.DeltaTable) -> None:
    picture = table.optimize.picture(["empty", "whole"])
    drawn = rectangles(picture)
    alone = {row["path"] for row in table.files() if row["min_values"]["empty"] is None}
    assert len(alone) == 2
    assert max(drawn[path]["x"] + drawn[path]["width"] for path in alone) < min(
        drawn[path]["x"] for path in drawn.keys() - alone
    )
    assert "null" in texts(picture)
    assert picture.notes == ()


def test_before_and_after(table: deltaic.DeltaTable) -> None:
    table.optimize.z_order(["whole", "day"])
    picture = table.optimize.picture(["whole", "day"], before=5)
    headings = [text for text in texts(picture) if text.startswith("version")]
    assert [heading.split(",")[0] for heading in headings] == ["version 5: 6 files", "version 6: 1 file"]
    old = rectangles(table.at(5).optimize.picture(["whole", "day"]))
    assert rectangles(picture).items() >= old.items(), (
        "the left panel has the axes of both versions, here the same"
    )
    with pytest.raises(VersionNotFoundError):
        table.optimize.picture(before=99)


def test_files_without_statistics_are_counted(tmp_path: Path) -> None:
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    bare = deltaic.write(tmp_path / "t", pa.table({"a": [1], "b": [2]}), properties=properties)
    with pytest.raises(
        InvalidArgumentError, match=r"column a: no file has statistics of the column; found 1 files"
    ):
        bare.optimize.picture(["a", "b"])
    with pytest.raises(InvalidArgumentError, match="no column of the table has statistics"):
        bare.optimize.picture()
    bare.alter.unset_properties("delta.dataSkippingNumIndexedCols")
    deltaic.write(bare, pa.table({"a": [3, 5], "b": [4, 6]}), mode="append")
    picture = bare.optimize.picture(["a", "b"])
    (note,) = picture.notes
    assert note == "Version 2: 1 of 2 files have no statistics of a or b and are not drawn."
    assert note in texts(picture)
    assert len(rectangles(picture)) == 1


def test_columns_by_default(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    assert "t: files over whole and price" in texts(table.optimize.picture())
    clustered = deltaic.write(tmp_path / "c", pa.table({"a": [1], "b": [2], "c": [3]}), cluster_by=["c", "b"])
    assert "c: files over c and b" in texts(clustered.optimize.picture())


def test_one_column_has_a_lane_for_each_file(table: deltaic.DeltaTable) -> None:
    drawn = rectangles(table.optimize.picture("whole"))
    lanes = sorted((rect["y"], rect["y"] + rect["height"]) for rect in drawn.values())
    assert len(lanes) == 6
    assert all(upper[1] <= lower[0] for upper, lower in pairwise(lanes))


def test_sizes_and_deleted_rows(table: deltaic.DeltaTable) -> None:
    table.alter.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("whole in (1, 2, 3, 45)")
    picture = table.optimize.picture(kind="sizes")
    live, deleted = rectangles(picture, "live"), rectangles(picture, "deleted")
    files = {row["path"]: row for row in table.files()}
    tallest = max(files.values(), key=lambda row: row["size"])
    for path, row in files.items():
        part = (row["deletion_vector"] or {"cardinality": 0})["cardinality"] / row["num_records"]
        whole = live[path]["height"] + deleted.get(path, {"height": 0})["height"]
        everything = live[tallest["path"]]["height"] + deleted.get(tallest["path"], {"height": 0})["height"]
        assert whole / everything == pytest.approx(row["size"] / tallest["size"], abs=0.001)
        assert (path in deleted) == bool(part)
        if part:
            assert deleted[path]["height"] / whole == pytest.approx(part, abs=0.001)
    assert any("4 rows deleted in 2 of them" in text for text in texts(picture))


def test_history(table: deltaic.DeltaTable) -> None:
    table.delete("whole = 1")
    picture = table.optimize.picture(kind="history")
    circles = list(ElementTree.fromstring(picture.svg).iter(f"{SVG}circle"))
    assert len(circles) == 7
    places = [float(str(circle.get("cx"))) for circle in circles]
    assert places == sorted(places)
    said = [str(circle[0].text).split("\n")[0] for circle in circles]
    assert said == [*(f"version {number}: WRITE" for number in range(6)), "version 6: DELETE"]
    assert {"WRITE (6)", "DELETE (1)"} <= set(texts(picture))
    assert len({circle.get("cy") for circle in circles}) == 2


def test_of_many_files_some_are_drawn(table: deltaic.DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST", 4)
    picture = table.optimize.picture(["whole", "day"], "whole between 20 and 35")
    assert len(rectangles(picture)) == 4
    assert set(rectangles(picture, "read")) == set(
        table.files("whole between 20 and 35").to_arrow()["path"].to_pylist()
    )
    assert picture.notes == ("Version 5: 4 of 6 files are drawn.",)
    monkeypatch.setattr(sizes, "MOST", 5)
    picture = table.optimize.picture(kind="sizes")
    assert (len(rectangles(picture)), picture.notes) == (5, ("Version 5: 5 of 6 files are drawn.",))


def test_an_empty_table(tmp_path: Path) -> None:
    empty = deltaic.DeltaTable.create(tmp_path / "t", "a long, b long")
    for picture in (
        empty.optimize.picture(),
        empty.optimize.picture(kind="sizes"),
        empty.optimize.picture(kind="history"),
    ):
        ElementTree.fromstring(picture.svg)
    assert empty.optimize.picture(["a", "b"]).notes == ("Version 0 has no files.",)


def test_long_texts_stay_in_the_drawing(tmp_path: Path) -> None:
    name = "a_column_with_a_name_of_more_letters_than_fit_into_a_headline"
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    table = deltaic.write(tmp_path / "t", {name: [1], "b": [1]}, properties=properties)
    table.alter.unset_properties("delta.dataSkippingNumIndexedCols")
    deltaic.write(table, {name: [2], "b": [2]}, mode="append")
    picture = table.optimize.picture([name, "b"])
    width = float(ElementTree.fromstring(picture.svg).get("width", ""))
    title = next(text for text in texts(picture) if text.startswith("t: files"))
    assert title.endswith("…")
    assert len(title) * 14 * 0.6 < width
    assert "are not drawn." in " ".join(texts(picture))


def test_values_that_xml_cannot_hold(tmp_path: Path) -> None:
    data = pa.table(
        {
            "a`\x1b<&": ["\x00\x1b]0;x\x07", "\uffff&<>'\"", "\U0001f600" * 40],
            "b": [float("inf"), float("nan"), -0.0],
        }
    )
    properties = {"delta.columnMapping.mode": "name"}
    table = deltaic.write(tmp_path / "t<&>", data, properties=properties)
    picture = table.optimize.picture([deltaic.col("a`\x1b<&"), "b"], f"b < {10**300}e0")
    ElementTree.fromstring(picture.svg)
    assert "\x1b" not in picture.svg


@pytest.mark.parametrize("when", [date(1, 1, 1), date(9999, 12, 31)])
def test_dates_at_the_ends_of_time(tmp_path: Path, when: date) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"d": [DAY], "n": [1]}))
    deltaic.write(table, pa.table({"d": [when], "n": [2]}), mode="append")
    picture = table.optimize.picture(["d", "n"])
    assert len(rectangles(picture)) == 2
    labels = [text for text in texts(picture) if re.fullmatch(r"\d{4}", text)]
    assert 2 <= len(labels) <= 6


def test_refused_arguments(table: deltaic.DeltaTable) -> None:
    picture: Any = table.optimize.picture
    for arguments, message in (
        ({"columns": ["nope"]}, "nope"),
        ({"columns": ["whole", "whole"]}, "comes twice; found whole"),
        ({"columns": ["whole", "day", "at"]}, "found 3 columns; expected one or two"),
        ({"columns": []}, "found 0 columns"),
        ({"columns": ["st"]}, "column st: values of the column have no order to draw; found struct"),
        ({"kind": "pie"}, "unknown kind of picture; found 'pie'"),
        ({"kind": "sizes", "columns": ["whole"]}, "of kind 'sizes' does not take columns="),
        ({"kind": "history", "where": "whole = 1"}, "of kind 'history' does not take where="),
        ({"kind": "history", "before": 0}, "of kind 'history' does not take before="),
        ({"where": "nope = 1"}, "nope"),
    ):
        with pytest.raises(InvalidArgumentError, match=re.escape(message)):
            picture(**arguments)


def test_a_picture_shows_itself_and_is_saved(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    picture = table.optimize.picture()
    assert picture._repr_svg_() == picture.svg
    picture.save(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text(encoding="utf-8") == picture.svg
    assert repr(picture).startswith("Picture(")


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deltaic.cli", "picture", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_command(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    out = tmp_path / "p.svg"
    done = _command(
        table.location, "--columns", "whole, day", "--where", "whole < 5", "--before", "2", "-o", str(out)
    )
    assert done.returncode == 0, done.stderr
    assert (
        out.read_text(encoding="utf-8") == table.optimize.picture(["whole", "day"], "whole < 5", before=2).svg
    )
    done = _command(table.location, "--kind", "history", "--version", "3")
    assert done.stdout.strip() == table.at(3).optimize.picture(kind="history").svg
    done = _command(table.location, "--kind", "pie")
    assert (done.returncode, "unknown kind of picture" in done.stderr) == (1, True)


def test_the_style_of_a_picture_stays_inside_it(table: deltaic.DeltaTable) -> None:
    """A notebook puts the SVG into its page, where a rule for `text` would change other drawings."""
    (style,) = ElementTree.fromstring(table.optimize.picture().svg).iter(f"{SVG}style")
    assert all(rule.startswith(".deltaic-picture ") for rule in re.findall(r"([^{}]+)\{", str(style.text)))


def _cells(html: str) -> list[str]:
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [cell.text or "" for cell in root.iter() if cell.tag in ("td", "th")]


def test_html_of_odd_rows(tmp_path: Path) -> None:
    far = pa.array([10**7], pa.int32()).cast(pa.date32())  # after the year 9999, where Python has no date
    data = pa.table({"d": far, "st": pa.array([{"a": 1, "b": {"c": 2, "e": 3}}])})
    table = deltaic.write(tmp_path / "t", data)
    assert _cells(table.scan(["d"])._repr_html_()) == ["d", str(data["d"].cast(pa.string())[0])]
    assert _cells(table.scan(["st.a", "st.b.c"])._repr_html_()) == ["st", "{'a': 1, 'b': {'c': 2}}"]
    assert _cells(table.scan(["st.a", "st.b.c"], "st.a = 2")._repr_html_()) == ["st"]
    assert _cells(deltaic.sql("SELECT 1 AS a, 2 AS a")._repr_html_()) == ["a", "a", "1", "2"]


def test_on_spark(table: deltaic.DeltaTable, spark: Any) -> None:
    """A picture is that of the embedded engine; HTML takes the first rows and leaves the others where they
    are."""
    table.alter.set_properties({"delta.enableChangeDataFeed": "true"})
    table.delete("whole < 30")
    there = deltaic.DeltaTable(table.location, spark=spark)
    for kind in ("layout", "sizes", "history"):
        found = there.optimize.picture(kind=kind).svg  # type: ignore[arg-type]
        assert found == table.optimize.picture(kind=kind).svg  # type: ignore[arg-type]
    where = "whole > 45"
    assert (
        there.optimize.picture(["whole", "day"], where).svg
        == table.optimize.picture(["whole", "day"], where).svg
    )
    assert "<p>The first 10 rows.</p>" in there.scan(["whole"])._repr_html_()
    assert _cells(there.scan(["whole"], "whole = 45")._repr_html_()) == ["whole", "45"]
    assert "<p>The first 10 rows.</p>" in there.changes(7, columns=["whole", "_change_type"])._repr_html_()
    assert _cells(there.scan(["st.x"], "whole = 45")._repr_html_()) == ["st", "{'x': 45}"]


def test_html_for_notebooks(table: deltaic.DeltaTable, tmp_path: Path) -> None:
    data = pa.table({"<b>": [f"<i>{number}" for number in range(12)]})
    odd = deltaic.write(tmp_path / "o", data, properties={"delta.columnMapping.mode": "name"})

    rows = odd.scan()._repr_html_()
    assert _cells(rows) == ["<b>", *(f"<i>{number}" for number in range(10))]
    assert "<p>The first 10 rows.</p>" in rows
    assert "<p>2 rows.</p>" in odd.scan(limit=2)._repr_html_()
    assert "<p>1 row.</p>" in deltaic.sql("SELECT 1 AS one")._repr_html_()
    assert _cells(deltaic.sql("SELECT id FROM range(30)")._repr_html_())[-1] == "9"
    assert "<p>0 rows.</p>" in odd.scan(limit=0)._repr_html_()
    assert odd.files()._repr_html_().count("<tr>") == 2
    shown = _cells(table._repr_html_())
    assert shown[shown.index("version") + 1] == "5"
    assert shown[shown.index("rows") + 1] == "60"
    assert shown[shown.index("st") + 1] == "struct<x: long>"
    assert _cells(table.schema._repr_html_())[:4] == ["column", "type", "nullable", "comment"]
    history = table.history()
    assert isinstance(history, list)
    time = f"{history[0]['timestamp']:%Y-%m-%d %H:%M:%S}"
    assert _cells(history._repr_html_())[4:7] == ["5", time, "WRITE"]  # type: ignore[attr-defined]
    assert json.dumps([entry["version"] for entry in history]) == "[5, 4, 3, 2, 1, 0]"
    report = table.scan(where="whole = 1").explain()._repr_html_()
    assert "6 in the table" in report
    two = deltaic.sql("SELECT 1 AS number, 'a' AS text")._repr_html_()
    assert '<th>number</th><th style="text-align: left">text</th>' in two
    assert '<td>1</td><td style="text-align: left">a</td>' in two
