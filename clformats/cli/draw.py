"""`clformats draw`: a tensor in memory order, as boxes in the terminal and as SVG."""

from __future__ import annotations

import argparse

from ..pictures.calls import draw
from .arguments import add_target, number, sized_target

MOST_BOXES = 1000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `draw` to the command line."""
    parser = subparsers.add_parser(
        "draw",
        help="a picture of a tensor in memory",
        description="Draw a tensor in the order of memory: left to right, then down, then box by "
        "box. Each cell is an element with the coordinates that change along the row.",
        epilog="example:  clformats draw b_fs_yx_fsv16 --shape 2,17,5,4 --svg fsv16.svg",
    )
    add_target(parser)
    parser.add_argument(
        "--boxes",
        default="4",
        help=f"how many boxes to draw at most, 1 to {MOST_BOXES} (default: 4)",
    )
    parser.add_argument("--svg", metavar="FILE", help="write a coloured picture to this file too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the picture, and write the file."""
    boxes = number(args.boxes, "the number of boxes", 1, MOST_BOXES)
    drawn = draw(sized_target(args), boxes=boxes)
    if args.svg:
        drawn.save(args.svg)
    print(drawn)
    if args.svg:
        print(f"\nwrote {args.svg}")
    return 0
