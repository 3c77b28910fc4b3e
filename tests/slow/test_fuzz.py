"""Thousands of random reorders between pages that may not be touched, on every runtime there is.

``CLFORMATS_FUZZ_CASES`` says how many on each device, ``CLFORMATS_TEST_SEED`` runs those of an
earlier run again.
"""

from __future__ import annotations

import os
import secrets

import pytest

import clformats as cf
from tests.fuzz_support import fuzz, odd_blocks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pages are protected by mprotect")
CASES = int(os.environ.get("CLFORMATS_FUZZ_CASES", "20000"))
FRESH = int(os.environ.get("CLFORMATS_TEST_SEED") or secrets.randbits(32))
TYPES = ("f32", "f64", "f16", "u8", "s32")
PART = 5000
KINDS: dict[str, tuple[int, str, dict[str, str]]] = {
    "narrow": (CASES, "tests.fuzz_support", {"CLFORMATS_FUZZ_NARROW": "0.7"}),
    "networks": (
        CASES // 10,
        "tests.fuzz_support",
        {
            "CLFORMATS_FUZZ_NARROW": "0",
            "CLFORMATS_FUZZ_NETWORKS": "1",
            "CLFORMATS_FUZZ_TYPES": "f32 f16 bf16 s8 u8 s32",
        },
    ),
    "groups": (CASES // 4, "tests.groups_fuzz", {}),
    "quantised": (CASES // 4, "tests.quantised_fuzz", {"CLFORMATS_FUZZ_SIZES": "6"}),
}
"""How many cases of a kind, what runs them, and with which shares."""
SECONDS = 4 * 3600


def _device(name: str) -> str:
    """The name, where there is such a device."""
    names = [d.platform.name for d in cf.devices()]
    found = next((n for n in names if name.lower() in n.lower()), None)
    if found is None:
        pytest.skip(f"no device of {name} here: {names}; `pip install clformats[cpu]` has Intel's")
    return found


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("part", range(-(-CASES // PART)))
@pytest.mark.parametrize("name", ["Portable", "Intel"])
def test_random_reorders(name: str, part: int) -> None:
    """Three quarters of the cases are those of every run, the last ones are fresh."""
    device = _device(name)
    fresh = part == -(-CASES // PART) - 1
    seed = FRESH if fresh else 1000 + part
    report = fuzz(seed, min(PART, CASES - part * PART), device)
    print(f"CLFORMATS_TEST_SEED={seed}: {device}: {report}")  # noqa: T201  # the figures
    assert not report.failures, str(report)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", ["narrow", "networks", "groups", "quantised"])
@pytest.mark.parametrize("name", ["Portable", "Intel"])
def test_random_cases_of_a_kind(name: str, kind: str) -> None:
    """Elements that share bytes; what networks have; values for groups; quantised tensors."""
    count, module, environment = KINDS[kind]
    report = fuzz(FRESH, count, _device(name), module=module, environment=environment)
    print(f"CLFORMATS_TEST_SEED={FRESH}: {name}, {kind}: {report}")  # noqa: T201  # the figures
    assert not report.failures, str(report)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", ["Portable", "Intel"])
def test_blocks_that_no_registered_format_has(name: str) -> None:
    report = odd_blocks(TYPES, _device(name))
    assert not report.failures, str(report)
