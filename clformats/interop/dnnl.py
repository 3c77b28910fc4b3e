"""The fields that DNNL has for weights in its Winograd formats and for packed recurrent weights.

They give a `MemoryDesc` as the fields of ``dnnl_wino_desc_t`` and ``dnnl_rnn_packed_desc_t``, for
programs that fill or read those structures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from ..errors import InvalidDescriptor, expect, expect_int
from ..formats.opaque import winograd_name, winograd_sizes
from ..formats.winograd import FORWARD, S8_SCALE, method
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import int_tuple, relaid
from ..values.transforms import FILTER


@dataclass(frozen=True, slots=True)
class WinogradDesc:
    """The fields of DNNL's ``dnnl_wino_desc_t`` for weights in one of its Winograd formats.

    ``wino_format`` is the name without sizes, such as ``"wino_wei_aaOIoi"``. ``r`` is the height
    and width of the filter, ``alpha`` that of the transformed filter; ``ic`` and ``oc`` are the
    channels with padding. Then the sizes of blocks, in channels, and of blocks of blocks, in
    blocks. ``adj_scale`` is the factor of the values, ``size`` the bytes with compensation.
    """

    wino_format: str
    alpha: int
    ic: int
    oc: int
    ic_block: int
    oc_block: int
    ic2_block: int
    oc2_block: int
    adj_scale: float
    size: int
    r: int = FILTER

    @classmethod
    def of(cls, desc: MemoryDesc) -> WinogradDesc:
        """The fields of a descriptor; raises `InvalidDescriptor` where it is of another format."""
        expect(desc, MemoryDesc, "desc")
        name = desc.format.name
        if desc.format_kind != "wino" or not name.startswith("wino_wei_"):
            raise InvalidDescriptor(f"{desc} is in none of DNNL's Winograd formats")
        loops, sizes = winograd_sizes(name)
        is_s8 = desc.dtype.name == "s8"
        return cls(
            wino_format=f"wino_wei_{loops}",
            alpha=desc.dims[2],
            ic=desc.padded_dims[1],
            oc=desc.padded_dims[0],
            ic_block=sizes["i"],
            oc_block=sizes["o"],
            ic2_block=sizes.get("I", 1),
            oc2_block=sizes.get("O", 1),
            adj_scale=S8_SCALE.get(method(name), 1.0) if is_s8 else 1.0,
            size=desc.nbytes,
        )

    def memory_desc(self, channels: tuple[int, int], dtype: object) -> MemoryDesc:
        """The descriptor for so many (output, input) channels: the inverse of `of`.

        Raises `InvalidFormat` and `InvalidDescriptor` where the fields do not fit each other.
        """
        channels = int_tuple("channels", channels)  # type: ignore[assignment]
        sizes = {"o": self.oc_block, "i": self.ic_block, "O": self.oc2_block, "I": self.ic2_block}
        name = winograd_name(self.wino_format.removeprefix("wino_wei_"), sizes)
        base = MemoryDesc((*channels, self.alpha, self.alpha), dtype, name)
        padded = (self.oc, self.ic, self.alpha, self.alpha)
        result = MemoryDesc.of(relaid(base.geometry, padded=padded), base.dtype)
        if self.r != FILTER or self.alpha != len(FORWARD[method(name)].inner.rows):
            raise InvalidDescriptor(
                f"{self.wino_format} transforms {FILTER} x {FILTER} filters to "
                f"{len(FORWARD[method(name)].inner.rows)} wide ones, got r={self.r}, "
                f"alpha={self.alpha}"
            )
        if result.padded_dims != base.format.structure.padded(padded) or result.nbytes != self.size:
            raise InvalidDescriptor(
                f"{result} has {result.nbytes} bytes, and oc={self.oc}, ic={self.ic} must be whole "
                f"blocks: got {self}"
            )
        return result


@dataclass(frozen=True, slots=True)
class RnnPackedDesc:
    """The fields of DNNL's ``dnnl_rnn_packed_desc_t`` for packed recurrent weights.

    ``desc`` is of format ``ldigo_p`` or ``ldgoi_p``. ``parts`` has the number of gates of each
    part, in order; by default there is one part, GRU's iteration weights have ``(2, 1)``. ``n`` and
    ``ldb`` are the columns and leading dimension of the matrix that the weights will be multiplied
    with, for compatibility with DNNL: the packing does not depend on them. Raises
    `InvalidDescriptor`.
    """

    desc: MemoryDesc
    parts: tuple[int, ...] = ()
    n: int = 1
    ldb: int = field(default=0)

    def __post_init__(self) -> None:
        expect(self.desc, MemoryDesc, "desc")
        parts = int_tuple("parts", self.parts)
        n, ldb = expect_int(self.n, "n"), expect_int(self.ldb, "ldb")
        if self.desc.format_kind != "rnn_packed":
            raise InvalidDescriptor(f"{self.desc} is no packed format: expected ldigo_p or ldgoi_p")
        gates, rows = self.desc.dims[3], self._rows
        for name, value in (("parts", parts or (gates,)), ("n", n), ("ldb", ldb or rows)):
            object.__setattr__(self, name, value)
        if sum(self.parts) != gates or min(self.parts) < 1 or self.n < 1 or self.ldb < rows:
            raise InvalidDescriptor(
                f"{self.desc} has {gates} gates and {rows} rows: expected parts of 1 or more gates "
                f"that are all of them, n of 1 or more and ldb of at least {rows}, got {self}"
            )

    @property
    def _rows(self) -> int:
        _, _, i, g, o = self.desc.dims
        return i if self.desc.format.name == "ldigo_p" else g * o

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return len(self.parts)

    @property
    def pack_part(self) -> tuple[bool, ...]:
        """Whether each part is packed: always."""
        return (True,) * len(self.parts)

    @property
    def part_pack_size(self) -> tuple[int, ...]:
        """The bytes of each part, for one layer and direction."""
        padded = self.desc.padded_dims
        gate = padded[2] * padded[4] * self.desc.dtype.nbytes
        return tuple(gates * gate for gates in self.parts)

    @property
    def offset_compensation(self) -> int:
        """Where int8 weights are followed by sums: layers * directions * the bytes of all parts."""
        return prod(self.desc.dims[:2]) * sum(self.part_pack_size)

    @property
    def size(self) -> int:
        """The bytes of all, compensation counted."""
        return self.desc.nbytes

    def part_offset(self, layer: int, direction: int, part: int) -> int:
        """Where a part begins, in bytes from the first element."""
        sizes = self.part_pack_size
        at = _inside((layer, direction, part), (*self.desc.dims[:2], len(sizes)))
        return (at[0] * self.desc.dims[1] + at[1]) * sum(sizes) + sum(sizes[: at[2]])


def _inside(index: Sequence[int], sizes: Sequence[int]) -> Sequence[int]:
    if any(not 0 <= k < n for k, n in zip(index, sizes, strict=True)):
        raise IndexError(f"(layer, direction, part) {tuple(index)} is outside {tuple(sizes)}")
    return index
