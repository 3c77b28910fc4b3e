"""`clformats explain`: what a format's name means, and where it puts the elements of a tensor."""

from __future__ import annotations

import argparse

from ..errors import InvalidDescriptor
from ..pictures.explaining import TABLE_LIMIT, explanation
from ..tensors.desc import MemoryDesc
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
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="tell whether an image fits this device: part of a device's or platform's name",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation."""
    found = explanation(*target(args))
    desc = found.desc if isinstance(found.desc, MemoryDesc) else None
    told = "" if args.device is None else _fits(desc, args.device)
    if args.json:
        return print_json(found.data | ({"device": told} if told else {}))
    print(found)
    if told:
        print(f"\n{told}")
    return 0


def _fits(desc: MemoryDesc | None, device: str) -> str:
    """Whether an image fits a device. Raises `InvalidDescriptor` without one, `DeviceError`."""
    from ..runtime import Engine
    from ..runtime.image import misfit

    if desc is None or desc.image_shape is None or desc.has_runtime:
        raise InvalidDescriptor("--device tells whether an image fits: name one, with --shape")
    engine = Engine(device)
    reason = misfit(engine, desc)
    return f"does not fit: {reason}" if reason else f"fits {engine.device.name.strip()}"
