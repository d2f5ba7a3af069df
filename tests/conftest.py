"""Settings of the whole suite."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from java import JVM
from slow_tests import SLOW, TESTS
from spark_session import IGNORED, spark

__all__ = ["spark"]

# Two cores shared with other work: a slow example is no error, a non-deterministic one is.
settings.register_profile(
    "suite", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
os.environ["JDK_JAVA_OPTIONS"] = JVM


@pytest.fixture
def arrow_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets DuckDB read each table of a query through an Arrow source."""
    from deltaic.engine.duckdb import native_tables

    monkeypatch.setattr(native_tables, "native_tables", lambda *given: {})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: needs a Spark session; given to every test that does")
    config.addinivalue_line(
        "markers", "slow: left out by `make test-quick`; given to the tests of slow_tests.txt"
    )
    for ignored in IGNORED:
        config.addinivalue_line("filterwarnings", ignored)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests on Spark (those with the fixture and those with a parameter for it) and the slow tests
    of slow_tests.txt."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        chosen = {} if parameters is None else parameters.params
        by_name = any(isinstance(value, str) and value.split()[-1:] == ["spark"] for value in chosen.values())
        if by_name or chosen.get("on_spark") is True or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        place = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        if place.startswith(SLOW) or f"{place}::{getattr(item, 'originalname', item.name)}" in SLOW:
            item.add_marker(pytest.mark.slow)
