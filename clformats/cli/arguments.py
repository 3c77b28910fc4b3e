"""Arguments common to several commands: formats, shapes and coordinates as a user types them.

Formats, sizes and coordinates are read here and not by argparse: a wrong one raises an `Error` of
this library, which every command prints as one line, with exit status 1. An unknown option, a
missing NAME or an unknown choice is argparse's: it prints its usage text, with exit status 2.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import Error, InvalidDescriptor, InvalidFormat
from ..files.destination import destination
from ..formats import Format
from ..formats.digits import MAX_NDIMS, RUNTIME
from ..formats.registry import without_bits
from ..formats.tags import is_meta
from ..interop.notations import verbose
from ..tensors.desc import MemoryDesc
from ..tensors.given import sized


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add NAME, --shape, --ndims and --dtype."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a format (b_fs_yx_fsv16, nChw16c, aBx16b), a printed descriptor "
        "(f32:nchw:2x17x5x4), or oneDNN's log text (src_f32::blocked:acdb::f0)",
    )
    parser.add_argument(
        "--shape",
        help="sizes in logical order: 2,17,5,4 or 2x17x5x4; "
        "* for one that is known at execution only",
    )
    parser.add_argument("--ndims", help="the rank, for meta tags such as aBx16b without a shape")
    parser.add_argument(
        "--dtype", help="the element type (default: f32, or what the format is for)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_output(parser: argparse.ArgumentParser, *names: str, text: str, **more: Any) -> None:
    """Add -o and --force; ``names`` are further spellings of -o."""
    parser.add_argument("-o", "--output", *names, metavar="FILE", help=text, **more)
    parser.add_argument("--force", action="store_true", help="replace a file that exists")


def write_text(file: str, text: str, *, force: bool, tell: bool = True) -> None:
    """Write a result to a file, all of it or nothing; ``-`` is the terminal. Raises `Error`."""
    if file == "-":
        print(text, end="")
        return
    with destination(Path(file), [], companions=(), force=force) as place:
        place.write_text(text, encoding="utf-8")
    if tell:
        print(f"wrote {file}")


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """The client of a Dask scheduler. Raises `Error` where there is none."""
    try:
        client = import_module("distributed").Client(address, timeout="10s")
    except ImportError as error:
        raise Error(f"--dask needs Dask ({error}): pip install distributed") from error
    except (OSError, ValueError) as error:
        raise Error(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client


def print_json(data: Any) -> int:
    """Print what a program asked for; exit status 0."""
    print(json.dumps(data, indent=2, ensure_ascii=False))
    return 0


def numbers(text: str, what: str) -> tuple[int, ...]:
    """``"2,17,5,4"`` or ``"2x17x5x4"`` as ints, negative ones too. Raises `InvalidDescriptor`."""
    text = _unwrapped(text)
    with suppress(ValueError):  # from thousands of digits on Python refuses
        if re.fullmatch(r"\s*-?\d+\s*(?:[x,]\s*-?\d+\s*)*", text):
            return tuple(int(n) for n in re.split("[x,]", text))
    shown = text if len(text) <= 60 else f"{text[:60]}..."
    raise InvalidDescriptor(
        f"cannot read {shown!r} as {what}: expected whole numbers such as 2,17,5,4 or 2x17x5x4"
    )


def _unwrapped(text: str) -> str:
    """``"(2, 17, 5, 4)"``, as Python prints a shape, without what surrounds the numbers."""
    found = re.fullmatch(r"\s*[(\[](.*?),?\s*[)\]]\s*", text, re.DOTALL)
    return found[1] if found else text


def number(text: str, what: str, least: int, most: int) -> int:
    """One number in a range. Raises `InvalidDescriptor`."""
    found = numbers(text, what)
    if len(found) != 1 or not least <= found[0] <= most:
        raise InvalidDescriptor(f"got {text} as {what}, expected one number of {least} to {most}")
    return found[0]


def sizes(text: str) -> tuple[int, ...]:
    """A shape; ``*`` stands for a size that is known at execution only."""
    return numbers(re.sub(r"(?<![^x,\s])\*(?![^x,\s])", str(RUNTIME), text), "the shape")


def target(args: argparse.Namespace) -> tuple[Format, MemoryDesc | None]:
    """The format that was asked for, and the descriptor where its sizes are known."""
    log = verbose.read(args.name)
    if log is not None:
        return _logged(log, args)
    if ":" in without_bits(args.name):
        desc = MemoryDesc.parse(args.name)
        if args.shape is not None or args.ndims is not None or args.dtype is not None:
            raise InvalidDescriptor(
                f"{args.name} already has element type, format and sizes: "
                f"leave out --shape, --ndims and --dtype"
            )
        return desc.format, desc
    dims = None if args.shape is None else sizes(args.shape)
    fmt = named_format(args.name, dims, args.ndims)
    return (fmt, None) if dims is None else sized(fmt, dims, args.dtype or None)


def sized_target(args: argparse.Namespace) -> MemoryDesc:
    """The descriptor that was asked for, with all of its sizes. Raises `InvalidDescriptor`."""
    fmt, desc = target(args)
    if desc is None:
        raise InvalidDescriptor(
            f"{fmt} needs sizes: add --shape with {fmt.ndims} numbers, for {', '.join(fmt.dims)}"
        )
    if not desc.has_layout:
        raise InvalidFormat(f"the format {str(fmt)!r} has no layout: name a concrete one")
    if desc.has_runtime:
        raise InvalidDescriptor(
            f"{desc} has sizes or strides that are known at execution only: give numbers for *"
        )
    return desc


def _logged(log: verbose.LogText, args: argparse.Namespace) -> tuple[Format, MemoryDesc | None]:
    """Format and descriptor of a text of oneDNN's log, with the sizes in it or in --shape."""
    if log.dims and args.shape is not None:
        raise InvalidDescriptor(f"{args.name} already has sizes: leave out --shape")
    fmt = log.format
    if args.shape is None and not log.dims:
        return fmt, None
    shape = () if args.shape is None else sizes(args.shape)
    text = "x".join("*" if n == RUNTIME else str(n) for n in shape)
    return fmt, log.desc(text, args.dtype or "")


def named_format(name: str, dims: tuple[int, ...] | None, ndims: str | None) -> Format:
    """The format of a name; a meta tag takes its rank from the shape or from --ndims."""
    rank = None if ndims is None else number(ndims, "the number of dimensions", 1, MAX_NDIMS)
    if dims is not None and rank not in (None, len(dims)):
        raise InvalidDescriptor(f"got --ndims {rank} and a shape of {len(dims)} sizes")
    if not is_meta(name):
        return Format(name, ndims=rank)
    if rank is None and dims is None:
        raise InvalidFormat(
            f"{name!r} is a meta tag, whose x stands for any number of dimensions: "
            f"give the rank by --ndims 4 or by --shape"
        )
    return Format(name, ndims=rank if dims is None else len(dims))
