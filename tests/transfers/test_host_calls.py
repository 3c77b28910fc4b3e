"""`from_numpy` and `to_numpy`, which a kernel takes over from numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.host.oracle import pack_by_offsets
from clformats.opencl import opencl
from clformats.runtime import unified
from clformats.transfers import calls
from tests.support import random_values

DIMS = (3, 37, 7, 5)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch, engine: cf.Engine) -> list[cf.Reorder]:
    """The reorders that run; every call is large enough for one."""
    if not (engine.traits.is_cpu and unified.shares_host_memory(engine.device)):
        pytest.skip("the device does not work in the host's memory")
    made: list[cf.Reorder] = []

    def recorded(*args: Any) -> cf.Reorder:
        made.append(cf.Reorder(*args))
        return made[-1]

    monkeypatch.setattr(calls, "Reorder", recorded)
    monkeypatch.setattr(calls, "LEAST", 0)
    monkeypatch.setattr(calls, "WORTH", 0)
    monkeypatch.setattr(calls, "_moved", {})
    return made


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "u8"])
@pytest.mark.parametrize(
    "name", ["bfyx", "byxf", "b_fs_yx_fsv16", "bf8_xy16", "os_i_yxs_osv4_yxsv4"]
)
def test_a_kernel_gives_the_bytes_of_numpy(
    engine: cf.Engine, kernels: list[cf.Reorder], name: str, dtype: str
) -> None:
    array = random_values(np.random.default_rng(1), DIMS, "f32")
    turned = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for given in (array, turned):
        memory = cf.from_numpy(given, engine, format=name, dtype=dtype)
        with memory.map("r") as flat:
            assert flat.tobytes() == pack_by_offsets(given, memory.desc).tobytes()
        assert cf.to_numpy(memory).tobytes() == memory.numpy().tobytes()
    assert len(kernels) == 4


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.arange(24, dtype=np.int16).reshape(2, 3, 4), "u8"),
        (np.arange(48, dtype=np.float32).reshape(2, 3, 8)[..., ::2], None),
        (np.arange(24, dtype=">f4").reshape(2, 3, 4), None),
        (np.ones((2, 3, 4), bool), "f32"),
        (np.ones((2, 3, 4), np.float32), "s4"),
    ],
)
def test_what_a_kernel_cannot_read_numpy_does(
    engine: cf.Engine, kernels: list[cf.Reorder], array: Any, dtype: str | None
) -> None:
    memory = cf.from_numpy(array, engine, dtype=dtype)
    assert (memory.numpy() == array.astype(memory.desc.dtype.numpy)).all()
    assert not kernels


def test_parts_of_tensors_come_back(engine: cf.Engine, kernels: list[cf.Reorder]) -> None:
    array = random_values(np.random.default_rng(2), DIMS, "f32")
    memory = cf.from_numpy(array, engine, format="b_fs_yx_fsv16")
    part = memory.submemory((2, 16, 7, 5), (1, 16, 0, 0))
    assert (cf.to_numpy(part) == array[1:, 16:32]).all()
    over = cf.from_host(array, engine)
    assert (cf.to_numpy(over) == array).all()
    assert len(kernels) >= 2


def test_numpy_moves_until_a_kernel_pays(
    engine: cf.Engine, kernels: list[cf.Reorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.ones((16, 16), np.float32)
    monkeypatch.setattr(calls, "WORTH", 3 * 2 * array.nbytes)
    for number in range(5):
        cf.from_numpy(array, engine, format="ba")
        assert len(kernels) == max(0, number - 2)
    monkeypatch.setattr(calls, "LEAST", array.nbytes + 1)
    cf.from_numpy(array, engine, format="ba")
    assert len(kernels) == 2


def test_commands_on_the_same_queue_come_first(
    engine: cf.Engine, kernels: list[cf.Reorder]
) -> None:
    """As a mapping waits for them, though the library does not know of them."""
    cl = opencl()
    memory = cf.Memory(cf.MemoryDesc((64, 1024), "f32", "ba"), engine)
    for queue, stream in ((engine.queue, None), ((s := cf.Stream(engine)).queue, s)):
        for value in (3, 4):
            cl.enqueue_fill_buffer(queue, memory.buffer, np.float32(value), 0, memory.nbytes)
            assert (cf.to_numpy(memory, stream=stream) == value).all()
    assert len(kernels) == 4


def test_mapped_memory_is_refused(engine: cf.Engine, kernels: list[cf.Reorder]) -> None:
    memory = cf.from_numpy(np.ones((4, 4), np.float32), engine)
    with memory.map("r"), pytest.raises(cf.MappedError, match="cannot map it"):
        cf.to_numpy(memory)
    del kernels


def test_what_is_counted_is_forgotten_in_time(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may move between any number of descriptors."""
    monkeypatch.setattr(calls, "KEPT", 3)
    monkeypatch.setattr(calls, "_moved", {})
    for n in range(1, 9):
        desc = cf.MemoryDesc((n,), "f32")
        calls._comes_often(engine, desc, desc)
        assert len(calls._moved[engine]) <= 3
