"""What tensors have in common with arrays: shape, element type, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .dtypes import DType

if TYPE_CHECKING:
    from .desc import MemoryDesc


class _Counted(Protocol):
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def nelems(self) -> int: ...


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
