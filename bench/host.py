"""Race host calls against the obvious numpy code for the same: pad, reshape, transpose, copy."""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import geometric_mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clformats as cf
from clformats.timing import QUICK, Settings, Slot, race

from .cases import MB
from .machine import facts
from .options import expression

Array = NDArray[Any]
SIZES = (2.0, 50.0, 206.0)
"""Megabytes of the array."""
SETTINGS = Settings(rounds=7, warm=0.0, runs=3, seconds=10.0)


@dataclass(frozen=True, slots=True)
class Layout:
    """``blocks`` of dimensions, outermost first, and the order of axes once they are split."""

    name: str
    dims: tuple[int, ...]
    order: tuple[int, ...]
    blocks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def sized(self, nbytes: float, item: int) -> tuple[int, ...]:
        """The dims with as many images, or output channels, as make so many bytes."""
        first = max(1, round(nbytes / item / np.prod(self.dims[1:]) / self.dims[0]))
        return (first * self.dims[0], *self.dims[1:])

    def split(self, dims: tuple[int, ...]) -> list[tuple[int, ...]]:
        """For each dimension the sizes of its axes, the padded one first."""
        parts = [(n, *self.blocks.get(d, ())) for d, n in enumerate(dims)]
        return [(-(-n // int(np.prod(blocks))), *blocks) for n, *blocks in parts]

    def pack(self, array: Array, dtype: np.dtype[Any]) -> Array:
        """By numpy."""
        array, parts = as_type(array, dtype), self.split(array.shape)
        padded = [int(np.prod(part)) for part in parts]
        if padded != list(array.shape):
            pads = [(0, n - m) for n, m in zip(padded, array.shape, strict=True)]
            array = np.pad(array, pads)
        split = array.reshape([n for part in parts for n in part])
        return np.array(split.transpose(self.order), order="C").reshape(-1)

    def unpack(self, flat: Array, dims: tuple[int, ...]) -> Array:
        """By numpy."""
        parts = self.split(dims)
        sizes = [n for part in parts for n in part]
        lying = flat.reshape([sizes[k] for k in self.order]).transpose(np.argsort(self.order))
        padded = lying.reshape([int(np.prod(part)) for part in parts])
        return np.array(padded[tuple(map(slice, dims))], order="C")


def as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """Rounded and saturated where that is needed, as numpy's users do it."""
    if array.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.clip(np.rint(array), limits.min, limits.max).astype(dtype)
    return array.astype(dtype, copy=False)


LAYOUTS = (
    Layout("bfyx", (1, 64, 56, 56), (0, 1, 2, 3)),
    Layout("byxf", (1, 64, 56, 56), (0, 2, 3, 1)),
    Layout("b_fs_yx_fsv16", (1, 64, 56, 56), (0, 1, 3, 4, 2), {1: (16,)}),
    Layout("b_fs_yx_fsv16", (1, 50, 57, 55), (0, 1, 3, 4, 2), {1: (16,)}),
    Layout("OIhw4i16o4i", (16, 256, 3, 3), (0, 2, 5, 6, 3, 1, 4), {0: (16,), 1: (4, 4)}),
)
TYPES = (("f32", "f32"), ("f16", "f16"), ("u8", "u8"), ("f32", "bf16"), ("f32", "u8"))


@dataclass(frozen=True, slots=True)
class Case:
    """An array of so many bytes that is brought into a layout and back."""

    layout: Layout
    src: str
    dst: str
    megabytes: float

    def __str__(self) -> str:
        types = self.src if self.src == self.dst else f"{self.src} to {self.dst}"
        return f"{self.megabytes:g} MB {types} {self.layout.name} of {self.layout.dims[1]}"


def cases() -> list[Case]:
    """All of them, the large ones last."""
    return [Case(layout, *types, megabytes) for megabytes in SIZES for types in TYPES
            for layout in LAYOUTS]  # fmt: skip


Call = Callable[[], object]


def calls(case: Case, engine: cf.Engine) -> Iterator[tuple[str, Call, Call]]:
    """The name of each call, the call, and numpy's way; after a look at the results."""
    src, dst = (cf.tensors.dtypes.as_dtype(name) for name in (case.src, case.dst))
    layout = case.layout
    dims = layout.sized(case.megabytes * MB, src.nbytes)
    rng = np.random.default_rng(1)
    array = np.resize(rng.integers(0, 200, 1_048_573), dims).astype(src.numpy)
    desc = cf.MemoryDesc(dims, dst, layout.name)
    flat, memory = cf.pack(array, desc), cf.from_numpy(array, engine, format=layout.name, dtype=dst)

    def there() -> Array:
        return layout.pack(array, dst.numpy)

    def back() -> Array:
        return layout.unpack(flat, dims)

    for got in (flat, np.array(memory.physical()).reshape(-1)):
        assert got.tobytes() == there().tobytes(), case
    assert cf.to_numpy(memory).tobytes() == back().tobytes(), case
    yield "pack", (lambda: cf.pack(array, desc)), there
    yield "from_numpy", (lambda: cf.from_numpy(array, engine, format=layout.name, dtype=dst)), there
    if src == dst:  # on the way back nothing is converted
        yield "unpack", (lambda: cf.unpack(flat, desc)), back
        yield "to_numpy", (lambda: cf.to_numpy(memory)), back
        yield "asarray", (lambda: np.asarray(memory)), back
        yield "Memory.numpy", memory.numpy, back
    if src == dst and layout.name == "bfyx":
        import pyopencl.array

        there_already = pyopencl.array.to_device(engine.queue, array)
        yield "from_array", (lambda: cf.from_array(there_already, engine)), there


def beyond(call: Call) -> float:
    """The most megabytes that Python's memory grew by, beyond what the call returned."""
    tracemalloc.start()
    result = call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (most - (result.nbytes if isinstance(result, np.ndarray) else 0)) / MB


def main(arguments: list[str]) -> int:
    """Run ``python -m bench host``; 1 where no case matches."""
    parser = argparse.ArgumentParser(prog="python -m bench host", description=__doc__)
    add = parser.add_argument
    add("--device", metavar="NAME", help="a text in the device's or platform's name")
    add("--cases", metavar="REGEX", type=expression, help="only cases that have this in their name")
    add("--rounds", metavar="N", type=int, help="rounds per case")
    add("--quick", action="store_true", help="few short rounds, 2 MB only: to see that it works")
    options = parser.parse_args(arguments)
    engine = cf.Engine(options.device)
    settings = QUICK if options.quick else SETTINGS
    settings = replace(settings, rounds=options.rounds or settings.rounds)
    chosen = [case for case in cases() if options.cases is None or options.cases.search(str(case))]
    chosen = [case for case in chosen if case.megabytes == SIZES[0] or not options.quick]
    told = facts(engine)
    print(
        "\n".join(f"{name:<10} {told[name]}" for name in ("device", "processor", "load", "numpy"))
    )
    print(f"\n{'case':<40} {'call':<13}{'ms':>9}{'numpy':>9}{'ratio':>7}{'MB more':>9}")
    ratios = [ratio for case in chosen for ratio in raced(case, engine, settings)]
    if ratios:
        slower = sum(ratio > 1 for ratio in ratios)
        mean = geometric_mean(ratios)
        print(f"\n{len(ratios)} calls: {mean:.2f} of numpy's time, {slower} of them slower")
    return int(not ratios)


def raced(case: Case, engine: cf.Engine, settings: Settings) -> Iterator[float]:
    """Print a line for each call of a case; our time as a share of numpy's."""
    ways = list(calls(case, engine))
    numpys = {id(other): Slot(f"numpy {id(other)}", other) for _, _, other in ways}
    slots = [*(Slot(name, call) for name, call, _ in ways), *numpys.values()]
    times = race(slots, settings, np.random.default_rng())
    for name, call, other in ways:
        ours, theirs = times[name].median, times[numpys[id(other)].name].median
        print(f"{case!s:<40} {name:<13}{ours * 1e3:9.2f}{theirs * 1e3:9.2f}{ours / theirs:7.2f}"
              f"{beyond(call):9.1f}", flush=True)  # fmt: skip
        yield ours / theirs
