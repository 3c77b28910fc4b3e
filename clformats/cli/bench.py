"""`clformats bench --reorder`: check and time reorders as oneDNN's benchdnn is asked to."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from time import monotonic

from ..interop.benchdnn.knobs import COMMON, DRIVER, SINGLE, Knob
from ..interop.benchdnn.parse import Task, UnknownOption, Word, expanded, tasks

INTERRUPTED = 130
SEED = 1
EPILOG = """\
  --dt=SRC:DST            element types of both sides
  --batch=FILE            take options and problems from a file
  --reset                 restore the defaults of all options of problems
  -h, --help              this text

A problem is sizes and a name, 2x64x3x3_n"conv1". Options apply to the problems after them; lists
with commas make a problem for every combination. See docs/benchdnn.md.

example:  clformats bench --reorder --sdt=f32,s8 --ddt=f16 --stag=abx --dtag=axb,aBx16b 2x17x5x4
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `bench` to the command line."""
    parser = subparsers.add_parser(
        "bench",
        help="check and time reorders, in the language of oneDNN's benchdnn",
        # The words are benchdnn's, and none of them argparse's.
        prefix_chars="\0",
        add_help=False,
    )
    parser.add_argument("words", nargs="*")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run all problems; 1 if one failed, 2 for an unknown option."""
    if not args.words or {"-h", "--help"} & set(args.words):
        print(help_text())
        sys.exit(0)  # as argparse does after its help
    try:
        words = expanded(args.words)
        count = sum(1 for _ in tasks(words))  # all words are read before the first problem runs
    except UnknownOption as error:
        print(f"clformats bench: {error}", file=sys.stderr)
        return 2
    if not count:
        print("clformats bench: no problem is given, such as 2x64x3x3", file=sys.stderr)
    return _run_all(words, count)


def _run_all(words: Sequence[Word], count: int) -> int:
    from ..interop.benchdnn.report import RunReport
    from ..interop.benchdnn.run import Runner

    start = monotonic()
    report, runner = RunReport(lambda line: print(line, flush=True)), Runner()
    try:
        for task in sampled(tasks(words), count):
            report.start(task)
            report.add(task, runner.outcome(task, report.tests))
    except KeyboardInterrupt:
        report.finish(monotonic() - start)
        return INTERRUPTED
    return report.finish(monotonic() - start)


def sampled(all_tasks: Iterator[Task], count: int) -> Iterator[Task]:
    """All ``count`` tasks, or as many as ``--sample`` says, drawn at random but always the same."""
    drawn: dict[int, set[int]] = {}
    for number, task in enumerate(all_tasks):
        size = task.common.sample or count
        if size < count and size not in drawn:
            # By chance: even steps through combinations meet the same values again and again.
            drawn[size] = set(random.Random(SEED).sample(range(count), size))  # noqa: S311  # no secret
        if size >= count or number in drawn[size]:
            yield task


def help_text() -> str:
    """Every option, with what it does."""
    sections = {"the run": COMMON, "problems, one value of each": SINGLE, "problems, lists": DRIVER}
    lines = ["usage: clformats bench --reorder [--OPTION=VALUE | PROBLEM] ...", ""]
    for title, table in sections.items():
        lines += [f"{title}:", *map(_help_line, table), ""]
    return "\n".join([*lines, EPILOG.rstrip()])


def _help_line(knob: Knob) -> str:
    name = f"--{knob.name}="
    return f"  {name:<23} {knob.help}"
