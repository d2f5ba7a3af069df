"""Decides whether tables can get unknown properties whose names begin with `delta.`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_allowed: ContextVar[Callable[[], bool]] = ContextVar("decides about unknown properties", default=bool)


@contextmanager
def allowed_by(decide: Callable[[], bool]) -> Iterator[None]:
    """In the body, unknown properties can be set if `decide` returns True."""
    before = _allowed.set(decide)
    try:
        yield
    finally:
        _allowed.reset(before)


def are_allowed() -> bool:
    """True if unknown properties can be set."""
    return _allowed.get()()
