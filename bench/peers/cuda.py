"""torch and CuPy on an NVIDIA GPU: strided copies over tensors used in turn, by CUDA's events."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from typing import Any

import numpy as np

from ..arena import Data, NotComparableError
from ..rotation import Batch, pairs_of
from . import torch_
from .views import views

Turns = list[Callable[[], object]]


def torch_batch(arena: Data) -> Batch:
    """The case as torch does it; checked. Raises `NotComparableError`."""
    if not find_spec("torch"):
        raise NotComparableError("torch is not installed")
    torch = import_module("torch")
    if not arena.is_nvidia or not torch.cuda.is_available():
        raise NotComparableError("torch cannot use this device")
    made = [torch_.on_device(torch, arena) for _ in range(pairs_of(arena))]
    run, written = made[0]
    written.view(torch.uint8).zero_()
    run()
    _check(arena, written.view(torch.uint8).cpu().numpy())
    event = lambda: torch.cuda.Event(enable_timing=True)  # noqa: E731  # two of them
    return timed([turn for turn, _ in made], event, 1e-3)


def cupy_batch(arena: Data) -> Batch:
    """The case as CuPy does it; checked. Raises `NotComparableError`."""
    if not find_spec("cupy"):
        raise NotComparableError("CuPy is not installed")
    if not arena.is_nvidia:
        raise NotComparableError("CuPy cannot use this device")
    names = {arena.src.dtype.name, arena.dst.dtype.name}
    if "bf16" in names or (len(names) > 1 and names & {"s8", "u8"}):
        raise NotComparableError("CuPy does not convert so")
    cupy = import_module("cupy")
    made = [_cupy_turn(cupy, arena) for _ in range(pairs_of(arena))]
    run, written = made[0]
    run()
    _check(arena, cupy.asnumpy(written.view(np.uint8)))
    return timed([turn for turn, _ in made], lambda: CupyEvent(cupy), 1e-3)


def _cupy_turn(cupy: Any, arena: Data) -> tuple[Callable[[], object], Any]:
    sides = []
    for data, desc in ((arena.read, arena.src), (arena.written, arena.dst)):
        size = data.size // desc.dtype.nbytes * desc.dtype.nbytes
        sides.append(cupy.asarray(data[:size]).view(desc.dtype.numpy))
    sides[1].fill(0)
    strided = cupy.lib.stride_tricks.as_strided
    pairs = [
        [
            strided(flat[v.offset :], v.shape, tuple(s * flat.itemsize for s in v.strides))
            for flat, v in zip(sides, both, strict=True)
        ]
        for both in views(arena.src, arena.dst)
    ]

    def run() -> None:
        for read, written in pairs:
            cupy.copyto(written, read, casting="unsafe")

    return run, sides[1]


class CupyEvent:
    """An event of CuPy's with the words of torch's."""

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.event = cupy, cupy.cuda.Event()

    def record(self) -> None:
        """Mark this place in the stream."""
        self.event.record()

    def synchronize(self) -> None:
        """Wait until the device is there."""
        self.event.synchronize()

    def elapsed_time(self, other: CupyEvent) -> float:
        """Milliseconds until another event."""
        return float(self.cupy.cuda.get_elapsed_time(self.event, other.event))


def timed(turns: Turns, event: Callable[[], Any], unit: float) -> Batch:
    """Calls used in turn, by events whose times are in units of so many seconds."""

    def run(count: int) -> float:
        first, last, turn = event(), event(), cycle(turns)
        first.record()
        for _ in range(count):
            next(turn)()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) * unit

    return run


def _check(arena: Data, got: Any) -> None:
    """Compare with the truth; a peer writes no padding, where memory was zero before."""
    arena.written[: arena.truth.size] = got[: arena.truth.size]
    arena.compare(arena.written)
