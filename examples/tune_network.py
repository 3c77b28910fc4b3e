"""Tune the convolutions of `plan_network.py` with kernel_tuner, then plan the network with them.

For each convolution kernel_tuner tries how many pixels a work-item computes and how wide a
work-group is; what is fastest in blocks of 8 channels is then used in all formats. Formats are left
to the plan, which knows what reorders cost. Needs `pip install 'clformats[tune]'`:

    python examples/tune_network.py                a small network
    python examples/tune_network.py squeezenet     a light model of the package onnx
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import plan_network  # type: ignore[import-not-found]  # beside this script
import pyopencl
from kernel_tuner import tune_kernel

import clformats as cf

BLOCKED = "b_fs_yx_fsv8"
TUNABLE = {"width": [1, 2, 4], "block_size_x": [1, 4, 16]}


def tune(node: cf.Node, engine: cf.Engine, iterations: int = 5) -> Any:
    """The fastest setting of a convolution."""
    formats = (BLOCKED, plan_network.FORMATS[BLOCKED], "a", BLOCKED)
    values = (*node.inputs, *node.outputs)
    descs = [v.desc(f) for v, f in zip(values, formats, strict=True)]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(d.nbytes // 4, np.float32) for d in descs]

    def source(setting: dict[str, int]) -> str:
        return str(plan_network.source(node, descs, as_setting(setting))[1])

    def threads(setting: dict[str, int]) -> tuple[int, ...]:
        wanted: tuple[int, ...] = plan_network.threads(
            "convolution", descs[-1], as_setting(setting)
        )
        return wanted

    platform = engine.device.platform
    results, _ = tune_kernel(
        "convolution", source, threads, arrays, TUNABLE, grid_div_x=["block_size_x"], lang="opencl",
        platform=pyopencl.get_platforms().index(platform),
        device=platform.get_devices().index(engine.device), iterations=iterations, quiet=True,
    )  # fmt: skip
    return as_setting(min(results, key=lambda r: float(r["time"])))


def as_setting(configuration: dict[str, int]) -> Any:
    """A configuration of kernel_tuner's as `plan_network.py` takes it."""
    return plan_network.Setting(configuration["width"], configuration["block_size_x"])


def main(words: Sequence[str]) -> None:
    """Tune each convolution that is different, then plan and run."""
    net = plan_network.light(words[0])[0] if words else plan_network.small()
    engine = cf.Engine()
    for node in net.nodes.values():
        name = plan_network.problem(node) if node.op == "Conv" else None
        if name and name not in plan_network.tuned:
            plan_network.tuned[name] = tune(node, engine)
            width, group = plan_network.tuned[name]
            print(f"{node.name}: {width} pixels to a work-item, work-groups {group} wide")
    plan_network.main(words)


if __name__ == "__main__":
    main(sys.argv[1:])
