"""Random operations on descriptors give what the real oneDNN gives: 100,000 in all.

Creation by strides and equality are in test_descriptors.py, 40,000; here submemory, reshape and
permutation of axes, on descriptors that are themselves results of operations. The fast tier runs
the first eighth of each list, the slow tier the whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from math import prod

import pytest

import clformats as cf
from bench.peers import onednn
from tests.tiers import tiered

pytestmark = pytest.mark.parametrize("share", tiered([1, 8], [8]))

D = cf.MemoryDesc
BY_RANK: dict[int, list[str]] = {}
for _tag in sorted(onednn.TAGS):
    BY_RANK.setdefault(cf.Format(_tag).ndims, []).append(_tag)
Pair = tuple[D, onednn.Desc]
Operation = Callable[[random.Random, Pair], "Pair | None"]


def _start(rng: random.Random) -> Pair:
    """A descriptor by tag or by strides, and the real one."""
    ndims = rng.choice([1, 2, 2, 3, 3, 4])
    dims = tuple(rng.choice([0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40]) for _ in range(ndims))
    if rng.random() < 0.7:
        tag = rng.choice(BY_RANK[ndims])
        return D(dims, "f32", tag), onednn.Desc.by_tag(dims, "f32", tag)
    strides, step = [0] * ndims, 1
    for d in rng.sample(range(ndims), ndims):
        strides[d] = step
        step *= max(dims[d], 1) + rng.choice([0, 0, 0, 1, 3])
    return D(dims, "f32", strides=strides), onednn.Desc.by_strides(dims, "f32", strides)


def _random_submemory(rng: random.Random, pair: Pair) -> Pair | None:
    ours, real = pair
    dims, offsets = [], []
    for n in ours.dims:
        at = rng.choice([0, 0, 8, 16, 1, rng.randint(0, n + 1)])
        dims.append(rng.choice([n - at, n, 8, 16, rng.randint(0, n + 1)]))
        offsets.append(at)
    return _both(
        lambda: ours.submemory(dims, offsets),
        lambda: real.submemory(dims, offsets),
        f"{ours} region {dims} at {offsets}",
    )


def _random_reshape(rng: random.Random, pair: Pair) -> Pair | None:
    ours, real = pair
    if _cut_to_one(ours):
        return None  # oneDNN leaves the block on another dimension: elements move, we refuse
    dims = list(ours.dims)
    for _ in range(rng.randint(1, 3)):
        _mutate(rng, dims)
    dims = dims[:6]
    return _both(lambda: ours.reshape(dims), lambda: real.reshape(dims), f"{ours} to {dims}")


def _cut_to_one(desc: D) -> bool:
    """Whether a region has left one element of a block along some dimension."""
    blocks = desc.format.structure.blocks
    return any(p == 1 and b > 1 for p, b in zip(desc.padded_dims, blocks, strict=True))


def _mutate(rng: random.Random, dims: list[int]) -> None:
    """Split, join, insert or drop: most results have the same number of elements."""
    k = rng.randrange(len(dims) + 1)
    kind = rng.choice("sjid")
    if kind == "i":
        dims.insert(k, 1)
    elif kind == "d" and 1 in dims:
        dims.remove(1)
    elif kind == "j" and 0 < k < len(dims):
        dims[k - 1 : k + 1] = [dims[k - 1] * dims[k]]
    elif kind == "s" and k < len(dims) and dims[k]:
        part = rng.choice([p for p in (1, 2, 3, 4, 8, 16) if dims[k] % p == 0])
        dims[k : k + 1] = [part, dims[k] // part]


def _random_permutation(rng: random.Random, pair: Pair) -> Pair | None:
    ours, real = pair
    axes = rng.sample(range(ours.ndims), ours.ndims)
    if rng.random() < 0.05 and axes:
        axes[0] = rng.choice([-1, ours.ndims, axes[-1]])
    return _both(
        lambda: ours.permute_axes(axes), lambda: real.permute_axes(axes), f"{ours} by {axes}"
    )


def _both(ours: Callable[[], D], real: Callable[[], onednn.Desc], what: str) -> Pair | None:
    """Run both; they must agree on success, and on every number."""
    try:
        theirs = real()
    except onednn.Status:
        with pytest.raises((cf.InvalidDescriptor, cf.Unsupported)) as refusal:
            raise AssertionError(f"{what}: oneDNN refuses, we make {ours()}") from None
        assert refusal.value.code, (what, refusal.value)
        return None
    got = ours()
    _compare(got, theirs, what)
    return got, theirs


def _compare(ours: D, real: onednn.Desc, what: str) -> None:
    assert ours.dims == real.dims, what
    if not ours.dims:
        return  # all empty descriptors are equal, whatever else they say
    assert ours.padded_dims == real.padded_dims, what
    assert ours.offset0 == real.offset0, what
    assert ours.strides == real.strides, what
    assert ours.inner_blks == real.inner_blks, what
    assert ours.inner_idxs == real.inner_idxs, what
    blocks = ours.format.structure.blocks
    whole = all(p % block == 0 for p, block in zip(ours.padded_dims, blocks, strict=True))
    # 2.x answers 0 for the others, 3.x the span, as we do; both forget blocks that are only begun.
    if ours.offset0 == 0 and whole:
        assert ours.nbytes == (real.size() or (4 if prod(ours.dims) else 0)), what


def _run(operation: Operation, count: int, seed: int) -> Counter[bool]:
    """Chains of up to three operations from a random start."""
    rng = random.Random(seed)  # noqa: S311  # shapes, not secrets
    seen: Counter[bool] = Counter()
    while seen.total() < count:
        pair: Pair | None = _start(rng)
        for _ in range(3):
            if pair is None or not pair[0].dims:
                break
            result = operation(rng, pair)
            seen[result is not None] += 1
            if result is not None:
                text = str(result[0])
                assert D.parse(text) == result[0], text
            pair = result
    return seen


def test_submemory(share: int) -> None:
    seen = _run(_random_submemory, 20_000 // share, 21)
    assert min(seen.values()) > 2_000 // share


def test_reshape(share: int) -> None:
    seen = _run(_random_reshape, 20_000 // share, 22)
    assert min(seen.values()) > 2_000 // share


def test_permute_axes(share: int) -> None:
    seen = _run(_random_permutation, 10_000 // share, 23)
    assert min(seen.values()) > 200 // share


def test_mixed(share: int) -> None:
    kinds = [_random_submemory, _random_reshape, _random_permutation]
    _run(lambda rng, pair: rng.choice(kinds)(rng, pair), 10_000 // share, 24)
