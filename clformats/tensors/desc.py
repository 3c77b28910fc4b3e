"""Memory descriptors: a format, given sizes and an element type.

A descriptor is the sized form of a layout. Each digit has a size and a stride (`Placed`), the
dimensions are padded to whole blocks, and ``offset0`` is the offset of the first element. Strides
with gaps, and clDNN's lower and upper padding, only change these numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor, expect, expect_int
from ..formats.digits import (
    RUNTIME,
    Placed,
    Tail,
    TailAt,
    coordinates,
    offset_expr,
    round_up,
    tail_at,
)
from ..formats.expr import Expr, Var
from ..formats.format import Format
from ..formats.sums import Extra, Sums
from . import described, operations
from .dtypes import DType, as_dtype, as_index
from .geometry import (
    Geometry,
    Padding,
    blocks_of,
    by_format,
    by_strides,
    check_dims,
    check_size,
    int_tuple,
    relaid,  # fmt: skip
    strided,
    strides_of,
    with_extra,
)
from .shaped import Pixels, Shaped
from .text import name_for, pairs, printed, read

RUNTIME_DIM = RUNTIME
"""A dimension or a stride that is known at execution only (oneDNN's DNNL_RUNTIME_DIM_VAL)."""
RUNTIME_SIZE = 2**63
"""`MemoryDesc.nbytes` where the sizes are not known yet (oneDNN's DNNL_RUNTIME_SIZE_VAL)."""


class MemoryDesc(described.Made, Shaped, Pixels):
    """Where every element of a tensor lies: dims, element type and format together.

    ``MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")`` makes one by format; dims are in logical
    order. ``MemoryDesc(dims, dtype, strides=(...))`` makes one by strides, in elements, one for
    each dimension: a stride of 0 repeats a dimension, gaps are allowed, overlap is not. Beside a
    format they are those of the open digits, of each dimension its outermost one. With neither
    format nor strides the tensor is dense, the last dimension innermost.
    ``padding=((lower, upper), ...)``, for each logical dimension, surrounds the data as clDNN does,
    before the dimensions are split into blocks. ``extra``, an `Extra`, says what follows int8
    weights. A few of clDNN's formats, such as ``os_iyx_osv16``, have another order for elements of
    4 bits: there ``format`` becomes the name with ``:i4`` appended.

    A quantised type, such as ``"q4_0"``, makes a `QuantisedDesc`, in a layout of the type's.

    Descriptors are immutable and hashable; ``MemoryDesc.parse(str(d)) == d``.

    Raises `InvalidDescriptor` and `InvalidFormat`.
    """

    __slots__ = ("_expr", "_key", "dims", "dtype", "format", "geometry", "offset0", "padded_dims",
                 "padded_offsets", "padding", "placed")  # fmt: skip

    _expr: Expr | None
    _key: tuple[object, ...] | None
    dims: tuple[int, ...]
    dtype: DType
    format: Format
    geometry: Geometry
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
        extra: Extra | None = None,
    ) -> None:
        if strides is not None and format is None and padding is not None:
            raise InvalidDescriptor(
                f"got strides together with padding={padding!r}, but no format: strides alone say "
                f"where the elements lie, leave padding out or name the format"
            )
        element = as_dtype(dtype)
        if strides is not None and format is None:
            geometry = by_strides(dims, strides)
        else:
            name = name_for(str(format), element)
            geometry = by_format(dims, format if name == str(format) else name, padding)
            if strides is not None:
                geometry = strided(geometry, strides)
        self._set(with_extra(geometry, extra) if extra is not None else geometry, element)

    def _set(self, geometry: Geometry, dtype: DType) -> None:
        if geometry.extra and dtype.name != "s8":
            raise InvalidDescriptor(f"sums follow weights of s8, got {dtype}", code="EXTRA")
        set_ = object.__setattr__
        set_(self, "geometry", geometry)
        set_(self, "dtype", dtype)
        for field in ("dims", "format", "placed", "padded_dims", "padding", "offset0"):
            set_(self, field, getattr(geometry, field))
        set_(self, "padded_offsets", tuple(lower for lower, _ in geometry.padding))
        set_(self, "_expr", None)
        set_(self, "_key", None)

    @classmethod
    def of(cls, geometry: Geometry, dtype: object) -> MemoryDesc:
        """The descriptor of a geometry."""
        expect(geometry, Geometry, "geometry")
        result = object.__new__(cls)
        result._set(geometry, as_dtype(dtype))
        return result

    def _with(self, geometry: Geometry) -> MemoryDesc:
        return MemoryDesc.of(geometry, self.dtype)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"MemoryDesc is immutable: cannot set {name} to {value!r}")

    # --- what it says -----------------------------------------------------------------------------

    @property
    def ndims(self) -> int:
        """The number of logical dimensions."""
        return len(self.dims)

    @property
    def format_kind(self) -> str:
        """``"blocked"``, ``"wino"``, ``"rnn_packed"``, ``"image"``, ``"any"`` or ``"undef"``."""
        return self.format.kind

    @property
    def has_layout(self) -> bool:
        """Whether the layout is known; that of ``any`` and ``undef`` is not."""
        return self.format.layout is not None

    @property
    def strides(self) -> tuple[int, ...]:
        """The stride of the outermost digit of each logical dimension, in elements (oneDNN's)."""
        return strides_of(self.geometry)

    @property
    def inner_blks(self) -> tuple[int, ...]:
        """The block sizes, outermost block first (oneDNN's)."""
        return tuple(size for size, _ in blocks_of(self.geometry))

    @property
    def inner_idxs(self) -> tuple[int, ...]:
        """The dimension of each block in `inner_blks`."""
        return tuple(d for _, d in blocks_of(self.geometry))

    @property
    def nbytes(self) -> int:
        """The size in bytes as oneDNN counts it: 0 for a zero dimension, ``any`` and ``undef``.

        For a dense tensor it is the product of the padded extents. With strides it is the largest
        ``size * stride`` of a digit, where a digit of size 1 counts as 1. ``offset0`` is left out.
        """
        if self._is_empty:
            return 0
        if self.has_runtime:
            return RUNTIME_SIZE
        if self.sums:
            return self.span_nbytes
        elements = max(p.size * p.stride if p.size > 1 else 1 for p in self.placed)
        return _bytes(max(elements, 1), self.dtype)

    @property
    def span_nbytes(self) -> int:
        """The bytes that a buffer must have: up to the end of the last element or padding."""
        if self._is_empty:
            return 0
        if self.has_runtime:
            return RUNTIME_SIZE
        return self.sums_at + self.sums_nbytes

    @property
    def extra(self) -> Extra | None:
        """What follows int8 weights, and how a reorder scales them."""
        return self.geometry.extra

    @property
    def sums(self) -> tuple[Sums, ...]:
        """The sums that follow the elements of int8 weights, one array after the other."""
        of_format = (self.format.sums,) if self.format.sums and self.dtype.name == "s8" else ()
        return self.extra.sums(self.ndims) if self.extra else of_format

    @property
    def sums_at(self) -> int:
        """The byte offset of the `sums`: after all elements and their padding."""
        last = self.offset0 + sum((p.size - 1) * p.stride for p in self.placed)
        end = _bytes(last + 1, self.dtype)
        return round_up(end, Extra.ALIGNMENT) if self.extra and self.sums else end

    @property
    def sums_nbytes(self) -> int:
        """Bytes of all `sums` together."""
        known = not (self._is_empty or self.has_runtime)
        return sum(s.nbytes(self.dims, self.padded_dims) for s in self.sums) if known else 0

    @property
    def nelems(self) -> int:
        """The number of logical elements, padding not counted."""
        return 0 if self._is_empty else prod(self.dims)

    @property
    def has_runtime(self) -> bool:
        """Whether a size or stride is known at execution only (`RUNTIME_DIM`)."""
        return RUNTIME in self.dims or any(RUNTIME in (p.size, p.stride) for p in self.placed)

    @property
    def _is_empty(self) -> bool:
        return not self.has_layout or 0 in self.dims or not self.dims

    # --- where elements lie -----------------------------------------------------------------------

    @property
    def expr(self) -> Expr:
        """The offset in elements, as an expression of ``i0, i1, ...``, the logical indices."""
        expr = self._expr
        if expr is None:
            lower = self.padded_offsets
            indices = [Var(f"i{d}") + lower[d] for d in range(self.ndims)]
            self.require_layout()
            placed, padded = self.placed, self.padded_dims
            expr = offset_expr(placed, indices, padded, offset0=self.offset0, tail=self.tail)
            object.__setattr__(self, "_expr", expr)
        return expr

    def offset(self, *index: Any) -> Any:
        """The offset in elements of the element at the logical index.

        Takes ints, or integer arrays that broadcast against each other (result: int64 array).
        Raises IndexError for an index outside the tensor; negative indices do not wrap.
        """
        if not self.ndims:
            raise IndexError(f"{self} has no dims, and so no element")
        if len(index) != self.ndims:
            raise IndexError(
                f"got {len(index)} indices for {self.ndims} dimensions "
                f"({', '.join(self.format.dims)})"
            )
        self.require_layout()
        # Arrays count in int64; where that is too narrow, in Python's ints.
        kind = np.int64 if self.span_nbytes < 2**62 else object
        env: dict[str, Any] = {}
        for d, (value, n) in enumerate(zip(index, self.dims, strict=True)):
            env[f"i{d}"] = i = as_index(value, kind)
            inside = 0 <= i < n if isinstance(i, int) else np.all((i >= 0) & (i < n))
            if not inside:
                raise IndexError(f"index {i} of dimension {d} is outside 0..{n - 1} in {self}")
        return self.expr.evaluate(env)

    def offsets(self) -> NDArray[np.int64]:
        """The offset of every logical element, in elements: an int64 array of shape ``dims``.

        Raises `InvalidDescriptor` where the memory does not suffice for it.
        """
        check_size(self.geometry, self.dtype.bits)
        return operations.offsets(self.expr, self.dims)

    def coords(self, offset: int) -> tuple[int, ...] | None:
        """The logical index of the element at ``offset``, in elements.

        None for padding, and for the gaps between strides. Raises IndexError outside the buffer.
        """
        offset = expect_int(offset, "offset")
        size = max(self.nbytes, self.span_nbytes) * 8 // self.dtype.bits
        if not 0 <= offset < size:
            raise IndexError(f"offset {offset} is outside 0..{size - 1} in {self}")
        self.require_layout()
        found = self.place_at(offset)
        if found is None:
            return None
        index = tuple(i - lower for i, lower in zip(found, self.padded_offsets, strict=True))
        inside = all(0 <= i < n for i, n in zip(index, self.dims, strict=True))
        return index if inside else None

    def place_at(self, offset: int) -> tuple[int, ...] | None:
        """As `coords`, but counted from the start of the padding, so that padding has one too."""
        offset = expect_int(offset, "offset")
        return coordinates(self.placed, self.padded_dims, offset - self.offset0, self.tail)

    @property
    def tail(self) -> TailAt | None:
        """Where the digits come in another order; see `clformats.formats.digits.Tail`."""
        return tail_at(self.format.structure, self.dims) if self.format.layout else None

    def require_layout(self) -> None:
        """Raise `InvalidDescriptor` if the layout or a size is not known yet."""
        if not self.has_layout and self.dims:
            raise InvalidDescriptor(
                f"{self} has no layout: choose a concrete format instead of {self.format}"
            )
        if self.has_runtime:
            raise InvalidDescriptor(f"{self} has sizes that are known at execution only")

    # --- operations -------------------------------------------------------------------------------

    def submemory(self, dims: Iterable[int], offsets: Iterable[int]) -> MemoryDesc:
        """The region of ``dims`` at ``offsets``, in the same buffer: `operations.submemory`."""
        sizes, starts = int_tuple("dims", dims), int_tuple("offsets", offsets)
        return self._with(operations.submemory(self.geometry, sizes, starts))

    def reshape(self, dims: Iterable[int]) -> MemoryDesc:
        """The same elements under other dims, row-major: `operations.reshape`."""
        return self._with(operations.reshape(self.geometry, check_dims(dims)))

    def permute_axes(self, permutation: Iterable[int]) -> MemoryDesc:
        """Axis d becomes axis ``permutation[d]``, the inverse of what numpy's transpose takes."""
        axes = int_tuple("permutation", permutation)
        return self._with(operations.permute_axes(self.geometry, axes))

    def broadcast_to(self, dims: Iterable[int]) -> MemoryDesc:
        """The same elements, dimensions of size 1 repeated: `operations.broadcast_to`."""
        return self._with(operations.broadcast_to(self.geometry, check_dims(dims)))

    def legal_crops(self, dim: int) -> Mapping[int, Sequence[int]]:
        """The legal offsets of a submemory along ``dim``, each with its legal sizes, rising.

        Computed lazily, so that a dimension may be of any length.
        """
        return operations.legal_crops(self.geometry, expect_int(dim, "dim"))

    # --- text, equality ---------------------------------------------------------------------------

    def __str__(self) -> str:
        return printed(self.geometry, self.dtype)

    def __repr__(self) -> str:
        return f"MemoryDesc.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> MemoryDesc:
        """The descriptor that ``str`` printed, such as ``"f32:b_fs_yx_fsv16:2x17x5x4"``."""
        expect(text, str, "text")
        if (made := described.parsed(text)) is not None:
            return made  # type: ignore[no-any-return]  # another room's
        dtype, name, sizes, options, extra = read(text)
        pads = options.pop("pad", ())
        base = cls(sizes, dtype, name, padding=pairs(pads) if pads else None, extra=extra)
        return base._with(relaid(base.geometry, **options)) if options else base

    @property
    def key(self) -> tuple[object, ...]:
        """The key of equality, by oneDNN's rule: strides of dimensions of size 1 do not count."""
        key = self._key
        if key is None:
            sized_one = {d for d in range(self.ndims) if self.dims[d] == self.padded_dims[d] == 1}
            places = frozenset(
                (p.digit, p.stride)
                for p in self.placed
                if not (p.digit.size is None and set(p.digit.dims) <= sized_one)
            )
            key = (self.dims, self.dtype, self.padded_dims, self.padded_offsets, self.offset0,
                   self.format_kind, places, self._effective_tail, self.extra)  # fmt: skip
            key = key if self.dims else ()
            object.__setattr__(self, "_key", key)
        return key

    @property
    def _effective_tail(self) -> Tail | None:
        tail = self.format.layout.tail if self.format.layout else None
        return tail if tail and self.dims[tail.dim] % tail.size else None

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, MemoryDesc) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[object, ...]:
        return MemoryDesc.parse, (str(self),)


def _bytes(elements: int, dtype: DType) -> int:
    return -(-elements * dtype.bits // 8)
