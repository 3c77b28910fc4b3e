"""The kernels of `tests.replay_support` to read and to compare, from the root of the repository.

python -m tests.replay names fsv16            # the problems whose names have a text in them
python -m tests.replay show PROBLEM DEVICE    # one kernel, without comments; also by a row's hash
python -m tests.replay diff HEAD              # how kernels differ from those of a revision
python -m tests.replay programs               # how many programs the reorders of networks need
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from clformats.kernels import render
from clformats.kernels.source import without_comments
from tests.replay_problems import network_problems, problems
from tests.replay_support import DEVICES, kernel, kernels, recorded

ROOT = Path(__file__).resolve().parent.parent
SHOWN = 5
"""So many kinds of differences are shown for a device, unless all are asked for."""


def main(arguments: list[str] | None = None) -> None:
    """Run one of the commands."""
    given = _parser().parse_args(arguments)
    if given.command == "names":
        print("\n".join(p.name for p in problems() if given.part in p.name))
    elif given.command == "show":
        print(shown(given.problem, given.device), end="")
    elif given.command == "programs":
        print(programs())
    elif given.command == "dump":
        json.dump({d: texts(d) for d in given.device}, sys.stdout)
    else:
        devices = [given.device] if given.device else list(DEVICES)
        print(compared(given.revision, devices, given.problem, None if given.all else SHOWN))


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.replay", None, __doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    names = commands.add_parser("names", help="the names of problems")
    names.add_argument("part", nargs="?", default="", help="a text in the name")
    show = commands.add_parser("show", help="one kernel")
    show.add_argument("problem", help="a name, a part that only one has, or the hash of a source")
    show.add_argument("device", choices=DEVICES)
    diff = commands.add_parser("diff", help="differences from another revision")
    diff.add_argument("revision")
    diff.add_argument("--device", choices=DEVICES, help="this one alone")
    diff.add_argument("--problem", default="", help="problems whose names have this text")
    diff.add_argument("--all", action="store_true", help="every kind of difference")
    commands.add_parser("programs", help="how many programs there are")
    dump = commands.add_parser("dump", help="all kernels as JSON")
    dump.add_argument("device", choices=DEVICES, nargs="+")
    return parser


def shown(part: str, device: str) -> str:
    """The kernel of the problem of that name, or of the only one whose name has the text.

    Or the one of the row of that hash.
    """
    every = {p.name: p for p in problems()}
    part = next((row.first for row in recorded(device) if row.source == part), part)
    found = [part] if part in every else [name for name in every if part in name]
    if len(found) != 1:
        some = "".join(f"\n    {name}" for name in found[:SHOWN])
        sys.exit(f"{len(found)} problems have {part!r} in their name, expected one{some}")
    return kernel(every[found[0]], DEVICES[device]).text


def texts(device: str) -> dict[str, str]:
    """The kernels of a device as texts, by the problems' names."""
    return {name: made.text for name, made in kernels(device).items()}


def programs() -> str:
    """A table: the reorders of networks, and the distinct sources that they need, by device.

    ``programs`` are what is compiled; some of them differ in their comments alone.
    """
    every = network_problems()
    lines = [f"{'device':<15}{'reorders':>10}{'programs':>10}{'comments apart':>16}"]
    for device, traits in DEVICES.items():
        sources = {made.source for p in every if (made := render(p.plan(traits)))}
        bare = {without_comments(source) for source in sources}
        lines.append(f"{device:<15}{len(every):>10}{len(sources):>10}{len(bare):>16}")
    return "\n".join(lines)


def compared(revision: str, devices: list[str], part: str, most: int | None) -> str:
    """How the kernels of this tree differ from those of a revision."""
    before = texts_at(revision, devices)
    lines = []
    for device in devices:
        old, new = before[device], texts(device)
        both = [name for name in new if name in old and part in name]
        added, gone = len(new.keys() - old.keys()), len(old.keys() - new.keys())
        lines.append(f"{device}: {len(both)} problems in both, {added} new, {gone} gone")
        lines += differences({n: old[n] for n in both}, {n: new[n] for n in both}, most)
    return "\n".join(lines)


def differences(old: Mapping[str, str], new: Mapping[str, str], most: int | None) -> Iterable[str]:
    """The differences of texts, each kind once: with the first problem's name, how many have it."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in old:
        if old[name] != new[name]:
            kinds.setdefault(tuple(_changed(old[name], new[name], 0)), []).append(name)
    ordered = sorted(kinds.values(), key=len, reverse=True)
    yield f"  {sum(map(len, ordered))} changed, in {len(ordered)} ways"
    for names in ordered[:most]:
        yield f"  {len(names)} as {names[0]}"
        yield from (f"    {line}" for line in _changed(old[names[0]], new[names[0]], 1))
    if ordered[len(ordered[:most]) :]:
        yield f"  ... and {len(ordered) - len(ordered[:most])} more ways: --all shows them"


def _changed(old: str, new: str, around: int) -> list[str]:
    """The lines of a difference, without its heads."""
    found = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=around, lineterm=""))
    return ["@@" if line.startswith("@@") else line for line in found[2:]]


def texts_at(revision: str, devices: list[str]) -> dict[str, dict[str, str]]:
    """The texts of a revision, rendered by its own code in a folder that is removed again."""
    git = shutil.which("git") or "git"
    packed = subprocess.run([git, "archive", revision], cwd=ROOT, check=True, capture_output=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        if not Path(folder, "tests", "replay.py").exists():
            sys.exit(f"{revision} has no tests/replay.py: take a later revision")
        command = [sys.executable, "-m", "tests.replay", "dump", *devices]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": folder}, check=True,
            stdout=subprocess.PIPE,
        )  # fmt: skip
    return json.loads(done.stdout)  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
