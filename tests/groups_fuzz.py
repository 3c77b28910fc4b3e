"""Random reorders with values for groups, between pages that may not be touched, against numpy.

``python -m tests.groups_fuzz SEED STRUCTURE CASES`` tells each case before it runs it, and at the
end how many ran and which kernels were built; see `tests.fuzz_support` for the rest. What is
expected is by `tests.numpy_oracle`, to the byte.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import clformats as cf
from clformats.values.groups import Grouped
from tests import numpy_oracle
from tests.device_support import moved
from tests.fuzz_cases import BLOCKS, MOST_BYTES, PLACES, PLANS, _tag
from tests.fuzz_support import POISON, Bench, main
from tests.numpy_oracle import Places, bits_of, coded, computed, decoded, spread

D = cf.MemoryDesc
QUANTITIES = ("src_scale", "src_zero_point", "dst_scale", "dst_zero_point", "beta")
FORMULAS = {
    "(q - p) * d": lambda q, p, d: (q - p) * d,
    "q * d + p": lambda q, p, d: q * d + p,
    "d * q - p": lambda q, p, d: d * q - p,
}
FAMILIES = ("scheduled", "rows", "local", "generic")
LENGTHS = (*range(1, 20), 31, 32, 33, 47, 48, 49, 63, 64, 65, 100, 127, 128, 129, 255, 257)
MOST_ELEMENTS = 6000
OFTEN = ("f32", "f16", "s8", "u8", "u4", "s4")


@dataclass(frozen=True)
class Side:
    """A tensor but for its sizes."""

    dtype: str
    text: str
    padding: tuple[tuple[int, int], ...]
    front: int

    def desc(self, dims: tuple[int, ...]) -> D:
        """The descriptor."""
        return moved(D(dims, self.dtype, self.text, padding=self.padding), self.front)

    def places(self, dims: tuple[int, ...]) -> Places:
        """Where its elements lie, without the library."""
        return Places(dims, self.text, self.padding, self.front, bits_of(self.dtype))

    def memory(self, dims: tuple[int, ...], codes: Any, around: Any) -> Any:
        """Codes in memory that has ``around`` everywhere else."""
        places = self.places(dims)
        result = np.resize(around, places.nbytes).copy()
        places.put(result, codes)
        return result


def some_side(rng: random.Random, ndims: int) -> Side:
    """Any format, some with padding and some further on in memory."""
    dtype = rng.choice((rng.choice(OFTEN), rng.choice(numpy_oracle.TYPES)))
    pads = [(0, 0)] * ndims
    if rng.random() < 0.2:
        pads = [(rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1, 3))) for _ in range(ndims)]
    front = rng.choice((1, 2, 3, 8, 16, 17)) if rng.random() < 0.2 else 0
    return Side(dtype, str(_tag(rng, ndims)), tuple(pads), front)


def some_group(rng: random.Random, ndims: int) -> tuple[int | None, ...]:
    """Mostly along one dimension; of any length, and of those that blocks have."""
    long = rng.randrange(ndims)
    lengths = (16, 32, 32, 64, 128, rng.choice(BLOCKS))
    return tuple(
        rng.choice(lengths) if d == long else rng.choice((1, 1, 1, None, 2, 5, 32))
        for d in range(ndims)
    )


def counts(dims: tuple[int, ...], group: tuple[int | None, ...]) -> tuple[int, ...]:
    """How many values there are along each dimension."""
    return tuple(-(-n // (g or n)) for n, g in zip(dims, group, strict=True))


def some_codes(rng: np.random.Generator, dims: tuple[int, ...], dtype: str) -> Any:
    """Any finite values, of which no sum is infinite."""
    bits = bits_of(dtype)
    if dtype in numpy_oracle.FLOATS and bits > 8:
        return coded(rng.standard_normal(dims) * 100, dtype)
    codes = rng.integers(0, 1 << bits, dims, np.uint64) if bits < 64 else rng.integers(
        0, 1 << 64, dims, np.uint64, endpoint=False)  # fmt: skip
    codes = codes.astype(f"u{max(1, bits // 8)}")
    if dtype == "f8_e8m0":
        return (97 + codes % 60).astype(np.uint8)
    return np.where(np.isfinite(decoded(codes, dtype, np.float64)), codes, 0).astype(codes.dtype)


class Structure:
    """Everything but the sizes, whose cases share few programs."""

    def __init__(self, seed: int, number: int) -> None:
        rng = self.rng = random.Random(f"groups {seed} {number}")  # noqa: S311  # not secrets
        self.ndims = rng.choice((1, 2, 2, 2, 2, 3, 3, 4))
        self.src, self.dst = (some_side(rng, self.ndims) for _ in range(2))
        self.plan = rng.choice(PLANS)
        self.family = rng.choice(FAMILIES) if rng.random() < 0.15 else None
        names = rng.sample(QUANTITIES, rng.choice((1, 1, 2, 2, 3, 5)))
        self.groups = {name: some_group(rng, self.ndims) for name in names}
        self.late = {name for name in names if rng.random() < 0.3}
        self.formula = rng.choice(list(FORMULAS)) if rng.random() < 0.2 else None
        if self.formula:
            self.others = {n: some_side(rng, self.ndims) for n in "pd"}
            self.groups = {n: some_group(rng, self.ndims) for n in "pd"}

    def __str__(self) -> str:
        groups = ", ".join(f"{n} {'late ' * (n in self.late)}{g}" for n, g in self.groups.items())
        others = f" {self.formula} {self.others}" if self.formula else ""
        return f"{self.src} -> {self.dst} {groups}{others} [{self.plan} {self.family or ''}]"

    def dims(self) -> tuple[int, ...]:
        """Sizes that hurt."""
        dims = [self.rng.choice((self.rng.choice(LENGTHS), self.rng.randint(1, 200)))
                for _ in range(self.ndims)]  # fmt: skip
        while prod(dims) > MOST_ELEMENTS:
            d = dims.index(max(dims))
            dims[d] = self.rng.choice([n for n in LENGTHS if n < dims[d]])
        return tuple(dims)

    def cases(self, most: int) -> Iterator[tuple[tuple[int, ...], int, tuple[str, str]]]:
        """Sizes, a seed for values, and where memories lie."""
        for _ in range(most):
            yield (self.dims(), self.rng.getrandbits(31),
                   (self.rng.choice(PLACES[:2]), self.rng.choice(PLACES[:2])))  # fmt: skip

    def run(self, case: tuple[tuple[int, ...], int, tuple[str, str]], bench: Bench) -> bool:
        """Run a case, and compare every byte; False where padding makes it large."""
        dims, seed, places = case
        if max(side.places(dims).nbytes for side in (self.src, self.dst)) > MOST_BYTES:
            return False
        stream, rng = bench.stream(self.plan), np.random.default_rng(seed)
        sides = [self.src, self.dst, *(self.others.values() if self.formula else ())]
        real = np.float64 if any(s.dtype == "f64" for s in sides) else np.float32
        codes = some_codes(rng, dims, self.src.dtype)
        flat = self.src.memory(dims, codes, rng.integers(0, 256, 4099, np.uint8))
        source, _ = bench.rooms[0].memory(self.src.desc(dims), flat, places[0], stream.engine)
        old = some_codes(rng, dims, self.dst.dtype)
        before = self.dst.memory(dims, old, np.uint8(POISON))
        target, at = bench.rooms[1].memory(self.dst.desc(dims), before, places[1], stream.engine)
        x, y = decoded(codes, self.src.dtype, real), decoded(old, self.dst.dtype, real)
        with np.errstate(all="ignore"):
            ready = self._mapped if self.formula else self._reordered
            values = ready(stream, source, target, x, y, rng)
            want = before.copy()
            self.dst.places(dims).clear(want)
            self.dst.places(dims).put(want, coded(values, self.dst.dtype))
        bench.rooms[1].check(target, at, want)
        return True

    def _reordered(
        self, stream: cf.Stream, source: Any, target: Any, x: Any, old: Any,
        rng: np.random.Generator,
    ) -> Any:  # fmt: skip
        terms: dict[str, Any] = {}
        given: dict[str, Any] = {}
        each: dict[str, Any] = {}
        for name, group in self.groups.items():
            shape = counts(x.shape, group)
            whole = "zero" in name
            values = rng.integers(-9, 10, shape) if whole else rng.uniform(0.25, 4, shape)
            terms[name], each[name] = Grouped(values, group), spread(values, x.shape, group)
            if name in self.late:
                terms[name], given[name] = cf.at_execution(group=group), values
        attr, sides = cf.Attr(**terms), (source.desc, target.desc)
        try:
            ready = cf.Reorder(*sides, stream.engine, attr=attr, family=self.family)
        except cf.Unsupported as error:
            if error.code != "FAMILY":
                raise
            ready = cf.Reorder(*sides, stream.engine, attr=attr)
        ready(stream, source, target, **given).wait()
        return computed(x, old, each, x.dtype.type)

    def _mapped(
        self, stream: cf.Stream, source: Any, target: Any, x: Any, old: Any,
        rng: np.random.Generator,
    ) -> Any:  # fmt: skip
        del old
        assert self.formula
        descs: dict[str, Any] = {}
        memories: dict[str, Any] = {}
        each: dict[str, Any] = {}
        for name, side in self.others.items():
            group = self.groups[name]
            few = counts(x.shape, group)
            desc, codes = side.desc(few), some_codes(rng, few, side.dtype)
            flat = side.memory(few, codes, rng.integers(0, 256, 4099, np.uint8))
            memory = cf.Memory(desc, stream.engine)
            with memory.map("w") as own:
                own.view(np.uint8)[: flat.size] = flat
            descs[name], memories[name] = Grouped(desc, group), memory
            each[name] = spread(decoded(codes, side.dtype, x.dtype.type), x.shape, group)
        made = cf.Map(f"z = {self.formula}", stream.engine, q=source.desc, z=target.desc, **descs)
        made(stream, q=source, z=target, **memories).wait()
        return FORMULAS[self.formula](x, each["p"], each["d"])


if __name__ == "__main__":
    main(Structure)
