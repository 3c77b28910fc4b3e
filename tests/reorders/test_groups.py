"""Values for groups of neighbours, on devices: equal to numpy's, to the byte, in every format."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.problems.computation import for_groups
from clformats.values.groups import Grouped, counts
from tests.device_support import check_reorder, memory_of

D = cf.MemoryDesc
FORMATS = ("ab", "ba", "aB16b", "BA16b16a", "AB8b4a", "Ba4b", "BA16a64b")
TYPES = ("f32", "f16", "bf16", "s8", "u8", "s4", "u4", "s32", "f8_e4m3")
QUANTITIES = ("src_scale", "src_zero_point", "dst_scale", "dst_zero_point")
LENGTHS = (1, 2, 7, 16, 17, 32, 33, 64, 100, 128)


def some_group(draw: random.Random, ndims: int) -> tuple[int | None, ...]:
    """Mostly along one dimension, as weights have it; short last groups, and any length."""
    long = draw.randrange(ndims)
    return tuple(
        draw.choice((16, 32, 32, 64, 128)) if d == long else draw.choice((1, 1, 1, None, 2, 5, 32))
        for d in range(ndims)
    )


def some_case(structure: int, number: int) -> tuple[D, D, cf.Attr, dict[str, Any]]:
    """A reorder with one to four grouped quantities, some of them given at execution.

    Cases of a structure share formats, types and groups, and so most of their programs.
    """
    draw = random.Random(structure)  # noqa: S311  # shapes, not secrets
    ndims = 2 if draw.random() < 0.7 else 3
    formats = FORMATS if ndims == 2 else ("abc", "acb", "aBc16b", "cBa8b", "aCB16b32c")
    sides = [(draw.choice(TYPES), draw.choice(formats)) for _ in range(2)]
    names = draw.sample(QUANTITIES, draw.choice((1, 1, 2, 2, 4)))
    groups = {name: some_group(draw, ndims) for name in names}
    late = {name for name in names if draw.random() < 0.3}
    draw = random.Random(f"{structure} {number}")  # noqa: S311
    rng = np.random.default_rng([structure, number])
    dims = (*[draw.choice((1, 2, 3)) for _ in range(ndims - 2)], *draw.choices(LENGTHS, k=2))
    terms: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for name, group in groups.items():
        shape = counts(dims, group)
        values = rng.uniform(0.25, 4, shape) if "scale" in name else rng.integers(-3, 9, shape)
        terms[name] = Grouped(values, group)
        if name in late:
            terms[name], given[name] = cf.at_execution(group=group), values.astype(np.float64)
    src, dst = (D(dims, dtype, format) for dtype, format in sides)
    return src, dst, cf.Attr(**terms), given


def check_case(structure: int, number: int, stream: cf.Stream) -> None:
    src, dst, attr, given = some_case(structure, number)
    check_reorder(src, dst, stream, seed=number, attr=attr, **given)


@pytest.mark.device
@pytest.mark.parametrize("structure", range(5))
def test_random_groups(structure: int, stream: cf.Stream) -> None:
    for number in range(6):
        check_case(structure, number, stream)


@pytest.mark.device
@pytest.mark.parametrize(
    ("dims", "group", "formats"),
    [
        ((16, 96), (1, 32), ("ab", "ab", "ba", "BA16b16a")),
        ((17, 100), (1, 32), ("ab", "BA16b16a", "ab", "ba")),
        ((66, 128), (1, 64), ("ba", "ab", "aB16b", "ab")),
        ((6, 60), (1, 30), ("ab", "ab", "ab", "ba")),
    ],
)
def test_operands_of_maps(
    dims: tuple[int, ...], group: tuple[int, ...], formats: tuple[str, ...], stream: cf.Stream
) -> None:
    """Weights of 4 bits with scales and zero points, all of them in any layout."""
    rng, few = np.random.default_rng(7), counts(dims, group)
    arrays: dict[str, Any] = {
        "q": rng.integers(0, 16, dims),
        "d": rng.uniform(0.5, 2, few).astype(np.float16),
        "p": rng.integers(0, 16, few),
    }
    types = {"q": "u4", "d": "f16", "p": "u4"}
    descs = {n: D(arrays[n].shape, types[n], f) for n, f in zip("qdp", formats[:3], strict=True)}
    out = D(dims, "f32", formats[3])
    given: dict[str, Any] = dict(descs)
    if group == (1, 30):  # 32 would make as many groups
        given |= {n: Grouped(descs[n], group) for n in "dp"}
    mapped = cf.Map("z = (q - p) * d", stream.engine, z=out, **given)
    memories = {
        n: memory_of(cf.pack(arrays[n], desc), desc, stream.engine) for n, desc in descs.items()
    }
    target = cf.Memory(out, stream.engine)
    mapped(stream, z=target, **memories).wait()
    at = np.arange(dims[1]) // group[1]
    want = (arrays["q"] - arrays["p"][:, at]).astype(np.float32) * arrays["d"].astype(np.float32)[
        :, at
    ]
    np.testing.assert_array_equal(cf.to_numpy(target), want)


def test_a_descriptor_of_groups_prints_and_parses() -> None:
    """Law 5 of operands, which plans print."""
    for fmt in ("ab", "ba", "BA16b16a"):
        desc = for_groups(D((17, 4), "f16", fmt), (17, 100), (1, 32))
        assert D.parse(str(desc)) == desc


@pytest.mark.device
def test_a_transfer_in_pieces_cuts_groups() -> None:
    x = np.arange(200, dtype=np.float32).reshape(5, 40)
    attr = cf.Attr(
        src_scale=Grouped(np.arange(1, 11), (1, 32)), dst_zero_point=Grouped([1, 2], (3, None))
    )
    for fmt, nbytes in (("ab", 200), ("ba", 100), ("ba", 64), ("aB8b", 96)):
        target = cf.HostMemory(D(x.shape, "f32", fmt))
        cf.transfer(x, target, attr=attr, piece_nbytes=nbytes)
        assert (target.numpy() == attr.apply(x, "f32", "f32")).all()
