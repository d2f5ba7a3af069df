"""State that belongs to one process. A forked child must not continue with it: a lock in it may be held by a
thread that the child does not have.
"""

from __future__ import annotations

import os


class ProcessState:
    """The base class of such state. Subclasses create all of their attributes in `reset`, which is called for
    a new object, and again in a forked child."""

    def __init__(self) -> None:
        self.reset()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        """Sets all attributes to the values of a new object."""
        raise NotImplementedError
