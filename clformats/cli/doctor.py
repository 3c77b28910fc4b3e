"""`clformats doctor`: which OpenCL devices work, what is wrong, and the command that fixes it.

It must work where everything else fails, so it imports only the standard library, asks devices in
processes of their own, and never ends in a traceback.
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from clformats.doctor.drivers import known
from clformats.doctor.findings import Finding, findings
from clformats.doctor.probe import Report, probe_devices
from clformats.programs import cache as programs
from clformats.programs import outcomes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_NO_DEVICE = (
    "see clinfo; check POCL_DEVICES, and that PoCL can write its cache folder (POCL_CACHE_DIR, or "
    "pocl in XDG_CACHE_HOME)"
)
_MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `doctor` to the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="which OpenCL devices work here, and how to fix the others",
        description="Look at the OpenCL loader, platforms and devices of this machine, build and "
        "run a small kernel on each device, and say what is wrong and how to fix it. "
        "Exit status: 0 if at least one device works, else 1.",
        epilog="example:  clformats doctor --json > doctor.json   (to attach to a bug report)",
    )
    parser.add_argument(
        "--cache",
        nargs="?",
        choices=("show", "clear"),
        const="show",
        help="only show the cache of built programs and plans, or clear it",
    )
    parser.add_argument(
        "--killed",
        action="store_true",
        help="only print a report of each kernel that ended a driver's compiler, for an issue",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="also the numbers by which schedules are chosen"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if a usable device exists, else 1."""
    if getattr(args, "cache", None):
        return cache(clear=args.cache == "clear", as_json=args.json)
    if getattr(args, "killed", False):
        return killed(as_json=args.json)
    found = [*machine_findings(), *record_findings(), *killer_findings()]
    devices, reason = probe_devices()
    found += [*device_findings(devices), *nothing_findings(devices, reason)]
    if args.json:
        print(json.dumps(report(found, devices), indent=2))
    else:
        verbose = getattr(args, "verbose", False)
        print("\n".join(lines(found, devices, verbose=verbose)))
    return 0 if usable(devices) else 1


def cache(*, clear: bool, as_json: bool) -> int:
    """Show the caches of built programs, and clear ours; 1 where it cannot be cleared."""
    folder = programs.cache_folder()
    kept = list(programs.entries(folder)) if folder else []
    killers = list(outcomes.killers(folder))
    others = {name: str(path) for name, path in driver_caches().items() if path.is_dir()}
    if clear and folder:
        try:
            programs.clear(folder)
        except OSError as error:
            print(f"{folder} cannot be cleared: {error}")
            return 1
    nbytes = sum(count for _, count in kept)
    plans = sum(file.suffix == programs.PLAN for file, _ in kept)
    built = len(kept) - plans
    if as_json:
        found = {"folder": str(folder or ""), "programs": built, "plans": plans, "bytes": nbytes,
                 "killers": list(map(str, killers))}  # fmt: skip
        print(json.dumps({**found, "cleared": clear, "drivers": others}, indent=2))
        return 0
    if folder is None:
        print("built programs are not kept: PYOPENCL_NO_CACHE is set, or there is no cache folder")
    else:
        done = "cleared: there were " if clear else ""
        print(f"{folder}: {done}{built} built programs and {plans} plans, {size(nbytes)}")
    for outcome in killers:
        print(f"{outcome}")
    for name, path in others.items():
        print(f"{path}: {name}'s own cache, which other programs use too; it is not touched")
    return 0


def killed(*, as_json: bool) -> int:
    """Print a report of each kernel that ended or hung a driver's compiler."""
    found = list(outcomes.killers(programs.cache_folder()))
    if as_json:
        print(json.dumps([asdict(o) | {"binary": ""} for o in found], indent=2))
    else:
        print("\n\n".join(map(outcomes.report, found)) or "no kernel ended a compiler here")
    return 0


def killer_findings() -> list[Finding]:
    """The kernels that ended or hung a driver's compiler, and drivers that died of a question."""
    remedy = (
        "other kernels do its work; clformats doctor --killed prints a report for an issue, "
        "--cache clear lets it be tried again"
    )
    found = outcomes.killers(programs.cache_folder())
    return [Finding("note", str(outcome), remedy) for outcome in found]


def driver_caches() -> dict[str, Path]:
    """The folders of drivers' own caches, by name; further variables may move them elsewhere."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    nvidia = os.environ.get("CUDA_CACHE_PATH") or Path.home() / ".nv" / "ComputeCache"
    pocl = os.environ.get("POCL_CACHE_DIR") or home / "pocl"
    return {"PoCL": Path(pocl), "NVIDIA": Path(nvidia)}


def machine_findings() -> list[Finding]:
    """`findings()`, or what kept it from looking: a doctor does not faint."""
    try:
        return findings()
    except Exception as error:  # noqa: BLE001  # a strange machine is what this command is for
        text = f"this machine could not be examined: {type(error).__name__}: {error}"
        return [
            Finding("problem", text, "report this at the project's issues, with the line above")
        ]


def record_findings() -> list[Finding]:
    """How many of the tuner's records cannot be read, and why."""
    try:
        from clformats.records import folder, read

        where = folder()
        reasons = Counter(
            line.reason
            for file in (where.glob("*.jsonl") if where else ())
            for line in read(file)[1]
        )
    except Exception as error:  # noqa: BLE001  # a doctor does not faint
        return [Finding("note", f"{error}", "clformats tune show")]
    if not reasons:
        return []
    what = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
    text = f"records of the tuner are not used: {what}"
    return [Finding("note", text, "clformats tune show; clformats tune revalidate removes them")]


def usable(devices: list[Report]) -> list[Report]:
    """The devices on which the probe kernel built, ran and computed the right thing."""
    return [device for device in devices if "seconds" in device]


def versions() -> dict[str, str]:
    """Versions of what matters in a bug report; "missing" where a package is not installed."""
    known = {"python": platform.python_version(), "system": platform.platform()}
    for name in ("clformats", "pyopencl", "numpy", "mako", "ml_dtypes"):
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            known[name] = "missing"
    return known


def report(found: list[Finding], devices: list[Report]) -> dict[str, object]:
    """Everything, for `--json`."""
    return {
        "usable": bool(usable(devices)),
        "versions": versions(),
        "devices": devices,
        "findings": [asdict(finding) for finding in found],
    }


# ---- findings that need the devices ------------------------------------------------------------


def device_findings(devices: list[Report]) -> list[Finding]:
    """One problem for each device that is listed but does not work."""
    return [
        Finding("problem", f"{name_of(device)}: {device['error']}", device_remedy(device))
        for device in devices
        if "error" in device
    ]


def device_remedy(device: Report) -> str:
    """The remedy for a device that cannot build or run a kernel."""
    if "unknown target CPU" in str(device["error"]):
        return (
            "this build of pocl is older than the processor: use the distribution's "
            "(sudo apt-get install pocl-opencl-icd) and remove pip's "
            "(python -m pip uninstall pocl-binary-distribution)"
        )
    return f"reinstall or update the driver of platform {device['platform']!r}"


def nothing_findings(devices: list[Report], reason: str) -> list[Finding]:
    """What to say when no device could be listed; a missing platform is in `findings` already."""
    if devices or "PLATFORM_NOT_FOUND" in reason:
        return []
    if not reason:
        return [Finding("problem", "the platforms have no device", _NO_DEVICE)]
    if "No module named" in reason:
        return [Finding("problem", reason, "python -m pip install pyopencl numpy")]
    return [
        Finding("problem", f"OpenCL cannot be used: {reason}", "fix the platforms listed above")
    ]


# ---- text --------------------------------------------------------------------------------------


def name_of(device: Report) -> str:
    """A device's name with its platform, since two platforms often share one processor."""
    return f"{device['device']} ({device['platform']})"


def lines(found: list[Finding], devices: list[Report], *, verbose: bool = False) -> Iterator[str]:
    """The report for people."""
    yield "  ".join(f"{name} {version}" for name, version in versions().items())
    yield ""
    for device in devices:
        yield from device_lines(device, verbose=verbose)
    for finding in found:
        yield f"{_MARKS[finding.level]}  {_indented(finding.text)}"
        if finding.remedy:
            yield f"         -> {_indented(finding.remedy)}"
    yield ""
    yield verdict(devices)


def device_lines(device: Report, *, verbose: bool) -> Iterator[str]:
    """What one device is, and whether it works."""
    works = "seconds" in device
    outcome = f"a kernel built and ran in {device['seconds']:.2f} s" if works else "does NOT work"
    yield f"[{device['platform_index']}:{device['device_index']}] {name_of(device)}: {outcome}"
    yield f"      {device['type']}, {device['version']}, driver {device['driver']}"
    yield f"      {known(device['platform'], device['type'], device['driver'])}"
    yield (
        f"      fp16 {yes(device['fp16'])}, fp64 {yes(device['fp64'])}, "
        f"sub-groups {yes(device['subgroups'])}, {device['compute_units']} compute units"
    )
    yield (
        f"      memory {size(device['global_memory'])}, largest buffer "
        f"{size(device['largest_buffer'])}, local {size(device['local_memory'])}"
    )
    yield from (f"      {line}" for line in profile_lines(device, verbose=verbose))
    yield ""


def profile_lines(device: Report, *, verbose: bool) -> Iterator[str]:
    """Where the numbers come from by which schedules are chosen, for a CPU that works; and they."""
    if device["type"] != "CPU" or "seconds" not in device:
        return
    try:
        from clformats.problems.traits import Traits
        from clformats.records import DeviceNames, folder
        from clformats.records.processors import find_processor

        from .calibrate import lines as told

        driver = f"{device['driver']}, {device['platform_version']}"
        kept, where = None, folder()
        if where:
            kept = find_processor(DeviceNames(device["device"], device["platform"], driver), where)
        names = ("compute_units", "vector_bytes")
        traits = Traits(**{name: device[name] for name in names})
        first, *rest = told(kept.added_to(traits) if kept else traits, kept)
        yield first
        yield from rest if verbose else ()
        if kept is None and where:
            yield "  -> clformats calibrate measures it, in about a second"
    except Exception as error:  # noqa: BLE001  # a doctor does not faint
        yield f"profile: {error}"


def verdict(devices: list[Report]) -> str:
    """The last line: can clformats be used on a device here?"""
    good = usable(devices)
    if good:
        return f"{len(good)} of {len(devices)} devices work. clformats is ready."
    return "No OpenCL device works here. Formats, descriptors, pack and unpack work without one."


def yes(flag: object) -> str:
    """`yes` or `no`."""
    return "yes" if flag else "no"


def size(count: int) -> str:
    """A number of bytes in KiB, MiB or GiB."""
    for unit, bytes_ in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count / 1024:.0f} KiB"


def _indented(text: str) -> str:
    """Further lines of a text under its first."""
    return text.strip().replace("\n", "\n" + " " * 12)
