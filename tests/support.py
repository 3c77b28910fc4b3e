"""What several test files need: sizes that hurt, and random descriptors."""

from __future__ import annotations

import random
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

import clformats as cf

# The formats that memory on a device can have.
BUFFERS = [f for f in cf.formats() if f.kind != "image"]
DTYPES = ("f32", "f16", "bf16", "s32", "s8", "u8")

# One extent per dimension: never two equal neighbours, around the blocks of 2 to 64.
HURTING = (17, 5, 3, 2, 7, 1, 2, 3, 1, 2, 1, 2)


def hurting_dims(fmt: cf.Format, shift: int = 0) -> tuple[int, ...]:
    """Dims for a format whose blocked dimensions straddle their blocks, the others small primes."""
    dims = []
    for d, block in enumerate(fmt.structure.blocks):
        small = HURTING[(d + shift) % len(HURTING)]
        dims.append(block + (-1, 1, 0)[(d + shift) % 3] if block > 1 else min(small, 5))
    while prod(dims) > 60_000:
        largest = dims.index(max(dims))
        dims[largest] = max(1, dims[largest] // 3)
    return tuple(dims)


def brute_force_offsets(desc: cf.MemoryDesc) -> dict[tuple[int, ...], int]:
    """The offset of every element by the definition of digits, written independently of `expr`."""
    result = {}
    for index in product(*map(range, desc.dims)):
        offset = desc.offset0
        for p in _digits_at(desc, index):
            value = 0
            for d in p.digit.dims:
                value = value * desc.padded_dims[d] + index[d] + desc.padded_offsets[d]
            if p.digit.flip:
                value = desc.padded_dims[p.digit.dims[0]] - 1 - value
            value //= p.digit.step
            if p.digit.size is not None:
                value %= p.digit.size
            offset += value * p.stride
        result[index] = offset
    return result


def _digits_at(desc: cf.MemoryDesc, index: tuple[int, ...]) -> list[Any]:
    """The digits and strides of an element: those of the tail where the format has one there."""
    tail = desc.format.structure.tail
    if tail is None or index[tail.dim] // tail.size < desc.dims[tail.dim] // tail.size:
        return list(desc.placed)
    result, stride = [], 1
    for digit in reversed(tail.digits):
        result.append(SimpleNamespace(digit=digit, stride=stride))
        stride *= digit.size or -(-prod(desc.padded_dims[d] for d in digit.dims) // digit.step)
    return result


def random_values(rng: np.random.Generator, dims: tuple[int, ...], dtype: str) -> Any:
    """Values of a type that make conversions work: negative, large, with fractions."""
    dt = cf.dtypes.as_dtype(dtype)
    if dt.is_float:
        return (rng.standard_normal(dims) * 100).astype(dt.numpy)
    return rng.integers(*dt.limits, dims, np.int64, endpoint=True).astype(dt.numpy)


def garbage(rng: np.random.Generator, desc: cf.MemoryDesc) -> Any:
    """Random bytes as the physical elements of a descriptor."""
    size = cf.host.storage_size(desc)
    return np.frombuffer(rng.bytes(size * desc.dtype.nbytes), desc.dtype.storage).copy()


def dirty_pack(rng: np.random.Generator, array: Any, desc: cf.MemoryDesc) -> Any:
    """`cf.pack`, but with garbage in the padding: what a source may really look like."""
    flat = garbage(rng, desc)
    if desc.nelems:
        flat[desc.offsets()] = array
    return flat


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
