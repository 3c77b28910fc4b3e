"""Random reorders of the whole grammar: formats, sizes, types, offsets, regions, attributes, plans.

A *structure* is everything but the sizes: its cases share few programs, so that thousands of cases
take minutes. Structure number k of a seed is the same wherever it is drawn.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

import clformats as cf
from clformats.tensors.rows import ROWS
from tests.device_support import moved
from tests.schedules_support import some_schedule

D = cf.MemoryDesc
MOST_ELEMENTS, MOST_BYTES = 12_000, 1 << 18
"""Of a tensor, and of its memory with all padding."""
LARGE_ELEMENTS, LARGE_BYTES = 150_000, 3 << 20
"""The same of images, which have rows and lines enough for all that is done with these."""
GIVEN = tuple(os.environ.get("CLFORMATS_FUZZ_TYPES", "").split())
"""Such as "u8 s8 f8_e4m3": the types of whole bytes, where they are not those below."""
TYPES = GIVEN or ("f32", "f32", "f16", "u8", *(row.name for row in ROWS if not row.is_packed))
NIBBLES = ("s4", "u4", *(row.name for row in ROWS if row.is_packed))
"""Every row of the table of types; what stands here more than once is drawn as often."""
NARROW = float(os.environ.get("CLFORMATS_FUZZ_NARROW", "0.06"))
"""The share of structures with elements that share bytes."""
NETWORKS = float(os.environ.get("CLFORMATS_FUZZ_NETWORKS", "0.2"))
"""The share of structures with formats and sizes of networks."""
BLOCKS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 16, 17, 18, 20, 24, 28, 31, 32, 32, 33, 36,
          40, 44, 48, 56, 64, 72, 96, 100)  # fmt: skip
DIMS = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 19, 23, 31, 32, 33, 47, 48, 49, 63, 64, 65,
        97, 100, 127, 129, 191, 255, 257, 300)  # fmt: skip
IMAGES = ("bfyx", "bfyx", "byxf", "byxf", "fyxb", "yxfb", "b_fs_yx_fsv4", "b_fs_yx_fsv8",
          "b_fs_yx_fsv16", "b_fs_yx_fsv32", "bs_fs_yx_bsv16_fsv16", "fs_b_yx_fsv32", "aBcd24b",
          "oiyx", "os_is_yx_isv16_osv16", "os_is_yx_osv16_isv4", "hwio", "ioyx")  # fmt: skip
CHANNELS = (3, 3, 5, 16, 17, 24, 32, 33, 40, 64, 67, 72, 80, 100, 128, 250, 255, 300)
SIDES = (1, 3, 3, 5, 7, 7, 9, 13, 14, 17, 19, 23, 28, 31, 36, 37, 56, 61, 83, 131)
EXPRESSIONS = ("max(x, 0.f) * 0.5f + 1", "x > 3 ? x : 7 - x", "clamp(fabs(x), 2, 90)")
PLANS = ("rules", "rules", "large", "large", "gpu", "gpu-large-groups")
"""What the engine takes itself for: as it is; one whose stores pass by the cache; GPUs."""
FAMILIES = ("scheduled", "rows", "local", "generic")
PLACES = ("first", "last", "aligned")
"""Of memory: right behind the page before it, right before the one behind it, and there with a
beginning at a cache line, for which the elements lie further on in it."""
Maker = Callable[[tuple[int, ...]], D]


@dataclass(frozen=True)
class Case:
    """A reorder, what is asked of its plan, and how its memories lie."""

    src: D
    dst: D
    plan: str
    places: tuple[str, str]
    seed: int
    attr: cf.Attr = field(default_factory=cf.Attr)
    late: tuple[str, ...] = ()
    family: str | None = None
    choices: cf.Choices | None = None
    other: D | None = None
    """The second tensor of a map; `attr` and ``family`` have no meaning then."""
    pieces: int = 0
    """A transfer between memories of the host's, in so many pieces where the formats allow it."""

    def __str__(self) -> str:
        more = [f"{n}={term}" for n, term in self.attr.terms.items()]
        more += [f"late {n}" for n in self.late]
        more += [f"expression {self.attr.expression}"] if self.attr.expression else []
        more += [f"family {self.family}"] if self.family else []
        more += [f"chosen {self.choices}"] if self.choices else []
        more += [f"map with {self.other}"] if self.other else []
        more += [f"transfer in {self.pieces}"] if self.pieces else []
        where = f"{self.plan}, {'/'.join(self.places)}"
        return f"{self.src} -> {self.dst} [{'; '.join([where, *more])}]"


def cases(seed: int, structure: int, most: int) -> Iterator[Case]:
    """So many cases of a structure, or fewer, where its descriptors cannot be had so often."""
    rng = random.Random(f"{seed} {structure}")  # noqa: S311  # formats, not secrets
    if rng.random() < 0.05:
        yield from _computing(rng, most)
        return
    is_image = rng.random() < NETWORKS
    ndims = 4 if is_image else rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 4, 5))
    types = _types(rng)
    names = [*rng.sample(IMAGES, 2), "abcd"] if is_image else _tags(rng, ndims)
    if not is_image and rng.random() < 0.5:
        names = [*names[:2], names[0]]  # what a map reads alike is computed before it is moved
    tags = zip(names, (*types, "f32"), (True, False, True), strict=True)
    makers = [_maker(rng, name, ndims, t, reads=reads) for name, t, reads in tags]
    wishes = _wishes(rng, packed=any(t in NIBBLES for t in types))
    plan = rng.choice(PLANS + ("large",) * 9 * is_image)
    terms, largest = wishes.pop("terms"), LARGE_BYTES if is_image else MOST_BYTES
    is_map, scheduled = wishes.pop("is_map"), wishes.pop("scheduled")
    for _ in range(most):
        dims = _image(rng) if is_image else _dims(rng, ndims)
        try:
            src, dst, other = (make(dims) for make in makers)
        except cf.Error:
            continue  # padding or a region that the format does not take
        if max(map(nbytes_of, (src, dst, other))) > largest or dst.sums:
            continue
        places = rng.choice(PLACES), rng.choice(PLACES)
        src, dst = (_beginning(d, place) for d, place in zip((src, dst), places, strict=True))
        value_seed = rng.getrandbits(31)
        attr, late = _attr(dims, terms, value_seed)
        if scheduled and wishes.get("choices") is None:
            # The sizes behind the first ones have it as far as it fits: few programs.
            try:
                wishes["choices"] = some_schedule(rng, src, dst)
            except cf.Unsupported:
                continue  # the first byte is half another's
        yield Case(
            src, dst, plan, places, value_seed, attr, late, **wishes,
            other=other if is_map else None,
        )  # fmt: skip


SUMMED = ("OIhw4i16o4i", "hwio", "oihw", "OIhw2i8o4i", "Ohwi16o", "OIhw18o3i")
EXTRAS: tuple[dict[str, Any], ...] = (
    {"s8s8": True}, {"asymmetric": True}, {"s8s8": True, "scale_adjust": 0.5},
)  # fmt: skip
ODD = (18, 20, 24, 28, 36, 40, 44)


def odd_blocks(types: tuple[str, ...]) -> Iterator[Case]:
    """Rows whose blocks no vector divides, in tensors of one and two dimensions.

    With five types, 1400 cases.
    """
    sizes = [*range(1, 300, 30), 33, 100, 18, 19, 39, 40, 41, 88, 255, 257]
    for block, dtype in product(ODD, types):
        for n in sizes:
            places, seed = (PLACES[n % 3], PLACES[(n + block) % 3]), n * block
            pairs = [
                (D((n,), "f32", "a"), D((n,), dtype, f"A{block}a")),
                (D((3, n), "f32", "ab"), moved(D((3, n), dtype, f"aB{block}b"), n % 2 * 8)),
            ]
            for first, second in pairs:
                src, dst = _beginning(first, places[0]), _beginning(second, places[1])
                yield Case(src, dst, "rules" if n % 2 else "large", places, seed)


def _computing(rng: random.Random, most: int) -> Iterator[Case]:
    """Weights that sums follow, and Winograd's, whose values are transformed."""
    dtype, name = rng.choice(("f32", "s8")), rng.choice(("oihw", "hwio", "Oihw18o"))
    tag, plan = rng.choice(SUMMED), rng.choice(("rules", "large", "gpu"))
    extra = cf.Extra(1, **rng.choice(EXTRAS))
    winograd = rng.choice((None, "winograd_2x3_s1_weights", "winograd_6x3_s1_fused_weights"))
    for _ in range(most):
        window = (3, 3) if winograd else (rng.choice((1, 2, 3, 5)), rng.choice((1, 3)))
        dims = (rng.randint(1, 60), rng.randint(1, 60), *window)
        src = D(dims, dtype, name)
        dst = cf.winograd(src, winograd, "f32") if winograd else D(dims, "s8", tag, extra=extra)
        places = rng.choice(PLACES[:2]), rng.choice(PLACES[:2])
        yield Case(src, dst, plan, places, rng.getrandbits(31))


def _types(rng: random.Random) -> tuple[str, str]:
    if rng.random() < NARROW:
        same = rng.choice(NIBBLES)
        other = rng.choice((*NIBBLES, "s8", *TYPES))
        return rng.choice(((same, same), (same, other), (other, same)))
    first = rng.choice(TYPES)
    return first, first if rng.random() < 0.3 else rng.choice(TYPES)


def _wishes(rng: random.Random, *, packed: bool) -> dict[str, Any]:
    """Attributes, a family, choices, a random schedule: each of them seldom."""
    kind = rng.choice(
        ("plain",) * 5 + ("attr", "schedule") * 2 + ("choices", "family", "map", "pieces")
    )
    kind = "plain" if packed and kind == "pieces" else kind
    wishes: dict[str, Any] = {"terms": (), "is_map": kind == "map", "scheduled": kind == "schedule"}
    if kind == "attr":
        wishes["terms"] = tuple(
            (name, rng.getrandbits(5), rng.random() < 0.3)
            for name in rng.sample(cf.Attr.NAMES, rng.choice((1, 1, 2)))
        )
        if rng.random() < 0.3:
            wishes["terms"] += ((rng.choice(EXPRESSIONS), 0, False),)
        wishes["scheduled"] = rng.random() < 0.5
    if kind == "pieces":
        wishes["pieces"] = rng.choice((1, 2, 5, 20))
    if kind == "family":
        wishes["family"] = rng.choice(FAMILIES)
    if kind == "choices":
        every: dict[str, tuple[Any, ...]] = {
            # Each fits the problems of so many loops; for others the rules decide.
            "schedule": tuple(
                f"tile of 1 | {n} | ahead 3 | ordinary" for n in ("a", "a b", "c a b")
            ),
            "local_size": (1, 8, 32),
            "baked": (True,),
        }
        names = rng.sample(sorted(every), rng.choice((1, 2, 3)))
        wishes["choices"] = cf.Choices(**{n: rng.choice(every[n]) for n in names})
    return wishes


def _attr(
    dims: tuple[int, ...], terms: tuple[tuple[str, int, bool], ...], seed: int
) -> tuple[cf.Attr, tuple[str, ...]]:
    """The attributes for tensors of ``dims``, and which of their values are given at a call."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {}
    late = []
    for name, bits, is_late in terms:
        if name not in cf.Attr.NAMES:
            given["expression"] = name
            continue
        mask = bits & ((1 << len(dims)) - 1)
        sizes = [n for d, n in enumerate(dims) if mask >> d & 1]
        values = rng.integers(-9, 10, sizes) if "zero" in name else rng.uniform(0.25, 4, sizes)
        given[name] = (values, mask)
        late += [name] if is_late and mask else []
    return cf.Attr(**given), tuple(late)


def _dims(rng: random.Random, ndims: int) -> tuple[int, ...]:
    """Sizes of 1 to 300, of which some hurt and some are any."""
    dims = [rng.choice((rng.choice(DIMS), rng.randint(1, 300))) for _ in range(ndims)]
    if rng.random() < 0.01:
        dims[rng.randrange(ndims)] = 0
    while prod(n or 1 for n in dims) > MOST_ELEMENTS:  # an attribute has values for the others
        d = rng.choice([d for d, n in enumerate(dims) if n > 3])
        dims[d] = rng.choice([n for n in DIMS if n < dims[d]])
    return tuple(dims)


def _image(rng: random.Random) -> tuple[int, ...]:
    """A batch, channels, and a plane."""
    dims = [rng.choice((1, 2, 3, 5, 33)), rng.choice(CHANNELS), *(rng.choice(SIDES) for _ in "yx")]
    while prod(dims) > LARGE_ELEMENTS:
        d = rng.choice((0, 1, 2, 3))
        dims[d] = -(-dims[d] // 2)
    return tuple(dims)


def _maker(rng: random.Random, name: str, ndims: int, dtype: str, *, reads: bool) -> Maker:
    """What makes the descriptors of one side from sizes; one that is only read may repeat."""
    kind = rng.choice(("format",) * 8 + ("padding", "padding", "strides", "region", "offset"))
    pads = [(rng.choice((0, 0, 1, 2, 5)), rng.choice((0, 0, 1, 3, 8))) for _ in range(ndims)]
    ends = [(rng.choice((0, 1, 1, 2)), rng.choice((0, 1, 7, 16))) for _ in range(ndims)]
    front, order = rng.choice((1, 2, 3, 8, 16, 17)), rng.sample(range(ndims), ndims)
    gaps = [rng.choice((0, 0, 1, 2, 16)) for _ in range(ndims)]
    repeats = rng.randrange(ndims) if reads and rng.random() < 0.2 else None

    def make(dims: tuple[int, ...]) -> D:
        if kind == "padding":
            return D(dims, dtype, name, padding=pads)
        if kind == "strides":
            strides, step = [0] * ndims, 1
            for d in order:
                strides[d], step = (0, step) if d == repeats else (step, step * dims[d] + gaps[d])
            return D(dims, dtype, strides=strides)
        if kind == "region":
            return _region(D, dims, dtype, name, ends)
        return moved(D(dims, dtype, name), front if kind == "offset" else 0)

    return make


def _region(
    make: type[D], dims: tuple[int, ...], dtype: str, name: str, ends: list[tuple[int, int]]
) -> D:
    """A part of a larger tensor: so many blocks behind its beginning, and with more behind it."""
    blocks = cf.Format(name, ndims=len(dims)).structure.blocks
    before = [n * b for (n, _), b in zip(ends, blocks, strict=True)]
    sizes = (dims, before, ends, blocks)
    whole = [
        at + n + (behind if n % block == 0 or n < block else 0)
        for n, at, (_, behind), block in zip(*sizes, strict=True)
    ]
    return make(whole, dtype, name).submemory(dims, before)


@dataclass(frozen=True)
class Tag:
    """A format of letters and blocks, which those of the other side may be near to."""

    letters: tuple[str, ...]
    blocks: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        split = {letter for letter, _ in self.blocks}
        outer = "".join(x.upper() if x in split else x for x in self.letters)
        return outer + "".join(f"{size}{letter}" for letter, size in self.blocks)

    def blocked(self, rng: random.Random, letter: str) -> Tag:
        """The same with one more block inside, of any size that is not too large."""
        if self.blocks and self.blocks[-1][0] == letter:
            return self
        large = prod(b for _, b in self.blocks) > 64
        size = rng.choice((2, 3, 4, 8) if large else BLOCKS)
        return replace(self, blocks=(*self.blocks, (letter, size)))

    def near(self, rng: random.Random) -> Tag:
        """One that shares runs with it: another size of a block, one block fewer, or one more."""
        kind = rng.choice(("size", "fewer", "more", "more", "innermost", "innermost"))
        if kind == "more":
            return self.blocked(rng, rng.choice(self.letters))
        if kind == "innermost" or not self.blocks:
            last = self.blocks[-1][0] if self.blocks else self.letters[-1]
            inner = tuple(b for b in self.blocks if b[0] != last)
            return replace(self, blocks=inner).blocked(rng, last)
        if kind == "fewer":
            return replace(self, blocks=self.blocks[1:])
        k = rng.randrange(len(self.blocks))
        blocks = list(self.blocks)
        blocks[k] = (blocks[k][0], rng.choice((2 * blocks[k][1], rng.choice(BLOCKS))))
        return replace(self, blocks=tuple(blocks))


def _tags(rng: random.Random, ndims: int) -> list[str]:
    """The formats of three tensors: any, and often ones that are near to each other."""
    first = _tag(rng, ndims)
    others = [first.near(rng) if rng.random() < 0.45 else _tag(rng, ndims) for _ in range(2)]
    names = [str(t) for t in rng.sample([first, others[0]], 2)] + [str(others[1])]
    registered = _registered(ndims)
    return [rng.choice(registered) if registered and rng.random() < 0.12 else n for n in names]


def _tag(rng: random.Random, ndims: int) -> Tag:
    """Plain in any order, or with one to three blocks."""
    letters = list("abcde"[:ndims])
    if rng.random() < 0.35:
        rng.shuffle(letters)
    tag = Tag(tuple(letters))
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 2, 3))):
        tag = tag.blocked(rng, rng.choice(letters))
    return tag


@lru_cache
def _registered(ndims: int) -> list[str]:
    """The names of the formats that buffers of any element type may have, and no sums."""
    return [
        f.name for f in cf.formats(ndims=ndims)
        if f.kind == "blocked" and not f.name.endswith(":i4") and not f.structure.tail
    ]  # fmt: skip


def nbytes_of(desc: D) -> int:
    """The bytes that a buffer must have, which are also the last that may be touched."""
    return max(desc.nbytes, desc.span_nbytes) if desc.nelems else 0


def _beginning(desc: D, place: str) -> D:
    """The descriptor in memory that ends where a page ends: there it begins at a cache line."""
    spare = -nbytes_of(desc) % 64
    if place != "aligned" or desc.dtype.bits < 8 or spare % desc.dtype.nbytes:
        return desc
    return moved(desc, spare // desc.dtype.nbytes)
