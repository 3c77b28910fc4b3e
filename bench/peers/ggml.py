"""ggml's C code (the wheel libggml-python), in two threads, and gguf's numpy: where installed.

ggml converts between records and rows of f32. Rows of f16 take a second step of its own:
pieces that stay in the cache go through f32, by the vector code that it has for this.
"""

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
Call = Callable[[], Array]
"""Gives the result of a conversion."""
Rows = Callable[[Array, Array], None]
"""Writes the rows of the second array from those of the first."""
_POOL = ThreadPoolExecutor(2)
_PIECE = 1 << 17
"""Values that go through f32 at a time: half a megabyte."""


@cache
def _library(name: str) -> ctypes.CDLL | None:
    spec = find_spec("libggml")
    if spec is None or not spec.origin:
        return None
    found = sorted((Path(spec.origin).parent / "lib64").glob(f"lib{name}.*"))
    try:
        return ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL) if found else None
    except OSError:
        return None


@cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL] | None:
    """The one that decodes, and the one that encodes and has vector code."""
    base, cpu = _library("ggml-base"), _library("ggml-cpu")
    if base is None or cpu is None:
        return None
    cpu.ggml_cpu_init()
    return base, cpu


def missing() -> str:
    """What must be installed for all of them to take part; empty where nothing is missing."""
    wanted = {"libggml-python": _libraries() is not None, "gguf": find_spec("gguf") is not None}
    names = " ".join(name for name, there in wanted.items() if not there)
    return f"peers are missing: pip install {names}" if names else ""


def calls(src: Any, dst: Any, raw: Array) -> dict[str, Call]:
    """What of them does the same: between GGUF's records and rows of f32 or f16."""
    decodes = str(src.format) == "gguf"
    records, rows = (src, dst) if decodes else (dst, src)
    is_rows = str(rows.dtype) in ("f16", "f32") and str(rows.format) == "ab"
    if str(records.format) != "gguf" or not is_rows:
        return {}
    made = np.zeros(dst.nbytes, np.uint8)
    data, flat = (raw, made) if decodes else (made, raw)
    data, numbers = data.reshape(rows.dims[0], -1), flat.view(rows.dtype.numpy).reshape(rows.dims)
    read, written = (data, numbers) if decodes else (numbers, data)
    found: dict[str, Call] = {}
    convert = _converter(str(records.dtype), numbers, decodes=decodes)
    if convert:
        found["ggml C"] = _in_two(convert, read, written)
    if find_spec("gguf"):
        found |= _numpy(str(records.dtype), data, numbers, decodes=decodes)
    return found


_CASTS = {True: "fp32_to_fp16", False: "fp16_to_fp32"}
"""ggml's vector code between f32 and f16, by whether it decodes."""


def _converter(name: str, numbers: Array, *, decodes: bool) -> Rows | None:
    """What converts rows of a type; None where ggml has no such function."""
    function = f"dequantize_row_{name}" if decodes else f"quantize_row_{name}"
    libraries = _libraries()
    if libraries is None or not hasattr(libraries[not decodes], function):
        return None
    rows = _rows(getattr(libraries[not decodes], function), numbers.shape[1])
    if numbers.dtype == np.float32:
        return rows
    cast = _rows(getattr(libraries[1], f"ggml_cpu_{_CASTS[decodes]}"), numbers.shape[1])
    return _in_pieces(*((rows, cast) if decodes else (cast, rows)), numbers.shape[1])


def _rows(function: Any, k: int) -> Rows:
    def call(read: Array, written: Array) -> None:
        at = [ctypes.c_void_p(a.ctypes.data) for a in (read, written)]
        function(*at, ctypes.c_int64(len(read) * k))

    return call


def _in_pieces(first: Rows, second: Rows, k: int) -> Rows:
    """Both, by pieces of rows through f32."""
    step = max(1, _PIECE // k)

    def call(read: Array, written: Array) -> None:
        between = np.empty((step, k), np.float32)
        for row in range(0, len(read), step):
            rows = slice(row, min(row + step, len(read)))
            piece = between[: rows.stop - row]
            first(read[rows], piece)
            second(piece, written[rows])

    return call


def _in_two(rows: Rows, read: Array, written: Array) -> Call:
    half = len(read) // 2
    parts = (slice(half), slice(half, None))

    def run() -> Array:
        list(_POOL.map(lambda part: rows(read[part], written[part]), parts))
        return written

    return run


def _numpy(name: str, data: Array, numbers: Array, *, decodes: bool) -> dict[str, Call]:
    from gguf import GGMLQuantizationType, quants

    kind = getattr(GGMLQuantizationType, name.upper(), None) or getattr(
        GGMLQuantizationType, name, None
    )
    if kind is None:
        return {}

    def decode(rows: Array) -> Array:
        return quants.dequantize(rows, kind).astype(numbers.dtype, copy=False)

    def encode(rows: Array) -> Array:
        return quants.quantize(rows.astype(np.float32, copy=False), kind)

    convert, read = (decode, data) if decodes else (encode, numbers)
    try:
        convert(read[:1])
    except NotImplementedError:
        return {}
    return {"gguf numpy": lambda: convert(read)}
