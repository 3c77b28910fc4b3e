"""Plan a network, and write it for a program without Python.

A photo, bytes in nhwc as cameras give them, becomes f16 in an engine's blocks of 16 channels, runs
through the planned network of `plan_network.py`, and comes out in plain f32:

    python examples/export_network.py small net          a small one, compared with numpy
    python examples/export_network.py squeezenet net     the light model of the package onnx
    cc -Inet examples/run_network.c net/clformats.c -lOpenCL -o run_network
    ./run_network net net/photo.bin result.bin           no Python any more
    cmp result.bin net/result.bin

A third word is a text in the name of a platform. In the folder are a photo of random bytes, and
what comes out, for the comparison.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import plan_network as network  # type: ignore[import-not-found]  # beside this script

import clformats as cf


def main(words: Sequence[str]) -> None:
    """Plan, record, replay, export."""
    name, folder = words[0], Path(words[1])
    net = network.small() if name == "small" else network.light(name)[0]
    (given,) = net.inputs
    net.fix(given, "bfyx")
    engine = cf.Engine(words[2] if len(words) > 2 else None)
    stream, costs = cf.Stream(engine), cf.Costs()
    zeros = {given.name: np.zeros(given.dims, np.float32)}
    costs.measure_in_place(network.kernels.apply(net), stream, network.launch, zeros)
    plan = cf.propagate(net, network.kernels, reorder_cost=costs)
    schedule = plan.schedule(engine, network.launch)

    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, given.dims, np.uint8)
    photo = cf.from_numpy(pixels, engine, format="nhwc")
    half = cf.Memory(cf.MemoryDesc(given.dims, "f16", "b_fs_yx_fsv16"), engine)
    (out,) = plan.delivered
    result = cf.Memory(cf.MemoryDesc(out.dims, "f32"), engine)

    recording = cf.Recording(engine, inputs={"photo": photo}, outputs={"result": result})
    scale = cf.Attr(src_scale=1 / 64, src_zero_point=128)
    cf.Reorder(photo.desc, half.desc, engine, attr=scale)(recording, photo, half)
    schedule.record(recording, **{given.name: half, out.name: result})
    recording.replay()(stream)
    found = result.numpy()

    image = np.float16((pixels.astype(np.float32) - 128) / 64).astype(np.float32)
    wanted = network.in_numpy(net, image) if name == "small" else (
        schedule(stream, **{given.name: image})[out.name].numpy()
    )  # fmt: skip
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert error < 1e-4, error
    recording.export(folder, name="network")
    (folder / "photo.bin").write_bytes(np.ascontiguousarray(pixels.transpose(0, 2, 3, 1)).tobytes())
    (folder / "result.bin").write_bytes(found.tobytes())
    print(f"{recording}, in {folder}; largest difference {error:.1e} of the largest element")


if __name__ == "__main__":
    main(sys.argv[1:])
