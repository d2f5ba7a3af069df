"""Options of commands: what goes into a commit, and how Parquet files are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from deltaic.errors import InvalidArgumentError, InvalidTypeError, check_instance

Isolation = Literal["serializable", "write_serializable", "snapshot"]

# commitInfo's keys that a transaction writes itself.
RESERVED_INFO = frozenset(
    {
        "timestamp",
        "inCommitTimestamp",
        "operation",
        "operationParameters",
        "readVersion",
        "isolationLevel",
        "isBlindAppend",
        "operationMetrics",
        "userMetadata",
        "engineInfo",
        "txnId",
        "version",
    }
)

_CODECS = ("snappy", "gzip", "brotli", "zstd", "lz4_raw", "uncompressed")
_ENCODINGS = (
    "plain",
    "rle",
    "delta_binary_packed",
    "delta_length_byte_array",
    "delta_byte_array",
    "byte_stream_split",
)


@dataclass(frozen=True, kw_only=True)
class CommitOptions:
    """Options of a commit: notes in the history, application transactions, isolation and retries.

    `user_metadata`: text that the history shows as `userMetadata`; None (the default) for none.
    `info`: further keys of the history entry, with JSON values.
    `transactions`: a dict from application id to version number (int), which the commit records. A command is
        skipped if the table already has these versions or later ones.
    `isolation`: "serializable", "write_serializable" or "snapshot"; None (the default) for the table's
        `delta.isolationLevel`.
    `max_retries`: number of attempts after the first one; above it, ConcurrentWriteException is raised. None
        (the default) tries until the command is committed or conflicts.
    `checkpoint`: True (the default) writes a checkpoint if one is due (`delta.checkpointInterval`).
    `clean_log`: True deletes expired commits after a checkpoint, False does not; None (the default) for the
        table's `delta.enableExpiredLogCleanup`.

    Raises InvalidArgumentError (a key of `info` that deltaic writes, an unknown isolation) and
    InvalidTypeError.

    >>> nightly = deltaic.CommitOptions(user_metadata="nightly load", transactions={"nightly": 7})
    """

    user_metadata: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    transactions: Mapping[str, int] = field(default_factory=dict)
    isolation: Isolation | None = None
    max_retries: int | None = None
    checkpoint: bool = True
    clean_log: bool | None = None

    def __post_init__(self) -> None:
        check_instance(self.user_metadata, (str, type(None)), "user_metadata", "text")
        check_instance(self.info, Mapping, "CommitOptions.info", "a mapping")
        check_instance(
            self.transactions,
            Mapping,
            "CommitOptions.transactions",
            "a mapping of application ids to versions",
        )
        check_instance(self.checkpoint, bool, "checkpoint", "True or False")
        check_instance(self.clean_log, (bool, type(None)), "clean_log", "True, False or None")
        check_instance(self.max_retries, (int, type(None)), "max_retries", "a number >= 0, or None")
        if taken := sorted(RESERVED_INFO & set(self.info)):
            raise InvalidArgumentError(
                "CommitOptions.info: these keys of commitInfo are written by deltaic", found=", ".join(taken)
            )
        try:
            json.dumps(dict(self.info), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"CommitOptions.info: not JSON: {error}") from error
        for app_id, version in self.transactions.items():
            if not isinstance(app_id, str) or isinstance(version, bool) or not isinstance(version, int):
                raise InvalidTypeError(
                    "CommitOptions.transactions must map strings to integers",
                    found=f"{app_id!r}: {version!r}",
                )
        if self.isolation not in (None, *get_args(Isolation)):
            names = ", ".join(map(repr, get_args(Isolation)))
            raise InvalidArgumentError(
                "unknown isolation", found=repr(self.isolation), expected=f"{names} or None"
            )
        if self.max_retries is not None and self.max_retries < 0:
            raise InvalidArgumentError(
                "invalid max_retries", found=repr(self.max_retries), expected="a number >= 0, or None"
            )


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """How one column is written to Parquet files; None (the default of every argument) leaves it to deltaic.

    `dictionary`: True for a dictionary, which excludes `encoding`.
    `encoding`: "plain", "rle", "delta_binary_packed", "delta_length_byte_array", "delta_byte_array" or
        "byte_stream_split".
    `statistics`: where the file has minima and maxima: "none", "chunk" (each row group) or "page".
    `bloom_filter`: True writes a bloom filter. `bloom_filter_fpp`: its rate of false positives, between 0 and
        1. `bloom_filter_ndv`: the number of distinct values for which it is sized.

    Raises InvalidArgumentError (a value that is not listed) and InvalidTypeError.

    >>> by_id = deltaic.ColumnOptions(bloom_filter=True, bloom_filter_ndv=100_000)
    """

    dictionary: bool | None = None
    encoding: str | None = None
    statistics: Literal["none", "chunk", "page"] | None = None
    bloom_filter: bool | None = None
    bloom_filter_fpp: float | None = None
    bloom_filter_ndv: int | None = None

    def __post_init__(self) -> None:
        for name in ("dictionary", "bloom_filter"):
            check_instance(getattr(self, name), (bool, type(None)), name, "True, False or None")
        check_instance(
            self.bloom_filter_fpp, (int, float, type(None)), "bloom_filter_fpp", "a number between 0 and 1"
        )
        check_instance(self.bloom_filter_ndv, (int, type(None)), "bloom_filter_ndv", "a number >= 1")
        if self.encoding is not None and self.encoding not in _ENCODINGS:
            raise InvalidArgumentError(
                "unknown Parquet encoding", found=repr(self.encoding), expected=", ".join(_ENCODINGS)
            )
        if self.dictionary and self.encoding is not None:
            raise InvalidArgumentError(
                "dictionary=True and encoding cannot be combined", found=repr(self.encoding)
            )
        if self.statistics not in (None, "none", "chunk", "page"):
            raise InvalidArgumentError(
                "unknown statistics level", found=repr(self.statistics), expected="'none', 'chunk' or 'page'"
            )
        if self.bloom_filter_fpp is not None and not 0 < self.bloom_filter_fpp < 1:
            raise InvalidArgumentError(
                "invalid bloom_filter_fpp", found=self.bloom_filter_fpp, expected="a number between 0 and 1"
            )
        if self.bloom_filter_ndv is not None and self.bloom_filter_ndv < 1:
            raise InvalidArgumentError(
                "invalid bloom_filter_ndv", found=self.bloom_filter_ndv, expected="a number >= 1"
            )

    def to_core(self) -> dict[str, Any]:
        """Returns the options that are set, under the names that the writer takes."""
        return {
            name: value for name in self.__dataclass_fields__ if (value := getattr(self, name)) is not None
        }


@dataclass(frozen=True, kw_only=True)
class ParquetOptions:
    """How data files are written; None (the default) leaves a choice to deltaic.

    `compression`: "zstd(3)", "snappy", "gzip(6)", "brotli(1)", "lz4_raw" or "uncompressed"; the number is the
        level. By default the table's `delta.parquet.compression.codec`, which is zstd unless it is set.
    `max_row_group_size`: maximum rows of a row group; by default 1,048,576.
    `data_page_size_limit`, `dictionary_page_size_limit`: maximum bytes of a page.
    `data_page_row_count_limit`: maximum rows of a page.
    `write_batch_size`: number of values that are encoded at a time.
    `statistics_truncate_length`: maximum bytes of a text in the minima and maxima of the file.
    `default`: ColumnOptions of the columns that are not in `columns`.
    `columns`: a dict from column name (fields of structs with dots) to ColumnOptions.

    Raises InvalidArgumentError (an unknown compression, a number below 1) and InvalidTypeError.

    >>> small = deltaic.ParquetOptions(compression="zstd(9)", max_row_group_size=100_000)
    """

    compression: str | None = None
    max_row_group_size: int | None = None
    data_page_size_limit: int | None = None
    data_page_row_count_limit: int | None = None
    dictionary_page_size_limit: int | None = None
    write_batch_size: int | None = None
    statistics_truncate_length: int | None = None
    default: ColumnOptions = ColumnOptions()
    columns: Mapping[str, ColumnOptions] = field(default_factory=dict)

    # Attribute of ParquetOptions -> option of `_core.write`.
    _SIZES: ClassVar[dict[str, str]] = {
        "max_row_group_size": "max_row_group_rows",
        "data_page_size_limit": "data_page_size",
        "data_page_row_count_limit": "data_page_rows",
        "dictionary_page_size_limit": "dictionary_page_size",
        "write_batch_size": "write_batch_size",
        "statistics_truncate_length": "statistics_truncate_length",
    }

    def __post_init__(self) -> None:
        for name in self._SIZES:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidArgumentError(
                    f"invalid ParquetOptions.{name}", found=repr(value), expected="a number >= 1, or None"
                )
        check_instance(self.compression, (str, type(None)), "compression", "text such as 'zstd(3)'")
        check_instance(self.default, ColumnOptions, "ParquetOptions.default", "ColumnOptions")
        check_instance(self.columns, Mapping, "ParquetOptions.columns", "a mapping of names to ColumnOptions")
        for name, column in self.columns.items():
            check_instance(name, str, "ParquetOptions.columns", "names of columns")
            check_instance(column, ColumnOptions, f"ParquetOptions.columns[{name!r}]", "ColumnOptions")
        if self.compression is not None and self.compression.split("(")[0].lower() not in _CODECS:
            raise InvalidArgumentError(
                "unknown compression", found=repr(self.compression), expected=", ".join(_CODECS)
            )

    def to_core(self) -> dict[str, Any]:
        """Returns the options that are set, as keys of `_core.write`'s options."""
        options: dict[str, Any] = {
            core: value for name, core in self._SIZES.items() if (value := getattr(self, name)) is not None
        }
        if self.compression is not None:
            options["compression"] = self.compression
        if default := self.default.to_core():
            options["default"] = default
        if columns := {name: column.to_core() for name, column in self.columns.items()}:
            options["columns"] = columns
        return options
