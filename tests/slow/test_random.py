"""Any to any for as long as one likes, with fresh examples in every run."""

from __future__ import annotations

import os
import secrets
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import clformats as cf
from tests.device_support import check_reorder
from tests.reorders.test_reorder import FRONTS
from tests.strategies import attributed_pairs, pairs

EXAMPLES = int(os.environ.get("CLFORMATS_TEST_EXAMPLES", "1500"))
CHUNK = 100  # examples in a test: each stays far below the time limit of a test
# CLFORMATS_TEST_SEED=... runs the examples of an earlier run again.
SEED = int(os.environ.get("CLFORMATS_TEST_SEED") or secrets.randbits(32))


@pytest.mark.parametrize("start", range(0, EXAMPLES, CHUNK))
def test_any_to_any(start: int, stream: cf.Stream) -> None:
    print(f"CLFORMATS_TEST_SEED={SEED}")  # noqa: T201  # pytest shows it where the test fails

    as_long = settings(
        max_examples=min(CHUNK, EXAMPLES - start),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    @seed(SEED + start)
    @as_long
    @given(pair=pairs(), values=st.integers(0, 2**31), front=st.sampled_from(FRONTS))
    def any_to_any(pair: tuple[cf.MemoryDesc, cf.MemoryDesc], values: int, front: int) -> None:
        check_reorder(*pair, stream, seed=values, front=front)

    @seed(SEED + start)
    @as_long
    @given(case=attributed_pairs(), values=st.integers(0, 2**31), front=st.sampled_from(FRONTS))
    def with_attributes(case: tuple[Any, ...], values: int, front: int) -> None:
        src, dst, attr = case
        check_reorder(src, dst, stream, seed=values, front=front, attr=attr)

    any_to_any()
    with_attributes()
