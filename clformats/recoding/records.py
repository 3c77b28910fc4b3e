"""The kernels that decode rows of records on GPUs: whole records go through local memory.

A work-group decodes a *span* of columns of one row. Its records are one run of bytes, or one for
each plane that has a buffer of its own: the work-items load it in the longest words that its places
are multiples of, neighbours by neighbours, whatever the length of a record is. Then each decodes
16 bytes of the result at a time, and neighbours store neighbours. Rows that follow each other
without a gap on both sides are one long row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm, prod

import numpy as np

from ..errors import Error
from ..problems.thresholds import TILE_BYTES, VECTOR_BYTES
from ..problems.traits import Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import (
    HEX,
    At,
    NotInTilesError,
    Placed,
    Symbols,
    Tile,
    follow,
    placed_planes,
)
from ..quantised.planes import Plane
from ..quantised.values import Tables, distinct, source, value
from ..tensors.desc import MemoryDesc
from ..values.formula import Formula
from .kernel import Kernel
from .plain import numbers_in_tiles

DECODING_ITEMS = 128
"""Work-items of a group."""
VECTORS_STORED = 4
"""Vectors that each of them stores."""
LEAST_ITEMS = VECTOR_BYTES
"""Each copies at most one of the bytes at the end of a run that fill no word."""
LOADED_WORDS = {16: "uint4", 8: "uint2", 4: "uint", 2: "ushort", 1: "uchar"}
STORED_HALVES = """static inline uint4 halves8(float8 x) {
  ushort8 bits;
  vstore_half8_rte(x, 0, (half *)&bits);
  return convert_uint4(bits.s0246) | convert_uint4(bits.s1357) << 16;
}"""


@dataclass(frozen=True, slots=True)
class ByteRun:
    """Planes in one run of bytes: ``nbytes`` for each ``block`` of columns, from ``base`` on.

    ``base`` is C over the place of a group.
    """

    base: str
    planes: tuple[Placed, ...]
    nbytes: int
    block: int

    def loads(self, memory: str, word: int, items: int, span: int) -> Iterator[str]:
        """The statements by which a group loads it, words together, and declares ``memory``."""
        kind, times = LOADED_WORDS[word], -(-self.size(span) // (word * items))
        yield self.declared(memory, span)
        yield "{"
        yield f"  global const uchar *from = w + {self.base};"
        yield f"  const uint nbytes = count / {self.block} * {self.nbytes};"
        yield f"  {kind} held[{times}];"
        for text in (f"held[j] = ((global const {kind} *)from)[mine + j * {items}];",
                     f"((local {kind} *){memory})[mine + j * {items}] = held[j];"):  # fmt: skip
            yield "  #pragma unroll"
            yield f"  for (uint j = 0; j < {times}; j++)"
            yield f"    if (mine + j * {items} < nbytes / {word})"
            yield f"      {text}"
        yield from self._rest(memory, "from", word)
        yield "}"

    def stores(self, memory: str, word: int, items: int, span: int) -> Iterator[str]:
        """The statements by which a group stores it from ``memory``."""
        kind, times = LOADED_WORDS[word], -(-self.size(span) // (word * items))
        yield "{"
        yield f"  global uchar *to = d + {self.base};"
        yield f"  const uint nbytes = count / {self.block} * {self.nbytes};"
        yield "  #pragma unroll"
        yield f"  for (uint j = 0; j < {times}; j++)"
        yield f"    if (mine + j * {items} < nbytes / {word})"
        at = f"[mine + j * {items}]"
        yield f"      ((global {kind} *)to){at} = ((local {kind} *){memory}){at};"
        yield from self._rest("to", memory, word)
        yield "}"

    def size(self, span: int) -> int:
        """The bytes for so many columns."""
        return self.nbytes * span // self.block

    @property
    def is_full(self) -> bool:
        """Whether every bit is one of a plane."""
        bits = 0
        for plane in self.planes:
            along = [d for d in plane.digits if d.dim == 2]
            bits += plane.bits * prod(self.block // d.step if d.is_open else d.size for d in along)
        return bits == 8 * self.nbytes

    def declared(self, memory: str, span: int) -> str:
        """The declaration of its local memory."""
        return f"local uchar {memory}[{self.size(span)}] __attribute__((aligned({VECTOR_BYTES})));"

    def _rest(self, to: str, source: str, word: int) -> Iterator[str]:
        """The statements that copy what fills no word at the end."""
        if word > 1:
            at = f"nbytes / {word} * {word} + mine"
            yield f"  if (mine < nbytes % {word})"
            yield f"    {to}[{at}] = {source}[{at}];"


def decoding_in_groups(src: QuantisedDesc, dst: MemoryDesc, traits: Traits) -> Kernel:
    """The kernel from records to rows of f32 or f16. Raises `NotInTilesError` for others."""
    if traits.local_bytes < TILE_BYTES or traits.begin_bytes < VECTOR_BYTES:
        raise NotInTilesError
    return _GroupDecoder(*as_long_rows(src, dst, src.dtype.formula.names), traits).kernel()


class _GroupDecoder:
    def __init__(self, src: QuantisedDesc, dst: MemoryDesc, traits: Traits) -> None:
        self.src, self.dst, self.tables = src, dst, Tables()
        self.symbols, names = Symbols("s"), src.dtype.formula.names
        self.fields = [src.fields[name] for name in names]
        self.planes = placed_planes(src, self.symbols, names)
        self.items = 1 << min(DECODING_ITEMS, traits.group_size).bit_length() - 1
        widest = max(f.dtype.width for f in self.fields)
        self.width = max(VECTOR_BYTES // dst.dtype.nbytes, widest)
        self.span = self.items * self.width * VECTORS_STORED
        moving = [p for p in self.planes.values() if any(d.dim == 2 for d in p.digits)]
        self.runs = list(runs_of(moving, src.extents[2], self.span))
        sizes = [run.size(self.span) for run in self.runs]
        fits = sum(sizes) <= traits.local_bytes and src.extents[2] % self.width == 0
        if self.items < LEAST_ITEMS or not fits:
            raise NotInTilesError
        self.word = gcd(VECTOR_BYTES, *self.symbols.values.values(), *sizes)
        self.target = numbers_in_tiles(dst, self.symbols)
        self.check_stores()

    def check_stores(self) -> None:
        """Raise `NotInTilesError` where vectors of the result are apart or begin anywhere."""
        tile, bits = Tile(1, self.width), self.dst.dtype.bits
        if not follow([self.target.place(tile, 0, c) for c in range(self.width)], bits):
            raise NotInTilesError
        outside = [d for d in self.target.digits if d.step * d.size > tile.size(d.dim)]
        strides = [d.bytes_ * 8 or d.stride * max(1, tile.size(d.dim) // d.step) for d in outside]
        starts = [8 * self.symbols.values[s] for s, _ in self.target.start.symbols]
        if any(n % (8 * VECTOR_BYTES) for n in (*strides, *starts)):
            raise NotInTilesError

    def kernel(self) -> Kernel:
        """The kernel."""
        e, n, k = self.src.extents
        given = {**self.symbols.values, "columns": k}
        names = "".join(f", const ulong {name}" for name in given)
        sizes = self.word, self.items, self.span
        loads = [line for j, run in enumerate(self.runs) for line in run.loads(f"in{j}", *sizes)]
        lines = [
            *([STORED_HALVES] if self.dst.dtype.name == "f16" else []),
            f"kernel __attribute__((reqd_work_group_size({self.items}, 1, 1)))",
            f"void decode(global const uchar *w, global uchar *d{names})",
            "{",
            "  const size_t e = get_group_id(2), n = get_group_id(1);",
            f"  const size_t k = get_group_id(0) * {self.span};",
            f"  const uint count = min((ulong){self.span}, columns - k), mine = get_local_id(0);",
            *(f"  {line}" for line in loads),
            "  barrier(CLK_LOCAL_MEM_FENCE);",
            "  const size_t first = k;",
            "  #pragma unroll",
            f"  for (uint turn = 0; turn < {VECTORS_STORED}; turn++) {{",
            f"    const uint at = (turn * {self.items} + mine) * {self.width};",
            "    if (at < count) {",
            *(f"      {line}" for line in self._decoded()),
            "    }",
            "  }",
            "}",
        ]
        size = -(-k // self.span) * self.items, n, e
        what = (f"a work-group of {self.items} decodes {self.span} elements of a row, "
                f"records through local memory, loaded by {self.word} bytes")  # fmt: skip
        text = source("\n".join(lines), self.tables)
        arguments = tuple(map(np.uint64, given.values()))
        group = self.items, 1, 1
        return Kernel(text, "decode", size, arguments, what, group, VECTOR_BYTES)

    def _decoded(self) -> Iterator[str]:
        """The statements that decode and store a vector: as for global memory, on local memory."""
        tile, width = Tile(1, self.width), self.width
        lanes = [(0, c) for c in range(width)]
        yield "const size_t k = first + at;"
        yield f"global uint4 *out = (global uint4 *)(d + {self.target.base(tile)});"
        for plane in self.planes.values():  # parameters of a row or of the tensor
            if not any(plane in run.planes for run in self.runs):
                yield from (line.strip() for line in plane.pointers(tile, "w"))
        yield f"float{width} result;"
        yield "{"
        yield "  const uint e = 0, n = 0, k = at;"
        for number, run in enumerate(self.runs):
            for plane in run.planes:
                near = replace(plane, start=At(plane.start.bits))
                for line in near.pointers(tile, f"in{number}"):
                    yield line.replace("global const", "local const")
        named: dict[str, Formula] = {}
        for f in self.fields:
            shared = len(distinct(f, tile, lanes)) == 1
            text = value(f, self.planes, tile, lanes, self.tables).replace("(global", "(local")
            yield f"  const float{'' if shared else width} v_{f.name} = {text};"
            named[f.name] = Formula("name", f"v_{f.name}")
        formula = self.src.dtype.formula.with_names(named)
        yield f"  result = {formula.source('float', width)};"
        yield "}"
        each = VECTOR_BYTES // self.dst.dtype.nbytes
        for j in range(0, width, each):
            part = "result" if each == width else f"result.s{HEX[j : j + each]}"
            stored = f"halves8({part})" if each == 8 else f"as_uint4({part})"
            yield f"out[{j // each}] = {stored};"


def columns_of_records(desc: QuantisedDesc) -> int:
    """After how many columns the places of all fields go on alike, if they are runs of bytes."""
    return max((d.step * max(1, f.group[1]) for f in desc.fields.values() for p in f.planes
                for d in p.digits if d.dim == 2), default=1)  # fmt: skip


def runs_of(planes: Sequence[Placed], columns: int, span: int) -> Iterator[ByteRun]:
    """The runs of bytes in which the planes of a row lie. Raises `NotInTilesError`."""
    block, strides = 1, []
    for plane in planes:
        along = [d for d in plane.digits if d.dim == 2]
        last = [d for d in along if d.is_open]
        apart = [d for d in plane.digits
                 if d.dim < 2 and d.size > 1 and not (d.is_open and d.symbol)]  # fmt: skip
        if apart or any(d.symbol for d in along) or len(last) != 1:
            raise NotInTilesError
        step, stride = last[0].step, last[0].stride
        filling = step * (8 // gcd(8, stride))  # columns that fill bytes
        block = lcm(block, filling, *(d.step * d.size for d in along if not d.is_open))
        strides.append((step, stride))
    if columns % block or span % block:
        raise NotInTilesError
    tile, whole = Tile(1, block), Tile(1, span)
    found: dict[str, list[tuple[Placed, int]]] = {}
    for plane, (step, stride) in zip(planes, strides, strict=True):
        bits = stride * block // step
        places = [plane.place(tile, 0, c).bits for c in range(block)]
        if plane.phase(whole) or bits % 8 or min(places) < 0 or max(places) + plane.bits > bits:
            raise NotInTilesError
        found.setdefault(plane.base(whole), []).append((plane, bits // 8))
    for base, own in found.items():
        if len({nbytes for _, nbytes in own}) > 1:
            raise NotInTilesError
        yield ByteRun(base, tuple(plane for plane, _ in own), own[0][1], block)


def as_long_rows(
    records: QuantisedDesc, numbers: MemoryDesc, fields: Sequence[str] = ()
) -> tuple[QuantisedDesc, MemoryDesc]:
    """Both as one row, where rows follow each other without a gap; else as they are."""
    row = long_row(records, fields)
    if row and numbers == MemoryDesc(numbers.dims, numbers.dtype):
        return row, MemoryDesc(row.dims, numbers.dtype)
    return records, numbers


def long_row(src: QuantisedDesc, names: Sequence[str] = ()) -> QuantisedDesc | None:
    """The tensor as one row, if its rows follow each other without a gap: some fields, or all."""
    try:
        row = QuantisedDesc((1, prod(src.extents)), src.dtype, src.text)
    except Error:
        return None
    planes = (p for name in names or src.fields for p in src.fields[name].planes)
    return row if all(_goes_on(p, row.planes[p.name]) for p in planes) else None


def _goes_on(plane: Plane, row: Plane) -> bool:
    """Whether a plane of rows has its bits where that of one long row has them."""
    if plane.first_bit != row.first_bit:
        return False
    own, long = ([(d.dim, d.step, d.size, d.stride) for d in p.digits] for p in (plane, row))
    along = sorted((d for d in own if d[0] == 2), key=lambda d: d[1])
    if not along:
        return all(size == 1 for _, _, size, _ in (*own, *long))
    _, step, reached, apart = along[-1]
    for dim in (1, 0):
        for _, _, size, stride in sorted((d for d in own if d[0] == dim), key=lambda d: d[1]):
            if size > 1 and stride != reached * apart:
                return False
            reached *= size
    wanted = [*along[:-1], (2, step, reached, apart)]
    return wanted == sorted((d for d in long if d[0] == 2), key=lambda d: d[1])
