"""Every public function that needs a device, called with every kind of wrong argument."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.wrong_types import answers

DESC = cf.MemoryDesc((2, 3), "f32")
TAKES = {
    "Engine.name": {"None"},
    "Engine.device": {"None"},
    "Engine.context": {"None"},
    "Stream.engine": {"None"},
    "Stream.queue": {"None"},
    "Memory.engine": {"None"},
    "Memory.buffer": {"None"},
    "Memory.allocator": {"None"},
    "Memory.set_buffer.buffer": {"None"},
    "Memory.numpy.stream": {"None"},
    "Memory.clear_padding.stream": {"None"},
    "from_array.engine": {"None"},
    "to_array.stream": {"None"},
    "from_host.array": {"array"},
    "from_host.engine": {"None"},
    "from_dlpack.tensor": {"array"},
    "from_dlpack.engine": {"None"},
    "from_dlpack.format": {"None"},
    "from_dlpack.dtype": {"None"},
    "Memory.map.stream": {"None"},
    "from_numpy.array": {"array", "list"},
    "from_numpy.engine": {"None"},
    "from_numpy.format": {"None"},
    "from_numpy.dtype": {"None"},
    "from_numpy.stream": {"None"},
    "to_numpy.stream": {"None"},
    "Reorder.engine": {"None"},
    "Reorder.family": {"None"},
    "Reorder.transform": {"None"},
    "Reorder.attr": {"None"},
    "Reorder().src_scale": {"int", "float", "list"},
    "IndexKernels.engine": {"None"},
    "IndexKernels.offsets.stream": {"None"},
    "IndexKernels.coordinates.offsets": {"int", "list"},
    "IndexKernels.coordinates.stream": {"None"},
    "IndexKernels.offset_map.stream": {"None"},
    "Map.engine": {"None"},
    "Map.family": {"None"},
    **{f"transfer.{name}": {"None"} for name in ("attr", "engine", "piece_nbytes")},
    "reorder.format": {"None"},
    "reorder.dtype": {"None"},
    "reorder.stream": {"None"},
    "reorder.transform": {"None"},
    **{f"Recording.{name}": {"None"} for name in ("engine", "inputs", "outputs")},
    "Recording.constant.content": {"array", "list"},
    "Recording.constant.format": {"None"},
    "Recording.constant.dtype": {"None"},
    "Recording.export.name": {"None", "str"},
    "Recording.export.engines": {"None"},
    "load.engine": {"None"},
    "load.variant": {"None"},
}


@pytest.fixture(scope="module")
def calls(
    engine: cf.Engine, stream: cf.Stream, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Any, dict[str, Any]]]:
    place = tmp_path_factory.mktemp("recordings")
    array = np.zeros(DESC.dims, np.float32)
    a, b = cf.Memory(DESC, engine), cf.Memory(DESC, engine)
    places = cf.IndexKernels(DESC, engine)

    recording = cf.Recording(engine, inputs={"a": a}, outputs={"b": b})
    cf.Reorder(DESC, DESC, engine)(recording, a, b)
    recording.export(place / "net")

    def scratch(memory: cf.Memory) -> None:
        recording.scratch(memory)

    def mapped(**arguments: Any) -> None:
        with a.map(**arguments):
            pass

    return {
        "Engine": (cf.Engine, {"name": None}),
        "Engine.given": (cf.Engine, {"device": engine.device, "context": engine.context}),
        "Stream": (cf.Stream, {"engine": engine, "out_of_order": False, "profiling": False,
                               "queue": None}),
        "Memory": (cf.Memory, {"desc": DESC, "engine": engine, "buffer": None}),
        "Memory.allocated": (cf.Memory, {"desc": DESC, "engine": engine, "allocator": None}),
        "Memory.submemory": (a.submemory, {"dims": (1, 3), "offsets": (1, 0)}),
        "Memory.numpy": (a.numpy, {"stream": stream}),
        "Memory.physical": (a.physical, {}),
        "Memory.clear_padding": (a.clear_padding, {"stream": stream}),
        "from_array": (cf.from_array, {"array": cf.to_array(a), "engine": engine}),
        "to_array": (cf.to_array, {"memory": a, "stream": stream}),
        "from_host": (cf.from_host, {"array": array, "engine": engine}),
        "from_dlpack": (cf.from_dlpack, {"tensor": array, "engine": engine, "format": None,
                                         "dtype": None}),
        "Memory.set_buffer": (cf.Memory(DESC, engine).set_buffer, {"buffer": None}),
        "Memory.map": (mapped, {"mode": "r", "stream": stream}),
        "from_numpy": (cf.from_numpy, {"array": array, "engine": engine, "format": None,
                                       "dtype": None, "stream": None}),
        "to_numpy": (cf.to_numpy, {"memory": a, "stream": stream}),
        "Reorder": (cf.Reorder, {"src": DESC, "dst": DESC, "engine": engine, "family": None,
                                 "transform": None, "attr": None, "tuned": True}),
        "Reorder()": (cf.Reorder(DESC, DESC, engine, attr=cf.Attr(src_scale=cf.at_execution())),
                      {"stream": stream, "src": a, "dst": b, "src_scale": 2}),
        "Stream.fill": (stream.fill, {"memory": b, "value": 0}),
        "Recording": (cf.Recording, {"engine": engine, "inputs": {}, "outputs": {}}),
        "Recording.constant": (recording.constant, {"content": array, "format": None,
                                                    "dtype": None}),
        "Recording.export": (
            partial(recording.export, place / "out"), {"name": None, "engines": []},
        ),
        "Recording.scratch": (scratch, {"memory": a}),
        "Replay()": (recording.replay(), {"stream": stream, "a": a, "b": b}),
        "load": (cf.load, {"path": place / "net", "engine": engine, "variant": None,
                           "inexact": False}),
        "IndexKernels": (cf.IndexKernels, {"desc": DESC, "engine": engine}),
        "IndexKernels.offsets": (places.offsets, {"coordinates": [[1, 2]], "stream": stream}),
        "IndexKernels.coordinates": (places.coordinates, {"offsets": [1], "stream": stream}),
        "IndexKernels.offset_map": (places.offset_map, {"stream": stream}),
        "Map": (cf.Map, {"text": "y = x * 2", "engine": engine, "family": None, "x": DESC,
                         "y": DESC}),
        "Map()": (cf.Map("y = x * 2", engine, x=DESC, y=DESC), {"stream": stream, "x": a, "y": b}),
        "transfer": (cf.transfer, {"src": array, "dst": a, "attr": None, "engine": None,
                                   "piece_nbytes": None}),
        "reorder": (cf.reorder, {"memory": a, "format": "ba", "dtype": None, "stream": stream,
                                 "transform": None}),
    }  # fmt: skip


def test_wrong_types_are_refused_on_purpose(
    calls: dict[str, tuple[Any, dict[str, Any]]], engine: cf.Engine
) -> None:
    for call, (function, right) in calls.items():
        if call == "from_host" and not engine.traits.is_cpu:
            continue  # a device with memory of its own takes none of the host's
        for parameter in right:
            wanted = TAKES.get(
                f"{call.removesuffix('.given').removesuffix('.allocated')}.{parameter}", set()
            )
            assert answers(function, right, parameter) == wanted, (call, parameter)
