"""`clformats pack`: the tensors of a file in another memory format."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from ..errors import Error, InvalidFormat
from ..files import Options, Summary, is_layout, pack_file, pack_quantised
from ..quantised.types import layout_names
from .arguments import dask_client
from .transfer import add_arguments, carry_out, refuse_for_quantised

NOTE = (
    "note: the weights are 1-D arrays of physical elements now, in an order that the graph does "
    "not know: no plain ONNX runtime can run this model; `clformats unpack` restores it"
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `pack` to the command line."""
    parser = subparsers.add_parser(
        "pack",
        help="put the weights of a file into a memory format",
        description="Write a copy of a .npy, .safetensors or .onnx file in which the tensors of "
        "the right rank are packed: 1-D arrays of physical elements, padding zero, with the "
        "descriptor in the file. All others are copied. The copy is read back and compared "
        "before it is moved to its place. Exit status 1, with the reason, if none is written. "
        "With a layout of quantised types (clformats inspect, docs/quantised.md): the quantised "
        "tensors of a .gguf, or of a GPTQ, AWQ, compressed-tensors or gpt-oss checkpoint, in it, "
        "in a .safetensors file; u4g32:gptq makes them another type of equal values.",
        epilog="example:  clformats pack model.safetensors --from oiyx --to os_is_yx_isv16_osv16 "
        "-o packed.safetensors",
    )
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        required=True,
        help="the format, such as os_is_yx_isv16_osv16; or a layout of quantised types, or "
        "TYPE:LAYOUT",
    )
    parser.add_argument(
        "--from",
        dest="order",
        metavar="FORMAT",
        help="the axes of the arrays: oiyx, hwio, goiyx ... (default: the logical order of --to)",
    )
    parser.add_argument(
        "--as",
        dest="raw_type",
        metavar="DTYPE",
        help="the element type of a .npy that numpy saved as raw bytes: bf16, f8_e4m3 ...",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="let the workers of this Dask scheduler pack the quantised tensors; they must see "
        "IN and OUT under the same paths",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Pack, and print what was done."""

    def job(options: Options) -> Summary:
        if is_layout(args.to):
            refuse_for_quantised(args, "order", "raw_type", "dtype", "device")
            with dask_client(args.dask) if args.dask else nullcontext() as client:
                return pack_quantised(args.source, args.output, args.to, options, client=client)
        if args.dask:
            raise Error(f"--dask shares quantised tensors out, and {args.to} is no layout of them")
        if args.source.endswith(".gguf"):
            raise InvalidFormat(
                f"got {args.to} for the tensors of a .gguf file, expected a layout of quantised "
                f"tensors: {', '.join(sorted(layout_names()))}"
            )
        return pack_file(
            args.source,
            args.output,
            args.to,
            order=args.order,
            raw_type=args.raw_type,
            options=options,
        )

    status = carry_out(args, "packed", job)
    if status == 0 and not args.json and args.output.endswith(".onnx"):
        print(NOTE)
    return status
