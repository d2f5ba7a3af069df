"""Clients of boto3 with the credentials of deltaic's store of a bucket."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from deltaic import configuration
from deltaic.errors import UnsupportedFeatureError
from deltaic.log import credentials

_RENEWED_BEFORE = 300.0
"""Seconds before their expiry at which credentials are renewed."""
# Names of storage options without `aws_` -> arguments of a boto3 client.
_ARGUMENTS = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "token": "aws_session_token",
    "region": "region_name",
    "default_region": "region_name",
    "endpoint": "endpoint_url",
    "endpoint_url": "endpoint_url",
    "endpoint_url_s3": "endpoint_url",
}


def clients_of(location: str, options: Mapping[str, str]) -> AwsClients:
    """Returns the clients of a location's bucket. All tables of the bucket with equal options share them, as
    making a client takes a tenth of a second."""
    environment = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    bucket = "/".join(location.split("/", 3)[:3])
    return _clients_of(
        bucket, tuple(sorted(options.items())), configuration.current().credentials, environment
    )


@lru_cache(maxsize=64)
def _clients_of(
    bucket: str, options: tuple[tuple[str, str], ...], function: Any, environment: Any
) -> AwsClients:
    if function is not None:
        return AwsClients(bucket, dict(options), credentials.checked(function))
    return AwsClients(bucket, *credentials.of_profile(dict(options)))


class AwsClients:
    """The clients of one bucket. Several threads may use them."""

    def __init__(
        self, bucket: str, options: Mapping[str, str], function: credentials.Credentials | None
    ) -> None:
        self._bucket, self._function = bucket, function
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, ...], Any] = {}
        self._expires: float | None = None
        plain = {
            name.lower().replace("-", "_").removeprefix("aws_"): value for name, value in options.items()
        }
        self._arguments = {argument: plain[name] for name, argument in _ARGUMENTS.items() if plain.get(name)}
        # The option `max_retries` does not count the first attempt, as in Rust's store.
        self._retries = {
            "mode": "standard",
            **({"total_max_attempts": int(plain["max_retries"]) + 1} if "max_retries" in plain else {}),
        }
        self._is_virtual = plain.get("virtual_hosted_style_request", "").lower() == "true"
        self.of_requests = (
            {"RequestPayer": "requester"} if plain.get("request_payer", "").lower() == "true" else {}
        )
        """Further parameters of each request to S3."""

    def client(self, service: str, *, region: str | None = None, endpoint: str | None = None) -> Any:
        """Returns the client of "s3" or "dynamodb". `region`, `endpoint`: of DynamoDB; it never uses the
        endpoint in the storage options, which is that of S3."""
        with self._lock:
            if self._expires is not None and time.time() > self._expires - _RENEWED_BEFORE:
                self._clients.clear()
            key = service, region or "", endpoint or ""
            if (client := self._clients.get(key)) is None:
                client = self._clients[key] = self._made(service, region, endpoint)
            return client

    def _made(self, service: str, region: str | None, endpoint: str | None) -> Any:
        session, config = _boto3()
        arguments = dict(self._arguments)
        if self._function is not None:
            options, self._expires = self._function(self._bucket)
            plain = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
            arguments |= {argument: plain[name] for name, argument in _ARGUMENTS.items() if name in plain}
        if service == "dynamodb":
            arguments.pop("endpoint_url", None)
            if endpoint is not None:
                arguments["endpoint_url"] = endpoint
            arguments["region_name"] = (
                region or arguments.get("region_name") or session.region_name or "us-east-1"
            )
            settings = config(retries=self._retries)
        else:
            in_path = "endpoint_url" in arguments and not self._is_virtual
            settings = config(retries=self._retries, s3={"addressing_style": "path" if in_path else "auto"})
        return session.client(service, config=settings, **arguments)


def as_os_error(error: Exception, what: str) -> Exception:
    """Converts an exception of boto3 to the error that a store raises: FileNotFoundError, PermissionError,
    ConnectionError if there was no response, else OSError. Other exceptions are returned unchanged. `what`:
    the object, for the message."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        code = str(response.get("Error", {}).get("Code", ""))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0
        if code in ("NoSuchKey", "404"):
            return FileNotFoundError(f"{what}: no such object")
        if status == 403 or code.startswith("AccessDenied"):
            return PermissionError(f"{what}: not allowed; found {code}")
        return (ConnectionError if status >= 500 else OSError)(f"{what}: the request failed; found {code}")
    if type(error).__module__.startswith(("botocore", "urllib3")):
        return ConnectionError(f"{what}: no answer; found {type(error).__name__}")
    return error


def _boto3() -> tuple[Any, Any]:
    try:
        from boto3.session import Session  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from botocore.config import Config  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise UnsupportedFeatureError(
            "this store needs the package boto3",
            expected="pip install 'deltaic[dynamodb]', or a client of your own",
        ) from None
    return Session(), Config
