"""The problems whose kernels are on record: networks' reorders, random ones, and special families.

Names are the keys of the record, so they depend on nothing but the problem itself: a problem or a
format that is added leaves all others with the names that they had.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import numpy as np

import clformats as cf
from clformats.problems.computation import from_attr, over_tensors
from clformats.schedule import Request, Traits
from clformats.schedule.anysize import as_pattern, plan_for_all
from clformats.values.formula import parse
from tests.support import BUFFERS, hurting_dims, pair_of
from tests.workload import AMOUNTS, Pair, reorders

D = cf.MemoryDesc
Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """``group`` tells what kind it is; ``plan`` makes the plan for a device."""

    group: str
    what: str
    plan: Callable[[Traits], cf.Plan]

    @property
    def name(self) -> str:
        """The key in the record."""
        return f"{self.group}: {self.what}"


@cache
def problems() -> tuple[Problem, ...]:
    """All of them, each under a name of its own."""
    kinds = (
        network_problems,
        _random,
        _formats,
        _attributes,
        _maps,
        _special,
        _types,
        _memory,
        _choices,
    )
    return tuple({p.name: p for kind in kinds for p in kind()}.values())


def _move(
    group: str,
    src: D,
    dst: D,
    attr: cf.Attr | None = None,
    note: str = "",
    choices: cf.Choices | None = None,
) -> Problem:
    def plan(traits: Traits) -> cf.Plan:
        computes = attr and from_attr(attr, src, dst)
        return cf.make_plan(
            src, dst, traits, computation=computes or None, choices=choices or cf.Choices()
        )

    return Problem(group, f"{src} -> {dst}{note and f', {note}'}", plan)


def network_problems() -> list[Problem]:
    """The reorders of `tests.workload`."""
    return [_move(network, src, dst) for network, src, dst in reorders()]


# Random pairs ------------------------------------------------------------------------------------

DATA = (
    *("bfyx", "byxf", "yxfb", "fyxb", "b_fs_yx_fsv4", "b_fs_yx_fsv8", "b_fs_yx_fsv16"),
    *("b_fs_yx_fsv32", "fs_b_yx_fsv32", "bs_fs_yx_bsv16_fsv16", "bs_fs_yx_bsv32_fsv32"),
    "bs_fs_yx_bsv8_fsv4",
)
FILTERS = (
    *("oiyx", "yxio", "iyxo", "oyxi", "ioyx", "hwio", "os_iyx_osv16", "os_is_yx_isv16_osv16"),
    *("os_is_yx_osv16_isv16", "os_is_yx_osv16_isv4", "os_is_yx_isa8_osv8_isv4", "OIhw16i16o4i"),
    *("OIhw8i16o2i", "OIhw4i16o4i", "OIhw8i8o", "OIhw16i16o"),
)
DATA_TYPES = ("f32 f32", "f16 f16", "u8 u8", "f32 f16", "f16 f32", "f32 s8", "u8 f32")
FILTER_TYPES = ("f32 f32", "f16 f16", "s8 s8", "f32 bf16", "f32 s8")
CHANNELS = (3, 16, 24, 32, 40, 64, 72, 96, 128, 144, 160, 192, 250, 256, 320, 512, 576, 768, 1024)
ROWS = (7, 13, 14, 17, 27, 28, 35, 55, 56, 64, 112, 128)
OUTPUTS = (64, 96, 144, 256, 384, 512, 768, 1000, 1024, 2048)
INPUTS = (64, 96, 144, 256, 320, 512, 768, 1024)


def _random(count: int = 80) -> Iterator[Problem]:
    """Pairs of formats as networks have them, with sizes as networks have them."""
    rng = random.Random(7)  # noqa: S311  # shapes, not secrets
    for _ in range(count):
        rows = rng.choice(ROWS)
        image = rng.choice(CHANNELS), rows, rng.choice((rows, rows, rows + 1))
        batch = max(1, rng.choice(AMOUNTS) // (image[0] * image[1] * image[2] * 4))
        yield _random_move(rng, "random activations", (batch, *image), DATA, DATA_TYPES)
    for _ in range(count):
        taps = rng.choice((1, 1, 3, 3, 3, 5, 7))
        dims = rng.choice(OUTPUTS), rng.choice(INPUTS), taps, taps
        yield _random_move(rng, "random weights", dims, FILTERS, FILTER_TYPES)


def _random_move(
    rng: random.Random, group: str, dims: Dims, formats: Sequence[str], types: Sequence[str]
) -> Problem:
    names, dtypes = rng.sample(formats, 2), rng.choice(types).split()
    src, dst = (D(dims, dtype, name) for dtype, name in zip(dtypes, names, strict=True))
    return _move(group, src, dst)


ONE_OF = 30
"""One of so many registered formats is on record."""


def _formats() -> Iterator[Problem]:
    """Registered formats, to and from plain ones, with sizes on which mistakes show."""
    for fmt in BUFFERS:
        number = crc32(fmt.name.encode())
        if number % ONE_OF or fmt.kind != "blocked":
            continue
        types = ("f32 f32", "u8 u8", "f16 f32", "f32 s8", "f16 f16")[number % 7 % 5].split()
        dims = hurting_dims(fmt, number % 3)
        plain, other = D(dims, types[0]), D(dims, types[1], fmt)
        yield _move("formats", plain, other)
        yield _move("formats", other, plain)


# What is computed --------------------------------------------------------------------------------

COMPUTED: tuple[tuple[Dims, Pair], ...] = (
    ((8, 64, 56, 56), ("f32:bfyx", "s8:b_fs_yx_fsv32")),
    ((2, 17, 15, 13), ("u8:byxf", "f32:b_fs_yx_fsv16")),
    ((32, 256, 14, 14), ("f32:b_fs_yx_fsv16", "f32:bfyx")),
    ((3, 40, 31, 53), ("s8:b_fs_yx_fsv16", "f16:byxf")),
    ((512, 250, 3, 3), ("f32:oiyx", "s8:os_is_yx_osv16_isv4")),
    ((5, 19, 7, 9), ("f32:bfyx", "f32:bfyx")),
    ((3, 17, 5, 7), ("f64:bfyx", "f32:fyxb")),
    ((4, 33, 17, 16), ("f16:fs_b_yx_fsv32", "bf16:bfyx")),
    ((8, 3, 224, 224), ("u8:byxf", "f32:byxf")),
    ((5, 1, 7, 9), ("f32:bfyx", "f32:bfyx")),
    ((64, 4096), ("u4:ab", "f16:ab")),
    ((64, 4096), ("f32:ab", "u4:ab")),
    ((32, 64), ("s4:ab", "s4:ba")),
)


def _attrs(channels: int) -> dict[str, cf.Attr]:
    each = np.ones(channels), 2
    return {
        "a scale": cf.Attr(src_scale=0.5),
        "scales of channels": cf.Attr(dst_scale=each),
        "zero points": cf.Attr(src_zero_point=3, dst_zero_point=each),
        "a sum": cf.Attr(src_scale=each, beta=0.25),
        "all at execution": cf.Attr(
            src_scale=cf.at_execution(3), dst_scale=cf.at_execution(), beta=cf.at_execution()
        ),
        "an expression": cf.Attr(expression="max(x, 0.f) * 0.5f + 1"),
    }


def _attributes() -> Iterator[Problem]:
    for dims, pair in COMPUTED:
        src, dst = pair_of(*pair, dims)
        for note, attr in _attrs(dims[1]).items():
            yield _move("attributes", src, dst, attr, note)


MAPS = (
    ("max(x, y) * 0.5f", "f32:bfyx f32:bfyx f32:bfyx"),
    ("x + y", "f16:b_fs_yx_fsv16 f16:bfyx f16:b_fs_yx_fsv16"),
    ("x * y + 1", "u8:byxf f32:b_fs_yx_fsv16 s8:b_fs_yx_fsv32"),
    ("x > 0 ? x : y", "f32:b_fs_yx_fsv16 f32:byxf f32:byxf"),
    ("fabs(x - y)", "f64:bfyx f32:yxfb f64:fyxb"),
    ("x + y * old", "f32:bfyx f32:bfyx f32:byxf"),
    ("clamp(x, 0, 6) + y", "bf16:bfyx f16:byxf f32:bs_fs_yx_bsv16_fsv16"),
)


def _maps() -> Iterator[Problem]:
    for text, sides in MAPS:
        for dims in ((2, 19, 7, 9), (16, 64, 56, 56)):
            x, y, z = (D(dims, *side.split(":")) for side in sides.split())
            yield _map(text, {"x": x, "y": y}, z, f"{text}: {x}, {y} -> {z}")
            one = D((1, dims[1], 1, 1), y.dtype, "bfyx")
            repeated = {"x": x, "y": one.broadcast_to(dims)}
            yield _map(text, repeated, z, f"{text}: {x}, {one} -> {z}")


def _map(text: str, inputs: dict[str, D], dst: D, what: str) -> Problem:
    formula = parse(text, (*inputs, "old"))
    src, computation = over_tensors(formula, list(inputs.items()), dst)

    def plan(traits: Traits) -> cf.Plan:
        return cf.make_plan(src, dst, traits, computation=computation)

    return Problem("maps", what, plan)


# Special families --------------------------------------------------------------------------------

SPECIAL: tuple[tuple[str, Dims, Pair], ...] = (
    ("images", (19, 17, 3, 5), ("f32:oiyx", "f32:image_2d_weights_c4_fyx_b")),
    ("images", (19, 17, 3, 5), ("f32:image_2d_weights_c4_fyx_b", "f16:os_is_yx_isv16_osv16")),
    ("images", (19, 17, 3, 5), ("s8:oiyx", "f16:image_2d_weights_c1_b_fyx")),
    ("images", (2, 3, 15, 17), ("u8:image_2d_rgba", "f32:bfyx")),
    ("nibbles", (19, 32, 3, 5), ("s8:oiyx", "s4:os_is_yx_osv16_isv4")),
    ("nibbles", (64, 4096), ("u4:ab", "f16:ab")),
    ("nibbles", (64, 4096), ("f32:ab", "u4:ab")),
    ("nibbles", (64, 4096), ("u4:ab", "f16:BA16b16a")),
    ("nibbles", (64, 4096), ("s4:ab", "f32:ba")),
    ("nibbles", (64, 4096), ("f16:ab", "u4:ba")),
    ("nibbles", (64, 4096), ("u4:ab", "u4:ba")),
    ("nibbles", (64, 4096), ("u4:ab", "u4:ab")),
    ("nibbles", (2111, 6), ("s8:ab", "s4:ba")),
    ("blocks to images", (2, 80, 31, 53), ("u8:b_fs_yx_fsv32", "u8:byxf")),
    ("blocks to images", (3, 40, 31, 53), ("f32:b_fs_yx_fsv16", "s8:byxf")),
    ("blocks to images", (3, 24, 31, 53), ("u8:b_fs_yx_fsv32", "f32:byxf")),
    ("blocks to images", (128, 40, 56, 56), ("f32:fs_b_yx_fsv32", "f32:byxf")),
    ("blocks to images", (64, 40, 5, 31, 53), ("f16:b_fs_zyx_fsv16", "f16:bzyxf")),
    ("blocks to images", (64, 100, 55, 57), ("f32:b_fs_yx_fsv4", "f32:byxf")),
    ("blocks to images", (64, 400, 31, 53), ("f16:b_fs_yx_fsv16", "f16:byxf")),
    ("few channels", (8, 3, 224, 224), ("u8:byxf", "f16:b_fs_yx_fsv16")),
    ("few channels", (8, 3, 224, 224), ("u8:byxf", "u8:b_fs_yx_fsv4")),
    ("few channels", (8, 9, 113, 57), ("f32:byxf", "f16:b_fs_yx_fsv16")),
    ("few channels", (16, 5, 57, 33), ("f32:byxf", "f16:bs_fs_yx_bsv16_fsv16")),
    ("few channels", (8, 17, 224, 224), ("f32:b_fs_yx_fsv8", "f16:b_fs_yx_fsv32")),
    ("orders", (19, 17, 3, 5), ("f32:oiyx", "f32:os_iyx_osv16_rotate_180")),
    ("orders", (19, 17, 3, 5), ("f32:os_iyx_osv16_rotate_180", "f16:oiyx")),
    ("orders", (19, 3, 5, 7), ("f32:oiyx", "f32:iy_xs_os_xsv2_osv8__ao32")),
    ("orders", (19, 3, 5, 7), ("f32:iy_xs_os_xsv2_osv8__ao32", "f32:oiyx")),
    ("wide", (1 << 16, 1 << 16), ("s8:ab", "s8:ba")),
    ("wide", (1 << 16, 1 << 16), ("s8:ab", "s8:ab")),
    ("wide", (1 << 10, 1 << 12, 33, 31), ("f16:bfyx", "f16:b_fs_yx_fsv16")),
    ("padding", (4, 17, 31, 29), ("f32:bfyx:pad=0+0x0+0x1+1x2+2", "f32:b_fs_yx_fsv16")),
    ("padding", (4, 17, 31, 29), ("f32:b_fs_yx_fsv16", "f32:bfyx:pad=0+0x0+0x1+1x2+2")),
    ("padding", (64, 40, 31, 53), ("u8:bfyx", "u8:b_fs_yx_fsv16:pad=0+0x16+0x1+0x0+3")),
    ("padding", (64, 40, 31, 53), ("u8:b_fs_yx_fsv16", "u8:byxf:pad=0+0x3+2x0+0x0+0")),
    ("strides", (33, 41, 29), ("f32:abc", "f32:abc:strides=1250x30x1")),
    ("strides", (33, 41, 29), ("f32:abc:strides=1x1000x34:offset=7", "f16:abc")),
    ("strides", (33, 41, 29), ("u8:abc:strides=0x29x1", "u8:cba")),
    ("copies", (1000, 1001), ("f32:ab", "f32:ab")),
    ("copies", (33, 41, 29), ("f16:abc", "f16:abc:strides=1250x30x1")),
    ("copies", (64, 64, 56, 56), ("u8:bfyx", "f32:bfyx")),
)
WINOGRAD = (
    *("winograd_2x3_s1_weights", "winograd_2x3_s1_fused_weights", "winograd_6x3_s1_fused_weights"),
    *("wino_wei_aaOIoi_16o4i", "wino_wei_aaOio_16i16o", "wino_wei_aaOBiOo_16i4O16o"),
    *("wino_wei_OBaaIBOIio_4O2I16i16o", "image_2d_weights_winograd_6x3_s1_fbxyb"),
)

EXTRAS = (
    cf.Extra(1, s8s8=True),
    cf.Extra(1, asymmetric=True),
    cf.Extra(1, s8s8=True, asymmetric=True),
    cf.Extra(1, s8s8=True, scale_adjust=0.5),
)


def _special() -> Iterator[Problem]:
    for group, dims, pair in SPECIAL:
        yield _move(group, *pair_of(*pair, dims))
    plain, blocked = D((19, 17, 3, 3), "f32"), D((35, 33, 3, 3), "f32", "os_is_yx_isv16_osv16")
    for name in WINOGRAD:
        dtype = "s8" if "aaOIoi" in name else "f32"
        yield _move("winograd", plain, cf.winograd(plain, name, dtype))
        yield _move("winograd", blocked, cf.winograd(blocked, name, dtype))
    made = cf.winograd(plain, "winograd_2x3_s1_weights")
    yield _move("winograd", made, plain)
    data = D((2, 19, 6, 9), "f32", "byxf", padding=((0, 0), (0, 0), (1, 1), (1, 1)))
    yield _move("winograd", data, cf.winograd(data, "winograd_2x3_s1_data"))
    for dst_format in ("oihw", "OIhw4i16o4i", "hwio"):
        for extra in EXTRAS:
            src, dst = D((35, 17, 3, 3), "f32"), D((35, 17, 3, 3), "s8", dst_format, extra=extra)
            yield _move("sums", src, dst)
            yield _move("sums", src, dst, cf.Attr(src_scale=(np.ones(35), 1)), "scales")


def _types() -> Iterator[Problem]:
    """Every element type of whole bytes to and from f32 and bytes, along rows and across."""
    for dtype in ("f32", "f16", "bf16", "f64", "s32", "s8", "u8", "f8_e4m3", "f8_e5m2"):
        for other in ("f32", "s8", "f16"):
            yield _move("types", *pair_of(f"{dtype}:bfyx", f"{other}:byxf", (2, 35, 17, 19)))
            yield _move("types", *pair_of(f"{other}:bfyx", f"{dtype}:bfyx", (2, 35, 17, 19)))


# How a problem is asked --------------------------------------------------------------------------

ASKED: tuple[tuple[Dims, Pair], ...] = (
    ((64, 64, 56, 56), ("f32:bfyx", "f32:b_fs_yx_fsv16")),
    ((16, 250, 55, 57), ("u8:b_fs_yx_fsv16", "u8:bfyx")),
    ((64, 40, 31, 53), ("f32:b_fs_yx_fsv16", "f16:byxf")),
    ((5, 17, 3, 3), ("f16:oiyx", "f16:os_is_yx_isv16_osv16")),
    ((1000, 1001), ("f32:ab", "f32:ba")),
    ((1000, 1001), ("f16:ab", "f16:ab")),
)


def _memory() -> Iterator[Problem]:
    """Memory that begins anywhere, and sizes that are known at execution only."""
    for dims, pair in ASKED:
        src, dst = pair_of(*pair, dims)
        for begins in (1, 4):
            yield Problem(
                "any address",
                f"{src} -> {dst}, from {begins} bytes on",
                _beginning(src, dst, begins),
            )
        yield Problem("any size", f"{src} -> {dst}", _any_size(src, dst))


def _beginning(src: D, dst: D, begins: int) -> Callable[[Traits], cf.Plan]:
    return lambda traits: cf.make_plan(src, dst, replace(traits, begin_bytes=begins))


def _any_size(src: D, dst: D) -> Callable[[Traits], cf.Plan]:
    unknown = (cf.RUNTIME_DIM,) * src.ndims
    a, b = (as_pattern(d, D(unknown, d.dtype, d.format)) for d in (src, dst))
    return lambda traits: plan_for_all(Request(a, b, traits))


CHOSEN = (
    *({"baked": True}, {"local_size": 8}),
    *({"family": "generic"}, {"family": "scheduled"}),
    {"schedule": "tile of 1 | a* b c | ahead 0 | ordinary"},
    {"schedule": "tile b16 of 16 | a* c b | ahead 3 | ordinary"},
    {"schedule": "tile b16 of 16 | a* c b | ahead 3 | ordinary", "baked": True},
)


def _choices() -> Iterator[Problem]:
    """What the tuner may choose."""
    for dims, pair in ASKED:
        src, dst = pair_of(*pair, dims)
        for chosen in CHOSEN:
            choices = cf.Choices.of(chosen)
            yield _move("choices", src, dst, note=str(choices), choices=choices)
