"""The base class of deltaic's LogStores: all methods of `LogStore` except `write_if_absent`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pyarrow.compute as pc

from deltaic.errors import UnsupportedFeatureError
from deltaic.log.log_stores.aws import AwsClients, as_os_error, clients_of
from deltaic.log.store import open_own
from deltaic.protocol.paths import decoded_path

_S3 = ("s3", "s3a")


class Objects:
    """Reads, listings, replacing writes and deletes of `deltaic.log.store.LogStore`.

    Rust's store lists, reads whole objects and writes. It offers Python no ranges of objects, so these are
    read by the operating system on a local disk, and by boto3 on S3. Other object stores have put-if-absent
    and are refused.
    """

    def __init__(self, location: str, options: Mapping[str, str]) -> None:
        scheme = location.split("://", 1)[0].lower() if "://" in location else "file"
        if scheme not in (*_S3, "file", "memory"):
            raise UnsupportedFeatureError(
                "the store has put-if-absent of its own, so a LogStore of deltaic is not used for it",
                where=location,
                found=scheme,
                expected="s3, s3a, file, or no entry for this scheme in configure(log_stores=)",
            )
        self._store = open_own(location, options)
        self.location = self._store.location
        self.is_local = scheme == "file"
        self._root = os.path.realpath(self.location) if self.is_local else ""
        self.bucket, self.key = bucket_and_key(location) if scheme in _S3 else ("", "")
        self.clients = clients_of(location, options) if scheme in _S3 else None

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool
    ) -> Iterable[tuple[str, int, int]]:
        if not recursive:
            return self._store.entries(prefix, start_after)
        entries = self._store.list_from(prefix, start_after, recursive=True)
        entries = entries.filter(pc.invert(entries["symlink"]))  # symbolic links are no files of the table
        return zip(
            *(entries[name].to_pylist() for name in ("path", "size", "modification_time")), strict=True
        )

    def head(self, path: str) -> tuple[int, int] | None:
        return self._store.head(path)

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        if start == 0 and end is None:
            return self._store.get(path)
        if end is not None and end <= start:
            return b""
        if self.is_local:
            return self._range_of_file(path, start, end)
        return (
            self._store.get(path)[start:end]
            if self.clients is None
            else self._range_in_s3(self.clients, path, start, end)
        )

    def write(self, path: str, data: bytes) -> None:
        self._store.put(path, data)

    def create(self, path: str, data: bytes) -> str:
        """Creates an object by the store's put-if-absent. Returns "created", "exists" or "unknown". A store
        without put-if-absent raises UnsafeStoreError."""
        return self._store.put_if_absent(path, data)

    def delete(self, path: str) -> bool:
        return self._store.delete([path]) > 0

    def _range_of_file(self, path: str, start: int, end: int | None) -> bytes:
        full = os.path.realpath(os.path.join(self._root, path))
        # a link out of the table; Rust's store checks if it is allowed
        if not full.startswith(self._root.rstrip("/") + "/"):
            return self._store.get(path)[start:end]
        with open(full, "rb", buffering=0) as file:
            file.seek(start)
            if end is None:
                return file.read()
            parts = []
            while (length := end - start) > 0 and (part := file.read(length)):
                parts.append(part)
                start += len(part)
        return b"".join(parts)

    def _range_in_s3(self, clients: AwsClients, path: str, start: int, end: int | None) -> bytes:
        key = f"{self.key}/{path}" if self.key else path
        try:
            last = "" if end is None else end - 1
            answer = clients.client("s3").get_object(
                Bucket=self.bucket, Key=key, Range=f"bytes={start}-{last}", **clients.of_requests
            )
            data: bytes = answer["Body"].read()
        except Exception as error:
            if _status(error) == 416:  # the range begins after the object's end
                return b""
            raise as_os_error(error, path) from error
        return data


def bucket_and_key(location: str) -> tuple[str, str]:
    """Returns bucket and key of a URL, decoded and without a slash at the end: "s3://bucket/a/key/" ->
    ("bucket", "a/key")."""
    parts = urlsplit(location)
    return parts.netloc.rpartition("@")[2], "/".join(
        part for part in decoded_path(parts.path).split("/") if part
    )


def _status(error: Exception) -> Any:
    response = getattr(error, "response", None) or {}
    return response.get("ResponseMetadata", {}).get("HTTPStatusCode")
