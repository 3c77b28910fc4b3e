"""The family of devices with sub-groups: blocks of memory, transposed by shuffles between.

The work-items of a sub-group run in step, here 16 of them, and three of their functions make a
transposition without local memory and without a barrier. A *block read* fetches 16 elements that
lie side by side, one for each work-item, or 2, 4 or 8 such rows that follow each other; a *shuffle*
gives a work-item what another one holds; a *block write* stores rows as they are read.

So a sub-group moves a *tile* of ``2**n`` elements, which lies in its work-items, the *lanes*, and
in ``2**(n-4)`` *registers* of each. Reading makes bits of the source's contiguous run the number
of the lane, writing wants those of the destination's. An *exchange* swaps a lane's bit with a
register's: for each two registers that differ in that bit, lanes whose own bit is 1 give the one
and the others the other to the lane across. Four of them transpose 16 x 16 elements.

A tile that reaches beyond an end, or where elements are missing, is accessed lane by lane.

The rules are those of Intel's extensions ``cl_intel_subgroups``, ``_char``, ``_short``, ``_long``
and ``cl_intel_required_subgroup_size``: rows are read from multiples of 4 bytes and written to
multiples of 16, and what lies beyond the end of the memory may not be touched. On Intel's runtime
for CPUs it is correct and has 0.5 to 0.8 of the speed of tiles in registers (measured, side by side
in one process), so CPUs take it by name alone. No GPU with sub-groups was at hand: that it is
better there than local memory is expected, not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from math import prod

from .nibbles import refusal_of_loops
from .problem import Node, Number, Problem, fixed
from .request import Request
from .traits import Traits

LANES = 16
"""Work-items of a sub-group: the one size that all of Intel's GPUs offer."""
LANE_BITS = 4
BLOCK_BITS = 3
"""One function reads or writes 8 rows at most."""
ROW_BYTES = 64
"""A tile is made so long on each side, a cache line, where that takes few registers."""
REGISTER_BYTES = 64
"""What a work-item keeps where rows are made longer: a quarter of its registers on Intel's GPUs."""
READ_BYTES = 4
WRITE_BYTES = 16
"""Where a block may start."""


@dataclass(frozen=True, slots=True)
class Bit:
    """One bit of a position in the tile: it moves loop ``node`` by ``1 << place`` steps."""

    node: int
    place: int


@dataclass(frozen=True, slots=True)
class Access:
    """How a tile is read or written.

    ``lanes`` and ``registers`` say which bit of the tile the bits of their numbers are, lowest
    first. ``block`` are those of the registers' bits whose rows one block function takes together.
    """

    lanes: tuple[Bit, ...]
    registers: tuple[Bit, ...]
    block: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Bit ``register`` of the registers' numbers changes places with bit ``lane`` of the lanes'."""

    register: int
    lane: int


@dataclass(frozen=True, slots=True)
class SubgroupPlan:
    """A tile of ``1 << bits[k]`` steps of each loop for each sub-group.

    Behind the ``exchanges``, lane bit ``order[j]`` is what bit ``j`` has to be; where the two are
    the same everywhere, ``order`` is empty.
    """

    problem: Problem
    bits: tuple[int, ...]
    read: Access
    exchanges: tuple[Exchange, ...]
    order: tuple[int, ...]
    write: Access

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The loops."""
        return self.problem.nodes or ()

    def positions(self, node: int) -> Number:
        """How many tiles follow each other along the node."""
        size = self.nodes[node].size
        return Number(-(-size.value >> self.bits[node]), size.fixed)

    @property
    def tiles(self) -> int:
        """How many tiles there are."""
        return prod(self.positions(k).value for k in range(len(self.nodes)))

    @property
    def structure(self) -> str:
        """The tile in words, without what depends on sizes alone."""
        shape = " x ".join(f"{1 << b} of loop {k}" for k, b in enumerate(self.bits) if b)
        return (
            f"tile {shape} for sub-groups of {LANES}, {len(self.exchanges)} exchanges"
            f"{' and a shuffle' if self.order else ''}, rows read by {1 << len(self.read.block)} "
            f"and written by {1 << len(self.write.block)}"
        )

    def __str__(self) -> str:
        return f"{self.structure}, {self.tiles} sub-groups"


def needs(p: Problem, traits: Traits) -> str:
    """What the device lacks for the problem; empty if nothing."""
    if not traits.subgroup_bytes:
        return "the device has no sub-groups with block reads and writes"
    missing = {t.nbytes for t in p.dtypes} - set(traits.subgroup_bytes)
    if missing:
        return f"the device's sub-groups have no blocks of elements of {min(missing)} bytes"
    return ""


def leaves(p: Problem) -> str:
    """Why a problem that the family takes by name is left to others; empty if it is not."""
    if min(t.nbytes for t in p.dtypes) > 1:
        return ""
    return "each byte takes a register of Intel's compiler: more than there are"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem on any device; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    if p.computation:
        return "values are computed on the way"
    return _no_runs(p) or _askew(p)


def _no_runs(p: Problem) -> str:
    load, store = (bits_of_run(p, side, LANE_BITS) for side in ("src", "dst"))
    for name, run in (("source", load), ("destination", store)):
        if len(run) < LANE_BITS:
            return f"the {name} has no contiguous run of {LANES} elements in powers of two"
    if load == store:
        return f"both sides have the same run of {LANES} elements: nothing to transpose"
    return ""


def _askew(p: Problem) -> str:
    body = _plan(p)
    for side, access, name, least in (
        ("src", body.read, "source", READ_BYTES),
        ("dst", body.write, "destination", WRITE_BYTES),
    ):
        if not _aligned(p, side, body.bits, access.registers, least):
            return f"not all rows of the {name} start at multiples of {least} bytes"
    return ""


def plan(request: Request) -> SubgroupPlan:
    """The plan for a problem that `refusal` accepts; stores are never non-temporal."""
    return _plan(request.problem)


def _plan(p: Problem) -> SubgroupPlan:
    most = LANE_BITS + BLOCK_BITS
    runs = [bits_of_run(p, side, most) for side in ("src", "dst")]
    load, store = (run[:LANE_BITS] for run in runs)
    registers = [b for b in store if b not in load]
    registers += _longer(p, runs, (*load, *registers), len(registers))
    bits = [0] * len(p.nodes or ())
    for bit in (*load, *registers):
        bits[bit.node] = max(bits[bit.node], bit.place + 1)
    steps, lanes, after = exchanges(load, registers, store)
    order = tuple(lanes.index(b) for b in store)
    return SubgroupPlan(
        replace(p, nodes=_promoted(p, runs, bits)), tuple(bits),
        Access(load, tuple(registers), _block(runs[0], registers)),
        steps, () if order == tuple(range(LANE_BITS)) else order,
        Access(store, after, _block(runs[1], after)),
    )  # fmt: skip


def bits_of_run(p: Problem, side: str, limit: int) -> tuple[Bit, ...]:
    """The bits of one side's contiguous run, lowest first, ``limit`` at most; none if under 4."""
    nodes = p.nodes or ()
    strides = [getattr(n, side).value for n in nodes]
    bits: list[Bit] = []
    reached = 1
    while len(bits) < limit and reached in strides:
        k = strides.index(reached)
        size = nodes[k].size
        # A block of 24 gives tiles of 8; a free size of 24 gives 16 and an overlap.
        whole = (size.value & -size.value) if size.fixed else size.value
        take = min(whole.bit_length() - 1, limit - len(bits))
        bits += [Bit(k, j) for j in range(take)]
        if 1 << take != size.value:
            break
        reached *= size.value
    return tuple(bits) if len(bits) > 1 else ()


def _longer(
    p: Problem, runs: Sequence[Sequence[Bit]], taken: Sequence[Bit], registers: int
) -> list[Bit]:
    """More of both runs, in turns, until rows are long or registers filled."""
    rows = [(ROW_BYTES // t.nbytes).bit_length() - 1 for t in p.dtypes]
    most = (REGISTER_BYTES // min(t.nbytes for t in p.dtypes)).bit_length() - 1
    turns = zip_longest(*(run[LANE_BITS:row] for run, row in zip(runs, rows, strict=True)))
    more = dict.fromkeys(b for turn in turns for b in turn if b is not None and b not in taken)
    return list(more)[: max(0, most - registers)]


def exchanges(
    lanes: Sequence[Bit], registers: Sequence[Bit], wanted: Sequence[Bit]
) -> tuple[tuple[Exchange, ...], tuple[Bit, ...], tuple[Bit, ...]]:
    """What brings the bits ``wanted`` into the lanes; lanes and registers behind that."""
    steps, now, regs = [], list(lanes), list(registers)
    for bit in (b for b in wanted if b not in lanes):
        place = wanted.index(bit)
        if now[place] in wanted:
            place = next(j for j, b in enumerate(now) if b not in wanted)
        steps.append(Exchange(regs.index(bit), place))
        regs[regs.index(bit)], now[place] = now[place], bit
    return tuple(steps), tuple(now), tuple(regs)


def _promoted(p: Problem, runs: Sequence[Sequence[Bit]], bits: Sequence[int]) -> tuple[Node, ...]:
    """The loops; those that a run goes on behind have a size that is part of the structure."""
    inside = {b.node for run in runs for b in run[:-1] if b.node != run[-1].node}
    return tuple(
        replace(n, size=fixed(n.size.value))
        if k in inside and n.size.value == 1 << bits[k] else n
        for k, n in enumerate(p.nodes or ())
    )  # fmt: skip


def _block(run: Sequence[Bit], registers: Sequence[Bit]) -> tuple[int, ...]:
    """Those bits of the registers that go on where the lanes' run ends."""
    return tuple(
        registers.index(b) for b in takewhile(lambda b: b in registers, run[LANE_BITS:])
    )  # fmt: skip


def _aligned(
    p: Problem, side: str, bits: Sequence[int], registers: Sequence[Bit], least: int
) -> bool:
    """Whether each row of each tile starts at a multiple of ``least`` bytes, if the buffer does."""
    nodes, item = p.nodes or (), getattr(p, side).dtype.nbytes
    strides = [getattr(n, side).value for n in nodes]
    starts = [p.src0 if side == "src" else p.dst0]
    starts += [s << b for s, b, n in zip(strides, bits, nodes, strict=True)
               if n.size.value > 1 << b]  # fmt: skip
    starts += [strides[b.node] << b.place for b in registers]
    return not any(at * item % least for at in starts)
