"""ggml's C code (the wheel libggml-python), in two threads, and gguf's numpy: where installed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Call = Callable[[], object]
_POOL = ThreadPoolExecutor(2)


@cache
def _library() -> ctypes.CDLL | None:
    spec = find_spec("libggml")
    if spec is None or not spec.origin:
        return None
    found = list((Path(spec.origin).parent / "lib64").glob("libggml-base.*"))
    try:
        return ctypes.CDLL(str(found[0])) if found else None
    except OSError:
        return None


def missing() -> str:
    """What must be installed for all of them to take part; empty where nothing is missing."""
    wanted = {"libggml-python": _library() is not None, "gguf": find_spec("gguf") is not None}
    names = " ".join(name for name, there in wanted.items() if not there)
    return f"peers are missing: pip install {names}" if names else ""


def calls(src: Any, dst: Any, raw: Array) -> dict[str, Call]:
    """What of them does the same: between GGUF's records and rows of f32, for f16 as well."""
    records, rows = (src, dst) if str(src.format) == "gguf" else (dst, src)
    is_rows = str(rows.dtype) in ("f16", "f32") and str(rows.format) == "ab"
    if str(records.format) != "gguf" or not is_rows:
        return {}
    name, (n, k) = str(records.dtype), records.dims
    found: dict[str, Call] = {}
    numbers: Array = np.zeros((n, k), np.float32)
    if records is dst:
        numbers = raw.view(rows.dtype.numpy).reshape(n, k).astype(np.float32)
    data: Array = raw if records is src else np.zeros(records.nbytes, np.uint8)
    function = f"dequantize_row_{name}" if records is src else f"quantize_row_{name}_ref"
    library = _library()
    if library is not None and hasattr(library, function):
        own = data.reshape(n, -1)
        read, written = (own, numbers) if records is src else (numbers, own)
        found["ggml C"] = _in_two(getattr(library, function), read, written, k)
    if find_spec("gguf"):
        found |= _numpy(name, data.reshape(n, -1), numbers, decodes=records is src)
    return found


def _in_two(function: Any, read: Array, written: Array, k: int) -> Call:
    half = len(read) // 2

    def part(first: int, count: int) -> None:
        at = [ctypes.c_void_p(a.ctypes.data + first * a.strides[0]) for a in (read, written)]
        function(*at, ctypes.c_int64(count * k))

    def run() -> object:
        return list(_POOL.map(part, (0, half), (half, len(read) - half)))

    return run


def _numpy(name: str, data: Array, numbers: Array, *, decodes: bool) -> dict[str, Call]:
    from gguf import GGMLQuantizationType, quants

    kind = getattr(GGMLQuantizationType, name.upper(), None) or getattr(
        GGMLQuantizationType, name, None
    )
    if kind is None:
        return {}
    try:
        if decodes:
            quants.dequantize(data[:1], kind)
            return {"gguf numpy": lambda: quants.dequantize(data, kind)}
        quants.quantize(numbers[:1], kind)
    except NotImplementedError:
        return {}
    return {"gguf numpy": lambda: quants.quantize(numbers, kind)}
