"""One engine and stream for all device tests; CLFORMATS_TEST_DEVICE names another device."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

import clformats as cf


@pytest.fixture(scope="session")
def engine() -> cf.Engine:
    return cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl"))


@pytest.fixture(scope="session")
def stream(engine: cf.Engine) -> cf.Stream:
    return cf.Stream(engine)


@pytest.fixture(scope="session")
def as_gpu(engine: cf.Engine) -> cf.Stream:
    """A stream of the same device, for which kernels are planned as if it were a GPU."""
    other = cf.Engine(device=engine.device)
    other.__dict__["traits"] = replace(engine.traits, is_cpu=False)
    return cf.Stream(other)
