"""Tables behind plain HTTP: read without listings, and never written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from werkzeug.utils import send_file

import deltaic
from deltaic import DeltaTable
from deltaic.errors import DeltaError, InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from store_servers import Server

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "p": [f"a b{at % 2}" for at in range(10)]})
OPTIONS = {"allow_http": "true"}


class Files:
    """A WSGI application that gives the files of a folder, by ranges, too."""

    def __init__(self, folder: Path, missing: str) -> None:
        self.folder, self.missing = folder, missing

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = self.folder / environ["PATH_INFO"].encode("latin-1").decode().lstrip("/")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not path.is_file():
            start_response(self.missing, [("Content-Length", "0")])
            return []
        wanted = environ.get("HTTP_RANGE", "")
        if wanted.startswith("bytes=-") and int(wanted[7:]) > path.stat().st_size:
            environ["HTTP_RANGE"] = "bytes=0-"  # RFC 9110 requires this and werkzeug does not do it
        answer = send_file(path, environ, conditional=True)
        answer.direct_passthrough = False
        return answer(environ, start_response)  # type: ignore[no-any-return]


@pytest.fixture(params=["404 Not Found", "403 Forbidden"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server of the folder; 403: as public buckets answer for what is missing."""
    with Server(Files(tmp_path, request.param)) as found:
        yield found


def test_versions_are_found_by_their_names(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/my%20tables/t"
    for number in range(12):
        deltaic.write(
            tmp_path / "my tables" / "t", ROWS.slice(number % 10, 1), mode="append", partition_by="p"
        )
    DeltaTable(tmp_path / "my tables" / "t").checkpoint()
    with server.recorded() as found:
        table = DeltaTable(url, storage_options=OPTIONS)
    assert table.version == 11
    assert len(found) < 15
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted([*range(10), 0, 1])
    assert sorted(table.scan(where="p = 'a b1' AND id > 4").to_arrow()["id"].to_pylist()) == [5, 7, 9]
    assert DeltaTable(url, version=3, storage_options=OPTIONS).scan().count() == 4
    deltaic.write(tmp_path / "my tables" / "t", ROWS, mode="append")
    table.refresh()
    assert table.version == 12


def test_it_is_read_only(server: Server, tmp_path: Path) -> None:
    deltaic.write(tmp_path / "t", ROWS)
    url = f"{server.url}/t"
    before = sorted(path.name for path in tmp_path.rglob("*"))
    table = DeltaTable(url, storage_options=OPTIONS)
    for job in (
        lambda: table.delete("id = 1"),
        lambda: deltaic.write(url, ROWS, mode="append", storage_options=OPTIONS),
        lambda: table.vacuum(),
    ):
        with pytest.raises((UnsupportedFeatureError, DeltaError), match="can only be read"):
            job()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    with pytest.raises(TableNotFoundError):
        DeltaTable(f"{server.url}/nothing", storage_options=OPTIONS)


def test_plain_text_connections_are_asked_for(server: Server, tmp_path: Path) -> None:
    deltaic.write(tmp_path / "t", ROWS)
    with pytest.raises(OSError, match="could not be reached"):
        DeltaTable(f"{server.url}/t", storage_options={"max_retries": "0"})
    with pytest.raises(InvalidArgumentError, match="no such storage option"):
        DeltaTable(f"{server.url}/t", storage_options={**OPTIONS, "aws_region": "x"})
