"""Many choices of all search spaces, on sizes that hurt."""

from __future__ import annotations

import clformats as cf
from tests.choices_support import HURTING, sampled


def test_many_choices_move_the_right_bytes(stream: cf.Stream) -> None:
    # How many there are depends on the device's compute units: 216 where there are two.
    assert sum(1 for _ in sampled(stream, 60, 1)) > 12 * len(HURTING)


def test_many_tiles_of_gpus_move_the_right_bytes(as_gpu: cf.Stream) -> None:
    assert sum(1 for _ in sampled(as_gpu, 12, 1)) > 100
