"""Runs work, such as a commit, on a thread of its own, where no exception of a signal handler (Ctrl-C) or of
another thread can interrupt it.

Python raises such an exception in the middle of whatever the interrupted thread does: between the write of a
commit and the arrival of the store's answer, or inside an `except` that treats every error as an error of the
work. Here the caller only waits in `Worker.result`. So an exception that interrupts the caller is never
mistaken for an error of the work, and an error of the work is never mistaken for an interruption.
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

# Maximum seconds that an interrupted caller waits for its work to end. After that the caller goes on without
# the work, because a source of rows may never answer.
_PATIENCE = 5.0
# Seconds between two checks of a waiting caller: Python raises an exception that another thread has set only
# when the wait for the work is interrupted by such a check.
_LOOK = 0.1
# Maximum seconds in which a started thread must begin to run; after that, another thread is started.
_START = 1.0
# Maximum number of idle threads; a further thread ends when its work is done. An idle thread ends after _IDLE
# seconds without work.
_MOST_IDLE = 16
_IDLE = 10.0
# Maximum number of threads that do short work at the same time; a further thread waits. Measured with 8
# threads that append ten rows each, on two processors: 400 commits a second with 2 places, 425 with 3, 350
# without limit.
_PLACES = max(2, os.cpu_count() or 1) + 1
# Seconds after which work no longer counts as short, so that it does not occupy a place. A thread waits for a
# place at most _MOST_WAITS times as long (1 s), and then works without one.
_SHORT = 0.02
_MOST_WAITS = 50
# Beginnings of Python's messages when it cannot start a thread: the system has none left, or the interpreter
# is about to end. The work then runs on the caller's thread.
_NO_THREAD = ("can't start new thread", "can't create new thread")


class _Threads(ProcessState):
    """Idle threads, which are used again for the next work: a new thread must first get memory from the
    system for the allocator of `_core`, which takes as long as a small commit."""

    def reset(self) -> None:
        self._idle: list[_Slot] = []

    def run(self, work: Callable[[], object]) -> None:
        """Runs `work`, which raises nothing, on a waiting thread or on a new one."""
        try:
            slot = self._idle.pop()
        except IndexError:
            # Not threading.Thread: its `start` would wait for ever for a thread that ends before its first
            # line.
            _thread.start_new_thread(self._serve, (_Slot(work),))
        else:
            slot.work = work
            slot.woken.release()

    def _serve(self, slot: _Slot) -> None:
        while (work := slot.work) is not None:
            slot.work = None
            _core.Interrupt().watch()  # replaces the `Interrupt` of the work before, until `Worker.watch`
            work()
            del work
            idle = self._idle
            if len(idle) >= _MOST_IDLE:
                return
            idle.append(slot)
            if not slot.woken.acquire(timeout=_IDLE):
                try:
                    idle.remove(slot)
                except ValueError:  # a caller has just taken the slot, but it may be interrupted
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
    """Limits how many threads do short work at the same time. More threads than processors are slower than
    fewer threads: they wait for the interpreter, and the system switches between them.

    A place is advice and no lock: a thread waits a limited time for one, and then works without it. Work that
    takes longer than _SHORT does not count.
    """

    def reset(self) -> None:
        self._began: dict[int, float] = {}
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Waits for a place, which the thread occupies until the end of the block."""
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
                    # Occupied here, so that no third thread takes the place before the waiting one wakes.
                    self._began[next_thread] = time.monotonic()
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
    """One call of `function` on a thread of its own, with the caller's context variables.

    `function`: gets this worker as its argument. `cancel`: called repeatedly while an interrupted caller
    waits for the work to end. `undo`: gets the result of work that succeeded although its caller was
    interrupted, and reverts it, because the caller never gets the result. `check`: called by the waiting
    caller every _LOOK seconds; it raises an exception to interrupt the caller.
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
        # Raw locks, because an exception in the middle of Event.wait would leave the lock inside the event
        # locked. `_claim` is taken by the thread when it begins, or by the caller when it gives up before
        # that.
        self._claim = threading.Lock()
        self._done = threading.Lock()
        self._answers: list[T] = []
        self._failures: list[BaseException] = []

    def result(self) -> T:
        """Starts the work and waits for it. Returns the function's result, or raises its exception; if the
        caller is interrupted, raises the interrupting exception instead and sets `stopping`."""
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
        # The exception is removed from the list: if the list still held it, its traceback would refer to it,
        # and only the cyclic garbage collector would free it and the objects that it refers to.
        if self._failures:
            raise self._failures.pop()
        return self._answers.pop()

    def _look(self) -> None:
        """Raises an exception if `check` does, or KeyboardInterrupt if this caller is itself the work of an
        interrupted caller."""
        if self.ended:
            return
        if self._check is not None:
            self._check()
        if self._outer is not None and self._outer.stopping:
            raise KeyboardInterrupt("stopped by the user")

    def watch(self) -> None:
        """Makes the work's calls into `_core` end with KeyboardInterrupt after the caller was interrupted."""
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
            _running.set(self)  # in this thread's copy of the context
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
                self._cancel()  # repeated, because a query or stream may begin after the first call
            self._done.acquire(timeout=0.05)
        self._failures.clear()
        if self._answers and self._undo is not None:
            self._undo(self._answers.pop())
