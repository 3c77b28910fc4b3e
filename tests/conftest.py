"""One engine and stream for all device tests; CLFORMATS_TEST_DEVICE names another device."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace

import pytest

import clformats as cf


@pytest.fixture(scope="session", autouse=True)
def _no_records_of_the_user() -> Iterator[None]:
    """What was tuned on this machine must not change what is tested."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CLFORMATS_TUNED"] = folder
        yield


@pytest.fixture(scope="session")
def engine() -> cf.Engine:
    return cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl"))


@pytest.fixture(scope="session")
def stream(engine: cf.Engine) -> cf.Stream:
    return cf.Stream(engine)


@pytest.fixture(scope="session")
def as_gpu(engine: cf.Engine) -> cf.Stream:
    """A stream of the same device, for which kernels are planned as if for a GPU.

    One without sub-groups: what those add has tests of its own.
    """
    other = cf.Engine(device=engine.device)
    other.__dict__["traits"] = replace(engine.traits, is_cpu=False, subgroup_bytes=())
    return cf.Stream(other)


@pytest.fixture(scope="session", params=["itself", "gpu"])
def every_stream(request: pytest.FixtureRequest, stream: cf.Stream, as_gpu: cf.Stream) -> cf.Stream:
    """One that plans for the device as it is, and one that plans as if for a GPU."""
    return as_gpu if request.param == "gpu" else stream
