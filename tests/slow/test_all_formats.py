"""On the device, every listed structure: plain to the format and back, to the byte."""

from __future__ import annotations

import pytest

import clformats as cf
from tests.device.test_reorder import STRUCTURES, check_both_ways


@pytest.mark.parametrize("fmt", STRUCTURES, ids=str)
def test_both_ways(fmt: cf.Format, stream: cf.Stream) -> None:
    check_both_ways(fmt, stream)


@pytest.mark.parametrize("fmt", STRUCTURES, ids=str)
def test_both_ways_as_on_a_gpu(fmt: cf.Format, as_gpu: cf.Stream) -> None:
    """Some with vectors and words, some where nothing is aligned."""
    check_both_ways(fmt, as_gpu, front=len(fmt.name) % 2)
