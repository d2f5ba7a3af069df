"""Tables at a location that only Hadoop's configuration defines: here a federation (viewfs) whose one link is
a local folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
from deltaic.engine.spark.engine import SETTING
from deltaic.engine.spark.portable import WORDS
from deltaic.engine.spark.stores import reached_by
from deltaic.errors import TableNotFoundError, UnsupportedFeatureError

PROVIDER = "fs.s3a.aws.credentials.provider"
S3 = {"fs.s3a.access.key": "id", "fs.s3a.secret.key": "word"}


@pytest.mark.parametrize(
    ("location", "settings", "expected"),
    [
        ("/a/b", {}, {}),
        ("file:///a", {}, {}),
        ("s3a://b/t", {}, {}),
        ("s3a://b/t", S3, {"aws_access_key_id": "id", "aws_secret_access_key": "word"}),
        (
            "s3://b/t",
            {**S3, "fs.s3a.bucket.b.access.key": "own"},
            {"aws_access_key_id": "own", "aws_secret_access_key": "word"},
        ),
        (
            "s3a://b/t",
            {
                "fs.s3a.endpoint": "box:9000",
                "fs.s3a.connection.ssl.enabled": "false",
                "fs.s3a.path.style.access": "true",
            },
            {
                "aws_endpoint": "http://box:9000",
                "allow_http": "true",
                "aws_virtual_hosted_style_request": "false",
            },
        ),
        (
            "s3a://b/t",
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"aws_skip_signature": "true"},
        ),
        ("s3a://b/t", {PROVIDER: "com.example.Vault"}, "hadoop"),
        ("s3a://b/t", {**S3, "fs.s3a.encryption.algorithm": "SSE-C"}, "hadoop"),
        (
            "gs://b/t",
            {"fs.gs.auth.service.account.json.keyfile": "/k.json"},
            {"google_service_account": "/k.json"},
        ),
        ("gs://b/t", {"fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER"}, "hadoop"),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            {"fs.azure.account.key.a.dfs.core.windows.net": "k"},
            {"azure_storage_account_key": "k"},
        ),
        ("abfss://c@a.dfs.core.windows.net/t", {"fs.azure.account.auth.type": "OAuth"}, "hadoop"),
        ("hdfs://name/t", {}, "hadoop"),
        ("viewfs:///t", {}, "hadoop"),
    ],
)
def test_who_reaches_a_place(location: str, settings: dict[str, str], expected: Any) -> None:
    assert reached_by(location, settings.get) == expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all: Hadoop keeps its file systems."""
    return tmp_path_factory.mktemp("linked")


@pytest.fixture
def session(spark: Any, folder: Path) -> Any:
    """A session with a file system that deltaic has no store for."""
    made = spark.newSession()
    made.conf.set("fs.viewfs.mounttable.default.link./data", folder.as_uri())
    return made


def test_reading_writing_and_changing(session: Any, folder: Path) -> None:
    place = "viewfs:///data/a table"
    deltaic.spark.enable(session)
    frame = session.range(0, 1000, 1, 3).selectExpr("id", "id % 3 AS part", "concat('n', id) AS name")
    frame.write.format("delta").partitionBy("part").option("delta.enableDeletionVectors", "true").save(place)
    session.sql(f"DELETE FROM delta.`{place}` WHERE id % 10 = 0")
    session.sql(f"UPDATE delta.`{place}` SET name = 'new' WHERE id = 7")
    table = DeltaTable(place, spark=session)
    source = pa.table({"id": [1, 5000], "part": [1, 2], "name": ["one", "more"]})
    table.merge(source, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    expected = {i: f"n{i}" for i in range(1000) if i % 10} | {7: "new", 1: "one", 5000: "more"}
    assert {row["id"]: row["name"] for row in session.read.format("delta").load(place).collect()} == expected
    assert session.read.format("delta").load(f"{place}@v0").count() == 1000
    assert table.optimize.compact()["num_files_added"] > 0
    beside = DeltaTable(folder / "a table")  # the same bytes, seen by our own store
    assert beside.version == table.version == 4
    assert {row["id"]: row["name"] for row in beside.scan().to_arrow().to_pylist()} == expected
    assert [entry["operation"] for entry in beside.history()] == [
        "OPTIMIZE",
        "MERGE",
        "UPDATE",
        "DELETE",
        "WRITE",
    ]
    assert not list((folder / "a table").rglob("*.tmp"))


def test_reading_by_public_interfaces(session: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark shows the paths of files as Hadoop completes them: rows are found by these."""
    data = pa.table({"id": range(100), "part": [f"p {i % 2}" for i in range(100)]})
    beside = deltaic.write(
        folder / "a b%", data, partition_by=["part"], properties={"delta.enableDeletionVectors": True}
    )
    beside.delete("id < 10")
    monkeypatch.setattr(session, SETTING, "never", raising=False)
    frame = DeltaTable("viewfs:///data/a b%", spark=session).scan().to_spark()
    assert sorted(tuple(row) for row in frame.collect()) == [(i, f"p {i % 2}") for i in range(10, 100)]


def test_large_vectors_go_to_their_own_tasks(
    session: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks cannot read the store, so a shuffle joins rows and vectors: no task gets the vectors of all
    files, and the rows, their ids and changes are the same."""
    data = pa.table(
        {"id": range(3000), "part": [i // 1000 for i in range(3000)], "name": [f"n{i}" for i in range(3000)]}
    )
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": True,
        "delta.enableRowTracking": True,
    }
    beside = deltaic.write(folder / "marked", data, partition_by=["part"], properties=properties)
    beside.delete("id % 3 = 0 and part < 2")
    monkeypatch.setattr("deltaic.engine.spark.read_by_tasks.MOST_BITS", 0)
    monkeypatch.setattr("deltaic.engine.spark.portable.SENT_BYTES", 1)
    monkeypatch.setattr(session, SETTING, "never", raising=False)
    sent: list[int] = []
    create = type(session).createDataFrame

    def created(self: Any, rows: Any, *arguments: Any) -> Any:
        frame = create(self, rows, *arguments)
        if isinstance(rows, pa.Table) and WORDS in rows.column_names:
            sent.append(rows[WORDS].num_chunks)
        return frame

    monkeypatch.setattr(type(session), "createDataFrame", created)
    table = DeltaTable("viewfs:///data/marked", spark=session)
    frame = table.scan().to_spark()
    assert sent == [2]
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    (shuffled,) = re.findall(r"Join Inner, .*rightHint=\(strategy=shuffle_hash\)", plan)
    assert "__deltaic_number" in shuffled
    physical = frame.where("part = 0")._jdf.queryExecution().executedPlan().toString()
    assert physical.count("ShuffledHashJoin") == 1
    expected = [i for i in range(3000) if i % 3 or i >= 2000]
    assert sorted(tuple(row) for row in frame.collect()) == [(i, i // 1000, f"n{i}") for i in expected]
    table.update({"name": "'new'"}, "id between 999 and 1003")
    table.delete("id in (1000, 2999)")
    theirs = DeltaTable(folder / "marked").scan().to_arrow()
    assert sorted(theirs["id"].to_pylist()) == [i for i in expected if i not in (1000, 2999)]
    assert sorted(tuple(row) for row in table.scan().to_spark().collect()) == sorted(
        tuple(row.values()) for row in theirs.to_pylist()
    )
    assert theirs["name"].to_pylist().count("new") == 2


def test_a_commit_never_replaces_another(session: Any, folder: Path) -> None:
    from deltaic.engine.spark.native.hadoop_store import HadoopStore

    store = HadoopStore(session, "viewfs:///data/t/")
    assert store.head("_delta_log/x") is None
    assert list(store.list_from("_delta_log", None, False)) == []
    assert store.write_if_absent("_delta_log/b.json", b"one") is True
    assert store.write_if_absent("_delta_log/b.json", b"two") is False
    store.write("_delta_log/a.json", b"first")
    store.write("_delta_log/a.json", b"0123456789")
    store.write("x%20y/z.bin", b"")
    assert store.read("_delta_log/b.json") == b"one"
    assert store.read("_delta_log/a.json", 2, 5) == b"234"
    assert store.read("_delta_log/a.json", 8) == b"89"
    assert [(path, size) for path, size, _ in store.list_from("_delta_log", "a.json", False)] == [
        ("_delta_log/b.json", 3)
    ]
    found = {path: (size, modified) for path, size, modified in store.list_from("", None, True)}
    assert {path: size for path, (size, _) in found.items()} == {
        "_delta_log/a.json": 10,
        "_delta_log/b.json": 3,
        "x%20y/z.bin": 0,
    }
    assert store.head("_delta_log/a.json") == found["_delta_log/a.json"]
    assert (
        abs((folder / "t" / "_delta_log" / "a.json").stat().st_mtime * 1000 - found["_delta_log/a.json"][1])
        < 2000
    )
    with pytest.raises(FileNotFoundError):
        store.read("none")
    assert store.delete("x%20y/z.bin")
    assert not store.delete("x%20y/z.bin")


def test_a_commit_over_a_lost_connection_has_an_unknown_outcome(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaic.engine.spark.native.hadoop_store import HadoopStore

    def fail(*arguments: Any) -> Any:
        raise ConnectionError("lost")

    class Files:
        def __init__(self, files: Any) -> None:
            self.create, self.delete = files.create, fail

    store = HadoopStore(session, "viewfs:///data/lost")
    monkeypatch.setattr(store, "_files", Files(store._files))
    monkeypatch.setattr(store, "_renaming", lambda: fail)
    assert store.write_if_absent("_delta_log/0.json", b"one") is None
    with pytest.raises(ConnectionError, match="lost"):
        store.write("_delta_log/0.json", b"one")


def test_no_commit_where_a_rename_replaces(
    session: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaic.engine.spark.native.hadoop_store import HadoopStore

    store = HadoopStore(session, "viewfs:///data/bucket")
    monkeypatch.setattr(store, "_root", "s3a://bucket/t")
    with pytest.raises(UnsupportedFeatureError, match="cannot rename"):
        store.write_if_absent("_delta_log/0.json", b"")
    with pytest.raises(UnsupportedFeatureError, match="cannot rename"):
        store.write("_delta_log/_last_checkpoint", b"")
    assert not (folder / "bucket").exists()


def test_what_nobody_reaches(session: Any) -> None:
    with pytest.raises(UnsupportedFeatureError, match="neither deltaic nor Hadoop"):
        DeltaTable("nowhere://x/t", spark=session)
    with pytest.raises(TableNotFoundError):
        DeltaTable("viewfs:///data/none", spark=session)
    session.conf.set("fs.half.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystem")
    with pytest.raises((UnsupportedFeatureError, OSError)):
        deltaic.write("half://x/t", session.range(3))
