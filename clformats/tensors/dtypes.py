"""Element types by name, and how values of one are converted to another.

The rules of conversion, the same on the host and in every kernel:

* between integers: exact, saturating;
* integer to float: to nearest, ties to even; to a float narrower than f32 through f32;
* float to float: to nearest, ties to even, overflow to infinity, where a type has none to NaN
  (``f8_e4m3``), where it has neither to its largest number (``f4_e2m1 f6_e2m3 f6_e3m2``);
  subnormals and -0 kept, NaN stays NaN (its payload may change) or becomes the largest number; f64
  becomes f32 first on the way to ``bf16`` and to floats of a byte or less. ``f8_e8m0`` and types
  with a table have rules of their own: `clformats.tensors.codes`;
* float to integer: to nearest, ties to even, then saturating; NaN becomes 0.

Types of less than a byte have one byte per element in arrays of logical shape, and share bytes in
memory: `clformats.tensors.rows`.

oneDNN leaves NaN to integer unspecified and stops f32 -> s32 at 2147483520, the largest f32 below
2**31; here the result saturates at 2147483647, as OpenCL's ``convert_int_sat_rte`` does.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, expect_int, shown
from . import dlpack
from .codes import code_of, values_of_codes
from .rows import ROWS, DType

__all__ = [
    "DTYPES",
    "ROWS",
    "DType",
    "as_array",
    "as_dtype",
    "as_index",
    "codes",
    "convert",
    "from_codes",
]

DTYPES = tuple(row.name for row in ROWS)
BY_NAME = {name: row for row in ROWS for name in (row.name, *row.names.get("aliases", "").split())}
"""The element types by their names and aliases."""
_BY_NUMPY = {row.numpy: row for row in reversed(ROWS)}  # of several the first: uint8 is u8


def named(system: str) -> dict[str, DType]:
    """The element types by their names in another system, one of the keys of `DType.names`."""
    return {row.names[system]: row for row in ROWS if system in row.names}


_BY_TORCH = named("torch")


def as_dtype(value: object) -> DType:
    """The element type of a name (``"bf16"``), of numpy, ml_dtypes or torch, or a `DType`.

    Raises `InvalidDescriptor` for anything else, and for texts in which numpy counts bytes: ``f8``
    could mean two types.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    if type(value).__module__ == "torch" and (known := str(value).partition(".")[2]) in _BY_TORCH:
        return _BY_TORCH[known]
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
            f"or the numpy or ml_dtypes type of one{_meant(value)}"
            f"{'; convert the array first: array.astype(np.int32)' * whole}"
        )
    if isinstance(value, str) and re.fullmatch(r"[a-z]\d", value):
        others = [name for name in DTYPES if name.startswith(f"{value}_")]
        raise InvalidDescriptor(
            f"element type {value!r}: numpy counts bytes and calls {found} so, names here count "
            f"bits: write {', '.join([found.name, *others])}"
        )
    return found


def _meant(value: object) -> str:
    """The element type that a text most likely means, for the end of a message."""
    if not isinstance(value, str):
        return ""
    word = value.strip().lower().rpartition(".")[2]  # of torch.float16 and np.float16
    for name in (re.sub(r"^i(?=\d)", "s", word), re.sub(r"^fp(?=\d)", "f", word), word):
        with suppress(InvalidDescriptor):
            found = as_dtype(name) if name != value else None
            # numpy counts bytes: its f8 is f64, which is not what fp8 means.
            if found and not re.fullmatch(rf"[a-z]+(?!{found.bits})\d+", name):
                return f". Did you mean {found}?"
    return ""


def refuse_hidden(value: object) -> None:
    """Raise `InvalidArgument` for a masked array in which elements are hidden."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidArgument(
            f"got a masked array in which {np.count_nonzero(value.mask)} elements are hidden, "
            f"expected a value for each: give array.filled(value), or array.data"
        )


def as_array(value: object) -> NDArray[Any]:
    """The value as a numpy array of numbers; tensors of other libraries too.

    Raises `InvalidArgument` for rows of unequal length, for texts and objects, and for masked
    arrays in which elements are hidden.
    """
    refuse_hidden(value)
    speaks = hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
    if speaks and not hasattr(value, "__array__"):
        return dlpack.array_of(value)
    try:
        array = np.asarray(value)
    except TypeError:
        if not speaks:
            raise
        return dlpack.array_of(value)  # torch's of bf16, for which numpy has no type
    except (ValueError, RuntimeError) as error:  # torch's of tensors with gradients
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
    source, target = as_dtype(src), as_dtype(dst)
    array = as_array(array)
    return array if source == target else from_codes(_codes(array, source, target), target)


def codes(array: object, dtype: DType) -> NDArray[Any]:
    """The values of any array as codes of ``dtype``, unsigned integers; a view where it can be.

    The array's own type says how its values are to be read. Integers that have no type of ours
    saturate, bool counts 0 and 1. Raises `InvalidDescriptor` for other types that are not ours.
    """
    values = as_array(array)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind in "iu" and values.dtype not in _BY_NUMPY:
        return _rounded(values, dtype)
    return _codes(values, as_dtype(values.dtype), dtype)


def from_codes(found: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Codes as an array of the type ``dtype.numpy``; a view where that holds codes."""
    if not dtype.holds_codes:
        return np.asarray(values_of_codes(dtype)[found])
    if dtype.is_packed and dtype.numpy.kind == "i":
        return np.asarray(_extended(found, dtype).astype(dtype.numpy, copy=False))
    return found.view(dtype.numpy)


def _codes(array: NDArray[Any], src: DType, dst: DType) -> NDArray[Any]:
    if src != dst:
        return _rounded(_numbers(array, src), dst)
    if not dst.holds_codes:
        return code_of(array, dst)
    found = array.view(dst.raw)
    return found & dst.raw.type((1 << dst.bits) - 1) if dst.is_packed else found


def _numbers(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The values in a type that numpy, or ml_dtypes as fast, calculates with."""
    if dtype.is_coded:
        return values_of_codes(dtype)[array.view(np.uint8)] if dtype.holds_codes else array
    if not dtype.is_packed:
        return array
    found = array.view(np.uint8)
    return _extended(found, dtype) if dtype.kind == "signed" else found


def _extended(found: NDArray[np.uint8], dtype: DType) -> NDArray[np.int8]:
    """The values of the codes of a signed type of less than a byte, whatever is above them."""
    spare = 8 - dtype.bits
    return np.asarray((found << np.uint8(spare)).view(np.int8) >> np.int8(spare))


def _rounded(numbers: NDArray[Any], dst: DType) -> NDArray[Any]:
    """Numbers as codes: integers of numpy's, or real numbers."""
    real = numbers.dtype.kind not in "iub"
    if dst.is_coded:
        return code_of(numbers, dst)
    if dst.is_float:
        if not real and dst.bits < 32:
            numbers = numbers.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(numbers.astype(dst.numpy, copy=False)).view(dst.raw)
    whole = _whole(numbers, dst) if real else _clipped(numbers, *dst.limits)
    signed = np.dtype(f"i{dst.nbytes}") if dst.kind == "signed" else dst.raw
    found = whole.astype(signed, copy=False).view(dst.raw)
    return found & dst.raw.type((1 << dst.bits) - 1) if dst.is_packed else found


def _whole(numbers: NDArray[Any], dst: DType) -> NDArray[Any]:
    """Real numbers rounded to whole ones and clipped to the range of ``dst``; NaN becomes 0."""
    # The limits of small integers are exact in f32.
    real = np.float32 if numbers.dtype.itemsize <= 4 and dst.bits <= 8 else np.float64
    with np.errstate(invalid="ignore"):  # numpy warns of signalling NaN
        whole = np.asarray(np.rint(numbers.astype(real, copy=False)))
    if whole.size and np.isnan(whole.min()):
        np.copyto(whole, 0, where=np.isnan(whole))
    if dst.bits < 64:
        return np.asarray(np.clip(whole, *dst.limits))
    with np.errstate(invalid="ignore"):  # the largest of 64 bits is no float
        result = whole.astype(dst.numpy)
    for beyond, limit in zip((whole < -(2.0**63), whole >= 2.0**63), dst.limits, strict=True):
        np.copyto(result, limit, where=beyond)
    return np.asarray(result)


def _clipped(numbers: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """Integers clipped to a range, of which only a part may be theirs."""
    if numbers.dtype.kind == "b":
        numbers = numbers.view(np.uint8)
    mine = np.iinfo(numbers.dtype)
    if low <= mine.min and mine.max <= high:
        return numbers
    return np.asarray(np.clip(numbers, max(low, mine.min), min(high, mine.max)))
