"""From two descriptors to a `Problem`, in four stages: check, refine, normalise, fuse.

`clformats.problems.problem` shows the result of each stage for an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import gcd

from ..errors import InvalidDescriptor, Unsupported
from ..formats.digits import Placed
from ..tensors import images, nibbles
from ..tensors.desc import MemoryDesc
from ..values.transforms import Step, between
from .computation import Computation
from .problem import Guard, Node, Number, Problem, Table, fixed
from .thresholds import FEW_ELEMENTS, LONGEST_SPLIT


def problem(
    src: MemoryDesc,
    dst: MemoryDesc,
    computation: Computation | None = None,
    *,
    transform: bool | None = None,
) -> Problem:
    """The problem of reordering ``src`` to ``dst``, computing on the way.

    ``transform``: see `values.transforms.between`. Raises `InvalidDescriptor` and `Unsupported`.
    """
    _check_sides(src, dst)
    step = between(src, dst, wanted=transform) if src.dims and dst.dims else None
    _check_pair(src, dst, step)
    if computation and any(o.desc.format.image for o in computation.operands):
        raise Unsupported(
            "IMAGE",
            f"a kernel reads one image, and never the one that it writes: {src} -> {dst} with "
            f"{computation}; reorder the others to a buffer format first",
        )
    if step:
        why = "the values are transformed"
        if computation:
            raise Unsupported(
                "ATTR_TRANSFORM",
                f"no kernel computes {computation} where {why}: {src} -> {dst}; do it in a "
                f"separate reorder before it",
            )
        return Problem(src, dst, (), (), src.offset0, dst.offset0, why, computation, step=step)
    return fuse(normalise(refine(src, dst, computation)))


class _UnfitError(Exception):
    """Why a dimension has no digits that all sides split alike, as said of it."""


def _check_sides(src: MemoryDesc, dst: MemoryDesc) -> None:
    """Raise if a side has no layout, or is an image that no kernel supports."""
    for name, desc in (("source", src), ("destination", dst)):
        if not desc.has_layout and desc.dims:
            raise InvalidDescriptor(f"the {name} {desc} has no layout: choose a concrete format")
        if reason := images.refusal(desc):
            raise Unsupported(
                "IMAGE", f"no kernel reads or writes the {name} {desc}, an image: {reason}"
            )


def _check_pair(src: MemoryDesc, dst: MemoryDesc, step: Step | None) -> None:
    if step and images.is_pitched(dst):
        raise Unsupported(
            "IMAGE",
            f"no kernel transforms values to rows apart by a pitch, as of {dst}: leave its strides "
            f"out, or transform to a buffer and reorder that",
        )
    if step and src.format.image:
        raise Unsupported(
            "IMAGE", f"the source {src} is an image: reorder it to a buffer, then transform it"
        )
    if step and (src.dtype.is_packed or dst.dtype.is_packed):
        raise Unsupported(
            "DTYPE_PAIR",
            f"no kernel transforms elements that share bytes: {src} -> {dst}; reorder to another "
            f"type before or after it",
        )
    if src.dims != dst.dims and step is None:
        raise InvalidDescriptor(
            f"a reorder keeps the logical dims: got source {src} and destination {dst}; "
            f"dims are in logical order whatever the format"
        )
    if dst.nelems and any(p.stride == 0 and p.size > 1 for p in dst.placed):
        raise InvalidDescriptor(
            f"the destination {dst} has a stride of 0: several elements would be written to one "
            f"place; a repeated dimension can only be read"
        )
    nibbles.check(src, dst)


def refine(src: MemoryDesc, dst: MemoryDesc, computation: Computation | None = None) -> Problem:
    """Split each dimension at the splits of all sides."""
    whole = Problem(src, dst, (), (), src.offset0, dst.offset0, "a side is an image", computation)
    sides = (src, dst, *whole.operand_descs)
    starts = [d.offset0 for d in sides]
    if whole.has_image:
        return whole
    guards: list[Guard] = []
    tables: list[Table] = []
    nodes: list[Node] = []
    for dim in range(src.ndims):
        try:
            split, guard, table, shifts = _refine_dim(sides, dim, len(guards), len(tables))
        except _UnfitError as why:
            return replace(whole, why=f"dimension {dim} {why}")
        nodes += split
        guards += [guard] if guard else []
        tables += [table] if table else []
        starts = [start + shift for start, shift in zip(starts, shifts, strict=True)]
    return replace(whole, nodes=tuple(nodes), guards=tuple(guards), tables=tuple(tables),
                   src0=starts[0], operands0=tuple(starts[2:]), why="")  # fmt: skip


def _refine_dim(
    sides: Sequence[MemoryDesc], dim: int, guard_id: int, table_id: int
) -> tuple[list[Node], Guard | None, Table | None, list[int]]:
    """The nodes of one dimension, its guard, its table and the shift of each side.

    The second of the ``sides`` is the destination. Raises `_UnfitError`.
    """
    dst, chains = sides[1], [_chain(side, dim) for side in sides]
    moves = [side.padded_offsets[dim] - dst.padded_offsets[dim] for side in sides]
    cut, why = _cut(chains, moves[0])
    steps = sorted({cut, *(p.digit.step for p in chains[0] if p.digit.step < cut),
                    *(p.digit.step for chain in chains[1:] for p in chain)})  # fmt: skip
    table, block = None, _whole_block(sides, dim, moves[0])
    if why:
        table, moves[0] = _table(chains[0], cut, moves[0], f"dimension {dim} {why}"), 0
    shifts = _shifts(chains, moves, steps)
    lower, extent = dst.padded_offsets[dim], dst.padded_dims[dim]
    if len(steps) > 1 and steps[-1] > extent:
        # A block that is larger than the extent needs no loop over its rest, and no guard. Where a
        # side has its steps contiguous, masking lanes is faster than using fewer.
        near = any(_stride_at(chain, steps[-2]).value == 1 for chain in chains)
        steps = steps if near else steps[:-1]
    nodes, cover = _split(steps, extent, chains)
    if table:
        nodes = [n if step < cut else replace(n, src=Number(table.mean(step // cut)),
                                              table=(table_id, step // cut))
                 for n, step in zip(nodes, steps, strict=True)]  # fmt: skip
    guard = None
    if lower or lower + dst.dims[dim] != extent or cover != extent:
        guard = _guard(dst, dim, steps[-1], block)
        nodes = [replace(n, guard=guard_id, unit=u) for n, u in zip(nodes, steps, strict=True)]
    return nodes, guard, table, shifts


def _whole_block(sides: Sequence[MemoryDesc], dim: int, moved: int) -> int:
    """The largest block of the source that lies in its memory as a whole, if an element does."""
    src, dst = sides[:2]
    end, there = dst.padded_offsets[dim] + dst.dims[dim], src.padded_dims[dim] - moved
    steps = (p.digit.step for p in _chain(src, dim))
    return max(n for n in (1, *steps) if moved % n == 0 and -(-end // n) * n <= max(there, end))


def _shifts(
    chains: Sequence[list[Placed]], moves: Sequence[int], steps: Sequence[int]
) -> list[int]:
    """How many elements further on each side begins. Raises `_UnfitError`."""
    for small, large in pairwise(steps):
        if large % small:
            raise _UnfitError(f"is split at {small} on one side and at {large} on the other")
    for moved, chain in zip(moves, chains, strict=True):
        if moved % chain[-1].digit.step:
            raise _UnfitError(f"is shifted by its paddings by {moved}, across its blocks")
    return [moved // chain[-1].digit.step * chain[-1].stride
            for moved, chain in zip(moves, chains, strict=True)]  # fmt: skip


def _cut(chains: Sequence[list[Placed]], moved: int) -> tuple[int, str]:
    """The step up to which the source's digits fit those of the other sides; and why not further.

    The longest runs of indices that no side divides are this long, and begin at its multiples:
    with blocks of 24 and 16 it is 8.
    """
    others = sorted({p.digit.step for chain in chains[1:] for p in chain})
    for p in chains[0]:
        step = gcd(p.digit.step, moved)
        unfit = next((other for other in others if step % other), step)
        if (cut := gcd(step, unfit)) < p.digit.step:
            why = f"is split at {p.digit.step} on one side and at {unfit} on the other"
            if step < p.digit.step:
                why = f"is shifted by its paddings by {moved}, across blocks of {p.digit.step}"
            return cut, why
    return chains[0][-1].digit.step, ""


def _table(chain: Sequence[Placed], cut: int, moved: int, why: str) -> Table:
    """Where steps of ``cut`` indices lie, and the first of them, ``moved`` indices on."""
    coarse = [p for p in chain if p.digit.step > cut]
    finer = [p for p in chain if p.digit.step <= cut][-1:] + coarse[:-1]
    jumps = [(1, _stride_at(chain, cut).value)]
    jumps += [(p.digit.step // cut, p.stride - p.digit.step // q.digit.step * q.stride)
              for p, q in zip(coarse, finer, strict=True)]  # fmt: skip
    return Table(moved // cut, tuple(jumps), why)


def _chain(desc: MemoryDesc, dim: int) -> list[Placed]:
    """The digits of a dimension, finest first. Raises `_UnfitError`."""
    chain = [p for p in desc.placed if dim in p.digit.dims]
    if desc.tail or any(len(p.digit.dims) > 1 or p.digit.flip for p in chain):
        raise _UnfitError("is fused with another one, turned around or in two orders")
    return sorted(chain, key=lambda p: p.digit.step)


def _split(
    steps: Sequence[int], extent: int, chains: Sequence[list[Placed]]
) -> tuple[list[Node], int]:
    """One node per step, finest first, and the number of elements that they cover."""
    nodes = []
    sizes = [fixed(b // a) for a, b in pairwise(steps)]
    sizes.append(Number(-(-extent // steps[-1])))
    for step, size in zip(steps, sizes, strict=True):
        src, dst, *operands = (_stride_at(chain, step) for chain in chains)
        # A stride of 0, one value for all elements, is part of the structure.
        others = tuple(fixed(0) if n.value == 0 else n for n in operands)
        nodes.append(Node(size, src, dst, operands=others))
    return nodes, steps[-1] * sizes[-1].value


def _stride_at(chain: Sequence[Placed], step: int) -> Number:
    """How far one ``step`` of the index moves in memory."""
    holder = next(p for p in reversed(chain) if p.digit.step <= step)
    return Number(holder.stride * (step // holder.digit.step), holder.fixed_stride)


def _guard(dst: MemoryDesc, dim: int, step: int, block: int) -> Guard:
    """``step``: the largest of the loops; ``block``: that of the source, see `Guard`."""
    lo, end = dst.padded_offsets[dim], dst.padded_dims[dim]
    small = end <= min(step, FEW_ELEMENTS)
    return Guard(
        f"dim {dim}",
        Number(lo, small or lo == 0),
        Number(lo + dst.dims[dim], small),
        Number(end, small),
        block=block,
    )


def normalise(p: Problem) -> Problem:
    """Drop loops of one step; order the rest by falling destination stride."""
    nodes = [n for n in p.nodes if n.size.value != 1]
    nodes.sort(key=lambda n: (-n.dst.value, -n.src.value))
    return replace(p, nodes=tuple(nodes))


def fuse(p: Problem) -> Problem:
    """Fuse each loop with the next inner one if it continues that one on both sides."""
    nodes: list[Node] = []
    for node in p.nodes:
        if nodes and (joined := join(nodes[-1], node)):
            nodes[-1] = joined
        else:
            nodes.append(node)
    return replace(p, nodes=tuple(nodes))


def join(outer: Node, inner: Node) -> Node | None:
    """The two loops as one; None if strides or guards do not allow it."""
    sides = zip(
        (outer.src, outer.dst, *outer.operands), (inner.src, inner.dst, *inner.operands),
        strict=True,
    )  # fmt: skip
    if any(a.value != inner.size.value * b.value for a, b in sides):
        return None
    if outer.guard != inner.guard or any((n.table or n.split) for n in (outer, inner)):
        return None
    if outer.guard is not None and outer.unit != inner.unit * inner.size.value:
        return None
    return replace(inner, size=outer.size * inner.size)


def separate(p: Problem) -> Problem:
    """Guard the loops of a problem that reads the destination's old values.

    In other problems the last tile along a loop may overlap the one before. Here an element must
    not be written before it is read for the last time.
    """
    if not p.reads_old:
        return p
    guards, nodes = list(p.guards), []
    for k, node in enumerate(p.nodes):
        size = node.size
        if node.guard is None and not size.fixed and size.value % LONGEST_SPLIT:
            guards.append(Guard(f"loop {k}", fixed(0), size, size))
            nodes.append(replace(node, guard=len(guards) - 1, unit=1))
        else:
            nodes.append(node)
    return replace(p, nodes=tuple(nodes), guards=tuple(guards))
