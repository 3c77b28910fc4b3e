"""Neighbours along one dimension, or a block of two, loaded and stored at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from ..errors import InvalidArgument
from ..formats.digits import RUNTIME
from ..tensors.dtypes import ROWS, DType
from .tensor import IndexedTensor

WIDTHS = (16, 8, 4, 2)


@dataclass(frozen=True, slots=True)
class VectorPart:
    """``width`` neighbours along dimension ``dim``, each ``every`` lanes; ``tail``: some beyond."""

    dim: int
    width: int
    every: int
    tail: bool


@dataclass(frozen=True, slots=True)
class Vector:
    """Neighbours along one dimension, or a block of several: ``parts``, outermost first.

    ``memory`` is the C type of elements, ``value`` that of lanes; the two differ for f16, whose
    values are floats unless half lanes are asked for. ``whole``: neighbours from a multiple of
    their width on are contiguous, also beyond the last element; ``dense``: only up to the last
    element. ``tail``: the last vector may have lanes beyond the tensor.
    """

    parts: tuple[VectorPart, ...]
    memory: str
    value: str
    mask: str
    whole: bool
    dense: bool

    @property
    def width(self) -> int:
        """The number of lanes."""
        return prod(part.width for part in self.parts)

    @property
    def tail(self) -> bool:
        """Whether the last vector may have lanes beyond the tensor."""
        return any(part.tail for part in self.parts)

    @property
    def is_half(self) -> bool:
        """Whether loads and stores convert."""
        return self.memory == "half" and self.value != "half"

    def name(self, letters: str) -> str:
        """What macros are called by: ``F16``, ``O4I4``."""
        return "".join(f"{letters[part.dim].upper()}{part.width}" for part in self.parts)


def vector(t: IndexedTensor, asked: str | None) -> Vector | None:
    """The vectors of a tensor: those that ``"f16"`` or ``"o4i4"`` names, or of the innermost block.

    None if ``asked`` is empty, and by default if there is no such block or no element type. With
    ``"half"`` after it, or by itself, lanes of f16 elements are half instead of float.
    Raises `InvalidArgument`.
    """
    words = asked.split() if asked is not None else []
    lanes = "half" if words[-1:] == ["half"] else "float"
    rest = " ".join(words[:-1] if lanes == "half" else words)
    wanted = None if asked is None or (lanes == "half" and not rest) else rest
    dtype = t.known.desc.dtype if t.known.desc else None
    last = t.format.digits[-1]
    if wanted is None:
        fits = [w for w in WIDTHS if last.size is not None and last.size % w == 0]
        able = dtype is not None and not dtype.is_packed and last.step == 1 and not last.flip
        if not fits or not able or len(last.dims) > 1:
            return None
        block = [(last.dims[0], fits[0])]
    elif not wanted:
        return None
    else:
        block = _read(t, wanted)
    if dtype is None or dtype.is_packed:
        raise InvalidArgument(
            f"vector: got {wanted!r} for elements of {dtype or 'no type'}: give a descriptor with "
            f"an element type of {', '.join(row.name for row in ROWS if not row.is_packed)}"
        )
    if lanes == "half" and dtype.name != "f16":
        raise InvalidArgument(f"vector: got {asked!r} for elements of {dtype}: half is for f16")
    return _vector(t, dtype, block, lanes)


def _read(t: IndexedTensor, wanted: str) -> list[tuple[int, int]]:
    """Dimensions and widths, outermost first."""
    found = [(m[1], int(m[2])) for m in re.finditer(r"([a-z])([0-9]+)", wanted)]
    names = [name for name, _ in found]
    legal = (
        "".join(f"{name}{n}" for name, n in found) == wanted
        and all(name in t.letters for name in names)
        and len({*names}) == len(names)
        and all(n in WIDTHS for _, n in found)
        and prod(n for _, n in found) in WIDTHS
    )
    if not legal:
        raise InvalidArgument(
            f"vector: got {wanted!r}, expected one of {', '.join(t.format.dims)} and a width of 2, "
            f"4, 8 or 16, such as {t.letters[min(1, len(t.letters) - 1)]}16, or several of at "
            f"most 16 lanes together, such as {''.join(f'{c}4' for c in t.letters[:2])}"
        )
    return [(t.letters.index(name), n) for name, n in found]


def _vector(t: IndexedTensor, dtype: DType, block: list[tuple[int, int]], lanes: str) -> Vector:
    known = t.known
    sizes = [known.dims[dim] for dim, _ in block]
    mine = _is_innermost(t, block)
    whole = mine and all(_is_whole(t, dim, width) for dim, width in block)
    # A single run of an open digit has its elements side by side, but nothing after the last.
    dense = mine and len(block) == 1 and t.format.digits[-1].size is None
    memory = dtype.opencl
    value = lanes if memory == "half" else memory
    wide = 4 if value == "float" else dtype.nbytes
    parts = tuple(
        VectorPart(
            dim, width, prod(w for _, w in block[k + 1 :]), size == RUNTIME or size % width != 0
        )
        for k, ((dim, width), size) in enumerate(zip(block, sizes, strict=True))
    )
    mask = {1: "char", 2: "short", 4: "int", 8: "long"}[wide]
    return Vector(parts, memory, value, mask, whole, dense)


def _is_innermost(t: IndexedTensor, block: list[tuple[int, int]]) -> bool:
    """Whether the last digits number the elements of a block, in its order, without gaps."""
    if t.format.structure.tail is not None or len(t.format.digits) < len(block):
        return False
    digits = t.format.digits[-len(block) :]
    strides = [n.stride for n in (t.numbers or ())[-len(block) :]]
    run = 1
    for k in reversed(range(len(block))):
        dim, width = block[k]
        digit = digits[k]
        inside = k == 0 or digit.size == width  # the outermost may go on
        if digit.dims != (dim,) or digit.step != 1 or digit.flip or not inside:
            return False
        if strides and strides[k] != run:
            return False
        run *= width
    return True


def _is_whole(t: IndexedTensor, dim: int, width: int) -> bool:
    """Whether vectors along a dimension may reach into the padding of its last block."""
    known = t.known
    digit = next(d for d in reversed(t.format.digits) if d.dims == (dim,))
    lower, size = known.padding[dim][0], known.dims[dim]
    aligned = lower != RUNTIME and lower % width == 0
    # A region of a larger tensor: the elements after its last one may be of other regions.
    piece = known.desc is not None and known.desc.padded_dims[dim] % t.format.structure.blocks[dim]
    blocked = digit.size is not None and digit.size % width == 0
    return aligned and blocked and not (piece and size != RUNTIME and size % width)
