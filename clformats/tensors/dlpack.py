"""Tensors of other libraries as numpy arrays in place, by DLPack, and the other way.

numpy's own reader knows neither bf16 nor f8, the types of today's weights. The structures are those
of dlpack.h, https://github.com/dmlc/dlpack, versions 0.8 to 1.1.
"""

from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor
from .rows import ROWS

_CPU_LIKE = (1, 3, 11, 13)  # the host's memory, and what CUDA and ROCm let the host read
_VERSION = (1, 1)
_READ_ONLY = 1
_NAMES = (b"dltensor_versioned", b"dltensor")
_MOST_NDIMS = 64  # numpy's
_CODES: dict[tuple[int, int], np.dtype[Any]] = {
    **{(0, bits): np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{(1, bits): np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{(2, bits): np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    (6, 8): np.dtype(np.bool_),
    **{(int(row.names["dlpack"]), row.bits): row.numpy for row in ROWS if "dlpack" in row.names},
}
_OF_TYPE = {dtype: code for (code, _), dtype in _CODES.items()}


class _DataType(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Owner:
    """What numpy makes an array of; the array keeps it, and with it the tensor."""

    def __init__(self, capsule: object, interface: dict[str, object]) -> None:
        self._capsule = capsule
        self.__array_interface__ = interface


def array_of(tensor: Any, *, in_place: bool = False) -> NDArray[Any]:
    """The elements of a tensor in host memory that speaks DLPack, where they lie.

    The array is read-only where the tensor says so, or cannot say so and is not torch's.
    ``in_place`` refuses tensors that would give a copy. Raises `InvalidDescriptor`.
    """
    try:
        device = int(tensor.__dlpack_device__()[0])
        capsule = _exported(tensor, in_place=in_place) if device in _CPU_LIKE else None
        found, flags = (None, None) if capsule is None else _opened(capsule)
    except (AttributeError, TypeError, ValueError, BufferError, RuntimeError) as error:
        raise InvalidDescriptor(
            f"got {type(tensor).__name__}, expected a tensor in host memory that speaks DLPack: "
            f"{error}"
        ) from error
    if found is None:
        raise InvalidDescriptor(
            f"got {type(tensor).__name__} on a device (type {device} of DLPack), expected a tensor "
            f"in host memory that speaks DLPack: copy it there, as tensor.cpu() does"
        )
    read_only = bool(flags & _READ_ONLY) if flags is not None else not _is_torch(tensor)
    array = _viewed(capsule, found, read_only=read_only)
    return array.view(_F8[str(tensor.dtype)]) if _is_hidden(tensor) else array


def capsule_of(array: NDArray[Any], **wishes: Any) -> Any:
    """``array.__dlpack__(**wishes)``, of bf16 and f8 too."""
    code = _OF_TYPE.get(array.dtype)
    if code is None or array.dtype.isbuiltin == 1:
        return array.__dlpack__(**wishes)
    capsule = array.view(f"u{array.itemsize}").__dlpack__(**wishes)
    _opened(capsule)[0].dtype.code = code
    return capsule


# --- torch refuses to export f8, but not the bytes ------------------------------------------------

_F8 = {f"torch.{row.names['torch']}": row.numpy for row in ROWS
       if row.is_coded and "torch" in row.names}  # fmt: skip


def _is_torch(tensor: object) -> bool:
    return type(tensor).__module__.partition(".")[0] == "torch"


def _is_hidden(tensor: Any) -> bool:
    return _is_torch(tensor) and str(tensor.dtype) in _F8


# --- capsules -------------------------------------------------------------------------------------


def _exported(tensor: Any, *, in_place: bool) -> Any:
    if _is_torch(tensor) and getattr(tensor, "is_neg", bool)():
        raise ValueError("its values are negated as they are read: give tensor.resolve_neg()")
    if _is_hidden(tensor):
        tensor = tensor.view(sys.modules["torch"].uint8)
    try:
        return tensor.__dlpack__(max_version=_VERSION, **({"copy": False} if in_place else {}))
    except TypeError:  # it speaks the first version of the protocol only
        return tensor.__dlpack__()


def _opened(capsule: object) -> tuple[_Tensor, int | None]:
    """The tensor in a capsule, which stays its owner; its flags, None where it has none."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    if name not in _NAMES:
        raise ValueError(f"its capsule is named {name!r}, expected one of {_NAMES}")
    where = api.PyCapsule_GetPointer(capsule, name)
    if name == _NAMES[1]:
        return _checked(_Tensor.from_address(where)), None
    managed = _Versioned.from_address(where)
    return _checked(managed.tensor), int(managed.flags)


def _checked(tensor: _Tensor) -> _Tensor:
    if not 0 <= tensor.ndim <= _MOST_NDIMS or (tensor.ndim and not tensor.shape):
        raise ValueError(f"it says that it has {tensor.ndim} dimensions")
    if any(n < 0 for n in tensor.shape[: tensor.ndim]):
        raise ValueError(f"it says that its shape is {tensor.shape[: tensor.ndim]}")
    return tensor


def _viewed(capsule: object, found: _Tensor, *, read_only: bool) -> NDArray[Any]:
    kind = found.dtype.code, found.dtype.bits
    if kind not in _CODES or found.dtype.lanes != 1:
        raise InvalidDescriptor(
            f"got a tensor of DLPack's type {kind[0]} with {kind[1]} bits, which no element type is"
        )
    dtype, shape = _CODES[kind], tuple(found.shape[: found.ndim])
    if not prod(shape):
        return np.empty(shape, dtype)
    item = dtype.itemsize
    interface: dict[str, object] = {
        "version": 3,
        "shape": shape,
        "typestr": f"{'<' if sys.byteorder == 'little' else '>'}u{item}" if item > 1 else "|u1",
        "data": ((found.data or 0) + found.byte_offset, read_only),
        "strides": tuple(n * item for n in found.strides[: found.ndim]) if found.strides else None,
    }
    return np.asarray(_Owner(capsule, interface)).view(dtype)
