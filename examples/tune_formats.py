"""Which format is a kernel of mine fastest in? kernel_tuner answers, with formats as a tunable.

The kernel is `convolution.cl`, which runs in any formats; kernel_tuner tries it in three
combinations of them, with work-groups of several widths. Needs `pip install 'clformats[tune]'`:

    python examples/tune_formats.py
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyopencl
from convolution import (  # type: ignore[import-not-found]  # beside this script
    FORMATS,
    convolve,
    descriptors,
    in_numpy,
    source,
)
from kernel_tuner import tune_kernel

import clformats as cf

WIDTHS = [8, 16, 32]


def tune(image: Any, filters: Any, stream: cf.Stream, iterations: int = 7) -> dict[str, Any]:
    """The fastest configuration: `formats`, `block_size_x` and `time` in milliseconds."""
    combinations = {"/".join(pair): pair for pair in FORMATS}
    sized = {name: descriptors(image, filters, *pair) for name, pair in combinations.items()}
    # One set of buffers for all formats: as large as the largest of each tensor.
    most = [max(descs[k].nbytes for descs in sized.values()) // 4 for k in range(3)]
    buffers = [np.zeros(n, np.float32) for n in most]
    problem = (image.shape[3], image.shape[2], -(-len(filters) // 8) * len(image))
    platform = stream.engine.device.platform
    results, _ = tune_kernel(
        "convolution",
        lambda configuration: source(sized[configuration["formats"]]),
        problem,
        buffers,
        {"formats": list(combinations), "block_size_x": WIDTHS},
        lang="opencl",
        platform=pyopencl.get_platforms().index(platform),
        device=platform.get_devices().index(stream.engine.device),
        iterations=iterations,
        quiet=True,
    )
    return min(results, key=lambda r: float(r["time"]))


def main(arguments: list[str]) -> None:
    """Tune, then run the winner and compare it with numpy."""
    size = int(arguments[0]) if arguments else 64
    stream = cf.Stream(cf.Engine())
    rng = np.random.default_rng(0)
    image = rng.standard_normal((1, 32, size, size), np.float32)
    filters = rng.standard_normal((32, 32, 3, 3), np.float32)
    best = tune(image, filters, stream)
    print(f"fastest: {best['formats']}, work-groups {best['block_size_x']} wide")
    print(f"{best['time']:.3f} ms on {stream.engine.device.name}")
    data, weights = best["formats"].split("/")
    got = convolve(image, filters, (data, weights), stream)
    assert np.abs(got - in_numpy(image, filters)).max() < 1e-3


if __name__ == "__main__":
    main(sys.argv[1:])
