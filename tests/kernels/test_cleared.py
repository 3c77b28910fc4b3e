"""Lanes made zero in vectors of up to 16 bytes or shorts, over which Intel's compiler may die.

A shuffle of two such vectors whose result a constant mask clears in part becomes one instruction,
which the compiler fails to emit: it ends the process. So zeros come by `CLEARED` alone, and of what
is computed `KEEP_STORED` keeps the elements.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import render
from clformats.schedule import Traits, make_plan
from tests.device_support import check_reorder

CASES = [
    ("f32", "u8", "ab", "Ba4b", (3, 7)),
    ("u8", "u8", "abc", "BAc16a16b", (7, 7, 2)),
    ("s8", "s8", "abc", "IOw16o16i", (7, 7, 3)),
    ("u8", "u8", "ab", "Ab5a", (2, 16)),
    ("u8", "u8", "cdba", "fs_b_yx_fsv32", (8, 3, 14, 14)),
    ("f16", "f16", "ab", "Ab5a", (2, 16)),
    ("u8", "f8_e5m2", "Abcde32a", "Abcde10a", (4, 1, 5, 268, 1)),
]
ZEROS = re.compile(r"& \((?:char|short)(?:8|16)\)\(|\(u?(?:char|short)(?:8|16)\)\(0\)\);")
"""A constant mask, and a vector of zeros as the second one of a shuffle."""
OTHER_COMPILER = "-Dcl_intel_vec_len_hint"


def pair(
    src: str, dst: str, a: str, b: str, dims: tuple[int, ...]
) -> tuple[cf.MemoryDesc, cf.MemoryDesc]:
    return cf.MemoryDesc(dims, src, a), cf.MemoryDesc(dims, dst, b)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_zeros_come_by_one_macro(case: tuple[str, str, str, str, tuple[int, ...]]) -> None:
    """In whole tiles and in those at edges."""
    src, dst = pair(*case)
    made = render(make_plan(src, dst, Traits(vector_bytes=64)))
    assert made
    source = made.source
    assert "CLEARED(" in source
    statements = [line for line in source.splitlines() if re.match(r"\s+const \w+ v\d+ =", line)]
    assert not [line for line in statements if ZEROS.search(line)]


@pytest.fixture(params=["", OTHER_COMPILER])
def either(
    request: pytest.FixtureRequest, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> cf.Stream:
    """A stream of a compiler as it is, and as Intel's for CPUs would see the source."""
    own = cf.Engine(device=engine.device)
    monkeypatch.setitem(own.__dict__, "_options", (*own._options, *request.param.split()))
    return cf.Stream(own)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_ways_to_clear_lanes_give_the_same_bytes(
    case: tuple[str, str, str, str, tuple[int, ...]], either: cf.Stream
) -> None:
    """The smaller value and the mask; on Intel's own compiler all of them lived through once."""
    src, dst = pair(*case)
    check_reorder(src, dst, either, seed=5)


def test_both_ways_to_keep_elements_among_padding_give_the_same_bytes(either: cf.Stream) -> None:
    """Of such masks of bf16 Intel's compiler for AVX-512 died."""
    dims, attr = (15, 1, 19, 7), cf.Attr(src_zero_point=(np.arange(1, 286), 7))
    for dtype in ("bf16", "u8", "s32", "f64"):
        src, dst = pair("f32", dtype, "abcd", "abCd14c", dims)
        made = check_reorder(src, dst, either, attr=attr)
        assert "ended the compiler" not in str(made.plan)
