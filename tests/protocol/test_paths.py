"""Paths of the log, and names of folders in Hive's form."""

from __future__ import annotations

import pytest

from deltaic.protocol.paths import decoded_path, encoded_path, escaped_in_folder, unescaped_in_folder

ENCODED = {
    "part-0.parquet": "part-0.parquet",
    "city=New York/a+b.parquet": "city=New%20York/a+b.parquet",
    "city=a%2Fb/x": "city=a%252Fb/x",
    "a:b.parquet": "a%3Ab.parquet",
    "p=1/a:b.parquet": "p=1/a:b.parquet",
    "s3://bucket/a b": "s3://bucket/a%20b",
    "file:/data/x": "file:/data/x",
    "/data/a:b": "/data/a:b",
    "é#?": "%C3%A9%23%3F",
}


@pytest.mark.parametrize("path", ENCODED)
def test_paths_are_encoded_as_uris(path: str) -> None:
    assert encoded_path(path) == ENCODED[path]
    assert decoded_path(ENCODED[path]) == path


@pytest.mark.parametrize("text", ["New York", "a/b=c", "50%", "é", '"#', "\x01\n"])
def test_names_of_folders(text: str) -> None:
    escaped = escaped_in_folder(text)
    assert not set(escaped) & set('/="#\x01\n')
    assert unescaped_in_folder(escaped) == text
