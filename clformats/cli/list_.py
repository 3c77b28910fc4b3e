"""`clformats list`: every format that has a name of its own, one line each."""

from __future__ import annotations

import argparse
import re
from typing import get_args

from ..errors import InvalidFormat, pattern
from ..formats import Format, formats
from ..formats.digits import MAX_NDIMS
from ..formats.names import Role
from ..formats.registry import listed
from ..pictures.words import columns
from .arguments import add_json, number, print_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `list` to the command line."""
    parser = subparsers.add_parser(
        "list",
        help="the names of formats",
        description="One line for each listed format: its name, its dimensions in logical order, "
        "what it is for, and its name in the other notation. Formats that are not listed work "
        "too, if their names follow the grammar: see `clformats explain`.",
        epilog="example:  clformats list --role weights --ndims 4 --match osv16",
    )
    parser.add_argument("--role", choices=get_args(Role), help="only formats of this kind")
    parser.add_argument("--ndims", help="only formats of this rank")
    parser.add_argument(
        "--match",
        metavar="REGEX",
        help="only formats in whose name, in either notation, this is found, in capitals or not",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    ndims = (
        None if args.ndims is None else number(args.ndims, "the number of dimensions", 1, MAX_NDIMS)
    )
    rows = [row(fmt) for fmt in formats(args.role, ndims)]
    if args.match:
        wanted = pattern(args.match, flags=re.IGNORECASE)
        rows = [r for r in rows if wanted.search(r[0]) or wanted.search(r[3])]
    if not rows:
        given = ("role", "ndims", "match")
        named = " or ".join(f"--{n}" for n in given if getattr(args, n) is not None)
        raise InvalidFormat(f"no listed format fits: leave out {named}")
    if args.json:
        return print_json([
            {"name": name, "dims": dims.split(), "role": role, "other": other.strip("-") or None}
            for name, dims, role, other in rows
        ])  # fmt: skip
    print("\n".join(columns([("NAME", "DIMS", "ROLE", "OTHER NOTATION"), *rows])))
    return 0


def row(fmt: Format) -> tuple[str, str, str, str]:
    """Name, dimensions, role, and the name in the notation that the first is not in."""
    other = fmt.onednn if fmt.name in listed("cldnn") else fmt.cldnn
    return fmt.name, " ".join(fmt.dims), fmt.role, other or "-"
