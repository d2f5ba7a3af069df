"""Tables whose place only Hadoop's configuration reaches: here a federation (viewfs) whose one link is a local folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
import deltaic.spark
from deltaic import DeltaTable
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
        ("s3://b/t", {**S3, "fs.s3a.bucket.b.access.key": "own"}, {"aws_access_key_id": "own", "aws_secret_access_key": "word"}),
        (
            "s3a://b/t",
            {"fs.s3a.endpoint": "box:9000", "fs.s3a.connection.ssl.enabled": "false", "fs.s3a.path.style.access": "true"},
            {"aws_endpoint": "http://box:9000", "allow_http": "true", "aws_virtual_hosted_style_request": "false"},
        ),
        (
            "s3a://b/t",
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"aws_skip_signature": "true"},
        ),
        ("s3a://b/t", {PROVIDER: "com.example.Vault"}, "hadoop"),
        ("s3a://b/t", {**S3, "fs.s3a.encryption.algorithm": "SSE-C"}, "hadoop"),
        ("gs://b/t", {"fs.gs.auth.service.account.json.keyfile": "/k.json"}, {"google_service_account": "/k.json"}),
        ("gs://b/t", {"fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER"}, "hadoop"),
        ("abfss://c@a.dfs.core.windows.net/t", {"fs.azure.account.key.a.dfs.core.windows.net": "k"}, {"azure_storage_account_key": "k"}),
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
    assert [entry["operation"] for entry in beside.history()] == ["OPTIMIZE", "MERGE", "UPDATE", "DELETE", "WRITE"]
    assert not list((folder / "a table").rglob("*.tmp"))


def test_a_commit_never_replaces_another(session: Any, folder: Path) -> None:
    from deltaic.engine.spark.hadoop_store import HadoopStore

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
    assert [(path, size) for path, size, _ in store.list_from("_delta_log", "a.json", False)] == [("_delta_log/b.json", 3)]
    found = {path: (size, modified) for path, size, modified in store.list_from("", None, True)}
    assert {path: size for path, (size, _) in found.items()} == {"_delta_log/a.json": 10, "_delta_log/b.json": 3, "x%20y/z.bin": 0}
    assert store.head("_delta_log/a.json") == found["_delta_log/a.json"]
    assert abs((folder / "t" / "_delta_log" / "a.json").stat().st_mtime * 1000 - found["_delta_log/a.json"][1]) < 2000
    with pytest.raises(FileNotFoundError):
        store.read("none")
    assert store.delete("x%20y/z.bin")
    assert not store.delete("x%20y/z.bin")


def test_no_commit_where_a_rename_replaces(session: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltaic.engine.spark.hadoop_store import HadoopStore

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
