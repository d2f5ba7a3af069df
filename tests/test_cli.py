"""The `deltaic` command in a shell: output, JSON, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic


def run(
    *arguments: str, code: int = 0, columns: int = 200, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "deltaic.cli", *arguments],
        capture_output=True,
        encoding="utf-8",
        input=stdin,
        env={**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"},
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def path(tmp_path: Path) -> str:
    data = pa.table(
        {
            "id": list(range(20)),
            "name": [f"n[{number}]" for number in range(20)],
            "part": [number % 2 for number in range(20)],
        }
    )
    table = deltaic.write(
        tmp_path / "t", data, partition_by="part", properties={"delta.enableDeletionVectors": True}
    )
    table.delete("id = 3")
    return str(tmp_path / "t")


def test_a_look_at_a_table_imports_neither_arrow_nor_a_parser(path: str) -> None:
    heavy = ("pyarrow", "numpy", "duckdb", "sqlglot")
    code = (
        f"import sys; sys.argv = ['deltaic', 'show', {path!r}]\nfrom deltaic.cli import main\ntry: main()\n"
    )
    code += f"finally: print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.strip() == "[]"
    assert "deletionVectors" in done.stdout


def test_show(path: str) -> None:
    shown = run_json("show", path)
    assert (shown["version"], shown["rows"], shown["files"], shown["partitioned_by"]) == (1, 19, 2, ["part"])
    assert run_json("show", path, "--version", "0")["rows"] == 20
    text = run("show", path).stdout
    assert re.search(r"partitioned by +│ part ", text)
    assert re.search(r"delta.enableDeletionVectors = ", text)
    assert "19" in text
    assert "deletionVectors" in text


def test_head(path: str) -> None:
    rows = run_json("head", path, "-n", "3", "--columns", "id,name", "--where", "id >= 10")
    assert rows == [{"id": number, "name": f"n[{number}]"} for number in (10, 12, 14)]
    assert "n[10]" in run("head", path, "--where", "id >= 10").stdout


def test_history(path: str) -> None:
    entries = run_json("history", path)
    assert [(entry["version"], entry["operation"]) for entry in entries] == [(1, "DELETE"), (0, "WRITE")]
    assert datetime.fromisoformat(entries[0]["timestamp"]).tzinfo is not None
    assert "DELETE" in run("history", path, "-n", "1").stdout


def test_history_can_be_read_in_80_columns(path: str) -> None:
    shown = run("history", path, columns=80).stdout
    assert max(map(len, shown.splitlines())) <= 80
    heading, *lines = [line.replace("┃", " ").replace("│", " ") for line in shown.splitlines()]
    assert heading.split() == ["version", "time", "(UTC)", "operation", "details"]
    assert len([line for line in lines if line.split()[:1] in (["0"], ["1"])]) == 2
    assert any("numDeletedRows: 1" in line for line in lines)  # a pair of name and value is not torn apart


def test_control_characters_are_shown_and_not_sent(tmp_path: Path) -> None:
    hostile = "a\x1b[2Jb\x9bc\u202ed\re"
    path = str(tmp_path / "t")
    deltaic.write(
        path, pa.table({"n\x1b]0;x\x07": [hostile]}), properties={"delta.columnMapping.mode": "name"}
    )
    for arguments in (
        ["head", path],
        ["head", path, "--json"],
        ["sql", f"SELECT * FROM delta.`{path}`"],
        ["show", path],
    ):
        shown = run(*arguments).stdout
        assert not set("\x1b\x9b\u202e\r\x07") & set(shown), arguments
    assert r"a\x1b[2Jb\x9bc\u202ed\re" in run("head", path).stdout
    assert [list(row.values()) for row in run_json("head", path)] == [[hostile]]
    assert "\x1b" not in run("head", path, "--where", "x = '\x1b'", code=1).stderr


def test_files(path: str) -> None:
    assert [file["num_records"] for file in run_json("files", path)] == [10, 10]
    assert len(run_json("files", path, "--where", "part = 1")) == 1
    assert ".parquet" in run("files", path).stdout


def test_detail(path: str) -> None:
    assert run_json("detail", path)["num_files"] == 2
    assert "num files" in run("detail", path).stdout


def test_optimize_and_vacuum(path: str) -> None:
    assert run_json("optimize", path, "--purge")["num_files_removed"] == 1
    assert run_json("optimize", path, "--z-order", "id,name")["num_files_added"] == 2
    dry = run_json("vacuum", path, "--dry-run", "--retain", "0", "--force")
    gone = run_json("vacuum", path, "--retain", "0", "--force")
    assert {file["path"] for file in dry} == {file["path"] for file in gone} != set()
    assert run_json("show", path)["rows"] == 19
    assert "retention" in run("vacuum", path, "--retain", "0", code=1).stderr


def test_vacuum_with_an_inventory(path: str, tmp_path: Path) -> None:
    columns = {
        "path": [f"{path}/lost.parquet"],
        "length": [1],
        "isDir": [False],
        "modificationTime": [1_600_000_000_000],
    }
    pq.write_table(pa.table(columns), tmp_path / "inventory.parquet")
    found = run_json("vacuum", path, "--dry-run", "--inventory", str(tmp_path / "inventory.parquet"))
    assert [file["path"] for file in found] == ["lost.parquet"]


def test_optimize_takes_a_size_and_clusters(path: str, tmp_path: Path) -> None:
    assert run_json("optimize", path, "--z-order", "id", "--target-size", "1GB")["num_files_added"] == 2
    assert "--target-size: not a size" in run("optimize", path, "--target-size", "many", code=1).stderr
    clustered = str(tmp_path / "c")
    for number in range(2):
        deltaic.write(
            clustered,
            pa.table({"id": [number, number + 5]}),
            mode="append",
            cluster_by="id" if number == 0 else None,
        )
    assert run_json("optimize", clustered, "--cluster")["num_files_removed"] == 2
    assert run("optimize", path, "--cluster", "--purge", code=2).stderr != ""
    assert run("optimize", clustered, "--cluster", "--where", "id = 1", code=2).stderr != ""


def test_sql(path: str) -> None:
    assert run_json("sql", f"SELECT count(*) AS n FROM delta.`{path}`") == [{"n": 19}]
    assert run_json("sql", "SELECT max(id) AS m FROM t VERSION AS OF 0", "--table", f"t={path}") == [
        {"m": 19}
    ]
    assert run_json("sql", f"DELETE FROM delta.`{path}` WHERE id < 2") == [{"num_affected_rows": 2}]
    assert run_json("sql", "SELECT 1 AS a WHERE 1 = 0") == []
    limited = run("sql", f"SELECT id FROM delta.`{path}`", "--limit", "5")
    assert len(limited.stdout.strip().splitlines()) == 7
    assert "first 5 rows" in limited.stderr
    for arguments in (["sql", "-"], ["sql"]):
        assert json.loads(
            run(*arguments, "--json", stdin=f"SELECT min(id) AS m FROM delta.`{path}`\n").stdout
        ) == [{"m": 2}]


def test_pipes_are_utf_8(tmp_path: Path) -> None:
    deltaic.write(tmp_path / "t", pa.table({"city": ["Zürich", "東京"]}))
    query = f"SELECT city FROM delta.`{tmp_path / 't'}` WHERE city <> 'Zürich'"
    assert json.loads(run("sql", "-", "--json", stdin=query).stdout) == [{"city": "東京"}]
    assert "東京" in run("sql", "-", stdin=query).stdout


def test_json_of_awkward_values(path: str) -> None:
    statement = (
        "SELECT CAST('NaN' AS DOUBLE) AS f, CAST(1.10 AS DECIMAL(5, 2)) AS d, X'00FF' AS b, DATE '2024-02-29'"
        " AS day, array(1, NULL) AS a, NULL AS n"
    )
    assert run_json("sql", statement) == [
        {"f": "nan", "d": "1.10", "b": "AP8=", "day": "2024-02-29", "a": [1, None], "n": None}
    ]


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_libraries_the_command_says_what_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from deltaic.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"the command deltaic needs {missing}, which is not installed: pip install 'deltaic[cli]'\n"
    )


def test_an_error_of_the_table_is_one_line_and_code_1(path: str, tmp_path: Path) -> None:
    missing = run("show", str(tmp_path / "nothing [red]here"), code=1)
    assert "nothing [red]here" in missing.stderr
    assert "Traceback" not in missing.stderr
    assert missing.stdout == ""
    assert "nobody" in run("head", path, "--where", "nobody = 1", code=1).stderr


@pytest.mark.parametrize(
    "arguments",
    [["shwo"], ["head"], ["head", "x", "--number", "many"], ["sql", "SELECT 1", "--table", "nonsense"]],
)
def test_wrong_usage_is_code_2(arguments: list[str]) -> None:
    assert run(*arguments, code=2).stderr != ""


def test_no_command_and_version() -> None:
    assert "vacuum" in run("--help").stdout
    assert run("-h").stdout == run("--help").stdout
    assert run("--version").stdout.startswith("deltaic ")
    assert "--install-completion" in run("--help").stdout


def test_log(path: str) -> None:
    (commit,) = run_json("log", path)
    assert (commit["version"], commit["commitInfo"]["operation"]) == (1, "DELETE")
    (added,) = commit["add"]
    (removed,) = commit["remove"]
    assert added["path"] == removed["path"]
    assert (added["deletionVector"]["cardinality"], added["partitionValues"]) == (1, {"part": "1"})
    first, second = run_json("log", path, "0..")
    assert (first["version"], second["version"], len(first["add"])) == (0, 1, 2)
    assert first["metaData"]["partitionColumns"] == ["part"]
    assert "deletionVectors" in first["protocol"]["readerFeatures"]
    assert len(run_json("log", path, "0", "--limit", "1")[0]["add"]) == 1


def test_log_in_words(path: str) -> None:
    shown = run("log", path, "..1", "--limit", "1")
    assert [line.strip() for line in shown.stdout.splitlines() if line.startswith("version")] == [
        "version 0",
        "version 1",
    ]
    assert "DELETE" in shown.stdout
    assert "id bigint" in shown.stdout
    assert "1 more files" in shown.stderr
    lines = [line for line in run("log", path, "1").stdout.splitlines() if ".parquet" in line]
    assert [line.split()[0] for line in lines] == ["remove", "add"]


@pytest.mark.parametrize(
    "versions", ["2", "99", "90..99", "0..2", "1..0", "x", "..", "-1", "0...1", "9" * 30]
)
def test_log_of_versions_that_are_not_there(path: str, versions: str) -> None:
    refused = run("log", path, "--", versions, code=1)
    assert "expected" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_log_of_a_broken_commit(path: str) -> None:
    commit = Path(path, "_delta_log", f"{1:020}.json")
    commit.write_text(commit.read_text() + "{nonsense\n")
    assert f"{1:020}.json:" in run("log", path, code=1).stderr
    assert run_json("log", path, "0")[0]["version"] == 0


def test_inspect(path: str) -> None:
    found = run_json("inspect", path)
    assert (found["version"], found["versions"], found["problem"], found["checkpoint"], found["hint"]) == (
        1,
        [0, 1],
        None,
        None,
        None,
    )
    assert (found["files"], found["rows"], found["deletion_vectors"], found["tombstones"]) == (2, 19, 1, 1)
    assert {"name": "deletionVectors", "used": True, "writes": True} in found["features"]
    assert found["log"]["commits"]["files"] == 2
    assert found["log"]["commits"]["bytes"] == sum(
        file.stat().st_size for file in Path(path, "_delta_log").glob("*.json")
    )
    assert found["size_in_bytes"] == sum(file["size"] for file in run_json("files", path))
    deltaic.DeltaTable(path).checkpoint()
    found = run_json("inspect", path)
    assert (
        found["checkpoint"]["version"],
        found["checkpoint"]["kind"],
        found["checkpoint"]["commits_since"],
    ) == (1, "classic", 0)
    assert (found["hint"], found["log"]["checkpoints"]["files"]) == (1, 1)
    text = run("inspect", path).stdout
    assert "deletionVectors" in text
    assert "KiB" in text


def test_inspect_a_table_that_cannot_be_read(path: str) -> None:
    commit = Path(path, "_delta_log", f"{2:020}.json")
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["fromTheFuture"],
        "writerFeatures": ["fromTheFuture"],
    }
    commit.write_text(json.dumps({"protocol": protocol}) + "\n")
    found = run_json("inspect", path)
    assert "fromTheFuture" in found["problem"]
    assert (found["version"], found["files"], found["log"]["commits"]["files"]) == (2, None, 3)
    assert "fromTheFuture" in run("inspect", path).stdout
    assert "no such folder" in run("inspect", path + "-missing", code=1).stderr
