"""`clformats calibrate`: measure what the cost model needs to know of a processor, or show it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..pictures.words import columns
from ..problems.traits import Traits
from .arguments import add_json, print_json

if TYPE_CHECKING:
    from ..records.processors import ProcessorRecord

MEANINGS: Mapping[str, str] = {
    "stream_bytes": "from how many bytes moved on streaming stores gain",
    "copy_gb_s": "gigabytes a second that a copy reads and writes",
    "vector_bytes": "bytes of a register",
    "registers": "how many there are",
    "compute_units": "cores",
    "begin_bytes": "the alignment of memory",
}
"""What schedules are chosen by, for people."""
MEASURED = ("stream_bytes", "copy_gb_s")
"""Those of them that are no property of the device."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `calibrate` to the command line."""
    parser = subparsers.add_parser(
        "calibrate",
        help="measure the processor, for the choice of schedules",
        description="Measure, in about a second, from how many bytes on streaming stores gain "
        "on a CPU device and how fast copies are, and keep that beside the tuner's records: in the "
        "folder that CLFORMATS_TUNED names, else in the user's data folder; =off keeps and uses "
        "none. Reorders made from then on use it. On a busy machine nothing is kept: exit "
        "status 1.",
        epilog="example:  clformats calibrate --device pocl --show",
    )
    parser.add_argument("--device", metavar="NAME", help="part of a device's or platform's name")
    parser.add_argument("--show", action="store_true", help="only show the profile as it is")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, unless only shown; 1 where nothing could be kept."""
    from ..reorders.profiles import attempt, kept_of, traits_of
    from ..runtime import Engine

    engine = Engine(args.device)
    trouble = "" if args.show else attempt(engine)
    traits, kept = traits_of(engine), kept_of(engine)
    if args.json:
        measured = [*MEASURED] if kept else []
        found = {"device": engine.names[0], "measured": measured, "trouble": trouble}
        profile = {name: getattr(traits, name) for name in MEANINGS}
        print_json({**found, "date": kept.date if kept else None, "profile": profile})
    else:
        print(f"{engine.names[0]} ({engine.names[1]})")
        print("\n".join(lines(traits, kept)))
        if trouble:
            print(f"not measured: {trouble}")
    return 1 if trouble else 0


def lines(traits: Traits, kept: ProcessorRecord | None) -> Iterator[str]:
    """What a device is like, for people: each number, whether it was measured, what it means."""
    yield f"profile: measured on {kept.date[:10]}" if kept else "profile: not measured yet"
    origin = "measured" if kept else "default"
    origins = dict.fromkeys(MEANINGS, "device") | dict.fromkeys(MEASURED, origin)
    yield from columns(
        [(name, shown(getattr(traits, name)), origins[name], meaning)
         for name, meaning in MEANINGS.items()], "  ",
    )  # fmt: skip


def shown(value: int) -> str:
    """A number as it is read most easily: whole KiB and MiB as such."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= 4 * size:
            return f"{value / size:.4g} {unit}"
    return str(value)
