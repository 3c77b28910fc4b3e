"""The values of codes as OpenCL C: of one code, or of a vector of 16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..templates import filled
from .codes import Codes
from .lanes import HEX, Placed, Tile, kind_of
from .loads import loaded, vector
from .planes import Field

Lanes = Sequence[tuple[int, int]]
_ARITHMETIC = {"e2m1x2": "(float)doubled", "f4_e2m1": "e2m1", "f8_e8m0": "e8m0",
               "e8m0_half": "e8m0_half", "ue4m3_half": "ue4m3_half"}  # fmt: skip
"""Tables that are computed: the function of a code."""
_VECTORS = {"e2m1x2": "convert_float16(convert_int16(doubled16({})))", "f4_e2m1": "e2m116({})"}
"""The same for 16 codes."""


class Tables:
    """The tables that a program looks values up in."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = f"{prefix}_" if prefix else ""
        self._known: dict[str, Codes] = {}

    def of(self, dtype: Codes) -> str:
        """The name of a type's table."""
        name = f"{self._prefix}table_{dtype.name}"
        self._known[name] = dtype
        return name

    def value(self, dtype: Codes, code: str) -> str:
        """The value of a code."""
        call = "as_float" if _numbers(dtype)[0] == "uint" else "(float)"
        return f"{call}({self.of(dtype)}[{code}])"

    def rows(self) -> list[tuple[str, str, list[str]]]:
        """Name, C type and lines of each table."""
        return [(name, *_numbers(dtype)) for name, dtype in sorted(self._known.items())]


def _numbers(dtype: Codes) -> tuple[str, list[str]]:
    table = dtype.table.ravel()
    whole = bool((table == np.rint(table)).all()) and bool((np.abs(table) < 128).all())
    # -0 is no integer
    if whole and not np.signbit(table[table == 0]).any():
        texts = [str(int(v)) for v in table]
    else:
        texts = [f"{int(v):#x}u" for v in table.view(np.uint32)]
        whole = False
    lines = [", ".join(texts[i : i + 16]) for i in range(0, len(texts), 16)]
    return "char" if whole else "uint", lines


def source(
    body: str, tables: Tables, *, fp16_lanes: bool = False, more: Mapping[str, object] | None = None
) -> str:
    """A whole program around generated lines; ``more`` is what the rules to quantise need."""
    return filled("quantised", body=body, tables=tables.rows(), fp16_lanes=fp16_lanes,
                  rules=more)  # fmt: skip


def codes(field: Field, planes: Mapping[str, Placed], tile: Tile, lanes: Lanes) -> str:
    """C of unsigned codes of elements, put together from planes; pointers are named p_<plane>."""
    parts = []
    wide = kind_of(field.bits)
    for low, plane in field.parts:
        own = loaded(f"p_{plane.name}", planes[plane.name], tile, lanes)
        if len(field.planes) > 1:
            own = f"convert_{wide}{len(lanes)}({own})" if len(lanes) > 1 else f"({wide})({own})"
        parts.append(f"({own}) << ({wide}){low}" if low else own)
    text = parts[0] if len(parts) == 1 else f"({' | '.join(f'({p})' for p in parts)})"
    if field.bias:
        mask = (1 << field.bits) - 1
        least = (-field.bias) & mask
        text = f"(({text}) + ({wide}){least} & ({wide}){mask})"
    return text


def value(
    field: Field, planes: Mapping[str, Placed], tile: Tile, lanes: Lanes, tables: Tables
) -> str:
    """C of values in f32: ``float`` where all lanes share one, else ``float16``."""
    lanes = distinct(field, tile, lanes)
    if field.dtype.width > 1:
        return _of_book(field, planes, tile, lanes, tables)
    found = codes(field, planes, tile, lanes)
    return of_codes(field.dtype, found, len(lanes), tables)


def distinct(field: Field, tile: Tile, lanes: Lanes) -> Lanes:
    """One lane where all of them have the same value of a field."""
    rows, columns = field.group
    group = (rows or tile.rows, columns or tile.columns)
    found = {(r // group[0], c // group[1]) for r, c in lanes}
    return lanes[:1] if len(found) == 1 and field.dtype.width == 1 else lanes


def of_codes(dtype: Codes, found: str, width: int, tables: Tables) -> str:
    """The values of unsigned codes in C, of one, of 4, of 8 or of 16."""
    if dtype.name in ("f16", *_VECTORS) and width in (4, 8):
        wide = {1: "uchar", 2: "ushort"}[dtype.nbytes]
        filled_up = ", ".join([found, *(f"({wide}{n})0" for n in (4, 8) if n >= width)])
        found = of_codes(dtype, f"({wide}16)({filled_up})", 16, tables)
        return f"{found}.lo" if width == 8 else f"{found}.lo.lo"
    if dtype.name in ("f16", "bf16", "f32"):
        return _of_float(dtype, found, width)
    if dtype.kind in ("unsigned", "signed"):
        return _of_integer(dtype, found, width)
    if width == 16 and dtype.name in _VECTORS:
        return _VECTORS[dtype.name].format(found)
    function = _ARITHMETIC.get(dtype.name)
    if width == 1:
        return f"{function}({found})" if function else tables.value(dtype, found)
    named = [f"({found}).s{HEX[j]}" for j in range(width)]
    return vector(
        "float", [f"{function}({c})" if function else tables.value(dtype, c) for c in named]
    )


def _of_float(dtype: Codes, found: str, width: int) -> str:
    if dtype.name == "f16":
        return f"half_of({found})" if width == 1 else f"halves_of({found})"
    lanes = "" if width == 1 else str(width)
    if dtype.name == "bf16":
        found = f"(uint)({found}) << 16" if width == 1 else f"convert_uint{lanes}({found}) << 16u"
    return f"as_float{lanes}({found})"


def _of_integer(dtype: Codes, found: str, width: int) -> str:
    signed = dtype.kind == "signed"
    if width == 1:
        unused = 32 - dtype.bits
        return f"(float)((int)((uint)({found}) << {unused}) >> {unused})" if signed else (
            f"(float)({found})"
        )  # fmt: skip
    if signed and dtype.bits == 8:
        found = f"as_char{width}({found})"
    elif signed and dtype.bits < 8:
        unused = 8 - dtype.bits
        found = f"as_char{width}(({found}) << (uchar){unused}) >> (char){unused}"
    elif signed:
        unused = 32 - dtype.bits
        return (f"convert_float{width}(as_int{width}(convert_uint{width}({found}) << {unused}u) "
                f">> {unused})")  # fmt: skip
    elif dtype.bits == 32:  # a signed integer does not hold them
        return f"convert_float{width}({found})"
    return f"convert_float{width}(convert_int{width}({found}))"


def _of_book(
    field: Field, planes: Mapping[str, Placed], tile: Tile, lanes: Lanes, tables: Tables
) -> str:
    """Values of code words: neighbours along the columns share one."""
    width, table = field.dtype.width, tables.of(field.dtype)
    inner = [c % width for _, c in lanes]
    run = list(range(width)) * (len(lanes) // width)
    if inner == run and len(lanes) > 1:
        words = [codes(field, planes, tile, [lane]) for lane in lanes[::width]]
        loads = [f"vload{width}(0, {table} + {width} * ({w}))" for w in words]
        n = len(lanes)
        return f"convert_float{n}((char{n})({', '.join(loads)}))"
    each = [f"(float){table}[{width} * ({codes(field, planes, tile, [(r, c)])}) + {c % width}]"
            for r, c in lanes]  # fmt: skip
    return each[0] if len(each) == 1 else vector("float", each)
