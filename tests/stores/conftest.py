"""Locations in stores of every kind, for one suite of tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from store_servers import S3, AzuriteError, Place, Server, azure_place, azurite, google, google_place, moto_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with moto_s3() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[str]:
    with ExitStack() as stack:
        try:
            url = stack.enter_context(azurite())
        except AzuriteError as error:
            pytest.skip(str(error))
        yield url


@pytest.fixture(scope="session")
def gcs() -> Iterator[Server]:
    with google() as server:
        yield server


@pytest.fixture(params=["local", "portable", "memory", "s3", "gcs", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place for tables in each kind of store."""
    if request.param == "local":
        return Place(str(tmp_path), {})
    if request.param == "portable":  # the local store with the calls that Windows uses
        monkeypatch.setenv("DELTAIC_LOCAL_STORE", "portable")
        return Place(str(tmp_path), {})
    if request.param == "memory":
        return Place(f"memory://{uuid.uuid4()}", {})
    if request.param == "azure":
        return azure_place(request.getfixturevalue("azure"))
    if request.param == "gcs":
        return google_place(request.getfixturevalue("gcs"))
    found: S3 = request.getfixturevalue("s3")
    return found.place()
