"""Element types in OpenCL C: how a value is loaded, converted and stored.

A kernel moves values in a *moving* type: the bits themselves where source and destination have the
same type, else the narrower of the two, because a shuffle of bytes costs a quarter of one of
floats. So values become narrower when they are loaded, or wider when they are stored. fp16
arithmetic is never needed: half values are loaded by ``vload_half`` as floats, and made by
``vstore_half_rte`` as bits; bf16 is the upper half of a float; floats of a byte and less are taken
apart and put together bit by bit (``templates/coded.mako``). Padding is all bits zero in every
moving type. An element of less than a byte has one of its own on its way, by value where it is an
integer, else by its code: see `clformats.kernels.codecs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..tensors.dtypes import DType
from .codecs import WORDS, Codec, needed

_NBYTES = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "long": 8, "ulong": 8, "double": 8}
"""The bytes of C types that have not four."""
_STORED_WORDS = {8: "ulong", 16: "uint4", 32: "uint8"}
"""Types by their bytes, which LLVM truncates to while it stores: see templates/prelude.mako."""


@dataclass(frozen=True, slots=True)
class Helpers:
    """What a kernel defines before it can convert.

    ``reads_halves``: half values are loaded as floats; ``fp64``: it computes in double precision;
    ``widens``: floats are made of these types; ``rounds``: values of the C type ``rounded_from``
    are rounded to this one; ``small``: all of them are numbers, and near enough to zero for one
    addition to round them; ``exact``: that type holds every integer of the source.
    """

    reads_halves: bool = False
    fp64: bool = False
    widens: frozenset[DType] = frozenset()
    rounds: DType | None = None
    rounded_from: str = "float"
    small: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class KernelConversion:
    """The C types of a pair of element types, and the text of its loads and stores.

    ``src`` and ``dst`` are the types the buffers are declared with, ``work`` the moving type;
    ``early`` says that loads convert, else stores do. ``word``: what moves is words of several
    elements, which are taken out of it before they are converted.
    """

    src_type: DType
    dst_type: DType
    src: str
    dst: str
    work: str
    early: bool
    source: Codec | None = field(default=None, kw_only=True)
    target: Codec | None = field(default=None, kw_only=True)
    word: DType | None = field(default=None, kw_only=True)

    @property
    def buffers(self) -> tuple[str, str]:
        """The types of both buffers."""
        return "uchar" if self.source else self.declared, "uchar" if self.target else self.dst

    @property
    def declared(self) -> str:
        """The type that memory is declared with where there is no codec."""
        return self.work if self.word else self.src

    @property
    def lane(self) -> str:
        """The type of what stores convert."""
        return self.src if self.word else self.work

    @property
    def moved(self) -> DType:
        """The type that has as many bytes as what moves."""
        return self.word or (self.dst_type if self.early else self.src_type)

    @property
    def loaded(self) -> str:
        """The type of what is loaded."""
        return self.work

    @property
    def read_bits(self) -> int:
        """The bits of what a load has in each lane, in memory."""
        return self.source.bits if self.source else 8 * (self.word or self.src_type).nbytes

    @property
    def write_bits(self) -> int:
        """The bits of what a store has in each lane, in memory."""
        return self.target.bits if self.target else 8 * self.dst_type.nbytes

    @property
    def codecs(self) -> list[Codec]:
        """How elements that share bytes are loaded."""
        return needed([self.source])

    def in_units(self, *, loads: bool) -> KernelConversion:
        """The same where vectors begin and end with whole units: stored ones, and loaded ones."""
        source = self.source and replace(self.source, whole=loads)
        return replace(self, source=source, target=self.target and replace(self.target, whole=True))

    def place(self, at: str) -> str:
        """A pointer to an element of the source, or its number where elements share bytes."""
        return at if self.source else f"(src + {at})"

    def address(self, place: str, side: str = "src") -> str:
        """A pointer to the first byte of an element of a side, by what `begin` declares."""
        codec = self.source if side == "src" else self.target
        return f"{side} + (({place}) * {codec.bits} >> 3)" if codec else place

    @property
    def there(self) -> str:
        """The parameters of a function that stores: where to."""
        return "__global uchar *dst, idx to" if self.target else f"__global {self.dst} *to"

    def begin(self, name: str, side: str, place: str) -> str:
        """A declaration: where the element ``place`` of ``src`` or ``dst`` lies."""
        if self.source if side == "src" else self.target:
            return f"const idx {name} = {place};"
        const = "const " * (side == "src")
        declared = self.declared if side == "src" else self.dst
        return f"__global {const}{declared} *{name} = {side} + {place};"

    @property
    def moves_bits(self) -> bool:
        """Whether values are moved unchanged."""
        return self.src_type == self.dst_type

    @property
    def stored(self) -> str:
        """The type of what a store is given."""
        return self.lane

    @property
    def operand_types(self) -> frozenset[str]:
        """The C types of other tensors that are loaded as vectors."""
        return frozenset()

    @property
    def parameters(self) -> list[str]:
        """The kernel's parameters after its sizes."""
        return []

    def functions(self, widths: Sequence[int]) -> str:
        """The functions, for each width, that compute what is stored."""
        del widths
        return ""

    @property
    def helpers(self) -> Helpers:
        """The functions that its loads and stores call."""
        src, dst = self.src_type, self.dst_type
        if self.moves_bits:
            return Helpers()
        return Helpers(
            reads_halves=src.name == "f16",
            fp64="double" in (self.src, self.dst),
            widens=frozenset({src} if src.is_coded else ()),
            rounds=dst if _is_narrow(dst) or self._rounds_to_bytes else None,
            rounded_from="double" if dst.name == "f16" and self.src == "double" else "float",
            exact=_holds(dst, src),
        )

    @property
    def _rounds_to_bytes(self) -> bool:
        """Whether floats become 8-bit integers, where convert_char_sat_rte is slow."""
        t = self.dst_type
        return t.nbytes == 1 and not t.is_float and self._loaded == "float"

    @property
    def _loaded(self) -> str:
        """The type in which the source's values can be computed with."""
        return "float" if _is_narrow(self.src_type) else self.src

    def load(self, pointer: str, width: int, *, aligned: bool = False) -> str:
        """An expression: ``width`` elements from ``pointer``, in the moving type.

        ``aligned``: it points to a multiple of that many elements.
        """
        n = str(width) if width > 1 else ""
        value = self._bare(pointer, n, aligned=aligned)
        return self.converted(value, n) if self.early else value

    @property
    def at_once(self) -> KernelConversion:
        """The same with loads that convert."""
        return replace(self, early=True, work=self.dst)

    def load_anywhere(self, place: str, width: int) -> str:
        """An expression: ``width`` elements from a place that need not be a multiple of it."""
        value = f"LOAD_ANY{width}({place})"
        return self.converted(value, str(width)) if self.early else value

    def load_pieces(self, pointers: Sequence[str], width: int) -> str:
        """An expression: pieces of ``width`` elements as one vector of the moving type.

        Single elements are converted together: one by one f32 to f16 is 0.04 of a copy, not 0.15.
        """
        if len(pointers) == 1:
            return self.load(pointers[0], width, aligned=True)
        lanes = str(width * len(pointers))
        if width > 1 or not self.early:
            values = [self.load(p, width, aligned=True) for p in pointers]
            return f"({self.work}{lanes})({', '.join(values)})"
        values = [self._bare(p, "") for p in pointers]
        return self.converted(f"({self.bare}{lanes})({', '.join(values)})", lanes)

    @property
    def bare(self) -> str:
        """The type of what is loaded, before it is converted."""
        return "float" if self.src_type.name == "f16" else self.src

    def _bare(self, pointer: str, n: str, *, aligned: bool = False) -> str:
        """``n`` elements from ``pointer`` (empty for one), not converted yet."""
        if self.source:
            return f"LOAD{n or 1}({pointer})"
        if not self.moves_bits and self.src_type.name == "f16":
            return f"vload{'a' if aligned and n else ''}_half{n}(0, {pointer})"
        if n:
            return f"LOAD{n}({pointer})"
        return f"*({pointer})" if " " in pointer else f"*{pointer}"

    def read(self, pointer: str) -> str:
        """An expression: one element from ``pointer``, as the destination's type."""
        value = self.load(pointer, 1)
        return value if self.early else self.converted(value, "")

    def store(self, value: str, pointer: str, width: int) -> str:
        """A statement: ``width`` elements of the moving type to ``pointer``."""
        n = str(width) if width > 1 else ""
        value = self.value_to_store(value, width)
        if width > 1 or self.target:
            return f"STORE{n or 1}({value}, {pointer})"
        return f"*({pointer}) = {value}" if " " in pointer else f"*{pointer} = {value}"

    def value_to_store(self, value: str, width: int) -> str:
        """An expression: ``width`` lanes of the moving type, as the destination's type."""
        return value if self.early else self.converted(value, str(width) if width > 1 else "")

    def store_nontemporal(
        self, value: str, pointer: str, width: int, piece: int, *, shuffled: bool
    ) -> str:
        """As `store`, past the cache; only for vectors that complete lines, or are in a long run.

        ``piece``: how many lanes at once, which are aligned. ``shuffled``: lanes have moved since
        they were loaded.
        """
        value = self.value_to_store(value, width)
        hides = shuffled or not self.moves_bits
        if self.target:
            return f"STREAM{width}({value}, {pointer})"
        if piece == width:
            return self._streamed(value, pointer, width, hides)
        stores = [
            self._streamed(f"line.{swizzle(k, piece)}", f"{pointer} + {k}", piece, hides)
            for k in range(0, width, piece)
        ]
        return f"{{ const {self.dst}{width} line = {value}; {'; '.join(stores)}; }}"

    def _streamed(self, value: str, pointer: str, width: int, hides: bool) -> str:  # noqa: FBT001
        """A store of a whole vector past the cache; ``hides``: where its lanes come from."""
        word = _STORED_WORDS.get(width * self.dst_type.nbytes)
        if word is None or not hides:
            return f"STORE_STREAM({value}, (__global {self.dst}{width} *)({pointer}))"
        return f"STORE_STREAM(HIDDEN(as_{word}({value})), (__global {word} *)({pointer}))"

    def converted(self, value: str, n: str) -> str:
        """``value``, of ``n`` lanes (empty for one), as the destination's type."""
        if self.moves_bits:
            return value
        loaded = self._loaded
        if self.src_type.name == "bf16":
            value = f"as_float{n}(convert_uint{n}({value}) << 16)"
        if self.src_type.is_coded:
            value = f"from_{self.src_type}_{n or 1}({value})"
        if self.dst_type.is_float:
            found = self.helpers
            wanted = found.rounded_from if _is_narrow(self.dst_type) else self.dst
            if loaded != wanted:
                value = f"convert_{wanted}{n}({value})"
            return f"to_{found.rounds}_{n or 1}({value})" if found.rounds else value
        if self._rounds_to_bytes:
            return f"to_{self.dst_type.name}_{n or 1}({value})"
        if loaded != self.dst:
            rounding = "_rte" if loaded in ("float", "double") else ""
            value = f"convert_{self.dst}{n}_sat{rounding}({value})"
        if not self.dst_type.is_packed:
            return value
        low, high = (f"({self.dst}{n})({limit})" for limit in self.dst_type.limits)
        return f"clamp({value}, {low}, {high})"


def _holds(dst: DType, src: DType) -> bool:
    """Whether a type of floats has each value of a type of integers."""
    there = dst.floating
    if src.is_float or there is None or not there.signed:
        return False
    low, high = src.limits
    return src.bits <= there.mantissa + 1 and max(-low, high) <= there.largest


def _is_narrow(dtype: DType) -> bool:
    """Whether values are computed with as floats, which its elements are not."""
    return dtype.is_float and dtype.bits < 32


def mask_type(name: str) -> str:
    """The signed integers as wide as the C type ``name``."""
    return {1: "char", 2: "short", 8: "long"}.get(_NBYTES.get(name, 4), "int")


def storage_type(dtype: DType) -> str:
    """The C type that memory is declared with, of elements that are computed with."""
    return "uchar" if dtype.is_packed else dtype.opencl


def conversion(src: DType, dst: DType) -> KernelConversion:
    """The conversion for a pair of element types.

    Elements of less than a byte are in a byte of their own: integers by value, others by code.
    """
    if src == dst:
        raw = WORDS[src.nbytes]
        return KernelConversion(src, dst, raw, raw, raw, early=False)
    source, target = src.opencl, dst.opencl
    if dst.name == "f16":
        target = "ushort"
    early = src.bits >= dst.bits or (src.name == "f16" and dst.bits == 32)
    # Padding is made on the way, all bits zero: that must be the number 0, and stay all bits zero.
    early = early or not (src.starts_at_zero and dst.starts_at_zero)
    work = target if early else "float" if src.name == "f16" else source
    return KernelConversion(src, dst, source, target, work, early)


def as_bits(work: str, width: int) -> str:
    """The type of a vector's bits in as few words as it has: no compiler takes those apart."""
    words = {4: "uint", 8: "uint2", 16: "uint4"}
    return words.get(width * _NBYTES.get(work, 4), f"{work}{width}")


def upper_half(value: str, n: str) -> str:
    """The upper 16 bits of each of ``n`` lanes of 32 (empty for one); ``value`` is a name.

    >>> upper_half("bits", "4")
    'convert_ushort4(bits >> 16)'
    >>> upper_half("bits", "16")
    '(ushort16)(as_ushort16(bits.lo).odd, as_ushort16(bits.hi).odd)'
    """
    if n == "16":
        # Intel's compiler narrows shifted lanes one by one, if they were integers before.
        return f"(ushort16)(as_ushort16({value}.lo).odd, as_ushort16({value}.hi).odd)"
    return f"convert_ushort{n}({value} >> 16)" if n else f"(ushort)({value} >> 16)"


def swizzle(first: int, count: int) -> str:
    """So many neighbouring elements of a vector, as a component of it.

    >>> swizzle(8, 4)
    's89ab'
    """
    return "s" + "0123456789abcdef"[first : first + count]


def packed(name: str, width: int) -> tuple[str, str] | None:
    """(unsigned type, its words) of a vector ``v`` of elements of 8 or 16 bits; None of others."""
    nbytes, words = _NBYTES.get(name, 4), as_bits(name, width)
    if nbytes > 2 or words not in ("uint", "uint2", "uint4"):
        return None
    each, lanes = 4 // nbytes, "0123456789abcdef"[:width]
    parts = [
        f"convert_{words}(v.s{lanes[k::each]}){f' << {8 * nbytes * k}' if k else ''}"
        for k in range(each)
    ]
    return f"u{name.removeprefix('u')}{width}", " | ".join(parts)


def powers(width: int) -> list[int]:
    """A number of lanes in powers of two, the largest first."""
    return [1 << k for k in reversed(range(width.bit_length())) if width >> k & 1]


def lane_part(name: str, count: int, lanes: Sequence[int]) -> str:
    """Some neighbouring lanes of a vector of ``count`` lanes."""
    return name if len(lanes) == count else f"{name}.s" + "".join(f"{lane:x}" for lane in lanes)
