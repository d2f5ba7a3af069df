from __future__ import annotations

from collections.abc import Iterator

import pytest
from bounded import Bounded


@pytest.fixture(scope="session")
def bounded() -> Iterator[Bounded]:
    process = Bounded()
    yield process
    process.close()
