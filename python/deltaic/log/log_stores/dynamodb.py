"""Commits to S3 by means of a DynamoDB table, as delta-storage's S3DynamoDBLogStore does, so that
several clusters can write.

To commit version N, `N.json`, a writer

1. ensures that N-1.json exists, and finishes that commit if its writer has not,
2. writes the commit as `_delta_log/.tmp/N.json.<uuid>` and puts an incomplete entry for N to DynamoDB unless
   there is one. The writer whose put succeeds has committed,
3. copies the file to `_delta_log/N.json`,
4. puts the entry again as complete, with the time from which DynamoDB may delete it.

If a writer stops after step 2, the next process that lists the log or writes or reads N finishes its commit.

An entry has `tablePath` (hash key, "s3a://bucket/table"), `fileName` (range key, "N.json"), `tempPath`
(".tmp/N.json.<uuid>", relative to `_delta_log`), `complete` ("true" or "false") and, if complete,
`expireTime` (seconds since 1970).
"""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from deltaic.errors import (
    CommitError,
    InvalidArgumentError,
    InvalidTypeError,
    ProtocolError,
    UnsafeStoreError,
    UnsupportedFeatureError,
)
from deltaic.log.log_stores.aws import as_os_error
from deltaic.log.log_stores.objects import Objects
from deltaic.log.store import public_options

log = logging.getLogger("deltaic.log")

_LOG = "_delta_log"
_COMMIT = re.compile(rf"{_LOG}/(\d{{20}})\.json")
_ATTEMPTS = 4
"""Number of attempts to finish another writer's commit, as in delta-storage."""
_TABLE_WAITS = 20
"""Seconds to wait for a table of DynamoDB that is being created."""


@dataclass(frozen=True)
class Entry:
    """A commit in DynamoDB. `temp_path`: relative to `_delta_log`. `expires`: seconds since 1970; None if the
    entry is not complete."""

    table_path: str
    file_name: str
    temp_path: str
    complete: bool = False
    expires: int | None = None

    def to_item(self) -> dict[str, dict[str, str]]:
        """Returns the entry as attributes of a DynamoDB item."""
        item = {
            "tablePath": {"S": self.table_path},
            "fileName": {"S": self.file_name},
            "tempPath": {"S": self.temp_path},
            "complete": {"S": "true" if self.complete else "false"},
        }
        return item if self.expires is None else {**item, "expireTime": {"N": str(self.expires)}}

    @staticmethod
    def of_item(item: Mapping[str, Mapping[str, str]], where: str) -> Entry:
        """Parses a DynamoDB item. A missing attribute is a ProtocolError."""
        try:
            expires = int(item["expireTime"]["N"]) if "expireTime" in item else None
            is_complete = item["complete"]["S"].lower() == "true"
            return Entry(
                item["tablePath"]["S"], item["fileName"]["S"], item["tempPath"]["S"], is_complete, expires
            )
        except (KeyError, ValueError):
            raise ProtocolError(
                "the DynamoDB item is not an entry of a commit",
                where=where,
                found=sorted(item),
                expected="tablePath, fileName, tempPath, complete as text",
            ) from None


class DynamoDBLogStores:
    """LogStores for `configure(log_stores=)` that commit to tables in S3 like delta-storage's
    `S3DynamoDBLogStore`. Spark clusters with that LogStore, deltalake with
    `AWS_S3_LOCKING_PROVIDER=dynamodb`, and deltaic can write to one table.

    `table`: the DynamoDB table ("delta_log"). A missing one is created with the keys `tablePath` and
        `fileName`, and with `capacity` units of read and of write capacity (5).
    `region`: of the DynamoDB table; default: that of the storage options or of the environment, else
        us-east-1.
    `endpoint_url`: of DynamoDB, if it is not Amazon's.
    `client`: a boto3 client for DynamoDB; default: one with the credentials of the table.
    `scheme`: the scheme of locations in the entries. Spark uses the scheme of the path that it was called
        with, which is `s3a://` with Hadoop (the default). If the other writers use `s3://` (EMR), set "s3".
        Two writers with different schemes do not see each other's commits.
    `expiry`: how long an entry is kept after its commit is complete (1 day). DynamoDB deletes it if time to
        live is enabled there for `expireTime`. Do not shorten it on a store whose listings lag behind.

    boto3 must be installed (`pip install "deltaic[dynamodb]"`). Invalid arguments are an
    InvalidArgumentError. Opening a table without boto3, or with another scheme than s3 and s3a, is an
    UnsupportedFeatureError.

    Example:
        stores = deltaic.DynamoDBLogStores(region="eu-central-1")
        deltaic.configure(log_stores={"s3": stores, "s3a": stores})
        deltaic.write("s3a://bucket/orders", rows, mode="append")
    """

    def __init__(
        self,
        *,
        table: str = "delta_log",
        region: str | None = None,
        endpoint_url: str | None = None,
        client: Any = None,
        scheme: str = "s3a",
        expiry: timedelta = timedelta(days=1),
        capacity: int = 5,
    ) -> None:
        for name, value in (
            ("table", table),
            ("region", region or "-"),
            ("endpoint_url", endpoint_url or "-"),
            ("scheme", scheme),
        ):
            if not isinstance(value, str) or not value:
                raise InvalidTypeError(f"{name} has the wrong type", found=repr(value), expected="text")
        if scheme not in ("s3", "s3a", "s3n"):
            raise InvalidArgumentError("unknown scheme", found=repr(scheme), expected="'s3a' or 's3'")
        if not isinstance(expiry, timedelta) or expiry < timedelta(0):
            raise InvalidArgumentError(
                "invalid expiry", found=repr(expiry), expected="a timedelta of 0 or more"
            )
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise InvalidArgumentError(
                "invalid capacity", found=repr(capacity), expected="units of capacity, 1 or more"
            )
        self.table, self.region, self.endpoint_url, self.client = table, region, endpoint_url, client
        self.scheme, self.expiry, self.capacity = scheme, expiry, capacity
        self._is_ready, self._lock = False, threading.Lock()

    def __call__(self, location: str, options: Mapping[str, str]) -> DynamoDBLogStore:
        return DynamoDBLogStore(self, location, options)

    def __repr__(self) -> str:
        return f"DynamoDBLogStores(table={self.table!r}, region={self.region!r}, scheme={self.scheme!r})"

    def __getstate__(self) -> dict[str, Any]:
        if self.client is not None:
            raise UnsupportedFeatureError(
                "DynamoDBLogStores(client=) cannot be pickled",
                expected="region and endpoint_url instead of client",
            )
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._is_ready, self._lock = False, threading.Lock()

    def make_ready(self, client: Any) -> None:
        """Creates the DynamoDB table if there is none. Later calls do nothing."""
        with self._lock:
            if not self._is_ready:
                self._make_table(client)
                self._is_ready = True

    def _make_table(self, client: Any) -> None:
        for _ in range(_TABLE_WAITS):
            try:
                status = client.describe_table(TableName=self.table)["Table"]["TableStatus"]
            except Exception as error:
                # if the table exists, no permission to describe it is needed
                if _code(error) == "AccessDeniedException":
                    return
                if _code(error) != "ResourceNotFoundException":
                    raise as_os_error(error, f"table {self.table} of DynamoDB") from error
                status = "missing"
            if status not in ("missing", "CREATING"):
                return
            if status == "missing":
                log.info(
                    "making the table %s of DynamoDB with %d units of capacity", self.table, self.capacity
                )
                try:
                    client.create_table(
                        TableName=self.table,
                        AttributeDefinitions=[
                            {"AttributeName": name, "AttributeType": "S"}
                            for name in ("tablePath", "fileName")
                        ],
                        KeySchema=[
                            {"AttributeName": "tablePath", "KeyType": "HASH"},
                            {"AttributeName": "fileName", "KeyType": "RANGE"},
                        ],
                        ProvisionedThroughput={
                            "ReadCapacityUnits": self.capacity,
                            "WriteCapacityUnits": self.capacity,
                        },
                    )
                except Exception as error:
                    if _code(error) != "ResourceInUseException":  # another process makes it
                        raise as_os_error(error, f"table {self.table} of DynamoDB") from error
                    time.sleep(1)
            else:
                time.sleep(1)


class DynamoDBLogStore(Objects):
    """The `deltaic.log.store.LogStore` of one table."""

    def __init__(self, stores: DynamoDBLogStores, location: str, options: Mapping[str, str]) -> None:
        super().__init__(location, options)
        if self.clients is None:
            raise UnsupportedFeatureError(
                "DynamoDBLogStores can only be used for tables in S3",
                where=location,
                expected="s3:// or s3a://",
            )
        self._made = stores, (location, public_options(options))
        self._stores = stores
        self.table_path = f"{stores.scheme}://{self.bucket}/{self.key}"
        self._overwrites = False  # True if the store is known to have no put-if-absent

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool, /
    ) -> Iterable[tuple[str, int, int]]:
        if prefix.strip("/") == _LOG:
            newest = self._newest()
            if newest is not None and not newest.complete:
                self._finish(newest)
        return super().list_from(prefix, start_after, recursive)

    def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
        try:
            return super().read(path, start, end)
        except FileNotFoundError:
            if _COMMIT.fullmatch(path) is None or not self._finish_named(path):
                raise
        return super().read(path, start, end)

    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        commit = _COMMIT.fullmatch(path)
        if commit is None:
            return self._create(path, data)
        if self.head(path) is not None:
            return False
        self._check_place_of(int(commit[1]), path)
        name = path.rpartition("/")[2]
        entry = Entry(self.table_path, name, f".tmp/{name}.{uuid.uuid4()}")
        temporary = f"{_LOG}/{entry.temp_path}"
        self.write(temporary, data)
        ours = self._claim(entry)
        if ours is None:
            return None
        if not ours:
            with suppress(Exception):
                self.delete(temporary)
            self._finish_named(path)  # the winner is read next
            return False
        try:
            if self._create(path, data) is None:
                raise ConnectionError(f"{path}: it is unknown whether the object was copied")
            self._complete(entry)
        except Exception as error:  # the entry makes it committed, and the next reader or writer finishes it
            log.info("%s: %s is left to be copied from %s: %s", self.location, name, entry.temp_path, error)
        return True

    # --- the log

    def _check_place_of(self, version: int, path: str) -> None:
        """Ensures that the commit before this version is in the log. CommitError is raised if it is missing,
        or for version 0 if DynamoDB has entries of a former table at the same location."""
        if version == 0:
            entry = self._entry(path.rpartition("/")[2])
            if entry is not None and entry.complete and self.head(path) is None:
                raise CommitError(
                    f"table {self._stores.table} of DynamoDB still has commits of a table that was here"
                    " before",
                    where=self.location,
                    found=f"a complete entry for {entry.file_name}, which is not in the log",
                    expected=f"no entries with tablePath {self.table_path}",
                )
            return
        before = f"{_LOG}/{version - 1:020}.json"
        entry = self._entry(before.rpartition("/")[2])
        if entry is not None and not entry.complete:
            self._finish(entry)
        elif self.head(before) is None:
            raise CommitError(
                f"the commit before version {version} is missing", where=f"{self.location}/{before}"
            )

    def _create(self, path: str, data: bytes) -> bool | None:
        """Creates an object unless it exists: by the store's put-if-absent, or if it has none, by a check and
        a put. Returns False if the object exists, None if the outcome is unknown."""
        if not self._overwrites:
            try:
                return {"created": True, "exists": False}.get(self.create(path, data))
            except UnsafeStoreError:
                self._overwrites = True
        if self.head(path) is not None:
            return False
        self.write(path, data)
        return True

    def _finish_named(self, path: str) -> bool:
        """Copies a commit to the log that has an entry in DynamoDB. False if there is no entry."""
        entry = self._entry(path.rpartition("/")[2])
        if entry is None:
            return False
        if not entry.complete:
            self._finish(entry)
        return True

    def _finish(self, entry: Entry) -> None:
        """Copies the commit of an entry to the log and completes the entry. Several readers and writers may
        do this at the same time."""
        path = f"{_LOG}/{entry.file_name}"
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if (
                    self.head(path) is None
                    and self._create(path, super().read(f"{_LOG}/{entry.temp_path}")) is None
                ):
                    continue
                break
            except Exception as error:
                if attempt < _ATTEMPTS:
                    continue
                if isinstance(error, FileNotFoundError):
                    raise ProtocolError(
                        f"{entry.file_name} was committed, and its file is gone before it was copied to"
                        " the log",
                        where=f"{self.location}/{_LOG}/{entry.temp_path}",
                        expected="a lifecycle rule that keeps _delta_log/.tmp for days",
                    ) from error
                raise
        else:
            raise ConnectionError(f"{path}: it is unknown whether the object was copied")
        try:
            self._complete(entry)
        except Exception as error:  # the commit is in the log; the next process completes the entry
            log.info("%s: the entry of %s stays incomplete: %s", self.location, entry.file_name, error)

    # --- DynamoDB

    def _client(self) -> Any:
        client = self._stores.client
        if client is None:
            assert self.clients is not None
            client = self.clients.client(
                "dynamodb", region=self._stores.region, endpoint=self._stores.endpoint_url
            )
        self._stores.make_ready(client)
        return client

    def _claim(self, entry: Entry) -> bool | None:
        """Puts an entry unless there is one for its version. True if this entry was put, False if there is
        another, None if the outcome is unknown. After any failure the entry is read, as boto3 may have sent
        the request more than once."""
        client = self._client()
        try:
            client.put_item(
                TableName=self._stores.table,
                Item=entry.to_item(),
                ConditionExpression="attribute_not_exists(fileName)",
            )
            return True
        except Exception as error:
            failure = as_os_error(error, self._where(entry.file_name))
            is_taken = _code(error) == "ConditionalCheckFailedException"
        try:
            stored = self._entry(entry.file_name)
        except Exception:
            return None
        if stored is not None:
            return stored.temp_path == entry.temp_path
        if is_taken or isinstance(failure, ConnectionError):
            return None  # the request may still be under way, or the entry was deleted meanwhile
        raise failure

    def _complete(self, entry: Entry) -> None:
        expires = int(time.time() + self._stores.expiry.total_seconds())
        try:
            self._client().put_item(
                TableName=self._stores.table, Item=replace(entry, complete=True, expires=expires).to_item()
            )
        except Exception as error:
            raise as_os_error(error, self._where(entry.file_name)) from error

    def _entry(self, name: str) -> Entry | None:
        key = {"tablePath": {"S": self.table_path}, "fileName": {"S": name}}
        try:
            item = (
                self._client()
                .get_item(TableName=self._stores.table, Key=key, ConsistentRead=True)
                .get("Item")
            )
        except Exception as error:
            raise as_os_error(error, self._where(name)) from error
        return Entry.of_item(item, self._where(name)) if item else None

    def _newest(self) -> Entry | None:
        try:
            items = self._client().query(
                TableName=self._stores.table,
                KeyConditionExpression="tablePath = :path",
                ExpressionAttributeValues={":path": {"S": self.table_path}},
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )["Items"]
        except Exception as error:
            raise as_os_error(error, self._where("the newest commit")) from error
        return Entry.of_item(items[0], self._where("the newest commit")) if items else None

    def _where(self, name: str) -> str:
        return f"table {self._stores.table} of DynamoDB, {self.table_path}, {name}"


def _code(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, Mapping) else ""
