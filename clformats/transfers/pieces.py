"""Cutting a reorder into pieces: regions that both sides can tell apart, each small enough.

A cut along a dimension is legal where it falls between two blocks on both sides. Unlike a
`MemoryDesc.submemory`, whose rules are oneDNN's, a piece may have clDNN's padding: the lower one
belongs to the first piece along its dimension, the upper one to the last. So the pieces of a tensor
hold each of its places, elements and padding, exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm, prod

from ..errors import Unsupported
from ..formats.digits import place
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_dtype
from ..tensors.geometry import Geometry
from ..values.attr import Attr
from ..values.groups import Grouped

Span = tuple[int, int]
"""From the first element along a dimension to the one after the last."""


@dataclass(frozen=True, slots=True)
class TensorPiece:
    """One region of a reorder: its two descriptors, in the buffers of the whole tensors.

    ``start`` is the logical index of its first element.
    """

    src: MemoryDesc
    dst: MemoryDesc
    start: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The bytes read and written, padding counted."""
        return nbytes_of(self.src) + nbytes_of(self.dst)

    def attr(self, whole: Attr, dims: Sequence[int]) -> Attr:
        """The attributes of a reorder of ``dims`` with those values only that are this piece's."""
        cut = {d for d, n in enumerate(self.dst.dims) if n != dims[d]}
        if not any(term.mask >> d & 1 for term in whole.terms.values() for d in cut):
            return whole
        values: dict[str, Grouped] = {}
        for name, flat in whole.resolve(dims, {}, as_dtype("f64")).items():
            term = whole.terms[name]
            group, found = term.groups(dims), flat.reshape(term.sizes(dims))
            ranges = [*zip(self.start, self.dst.dims, strict=True)]
            if any(g and at % g for g, (at, _) in zip(group, ranges, strict=True)):
                # The piece begins within a group: each index has a value of its own.
                found, group = term.spread(flat, dims), tuple(g and 1 for g in group)
            mine = tuple(
                slice(at // g, -(-(at + n) // g)) if g else slice(None)
                for g, (at, n) in zip(group, ranges, strict=True)
            )
            values[name] = Grouped(found[mine], group)
        return Attr(**values, expression=whole.expression)


def dense(desc: MemoryDesc) -> MemoryDesc:
    """The same digits without gaps, from offset 0 on: a piece as it lies in a buffer of its own.

    Elements that share bytes, and those that sums follow, stay as they lie.
    """
    if desc.dtype.is_packed or desc.sums:
        return desc
    g = desc.geometry
    placed = place(g.format.structure, g.padded_dims)
    return MemoryDesc.of(replace(g, placed=placed, offset0=0), desc.dtype)


def nbytes_of(desc: MemoryDesc) -> int:
    """The bytes of a piece in a buffer of its own."""
    own = dense(desc)
    return max(own.nbytes, own.span_nbytes)


def region(desc: MemoryDesc, spans: Sequence[Span]) -> MemoryDesc:
    """The part of a tensor from cut to cut; `Cuts` says where those may be."""
    g = desc.geometry
    if all(span == (0, n) for span, n in zip(spans, g.dims, strict=True)):
        return desc
    blocks = g.format.structure.blocks
    padding, padded, offset = list(g.padding), list(g.padded_dims), g.offset0
    strides = {p.digit.dims: p.stride for p in g.placed if p.digit.size is None}
    for d, (at, end) in enumerate(spans):
        if (at, end) == (0, g.dims[d]):
            continue
        lower, upper = g.padding[d]
        first = lower + at if at else 0  # the place where the region begins
        padding[d] = (0 if at else lower, upper if end == g.dims[d] else 0)
        padded[d] = (g.padded_dims[d] if end == g.dims[d] else lower + end) - first
        offset += first // blocks[d] * strides[(d,)]
    placed = tuple(
        p if p.digit.size is not None
        else replace(p, size=-(-prod(padded[d] for d in p.digit.dims) // p.digit.step))
        for p in g.placed
    )  # fmt: skip
    dims = tuple(end - at for at, end in spans)
    cut = Geometry(dims, g.format, placed, tuple(padded), tuple(padding), offset)
    return MemoryDesc.of(cut, desc.dtype)


@dataclass(frozen=True, slots=True)
class Cuts:
    """The parts of one dimension: cut at ``first``, ``first + step``, ..., ``width`` steps apart.

    A sequence of spans, computed when asked for: there may be very many. The first part and the
    last may be smaller than the others.
    """

    size: int
    first: int
    step: int
    width: int = 1

    @property
    def _marks(self) -> range:
        return range(self.first + (self.width - 1) * self.step, self.size, self.width * self.step)

    def __len__(self) -> int:
        return len(self._marks) + 1

    def __getitem__(self, k: int) -> Span:
        marks = self._marks
        return (marks[k - 1] if k else 0), (marks[k] if k < len(marks) else self.size)

    def __iter__(self) -> Iterator[Span]:
        return (self[k] for k in range(len(self)))

    def ends(self) -> list[Span]:
        """The parts that the largest is among: only at the ends is there padding."""
        last = len(self) - 1
        return [self[k] for k in sorted({0, min(1, last), max(last - 1, 0), last})]


def cuts_of(src: MemoryDesc, dst: MemoryDesc, dim: int) -> Cuts | str:
    """Where a dimension may be cut on both sides; or the reason why nowhere."""
    if src.dims != dst.dims:
        return f"values are transformed from dims {src.dims} to {dst.dims}"
    if dst.sums:
        return f"{dst.format}: sums over the elements follow them"
    for desc in (src, dst):
        if reason := _refusal(desc, dim):
            return f"{desc.format}: {reason}"
    size, rules = src.dims[dim], [(_block(d, dim), d.padded_offsets[dim]) for d in (src, dst)]
    step = lcm(*(block for block, _ in rules))
    for first in range(1, min(step, size) + 1):
        if all((lower + first) % block == 0 for block, lower in rules):
            return Cuts(size, first, step)
    if step < size:
        return f"no two blocks of {' and '.join(str(b) for b, _ in rules)} end at one place"
    return f"{size} elements are within one block of {step}"


def _block(desc: MemoryDesc, dim: int) -> int:
    return desc.format.structure.blocks[dim]


def _refusal(desc: MemoryDesc, dim: int) -> str:
    """Why a layout cannot be cut along a dimension; empty if it can."""
    if desc.format.kind != "blocked" or desc.format.image:
        return "is an image or holds transformed values"
    if desc.dtype.is_packed:
        return f"elements of {desc.dtype} share bytes"
    if desc.tail:
        return "has its digits in two orders"
    if any(dim in p.digit.dims and (len(p.digit.dims) > 1 or p.digit.flip) for p in desc.placed):
        return "reads the dimension together with another one, or from the far end"
    return ""


class _Grid:
    """The parts of each dimension, made finer until the largest piece is small enough."""

    def __init__(self, src: MemoryDesc, dst: MemoryDesc) -> None:
        self.sides = (src, dst)
        self.parts = [Cuts(n, n, n) for n in src.dims]
        self.reasons: list[str] = []

    def refine(self, most: int) -> bool:
        """Cut along one dimension after another; whether the pieces are small enough now."""
        for dim in self._order():
            if self.largest() <= most:
                break
            cuts = cuts_of(*self.sides, dim)
            if isinstance(cuts, str):
                self.reasons.append(f"{self.sides[0].format.letters[dim]}: {cuts}")
                continue
            self._cut(dim, cuts, most)
        return self.largest() <= most

    def _order(self) -> list[int]:
        """The dimensions of more than one element, those that are outermost on both sides first."""
        depth = [0] * len(self.parts)
        for desc in self.sides:
            for k, p in enumerate(desc.placed):
                for d in p.digit.dims if p.digit.size is None else ():
                    depth[d] += k
        long = [d for d, n in enumerate(self.sides[0].dims) if n > 1]
        return sorted(long, key=lambda d: (depth[d], d))

    def _cut(self, dim: int, cuts: Cuts, most: int) -> None:
        """The widest parts that fit, all of about one width; the narrowest where none fits."""
        count = len(cuts)
        low, high = 1, count
        while low < high:
            middle = (low + high + 1) // 2
            self.parts[dim] = replace(cuts, width=middle)
            low, high = (middle, high) if self.largest() <= most else (low, middle - 1)
        even = -(-count // -(-count // low))
        self.parts[dim] = replace(cuts, width=even)

    def largest(self) -> int:
        """The bytes of the largest piece, both sides together."""
        return max(
            sum(nbytes_of(side) for side in self.regions(spans))
            for spans in product(*(parts.ends() for parts in self.parts))
        )

    def regions(self, spans: Sequence[Span]) -> tuple[MemoryDesc, MemoryDesc]:
        """A piece on both sides; the whole where a transform gives them other dims."""
        src, dst = self.sides
        if src.dims != dst.dims:
            return src, dst
        return region(src, spans), region(dst, spans)

    def pieces(self) -> Iterator[TensorPiece]:
        """Every piece."""
        for spans in product(*self.parts):
            src, dst = self.regions(spans)
            yield TensorPiece(src, dst, tuple(at for at, _ in spans))


def pieces(src: MemoryDesc, dst: MemoryDesc, most: int, *, or_up_to: int = 0) -> list[TensorPiece]:
    """The reorder of ``src`` to ``dst`` in pieces of at most ``most`` bytes, both sides together.

    Where the formats do not allow it, in pieces of at most ``or_up_to`` bytes. Raises `Unsupported`
    (code PIECE_SIZE), which says why each dimension is not cut further.
    """
    grid, limit = _Grid(src, dst), most
    if not grid.refine(most) and or_up_to > most:
        grid, limit = _Grid(src, dst), or_up_to
        grid.refine(or_up_to)
    if grid.largest() <= limit:
        return list(grid.pieces())
    why = "; ".join(grid.reasons) or "every dimension is cut as finely as its blocks allow"
    raise Unsupported(
        "PIECE_SIZE",
        f"{src} -> {dst} cannot be cut into pieces of {limit} bytes, the smallest "
        f"has {grid.largest()} (source and destination together): {why}",
    )
