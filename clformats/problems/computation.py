"""The computation of a kernel between loading and storing, and the other tensors that it reads.

Attributes of a reorder and a map over several tensors are planned alike: as a formula over the
value that is moved, *operands* and *scalars*. Operands are tensors that are read at the logical
index that is written; scalars are arguments of the kernel. A scale for each channel is an operand:
a tensor of the logical dims with a stride of 0 along the dimensions in which it does not vary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..tensors import operations
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType
from ..values.attr import OLD, VALUE, Attr, Values, compute_type
from ..values.bounds import HELD_WITHIN, Range, held, is_small, is_whole
from ..values.formula import Formula
from ..values.groups import Group


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that the kernel reads: ``name`` is its variable in the formula."""

    name: str
    desc: MemoryDesc


@dataclass(frozen=True, slots=True)
class Computation:
    """``formula`` over ``value``, which is moved, and over operands and scalars.

    Computed in the type ``real``, f32 or f64. Whatever the elements are, the result is
    `clformats.values.bounds.is_small`, or the formula `is_whole` and becomes bytes, if it says so.
    If ``held`` names a variable, kernels clamp it first: see `clformats.values.bounds.held`.
    """

    formula: Formula
    value: str
    operands: tuple[Operand, ...]
    scalars: tuple[str, ...]
    real: DType
    small: bool = False
    whole: bool = False
    held: str = ""

    @property
    def old(self) -> Operand | None:
        """The operand that is the old destination, if there is one."""
        return next((o for o in self.operands if o.name == OLD), None)

    @property
    def reads_old(self) -> bool:
        """Whether an operand is the old destination."""
        return self.old is not None

    def __str__(self) -> str:
        over = [f"{o.name} = {o.desc}" for o in self.operands] + list(self.scalars)
        return f"{self.formula}" + (f" with {'; '.join(over)}" if over else "")


def from_attr(attr: Attr, src: MemoryDesc, dst: MemoryDesc) -> Computation | None:
    """The computation of attributes and of the destination's `Extra`; None if there is none.

    Raises `InvalidAttr` if values do not fit the dims.
    """
    formula = _adjusted(attr.formula, dst)
    if attr.is_empty and formula == attr.formula:
        return None
    real = compute_type(src.dtype, dst.dtype)
    attr.resolve(dst.dims, None, real)
    operands = [
        Operand(name, _of_values(values, dst.dims, real))
        for name, values in attr.terms.items() if values.mask
    ]  # fmt: skip
    if "beta" in attr.terms:
        operands.append(Operand(OLD, dst))
    scalars = tuple(name for name, values in attr.terms.items() if not values.mask)
    types = {VALUE: src.dtype, OLD: dst.dtype}
    return Computation(
        formula, VALUE, tuple(operands), scalars, real, *_bounds(formula, types, dst.dtype, attr)
    )


def _bounds(
    formula: Formula, types: Mapping[str, DType], dst: DType, attr: Attr | None = None
) -> tuple[bool, bool, str]:
    """Whether the formula is small, whether it is whole, and which variable is held."""
    ranges = _ranges(types, attr)
    terms = attr.terms if attr else {}
    parts = {n for n, t in terms.items() if t.values is not None and (t.values % 1).any()}
    whole = {n: r for n, r in ranges.items() if n not in parts}
    if dst.is_float or dst.nbytes > 1:
        return is_small(formula, ranges), False, ""
    name, later = held(formula, whole), {n for n, t in terms.items() if t.values is None}
    if name in later and is_small(formula, {**ranges, name: (0.0, HELD_WITHIN)}):
        return True, False, name
    return is_small(formula, ranges), is_whole(formula, whole), ""


def _ranges(types: Mapping[str, DType], attr: Attr | None = None) -> dict[str, Range]:
    """How far from zero elements of integer types are, and values of attributes that are known."""
    ranges = {name: (0.0, float(max(map(abs, t.limits))))
              for name, t in types.items() if not t.is_float}  # fmt: skip
    for name, term in attr.terms.items() if attr else ():
        if term.values is not None and term.values.size:
            far = abs(term.values)
            ranges[name] = float(far.min()), float(far.max())
    return ranges


def _of_values(values: Values, dims: Sequence[int], real: DType) -> MemoryDesc:
    """Where the value of each element lies, of values in row-major order."""
    if values.group:
        return for_groups(MemoryDesc(values.sizes(dims), real), dims, values.group)
    return MemoryDesc(dims, real, strides=values.strides(dims))


def for_groups(desc: MemoryDesc, dims: Sequence[int], group: Group) -> MemoryDesc:
    """The same elements, each for ``group`` neighbours of a tensor of ``dims``."""
    return MemoryDesc.of(operations.grouped(desc.geometry, dims, group), desc.dtype)


def _is_grouped(desc: MemoryDesc) -> bool:
    """Whether neighbours along a dimension are one element."""
    return any(p.stride == 0 and p.digit.size is not None and p.size > 1 for p in desc.placed)


def _adjusted(formula: Formula, dst: MemoryDesc) -> Formula:
    """The formula with the factor that the destination's `Extra` asks for."""
    adjust = dst.extra.scale_adjust if dst.extra else 1.0
    return formula if adjust == 1 else formula * Formula("number", repr(adjust))


def over_tensors(
    formula: Formula,
    inputs: Sequence[tuple[str, MemoryDesc]],
    dst: MemoryDesc,
    moving: str = "",
) -> tuple[MemoryDesc, Computation]:
    """The tensor that is moved and the computation, for a map from ``inputs`` to ``dst``.

    That is the input ``moving``, else the first one in another format than the destination, so that
    its transposition is done in registers; the others are operands. The variable `OLD` is the
    destination itself.
    """
    own = [i for i in inputs if i[0] == moving or (not moving and not _is_grouped(i[1]))] or inputs
    moved = next((i for i in own if i[1].format != dst.format), own[0])
    old = [(OLD, dst)] if OLD in formula.names else []
    operands = tuple(Operand(name, desc) for name, desc in [*inputs, *old] if name != moved[0])
    real = compute_type(dst.dtype, *(desc.dtype for _, desc in inputs))
    types = {name: desc.dtype for name, desc in [*inputs, *old]}
    formula = _adjusted(formula, dst)
    return moved[1], Computation(
        formula, moved[0], operands, (), real, *_bounds(formula, types, dst.dtype)
    )
