"""A convolution kernel that is written once and runs in any formats.

`convolution.cl` asks the index sources of its three tensors where elements lie. Here it runs with a
filter of 1x1 and one of 3x3, in three combinations of formats, and is compared with numpy:

    python examples/convolution.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import clformats as cf

KERNEL = Path(__file__).with_name("convolution.cl")
FORMATS = [
    ("bfyx", "oiyx"),
    ("byxf", "yxio"),
    ("b_fs_yx_fsv16", "os_is_yx_isv16_osv16"),
]
Descs = tuple[cf.MemoryDesc, cf.MemoryDesc, cf.MemoryDesc]


def descriptors(image: Any, filters: Any, data_format: str, weights_format: str) -> Descs:
    """Input, weights and output of a convolution that keeps height and width."""
    batch, _, height, width = image.shape
    return (
        cf.MemoryDesc(image.shape, "f32", data_format),
        cf.MemoryDesc(filters.shape, "f32", weights_format),
        cf.MemoryDesc((batch, len(filters), height, width), "f32", data_format),
    )


def source(descs: Descs) -> str:
    """The kernel with the index sources that it stands on."""
    src, weights, dst = descs
    return "\n".join([
        f"#define BORDER {weights.dims[-1] // 2}",
        cf.index_source(src, "SRC"),
        cf.index_source(weights, "WEIGHTS", vector="o8"),
        cf.index_source(dst, "DST", vector="f8"),
        KERNEL.read_text(encoding="ascii"),
    ])  # fmt: skip


def convolve(image: Any, filters: Any, formats: tuple[str, str], stream: cf.Stream) -> Any:
    """The convolution on a device, with both tensors in the formats of one combination."""
    descs = descriptors(image, filters, *formats)
    engine = stream.engine
    src = cf.from_numpy(image, engine, format=formats[0])
    weights = cf.from_numpy(filters, engine, format=formats[1])
    dst = cf.Memory(descs[2], engine)
    kernel = engine.kernel(source(descs), "convolution")
    batch, channels, height, width = dst.desc.dims
    threads = (width, height, -(-channels // 8) * batch)
    stream.run(kernel, threads, None, src, weights, dst, reads=[src, weights])
    return cf.to_numpy(dst, stream=stream)


def in_numpy(image: Any, filters: Any) -> Any:
    """The same in numpy."""
    border = filters.shape[-1] // 2
    padded = np.pad(image, [(0, 0), (0, 0), (border, border), (border, border)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[2:], axis=(2, 3))
    return np.einsum("bihwyx,oiyx->bohw", windows, filters)


def main() -> None:
    """Run every combination and compare."""
    stream = cf.Stream(cf.Engine())
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 19, 13, 11), np.float32)
    for size in (1, 3):
        filters = rng.standard_normal((21, 19, size, size), np.float32)
        wanted = in_numpy(image, filters)
        for formats in FORMATS:
            got = convolve(image, filters, formats, stream)
            error = float(np.abs(got - wanted).max())
            assert error < 1e-3, f"{formats}: {error}"
            print(f"{size}x{size}  {' and '.join(formats):40} largest difference {error:.1e}")


if __name__ == "__main__":
    main()
