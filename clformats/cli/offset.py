"""`clformats offset`: where an element lies, and which element lies somewhere."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from ..errors import InvalidDescriptor
from ..host.packing import flat_size, places
from ..pictures.explaining import digit_values, offset_formula, placed_at
from ..pictures.words import columns, formula
from ..quantised import QuantisedDesc
from ..tensors.desc import MemoryDesc
from .arguments import add_json, add_target, numbers, print_json, sized_target


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `offset` to the command line."""
    parser = subparsers.add_parser(
        "offset",
        help="the offset of an element, step by step, or the element at an offset",
        description="The offset of an element, in elements and in bytes, computed line by line; "
        "or, with --at, the coordinates of the element at an offset. Of a quantised tensor, "
        "such as q4_0:gguf:64x256, the bits of each plane.",
        epilog="example:  clformats offset OIhw4i16o4i --shape 64,32,3,3 --coord 5,3,1,0",
    )
    add_target(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--coord", help="coordinates in logical order: 1,16,4,3")
    what.add_argument("--at", metavar="OFFSET", help="an offset in elements, to print the element")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the computation."""
    desc: Any = sized_target(args)
    if isinstance(desc, QuantisedDesc):
        return _of_quantised(desc, args)
    if args.json:
        return print_json(_data(desc, args))
    if args.coord is not None:
        lines = forward(desc, numbers(args.coord, "the coordinates"))
    else:
        lines = backward(desc, one_offset(args.at))
    print("\n".join(lines))
    return 0


def _of_quantised(desc: QuantisedDesc, args: argparse.Namespace) -> int:
    """The bits of an element, plane by plane, or the element to which a bit belongs."""
    rows: list[dict[str, object]] = []
    try:
        for name, plane in desc.planes.items():
            if args.coord is not None:
                index = numbers(args.coord, "the coordinates")
                bit = int(desc.offset(*index, plane=name))
            else:
                bit, found = one_offset(args.at), desc.coords(one_offset(args.at), name)
                if found is None:
                    continue
                index = found
            rows.append({"plane": name, "bits": plane.bits, "coord": list(index), "bit": bit,
                         "byte": bit // 8})  # fmt: skip
    except IndexError as error:
        raise InvalidDescriptor(str(error)) from error
    if args.json:
        return print_json({"desc": str(desc), "planes": rows})
    print(f"{desc}, offsets in bits" if rows else f"{desc}: bit {args.at} belongs to no value")
    head = [("plane", "bits", "coordinates", "bit", "byte")]
    texts = [(str(r["plane"]), str(r["bits"]), ", ".join(map(str, r["coord"])),  # type: ignore[call-overload]
              str(r["bit"]), str(r["byte"])) for r in rows]  # fmt: skip
    print("\n".join(columns([*head, *texts] if rows else [], "  ")))
    return 0


def _data(desc: MemoryDesc, args: argparse.Namespace) -> dict[str, object]:
    """Coordinates and offset, for programs; no coordinates where there is no element."""
    if args.coord is not None:
        index = numbers(args.coord, "the coordinates")
        offset = _offset(desc, index)
    else:
        offset = one_offset(args.at)
        _check_inside(desc, offset)
        index = desc.coords(offset) or ()
    return {"desc": str(desc), "coord": list(index) or None, "offset": offset,
            "bit": offset * desc.dtype.bits}  # fmt: skip


def one_offset(text: str) -> int:
    """The offset that was asked about."""
    found = numbers(text, "the offset")
    if len(found) > 1:
        raise InvalidDescriptor(f"got {len(found)} offsets {text}, expected one")
    return found[0]


def forward(desc: MemoryDesc, index: tuple[int, ...]) -> Iterator[str]:
    """From coordinates to the offset."""
    offset = _offset(desc, index)
    named = ", ".join(f"{c}={i}" for c, i in zip(desc.format.dims, index, strict=True))
    yield f"{desc} at {named}"
    yield f"offset = {offset_formula(desc)}"
    yield ""
    yield from columns(list(_terms(desc, offset, index)), "  ")
    yield ""
    yield f"offset {offset} elements = byte {_byte(desc, offset)}"


def backward(desc: MemoryDesc, offset: int) -> Iterator[str]:
    """From an offset to the coordinates."""
    _check_inside(desc, offset)
    yield f"{desc} at offset {offset} = byte {_byte(desc, offset)}"
    yield ""
    yield from columns(list(_terms(desc, offset, None)), "  ")
    yield ""
    yield _found(desc, offset)


def _check_inside(desc: MemoryDesc, offset: int) -> None:
    if not 0 <= offset < flat_size(desc):
        raise InvalidDescriptor(
            f"offset {offset} is outside {desc}, whose memory has {flat_size(desc)} elements"
        )


def _offset(desc: MemoryDesc, index: tuple[int, ...]) -> int:
    """`MemoryDesc.offset`, with what is wrong in the words of the command line."""
    letters = desc.format.dims
    if len(index) != desc.ndims:
        raise InvalidDescriptor(
            f"got {len(index)} coordinates {index}, {desc} has {desc.ndims}: {', '.join(letters)}"
        )
    for letter, i, n in zip(letters, index, desc.dims, strict=True):
        if not 0 <= i < n:
            raise InvalidDescriptor(
                f"{letter}={i} is outside {desc}: expected 0 to {n - 1}"
                if n
                else f"{desc} has no elements: {letter} has size 0"
            )
    return int(desc.offset(*index))


def _terms(
    desc: MemoryDesc, offset: int, index: tuple[int, ...] | None
) -> Iterator[tuple[str, ...]]:
    """One row per digit: its formula, the formula in numbers, times the stride."""
    values, placed = digit_values(desc, offset), placed_at(desc, offset)
    for p, value in zip(placed, values, strict=True):
        text = formula(desc.format, p.digit, desc)
        numeric = "" if index is None else _in_numbers(text, desc, index, value)
        yield text, numeric, f"= {value}", f"* {p.stride}", f"= {value * p.stride}"
    rest = offset - sum(p.stride * v for p, v in zip(placed, values, strict=True))
    if rest:
        yield "rest", "", "", "", f"= {rest}"
    yield "sum", "", "", "", f"= {offset}"


def _in_numbers(text: str, desc: MemoryDesc, index: tuple[int, ...], value: int) -> str:
    """The formula with the coordinates put in: ``16 / 16``; nothing where it is the value."""
    numeric = re.sub("[a-z]", lambda m: str(index[desc.format.letters.index(m[0])]), text)
    return "" if numeric == str(value) else f"= {numeric}"


def _found(desc: MemoryDesc, offset: int) -> str:
    """The last line: the element, or what else lies there."""
    index = desc.coords(offset)
    if index is not None:
        return ", ".join(f"{c}={i}" for c, i in zip(desc.format.dims, index, strict=True))
    if offset >= places(desc):
        return "part of the sums that follow the elements"
    inside = desc.place_at(offset)
    fused = any(len(d.dims) > 1 for d in desc.format.digits)
    return "padding: no element" if inside or fused else "a gap between strides: no element"


def _byte(desc: MemoryDesc, offset: int) -> str:
    byte, bit = divmod(offset * desc.dtype.bits, 8)
    return f"{byte}, from bit {bit}" if desc.dtype.is_packed else str(byte)
