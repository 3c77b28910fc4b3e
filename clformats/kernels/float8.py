"""The eight-bit floats in numbers, for the OpenCL C that reads and rounds them.

OpenCL has no such types, so kernels take them apart bit by bit: see ``templates/float8.mako``.
"""

from __future__ import annotations

from dataclasses import dataclass

F32_MANTISSA = 23
F32_BIAS = 127


@dataclass(frozen=True, slots=True)
class Float8:
    """A float of eight bits, seen from f32.

    A *code* is the byte without its sign. ``mantissa`` is in bits. ``special`` is the first code
    that is no finite number: that of infinity, or of NaN where there is no infinity; ``nan`` is the
    code of a NaN that is made.
    """

    mantissa: int
    bias: int
    special: int
    nan: int

    @property
    def has_infinity(self) -> bool:
        """Whether what is too large becomes infinity, not NaN."""
        return self.special != self.nan

    @property
    def shift(self) -> int:
        """How many more mantissa bits f32 has."""
        return F32_MANTISSA - self.mantissa

    @property
    def rebias(self) -> int:
        """A code shifted up by ``shift`` and this make the f32 bits of a normal number."""
        return F32_BIAS - self.bias << F32_MANTISSA

    @property
    def first_normal(self) -> int:
        """The code of the smallest normal number; those below are multiples of 2**``step``."""
        return 1 << self.mantissa

    @property
    def step(self) -> int:
        """Subnormal numbers are multiples of two to the power of this."""
        return 1 - self.bias - self.mantissa

    def f32_bits(self, code: int) -> int:
        """The f32 bits of the normal number with this code, or that would have it."""
        return (code << self.shift) + self.rebias

    @property
    def shifter(self) -> int:
        """The exponent of a power of two: in f32 its last bit counts 2**``step``."""
        return self.step + F32_MANTISSA


FLOAT8 = {
    "f8_e4m3": Float8(mantissa=3, bias=7, special=0x7F, nan=0x7F),
    "f8_e5m2": Float8(mantissa=2, bias=15, special=0x7C, nan=0x7E),
}
