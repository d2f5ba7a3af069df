"""`ProcessState`, the base class of state that a forked child must not reuse (locks, pools, caches), and
`module_lock` for a module that has no more of it than a lock.

For example, a lock in such state may be held by a thread that the child does not have.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def call_after_fork(function: Callable[[], None]) -> None:
    """Makes every forked child call a function. Windows has no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def module_lock() -> threading.Lock:
    """Returns a lock for a module. It is free in a forked child, which does not have the thread that may hold
    it in the parent."""
    lock = threading.Lock()
    call_after_fork(lambda: lock.release() if lock.locked() else None)
    return lock


class ProcessState:
    """The base class of state that belongs to one process. Subclasses create all of their attributes in
    `reset`, which is called for a new object, and again in a forked child."""

    def __init__(self) -> None:
        self.reset()
        call_after_fork(self.reset)

    def reset(self) -> None:
        """Sets all attributes to the values of a new object."""
        raise NotImplementedError
