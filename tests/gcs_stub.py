"""A server with the part of Google Cloud Storage's XML API that object_store uses, over a dict, with
generation preconditions.

Emulators that pip or npm install do not support the header by which an object is created only if it does not
exist.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import threading
import time
from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, quote
from xml.sax.saxutils import escape

PAGE = 1000


class GoogleStub:
    """A WSGI application with one bucket."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.objects: dict[str, tuple[bytes, float, int]] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._generation = itertools.count(1)
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        _, bucket, *rest = environ["PATH_INFO"].encode("latin-1").decode().split("/", 2)
        name, query = (rest or [""])[0], parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if bucket != self.bucket:
            status, headers, answer = self._error("404 Not Found", "NoSuchBucket")
        else:
            with self._lock:
                status, headers, answer = self._handle(
                    environ, name, {key: values[0] for key, values in query.items()}, body
                )
        start_response(
            status,
            [("Content-Length", str(len(answer))), *headers]
            if "Content-Length" not in dict(headers)
            else headers,
        )
        return [answer]

    def _handle(
        self, environ: dict[str, Any], name: str, query: dict[str, str], body: bytes
    ) -> tuple[str, list[tuple[str, str]], bytes]:
        method = environ["REQUEST_METHOD"]
        if method == "GET" and not name:
            return self._listing(query)
        if method == "POST" and "uploads" in query:
            upload = str(next(self._generation))
            self._uploads[upload] = {}
            return "200 OK", [], f"<R><UploadId>{upload}</UploadId></R>".encode()
        if method == "PUT" and "uploadId" in query:
            self._uploads[query["uploadId"]][int(query["partNumber"])] = body
            return "200 OK", [("ETag", _tag(body))], b""
        if method == "POST" and "uploadId" in query:
            parts = self._uploads.pop(query["uploadId"])
            headers = self._put(name, b"".join(parts[number] for number in sorted(parts)))
            return "200 OK", headers, f"<R><ETag>{escape(dict(headers)['ETag'])}</ETag></R>".encode()
        if method == "PUT":
            if environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH") == "0" and name in self.objects:
                return self._error("412 Precondition Failed", "PreconditionFailed")
            return "200 OK", self._put(name, body), b""
        if name not in self.objects:
            return self._error("404 Not Found", "NoSuchKey")
        if method == "DELETE":
            del self.objects[name]
            return "204 No Content", [], b""
        return self._get(method, name, environ.get("HTTP_RANGE"))

    def _put(self, name: str, body: bytes) -> list[tuple[str, str]]:
        generation = next(self._generation)
        self.objects[name] = (body, time.time(), generation)
        return [("ETag", _tag(body)), ("x-goog-generation", str(generation))]

    def _get(self, method: str, name: str, wanted: str | None) -> tuple[str, list[tuple[str, str]], bytes]:
        body, changed, generation = self.objects[name]
        headers = [
            ("ETag", _tag(body)),
            ("Last-Modified", formatdate(changed, usegmt=True)),
            ("x-goog-generation", str(generation)),
        ]
        if method == "HEAD":
            return "200 OK", [*headers, ("Content-Length", str(len(body)))], b""
        if wanted is None:
            return "200 OK", headers, body
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
        assert match is not None, wanted
        start = int(match[1]) if match[1] else max(len(body) - int(match[2]), 0)
        end = min(int(match[2]) + 1, len(body)) if match[1] and match[2] else len(body)
        if start >= len(body):
            return self._error("416 Range Not Satisfiable", "InvalidRange")
        return (
            "206 Partial Content",
            [*headers, ("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")],
            body[start:end],
        )

    def _listing(self, query: dict[str, str]) -> tuple[str, list[tuple[str, str]], bytes]:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = query.get("continuation-token") or query.get("start-after") or ""
        found, folders, token, last = [], [], "", ""
        for name in sorted(each for each in self.objects if each.startswith(prefix) and each > after):
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                if folder not in folders:
                    folders.append(folder)
                continue
            if len(found) == PAGE:
                token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
                break
            body, changed, _ = self.objects[name]
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(changed))
            found.append(
                f"<Contents><Key>{escape(name)}</Key><Size>{len(body)}</Size>"
                f"<LastModified>{when}</LastModified></Contents>"
            )
            last = name
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders
        )
        return (
            "200 OK",
            [],
            f"<ListBucketResult>{''.join(found)}{prefixes}{token}</ListBucketResult>".encode(),
        )

    def _error(self, status: str, code: str) -> tuple[str, list[tuple[str, str]], bytes]:
        return status, [], f"<Error><Code>{quote(code)}</Code></Error>".encode()


def _tag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
