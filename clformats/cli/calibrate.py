"""`clformats calibrate`: measure what the cost model needs to know of a processor, or show it."""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..pictures.words import columns
from ..schedule.profile import MEANINGS, TOLD, Profile
from .arguments import add_json, print_json

if TYPE_CHECKING:
    from ..records.profiles import Kept


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `calibrate` to the command line."""
    parser = subparsers.add_parser(
        "calibrate",
        help="measure the processor, for the choice of schedules",
        description="Measure, in about half a second, the numbers of a CPU device by which "
        "schedules are chosen, and keep them beside the tuner's records: in the folder that "
        "CLFORMATS_TUNED names, else in the user's data folder; =off keeps and uses none. "
        "Reorders made from then on use them. On a busy machine nothing is kept: exit status 1.",
        epilog="example:  clformats calibrate --device pocl --show",
    )
    parser.add_argument("--device", metavar="NAME", help="part of a device's or platform's name")
    parser.add_argument("--show", action="store_true", help="only show what is kept, or default")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, unless only shown; 1 where nothing could be kept."""
    from ..reorders.profiles import attempt, kept_of, profile_for
    from ..runtime import Engine

    engine = Engine(args.device)
    trouble = "" if args.show else attempt(engine)
    profile, kept = profile_for(engine), kept_of(engine)
    if args.json:
        found = {"device": engine.names[0], "measured": _names(kept), "trouble": trouble}
        print_json({**found, "date": kept.date if kept else None, "profile": asdict(profile)})
    else:
        print(f"{engine.names[0]} ({engine.names[1]})")
        print("\n".join(lines(profile, kept)))
        if trouble:
            print(f"not measured: {trouble}")
    return 1 if trouble else 0


def lines(profile: Profile, kept: Kept | None) -> Iterator[str]:
    """A profile for people: each number, whether it was measured, and what it means."""
    yield f"profile: measured on {kept.date[:10]}" if kept else "profile: not measured yet"
    values = asdict(profile).items()
    measured = _names(kept)
    rows = [(name, shown(value), _origin(name, measured), MEANINGS[name]) for name, value in values]
    yield from columns(rows, "  ")


def shown(value: float) -> str:
    """A number as it is read most easily: whole KiB and MiB as such."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= 4 * size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g}"


def _names(kept: Kept | None) -> list[str]:
    return list(kept.numbers) if kept else []


def _origin(name: str, measured: Container[str]) -> str:
    """Where a number comes from."""
    return "measured" if name in measured else "device" if name in TOLD else "default"
