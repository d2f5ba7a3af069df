"""Commits by DynamoDB: the entries are delta-storage's, a commit that a writer left incomplete is completed,
and no lost response leads to a second commit.

The Spark clusters here are requests of boto3: the steps of `BaseExternalLogStore.write`, one by one.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, DynamoDBLogStores
from deltaic.errors import (
    CommitError,
    CommitUnknownError,
    ConcurrentDeleteReadException,
    ProtocolError,
    UnsupportedFeatureError,
)
from deltaic.log.log_stores.dynamodb import DynamoDBLogStore
from store_servers import KEY, S3, SECRET, Place, Request

ROW = pa.table({"id": pa.array([1], pa.int64())})


class Dynamo:
    """A table of DynamoDB, and what another cluster does with it."""

    def __init__(self, s3: S3, place: Place, table: str) -> None:
        from boto3.session import Session

        session = Session(aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1")
        self.client = session.client("dynamodb", endpoint_url=s3.server.url)
        self.objects = session.client("s3", endpoint_url=s3.server.url)
        self.server, self.table, self.place = s3.server, table, place
        self.bucket, _, self.key = place.at().removeprefix("s3://").partition("/")

    @property
    def path(self) -> str:
        return f"s3a://{self.bucket}/{self.key}"

    def entries(self) -> list[dict[str, dict[str, str]]]:
        found = self.client.query(
            TableName=self.table,
            KeyConditionExpression="tablePath = :p",
            ExpressionAttributeValues={":p": {"S": self.path}},
        )
        return found["Items"]  # type: ignore[no-any-return]

    def prepare(
        self, version: int, *, temporary: bool = True, body: bytes | None = None
    ) -> dict[str, dict[str, str]]:
        """Steps 1 and 2 of another writer's commit, which appends nothing: its file, and its entry."""
        name = f"{version:020}.json"
        entry = {
            "tablePath": {"S": self.path},
            "fileName": {"S": name},
            "tempPath": {"S": f".tmp/{name}.{uuid.uuid4()}"},
            "complete": {"S": "false"},
        }
        if temporary:
            info = json.dumps(
                {
                    "commitInfo": {
                        "timestamp": 1,
                        "operation": "WRITE",
                        "engineInfo": "another",
                        "isBlindAppend": True,
                    }
                }
            )
            self.objects.put_object(
                Bucket=self.bucket,
                Key=f"{self.key}/_delta_log/{entry['tempPath']['S']}",
                Body=body or info.encode() + b"\n",
            )
        self.client.put_item(TableName=self.table, Item=entry, Expected={"fileName": {"Exists": False}})
        return entry

    def put(self, entry: dict[str, dict[str, str]], **changes: dict[str, str]) -> None:
        self.client.put_item(TableName=self.table, Item={**entry, **changes})

    def names(self) -> list[str]:
        found = self.objects.list_objects_v2(Bucket=self.bucket, Prefix=f"{self.key}/_delta_log/").get(
            "Contents", []
        )
        return [each["Key"].partition("_delta_log/")[2] for each in found]


@pytest.fixture
def dynamo(s3: S3) -> Iterator[Dynamo]:
    place, table = s3.place(), f"delta_log_{uuid.uuid4().hex[:8]}"
    stores = DynamoDBLogStores(table=table, endpoint_url=s3.server.url)
    deltaic.configure(log_stores={"s3": stores, "s3a": stores})
    try:
        yield Dynamo(s3, place, table)
    finally:
        deltaic.configure(log_stores={})


def append(dynamo: Dynamo, **options: str) -> DeltaTable:
    return deltaic.write(
        dynamo.place.at(), ROW, mode="append", storage_options={**dynamo.place.options, **options}
    )


def opened(dynamo: Dynamo) -> DeltaTable:
    return DeltaTable(dynamo.place.at(), storage_options=dynamo.place.options)


def target(name: str) -> Any:
    return lambda request: request.target == name


def test_entries_are_those_of_delta_storage(dynamo: Dynamo) -> None:
    for _ in range(3):
        append(dynamo)
    described = dynamo.client.describe_table(TableName=dynamo.table)["Table"]
    assert [(each["AttributeName"], each["KeyType"]) for each in described["KeySchema"]] == [
        ("tablePath", "HASH"),
        ("fileName", "RANGE"),
    ]
    throughput = described["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (5, 5)
    for version, entry in enumerate(dynamo.entries()):
        name = f"{version:020}.json"
        temporary, expires = entry.pop("tempPath")["S"], int(entry.pop("expireTime")["N"])
        assert entry == {"tablePath": {"S": dynamo.path}, "fileName": {"S": name}, "complete": {"S": "true"}}
        assert temporary.startswith(f".tmp/{name}.")
        assert uuid.UUID(temporary.removeprefix(f".tmp/{name}."))
        assert abs(expires - time.time() - 86_400) < 60
        assert temporary in dynamo.names()
    assert len(dynamo.entries()) == 3


def test_a_prepared_commit_is_finished_by_a_reader(dynamo: Dynamo) -> None:
    append(dynamo)
    entry = dynamo.prepare(1)
    assert f"{1:020}.json" not in dynamo.names()
    table = opened(dynamo)
    assert (table.version, table.history(1)[0]["engineInfo"]) == (1, "another")
    finished = dynamo.entries()[1]
    assert finished["complete"] == {"S": "true"}
    assert abs(int(finished["expireTime"]["N"]) - time.time() - 86_400) < 60
    assert finished["tempPath"] == entry["tempPath"]


def test_a_prepared_commit_is_finished_by_the_next_writer(dynamo: Dynamo) -> None:
    table = append(dynamo)
    dynamo.prepare(1)
    deltaic.write(table, ROW, mode="append")  # which does not list the log before
    assert (table.version, opened(dynamo).scan().count()) == (2, 2)
    assert [entry["complete"]["S"] for entry in dynamo.entries()] == ["true"] * 3


def test_a_writer_of_the_version_after_finishes_the_one_before(dynamo: Dynamo) -> None:
    append(dynamo)
    store = DynamoDBLogStores(table=dynamo.table, endpoint_url=dynamo.server.url)(
        dynamo.place.at(), dynamo.place.options
    )
    dynamo.prepare(1)
    assert store.write_if_absent(f"_delta_log/{2:020}.json", b"{}\n") is True
    assert f"{1:020}.json" in dynamo.names()


def test_what_another_cluster_prepared_conflicts_as_any_commit(
    dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit comes between the look-up of the version and our own entry."""
    table = append(dynamo)
    [path] = table.files().to_arrow()["path"].to_pylist()
    remove = {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}
    body = (json.dumps({"commitInfo": {"operation": "DELETE"}}) + "\n" + json.dumps(remove) + "\n").encode()
    checked = DynamoDBLogStore._check_place_of

    def prepared(store: DynamoDBLogStore, version: int, path: str) -> None:
        checked(store, version, path)
        if version == 1:
            dynamo.prepare(1, body=body)

    monkeypatch.setattr(DynamoDBLogStore, "_check_place_of", prepared)
    with pytest.raises(ConcurrentDeleteReadException, match="version 1"):
        table.update({"id": "2"}, "id = 1")
    # Not the one that came too late.
    assert len([name for name in dynamo.names() if name.startswith(".tmp/")]) == 2
    assert opened(dynamo).scan().count() == 0


def test_a_copied_commit_whose_entry_is_incomplete_is_not_copied_again(dynamo: Dynamo) -> None:
    append(dynamo)
    entry = dynamo.prepare(1)
    opened(dynamo)
    dynamo.put(entry)  # as if its writer had died before the last step
    with dynamo.server.recorded() as requests:
        assert opened(dynamo).version == 1
    assert not [each for each in requests if each.method == "PUT"]
    assert dynamo.entries()[1]["complete"] == {"S": "true"}


@pytest.mark.parametrize("expires", [-86_400, 86_400])
def test_entries_with_an_expiry_are_read_and_may_go(dynamo: Dynamo, expires: int) -> None:
    append(dynamo)
    [entry] = dynamo.entries()
    dynamo.put(entry, expireTime={"N": str(int(time.time()) + expires)})
    assert append(dynamo).version == 1
    for each in dynamo.entries():  # as DynamoDB's time to live
        dynamo.client.delete_item(
            TableName=dynamo.table, Key={name: each[name] for name in ("tablePath", "fileName")}
        )
    assert append(dynamo).version == 2
    assert opened(dynamo).scan().count() == 3


def test_the_expiry_is_a_setting(dynamo: Dynamo) -> None:
    stores = DynamoDBLogStores(table=dynamo.table, client=dynamo.client, expiry=timedelta(hours=2))
    with deltaic.configure(log_stores={"s3": stores}):
        append(dynamo)
    assert abs(int(dynamo.entries()[0]["expireTime"]["N"]) - time.time() - 7200) < 60


@pytest.mark.parametrize("fault", ["lost", "error after", "dropped", "error"])
def test_a_commit_is_there_once_whatever_happens_to_the_answer_of_its_entry(
    dynamo: Dynamo, fault: str
) -> None:
    append(dynamo)
    with dynamo.server.fault(fault, target("PutItem")) as happened:
        assert append(dynamo).version == 1
    assert happened.hits == 1
    assert opened(dynamo).scan().count() == 2
    assert [entry["complete"]["S"] for entry in dynamo.entries()] == ["true", "true"]


@pytest.mark.parametrize("fault", ["lost", "dropped"])
def test_an_entry_whose_answer_never_comes(dynamo: Dynamo, fault: str) -> None:
    """boto3 does not try again: the entry itself names its writer."""
    append(dynamo)
    with dynamo.server.fault(fault, target("PutItem")):
        assert append(dynamo, max_retries="0").version == 1
    assert opened(dynamo).scan().count() == 2


def test_a_commit_that_nobody_can_ask_about_keeps_its_files(dynamo: Dynamo) -> None:
    table = append(dynamo, max_retries="0")
    put: list[Request] = []

    def puts(request: Request) -> bool:
        put.extend([request] * (request.target == "PutItem"))
        return request.target == "PutItem"

    with (
        dynamo.server.fault("lost", puts, times=99),
        dynamo.server.fault("error", lambda request: bool(put and request.target), times=99),
        pytest.raises(CommitUnknownError, match=r"txnId [0-9a-f-]{36}"),
    ):
        deltaic.write(table, ROW, mode="append")
    assert opened(dynamo).scan().count() == 2  # it was committed, with its files


@pytest.mark.parametrize("fault", ["denied", "error", "lost"])
def test_an_entry_commits_even_if_its_file_cannot_be_copied(dynamo: Dynamo, fault: str) -> None:
    append(dynamo)

    def copies(request: Request) -> bool:
        return request.method == "PUT" and request.path.endswith("1.json")

    with dynamo.server.fault(fault, copies) as happened:
        table = append(dynamo, max_retries="0")
    assert (table.version, happened.hits) == (1, 1)
    assert (opened(dynamo).version, opened(dynamo).scan().count()) == (1, 2)
    assert [entry["complete"]["S"] for entry in dynamo.entries()] == ["true", "true"]


def test_a_commit_that_cannot_be_copied_by_anybody_is_not_said_to_have_failed(dynamo: Dynamo) -> None:
    append(dynamo)
    with (
        dynamo.server.fault(
            "denied", lambda request: request.method == "PUT" and request.path.endswith("1.json"), times=99
        ),
        pytest.raises(CommitUnknownError, match="is committed as version 1"),
    ):
        append(dynamo, max_retries="0")
    assert (opened(dynamo).version, opened(dynamo).scan().count()) == (1, 2)


def test_a_writer_may_die_at_any_request(dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests from the n-th on get no answer and do nothing; another writer goes on. What was
    acknowledged is there once."""
    monkeypatch.setattr("deltaic.transaction.attempts.PUT_WAITS", (0.0,))
    monkeypatch.setattr("deltaic.transaction.transaction.READ_WAITS", (0.0,))
    append(dynamo)
    told, unknown, number = 1, 0, 0
    while True:
        requests = 0

        def dead(request: Request, after: int = number) -> bool:
            nonlocal requests
            requests += 1
            return requests > after

        with dynamo.server.fault("dropped", dead, times=1 << 30) as happened:
            try:
                append(dynamo, max_retries="0")
                told += 1
            except (OSError, CommitError):
                pass
            except CommitUnknownError:
                unknown += 1
        append(dynamo)
        told += 1
        table = opened(dynamo)
        rows = table.scan().count()
        assert told <= rows <= told + unknown
        assert rows == table.version + 1
        told, unknown = rows, 0
        if not happened.hits:
            break
        number += 1
    assert number > 8


def test_entries_of_a_table_that_was_here_before_are_named(dynamo: Dynamo) -> None:
    append(dynamo)
    for name in dynamo.names():
        dynamo.objects.delete_object(Bucket=dynamo.bucket, Key=f"{dynamo.key}/_delta_log/{name}")
    with pytest.raises(
        CommitError, match=f"still has commits of a table that was here before.*tablePath {dynamo.path}"
    ):
        append(dynamo)


def test_a_version_without_the_one_before_is_refused(dynamo: Dynamo) -> None:
    append(dynamo)
    store = DynamoDBLogStores(table=dynamo.table, endpoint_url=dynamo.server.url)(
        dynamo.place.at(), dynamo.place.options
    )
    with pytest.raises(CommitError, match="the commit before version 5 is missing"):
        store.write_if_absent(f"_delta_log/{5:020}.json", b"{}\n")
    assert len(dynamo.entries()) == 1


def test_a_prepared_commit_whose_file_is_gone_is_named(dynamo: Dynamo) -> None:
    append(dynamo)
    dynamo.prepare(1, temporary=False)
    with pytest.raises(
        ProtocolError, match=r"00000000000000000001\.json was committed, and its file is gone"
    ):
        opened(dynamo)


@pytest.mark.parametrize("path", ["../../../other/file", "../../x", "/etc/passwd"])
def test_an_entry_leads_nowhere_else(dynamo: Dynamo, path: str) -> None:
    append(dynamo)
    entry = dynamo.prepare(1, temporary=False)
    dynamo.put(entry, tempPath={"S": path})
    with pytest.raises(deltaic.errors.DeltaError):
        opened(dynamo)
    assert f"{1:020}.json" not in dynamo.names()


def test_a_malformed_entry_is_named(dynamo: Dynamo) -> None:
    append(dynamo)
    entry = dynamo.prepare(1)
    del entry["complete"]
    dynamo.put(entry)
    with pytest.raises(
        ProtocolError, match=r"not an entry of a commit.*found \['fileName', 'tablePath', 'tempPath'\]"
    ):
        opened(dynamo)


def test_both_schemes_are_one_table(dynamo: Dynamo) -> None:
    append(dynamo)
    other = dynamo.place.at().replace("s3://", "s3a://") + "/"
    assert deltaic.write(other, ROW, mode="append", storage_options=dynamo.place.options).version == 1
    assert len(dynamo.entries()) == 2


def test_an_entry_is_not_asked_for_where_none_is_needed(dynamo: Dynamo) -> None:
    """A listing makes one request to DynamoDB; reading data makes none."""
    append(dynamo)
    with dynamo.server.recorded() as requests:
        table = opened(dynamo)
    assert [each.target for each in requests if each.target] == ["Query"]
    with dynamo.server.recorded() as requests:
        table.scan().to_arrow()
    assert not [each.target for each in requests if each.target]
    with dynamo.server.recorded() as requests:
        deltaic.write(table, ROW, mode="append")
    assert [each.target for each in requests if each.target] == ["GetItem", "PutItem", "PutItem"]


def test_without_boto3_the_extra_is_named(dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "boto3.session", None)
    with pytest.raises(UnsupportedFeatureError, match=r"deltaic\[dynamodb\]"):
        append(dynamo, user_agent=uuid.uuid4().hex)  # clients of other options are not made yet


def test_secrets_are_in_no_error_of_dynamodb(dynamo: Dynamo) -> None:
    append(dynamo)
    with (
        dynamo.server.fault("denied", target("Query"), times=99),
        pytest.raises(PermissionError, match="DynamoDB") as info,
    ):
        opened(dynamo)
    assert SECRET not in f"{info.value!r} {info.value.__cause__!r}"
