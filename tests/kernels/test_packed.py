"""Laws 3 and 4 on a device, over every row of the table of types and rows of one's own.

Whatever the width: bits of neighbours, gaps and canaries stay, sources have garbage around.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.tensors.rows import ROWS, DType
from tests.device_support import check_reorder
from tests.types_support import OWN, PACKED, known

D = cf.MemoryDesc
NEW = tuple(r for r in (*ROWS, *OWN) if r.is_packed or r.name in ("s64", "f8_e8m0"))
WIDE = ("f32", "f16", "s8", "s32")


@pytest.fixture(autouse=True)
def own_rows() -> Iterator[None]:
    with ExitStack() as stack:
        for row in OWN:
            stack.enter_context(known(row))
        yield


def layouts(row: DType | str) -> list[D]:
    """Dense, odd, blocked, with padding, gaps and an offset within a byte, regions, fused."""
    gaps = D((3, 5), row, strides=(11, 2))
    return [
        D((3, 19, 17), row, "abc"),
        D((2, 17, 33), row, "aBc16b"),
        D((2, 17, 33), row, "acb"),
        D((3, 5), row),
        gaps,
        D.of(replace(gaps.geometry, offset0=3), row),
        D((2, 3, 5, 7), row, "b_fs_yx_fsv4", padding=((0, 0), (1, 0), (0, 2), (1, 1))),
        D((7, 9, 5), row, "aBc4b").submemory((7, 4, 5), (0, 4, 0)),
    ]


def some_pair(row: DType, seed: int) -> tuple[D, D]:
    """From or to a row, in layouts of equal dims."""
    draw = random.Random(f"{row} {seed}")  # noqa: S311  # shapes, not secrets
    other = draw.choice([*WIDE, row, draw.choice(NEW)])
    kinds: list[Any] = [row, other] if draw.random() < 0.5 else [other, row]
    dst = draw.choice(layouts(kinds[1]))
    fits = [d for d in layouts(kinds[0]) if d.dims == dst.dims]
    plain = D(dst.dims, kinds[0])
    return draw.choice([*fits, plain]), dst


@pytest.mark.parametrize("row", NEW, ids=str)
def test_to_and_from_every_type(row: DType, stream: cf.Stream) -> None:
    src, dst = some_pair(row, 0)
    check_reorder(src, dst, stream)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "block"), list(product(NEW, range(4))))
def test_many_pairs(row: DType, block: int, stream: cf.Stream) -> None:
    for seed in range(50 * block, 50 * block + 50):
        src, dst = some_pair(row, seed)
        check_reorder(src, dst, stream, seed=seed, front=random.Random(seed).choice((0, 5, 24)))  # noqa: S311


@pytest.mark.parametrize("row", PACKED, ids=str)
def test_bit_by_bit(row: DType, stream: cf.Stream) -> None:
    """The family that takes every layout: the plan says so, and by how many elements it goes."""
    shifted = D.of(replace(D((3, 19), row).geometry, offset0=3), row)
    reorder = check_reorder(D((3, 19), "f32"), shifted, stream)
    assert reorder.plan.family == "generic"
    assert f"units of {8 // np.gcd(8, row.bits)} elements, which share bytes" in str(reorder.plan)
    if row.name not in ("s4", "u4"):
        check_reorder(shifted, D((3, 19), "f16"), stream, family="generic")


@pytest.mark.parametrize("row", [r for r in OWN if r.values], ids=str)
def test_tables_are_numbers(row: DType, stream: cf.Stream) -> None:
    """OpenCL's INFINITY is no constant for NVIDIA's compiler."""
    source = cf.Reorder(D((64,), "f32"), D((64,), row), stream.engine, wait=True).source
    assert f"bounds_of_{row}" in source
    assert "INFINITY" not in source


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize("dtype", ["f4_e2m1", "s4"])
def test_single_lanes_with_guards(dtype: str, stream: cf.Stream) -> None:
    """Of a code and 0 that a condition chooses between, C makes an int."""
    schedule = "tile b3 c4 d2 e2 of 1 | a* b* d:10 d:4 d | ahead 50 | ordinary"
    dims = (70, 4, 1, 1, 7)
    pair = D(dims, "u8", "abcde"), D(dims, dtype, "Acdeb64a")
    reorder = check_reorder(*pair, stream, choices=cf.Choices(schedule=schedule))
    assert reorder.plan.family == "scheduled"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", ["generic", None])
@pytest.mark.parametrize("dst", ["f32", "f16", "s32"])
@pytest.mark.parametrize("row", [r for r in NEW if not r.starts_at_zero], ids=str)
def test_padding_is_zero_where_the_code_0_is_none(
    row: DType, dst: str, family: str | None, stream: cf.Stream
) -> None:
    """Law 4: 2**-127 and -1 are codes of all bits zero."""
    pads = ((0, 0), (1, 0), (0, 2), (1, 1))
    for target in (D((2, 3, 5, 7), dst, "b_fs_yx_fsv4", padding=pads),
                   D((2, 17, 5, 7), dst, "nChw16c"), D((2, 17, 5, 7), dst, "byxf")):  # fmt: skip
        check_reorder(D(target.dims, row), target, stream, family=family)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("src", ["f32", "u3", "s8"])
@pytest.mark.parametrize("row", [r for r in NEW if not r.starts_at_zero], ids=str)
def test_padding_stays_all_bits_zero(row: DType, src: str, stream: cf.Stream) -> None:
    """Law 4, of destinations where the code of the number 0 has bits that are set."""
    pads = ((0, 0), (1, 0), (0, 2), (1, 1))
    padded = D((2, 3, 5, 7), row, "b_fs_yx_fsv4", padding=pads)
    for target in (padded, D((2, 17, 5, 7), row, "nChw16c")):
        check_reorder(D(target.dims, src), target, stream)


@pytest.mark.parametrize("row", [r for r in NEW if r.is_coded], ids=str)
def test_every_code_to_and_from_floats(row: DType, stream: cf.Stream) -> None:
    codes = np.arange(1 << row.bits, dtype=np.uint8)
    every = cf.tensors.dtypes.from_codes(codes, row)
    numbers = cf.tensors.dtypes.convert(every, row, "f32")
    finite = np.sort(numbers[np.isfinite(numbers)]).astype(np.float64)
    middles = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middles, np.float32(to)) for to in (-np.inf, np.inf)]
    far = np.array([np.inf, -np.inf, 1e30, -1e30, 0, -0.0], np.float32)
    hard = np.concatenate([numbers[np.isfinite(numbers)], middles, *near, far])
    for family in ("generic", None):
        check_reorder(
            D(every.shape, row), D(every.shape, "f32"), stream, array=every, family=family
        )
        check_reorder(D(hard.shape, "f32"), D(hard.shape, row), stream, array=hard, family=family)
