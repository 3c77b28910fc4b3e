"""Element types: their bits, their numpy type, and how one is converted to another.

The rules of conversion, the same on the host and in every kernel:

* between integers: exact, saturating;
* integer to float: to nearest, ties to even; to a float narrower than f32 through f32;
* float to float: to nearest, ties to even, overflow to infinity (in ``f8_e4m3``, which has none, to
  NaN), subnormals and -0 kept, NaN stays NaN (its payload may change); f64 becomes f32 first
  on the way to ``bf16``, ``f8_e4m3`` and ``f8_e5m2``;
* float to integer: to nearest, ties to even, then saturating; NaN becomes 0.

Types of less than a byte (``s4 u4 u1``) have one byte per element in arrays of logical shape, and
share bytes in memory, the first element in the lowest bits: the low nibble of a byte, the lowest
bit of a word.

oneDNN leaves NaN to integer unspecified and stops f32 -> s32 at 2147483520, the largest f32 below
2**31; here the result saturates at 2147483647, as OpenCL's ``convert_int_sat_rte`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, expect_int, shown
from . import dlpack


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: ``name`` as oneDNN spells it, ``bits`` of storage, kind and numpy type."""

    name: str
    bits: int
    kind: str  # "float", "signed" or "unsigned"
    numpy: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The bytes of one element; 1 if several share a byte."""
        return max(1, self.bits // 8)

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte."""
        return self.bits < 8

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of memory: of elements, or of the bytes that they share."""
        return np.dtype(np.uint8) if self.is_packed else self.numpy

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type."""
        if self.kind == "signed":
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.kind == "float"

    @property
    def raw(self) -> np.dtype[Any]:
        """The unsigned integer type of the same width, for moving bits unchanged."""
        return np.dtype(f"u{self.nbytes}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"DType({self.name!r})"


_ALL = (
    DType("f32", 32, "float", np.dtype(np.float32)),
    DType("f16", 16, "float", np.dtype(np.float16)),
    DType("bf16", 16, "float", np.dtype(ml_dtypes.bfloat16)),
    DType("f64", 64, "float", np.dtype(np.float64)),
    DType("s32", 32, "signed", np.dtype(np.int32)),
    DType("s8", 8, "signed", np.dtype(np.int8)),
    DType("u8", 8, "unsigned", np.dtype(np.uint8)),
    DType("s4", 4, "signed", np.dtype(ml_dtypes.int4)),
    DType("u4", 4, "unsigned", np.dtype(ml_dtypes.uint4)),
    DType("u1", 1, "unsigned", np.dtype(np.bool_)),
    DType("f8_e4m3", 8, "float", np.dtype(ml_dtypes.float8_e4m3fn)),
    DType("f8_e5m2", 8, "float", np.dtype(ml_dtypes.float8_e5m2)),
)
_BY_NAME = {d.name: d for d in _ALL}
_BY_TORCH = {
    "torch.float64": "f64",
    "torch.float32": "f32",
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.float8_e4m3fn": "f8_e4m3",
    "torch.float8_e5m2": "f8_e5m2",
    "torch.int32": "s32",
    "torch.int8": "s8",
    "torch.uint8": "u8",
}
_BY_NUMPY = {d.numpy: d for d in _ALL}

DTYPES = tuple(_BY_NAME)

OPENCL = {
    "f32": "float",
    "f16": "half",
    "bf16": "ushort",
    "f64": "double",
    "s32": "int",
    "s8": "char",
    "u8": "uchar",
    "f8_e4m3": "uchar",
    "f8_e5m2": "uchar",
}
"""The OpenCL C type of an element in memory, for types whose elements do not share bytes."""


def as_dtype(value: object) -> DType:
    """The element type of a name (``"bf16"``), of numpy, ml_dtypes or torch, or a `DType`.

    Raises `InvalidDescriptor` for anything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if type(value).__module__ == "torch" and str(value) in _BY_TORCH:
        return _BY_NAME[_BY_TORCH[str(value)]]
    found = None
    if value is not None:  # numpy takes None for float64
        try:
            found = _BY_NUMPY.get(np.dtype(value).newbyteorder("="))  # type: ignore[call-overload]
        except (TypeError, ValueError, SyntaxError):
            found = None
    if found is None:
        whole = isinstance(value, np.dtype) and value.kind in "iu"
        raise InvalidDescriptor(
            f"unknown element type {value!r}: expected one of {', '.join(DTYPES)}, "
            f"or the numpy or ml_dtypes type of one"
            f"{'; convert the array first: array.astype(np.int32)' * whole}"
        )
    return found


def as_array(value: object) -> NDArray[Any]:
    """The value as a numpy array of numbers; tensors of other libraries too.

    Raises `InvalidArgument` for rows of unequal length, and for texts and objects.
    """
    speaks = hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
    if speaks and not hasattr(value, "__array__"):
        return dlpack.array_of(value)
    try:
        array = np.asarray(value)
    except TypeError:
        if not speaks:
            raise
        return dlpack.array_of(value)  # torch's of bf16, for which numpy has no type
    except ValueError as error:
        raise InvalidArgument(f"no array can be made of {shown(value)}: {error}") from None
    if array.dtype.kind in "OSUMm":
        raise InvalidArgument(f"expected an array of numbers, got {shown(value)}: {array.dtype}")
    return array


def as_index(value: object, kind: type) -> Any:
    """An int, or an array of ``kind``. Raises `InvalidArgument` for anything but integers."""
    if not isinstance(value, np.ndarray | list | tuple):
        return expect_int(value, "index")
    array = as_array(value)
    if array.dtype.kind not in "iu":
        raise InvalidArgument(f"indices are integers, got an array of {array.dtype}")
    return array.astype(kind)


def convert(array: NDArray[Any], src: object, dst: object) -> NDArray[Any]:
    """``array`` of type ``src`` as type ``dst``, by the rules in the module's docstring."""
    return _converted(as_array(array), as_dtype(src), as_dtype(dst))


def _converted(array: NDArray[Any], src: DType, dst: DType) -> NDArray[Any]:
    if src == dst:
        return array
    if not src.is_float and not dst.is_float:
        return saturate(array.astype(np.int64), dst)
    if src.is_float and dst.is_float:
        return _narrow_float(array, dst)
    if dst.is_float:
        return _narrow_float(array.astype(np.float64 if dst.name == "f64" else np.float32), dst)
    # The limits of small integers are exact in f32.
    real = np.float32 if src.bits <= 32 and dst.bits <= 8 else np.float64
    whole = np.asarray(np.rint(array.astype(real, copy=False)))
    if whole.size and np.isnan(whole.min()):
        np.copyto(whole, 0, where=np.isnan(whole))
    return saturate(whole, dst)


def saturate(array: NDArray[Any], dst: DType) -> NDArray[Any]:
    """Integers, or floats that are whole, as the integer type ``dst``, clipped to its range."""
    return np.asarray(np.clip(array, *dst.limits).astype(dst.numpy))


def _narrow_float(array: NDArray[Any], dst: DType) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array.astype(dst.numpy, copy=False))
