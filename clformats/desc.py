"""Memory descriptors: a format, given sizes and an element type.

A descriptor is the sized form of a layout: each digit has a size and a stride (`Placed`), the
dimensions are padded to whole blocks, and ``offset0`` says where the first element lies. A plain
tensor with odd strides and one with clDNN's lower and upper padding are the same list of digits
with other numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtypes import DType, as_dtype
from .errors import InvalidDescriptor, Unsupported
from .formats.digits import Digit, Layout, Placed, coordinates, offset_expr, place
from .formats.expr import Expr, Var
from .formats.format import Format
from .formats.names import ABSTRACT, MAX_NDIMS, is_meta

Padding = tuple[tuple[int, int], ...]


class MemoryDesc:
    """Where every element of a tensor lies: dims, element type and format together.

    ``MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")`` by format; dims in logical order.
    ``MemoryDesc(dims, dtype, strides=(...))`` by strides, in elements, one per dimension: 0 repeats
    a dimension, gaps are allowed, overlap is not. ``padding=((lower, upper), ...)`` per logical
    dimension surrounds the data as clDNN does, before the dimensions are split into blocks.
    With neither format nor strides the tensor is dense, the last dimension innermost.

    Descriptors are immutable and hashable; ``MemoryDesc.parse(str(d)) == d``.
    Raises `InvalidDescriptor` and `InvalidFormat`.
    """

    __slots__ = ("_expr", "_key", "dims", "dtype", "format", "offset0", "padded_dims",
                 "padded_offsets", "padding", "placed")  # fmt: skip

    _expr: Expr | None
    _key: tuple[object, ...] | None
    dims: tuple[int, ...]
    dtype: DType
    format: Format
    placed: tuple[Placed, ...]
    padded_dims: tuple[int, ...]
    padded_offsets: tuple[int, ...]
    padding: Padding
    offset0: int

    def __init__(
        self,
        dims: Iterable[int],
        dtype: object,
        format: str | Format | None = None,  # the field's word for it
        *,
        strides: Iterable[int] | None = None,
        padding: Iterable[tuple[int, int]] | None = None,
    ) -> None:
        dims = _check_dims(dims)
        if strides is not None:
            if format is not None or padding is not None:
                raise InvalidDescriptor(
                    f"got strides together with format={format!s}, padding={padding!r}: "
                    f"strides alone say where the elements lie, leave the others out"
                )
            fmt, placed = _by_strides(dims, _int_tuple("strides", strides))
            pads: Padding = ((0, 0),) * len(dims)
            padded = dims
        else:
            fmt = _format_for(dims, format)
            pads = _check_padding(padding, fmt, len(dims))
            padded, placed = _by_format(dims, fmt, pads)
        self._set(dims, as_dtype(dtype), fmt, placed, padded, pads, 0)

    def _set(
        self,
        dims: tuple[int, ...],
        dtype: DType,
        fmt: Format,
        placed: tuple[Placed, ...],
        padded: tuple[int, ...],
        padding: Padding,
        offset0: int,
    ) -> None:
        set_ = object.__setattr__
        set_(self, "dims", dims)
        set_(self, "dtype", dtype)
        set_(self, "format", fmt)
        set_(self, "placed", placed)
        set_(self, "padded_dims", padded)
        set_(self, "padding", padding)
        set_(self, "padded_offsets", tuple(lower for lower, _ in padding))
        set_(self, "offset0", offset0)
        set_(self, "_expr", None)
        set_(self, "_key", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"MemoryDesc is immutable: cannot set {name} to {value!r}")

    # --- what it says -----------------------------------------------------------------------------

    @property
    def ndims(self) -> int:
        """The number of logical dimensions."""
        return len(self.dims)

    @property
    def format_kind(self) -> str:
        """``"blocked"``, ``"any"`` or ``"undef"``."""
        return self.format.kind

    @property
    def strides(self) -> tuple[int, ...]:
        """Per logical dimension the stride of its outermost digit, in elements (oneDNN's)."""
        result = [0] * self.ndims
        for p in self.placed:
            if p.digit.size is None:
                for d in p.digit.dims:
                    result[d] = p.stride
        return tuple(result)

    @property
    def inner_blks(self) -> tuple[int, ...]:
        """The block sizes, outermost block first (oneDNN's)."""
        return tuple(p.size for p in self._blocks())

    @property
    def inner_idxs(self) -> tuple[int, ...]:
        """The dimension of each block in `inner_blks`."""
        return tuple(p.digit.dims[0] for p in self._blocks())

    @property
    def nbytes(self) -> int:
        """The size in bytes as oneDNN counts it: 0 for a zero dimension, ``any`` and ``undef``.

        For a dense tensor the padded extents multiplied. For one with strides the longest span
        ``size * stride`` of a digit, where a size of 1 counts as 1. ``offset0`` is not in it.
        """
        if self._is_empty:
            return 0
        elements = max(p.size * p.stride if p.size > 1 else 1 for p in self.placed)
        return _bytes(max(elements, 1), self.dtype)

    @property
    def span_nbytes(self) -> int:
        """The bytes a buffer must have: up to the last element or padding that is ever touched."""
        if self._is_empty:
            return 0
        last = self.offset0 + sum((p.size - 1) * p.stride for p in self.placed)
        return _bytes(last + 1, self.dtype)

    @property
    def nelems(self) -> int:
        """The number of logical elements, padding not counted."""
        return 0 if self._is_empty else prod(self.dims)

    @property
    def _is_empty(self) -> bool:
        return self.format_kind != "blocked" or 0 in self.dims or not self.dims

    def _blocks(self) -> tuple[Placed, ...]:
        layout = self.format.layout
        if layout is not None and not layout.is_tag:
            raise Unsupported(
                "NOT_A_TAG",
                f"{self.format} is no blocked format in oneDNN's sense and has no inner_blks; "
                f"its digits are in .placed",
            )
        return tuple(p for p in self.placed if p.digit.size is not None)

    # --- where elements lie -----------------------------------------------------------------------

    @property
    def expr(self) -> Expr:
        """The offset in elements, as an expression of ``i0, i1, ...``, the logical indices."""
        expr = self._expr
        if expr is None:
            lower = self.padded_offsets
            indices = [Var(f"i{d}") + lower[d] for d in range(self.ndims)]
            expr = offset_expr(self._concrete(), indices, self.padded_dims, offset0=self.offset0)
            object.__setattr__(self, "_expr", expr)
        return expr

    def offset(self, *index: Any) -> Any:
        """The offset in elements of the element at the logical index.

        Takes ints, or integer arrays that broadcast against each other (result: int64 array).
        Raises IndexError for an index outside the tensor; negative indices do not wrap.
        """
        if len(index) != self.ndims:
            raise IndexError(
                f"got {len(index)} indices for {self.ndims} dimensions "
                f"({', '.join(self.format.dims)})"
            )
        env: dict[str, Any] = {}
        for d, (value, n) in enumerate(zip(index, self.dims, strict=True)):
            env[f"i{d}"] = i = value if isinstance(value, np.ndarray) else operator.index(value)
            if np.any(i < 0) or np.any(i >= n):
                raise IndexError(f"index {i} of dimension {d} is outside 0..{n - 1} in {self}")
        return self.expr.evaluate(env)

    def offsets(self) -> NDArray[np.int64]:
        """The offset of every logical element, in elements: an int64 array of shape ``dims``."""
        grid = np.ogrid[tuple(slice(0, n) for n in self.dims)]
        env = {f"i{d}": grid[d].astype(np.int64) for d in range(self.ndims)}
        return np.broadcast_to(self.expr.evaluate(env), self.dims).astype(np.int64)

    def coords(self, offset: int) -> tuple[int, ...] | None:
        """The logical index of the element at ``offset`` (in elements); None for padding.

        None also in the gaps that strides leave. Raises IndexError outside the buffer.
        """
        offset = operator.index(offset)
        size = max(self.nbytes, self.span_nbytes) * 8 // self.dtype.bits
        if not 0 <= offset < size:
            raise IndexError(f"offset {offset} is outside 0..{size - 1} in {self}")
        found = coordinates(self._concrete(), self.padded_dims, offset - self.offset0)
        if found is None:
            return None
        index = tuple(i - lower for i, lower in zip(found, self.padded_offsets, strict=True))
        inside = all(0 <= i < n for i, n in zip(index, self.dims, strict=True))
        return index if inside else None

    def _concrete(self) -> tuple[Placed, ...]:
        if self.format_kind != "blocked":
            raise InvalidDescriptor(
                f"{self} has no layout: choose a concrete format instead of {self.format}"
            )
        return self.placed

    # --- text, equality ---------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [str(self.dtype), str(self.format), "x".join(map(str, self.dims))]
        if any(lower or upper for lower, upper in self.padding):
            parts.append("pad=" + "x".join(f"{lower}+{upper}" for lower, upper in self.padding))
        elif self.placed and self.placed != place(self.format.structure, self.padded_dims):
            parts.append("strides=" + "x".join(map(str, self.strides)))
        return ":".join(parts)

    def __repr__(self) -> str:
        return f"MemoryDesc.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> MemoryDesc:
        """The descriptor that ``str`` printed: ``"f32:b_fs_yx_fsv16:2x17x5x4"``."""
        dtype, name, dims, option = (*text.strip().split(":"), "", "", "")[:4]
        key, _, value = option.partition("=")
        try:
            if text.count(":") not in (2, 3) or key not in ("", "strides", "pad"):
                raise ValueError(text)  # noqa: TRY301  # one message for all that cannot be read
            sizes = [int(n) for n in dims.split("x")] if dims else []
            numbers = [int(n) for n in re.split("[x+]", value)] if value else []
        except ValueError:
            raise InvalidDescriptor(
                f"cannot read the descriptor {text!r}: expected dtype:format:dims such as "
                f"f32:b_fs_yx_fsv16:2x17x5x4, then perhaps :strides=12x1x3 or :pad=0+0x1+1"
            ) from None
        if key == "strides":
            return cls(sizes, dtype, strides=numbers)
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
        return cls(sizes, dtype, name, padding=pairs if key == "pad" else None)

    @property
    def key(self) -> tuple[object, ...]:
        """What equality compares: oneDNN's rule, which ignores strides of dimensions of size 1."""
        key = self._key
        if key is None:
            sized_one = {d for d in range(self.ndims) if self.dims[d] == self.padded_dims[d] == 1}
            places = frozenset(
                (p.digit, p.stride)
                for p in self.placed
                if not (p.digit.size is None and set(p.digit.dims) <= sized_one)
            )
            key = (self.dims, self.dtype, self.padded_dims, self.padded_offsets, self.offset0,
                   self.format_kind, places) if self.dims else ()  # fmt: skip
            object.__setattr__(self, "_key", key)
        return key

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, MemoryDesc) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[object, ...]:
        return MemoryDesc.parse, (str(self),)


# --- construction and its checks ------------------------------------------------------------------


def _int_tuple(what: str, values: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(n) for n in values)
    except TypeError:
        raise InvalidDescriptor(f"{what} must be a sequence of ints, got {values!r}") from None


def _check_dims(dims: Iterable[int]) -> tuple[int, ...]:
    result = _int_tuple("dims", dims)
    if len(result) > MAX_NDIMS:
        raise InvalidDescriptor(
            f"got {len(result)} dims, at most {MAX_NDIMS} are possible: merge some"
        )
    for d, n in enumerate(result):
        if n < 0:
            raise InvalidDescriptor(f"dimension {d} is {n} in dims {result}: expected 0 or more")
    return result


def _format_for(dims: tuple[int, ...], name: str | Format | None) -> Format:
    if not dims:
        return Format("undef")
    if name is None:
        name = ABSTRACT[: len(dims)]
    fmt = Format(name, ndims=len(dims) if is_meta(str(name)) else None)
    if fmt.kind == "blocked" and fmt.ndims != len(dims):
        raise InvalidDescriptor(
            f"got {len(dims)} dims {dims}, but {fmt} has {fmt.ndims}: "
            f"expected ({', '.join(fmt.dims)}) in this order"
        )
    return fmt


def _check_padding(padding: Iterable[tuple[int, int]] | None, fmt: Format, ndims: int) -> Padding:
    if padding is None:
        return ((0, 0),) * ndims
    pads = tuple(_int_tuple("padding", pair) for pair in padding)
    if len(pads) != ndims or any(len(p) != 2 or min(p) < 0 for p in pads):
        raise InvalidDescriptor(
            f"padding must be {ndims} pairs (lower, upper) of 0 or more, one for each of "
            f"({', '.join(fmt.dims)}), got {pads}"
        )
    layout = fmt.layout
    fused = layout and any(len(d.dims) > 1 or d.flip for d in layout.digits)
    if any(map(any, pads)) and (layout is None or fused):
        raise InvalidDescriptor(f"{fmt} cannot have padding: expected a format of whole dimensions")
    return tuple((p[0], p[1]) for p in pads)


def _by_format(
    dims: tuple[int, ...], fmt: Format, padding: Padding
) -> tuple[tuple[int, ...], tuple[Placed, ...]]:
    if fmt.layout is None:
        return dims, ()
    extents = [lower + n + upper for n, (lower, upper) in zip(dims, padding, strict=True)]
    padded = fmt.layout.padded(extents)
    return padded, place(fmt.layout, padded)


def _by_strides(
    dims: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[Format, tuple[Placed, ...]]:
    if len(strides) != len(dims):
        raise InvalidDescriptor(
            f"got {len(strides)} strides {strides} for {len(dims)} dims {dims}: expected one each"
        )
    if not dims:
        return Format("undef"), ()
    if 0 not in dims:
        _check_overlap(dims, strides)
    order = sorted(range(len(dims)), key=lambda d: (-strides[d], d))
    digits = [Digit(d, None) for d in order]
    placed = tuple(
        Placed(digit, dims[d], strides[d], strides[d] == 1)
        for digit, d in zip(digits, order, strict=True)
    )
    return Format.from_layout(Layout(len(dims), tuple(digits))), placed


def _check_overlap(dims: Sequence[int], strides: Sequence[int]) -> None:
    """OneDNN's rule: from the smallest stride up, each must clear the span of the one before."""
    least = 1
    for stride, d in sorted(zip(strides, range(len(dims)), strict=True)):
        if stride == 0 or dims[d] == 1:
            continue
        if stride < least:
            raise InvalidDescriptor(
                f"strides {tuple(strides)} of dims {tuple(dims)} make elements overlap: stride "
                f"{stride} of dimension {d} must be 0 or at least {least}"
            )
        least = stride * dims[d]


def _bytes(elements: int, dtype: DType) -> int:
    return -(-elements * dtype.bits // 8)
