"""Random schedules of random problems, and what they write, byte for byte."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats.kernels import Launch
from clformats.kernels.scheduled import render_schedule
from clformats.problems.problem import Problem
from clformats.problems.refine import problem, separate
from clformats.reorders.building import trial
from clformats.schedule.extents import tiles
from clformats.schedule.layout import lay_out
from clformats.schedule.nest import is_legal_extent, ordered, positions
from clformats.schedule.plan import FAMILIES
from clformats.schedule.schedule import Loop, Schedule, Store, Tile
from clformats.schedule.scheduled import as_scheduled
from clformats.schedule.stores import legal
from clformats.tensors.dtypes import convert
from tests.support import random_values

ACTIVATIONS = (
    "bfyx", "byxf", "yxfb", "fyxb", "b_fs_yx_fsv4", "b_fs_yx_fsv8", "b_fs_yx_fsv16",
    "b_fs_yx_fsv32", "fs_b_yx_fsv32", "bs_fs_yx_bsv16_fsv16", "bs_fs_yx_bsv8_fsv4", "aBcd24b",
    "aBcd2b", "ABcd16b16a2b",
)  # fmt: skip
WEIGHTS = (
    "oiyx", "yxio", "iyxo", "ioyx", "os_is_yx_isv16_osv16", "os_is_yx_osv16_isv4", "OIhw16i16o4i",
    "os_is_yx_isa8_osv8_isv4", "OIhw8i16o2i", "os_iyx_osv16", "hwio",
)  # fmt: skip
TYPES = (
    ("f32", "f32"), ("f16", "f16"), ("u8", "u8"), ("f64", "f64"), ("f32", "f16"), ("f16", "f32"),
    ("f32", "s8"), ("u8", "f32"), ("f32", "bf16"), ("s8", "s32"),
)  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33)
MOST_ELEMENTS = 30_000
MOST_VECTORS = 80
SCHEDULED = next(f for f in FAMILIES if f.name == "scheduled")
AROUND = 4096
"""Bytes before and behind what a kernel may touch."""


def parsed(src: str, dst: str) -> Problem:
    """The problem of two descriptors, by their texts."""
    return problem(cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst))


def random_problem(r: random.Random) -> Problem:
    """Two descriptors of sizes that hurt, some with padding around."""
    while True:
        dims, formats = _shape(r)
        types = r.choice(TYPES)
        pads = [[(r.choice([0, 1, 2]), r.choice([0, 1, 3])) if r.random() < 0.3 else (0, 0)
                 for _ in dims] for _ in formats]  # fmt: skip
        if prod(dims) > MOST_ELEMENTS:
            continue
        src, dst = (cf.MemoryDesc(dims, t, f, padding=p)
                    for t, f, p in zip(types, formats, pads, strict=True))  # fmt: skip
        found = separate(problem(src, dst))
        if not found.why:
            return found


def _shape(r: random.Random) -> tuple[tuple[int, ...], list[str]]:
    if r.random() < 0.6:
        return tuple(r.choice(SIZES) for _ in range(4)), r.sample(ACTIVATIONS, 2)
    window = r.choice([1, 3, 5])
    return (r.choice(SIZES), r.choice(SIZES), window, window), r.sample(WEIGHTS, 2)


def random_schedule(r: random.Random, p: Problem) -> Schedule:
    """A legal schedule: some tile, loops in any order and blocked anyhow, prefetch, stores."""
    return random_around(r, p, _tile_of_some_vectors(r, p))


def random_schedules(r: random.Random, p: Problem, count: int = 5) -> list[Schedule]:
    """Legal schedules of one tile, which share a program for each kind of store."""
    tile = _tile_of_some_vectors(r, p)
    return [random_around(r, p, tile) for _ in range(count)]


def random_around(r: random.Random, p: Problem, tile: Tile) -> Schedule:
    """A legal schedule of a tile."""
    axes = range(len(p.nodes))
    # In the destination's order, tiles may be one run.
    order = r.choice([axes, r.sample(axes, len(axes))])
    loops = [*ordered(p, tile, order, r.choice([1, 2, 8, 40]))]
    for _ in range(r.choice([0, 2])):
        _block(r, loops, positions(p, tile))
    nest = tuple(loops)
    found = legal(p, tile, nest, 64)
    # Few tiles have lines that wait or stream: those take no other kind, but for narrower streams.
    stores = [store for store in found if not store.is_ordinary] or found
    most = max(store.streams for store in stores)
    stores += [Store(n) for n in (0, 16, 32) if n < most]
    lead = r.choice([0, 0, 1, 3, 50])
    return Schedule(tile, nest, lead, r.choice(stores))


def _tile_of_some_vectors(r: random.Random, p: Problem) -> Tile:
    while True:
        tile = _random_tile(r, p)
        layout = lay_out(p, tile)
        if len(layout.loads) + len(layout.stores) <= MOST_VECTORS:
            return tile


def some_schedule(r: random.Random, src: cf.MemoryDesc, dst: cf.MemoryDesc) -> cf.Choices | None:
    """A random schedule, as a choice; None where nothing moves, or no loop nest does."""
    try:
        found = as_scheduled(problem(src, dst), 64)
    except cf.Unsupported:
        return None
    if dst.nelems == 0 or SCHEDULED.refusal(found):
        return None
    return cf.Choices(schedule=str(random_schedule(r, found)))


def _random_tile(r: random.Random, p: Problem) -> Tile:
    if r.random() < 0.7:
        return r.choice([*tiles(p)])
    while True:
        sizes = [r.choice([1, 1, 2, 3, 4, 5, 8, 16]) for _ in p.nodes]
        if prod(sizes) <= 512 and all(is_legal_extent(p, k, n) for k, n in enumerate(sizes)):
            return Tile.of(sizes, r.choice([1, 2, 4, 8, 16]))


def _block(r: random.Random, nest: list[Loop], counts: tuple[int, ...]) -> None:
    """Put one more loop around a loop inside a work-item, in steps of several tiles."""
    inside = [k for k, x in enumerate(nest) if not x.spread and x.tiles == 1]
    if not inside:
        return
    k = r.choice(inside)
    axis = nest[k].axis
    limit = min([x.tiles for x in nest[:k] if x.axis == axis] or [counts[axis]])
    first = max([j + 1 for j, x in enumerate(nest[:k]) if x.spread or x.axis == axis], default=0)
    if limit > 2:
        nest.insert(r.randint(first, k), Loop(axis, r.randrange(2, limit)))


def with_garbage(desc: cf.MemoryDesc, array: NDArray[np.generic], seed: int) -> NDArray[np.uint8]:
    """The bytes of a tensor whose padding holds anything."""
    flat = np.random.default_rng(seed).integers(0, 256, desc.nbytes, dtype=np.uint8)
    flat.view(desc.dtype.storage)[desc.offsets().ravel()] = array.ravel()
    return flat


def before_and_after(p: Problem, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The bytes of a random source with garbage in its padding, and those of its destination."""
    array = random_values(np.random.default_rng(seed), p.src.dims, p.src.dtype.name)
    converted = array if p.src.dtype == p.dst.dtype else convert(array, *p.dtypes)
    return with_garbage(p.src, array, seed), cf.pack(converted, p.dst).view(np.uint8)


def written(
    engine: cf.Engine,
    p: Problem,
    schedule: Schedule,
    source: NDArray[np.uint8],
    *,
    baked: bool = False,
) -> NDArray[np.uint8]:
    """What a schedule writes; fails where it touches a byte around."""
    return ran(engine, p, render_schedule(p, schedule, baked=baked), source, schedule)


def check_written(engine: cf.Engine, p: Problem, schedule: Schedule, seed: int = 0) -> None:
    """Asserts that a schedule moves a random source, and touches no byte around."""
    source, expected = before_and_after(p, seed)
    assert np.array_equal(written(engine, p, schedule, source), expected), f"{p.src} {schedule}"


def _built(engine: cf.Engine, p: Problem, launch: Launch) -> Any:
    """The kernel. Mesa's rusticl compiles at the first launch, which a child process tries."""
    if "rusticl" not in engine.device.platform.name:
        return engine.kernel(launch.source, launch.KERNEL)
    try:
        return engine.kernel(launch.source, launch.KERNEL, trial(p, launch))
    except cf.CompilerDied as error:  # no other schedule is asked for
        pytest.skip(str(error))


def ran(
    engine: cf.Engine, p: Problem, launch: Launch, source: NDArray[np.uint8], about: object
) -> NDArray[np.uint8]:
    """What a kernel writes; fails where it touches a byte around."""
    import pyopencl as cl

    kernel = _built(engine, p, launch)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    around = np.full(AROUND, 0xA5, np.uint8)
    whole = np.full(p.dst.nbytes + 2 * AROUND, 0xA5, np.uint8)
    buffers = [
        cl.Buffer(engine.context, flags, hostbuf=np.concatenate([around, source, around])),
        cl.Buffer(engine.context, flags, hostbuf=whole),
    ]
    sizes = (source.size, p.dst.nbytes)
    parts = [b.get_sub_region(AROUND, n) for b, n in zip(buffers, sizes, strict=True)]
    kernel.set_args(*parts, *launch.arguments)
    cl.enqueue_nd_range_kernel(
        engine.queue, kernel, (launch.global_size,), (launch.local_size,)
    ).wait()
    cl.enqueue_copy(engine.queue, whole, buffers[1]).wait()
    assert (whole[:AROUND] == 0xA5).all(), f"bytes before the destination are written: {about}"
    assert (whole[-AROUND:] == 0xA5).all(), f"bytes behind the destination are written: {about}"
    return whole[AROUND:-AROUND]
