"""Selects the store of a table on Spark: deltaic's own with options from Hadoop's configuration, or the driver's Hadoop file system."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from deltaic import _core, configuration
from deltaic.engine.spark.native.session import hadoop_settings, has_jvm
from deltaic.errors import InvalidArgumentError
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_own, open_store, opened_by

Setting = Callable[[str], "str | None"]
_OWN = frozenset({"file", "memory", "http", "https"})
_S3 = frozenset({"s3", "s3a", "s3n"})
_AZURE = frozenset({"abfs", "abfss", "az", "azure", "adl", "wasb", "wasbs"})

# Ways to credentials that our own store has too: keys of the configuration, the environment, the machine's role, none.
_KNOWN_PROVIDERS = (
    "SimpleAWSCredentialsProvider",
    "TemporaryAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
    "DefaultCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "ContainerCredentialsProvider",
    "AnonymousAWSCredentialsProvider",
)


def reached_by(location: str, setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    """The storage options with which our own store reaches a location, by what Hadoop's configuration says (`setting`: a name -> its text,
    None where it is not set), or "hadoop" where only Hadoop's file system does."""
    parts = urlsplit(location)
    scheme = parts.scheme.lower()
    if "://" not in location or scheme in _OWN:
        return {}
    if scheme in _S3:
        return _s3(parts.netloc, setting)
    if scheme == "gs":
        return _google(setting)
    if scheme in _AZURE:
        return _azure(parts.netloc, setting)
    return "hadoop"


def opening(spark: Any) -> AbstractContextManager[None]:
    """While it lasts, stores are opened as a session's settings say."""
    return opened_by(lambda location, options: store_of(spark, location, options))


class LastSnapshot:
    """Snapshot of the table that a session opened last. A query often reads the same table again: its files are then not read anew."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, Mapping[str, str], configuration.Configuration], Snapshot] | None = None

    def open(
        self,
        spark: Any,
        path: str | os.PathLike[str],
        options: Mapping[str, str],
        version: int | None = None,
        timestamp: datetime | str | None = None,
        *,
        known: Snapshot | None = None,
    ) -> Snapshot:
        """Like `Snapshot.load`, but with the session's settings. `known`: snapshot that was opened before with these arguments."""
        with opening(spark):
            store = open_store(path, options)
        if _is_set_by_session(spark, store.location, options):  # credentials among the settings may be others by now
            return Snapshot.load(store, version=version, timestamp=timestamp)
        place, last = (store.location, options, configuration.current()), self._last
        if known is None and last is not None and last[0] == place:
            known = last[1]
        snapshot = Snapshot.load(store, version=version, timestamp=timestamp, known=known)
        self._last = place, snapshot
        return snapshot


def _is_set_by_session(spark: Any, location: str, options: Mapping[str, str]) -> bool:
    """True if the session's Hadoop settings reach the location, since the user gave no storage options."""
    return not options and "://" in location and has_jvm(spark)


def store_of(spark: Any, location: str, options: Mapping[str, str]) -> _core.Store | None:
    """The store of a location, None where our own opens it without more ado."""
    if not _is_set_by_session(spark, location, options):
        return None
    hadoop = hadoop_settings(spark)
    found = reached_by(location, lambda name: hadoop.get(name))
    if found != "hadoop":
        try:
            return open_own(location, found)
        except InvalidArgumentError:  # no store of ours for such a location
            pass
    from deltaic.engine.spark.native.hadoop_store import HadoopStore

    return _core.Store.from_python(HadoopStore(spark, location), location)


def travels(store: _core.Store) -> bool:
    """True if tasks on executors may use a store by themselves: one through the driver's Hadoop file system they may not."""
    reduced: Any = store.__reduce__()
    made, arguments = reduced[:2]
    return made is not _core.Store.from_python or not hasattr(arguments[0], "of_driver")


def _s3(bucket: str, setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    def said(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}") or None

    providers = [each.strip() for each in (said("aws.credentials.provider") or "").split(",") if each.strip()]
    if any(each.rsplit(".", 1)[-1] not in _KNOWN_PROVIDERS for each in providers) or said("encryption.algorithm"):
        return "hadoop"
    names = {"access.key": "aws_access_key_id", "secret.key": "aws_secret_access_key", "session.token": "aws_session_token"}
    found = {ours: value for theirs, ours in names.items() if (value := said(theirs)) is not None}
    if (region := said("endpoint.region")) is not None:
        found["aws_region"] = region
    if (endpoint := said("endpoint")) is not None and endpoint != "s3.amazonaws.com":
        is_plain = (said("connection.ssl.enabled") or "true") == "false"
        found["aws_endpoint"] = endpoint if "://" in endpoint else f"{'http' if is_plain else 'https'}://{endpoint}"
        if found["aws_endpoint"].startswith("http://"):
            found["allow_http"] = "true"
        found["aws_virtual_hosted_style_request"] = "false" if said("path.style.access") == "true" else "true"
    if providers and all(each.endswith("AnonymousAWSCredentialsProvider") for each in providers):
        found["aws_skip_signature"] = "true"
    return found


def _google(setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    kind = (setting("fs.gs.auth.type") or "").upper()
    if kind not in ("", "COMPUTE_ENGINE", "APPLICATION_DEFAULT", "SERVICE_ACCOUNT_JSON_KEYFILE"):
        return "hadoop"
    file = setting("fs.gs.auth.service.account.json.keyfile") or setting("google.cloud.auth.service.account.json.keyfile")
    return {"google_service_account": file} if file else {}


def _azure(place: str, setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    """`place`: container@account.dfs.core.windows.net"""
    host = place.rpartition("@")[2]

    def said(name: str) -> str | None:
        return setting(f"{name}.{host}") or setting(name) or None

    if (said("fs.azure.account.auth.type") or "SharedKey") != "SharedKey":
        return "hadoop"
    key = said("fs.azure.account.key")
    return {"azure_storage_account_key": key} if key else {}
