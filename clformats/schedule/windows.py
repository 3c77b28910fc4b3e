"""Blocks that hold more than there is: what fills several of them is loaded at once.

In ``byxf`` an image has its 3 channels side by side; in a block of 16 they are 3 lanes of a vector,
and 13 zeros. A vector of the source, which may go on into the next positions, is a *window* with
the elements of 4 such blocks: it is loaded once, converted once where the types differ, and each
block is one shuffle of it with zeros. That is 0.85 of a copy from u8 to f16 where single elements
reach 0.35; converting each block by itself takes as long as loading it so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .lanes import Bit, steps_of
from .problem import FAR
from .tile import TilePlan

LEAST_REGISTERS = 4
LEAST_ELEMENTS = 3
"""What a window fills at the least; either is enough, see `_pays`."""


@dataclass(frozen=True, slots=True)
class Window:
    """A vector of the source that begins at lane ``lane`` of register ``first``.

    ``spread``: for each register that it fills, which of its elements each lane takes; None: zero.
    """

    first: int
    lane: int
    spread: tuple[tuple[int, tuple[int | None, ...]], ...]


def windows_of(plan: TilePlan) -> tuple[Window, ...]:
    """The windows of a tile; none where not all that is loaded in parts has one, or none pays."""
    windows = possible_windows(plan)
    return windows if all(_pays(plan, w) for w in windows) else ()


def possible_windows(plan: TilePlan) -> tuple[Window, ...]:
    """The windows that there can be.

    Which lanes are elements must be known beforehand, and how far they are from each other.
    """
    if plan.comb or not any(e.reaches for e in plan.edges) or not _is_static(plan):
        return ()
    windows: list[Window] = []
    begins = 0
    for register in range(plan.register_count):
        places = {lane: _place(plan, plan.load, lane) for lane in _kept(plan, register)}
        if len(places) in (0, 1, plan.lanes):
            continue
        near, far = min(places.values()), max(places.values())
        if far - near >= plan.lanes:
            return ()
        start = _place(plan, plan.registers, register)
        last = windows[-1] if windows else None
        inside = begins <= start + near and start + far < begins + plan.lanes
        if last is None or not inside or not _is_near(plan, last.first, register):
            begins = start + near
            last = Window(register, min(places, key=places.__getitem__), ())
            windows.append(last)
        taken = tuple(start + places[lane] - begins if lane in places else None
                      for lane in range(plan.lanes))  # fmt: skip
        windows[-1] = replace(last, spread=(*last.spread, (register, taken)))
    return tuple(windows)


def _pays(plan: TilePlan, window: Window) -> bool:
    """Whether a window is faster than its elements, which compilers join where they are neighbours.

    It is where elements are converted, f32 to f16 with 12 channels 0.8 instead of 0.05, and for
    bytes; with others than those where it fills four registers: f16 with 3 channels 0.8 instead of
    0.7, but f32 with 12 channels 0.8 instead of 0.9.
    """
    src, dst = plan.problem.dtypes
    several = len(window.spread) >= LEAST_REGISTERS
    count = sum(n is not None for _, taken in window.spread for n in taken)
    return several or ((src != dst or src.nbytes == 1) and count >= LEAST_ELEMENTS)


def _is_static(plan: TilePlan) -> bool:
    """Whether lanes' places, and which of them are elements, are part of the structure."""
    lanes = [plan.nodes[b.node].src for b in plan.load]
    limits = [n for g in plan.problem.guards for n in (g.lo, g.hi, g.end)]
    guarded = (plan.positions(k).value for k, n in enumerate(plan.nodes) if n.guard is not None)
    return all(n.fixed and n.value != FAR for n in (*lanes, *limits)) and set(guarded) == {1}


def _kept(plan: TilePlan, register: int) -> Iterator[int]:
    """The lanes of a register's load that are elements."""
    guards = plan.problem.guards
    for lane in range(plan.lanes):
        at = [0] * len(guards)
        for k, steps in steps_of((plan.load, lane), (plan.registers, register)).items():
            guard = plan.nodes[k].guard
            if guard is not None:
                at[guard] += plan.nodes[k].unit * steps
        if all(g.lo.value <= n < g.hi.value for g, n in zip(guards, at, strict=True)):
            yield lane


def _place(plan: TilePlan, bits: Sequence[Bit], number: int) -> int:
    """How far the bits of a number move in the source."""
    return sum(plan.nodes[k].src.value * n for k, n in steps_of((bits, number)).items())


def _is_near(plan: TilePlan, one: int, other: int) -> bool:
    """Whether it is part of the structure how far two registers are from each other."""
    return all(plan.nodes[k].src.fixed for k in steps_of((plan.registers, one ^ other)))
