"""configure(): for the process, or until the end of a with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic import configuration
from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError


@pytest.fixture(autouse=True)
def _restored() -> Any:
    before = configuration.current()
    yield
    configuration._change({name: getattr(before, name) for name in before.__dataclass_fields__})


def test_with_puts_back_what_it_changed() -> None:
    before = configuration.current()
    with deltaic.configure(memory_limit="4GB", threads=2) as settings:
        assert settings.memory_limit == 4_000_000_000
        assert configuration.current().threads == 2
        with deltaic.configure(threads=1):
            assert (configuration.current().threads, configuration.current().memory_limit) == (1, 4_000_000_000)
        assert configuration.current().threads == 2
    assert configuration.current() == before


def test_without_with_the_change_stays() -> None:
    deltaic.configure(time_zone="Europe/Berlin", durable=False)
    assert (configuration.current().time_zone, configuration.current().durable) == ("Europe/Berlin", False)
    deltaic.configure(threads=3)
    assert configuration.current().time_zone == "Europe/Berlin"


def test_an_error_inside_puts_back_too() -> None:
    before = configuration.current()
    with pytest.raises(RuntimeError), deltaic.configure(threads=2):
        raise RuntimeError
    assert configuration.current() == before


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("512MiB", 512 * 2**20), ("1.5 kb", 1500), ("10", 10), (123, 123), ("1TiB", 2**40)]
)
def test_sizes(text: int | str, size: int) -> None:
    assert configuration.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "4 parsecs", 0, -5, True, 1.5, None])
def test_not_a_size(text: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        configuration.parse_size(text)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"threads": 0}, InvalidArgumentError),
        ({"threads": True}, InvalidArgumentError),
        ({"time_zone": "Mars/Olympus"}, InvalidArgumentError),
        ({"durable": "yes"}, InvalidTypeError),
        ({"allowed_roots": "/data"}, InvalidTypeError),
        ({"default_properties": {"delta.noSuchThing": "1"}}, InvalidArgumentError),
        ({"default_properties": {"delta.checkpointInterval": "often"}}, InvalidArgumentError),
        ({"cache_directory": "/tmp/x"}, UnsupportedFeatureError),
        ({"cache_limit": "1GB"}, UnsupportedFeatureError),
        ({"limits": object()}, UnsupportedFeatureError),
    ],
)
def test_refused_and_nothing_changed(arguments: dict[str, Any], error: type[Exception]) -> None:
    before = configuration.current()
    with pytest.raises(error):
        deltaic.configure(threads=7, **arguments) if "threads" not in arguments else deltaic.configure(**arguments)
    assert configuration.current() == before


def test_new_tables_have_deletion_vectors_to_begin_with() -> None:
    assert dict(configuration.Configuration().default_properties) == {"delta.enableDeletionVectors": "true"}


def test_locations_are_absolute(tmp_path: Path) -> None:
    with deltaic.configure(allowed_roots=["memory://other", "relative"], temp_directory=tmp_path):
        assert configuration.current().allowed_roots == ("memory://other", os.path.abspath("relative"))
        assert configuration.current().temp_directory == str(tmp_path)
