"""`clformats kernel`: the offsets of a tensor's elements as OpenCL C, for kernels of users."""

from __future__ import annotations

import argparse

from ..errors import InvalidArgument, InvalidDescriptor
from ..formats import Format
from ..formats.digits import RUNTIME
from ..index import index_source
from ..index.tensor import beyond_32_bits
from ..tensors.desc import MemoryDesc
from .arguments import add_output, add_target, target, write_text


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `kernel` to the command line."""
    parser = subparsers.add_parser(
        "kernel",
        help="OpenCL C with the offsets of elements, for kernels of your own",
        description="Print OpenCL C: the index of an element, its inverse, sizes, pitches and "
        "padding; with a shape or --dtype, which give an element type, also loads and stores of "
        "vectors. Without a shape the sizes are macros that you define before the source. Of a "
        "quantised tensor, such as q4_0:gguf:4096x4096: functions that decode on load.",
        epilog="example:  clformats kernel b_fs_yx_fsv16 --shape 2,17,5,4 --prefix SRC",
    )
    add_target(parser)
    parser.add_argument("--prefix", default="SRC", help="the prefix of all names (default: SRC)")
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument(
        "--dynamic", action="store_true", help="take the sizes from arguments of the kernel"
    )
    origin.add_argument(
        "--shape-info", action="store_true", help="take the sizes from clDNN's buffer shape_info"
    )
    parser.add_argument(
        "--padded", default="", metavar="LETTERS", help="dimensions with unknown padding, as yx"
    )
    parser.add_argument(
        "--vector", help="dimension and width of vectors: f16, x4, o4i4; 'o4i4 half' for half lanes"
    )
    add_output(parser, text="write it to this file instead of the terminal", default="-")
    parser.add_argument("--wide", action="store_true", help="count in 64 bits")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the source."""
    fmt, desc = target(args)
    sizes = "shape_info" if args.shape_info else "arguments" if args.dynamic else None
    if sizes is None and desc is not None and desc.has_runtime:
        sizes = "arguments"
    wide = args.wide or (isinstance(desc, MemoryDesc) and beyond_32_bits(desc))
    wanted: Format | MemoryDesc = desc or fmt
    if (sizes is not None and isinstance(desc, MemoryDesc)) or desc is None:
        wanted = _unknown(fmt, desc, args)
    if sizes is None and desc is None and isinstance(wanted, MemoryDesc):
        sizes = "macros"
    source = index_source(
        wanted,
        args.prefix,
        sizes=sizes,
        padded=args.padded,
        vector=args.vector,
        wide=wide or None,
    )
    write_text(args.output, source, force=args.force)
    return 0


def _unknown(fmt: Format, desc: MemoryDesc | None, args: argparse.Namespace) -> Format | MemoryDesc:
    """The tensor with sizes to be known at execution: those that are *, or else all."""
    if desc is None and args.dtype is None:
        return fmt
    if desc is None:
        desc = MemoryDesc((RUNTIME,) * fmt.ndims, args.dtype, fmt)
    elif not desc.has_runtime:
        desc = _of_any_size(desc)
    if args.padded and any(map(any, desc.padding)):
        raise InvalidArgument(f"--padded {args.padded}: {desc} has its padding, leave it out")
    return desc.format if args.padded else desc


def _of_any_size(desc: MemoryDesc) -> MemoryDesc:
    if desc != MemoryDesc(desc.dims, desc.dtype, desc.format, padding=desc.padding):
        raise InvalidDescriptor(
            f"{desc} has strides of its own, which cannot be combined with unknown sizes: leave "
            f"out --dynamic and --shape-info"
        )
    unknown = (RUNTIME,) * desc.ndims
    return MemoryDesc(unknown, desc.dtype, desc.format, padding=desc.padding)
