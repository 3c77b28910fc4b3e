"""A million calls grow nothing."""

from __future__ import annotations

import clformats as cf
from tests.reorders.test_calls import growth, kinds_of_calls


def test_a_million_calls_grow_nothing(engine: cf.Engine, stream: cf.Stream) -> None:
    python, process = growth(kinds_of_calls(engine, stream)["call"], stream, 1_000_000)
    print(f"a million calls: Python's objects {python:+} bytes, the process {process:+}")  # noqa: T201
    assert python < 20_000
    assert process < 1 << 20
