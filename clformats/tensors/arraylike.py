"""What memory has in common with arrays: shape, element type, counts."""

from __future__ import annotations

from .desc import MemoryDesc
from .dtypes import DType


class ArrayLike:
    """The attributes of an array, by ``desc``: of the logical tensor, not of its bytes."""

    __slots__ = ()
    desc: MemoryDesc

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes in logical order: ``desc.dims``."""
        return self.desc.shape

    @property
    def dtype(self) -> DType:
        """The element type: ``desc.dtype``."""
        return self.desc.dtype

    @property
    def ndim(self) -> int:
        """The number of logical dimensions."""
        return self.desc.ndim

    @property
    def size(self) -> int:
        """The number of logical elements, without padding."""
        return self.desc.size

    @property
    def itemsize(self) -> int:
        """The bytes of one element; 1 where several share a byte."""
        return self.desc.itemsize
