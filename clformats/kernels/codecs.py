"""Elements narrower than a byte: how vectors of them are loaded and stored.

On their way they have a byte each, a *lane*: the value of an integer, sign-extended, or a code. A
*unit* is the fewest whole bytes that hold whole elements: two of 4 bits, four of 6 bits in three
bytes. Its bits are one word with a byte for each element, in which two halves, then their halves,
are moved apart; stores move them together. In kernels the place of such an element is its number,
where that of others is a pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from ..tensors.dtypes import DType

WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
"""The type of a word, by its bytes."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How elements of ``dtype`` become lanes of the C type ``lane``, and back.

    ``whole``: every vector begins and ends with a unit. Kernels call
    ``load_<name>_<width>(bytes, place)`` and ``store_<name>_<width>(lanes, bytes, place)``.
    """

    dtype: DType
    lane: str
    whole: bool = False

    @property
    def name(self) -> str:
        """What its functions are called after."""
        return f"{self.dtype}{'_code' * (self.lane[0] == 'u')}{'_whole' * self.whole}"

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return self.dtype.bits

    @property
    def elements(self) -> int:
        """The elements of a unit."""
        return self.dtype.unit

    @property
    def nbytes(self) -> int:
        """The bytes of a unit."""
        return self.elements * self.bits // 8

    @property
    def word(self) -> str:
        """The type of a word that has a byte for each element of a unit."""
        return WORDS[self.elements]

    @property
    def is_signed(self) -> bool:
        """Whether lanes are sign-extended."""
        return self.lane == "char"

    def steps(self, elements: int = 0) -> list[tuple[int, str, str]]:
        """(shift, mask of what stays, mask of what moves), for halves, quarters, .. of a unit.

        Or of so many ``elements``.
        """
        elements = elements or self.elements
        found, each = [], elements // 2
        while each:
            fields = range(0, 8 * elements, 16 * each)
            low = sum(((1 << each * self.bits) - 1) << at for at in fields)
            suffix = "u" if elements < 8 else "ul"
            found.append((each * (8 - self.bits), f"{low:#x}{suffix}",
                          f"{low << 8 * each:#x}{suffix}"))  # fmt: skip
            each //= 2
        return found

    def pieces(self, width: int) -> tuple[int, int]:
        """(bytes of a word, how many) in which ``width`` elements are accessed where aligned."""
        nbytes = width * self.bits // 8
        return gcd(nbytes, 4), nbytes // gcd(nbytes, 4)

    def bytes_of(self, width: int) -> str:
        """The number of bytes of ``width`` elements, as the end of a vector type's name."""
        count = width * self.bits // 8
        return str(count) if count > 1 else ""


def codec(dtype: DType, lane: str) -> Codec | None:
    """The codec of a type, by lanes of a C type; None for those whose elements are whole bytes."""
    return Codec(dtype, lane) if dtype.is_packed else None


def needed(codecs: Sequence[Codec | None]) -> list[Codec]:
    """Those that there are, each once."""
    return sorted({c for c in codecs if c}, key=lambda c: c.name)


def parts(count: int, bits: int, names: Sequence[str], each: int) -> list[str]:
    """C of ``count`` numbers of ``bits``, taken out of words of ``each`` bits with such names.

    Numbers and words follow each other from the lowest bits on; what lies above is not masked.

    >>> parts(3, 12, ["w0", "w1"], 32)
    ['w0', 'w0 >> 12', 'w0 >> 24 | w1 << 8']
    """
    found = []
    for at in range(0, count * bits, bits):
        near = range(at // each, (at + bits - 1) // each + 1)
        shifts = [(k, at - each * k) for k in near]
        found.append(" | ".join(
            f"{names[k]} >> {by}" if by > 0 else f"{names[k]} << {-by}" if by else names[k]
            for k, by in shifts
        ))  # fmt: skip
    return found
