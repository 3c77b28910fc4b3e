"""The families for GPUs: each work-group moves a box, consecutive work-items touch neighbours.

A GPU joins the accesses of the work-items that run in step (32 or 64 of them) into as few memory
transactions as they touch lines. So, other than on a CPU, no work-item has a run of its own:
consecutive ones have consecutive elements. A *box* is a part of each of the innermost loops, wide
enough that its runs fill whole transactions on both sides.

Where the order of the loops is one on both sides, each work-item stores what it has loaded
(families ``copy`` and ``rows``). Where it is not, a box is loaded in the order of the source, kept
in local memory, and stored in the order of the destination (family ``local``): coalesced on both
sides. Loops that the box does not divide have a condition at their end: an idle work-item is cheap
where a branch of its own for the rest would be one more kernel.

The numbers below are from what makers publish about their devices, none was measured on one. On
CPUs this way has 0.08 of the speed of the register tiles (measured on pocl) and is never chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from . import copy
from .banks import Pass, extent, pitches
from .choices import RULES, either
from .coarse import coarse, whole_at
from .nibbles import refusal_of_loops
from .problem import Node, Number, Problem, fixed
from .request import Request
from .traits import Traits

SECTOR_BYTES = 32
"""The least that memory gives (NVIDIA's sector, half a line of AMD's): a run that both sides share
and that is this long is coalesced without local memory."""
COALESCED_RUN_BYTES = 128
"""The run of a box on each side: a warp's words, a line of the second-level cache."""
RUN_ELEMENTS = (32, 64)
"""At least and at most so many elements, however wide they are: a box has the square of it."""
BOX_BYTES = 4096
"""A box in local memory, at the least: 8 groups of 256 work-items fill a multiprocessor (2048) and
take half of the smallest local memory in use (64 KiB)."""
SHORT = 16
"""Channels of an image, taps of a 3x3 window: a loop of so few steps fills no run by itself."""
WORD_BYTES = 4
"""What a work-item moves at a time through local memory, whose banks are as wide."""
VECTOR_BYTES = 16
"""The longest load that a work-item can make."""
VECTORS = 4
"""Loads of a work-item that are on their way at the same time, where there is enough to do."""
GROUPS = 4
"""Work-groups for each multiprocessor that are better than longer ones."""


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """A box of ``box[k]`` steps of each loop for each work-group of ``group`` work-items.

    It is loaded as ``read`` says and stored as ``write`` says; between, it lies in local memory by
    ``pitch``, or, where that is empty, in registers. ``whole`` are the loops that the box takes
    entirely.
    """

    problem: Problem
    box: tuple[int, ...]
    whole: tuple[int, ...]
    read: Pass
    write: Pass
    pitch: tuple[int, ...]
    group: int

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The loops."""
        return self.problem.nodes or ()

    def positions(self, node: int) -> Number:
        """How many boxes follow each other along the node."""
        size = self.nodes[node].size
        return Number(-(-size.value // self.box[node]), size.fixed)

    @property
    def groups(self) -> int:
        """How many boxes there are."""
        return prod(self.positions(k).value for k in range(len(self.nodes)))

    @property
    def local_elements(self) -> int:
        """Elements of local memory that a work-group takes."""
        return extent(self.box, self.pitch) if self.pitch else 0

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin; see `Plan`."""
        widths = zip(self.problem.dtypes, (self.read.width, self.write.width), strict=True)
        source, target = (
            width * t.nbytes if self.problem.word or width > 1 else 1 for t, width in widths
        )
        return source, target

    @property
    def structure(self) -> str:
        """The box in words, without what depends on sizes alone."""
        shape = " x ".join(f"{self.box[k]} of loop {k}" for k in self.read.order) or "1 element"
        word = self.problem.word
        words = f", as words of {word.nbytes} bytes" if word else ""
        if not self.pitch:
            return f"box {shape}, moved by {self.read.width}{words}"
        return (
            f"box {shape} in {self.local_elements} places of local memory, "
            f"read by {self.read.width} and written by {self.write.width}{words}"
        )

    def __str__(self) -> str:
        return f"{self.structure}, {self.groups} groups of {self.group} work-items"


def refusal(p: Problem) -> str:
    """Why the local family does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    common = _common_run(p)
    if common is None:
        return "source and destination have their loops in the same order"
    nbytes = common * min(t.nbytes for t in p.dtypes)
    if nbytes >= SECTOR_BYTES:
        return f"both sides share runs of {nbytes} bytes, which need no local memory"
    return ""


def rows_refusal(p: Problem) -> str:
    """Why the rows family of GPUs does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    return "" if refusal(p) else "source and destination have different contiguous runs"


def _common_run(p: Problem) -> int | None:
    """The elements of the innermost loops that are the same on both sides; None if all are."""
    nodes = p.nodes or ()
    run = 1
    for a, b in zip(_order(nodes, "src"), _order(nodes, "dst"), strict=True):
        if a != b:
            return run
        run *= nodes[a].size.value if run == nodes[a].src.value == nodes[a].dst.value else 1
    return None


def plan(request: Request) -> LocalPlan:
    """The plan for a problem that `refusal` accepts; stores are never non-temporal."""
    traits = _grouped(request)
    p = coarse(request.problem, traits.begin_bytes)
    longest = min(WORD_BYTES, traits.begin_bytes)
    items = tuple(t.nbytes for t in p.dtypes)
    nodes = p.nodes or ()
    box = _Box(nodes)
    for side, item in zip(("src", "dst"), items, strict=True):
        least, most = RUN_ELEMENTS
        box.take(side, min(most, max(least, COALESCED_RUN_BYTES // item)))
    orders = _order(nodes, "src"), _order(nodes, "dst")
    box.fill([*orders[0], *orders[1]], BOX_BYTES // max(items))
    read, write = (
        Pass(inner, _width(p, box, side, inner, longest // item,
                           stored=side == "dst" and not p.computation))
        for side, item, inner in zip(("src", "dst"), items, map(box.inside, orders), strict=True)
    )  # fmt: skip
    pitch = pitches(tuple(box.sizes), read, write, _moving_bytes(p))
    return _finished(p, box, (read, write), pitch, traits)


def _moving_bytes(p: Problem) -> int:
    """The bytes of an element between load and store: f16 may be on its way as f32."""
    src, dst = p.dtypes
    if src.name == "f16" and dst != src and (dst.nbytes > src.nbytes or p.computation):
        return 4
    return src.nbytes if p.computation else min(src.nbytes, dst.nbytes)


def rows_plan(request: Request) -> LocalPlan:
    """The plan of the families that need no local memory, in the order of the destination."""
    return _direct(coarse(request.problem, request.traits.begin_bytes), _grouped(request))


def copy_plan(request: Request) -> LocalPlan:
    """The plan of the copy family on GPUs."""
    p, body = request.problem, copy.plan(replace(request, choices=RULES))
    nodes = tuple(replace(n, size=Number(body.count)) for n in p.nodes or () if body.count > 1)
    words = replace(p, nodes=nodes, src0=body.src0, dst0=body.dst0, word=body.word)
    return _direct(words, _grouped(request))


def _grouped(request: Request) -> Traits:
    """The traits with a work-group of another size: a power of two that the device has."""
    traits = request.traits
    wanted = min(either(request.choices.local_size, traits.group_size), traits.group_size)
    return replace(traits, group_size=1 << (wanted.bit_length() - 1))


def _direct(p: Problem, traits: Traits) -> LocalPlan:
    nodes = p.nodes or ()
    longest = min(VECTOR_BYTES, traits.begin_bytes)
    vector = max(1, longest // max(t.nbytes for t in p.dtypes))
    total = prod(n.size.value for n in nodes)
    each = VECTORS
    while each > 1 and total < traits.compute_units * GROUPS * traits.group_size * vector * each:
        each //= 2
    goal = traits.group_size * vector * each
    order = _order(nodes, "dst")
    box = _Box(nodes)
    box.take("dst", goal)
    box.fill(order, goal)
    inner = box.inside(order)
    width = min(_width(p, box, side, inner, vector) for side in ("src", "dst"))
    both = Pass(inner, width)
    return _finished(p, box, (both, both), (), traits)


def _finished(
    p: Problem, box: _Box, passes: tuple[Pass, Pass], pitch: tuple[int, ...],
    traits: Traits,
) -> LocalPlan:  # fmt: skip
    nodes = tuple(
        replace(
            n, size=fixed(n.size.value) if k in box.whole else n.size, src=_unit(n.src),
            dst=_unit(n.dst),
        )
        for k, n in enumerate(p.nodes or ())
    )  # fmt: skip
    return LocalPlan(
        replace(p, nodes=nodes), tuple(box.sizes), tuple(sorted(box.whole)), *passes, pitch,
        traits.group_size,
    )  # fmt: skip


def _unit(stride: Number) -> Number:
    """That elements are contiguous is part of the structure."""
    return fixed(1) if stride.value == 1 else stride


def _order(nodes: Sequence[Node], side: str) -> tuple[int, ...]:
    """The loops of more than one step by their stride on a side; those that stand still last."""
    loops = [k for k, n in enumerate(nodes) if n.size.value > 1]
    strides = [getattr(n, side).value for n in nodes]
    return tuple(sorted(loops, key=lambda k: (strides[k] == 0, strides[k], -k)))


class _Box:
    """How much of each loop a work-group takes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.sizes = [1] * len(nodes)
        self.whole: set[int] = set()

    def take(self, side: str, wanted: int) -> None:
        """A contiguous run of up to ``wanted`` elements on a side.

        A block is taken as long as it is, and so is a short loop that the run goes on behind; of
        another a power of two, so that its size is no part of the structure.
        """
        strides = [getattr(n, side).value for n in self.nodes]
        reached = 1
        while reached < wanted and reached in strides:
            k = strides.index(reached)
            size = self.nodes[k].size
            goes_on = size.value <= SHORT and reached * size.value in strides
            if size.value * reached <= wanted and (size.fixed or goes_on):
                self.sizes[k] = size.value
                self.whole.add(k)
                reached *= size.value
                continue
            if k not in self.whole:
                part = min(_power(wanted // reached), _power(2 * size.value - 1))
                self.sizes[k] = max(self.sizes[k], part)
            break

    def fill(self, order: Sequence[int], goal: int) -> None:
        """More of the loops, until there are ``goal`` elements."""
        for k in order:
            size = self.nodes[k].size.value
            while k not in self.whole and prod(self.sizes) < goal and 2 * self.sizes[k] <= size:
                self.sizes[k] *= 2

    def inside(self, order: Sequence[int]) -> tuple[int, ...]:
        """Those loops of ``order`` that the box has more than one step of."""
        return tuple(k for k in order if self.sizes[k] > 1)


def _power(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << (n.bit_length() - 1)


def _width(
    p: Problem, box: _Box, side: str, order: Sequence[int], most: int, *, stored: bool = False
) -> int:
    """How many elements a work-item may access as one aligned vector, ``most`` at most."""
    width = _power(max(1, most))
    while width > 1 and not _aligned(p, box, side, order, width, stored=stored):
        width //= 2
    return width


def _aligned(
    p: Problem, box: _Box, side: str, order: Sequence[int], width: int, *, stored: bool
) -> bool:
    """Whether a box falls into whole vectors of ``width`` elements that start at multiples of it.

    So all are elements or none is, and all are stored or none; at a guard, and where operands are
    read, they are of one loop.
    """
    nodes, strides = p.nodes or (), [getattr(n, side).value for n in p.nodes or ()]
    reached, run = 1, []
    for k in order:
        if strides[k] != reached:
            break
        run.append(k)
        reached *= box.sizes[k]
        if k not in box.whole:
            break
    if not run or reached % width:
        return False
    last = run[-1]
    moves = [p.src0 if side == "src" else p.dst0, nodes[last].size.value * strides[last]]
    moves += [s for k, s in enumerate(strides) if k not in run and nodes[k].size.value > 1]
    if any(m % width for m in moves):
        return False
    guarded = [k for k in run if nodes[k].guard is not None]
    if not guarded and not p.computation:
        return True
    inner = nodes[run[0]]
    return box.sizes[run[0]] % width == 0 and (
        inner.guard is None or whole_at(p, inner, width, stored=stored)
    )
