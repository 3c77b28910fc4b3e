"""Our index macros in clDNN's words against Intel's: their names, arguments and values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.formats import registry
from clformats.index.getters import getter, takes_sub_group
from clformats.index.names import coordinates_of, formats_of_cldnn, is_plain, letters_of
from tests import openvino_support as openvino
from tests.support import hurting_dims
from tests.tiers import tiered

PADDING = ((1, 2), (3, 1), (2, 0), (0, 1), (1, 1), (1, 0), (0, 1), (1, 1))
LOCAL = 64  # always the same size of work-group: pocl compiles for each one anew
OURS = cf.jit_constants({}, formats="all")
INTELS = pytest.mark.skipif(bool(openvino.unavailable()), reason=openvino.unavailable())

# Macros with blocks as arguments, a format that they serve, and the arguments.
ANY_BLOCK = [
    ("DATA_BS_FYX_BSV8_INDEX", "bs_f_bsv16", (16,)),
    ("FILTER_OS_IYX_OSV16", "os_iyx_osv8", (8,)),
    ("FILTER_OS_IYX_OSV_INDEX", "os_iyx_osv64", (64,)),
    ("FILTER_G_OS_IYX_OSV16", "g_os_iyx_osv32", (32,)),
    ("FILTER_GS_OIYX_GSV16", "gs_oiyx_gsv8", (8,)),
    ("FILTER_GS_OIZYX_GSV16", "gs_oizyx_gsv32", (32,)),
    ("FILTER_OS_IYX_OSV_ROTATE_180_INDEX", "os_iyx_osv16_rotate_180", (16,)),
    ("FILTER_G_OS_IYX_OSV16_ROTATE_180", "g_os_iyx_osv16_rotate_180", (16,)),
    ("FILTER_I_YXS_OS_YXSV2_OSV_INDEX", "i_yxs_os_yxsv2_osv16", (16,)),
    ("FILTER_GI_YXS_OS_YXSV2_OSV_INDEX", "gi_yxs_os_yxsv2_osv16", (16,)),
    ("FILTER_IY_XS_OS_XSV2_OSV_INDEX", "iy_xs_os_xsv2_osv16__ao32", (16,)),
    ("FILTER_GIY_XS_OS_XSV2_OSV_INDEX", "giy_xs_os_xsv2_osv8__ao32", (8,)),
    ("FILTER_OS_IS_YX_ISV_OSV_INDEX", "os_is_yx_isv16_osv16", (16, 16)),
    ("FILTER_OS_IS_ZYX_ISV_OSV_INDEX", "os_is_zyx_isv16_osv16", (16, 16)),
    ("FILTER_IS_OS_YX_OSV_ISV_INDEX", "is_os_yx_osv8_isv4", (8, 4)),
    ("FILTER_IS_OS_YX_ISV_OSV_INDEX", "is_os_yx_isv16_osv4", (4, 16)),
    ("FILTER_G_OS_IS_ZYX_ISA_OSV_ISV_INDEX", "g_os_is_zyx_isa8_osv8_isv2", (8, 8, 2)),
    ("FILTER_G_OS_ZYX_IS_OSV_ISV_INDEX", "g_os_zyx_is_osv8_isv2", (8, 2)),
    ("FILTER_G_OS_Y_IS_X_OSV_ISV_INDEX", "g_os_y_is_x_osv8_isv4", (8, 4)),
    ("FILTER_G_OS_ZY_IS_X_OSV_ISV_INDEX", "g_os_zy_is_x_osv8_isv2", (8, 2)),
]


def _macros(text: str) -> dict[str, tuple[str, ...]]:
    """The index macros of a text by name: their parameters, without the tensor."""
    found = re.findall(r"#define (GET_(?:DATA|FILTER)_\w+)\(\s*\w+\s*,([^)]*)\)", text)
    return {name: tuple(p.strip() for p in parameters.split(",")) for name, parameters in found}


def _calls() -> list[tuple[cf.Format, str]]:
    """Every format of clDNN's, and the call of its own macro or of one with blocks as arguments."""
    calls = []
    for fmt in formats_of_cldnn():
        # Names that do not tell letters or order: test_jit_constants has them.
        odd = not set(fmt.letters) <= set(openvino.LETTERS)
        odd |= is_plain(fmt) and not openvino.is_plain(fmt)
        if fmt.name == registry.without_bits(fmt.name) and not odd:
            more = ["16"] if takes_sub_group(fmt) else []
            calls.append((fmt, _call(getter(fmt), fmt, more)))
    for name, text, sizes in ANY_BLOCK:
        fmt = cf.Format(text)
        calls.append((fmt, _call(f"GET_{name}", fmt, [str(n) for n in sizes])))
    return calls


def _call(name: str, fmt: cf.Format, more: list[str]) -> str:
    coordinates = [c if c in fmt.letters else "0" for c in coordinates_of(letters_of(fmt))]
    return f"{name}(T, {', '.join([*coordinates, *more])})"


class Program:
    """The macros on a device: what they say of every element of a descriptor."""

    def __init__(self, engine: cf.Engine, calls: list[str], text: str) -> None:
        import pyopencl as cl

        self.engine = engine
        program = cl.Program(engine.context, openvino.program(calls, text))
        built = program.build(["-cl-opt-disable"], devices=[engine.device])  # so many functions
        self.kernel = cl.Kernel(built, "offsets")

    def offsets(self, number: int, desc: cf.MemoryDesc) -> Any:
        import pyopencl as cl

        sizes = dict(zip(desc.format.letters, desc.dims, strict=True))
        dims = np.array([sizes.get(c, 1) for c in openvino.LETTERS], np.uint32)
        threads = -(-desc.nelems // LOCAL) * LOCAL
        out = np.empty(threads, np.uint32)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        constants = np.array(openvino.constants(desc), np.int32)
        arguments = [cl.Buffer(self.engine.context, flags, hostbuf=a) for a in (constants, dims)]
        result = cl.Buffer(self.engine.context, cl.mem_flags.WRITE_ONLY, out.nbytes)
        which = np.int32(number)
        self.kernel(self.engine.queue, (threads,), (LOCAL,), which, *arguments, result)
        cl.enqueue_copy(self.engine.queue, out, result)
        return out[: desc.nelems].reshape(desc.dims)


def test_every_element_of_every_format(engine: cf.Engine) -> None:
    calls = _calls()
    program = Program(engine, [call for _, call in calls], OURS)
    assert len(calls) >= 200
    for number, (fmt, call) in enumerate(calls):
        descs = [cf.MemoryDesc(hurting_dims(fmt, shift), "f32", fmt) for shift in range(2)]
        if "iy_xs" in fmt.name:
            descs.append(cf.MemoryDesc((2, 40, 3, 2, 5)[-fmt.ndims :], "f32", fmt))
        if fmt.role == "data" and all(len(d.dims) == 1 for d in fmt.digits):
            pads = PADDING[: fmt.ndims]
            descs.append(cf.MemoryDesc(hurting_dims(fmt), "f32", fmt, padding=pads))
        for desc in descs:
            assert (program.offsets(number, desc) == desc.offsets()).all(), f"{desc}: {call}"


@pytest.mark.parametrize("step", tiered([1, 4], [4]))
def test_coordinates_that_wrap(step: int, engine: cf.Engine) -> None:
    calls = []
    for fmt, call in _calls()[::step]:
        name, arguments = call.rstrip(")").split("(T, ")
        far = [
            f"{a} + {k + 2} * T_{openvino.COUNTS[a]}" if a in openvino.COUNTS else a
            for k, a in enumerate(arguments.split(", "))
        ]
        calls.append((fmt, f"{name}_SAFE(T, {', '.join(far)})"))
    program = Program(engine, [call for _, call in calls], OURS)
    for number, (fmt, call) in enumerate(calls):
        desc = cf.MemoryDesc(hurting_dims(fmt), "f32", fmt)
        assert (program.offsets(number, desc) == desc.offsets()).all(), f"{desc}: {call}"


@INTELS
def test_intels_macros_have_the_same_arguments() -> None:
    theirs, ours = openvino.macros(), _macros(OURS.replace("\\\n", ""))
    assert len(theirs) >= 100
    # What they say is not known: no kernel of the wheel calls them on all shapes.
    packed = {name for name in theirs if name.endswith("INT4_PACKED")}
    assert {name: p for name, p in theirs.items() if name not in packed} == {
        name: ours.get(name) for name in theirs if name not in packed
    }
