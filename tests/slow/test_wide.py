"""Reorders whose offsets need 64 bits, run for real: each 2.5 GB of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.support import random_values

D = cf.MemoryDesc
FAR = 2**31 + 12345
CHUNK = 1 << 28


def memory(desc: D, engine: cf.Engine) -> cf.Memory:
    """A memory object of zeros; skips where the device cannot have one of this size."""
    most = engine.device.max_mem_alloc_size
    if desc.span_nbytes > most:
        pytest.skip(f"{desc} needs {desc.span_nbytes} bytes, {engine} allocates {most} at once")
    try:
        result = cf.Memory(desc, engine)
    except cf.DeviceError as error:
        pytest.skip(f"{desc} does not fit on {engine}: {error}")
    return result


def filled(array: Any, desc: D, engine: cf.Engine) -> cf.Memory:
    result = memory(desc, engine)
    with result.map("rw") as flat:
        flat[desc.offsets()] = array
    return result


def run(source: cf.Memory, target: cf.Memory, family: str, stream: cf.Stream) -> None:
    asked = "generic" if family == "generic" else None
    reorder = cf.Reorder(source.desc, target.desc, stream.engine, family=asked)
    assert reorder.plan.family == family
    assert reorder.plan.problem.is_wide
    reorder(stream, source, target).wait()


@pytest.mark.parametrize("family", [None, "generic"])
def test_one_value_repeated(family: str | None, stream: cf.Stream) -> None:
    """A source of one byte, a destination of more than 2**31 elements."""
    source = memory(D((FAR,), "u8", strides=(0,)), stream.engine)
    with source.map("w") as flat:
        flat[:] = 171
    target = memory(D((FAR,), "u8"), stream.engine)
    reorder = cf.Reorder(source.desc, target.desc, stream.engine, family=family)
    assert reorder.plan.problem.is_wide
    reorder(stream, source, target).wait()
    with target.map("r") as flat:
        assert flat.size == FAR
        for at in range(0, FAR, CHUNK):
            assert (flat[at : at + CHUNK] == 171).all(), at


def test_a_run_ends_below_the_widest_number(stream: cf.Stream) -> None:
    """As many bytes as 32 bits count, and no words: the end of the last run does not overflow."""
    desc = D((2**31 - 2**16 - 1,), "u8")
    source, target = memory(desc, stream.engine), memory(desc, stream.engine)
    with source.map("w") as flat:
        flat[:] = 171
    reorder = cf.Reorder(desc, desc, stream.engine)
    assert reorder.plan.family == "scheduled"
    assert not reorder.plan.problem.is_wide
    reorder(stream, source, target).wait()
    with target.map("r") as flat:
        for at in range(0, flat.size, CHUNK):
            assert (flat[at : at + CHUNK] == 171).all(), at


STEP = 2**27 + 2**20  # of which 16 are more than 2**31
FAR_CASES = [
    ("scheduled", "byxf", (2, 17, 5, 7), (35, STEP, 7, 1)),
    ("scheduled", "b_fs_yx_fsv16", (17, 19, 5, 7), (STEP, 35, 7, 1)),
    ("scheduled", "bfyx", (17, 3, 5, 7), (STEP, 1, 21, 3)),
    ("generic", "b_fs_yx_fsv16", (17, 19, 5, 7), (STEP, 35, 7, 1)),
]


@pytest.mark.parametrize(("family", "near", "dims", "strides"), FAR_CASES)
def test_far_apart(
    family: str, near: str, dims: tuple[int, ...], strides: tuple[int, ...], stream: cf.Stream
) -> None:
    """Parts of a tensor gigabytes apart, written and then read; nothing between is touched."""
    small, far = D(dims, "u8", near), D(dims, "u8", strides=strides)
    array = random_values(np.random.default_rng(4), dims, "u8") | np.uint8(1)
    target = memory(far, stream.engine)
    run(filled(array, small, stream.engine), target, family, stream)
    with target.map("r") as flat:
        assert (flat[far.offsets()] == array).all()
        count = sum(np.count_nonzero(flat[k : k + CHUNK]) for k in range(0, flat.size, CHUNK))
        assert count == array.size
    back = memory(small, stream.engine)
    run(target, back, family, stream)
    assert (cf.to_numpy(back) == array).all()
