"""Pixels in kernels: read and written through OpenCL's image functions."""

from __future__ import annotations

from dataclasses import dataclass

from ..tensors.desc import MemoryDesc
from ..tensors.images import PLANE, STACK
from .source import Arguments


@dataclass(frozen=True, slots=True)
class PixelTexts:
    """How elements of a type are the components of a pixel.

    ``function`` is the suffix of the image functions. ``taken`` is a statement that puts the value
    ``{v}`` of one into an array ``{a}`` of 4 elements of the C type ``{c}``; ``given`` is the value
    of such an array. ``one`` is what 1.0 stands for where components may be fractions as well: the
    kernel asks the image.
    """

    function: str
    taken: str
    given: str
    one: int = 0


PIXELS = {
    "f32": PixelTexts("f", "vstore4(as_{c}4({v}), 0, {a});", "as_float4(vload4(0, {a}))"),
    "f16": PixelTexts(
        "f", "vstore_half4_rte({v}, 0, (half *){a});", "vload_half4(0, (const half *){a})"
    ),
    "s32": PixelTexts("i", "vstore4(as_{c}4({v}), 0, {a});", "as_int4(vload4(0, {a}))"),
    "s8": PixelTexts(
        "i", "vstore4(as_{c}4(convert_char4({v})), 0, {a});",
        "convert_int4(as_char4(vload4(0, {a})))", 127,
    ),
    "u8": PixelTexts(
        "ui", "vstore4(as_{c}4(convert_uchar4({v})), 0, {a});",
        "convert_uint4(as_uchar4(vload4(0, {a})))", 255,
    ),
}  # fmt: skip
"""The element types of images."""
_KINDS = {PLANE: "image2d_t", STACK: "image2d_array_t"}
_ACCESS = {"src": "__read_only", "dst": "__write_only"}


@dataclass(frozen=True, slots=True)
class PixelAccess:
    """How a kernel reads and writes the pixels of one side.

    ``name`` is the element type, ``c_type`` the C type in which elements are in an array of 4;
    ``axes`` are those of `MemoryDesc.image_shape`.
    """

    side: str
    name: str
    c_type: str
    axes: int
    channels: int

    @property
    def declared(self) -> str:
        """The parameter of the kernel."""
        return f"{_ACCESS[self.side]} {_KINDS[self.axes]} {self.side}"

    def at(self, pixel: str) -> str:
        """The coordinates of a pixel, from its number."""
        width, height = f"{self.side}_width", f"{self.side}_height"
        column, row = f"(int)({pixel} % {width})", f"(int)({pixel} / {width}"
        if self.axes == PLANE:  # rows, columns and components
            return f"(int2)({column}, {row}))"
        return f"(int4)({column}, {row} % {height}), (int)({pixel} / {width} / {height}), 0)"

    def load(self, image: str, pixel: str, array: str) -> str:
        """Statements: a pixel into an array of 4 elements."""
        row, where = PIXELS[self.name], f"{image}, exact, {self.at(pixel)}"
        value = f"read_image{row.function}({where})"
        if row.one:
            convert = f"convert_{'u' * (row.function == 'ui')}int4_rte"
            part = f"{convert}(read_imagef({where}) * {row.one}.0f)"
            value = f"{self._asks(image)} ? {value} : {part}"
        return row.taken.format(v=value, a=array, c=self.c_type)

    def store(self, image: str, pixel: str, array: str) -> str:
        """Statements: an array of 4 elements into a pixel."""
        row, where = PIXELS[self.name], f"{image}, {self.at(pixel)}"
        value = row.given.format(a=array)
        whole = f"write_image{row.function}({where}, {value});"
        if not row.one:
            return whole
        part = f"write_imagef({where}, convert_float4({value}) / {row.one}.0f);"
        return f"if ({self._asks(image)}) {{\n    {whole}\n}} else {{\n    {part}\n}}"

    def _asks(self, image: str) -> str:
        whole = {"u8": "CLK_UNSIGNED_INT8", "s8": "CLK_SIGNED_INT8"}[self.name]
        return f"get_image_channel_data_type({image}) == {whole}"


def pixels(side: str, desc: MemoryDesc, types: str, arguments: Arguments) -> PixelAccess | None:
    """The pixels of a side, whose extents become arguments; None of a buffer."""
    shape = desc.image_shape
    if shape is None:
        return None
    arguments.values[f"{side}_width"] = shape[-2]
    if len(shape) > PLANE:  # layers
        arguments.values[f"{side}_height"] = shape[-3]
    c_type = "ushort" if desc.dtype.name == "f16" else types
    return PixelAccess(side, desc.dtype.name, c_type, len(shape), shape[-1])
