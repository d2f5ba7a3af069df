"""State of one process, which a forked child does not take over."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from deltaic.process_state import ProcessState


@pytest.mark.skipif(sys.platform == "win32", reason="a system without fork")
def test_a_forked_child_begins_anew() -> None:
    code = """
        import os, threading
        from deltaic.process_state import ProcessState
        class Count(ProcessState):
            def reset(self):
                self.lock, self.count = threading.Lock(), 0
        state = Count()
        state.lock.acquire()
        state.count = 5
        child = os.fork()
        if child == 0:
            os._exit(10 + state.count if state.lock.acquire(timeout=1) else 99)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), state.count)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["10", "5"]


@pytest.mark.skipif(sys.platform == "win32", reason="a system without fork")
def test_a_forked_child_finds_the_locks_of_modules_free() -> None:
    code = """
        import os
        from deltaic.process_state import module_lock
        lock = module_lock()
        lock.acquire()
        child = os.fork()
        if child == 0:
            os._exit(10 if lock.acquire(timeout=1) else 99)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lock.locked())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["10", "True"]


def test_a_class_says_how_its_state_begins() -> None:
    with pytest.raises(NotImplementedError):
        ProcessState()
