"""The contract of `_core.Store`, as in tests/test_store.py, on object stores; and the cases that only they
have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from deltaic import _core
from deltaic.log.store import open_own
from store_servers import Place, azure_place, google_place
from test_store import (
    test_files_of_a_commit_that_are_gone_do_not_hold_it_up,
    test_listing_is_sorted_and_begins_after,
    test_no_path_leaves_the_root,
)

__all__ = [
    "test_files_of_a_commit_that_are_gone_do_not_hold_it_up",
    "test_listing_is_sorted_and_begins_after",
    "test_no_path_leaves_the_root",
]


@pytest.fixture
def store(place: Place) -> _core.Store:
    return open_own(place.at(), place.options)


def test_bytes_come_back(store: _core.Store) -> None:
    assert store.head("a/b") is None
    with pytest.raises(FileNotFoundError, match="a/b"):
        store.get("a/b")
    assert (store.put_if_absent("a/b", b"one"), store.put_if_absent("a/b", b"two")) == ("created", "exists")
    assert store.get("a/b") == b"one"
    store.put("a/b", b"three")
    store.put("empty", b"")
    assert (store.get("a/b"), store.get("empty")) == (b"three", b"")
    head = store.head("a/b")
    assert head is not None
    assert head[0] == 5
    assert store.delete(["a/b"]) == 1
    store.delete(["a/b", "never there"])
    assert store.head("a/b") is None
    assert store.list_from("", recursive=True)["path"].to_pylist() == ["empty"]


def test_a_commit_that_was_just_put_is_read_as_it_is(store: _core.Store) -> None:
    path = "_delta_log/00000000000000000000.json"
    assert store.put_if_absent(path, b"mine") == "created"
    # No writer replaces a commit. If it happens, the bytes that were put are returned once, then the store's.
    store.put(path, b"of another process")
    assert {store.get(path, most=100), store.get(path, most=100)} <= {b"mine", b"of another process"}
    assert store.get(path, most=100) == b"of another process"


def test_of_writers_of_one_name_one_wins(store: _core.Store) -> None:
    for turn in range(3):
        with ThreadPoolExecutor(6) as pool:
            outcomes = list(
                pool.map(
                    lambda writer, name=f"log/{turn}": store.put_if_absent(name, b"%d" % writer), range(6)
                )
            )
        assert sorted(outcomes) == ["created"] + ["exists"] * 5
        assert store.get(f"log/{turn}") == b"%d" % outcomes.index("created")


@pytest.mark.parametrize("kind", ["s3", "gcs"])
def test_listings_of_several_pages(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "20")
    monkeypatch.setattr("gcs_stub.PAGE", 20)
    server = request.getfixturevalue(kind)
    place = server.place() if kind == "s3" else google_place(server)
    store = open_own(place.at(), place.options)
    names = [f"folder/{number:05}" for number in range(50)]
    for name in (*names, "folder/below/x"):
        store.put(name, b"")
    assert place.server is not None
    with place.server.recorded() as found:
        assert [path for path, _, _ in store.entries("folder")] == names
    assert len(found) == 3
    assert [path for path, _, _ in store.entries("folder", "00020")] == names[21:]
    assert len(store.list_from("", recursive=True)) == 51
    assert store.delete(names) == len(names)
    assert store.list_from("", recursive=True)["path"].to_pylist() == ["folder/below/x"]


@pytest.mark.parametrize(
    "url",
    [
        "az://tables/x",
        "azure://tables/x",
        "abfs://tables/x",
        "abfss://tables@devstoreaccount1.dfs.core.windows.net/x",
    ],
)
def test_addresses_of_azure_name_one_place(azure: str, url: str) -> None:
    options = azure_place(azure).options
    name = "a b/" + url.split(":")[0]
    open_own("az://tables/x", options).put(name, b"here")
    store = open_own(url, options)
    assert store.get(name) == b"here"
    assert name in [path for path, _, _ in store.entries("a b")]
