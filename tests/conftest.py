"""Settings of the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from spark_session import IGNORED, spark

__all__ = ["spark"]

# Two cores shared with other work: a slow example is no error, a non-deterministic one is.
settings.register_profile("suite", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    for ignored in IGNORED:
        config.addinivalue_line("filterwarnings", ignored)
