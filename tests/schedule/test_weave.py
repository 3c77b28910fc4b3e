"""Words woven from elements that lie apart: which problems have them, and what comes from where."""

from __future__ import annotations

import numpy as np
import pytest

import clformats as cf
from clformats.kernels.weave import woven_words
from clformats.schedule import make_plan
from clformats.schedule.lanes import Weave
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import Traits

SHAPES = [(inner, count) for count in (2, 4) for inner in (3, 5, 7, 8, 9, 15, 25, 27)]


@pytest.mark.parametrize(("inner", "count"), SHAPES)
def test_every_element_of_a_run_is_in_one_word(inner: int, count: int) -> None:
    weave = Weave(0, inner, count)
    found = [place for word in range(inner) for place in weave.elements(word)]
    assert sorted(found) == [divmod(n, count) for n in range(inner * count)]


@pytest.mark.parametrize(("inner", "count"), SHAPES)
def test_words_are_put_together_from_registers(inner: int, count: int) -> None:
    """The expressions, run in Python on the bytes of a run, give the transposed bytes."""
    item = 4 // count
    run = np.random.default_rng(inner).integers(0, 256, (inner * count, item), np.uint8)
    words = run.reshape(-1).view("<u4")
    wanted = run.reshape(count, inner, item).transpose(1, 0, 2).reshape(-1).view("<u4")
    values = {f"r{k}": int(word) for k, word in enumerate(words)}
    macros = {
        "CHOOSE": lambda a, b, mask: a & ~mask | b & mask,
        "TURN": lambda v, bits: (v << bits | v >> (32 - bits)) & 0xFFFFFFFF,
    }
    for word in range(inner):
        text = woven_words(Weave(0, inner, count), word, list(values), 8 * item)
        found = eval(text.replace("u,", ",").replace("u)", ")"), {**macros, **values})  # noqa: S307
        assert found == wanted[word], text


def _plan(dims: tuple[int, ...], types: str, begin: int = 64) -> TilePlan:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    traits = Traits(begin_bytes=begin, streamed_bytes=0)
    body = make_plan(src, dst, traits, "tile").body
    assert isinstance(body, TilePlan)
    return body


@pytest.mark.parametrize(
    ("dims", "types", "inner", "count", "starts"),
    [
        ((32, 16, 3, 3), "s8:oiyx s8:os_is_yx_osv16_isv4", 9, 4, (0, 1)),
        ((32, 64, 3, 3), "u8:oiyx u8:os_is_yx_isa8_osv8_isv4", 9, 4, (0, 1)),
        ((32, 64, 3, 3), "s8:oiyx s8:OIhw16i16o4i", 9, 4, (0, 1)),
        ((64, 16, 5, 5), "bf16:oiyx bf16:OIhw8i16o2i", 25, 2, (0, 9)),
        ((32, 16, 1, 5), "s8:oiyx s8:os_is_yx_osv16_isv4", 5, 4, (0, 1)),
        ((32, 16, 4, 4), "s8:oiyx s8:os_is_yx_osv16_isv4", 16, 4, (0,)),
        ((4, 48, 6, 32), "u8:b_fs_yx_fsv16 u8:bfyx", 16, 4, (0,)),
        ((32, 64, 3, 3), "s8:oiyx s8:ohwi", 9, 4, (0, 1)),
        ((64, 16, 3, 3, 3), "s8:oizyx s8:OIdhw16o4i", 27, 4, (0, 11)),
    ],
)
def test_words_are_woven(
    dims: tuple[int, ...], types: str, inner: int, count: int, starts: tuple[int, ...]
) -> None:
    plan = _plan(dims, types)
    assert plan.weave
    assert (plan.weave.inner, plan.weave.count) == (inner, count)
    assert plan.span
    assert plan.span.starts == starts
    assert plan.nontemporal
    assert plan.positions(plan.weave.node).value == 1
    assert [t.name for t in plan.problem.dtypes] == ["f32", "f32"]


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((32, 16, 3, 3), "f32:oiyx f32:os_is_yx_osv16_isv4"),  # a word has one element
        ((32, 16, 3, 3), "f32:oiyx s8:os_is_yx_osv16_isv4"),  # values are converted
        ((33, 16, 3, 3), "s8:oiyx s8:os_is_yx_osv16_isv4"),  # outputs are padded
        ((32, 18, 3, 3), "s8:oiyx s8:os_is_yx_osv16_isv4"),  # inputs are padded
        ((32, 16, 1, 1), "s8:oiyx s8:os_is_yx_osv16_isv4"),  # four inputs are side by side
        ((32, 16, 7, 7), "s8:oiyx s8:os_is_yx_osv16_isv4"),  # more words than registers
        ((32, 16, 3, 3), "s8:oiyx s8:os_is_yx_isv16_osv16"),  # outputs are side by side
        ((4, 48, 6, 14), "f16:b_fs_yx_fsv16 f16:bfyx"),  # vectors divide the run
        ((4, 96, 6, 14), "u8:b_fs_yx_fsv32 u8:bfyx"),
        ((4, 48, 5, 7), "u8:b_fs_yx_fsv16 u8:bfyx"),  # rows are no whole words
        ((16, 16, 6, 14), "f16:bs_fs_yx_bsv16_fsv16 f16:yxfb"),
    ],
)
def test_words_are_not_woven(dims: tuple[int, ...], types: str) -> None:
    assert _plan(dims, types).weave is None


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((3, 8, 1, 3), "s8:oiyx s8:ohwi"),  # lanes go over positions and inputs
        ((48, 16, 1, 3), "f16:oiyx f16:ohwi"),
        ((5, 4, 1, 3), "s8:oiyx s8:ohwi"),  # no lanes at all
        ((3, 2, 3, 1), "f16:oiyx f16:ohwi"),
        ((32, 16, 1, 3), "s8:oiyx s8:os_is_yx_osv16_isv4"),  # runs of 3 are no vectors
    ],
)
def test_words_are_not_woven_where_lanes_are_of_their_run(
    dims: tuple[int, ...], types: str
) -> None:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    body = make_plan(src, dst).body
    assert not isinstance(body, TilePlan) or body.weave is None


def test_memory_that_does_not_begin_at_words_is_moved_by_elements() -> None:
    dims, types = (32, 16, 3, 3), "s8:oiyx s8:os_is_yx_osv16_isv4"
    assert _plan(dims, types, begin=4).weave
    assert _plan(dims, types, begin=2).weave is None
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    assert make_plan(src, dst).alignment == (4, 4)
    assert make_plan(src, dst, Traits(streamed_bytes=0)).alignment == (4, 64)


def test_source_rows_that_are_no_words_are_moved_by_elements() -> None:
    dims = (32, 16, 3, 3)
    src = cf.MemoryDesc(dims, "s8", strides=(16 * 9 + 1, 9, 3, 1))
    dst = cf.MemoryDesc(dims, "s8", "os_is_yx_osv16_isv4")
    body = make_plan(src, dst, family="tile").body
    assert isinstance(body, TilePlan)
    assert body.weave is None
