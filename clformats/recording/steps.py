"""The commands of a recording as they were asked for, and their kernels for any device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..kernels import render
from ..kernels.source import MOST_ARGUMENT_BYTES, Launch
from ..problems.computation import Computation
from ..problems.traits import DEFAULT, Traits
from ..records import Lookup
from ..reorders.planning import planned_by_record
from ..schedule import Plan, plan_for
from ..schedule.choices import RULES, Choices
from ..values.formula import Formula
from ..version import __version__
from .program import (
    ANYWHERE,
    ROUNDED,
    SAME,
    Argument,
    Buffer,
    Command,
    Device,
    Fill,
    Given,
    Kernel,
    OfBuffer,
    Program,
    Source,
    Variant,
    argument_bytes,
)

PORTABLE = "#define CLFORMATS_PORTABLE 1\n"
"""In front of the sources of the portable variant: OpenCL C without builtins of any compiler."""
_EXACT = {"fabs", "floor", "ceil", "trunc", "rint", "round", "sign", "min", "max", "fmin", "fmax",
          "fmod", "copysign", "step", "clamp"}  # fmt: skip
"""The functions whose results OpenCL defines to the bit."""


@dataclass(frozen=True)
class Target:
    """What commands are planned for: a kind of device, and what the tuner recorded of it.

    ``own``: the device that was recorded on, whose plans are there. ``portable``: any device, with
    at most `MOST_ARGUMENT_BYTES` of arguments.
    """

    traits: Traits = DEFAULT
    records: Lookup | None = None
    own: bool = False
    portable: bool = False


@dataclass(frozen=True)
class Move:
    """A reorder or a map: the plan, the buffers by their numbers, and what the kernel reads.

    ``others`` are the arguments for operands and scalars, in their order. ``rounds``: the device
    that was recorded on rounds divisions correctly.
    """

    plan: Plan
    launched: Launch | None
    src: int
    dst: int
    others: tuple[Argument, ...]
    rounds: bool = True

    def made(self, target: Target) -> tuple[list[Command], dict[int, int]]:
        """The kernels for a device, and the alignment that they need of each buffer."""
        plan, launched = (self.plan, self.launched) if target.own else self._planned(target)
        src, dst = plan.alignment
        needs = {self.src: src, self.dst: dst}
        return _kernels(launched, self, portable=target.portable), needs

    def _planned(self, target: Target) -> tuple[Plan, Launch | None]:
        request = replace(self.plan.request, traits=target.traits, choices=RULES)
        if target.records and not request.computation:
            found = planned_by_record(request, target.records)
            if found:
                return found
        plan = plan_for(request)
        made = render(plan)
        if made is not None and self._argument_bytes(made) > MOST_ARGUMENT_BYTES:
            plan = plan_for(replace(request, choices=Choices(baked=True)))
            made = render(plan)
        return plan, made

    def _argument_bytes(self, launched: Launch) -> int:
        """The bytes of all arguments: those of every launch, and what else is read."""
        return launched.argument_bytes + sum(map(argument_bytes, self.others))


@dataclass(frozen=True)
class Run:
    """A kernel of the user's, or a fill: the same on every device."""

    command: Command

    def made(self, target: Target) -> tuple[list[Command], dict[int, int]]:
        """The one command; it may lie anywhere."""
        del target
        return [self.command], {}


Step = Move | Run
Planned = tuple[str, Target, Device | None, str]
"""A variant to be planned: its name, what for, and the device or the kind that it is tuned for."""


def _kernels(launched: Launch | None, move: Move, *, portable: bool) -> list[Command]:
    found: list[Command] = []
    src, others = move.src, move.others
    exact = rounding(move.plan.problem.computation)
    if exact == ROUNDED and not move.rounds:
        exact = SAME
    while launched is not None:
        source = Source((PORTABLE if portable else "") + launched.source)
        arguments = (OfBuffer(src), OfBuffer(move.dst), *launched.given, *others)
        work, local = (launched.global_size,), (launched.local_size,)
        found.append(Kernel(source, Launch.KERNEL, arguments, work, local, exact))
        # The sums that follow int8 weights are of what was written, and are integers.
        launched, src, others, exact = launched.then, move.dst, (), ANYWHERE
    return found


def assembled(
    name: str,
    buffers: Sequence[Buffer],
    scalars: Sequence[Given],
    arena_bytes: int,
    steps: Sequence[Step],
    targets: Sequence[Planned],
) -> Program:
    """The program of the steps, planned for each target: its name, device and kind beside it."""
    needs = {k: b.alignment for k, b in enumerate(buffers)}
    variants = []
    for title, target, device, like in targets:
        commands: list[Command] = []
        for step in steps:
            made, aligned = step.made(target)
            commands += made
            for k, alignment in aligned.items():
                needs[k] = max(needs[k], alignment)
        variants.append(Variant(title, tuple(commands), device, like))
    placed = tuple(replace(b, alignment=needs[k]) for k, b in enumerate(buffers))
    return Program(name, placed, tuple(scalars), arena_bytes, tuple(variants), __version__)


def rounding(computation: Computation | None) -> str:
    """Where a computation gives the same bits: anywhere, with rounded divisions, on one device."""
    if computation is None:
        return ANYWHERE
    found = {_rounding(f) for f in _nodes(computation.formula)}
    return next((e for e in (SAME, ROUNDED) if e in found), ANYWHERE)


def _rounding(f: Formula) -> str:
    if f.kind == "call" and f.text not in _EXACT:
        return ROUNDED if f.text == "sqrt" else SAME
    return ROUNDED if f.kind == "operator" and f.text == "/" else ANYWHERE


def _nodes(f: Formula) -> list[Formula]:
    return [f, *(node for part in f.parts for node in _nodes(part))]


def renumbered(step: Step, numbers: Mapping[int, int]) -> Step:
    """The step with other numbers of buffers."""

    def other(a: Any) -> Any:
        return OfBuffer(numbers[a.number]) if isinstance(a, OfBuffer) else a

    if isinstance(step, Move):
        others = tuple(map(other, step.others))
        return replace(step, src=numbers[step.src], dst=numbers[step.dst], others=others)
    command = step.command
    if isinstance(command, Fill):
        return Run(replace(command, buffer=numbers[command.buffer]))
    return Run(replace(command, arguments=tuple(map(other, command.arguments))))


def used(step: Step) -> list[int]:
    """The numbers of the buffers that a step uses."""
    if isinstance(step, Move):
        return [step.src, step.dst, *(a.number for a in step.others if isinstance(a, OfBuffer))]
    if isinstance(step.command, Fill):
        return [step.command.buffer]
    return [a.number for a in step.command.arguments if isinstance(a, OfBuffer)]
