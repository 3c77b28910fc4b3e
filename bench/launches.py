"""Host time of small commands, in microseconds each: calls, replays, the runner in C, pyopencl.

40 dependent reorders of a small tensor, there and back between two formats, in order. All ways take
turns in random order, since what runs before a way shows in it; the medians are printed. Enqueueing
alone counts: the device is waited for after each round.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import clformats as cf
import clformats.recording
from clformats.timing import Settings, race, timed

COMMANDS, ROUNDS = 40, 200
TIMER = Path(__file__).with_name("launches.c")
RUNNER = Path(clformats.recording.__file__).parent / "runner"


class Ways:
    """The same 40 reorders, each way as a function that enqueues them."""

    def __init__(self, engine: cf.Engine, dims: tuple[int, ...]) -> None:
        import pyopencl as cl

        self.stream = cf.Stream(engine)
        descs = [cf.MemoryDesc(dims, "f32", f) for f in ("bfyx", "b_fs_yx_fsv16")]
        # Each memory object has a descriptor of its own, equal to those of others.
        self.memories = [
            cf.Memory(cf.MemoryDesc.parse(str(descs[k % 2])), engine) for k in range(COMMANDS + 1)
        ]
        pairs = list(zip(self.memories, self.memories[1:], strict=False))
        self.own = [cf.Reorder(a.desc, b.desc, engine, wait=True) for a, b in pairs]
        self.pairs, self.kernels = pairs, []
        launches = [r._known().launch for r in self.own]  # noqa: SLF001  # the same work-items
        for launch, (a, b) in zip(launches, pairs, strict=True):
            assert launch is not None
            kernel = engine.kernel(launch.source, launch.KERNEL)
            kernel.set_args(a.tracked_buffer, b.tracked_buffer, *launch.given)
            self.kernels.append((kernel, (launch.global_size,), (launch.local_size,)))
        self.arguments = [
            [np.frombuffer(v, np.uint8) for v in launch.given] for launch in launches if launch
        ]  # fmt: skip
        ends = {"inputs": {"a": self.memories[0]}, "outputs": {"b": self.memories[-1]}}
        self.recording = cf.Recording(engine, **ends)
        for reorder, (a, b) in zip(self.own, pairs, strict=True):
            reorder(self.recording, a, b)
        self.replayed = self.recording.replay()
        self.enqueue = cl.enqueue_nd_range_kernel

    def reorder(self) -> None:
        """A reorder for each pair of memory objects."""
        for reorder, (a, b) in zip(self.own, self.pairs, strict=True):
            reorder(self.stream, a, b)

    def equal_descriptors(self) -> None:
        """Two reorders for all: equal descriptors, other objects."""
        for k, (a, b) in enumerate(self.pairs):
            self.own[k % 2](self.stream, a, b)

    def stream_run(self) -> None:
        """The same kernels by `Stream.run`, all arguments given."""
        for (kernel, work, local), (a, b), rest in zip(
            self.kernels, self.pairs, self.arguments, strict=True
        ):
            self.stream.run(kernel, work, local, a, b, *rest, reads=(a,))

    def replay(self) -> None:
        """One call."""
        self.replayed(self.stream)

    def pyopencl_bound(self) -> None:
        """Kernel objects with their arguments set."""
        queue, enqueue = self.stream.tracked_queue, self.enqueue
        for kernel, work, local in self.kernels:
            enqueue(queue, kernel, work, local, None, None)

    def pyopencl_unbound(self) -> None:
        """All arguments set each time."""
        queue, enqueue = self.stream.tracked_queue, self.enqueue
        for (kernel, work, local), (a, b), rest in zip(
            self.kernels, self.pairs, self.arguments, strict=True
        ):
            kernel.set_args(a.tracked_buffer, b.tracked_buffer, *rest)
            enqueue(queue, kernel, work, local, None, None)

    @property
    def every(self) -> dict[str, Callable[[], None]]:
        """The ways by their names."""
        return {
            "cf.Reorder": self.reorder,
            "cf.Reorder, equal descriptors": self.equal_descriptors,
            "stream.run": self.stream_run,
            "replay": self.replay,
            "pyopencl, bound once": self.pyopencl_bound,
            "pyopencl, all set each time": self.pyopencl_unbound,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """A contestant: all commands enqueued in one way, and waited for without a clock."""

    name: str
    way: Callable[[], None]
    stream: cf.Stream

    def visit(self, _: Settings) -> list[float]:
        """The seconds of enqueueing one command."""
        seconds = timed(self.way)
        self.stream.wait()
        return [seconds / COMMANDS]


def measured(ways: Ways, rounds: int) -> dict[str, float]:
    """Microseconds a command, the median of each way."""
    rows = [Row(name, way, ways.stream) for name, way in ways.every.items()]
    settings = Settings(rounds=rounds, seconds=inf)
    times = race(rows, settings, np.random.default_rng())
    return {name: 1e6 * found.median for name, found in times.items()}


def in_c(ways: Ways, rounds: int) -> dict[str, Any]:
    """The same by the runner in C; empty where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not Path("/usr/include/CL/cl.h").exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        ways.recording.export(Path(folder) / "net")
        program = Path(folder) / "launches"
        words = [
            compiler,
            "-std=c99",
            "-O2",
            f"-I{RUNNER}",
            str(TIMER),
            str(RUNNER / "clformats.c"),
        ]
        subprocess.run([*words, "-o", str(program), "-l:libOpenCL.so.1"], check=True)
        platform = ways.stream.engine.device.platform.name.strip()
        done = subprocess.run(
            [str(program), str(Path(folder) / "net"), platform, str(rounds)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return {"the runner in C": float(done.stdout) / COMMANDS}


def main(words: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench launches", description=__doc__)
    parser.add_argument(
        "--device", metavar="NAME", help="a text in the device's or platform's name"
    )
    parser.add_argument("--rounds", metavar="N", type=int, default=ROUNDS)
    options = parser.parse_args(words)
    engine = cf.Engine(options.device)
    print(f"{engine.device.name.strip()}; microseconds a command, medians of {options.rounds}")
    for dims in ((1, 16, 2, 2), (1, 64, 14, 14)):
        ways = Ways(engine, dims)
        found = measured(ways, options.rounds) | in_c(ways, options.rounds)
        bound = found["pyopencl, bound once"]
        print(f"\n{'x'.join(map(str, dims))}")
        for name, time in found.items():
            print(f"  {name:32} {time:7.2f}  {time / bound:5.2f} of bound")
    return 0
