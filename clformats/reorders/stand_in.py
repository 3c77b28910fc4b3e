"""The kernel that serves while a better one is built: the universal program, element by element.

It serves all moves, so that it is mostly built already. What it writes is what any schedule of the
problem writes.
"""

from __future__ import annotations

import os
from dataclasses import replace
from math import prod

from ..errors import warn
from ..kernels import Launch, universal
from ..kernels.scheduled import IDLE_BYTES, idle
from ..runtime import Engine
from ..runtime.opencl import named_errors, opencl
from ..schedule import Plan
from ..schedule.scheduled import ScheduledPlan
from ..schedule.search import ITEMS

PATIENCE = 0.1
"""Seconds: a call that takes longer so waits for the better program, which takes 0.3 to 1."""
ELEMENT_NS = 3.0
"""What an element takes a core in the universal program: 0.5 to 3.2 ns on an AMD EPYC (Zen 3)."""
VARIABLE = "CLFORMATS_WAIT"
"""Where it is 1 every reorder waits for the compiler, as with ``wait=True``."""
_told: set[str] = set()


def stand_in(plan: Plan, launched: Launch, engine: Engine) -> Launch | None:
    """The universal program for a plan whose own program is not there; None where waiting pays.

    It pays where there is nothing to wait for, and where the universal program would take long.
    GPUs wait: a work-item of the universal program moves many elements.
    """
    body, units = plan.body, engine.traits.compute_units
    if not (isinstance(body, ScheduledPlan) and universal.serves(body.problem)):
        return None
    if not engine.traits.is_cpu or all_wait():
        return None
    if engine.has_program(launched.source):
        return None
    other = universal.launch(body.problem, ITEMS * units)
    elements = prod(n.size.value for n in body.problem.nodes or ())
    seconds = elements * ELEMENT_NS * 1e-9 / min(units, other.global_size)
    return replace(other, then=launched.then) if seconds <= PATIENCE else None


def all_wait() -> bool:
    """Whether every reorder of this process waits for the compiler."""
    return os.environ.get(VARIABLE) == "1"


def run_idle(launched: Launch, engine: Engine) -> None:
    """Build a kernel and run it once on a tile of nothing: PoCL generates code at the first launch.

    A kernel whose nest is a constant is only built: it has no other tiles than those of its tensor.
    Raises `DeviceError`.
    """
    cl = opencl()
    kernel = engine.kernel(launched.source, launched.KERNEL)
    if not launched.arguments:
        return
    with named_errors("running a kernel for the first time"):
        buffers = [cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, IDLE_BYTES) for _ in "12"]
        for k, value in enumerate((*buffers, idle(launched))):
            kernel.set_arg(k, value)
        queue = cl.CommandQueue(engine.context, engine.device)
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,)).wait()


def tell_once(engine: Engine, error: BaseException) -> None:
    """Warn that a program could not be built in the background, once for each device."""
    if engine.device.name not in _told:
        _told.add(engine.device.name)
        warn(
            f"a kernel for {engine.device.name.strip()} could not be built in the background "
            f"({type(error).__name__}: {error}): slower universal kernels go on serving. "
            f"Reorder(..., wait=True) raises the error",
            RuntimeWarning,
        )
