"""The key of a record: the structure of a problem, and its shape class.

Problems of one structure have the same loops and the same constants. Problems of one class have
sizes within a factor of two of each other, and rows that start alike within cache lines; their
times are similar enough that the faster kernel for one is the faster one for the others.
"""

from __future__ import annotations

from math import gcd

from ..problems.problem import Node, Number, Problem
from ..problems.thresholds import LINE_BYTES
from ..tensors.desc import MemoryDesc

EXACT = 16
"""Sizes up to this are part of the key exactly: 2 and 3 channels differ very much."""


def structure_of(p: Problem) -> str:
    """The element types and loops, with ``n`` for sizes and ``s`` for strides that are arguments.

    ``?`` marks a guarded loop.
    """
    types = f"{p.src.dtype} -> {p.dst.dtype}"
    if p.why or p.tables:
        return f"{types} {p.src.format} -> {p.dst.format}"
    loops = " ".join(_loop(n) for n in p.nodes) or "one element"
    return f"{types} {loops}"


def _loop(n: Node) -> str:
    strides = f"{_stride(n.src)},{_stride(n.dst)}"
    return f"({_text(n.size, 'n')}:{strides}{'?' * (n.guard is not None)})"


def _stride(n: Number) -> str:
    return str(n) if n.value == 1 else _text(n, "s")


def _text(n: Number, letter: str) -> str:
    return str(n) if n.fixed else letter


def shape_class_of(p: Problem) -> str:
    """The loops' sizes, those beyond 16 rounded down to a power of two; and how rows start.

    ``64|4``: all rows of the source start at multiples of 64 bytes, the destination's of 4.
    """
    sizes = p.dst.dims if p.why else [n.size.value for n in p.nodes]
    text = "x".join(map(rounded, sizes)) or "1"
    return f"{text} {_start(p, p.src, 'src')}|{_start(p, p.dst, 'dst')}"


def rounded(size: int) -> str:
    """A size as shape classes have it: exact up to `EXACT`, else the power of two below it."""
    return str(size) if size <= EXACT else str(1 << (size.bit_length() - 1))


def _start(p: Problem, desc: MemoryDesc, side: str) -> int:
    """The largest power of two, up to a cache line, that divides where rows start, in bytes."""
    strides = [getattr(n, side).value for n in p.nodes if n.size.value > 1]
    starts = [getattr(p, f"{side}0"), *(s for s in strides if s > 1)]
    return gcd(LINE_BYTES, *(s * desc.dtype.bits // 8 for s in starts))


def sizes_of(p: Problem) -> str:
    """All sizes exactly, for kernels in which they are constants."""
    return f"{p.src} -> {p.dst}"
