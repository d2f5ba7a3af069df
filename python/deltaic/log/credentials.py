"""Credentials of object stores that are not in the storage options: AWS profiles, and a user's function
(`configure(credentials=)`)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError

Credentials = Callable[[str], tuple[dict[str, str], "float | None"]]
"""(URL of a bucket or container) -> storage options, and the time (seconds since 1970) at which they expire;
None: never."""

# Keys of a profile -> storage options. The first three are credentials.
_OF_PROFILES = {
    "aws_access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
    "region": "aws_region",
    "endpoint_url": "aws_endpoint_url",
}
# Keys of a profile with other sources of credentials, which only botocore supports.
_BY_BOTOCORE = (
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "web_identity_token_file",
    "credential_source",
)
# Storage options, without `aws_`, and environment variables that name credentials; a profile is not used
# then.
_GIVEN = (
    "access_key_id",
    "web_identity_token_file",
    "skip_signature",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
)
# Seconds for which credentials from botocore are used. It renews them when they have less than ten minutes
# left, so they are valid at least that long.
_BOTOCORE_KEEPS = 600.0


@lru_cache(maxsize=64)
def checked(function: Callable[[str], Mapping[str, Any]]) -> Credentials:
    """Wraps a user's function in one that validates its result. The wrapper is cached by function, so that
    connections are shared.

    The user's function returns storage options, and as `expires` a datetime with a zone or seconds since
    1970.
    """

    def credentials(location: str) -> tuple[dict[str, str], float | None]:
        result = function(location)
        if not isinstance(result, Mapping):
            raise InvalidTypeError(
                "the function of credentials= must return a mapping of storage options",
                where=location,
                found=type(result).__name__,
            )
        options = {name: value for name, value in result.items() if name != "expires" and value is not None}
        for name, value in options.items():
            if not isinstance(name, str) or not isinstance(value, str):
                found = f"{type(value).__name__} for {name!r}"
                raise InvalidTypeError(
                    "the function of credentials= returned an option that is not a string",
                    where=location,
                    found=found,
                    expected="text",
                )
        return options, _seconds(result.get("expires"), location)

    return credentials


def _seconds(expires: object, location: str) -> float | None:
    if expires is None:
        return None
    if isinstance(expires, datetime) and expires.tzinfo is not None:
        return expires.timestamp()
    if isinstance(expires, (int, float)) and not isinstance(expires, bool):
        return float(expires)
    raise InvalidTypeError(
        "the function of credentials= returned an invalid 'expires'",
        where=location,
        found=repr(expires),
        expected="a datetime with a time zone, or seconds since 1970",
    )


def of_profile(options: Mapping[str, str]) -> tuple[dict[str, str], Credentials | None]:
    """Adds the settings of an AWS profile to the storage options of a store in S3, unless the options or the
    environment have credentials. Returns the options, and a function for credentials that expire, or None.

    The profile is that of the option `aws_profile`, else of `AWS_PROFILE`, else "default" if it exists. A
    named profile that does not exist is an InvalidArgumentError; one that needs botocore, if that is not
    installed, is an UnsupportedFeatureError.
    """
    plain = {name: name.lower().replace("-", "_") for name in options}
    rest = {name: value for name, value in options.items() if plain[name] not in ("aws_profile", "profile")}
    option = next((options[name] for name in options if name not in rest), None)
    names = {name.removeprefix("aws_") for name in plain.values()}
    if names.intersection(_GIVEN):
        return rest, None
    if option is None and any(f"AWS_{name.upper()}" in os.environ for name in _GIVEN):
        return rest, None
    name = option or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    profiles = _profiles()
    profile = profiles.get(name or "default")
    if profile is None and name is not None:
        raise InvalidArgumentError(
            "no such AWS profile",
            found=repr(name),
            expected=", ".join(sorted(profiles)) or "a profile in ~/.aws",
        )
    if profile is None:
        return rest, None
    values = {
        ours: profile[theirs]
        for theirs, ours in _OF_PROFILES.items()
        if theirs in profile and not _is_set(ours, names)
    }
    if "aws_access_key_id" in values:
        return {**values, **rest}, None
    settings = {key: value for key, value in values.items() if key in ("aws_region", "aws_endpoint_url")}
    if not any(key in profile for key in _BY_BOTOCORE):
        return {**settings, **rest}, None
    return {**settings, **rest}, _by_botocore(name or "default")


def _is_set(option: str, names: set[str]) -> bool:
    """True if the storage options (`names`, without `aws_`) or the environment set a region or an endpoint.
    They win over a profile."""
    if option == "aws_region":
        return bool(names & {"region", "default_region"}) or bool(
            {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys()
        )
    if option == "aws_endpoint_url":
        return (
            bool(names & {"endpoint", "endpoint_url", "endpoint_url_s3"}) or "AWS_ENDPOINT_URL" in os.environ
        )
    return False


def _profiles() -> dict[str, dict[str, str]]:
    """Reads the profiles in the two files of the AWS command line: name -> keys. Keys of the credentials file
    win."""
    import configparser  # the import takes 2 ms, and most tables are opened without profiles

    profiles: dict[str, dict[str, str]] = {}
    for variable, default in (
        ("AWS_CONFIG_FILE", "~/.aws/config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ):
        parser = configparser.RawConfigParser(strict=False)
        path = os.path.expanduser(os.environ.get(variable) or default)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # The message of the parser may contain a line with a secret key, so it is not shown.
            raise InvalidArgumentError(
                "the file of AWS profiles cannot be read", where=path, expected="an INI file"
            ) from None
        for section in parser.sections():
            if not section.startswith(("sso-session ", "services ")):
                profiles.setdefault(section.removeprefix("profile ").strip(), {}).update(
                    parser.items(section)
                )
    return profiles


@lru_cache(maxsize=64)
def _by_botocore(name: str) -> Credentials:
    try:
        from botocore.session import Session  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise UnsupportedFeatureError(
            f"the AWS profile {name!r} needs the package botocore",
            found="single sign-on, a role or a process as its credentials",
            expected="botocore installed, keys in the profile, or configure(credentials=)",
        ) from None
    session = Session(profile=name)

    def credentials(location: str) -> tuple[dict[str, str], float | None]:
        current = session.get_credentials()
        if current is None:
            raise InvalidArgumentError(f"the AWS profile {name!r} has no credentials", where=location)
        frozen = current.get_frozen_credentials()
        options = {"aws_access_key_id": frozen.access_key, "aws_secret_access_key": frozen.secret_key}
        if frozen.token:
            options["aws_session_token"] = frozen.token
        return options, time.time() + _BOTOCORE_KEEPS

    return credentials
