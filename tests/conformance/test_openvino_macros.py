"""Where an element lies, by Intel's own index macros: the ones in the installed openvino.

The macros are read from the wheel when the test runs, and compiled for the device once for all
formats; sizes and padding are arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.formats import registry
from tests import openvino_support as openvino
from tests.support import hurting_dims

pytestmark = pytest.mark.skipif(bool(openvino.unavailable()), reason=openvino.unavailable())

# Where a macro differs from what the format's name says: sizes at which it does not, sizes at which
# it does, and why.
UNROUNDED = "multiplies by I (and by O, from group to group) not rounded up to the block"
DEPTHWISE = "multiplies o and i where it should add; right for a depthwise convolution only"
FAULTS = {
    "os_is_yx_isv8_osv16_isv2": ((17, 32, 3, 5), (17, 15, 3, 5), UNROUNDED),
    "os_is_zyx_isv8_osv16_isv2": ((17, 32, 2, 3, 5), (17, 15, 2, 3, 5), UNROUNDED),
    "g_os_is_yx_isv8_osv16_isv2": ((2, 32, 16, 3, 5), (2, 17, 16, 3, 5), UNROUNDED),
    "g_os_is_zyx_isv8_osv16_isv2": ((2, 32, 16, 2, 3, 5), (2, 17, 16, 2, 3, 5), UNROUNDED),
    "gs_oi_yxs_gsv4_yxsv4": ((7, 1, 1, 3, 5), (7, 2, 3, 3, 5), DEPTHWISE),
    "gs_oi_yxs_gsv16_yxsv4": ((17, 1, 1, 3, 5), (17, 2, 3, 3, 5), DEPTHWISE),
    "gs_oi_yxs_gsv32_yxsv4": ((33, 1, 1, 3, 5), (33, 2, 3, 3, 5), DEPTHWISE),
}
# Dimensions whose padding a macro forgets.
FORGOTTEN = dict.fromkeys(
    ["bs_fs_fsv8_bsv8", "bs_fs_fsv8_bsv16", "bs_f_bsv16", "bs_xs_xsv8_bsv8", "bs_xs_xsv8_bsv16",
     "bs_x_bsv16", "bs_f_bsv8__af8", "bs_f_bsv16__af8"], "bf") | {"fs_b_yx_fsv32": "b"}  # fmt: skip

PADDING = ((1, 2), (3, 1), (2, 0), (0, 1), (1, 1), (1, 0), (0, 1), (1, 1))
LOCAL = 64  # always the same size of work-group: pocl compiles for each one anew


def _calls() -> dict[str, str]:
    """Format -> the call of its macro, for every format that has one in this wheel."""
    names = (n for n in registry.listed("cldnn") if n == registry.without_bits(n))
    calls = {name: openvino.call(cf.Format(name)) for name in names}
    return {name: call for name, call in calls.items() if call}


class Macros:
    """The compiled macros: what they say of every element of a descriptor."""

    def __init__(self, engine: cf.Engine) -> None:
        self.calls = _calls()
        self.numbers = {name: k for k, name in enumerate(self.calls)}
        self.engine = engine
        self.kernel = engine.kernel(openvino.program(list(self.calls.values())), "offsets")

    def offsets(self, desc: cf.MemoryDesc) -> Any:
        import pyopencl as cl

        sizes = dict(zip(desc.format.letters, desc.dims, strict=True))
        dims = np.array([sizes.get(c, 1) for c in openvino.LETTERS], np.uint32)
        threads = -(-desc.nelems // LOCAL) * LOCAL
        out = np.empty(threads, np.uint32)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        constants = np.array(openvino.constants(desc), np.int32)
        arguments = [cl.Buffer(self.engine.context, flags, hostbuf=a) for a in (constants, dims)]
        result = cl.Buffer(self.engine.context, cl.mem_flags.WRITE_ONLY, out.nbytes)
        number = np.int32(self.numbers[str(desc.format)])
        self.kernel(self.engine.queue, (threads,), (LOCAL,), number, *arguments, result)
        cl.enqueue_copy(self.engine.queue, out, result)
        return out[: desc.nelems].reshape(desc.dims)


@pytest.fixture(scope="module")
def macros(engine: cf.Engine) -> Macros:
    return Macros(engine)


def _differences(macros: Macros, descs: list[cf.MemoryDesc]) -> list[str]:
    """One line for each descriptor where the macro and `offsets` differ."""
    lines = []
    for desc in descs:
        got, want = macros.offsets(desc), desc.offsets()
        if (got != want).any():
            at = tuple(int(n) for n in np.argwhere(got != want)[0])
            lines.append(f"{desc} at {at}: Intel's macro says {got[at]}, we say {want[at]}")
    return lines


def _padded(fmt: cf.Format, keep: str = "") -> cf.MemoryDesc:
    """A descriptor with padding in every dimension, except those in ``keep``."""
    pads = [(0, 0) if c in keep else p for c, p in zip(fmt.letters, PADDING, strict=False)]
    return cf.MemoryDesc(hurting_dims(fmt), "f32", fmt, padding=tuple(pads))


def _data(macros: Macros) -> list[cf.Format]:
    return [f for f in map(cf.Format, macros.calls) if f.role == "data"]


def test_the_wheel_has_a_macro_for_most_formats(macros: Macros) -> None:
    assert len(macros.calls) >= 100
    assert len(_data(macros)) >= 40


def test_every_element_lies_where_the_macro_says(macros: Macros) -> None:
    descs = []
    for fmt in map(cf.Format, macros.calls):
        if str(fmt) in FAULTS:
            descs.append(cf.MemoryDesc(FAULTS[str(fmt)][0], "f32", fmt))
        else:
            descs += [cf.MemoryDesc(hurting_dims(fmt, shift), "f32", fmt) for shift in range(3)]
    assert not _differences(macros, descs)


@pytest.mark.parametrize("x", [1, 4, 5])
def test_the_last_of_an_odd_number_of_columns(x: int, macros: Macros) -> None:
    names = [n for n in macros.calls if "iy_xs_os" in n]
    descs = [cf.MemoryDesc((2, 40, 3, 2, x)[n[0] != "g" :], "f32", n) for n in names]
    assert len(descs) == 4
    assert not _differences(macros, descs)


def test_padding_comes_before_the_blocks(macros: Macros) -> None:
    descs = [_padded(fmt, FORGOTTEN.get(str(fmt), "")) for fmt in _data(macros)]
    assert not _differences(macros, descs)


def test_what_the_macros_get_wrong(macros: Macros) -> None:
    """A fault that Intel mends should go from the lists above."""
    faults = [cf.MemoryDesc(wrong, "f32", n) for n, (_, wrong, _) in FAULTS.items()]
    forgotten = []
    for name, letters in FORGOTTEN.items():
        if name in macros.calls:
            fmt = cf.Format(name)
            forgotten += [_padded(fmt, fmt.letters.replace(c, "")) for c in letters]
    for desc in faults + forgotten:
        assert _differences(macros, [desc]), f"{desc} is right in this version of openvino"
