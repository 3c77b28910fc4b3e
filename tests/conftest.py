"""One engine and stream for all device tests; CLFORMATS_TEST_DEVICE names another device.

Tests that need a device carry the marker ``device``; ``-m "not device and not slow"`` runs others.
``pytestmark = pytest.mark.sampled(4)`` leaves one case of four of each test in the fast tier, the
same ones in each run and at least one, and the others to the slow tier: for long lists of cases
that compile much.

PoCL compiles the programs of the fast tier without optimisation, in 0.17 s instead of 0.40. It
optimises those of the slow tier and of tests with the marker ``optimised``, as it does for users;
so does a device that is named, and ``PYOPENCL_BUILD_OPTIONS= make test`` all of them.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import replace
from zlib import crc32

import pytest

import clformats as cf
from clformats.programs import guard
from clformats.reorders import building
from tests.device_support import unless_refused

ROOMS_OF_DEVICES = {"bench", "kernels", "programs", "reorders", "runtime", "transfers"}
DEVICE = "CLFORMATS_TEST_DEVICE"
OPTIONS = "PYOPENCL_BUILD_OPTIONS"
"""pyopencl adds the options in this variable to those of each program."""
OPTIONS_OF_THE_USER = os.environ.get(OPTIONS)


def groups_of(items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The sampled cases of each test."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            groups.setdefault(item.nodeid.split("[")[0], []).append(item)
    return groups


def left_to_the_slow_tier(cases: list[pytest.Item]) -> list[pytest.Item]:
    """All but one of n; at least one is in the fast tier."""
    hashes = [crc32(item.nodeid.encode()) for item in cases]
    marker = cases[0].get_closest_marker("sampled")
    assert marker
    kept = [h for h in hashes if h % marker.args[0] == 0] or [min(hashes)]
    return [item for item, h in zip(cases, hashes, strict=True) if h not in kept]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for cases in groups_of(items).values():
        for item in left_to_the_slow_tier(cases):
            item.add_marker(pytest.mark.slow)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        is_of_a_room = item.path.parent.name in ROOMS_OF_DEVICES and "fake" not in fixtures
        if is_of_a_room or "engine" in fixtures:
            item.add_marker(pytest.mark.device)


def options(item: pytest.Item) -> str:
    """The options for the compiler in this test."""
    if OPTIONS_OF_THE_USER is not None:
        return OPTIONS_OF_THE_USER
    as_users = DEVICE in os.environ or any(map(item.get_closest_marker, ("optimised", "slow")))
    return "" if as_users else "-cl-opt-disable"


def pytest_runtest_setup(item: pytest.Item) -> None:
    os.environ[OPTIONS] = options(item)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with unless_refused():
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _no_records_of_the_user() -> Iterator[None]:
    """What was tuned on this machine must not change what is tested."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CLFORMATS_TUNED"] = folder
        yield


@pytest.fixture(scope="session", autouse=True)
def _plans_run_from_the_first_call() -> None:
    """Tests are of the kernels that plans say, not of the one that stands in for them."""
    os.environ[building.WAIT_VARIABLE] = "1"
    # Nor are binaries kept, for which PoCL compiles each program once more.
    os.environ["PYOPENCL_NO_CACHE"] = "1"
    # Nor does a child build each program first, but for a device that is named: compilers of other
    # drivers may end the process. test_guard.py switches that on.
    if DEVICE not in os.environ:
        os.environ[guard.SWITCH] = "0"


@pytest.fixture(scope="module", autouse=True)
def _small_collections() -> None:
    """What is there before a module is not looked at again by the collections of its tests.

    pytest and hundreds of tests leave so many objects that each collection would take 0.3 s: with
    hundreds of collections, test_faults.py took 72 s instead of 1.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def engine() -> cf.Engine:
    return cf.Engine(os.environ.get(DEVICE, "pocl"))


@pytest.fixture(scope="session")
def stream(engine: cf.Engine) -> cf.Stream:
    return cf.Stream(engine)


@pytest.fixture(scope="session")
def plans_for_cpus(engine: cf.Engine) -> None:
    """Skips where the device is no CPU: for tests of plans that only CPUs are given."""
    if not engine.traits.is_cpu:
        pytest.skip(f"these plans are for CPUs, {engine.device.name.strip()} is none")


@pytest.fixture(scope="session")
def as_gpu(engine: cf.Engine) -> cf.Stream:
    """A stream of the same device, for which kernels are planned as if for a GPU."""
    other = cf.Engine(device=engine.device)
    other.__dict__["traits"] = replace(engine.traits, is_cpu=False)
    return cf.Stream(other)


@pytest.fixture(scope="session")
def streaming(engine: cf.Engine) -> cf.Stream:
    """A stream of the same device, for which kernels are planned as if all tensors were large."""
    other = cf.Engine(device=engine.device)
    other.__dict__["traits"] = replace(engine.traits, streamed_bytes=0)
    return cf.Stream(other)


@pytest.fixture(scope="session", params=["itself", "gpu"])
def every_stream(request: pytest.FixtureRequest, stream: cf.Stream, as_gpu: cf.Stream) -> cf.Stream:
    """One that plans for the device as it is, and one that plans as if for a GPU."""
    return as_gpu if request.param == "gpu" else stream
