"""`clformats export`: a reorder as a folder that C programs run without Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import Error, InvalidArgument
from ..problems.traits import DEFAULT, Traits
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_any_desc

LIKE = {"cpu": DEFAULT, "gpu": Traits(is_cpu=False, compute_units=16)}
"""What a device is like that is not here."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `export` to the command line."""
    parser = subparsers.add_parser(
        "export",
        help="a reorder as a folder that C programs run without Python",
        description="Write a reorder between two descriptors as OpenCL C, a manifest, and a runner "
        "in C99: see docs/recording.md. It is planned for the device here, or for a kind of "
        "device by --device-like, which needs no OpenCL; and for every device. Its input is named "
        "src, its output dst.",
        epilog="example:  clformats export f32:nchw:1x3x224x224 f16:nChw16c:1x3x224x224 -o net\n"
        "then:     clformats run net",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("src", metavar="SRC", help="a descriptor, such as f32:nchw:1x3x224x224")
    parser.add_argument("dst", metavar="DST", help="a descriptor of the same dims")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="a folder, or a file *.clf"
    )
    parser.add_argument("--name", help="the name of the header (default: that of the folder)")
    device = parser.add_mutually_exclusive_group()
    device.add_argument("--device", metavar="NAME", help="a text in the name of device or platform")
    device.add_argument("--device-like", choices=LIKE, help="plan for such a device, without one")
    parser.add_argument("--force", action="store_true", help="replace an export that exists")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the export."""
    from ..recording.export import exported_reorder

    src, dst = (as_any_desc(text, "a descriptor") for text in (args.src, args.dst))
    for desc in (src, dst):
        if isinstance(desc, MemoryDesc) and desc.has_runtime:
            raise InvalidArgument(f"{desc} has sizes known at execution only: give numbers for *")
    place = Path(args.output)
    if place.exists() and not args.force and (place.is_file() or any(place.iterdir())):
        raise Error(f"{place} exists: --force replaces an export")
    like = LIKE.get(args.device_like)
    if isinstance(src, MemoryDesc) and isinstance(dst, MemoryDesc):
        exported_reorder(src, dst, place, args.name, device=args.device, like=like)
    elif like is None:
        _export_quantised(src, dst, place, args)
    else:
        raise InvalidArgument(f"{src} -> {dst}: --device-like plans reorders of one element type")
    print(f"wrote {place}")
    return 0


def _export_quantised(src: Any, dst: Any, place: Path, args: argparse.Namespace) -> None:
    """Record the reorder on a device: it may be several commands."""
    from ..recording.recording import Recording
    from ..reorders.reorder import Reorder
    from ..runtime import Engine, Memory

    engine = Engine(args.device)
    given, made = Memory(src, engine), Memory(dst, engine)
    recording = Recording(engine, inputs={"src": given}, outputs={"dst": made})
    Reorder(src, dst, engine)(recording, given, made)
    recording.export(place, name=args.name)
