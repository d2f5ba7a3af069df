"""Storage options, the environment, AWS profiles and functions that return credentials; no secret leaves the
process."""

from __future__ import annotations

import logging
import pickle
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    InvalidTypeError,
    TableNotFoundError,
    UnsafeStoreError,
    UnsupportedFeatureError,
)
from store_servers import KEY, S3, SECRET, Place, Server

ROWS = pa.table({"id": [1, 2]})
URL = "s3://tables/options"


@pytest.fixture
def place(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Place:
    """A place, and no credentials in the environment."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return s3.place()


def without(options: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in names}


def keyless(place: Place) -> dict[str, str]:
    return without(place.options, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.mark.parametrize(
    ("url", "key", "nearest"),
    [
        (URL, "AWS_ACCES_KEY_ID", "'aws_access_key_id'"),
        (URL, "aws_regoin", "'aws_region'"),
        (URL, "max_retires", "'max_retries'"),
        ("az://tables/x", "azure_storage_acount_name", "'azure_storage_account_name'"),
        ("gs://tables/x", "google_service_acount", "'google_service_account'"),
    ],
)
def test_an_unknown_key_names_the_nearest(url: str, key: str, nearest: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"found '{key.lower()}'; expected a key like {nearest}"):
        DeltaTable(url, storage_options={key: "canary-value"})


def test_keys_of_other_packages_are_heeded_or_refused_by_name(place: Place) -> None:
    deltaic.write(
        place.at(),
        ROWS,
        storage_options={
            **place.options,
            "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
            "aws_conditional_put": "etag",
        },
    )
    with pytest.raises(UnsupportedFeatureError, match="'AWS_S3_LOCKING_PROVIDER': locks"):
        DeltaTable(place.at(), storage_options={**place.options, "AWS_S3_LOCKING_PROVIDER": "dynamodb"})
    with pytest.raises(UnsafeStoreError, match="'aws_conditional_put'"):
        DeltaTable(place.at(), storage_options={**place.options, "aws_conditional_put": "disabled"})
    with pytest.raises(InvalidArgumentError, match="'retry_timeout' has no valid value"):
        DeltaTable(place.at(), storage_options={**place.options, "retry_timeout": "soon"})
    short = {name.removeprefix("AWS_").lower(): value for name, value in place.options.items()}
    assert DeltaTable(place.at(), storage_options=short).scan().count() == 2


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_schemes_name_one_place(s3: S3, scheme: str) -> None:
    place = s3.place()
    deltaic.write(place.at(), ROWS, storage_options=place.options)
    table = DeltaTable(place.at().replace("s3://", f"{scheme}://"), storage_options=place.options)
    assert (table.location.split(":")[0], table.scan().count()) == (scheme, 2)


def test_the_environment_is_heeded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.options.items():
        monkeypatch.setenv(name, value)
    deltaic.write(place.at(), ROWS)
    assert DeltaTable(place.at()).scan().count() == 2
    assert pickle.loads(pickle.dumps(DeltaTable(place.at()))).scan().count() == 2


def test_a_profile_gives_keys_and_region(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile work]\nregion = us-east-1\nendpoint_url = {place.options['AWS_ENDPOINT_URL']}\n"
    )
    options = {"aws_profile": "work", "allow_http": "true"}
    deltaic.write(place.at(), ROWS, storage_options=options)
    with pytest.raises(InvalidArgumentError, match=r"no such AWS profile; found 'wrok'; expected work"):
        DeltaTable(place.at(), storage_options={"aws_profile": "wrok"})
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert DeltaTable(place.at(), storage_options={"allow_http": "true"}).scan().count() == 2


def test_a_profile_of_single_sign_on_needs_botocore(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[profile sso]\nsso_session = work\nregion = us-east-1\n")
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(UnsupportedFeatureError, match="'sso' needs the package botocore"):
        DeltaTable(place.at(), storage_options={**keyless(place), "aws_profile": "sso"})


def test_a_profile_whose_credentials_a_process_gives(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    said = f'{{"Version": 1, "AccessKeyId": "{KEY}", "SecretAccessKey": "{SECRET}"}}'
    (tmp_path / "said.json").write_text(said)
    (tmp_path / "config").write_text(f"[profile process]\ncredential_process = cat {tmp_path}/said.json\n")
    deltaic.write(place.at(), ROWS, storage_options={**keyless(place), "aws_profile": "process"})
    assert DeltaTable(place.at(), storage_options=place.options).scan().count() == 2


def keys(**more: object) -> dict[str, object]:
    return {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, **more}


def test_a_function_gives_credentials_and_is_asked_again_before_they_expire(place: Place) -> None:
    asked: list[str] = []
    valid: list[float] = [3600.0]

    def credentials(location: str) -> dict[str, object]:
        asked.append(location)
        return keys(expires=datetime.now(timezone.utc) + timedelta(seconds=valid[0]))

    with deltaic.configure(credentials=credentials):
        table = deltaic.write(place.at(), ROWS, storage_options=keyless(place))
        table.scan().to_arrow()
        assert asked == ["s3://tables"]

    def short(location: str) -> dict[str, object]:
        asked.append(location)
        return keys(expires=time.time() + 1)

    with deltaic.configure(credentials=short):
        DeltaTable(place.at(), storage_options=keyless(place))
        assert len(asked) >= 3  # once more for each request, for the listing and the commit at least


class CanaryError(Exception):
    pass


def raising(location: str) -> dict[str, str]:
    raise CanaryError(location)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (raising, CanaryError, "s3://tables"),
        (lambda location: None, InvalidTypeError, "must return a mapping"),
        (lambda location: {"aws_access_key_id": 1}, InvalidTypeError, "not a string"),
        (
            lambda location: {"aws_access_key_id": "x", "expires": "soon"},
            InvalidTypeError,
            "invalid .expires.",
        ),
        (lambda location: {"aws_access_key_id": "x"}, InvalidArgumentError, "aws_secret_access_key"),
    ],
)
def test_what_is_wrong_with_a_function_is_told(
    place: Place, function: Callable[[str], object], error: type, text: str
) -> None:
    with deltaic.configure(credentials=function), pytest.raises(error, match=text):  # type: ignore[arg-type]
        DeltaTable(place.at(), storage_options=keyless(place))


def test_failures_say_what_to_do(place: Place) -> None:
    quick = {**place.options, "max_retries": "0"}
    with pytest.raises(FileNotFoundError, match="bucket or container of the table does not exist"):
        deltaic.write("s3://no-such-bucket/t", ROWS, storage_options=quick)
    with pytest.raises(
        (FileNotFoundError, DeltaError), match="bucket or container of the table does not exist"
    ):
        DeltaTable("s3://no-such-bucket/t", storage_options=quick)
    with pytest.raises(OSError, match="could not be reached"):
        DeltaTable(place.at(), storage_options={**quick, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    assert place.server is not None
    with (
        place.server.fault("denied", lambda request: request.is_listing),
        pytest.raises(PermissionError, match="do not allow it") as info,
    ):
        DeltaTable(place.at(), storage_options=quick)
    assert info.value.filename.startswith(place.at())
    with (
        place.server.fault("busy", lambda request: request.is_listing, times=9),
        pytest.raises(OSError, match="found SlowDown"),
    ):
        DeltaTable(place.at(), storage_options=quick)
    with pytest.raises(TableNotFoundError):
        DeltaTable(place.at(), storage_options=quick)


@pytest.mark.parametrize(
    "url",
    ["s3://key:{}@tables/t", "s3://key:{}/x@tables/t", "https://user:{}@host/t", "s3://key:{}@tables/t?x=1"],
)
def test_errors_do_not_show_a_password_in_a_url(url: str) -> None:
    secret = f"secret{uuid.uuid4().hex}"
    with pytest.raises(InvalidArgumentError) as info:
        DeltaTable(url.format(secret))
    assert secret not in str(info.value)
    assert "://...@" in str(info.value)
    with pytest.raises(InvalidArgumentError, match="credentials in the URL"):
        DeltaTable("s3://key:secret@tables/t")


def test_no_secret_in_texts_logs_errors_or_pickles(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    canary = f"canary{uuid.uuid4().hex}"
    options = {
        **place.options,
        "AWS_SECRET_ACCESS_KEY": canary,
        "AWS_SESSION_TOKEN": canary,
        "max_retries": "0",
    }
    texts: list[str] = []
    with caplog.at_level(logging.DEBUG):
        table = deltaic.write(place.at(), ROWS, storage_options=options)
        store = table._snapshot.store
        texts += [repr(each) for each in (table, store, table._snapshot, table.detail(), table.history())]
        texts += [str(pickle.dumps(each)) for each in (table, store)]
        assert place.server is not None
        for fault in ("denied", "error", "dropped"):
            for job in (
                lambda: store.get("x"),
                lambda: DeltaTable(place.at(), storage_options=options),
                lambda: table.delete("id = 1"),
            ):
                with place.server.fault(fault, lambda request: True, times=99):
                    try:
                        job()
                    except Exception as error:
                        texts += [str(error), repr(error), "".join(traceback.format_exception(error))]
        for key in ("aws_regoin", "allow_http", "proxy_url"):
            try:
                DeltaTable(place.at(), storage_options={**options, key: canary})
            except Exception as error:
                texts += ["".join(traceback.format_exception(error))]
    texts += [record.getMessage() for record in caplog.records]
    assert len(texts) > 25
    assert not [text for text in texts if canary in text]


def test_a_redirected_request_follows(s3: S3) -> None:
    """The client without certificates leaves redirections to the usual one."""
    place, asked = s3.place(), []

    def at_the_second_try(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        target = f"{quote(environ['PATH_INFO'])}?{environ['QUERY_STRING']}"
        asked.append(target)
        if asked.count(target) % 2 == 0:
            return s3.server.application(environ, start_response)
        start_response("307 Temporary Redirect", [("Location", f"http://{environ['HTTP_HOST']}{target}")])
        return []

    deltaic.write(place.at(), ROWS, storage_options=place.options)
    with Server(at_the_second_try) as server:
        options = {**place.options, "AWS_ENDPOINT_URL": server.url}
        assert DeltaTable(place.at(), storage_options=options).scan().count() == ROWS.num_rows
    assert sum(target.endswith("/_delta_log/00000000000000000000.json?") for target in asked) == 2
