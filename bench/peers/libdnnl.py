"""oneDNN 2.6 as a contestant: its reorder on the same cores, from and to the same memory.

It gets the descriptor's numbers, not a tag: it has none for some formats that it can reorder.
"""

from __future__ import annotations

from collections.abc import Callable

import clformats as cf

from ..arena import Arena, NotComparableError
from . import onednn


def move(arena: Arena) -> tuple[Callable[[], None], str]:
    """The case as oneDNN does it, and the name of the implementation that it chose."""
    reason = "the device is no CPU" if not arena.on_host else onednn.available()
    if reason:
        raise NotComparableError(reason)
    fallback_kernel = "bf16" if arena.src.dtype.name == arena.dst.dtype.name == "f16" else ""
    try:
        src, dst = (_desc(d, fallback_kernel or d.dtype.name) for d in (arena.src, arena.dst))
        reorder = onednn.Reorder(src, dst)
    except onednn.Status as refusal:
        raise NotComparableError(f"oneDNN refuses: {refusal.name}") from refusal
    reorder.bind(arena.read, arena.written)
    return reorder.run, f"{reorder.impl}{', as bf16' if fallback_kernel else ''}"


def _desc(desc: cf.MemoryDesc, dtype: str) -> onednn.Desc:
    if dtype not in onednn.DTYPES:
        raise NotComparableError(f"oneDNN 2.6 has no {dtype}")
    raw = onednn.MemoryDesc(ndims=desc.ndims, format_kind=onednn.KINDS.index("blocked"))
    raw.data_type = onednn.DTYPES.index(dtype)
    raw.dims[: desc.ndims] = desc.dims
    raw.padded_dims[: desc.ndims] = desc.padded_dims
    raw.blocking.strides[: desc.ndims] = desc.strides
    raw.blocking.inner_nblks = len(desc.inner_blks)
    raw.blocking.inner_blks[: len(desc.inner_blks)] = desc.inner_blks
    raw.blocking.inner_idxs[: len(desc.inner_idxs)] = desc.inner_idxs
    return onednn.Desc(raw)
