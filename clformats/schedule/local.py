"""The families for GPUs: each work-group moves a box, consecutive work-items touch neighbours.

A GPU joins the accesses of the work-items that run in step (32 or 64 of them) into as few memory
transactions as they touch lines. So, other than on a CPU, no work-item has a run of its own:
consecutive ones have consecutive elements. A *box* is a part of each of the innermost loops, wide
enough that its runs fill whole transactions on both sides.

Where the order of the loops is one on both sides, each work-item stores what it has loaded
(family ``rows``). Where it is not, a box is loaded in the order of the source, kept
in local memory, and stored in the order of the destination (family ``local``): coalesced on both
sides, by vectors on both sides: a work-item loads runs of the source, takes words of some elements
from as many rows out of local memory, and stores runs of the destination. Loops that the box does
not divide have a condition at their end: what is not there is loaded from the tensor's first
element instead, without a branch, so that the loads of a work-item need not wait for each other.

The numbers below were measured on an H100 where that is said, else they are from what makers
publish. On CPUs this way has 0.08 of the speed of tiles in registers (measured on pocl) and is
never chosen.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import prod

from .banks import BANK_BYTES, BankLayout, Pass, dense, layout
from .body import Body
from .boxes import ALL, BoxSchedule
from .choices import Choices, either
from .groupbox import (
    BOX_BYTES,
    GROUPS_PER_UNIT,
    SINGLE_BOX_BYTES,
    GroupBox,
    boxed,
    order_of,
    power_of_two,
    wished,
)
from .problem import Node, Number, Problem, fixed
from .traits import Traits
from .words import kept_together, refusal_of_loops

SECTOR_BYTES = 32
"""The least that memory gives (NVIDIA's sector, half a line of AMD's): a run that both sides share
and that is this long is coalesced without local memory."""
GPU_LINE_BYTES = 128
"""What stores of neighbours must fill together where a work-item stores several vectors apart."""
VECTOR_BYTES = 16
"""The longest load that a work-item can make."""
LONGEST_VECTORS = VECTOR_BYTES, VECTOR_BYTES
"""As many elements of both sides as there can be in a vector."""
MOST_STEPS = 256
"""Elements that a work-item moves in a box that is chosen, at the most."""
VECTORS_EACH = 2
"""Vectors that a work-item of a copy moves, where there is enough to do: 0.02 faster than with 4 on
an H100, where 8 lose 0.04."""


@dataclass(frozen=True, slots=True)
class LocalPlan(Body):
    """A box of ``box[k]`` steps of each loop for each work-group of ``group`` work-items.

    It is loaded as ``read`` says and stored as ``write`` says; between, it lies in local memory by
    ``layout``, or, where that is None, in registers. ``whole`` are the loops that the box takes
    entirely; the number of a group counts the others in this ``order``, the outermost first.
    """

    problem: Problem
    box: tuple[int, ...]
    whole: tuple[int, ...]
    read: Pass
    write: Pass
    layout: BankLayout | None
    group: int
    order: tuple[int, ...]

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
        return self.layout.extent if self.layout else 0

    @property
    def parameter(self) -> str:
        """The choice that a tuner searches: the whole box where it lies in local memory."""
        return "box" if self.layout else "local_size"

    @property
    def value(self) -> object:
        """What it has of the parameter."""
        return str(self.schedule) if self.layout else self.group

    @property
    def candidates(self) -> tuple[int, ...]:
        """The values of the parameter that are worth a try, where it is a number."""
        return () if self.layout else (32, 64, 128, 256)

    @property
    def schedule(self) -> BoxSchedule:
        """What is a choice about it; with the box chosen so, the plan is the same."""
        steps = [ALL if k in self.whole else n for k, n in enumerate(self.box)]
        while steps[-1] == 1:
            steps.pop()
        gaps = self.layout != dense(self.box, self.read)
        vectors = self.read.width, self.write.width
        return BoxSchedule(tuple(steps), vectors, self.write.tall, gaps, self.group, self.order)

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin."""
        widths = zip(self.problem.dtypes, (self.read.width, self.write.width), strict=True)
        source, target = (
            width * t.nbytes if self.problem.word or width > 1 else 1 for t, width in widths
        )
        return source, target

    @property
    def structure(self) -> str:
        """The box in words, without what only the sizes decide."""
        shape = " x ".join(f"{self.box[k]} of loop {k}" for k in self.read.order) or "1 element"
        word = self.problem.word
        words = f", as words of {word.nbytes} bytes" if word else ""
        if not self.layout:
            by = self.write.width
            apart = f", read by {self.read.width}" if self.read.width != by else ""
            return f"box {shape}, moved by {by}{apart}{words}"
        tall = f" for each of {self.write.tall} steps" if self.write.tall > 1 else ""
        return (
            f"box {shape} in {self.local_elements} places of local memory, "
            f"read by {self.read.width} and written by {self.write.width}{tall}{words}"
        )

    def __str__(self) -> str:
        return f"{self.structure}, {self.groups} groups of {self.group} work-items"


def refusal(p: Problem) -> str:
    """Why the local family does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    p = kept_together(p)
    common = _common_run(p)
    if common is None:
        return "source and destination have their loops in the same order"
    nbytes = common * min(t.nbytes for t in p.dtypes)
    if nbytes >= SECTOR_BYTES:
        return f"both sides share runs of {nbytes} bytes, which need no local memory"
    return ""


def needs(p: Problem, traits: Traits) -> str:
    """What the device lacks; empty if nothing."""
    del p
    if traits.local_bytes >= 2 * BOX_BYTES:
        return ""
    return "local memory of the device lies in main memory, or is very small"


def _common_run(p: Problem) -> int | None:
    """The elements of the innermost loops that are the same on both sides; None if all are."""
    nodes = p.nodes or ()
    run = 1
    for a, b in zip(order_of(nodes, "src"), order_of(nodes, "dst"), strict=True):
        if a != b:
            return run
        run *= nodes[a].size.value if run == nodes[a].src.value == nodes[a].dst.value else 1
    return None


def plan(p: Problem, traits: Traits, choices: Choices) -> LocalPlan:
    """The plan for a problem that `refusal` accepts; stores are never streaming ones.

    By the box that is chosen, as near as the problem can have it, else by the rules.
    """
    p, text = kept_together(p, traits.begin_bytes), choices.box
    chosen = _chosen(p, BoxSchedule.parse(text), traits) if text else None
    return chosen or _by_rules(p, _grouped(traits, choices.local_size))


def _chosen(p: Problem, schedule: BoxSchedule, traits: Traits) -> LocalPlan | None:
    """The plan by a schedule; None where there are no such loops."""
    traits, moving = _grouped(traits, schedule.group), _moving_bytes(p)
    nodes = p.nodes or ()
    most = min(traits.local_bytes * 8 // 9 // moving, MOST_STEPS * traits.group_size)
    box = wished(nodes, schedule.steps, most)
    if box is None or max(schedule.order, default=0) >= len(nodes):
        return None
    return _through(p, box, _widths(p, box, schedule.vectors, traits), traits, schedule)


def _by_rules(p: Problem, traits: Traits) -> LocalPlan:
    nodes, moving, items = p.nodes or (), _moving_bytes(p), tuple(t.nbytes for t in p.dtypes)
    box = boxed(nodes, items, (moving, BOX_BYTES), traits)
    widths = _widths(p, box, LONGEST_VECTORS, traits)
    if widths[0] == 1:
        box = boxed(nodes, items, (moving, SINGLE_BOX_BYTES), traits)
        widths = _widths(p, box, LONGEST_VECTORS, traits)
    return _through(p, box, widths, traits)


def _through(
    p: Problem, box: GroupBox, widths: tuple[int, int], traits: Traits,
    by: BoxSchedule | None = None,
) -> LocalPlan:  # fmt: skip
    """A box that goes through local memory, by vectors of ``widths`` elements."""
    moving, (read, write) = _moving_bytes(p), map(Pass, _inner(box), widths)
    if by or _below(write, read, box) * p.dtypes[1].nbytes >= GPU_LINE_BYTES:
        most = min(by.tall, VECTOR_BYTES // moving) if by else BANK_BYTES // moving
        write = _tall(write, read, box.sizes, most)
    sizes = tuple(box.sizes)
    found = dense(sizes, read) if by and not by.gaps else layout(sizes, read, write, moving)
    return _finished(p, box, (read, write), found, traits, by.order if by else ())


def _inner(box: GroupBox) -> list[tuple[int, ...]]:
    """The loops of a box in the order of the source, and of the destination."""
    return [box.inside(order_of(box.nodes, side)) for side in ("src", "dst")]


def _widths(p: Problem, box: GroupBox, wanted: tuple[int, int], traits: Traits) -> tuple[int, int]:
    """The widest vectors of both sides, of ``wanted`` elements at the most."""
    longest = min(VECTOR_BYTES, traits.begin_bytes)
    load, store = _inner(box)
    src, dst = (min(n, longest // t.nbytes) for n, t in zip(wanted, p.dtypes, strict=True))
    stored = not p.computation
    return _width(p, box, "src", load, src), _width(p, box, "dst", store, dst, stored=stored)


def _below(write: Pass, read: Pass, box: GroupBox) -> int:
    """How many elements lie together in the destination below the source's nearest loop."""
    return prod(box.sizes[k] for k in write.order[: write.order.index(read.order[0])])


def _tall(write: Pass, read: Pass, box: Sequence[int], most: int) -> Pass:
    """The pass with as many steps of the source's nearest loop taken together as fill a word."""
    across = read.order[0]
    inner = write.order[: write.order.index(across)]
    tall = max(1, most) if inner and prod(box[k] for k in inner) % write.width == 0 else 1
    while box[across] % tall:
        tall //= 2
    return replace(write, tall=tall, across=across) if tall > 1 else write


def _moving_bytes(p: Problem) -> int:
    """The bytes of an element between load and store: f16 may be on its way as f32."""
    src, dst = p.dtypes
    if src.name == "f16" and dst != src and (dst.nbytes > src.nbytes or p.computation):
        return 4
    return src.nbytes if p.computation else min(src.nbytes, dst.nbytes)


def rows_plan(p: Problem, traits: Traits, choices: Choices) -> LocalPlan:
    """The plan that needs no local memory, in the order of the destination."""
    return _direct(kept_together(p, traits.begin_bytes), _grouped(traits, choices.local_size))


def _grouped(traits: Traits, wanted: int | None) -> Traits:
    """The traits with a work-group of another size: a power of two that the device has."""
    size = min(either(wanted, traits.group_size), traits.group_size)
    return replace(traits, group_size=power_of_two(size))


def _direct(p: Problem, traits: Traits) -> LocalPlan:
    nodes = p.nodes or ()
    longest = min(VECTOR_BYTES, traits.begin_bytes)
    src, dst = (longest // t.nbytes for t in p.dtypes)
    vector = max(1, min(src, dst))
    total = prod(n.size.value for n in nodes)
    each = VECTORS_EACH
    enough = traits.compute_units * GROUPS_PER_UNIT * traits.group_size * vector
    while each > 1 and total < enough * each:
        each //= 2
    goal = traits.group_size * vector * each
    order = order_of(nodes, "dst")
    box = GroupBox(nodes)
    box.take("dst", goal)
    box.fill(order, goal)
    inner = box.inside(order)
    width = min(_width(p, box, side, inner, vector) for side in ("src", "dst"))
    read = width
    if p.word is None and not p.computation:
        # What is gathered in pieces, or one by one, is stored by whole vectors all the same.
        stored = _width(p, box, "dst", inner, dst, stored=True)
        if inner and box.sizes[inner[0]] % stored == 0:
            if stored > width == src:
                width = stored
            elif stored > 2 * width:
                width, read = stored, 1
    return _finished(p, box, (Pass(inner, read), Pass(inner, width)), None, traits)


def _finished(
    p: Problem,
    box: GroupBox,
    passes: tuple[Pass, Pass],
    found: BankLayout | None,
    traits: Traits,
    order: Sequence[int] = (),
) -> LocalPlan:
    nodes = p.nodes or ()
    counted = [k for k, n in enumerate(nodes) if k not in box.whole and n.size.value > 1]
    order = [k for k in dict.fromkeys((*order, *counted)) if k in counted]
    known = {side: _known_strides(nodes, side, box.whole) for side in ("src", "dst")}
    nodes = tuple(
        replace(
            n, size=fixed(n.size.value) if k in box.whole else n.size,
            src=fixed(n.src.value) if k in known["src"] else n.src,
            dst=fixed(n.dst.value) if k in known["dst"] else n.dst,
        )
        for k, n in enumerate(nodes)
    )  # fmt: skip
    return LocalPlan(
        replace(p, nodes=nodes), tuple(box.sizes), tuple(sorted(box.whole)), *passes, found,
        traits.group_size, tuple(order),
    )  # fmt: skip


def _known_strides(nodes: Sequence[Node], side: str, whole: Container[int]) -> set[int]:
    """The loops whose stride is part of the structure: the run of whole loops below them."""
    strides = [getattr(n, side).value for n in nodes]
    known, reached = set(), 1
    while reached in strides:
        k = strides.index(reached)
        if k in known:
            break
        known.add(k)
        if k not in whole:
            break
        reached *= nodes[k].size.value
    return known


def _width(
    p: Problem, box: GroupBox, side: str, order: Sequence[int], most: int, *, stored: bool = False
) -> int:
    """How many elements a work-item may access as one aligned vector, ``most`` at most."""
    width = power_of_two(max(1, most))
    while width > 1 and not _aligned(p, box, side, order, width, stored=stored):
        width //= 2
    return width


def _aligned(
    p: Problem, box: GroupBox, side: str, order: Sequence[int], width: int, *, stored: bool
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
        inner.guard is None or _whole_at(p, inner, width, stored=stored)
    )


def _whole_at(p: Problem, inner: Node, width: int, *, stored: bool) -> bool:
    """Whether the limits of a guard lie between vectors along the node.

    Where values are ``stored`` as they lie in local memory, zeros among them, only the end counts.
    """
    guard, step = p.guards[inner.guard or 0], inner.unit * width
    limits = [n.value for n in ((guard.end,) if stored else (guard.lo, guard.hi, guard.end))]
    others = [n.unit for n in p.nodes or () if n.guard == inner.guard and n is not inner]
    return not any(n % step for n in [*limits, *others])
