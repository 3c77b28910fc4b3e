"""The bytes of a kernel's arguments: no device promises more than 1,024 (OpenCL 1.2, table 4.3)."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

import clformats as cf
from clformats.kernels import render
from clformats.kernels.source import MOST_ARGUMENT_BYTES, SHORT_NEST, Launch
from clformats.problems.computation import from_attr
from clformats.schedule import Traits
from tests.device_support import check_reorder
from tests.replay_problems import problems
from tests.replay_support import DEVICES

PADDED = "f32:b_fs_yx_fsv16:4x17x31x29", "f32:bfyx:4x17x31x29:pad=0+0x0+0x1+1x2+2"
"""A reorder with four guards, whose numbers of 8 bytes take more."""


def declared_bytes(launched: Launch) -> int:
    """What the parameters take that the source declares."""
    head = re.search(r"void reorder\((.*?)\)\n\{", launched.source, re.DOTALL)
    assert head
    parameters = head[1].split(",")
    numbers = sum(len(a) for a in launched.arguments if isinstance(a, bytes))
    plain = [p for p in parameters if not re.search("Nest|Short|Loops", p)]
    return numbers + 8 * len(plain)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_no_kernel_takes_more_than_devices_promise(device: str) -> None:
    """One problem of three, of every group; the others are in the slow tier of the record."""
    for problem in problems()[::3]:
        try:
            launched = render(problem.plan(DEVICES[device]))
        except cf.Error:
            continue
        while launched:
            assert declared_bytes(launched) <= MOST_ARGUMENT_BYTES, problem.name
            assert launched.argument_bytes <= declared_bytes(launched)
            launched = launched.then


def of_text(src: str, dst: str) -> tuple[cf.MemoryDesc, cf.MemoryDesc]:
    return cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst)


@pytest.mark.parametrize(("family", "to"), [("generic", "byxf"), ("image", "image_2d_rgba")])
def test_kernels_declare_each_argument(family: str, to: str) -> None:
    """The strides of what is read on the way, too."""
    src, dst = of_text("f32:bfyx:2x3x15x17", f"f16:{to}:2x3x15x17")
    scales = from_attr(cf.Attr(dst_scale=([1, 2, 4], 2)), src, dst)
    launched = render(cf.make_plan(src, dst, Traits(is_cpu=False), family, scales))
    assert launched
    assert ",\n    const idx dst_scale_stride1" in launched.source
    assert launched.source.count(",\n    const idx ") == len(launched.arguments)


def test_long_nests_have_numbers_of_four_bytes_and_one_program() -> None:
    """Another shape is another argument of the same source."""
    sources = set()
    for h in (31, 33):
        texts = (text.replace("31", str(h)) for text in PADDED)
        launched = render(cf.make_plan(*of_text(*texts), Traits(vector_bytes=64)))
        assert launched
        assert SHORT_NEST in launched.source
        assert launched.argument_bytes <= MOST_ARGUMENT_BYTES
        sources.add(launched.source)
    assert len(sources) == 1


def test_numbers_that_do_not_fit_are_constants_of_the_kernel() -> None:
    src, dst = of_text(*(text.replace("4x17", "4000000x17") for text in PADDED))
    launched = render(cf.make_plan(src, dst, Traits(vector_bytes=64)))
    assert launched
    assert launched.arguments == ()
    assert SHORT_NEST not in launched.source


def test_a_device_that_takes_less_refuses_in_words(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cf.Engine(device=engine.device)
    monkeypatch.setattr(own, "device", SimpleNamespace(max_parameter_size=256, name="a phone"))
    with pytest.raises(cf.DeviceError, match=r"takes 1016 bytes .*a phone at most 256"):
        own.shared_kernel("", "reorder", (b"0" * 1000,))


def test_short_numbers_move_the_same_bytes(engine: cf.Engine) -> None:
    check_reorder(*of_text(*PADDED), cf.Stream(engine), seed=11)
