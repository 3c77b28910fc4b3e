"""The numbers of a tensor in generated source: their names and values.

Every number is a macro. A known number is a constant; others come from the user's own macros, from
kernel arguments of the same name, or from clDNN's ``shape_info``. Numbers that follow from others,
such as pitches, are expressions of these, or constants if all of these are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Literal, get_args

from ..errors import InvalidArgument, InvalidDescriptor
from ..formats.digits import RUNTIME, Digit, Placed, TailAt, offset_expr, place, tail_at
from ..formats.expr import Const, Expr, Var
from ..formats.format import Format
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import Padding

Form = Literal["macros", "arguments", "shape_info"]
FORMS: tuple[str, ...] = get_args(Form)
INT_MAX = 2**31 - 1
SLOTS = 8
"""The sizes of a tensor in ``shape_info``: b, f, v, u, w, z, y, x, 1 for those it lacks."""


@dataclass(frozen=True, slots=True)
class Known:
    """The numbers known of a tensor when its source is made; RUNTIME stands for the others."""

    format: Format
    dims: tuple[int, ...]
    padding: Padding
    desc: MemoryDesc | None

    @property
    def is_static(self) -> bool:
        """Whether every number is known."""
        return self.desc is not None and not self.desc.has_runtime

    @property
    def is_wide(self) -> bool:
        """Whether offsets exceed 32 bits; see `beyond_32_bits`."""
        return self.desc is not None and beyond_32_bits(self.desc)


def beyond_32_bits(desc: MemoryDesc) -> bool:
    """Whether offsets exceed 32 bits; unknown sizes are assumed not to."""
    if desc.has_runtime:
        return prod(n for n in desc.padded_dims if n != RUNTIME) > INT_MAX
    return desc.span_nbytes * 8 // desc.dtype.bits > INT_MAX


def of_format(fmt: Format, padded: str = "") -> Known:
    """A format without sizes; ``padded`` are the letters of dimensions with padding."""
    for letter in padded:
        if letter not in fmt.letters:
            raise InvalidArgument(f"padded: {fmt} has {', '.join(fmt.dims)}, got {letter!r}")
    pads = tuple((RUNTIME, RUNTIME) if c in padded else (0, 0) for c in fmt.letters)
    return Known(fmt, (RUNTIME,) * fmt.structure.ndims, pads, None)


def of_desc(desc: MemoryDesc) -> Known:
    """A descriptor, possibly with sizes known at execution only."""
    if not desc.has_layout:
        raise InvalidDescriptor(f"{desc} has no layout: choose a concrete format")
    if desc.has_runtime:
        dense = place(desc.format.structure, desc.padded_dims)
        if [p.stride for p in dense] != [p.stride for p in desc.placed] or desc.offset0:
            raise InvalidDescriptor(
                f"{desc} has unknown sizes and strides of its own: index source takes unknown "
                f"sizes of dense tensors only, give numbers for *"
            )
    return Known(desc.format, desc.dims, desc.padding, desc)


@dataclass(frozen=True, slots=True)
class IndexedTensor:
    """A tensor in generated source.

    The expressions name macros: ``sizes``, ``lower`` paddings (0 where there is none) and
    ``extents`` have one for each dimension, ``strides`` one for each digit. ``numbers`` are the
    digits in memory where all is known.
    """

    known: Known
    prefix: str
    form: Form
    wide: bool
    sizes: tuple[Expr, ...]
    lower: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    offset0: Expr
    defines: tuple[tuple[str, dict[str, str]], ...]
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def format(self) -> Format:
        """The format."""
        return self.known.format

    @property
    def letters(self) -> str:
        """The letters of its dimensions."""
        return self.format.letters

    @property
    def index_type(self) -> str:
        """The type of coordinates and offsets.

        It is unsigned, so that every compiler turns a division by a power of two into a shift and
        the remainder into a mask, and that a coordinate modulo a size never leaves the tensor.
        """
        return "ulong" if self.wide else "uint"

    @property
    def numbers(self) -> tuple[Placed, ...] | None:
        """The digits in memory, if every number is known."""
        return self.known.desc.placed if self.known.desc and self.known.is_static else None

    @property
    def tail(self) -> TailAt | None:
        """The tail, whose digits have another order."""
        return tail_at(self.format.structure, self.sizes)

    @property
    def offset(self) -> Expr:
        """The offset of the element at the coordinates, which are named by their letters."""
        indices = [Var(c) + pad for c, pad in zip(self.letters, self.lower, strict=True)]
        digits = [Placed(d, d.size or 0, 0) for d in self.format.digits]
        return offset_expr(digits, indices, self.extents, self.strides, self.offset0, self.tail)


def tensor(known: Known, prefix: str, form: Form, *, wide: bool, at: int = 0) -> IndexedTensor:
    """Name the numbers of a tensor; ``at`` is where it begins in ``shape_info``."""
    return _Naming(known, prefix, form, wide, at).tensor()


def digit_name(letters: str, digit: Digit) -> str:
    """``f_16`` for the digit of f that counts in steps of 16."""
    return f"{''.join(letters[d] for d in digit.dims)}_{digit.step}"


class _Naming:
    """Collects the macros of a tensor in the order in which they are printed."""

    def __init__(self, known: Known, prefix: str, form: Form, wide: bool, at: int) -> None:  # noqa: FBT001  # one call
        self.known, self.prefix, self.form, self.wide, self.at = known, prefix, form, wide, at
        self.letters = known.format.letters
        self.layout = known.format.structure
        self.taken = at + max(SLOTS, len(self.letters))
        self.parameters: list[str] = []
        self.sizes: dict[str, str] = {}
        self.paddings: dict[str, str] = {}
        self.memory: dict[str, str] = {}
        self.pitches: dict[str, str] = {}

    def tensor(self) -> IndexedTensor:
        ndims = len(self.letters)
        sizes = [self._given("SIZE", d, self.known.dims[d], self.sizes) for d in range(ndims)]
        lower, upper = self._paddings()
        extents = [self._extent(d, sizes[d], lower[d], upper[d]) for d in range(ndims)]
        strides, places = self._strides(extents)
        length = self._product(sizes)
        self.memory[f"{self.prefix}_LENGTH"] = _value(length)
        self.memory[f"{self.prefix}_PLACES"] = _value(places)
        desc = self.known.desc
        at = desc.offset0 if desc else 0
        self.pitches = dict(reversed(self.pitches.items())) | {f"{self.prefix}_OFFSET": str(at)}
        by_shape = self.form == "shape_info" and not self.known.is_static
        parameters = ["__global const int *shape_info"] if by_shape else self._declared()
        return IndexedTensor(
            self.known, self.prefix, self.form, self.wide,
            sizes=tuple(Var(self._name("SIZE", d)) for d in range(ndims)),
            lower=tuple(self._pad_name(d, lower[d]) for d in range(ndims)),
            extents=tuple(Var(self._name("EXTENT", d)) for d in range(ndims)),
            strides=tuple(strides),
            offset0=Var(f"{self.prefix}_OFFSET") if at else Const(0),
            defines=tuple(self._groups()),
            parameters=tuple(parameters),
            arguments=("shape_info",) if by_shape else tuple(self.parameters),
        )  # fmt: skip

    def _groups(self) -> Iterator[tuple[str, dict[str, str]]]:
        yield "sizes", self.sizes
        yield "padding", self.paddings
        yield (
            "in memory: sizes with padding, in whole blocks; elements, and places for them",
            self.memory,
        )
        yield (
            "strides, of blocks where there are some, in elements; where the first element lies",
            self.pitches,
        )

    def _name(self, what: str, d: int) -> str:
        return f"{self.prefix}_{what}_{self.letters[d].upper()}"

    def _pad_name(self, d: int, lower: Expr) -> Expr:
        return lower if lower == Const(0) else Var(self._name("PAD_BEFORE", d))

    def _given(self, what: str, d: int, n: int, group: dict[str, str], number: int = -1) -> Expr:
        """A number of the tensor itself: defined if it is known, else taken from outside."""
        name = self._name(what, d)
        if n != RUNTIME:
            group[name] = str(n)
            return Const(n)
        if self.form == "arguments":
            self.parameters.append(name)
        if self.form == "shape_info":
            number = self.at + slot(d, len(self.letters)) if number < 0 else number
            group[name] = f"(({'ulong' if self.wide else 'uint'})shape_info[{number}])"
        return Var(name)

    def _paddings(self) -> tuple[list[Expr], list[Expr]]:
        sides: tuple[list[Expr], list[Expr]] = [], []
        for d, pads in enumerate(self.known.padding):
            for side, n, what in zip(sides, pads, ("PAD_BEFORE", "PAD_AFTER"), strict=True):
                if pads == (0, 0):
                    side.append(Const(0))
                    continue
                side.append(self._given(what, d, n, self.paddings, self.taken))
                self.taken += n == RUNTIME
        return sides

    def _extent(self, d: int, size: Expr, lower: Expr, upper: Expr) -> Expr:
        """The size with padding, in whole blocks."""
        block = self.layout.blocks[d]
        name = self._name("EXTENT", d)
        known = self.known.desc.padded_dims[d] if self.known.desc else RUNTIME
        if known == RUNTIME:
            multiple = lcm(block, self.layout.align[d])
            extent = (lower + size + upper + (multiple - 1)) // multiple * multiple
            self.memory[name] = _value(extent)
        else:
            extent = Const(known)
            self.memory[name] = str(known)
        if block > 1:
            self.memory[self._name("BLOCK", d)] = str(block)
            self.memory[self._name("BLOCKS", d)] = _value(
                Const(-(-known // block)) if known != RUNTIME else Var(name) // block
            )
        return Const(known) if known != RUNTIME else Var(name)

    def _strides(self, extents: Sequence[Expr]) -> tuple[list[Expr], Expr]:
        """The stride of each digit by its name or its number, and the number of places."""
        desc = self.known.desc
        dense = place(self.layout, [RUNTIME] * self.layout.ndims)
        strides: list[Expr] = []
        stride: Expr = Const(1)
        for p in reversed(desc.placed if desc else dense):
            if p.stride != RUNTIME:
                stride = Const(p.stride)
            name = self._pitch_name(p.digit)
            if p.digit.size is not None and p.fixed_stride:
                strides.append(stride)
            else:
                self.pitches[name] = self._wide(stride)
                strides.append(Var(name))
                stride = stride if isinstance(stride, Const) else Var(name)
            stride = self._outer(stride, name, p.digit, extents)
        places = stride
        if desc is not None and self.known.is_static:
            last = desc.offset0 + sum((p.size - 1) * p.stride for p in desc.placed)
            places = Const(last + 1 if desc.nelems else 0)
        return strides[::-1], places

    def _outer(self, stride: Expr, name: str, digit: Digit, extents: Sequence[Expr]) -> Expr:
        """The dense stride of the next digit further out."""
        if digit.size is not None:
            return stride * digit.size
        if isinstance(stride, Const) and self.wide:
            stride = Var(name)  # it has the wide type, a number of the same value has not
        fused: Expr = Const(1)
        for d in digit.dims:
            fused = fused * extents[d]
        if len(digit.dims) == 1:  # the extent is a multiple of the step
            if digit.step > 1 and not isinstance(fused, Const):
                return stride * Var(self._name("BLOCKS", digit.dims[0]))
            return stride * (fused // digit.step)
        return stride * ((fused + (digit.step - 1)) // digit.step)

    def _pitch_name(self, digit: Digit) -> str:
        """The macro of a digit's stride: ``SRC_PITCH_F``, of a block ``SRC_PITCH_F_BY_1``."""
        index = "".join(self.letters[d] for d in digit.dims).upper()
        by = "" if digit.size is None else f"_BY_{digit.step}"
        return f"{self.prefix}_PITCH_{index}{by}"

    def _wide(self, value: Expr) -> str:
        """The text of a factor, of 64 bits if offsets are."""
        if self.wide and isinstance(value, Const) and not self.known.is_static:
            return f"{value}ul"
        return _value(value)

    def _product(self, factors: Sequence[Expr]) -> Expr:
        every = all(isinstance(f, Const) for f in factors)
        result: Expr = Var("1ul") if self.wide and not every else Const(1)
        for f in factors:
            result = result * f
        return result

    def _declared(self) -> list[str]:
        kind = "ulong" if self.wide else "uint"
        return [f"const {kind} {name}" for name in self.parameters]


def slot(d: int, ndims: int) -> int:
    """The place of a size in ``shape_info``: the first two first, the others at the end."""
    return d if d < 2 else max(SLOTS, ndims) - ndims + d


def _value(expr: Expr) -> str:
    """The text of a macro: in brackets where it is more than a name."""
    return str(expr) if isinstance(expr, Const | Var) else f"({expr})"
