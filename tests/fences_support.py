"""Memory of the host's between pages that may not be touched, and reorders that must stay inside.

A kernel that reads or writes beyond its memory kills the process, so these run in one of their own:
``python -m tests.fences_support`` tells each case before it is run.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import clformats as cf
from clformats.tensors.dtypes import as_dtype, convert
from tests.device_support import CANARY, as_large, check_bytes, expected, fill, holding
from tests.support import dirty_pack, random_values

PAGE = mmap.PAGESIZE
FORBIDDEN, ALLOWED = 0, 3
"""What may be done with a page, in the words of mprotect: nothing; reading and writing."""
POISON = 0xA5

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("f32:b_fs_yx_fsv16:3x37x5x7", "f32:bfyx:3x37x5x7", {}),
    ("f32:bfyx:3x37x5x7", "s8:b_fs_yx_fsv16:3x37x5x7", {}),
    ("u8:byxf:2x3x17x23", "f16:b_fs_yx_fsv16:2x3x17x23", {}),
    ("f32:byxf:2x5x17x23", "f16:b_fs_yx_fsv8:2x5x17x23", {}),
    ("f32:byxf:2x33x17x23", "f32:bfyx:2x33x17x23", {}),
    ("u8:byxf:2x250x36x37", "u8:bfyx:2x250x36x37", {}),
    ("f32:os_is_yx_osv16_isv4:32x36x3x3", "f32:oiyx:32x36x3x3", {}),
    # Lanes that are no element, of blocks that are full on neither side, read no operand.
    ("f16:os_is_zyx_isv16_osv16:3x48x3x1x1", "f16:oizyx:3x48x3x1x1", {"beta": 0.75}),
    ("f32:b_fs_yx_fsv16:3x37x5x7", "f32:bfyx:3x37x5x7", {"beta": 0.75}),
    ("f32:b_fs_yx_fsv16:3x37x5x7", "f16:byxf:3x37x5x7", {"beta": 0.75}),
    ("f32:os_is_yx_osv16_isv4:35x9x3x3", "f32:oiyx:35x9x3x3", {"beta": 0.75}),
    # Vectors end inside blocks, and what is stored last where the tensor does.
    ("f32:a:33", "f32:A18a:33", {}),
    ("f32:a:100", "f64:A40a:100:offset=8", {}),
    # A short loop with a guard; rows that are collected but for the first, which are padding.
    ("f32:bAc3a:47x17x15", "f32:bAc6a:47x17x15", {}),
    ("u8:bfyx:1x100x37x39", "u8:byxf:1x100x37x39:pad=0+0x0+0x0+0x1+3", {}),
    # Padding in front: vectors that would begin before the source.
    ("f32:ab:7x33", "f32:ab:7x33:pad=0+0x5+3", {}),
    ("f32:bfyx:2x5x7x33", "f16:b_fs_yx_fsv16:2x5x7x33:pad=0+0x0+0x0+0x3+0", {}),
    # Channels that lie apart: the last one of a block lies just behind a vector of the first.
    ("u8:acdb:2x3x5x17:strides=2040x8x408x24", "f16:b_fs_yx_fsv16:2x3x5x17", {}),
    ("u8:acdb:2x3x5x17:strides=510x2x102x6", "u8:b_fs_yx_fsv16:2x3x5x17", {}),
]  # fmt: skip
"""Source, destination and attributes."""

MAPS = [
    # Tiles that cover a whole padded block: the lanes behind its elements have no second tensor.
    ("f64:ab:3x292", "f32:ab:3x292", "u8:Ab9a:3x292"),
    ("u8:byxf:2x3x5x7", "f32:byxf:2x3x5x7", "f16:b_fs_yx_fsv16:2x3x5x7"),
    ("f32:bfyx:1x5x3x17", "f16:bfyx:1x5x1x1", "f32:b_fs_yx_fsv8:1x5x3x17"),
    ("f32:bfyx:2x35x3x5", "f32:b_fs_yx_fsv16:2x35x3x5", "s8:b_fs_yx_fsv32:2x35x3x5"),
    # Rows of channels that are padding: one value for all lanes of each, if there were one.
    ("f32:b_fs_yx_fsv16:2x37x8x16", "f32:bfyx:1x37x1x1", "f32:bfyx:2x37x8x16:pad=0+0x0+11x0+0x0+0"),
]
"""Two tensors and the one that their difference is written to."""

SWEPT = [
    ("f32:a", "f32:A18a", ""),
    ("u8:byxf", "f16:b_fs_yx_fsv16", "1x3x1x"),
    ("u8:byxf", "f16:b_fs_yx_fsv16", "1x5x1x"),
]
"""Source, destination, and the sizes in front of one that takes every value of `SIZES`: vectors at
the end of the source end at it, one element behind it, and so on, of one block and of two."""
SIZES = (*range(1, 20), *range(31, 39), *range(47, 50), *range(63, 66))


@contextmanager
def fenced(nbytes: int, *, behind: bool) -> Iterator[Any]:
    """So many bytes between two pages that may not be touched.

    ``behind``: no byte lies between them and the second one; else between them and the first one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    room = -(-nbytes // PAGE) * PAGE
    pages = np.frombuffer(mmap.mmap(-1, room + 2 * PAGE), np.uint8)
    fences = [ctypes.c_void_p(pages.ctypes.data + at) for at in (0, PAGE + room)]
    for fence in fences:
        assert libc.mprotect(fence, PAGE, FORBIDDEN) == 0
    first = PAGE + (room - nbytes if behind else 0)
    yield pages[first : first + nbytes]
    for fence in fences:
        assert libc.mprotect(fence, PAGE, ALLOWED) == 0


def memory(
    stack: ExitStack, desc: cf.MemoryDesc, contents: Any, stream: cf.Stream, *, behind: bool
) -> cf.Memory:
    """Such bytes between two pages that may not be touched, until the stack ends."""
    import pyopencl as cl

    flat = np.ascontiguousarray(contents).view(np.uint8)
    host = stack.enter_context(fenced(flat.size, behind=behind))
    host[:] = flat
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffer = cl.Buffer(stream.engine.context, flags, hostbuf=host)
    return cf.Memory(desc, stream.engine, buffer=buffer)


def check_fenced(
    src: cf.MemoryDesc, dst: cf.MemoryDesc, stream: cf.Stream, attr: cf.Attr, *, behind: bool
) -> None:
    """Reorder random values between fenced memories, and compare every byte."""
    rng = np.random.default_rng(0)
    array, old = (random_values(rng, d.dims, d.dtype.name) for d in (src, dst))
    with ExitStack() as stack:
        source = memory(stack, src, dirty_pack(rng, array, src), stream, behind=behind)
        target = memory(
            stack, dst, np.full(dst.span_nbytes, POISON, np.uint8), stream, behind=behind
        )
        if not attr.is_empty:
            fill(target, old)
        reorder = cf.Reorder(src, dst, stream.engine, attr=attr)
        reorder(stream, source, target).wait()
        want = (
            expected(array, src, dst)
            if attr.is_empty
            else holding(attr.apply(array, src.dtype, dst.dtype, old), dst)
        )
        check_bytes(target, want[:-CANARY], reorder.plan)


def check_fenced_map(
    x: cf.MemoryDesc, y: cf.MemoryDesc, z: cf.MemoryDesc, stream: cf.Stream, *, behind: bool
) -> None:
    """Write the difference of random values in fenced memories, and compare every byte."""
    rng = np.random.default_rng(0)
    a, b = (random_values(rng, d.dims, d.dtype.name) for d in (x, y))
    real = as_dtype("f64" if "f64" in (x.dtype.name, y.dtype.name, z.dtype.name) else "f32")
    with ExitStack() as stack:
        given = [memory(stack, d, dirty_pack(rng, values, d), stream, behind=behind)
                 for d, values in ((x, a), (y, b))]  # fmt: skip
        target = memory(stack, z, np.full(z.span_nbytes, POISON, np.uint8), stream, behind=behind)
        ready = cf.Map("z = x - y", stream.engine, x=x, y=y, z=z)
        ready(stream, x=given[0], y=given[1], z=target).wait()
        values = convert(a, x.dtype, real) - convert(b, y.dtype, real)
        want = holding(convert(values, real, z.dtype), z)
        check_bytes(target, want[:-CANARY], ready.plan)


def main() -> None:
    """Every case, with tensors that count as large and as small."""
    engine = cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl"))
    large = as_large(engine).engine
    for src, dst, front in SWEPT:
        for size in SIZES:
            pair = [cf.MemoryDesc.parse(f"{text}:{front}{size}") for text in (src, dst)]
            sys.stdout.write(f"{pair[0]} {pair[1]}\n")
            sys.stdout.flush()
            check_fenced(pair[0], pair[1], cf.Stream(engine), cf.Attr(), behind=True)
    for src, dst, attributes in CASES:
        for each, behind in ((engine, True), (large, True), (large, False)):
            large_or_small = "large" if each is large else "small"
            sys.stdout.write(f"{src} {dst} {attributes} {large_or_small} {behind=}\n")
            sys.stdout.flush()
            with refusals():
                check_fenced(
                    cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst), cf.Stream(each),
                    cf.Attr(**attributes), behind=behind,
                )  # fmt: skip
    for texts in MAPS:
        x, y, z = map(cf.MemoryDesc.parse, texts)
        for each, behind in ((engine, True), (large, True), (large, False)):
            sys.stdout.write(f"{x}, {y} -> {z} {each is large=} {behind=}\n")
            sys.stdout.flush()
            with refusals():
                check_fenced_map(x, y, z, cf.Stream(each), behind=behind)


@contextmanager
def refusals() -> Iterator[None]:
    """A device without double precision may refuse f64."""
    try:
        yield
    except cf.Unsupported as error:
        if error.code != "FP64":
            raise


if __name__ == "__main__":
    main()
