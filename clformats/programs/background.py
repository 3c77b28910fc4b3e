"""One thread for what can wait: programs are built there while slower ones serve.

Compilers and drivers lock parts of themselves, so a build in the background would hold up one that
a caller waits for, or a launch. So tasks begin when there is quiet: no build is awaited, and
nothing was asked for a little while.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

LINGER = 0.25
"""Seconds of quiet before a task begins: programs that make one reorder soon make another."""
LONGEST = 2.0
"""Seconds that a task waits for quiet at the most."""
GRACE = 10.0
"""Seconds that a process which ends waits for the task under way, or compilers crash."""
_POLL = 0.02

Task = Callable[[], object]


class Background:
    """Runs tasks one after the other in a thread of its own, which starts with the first."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Task, Future[None], float]] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._awaited, self._last = 0, 0.0
        self._before_end: list[Task] = []
        self.ends = False

    def later(self, task: Task) -> Future[None]:
        """Run a task when no caller waits for a build; the result says when, or with which error.

        It is cancelled where the process ends before. Where no thread can be had, it runs at once.
        """
        future: Future[None] = Future()
        with self._lock:
            self._last = time.monotonic()
            if self.ends:
                future.cancel()
                return future
            if self._thread is not None or self._starts():
                self._tasks.put((task, future, self._last + LONGEST))
                return future
        _do(task, future)
        return future

    def _starts(self) -> bool:
        """Whether there is a thread now: a system may be out of them, an interpreter may end."""
        thread = threading.Thread(target=self._run, name="clformats", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        self._ends_at_exit()
        return True

    def _ends_at_exit(self) -> None:
        atexit.unregister(self.end)
        atexit.register(self.end)

    def before_end(self, task: Task) -> None:
        """Do this when the process ends, before the task under way is waited for."""
        if task not in self._before_end:
            self._before_end.append(task)
            self._ends_at_exit()

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Around a build that a caller waits for: no task begins meanwhile."""
        if threading.current_thread() is self._thread:
            yield
            return
        with self._lock:
            self._awaited += 1
        try:
            yield
        finally:
            with self._lock:
                self._awaited -= 1
                self._last = time.monotonic()

    def end(self) -> None:
        """Drop the tasks that have not begun, and wait for the one under way, but not for ever."""
        with self._lock:
            self.ends = True
            with suppress(Empty):
                while True:
                    self._tasks.get_nowait()[1].cancel()
            self._tasks.put((lambda: None, Future(), 0.0))  # wakes the thread, which is to end
        for task in self._before_end:
            task()
        if self._thread is not None:
            self._thread.join(GRACE)

    def forget(self) -> None:
        """Be as new, in a process that was forked: it has the tasks, but not the thread."""
        atexit.unregister(self.end)
        self.__init__()  # type: ignore[misc]

    def _run(self) -> None:
        while True:
            task, future, latest = self._tasks.get()
            self._wait_for_quiet(latest)
            if self.ends:
                future.cancel()
                return
            _do(task, future)
            del task, future

    def _wait_for_quiet(self, latest: float) -> None:
        while not self.ends and (now := time.monotonic()) < latest:
            if not self._awaited and now >= self._last + LINGER:
                return
            time.sleep(_POLL)


def _do(task: Task, future: Future[None]) -> None:
    try:
        task()
    except BaseException as error:  # noqa: BLE001  # the future raises it again
        future.set_exception(error)
    else:
        future.set_result(None)


background = Background()

if hasattr(os, "register_at_fork"):
    # A process that was forked has no thread, and OpenCL is refused there: nothing to wait for.
    os.register_at_fork(after_in_child=background.forget)
