"""All choices of all search spaces, on sizes that hurt."""

from __future__ import annotations

import clformats as cf
from tests.choices_support import sampled


def test_every_choice_moves_the_right_bytes(stream: cf.Stream) -> None:
    assert sum(1 for _ in sampled(stream, None, 1)) > 500
