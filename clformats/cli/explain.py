"""`clformats explain`: what a format's name means, and where it puts the elements of a tensor."""

from __future__ import annotations

import argparse

from ..pictures.explaining import TABLE_LIMIT, Explanation
from .arguments import add_json, add_target, print_json, target


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `explain` to the command line."""
    parser = subparsers.add_parser(
        "explain",
        help="what each part of a format's name means",
        description="What each part of a format's name means, its digits, and its names in both "
        "notations. With a shape also sizes, strides, padding and the offset formula, and for a "
        f"tensor of at most {TABLE_LIMIT} elements in memory a table of them.",
        epilog="example:  clformats explain b_fs_yx_fsv16 --shape 2,17,5,4",
    )
    add_target(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation."""
    explanation = Explanation(*target(args))
    if args.json:
        return print_json(explanation.data)
    print(explanation)
    return 0
