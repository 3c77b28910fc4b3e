"""One engine and stream for all device tests; CLFORMATS_TEST_DEVICE names another device."""

from __future__ import annotations

import os

import pytest

import clformats as cf


@pytest.fixture(scope="session")
def engine() -> cf.Engine:
    return cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl"))


@pytest.fixture(scope="session")
def stream(engine: cf.Engine) -> cf.Stream:
    return cf.Stream(engine)
