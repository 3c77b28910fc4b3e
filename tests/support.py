"""What several test files need: sizes that hurt, and random descriptors."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np

import clformats as cf
from clformats.host.oracle import put
from clformats.tensors.rows import ROWS

# The formats for elements of any width; the others are for those of 4 bits alone.
ANY_WIDTH = [f for f in cf.formats() if not f.name.endswith(":i4")]
# The formats that memory on a device can have.
BUFFERS = [f for f in ANY_WIDTH if f.kind != "image"]
DTYPES = tuple(r.name for r in ROWS if 8 <= r.bits <= 32 and not r.is_coded)
"""Whole bytes and plain numbers: rows that every device calculates with."""

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
LIMIT = 100_000
"""The most elements of a tensor of `hurting_dims`; nearly all have far fewer."""


def dtype_for(fmt: cf.Format, dtype: str = "f32") -> str:
    """An element type that the format takes: ``dtype``, or the one of 4 bits."""
    return "u4" if fmt.name.endswith(":i4") else dtype


def hurting_dims(fmt: cf.Format, shift: int = 0) -> tuple[int, ...]:
    """Dims on which a layout that mixes two dimensions up, or forgets a rest, is found out.

    A dimension that is blocked or aligned has a size next to its block (less one, plus one, the
    block itself, in turns that ``shift`` moves on); the others are small primes. No two are equal.
    Where that is more than `LIMIT` elements the others count 1, 2, 3, ...; and where even that is
    more, from nine dimensions on, they repeat, and only neighbours differ.
    """
    layout = fmt.structure
    dims = [0] * fmt.ndims
    for d, block in enumerate(map(max, layout.blocks, layout.align)):
        turn = (d + shift) % 3
        near = [block + k for k in ((-1, 1, 0), (1, 0, -1), (0, -1, 1))[turn]]
        if block > 1:
            dims[d] = next(n for n in [*near, block + 2, block + 3] if n > 1 and n not in dims)
    rest = [d for d, n in enumerate(dims) if not n]
    for pool in (PRIMES, range(1, 20)):
        sizes = [n for n in pool if n not in dims][: len(rest)]
        if prod(sizes) * prod(n for n in dims if n) <= LIMIT:
            break
    else:
        return tuple(2 + (d + shift) % 2 for d in range(fmt.ndims))
    for k, d in enumerate(rest):
        dims[d] = sizes[(k + shift + 1) % len(rest)]
    return tuple(dims)


def whole_dims(fmt: cf.Format) -> tuple[int, ...]:
    """Dims that fill every block, so that nothing is padded; no two are equal where that is small.

    Dimensions without a block are multiples of four, the last two of them odd, as windows are.
    """
    layout = fmt.structure
    plain = [d for d in range(fmt.ndims) if max(layout.blocks[d], layout.align[d]) == 1]
    odd = dict(zip(plain[:1:-1], (3, 5), strict=False)) if len(plain) > 2 else {}
    dims: list[int] = []
    for d, block in enumerate(map(max, layout.blocks, layout.align)):
        sizes = (
            [odd[d]] if d in odd else [block * k for k in ((2, 3, 1) if block > 1 else (8, 12, 4))]
        )
        dims.append(next((n for n in sizes if n not in dims), sizes[0]))
    while prod(dims) > 8 * LIMIT and any(n > b for n, b in zip(dims, layout.blocks, strict=True)):
        d = max(range(len(dims)), key=lambda k: dims[k] / max(layout.blocks[k], layout.align[k]))
        dims[d] = max(layout.blocks[d], layout.align[d])
    return tuple(dims)


def brute_force_offsets(desc: cf.MemoryDesc) -> Any:
    """The offset of every element by the definition of digits, written independently of `expr`."""
    offsets = _formula(desc, [(p.digit, p.stride) for p in desc.placed])
    tail = desc.format.structure.tail
    if tail is None:
        return offsets
    digits, stride = [], 1
    for digit in reversed(tail.digits):
        digits.append((digit, stride))
        stride *= digit.size or -(-prod(desc.padded_dims[d] for d in digit.dims) // digit.step)
    index = np.indices(desc.dims, np.int64, sparse=True)[tail.dim]
    behind = index // tail.size >= desc.dims[tail.dim] // tail.size
    return np.where(behind, _formula(desc, digits), offsets)


def _formula(desc: cf.MemoryDesc, digits: list[tuple[cf.Digit, int]]) -> Any:
    grid = np.indices(desc.dims, np.int64, sparse=True)
    offsets = np.full(desc.dims, desc.offset0, np.int64)
    for digit, stride in digits:
        value = np.zeros((), np.int64)
        for d in digit.dims:
            value = value * desc.padded_dims[d] + grid[d] + desc.padded_offsets[d]
        if digit.flip:
            value = desc.padded_dims[digit.dims[0]] - 1 - value
        value = value // digit.step
        if digit.size is not None:
            value = value % digit.size
        offsets += value * stride
    return offsets


def random_values(rng: np.random.Generator, dims: tuple[int, ...], dtype: str) -> Any:
    """Values of a type that make conversions work: negative, large, with fractions."""
    dt = cf.tensors.dtypes.as_dtype(dtype)
    if dt.is_float and dt.bits <= 8 and not dtype.startswith(("f8_e4", "f8_e5")):
        values = rng.integers(0, 1 << dt.bits, dims, np.uint8)
        real = cf.tensors.dtypes.convert(cf.tensors.dtypes.from_codes(values, dt), dt, "f32")
        return cf.tensors.dtypes.from_codes(np.where(np.isfinite(real), values, 0), dt)
    if dt.is_float:
        return (rng.standard_normal(dims) * 100).astype(dt.numpy)
    return rng.integers(*dt.limits, dims, np.int64, endpoint=True).astype(dt.numpy)


def garbage(rng: np.random.Generator, desc: cf.MemoryDesc) -> Any:
    """Random bytes as the physical elements of a descriptor."""
    size = cf.host.packing.storage_size(desc)
    return np.frombuffer(rng.bytes(size * desc.dtype.nbytes), desc.dtype.storage).copy()


def dirty_pack(rng: np.random.Generator, array: Any, desc: cf.MemoryDesc) -> Any:
    """`cf.pack`, but with garbage in the padding: what a source may really look like."""
    flat = garbage(rng, desc)
    put_values(flat.view(np.uint8), desc, array)
    return flat


def put_values(memory: Any, desc: cf.MemoryDesc, values: Any) -> None:
    """Write logical values to bytes, and touch no other bit."""
    if desc.nelems:
        found = cf.tensors.dtypes.codes(values, desc.dtype)
        put(memory, desc.offsets(), found, desc.dtype.bits)


def pair_of(src: str, dst: str, dims: tuple[int, ...]) -> tuple[cf.MemoryDesc, cf.MemoryDesc]:
    """Two descriptors of the same sizes, from texts that lack these: ``f32:bfyx:pad=1+0x0+0``."""
    shape = "x".join(map(str, dims))
    texts = (":".join([*t.split(":")[:2], shape, *t.split(":")[2:]]) for t in (src, dst))
    a, b = map(cf.MemoryDesc.parse, texts)
    return a, b


def random_pair(rng: random.Random, formats: dict[int, list[cf.Format]]) -> tuple[Any, ...]:
    """Dims, and two formats of the same rank."""
    ndims = rng.choice([2, 3, 4, 4, 4, 5, 5, 6])
    dims = [rng.choice([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 20, 33]) for _ in range(ndims)]
    while prod(dims) > 50_000:
        dims[rng.randrange(ndims)] = rng.choice([1, 2, 3])
    return tuple(dims), rng.choice(formats[ndims]), rng.choice(formats[ndims])


def same_bytes(got: Any, want: Any) -> bool:
    """Whether two arrays have the same bytes."""
    return bool(got.tobytes() == want.tobytes())
