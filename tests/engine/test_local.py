"""The embedded engine: DuckDB runs the queries of plans, results have Delta's types, errors have deltaic's
classes, and running work can be stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from text_plans import filtered, grouped, joined, projected

import deltaic
from deltaic import configuration
from deltaic.engine.duckdb.connection import Work
from deltaic.engine.duckdb.engine import LocalEngine
from deltaic.errors import InvalidArgumentError, InvalidTypeError, SchemaMismatchError
from deltaic.plan.nodes import Data, Plan, Union
from deltaic.protocol.schema import Schema

ENGINE = LocalEngine()
LEFT = pa.table({"k": [1, 2, 3, None], "v": ["a", "b", "c", "d"]})
RIGHT = pa.table({"k": [2, 3, 3, None], "w": [20.0, 30.0, 31.0, 0.0]})


def left() -> Data:
    return ENGINE.source(LEFT, "l")


def right() -> Data:
    return ENGINE.source(RIGHT, "r")


def run(plan: Plan) -> list[tuple[Any, ...]]:
    table = ENGINE.to_arrow(ENGINE.run(plan)).read_all()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", [("b", 20.0), ("c", 30.0), ("c", 31.0)]),
        ("left", [("a", None), ("b", 20.0), ("c", 30.0), ("c", 31.0), ("d", None)]),
        ("right", [("b", 20.0), ("c", 30.0), ("c", 31.0), (None, 0.0)]),
        ("full", [("a", None), ("b", 20.0), ("c", 30.0), ("c", 31.0), ("d", None), (None, 0.0)]),
    ],
)
def test_joins(kind: Any, expected: list[tuple[Any, ...]]) -> None:
    assert (
        run(projected(joined(left(), right(), "l.k = r.k", kind), (("v", "l.v"), ("w", "w")), "p"))
        == expected
    )


VALUES = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, None], pa.int64()),
        "f": pa.array([1.5, float("nan"), None, -0.0, float("inf"), 0.0]),
        "s": pa.array(["a", "", None, "é", "b%", "a"]),
        "st": pa.array(
            [{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}, {"x": 6}], pa.struct([("x", pa.int32())])
        ),
    }
)


def test_a_first_query_imports_neither_datasets_nor_commands(tmp_path: Path) -> None:
    deltaic.write(tmp_path, VALUES)
    script = f"""
        import sys, deltaic
        rows = deltaic.sql("SELECT count(*) AS n FROM delta.`{tmp_path}` WHERE f > 1").to_arrow()
        assert rows["n"].to_pylist() == [3], rows
        late = (
            "pyarrow.dataset", "pyarrow.compute", "pandas", "deltaic.commands.merge",
            "deltaic.transaction.transaction", "rich",
        )
        print([name for name in late if name in sys.modules])
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_semi_and_anti_joins() -> None:
    columns = (("v", "l.v"),)
    assert run(projected(joined(left(), right(), "l.k = r.k", "left_semi"), columns, "p")) == [("b",), ("c",)]
    assert run(projected(joined(left(), right(), "l.k = r.k", "left_anti"), columns, "p")) == [("a",), ("d",)]


def test_filters_projections_and_groups_nest() -> None:
    counted = grouped(
        filtered(right(), "w > 0"),
        (("k", "r.k"),),
        (("n", "count(*)"), ("most", "max(r.w)"), ("least", "min(r.w)")),
        "g",
    )
    assert run(counted) == [(2, 1, 20.0, 20.0), (3, 2, 31.0, 30.0)]
    again = filtered(projected(filtered(counted, "n > 1"), (("twice", "n * 2"),), "q"), "q.twice > 3")
    assert run(again) == [(4,)]
    assert run(grouped(left(), (), (("n", "count(*)"),))) == [(4,)]


def test_unions_keep_their_order() -> None:
    both = Union(
        (projected(left(), (("v", "v"),), "a"), projected(right(), (("v", "cast(w as string)"),), "b"))
    )
    assert ENGINE.to_arrow(ENGINE.run(both)).read_all()["v"].to_pylist() == [
        "a",
        "b",
        "c",
        "d",
        "20.0",
        "30.0",
        "31.0",
        "0.0",
    ]


def test_types_are_deltas() -> None:
    schema = (
        "a tinyint, b smallint, c int, d bigint, e decimal(20,3), f float, g string, h binary, i date, j"
        " timestamp, k timestamp_ntz"
    )
    schema += ", l array<int>, m map<string, bigint>, n struct<x: int, y: array<string>>, o boolean, p double"
    delta = Schema.from_ddl(schema)
    empty = pa.schema(delta).empty_table()
    plan = filtered(ENGINE.source(empty, "t"), "c > 1 or c is null")
    assert ENGINE.to_arrow(ENGINE.run(plan)).schema.equals(pa.schema(delta))
    assert ENGINE.to_arrow(ENGINE.run(plan)).read_all().schema.equals(pa.schema(delta))


def test_held_rows_are_read_many_times_and_gone_after() -> None:
    with ENGINE.hold(ENGINE.run(ENGINE.source(iter(LEFT.to_batches()), "l")), "h") as held:
        assert run(held) == run(held) == run(left())
        assert run(projected(joined(held, ENGINE.source(LEFT, "o"), "h.k = o.k"), (("v", "h.v"),), "p")) == [
            ("a",),
            ("b",),
            ("c",),
        ]
        assert held.schema.names == ["k", "v"]
    with pytest.raises(Exception, match="held"):
        run(held)


def test_rows_beyond_the_memory_limit_spill(tmp_path: Path) -> None:
    wide = pa.table({"k": range(400_000), "v": [f"{number:0100}" for number in range(400_000)]})
    with deltaic.configure(memory_limit="60MB", temp_directory=tmp_path / "spill"):
        engine = LocalEngine()
        with engine.hold(engine.run(engine.source(wide, "w")), "h") as held:
            counted = grouped(filtered(held, "k % 2 = 0"), (), (("n", "count(*)"),))
            assert engine.to_arrow(engine.run(counted)).read_all()["n"].to_pylist() == [200_000]


def test_databases_in_use_share_the_engines_memory(tmp_path: Path) -> None:
    def limit(cursor: Any) -> int:
        value, unit = cursor.execute("SELECT current_setting('memory_limit')").fetchone()[0].split()
        return int(float(value) * {"MiB": 2**20, "GiB": 2**30}[unit])

    # Below 2 GiB: of those DuckDB shows the first decimal only.
    with deltaic.configure(memory_limit="1500MB", temp_directory=tmp_path):
        whole = configuration.budget().engine
        planned, free = Work(), Work()
        assert limit(planned.cursor()) == pytest.approx(whole, rel=0.05)
        assert limit(free.cursor(planned=False)) == pytest.approx(whole / 2, rel=0.05)
        assert limit(planned.cursor()) == pytest.approx(whole / 2, rel=0.05)
        planned.close()
        assert limit(free.cursor(planned=False)) == pytest.approx(whole, rel=0.05)
        free.close()


def test_errors_of_rows_have_their_names() -> None:
    with pytest.raises(InvalidArgumentError, match="DIVIDE_BY_ZERO"):
        run(projected(left(), (("x", "1 div (k - 2)"),), "p"))
    with pytest.raises(InvalidArgumentError, match="no column nope"):
        run(filtered(left(), "nope = 1"))
    with pytest.raises(SchemaMismatchError):
        run(ENGINE.conform(ENGINE.source(pa.table({"k": [2**40]}), "s"), Schema.from_ddl("k int")))


def test_the_first_error_of_a_source_is_the_one_that_is_raised() -> None:
    class Broken(Exception):
        pass

    def batches() -> Any:
        yield LEFT.to_batches()[0]
        raise Broken("the source's own")

    with pytest.raises(Exception, match="the source's own"):
        run(filtered(ENGINE.source(batches(), "s"), "k > 0"))


def test_sources_are_checked() -> None:
    for wrong in ("text", 5, {"a": 1}, None):
        with pytest.raises(InvalidTypeError):
            ENGINE.source(wrong, "s")
    with pytest.raises(InvalidTypeError, match="record batch"):
        run(ENGINE.source([LEFT.to_batches()[0], "text"], "s"))
    with pytest.raises(InvalidArgumentError, match="case"):
        ENGINE.source(pa.table({"a": [1], "A": [2]}), "s")
    with pytest.raises(InvalidArgumentError, match="twice"):
        ENGINE.source(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "s")
    with pytest.raises(InvalidArgumentError, match="empty"):
        ENGINE.source([], "s")


def test_threads_share_an_engine() -> None:
    found: list[Any] = []
    plan = projected(joined(left(), right(), "l.k = r.k"), (("v", "l.v"),), "p")

    def work() -> None:
        for _ in range(5):
            found.append(run(plan))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[("b",), ("c",), ("c",)]] * 20


def test_a_reader_that_is_closed_early_ends_the_work() -> None:
    big = pa.table({"k": range(300_000)})
    reader = ENGINE.to_arrow(ENGINE.run(filtered(ENGINE.source(big, "b"), "k % 3 = 0")))
    assert reader.read_next_batch().num_rows > 0
    reader.close()
    assert run(grouped(ENGINE.source(big, "b"), (), (("n", "count(*)"),))) == [(300_000,)]


ENDLESS = """
    import signal, threading, time, os
    import pyarrow as pa
    from deltaic.engine.duckdb.engine import LocalEngine
    from deltaic.plan.expression import COUNT
    from deltaic.plan.nodes import Aggregate, Join

    engine = LocalEngine()
    rows = pa.table({"k": range(200_000)})
    a, b = engine.source(rows, "a"), engine.source(rows, "b")
    few = engine.resolve("a.k % 10 = b.k % 10 and a.k + b.k < 0", {"a": a.schema, "b": b.schema})
    plan = Aggregate(Join(a, b, few), (), (("n", COUNT),))
    started = time.monotonic()
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        engine.to_arrow(engine.run(plan)).read_all()
    except KeyboardInterrupt:
        print("stopped" if time.monotonic() - started < 3 else "late")
"""


def test_ctrl_c_stops_a_query() -> None:
    command = [sys.executable, "-c", textwrap.dedent(ENDLESS)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert finished.stdout.strip() == "stopped", finished.stderr


def test_after_a_fork_the_child_has_its_own_database() -> None:
    assert run(filtered(left(), "k > 1")) == [(2, "b"), (3, "c")]
    pid = os.fork()
    if pid == 0:
        try:
            same = run(filtered(left(), "k > 1")) == [(2, "b"), (3, "c")]
        except BaseException:
            same = False
        os._exit(0 if same else 1)
    watchdog = threading.Timer(30, os.kill, (pid, signal.SIGKILL))
    watchdog.start()
    try:
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        watchdog.cancel()


@pytest.mark.parametrize(
    "second", [pa.record_batch({"x": [1.5]}), pa.record_batch({"y": [1]}), pa.record_batch({"x": ["a"]})]
)
def test_batches_of_an_iterable_have_one_schema(tmp_path: Path, second: pa.RecordBatch) -> None:
    """pyarrow would hand the doubles over as if they were the integers of the first batch."""
    with pytest.raises(SchemaMismatchError, match="the first"):
        deltaic.write(tmp_path / "t", iter([pa.record_batch({"x": [1]}), second]))
    assert not list((tmp_path / "t").glob("*.parquet"))


def test_ctrl_c_in_a_source_is_what_is_raised(tmp_path: Path) -> None:
    def batches() -> Any:
        yield pa.record_batch({"x": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deltaic.write(tmp_path / "t", batches())
    assert not list((tmp_path / "t").glob("*.parquet"))
