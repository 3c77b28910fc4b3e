"""`clformats convert`: the name of a format in another notation."""

from __future__ import annotations

import argparse

from ..errors import Unsupported
from ..formats import Format
from ..formats.names import is_meta
from ..interop.notations import NOTATIONS, guess, parse, render, verbose
from ..pictures.words import columns
from .arguments import named_format

SOURCES = (*NOTATIONS, "verbose")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `convert` to the command line."""
    parser = subparsers.add_parser(
        "convert",
        help="a format's name in another notation",
        description="The name of a format in the notation of oneDNN, clDNN, TVM, einops or XLA; "
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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the name or the table; of a line of oneDNN's log one for each tensor."""
    if verbose.is_line(args.name):
        return _line(args)
    fmt = _format(args)
    if args.to:
        print(render(fmt, args.to))
        return 0
    source = args.source or guess(args.name)
    print(f"{args.name}: {source}, dimensions {' '.join(fmt.dims) or 'none'}")
    print("\n".join(columns([(notation, _entry(fmt, notation)) for notation in NOTATIONS], "  ")))
    return 0


def _line(args: argparse.Namespace) -> int:
    """The tensors of a whole line of the log."""
    tensors = verbose.read_line(args.name)
    rows = []
    for name, log in tensors:
        said = log.format.name if log.kind in ("blocked", "any", "undef") else log.kind
        if args.to:
            said = render(log.format, args.to)
        elif log.dims:
            said = str(log.desc())
        rows.append((name or "?", said))
        if not args.to and log.kind == "blocked":
            rows += [("", f"{n}  {_entry(log.format, n)}") for n in NOTATIONS]
    print("\n".join(columns(rows, "")))
    return 0


def _format(args: argparse.Namespace) -> Format:
    if args.ndims is not None or is_meta(args.name):
        return named_format(args.name, None, args.ndims)
    return parse(args.name, args.source)


def _entry(fmt: Format, notation: str) -> str:
    """The name, or a dash and the reason why there is none."""
    try:
        return render(fmt, notation)
    except Unsupported as error:
        return f"-  {str(error).partition(': ')[2]}"
