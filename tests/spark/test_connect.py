"""Spark Connect: all commands use Spark's public interfaces, and give the same rows.

A process has either a session of Connect or one with a JVM, so the tests run in a process of their own, on a
server that this process starts.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import deltaic
from spark_session import REMOTE

pytest.importorskip("pyspark")
for needed in ("grpc", "grpc_status", "zstandard"):
    pytest.importorskip(needed, reason="pyspark[connect] is not installed")

PORT = 15002
"""Of every server that PySpark starts."""
HERE = Path(__file__).parent
RUN = "import os, sys, pytest; code = pytest.main(sys.argv[1:]); sys.stdout.flush(); os._exit(code)"
"""Exits without the interpreter's clean-up, in which PySpark's client of Connect waits for ever for sessions
that were not stopped."""
FILES = (
    "connect_cases.py",
    "test_conditions.py",
    "test_session_manners.py",
    "test_spark_page.py",
    "test_spark_sql.py",
    "test_spark_formats.py",
    "test_delta_tables.py",
    "test_names_in_catalog.py",
    "test_convert_by_name.py",
    "test_stream_sink.py::test_batches_are_commits_with_a_transaction",
    "test_stream_sink.py::test_complete_mode_replaces_all_rows",
    "test_stream_sink.py::test_a_temporary_view_takes_no_stream",
)
OTHERWISE = {
    "test_names_in_catalog.py::test_the_catalog_knows_comment_and_columns_of_a_replaced_table": (
        "by public interfaces the entry of a table keeps the columns with which it was created"
    ),
    "test_spark_sql.py::test_a_query_follows_its_table_until_it_is_run": (
        "by public interfaces a DataFrame stays at its version"
    ),
    "test_spark_sql.py::test_views_by_the_data_source": (
        "nobody knows which table such a view shows: refused by name"
    ),
    "test_conditions.py::test_what_delta_spark_raises_as_an_error_of_the_jvm": "the client has no JVM",
    "test_convert_by_name.py::test_a_table_of_a_schema_with_the_name_of_the_format": (
        "managed tables are not converted by public interfaces"
    ),
    "test_delta_tables.py::test_a_struct_has_a_text": "the text is another one of the same meaning",
}


@pytest.mark.timeout(1800)
def test_on_a_server_of_connect(tmp_path: Path) -> None:
    """The tests of these files for classic sessions also hold on Connect, with the exceptions above."""
    package = str(Path(str(deltaic.__file__)).parent.parent)
    with socket.socket() as other:
        if other.connect_ex(("localhost", PORT)) == 0:
            pytest.skip(f"another server of Connect has the port {PORT}")
    environment = {**os.environ, REMOTE: "local[2]", "PYTHONPATH": package}
    without = [f"--deselect=tests/spark/{name}" for name in OTHERWISE]
    command = [
        sys.executable,
        "-c",
        RUN,
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'tables'}",
        *without,
    ]
    command += [str(HERE / name) for name in FILES]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=HERE.parents[1], timeout=1780
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    summary = done.stdout.strip().splitlines()[-1]
    assert f"{len(OTHERWISE)} deselected" in summary
    assert "skipped" not in summary
