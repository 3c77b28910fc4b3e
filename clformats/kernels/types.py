"""Element types in OpenCL C: how a value is loaded, converted and stored.

A kernel moves values in a *working* type: the bits themselves where source and destination have
the same type, the source's integers where both are integers, else float (double where one side is
f64). Loads convert to it, stores from it. fp16 arithmetic is never needed: half values go through
``vload_half`` and ``vstore_half_rte``, bf16 is an upper half of a float.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import DType
from ..errors import Unsupported

_STORAGE = {
    "f32": "float",
    "f16": "half",
    "bf16": "ushort",
    "f64": "double",
    "s32": "int",
    "s8": "char",
    "u8": "uchar",
}
_RAW = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}


@dataclass(frozen=True, slots=True)
class Conversion:
    """The C types of a pair of element types, and the text of its loads and stores.

    ``src`` and ``dst`` are the types the buffers are declared with, ``work`` the working type.
    """

    src_type: DType
    dst_type: DType
    src: str
    dst: str
    work: str

    @property
    def moves_bits(self) -> bool:
        """Whether values are moved unchanged."""
        return self.src_type == self.dst_type

    @property
    def needs_fp64(self) -> bool:
        """Whether the kernel computes in double precision."""
        return self.work == "double"

    @property
    def uses_bf16(self) -> bool:
        """Whether the kernel needs the function that rounds to bf16."""
        return not self.moves_bits and self.dst_type.name == "bf16"

    def load(self, pointer: str, width: int) -> str:
        """An expression: ``width`` elements from ``pointer``, in the working type."""
        n = str(width) if width > 1 else ""
        name = self.src_type.name
        if not self.moves_bits and name == "f16":
            return f"vload_half{n}(0, {pointer})"
        plain = f"vload{n}(0, {pointer})" if width > 1 else f"*({pointer})"
        if self.moves_bits or self.work == self.src:
            return plain
        if name == "bf16":
            return f"as_float{n}(convert_uint{n}({plain}) << 16)"
        return f"convert_{self.work}{n}({plain})"

    def store(self, value: str, pointer: str, width: int) -> str:
        """A statement: ``width`` elements of the working type to ``pointer``."""
        n = str(width) if width > 1 else ""
        if not self.moves_bits and self.dst_type.name == "f16":
            return f"vstore_half{n}_rte({value}, 0, {pointer})"
        converted = self._to_dst(value, n)
        return f"STORE{n}({converted}, {pointer})" if width > 1 else f"*({pointer}) = {converted}"

    def _to_dst(self, value: str, n: str) -> str:
        if self.moves_bits or self.work == self.dst:
            return value
        if self.dst_type.name == "bf16":
            return f"to_bf16_{n or 1}({value})"
        if self.dst_type.is_float:
            return f"convert_{self.dst}{n}({value})"
        rounding = "_rte" if self.work in ("float", "double") else ""
        return f"convert_{self.dst}{n}_sat{rounding}({value})"

    def store_nontemporal(self, value: str, pointer: str, width: int) -> str:
        """As `store`, past the cache; only for plain vectors of one whole aligned cache line."""
        converted = self._to_dst(value, str(width))
        target = f"(__global {self.dst}{width} *)({pointer})"
        return f"STORE_STREAM({converted}, {target})"

    @property
    def can_stream(self) -> bool:
        """Whether `store_nontemporal` can be used: half values are stored by a function."""
        return self.moves_bits or self.dst_type.name != "f16"


def conversion(src: DType, dst: DType) -> Conversion:
    """The conversion for a pair of element types. Raises `Unsupported` (code DTYPE_PAIR)."""
    if src == dst:
        raw = _RAW[src.bits]
        return Conversion(src, dst, raw, raw, raw)
    for t in (src, dst):
        if t.name not in _STORAGE:
            raise Unsupported(
                "DTYPE_PAIR",
                f"no kernel converts {src} to {dst}: {t} can only be moved unchanged; "
                f"convert with cf.dtypes.convert on the host",
            )
    if not src.is_float and not dst.is_float:
        work = _STORAGE[src.name]
    else:
        work = "double" if "f64" in (src.name, dst.name) else "float"
    return Conversion(src, dst, _STORAGE[src.name], _STORAGE[dst.name], work)
