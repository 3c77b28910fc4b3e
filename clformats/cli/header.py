"""`clformats header`: functions of every format in one file, for OpenCL C and for C."""

from __future__ import annotations

import argparse

from ..index import format_header
from .arguments import add_output, write_text


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `header` to the command line."""
    parser = subparsers.add_parser(
        "header",
        help="a C header with the index functions of every format",
        description="Functions for every registered format, or for those named: the offset of an "
        "element, its inverse, and the number of elements in memory. For OpenCL C, C and C++.",
        epilog="example:  clformats header -o formats.h",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a format (default: every one)")
    parser.add_argument("--wide", action="store_true", help="count in 64 bits")
    add_output(parser, text="write it to this file instead of the terminal", default="-")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print or write the header."""
    text = format_header(args.names or None, wide=args.wide)
    write_text(args.output, text, force=args.force)
    return 0
