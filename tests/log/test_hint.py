"""`_last_checkpoint` and its checksum, PROTOCOL.md: JSON checksum."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from deltaic._core import canonical_json
from deltaic.log import hint
from deltaic.log.hint import LAST_CHECKPOINT, Hint
from golden import GOLDEN, needs_golden
from log_actions import memory_store

# PROTOCOL.md's own sample.
SAMPLE = (
    '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4",'
    ' "k5": ["v5", "v6", "v7"]}]}}'
)
CANONICAL = (
    '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",'
    '"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
)


def test_the_protocols_sample() -> None:
    assert canonical_json(SAMPLE) == CANONICAL
    assert hint.checksum(SAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_literals_and_order() -> None:
    assert (
        canonical_json('{"b": null, "a": true, "ä": 1.5, "a+": false}')
        == '"%C3%A4"=1.5,"a"=true,"a%2B"=false,"b"=null'
    )
    every = "".join(map(chr, range(1, 300))) + "\U0001f600"
    assert canonical_json(json.dumps({"a": every})) == f'"a"="{quote(every, safe="")}"'


@needs_golden
def test_the_checksums_of_others() -> None:
    found = [path for path in GOLDEN.rglob("_last_checkpoint") if b'"checksum"' in path.read_bytes()]
    assert found
    for path in found:
        assert hint.checksum(path.read_text()) == json.loads(path.read_bytes())["checksum"], path


def test_what_is_written_is_read() -> None:
    store = memory_store()
    store.put(
        LAST_CHECKPOINT, hint.to_json({"version": 7, "size": 3, "sizeInBytes": 99, "checkpointSchema": None})
    )
    assert hint.read(store) == Hint(7, 99, (f"{7:020}.checkpoint.parquet",))
    assert set(json.loads(store.get(LAST_CHECKPOINT))) == {"version", "size", "sizeInBytes", "checksum"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b'{"version":-1}',
        b'{"version":1e3}',
        b'{"version":9223372036854775808}',
        b'{"version":1,"version":2}',
        b'{"version":1,"checksum":"0"}',
        b'{"version":1,"checksum":null}',
        b"[" * 100_000,
        b"\xff",
    ],
)  # fmt: skip
def test_what_is_wrong_counts_for_nothing(data: bytes) -> None:
    store = memory_store()
    assert hint.read(store) is None
    store.put(LAST_CHECKPOINT, data)
    assert hint.read(store) is None


def test_a_size_that_is_none_is_left_out() -> None:
    store = memory_store()
    store.put(LAST_CHECKPOINT, b'{"version":1,"sizeInBytes":"many"}')
    assert hint.read(store) == Hint(1, 0, (f"{1:020}.checkpoint.parquet",))
