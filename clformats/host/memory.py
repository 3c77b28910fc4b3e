"""`HostMemory`: a tensor in the host's own memory, laid out by a descriptor. Needs no OpenCL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor, Unsupported, expect
from ..tensors.arraylike import ArrayLike
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, is_described
from ..tensors.dlpack import array_of
from ..tensors.dtypes import as_dtype, refuse_hidden
from ..tensors.given import as_any_desc, require_memory
from .packing import storage_size, unpack
from .views import strided


class HostMemory(ArrayLike):
    """A tensor on the host: ``desc`` says how it lies in ``array``.

    ``array`` holds the physical elements, padding included, in the order of memory: contiguous, of
    the descriptor's element type (or unsigned integers of its width), 1-D with at least as many
    elements as `clformats.pack` makes, or of any shape with just as many. Of a quantised tensor
    they are its bytes. The array is used in place,
    without a copy, so that a ``np.memmap`` reads and writes its file. Without ``array`` a new one
    of zeros is made.

    Raises `InvalidDescriptor` if the two do not fit together, `Unsupported` (code IMAGE) for
    images, which exist on devices only.
    """

    def __init__(self, desc: MemoryDesc | Described | str, array: Any = None) -> None:
        own: MemoryDesc = as_any_desc(desc, "desc")
        if not is_described(own):
            require_memory(own)
        size = own.nbytes if is_described(own) else storage_size(own)
        if own.format.image:
            raise Unsupported(
                "IMAGE", f"{own} is an image, which lives on a device: name another format here"
            )
        storage = own.dtype.storage
        refuse_hidden(array)
        if array is None:
            array = np.zeros(size, storage)
        _check(array, own, size)
        self.desc = own
        self.array: NDArray[Any] = np.asarray(array).reshape(-1).view(storage)[:size]

    def numpy(self) -> NDArray[Any]:
        """A copy of the logical tensor, of shape ``desc.dims``."""
        return unpack(self.array, self.desc)

    @classmethod
    def of(cls, array: Any) -> HostMemory:
        """A numpy array, or a tensor that speaks DLPack, in place; its shape is the logical dims.

        The axes may be in any order (C, Fortran, transposed), but without gaps. Raises
        `InvalidDescriptor` for gaps, for a single value and for an unknown element type.
        """
        refuse_hidden(array)
        if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
            array = array_of(array, in_place=True)
        expect(array, np.ndarray, "array")
        array = np.asarray(array)
        if array.ndim == 0:
            raise InvalidDescriptor(f"got the single value {array!r}, expected an array")
        order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))
        turned = array.transpose(order)
        if not turned.flags.c_contiguous or not array.dtype.isnative:
            raise InvalidDescriptor(
                f"got an array of {array.dtype.str}, shape {array.shape} and strides "
                f"{array.strides}, which is not dense in this machine's byte order: pass "
                f"np.ascontiguousarray of it, or its memory as HostMemory(desc, elements)"
            )
        strides, step = [0] * array.ndim, 1
        for d in reversed(order):
            strides[d], step = step, step * max(array.shape[d], 1)
        desc = MemoryDesc(array.shape, as_dtype(array.dtype), strides=strides)
        return cls(desc, turned.reshape(-1))

    def places(self, desc: MemoryDesc) -> NDArray[Any]:
        """Every element and padding element of a region of this tensor: one axis for each digit.

        A view, of unsigned integers, through which transfers copy the region.
        """
        raw = self.array.view(f"u{self.array.itemsize}")
        return places(raw, desc)

    def __repr__(self) -> str:
        return f"HostMemory({str(self.desc)!r})"


def places(flat: NDArray[Any], desc: MemoryDesc) -> NDArray[Any]:
    """A view of physical elements with one axis for each digit of ``desc``, outermost first.

    All in one axis where elements share bytes.
    """
    if desc.dtype.is_packed:
        return flat[: storage_size(desc)]
    strides = [p.stride * flat.itemsize for p in desc.placed]
    return strided(flat[desc.offset0 :], [p.size for p in desc.placed], strides)


def behind(flat: NDArray[Any], desc: MemoryDesc) -> NDArray[np.uint8]:
    """A view of the bytes of the sums after the elements; of none for most descriptors."""
    return flat.view(np.uint8)[desc.sums_at : desc.sums_at + desc.sums_nbytes]


def _check(array: Any, desc: MemoryDesc, size: int) -> None:
    fits = (
        isinstance(array, np.ndarray)
        and (array.ndim == 1 or array.size == size)
        and array.dtype in (desc.dtype.storage, desc.dtype.raw)
        and array.flags.c_contiguous
        and array.size >= size
    )
    if not fits:
        got = (
            f"an array of {array.dtype} and shape {array.shape}"
            if isinstance(array, np.ndarray)
            else repr(array)
        )
        raise InvalidDescriptor(
            f"got {got}, expected the physical elements of {desc}: a contiguous array of "
            f"{desc.dtype.storage}, 1-D with at least {size} elements, as cf.pack makes, or of any "
            f"shape with just as many"
        )
