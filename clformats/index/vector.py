"""Several neighbours along one dimension, loaded and stored at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InvalidArgument
from ..formats.digits import RUNTIME
from ..tensors.dtypes import ROWS, DType
from .tensor import Tensor

WIDTHS = (16, 8, 4, 2)


@dataclass(frozen=True, slots=True)
class Vector:
    """``width`` neighbours along dimension ``dim``.

    ``memory`` is the C type of elements, ``value`` that of lanes; the two differ for f16, whose
    values are floats. ``whole``: neighbours from a multiple of ``width`` on are contiguous, also
    beyond the last element; ``dense``: only up to the last element. ``tail``: the last vector may
    have lanes beyond the tensor.
    """

    dim: int
    width: int
    memory: str
    value: str
    mask: str
    whole: bool
    dense: bool
    tail: bool

    @property
    def is_half(self) -> bool:
        """Whether loads and stores convert."""
        return self.memory == "half"


def vector(t: Tensor, wanted: str | None) -> Vector | None:
    """The vectors of a tensor: those that ``"f16"`` names, or those of the innermost block.

    None if ``wanted`` is empty, and by default if there is no such block or no element type.
    Raises `InvalidArgument`.
    """
    dtype = t.known.desc.dtype if t.known.desc else None
    last = t.format.digits[-1]
    if wanted is None:
        fits = [w for w in WIDTHS if last.size is not None and last.size % w == 0]
        able = dtype is not None and not dtype.is_packed and last.step == 1 and not last.flip
        if not fits or not able or len(last.dims) > 1:
            return None
        dim, width = last.dims[0], fits[0]
    elif not wanted:
        return None
    else:
        dim, width = _read(t, wanted)
    if dtype is None or dtype.is_packed:
        raise InvalidArgument(
            f"vector: got {wanted!r} for elements of {dtype or 'no type'}: give a descriptor with "
            f"an element type of {', '.join(row.name for row in ROWS if not row.is_packed)}"
        )
    return _vector(t, dtype, dim, width)


def _read(t: Tensor, wanted: str) -> tuple[int, int]:
    match = re.fullmatch(r"([a-z])(2|4|8|16)", wanted)
    if match is None or match[1] not in t.letters:
        raise InvalidArgument(
            f"vector: got {wanted!r}, expected one of {', '.join(t.format.dims)} and a width of 2, "
            f"4, 8 or 16, such as {t.letters[min(1, len(t.letters) - 1)]}16"
        )
    return t.letters.index(match[1]), int(match[2])


def _vector(t: Tensor, dtype: DType, dim: int, width: int) -> Vector:
    last, known = t.format.digits[-1], t.known
    one_apart = t.numbers[-1].stride == 1 if t.numbers else True
    mine = last.dims == (dim,) and last.step == 1 and not last.flip and one_apart
    mine = mine and t.format.structure.tail is None
    lower = known.padding[dim][0]
    aligned = lower != RUNTIME and lower % width == 0
    size = known.dims[dim]
    # A region of a larger tensor: the elements after its last one may be of other regions.
    piece = known.desc is not None and known.desc.padded_dims[dim] % t.format.structure.blocks[dim]
    whole = mine and aligned and last.size is not None and last.size % width == 0
    memory = dtype.opencl
    value = "float" if memory == "half" else memory
    wide = 4 if memory == "half" else dtype.nbytes
    return Vector(
        dim,
        width,
        memory,
        value,
        mask={1: "char", 2: "short", 4: "int", 8: "long"}[wide],
        whole=whole and not (piece and size != RUNTIME and size % width),
        dense=mine and last.size is None,
        tail=size == RUNTIME or size % width != 0,
    )
