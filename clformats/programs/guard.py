"""Builds in a process of its own first: where a compiler crashes, it takes a child, not the user.

Compilers of CPU runtimes, and Mesa's, run inside the process that asks them, and abort it where
they meet a defect of their own. So a source that was never built on this machine is built, and its
kernel launched, by a *worker* first (`worker.py`). It is a fresh Python, never a fork of this
process, and serves all builds that follow, until it has nothing to do. What it proved is
remembered, see `outcomes`; programs that are cached need no worker.

A program that ends the worker is tried once more, by a new one: only what ends two is to blame.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from ..errors import DeviceError
from ..opencl import opencl, places
from .background import background
from .outcomes import DIED, HUNG, UNKNOWN, BuildOutcome

if TYPE_CHECKING:
    import pyopencl

SWITCH = "CLFORMATS_GUARD"
"""0: no program is built in a child process first. 1: all are. Otherwise where it is needed."""
LIMIT = "CLFORMATS_BUILD_SECONDS"
SECONDS = 60.0
"""After this many seconds a build has hung; it takes one at the most, of a machine that is free."""
LONGEST = 1e6
"""The most seconds that can be asked for, or what "inf" is: twelve days."""
QUEUE = 2.0
"""Seconds for which a build waits for a busy worker before it gets one of its own."""
INSIDE = ("rusticl", "Clover")
"""Platforms that compile inside the process also for devices which are no CPUs."""
_NOT_THE_COMPILER = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
"""Not sent by a compiler, but by a system that is out of memory, or by the user."""
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "Too many open files")
"""What compilers print that end for want of it: the next build may find enough."""
LOST, STARVED = "lost", "starved"
"""The outcomes of a build whose worker ended before it began, or was killed; and which found no
room."""
_TAIL = 4000
_START = (
    "import sys; sys.path[:] = {path}; import runpy; runpy.run_path({file!r}, None, '__main__')"
)
"""The path first: the current folder, which is on it before, may be writable by others."""


@dataclass(frozen=True)
class FirstLaunch:
    """The first launch of a kernel: one work-group, with arguments that keep it inside its memory.

    ``arguments`` are the bytes of values, or the sizes of buffers.
    """

    kernel: str
    local: tuple[int, ...]
    arguments: tuple[int | bytes, ...]

    def as_json(self) -> dict[str, Any]:
        """As `worker` takes it."""
        given = [a if isinstance(a, int) else a.hex() for a in self.arguments]
        return {"kernel": self.kernel, "local": self.local, "arguments": given}


@dataclass(frozen=True)
class Build:
    """What is to be built: a source with its options on a device; ``trial`` is its first launch."""

    device: pyopencl.Device
    options: tuple[str, ...]
    source: str
    trial: FirstLaunch | None = None

    @property
    def all_options(self) -> tuple[str, ...]:
        """The options with those that pyopencl adds for the user."""
        return (*self.options, *os.environ.get("PYOPENCL_BUILD_OPTIONS", "").split())


def is_guarded(device: pyopencl.Device) -> bool:
    """Whether programs for a device are built by a worker first."""
    chosen = os.environ.get(SWITCH)
    if os.name != "posix":  # pipes cannot be waited for
        return False
    if chosen in ("0", "1"):
        return chosen == "1"
    is_cpu = bool(device.type & opencl().device_type.CPU)
    return is_cpu or device.platform.name.strip() in INSIDE


def tried(build: Build, *, binary: bool) -> BuildOutcome:
    """Build a program in a worker, and run it; with its binary if that is wanted.

    "unknown" where there can be no worker, or where it does not see the device. Raises
    `DeviceError` where the disk is full, which no program is to blame for.
    """
    place = places().get(build.device)
    if place is None:
        return BuildOutcome(UNKNOWN)
    request = {
        "place": (*place, build.device.name),
        "options": build.all_options,
        "source": build.source,
        "trial": build.trial.as_json() if build.trial else None,
        "binary": binary,
    }
    first = _asked(request)
    last = _asked(request) if first.outcome in (DIED, LOST, STARVED) else first
    if last.outcome == STARVED:
        raise DeviceError(
            f"a program is not built, as the compiler found no room: {last.how}. Free some, for "
            f"instance in the cache folders, which `clformats doctor` names"
        )
    return last if last.outcome != LOST else BuildOutcome(UNKNOWN)


def _asked(request: dict[str, Any]) -> BuildOutcome:
    """The answer of one worker."""
    with workers.one() as worker:
        return worker.ask(request) if worker else BuildOutcome(UNKNOWN)


class Worker:
    """A child process that builds programs, one at a time."""

    def __init__(self) -> None:
        """Start it. Raises OSError where there can be no process."""
        file = str(Path(__file__).with_name("worker.py"))
        start = _START.format(path=list(map(str, sys.path)), file=file)
        self._errors = _unnamed_file()
        try:
            self._process = subprocess.Popen(
                [_python(), "-W", "ignore", "-c", start],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                bufsize=0, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self._errors.close()
            raise
        self._read = b""
        self._seconds = self._latest = 0.0
        self._hung = self._stopped = False

    @property
    def is_there(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def starts(self) -> bool:
        """Wait until it takes requests; False if it never will."""
        self._may_take(limit())
        return bool(self._line())

    def ask(self, request: dict[str, Any]) -> BuildOutcome:
        """Send a request, and wait for its answer. Raises `DeviceError` after `stop`."""
        stage = ""
        self._errors.truncate(0)  # what it said of another program
        self._errors.seek(0)
        self._may_take(limit())
        try:
            self._send(json.dumps(request).encode() + b"\n")
            while (answer := self._line()) and "stage" in answer:
                stage = answer["stage"]
        except BaseException:  # Control-C: the answer to come would be taken for another one's
            self.end()
            raise
        if answer:
            given = base64.b64decode(answer.get("binary", ""))
            return BuildOutcome(answer["outcome"], said=answer.get("said", ""), binary=given)
        return self._death(stage)

    def _may_take(self, seconds: float) -> None:
        self._seconds, self._latest = seconds, monotonic() + seconds

    def _send(self, line: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101  # a pipe was asked for
        with suppress(OSError):  # a process that has ended: nothing can be read either
            while line:
                line = line[pipe.write(line) :]

    def _line(self) -> dict[str, Any]:
        """The next answer; empty when the process has ended, by us if the time is over."""
        pipe = self._process.stdout
        assert pipe is not None  # noqa: S101  # a pipe was asked for
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while b"\n" not in self._read:
            if not poll.poll(max(0.0, self._latest - monotonic()) * 1e3):
                self._hung = True
                self._process.kill()
                return {}
            part = pipe.read(1 << 20)
            if not part:
                return {}
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _death(self, stage: str) -> BuildOutcome:
        """How it ended while it was at something."""
        self._process.wait()
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _TAIL))
        said = self._errors.read().decode(errors="replace").strip()
        self.forget()
        if self._stopped:
            raise DeviceError("a program is not built: the process ends")
        if self._hung:
            return BuildOutcome(
                HUNG if stage else LOST, f"no answer in {self._seconds:g} s", stage, said
            )
        lacks = [line for line in said.splitlines() if any(told in line for told in _NO_ROOM)]
        if lacks:
            return BuildOutcome(STARVED, lacks[-1].strip(), stage, said)
        name = _name_of(self._process.returncode)
        lost = not stage or name.endswith(_NOT_THE_COMPILER)
        return BuildOutcome(LOST if lost else DIED, name, stage, said)

    def stop(self) -> None:
        """End the process; callers that wait for its answer get an error."""
        self._stopped = True
        self._process.kill()

    def end(self) -> None:
        """End the process, which has nothing to answer."""
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close what belongs to it here; in a forked process the other ends stay open."""
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe:
                pipe.close()
        if self._process.returncode is None:
            self._process.returncode = 0  # a forked process has no children, to wait for


def _unnamed_file() -> IO[bytes]:
    """A file in memory where there is such a thing: /tmp may be full, or read-only."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("clformats"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


@dataclass
class Workers:
    """Those of this process: one, and more only where several builds are awaited at a time."""

    _idle: list[Worker] = field(default_factory=list)
    _busy: list[Worker] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _useless: bool = False

    @contextmanager
    def one(self) -> Iterator[Worker | None]:
        """A worker for the caller only; None where there can be none."""
        worker = self._taken()
        try:
            yield worker
        finally:
            with self._changed:
                if worker in self._busy:
                    self._busy.remove(worker)
                    if worker.is_there:
                        self._idle.append(worker)
                    else:  # it may also end right after an answer
                        worker.forget()
                self._changed.notify()

    def _taken(self) -> Worker | None:
        with self._changed:
            self._changed.wait_for(lambda: self._idle or not self._busy, QUEUE)
            while self._idle:
                worker = self._idle.pop()
                if worker.is_there:
                    self._busy.append(worker)
                    return worker
                worker.forget()
            if self._useless:
                return None
            started = self._started()
            if started:
                self._busy.append(started)
            self._useless = started is None  # nor will another one start
            return started

    def _started(self) -> Worker | None:
        if not _python():
            return None
        try:
            worker = Worker()
        except (OSError, RuntimeError):  # a system out of processes, an interpreter that ends
            return None
        if not worker.starts():
            worker.end()
            return None
        background.before_end(self.stop)
        return worker

    def stop(self) -> None:
        """End them all, busy or not: this process ends."""
        for worker in self._busy.copy():
            worker.stop()
        while self._idle:
            self._idle.pop().end()

    def forget(self) -> None:
        """Leave them to the process that this one was forked from."""
        for worker in (*self._idle, *self._busy):
            worker.forget()
        self.__init__()  # type: ignore[misc]


workers = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.forget)


def limit() -> float:
    """How many seconds a build may take."""
    try:
        return min(LONGEST, float(os.environ[LIMIT]))
    except (KeyError, ValueError):
        return SECONDS


def _python() -> str:
    """The interpreter; empty in a program that embeds one, which would be started once more."""
    name = Path(sys.executable or "").name.lower()
    return sys.executable if name.startswith(("python", "pypy")) else ""


def _name_of(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-status).name}"
    return f"signal {-status}"
