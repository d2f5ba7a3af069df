"""Options of commands: contradictory options are refused before a command runs."""

from __future__ import annotations

from typing import Any

import pytest

from deltaic import ColumnOptions, CommitOptions, ParquetOptions
from deltaic.errors import InvalidArgumentError, InvalidTypeError


def test_defaults() -> None:
    options = CommitOptions()
    assert (options.user_metadata, dict(options.info), dict(options.transactions)) == (None, {}, {})
    assert (options.isolation, options.max_retries, options.checkpoint, options.clean_log) == (
        None,
        None,
        True,
        None,
    )
    assert ParquetOptions().to_core() == {}


def test_to_core_uses_the_writers_names() -> None:
    options = ParquetOptions(
        compression="zstd(3)",
        max_row_group_size=10,
        data_page_size_limit=20,
        data_page_row_count_limit=30,
        dictionary_page_size_limit=40,
        write_batch_size=50,
        statistics_truncate_length=60,
        default=ColumnOptions(dictionary=False),
        columns={
            "a": ColumnOptions(encoding="delta_binary_packed", bloom_filter=True, bloom_filter_fpp=0.01)
        },
    )
    assert options.to_core() == {
        "compression": "zstd(3)",
        "max_row_group_rows": 10,
        "data_page_size": 20,
        "data_page_rows": 30,
        "dictionary_page_size": 40,
        "write_batch_size": 50,
        "statistics_truncate_length": 60,
        "default": {"dictionary": False},
        "columns": {"a": {"encoding": "delta_binary_packed", "bloom_filter": True, "bloom_filter_fpp": 0.01}},
    }


@pytest.mark.parametrize(
    ("kind", "arguments", "error"),
    [
        (CommitOptions, {"info": {"txnId": "x"}}, InvalidArgumentError),
        (CommitOptions, {"info": {"a": object()}}, InvalidArgumentError),
        (CommitOptions, {"info": {"a": float("nan")}}, InvalidArgumentError),
        (CommitOptions, {"user_metadata": 3}, InvalidTypeError),
        (CommitOptions, {"transactions": {"a": "1"}}, InvalidTypeError),
        (CommitOptions, {"transactions": {"a": True}}, InvalidTypeError),
        (CommitOptions, {"isolation": "read_committed"}, InvalidArgumentError),
        (CommitOptions, {"max_retries": -1}, InvalidArgumentError),
        (ColumnOptions, {"dictionary": True, "encoding": "plain"}, InvalidArgumentError),
        (ColumnOptions, {"encoding": "fastest"}, InvalidArgumentError),
        (ColumnOptions, {"statistics": "all"}, InvalidArgumentError),
        (ColumnOptions, {"bloom_filter_fpp": 1.5}, InvalidArgumentError),
        (ColumnOptions, {"bloom_filter_ndv": 0}, InvalidArgumentError),
        (ParquetOptions, {"compression": "zip"}, InvalidArgumentError),
        (ParquetOptions, {"max_row_group_size": 0}, InvalidArgumentError),
        (ParquetOptions, {"write_batch_size": 1.5}, InvalidArgumentError),
    ],
)
def test_refused(kind: type[Any], arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        kind(**arguments)


def test_a_dictionary_may_be_refused_beside_an_encoding() -> None:
    assert ColumnOptions(dictionary=False, encoding="plain").to_core() == {
        "dictionary": False,
        "encoding": "plain",
    }
