"""`clformats convert`: the name of a format in another notation."""

from __future__ import annotations

import argparse

from ..formats.digits import MAX_NDIMS
from ..interop.notations import NOTATIONS, verbose
from ..interop.notations.conversion import Conversion, convert, convert_line
from ..pictures.words import columns
from .arguments import add_json, number, print_json

SOURCES = (*NOTATIONS, "verbose")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `convert` to the command line."""
    parser = subparsers.add_parser(
        "convert",
        help="a format's name in another notation",
        description="The name of a format in the notation of oneDNN, clDNN, TVM, einops, XLA or "
        "QNN, as digits, or as an engine of the table calls it (MNN NC4HW4); "
        "in all of them without --to. Exit status 1, with the reason, if a notation has none. "
        "A name may also be what oneDNN's log prints (src_f32::blocked:acdb::f0), and a whole line "
        "of the log (onednn_verbose,...), of which every tensor is shown.",
        epilog="example:  clformats convert NCHW16c --to cldnn",
    )
    parser.add_argument("name", metavar="NAME", help="a format in any of these notations")
    parser.add_argument("--to", choices=NOTATIONS, help="print the name in this notation only")
    parser.add_argument(
        "--from", dest="source", choices=SOURCES, help="the notation of NAME (default: guessed)"
    )
    parser.add_argument("--ndims", help="the rank, for meta tags such as aBx16b")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the name or the table; of a line of oneDNN's log one for each tensor."""
    if verbose.is_line(args.name):
        return _line(args)
    rank = None
    if args.ndims is not None:
        rank = number(args.ndims, "the number of dimensions", 1, MAX_NDIMS)
    found = convert(args.name, args.to, source=args.source, ndims=rank)
    if args.json:
        return print_json(found.data if isinstance(found, Conversion) else found)
    print(found)
    return 0


def _line(args: argparse.Namespace) -> int:
    """The tensors of a whole line of the log."""
    tensors = convert_line(args.name, args.to)
    if args.json:
        return print_json([
            {"argument": t.argument, "tensor": t.said, "names": t.names and t.names.names}
            for t in tensors
        ])  # fmt: skip
    rows = []
    for t in tensors:
        rows.append((t.argument, t.said))
        if t.names and not args.to:
            rows += [("", f"{notation}  {name}") for notation, name in t.names.rows]
    print("\n".join(columns(rows)))
    return 0
