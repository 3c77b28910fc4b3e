"""The process that builds programs first, so that a compiler which crashes takes nothing else down.

A program of its own: `guard.Worker` starts it by this file's path, and nothing of clformats is
imported here. A line of JSON comes in for each program and goes out for each step: first
``stage`` lines that say what is tried next, so that of a process that died it is known at what;
then one line without a ``stage``, the answer. The first line out says that the process is ready.

It ends when its input ends, or when nothing was asked for `IDLE` seconds.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import IO, Any

IDLE = 30.0
"""Seconds without a request after which the process ends: drivers take 100 MB and more."""
KEPT = 8
"""Programs that are kept for the request after the next: that for the binary comes later."""


def main() -> None:
    """Answer requests until there are no more."""
    out = _own_output()
    _leave_no_dumps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Control-C is for the process that asks
    import pyopencl as cl  # this takes long, so before the process says that it is ready

    def say(**answer: object) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    say(ready=True)
    for request in _requests(sys.stdin):
        try:
            say(**_answer(request, say))
        except cl.Error as error:
            say(outcome="failed", said=str(error))
        except Exception as error:  # noqa: BLE001  # whatever it is, the asking process must go on
            say(outcome="unknown", said=f"{type(error).__name__}: {error}")
    os._exit(0)  # drivers' threads may crash while an interpreter ends


def _own_output() -> IO[str]:
    """The standard output for answers only: what drivers print goes to the standard errors."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _leave_no_dumps() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _requests(stream: IO[str]) -> Iterator[dict[str, Any]]:
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        os._exit(0)  # the one that asks has gone: no compiler is waited for

    threading.Thread(target=read, daemon=True).start()
    with suppress(Empty):
        while True:
            yield json.loads(lines.get(timeout=IDLE))


def _answer(request: dict[str, Any], say: Any) -> dict[str, Any]:
    """Build the program of a request and run it, then give its binary where that is wanted."""
    import pyopencl as cl

    place, options, source = request["place"], request["options"], request["source"]
    context = _context(*place)
    if context is None:
        return {"outcome": "unknown", "said": "this process sees other devices"}
    say(stage="build")
    program = _built(tuple(place), tuple(options), source)
    if request["trial"] is not None:
        say(stage="launch")
        with suppress(cl.Error):  # the process that asks is told so as well, when it launches
            _run(context, program, **request["trial"])
    answer = {"outcome": "built"}
    if request["binary"]:
        say(stage="binary")
        with suppress(cl.Error):
            answer["binary"] = _binary(program)
    return answer


@lru_cache
def _context(platform: int, device: int, name: str) -> Any:
    """A context of a device; None where the numbers stand for another one here."""
    import pyopencl as cl

    try:
        found = cl.get_platforms()[platform].get_devices()[device]
    except IndexError:
        return None
    return cl.Context([found]) if found.name == name else None


@lru_cache(maxsize=KEPT)
def _built(place: tuple[int, int, str], options: tuple[str, ...], source: str) -> Any:
    import pyopencl as cl

    os.environ.pop("PYOPENCL_BUILD_OPTIONS", None)  # they are among the options that were sent
    program = cl.Program(_context(*place), source)
    return program.build(list(options), cache_dir=False)  # type: ignore[arg-type]


def _run(
    context: Any, program: Any, kernel: str, local: list[int], arguments: list[int | str]
) -> None:
    """Run one work-group: some drivers generate code at the first launch.

    Arguments are bytes in hexadecimal digits, or the size of a buffer.
    """
    import pyopencl as cl

    made = cl.Kernel(program, kernel)
    kept = []
    for k, value in enumerate(arguments):
        if isinstance(value, int):
            kept.append(cl.Buffer(context, cl.mem_flags.READ_WRITE, value))
            made.set_arg(k, kept[-1])
        else:
            made.set_arg(k, bytes.fromhex(value))
    size = tuple(local)
    cl.enqueue_nd_range_kernel(cl.CommandQueue(context), made, size, size).wait()


def _binary(program: Any) -> str:
    """The binary of a program for the one device of its context; empty if there is none."""
    import pyopencl as cl

    found = [binary for binary in program.get_info(cl.program_info.BINARIES) if binary]
    return base64.b64encode(found[0]).decode() if len(found) == 1 else ""


if __name__ == "__main__":
    main()
