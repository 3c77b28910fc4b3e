"""Decoding as a map over plain tensors: the planes of a quantised one, and its formula.

So decoding has what reorders with scales and zero points for groups have: the codes are moved, the
parameters are operands that are read where they lie. On GPUs that serves layouts in which rows are
no runs of bytes, and destinations that are not made of rows.
"""

from __future__ import annotations

from contextlib import suppress

from ..errors import Error
from ..problems.computation import Computation, for_groups, over_tensors
from ..quantised.desc import QuantisedDesc
from ..quantised.planes import Field
from ..quantised.types import WHOLE
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_dtype
from ..values.formula import Formula
from .apart import PlaneMove, in_buffer, plane_of

COMPUTED = ("f32", "f16", "bf16")
"""The element types that values become in one step from f32."""


def decoding_by_map(
    src: QuantisedDesc, dst: MemoryDesc, *, apart: bool = False
) -> tuple[MemoryDesc, Computation] | None:
    """The plane of the codes, and what is computed of it and of the other planes, for ``dst``.

    They lie within the bytes of the tensor, or with ``apart`` of their buffers. None where a plane
    is no tensor, or an element type of the table's has no codes.
    """
    fields = [src.fields[name] for name in src.dtype.formula.names]
    codes = [f.name for f in fields if f.group == (1, 1)]
    named, inputs = dict[str, Formula](), list[tuple[str, MemoryDesc]]()
    if dst.dtype.name not in COMPUTED or dst.format.image or dst.sums or len(codes) != 1:
        return None
    for f in fields:
        stored = _stored(f)
        desc = plane_of(src, f, stored[0]) if stored and len(f.dims) == dst.ndims else None
        if stored is None or desc is None:
            return None
        if apart:
            desc = in_buffer(desc, src.buffers[f.planes[0].buffer])
        named[f.name] = stored[1]
        inputs.append((_variable(f), _for_each(desc, f, dst)))
    moving = _variable(src.fields[codes[0]])
    return over_tensors(src.dtype.formula.with_names(named), inputs, dst, moving)


def adding(move: PlaneMove) -> Computation | None:
    """What is computed of each code that is moved; None where it is moved as it is."""
    if not move.added:
        return None
    stored = Formula("name", "in_code")
    text = _added(stored, move.added, 1 << move.src.dtype.bits)
    return over_tensors(text, [("in_code", move.src)], move.dst)[1]


def _added(stored: Formula, number: int, wraps: int) -> Formula:
    """A code plus a number, modulo its range: what is no less than the difference goes back."""
    turned = Formula("call", "step", (_number(wraps - number), stored)) * _number(wraps)
    return stored + _number(number) - turned


def buffers_of(src: QuantisedDesc, computation: Computation) -> tuple[str, ...]:
    """The first planes of the buffers that a map reads: that of the codes, and of each operand."""
    by_variable = {_variable(f): f for f in src.fields.values()}
    names = computation.value, *(o.name for o in computation.operands)
    return tuple(src.buffers[by_variable[n].planes[0].buffer].first for n in names)


def _variable(f: Field) -> str:
    """The name in the kernel: no word of OpenCL C or of the kernel begins like it."""
    return f"in_{f.name}"


def _stored(f: Field) -> tuple[str, Formula] | None:
    """The element type of what is stored, and the value of it; None where there is no such type."""
    name, kind, (wraps, half) = f.dtype.name, f.dtype.kind, (1 << f.bits, 1 << f.bits - 1)
    stored = Formula("name", _variable(f))
    if f.bias and kind == "unsigned":
        stored = _added(stored, wraps - f.bias, wraps)
    elif f.bias:
        if kind != "signed" or f.bias % wraps != half:
            return None
        name, stored = f"u{f.bits}", stored - _number(half)
    with suppress(Error):
        as_dtype(name)
        return name, stored
    return None


def _number(value: int) -> Formula:
    return Formula("number", str(value))


def _for_each(desc: MemoryDesc, f: Field, dst: MemoryDesc) -> MemoryDesc:
    """A field with a value for each element: each serves the elements of a group."""
    if f.group == (1, 1):
        return desc
    group = [1] * (dst.ndims - 2) + [None if n == WHOLE else n for n in f.group]
    return for_groups(desc, dst.dims, tuple(group))
