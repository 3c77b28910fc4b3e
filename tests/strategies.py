"""Random descriptors, and attributes for them, for hypothesis."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

import clformats as cf
from tests.support import BUFFERS, DTYPES

D = cf.MemoryDesc

# Formats of every kind that a digit list can say, by rank.
BY_RANK: dict[int, list[str]] = {}
for _format in BUFFERS:
    BY_RANK.setdefault(_format.ndims, []).append(_format.name)
FREE_TAGS = {4: ["aBcd12b", "ABcd24a2b", "aBcd40b", "bcda", "dBca3b"], 5: ["aBCde6c10b", "edcba"]}
LARGEST = 4 << 20
"""Bytes of a descriptor: blocks of 64 x 64 x 4 and padding make some of small dims very large."""
EXPRESSIONS = [None, None, "max(x, 0.f) * 0.5f + 1", "x > 3 ? x : 7 - x", "clamp(fabs(x), 2, 90)"]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[D, D]:
    """Any two descriptors of the same dims: formats, element types, padding, strides."""
    ndims = draw(st.sampled_from([1, 2, 3, 4, 4, 4, 5, 5, 6]))
    dims = draw(st.lists(st.sampled_from([1, 2, 3, 5, 7, 8, 15, 16, 17, 20, 31, 33]),
                         min_size=ndims, max_size=ndims))  # fmt: skip
    while prod(dims) > 40_000:
        dims[dims.index(max(dims))] = 3
    types = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(DTYPES))
    one, other = (draw(_descs(dims, dtype)) for dtype in types)
    return _small(one), _small(other)


def _small(desc: D) -> D:
    """The descriptor; the dense one of its dims where it is very large."""
    return desc if desc.span_nbytes <= LARGEST else D(desc.dims, desc.dtype)


@st.composite
def _descs(draw: st.DrawFn, dims: list[int], dtype: str) -> D:
    names = BY_RANK[len(dims)] + FREE_TAGS.get(len(dims), [])
    kind = draw(st.sampled_from(["format", "format", "format", "padding", "strides"]))
    if kind == "strides":
        order = draw(st.permutations(range(len(dims))))
        strides, step = [0] * len(dims), 1
        for d in order:
            strides[d] = step
            step = step * dims[d] + draw(st.integers(0, 3))
        return D(dims, dtype, strides=strides)
    name = draw(st.sampled_from(names))
    if kind == "padding":
        pads = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)),
                             min_size=len(dims), max_size=len(dims)))  # fmt: skip
        try:
            return D(dims, dtype, name, padding=pads)
        except cf.InvalidDescriptor:
            pass
    return D(dims, dtype, name)


@st.composite
def attrs(draw: st.DrawFn, dims: tuple[int, ...], *, sums: bool = True) -> cf.Attr:
    """Attributes for a tensor of ``dims``: any of them, with any masks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    given: dict[str, Any] = {}
    for name in cf.Attr.NAMES:
        if not draw(st.booleans()) or (name == "beta" and not sums):
            continue
        mask = draw(st.integers(0, (1 << len(dims)) - 1))
        sizes = [n for d, n in enumerate(dims) if mask >> d & 1]
        values = rng.integers(-9, 10, sizes) if "zero" in name else rng.uniform(0.25, 4, sizes)
        given[name] = (values, mask)
    return cf.Attr(**given, expression=draw(st.sampled_from(EXPRESSIONS)))


@st.composite
def attributed_pairs(draw: st.DrawFn) -> tuple[D, D, cf.Attr]:
    """Two descriptors and attributes that fit them."""
    src, dst = draw(pairs().filter(lambda pair: not pair[1].sums))
    return src, dst, draw(attrs(dst.dims))
