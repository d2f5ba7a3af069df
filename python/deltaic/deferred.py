"""Imports slow modules such as pyarrow when they are first used, so that opening and planning need none of
them. The import runs on a thread of its own (`load`), because Ctrl-C in the middle of an import can be lost.

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any


def load(*names: str) -> None:
    """Imports modules on a thread of its own, where no signal arrives: signals reach only the main thread.

    Ctrl-C in the middle of an import may be lost without a word: in Python's import lock, which then stays
    locked for ever, and in compiled modules such as DuckDB's, where it may also end the process.
    """
    missing = [name for name in names if name not in sys.modules]
    if not missing:
        return
    done = threading.Event()

    def run() -> None:
        try:
            with suppress(Exception):  # the caller's own import statement raises it again
                for name in missing:
                    import_module(name)
        finally:
            done.set()

    with suppress(RuntimeError):  # no more threads: the caller's import statement does all of it
        threading.Thread(target=run, name="deltaic-import", daemon=True).start()
        done.wait()


class _LazyModule:
    """A module that is imported when one of its attributes is first used."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        load(self.__name__)
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


pyarrow = _LazyModule("pyarrow")
