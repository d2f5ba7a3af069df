"""`ProcessState`, the base class of state that a forked child must not reuse (locks, pools, caches).

For example, a lock in such state may be held by a thread that the child does not have.
"""

from __future__ import annotations

import os
from collections.abc import Callable


def call_after_fork(function: Callable[[], None]) -> None:
    """Makes every forked child call a function. Windows has no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class ProcessState:
    """The base class of state that belongs to one process. Subclasses create all of their attributes in
    `reset`, which is called for a new object, and again in a forked child."""

    def __init__(self) -> None:
        self.reset()
        call_after_fork(self.reset)

    def reset(self) -> None:
        """Sets all attributes to the values of a new object."""
        raise NotImplementedError
