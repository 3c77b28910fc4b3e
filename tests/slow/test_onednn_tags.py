"""On the device, every tag of the real oneDNN in the direction that the fast tier leaves out."""

from __future__ import annotations

import pytest

import clformats as cf
from bench.peers import onednn
from tests.conformance.test_reorders import TAGS, _case, _on_device, _real
from tests.support import same_bytes

pytestmark = pytest.mark.skipif(onednn.available() is not None, reason=str(onednn.available()))


@pytest.mark.parametrize("tag", TAGS)
def test_device_equals_onednn(tag: str) -> None:
    stream = cf.Stream(cf.Engine("pocl"))
    src, dst, _, flat, filled = _case(tag, to_tag=TAGS.index(tag) % 2 == 1, seed=2)
    real, ours = _real(src, dst, flat, filled), _on_device(src, dst, flat, filled, stream)
    assert same_bytes(real, ours), (src, dst)
