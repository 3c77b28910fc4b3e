"""`QuantisedDesc`: where every bit of a quantised tensor lies. `MemoryDesc` makes them."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, InvalidFormat, expect, expect_int
from ..formats import Format
from ..formats.expr import Expr, Var
from ..tensors.described import Described, LayoutName, refuse
from ..tensors.dtypes import as_index
from ..tensors.shaped import Shaped
from . import host
from .owners import value_at
from .placing import extents_of, placed
from .planes import Buffer, Field, Plane
from .types import WHOLE, QuantisedType


class QuantisedDesc(Shaped, Described):
    """A quantised tensor: dims, a quantised type, and a layout of it.

    ``MemoryDesc((n, k), "q4_0", "gguf")`` makes one. ``dims`` are in logical order: rows and
    columns, experts in front; parameters stand for groups of columns. ``layout`` is a name of
    `clformats.layouts`, or the text of one; without it ``gguf``, or ``plain``.

    ``fields`` maps names to `Field`, ``planes`` to `Plane`; ``buffers`` says where each run of
    planes begins, in bytes. A buffer begins at a multiple of 128 bytes.

    Raises `InvalidDescriptor` and `InvalidFormat`.
    """

    __slots__ = ("_placement", "buffers", "dims", "dtype", "fields", "layout", "planes", "text")

    dims: tuple[int, ...]
    dtype: QuantisedType
    layout: str
    text: str
    fields: dict[str, Field]
    planes: dict[str, Plane]
    buffers: tuple[Buffer, ...]

    def __init__(
        self,
        dims: Iterable[int] | str,
        dtype: QuantisedType,
        layout: str | Format | None = None,
    ) -> None:
        expect(dtype, QuantisedType, "dtype")
        if isinstance(layout, Format):  # which no quantised type has: its name is refused below
            layout = str(layout)
        expect(layout, str | None, "layout")
        layout = layout or _default(dtype)
        set_ = object.__setattr__
        set_(self, "dims", _dims(dims))
        set_(self, "dtype", dtype)
        text = dtype.layouts.get(layout, layout)
        if "=" not in text:
            raise InvalidFormat(f"{dtype} has no layout {layout!r}: expected one of "
                                f"{', '.join(dtype.layouts)}, or digits such as "
                                f"{dtype.layouts['plain']!r}")  # fmt: skip
        known = next((n for n, t in dtype.layouts.items() if t == text), text)
        set_(self, "layout", layout if layout in dtype.layouts else known)
        set_(self, "text", text)
        found = placed(dtype, dtype.check_layout(text), self.dims)
        for name in ("fields", "planes", "buffers"):
            set_(self, name, getattr(found, name))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"QuantisedDesc is immutable: cannot set {name} to {value!r}")

    @property
    def format(self) -> LayoutName:
        """The layout, under the name that descriptors of one element type have for it."""
        return LayoutName(self.layout)

    @property
    def format_kind(self) -> str:
        """``"quantised"``."""
        return "quantised"

    @property
    def has_layout(self) -> bool:
        """True: there is no type without one."""
        return True

    def require_layout(self) -> None:
        """Nothing: layout and sizes are known."""

    @property
    def ndims(self) -> int:
        """The number of logical dimensions."""
        return len(self.dims)

    @property
    def extents(self) -> tuple[int, int, int]:
        """Experts, rows and columns."""
        return extents_of(self.dims)

    @property
    def nelems(self) -> int:
        """The number of logical elements."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers, with what lies between them."""
        return self.buffers[-1].start + self.buffers[-1].nbytes

    @property
    def has_padding(self) -> bool:
        """Whether buffers have bits that belong to no value."""
        values = [0] * len(self.buffers)
        for field in self.fields.values():
            for plane in field.planes:
                values[plane.buffer] += prod(field.extents) * plane.bits
        return any(n != 8 * b.nbytes for n, b in zip(values, self.buffers, strict=True))

    @property
    def span_nbytes(self) -> int:
        """The same as `nbytes`."""
        return self.nbytes

    @property
    def image_shape(self) -> None:
        """None: buffers, no image."""
        return

    @property
    def sums(self) -> tuple[()]:
        """None: nothing follows the planes."""
        return ()

    @property
    def has_runtime(self) -> bool:
        """False: the sizes of quantised tensors are known."""
        return False

    def address(self, plane: str | Plane, indices: tuple[Expr, Expr, Expr]) -> Expr:
        """The bit at which a plane's part of a value begins, for experts, rows and columns."""
        own = self.planes[plane] if isinstance(plane, str) else plane
        field = next(f for f in self.fields.values() if own in f.planes)
        e, n, k = indices
        rows, columns = field.group
        return own.address((e, _part(n, rows), _part(k, columns)))

    def offset(self, *index: Any, plane: str | None = None) -> Any:
        """The bit at which the plane's part of an element lies, counted from the first byte.

        ``plane`` is a name of `planes`, by default the first plane of the first field. Takes ints,
        or integer arrays that broadcast. Of a field that is shared by a group every element of the
        group has the same. Raises IndexError, and `InvalidArgument` for an unknown plane.
        """
        own_plane = self._plane(plane)
        if len(index) != self.ndims:
            raise IndexError(f"got {len(index)} indices for {self.ndims} dimensions of {self}")
        own = [as_index(i, np.int64) for i in index]
        for i, n in zip(own, self.dims, strict=True):
            if np.any(np.asarray(i) < 0) or np.any(np.asarray(i) >= n):
                raise IndexError(f"index {i} is outside 0..{n - 1} in {self}")
        experts: Any = 0
        for i, n in zip(own[:-2], self.dims[:-2], strict=True):
            experts = experts * n + i
        rows = own[-2] if self.ndims > 1 else 0
        found = self.address(own_plane, (Var("e"), Var("n"), Var("k")))
        return found.evaluate({"e": experts, "n": rows, "k": own[-1]})

    def offsets(self, plane: str | None = None) -> NDArray[np.int64]:
        """`offset` of every element: an int64 array of shape ``dims``."""
        axes = np.ogrid[tuple(map(slice, self.dims))]
        return np.broadcast_to(np.asarray(self.offset(*axes, plane=plane), np.int64), self.dims)

    def coords(self, offset: int, plane: str | None = None) -> tuple[int, ...] | None:
        """The logical index of the element to which the plane's bit ``offset`` belongs.

        Of a group that shares the bit it is the first element; None where the bit is padding, or
        another plane's. Raises IndexError outside the tensor.
        """
        offset = expect_int(offset, "offset")
        if not 0 <= offset < 8 * self.nbytes:
            raise IndexError(f"bit {offset} is outside 0..{8 * self.nbytes - 1} in {self}")
        own = self._plane(plane)
        field = next(f for f in self.fields.values() if own in f.planes)
        found = value_at(own, offset)
        if found is None or any(i >= n for i, n in zip(found, field.extents, strict=True)):
            return None
        e, n, k = (i * max(g, 1) for i, g in zip(found, (1, *field.group), strict=True))
        experts = (int(i) for i in np.unravel_index(e, self.dims[:-2])) if self.ndims > 2 else ()
        return *experts, *(n, k)[2 - min(self.ndims, 2) :]

    def _plane(self, name: str | None) -> Plane:
        """The plane of a name; without one the first of the first field."""
        expect(name, str | None, "plane")
        if name is None:
            return next(iter(self.fields.values())).planes[0]
        if name not in self.planes:
            raise InvalidArgument(f"plane: got {name!r}, expected one of {', '.join(self.planes)}")
        return self.planes[name]

    def split(self, raw: Any) -> dict[str, NDArray[np.uint8]]:
        """Views of the buffers in the bytes of a tensor, each under the name of its first plane."""
        data = host.as_bytes(raw, self)
        return {b.first: data[b.start : b.start + b.nbytes] for b in self.buffers}

    def join(self, buffers: Mapping[str, Any]) -> NDArray[np.uint8]:
        """The bytes of a tensor, from those of its buffers: the inverse of `split`.

        Buffers are arrays of any type. Raises `InvalidDescriptor` for another size than the
        layout's, and for a matrix whose rows begin where no digit of the layout does: one of other
        dims, or of its transpose. A flat array is taken as it is.
        """
        names = [b.first for b in self.buffers]
        if sorted(buffers) != sorted(names):
            raise InvalidDescriptor(
                f"got the buffers {sorted(buffers)}, expected {names} of {self}"
            )
        raw = np.zeros(self.nbytes, np.uint8)
        for k, (name, b) in enumerate(zip(names, self.buffers, strict=True)):
            given = np.ascontiguousarray(buffers[name])
            if given.nbytes != b.nbytes:
                raise InvalidDescriptor(
                    f"buffer {name}: got {given.nbytes} bytes, expected {b.nbytes}"
                )
            self.check_rows(k, given.shape, given.dtype, given.nbytes)
            raw[b.start : b.start + b.nbytes] = given.reshape(-1).view(np.uint8)
        return raw

    def check_rows(self, number: int, shape: Sequence[int], dtype: object, nbytes: int) -> None:
        """Refuse a dense matrix, to be a buffer, whose rows are steps of no digit.

        Raises `InvalidDescriptor`; a square matrix cannot be told from its transpose.
        """
        sizes = [n for n in shape if n != 1]
        planes = [p for p in self.planes.values() if p.buffer == number]
        strides = sorted({d.stride for p in planes for d in p.digits if d.size > 1})
        if len(sizes) != 2 or not strides or nbytes * 8 // sizes[0] in strides:
            return
        rows = nbytes * 8 // strides[-1]
        raise InvalidDescriptor(
            f"buffer {self.buffers[number].first}: got an array of {sizes[0]} x {sizes[1]}, "
            f"expected {rows} x {sizes[0] * sizes[1] // rows} of {dtype} for {self}; or a flat "
            f"one, if its bytes are right"
        )

    def with_layout(self, layout: str | None) -> QuantisedDesc:
        """The same tensor in another layout of its type."""
        return QuantisedDesc(self.dims, self.dtype, layout)

    def submemory(self, dims: Iterable[int], offsets: Iterable[int]) -> QuantisedDesc:
        """Raise `Unsupported` (code QUANTISED): groups cannot be cut."""
        refuse(self, f"a region of {tuple(dims)} at {tuple(offsets)}")
        return self

    def pack(self, values: Any) -> NDArray[Any]:
        """As `clformats.pack`: ``values`` of shape ``dims``, or a dict of all fields."""
        return host.pack(values, self)

    def unpack(self, raw: Any, field: str | None = None) -> NDArray[Any]:
        """As `clformats.unpack`."""
        return host.unpack(raw, self, field)

    def __str__(self) -> str:
        return f"{self.dtype}:{self.layout}:{'x'.join(map(str, self.dims))}"

    def __repr__(self) -> str:
        return f"MemoryDesc.parse({str(self)!r})"

    @property
    def key(self) -> tuple[object, ...]:
        """The key of equality: type, dims, where every plane lies, and what is added to codes."""
        added = tuple(f.bias for f in self.fields.values())
        return self.dims, self.dtype, tuple(self.planes.items()), self.buffers, added

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, QuantisedDesc) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.dims, self.dtype, self.text))

    def __reduce__(self) -> tuple[object, ...]:
        return QuantisedDesc, (self.dims, self.dtype, self.layout)


def _part(index: Expr, group: int) -> Expr:
    return index * 0 if group == WHOLE else index // group


def _default(dtype: QuantisedType) -> str:
    return "gguf" if "gguf" in dtype.layouts else "plain"


def _is_size(n: object) -> bool:
    """Whether it is an int, of a kind of its own perhaps, which stays."""
    return isinstance(n, int) and not isinstance(n, bool)


def _dims(dims: Iterable[int] | str) -> tuple[int, ...]:
    if isinstance(dims, str):
        if not re.fullmatch(r"\d+(x\d+)*", dims):
            raise InvalidDescriptor(f"got the dims {dims!r}, expected such as 4096x14336")
        dims = [int(n) for n in dims.split("x")]
    try:
        result = tuple(n if _is_size(n) else operator.index(n) for n in dims)
    except TypeError:
        raise InvalidDescriptor(f"dims must be a sequence of ints, got {dims!r}") from None
    if not result or min(result) < 0:
        raise InvalidDescriptor(f"got dims {result}, expected (rows, columns), experts in front, "
                                f"all of them known")  # fmt: skip
    return result


QuantisedType.maker = QuantisedDesc
