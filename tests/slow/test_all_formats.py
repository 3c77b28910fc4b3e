"""On the device, every listed structure: plain to the format and back, to the byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

import clformats as cf
from tests.device_support import check_reorder
from tests.reorders.test_reorder import STRUCTURES, check_both_ways
from tests.support import whole_dims


@pytest.mark.parametrize("fmt", STRUCTURES, ids=str)
def test_both_ways(fmt: cf.Format, stream: cf.Stream) -> None:
    check_both_ways(fmt, stream)


@pytest.mark.parametrize("fmt", STRUCTURES, ids=str)
def test_both_ways_with_whole_blocks(fmt: cf.Format, stream: cf.Stream, engine: cf.Engine) -> None:
    """Nothing is padded: what has no edges is moved otherwise, in spans and woven words too."""
    large = cf.Engine(device=engine.device, context=engine.context)
    large.traits = replace(engine.traits, streamed_bytes=0)
    dims = whole_dims(fmt)
    for dtype, other in (("s8", cf.Stream(large)), ("f16", stream)):
        plain, blocked = (cf.MemoryDesc(dims, dtype, *rest) for rest in ((), (fmt,)))
        check_reorder(plain, blocked, other)
        check_reorder(blocked, plain, other)


@pytest.mark.parametrize("fmt", STRUCTURES, ids=str)
def test_both_ways_as_on_a_gpu(fmt: cf.Format, as_gpu: cf.Stream) -> None:
    """Some with vectors and words, some where nothing is aligned."""
    check_both_ways(fmt, as_gpu, front=len(fmt.name) % 2)
