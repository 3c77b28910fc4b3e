"""What a first use costs, and what a call costs beside the bare command."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import clformats as cf
from clformats.kernels import Launch, render
from clformats.reorders.profiles import traits_of
from clformats.timing import Settings, Slot, race, timed

from .arena import Arena
from .cases import Case
from .contest import waiting

TINY = Case("first use", "", (1, 64, 8, 8), "f32:bfyx", "f32:b_fs_yx_fsv16")
OTHER = Case("second shape", "", (1, 64, 8, 12), "f32:bfyx", "f32:b_fs_yx_fsv16")
REPEATS = 50
ROW = 64
"""Calls in a row before one wait."""


def first_use(engine: cf.Engine, settings: Settings) -> dict[str, float]:
    """Seconds and ratios, by what they are of."""
    arena = Arena(TINY, engine)
    found = _first(arena)
    found.update(_second(engine))
    found.update(_calls(arena, settings))
    return found


def _first(arena: Arena) -> dict[str, float]:
    """Plan and render; then build and launch a source that no cache knows, then one that is known.

    The unknown source is the same with the declaration of a name that never was there before: the
    caches know a source by what its preprocessor leaves.
    """
    start = perf_counter()
    plan = cf.make_plan(arena.src, arena.dst, traits_of(arena.engine))
    planned = perf_counter()
    render(plan)
    found = {"plan": planned - start, "render": perf_counter() - planned}
    for name, addition in (
        ("no cache", f"typedef int t{uuid.uuid4().hex};\n"),
        ("from caches", ""),
    ):
        if not addition:
            waiting(arena.stream, bare(arena, arena.engine)[1])()  # fills the caches
        fresh = cf.Engine(context=arena.engine.context, device=arena.engine.device)
        seconds, enqueue = bare(arena, fresh, addition)
        found[f"build, {name}"] = seconds
        found[f"first launch, {name}"] = timed(waiting(arena.stream, enqueue))
    return found


def bare(arena: Arena, engine: cf.Engine, addition: str = "") -> tuple[float, Callable[[], object]]:
    """Seconds of the build, and the enqueue by pyopencl alone, its arguments set before."""
    import pyopencl as cl

    ready = render(cf.make_plan(arena.src, arena.dst, traits_of(engine)))
    assert ready is not None
    start = perf_counter()
    kernel = engine.kernel(ready.source + addition, ready.KERNEL)
    seconds = perf_counter() - start
    values: list[Any] = [memory.buffer for memory in arena.memories(arena.src, arena.dst)]
    for value, kind in zip(ready.arguments, kinds(ready), strict=True):
        values.append(kind(value) if kind else value)
    for k, value in enumerate(values):
        kernel.set_arg(k, value)
    queue, sizes = arena.stream.queue, ((ready.global_size,), (ready.local_size,))
    return seconds, lambda: cl.enqueue_nd_range_kernel(queue, kernel, *sizes)


def kinds(ready: Launch) -> list[type[np.signedinteger] | None]:
    """The type of each integer among a kernel's arguments; None of a structure."""
    index = np.int64 if ready.wide else np.int32
    return [None if isinstance(value, bytes) else index for value in ready.arguments]


def _second(engine: cf.Engine) -> dict[str, float]:
    """A second `Reorder` of a known structure: of the same shape, and of another."""
    cf.Reorder(*TINY.descriptors(), engine, wait=True)
    found = {}
    for name, case in (("same shape", TINY), ("other shape", OTHER)):
        src, dst = case.descriptors()
        made = partial(cf.Reorder, src, dst, engine, wait=True)
        times = [timed(made) for _ in range(REPEATS)]
        found[f"second Reorder, {name}"] = float(np.median(times))
    return found


def _calls(arena: Arena, settings: Settings) -> dict[str, float]:
    """A call of a `Reorder` against pyopencl's of the same kernel.

    ``kernel(queue, sizes, *arguments)`` sets the arguments, as a call must; the bare enqueue is of
    a kernel whose arguments were set once and for all.
    """
    reorder = cf.Reorder(arena.src, arena.dst, arena.engine, wait=True)
    memories = arena.memories(arena.src, arena.dst)
    ways: dict[str, Callable[[], object]] = {
        "call": lambda: reorder(arena.stream, *memories),
        "pyopencl's call": called(arena),
        "bare enqueue": bare(arena, arena.engine)[1],
    }
    slots = [
        Slot(f"{name} {batch}", waiting(arena.stream, enqueue, batch), batch)
        for name, enqueue in ways.items()
        for batch in (1, ROW)
    ]
    times = race(slots, settings, np.random.default_rng())
    found = {}
    for batch, name in ((1, "and wait"), (ROW, f"{ROW} in a row")):
        own, *others = (times[f"{way} {batch}"].median for way in ways)
        found[f"call, {name}"] = own
        for way, other in zip(list(ways)[1:], others, strict=True):
            found[f"ratio to {way}, {name}"] = own / other
    return found


def called(arena: Arena) -> Callable[[], object]:
    """The same kernel called as pyopencl's users do, with the types of its arguments told."""
    ready = render(cf.make_plan(arena.src, arena.dst, traits_of(arena.engine)))
    assert ready is not None
    kernel = arena.engine.kernel(ready.source, ready.KERNEL)
    kernel.set_arg_types([None, None, *kinds(ready)])
    buffers = [memory.buffer for memory in arena.memories(arena.src, arena.dst)]
    queue, sizes = arena.stream.queue, ((ready.global_size,), (ready.local_size,))
    return lambda: kernel(queue, *sizes, *buffers, *ready.arguments)
