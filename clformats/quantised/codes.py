"""What the codes of a field mean: integers, narrow floats, tables, and books of code words.

A code is the bits of one value as they stand in memory. Most element types are those of
`clformats.tensors.dtypes`; here are the others: integers of any width, and tables that formats of
quantised tensors brought along.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor, Unsupported, expect
from ..tensors.codes import values_of_codes
from ..tensors.dtypes import as_array, as_dtype, codes, from_codes
from ..tensors.rows import Float

_FLOATS = ("f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "f8_e8m0", "f4_e2m1", "f6_e2m3", "f6_e3m2")
"""Floating-point types, rows of the table of element types."""

_TABLES: dict[str, tuple[float, ...]] = {
    # ggml's kvalues_iq4nl
    "iq4": (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113),
    # twice e2m1, as ggml has it: code 8 is +0
    "e2m1x2": (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12),
    # bitsandbytes' NormalFloat4 (Dettmers et al., QLoRA, appendix E) and its fp4
    "nf4": (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
            -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
            0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
            0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    "bnb_fp4": (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25,
                -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25),
}  # fmt: skip
_BOOKS = {"iq2_xxs": 8, "iq2_xs": 9, "iq2_s": 10, "iq3_xxs": 8, "iq3_s": 9, "iq1_s": 11}
"""Code books of ggml and the bits of their indices; the books are in the package gguf."""


@dataclass(frozen=True)
class Codes:
    """A type of codes: its name and bits; ``width`` values stand behind one code.

    ``kind`` is ``"unsigned"``, ``"signed"``, ``"float"`` (bits of a numpy type), ``"table"`` or
    ``"book"`` (more than one value for a code).
    """

    name: str
    bits: int
    kind: str
    width: int = 1

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type of an array of these codes, as `clformats.unpack` gives a field.

        Floats of 16 and 32 bits are floats; the codes of tables and of narrow floats are unsigned.
        """
        if self.kind == "float" and self.bits >= 16:
            return as_dtype(self.name).numpy
        whole = "i" if self.kind == "signed" else "u"
        return np.dtype(f"{whole}{self.nbytes}")

    @property
    def nbytes(self) -> int:
        """The bytes of a code in an array."""
        return next(n for n in (1, 2, 4) if self.bits <= 8 * n)

    @property
    def table(self) -> NDArray[np.float32]:
        """The value of every code in f32: of shape (codes,), of books (codes, width)."""
        return _table(self.name)

    @property
    def floating(self) -> Float:
        """The numbers of a type of the kind ``"float"``, from the table of element types."""
        found = as_dtype(self.name).floating
        assert found is not None  # noqa: S101  # by its kind
        return found

    def array(self, found: NDArray[Any]) -> NDArray[Any]:
        """Unsigned codes as an array of `numpy`."""
        if self.kind == "signed":
            unused = np.array(8 * self.nbytes - self.bits, self.numpy)
            return np.asarray((found.view(self.numpy) << unused) >> unused)
        return found.view(self.numpy) if self.kind == "float" else found

    def values(self, found: NDArray[Any]) -> NDArray[Any]:
        """What the codes of `array` mean, exact in f32; integers stay integers."""
        if self.kind in ("table", "book") or (self.kind == "float" and self.bits < 16):
            return np.asarray(self.table[found])
        return found if self.kind != "float" else found.astype(np.float32)

    def codes_of(self, values: Any, what: str) -> NDArray[Any]:
        """Unsigned codes of what a user gives: codes, integers, or floats of the type.

        Raises `InvalidDescriptor` where a value has no code.
        """
        array = as_array(values)
        if self.kind == "float" and array.dtype.kind not in "iub":
            return self._of_floats(array, what)
        if array.dtype.kind == "V":  # ml_dtypes' integers of less than a byte
            with suppress(Error):
                array = array if as_dtype(array.dtype).is_float else array.astype(np.int8)
        if array.dtype.kind not in "iub":
            raise InvalidDescriptor(f"{what}: got an array of {array.dtype}, expected codes: "
                                    f"integers of {self.bits} bits ({self.name})")  # fmt: skip
        least = -(1 << self.bits - 1) if self.kind == "signed" else 0
        most = (1 << self.bits - (self.kind == "signed")) - 1
        if array.size and (array.min() < least or array.max() > most):
            raise InvalidDescriptor(
                f"{what}: got codes from {array.min()} to {array.max()}, expected {least} to "
                f"{most} ({self.name})"
            )
        mask = (1 << self.bits) - 1
        return np.asarray((array.astype(np.int64) & mask).astype(f"u{self.nbytes}"))

    def _of_floats(self, array: NDArray[Any], what: str) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            if array.dtype == as_dtype(self.name).numpy:
                return array.view(f"u{self.nbytes}")
            found = codes(array, as_dtype(self.name))
            narrow = from_codes(found, as_dtype(self.name))
            wide, back = array.astype(np.float64), narrow.astype(np.float64)
        if not np.array_equal(back, wide, equal_nan=True):
            raise InvalidDescriptor(
                f"{what}: got values that {self.name} does not have, such as "
                f"{wide[back != wide].flat[0]}: round them first, array.astype(...)"
            )
        return found


@cache
def codes_named(name: str) -> Codes:
    """The type of a name such as ``"u4"``, ``"f16"``, ``"f8_e8m0"`` or ``"nf4"``.

    Raises `InvalidDescriptor` for others.
    """
    expect(name, str, "element type")
    whole = re.fullmatch(r"([us])([1-9]|[12][0-9]|3[0-2])", name)
    if whole:
        return Codes(name, int(whole[2]), "signed" if whole[1] == "s" else "unsigned")
    if name in _FLOATS:
        return Codes(name, as_dtype(name).bits, "float")
    if name in _TABLES:
        return Codes(name, 4, "table")
    if name in ("e8m0_half", "ue4m3_half"):
        return Codes(name, 8, "table")
    if name == "sign7":
        return Codes(name, 7, "book", 8)
    if name in _BOOKS:
        return Codes(name, _BOOKS[name], "book", 4 if name.startswith("iq3") else 8)
    raise InvalidDescriptor(
        f"unknown element type {name!r} of a field: expected u1 to u32, s1 to s32, "
        f"{', '.join(_FLOATS)}, {', '.join(_TABLES)}, e8m0_half, ue4m3_half, sign7 or a code book: "
        f"{', '.join(_BOOKS)}"
    )


@cache
def _table(name: str) -> NDArray[np.float32]:
    if name in _TABLES:
        table = np.array(_TABLES[name], np.float32)
    elif name == "e8m0_half":  # ggml: 2**(code - 128); no code is NaN
        table = np.ldexp(np.float32(1), np.arange(256) - 128).astype(np.float32)
    elif name == "ue4m3_half":  # ggml: half of e4m3 without its sign; 0x7f is 0, 0xff is not
        code = np.arange(256)
        exponent, mantissa = code >> 3 & 15, code & 7
        value = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10))
        table = np.where(code == 127, 0, value / 2).astype(np.float32)
    elif name == "sign7":  # seven signs; the eighth makes their number even
        signs = np.arange(128)[:, None] >> np.arange(7) & 1
        signs = np.concatenate([signs, signs.sum(1, keepdims=True) & 1], 1)
        table = (1 - 2 * signs).astype(np.float32)
    elif name in _BOOKS:
        table = _book(name)
    else:
        return values_of_codes(as_dtype(name))
    table.flags.writeable = False
    return table


def _book(name: str) -> NDArray[np.float32]:
    """A code book of ggml, from the package gguf. Raises `Unsupported` (code GGUF) without it."""
    try:
        from gguf import quants
    except ImportError:
        raise Unsupported(
            "GGUF", f"the code book of {name} is in the package gguf: pip install 'clformats[gguf]'"
        ) from None
    owner: Any = getattr(quants, name.upper())
    owner.init_grid()
    return np.array(owner.grid, np.float32).reshape(1 << _BOOKS[name], -1)
