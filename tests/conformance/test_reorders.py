"""Reorders equal those of the real oneDNN, byte for byte: on the host for every tag both ways, on
the device for every tag one way (the other way in the slow tier)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from bench.peers import onednn
from tests.device_support import memory_of
from tests.support import dirty_pack, garbage, hurting_dims, random_values, same_bytes

pytestmark = pytest.mark.sampled(8)

D = cf.MemoryDesc
TAGS = sorted(onednn.TAGS)


def _real(src: D, dst: D, flat: Any, filled: Any) -> Any:
    """What oneDNN writes into a copy of ``filled``."""
    descs = [onednn.Desc.by_tag(d.dims, d.dtype.name, d.format.name) for d in (src, dst)]
    result = filled.copy()
    onednn.Reorder(*descs).execute(flat, result)
    return result


def _on_device(src: D, dst: D, flat: Any, filled: Any, stream: cf.Stream) -> Any:
    a, b = memory_of(flat, src, stream.engine), memory_of(filled, dst, stream.engine)
    cf.Reorder(src, dst, stream.engine)(stream, a, b).wait()
    with b.map("r") as result:
        return result.copy()


def _case(tag: str, *, to_tag: bool, seed: int) -> tuple[D, D, Any, Any, Any]:
    """Descriptors, the logical values, and what lies in both buffers before."""
    dims = hurting_dims(cf.Format(tag))
    plain, other = D(dims, "s8", "abcdefghijkl"[: len(dims)]), D(dims, "s8", tag)
    src, dst = (plain, other) if to_tag else (other, plain)
    rng = np.random.default_rng(seed)
    array = random_values(rng, dims, "s8")
    return src, dst, array, dirty_pack(rng, array, src), garbage(rng, dst)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tag", TAGS)
def test_host_equals_onednn(tag: str) -> None:
    for to_tag in (True, False):
        src, dst, array, flat, filled = _case(tag, to_tag=to_tag, seed=len(tag))
        assert same_bytes(_real(src, dst, flat, filled), cf.pack(array, dst)), (src, dst)


@pytest.mark.sampled(36)
@pytest.mark.parametrize("tag", TAGS)
def test_device_equals_onednn(tag: str, stream: cf.Stream) -> None:
    """Half of the tags as source, half as destination; the slow tier has the rest."""
    src, dst, _, flat, filled = _case(tag, to_tag=TAGS.index(tag) % 2 == 0, seed=1)
    real, ours = _real(src, dst, flat, filled), _on_device(src, dst, flat, filled, stream)
    assert same_bytes(real, ours), (src, dst)


# The pairs of element types that oneDNN 2.6 has on CPUs; values where it is exact and specified.
PAIRS = [
    ("f32", "s32"), ("f32", "s8"), ("f32", "u8"), ("f32", "bf16"), ("f32", "f16"), ("f16", "f32"),
    ("bf16", "f32"), ("bf16", "s8"), ("bf16", "u8"), ("s32", "f32"), ("s32", "s8"), ("s32", "u8"),
    ("s8", "u8"), ("s8", "s32"), ("s8", "f32"), ("s8", "bf16"), ("u8", "s8"), ("u8", "s32"),
    ("u8", "f32"), ("u8", "bf16"),
]  # fmt: skip


@pytest.mark.parametrize(("src_type", "dst_type"), PAIRS)
@pytest.mark.parametrize("tags", [("abcd", "aBcd16b"), ("aBcd8b", "acdb")])
def test_conversions(
    src_type: str, dst_type: str, tags: tuple[str, str], stream: cf.Stream
) -> None:
    dims = (2, 19, 5, 7)
    src, dst = D(dims, src_type, tags[0]), D(dims, dst_type, tags[1])
    rng = np.random.default_rng(3)
    array = random_values(rng, dims, src_type)
    if src_type == "s32":
        array = array >> 8  # some of oneDNN's paths go through f32, which holds 24 bits
    flat, filled = dirty_pack(rng, array, src), garbage(rng, dst)
    real, ours = _real(src, dst, flat, filled), _on_device(src, dst, flat, filled, stream)
    if dst.dtype.is_float:
        assert (real.astype(np.float64) == ours.astype(np.float64)).all()  # oneDNN turns -0 to +0
    else:
        assert same_bytes(real, ours)
