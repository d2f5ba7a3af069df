"""Object stores on this machine: S3 by moto and Google Cloud Storage by a stub, in threads of the test's
process, with their requests recorded and faults by script; Azure by Azurite, a process of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from gcs_stub import GoogleStub

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

KEY, SECRET = "AKIATESTTESTTESTTEST", "canary-secret-of-the-test-server"


@dataclass(frozen=True)
class Request:
    """A request that a server received. `range`: its Range header; `target`: the operation of DynamoDB, such
    as "PutItem"."""

    method: str
    path: str
    query: str
    range: str | None
    status: int | None = None
    target: str = ""

    @property
    def is_listing(self) -> bool:
        return self.method == "GET" and ("list-type=2" in self.query or "comp=list" in self.query)


@dataclass
class Fault:
    """What happens to the next `times` requests that `matches` chooses.

    "lost": done, and the connection is closed without an answer. "dropped": closed before anything is done.
    "error after": done and answered 500. "error", "busy": answered 500 or 503, not done. "conflict": answered
    409 as S3 does where a delete came between, not done. "blind": done as if If-None-Match were not there.
    "denied": answered 403. "slow": done after half a second.
    """

    kind: str
    matches: Callable[[Request], bool]
    times: int = 1
    hits: int = 0


@dataclass
class Server:
    """A WSGI application behind a port of its own."""

    application: Wsgi
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    delay: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    """Requests that change something are handled one after the other: moto checks a condition and then puts,
    and a second request between these two would succeed as well, which S3 and DynamoDB exclude."""

    def __enter__(self) -> Server:
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def recorded(self) -> Iterator[list[Request]]:
        """The requests that come while the block runs."""
        found: list[Request] = []
        with self._lock:
            start = len(self.requests)
        yield found
        with self._lock:
            found.extend(self.requests[start:])

    @contextmanager
    def fault(self, kind: str, matches: Callable[[Request], bool], times: int = 1) -> Iterator[Fault]:
        """While the block runs, `kind` happens to the next `times` requests that match."""
        fault = Fault(kind, matches, times)
        with self._lock:
            self.faults.append(fault)
        try:
            yield fault
        finally:
            with self._lock:
                self.faults.remove(fault)

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        target = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        place = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        request = Request(environ["REQUEST_METHOD"], *place, environ.get("HTTP_RANGE"), target=target)
        with self._lock:
            self.requests.append(request)
            fault = next(
                (each for each in self.faults if each.hits < each.times and each.matches(request)), None
            )
            if fault is not None:
                fault.hits += 1
        if self.delay:
            time.sleep(self.delay)
        kind = fault.kind if fault is not None else None
        if kind == "dropped":
            return _hang_up(environ)
        if kind in _REFUSALS:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status, code = _REFUSALS[kind]
            start_response(status, [("Content-Type", "application/xml")])
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>by script</Message></Error>"
            return [text.encode()]
        if kind == "blind":
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if kind == "slow":
            time.sleep(0.5)
        if kind in ("lost", "error after"):
            list(self._done(environ, lambda *_: None))
            if kind == "lost":
                return _hang_up(environ)
            start_response("500 Internal Server Error", [("Content-Type", "application/xml")])
            return [b"<Error><Code>InternalError</Code></Error>"]
        return self._done(environ, start_response)

    def _done(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._turn if environ["REQUEST_METHOD"] not in ("GET", "HEAD") else nullcontext():
            return self.application(environ, start_response)


_REFUSALS = {
    "error": ("500 Internal Server Error", "InternalError"),
    "busy": ("503 Slow Down", "SlowDown"),
    "conflict": ("409 Conflict", "ConditionalRequestConflict"),
    "denied": ("403 Forbidden", "AccessDenied"),
}


def _hang_up(environ: dict[str, Any]) -> list[bytes]:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return []


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: Any, **__: Any) -> None:
        pass

    def log(self, *_: Any, **__: Any) -> None:
        pass


@dataclass(frozen=True)
class Place:
    """Where a test's tables are: a URL or path to begin with, and what opens it."""

    root: str
    options: dict[str, str]
    server: Server | None = None

    def at(self, name: str = "table") -> str:
        return f"{self.root}/{name}"


@dataclass(frozen=True)
class S3:
    """A server of S3 with one bucket."""

    server: Server
    bucket: str = "tables"

    @property
    def options(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.server.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def place(self, scheme: str = "s3") -> Place:
        return Place(f"{scheme}://{self.bucket}/{uuid.uuid4().hex[:8]}", self.options, self.server)


@contextmanager
def moto_s3() -> Iterator[S3]:
    """S3 by moto, its data in the memory of this process."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    with Server(DomainDispatcherApplication(create_backend_app)) as server:
        found = S3(server)
        scope = f"{KEY}/20260101/us-east-1/s3/aws4_request"
        signed = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
        made = urllib.request.Request(
            f"{server.url}/{found.bucket}", method="PUT", headers={"Authorization": signed}
        )
        urllib.request.urlopen(made).close()
        yield found


@contextmanager
def google() -> Iterator[Server]:
    """Google Cloud Storage by the project's stub; `google_place` is in it."""
    with Server(GoogleStub("tables")) as server:
        yield server


def google_place(server: Server) -> Place:
    account = {
        "gcs_base_url": server.url,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    options = {"google_service_account_key": json.dumps(account), "allow_http": "true"}
    return Place(f"gs://tables/{uuid.uuid4().hex[:8]}", options, server)


AZURE_ACCOUNT = "devstoreaccount1"
# The emulator's, known to all.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class AzuriteError(Exception):
    """Azurite cannot be installed or started; the text has the reason."""


@contextmanager
def azurite() -> Iterator[str]:
    """The URL of Azurite's blob service, with the container "tables". Installed by npm into the user's cache
    the first time."""
    program = shutil.which("azurite-blob") or _installed_azurite()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _make_container(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def azure_place(url: str, scheme: str = "az") -> Place:
    options = {
        "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
        "azure_endpoint": f"{url}/{AZURE_ACCOUNT}",
        "azure_allow_http": "true",
    }
    return Place(f"{scheme}://tables/{uuid.uuid4().hex[:8]}", options)


def _installed_azurite() -> str:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deltaic" / "azurite"
    program = cache / "node_modules" / ".bin" / "azurite-blob"
    if program.exists():
        return str(program)
    npm = shutil.which("npm")
    if npm is None:
        raise AzuriteError("npm is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(cache), "azurite@3"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=240)
    except (subprocess.SubprocessError, OSError) as error:
        raise AzuriteError(f"npm cannot install azurite: {error}") from error
    return str(program)


def _make_container(url: str, process: subprocess.Popen[bytes]) -> None:
    path = f"/{AZURE_ACCOUNT}/tables"
    for _ in range(200):
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        text = "PUT" + "\n" * 12 + lines + f"/{AZURE_ACCOUNT}{path}\nrestype:container"
        digest = hmac.new(base64.b64decode(AZURE_KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
        headers["Content-Length"] = "0"
        request = urllib.request.Request(f"{url}{path}?restype=container", method="PUT", headers=headers)
        try:
            urllib.request.urlopen(request).close()
            return
        except urllib.error.HTTPError:
            raise
        except OSError:
            if process.poll() is not None:
                raise AzuriteError("azurite ended at once") from None
            time.sleep(0.1)
    raise AzuriteError("azurite does not answer")
