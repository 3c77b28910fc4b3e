"""numpy on one thread: copyto between strided views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

import clformats as cf

from ..arena import Arena, Bytes
from .views import View, views


def move(arena: Arena) -> Callable[[], None]:
    """The case as numpy does it, from and to the arena's memory."""
    pairs = [
        (_view(arena.read, arena.src, one), _view(arena.written, arena.dst, other))
        for one, other in views(arena.src, arena.dst)
    ]
    steps = [_step(one, other, arena) for one, other in pairs]

    def run() -> None:
        for step in steps:
            step()

    return run


def _view(data: Bytes, desc: cf.MemoryDesc, view: View) -> NDArray[Any]:
    dtype = desc.dtype.numpy
    flat = data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)
    strides = [n * dtype.itemsize for n in view.strides]
    return as_strided(flat[view.offset :], view.shape, strides)


def _step(src: NDArray[Any], dst: NDArray[Any], arena: Arena) -> Callable[[], None]:
    if arena.src.dtype.is_float and not arena.dst.dtype.is_float:
        return _quantising(src, dst)
    return lambda: np.copyto(dst, src, casting="unsafe")


def _quantising(src: NDArray[Any], dst: NDArray[Any]) -> Callable[[], None]:
    """Round, saturate, then move: numpy has no pass that does all of it."""
    between, limits = np.empty_like(src), np.iinfo(dst.dtype)

    def run() -> None:
        np.rint(src, out=between)
        np.clip(between, limits.min, limits.max, out=between)
        np.copyto(dst, between, casting="unsafe")

    return run
