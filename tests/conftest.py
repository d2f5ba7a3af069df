"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Two cores shared with other work: a slow example is no error, a non-deterministic one is.
settings.register_profile("suite", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
