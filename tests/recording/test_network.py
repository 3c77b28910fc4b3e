"""A planned network as one recording: arena, constants, reorders and kernels of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.recording_support import run_in_c, runner

DIMS = (1, 20, 13, 11)
BODY = {"Scale": "X[SRC_INDEX(n, c, h, w)] * Y[B_INDEX(0, c, 0, 0)]",
        "Square": "X[SRC_INDEX(n, c, h, w)] * X[SRC_INDEX(n, c, h, w)]",
        "Sum": "X[SRC_INDEX(n, c, h, w)] + Y[B_INDEX(n, c, h, w)]"}  # fmt: skip


def launch(stream: cf.Stream, node: cf.Node, choice: cf.Choice, *memories: cf.Memory) -> Any:
    del choice
    *read, write = memories
    names = (*("SRC", "B")[: len(read)], "DST")
    text = [cf.index_source(m.desc, p) for m, p in zip(memories, names, strict=True)]
    arguments = ", ".join(f"const global float *{name}" for name in "XY"[: len(read)])
    text.append(f"""kernel void run({arguments}, global float *Z) {{
        const int w = get_global_id(0), h = get_global_id(1), c = get_global_id(2), n = 0;
        Z[DST_INDEX(n, c, h, w)] = {BODY[node.op]}; }}""")
    _, c, h, w = write.desc.dims
    kernel = stream.engine.kernel("\n".join(text), "run")
    return stream.run(kernel, (w, h, c), None, *memories, reads=read)


@pytest.fixture(scope="module")
def weights() -> Any:
    return np.random.default_rng(1).random((1, 20, 1, 1), np.float32)


@pytest.fixture(scope="module")
def schedule(engine: cf.Engine, weights: Any) -> Any:
    net = cf.Network()
    for name in ("image", "a", "b", "c"):
        net.value(name, DIMS)
    net.value("w", weights.shape, constant=weights)
    net.node("one", ["image", "w"], ["a"], "Scale")
    net.node("two", ["a"], ["b"], "Square")
    net.node("three", ["a", "b"], ["c"], "Sum")
    net.fix("image", "nhwc")
    net.fix("c", "nchw")
    kernels = cf.Kernels()
    kernels.of("Scale")(lambda _: [cf.Choice(("nhwc", "nchw"), ("nhwc",), 1e-5)])
    kernels.of("Square")(lambda _: [cf.Choice(("nChw16c",), ("nChw16c",), 1e-5)])
    kernels.of("Sum")(lambda _: [cf.Choice(("nChw16c", "nChw16c"), ("nChw16c",), 1e-5)])
    plan = cf.propagate(net, kernels, reorder_cost=lambda *_: 1e-6)
    return plan.schedule(engine, launch)


def test_a_schedule_is_recorded(
    schedule: Any, weights: Any, engine: cf.Engine, stream: cf.Stream, tmp_path: Path
) -> None:
    values = np.random.default_rng(0).random(DIMS, np.float32)
    scaled = values * weights
    direct = schedule(stream, image=values)["c"].numpy()
    assert np.allclose(direct, scaled + scaled * scaled)

    image = cf.from_numpy(values, engine)
    result = cf.Memory(cf.MemoryDesc(DIMS, "f32"), engine)
    recording = cf.Recording(engine, inputs={"image": image}, outputs={"c": result})
    schedule.record(recording)
    recording.replay()(stream)
    assert (result.numpy() == direct).all()

    recording.export(tmp_path / "net")
    again = cf.Memory(result.desc, engine)
    cf.load(tmp_path / "net", engine)(stream, image=image, c=again)
    assert (again.numpy() == direct).all()
    (tmp_path / "image").write_bytes(values.tobytes())
    words = [f"<image={tmp_path / 'image'}", f">c={tmp_path / 'c'}"]
    done = run_in_c(runner(), engine, tmp_path / "net", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "c").read_bytes() == direct.tobytes()


def test_other_names_formats_and_types(schedule: Any, engine: cf.Engine, stream: cf.Stream) -> None:
    values = np.random.default_rng(2).integers(0, 9, DIMS).astype(np.float32)
    image = cf.from_numpy(values, engine, format="nhwc", dtype="u8")
    result = cf.Memory(cf.MemoryDesc(DIMS, "f32", "nChw8c"), engine)
    recording = cf.Recording(engine, inputs={"photo": image}, outputs={"sum": result})
    with pytest.raises(cf.InvalidNetwork, match="expected memory objects for image, c"):
        schedule.record(recording)
    with pytest.raises(cf.InvalidNetwork, match="got image, c, d"):
        schedule.record(recording, image=image, c=result, d=result)
    schedule.record(recording, image=image, c=result)
    recording.replay()(stream)
    assert (result.numpy() == schedule(stream, image=values)["c"].numpy()).all()


def test_a_launch_on_the_queue_is_refused(schedule: Any, engine: cf.Engine) -> None:
    plan = schedule.plan
    on_queue = plan.schedule(engine, lambda stream, *_: stream.queue)
    memory = cf.Memory(cf.MemoryDesc(DIMS, "f32"), engine)
    recording = cf.Recording(engine, inputs={"image": memory})
    with pytest.raises(cf.Unsupported, match="has no queue"):
        on_queue.record(recording, c=cf.Memory(memory.desc, engine))
