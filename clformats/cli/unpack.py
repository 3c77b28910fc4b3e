"""`clformats unpack`: what `clformats pack` packed, as it was."""

from __future__ import annotations

import argparse

from ..files import Options, Summary, is_packed, unpack_file, unpack_quantised
from .transfer import add_arguments, carry_out, refuse_for_quantised


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `unpack` to the command line."""
    parser = subparsers.add_parser(
        "unpack",
        help="restore packed weights",
        description="Write a copy of a file in which the packed tensors have the shape, the order "
        "of axes and the element type that they had before `clformats pack`, to the byte unless it "
        "converted them. The copy is read back and compared before it is moved to its place. Exit "
        "status 1, with the reason, if none is written.",
        epilog="example:  clformats unpack packed.safetensors -o model.safetensors",
    )
    parser.add_argument(
        "--desc",
        help="the descriptor of a .npy file without record, such as f32:OIhw16i16o:64x3x7x7",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Unpack, and print what was done."""

    def job(options: Options) -> Summary:
        if is_packed(args.source):
            refuse_for_quantised(args, "desc", "dtype", "device", "match")
            return unpack_quantised(args.source, args.output, options)
        return unpack_file(
            args.source,
            args.output,
            desc=args.desc,
            options=options,
        )

    return carry_out(args, "unpacked", job)
