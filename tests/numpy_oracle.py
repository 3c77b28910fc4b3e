"""Layouts, types and formulas by numpy alone: an oracle that has no code of the library's.

Values of narrow floats come from ml_dtypes; how numbers become codes is written here once more, as
docs/values.md says it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FLOATS: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8_e4m3": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2,
    "f8_e8m0": ml_dtypes.float8_e8m0fnu, "f6_e2m3": ml_dtypes.float6_e2m3fn,
    "f6_e3m2": ml_dtypes.float6_e3m2fn, "f4_e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
INTEGERS = ("s64", "s32", "s8", "s4", "s2", "u8", "u6", "u5", "u4", "u3", "u2", "u1")
TYPES = (*FLOATS, *INTEGERS)


def bits_of(name: str) -> int:
    """The bits of an element."""
    if parts := re.fullmatch(r"f\d_e(\d)m(\d)", name):
        return 8 if name == "f8_e8m0" else 1 + int(parts[1]) + int(parts[2])
    return 16 if name == "bf16" else int(name[1:])


def _unsigned(name: str) -> Any:
    return np.dtype(f"u{max(1, bits_of(name) // 8)}")


def decoded(codes: Array, name: str, real: Any) -> Array:
    """What codes stand for, in f32 or f64."""
    if name in FLOATS:
        return np.asarray(codes.view(FLOATS[name]).astype(real))
    bits = bits_of(name)
    if bits >= 8:
        return codes.view(f"{'iu'[name[0] == 'u']}{bits // 8}").astype(real)
    numbers = codes.astype(np.int64)
    is_negative = numbers >> bits - 1 & (name[0] == "s")
    return np.asarray((numbers - (is_negative << bits)).astype(real))


def coded(values: Array, name: str) -> Array:
    """The codes of numbers in f32 or f64."""
    if name in INTEGERS:
        return _whole(values, name)
    if values.dtype == np.float64 and name not in ("f64", "f32", "f16"):
        values = values.astype(np.float32)
    if name in ("f64", "f32", "f16", "bf16"):
        return values.astype(FLOATS[name]).view(_unsigned(name))
    return _powers(values) if name == "f8_e8m0" else _narrow(values.astype(np.float64), name)


def _whole(values: Array, name: str) -> Array:
    bits, signed = bits_of(name), name[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    near = np.rint(values.astype(np.float64))
    inside = np.where((near > low) & (near < high), near, 0).astype(np.int64)
    found = np.where(near >= high, high, np.where(near <= low, low, inside))
    found = np.where(np.isnan(near), 0, found)
    return (found & (1 << bits) - 1 if bits < 64 else found).astype(_unsigned(name))


@lru_cache
def _magnitudes(name: str) -> tuple[Array, int]:
    """The numbers that are not negative and finite, and the code of what is larger."""
    every = np.arange(1 << bits_of(name) - 1, dtype=np.uint8)
    numbers = every.view(FLOATS[name]).astype(np.float64)
    count = int(np.isfinite(numbers).sum())
    return numbers[:count], min(count, len(every) - 1)


def _narrow(values: Array, name: str) -> Array:
    numbers, overflow = _magnitudes(name)
    size = np.abs(values)
    above = np.minimum(np.searchsorted(numbers, size), len(numbers) - 1)
    below = np.maximum(above - 1, 0)
    far, near = numbers[above] - size, size - numbers[below]
    code = np.where((far < near) | ((far == near) & (above % 2 == 0)), above, below)
    last = len(numbers) - 1
    limit = numbers[last] + (numbers[last] - numbers[last - 1]) / 2
    code = np.where((size > limit) | ((size == limit) & (last % 2 == 1)), overflow, code)
    return np.asarray((code + (np.signbit(values) << bits_of(name) - 1)).astype(np.uint8))


def _powers(values: Array) -> Array:
    """2**(code - 127), the nearest, halves up; negative and too large numbers are NaN."""
    fraction, power = np.frexp(np.where(values > 0, values, 1).astype(np.float64))
    code = np.maximum(power - 1 + (fraction >= 0.75) + 127, 0)
    code = np.where(code > 254, 255, code)
    zero = values == 0
    return np.where(zero, 0, np.where(values < 0, 255, code)).astype(np.uint8)


@dataclass(frozen=True)
class Places:
    """Where elements of a tensor lie, in a format such as ``aBc16b`` with padding around it."""

    dims: tuple[int, ...]
    text: str
    padding: tuple[tuple[int, int], ...]
    front: int
    bits: int

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """The blocks, outermost first."""
        return [(letter, int(n)) for n, letter in re.findall(r"(\d+)([a-z])", self.text)]

    @property
    def padded(self) -> tuple[int, ...]:
        """The sizes with all padding."""
        sizes = []
        for d, (n, (low, high)) in enumerate(zip(self.dims, self.padding, strict=True)):
            block = prod(b for letter, b in self.blocks if letter == chr(97 + d))
            sizes.append(-(-(low + n + high) // block) * block)
        return tuple(sizes)

    @property
    def nbytes(self) -> int:
        """The bytes of memory."""
        return -(-(self.front + prod(self.padded)) * self.bits // 8)

    def offsets(self) -> Array:
        """The place of each element, in elements."""
        index = np.indices(self.dims, np.int64, sparse=True)
        at = {chr(97 + d): i + self.padding[d][0] for d, i in enumerate(index)}
        sizes = {chr(97 + d): n for d, n in enumerate(self.padded)}
        found, stride = np.full(self.dims, self.front, np.int64), 1
        for letter, block in reversed(self.blocks):
            found += at[letter] % block * stride
            at[letter], sizes[letter] = at[letter] // block, sizes[letter] // block
            stride *= block
        for letter in reversed(re.sub(r"\d+[a-z]", "", self.text).lower()):
            found += at[letter] * stride
            stride *= sizes[letter]
        return found

    def put(self, memory: Array, codes: Array) -> None:
        """Write codes, and no other bit."""
        self._put(memory, self.offsets(), codes)

    def clear(self, memory: Array) -> None:
        """Write zeros where elements and padding lie."""
        every = self.front + np.arange(prod(self.padded))
        self._put(memory, every, np.zeros(every.size, f"u{max(1, self.bits // 8)}"))

    def _put(self, memory: Array, offsets: Array, codes: Array) -> None:
        each = np.unpackbits(memory, bitorder="little")
        for k in range(self.bits):
            each[offsets * self.bits + k] = codes >> k & 1
        memory[:] = np.packbits(each, bitorder="little")


def spread(values: Array, dims: Sequence[int], group: Sequence[int | None]) -> Array:
    """The value of each element, of one for each group."""
    index = np.indices(tuple(dims), sparse=True)
    lengths = [g or n for g, n in zip(group, dims, strict=True)]
    return np.asarray(values[tuple(i // g for i, g in zip(index, lengths, strict=True))])


def computed(source: Array, old: Array, given: Mapping[str, Array], real: Any) -> Array:
    """The formula of attributes, each step rounded; ``given`` has a value for each element."""
    values = {name: v.astype(real) for name, v in given.items()}
    result = source
    if "src_zero_point" in values:
        result = result - values["src_zero_point"]
    if "src_scale" in values:
        result = result * values["src_scale"]
    if "beta" in values:
        result = result + values["beta"] * old
    if "dst_scale" in values:
        result = result * (real(1) / values["dst_scale"])
    if "dst_zero_point" in values:
        result = result + values["dst_zero_point"]
    assert result.dtype == real
    return np.asarray(result)
