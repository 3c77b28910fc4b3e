"""Every list of digits has a text, and obeys the laws: random lists, and the engines' own."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.formats import text
from clformats.index.dense import dense_offset
from tests.digits_support import random_desc, random_format
from tests.engine_layouts_support import LAYOUTS, placed_by
from tests.support import brute_force_offsets

CASES = 20_000
"""Random lists in the slow tier; the fast one takes one of `SAMPLE`."""
SAMPLE = 50


def check_text(fmt: cf.Format) -> None:
    """Law 5: every text of a list of digits means it."""
    for said in (str(fmt), text.written(fmt.parsed)):
        again = cf.Format(said)
        assert again == fmt
        assert (again.layout, again.image, again.kind) == (fmt.layout, fmt.image, fmt.kind)
        assert cf.Format(str(again)) == fmt
    own = "zkmnxtuvwpqr"[: fmt.ndims]
    said = text.written(replace(fmt.parsed, letters=own))
    assert cf.Format(said) == fmt
    assert cf.Format(said.removesuffix(f" dims {own}"), dims=own) == fmt


def check_desc(rng: random.Random, desc: cf.MemoryDesc) -> None:
    """Laws 1 to 5 on the host."""
    again = cf.MemoryDesc.parse(str(desc))
    assert again == desc
    assert (again.dims, again.padding, again.offset0) == (desc.dims, desc.padding, desc.offset0)
    offsets = desc.offsets()
    places = max(desc.nbytes, desc.span_nbytes) // desc.dtype.nbytes
    assert np.array_equal(offsets, brute_force_offsets(desc))
    assert np.array_equal(offsets, again.offsets())
    assert np.unique(offsets).size == offsets.size
    assert 0 <= offsets.min() <= offsets.max() < places
    for _ in range(3):
        index = tuple(rng.randrange(n) for n in desc.dims)
        assert desc.coords(desc.offset(*index)) == index
    if desc == cf.MemoryDesc(desc.dims, desc.dtype, desc.format):
        letters = desc.format.letters
        names: dict[str, Any] = dict(zip(letters.upper(), desc.dims, strict=True))
        names |= dict(zip(letters, np.indices(desc.dims, sparse=True), strict=True))
        assert np.array_equal(dense_offset(desc.format).evaluate(names) + 0 * offsets, offsets)
    array = np.arange(1, 1 + desc.nelems, dtype=np.int32).reshape(desc.dims)
    flat = cf.pack(array, desc)
    assert np.array_equal(cf.unpack(flat, desc), array)
    assert np.array_equal(flat[offsets], array)
    assert np.count_nonzero(flat) == desc.nelems


@pytest.mark.sampled(SAMPLE)
@pytest.mark.parametrize("hundred", range(CASES // 100))
def test_random_lists_of_digits_obey_the_laws(hundred: int) -> None:
    rng = random.Random(hundred)  # noqa: S311  # cases, not secrets
    for _ in range(100):
        fmt = random_format(rng)
        check_text(fmt)
        check_desc(rng, random_desc(rng, fmt))


@pytest.mark.sampled(SAMPLE)
@pytest.mark.parametrize("hundred", range(CASES // 100))
def test_permuted_and_repeated_lists_have_a_text(hundred: int) -> None:
    rng = random.Random(hundred)  # noqa: S311  # cases, not secrets
    for _ in range(100):
        first = random_desc(rng, random_format(rng))
        order = rng.sample(range(first.ndims), first.ndims)
        if first.format.image or first.format.structure.tail:
            continue
        moved = first.permute_axes(order)
        assert np.array_equal(moved.offsets(), first.offsets().transpose(np.argsort(order)))
        dims = [rng.choice((1, 4)) if n == 1 else n for n in moved.dims]
        made = [moved]
        with suppress(cf.Unsupported):  # a part of a fused index cannot be repeated
            made.append(moved.broadcast_to(dims))
            assert np.array_equal(made[1].offsets(), np.broadcast_to(moved.offsets(), dims))
        for desc in made:
            again = cf.MemoryDesc.parse(str(desc))
            assert again == desc
            assert np.array_equal(again.offsets(), desc.offsets())


# --- the layouts of engines -----------------------------------------------------------------------


@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: f"{row[1]} {row[3]}")
def test_layouts_of_engines_are_addressed_as_their_digits_say(row: list[str]) -> None:
    _, _, letters, said = row
    fmt = cf.Format(said, dims=letters)
    assert cf.Format(str(fmt)) == fmt
    assert "".join(fmt.dims) == letters
    for sizes in ((5, 6, 3, 7, 2), (17, 9, 4, 2, 3), (1, 3, 5, 2, 4)):
        dims = sizes[: len(letters)]
        desc = cf.MemoryDesc(dims, "f32", fmt)
        assert cf.MemoryDesc.parse(str(desc)) == desc
        if "(io)" in said:
            fused = np.arange(dims[0] * dims[1]).reshape(*dims[:2], 1, 1)
            y, x = np.ogrid[: dims[2], : dims[3]]
            where = ((fused // 4 * dims[2] + y) * dims[3] + x) * 4 + fused % 4
        else:
            axes, where = placed_by(said, letters, dims)
            assert desc.image_shape == (tuple(axes) if "|" in said else None)
        assert np.array_equal(desc.offsets(), where)
        twin = desc.buffer_twin
        assert twin.image_shape is None
        assert np.array_equal(twin.offsets(), where)
        assert twin.nbytes == desc.nbytes


def test_the_table_of_engines_is_whole() -> None:
    assert len(LAYOUTS) == 163
    assert len({tuple(row[:2]) for row in LAYOUTS}) == 128


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("O|I2i|2i8o", "several elements in a component"),
        ("O|I|4i8o", "several elements in a component"),
        ("o/8 i/2 (o + i)%8 i%2", "a rotation of one digit by another"),
        ("a/8 b (a ^ b)%8", "an exclusive or of two indices"),
        ("o i s[h, w]", "an index that a table permutes"),
        ("k/8 n k%8", "dims='kn'"),
        (
            "k/8 n k%4 dims kn",
            "'k/8 k%4': k%4 ends at 4, so k/4 comes next, got k/8; the digits of",
        ),
        ("k/8 n dims kn", "'k/8': k%8 is missing before k/8"),
        ("k%8 n dims kn", "'k%8': k%8 ends at 8, and k/8 is missing"),
        ("k/8 k/32%2 n k%8 dims kn", "k/8 has no end, so nothing is left for k/32%2"),
        ("k/8 n k%8 k%8 dims kn", "k%8 ends at 8, so k/8%8 comes next, got k%8"),
        ("a|b|c|d|e", "three layers, rows, columns and components"),
        ("n c/4 h w c%4 dims", "'dims'"),
        ("~(a b)", "flip single dimensions"),
        ("nh|Cw|4c(1)4c", "'c/16 c%4 c%4': c%4 ends at 4, so c/4%4 comes next, got c%4"),
    ],
)
def test_what_is_no_list_of_digits_is_refused_with_the_reason(said: str, why: str) -> None:
    with pytest.raises(cf.InvalidFormat) as caught:
        cf.Format(said)
    assert why in str(caught.value)
