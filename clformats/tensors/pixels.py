"""What a descriptor says of the pixels of an image."""

from __future__ import annotations

from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Protocol

from .geometry import Geometry, as_buffer

if TYPE_CHECKING:
    from .desc import MemoryDesc


class _Laid(Protocol):
    @property
    def geometry(self) -> Geometry: ...
    def _with(self, geometry: Geometry) -> MemoryDesc: ...


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
    def buffer_twin(self: _Laid) -> MemoryDesc:
        """The descriptor of a buffer that has the bytes of an image, row by row without gaps.

        A buffer is its own twin.
        """
        return self._with(as_buffer(self.geometry))
