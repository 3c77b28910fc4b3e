"""torch, where it is installed: permuted views and copy_, on the host or on a GPU (`cuda`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import clformats as cf

from ..arena import Bytes, Data, NotComparableError
from .views import View, views

_TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "s8": "int8", "u8": "uint8",
          "s32": "int32", "f64": "float64"}  # fmt: skip


def version() -> str:
    """The installed version, or the empty string."""
    return str(import_module("torch").__version__) if find_spec("torch") else ""


def move(arena: Data) -> Callable[[], None]:
    """The case as torch does it on the host, from and to the arena's memory."""
    if not find_spec("torch"):
        raise NotComparableError("torch is not installed")
    return _moves(import_module("torch"), arena, "cpu")[0]


def on_device(torch: Any, arena: Data) -> tuple[Callable[[], None], Any]:
    """The case between tensors of its own on the GPU, without a wait; and the one it writes."""
    return _moves(torch, arena, "cuda")


def _moves(torch: Any, arena: Data, where: str) -> tuple[Callable[[], None], Any]:
    read, written = (
        _flat(torch, data, desc, where)
        for data, desc in ((arena.read, arena.src), (arena.written, arena.dst))
    )
    pairs = [
        (_view(torch, read, one), _view(torch, written, other))
        for one, other in views(arena.src, arena.dst)
    ]
    return _runner(torch, pairs, arena), written


def _flat(torch: Any, data: Bytes, desc: cf.MemoryDesc, where: str) -> Any:
    if desc.dtype.name not in _TYPES:
        raise NotComparableError(f"torch has no {desc.dtype}")
    size = data.size // desc.dtype.nbytes * desc.dtype.nbytes
    tensor = torch.from_numpy(data[:size].view(np.uint8))
    return tensor.view(getattr(torch, _TYPES[desc.dtype.name])).to(where)


def _view(torch: Any, flat: Any, view: View) -> Any:
    return torch.as_strided(flat, view.shape, view.strides, view.offset)


def _runner(torch: Any, pairs: list[Any], arena: Data) -> Callable[[], None]:
    step = _quantise if arena.src.dtype.is_float and not arena.dst.dtype.is_float else _copy

    def run() -> None:
        for src, dst in pairs:
            step(torch, src, dst)

    return run


def _copy(torch: Any, src: Any, dst: Any) -> None:
    del torch
    dst.copy_(src)


def _quantise(torch: Any, src: Any, dst: Any) -> None:
    """Round, saturate, then move: torch has no pass that does all of it."""
    limits = torch.iinfo(dst.dtype)
    dst.copy_(torch.round(src).clamp_(limits.min, limits.max))
