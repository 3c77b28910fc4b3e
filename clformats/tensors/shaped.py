"""What descriptors have in common with arrays and with images."""

from __future__ import annotations

from itertools import islice
from math import prod
from typing import Protocol, TypeVar

from .dtypes import DType
from .geometry import Geometry, as_buffer


class _Counted(Protocol):
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def nelems(self) -> int: ...


class _Laid(Protocol):
    @property
    def geometry(self) -> Geometry: ...
    def _with(self: Desc, geometry: Geometry) -> Desc: ...  # noqa: PYI019  # Self: Python 3.11


Desc = TypeVar("Desc", bound=_Laid)


class Shaped:
    """The names that arrays have for what a descriptor says."""

    __slots__ = ()

    @property
    def shape(self: _Counted) -> tuple[int, ...]:
        """The sizes in logical order: ``dims``."""
        return self.dims

    @property
    def ndim(self: _Counted) -> int:
        """The number of logical dimensions: ``ndims``."""
        return len(self.dims)

    @property
    def size(self: _Counted) -> int:
        """The number of logical elements, without padding: ``nelems``."""
        return self.nelems

    @property
    def itemsize(self: _Counted) -> int:
        """The bytes of one element; 1 where several share a byte."""
        return self.dtype.nbytes


class Pixels:
    """The axes of an image, and the buffer of the same bytes."""

    __slots__ = ()

    @property
    def image_shape(self: _Laid) -> tuple[int, ...] | None:
        """Rows, columns and components of an image; None for a buffer.

        Layers stand before them if there are any; an image of pixels in one line has pixels and
        components. Offsets and `clformats.pack` treat the pixels as a dense array of this shape.
        """
        counts = self.geometry.format.image
        sizes = iter([p.size for p in self.geometry.placed])
        return None if counts is None else tuple(prod(islice(sizes, n)) for n in counts)

    @property
    def buffer_twin(self: Desc) -> Desc:  # noqa: PYI019  # Self: Python 3.11
        """The descriptor of a buffer that has the bytes of an image, row by row without gaps.

        A buffer is its own twin.
        """
        return self._with(as_buffer(self.geometry))
