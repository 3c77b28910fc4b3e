"""`clformats header`: functions of every format in one file, for OpenCL C and for C."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..index import format_header
from ..interop.files.destination import destination


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
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to this file")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print or write the header."""
    text = format_header(args.names or None)
    if args.output is None:
        print(text, end="")
        return 0
    with destination(Path(args.output), [], companions=(), force=args.force) as place:
        place.write_text(text, encoding="ascii")
    count = sum(
        line.startswith(("#define cf_", "static inline uint cf_")) for line in _places(text)
    )
    print(f"wrote {args.output}: {count} formats")
    return 0


def _places(text: str) -> list[str]:
    """The lines that name a format for the only time: its number of places."""
    return [line for line in text.splitlines() if "_places" in line.split("(")[0]]
