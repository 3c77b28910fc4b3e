"""Descriptors equal those of the real oneDNN: every tag it has, and random strides."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

import clformats as cf
from bench.peers import onednn

D = cf.MemoryDesc
ALIASES = sorted(onednn.ALIASES.items())


def _shapes(ndims: int) -> list[tuple[int, ...]]:
    """Dims around the blocks, of ones, and with a zero."""
    around = (17, 33, 5, 3, 2, 7, 2, 3, 1, 2, 1, 2)
    under = (15, 16, 1, 2, 3, 1, 2, 1, 2, 1, 2, 1)
    zero = (2, 0, 3, 5, 2, 1, 2, 1, 2, 1, 2, 1)
    return [around[:ndims], under[:ndims], (1,) * ndims, (0, *around[1:ndims]), zero[:ndims]]


def _compare(ours: D, real: onednn.Desc) -> None:
    assert ours.padded_dims == real.padded_dims
    assert ours.strides == real.strides
    assert ours.inner_blks == real.inner_blks
    assert ours.inner_idxs == real.inner_idxs
    assert ours.padded_offsets == real.padded_offsets
    assert ours.offset0 == real.offset0
    assert ours.nbytes == real.size()


@pytest.mark.parametrize("tag", sorted(onednn.TAGS))
def test_every_tag(tag: str) -> None:
    fmt = cf.Format(tag)
    for dims in _shapes(fmt.ndims):
        _compare(D(dims, "f32", fmt), onednn.Desc.by_tag(dims, "f32", tag))


def test_every_alias_names_the_same_tag() -> None:
    assert len(ALIASES) == 475
    for alias, tag in ALIASES:
        assert cf.Format(alias) == cf.Format(tag), alias


def test_random_strides() -> None:
    """What is accepted, and the numbers of it, for 20,000 random strides."""
    rng = random.Random(11)  # noqa: S311  # shapes, not secrets
    accepted = 0
    for _ in range(20_000):
        ndims = rng.choice([1, 2, 3, 4])
        dims = tuple(rng.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(ndims))
        strides = tuple(rng.choice([-1, 0, 1, 2, 3, 4, 5, 6, 8, 12, 15, 20, 24, 60]) for _ in dims)
        try:
            real = onednn.Desc.by_strides(dims, "s8", strides)
        except onednn.Status:
            with pytest.raises(cf.InvalidDescriptor):
                D(dims, "s8", strides=strides)
            continue
        accepted += 1
        ours = D(dims, "s8", strides=strides)
        assert ours.strides == real.strides
        # The one difference: a tensor repeated in all dimensions still needs its one element.
        assert ours.nbytes == (real.size() or (1 if prod(dims) else 0)), (dims, strides)
    assert accepted > 3_000


def test_random_equality() -> None:
    rng = random.Random(12)  # noqa: S311
    by_rank: dict[int, list[str]] = {}
    for tag in sorted(onednn.TAGS):
        by_rank.setdefault(cf.Format(tag).ndims, []).append(tag)
    equal = 0
    for _ in range(20_000):
        ndims = rng.choice([2, 3, 4, 5])
        dims = tuple(rng.choice([0, 1, 1, 1, 2, 16]) for _ in range(ndims))
        a, b = rng.choice(by_rank[ndims]), rng.choice(by_rank[ndims])
        real = onednn.Desc.by_tag(dims, "f32", a) == onednn.Desc.by_tag(dims, "f32", b)
        assert (D(dims, "f32", a) == D(dims, "f32", b)) == real, (dims, a, b)
        equal += real
    assert equal > 100


@pytest.mark.parametrize(
    ("dims", "tag"), [((2, 3), "abc"), ((2, -3), "ab"), ((1,) * 13, "ab"), ((2, 3), "aBc16b")]
)
def test_what_is_refused(dims: tuple[int, ...], tag: str) -> None:
    with pytest.raises(onednn.Status):
        onednn.Desc.by_tag(dims, "f32", tag)
    with pytest.raises(cf.InvalidDescriptor):
        D(dims, "f32", tag)


def test_row_major_without_strides() -> None:
    for dims in ((2, 3, 4), (1, 1), (5,)):
        assert D(dims, "f32").strides == onednn.Desc.by_strides(dims, "f32", None).strides
    assert np.dtype(cf.tensors.dtypes.as_dtype("bf16").numpy).itemsize == 2
