"""Selects the store of a table on Spark: deltaic's store with options from Hadoop's configuration, or the
driver's Hadoop file system."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from deltaic import _core, configuration
from deltaic.engine.spark.native.session import hadoop_settings, has_jvm
from deltaic.engine.spark.settings import noting_commits, with_unknown_properties
from deltaic.errors import InvalidArgumentError
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import open_own, open_store, opened_by

Setting = Callable[[str], "str | None"]
_Opening: TypeAlias = "tuple[str, Mapping[str, str], configuration.Configuration]"
MOST_SNAPSHOTS = 8
"""Maximum number of tables whose snapshot a session caches; above it, the one that was opened least recently
is dropped."""
MOST_FILES = 10_000
"""Maximum number of files of a snapshot that is cached beside others, as its file actions stay in memory."""
# Schemes of URLs that deltaic's store opens without options, and those of S3 and Azure.
_OWN = frozenset({"file", "memory", "http", "https"})
_S3 = frozenset({"s3", "s3a", "s3n"})
_AZURE = frozenset({"abfs", "abfss", "az", "azure", "adl", "wasb", "wasbs"})

# Credential providers of Hadoop that find the same credentials as deltaic's store: keys in the configuration,
# environment variables, the role of the machine or container, or none (anonymous).
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
    """Returns the options for deltaic's store from Hadoop's configuration; "hadoop" if only Hadoop's file
    system can reach the location. `setting`: returns the text of a setting of Hadoop, None if it is not
    set."""
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


@contextmanager
def opening(spark: Any) -> Iterator[None]:
    """While the context is entered, stores are opened with the session's Hadoop configuration, commits are
    noted in the session's settings, and a setting decides about unknown properties of tables."""
    stores = opened_by(lambda location, options: store_of(spark, location, options))
    with stores, noting_commits(spark), with_unknown_properties(spark):
        yield


class RecentSnapshots:
    """The snapshots that a session opened last, of at most MOST_SNAPSHOTS tables. If the next query reads one
    of these tables and the log has the same files as before, the log is not read again. A snapshot of more
    than MOST_FILES files is dropped when another table is opened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: list[tuple[_Opening, Snapshot]] = []

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
        """Like `Snapshot.load`, but with the session's settings. `known`: an older snapshot of the same
        table, opened with the same `path` and `options`; by default the last one."""
        with opening(spark):
            store = open_store(path, options)
        if _is_set_by_session(spark, store.location, options):
            # The last snapshot is not used, because the session's settings may have other credentials now.
            return Snapshot.load(store, version=version, timestamp=timestamp)
        key = (store.location, options, configuration.current())
        if known is None:
            with self._lock:
                known = next((each for opening, each in self._known if opening == key), None)
        snapshot = Snapshot.load(store, version=version, timestamp=timestamp, known=known)
        with self._lock:
            others = [(opening, each) for opening, each in self._known if opening != key and _is_small(each)]
            self._known = [*others, (key, snapshot)][-MOST_SNAPSHOTS:]
        return snapshot


def _is_small(snapshot: Snapshot) -> bool:
    count = snapshot.file_count_if_read
    return count is None or count <= MOST_FILES


def _is_set_by_session(spark: Any, location: str, options: Mapping[str, str]) -> bool:
    """True if the location is opened with the session's Hadoop configuration: it is a URL, and the user gave
    no storage options."""
    return not options and "://" in location and has_jvm(spark)


def store_of(spark: Any, location: str, options: Mapping[str, str]) -> _core.Store | None:
    """Returns the store of a location by the session's Hadoop configuration; None if that is not used (see
    `_is_set_by_session`)."""
    if not _is_set_by_session(spark, location, options):
        return None
    hadoop = hadoop_settings(spark)
    storage_options = reached_by(location, lambda name: hadoop.get(name))
    if storage_options != "hadoop":
        try:
            return open_own(location, storage_options)
        except InvalidArgumentError:
            # deltaic has no store for this location.
            pass
    from deltaic.engine.spark.native.hadoop_store import HadoopStore

    return _core.Store.from_python(HadoopStore(spark, location), location)


def travels(store: _core.Store) -> bool:
    """True if the store can be pickled and used by tasks on executors. A `HadoopStore` cannot, because it
    calls the driver's JVM."""
    reduced: Any = store.__reduce__()
    constructor, arguments = reduced[:2]
    return constructor is not _core.Store.from_python or not hasattr(arguments[0], "of_driver")


def _s3(bucket: str, setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    def of_bucket(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}") or None

    providers = [
        each.strip() for each in (of_bucket("aws.credentials.provider") or "").split(",") if each.strip()
    ]
    if any(each.rsplit(".", 1)[-1] not in _KNOWN_PROVIDERS for each in providers) or of_bucket(
        "encryption.algorithm"
    ):
        return "hadoop"
    names = {
        "access.key": "aws_access_key_id",
        "secret.key": "aws_secret_access_key",
        "session.token": "aws_session_token",
    }
    options = {ours: value for theirs, ours in names.items() if (value := of_bucket(theirs)) is not None}
    if (region := of_bucket("endpoint.region")) is not None:
        options["aws_region"] = region
    if (endpoint := of_bucket("endpoint")) is not None and endpoint != "s3.amazonaws.com":
        is_plain = (of_bucket("connection.ssl.enabled") or "true") == "false"
        options["aws_endpoint"] = (
            endpoint if "://" in endpoint else f"{'http' if is_plain else 'https'}://{endpoint}"
        )
        if options["aws_endpoint"].startswith("http://"):
            options["allow_http"] = "true"
        options["aws_virtual_hosted_style_request"] = (
            "false" if of_bucket("path.style.access") == "true" else "true"
        )
    if providers and all(each.endswith("AnonymousAWSCredentialsProvider") for each in providers):
        options["aws_skip_signature"] = "true"
    return options


def _google(setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    kind = (setting("fs.gs.auth.type") or "").upper()
    if kind not in ("", "COMPUTE_ENGINE", "APPLICATION_DEFAULT", "SERVICE_ACCOUNT_JSON_KEYFILE"):
        return "hadoop"
    file = setting("fs.gs.auth.service.account.json.keyfile") or setting(
        "google.cloud.auth.service.account.json.keyfile"
    )
    return {"google_service_account": file} if file else {}


def _azure(authority: str, setting: Setting) -> dict[str, str] | Literal["hadoop"]:
    """Returns the options for `abfss://container@account.dfs.core.windows.net/...`. `authority`: the part of
    the URL between `//` and the next `/`."""
    host = authority.rpartition("@")[2]

    def of_account(name: str) -> str | None:
        return setting(f"{name}.{host}") or setting(name) or None

    if (of_account("fs.azure.account.auth.type") or "SharedKey") != "SharedKey":
        return "hadoop"
    key = of_account("fs.azure.account.key")
    return {"azure_storage_account_key": key} if key else {}
