"""Operations on geometries by oneDNN 3's rules: submemory, reshape, permutation of axes.

Each refusal has a code, listed in docs/refusals.md, and names the rule that was broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor, Unsupported
from ..formats.digits import RUNTIME, Digit, Layout, Placed
from ..formats.expr import Expr
from ..formats.format import Format
from .crops import Crops
from .geometry import Geometry, blocks_of, by_blocking, strides_of

T = TypeVar("T")


# --- submemory ------------------------------------------------------------------------------------


def submemory(g: Geometry, dims: Sequence[int], offsets: Sequence[int]) -> Geometry:
    """The region of ``dims`` at ``offsets``, in the same buffer.

    Strides stay, ``offset0`` changes. In a dimension with blocks of B elements the offset must be a
    multiple of B; the size must be a multiple of B, or less than B, or reach the tensor's end. A
    region that reaches the end includes the padding there.
    """
    if len(dims) != len(g.dims) or len(offsets) != len(g.dims):
        raise InvalidDescriptor(
            f"a region of {len(g.dims)} dims needs as many sizes and offsets, "
            f"got {tuple(dims)} at {tuple(offsets)}",
            code="BAD_RANK",
        )
    if RUNTIME in (*dims, *offsets, *g.dims, *strides_of(g)):
        raise Unsupported("RUNTIME_DIMS", "a region of unknown sizes: give the sizes first")
    for d, (n, at, whole) in enumerate(zip(dims, offsets, g.dims, strict=True)):
        if n < 0 or at < 0 or at + n > whole:
            raise InvalidDescriptor(
                f"dimension {d}: {n} elements at {at} leave the parent's 0..{whole}",
                code="OUT_OF_BOUNDS",
            )
    _check_splittable(g)
    blocks = g.format.structure.blocks
    for d, (n, at) in enumerate(zip(dims, offsets, strict=True)):
        _check_region(g, d, n, at, blocks[d])
    padded = tuple(
        p - at if at + n == whole else n
        for n, at, whole, p in zip(dims, offsets, g.dims, g.padded_dims, strict=True)
    )
    strides = strides_of(g)
    moved = sum(at // blocks[d] * strides[d] for d, at in enumerate(offsets))
    placed = tuple(_resized(p, padded) for p in g.placed)
    pads = ((0, 0),) * len(padded)
    return Geometry(tuple(dims), g.format, placed, padded, pads, g.offset0 + moved)


def _resized(p: Placed, padded: Sequence[int]) -> Placed:
    if p.digit.size is not None:
        return p
    return replace(p, size=-(-padded[p.digit.dims[0]] // p.digit.step))


def _check_kind(g: Geometry) -> None:
    """Only blocked descriptors have regions and permutations; Winograd's and images do not."""
    if g.extra:
        raise InvalidDescriptor(
            "sums follow these weights, which belong to the whole tensor: take it as it is",
            code="EXTRA",
        )
    if g.format.layout is None:
        raise Unsupported("NO_LAYOUT", f"format {g.format} has no layout: choose a concrete one")
    if g.format.kind != "blocked":
        raise Unsupported(
            "NOT_BLOCKED", f"{g.format} is of kind {g.format.kind}: use the whole tensor"
        )


def _check_splittable(g: Geometry) -> None:
    _check_kind(g)
    fused = any(len(p.digit.dims) > 1 or p.digit.flip for p in g.placed)
    if fused or g.format.structure.tail:
        raise Unsupported(
            "FUSED_INDEX",
            f"{g.format} has fused, flipped or two-way dimensions: use the whole tensor",
        )


def _check_region(g: Geometry, d: int, n: int, at: int, block: int) -> None:
    letter = g.format.letters[d]
    if any(g.padding[d]):
        raise Unsupported(
            "HAS_PADDING", f"dimension {letter} has padding {g.padding[d]}: no region of it"
        )
    if at % block:
        raise Unsupported(
            "NOT_ALIGNED", f"offset {at} of dimension {letter} is no multiple of its block {block}"
        )
    if n % block and n > block and at + n != g.dims[d]:
        raise Unsupported(
            "REGION_SIZE",
            f"{n} elements of dimension {letter} end inside a block of {block}: take a multiple "
            f"of it, less than one block, or all up to the edge at {g.dims[d]}",
        )


def legal_crops(g: Geometry, dim: int) -> Mapping[int, Sequence[int]]:
    """The legal offsets of a submemory along ``dim``, each with its legal sizes, rising."""
    _check_splittable(g)
    if not 0 <= dim < len(g.dims):
        raise InvalidDescriptor(
            f"dimension {dim} of dims {g.dims}: expected one of 0..{len(g.dims) - 1}",
            code="OUT_OF_BOUNDS",
        )
    if RUNTIME in (*g.dims, *strides_of(g)):
        raise Unsupported("RUNTIME_DIMS", "a region of unknown sizes: give the sizes first")
    if any(map(any, g.padding)):
        return {}  # submemory refuses every region of a padded tensor
    return Crops(g.dims[dim], g.format.structure.blocks[dim])


# --- permutation ----------------------------------------------------------------------------------


def broadcast_to(g: Geometry, dims: Sequence[int]) -> Geometry:
    """The same elements, with dimensions of size 1 repeated to ``dims``: their stride becomes 0."""
    _check_operable(g)
    spread = [d for d, (n, m) in enumerate(zip(g.dims, dims, strict=False)) if n != m]
    if len(dims) != len(g.dims) or any(g.dims[d] != 1 for d in spread):
        raise InvalidDescriptor(
            f"only dimensions of size 1 can be repeated: got dims {g.dims} for {tuple(dims)}",
            code="BROADCAST",
        )
    if any(d in spread for p in g.placed if len(p.digit.dims) > 1 for d in p.digit.dims):
        raise Unsupported(
            "FUSED_INDEX", f"{g.format} has a fused index of dims to repeat: {spread}"
        )
    repeated = [Placed(Digit(d, None, 1), dims[d], 0) for d in spread]
    flipped = {p.digit.dims[0] for p in g.placed if p.digit.flip}
    kept = [p for p in g.placed if p.digit.dims[0] not in spread]
    placed = (*repeated, *kept)
    lower = [0 if d in spread else low for d, (low, _) in enumerate(g.padding)]
    first = [g.padded_dims[d] - 1 if d in flipped else low for d, (low, _) in enumerate(g.padding)]
    start = sum(
        first[d] // p.digit.step % (p.digit.size or p.size) * p.stride
        for p in g.placed for d in p.digit.dims if d in spread
    )  # fmt: skip
    align = tuple(1 if d in spread else n for d, n in enumerate(g.format.structure.align))
    layout = Layout(len(dims), tuple(p.digit for p in placed), align)
    padded = tuple(dims[d] if d in spread else n for d, n in enumerate(g.padded_dims))
    pads = tuple((low, 0 if d in spread else g.padding[d][1]) for d, low in enumerate(lower))
    return Geometry(tuple(dims), Format.from_layout(layout), placed, padded, pads,
                    g.offset0 + start)  # fmt: skip


def grouped(g: Geometry, dims: Sequence[int], group: Sequence[int | None]) -> Geometry:
    """The same elements for a tensor of ``dims``, each serving a group of neighbours.

    ``group[d]`` neighbours along dimension d are one element; None stands for all of them. A digit
    of that size and stride 0 says so, inside all others.
    """
    wanted = tuple(1 if n is None else -(-m // n) for m, n in zip(dims, group, strict=False))
    if len(dims) != len(group) or g.dims != wanted:
        raise InvalidDescriptor(
            f"groups of {tuple(group)} make {wanted} of {tuple(dims)}, got dims {g.dims}",
            code="BROADCAST",
        )
    if None in group:
        sizes = [m if n is None else k for m, n, k in zip(dims, group, wanted, strict=True)]
        g = broadcast_to(g, sizes)
    if g.format.structure.tail or any(len(p.digit.dims) > 1 or p.digit.flip for p in g.placed):
        raise Unsupported(
            "NOT_A_TAG",
            f"{g.format} cannot be repeated for groups: expected a format whose dimensions are "
            f"neither fused nor turned around",
        )
    many = {d: n for d, n in enumerate(group) if n is not None and n > 1}
    each = [many.get(d, 1) for d in range(len(dims))]
    placed = [
        replace(p, digit=replace(p.digit, step=p.digit.step * each[p.digit.dims[0]]))
        for p in g.placed
    ]
    shared = [Placed(Digit(d, n, 1), n, 0, fixed_stride=True) for d, n in many.items()]
    layout = Layout(len(dims), tuple(p.digit for p in (*placed, *shared)))
    return Geometry(
        tuple(dims), Format.from_layout(layout), (*placed, *shared),
        tuple(n * k for n, k in zip(g.padded_dims, each, strict=True)),
        tuple((a * k, b * k) for (a, b), k in zip(g.padding, each, strict=True)), g.offset0,
    )  # fmt: skip


def permute_axes(g: Geometry, permutation: Sequence[int]) -> Geometry:
    """Axis d becomes axis ``permutation[d]`` (the inverse of numpy's transpose)."""
    ndims = len(g.dims)
    if not ndims or sorted(permutation) != list(range(ndims)):
        raise InvalidDescriptor(
            f"expected each of 0..{ndims - 1} once, got the permutation {tuple(permutation)}",
            code="NOT_A_PERMUTATION",
        )
    if g.format.kind == "any":
        dims = _moved(g.dims, permutation)
        return replace(g, dims=dims, padded_dims=dims)
    _check_operable(g)
    layout = g.format.structure
    digits = tuple(
        replace(p.digit, dim=tuple(permutation[d] for d in p.digit.dims)) for p in g.placed
    )
    permuted = Layout(ndims, digits, _moved(layout.align, permutation))
    placed = tuple(replace(p, digit=d) for p, d in zip(g.placed, digits, strict=True))
    return Geometry(
        _moved(g.dims, permutation),
        Format.from_layout(permuted),
        placed,
        _moved(g.padded_dims, permutation),
        tuple(_moved(g.padding, permutation)),
        g.offset0,
    )


def _moved(values: Sequence[T], permutation: Sequence[int]) -> tuple[T, ...]:
    result = list(values)
    for value, to in zip(values, permutation, strict=True):
        result[to] = value
    return tuple(result)


def _check_operable(g: Geometry) -> None:
    """Raise unless permute_axes and broadcast_to are possible: a blocked layout of known sizes."""
    if RUNTIME in (*g.dims, *strides_of(g)):
        raise InvalidDescriptor("some sizes are unknown: give them first", code="RUNTIME_SIZES")
    _check_kind(g)
    if g.format.structure.tail:
        raise Unsupported("FUSED_INDEX", f"{g.format} has two orders: use the whole tensor")


# --- reshape --------------------------------------------------------------------------------------


def reshape(g: Geometry, dims: Sequence[int]) -> Geometry:
    """The same elements under other dims, if the strides allow it; both are in row-major order.

    Dimensions of size 1 may be added and dropped. A dimension of any stride may be split, and
    dense neighbours may be merged, unless one is blocked or padded.
    """
    if not g.dims:
        raise InvalidDescriptor("the empty descriptor has no elements to reshape", code="EMPTY")
    if RUNTIME in dims or RUNTIME in (*g.dims, *strides_of(g)):
        raise InvalidDescriptor("some sizes are unknown: give them first", code="RUNTIME_SIZES")
    if prod(n or 1 for n in g.dims) != prod(n or 1 for n in dims):
        raise InvalidDescriptor(
            f"{tuple(dims)} has another number of elements than {g.dims}", code="RESHAPE_VOLUME"
        )
    if g.format.kind == "any":
        zero = ((0, 0),) * len(dims)
        return Geometry(tuple(dims), g.format, (), tuple(dims), zero)
    if tuple(dims) == g.dims and not g.format.structure.is_tag:
        return g
    _check_kind(g)
    if any(map(any, g.padding)):
        raise Unsupported("HAS_PADDING", f"{g.format} with padding {g.padding}: no reshape of it")
    return _Reshape(g, tuple(dims)).run()


class _Reshape:
    """Goes over both shapes from the last dimension to the first."""

    def __init__(self, g: Geometry, dims: tuple[int, ...]) -> None:
        self.g, self.dims = g, dims
        self.strides_in = strides_of(g)
        self.blocks_in = blocks_of(g)
        self.block = g.format.structure.blocks
        self.padded = list(dims)
        self.strides = [0] * len(dims)
        self.target: dict[int, int] = {}
        self.last: int | None = None

    def run(self) -> Geometry:
        """The reshaped geometry."""
        i, o = len(self.g.dims) - 1, len(self.dims) - 1
        while i >= 0 or o >= 0:
            if i >= 0 and self.g.dims[i] == 1:
                o -= self._one(i, o)
                i -= 1
            elif o >= 0 and self.dims[o] == 1:
                self.strides[o] = self._inserted_stride()
                o -= 1
            else:
                i, o = self._group(i, o)
        blocks = [(size, self.target[d]) for size, d in self.blocks_in if d in self.target]
        return by_blocking(self.dims, self.padded, self.strides, blocks, self.g.offset0)

    def _one(self, i: int, o: int) -> int:
        """An input dimension of size 1: dropped (0), or kept with its block (1).

        A dimension of size 1 that a region cut out of a block keeps the block. oneDNN drops the
        dimension and gives the block to another one, which moves elements.
        """
        if self.g.padded_dims[i] == 1 and self.block[i] == 1:
            self.last = i
            return 0
        if o < 0 or self.dims[o] != 1:
            self._refuse("RESHAPE_BLOCKED", i, "is part of a block and cannot be dropped")
        self._keep(i, o)
        return 1

    def _keep(self, i: int, o: int) -> None:
        self.padded[o], self.strides[o] = self.g.padded_dims[i], self.strides_in[i]
        self.target[i] = o
        self.last = i

    def _inserted_stride(self) -> int:
        if self.last is None:
            return prod(size for size, _ in self.blocks_in)
        return self.strides_in[self.last] * self.g.dims[self.last] // self.block[self.last]

    def _group(self, i: int, o: int) -> tuple[int, int]:
        """The smallest groups of equal product that end at i and o; returns where they begin."""
        first_i, first_o = i, o
        while i >= 0 and o >= 0:
            left, right = prod(self.g.dims[i : first_i + 1]), prod(self.dims[o : first_o + 1])
            if left == right:
                break
            if 0 in (left, right):
                self._refuse("RESHAPE_ZERO", i, "has no elements and cannot be split or joined")
            i, o = (i - 1, o) if left < right else (i, o - 1)
        if i < 0 or o < 0:
            self._refuse("RESHAPE_VOLUME", max(i, 0), "does not find its elements in the new dims")
        if (i, o) == (first_i, first_o):
            self._keep(i, o)
        else:
            self._check_dense(i, first_i)
            stride = self.strides_in[first_i]
            for k in range(first_o, o - 1, -1):
                self.strides[k] = stride
                stride *= self.dims[k]
            self.last = i
        return i - 1, o - 1

    def _check_dense(self, first: int, last: int) -> None:
        g = self.g
        for d in range(first, last + 1):
            if self.block[d] > 1 or g.padded_dims[d] != g.dims[d]:
                self._refuse("RESHAPE_BLOCKED", d, "is blocked or padded: no splitting or joining")
        for d in range(first + 1, last + 1):
            if g.dims[d] * self.strides_in[d] != self.strides_in[d - 1]:
                self._refuse(
                    "RESHAPE_STRIDES", d, f"and {d - 1} are not dense: they cannot be joined"
                )

    def _refuse(self, code: str, d: int, why: str) -> NoReturn:
        raise InvalidDescriptor(
            f"cannot reshape {self.g.dims} to {self.dims}: dimension {d} {why}", code=code
        )


def offsets(expr: Expr, dims: Sequence[int]) -> NDArray[np.int64]:
    """An expression of ``i0 i1 ...`` at every index. Raises `InvalidDescriptor`."""
    try:
        grid = np.ogrid[tuple(slice(0, n) for n in dims)]
        env = {f"i{d}": axis.astype(np.int64) for d, axis in enumerate(grid)}
        return np.broadcast_to(expr.evaluate(env), dims).astype(np.int64)
    except MemoryError as error:
        raise InvalidDescriptor(
            f"the offsets of all elements of dims {tuple(dims)} do not fit into memory: ask "
            f"offset(...) for some of them"
        ) from error
