"""Reorders in which choices of every space are tried."""

from __future__ import annotations

import random
from collections.abc import Iterator

import clformats as cf
from clformats.spaces.space import space
from tests.device_support import check_reorder

D = cf.MemoryDesc

# One pair for each way in which kernels differ: both directions, guards, conversions, tiles that
# overlap, bytes, and the families that copy and go place by place.
HURTING = [
    (D((3, 17, 5, 19), "f32", "bfyx"), D((3, 17, 5, 19), "f32", "byxf")),
    (D((2, 37, 7, 11), "f32", "byxf"), D((2, 37, 7, 11), "f32", "bfyx")),
    (D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f32", "b_fs_yx_fsv16")),
    (D((2, 33, 5, 13), "f16", "b_fs_yx_fsv16"), D((2, 33, 5, 13), "f16", "bfyx")),
    (D((2, 3, 7, 31), "u8", "byxf"), D((2, 3, 7, 31), "u8", "bfyx")),
    (D((2, 3, 7, 31), "f32", "bfyx"), D((2, 3, 7, 31), "f16", "byxf")),
    (D((2, 35, 5, 17), "f32", "bfyx"), D((2, 35, 5, 17), "s8", "b_fs_yx_fsv4")),
    (D((37, 19, 3, 3), "f16", "oiyx"), D((37, 19, 3, 3), "f16", "os_is_yx_isv16_osv16")),
    (D((2, 40, 5, 7), "f32", "byxf"), D((2, 40, 5, 7), "f32", "b_fs_yx_fsv16")),
    (D((3, 5, 7, 1031), "f32", "bfyx"), D((3, 5, 7, 1031), "f32", "bfyx")),
    (D((3, 5, 7, 1031), "f32", "bfyx"), D((3, 5, 7, 1031), "bf16", "bfyx")),
    (D((2, 40, 3, 5), "u8", "aBcd24b"), D((2, 40, 3, 5), "u8", "aBcd16b")),
]


def sampled(stream: cf.Stream, count: int, seed: int) -> Iterator[cf.Choices]:
    """Try ``count`` values of each pair's space, neighbours too, every other one baked."""
    rng = random.Random(seed)  # noqa: S311  # configurations, not secrets
    for src, dst in HURTING:
        found = space(src, dst, stream.engine.traits)
        assert found is not None
        values = [*found.values, *found.near(found.values[0])]
        for k, value in enumerate(rng.sample(values, min(count, len(values)))):
            choices = cf.Choices.of({found.parameter: value, "baked": k % 2 == 1})
            check_reorder(src, dst, stream, seed=k, front=3 * (k % 3), choices=choices)
            yield choices
