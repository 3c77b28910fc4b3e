"""What the commands have in common: reading a format, a shape and coordinates as a user types them.

Bad input is an `Error` of this library, so that every command answers it with one line and exit
status 1; argparse's own checks would print a usage text instead.
"""

from __future__ import annotations

import argparse
import re

from ..desc import MemoryDesc
from ..errors import InvalidDescriptor, InvalidFormat
from ..formats import Format
from ..formats.names import is_meta

_VERBOSE = re.compile(r"(?:\w*?_?(?P<dtype>[a-z]+\d+(?:_e\dm\d)?):\w*:)?blocked:(?P<tag>\w+)[:\w]*")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add NAME, --shape, --ndims and --dtype."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a format (b_fs_yx_fsv16, nChw16c, aBx16b), a printed descriptor "
        "(f32:nchw:2x17x5x4), or oneDNN's log text (src_f32::blocked:acdb::f0)",
    )
    parser.add_argument("--shape", help="sizes in logical order: 2,17,5,4 or 2x17x5x4")
    parser.add_argument("--ndims", help="the rank, for meta tags such as aBx16b without a shape")
    parser.add_argument("--dtype", help="the element type (default: f32)")


def numbers(text: str, what: str) -> tuple[int, ...]:
    """``"2,17,5,4"`` or ``"2x17x5x4"`` as ints. Raises `InvalidDescriptor`."""
    if not re.fullmatch(r"\s*\d+\s*(?:[x,]\s*\d+\s*)*", text):
        raise InvalidDescriptor(
            f"cannot read the {what} {text!r}: expected whole numbers, not negative, "
            f"such as 2,17,5,4 or 2x17x5x4"
        )
    return tuple(int(n) for n in re.split("[x,]", text))


def target(args: argparse.Namespace) -> tuple[Format, MemoryDesc | None]:
    """The format that was asked for, and the descriptor where its sizes are known."""
    if re.fullmatch(r"\w+:\w+:[\dx]+(?::\w+=.*)?", args.name):
        desc = MemoryDesc.parse(args.name)
        if args.shape is not None or args.ndims is not None or args.dtype is not None:
            raise InvalidDescriptor(
                f"{args.name} already tells element type, format and sizes: "
                f"leave --shape, --ndims and --dtype out"
            )
        return desc.format, desc
    name, dtype = _name_and_dtype(args)
    dims = None if args.shape is None else numbers(args.shape, "shape")
    fmt = _format(name, dims, args.ndims)
    return fmt, None if dims is None else MemoryDesc(dims, dtype, fmt)


def sized_target(args: argparse.Namespace) -> MemoryDesc:
    """The descriptor that was asked for. Raises `InvalidDescriptor` where sizes are missing."""
    fmt, desc = target(args)
    if desc is None:
        raise InvalidDescriptor(
            f"{fmt} needs sizes: add --shape with {fmt.ndims} numbers, for {', '.join(fmt.dims)}"
        )
    if not desc.has_layout:
        raise InvalidFormat(f"the format {str(fmt)!r} has no layout: name a concrete one")
    return desc


def _name_and_dtype(args: argparse.Namespace) -> tuple[str, str]:
    """The format's name, out of oneDNN's verbose text if it is that."""
    verbose = _VERBOSE.fullmatch(args.name)
    if verbose:
        return verbose["tag"], args.dtype or verbose["dtype"] or "f32"
    return args.name, args.dtype or "f32"


def _format(name: str, dims: tuple[int, ...] | None, ndims: str | None) -> Format:
    rank = None if ndims is None else numbers(ndims, "number of dimensions")[0]
    if dims is not None and rank not in (None, len(dims)):
        raise InvalidDescriptor(f"got --ndims {rank} and a shape of {len(dims)} sizes")
    if not is_meta(name):
        return Format(name, ndims=rank)
    if rank is None and dims is None:
        raise InvalidFormat(
            f"{name!r} is a meta tag, x stands for any number of dimensions: "
            f"say how many by --ndims 4 or by --shape"
        )
    return Format(name, ndims=rank if dims is None else len(dims))
