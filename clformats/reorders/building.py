"""`BuiltPlan`: a plan with its kernel, and the kernels that serve while that one is not built.

While a kernel is built in the background, the universal program serves, element by element: it
serves all moves, so that it is mostly built already. Where a kernel ends its compiler, other plans
for the same problem do the work, the universal program last. What they write is the same, as of any
two plans of one problem.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from math import prod
from typing import Any

from ..errors import DeviceError, Unsupported, warn
from ..host.packing import whole_nbytes
from ..kernels import render
from ..kernels.source import IDLE_BYTES, Launch, idle
from ..opencl import named_errors, opencl
from ..problems.problem import Problem
from ..programs.background import background
from ..programs.guard import FirstLaunch
from ..programs.outcomes import CompilerDied
from ..runtime import Engine
from ..runtime.engine import SharedKernel
from ..runtime.image import check_fits, check_pixels
from ..runtime.order import LOCK
from ..schedule import Plan
from ..schedule.choices import RULES, Choices
from ..tensors.desc import MemoryDesc
from ..values.attr import OLD

OTHER_TILES = 4
"""How many other tiles are tried: each that also fails takes some seconds."""
UNIVERSAL = Choices(family="universal")
LAST: tuple[tuple[Choices, dict[str, Any]], ...] = (
    (Choices(family="generic"), {}),
    (Choices(family="generic", baked=True), {}),
    (UNIVERSAL, {}),
    (Choices(family="generic", local_size=1), {"is_cpu": False}),
)
"""What is tried last, on which traits: plain kernels, the same with sizes as constants, the program
for all moves, and plain kernels without loops, in which compilers have least to do.
"""
LARGEST_TRIAL = 1 << 30
"""The largest buffer, in bytes, that a kernel is tried with."""
PATIENCE = 0.1
"""Seconds: a call that takes longer so waits for the better program, which takes 0.3 to 1."""
ELEMENT_NS = 3.0
"""What an element takes a core in the universal program: 0.5 to 3.2 ns on an AMD EPYC (Zen 3)."""
WAIT_VARIABLE = "CLFORMATS_WAIT"
"""Where it is 1 every reorder waits for the compiler, as with ``wait=True``."""
Sizes = tuple[tuple[int], tuple[int]]
"""How many work-items run, and how many of them are a group."""
_told: set[str] = set()


class BuiltPlan:
    """A plan with its kernel built.

    Without ``wait`` a slower kernel may serve until the plan's own is built in the background; with
    ``may_change`` another plan takes its place where it ends the compiler. Raises `Unsupported` and
    `DeviceError`.
    """

    def __init__(
        self, plan: Plan, launched: Launch | None, engine: Engine, *, wait: bool, may_change: bool
    ) -> None:
        self.plan, self.launch, self.engine = plan, launched, engine
        self._shared: SharedKernel | None = None
        self._then: tuple[SharedKernel, Sizes] | None = None
        self._wait, self._may_change = wait, may_change
        self.building: Future[None] | None = None
        if launched is None:
            return
        check_fp64(plan, engine)
        for desc in (plan.request.src, plan.request.dst):
            if desc.format.image:
                check_fits(engine, desc)
                if desc not in plan.twinned:
                    check_pixels(engine, desc)
        if wait or not self._stands_in(launched):
            self._settle(launched)

    def _stands_in(self, launched: Launch) -> bool:
        """Let another kernel serve, if there is one, while this one is built in the background."""
        other = fallback_kernel(self.plan, launched, self.engine)
        if other is None:
            return False
        try:
            self._serve(self.plan, other)
        except DeviceError:  # then the plan's own kernel is the only hope
            return False
        self.building = background.later(partial(self._improve, launched))
        return True

    def _settle(self, launched: Launch, *, idle: bool = False) -> None:
        """Serve by the plan's kernel; where that ends its compiler, by another plan's.

        Raises `DeviceError` where there is none that is built.
        """
        deaths: list[CompilerDied] = []
        more = others(self.plan) if self._may_change else ()
        for plan, made in chain(((self.plan, launched),), more):
            try:
                self._serve(plan, made, idle=idle)
            except CompilerDied as death:
                deaths.append(death)
            else:
                if deaths:
                    why = ((self.plan.family, str(death.outcome)) for death in deaths)
                    self.plan, self.launch = replace(plan, rejected=(*plan.rejected, *why)), made
                return
        raise deaths[0]

    def _serve(self, plan: Plan, launched: Launch, *, idle: bool = False) -> None:
        """From now on, calls run this kernel; it is built first, and ``idle`` runs it once."""
        is_new = not self.engine.has_built(launched.source)  # no other reorder has built it
        shared = self._built(launched, trial(plan.problem, launched) if is_new else None)
        if idle and is_new and plan.body and plan.body.has_nest:
            run_idle(launched, self.engine)
        second = None
        if then := launched.then:  # it has the destination on both sides
            problem = replace(plan.problem, src=plan.problem.dst, computation=None)
            following = self._built(then, trial(problem, then))
            second = following, ((then.global_size,), (then.local_size,))
        with LOCK:
            self._shared, self._then = shared, second
            self._sizes = (launched.global_size,), (launched.local_size,)

    def _built(self, launched: Launch, tried: FirstLaunch | None) -> SharedKernel:
        return self.engine.shared_kernel(launched.source, Launch.KERNEL, launched.given, tried)

    def _improve(self, launched: Launch) -> None:
        """In the background: build the plan's own kernel, and take it for all later calls."""
        try:
            self._settle(launched, idle=True)
        except BaseException as error:
            with suppress(RuntimeWarning):  # where warnings are errors: no caller catches it
                if not background.ends:
                    tell_once(self.engine, error)
            raise

    @property
    def source(self) -> str:
        """The OpenCL C of the plan, kernel after kernel; empty if there is nothing to do."""
        if not self.launch:
            return ""
        then = self.launch.then
        return self.launch.source + (f"\n{then.source}" if then else "")


def check_fp64(plan: Plan, engine: Engine) -> None:
    """Raise `Unsupported` where a plan converts f64 on a device that cannot."""
    p = plan.problem
    names = {t.name for t in (*p.dtypes, *(d.dtype for d in p.operand_descs))}
    computes = len(names) > 1 or p.computation is not None
    if "f64" in names and computes and not engine.traits.has_fp64:
        raise Unsupported("FP64", f"{engine.device.name} has no double precision to convert f64")


def fallback_kernel(plan: Plan, launched: Launch, engine: Engine) -> Launch | None:
    """The universal program for a plan whose own program is not there; None where waiting pays.

    It pays where there is nothing to wait for, and where the universal program would take long.
    GPUs wait: a work-item of the universal program moves many elements.
    """
    body, units = plan.body, engine.traits.compute_units
    if body is None or not body.has_nest or not engine.traits.is_cpu or all_wait():
        return None
    if engine.has_program(launched.source):
        return None
    # Calls check where memory begins for the plan that there will be.
    found = _by(plan, UNIVERSAL, begin_bytes=min(plan.alignment))
    if found is None:
        return None
    elements = prod(n.size.value for n in body.problem.nodes)
    seconds = elements * ELEMENT_NS * 1e-9 / min(units, found[1].global_size)
    return replace(found[1], then=launched.then) if seconds <= PATIENCE else None


def all_wait() -> bool:
    """Whether every reorder of this process waits for the compiler."""
    return os.environ.get(WAIT_VARIABLE) == "1"


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


def others(plan: Plan) -> Iterator[tuple[Plan, Launch]]:
    """Plans for the same memory objects by other kernels, the best first."""
    traits, least = plan.request.traits, min(plan.alignment)
    tried = {plan.body.program[:1]} if plan.body else set()
    for body in plan.body.others(traits) if plan.body else ():
        if body.program[:1] in tried:
            continue
        tried.add(body.program[:1])
        other = replace(plan, body=body, record="")
        # Calls have checked where memory begins for the plan that there was.
        fits = all(a <= b for a, b in zip(other.alignment, plan.alignment, strict=True))
        if fits and (made := render(other)) is not None:
            yield other, made
        if len(tried) > OTHER_TILES:
            break
    for choices, different in LAST:
        same = choices == Choices(family=plan.family)
        if not same and (found := _by(plan, choices, begin_bytes=least, **different)):
            yield found


def _by(plan: Plan, choices: Choices, **traits: Any) -> tuple[Plan, Launch] | None:
    """The plan of these choices with its kernel; None where they do not take the problem."""
    on = replace(plan.request.traits, **traits)
    with suppress(Unsupported):
        found = plan.again(traits=on, choices=choices)
        if (made := render(found)) is not None:
            return replace(found, rejected=plan.rejected, choices=RULES), made
    return None


def trial(problem: Problem, made: Launch) -> FirstLaunch | None:
    """One work-group of a kernel: it stays inside memory of the sizes that it is made for.

    None where it would take too much of it, and of images.
    """
    src, dst = problem.src, problem.dst
    if src.format.image or dst.format.image:
        return None
    buffers = _nbytes(src), _nbytes(dst)
    computation, others = problem.computation, list[int | bytes]()
    if computation is not None:
        others += [_nbytes(o.desc) for o in computation.operands if o.name != OLD]
        others += [bytes(computation.real.nbytes)] * len(computation.scalars)
    return launch_within(Launch.KERNEL, (made.local_size,), (*buffers, *made.given, *others))


def launch_within(
    kernel: str, local: tuple[int, ...], arguments: tuple[int | bytes, ...]
) -> FirstLaunch | None:
    """A first launch; None where it would take too much memory."""
    if max(size for size in arguments if isinstance(size, int)) > LARGEST_TRIAL:
        return None
    return FirstLaunch(kernel, local, arguments)


def _nbytes(desc: MemoryDesc) -> int:
    return max(64, whole_nbytes(desc))
