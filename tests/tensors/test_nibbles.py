"""Elements of four bits: which destinations a kernel can write, and what will be done with them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import clformats as cf
from clformats.tensors.nibbles import refusal
from tests.device_support import moved, owned
from tests.support import BUFFERS, hurting_dims

D = cf.MemoryDesc


def owns_whole_bytes(desc: D) -> bool:
    """By looking at every element and at the other half of its byte."""
    written = np.zeros(cf.host.packing.flat_size(desc) + 1, bool)
    written[:-1][owned(desc)] = True
    return bool(written[np.flatnonzero(written) ^ 1].all())


def check(desc: D) -> bool:
    """The rule and the definition agree; returns whether the destination is refused."""
    why = refusal(desc)
    assert (not why) == owns_whole_bytes(desc), f"{desc}: {why or 'not refused'}"
    return bool(why)


def test_a_destination_is_refused_where_it_shares_a_byte_and_nowhere_else() -> None:
    refused = []
    for fmt in BUFFERS:
        dims = hurting_dims(fmt, 1)
        refused += [check(D(sizes, "s4", fmt)) for sizes in (dims, [n | 1 for n in dims])]
    assert 0 < sum(refused) < len(refused)


def test_strides_padding_offsets_and_regions() -> None:
    rng = random.Random(3)  # noqa: S311  # shapes, not secrets
    seen = []
    for _ in range(3000):
        dims = tuple(rng.choice([1, 2, 3, 4, 5, 6, 16, 17]) for _ in range(3))
        kind = rng.choice(["strides", "padding", "region", "offset"])
        if kind == "strides":
            strides, step = [0, 0, 0], rng.choice([1, 1, 2])
            for d in rng.sample(range(3), 3):
                strides[d] = step
                step = step * dims[d] + rng.choice([0, 0, 1, 2])
            desc = D(dims, "u4", strides=strides)
        else:
            pads = [(rng.randrange(3), rng.randrange(3)) for _ in dims] * (kind == "padding")
            # A part of an odd block is refused even where its bytes happen to be its own.
            odd = ["ABc2a3b", "BAc2b3a", "Abc3a"] * (kind != "region")
            name = rng.choice(["abc", "bca", "aBc4b", "aBc8b", "ABc4b2a", *odd])
            desc = D(dims, "u4", name, padding=pads or None)
            if kind == "region":
                sizes, starts = [], []
                for d in range(3):
                    at, legal = rng.choice(list(desc.legal_crops(d).items()))
                    starts.append(at)
                    sizes.append(rng.choice(legal))
                desc = desc.submemory(sizes, starts)
            elif kind == "offset":
                desc = moved(desc, rng.randrange(1, 4))
        if desc.nelems:
            seen.append(check(desc))
    assert 300 < sum(seen) < len(seen) - 300


def test_the_plan_says_why_a_destination_goes_bit_by_bit() -> None:
    for dst, why in (
        (D((3, 5), "s4"), "15 of its elements lie side by side"),
        (D((4, 2), "u4", strides=(3, 1)), "a stride of 3"),
        (moved(D((4, 2), "u4"), 1), "at offset 1, within a byte"),
        (moved(D((8, 4), "u6"), 2), "at offset 2, within a byte"),
    ):
        plan = cf.make_plan(D(dst.dims, "s8"), dst)
        assert plan.family == "generic"
        assert f"not scheduled {why}" in str(
            plan
        ) or f"not scheduled its first element is {why}" in str(plan)
    image = D((17, 3, 3, 3), "f16", "image_2d_weights_c1_b_fyx")
    with pytest.raises(cf.Unsupported, match="from an image") as error:
        cf.make_plan(image, D((17, 3, 3, 3), "s4", "iyxo"))
    assert error.value.code == "IMAGE"


def family(src: D, dst: D) -> str:
    return cf.make_plan(src, dst).family


def test_rows_that_share_bytes_with_the_next_go_element_by_element() -> None:
    """Whatever the source is; the plan says why."""
    dims = (64, 33)
    assert family(D(dims, "s4"), D(dims, "s4")) == "scheduled"
    for src in (D(dims, "s4"), D(dims, "s4", "ba"), moved(D(dims, "s4"), 1), D(dims, "u4")):
        assert family(src, D(dims, "f16")) == "scheduled"
    assert family(D(dims, "f32"), D(dims, "u4")) == "scheduled"
    assert family(moved(D(dims, "s4"), 1), D(dims, "s4")) == "scheduled"
    even = (4, 32, 6)
    assert family(D(even, "s4", "aBc16b"), D(even, "s4", "acb")) == "scheduled"
    plan = cf.make_plan(D((2111, 6), "s8"), D((2111, 6), "s4", "ba"))
    assert plan.family == "generic"
    assert "elements of rows that no tile covers together" in str(plan)
