"""Source for kernels that read and write pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import clformats as cf

pytestmark = [pytest.mark.device]

D = cf.MemoryDesc
KINDS = {2: "image1d_buffer_t", 3: "image2d_t", 4: "image2d_array_t"}
DOUBLE = """
__kernel void twice(__read_only {kind} src, __write_only {kind} dst{parameters})
{{
    const int k = get_global_id(0);
    const int x = k % X, y = k / X % Y, f = k / X / Y % F, b = k / X / Y / F;
    DST_STORE_PIXEL(SRC_PIXEL(src, {at}) * 2.0f, dst, {at});
}}
"""
CASES = [
    ("nh|Cw|4c", "f32", (2, 7, 3, 5)),
    ("nh|Cw|4c", "u8", (2, 7, 3, 5)),
    ("nh|Cw|4c", "s8", (2, 7, 3, 5)),
    ("C|h|wn|4c", "f32", (2, 7, 3, 5)),
    ("Chwn|4c", "s32", (2, 7, 3, 5)),
    ("h|wn|c", "f32", (2, 4, 3, 5)),
    ("(n h)/4 | c w | (n h)%4", "f32", (3, 2, 3, 5)),
    ("n ~h | c/4 w | c%4", "f32", (2, 7, 3, 5)),
    ("image_2d_rgba", "u8", (1, 3, 3, 5)),
]  # fmt: skip


def ran(desc: D, source: str, engine: cf.Engine, sizes: tuple[int, ...] = ()) -> Any:
    """The tensor doubled by a kernel that was written with the source, and the raw pixels."""
    letters = desc.format.dims
    at = ", ".join("bfyx"[k] for k, _ in enumerate(letters))
    macros = "".join(f"#define {c} {n}\n" for c, n in zip("BFYX", desc.dims, strict=True))
    parameters = ", SRC_PARAMETERS" if sizes else ""
    body = DOUBLE.format(kind=KINDS[len(desc.image_shape or ())], at=at, parameters=parameters)
    program = cl.Program(engine.context, source + macros + body).build()
    array = (np.arange(desc.nelems) % 50 + 1).astype(desc.dtype.numpy).reshape(desc.dims)
    src, dst = cf.from_numpy(array, engine, format=desc.format), cf.Memory(desc, engine)
    with dst.map("w") as flat:
        flat.view(np.uint8)[:] = 0x3C
    extra = [np.uint32(n) for n in sizes]
    program.twice(engine.queue, (desc.nelems,), None, src.buffer, dst.buffer, *extra)
    with dst.map("r") as flat:
        pixels = np.array(flat)
    return array, pixels


@pytest.mark.parametrize(("name", "dtype", "dims"), CASES)
def test_every_pixel_is_read_and_written(
    name: str, dtype: str, dims: tuple[int, ...], engine: cf.Engine
) -> None:
    desc = D(dims, dtype, name)
    source = cf.index_source(desc, "SRC") + cf.index_source(desc, "DST")
    array, pixels = ran(desc, source, engine)
    assert np.array_equal(pixels, cf.pack(2 * array, desc))


def test_sizes_from_arguments(engine: cf.Engine) -> None:
    desc = D((2, 7, 3, 5), "f32", "nh|Cw|4c")
    source = cf.index_source("nh|Cw|4c", "SRC", sizes="arguments")
    source += "#define DST_STORE_PIXEL SRC_STORE_PIXEL\n"
    array, pixels = ran(desc, source, engine, desc.dims)
    assert np.array_equal(pixels, cf.pack(2 * array, desc))


def test_a_buffer_has_no_pixels() -> None:
    assert "PIXEL" not in cf.index_source(D((2, 7, 3, 5), "f32", "nhCw4c"))
