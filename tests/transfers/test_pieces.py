"""Cutting a reorder into pieces: every place of both tensors belongs to exactly one piece."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.transfers.pieces import Cuts, TensorPiece, cuts_of, dense, pieces, region
from tests.device_support import owned
from tests.support import BUFFERS, hurting_dims, random_pair

D = cf.MemoryDesc
NO_TAG = [f for f in BUFFERS if not f.structure.is_tag and f.role != "generic"]
SOME = random.Random(3).sample(BUFFERS, 25)  # noqa: S311


def places(desc: cf.MemoryDesc) -> Any:
    """The offsets of all elements and all padding of a descriptor, in order."""
    whole = owned(desc)
    if isinstance(whole, slice):
        return np.arange(cf.host.packing.flat_size(desc))[whole]
    return np.unique(whole)


def check_pieces(src: cf.MemoryDesc, dst: cf.MemoryDesc, todo: list[TensorPiece]) -> None:
    """The logical elements of each piece lie where the whole has them; no place is told twice."""
    for k, side in enumerate((src, dst)):
        parts = [(p.src, p.dst)[k] for p in todo]
        for piece, part in zip(todo, parts, strict=True):
            ends = [a + n for a, n in zip(piece.start, part.dims, strict=True)]
            there = tuple(slice(a, e) for a, e in zip(piece.start, ends, strict=True))
            assert (part.offsets() == side.offsets()[there]).all()
            assert dense(part).span_nbytes <= dense(part).nbytes
        if not any(p.stride == 0 and p.size > 1 for p in side.placed):
            together = np.concatenate([places(part) for part in parts])
            assert (np.sort(together) == places(side)).all(), f"{side} in {len(todo)} pieces"


def cut_finely(src: cf.MemoryDesc, dst: cf.MemoryDesc, share: int) -> list[TensorPiece]:
    """Pieces of a ``share`` of the whole; or the whole, where the formats do not allow it."""
    whole = src.nbytes + dst.nbytes
    return pieces(src, dst, max(1, whole // share), or_up_to=whole)


@pytest.mark.parametrize("seed", range(40))
def test_pieces_hold_every_place_once(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # shapes, not secrets
    ranks = {n: [f for f in BUFFERS if f.ndims == n] for n in range(2, 7)}
    src = dst = D((1 << 20,), "f32")
    while src.nbytes + dst.nbytes > 500_000:  # blocks may make a small tensor large
        dims, a, b = random_pair(rng, ranks)
        src, dst = D(dims, "f32", a), D(dims, "s8", b)
    for share in (2, 7, 30):
        check_pieces(src, dst, cut_finely(src, dst, share))


@pytest.mark.parametrize("fmt", NO_TAG + SOME, ids=str)
def test_every_format_is_cut_or_says_why(fmt: cf.Format) -> None:
    dims = hurting_dims(fmt)
    src, dst = D(dims, "f32"), D(dims, "f32", fmt)
    todo = cut_finely(src, dst, 5)
    check_pieces(src, dst, todo)
    if len(todo) == 1 and max(dims) > 1:
        with pytest.raises(cf.Unsupported) as caught:
            pieces(src, dst, 1)
        assert caught.value.code == "PIECE_SIZE"
        assert fmt.dims[0] in str(caught.value)


@pytest.mark.parametrize("most", [1 << 20, 30_000, 9_000, 1_500])
def test_no_piece_is_larger_than_asked(most: int) -> None:
    src, dst = D((5, 67, 9, 11), "f32", "byxf"), D((5, 67, 9, 11), "f16", "b_fs_yx_fsv16")
    todo = pieces(src, dst, most)
    assert max(piece.nbytes for piece in todo) <= most
    # Parts of even width: at most twice as many as if each piece were full.
    whole = src.nbytes + dst.nbytes
    assert len(todo) <= 1 or len(todo) <= 3 * whole / most
    check_pieces(src, dst, todo)


def test_the_outermost_dimensions_are_cut_first() -> None:
    src, dst = D((4, 32, 6, 7), "f32", "bfyx"), D((4, 32, 6, 7), "f32", "b_fs_yx_fsv16")
    cut = [p.start for p in pieces(src, dst, (src.nbytes + dst.nbytes) // 4)]
    assert cut == [(0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 0)]
    inner = [p.start for p in pieces(src, dst, (src.nbytes + dst.nbytes) // 8)]
    assert inner == [(b, f, 0, 0) for b in range(4) for f in (0, 16)]


@pytest.mark.parametrize("lower", [0, 1, 2, 3])
@pytest.mark.parametrize("block", [1, 4])
def test_padding_goes_with_the_ends(lower: int, block: int) -> None:
    dims, pads = (3, 13, 5), ((0, 0), (lower, 2), (1, 0))
    src = D(dims, "f32", "abc", padding=pads)
    dst = D(dims, "f32", "aBc4b" if block == 4 else "acb", padding=pads)
    for share in (5, 10, 15):
        todo = cut_finely(src, dst, share)
        assert len(todo) >= (3 if block == 4 else share)
        check_pieces(src, dst, todo)
        other = D(dims, "f32", "abc")
        check_pieces(other, dst, cut_finely(other, dst, share))


def test_blocks_that_never_meet() -> None:
    """Blocks of 4 that begin 1 and 2 places apart have no common end; other dimensions are cut."""
    src = D((3, 13), "f32", "aB4b", padding=((0, 0), (1, 0)))
    dst = D((3, 13), "f32", "aB4b", padding=((0, 0), (2, 0)))
    assert "no two blocks of 4 and 4" in str(cuts_of(src, dst, 1))
    assert len(pieces(src, dst, 200)) == 3
    with pytest.raises(cf.Unsupported, match=r"b: no two blocks .* \[PIECE_SIZE\]"):
        pieces(src, dst, 100)


def test_pieces_of_regions_and_strides() -> None:
    whole = D((6, 40, 5), "f32", "aBc16b")
    for src in (whole.submemory((4, 24, 3), (1, 16, 2)), D((4, 24, 3), "f32", strides=(200, 7, 2)),
                D((4, 24, 3), "f32", strides=(72, 0, 1))):  # fmt: skip
        dst = whole.submemory((4, 24, 3), (2, 16, 1))
        for share in (2, 5, 20):
            check_pieces(src, dst, cut_finely(src, dst, share))


@pytest.mark.parametrize(
    ("name", "dtype", "why"),
    [
        ("os_iyx_osv16_rotate_180", "f32", "from the far end"),
        ("os_i_yxs_osv4_yxsv4", "f32", "together with another one"),
        ("iy_xs_os_xsv2_osv8__ao32", "f32", "in two orders"),
        ("image_2d_weights_c4_fyx_b", "f32", "is an image"),
        ("oiyx", "s4", "share bytes"),
    ],
)
def test_what_cannot_be_cut_says_why(name: str, dtype: str, why: str) -> None:
    desc = D((40, 6, 2, 7), dtype, name)
    assert any(why in str(cuts_of(desc, desc, d)) for d in range(4))
    with pytest.raises(cf.Unsupported, match=rf"{why}.*\[PIECE_SIZE\]"):
        pieces(desc, desc, 1)


def test_cuts_are_computed_not_listed() -> None:
    cuts = Cuts(10**12 + 3, 5, 16, width=7)
    assert cuts[0] == (0, 101)
    assert cuts.ends()[-1][1] == 10**12 + 3
    assert len(cuts) == -(-(10**12 + 3 - 101) // (7 * 16)) + 1
    spans = list(replace(cuts, size=1000))
    assert [a for a, _ in spans[1:]] == [b for _, b in spans[:-1]]
    assert {b - a for a, b in spans[1:-1]} == {7 * 16}
    big = D((10**9, 3), "f32")
    assert sum(1 for _ in pieces(big, big, 1 << 30)) == 23


def test_the_whole_is_itself() -> None:
    desc = D((2, 17, 3), "f32", "aBc16b")
    assert region(desc, [(0, 2), (0, 17), (0, 3)]) is desc
    assert pieces(desc, desc, 1 << 20)[0].src is desc
