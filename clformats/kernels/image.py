"""Kernels of the image family: pixels read or written through OpenCL's image functions."""

from __future__ import annotations

from dataclasses import dataclass

from ..formats.expr import Const
from ..schedule.generic import LOCAL_SIZE
from ..schedule.image import ImagePlan
from ..schedule.plan import Plan
from ..templates import render
from ..tensors.desc import MemoryDesc
from ..tensors.images import LINE, PLANE
from .computation import types_of
from .generic import common_parts, computed_text, dst_offset
from .source import Arguments, Launch

_LARGEST = {"u8": 255, "s8": 127}
"""What 1.0 is in a component that an image function reads as a fraction."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """How a kernel reads and writes the pixels of one side.

    ``name`` is the element type, ``c_type`` the C type in which elements are in an array of 4;
    ``axes`` are those of `MemoryDesc.image_shape`. Components of 8 bits are integers or fractions:
    the kernel asks the image.
    """

    side: str
    name: str
    c_type: str
    axes: int
    channels: int

    def at(self, pixel: str) -> str:
        """The coordinates of a pixel, from its number."""
        width, height = f"{self.side}_width", f"{self.side}_height"
        if self.axes == LINE:  # pixels and components
            return f"(int)({pixel})"
        column, row = f"(int)({pixel} % {width})", f"(int)({pixel} / {width}"
        if self.axes == PLANE:  # rows, columns and components
            return f"(int2)({column}, {row}))"
        return f"(int4)({column}, {row} % {height}), (int)({pixel} / {width} / {height}), 0)"

    def load(self, image: str, pixel: str, array: str) -> str:
        """Statements: a pixel into an array of 4 elements."""
        where = f"{image}{'' if self.axes == LINE else ', exact'}, {self.at(pixel)}"
        if self.name == "f32":
            return f"vstore4(as_{self.c_type}4(read_imagef({where})), 0, {array});"
        if self.name == "f16":
            return f"vstore_half4_rte(read_imagef({where}), 0, (half *){array});"
        sign = "i" if self.name[0] == "s" else "ui"
        if self.name == "s32":
            return f"vstore4(as_{self.c_type}4(read_imagei({where})), 0, {array});"
        char = "char" if sign == "i" else "uchar"
        whole = f"convert_{char}4(read_image{sign}({where}))"
        part = f"convert_{char}4_sat_rte(read_imagef({where}) * {_LARGEST[self.name]}.0f)"
        seen = whole if self._is_whole else f"{self._asks(image)} ? {whole} : {part}"
        return f"const {char}4 seen = {seen};\nvstore4(as_{self.c_type}4(seen), 0, {array});"

    def store(self, image: str, pixel: str, array: str) -> str:
        """Statements: an array of 4 elements into a pixel."""
        where = f"{image}, {self.at(pixel)}"
        if self.name == "f32":
            return f"write_imagef({where}, as_float4(vload4(0, {array})));"
        if self.name == "f16":
            return f"write_imagef({where}, vload_half4(0, (const half *){array}));"
        if self.name == "s32":
            return f"write_imagei({where}, as_int4(vload4(0, {array})));"
        char, sign = ("char", "i") if self.name == "s8" else ("uchar", "ui")
        shown = f"const {char}4 shown = as_{char}4(vload4(0, {array}));\n"
        wide = "convert_int4" if sign == "i" else "convert_uint4"
        whole = f"write_image{sign}({where}, {wide}(shown));"
        if self._is_whole:
            return shown + whole
        part = f"write_imagef({where}, convert_float4(shown) / {_LARGEST[self.name]}.0f);"
        return f"{shown}if ({self._asks(image)}) {{\n    {whole}\n}} else {{\n    {part}\n}}"

    @property
    def _is_whole(self) -> bool:
        """Whether components are integers; PoCL 3.1 cannot ask an image1d_buffer, which is so."""
        return self.axes == LINE

    def _asks(self, image: str) -> str:
        whole = {"u8": "CLK_UNSIGNED_INT8", "s8": "CLK_SIGNED_INT8"}[self.name]
        return f"get_image_channel_data_type({image}) == {whole}"


def _pixels(side: str, desc: MemoryDesc, types: str, arguments: Arguments) -> Pixels | None:
    """The pixels of a side, whose extents become arguments; None of a buffer."""
    shape = desc.image_shape
    if shape is None:
        return None
    if len(shape) > LINE:  # rows and columns
        arguments.values[f"{side}_width"] = shape[-2]
    if len(shape) > PLANE:  # and layers
        arguments.values[f"{side}_height"] = shape[-3]
    c_type = "ushort" if desc.dtype.name == "f16" else types
    return Pixels(side, desc.dtype.name, c_type, len(shape), shape[-1])


def launch(plan: Plan, body: ImagePlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    arguments = Arguments()
    arguments.values["items"] = body.items
    parts = common_parts(p, arguments)
    types = types_of(p)
    src_pixels = _pixels("src", p.src, types.src, arguments)
    dst_pixels = _pixels("dst", p.dst, types.dst, arguments)
    where = Const(0) if dst_pixels else dst_offset(p.dst, arguments)
    stored = computed_text(types, arguments, where)
    source = render(
        "image",
        **parts,
        types=types,
        src_pixels=src_pixels,
        dst_pixels=dst_pixels,
        dst_offset=where,
        stored=stored,
        declarations=arguments.declarations + types.parameters,
    )
    rounded = -(-body.items // LOCAL_SIZE) * LOCAL_SIZE
    return Launch(source, tuple(arguments.values.values()), p.is_wide, rounded, LOCAL_SIZE)
