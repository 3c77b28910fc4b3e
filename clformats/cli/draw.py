"""`clformats draw`: a tensor in memory order, as boxes in the terminal and as SVG."""

from __future__ import annotations

import argparse
from pathlib import Path
from shutil import get_terminal_size

from ..errors import Error
from ..pictures.calls import draw
from .arguments import add_output, add_target, number, sized_target, write_text

MOST_BOXES = 1000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `draw` to the command line."""
    parser = subparsers.add_parser(
        "draw",
        help="a picture of a tensor in memory",
        description="Draw a tensor in the order of memory: left to right, then down, then box by "
        "box. Each cell is an element with the coordinates that change along the row.",
        epilog="example:  clformats draw b_fs_yx_fsv16 --shape 2,17,5,4 -o fsv16.svg",
    )
    add_target(parser)
    parser.add_argument(
        "--boxes",
        default="4",
        help=f"how many boxes to draw at most, 1 to {MOST_BOXES} (default: 4)",
    )
    add_output(parser, "--svg", text="write a coloured picture to this file too, as SVG")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the picture, and write the file."""
    boxes = number(args.boxes, "the number of boxes", 1, MOST_BOXES)
    if args.output and Path(args.output).suffix.lower() not in ("", ".svg"):
        raise Error(f"got {args.output}: pictures are SVG, so expected a name that ends in .svg")
    drawn = draw(sized_target(args), boxes=boxes)
    if args.output:
        write_text(args.output, drawn.svg, force=args.force, tell=False)
    if args.output != "-":
        told = f"\n\nwrote {args.output}" * bool(args.output)
        print(f"{drawn.text(get_terminal_size().columns)}{told}")
    return 0
