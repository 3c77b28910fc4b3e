"""Random reorders change no byte but those of the destination, and read none but the source's."""

from __future__ import annotations

import os

import pytest

import clformats as cf
from tests.fuzz_support import fuzz, odd_blocks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pages are protected by mprotect")
CASES = int(os.environ.get("CLFORMATS_FUZZ_CASES", "120"))
SEED = 16


@pytest.mark.optimised
@pytest.mark.timeout(max(900, 6 * CASES))
def test_random_reorders(engine: cf.Engine) -> None:
    name = engine.device.platform.name
    few_sizes = {"CLFORMATS_FUZZ_SIZES": "4"}  # and so more kernels
    report = fuzz(SEED, CASES, name, environment=few_sizes)
    assert report.ran == CASES
    assert not report.failures, str(report)


@pytest.mark.parametrize("module", ["tests.groups_fuzz", "tests.quantised_fuzz"])
def test_random_groups_and_quantised_tensors(engine: cf.Engine, module: str) -> None:
    """A few: the slow tier has thousands."""
    name = engine.device.platform.name
    report = fuzz(SEED, 12, name, module=module, environment={"CLFORMATS_FUZZ_SIZES": "3"})
    assert report.ran == 12
    assert not report.failures, str(report)


def test_blocks_that_no_registered_format_has(engine: cf.Engine) -> None:
    """Vectors end inside blocks of 18 and 40: what is stored last ends where the tensor does."""
    report = odd_blocks(("f32",), engine.device.platform.name)
    assert report.ran
    assert not report.failures, str(report)
