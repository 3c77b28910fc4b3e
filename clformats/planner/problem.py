"""The reorder problem: two descriptors as one loop nest.

A reorder is a transposition of digits. Each dimension is split at every point where the source or
the destination splits it; each piece becomes a `Node` with its size and its stride on both sides.
Neighbours that are neighbours on both sides fuse into one. For ``bfyx`` to ``b_fs_yx_fsv16`` of
2 x 32 x 5 x 4 the stages are::

    refine     b(2:640,640) f/16(2:320,320) f%16(16:20,1) y(5:4,64) x(4:1,16)
    normalise  the same, by falling destination stride
    fuse       (4:320,320) (20:1,16) (16:20,1)          as size:source stride,destination stride

The loops run over the *destination*: over every element of it and every element of its padding,
because padding must be written with zeros. A dimension where the two are not the same has a
`Guard`, which tells them apart by the physical index ``p``, counted from the start of the
destination's padding:

    lo <= p < hi    an element: read the source
    p < end         padding: write zero
    otherwise       not part of the destination at all (the loops cover whole blocks): skip

Numbers that follow from the formats alone are ``fixed``: they become constants of the kernel, all
others its arguments, so that one kernel serves every shape of the same structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .. import images
from ..desc import MemoryDesc
from ..dtypes import DType
from ..errors import InvalidDescriptor, Unsupported
from ..formats.digits import Placed

SMALL = 64
"""Extents within one block of up to this many elements, such as 3 channels in a block of 16, are
part of a guard's structure: they choose which lanes of a vector exist, and cost nothing."""


@dataclass(frozen=True, slots=True)
class Number:
    """A size or stride; ``fixed``: a constant of the kernel, otherwise one of its arguments."""

    value: int
    fixed: bool = False

    def __mul__(self, other: Number) -> Number:
        return Number(self.value * other.value, self.fixed and other.fixed)

    def __str__(self) -> str:
        return str(self.value)


def fixed(value: int) -> Number:
    """A number that is part of the structure."""
    return Number(value, fixed=True)


@dataclass(frozen=True, slots=True)
class Node:
    """One loop: ``size`` steps, ``src`` and ``dst`` elements apart.

    Where it has a guard, it moves the guarded index by ``unit`` per step.
    """

    size: Number
    src: Number
    dst: Number
    guard: int | None = None
    unit: int = 0

    def __str__(self) -> str:
        mark = f"?{self.guard}" if self.guard is not None else ""
        return f"({self.size}:{self.src},{self.dst}{mark})"


@dataclass(frozen=True, slots=True)
class Guard:
    """Where along dimension ``dim`` elements lie: ``lo <= p < hi``, padding up to ``end``."""

    dim: int
    lo: Number
    hi: Number
    end: Number

    def __str__(self) -> str:
        return f"dim {self.dim}: [{self.lo}, {self.hi}) of {self.end}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A reorder, ready to be planned.

    ``nodes`` by falling destination stride, fused; None where the digits of the two sides do not
    nest or a side is an image, ``why`` then says where. ``src0`` and ``dst0`` are the offsets where
    all loops are 0.
    """

    src: MemoryDesc
    dst: MemoryDesc
    nodes: tuple[Node, ...] | None
    guards: tuple[Guard, ...]
    src0: int
    dst0: int
    why: str = ""

    @property
    def dtypes(self) -> tuple[DType, DType]:
        """The element types of source and destination."""
        return self.src.dtype, self.dst.dtype

    @property
    def has_image(self) -> bool:
        """Whether source or destination is an image."""
        return self.src.format.image is not None or self.dst.format.image is not None

    @property
    def nbytes(self) -> int:
        """Bytes read and written, padding counted."""
        return self.src.nbytes + self.dst.nbytes

    @property
    def is_wide(self) -> bool:
        """Whether offsets need 64 bits; 32 leave room for an overshoot of one block."""
        most = max(d.span_nbytes * 8 // d.dtype.bits for d in (self.src, self.dst))
        return most >= 2**31 - 2**16

    def __str__(self) -> str:
        nodes = " ".join(map(str, self.nodes or ())) or (self.why or "one element")
        guards = "; ".join(map(str, self.guards))
        return nodes + (f"  guards {guards}" if guards else "")


def problem(src: MemoryDesc, dst: MemoryDesc) -> Problem:
    """The problem of reordering ``src`` to ``dst``. Raises `InvalidDescriptor`, `Unsupported`."""
    _check_pair(src, dst)
    return fuse(normalise(refine(src, dst)))


def _check_pair(src: MemoryDesc, dst: MemoryDesc) -> None:
    for name, desc in (("source", src), ("destination", dst)):
        if not desc.has_layout and desc.dims:
            raise InvalidDescriptor(f"the {name} {desc} has no layout: choose a concrete format")
        if reason := images.refusal(desc):
            raise Unsupported(
                "IMAGE", f"no kernel reads or writes the {name} {desc}, an image: {reason}"
            )
        if desc.dtype.is_packed:
            raise Unsupported(
                "DTYPE_PAIR",
                f"no kernel moves the {name} {desc}, whose elements share bytes: use cf.unpack and "
                f"cf.pack on the host",
            )
    if src.dims != dst.dims:
        raise InvalidDescriptor(
            f"a reorder keeps the logical dims: got source {src} and destination {dst}; "
            f"dims are in logical order whatever the format"
        )
    if any(p.stride == 0 and p.size > 1 for p in dst.placed):
        raise InvalidDescriptor(
            f"the destination {dst} has a stride of 0: several elements would be written to one "
            f"place; a repeated dimension can only be read"
        )


def refine(src: MemoryDesc, dst: MemoryDesc) -> Problem:
    """Split each dimension at the splits of both sides."""
    whole = Problem(src, dst, None, (), src.offset0, dst.offset0, "a side is an image")
    if whole.has_image:
        return whole
    guards: list[Guard] = []
    nodes: list[Node] = []
    src0, why = src.offset0, ""
    for dim in range(src.ndims):
        split = _refine_dim(src, dst, dim, len(guards))
        if isinstance(split, str):
            return Problem(src, dst, None, (), src.offset0, dst.offset0, split)
        new_nodes, guard, shift = split
        nodes += new_nodes
        guards += [guard] if guard else []
        src0 += shift
    return Problem(src, dst, tuple(nodes), tuple(guards), src0, dst.offset0, why)


def _refine_dim(
    src: MemoryDesc, dst: MemoryDesc, dim: int, guard_id: int
) -> tuple[list[Node], Guard | None, int] | str:
    """The nodes of one dimension, its guard, and how far the source is shifted; or why not."""
    chains = [_chain(d, dim) for d in (src, dst)]
    if chains[0] is None or chains[1] is None:
        return f"dimension {dim} is fused with another one, turned around or in two orders"
    src_chain, dst_chain = chains[0], chains[1]
    steps = sorted({p.digit.step for p in src_chain + dst_chain})
    for small, large in pairwise(steps):
        if large % small:
            return f"dimension {dim} is split at {small} on one side and at {large} on the other"
    moved = src.padded_offsets[dim] - dst.padded_offsets[dim]
    top = src_chain[-1]
    if moved % top.digit.step:
        return f"the paddings of dimension {dim} shift it by {moved}, across its blocks"
    lower, extent = dst.padded_offsets[dim], dst.padded_dims[dim]
    nodes, cover = _split(steps, extent, src_chain, dst_chain)
    guard = None
    if lower or lower + dst.dims[dim] != extent or cover != extent:
        guard = _guard(dim, lower, lower + dst.dims[dim], extent, steps[-1])
        nodes = [replace(n, guard=guard_id, unit=u) for n, u in zip(nodes, steps, strict=True)]
    return nodes, guard, moved // top.digit.step * top.stride


def _chain(desc: MemoryDesc, dim: int) -> list[Placed] | None:
    """The digits of a dimension, finest first; None where they are not all there is to it."""
    chain = [p for p in desc.placed if dim in p.digit.dims]
    if desc.tail or any(len(p.digit.dims) > 1 or p.digit.flip for p in chain):
        return None
    return sorted(chain, key=lambda p: p.digit.step)


def _split(
    steps: Sequence[int], extent: int, src: list[Placed], dst: list[Placed]
) -> tuple[list[Node], int]:
    """One node per step, finest first, and the number of elements that they cover."""
    nodes = []
    sizes = [fixed(b // a) for a, b in pairwise(steps)]
    sizes.append(Number(-(-extent // steps[-1])))
    for step, size in zip(steps, sizes, strict=True):
        nodes.append(Node(size, _stride_at(src, step), _stride_at(dst, step)))
    return nodes, steps[-1] * sizes[-1].value


def _stride_at(chain: list[Placed], step: int) -> Number:
    """How far one ``step`` of the index moves in memory."""
    holder = next(p for p in reversed(chain) if p.digit.step <= step)
    return Number(holder.stride * (step // holder.digit.step), holder.fixed_stride)


def _guard(dim: int, lo: int, hi: int, end: int, block: int) -> Guard:
    small = end <= min(block, SMALL)
    return Guard(dim, Number(lo, small or lo == 0), Number(hi, small), Number(end, small))


def normalise(p: Problem) -> Problem:
    """Drop loops of one step; order the rest by falling destination stride."""
    if p.nodes is None:
        return p
    nodes = [n for n in p.nodes if n.size.value != 1]
    nodes.sort(key=lambda n: (-n.dst.value, -n.src.value))
    return replace(p, nodes=tuple(nodes))


def fuse(p: Problem) -> Problem:
    """Join each loop with the next inner one where that continues it on both sides."""
    if p.nodes is None:
        return p
    nodes: list[Node] = []
    for node in p.nodes:
        if nodes and (joined := _join(nodes[-1], node)):
            nodes[-1] = joined
        else:
            nodes.append(node)
    return replace(p, nodes=tuple(nodes))


def _join(outer: Node, inner: Node) -> Node | None:
    """The two loops as one; None where a stride or a guard is in the way."""
    for a, b in ((outer.src, inner.src), (outer.dst, inner.dst)):
        if a.value != inner.size.value * b.value:
            return None
    if outer.guard != inner.guard:
        return None
    if outer.guard is not None and outer.unit != inner.unit * inner.size.value:
        return None
    return Node(outer.size * inner.size, inner.src, inner.dst, inner.guard, inner.unit)
