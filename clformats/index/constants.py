"""`jit_constants`: the macros by which clDNN's kernels know their tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm, prod

from ..errors import InvalidArgument, InvalidDescriptor, expect
from ..formats.digits import RUNTIME, place
from ..formats.expr import Const, Expr, Var
from ..formats.format import Format
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_desc
from .elements import element_constants
from .getters import getter, getters, plain_getter, takes_sub_group
from .lines import folded
from .names import (
    COUNTS,
    PITCHES,
    coordinates_of,
    formats_of_cldnn,
    is_plain,
    layout_of,
    letters_of,
)
from .source import checked_prefix
from .tensor import SLOTS, beyond_32_bits, slot

# Every number that kernels may name, of a dimension that the tensor lacks too.
_DATA, _WEIGHTS = "xyzwuvfb", "xyziog"


def jit_constants(
    tensors: Mapping[str, MemoryDesc | str],
    formats: Iterable[Format | str] | str = (),
    *,
    padded: Mapping[str, str] | None = None,
) -> str:
    """The macros that clDNN's kernels expect of their tensors, so that they compile unchanged.

    ``tensors`` maps the names in the kernel to descriptors: ``{"INPUT0": src, "FILTER": weights,
    "OUTPUT": dst}``. For each name: sizes, paddings, pitches, ``_OFFSET``, ``_LENGTH``,
    ``_LAYOUT_<FORMAT>``, the element type with its conversions, arrays of sizes and pitches, and
    ``_GET_INDEX`` with ``_SAFE`` and ``_RAW``. The macros ``GET_DATA_<LAYOUT>_INDEX(prefix, ...)``
    and ``GET_FILTER_...`` are included for plain formats and for those of the tensors. ``formats``
    adds others; ``"all"`` adds those of every clDNN format, and those that take the size of a block
    as an argument.

    Sizes of data known at execution only come from the buffer ``shape_info``. So does padding along
    the dimensions that ``padded`` names, as in ``{"INPUT0": "yx"}``. Each such tensor takes eight
    numbers there, then a pair for each of these letters, in the order of ``tensors``;
    `OPTIONAL_SHAPE_INFO_ARG` declares the buffer.
    Macros that do not belong to a tensor, such as ``KERNEL(name)``, are in clDNN's other headers.

    Raises `InvalidFormat` for formats that clDNN has no name for, `InvalidDescriptor` for tensors
    beyond 32 bits, and for blocked tensors with strides of their own.
    """
    expect(tensors, Mapping, "tensors")
    expect(formats, Iterable, "formats")
    expect(padded, Mapping | None, "padded")
    all_formats = isinstance(formats, str) and formats == "all"
    if isinstance(formats, str) and not all_formats:
        raise InvalidArgument(f"formats: got {formats!r}, expected a list of formats, or 'all'")
    found: list[_Constants] = []
    taken = 0
    unknown = dict(padded or {})
    for name, given in tensors.items():
        desc = as_desc(given, f"tensors[{name!r}]")
        found.append(_Constants(checked_prefix(name), desc, taken, unknown.pop(name, "")))
        taken += found[-1].taken
    if unknown:
        raise InvalidArgument(f"padded: {', '.join(map(repr, unknown))} are no tensors here")
    every = list(formats_of_cldnn()) if all_formats else [Format(f) for f in formats]
    wanted = [*(t.format for t in found), *every]
    sections = [getters(wanted, any_block=all_formats), *_shape_info(dynamic=taken > 0)]
    return folded("\n\n".join([*sections, *("\n".join(t.lines()) for t in found)]) + "\n")


def _shape_info(*, dynamic: bool) -> Iterator[str]:
    yield "\n".join([
        f"#define IS_DYNAMIC {int(dynamic)}",
        f"#define OPTIONAL_SHAPE_INFO_ARG{' __global const int *shape_info,' * dynamic}",
        f"#define OPTIONAL_SHAPE_INFO_TENSOR{' shape_info,' * dynamic}",
    ])  # fmt: skip


class _Constants:
    """The macros of one tensor; ``at`` is where its sizes are in ``shape_info``.

    ``padded``: the letters of dimensions whose padding is there too, after the sizes.
    """

    def __init__(self, name: str, desc: MemoryDesc, at: int, padded: str) -> None:
        expect(padded, str, f"padded[{name!r}]")
        if not desc.has_layout or desc.format.kind == "image":
            raise InvalidDescriptor(f"{name} is {desc}: expected a format of buffers")
        self.name, self.desc, self.at, self.format = name, desc, at, desc.format
        self.letters = letters_of(desc.format)
        self.is_weights = desc.format.role == "weights"
        self.is_plain = is_plain(desc.format)
        self.padded = [c for c in self.letters if c in padded]
        self.is_dynamic = desc.has_runtime or bool(padded)
        self.taken = (SLOTS + 2 * len(self.padded)) * self.is_dynamic
        self._check(padded)
        self.sizes = [self._size(d, n) for d, n in enumerate(desc.dims)]
        self.pads = [
            self._pads(c, *pads) for c, pads in zip(self.letters, desc.padding, strict=True)
        ]

    def _check(self, padded: str) -> None:
        desc = self.desc
        if not set(padded) <= set(self.letters):
            raise InvalidArgument(
                f"padded: {self.name} has {', '.join(self.letters)}, got {padded!r}"
            )
        if self.is_dynamic and self.is_weights:
            raise InvalidDescriptor(f"{self.name} is {desc}: clDNN knows weights before execution")
        if beyond_32_bits(desc):
            raise InvalidDescriptor(
                f"{self.name} is {desc}, beyond the 32 bits that clDNN's kernels count in: "
                f"write a kernel over index_source"
            )
        dense = [p.stride for p in place(desc.format.structure, desc.padded_dims)]
        moved = dense != [p.stride for p in desc.placed] or desc.offset0 != 0
        if moved and (self.is_dynamic or not self.is_plain):
            raise InvalidDescriptor(
                f"{self.name} is {desc}: clDNN's kernels know strides of plain formats only; "
                f"reorder it to a dense tensor, or write a kernel over index_source"
            )

    def _size(self, d: int, n: int) -> Expr:
        return Var(f"{self.name}_{COUNTS[self.letters[d]]}") if n == RUNTIME else Const(n)

    def _pads(self, letter: str, lower: int, upper: int) -> tuple[Expr, Expr]:
        if letter not in self.padded:
            return Const(lower), Const(upper)
        names = [f"{self.name}_PAD_{side}_{COUNTS[letter]}" for side in ("BEFORE", "AFTER")]
        return Var(names[0]), Var(names[1])

    def lines(self) -> Iterator[str]:
        """The macros."""
        yield f"// {self.name}: {self.desc}"
        for name, value in (*self._numbers(), *self._facts(), *self._elements()):
            yield f"#define {name} {value}".rstrip()
        yield from self._arrays()
        for name, value in self._functions():
            yield f"#define {name} {value}".rstrip()

    def _numbers(self) -> Iterator[tuple[str, str]]:
        """Sizes, paddings and pitches of every dimension that kernels may name."""
        every = _WEIGHTS if self.is_weights else _DATA
        every += "".join(c for c in self.letters if c not in every)
        for c in every:
            size = "1"
            if c in self.letters:
                d = self.letters.index(c)
                unknown = self.desc.dims[d] == RUNTIME
                number = self.at + slot(d, len(self.letters))
                size = f"(shape_info[{number}])" if unknown else str(self.desc.dims[d])
            yield f"{self.name}_{COUNTS[c]}", size
        for number, side in enumerate(("BEFORE", "AFTER")):
            for c in every:
                pad = (
                    str(self.desc.padding[self.letters.index(c)][number])
                    if c in self.letters
                    else "0"
                )
                if c in self.padded:
                    slot_of = self.at + SLOTS + 2 * self.padded.index(c) + number
                    pad = f"(shape_info[{slot_of}])"
                yield f"{self.name}_PAD_{side}_{COUNTS[c]}", pad
        pitches = self._pitches()
        for c in every:
            yield f"{self.name}_{PITCHES[c]}", _text(pitches.get(c, Const(1)))

    def _pitches(self) -> dict[str, Expr]:
        """Elements between neighbours; of blocked formats the product that clDNN has for them.

        That is of the padded extents further in, of data not rounded up to blocks.
        """
        layout, desc = self.format.structure, self.desc
        if self.is_plain and not self.is_dynamic:
            return {self.letters[p.digit.dims[0]]: Const(p.stride) for p in desc.placed}
        pitches: dict[str, Expr] = {}
        pitch: Expr = Const(_first_pitch(self.format))
        for digit in reversed(layout.outer):
            start, fused = pitch, 1
            for d in reversed(digit.dims):
                pitches[self.letters[d]] = pitch
                lower, upper = self.pads[d]
                extent = self.sizes[d] + lower + upper
                rounded = lcm(layout.blocks[d], layout.align[d]) if self.is_weights else 1
                extent = (extent + (rounded - 1)) // rounded * rounded
                pitch = pitch * extent
                fused *= max(desc.dims[d], 1)
            if len(digit.dims) > 1 and self.is_weights:
                pitch = start * (-(-fused // digit.step) * digit.step)
        return pitches

    def _facts(self) -> Iterator[tuple[str, str]]:
        pitches = self._pitches()
        offset: Expr = Const(self.desc.offset0)
        for c, (lower, _) in zip(self.letters, self.pads, strict=True):
            offset = offset + pitches[c] * lower
        length: Expr = Const(1)
        for size in self.sizes:
            length = length * size
        yield f"{self.name}_OFFSET", _text(offset)
        yield f"{self.name}_VIEW_OFFSET", str(self.desc.offset0)
        yield f"{self.name}_LENGTH", _text(length)
        yield f"{self.name}_DIMS", str(len(self.letters))
        yield f"{self.name}_SIMPLE", str(int(self.is_plain))
        yield f"{self.name}_GROUPED", str(int(self.letters.startswith("g")))
        # The kernels know by the type of the elements that four bits have an order of their own.
        yield f"{self.name}_LAYOUT_{layout_of(self.format).removesuffix('_I4')}", "1"

    def _elements(self) -> Iterator[tuple[str, str]]:
        return element_constants(self.name, self.desc.dtype)

    def _arrays(self) -> Iterator[str]:
        """Sizes, pitches and paddings, the innermost dimension first."""
        if self.is_dynamic:
            return
        order = [d for digit in self.format.structure.outer for d in digit.dims][::-1]
        pitches = self._pitches()
        pads = self.desc.padding
        arrays: dict[str, Sequence[Expr | int]] = {
            "SIZES": [self.desc.dims[d] for d in order],
            "PITCHES": [pitches[self.letters[d]] for d in order],
            "PAD_BEFORE": [pads[d][0] for d in order],
            "PAD_AFTER": [pads[d][1] for d in order],
        }
        for what, numbers in arrays.items():
            text = ", ".join(map(str, numbers))
            yield f"#define {self.name}_{what}_DATA {{ {text} }}"
            yield f"__constant size_t {self.name}_{what}[] = {self.name}_{what}_DATA;"

    def _functions(self) -> Iterator[tuple[str, str]]:
        coordinates = coordinates_of(self.letters)
        arguments = ", ".join(coordinates)
        name, more = getter(self.format), ", 16" * takes_sub_group(self.format)
        short = self._shortcut()
        for safe, value in (("", short[0]), ("_SAFE", short[1])):
            call = f"{name}{safe}({self.name}, {arguments}{more})"
            yield f"{self.name}_GET_INDEX{safe}({arguments})", value or call
        if self.is_weights:
            yield f"INIT_{self.name}_INDEX_FUNC_HERE", ""
            yield f"{self.name}_INDEX_FUNC({arguments})", f"{self.name}_GET_INDEX({arguments})"
        elif plain := plain_getter(self.letters):
            numbers = ", ".join(f"i{k}" for k in range(len(coordinates)))
            call = f"GET_{plain}_RAW({self.name}, {numbers})"
            yield f"{self.name}_GET_INDEX_RAW({numbers})", call

    def _shortcut(self) -> tuple[str, str]:
        """What clDNN has in place of an index where a tensor is broadcast: one element, or f's."""
        desc = self.desc
        if self.is_weights or self.is_dynamic or desc.nelems == 0:
            return "", ""
        if prod(desc.dims) == 1:
            at = str(desc.offset(*(0 for _ in desc.dims)))
            return at, at
        blocked = [
            self.format.structure.blocks[self.letters.index(c)] > 1
            for c in "bf"
            if c in self.letters
        ]
        unpadded = not any(map(any, desc.padding))
        if "f" not in self.letters or all(blocked) or not unpadded:
            return "", ""
        f = self.letters.index("f")
        if prod(desc.dims) != desc.dims[f] or (self.is_plain and desc.placed[-1].stride != 1):
            return "", ""
        return f"({self.name}_OFFSET + (f))", f"(({self.name}_OFFSET + (f)) % {desc.dims[f]})"


def _first_pitch(fmt: Format) -> int:
    """The pitch of the innermost dimension: 1, but for two families of weights."""
    if re.fullmatch(r"os_is_z?yx_isa8_osv(8|16)_isv4", fmt.cldnn or ""):
        return prod(d.size or 1 for d in fmt.digits)
    return 1


def _text(expr: Expr) -> str:
    return str(expr) if isinstance(expr, Const | Var) else f"({expr})"
