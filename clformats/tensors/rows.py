"""The table of element types: one row says all there is to know about a type.

A new row is a new type: conversion, packing, kernels, files and tests ask the row. A
*code* is the bits of an element as an unsigned number. A value has a code by one of three rules:

* integers: two's complement, or unsigned;
* floats: sign, exponent, mantissa, as `Float` says; the codes of `Float.value`;
* tables: code k stands for ``values[k]``, any numbers that f32 can hold.

In memory element i of a type of b bits has the bits ``[i * b, (i + 1) * b)`` of the tensor, where
bit k of memory is bit ``k % 8`` of byte ``k // 8``. So two elements of 4 bits share a byte, the
first in the low half, and an element of 3, 5 or 6 bits may lie in two bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import copysign, frexp, gcd, inf, isfinite, nan
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point type in numbers; its codes are those of IEEE 754 but for what stands here.

    ``exponent`` and ``mantissa`` are in bits. A *magnitude* is a code without its sign.
    ``infinity`` is the magnitude of infinity, ``nan`` that of the NaN that conversions make. All
    magnitudes above infinity are NaN; without an infinity those from ``nan`` on are. A type that
    is not ``signed`` has no zero and no subnormal numbers either: it holds powers of two, those of
    f32's exponents.
    """

    exponent: int
    mantissa: int
    bias: int
    infinity: int | None = None
    nan: int | None = None
    signed: bool = True

    def __post_init__(self) -> None:
        """Raise `InvalidArgument` for numbers that no kernel and no conversion can follow."""
        power = (self.exponent, self.mantissa, self.bias, self.infinity) == (8, 0, 127, None)
        fits = self.exponent >= 1 and self.mantissa >= 0 and (self.signed or power)
        if not fits or (self.infinity is not None and self.nan is None):
            raise InvalidArgument(
                f"got {self}: expected an exponent of 1 bit at least, a NaN where there is an "
                f"infinity, and without a sign 8 bits of exponent, no mantissa and the bias 127"
            )

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return self.signed + self.exponent + self.mantissa

    @property
    def special(self) -> int:
        """The first magnitude that is no finite number; one more than the last if all are."""
        found = self.nan if self.infinity is None else self.infinity
        return 1 << self.exponent + self.mantissa if found is None else found

    @property
    def overflow(self) -> int:
        """The magnitude of what is too large: infinity, else NaN, else the largest number."""
        return min(self.special, (1 << self.exponent + self.mantissa) - 1)

    @property
    def of_nan(self) -> int:
        """The magnitude of a NaN; the largest number of types that have none."""
        return self.overflow if self.nan is None else self.nan

    @property
    def first_normal(self) -> int:
        """The magnitude of the smallest normal number; those below are multiples of 2**``step``."""
        return 1 << self.mantissa if self.signed else 0

    @property
    def step(self) -> int:
        """Subnormal numbers are multiples of two to the power of this."""
        return 1 - self.bias - self.mantissa

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return self.value(self.special - 1)

    @property
    def highest(self) -> int:
        """The exponent of the largest power of two."""
        return frexp(self.largest)[1] - 1

    def value(self, code: int) -> float:
        """What a code stands for."""
        magnitude = code & (1 << self.exponent + self.mantissa) - 1
        sign = -1.0 if code > magnitude else 1.0
        if magnitude >= self.special:
            return copysign(inf if magnitude == self.infinity else nan, sign)
        if magnitude < self.first_normal:
            return sign * magnitude * 2.0**self.step
        significand = (magnitude & (1 << self.mantissa) - 1) + (1 << self.mantissa)
        power = (magnitude >> self.mantissa) - self.bias - self.mantissa
        return sign * significand * 2.0**power


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: a row of the table.

    ``name`` is oneDNN's where it has the type, ``bits`` the storage of an element, ``kind`` is
    ``"float"``, ``"signed"`` or ``"unsigned"``. ``numpy`` is the type of arrays of logical shape,
    which have one item for each element. Where numpy and ml_dtypes know the type, the item is its
    code; else it is a value: an unsigned byte of an integer type, an f32 of the others.

    A float has the numbers ``floating``, or ``values``: the value of each code, 2**bits of them.
    ``names`` are its names elsewhere, by ``aliases`` (other spellings, separated by blanks),
    ``opencl`` (the C type of one element in a register, if not a whole number of its size),
    ``torch``, ``dlpack`` (type code), ``onnx``, ``safetensors``, ``gguf``, ``xla``, ``onednn`` and
    ``cldnn``. Raises `InvalidArgument` where the numbers do not agree.
    """

    name: str
    bits: int
    kind: str
    numpy: np.dtype[Any] = field(compare=False)
    floating: Float | None = None
    values: tuple[float, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Raise `InvalidArgument` where the numbers do not agree."""
        real = (self.floating is not None) + (self.values is not None)
        fits = (
            re.fullmatch("[a-z][a-z0-9_]*", self.name)
            and (self.bits in (8, 16, 32, 64) or 0 < self.bits < 8)
            and real == (self.kind == "float")
            and (self.floating is None or self.floating.bits == self.bits)
            and (self.values is None or (self.bits <= 8 and len(self.values) == 1 << self.bits))
            and all(map(isfinite, self.values or ()))
        )
        if not fits:
            raise InvalidArgument(
                f"got the element type {self.name} of {self.bits} bits, kind {self.kind!r}, "
                f"{self.floating}, {len(self.values or ())} values: expected 1 to 8, 16, 32 or 64 "
                f"bits, a name in small letters, and of a float either numbers for as many bits or "
                f"a finite value for each code"
            )

    @property
    def nbytes(self) -> int:
        """The bytes of one element; 1 if several share a byte."""
        return max(1, self.bits // 8)

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte."""
        return self.bits < 8

    @property
    def unit(self) -> int:
        """The elements of a *unit*, the fewest whole bytes with whole elements: 4 of 6 bits."""
        return 8 // gcd(8, self.bits)

    @property
    def holds_codes(self) -> bool:
        """Whether items of arrays (`numpy`) are codes, in the lowest bits; else they are values."""
        return self.numpy.itemsize == self.nbytes

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of memory: of elements, or of the bytes that they share."""
        return self.numpy if self.holds_codes and not self.is_packed else self.raw

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type."""
        if self.kind == "signed":
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1

    @property
    def largest(self) -> float:
        """The largest finite value."""
        if self.floating is not None:
            return self.floating.largest
        return self.limits[1] if self.values is None else max(self.values)

    @property
    def is_float(self) -> bool:
        """Whether values are real numbers: of a floating-point type, or of a table."""
        return self.kind == "float"

    @property
    def is_coded(self) -> bool:
        """Whether values are real numbers in a byte or less, which no computer calculates with."""
        return self.is_float and self.bits <= 8

    @property
    def starts_at_zero(self) -> bool:
        """Whether the code 0, all bits zero, stands for the number 0."""
        if self.values is not None:
            return self.values[0] == 0 and copysign(1, self.values[0]) > 0
        return self.floating is None or self.floating.signed

    @property
    def raw(self) -> np.dtype[Any]:
        """The unsigned integer type of the same width, for moving bits unchanged."""
        return np.dtype(f"u{self.nbytes}")

    @property
    def opencl(self) -> str:
        """The OpenCL C type of one element in a register: its value, or its code if it is coded."""
        whole = {1: "char", 2: "short", 4: "int", 8: "long"}[self.nbytes]
        return self.names.get("opencl") or f"{'u' * (self.kind != 'signed')}{whole}"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"DType({self.name!r})"


def _row(
    name: str,
    kind: str,
    numpy: Any,
    *,
    floating: Float | None = None,
    names: Mapping[str, str] | None = None,
) -> DType:
    """A row of a type whose bits its name tells, if they are no float's."""
    bits = floating.bits if floating else int(name[1:])
    return DType(name, bits, kind, np.dtype(numpy), floating, None, names or {})


ROWS = (
    _row("f32", "float", np.float32, floating=Float(8, 23, 127, 0x7F800000, 0x7FC00000), names={
        "opencl": "float", "torch": "float32", "onnx": "FLOAT", "safetensors": "F32",
        "gguf": "F32"}),
    _row("f16", "float", np.float16, floating=Float(5, 10, 15, 0x7C00, 0x7E00), names={
        "opencl": "half", "torch": "float16", "onnx": "FLOAT16", "safetensors": "F16",
        "gguf": "F16"}),
    _row("bf16", "float", ml_dtypes.bfloat16, floating=Float(8, 7, 127, 0x7F80, 0x7FC0), names={
        "opencl": "ushort", "torch": "bfloat16", "dlpack": "4", "onnx": "BFLOAT16",
        "safetensors": "BF16", "gguf": "BF16"}),
    _row("f64", "float", np.float64,
         floating=Float(11, 52, 1023, 0x7FF << 52, 0xFFF << 51), names={
        "opencl": "double", "torch": "float64", "onnx": "DOUBLE", "safetensors": "F64",
        "gguf": "F64"}),
    _row("s32", "signed", np.int32, names={
        "torch": "int32", "onnx": "INT32", "safetensors": "I32", "gguf": "I32", "cldnn": "i32"}),
    _row("s8", "signed", np.int8, names={
        "torch": "int8", "onnx": "INT8", "safetensors": "I8", "gguf": "I8", "cldnn": "i8"}),
    _row("u8", "unsigned", np.uint8, names={
        "torch": "uint8", "onnx": "UINT8", "safetensors": "U8"}),
    _row("s4", "signed", ml_dtypes.int4, names={"onnx": "INT4", "cldnn": "i4"}),
    _row("u4", "unsigned", ml_dtypes.uint4, names={"onnx": "UINT4"}),
    _row("u1", "unsigned", np.bool_, names={"cldnn": "bin"}),
    _row("f8_e4m3", "float", ml_dtypes.float8_e4m3fn, floating=Float(4, 3, 7, None, 0x7F), names={
        "torch": "float8_e4m3fn", "dlpack": "10", "onnx": "FLOAT8E4M3FN",
        "safetensors": "F8_E4M3", "xla": "f8e4m3fn"}),
    _row("f8_e5m2", "float", ml_dtypes.float8_e5m2, floating=Float(5, 2, 15, 0x7C, 0x7E), names={
        "torch": "float8_e5m2", "dlpack": "12", "onnx": "FLOAT8E5M2", "safetensors": "F8_E5M2",
        "xla": "f8e5m2"}),
    _row("s64", "signed", np.int64, names={
        "torch": "int64", "onnx": "INT64", "safetensors": "I64", "gguf": "I64", "cldnn": "i64"}),
    _row("s2", "signed", ml_dtypes.int2, names={"onnx": "INT2", "cldnn": "i2"}),
    _row("u2", "unsigned", ml_dtypes.uint2, names={"onnx": "UINT2"}),
    _row("u3", "unsigned", np.uint8),
    _row("u5", "unsigned", np.uint8),
    _row("u6", "unsigned", np.uint8),
    _row("f4_e2m1", "float", ml_dtypes.float4_e2m1fn, floating=Float(2, 1, 1), names={
        "onnx": "FLOAT4E2M1", "safetensors": "F4", "xla": "f4e2m1fn"}),
    _row("f6_e2m3", "float", ml_dtypes.float6_e2m3fn, floating=Float(2, 3, 1), names={
        "safetensors": "F6_E2M3"}),
    _row("f6_e3m2", "float", ml_dtypes.float6_e3m2fn, floating=Float(3, 2, 3), names={
        "safetensors": "F6_E3M2"}),
    _row("f8_e8m0", "float", ml_dtypes.float8_e8m0fnu,
         floating=Float(8, 0, 127, None, 0xFF, signed=False), names={
        "aliases": "e8m0", "onednn": "e8m0", "torch": "float8_e8m0fnu", "dlpack": "14",
        "onnx": "FLOAT8E8M0", "safetensors": "F8_E8M0", "xla": "f8e8m0fnu"}),
)  # fmt: skip
"""All element types."""
