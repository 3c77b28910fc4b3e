"""Race the reorders against plain copies, oneDNN, torch and numpy, and print the table."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path

import clformats as cf
from clformats.timing import QUICK, Settings, pin_threads

from . import gpu, host, launches, network, plans, quantised, table
from .cases import MB, Case
from .contest import contest
from .firstuse import first_use
from .machine import facts
from .options import pool, positive, which_cases
from .picture import picture
from .report import Report

EXAMPLES = """\
examples:
  python -m bench --cases 'byxf|hwio' --why
  python -m bench --json new.json --compare bench/results/old.json
  python -m bench --random 60 --json new.json        60 pairs of formats that networks use
  python -m bench --random 200 --tune 5              what the tuner gains over the rules
  python -m bench gpu --json gpu.json --svg gpu.svg  all that a GPU is asked, in ten minutes
  python -m bench --load new.json --svg new.svg      print and draw a stored run, measure nothing
  python -m bench host                               from_numpy, pack and others against numpy
  python -m bench first                              what 40 first uses cost, cold and cached
  python -m bench launches                           host time of calls, replays, the runner in C
  python -m bench quantised                          quantised tensors beside ggml and gguf
  python -m bench plans squeezenet                plans of networks, run by oneDNN
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 where a case failed, 2 where the arguments are wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["gpu"]:
        return gpu.main(words[1:])
    if words[:1] == ["first"]:
        return network.main(words[1:])
    os.environ["CLFORMATS_WAIT"] = "1"  # what is timed are the kernels that plans say
    pin_threads()
    parts = {"host": host.main, "launches": launches.main, "plans": plans.main,
             "quantised": quantised.main}  # fmt: skip
    for name, part in parts.items():
        if words[:1] == [name]:
            return part(words[1:])
    options = parser().parse_args(words)
    try:
        check_folders(options.json, options.svg)
        old = Report.read(options.compare) if options.compare else None
        report = stored(options) if options.load else measured(options)
    except (OSError, ValueError, cf.Error) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    lines = [*table.footer(report), *(["", *table.comparison(report, old)] if old else [])]
    print("\n".join(lines))
    if options.json:
        report.write(options.json)
    if options.svg:
        options.svg.write_text(picture(report), encoding="utf-8")
    return int(any(record.error for record in report.records))


def check_folders(*files: Path | None) -> None:
    """Refuse files that could not be written at the end of a long run."""
    for file in files:
        if file and not file.parent.is_dir():
            raise ValueError(f"the folder of {file} does not exist: make it first")


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    which_cases(result)
    add("--rounds", metavar="N", type=positive, help="rounds per case, whatever time they take")
    add("--tune", metavar="SECONDS", type=positive, help="tune each case first, and record it")
    add("--quick", action="store_true", help="few short rounds, tiny cases: to see that it works")
    add("--why", action="store_true", help="print each plan: the family, and why no better one")
    add("--json", metavar="FILE", type=Path, help="write the results")
    add("--svg", metavar="FILE", type=Path, help="draw the results")
    add("--compare", metavar="OLD.json", type=Path, help="show what changed since an older run")
    add("--load", metavar="FILE", type=Path, help="take the results from a file, measure nothing")
    return result


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases to run: those that match; of the fixed ones, only tiny where it shall be quick."""
    cases, wanted = pool(options), options.cases
    if wanted is None:
        return [c for c in cases if options.random or not options.quick or size(c) < MB]
    found = [case for case in cases if wanted.search(case.name)]
    if not found:
        known = ", ".join(case.name for case in cases)
        raise ValueError(f"no case matches {wanted.pattern!r}; there are: {known}")
    return found


def size(case: Case) -> int:
    """Bytes read and written."""
    return sum(desc.nbytes for desc in case.descriptors())


def settings(options: argparse.Namespace) -> Settings:
    """How long to measure."""
    base = QUICK if options.quick else Settings()
    return replace(base, rounds=options.rounds, seconds=3600.0) if options.rounds else base


def measured(options: argparse.Namespace) -> Report:
    """A new run, printed as it goes."""
    cases, how = chosen(options), settings(options)
    engine = cf.Engine(options.device)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    asked = asdict(how) | ({"tune": options.tune} if options.tune else {})
    report = Report(now, facts(engine), asked, [], first_use(engine, how))
    begin(report)
    for case in cases:
        report.records.append(contest(case, engine, how, tune=options.tune or 0))
        show(report, -1, why=options.why)
    return report


def stored(options: argparse.Namespace) -> Report:
    """An old run, printed like a new one."""
    report = Report.read(options.load)
    begin(report)
    for number in range(len(report.records)):
        show(report, number, why=options.why)
    return report


def begin(report: Report) -> None:
    """Print where and when, and the head of the table."""
    print("\n".join([*table.machine(report), "", table.heading()]), flush=True)


def show(report: Report, number: int, *, why: bool) -> None:
    """Print one case, and its plan if wanted."""
    record = report.records[number]
    print(table.row(record), flush=True)
    if why:
        print("\n".join(f"    {line}" for line in record.plan.splitlines()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
