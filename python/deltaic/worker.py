"""Runs work, such as a commit, on a thread of its own, where no exception of a signal handler (Ctrl-C) or of
another thread can interrupt it.

Python raises such an exception in the middle of whatever the interrupted thread does: between the write of a
commit and the arrival of its answer, or inside an `except` that takes every error for the work's own. A
caller of `Worker.result` only waits, so what is raised there was never raised by the work, and what the work
raises is always the work's.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from deltaic import _core
from deltaic.process_state import ProcessState

T = TypeVar("T")
_running: ContextVar[Worker[Any] | None] = ContextVar("deltaic worker", default=None)

# Seconds that an interrupted caller waits for its work to end: a source of rows that never answers must not
# hold it for ever.
_PATIENCE = 5.0
# Seconds between two looks of the waiting caller: an exception set by another thread is raised between two of
# them.
_LOOK = 0.1
# Seconds after which a thread that has not begun is given up.
_START = 1.0
# Maximum number of threads that wait for work, and seconds after which one ends.
_MOST_IDLE = 16
_IDLE = 10.0
# Number of threads that do short work at the same time. Measured with 8 threads that append ten rows each, on
# two processors: 400 commits a second with 2 places, 425 with 3, and 350 before there were places.
_PLACES = max(2, os.cpu_count() or 1) + 1
# Seconds after which work is not short, and how often a thread waits so long for a place.
_SHORT = 0.02
_MOST_WAITS = 50
# What Python says where it starts no more threads: the system has none left, or the interpreter is about to
# end.
_NO_THREAD = ("can't start new thread", "can't create new thread")


class _Threads(ProcessState):
    """Threads that wait for the next work. A thread that was just started has to fetch memory for the
    allocator of `_core` from the system, which takes as long as a small commit."""

    def reset(self) -> None:
        self._idle: list[_Slot] = []

    def run(self, work: Callable[[], object]) -> None:
        """Runs `work`, which raises nothing, on a waiting thread or on a new one."""
        try:
            slot = self._idle.pop()
        except IndexError:
            # Not threading.Thread, whose `start` waits for ever for a thread that ends before its first line.
            _thread.start_new_thread(self._serve, (_Slot(work),))
        else:
            slot.work = work
            slot.woken.release()

    def _serve(self, slot: _Slot) -> None:
        while (work := slot.work) is not None:
            slot.work = None
            _core.Interrupt().watch()  # nobody's, until `Worker.watch`: the last one was of the work before
            work()
            del work
            idle = self._idle
            if len(idle) >= _MOST_IDLE:
                return
            idle.append(slot)
            if not slot.woken.acquire(timeout=_IDLE):
                try:
                    idle.remove(slot)
                except ValueError:  # it was taken at this moment; if its taker was interrupted, no work comes
                    if not slot.woken.acquire(timeout=_START):
                        return


class _Slot:
    """The next work of a waiting thread."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work: Callable[[], object] | None = work
        self.woken = threading.Lock()
        self.woken.acquire()


_THREADS = _Threads()


class _Places(ProcessState):
    """Places for threads that do short work at the same time. More threads than processors do such work more
    slowly than a few of them, as they wait for the interpreter, and the system wakes another one each time.

    A place is an advice, no lock: a thread waits a short time for one, and then goes on without. Work that
    lasts longer is no longer counted.
    """

    def reset(self) -> None:
        self._began: dict[int, float] = {}
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Waits for a place, which the thread has for the duration of the block."""
        thread = threading.get_ident()
        if thread in self._began:
            yield
            return
        try:
            if self._is_full():
                self._wait(thread)
            self._began[thread] = time.monotonic()
            yield
        finally:
            self._began.pop(thread, None)  # missing in a forked child
            with suppress(IndexError):
                while not self._is_full():
                    next_thread, woken = self._waiting.popleft()
                    self._began[next_thread] = time.monotonic()  # or a third thread would come before it
                    woken.release()

    def _is_full(self) -> bool:
        since = time.monotonic() - _SHORT
        return sum(began > since for began in tuple(self._began.values())) >= _PLACES

    def _wait(self, thread: int) -> None:
        woken = threading.Lock()
        woken.acquire()
        self._waiting.append((thread, woken))
        try:
            for _ in range(_MOST_WAITS):
                if woken.acquire(timeout=_SHORT) or not self._is_full():
                    break
        finally:
            with suppress(ValueError):
                self._waiting.remove((thread, woken))


short_work = _Places().place


class Worker(Generic[T]):
    """One call of `function`, which gets this worker, with the caller's context variables.

    `cancel` is called again and again while an interrupted caller waits for the end; `undo` takes back the
    answer of work that ended well all the same, as nobody learns of it. `check` is called by the waiting
    caller now and then, and raises where it is to be interrupted.
    """

    def __init__(
        self,
        function: Callable[[Worker[T]], T],
        *,
        cancel: Callable[[], object] | None = None,
        undo: Callable[[T], object] | None = None,
        check: Callable[[], object] | None = None,
    ) -> None:
        self._function, self._cancel, self._undo, self._check = function, cancel, undo, check
        self._outer = _running.get()
        self.interrupt = _core.Interrupt()
        self.stopping = False
        """True if the caller has been interrupted: the work ends as soon as it can."""
        self.ended = False
        """True if the work is over."""
        self.withdrawn = False
        """True if the caller was interrupted before the work began, so that nothing was done and nothing will
        be."""
        self.began = False
        self._inline = False
        # Raw locks, as an exception in the middle of Event.wait leaves the lock inside it held. The first one
        # belongs to whoever comes first: the thread that begins, or the caller that gives up.
        self._claim = threading.Lock()
        self._done = threading.Lock()
        self._answers: list[T] = []
        self._failures: list[BaseException] = []

    def result(self) -> T:
        """The answer of the function, or what it raised; or, after `stopping`, the exception that came to the
        caller."""
        try:
            self._done.acquire()
            until = self._start()
            while not self.ended:
                self._done.acquire(timeout=_LOOK)
                self._look()
                if not self.began and time.monotonic() > until:
                    until = self._start_again()
        except BaseException:
            self.stopping = True
            self._give_up()
            raise
        # Taken out of the list: an exception that its own traceback leads to is freed by the cyclic collector
        # only, with all it holds.
        if self._failures:
            raise self._failures.pop()
        return self._answers.pop()

    def _look(self) -> None:
        """Raises where the caller is to be interrupted: by `check`, or as it works for a caller that was."""
        if self.ended:
            return
        if self._check is not None:
            self._check()
        if self._outer is not None and self._outer.stopping:
            raise KeyboardInterrupt("stopped by the user")

    def watch(self) -> None:
        """From now on the calls into `_core` of this work end with KeyboardInterrupt once the caller was
        interrupted."""
        if not self._inline:
            self.interrupt.watch()

    def _start(self) -> float:
        """Starts the thread. Returns the time (`time.monotonic`) by which it should have begun."""
        claim, context = self._claim, copy_context()
        if not sys.is_finalizing():
            try:
                _THREADS.run(partial(context.run, self._run, claim))
                return time.monotonic() + _START
            except RuntimeError as error:
                if not str(error).startswith(_NO_THREAD):
                    raise
        self._inline = True
        self._run(claim)
        return 0.0

    def _start_again(self) -> float:
        """Starts the thread again if it has not begun to run in time. On Python 3.11 a new thread
        counts as its parent until it runs, so that it may end by an exception that was set for the parent."""
        if not self._claim.acquire(blocking=False):
            return time.monotonic() + _START
        self._claim = threading.Lock()
        return self._start()

    def _run(self, claim: threading.Lock) -> None:
        if not claim.acquire(blocking=False):
            return
        self.began = True
        if not self._inline:
            _running.set(self)  # of this thread's copy of the context
        try:
            self._answers.append(self._function(self))
        except BaseException as error:
            self._failures.append(error)
        finally:
            self.ended = True
            self._done.release()

    def _give_up(self) -> None:
        if self._claim.acquire(blocking=False):
            self.withdrawn = True
            return
        self.interrupt.stop()
        until = time.monotonic() + _PATIENCE
        while not self.ended and time.monotonic() < until:
            if self._cancel is not None:
                self._cancel()  # again each time, as a query or stream may begin meanwhile
            self._done.acquire(timeout=0.05)
        self._failures.clear()
        if self._answers and self._undo is not None:
            self._undo(self._answers.pop())
