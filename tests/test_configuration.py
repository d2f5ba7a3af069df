"""configure(): settings for the process, or until the end of a `with` block."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, configuration
from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError


@pytest.fixture(autouse=True)
def _restored() -> Any:
    before = configuration._process
    yield
    configuration._process = before


def test_with_puts_back_what_it_changed() -> None:
    before = configuration.current()
    with deltaic.configure(memory_limit="4GB", threads=2) as settings:
        assert settings.memory_limit == 4_000_000_000
        assert configuration.current().threads == 2
        with deltaic.configure(threads=1):
            assert (configuration.current().threads, configuration.current().memory_limit) == (
                1,
                4_000_000_000,
            )
        assert configuration.current().threads == 2
    assert configuration.current() == before


def test_without_with_the_change_stays() -> None:
    deltaic.configure(time_zone="Europe/Berlin", durable=False)
    assert (configuration.current().time_zone, configuration.current().durable) == ("Europe/Berlin", False)
    deltaic.configure(threads=3)
    assert configuration.current().time_zone == "Europe/Berlin"


def _in_a_thread(function: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_with_is_for_its_own_context_alone() -> None:
    deltaic.configure(threads=5)
    with deltaic.configure(time_zone="Europe/Berlin", threads=2):
        other = _in_a_thread(configuration.current)
        assert (other.time_zone, other.threads) == ("UTC", 5)
        _in_a_thread(lambda: deltaic.configure(durable=False))  # for the process
        assert (configuration.current().time_zone, configuration.current().durable) == (
            "Europe/Berlin",
            False,
        )
        assert asyncio.run(asyncio.to_thread(configuration.current)).threads == 2
    assert (
        configuration.current().time_zone,
        configuration.current().threads,
        configuration.current().durable,
    ) == ("UTC", 5, False)


def test_blocks_of_threads_that_overlap_put_back_what_was() -> None:
    barrier, seen = threading.Barrier(2, timeout=30), []

    def block(first: bool) -> None:
        barrier.wait()
        with deltaic.configure(threads=1 if first else 2):
            barrier.wait()
            seen.append((first, configuration.current().threads))
            barrier.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(block, [True, False]))
    assert sorted(seen) == [(False, 2), (True, 1)]
    assert configuration.current().threads is None


def test_a_change_inside_a_block_holds_there_and_stays() -> None:
    with deltaic.configure(threads=2):
        deltaic.configure(threads=3)
        assert configuration.current().threads == 3
    assert configuration.current().threads == 3


def test_a_setting_may_be_entered_late_and_twice() -> None:
    setting = deltaic.configure(threads=4)
    assert _in_a_thread(configuration.current).threads == 4
    deltaic.configure(durable=False)
    for _ in range(2):
        with setting:
            assert configuration.current().threads == 4
            assert _in_a_thread(configuration.current).threads is None
        assert (configuration.current().threads, configuration.current().durable) == (None, False)


def test_rows_keep_the_time_zone_they_were_made_with(tmp_path: Path) -> None:
    instants = pa.array([0, 3_600_000_000, 7_200_000_000], pa.timestamp("us", "UTC"))
    table = deltaic.write(tmp_path / "t", pa.table({"n": pa.array([0, 1, 2], pa.int64()), "ts": instants}))
    with deltaic.configure(time_zone="Europe/Berlin"):
        rows = table.scan(["n"], where="hour(ts) = 2")
        literal = table.scan(["n"], where="ts = '1970-01-01 02:00:00' and n + 0 > 0")
        query = deltaic.sql("select n, hour(ts) as h from t where hour(ts) = 2", tables={"t": table})
        inside = [each.to_arrow().to_pylist() for each in (rows, literal, query)]
    assert inside == [[{"n": 1}], [{"n": 1}], [{"n": 1, "h": 2}]]
    assert [each.to_arrow().to_pylist() for each in (rows, literal, query)] == inside
    assert [each.count() for each in (rows, literal, query)] == [1, 1, 1]
    assert rows.to_dataset().to_table().to_pylist() == inside[0]
    assert _in_a_thread(rows.to_arrow).to_pylist() == inside[0]
    with deltaic.configure(time_zone="Asia/Tokyo"):
        assert rows.count() == 1
        assert table.scan(where="hour(ts) = 2").count() == 0


def test_commands_work_in_the_zone_of_their_block(tmp_path: Path) -> None:
    instants = pa.array([0, 3_600_000_000, 7_200_000_000], pa.timestamp("us", "UTC"))
    table = deltaic.write(tmp_path / "t", pa.table({"n": pa.array([0, 1, 2], pa.int64()), "ts": instants}))
    with deltaic.configure(time_zone="Europe/Berlin"):
        table.update({"n": "hour(ts)"})
        table.delete("hour(ts) = 2")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 3]


@pytest.mark.parametrize("way", ["write", "merge", "sql"])
def test_times_without_a_zone_are_of_the_blocks_zone_in_every_command(tmp_path: Path, way: str) -> None:
    table = deltaic.DeltaTable.create(
        tmp_path / "t", "ts timestamp, d timestamp, n timestamp_ntz, st struct<ts: timestamp, x: int>"
    )
    noon = dt.datetime(2024, 1, 1, 12)
    zoned = noon.replace(tzinfo=dt.timezone.utc)
    rows = pa.table(
        {
            "TS": [noon],
            "d": [noon.date()],
            "n": pa.array([zoned], pa.timestamp("us", "UTC")),
            "st": [{"ts": noon, "x": 1}],
        }
    )
    with deltaic.configure(time_zone="Europe/Berlin"):
        if way == "write":
            deltaic.write(table, rows, mode="append")
        elif way == "merge":
            table.merge(rows, "false").when_not_matched_insert_all().execute()
        else:
            deltaic.sql("insert into t select * from d", tables={"t": table, "d": rows})
    hour = dt.timedelta(hours=1)
    (row,) = DeltaTable(tmp_path / "t").scan().to_arrow().to_pylist()
    assert row == {
        "ts": zoned - hour,
        "d": zoned - 13 * hour,
        "n": noon + hour,
        "st": {"ts": zoned - hour, "x": 1},
    }


def test_work_on_other_threads_has_the_settings_of_its_block(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table({"n": pa.array([0, 1, 2], pa.int64()), "x": ["a", "b", "c"]})
    )
    source = pa.table({"n": pa.array([1, 5], pa.int64()), "x": ["B", "E"]})
    with deltaic.configure(memory_limit="300MB", threads=1, time_zone="Asia/Tokyo"):
        merge = table.merge(source, "t.n = s.n").when_matched_update_all().when_not_matched_insert_all()
        merge.when_not_matched_by_source_update(
            {"x": "concat(x, hour(timestamp '1970-01-01 00:00:00'))"}, "n = 0"
        ).execute()
    assert table.scan().to_arrow().sort_by("n")["x"].to_pylist() == ["a0", "B", "c", "E"]


def test_an_error_inside_puts_back_too() -> None:
    before = configuration.current()
    with pytest.raises(RuntimeError), deltaic.configure(threads=2):
        raise RuntimeError
    assert configuration.current() == before


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512MiB", 512 * 2**20), ("1.5 kb", 1500), ("10", 10), (123, 123), ("1TiB", 2**40)],
)
def test_sizes(text: int | str, size: int) -> None:
    assert configuration.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "4 parsecs", 0, -5, True, 1.5, None])
def test_not_a_size(text: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        configuration.parse_size(text)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"threads": 0}, InvalidArgumentError),
        ({"threads": True}, InvalidArgumentError),
        ({"time_zone": "Mars/Olympus"}, InvalidArgumentError),
        ({"durable": "yes"}, InvalidTypeError),
        ({"allowed_roots": "/data"}, InvalidTypeError),
        ({"default_properties": {"delta.noSuchThing": "1"}}, InvalidArgumentError),
        ({"default_properties": {"delta.checkpointInterval": "often"}}, InvalidArgumentError),
        ({"cache_directory": 1}, InvalidTypeError),
        ({"cache_directory": "/dev/null"}, InvalidArgumentError),
        ({"cache_limit": "0GB"}, InvalidArgumentError),
        ({"limits": object()}, UnsupportedFeatureError),
    ],
)
def test_refused_and_nothing_changed(arguments: dict[str, Any], error: type[Exception]) -> None:
    before = configuration.current()
    with pytest.raises(error):
        deltaic.configure(threads=7, **arguments) if "threads" not in arguments else deltaic.configure(
            **arguments
        )
    assert configuration.current() == before


def test_new_tables_have_deletion_vectors_to_begin_with() -> None:
    assert dict(configuration.Configuration().default_properties) == {"delta.enableDeletionVectors": "true"}


def test_locations_are_absolute(tmp_path: Path) -> None:
    with deltaic.configure(allowed_roots=["memory://other", "relative"], temp_directory=tmp_path):
        assert configuration.current().allowed_roots == ("memory://other", os.path.abspath("relative"))
        assert configuration.current().temp_directory == str(tmp_path)
